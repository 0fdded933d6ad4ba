/* Orders by hashes and curves. */
#include "kernels/cpu/geometry/geo_grid.h"
#include "kernels/geometry_stage.h"
#include "kernels/order.h"

size_t pnet_cpu_bucket_order_work(const struct pnet_level *level)
{
    return (size_t)level->rows * sizeof(uint64_t) + pnet_cpu_order_work(level->rows);
}

/* The voxels of a sample. */
struct extent {
    int32_t low[3], high[3];
};

static struct extent extent_of(
    const struct pnet_level *level, struct pnet_grid grid, int64_t begin, int64_t end)
{
    int32_t x0 = INT32_MAX, y0 = INT32_MAX, z0 = INT32_MAX, x1 = INT32_MIN, y1 = INT32_MIN,
            z1 = INT32_MIN;
#pragma omp parallel for schedule(static) reduction(min : x0, y0, z0) reduction(max : x1, y1, z1)
    for (int64_t i = begin; i < end; i++) {
        bool inside = true;
        struct pnet_voxel v = pnet_voxel_of(level->xyz + 3 * i, grid, &inside);
        x0 = v.at[0] < x0 ? v.at[0] : x0;
        y0 = v.at[1] < y0 ? v.at[1] : y0;
        z0 = v.at[2] < z0 ? v.at[2] : z0;
        x1 = v.at[0] > x1 ? v.at[0] : x1;
        y1 = v.at[1] > y1 ? v.at[1] : y1;
        z1 = v.at[2] > z1 ? v.at[2] : z1;
    }
    return (struct extent){{x0, y0, z0}, {x1, y1, z1}};
}

static int bits_of(const struct extent *e)
{
    int most = 0;
    for (int a = 0; a < 3; a++) {
        int bits = pnet_order_bits((uint32_t)(e->high[a] - e->low[a]));
        most = bits > most ? bits : most;
    }
    return most;
}

void pnet_cpu_bucket_order(const struct pnet_level *level, struct pnet_grid grid,
    enum pnet_order order, int32_t bucket, int32_t *row, void *work)
{
    uint64_t *key = work;
    for (int32_t s = 0; s < level->samples; s++) {
        int64_t begin = level->row_splits[s], end = level->row_splits[s + 1],
                buckets = pnet_order_hashes(order) ? pnet_bucket_count(end - begin, bucket) : 1;
        if (begin == end) continue;
        struct extent e = extent_of(level, grid, begin, end);
        int bits = bits_of(&e);
#pragma omp parallel for schedule(static)
        for (int64_t i = begin; i < end; i++) {
            bool inside = true;
            struct pnet_voxel v = pnet_voxel_of(level->xyz + 3 * i, grid, &inside);
            uint32_t u[3];
            for (int a = 0; a < 3; a++) u[a] = (uint32_t)(v.at[a] - e.low[a]);
            key[i] = pnet_order_key(order, u, bits, buckets);
        }
    }
    pnet_cpu_order(level->rows, level->samples, level->row_splits, key, row, key + level->rows);
}
