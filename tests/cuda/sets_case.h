/* Pairs of point sets on both devices, for the tests of losses between them. On the device there is room for more rows than there
   are, and the true numbers stand there alone. */
#ifndef PNET_TESTS_CUDA_SETS_CASE_H
#define PNET_TESTS_CUDA_SETS_CASE_H

#include "kernels/sets.h"
#include "tests/cuda/levels_case.h"

/* Where points lie. */
enum places {
    ANYWHERE,
    ON_A_GRID, /* many coincide, and many distances are equal */
    ON_A_LINE,
    FAR_APART,    /* the second set from the first one */
    AT_ONE_PLACE, /* the second set */
    ALL_AT_ONE_PLACE,
    COLLAPSED,      /* the first set, into the middle of a sphere that has the second one */
    COLLAPSED_FAR,  /* the same, far from the origin: differences are few steps of float32 */
    COLLAPSED_TINY, /* the same, squares of differences being below float32's normal numbers */
    ON_A_SPHERE, /* the second set, around the first: distances differ by roundings, and how they are rounded decides */
    TINY,        /* squares of differences are at the end of float32's range, or below */
    HUGE_,       /* or above */
    BROKEN,      /* some coordinates are NaN or infinite */
    PLACES
};
static const char *const place_names[PLACES] = {"anywhere", "on a grid", "on a line", "far apart",
    "at one place", "all at one place", "collapsed", "collapsed, far from the origin",
    "collapsed, tiny", "on a sphere", "tiny", "huge", "with coordinates that are not finite"};

/* Numbers of points of samples. */
enum sizes {
    ONE_LARGE,
    MANY_SMALL, /* of 0 to 7 points, and then a larger one */
    EVEN,
    SINGLE, /* a point each */
    FIRST_EMPTY,
    SECOND_EMPTY,
    NO_SAMPLES,
    SIZES_
};
static const char *const size_names[SIZES_] = {"one large sample", "many small samples",
    "samples of some hundred points", "single points", "no points in the first set",
    "no points in the second set", "no samples"};

struct sets {
    int32_t samples;
    int64_t rows[2];
    int64_t *splits[2];
    struct pnet_point_set cpu[2], gpu[2];
};

static inline int64_t points_of(enum sizes sizes, int side, int32_t sample, bool small)
{
    switch (sizes) {
    case ONE_LARGE: return small ? 2300 + 300 * side : 20000 - 3000 * side;
    case MANY_SMALL: return sample == 299 ? 1100 + 100 * side : random_below(8);
    case EVEN: return small ? 100 + random_below(30) : 700 + random_below(200);
    case FIRST_EMPTY: return side == 0 ? 0 : 40;
    case SECOND_EMPTY: return side == 1 ? 0 : 40;
    default: return 1;
    }
}

static inline int32_t samples_of(enum sizes sizes)
{
    switch (sizes) {
    case ONE_LARGE: return 1;
    case MANY_SMALL: return 300;
    case EVEN: return 9;
    case NO_SAMPLES: return 0;
    default: return 3;
    }
}

static inline void place_points(enum places places, int side, int64_t n, float *xyz)
{
    static const float broken[] = {NAN, INFINITY, -INFINITY};
    float *x = random_floats(3 * n, places == ON_A_GRID);
    for (int64_t i = 0; i < n; i++) {
        const float *at = x + 3 * i;
        float norm = sqrtf((at[0] * at[0] + at[1] * at[1]) + at[2] * at[2]) + 1e-9f;
        for (int c = 0; c < 3; c++) {
            float v = at[c];
            if (places == ON_A_LINE) v = c == 1 ? 0.25f : at[0];
            if (places == FAR_APART && side == 1) v += 1e4f;
            if (places == AT_ONE_PLACE && side == 1) v = 0.125f;
            if (places == ALL_AT_ONE_PLACE) v = 0.3f;
            if (places >= COLLAPSED && places <= COLLAPSED_TINY)
                v = side == 1 ? v / norm : v * 0.01f;
            if (places == COLLAPSED_FAR) v += 3e3f;
            if (places == COLLAPSED_TINY) v *= 3e-21f;
            if (places == ON_A_SPHERE) v = side == 1 ? v / norm : v * 1e-8f;
            if (places == TINY) v *= 3e-22f;
            if (places == HUGE_) v *= 1e19f;
            if (places == BROKEN && random_below(60) == 0) v = broken[random_below(3)];
            xyz[3 * i + c] = v;
        }
    }
}

/* The sets of samples with the splits of `s`, on the host at `xyz`. Copies them to the device. */
static inline void put_sets(struct sets *s, float *const xyz[2])
{
    int64_t splits_count = s->samples + 1;
    for (int side = 0; side < 2; side++) {
        int64_t *splits = s->splits[side], n = s->rows[side] = splits[s->samples];
        s->cpu[side] = (struct pnet_point_set){pnet_count(n), s->samples, splits, xyz[side]};
        s->gpu[side] = (struct pnet_point_set){device_count(n, 1), s->samples,
            device_offsets(splits, splits_count, splits_count),
            device_floats(xyz[side], 3 * n, 3 * (n + SLACK))};
    }
}

/* The sets of splits[side], which both devices get. */
static inline struct sets sets_of_splits(
    enum places places, int32_t samples, int64_t *const splits[2])
{
    struct sets s = {.samples = samples};
    float *xyz[2];
    for (int side = 0; side < 2; side++) {
        int64_t n = splits[side][samples];
        xyz[side] = host_bytes((size_t)(3 * n) * sizeof(float));
        place_points(places, side, n, xyz[side]);
        s.splits[side] = splits[side];
    }
    put_sets(&s, xyz);
    return s;
}

static inline struct sets make_sets(enum places places, enum sizes sizes, bool small)
{
    int32_t samples = samples_of(sizes);
    int64_t *splits[2];
    for (int side = 0; side < 2; side++) {
        splits[side] = host_bytes((size_t)(samples + 1) * sizeof *splits[side]);
        splits[side][0] = 0;
        for (int32_t k = 0; k < samples; k++)
            splits[side][k + 1] = splits[side][k] + points_of(sizes, side, k, small);
    }
    return sets_of_splits(places, samples, splits);
}

/* Samples of as many points each. */
static inline struct sets even_sets(enum places places, int32_t samples, int64_t points)
{
    int64_t *splits[2];
    for (int side = 0; side < 2; side++) {
        splits[side] = host_bytes((size_t)(samples + 1) * sizeof *splits[side]);
        for (int32_t k = 0; k <= samples; k++) splits[side][k] = k * points;
    }
    return sets_of_splits(places, samples, splits);
}

/* Both sets lose the last points of each sample, on either device. */
static inline void shrink_sets(struct sets *s, int64_t by)
{
    for (int side = 0; side < 2; side++) {
        int64_t at = 0, begin = 0, *splits = s->splits[side];
        for (int32_t k = 0; k < s->samples; k++) {
            int64_t n = splits[k + 1] - begin;
            begin = splits[k + 1];
            at += n > by ? n - by : 0;
            splits[k + 1] = at;
        }
        s->rows[side] = at;
        s->cpu[side].rows = pnet_count(at);
        pnet_cuda_copy_in((int64_t *)(uintptr_t)s->gpu[side].splits, splits,
            (size_t)(s->samples + 1) * sizeof *splits);
        pnet_cuda_copy_in((int64_t *)(uintptr_t)s->gpu[side].rows.live, &at, sizeof at);
        pnet_cuda_sync(); /* release() tells of errors */
    }
}

/* Rows behind the live ones are as they were. */
static inline void check_untouched(const char *what, const struct result *r, size_t most)
{
    unsigned char *behind = host_bytes(most - r->live);
    bool whole = true;
    pnet_cuda_copy_out(behind, (char *)r->device + r->live, most - r->live);
    pnet_cuda_sync(); /* release() tells of errors */
    for (size_t i = 0; i < most - r->live; i++) whole &= behind[i] == 0xFF;
    CHECKF(whole, "%s: written behind the rows that are there", what);
}

#endif
