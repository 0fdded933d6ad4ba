#include "kernels/cuda/geometry/geo_work.h"
#include "kernels/corners.h"
#include "kernels/cuda/base/sort.h"
#include "kernels/geometry_stage.h"
#include "kernels/given.h"
#include "kernels/matches.h"
#include "kernels/order.h"
#include "kernels/taps.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

size_t pnet_cuda_geo_sorter_bytes(int64_t n)
{
    return (size_t)n / 2 + (1 + ((size_t)n >> 28)) * (256u << 10);
}

size_t pnet_cuda_order_points_work(int64_t n)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, pnet_cuda_geo_sorter_bytes(n), 1);
    return purse.used;
}

size_t pnet_cuda_geo_curve_work(int64_t rows)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, 6, sizeof(uint32_t));
    geo_take(&purse, CURVE_BYTES * (size_t)rows, 1);
    geo_take(&purse, pnet_cuda_geo_sorter_bytes(rows), 1);
    return purse.used;
}

int64_t pnet_cuda_geo_radix_tiles(int64_t rows)
{
    return (rows + RADIX_TILE - 1) / RADIX_TILE;
}

/* The voxels of each sample, and what sorting takes. */
size_t pnet_cuda_bucket_order_work(const struct pnet_level *level)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, 2, sizeof(uint32_t));
    geo_take(&purse, 6 * (size_t)level->samples, sizeof(uint32_t));
    geo_take(&purse, 1, RADIX_HEAD_BYTES);
    geo_take(
        &purse, (size_t)pnet_cuda_geo_radix_tiles(level->rows) * RADIX_DIGITS, sizeof(uint64_t));
    geo_take(&purse, CURVE_BYTES * (size_t)level->rows, 1);
    geo_take(&purse, pnet_cuda_geo_sorter_bytes(level->rows), 1);
    return purse.used;
}

size_t pnet_cuda_geo_scan_sums(int64_t n)
{
    return n > SCAN_CHUNK ? (size_t)((n + SCAN_CHUNK - 1) / SCAN_CHUNK) : 0;
}

void pnet_cuda_geo_tree_take(struct geo_tree *t, int64_t rows, struct geo_purse *purse)
{
    t->depth = 0;
    for (int64_t below = rows; t->depth == 0 || below > 32; t->depth++) {
        below = (below + 31) / 32;
        t->nodes[t->depth] = below;
        t->box[t->depth] = geo_take(purse, (size_t)below, sizeof(struct geo_box));
    }
}

void pnet_cuda_geo_blocks_take(struct block_table *b, int64_t rows, struct geo_purse *purse)
{
    b->bits = 1;
    while ((int64_t)1 << b->bits < rows + rows / 4 + 1) b->bits++;
    b->missing = geo_take(purse, 1, sizeof(int32_t));
    b->mask = geo_take(purse, (size_t)rows, sizeof(uint64_t));
    b->table = geo_take(purse, (size_t)1 << b->bits, sizeof(int32_t));
}

size_t pnet_cuda_geo_sample_take(int64_t n, bool ordered, void *work, struct geo_sample_work *p)
{
    struct geo_purse purse = {work, 0};
    size_t rows = (size_t)n;
    *p = (struct geo_sample_work){0};
    if (!ordered) {
        p->order = geo_take(&purse, rows, sizeof(int32_t));
        p->room = geo_take(&purse, ROOM_BYTES * rows, 1);
        p->sorting = geo_take(&purse, pnet_cuda_order_points_work(n), 1);
        p->voxel = p->room; /* the points' memory is free again then */
        p->nearest = work ? (uint32_t *)p->voxel + rows : NULL;
    } else {
        p->nearest = geo_take(&purse, rows, sizeof(uint32_t));
    }
    p->sums = geo_take(&purse, pnet_cuda_geo_scan_sums(n), sizeof(int64_t));
    return purse.used;
}

size_t pnet_cuda_sample_work(int64_t n, bool ordered)
{
    struct geo_sample_work p;
    return pnet_cuda_geo_sample_take(n, ordered, NULL, &p);
}

size_t pnet_cuda_geo_triplets_take(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, void *work, struct geo_triplets_work *p,
    struct geo_tree *tree)
{
    struct geo_purse purse = {work, 0};
    size_t others = out == in ? 0 : (size_t)out->rows;
    p->in_order = geo_take(&purse, (size_t)in->rows, sizeof(int32_t));
    p->out_order = geo_take(&purse, others, sizeof(int32_t));
    struct geo_purse shared = purse; /* ordering is over before the rest is begun */
    p->sorting = geo_take(&shared, pnet_cuda_geo_curve_work(larger(in->rows, out->rows)), 1);
    pnet_cuda_geo_tree_take(tree, in->rows, &purse);
    p->sums = geo_take(&purse, pnet_cuda_geo_scan_sums(out->rows), sizeof(int64_t));
    p->child_box = geo_take(&purse, nb->knn ? 0 : 6 * others, sizeof(uint32_t));
    p->child_start = geo_take(&purse, nb->knn && others ? others + 1 : 0, sizeof(int64_t));
    p->child = geo_take(&purse, nb->knn && others ? (size_t)in->rows : 0, sizeof(int32_t));
    if (nb->degrade & PNET_NEIGHBOUR) pnet_cuda_geo_blocks_take(&p->blocks, in->rows, &purse);
    return shared.used > purse.used ? shared.used : purse.used;
}

size_t pnet_cuda_triplets_work(
    const struct pnet_level *out, const struct pnet_level *in, const struct pnet_neighbourhood *nb)
{
    struct geo_triplets_work p;
    struct geo_tree tree;
    return nb->pointwise ? 0 : pnet_cuda_geo_triplets_take(out, in, nb, NULL, &p, &tree);
}

bool pnet_cuda_triplets_mutual(const struct pnet_neighbourhood *nb)
{
    if (nb->pointwise) return true;
    bool window = nb->degrade & PNET_NEIGHBOUR, snap = nb->degrade & PNET_CENTRE;
    return !nb->knn && (window ? nb->kernel % 2 == 1 : !snap);
}

size_t pnet_cuda_transpose_work(const struct pnet_triplets *t)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, pnet_cuda_geo_scan_sums(t->others), sizeof(int64_t));
    return purse.used;
}

size_t pnet_cuda_geo_nearest_take(const struct pnet_level *out, const struct pnet_level *in,
    void *work, struct geo_nearest_work *p)
{
    struct geo_purse purse = {work, 0};
    p->in_order = geo_take(&purse, (size_t)in->rows, sizeof(int32_t));
    p->out_order = geo_take(&purse, (size_t)out->rows, sizeof(int32_t));
    struct geo_purse shared = purse; /* ordering is over before the tree is built */
    p->sorting = geo_take(&shared, pnet_cuda_geo_curve_work(larger(in->rows, out->rows)), 1);
    pnet_cuda_geo_tree_take(&p->tree, in->rows, &purse);
    return shared.used > purse.used ? shared.used : purse.used;
}

size_t pnet_cuda_nearest_work(const struct pnet_level *out, const struct pnet_level *in, int32_t k)
{
    struct geo_nearest_work p;
    (void)k;
    return pnet_cuda_geo_nearest_take(out, in, NULL, &p);
}

struct pnet_neighbourhood pnet_cuda_geo_matches_ball(float radius)
{
    return (struct pnet_neighbourhood){.kernel = 1, .radius = radius, .shape = PNET_BALL};
}

size_t pnet_cuda_geo_matches_take(
    const struct pnet_level *a, int64_t number, void *work, struct geo_matches_work *p)
{
    struct geo_purse purse = {work, 0};
    p->xyz = geo_take(&purse, 3 * (size_t)a->rows, sizeof(float));
    p->cell = geo_take(&purse, (size_t)number, sizeof(uint16_t));
    p->triplets = geo_take(&purse, 0, 1);
    return purse.used;
}

size_t pnet_cuda_matches_work(
    const struct pnet_level *a, const struct pnet_level *b, float radius, int64_t number)
{
    struct pnet_neighbourhood nb = pnet_cuda_geo_matches_ball(radius);
    struct geo_matches_work p;
    return pnet_cuda_geo_matches_take(a, number, NULL, &p) + pnet_cuda_triplets_work(a, b, &nb);
}

size_t pnet_cuda_geo_corners_take(const struct pnet_level *queries, const struct pnet_level *source,
    int corners, void *work, struct geo_corners_work *p)
{
    struct geo_purse purse = {work, 0};
    p->key = geo_take(&purse, (size_t)source->rows, sizeof(uint64_t));
    p->found = geo_take(&purse, (size_t)queries->rows * (size_t)corners, sizeof(int32_t));
    p->sums = geo_take(&purse, pnet_cuda_geo_scan_sums(queries->rows), sizeof(int64_t));
    return purse.used;
}

size_t pnet_cuda_corners_work(
    const struct pnet_level *queries, const struct pnet_level *source, enum pnet_corner_kind kind)
{
    struct geo_corners_work p;
    int corners = kind == PNET_CORNERS_TRILINEAR ? PNET_CORNERS : 1;
    return pnet_cuda_geo_corners_take(queries, source, corners, NULL, &p);
}

int64_t pnet_cuda_geo_tiles_of(int64_t rows)
{
    return (rows + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
}

size_t pnet_cuda_tiles_work(int64_t rows)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, (size_t)pnet_cuda_geo_tiles_of(rows), sizeof(int64_t));
    geo_take(&purse, pnet_cuda_geo_scan_sums(pnet_cuda_geo_tiles_of(rows)), sizeof(int64_t));
    return purse.used;
}

size_t pnet_cuda_sites_sort_work(int64_t rows)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, CURVE_BYTES * (size_t)rows, 1);
    geo_take(&purse, pnet_cuda_geo_sorter_bytes(rows), 1);
    return purse.used;
}

size_t pnet_cuda_sites_curve_work(int64_t rows)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, (size_t)rows, sizeof(int32_t));
    geo_take(&purse, CURVE_BYTES * (size_t)rows, 1);
    geo_take(&purse, pnet_cuda_geo_sorter_bytes(rows), 1);
    return purse.used;
}

size_t pnet_cuda_sites_reach_work(int64_t rows)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, pnet_cuda_geo_scan_sums(rows), sizeof(int64_t));
    return purse.used;
}

size_t pnet_cuda_sites_merge_work(int64_t led)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, CURVE_BYTES * (size_t)led, 1);
    geo_take(&purse, pnet_cuda_geo_scan_sums(led), sizeof(int64_t));
    geo_take(&purse, pnet_cuda_geo_sorter_bytes(led), 1);
    return purse.used;
}

size_t pnet_cuda_sites_spread_work(int64_t rows, const struct pnet_taps *t, bool up)
{
    int64_t led = rows * pnet_taps_leads(t, up);
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, (size_t)led, sizeof(uint64_t));
    geo_take(&purse, (size_t)led, sizeof(uint64_t));
    geo_take(&purse, (size_t)led + 1, sizeof(int64_t));
    geo_take(&purse, pnet_cuda_geo_scan_sums(led), sizeof(int64_t));
    geo_take(&purse, pnet_cuda_sort_work(led), 1);
    return purse.used;
}

size_t pnet_cuda_taps_work(int64_t rows)
{
    return pnet_cuda_sites_reach_work(rows);
}

size_t pnet_cuda_listed_work(int64_t count, int64_t rows)
{
    struct geo_purse purse = {NULL, 0};
    geo_take(&purse, pnet_cuda_geo_scan_sums(rows), sizeof(int64_t));
    geo_take(&purse, (size_t)count, sizeof(int32_t));
    geo_take(&purse, CURVE_BYTES * (size_t)count, 1);
    geo_take(&purse, pnet_cuda_geo_sorter_bytes(count), 1);
    return purse.used;
}

size_t pnet_cuda_place_starts_work(int64_t rows)
{
    return pnet_cuda_geo_scan_sums(rows) * sizeof(int64_t);
}
