/* Workspaces of losses and metrics. */
#include "kernels/cuda/base/feature_work.h"
#include "kernels/cuda/base/sort.h"
#include "kernels/contrastive.h"
#include "kernels/loss.h"

size_t pnet_cuda_cross_entropy_work(const struct pnet_cross_entropy *e)
{
    (void)e;
    return SLICES * sizeof(struct two);
}

size_t pnet_cuda_focal_work(const struct pnet_focal *f)
{
    (void)f;
    return SLICES * sizeof(struct two);
}

size_t pnet_cuda_dice_work(const struct pnet_dice *d)
{
    size_t classes = (size_t)d->targets.classes;
    return round_up(classes * SLICES * sizeof(struct tally)) +
           round_up(classes * sizeof(struct tally));
}

size_t pnet_cuda_mse_work(void)
{
    return SLICES * sizeof(struct two);
}

/* Whether rows have several labels is not known where memory is planned (data pointers are not there
   yet): room for two entries. */
size_t pnet_cuda_lovasz_work(const struct pnet_targets *t)
{
    size_t rows = (size_t)t->rows.most, classes = (size_t)t->classes;
    return 2 * round_up(2 * rows * 8) + 3 * round_up(rows * 4) + round_up(classes * 8) +
           round_up(4) + round_up(SLICES * 8) + round_up(classes * SLICES * 8) +
           pnet_cuda_sort_work(2 * t->rows.most);
}

size_t pnet_cuda_correct_work(void)
{
    return 2 * sizeof(unsigned long long);
}

size_t pnet_cuda_confusion_work(int32_t classes)
{
    return (size_t)classes * (size_t)classes * sizeof(unsigned long long);
}

/* Rows and their features or gradients, side by side. */
static size_t rows_bytes(const struct pnet_matched *p, int64_t rows)
{
    return round_up((size_t)rows * sizeof(int32_t)) +
           round_up((size_t)(rows * p->width) * sizeof(float));
}

static size_t entries_bytes(const struct pnet_matched *p, int32_t each)
{
    return rows_bytes(p, (int64_t)p->samples * 2 * each);
}

/* Entries of the gradient stand behind the rows. */
size_t pnet_cuda_circle_work(const struct pnet_circle *c, bool backward)
{
    size_t drawn = rows_bytes(&c->pair, (int64_t)c->pair.samples * 2 * c->pairs);
    return drawn + (backward ? entries_bytes(&c->pair, c->pairs) : 0);
}

size_t pnet_cuda_hardest_work(const struct pnet_hardest *h, bool backward)
{
    int64_t side = (int64_t)h->positives + h->candidates;
    if (backward) return entries_bytes(&h->pair, 2 * h->positives);
    return rows_bytes(&h->pair, (int64_t)h->pair.samples * 2 * side) +
           round_up((size_t)((int64_t)h->pair.samples * h->positives) * sizeof(struct terms));
}
