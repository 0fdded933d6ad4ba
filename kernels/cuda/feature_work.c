/* Workspaces of norms, pools, losses and metrics. */
#include "kernels/cuda/contrastive.h"
#include "kernels/cuda/feature_room.h"
#include "kernels/cuda/loss.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/optim.h"
#include "kernels/cuda/pool.h"
#include "kernels/cuda/sort.h"

/* The library sorts in tiles of at least 2048 keys and keeps 256 counters of 4 bytes for each tile
   of at most 2^28 keys, and 256 counters of 8 bytes for each of up to 8 passes over each such
   portion. */
size_t pnet_cuda_sort_work(int64_t n)
{
    const int64_t portion = INT64_C(1) << 28;
    size_t portions = (size_t)(n / portion) + 2;
    return (size_t)(n < portion ? n : portion) / 2 + portions * 8 * (256 * 8 + 8) + 8192;
}

size_t pnet_cuda_norm_work(const struct pnet_norm *n)
{
    size_t m = (size_t)n->segments.count * (size_t)n->c;
    return m * (2 * sizeof(double) + 2 * sizeof(float)) + norm_parts(n) * sizeof(double);
}

size_t pnet_cuda_segment_sums_work(struct pnet_segments s, int32_t c)
{
    return column_parts(s.rows, s.count, c) * sizeof(double);
}

/* The moments of each row, the two sums of each channel, the sums of chunks. */
size_t pnet_cuda_layernorm_backward_work(struct pnet_count rows, int32_t c)
{
    return (size_t)rows.most * 2 * sizeof(float) +
           ((size_t)c * 2 + column_parts(rows.most, 1, c)) * sizeof(double);
}

size_t pnet_cuda_optim_update_work(int64_t chunk_count)
{
    return (size_t)chunk_count * sizeof(double);
}

size_t pnet_cuda_cells_sum_work(int32_t c)
{
    (void)c;
    return 0;
}

size_t pnet_cuda_cells_majority_work(const struct pnet_cells *cells)
{
    size_t fine = (size_t)cells->fine_rows.most, coarse = (size_t)cells->coarse_rows.most;
    return 2 * round_up(fine * 8) + round_up(coarse * 8) +
           pnet_cuda_sort_work(cells->fine_rows.most);
}

size_t pnet_cuda_segments_pool_work(struct pnet_segments s, int32_t c)
{
    size_t parts = (size_t)(pnet_segment_blocks(s.rows) + s.count) * (size_t)c;
    return 2 * round_up(parts * sizeof(double)); /* a maximum needs a float and a row: no more */
}

size_t pnet_cuda_interpolate_backward_work(const struct pnet_nearest *n, int32_t c)
{
    int64_t pairs = n->fine_rows.most * n->k;
    (void)c;
    return 2 * round_up((size_t)pairs * 8) + round_up((size_t)(n->coarse_rows.most + 1) * 8) +
           pnet_cuda_sort_work(pairs);
}

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
