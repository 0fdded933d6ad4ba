/* What a slot takes for given counts: the same formulas as slot.c, without the points. A test holds
 * the two equal. */
#include "kernels/cpu/geo.h"
#include "kernels/cpu/geo_matches.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/geo.h"
#include "kernels/cuda/geo_matches.h"
#endif
#include "runtime/slot.h"

struct sizes {
    const struct pnet_plan *plan;
    const struct pnet_counts *counts;
    size_t buffers, scratch, arrival;
};

static void buffer(struct sizes *z, int64_t rows, int64_t each, int64_t more, size_t size)
{
    z->buffers += pnet_round_bytes((size_t)(pnet_capacity(rows) * each + more) * size);
}

static void scratch(struct sizes *z, size_t bytes)
{
    bytes = pnet_round_bytes(bytes);
    if (bytes > z->scratch) z->scratch = bytes;
}

/* Rows of an input arrive as they are in the batch. */
static void arrive(struct sizes *z, int64_t n, size_t row)
{
    size_t bytes = pnet_round_bytes((size_t)pnet_capacity(n) * row);
    if (z->plan->device != PNET_CPU && bytes > z->arrival) z->arrival = bytes;
}

static void size_level(struct sizes *z, int level)
{
    const struct pnet_level_info *info = &z->plan->levels[level];
    int64_t n = z->counts->rows[level];
    buffer(z, n, 1, 0, 3 * sizeof(float));
    buffer(z, n, 1, 0, sizeof(uint64_t));
    if (info->kind == PNET_LEVEL_INPUT) {
        arrive(z, n, 3 * sizeof(float));
        buffer(z, n, 1, 0, sizeof(int32_t));
        int64_t room = pnet_capacity(n);
        scratch(z, pnet_round_bytes(PNET_KERNEL(z->plan, order_work)(room)) +
                       (size_t)room * sizeof(uint64_t));
    } else {
        int64_t fine = z->counts->rows[info->finer];
        buffer(z, fine, 1, 0, sizeof(int32_t));
        int64_t room = pnet_capacity(fine);
        scratch(z, pnet_round_bytes(PNET_KERNEL(z->plan, sample_work)(room)) +
                       (size_t)room * sizeof(int32_t));
    }
}

/* With the rows of the capacity class, as workspaces are sized. */
static struct pnet_level shape_of(const struct sizes *z, int level)
{
    /* the key is there, but is not read for a size */
    static const uint64_t key = 0;
    return (struct pnet_level){.rows = pnet_capacity(z->counts->rows[level]),
        .samples = z->counts->samples,
        .key = &key,
        .grid = z->plan->levels[level].grid};
}

bool pnet_slot_searches_back(enum pnet_device_kind device, const struct pnet_geo_request *q)
{
#ifdef PNET_CUDA_BUILT
    if (device == PNET_CUDA) return q->a == q->b && pnet_cuda_triplets_mutual(&q->nb);
#endif
    (void)device;
    (void)q;
    return false;
}

bool pnet_slot_tiled(const struct pnet_plan *p, int item, int form)
{
    int32_t kernel = p->geo[item].request.nb.kernel;
    unsigned asked = form ? PNET_FORM_TRANSPOSED_TILES : PNET_FORM_FORWARD_TILES;
    return p->device != PNET_CPU && kernel * kernel * kernel <= PNET_TILE_CELLS &&
           p->geo[item].forms & asked && pnet_plan_reads_tiles(p, item);
}

size_t pnet_slot_tile_bytes(int64_t rows)
{
    int64_t tiles = (pnet_capacity(rows) + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
    return (size_t)tiles * sizeof(struct pnet_tile);
}

static void size_tiles(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    for (int form = 0; form < 2; form++) {
        int64_t rows = z->counts->rows[form ? q->b : q->a];
        if (!pnet_slot_tiled(z->plan, item, form)) continue;
        z->buffers += pnet_round_bytes(pnet_slot_tile_bytes(rows));
        buffer(z, z->counts->tile_words[item][form], 1, 0, sizeof(uint32_t));
#ifdef PNET_CUDA_BUILT
        scratch(z, pnet_cuda_tiles_work(pnet_capacity(rows)));
#endif
    }
}

static void size_triplets(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    struct pnet_level out = shape_of(z, q->a), in = shape_of(z, q->b);
    int64_t t = z->counts->triplets[item];
    struct pnet_triplets set = {.rows = out.rows,
        .others = in.rows,
        .count = pnet_capacity(t),
        .cells = q->nb.kernel * q->nb.kernel * q->nb.kernel};
    buffer(z, z->counts->rows[q->a], 1, 1, sizeof(int64_t));
    buffer(z, t, 1, 0, sizeof(int32_t));
    buffer(z, t, 1, 0, sizeof(uint16_t));
    scratch(z, PNET_KERNEL(z->plan, triplets_work)(&out, q->a == q->b ? &out : &in, &q->nb));
    size_tiles(z, item);
    if (!(z->plan->geo[item].forms & PNET_FORM_TRANSPOSED)) return;
    buffer(z, t, 1, 0, sizeof(int32_t));
    buffer(z, t, 1, 0, sizeof(uint16_t));
    if (pnet_slot_searches_back(z->plan->device, q)) return;
    buffer(z, z->counts->rows[q->b], 1, 1, sizeof(int64_t));
    scratch(z, PNET_KERNEL(z->plan, transpose_work)(&set));
}

static void size_parent(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    if (z->plan->levels[q->b].finer != q->a)
        buffer(z, z->counts->rows[q->a], 1, 0, sizeof(int32_t));
    if (!(z->plan->geo[item].forms & PNET_FORM_CHILDREN)) return;
    buffer(z, z->counts->rows[q->b], 1, 1, sizeof(int64_t));
    buffer(z, z->counts->rows[q->a], 1, 0, sizeof(int32_t));
}

static void size_nearest(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    struct pnet_level fine = shape_of(z, q->a), coarse = shape_of(z, q->b);
    buffer(z, z->counts->rows[q->a], q->k, 0, sizeof(int32_t));
    buffer(z, z->counts->rows[q->a], q->k, 0, sizeof(float));
    scratch(z, PNET_KERNEL(z->plan, nearest_work)(&fine, &coarse, q->k));
}

static void size_matches(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    struct pnet_level from = shape_of(z, q->a), to = shape_of(z, q->b);
    int64_t number = z->counts->triplets[item];
    buffer(z, z->counts->rows[q->a], 1, 1, sizeof(int64_t));
    buffer(z, number, 1, 0, sizeof(int32_t));
    scratch(z, PNET_KERNEL(z->plan, matches_work)(&from, &to, q->radius, pnet_capacity(number)));
    arrive(z, z->counts->samples, 16 * sizeof(float));
}

size_t pnet_slot_estimate(const struct pnet_plan *p, const struct pnet_counts *c)
{
    struct sizes z = {.plan = p, .counts = c};
    z.buffers =
        pnet_round_bytes((size_t)p->level_count * (size_t)(c->samples + 1) * sizeof(int64_t));
    for (int i = 0; i < p->geo_count; i++) switch (p->geo[i].request.kind) {
        case PNET_GEO_LEVEL: size_level(&z, p->geo[i].request.a); break;
        case PNET_GEO_TRIPLETS: size_triplets(&z, i); break;
        case PNET_GEO_PARENT: size_parent(&z, i); break;
        case PNET_GEO_NEAREST: size_nearest(&z, i); break;
        case PNET_GEO_MATCHES: size_matches(&z, i); break;
        case PNET_GEO_KINDS: break;
        }
    for (int t = 0; t < p->tensor_count; t++)
        if (p->tensors[t].role == PNET_ROLE_INPUT && p->tensors[t].first >= 0) {
            int64_t rows = c->rows[p->tensors[t].type.level];
            size_t width = (size_t)p->tensors[t].type.width;
            buffer(&z, rows, 1, 0, width * (size_t)pnet_storage_bytes(pnet_plan_storage(p, t)));
            arrive(&z, rows, width * 4);
        }
    return z.buffers + z.scratch + z.arrival;
}
