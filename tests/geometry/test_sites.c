/* The order in which triplets of voxels lie, against its definition. */
#include "kernels/taps.h"
#include "tests/check.h"
#include "tests/kernels/conv_case.h"

/* Voxels of samples, sorted. */
struct voxels {
    struct pnet_sites s;
    int64_t *splits;
    uint64_t *key;
    int32_t *row;
};

/* `of`: one voxel of so many is there; `named`: rows are in an order of their own. */
static struct voxels make(int32_t samples, const int32_t extent[3], uint64_t of, bool named)
{
    int64_t cells = (int64_t)extent[0] * extent[1] * extent[2], rows = 0;
    uint64_t state = 5;
    struct voxels v = {.splits = conv_alloc((size_t)(samples + 1) * sizeof *v.splits),
        .key = conv_alloc((size_t)(samples * cells) * sizeof *v.key)};
    v.splits[0] = 0;
    for (int32_t b = 0; b < samples; b++) {
        for (int64_t i = 0; i < cells && b != 1; i++) /* sample 1 is empty */
            if (conv_random(&state) % of == 0)
                v.key[rows++] = pnet_site_key(
                    i / extent[2] / extent[1], i / extent[2] % extent[1], i % extent[2]);
        v.splits[b + 1] = rows;
    }
    v.row = named ? conv_mixed_rows(rows) : NULL;
    v.s = (struct pnet_sites){
        .rows = rows, .samples = samples, .splits = v.splits, .key = v.key, .row = v.row};
    memcpy(v.s.extent, extent, sizeof v.s.extent);
    return v;
}

/* Compares the blocks of two voxels along the curve: bit by bit from the highest on, axis 0 first; then the voxels. */
static int compare(uint64_t a, uint64_t b)
{
    for (int bit = PNET_SITE_BITS - 1; bit >= PNET_SITE_BLOCK_BITS; bit--)
        for (int axis = 0; axis < 3; axis++) {
            int x = pnet_site_index(a, axis) >> bit & 1, y = pnet_site_index(b, axis) >> bit & 1;
            if (x != y) return x - y;
        }
    return (a > b) - (a < b);
}

static void check(int32_t samples, const int32_t extent[3], uint64_t of, bool named)
{
    struct voxels v = make(samples, extent, of, named);
    size_t bytes = (size_t)v.s.rows * sizeof(int32_t);
    int32_t *along = conv_alloc(bytes), *row = conv_alloc(bytes), *place = conv_alloc(bytes),
            *site = conv_alloc(bytes);
    void *work = conv_alloc(pnet_cpu_sites_curve_work(v.s.rows));
    pnet_cpu_sites_curve(&v.s, along, row, place, work);
    int64_t wrong = 0;
    memset(site, 0xFF, bytes);
    for (int64_t i = 0; i < v.s.rows; i++) {
        bool inside = along[i] >= 0 && along[i] < v.s.rows;
        wrong += !inside || site[along[i]] != -1;
        if (inside) site[along[i]] = (int32_t)i;
    }
    for (int64_t p = 0; p < v.s.rows && !wrong; p++) {
        wrong += row[p] != (v.row ? v.row[site[p]] : site[p]) || place[row[p]] != p;
        bool first = false;
        for (int32_t b = 0; b < samples; b++) {
            first = first || p == v.splits[b];
            wrong += p >= v.splits[b] && p < v.splits[b + 1] &&
                     (site[p] < v.splits[b] || site[p] >= v.splits[b + 1]);
        }
        wrong += !first && compare(v.key[site[p - 1]], v.key[site[p]]) >= 0;
    }
    CHECKF(!wrong, "%d samples, extent %d %d %d, named %d: %lld of %lld", samples, extent[0],
        extent[1], extent[2], named, (long long)wrong, (long long)v.s.rows);
    free(along), free(row), free(place), free(site), free(work);
    free(v.splits), free(v.key), free(v.row);
}

int main(void)
{
    static const int32_t extents[][3] = {
        {1, 1, 1}, {40, 30, 20}, {3, 90, 2}, {300, 7, 5}, {64, 64, 64}, {1, 1, 5000}};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        for (int named = 0; named < 2; named++) {
            check(1, extents[i], 2, named);
            check(3, extents[i], 5, named);
            check(2, extents[i], 1 << 30, named);
        }
    return check_end();
}
