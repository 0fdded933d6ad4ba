#include "runtime/data/augment_draw.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 24 };

/* Noise on a lattice: [nx, ny, nz, 3]; node (1, 1, 1) lies at the lowest corner of the points. */
struct lattice {
    int64_t size[3];
    float low[3];
    double step_m;
    float *noise;
};

static void box(const struct pnet_sample *s, float low[3], float high[3])
{
    for (int a = 0; a < 3; a++) {
        low[a] = high[a] = s->xyz[a];
        for (int64_t i = 1; i < s->rows; i++) {
            float v = s->xyz[3 * i + a];
            low[a] = v < low[a] ? v : low[a];
            high[a] = v > high[a] ? v : high[a];
        }
    }
}

/* Replaces each node by the mean of it and its two neighbours along an axis; outside of the lattice the noise is 0. */
static void smooth(const struct lattice *l, int axis, const float *from, float *to)
{
    int64_t stride[3] = {l->size[1] * l->size[2], l->size[2], 1}, at = 0;
    for (int64_t x = 0; x < l->size[0]; x++)
        for (int64_t y = 0; y < l->size[1]; y++)
            for (int64_t z = 0; z < l->size[2]; z++, at++) {
                int64_t place = axis == 0 ? x : axis == 1 ? y : z;
                const float *here = from + 3 * at;
                const float *before = place > 0 ? here - 3 * stride[axis] : NULL;
                const float *after = place + 1 < l->size[axis] ? here + 3 * stride[axis] : NULL;
                for (int c = 0; c < 3; c++)
                    to[3 * at + c] =
                        (here[c] + (before ? before[c] : 0) + (after ? after[c] : 0)) / 3;
            }
}

/* Returns component c at a point, interpolated linearly. */
static double interpolate(const struct lattice *l, const float p[3], int c)
{
    int64_t cell[3];
    double part[3], sum = 0;
    for (int a = 0; a < 3; a++) {
        double t = ((double)p[a] - (double)l->low[a]) / l->step_m + 1;
        cell[a] = (int64_t)t;
        if (cell[a] > l->size[a] - 2) cell[a] = l->size[a] - 2;
        part[a] = t - (double)cell[a];
    }
    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;
        int64_t at = 0;
        for (int a = 0; a < 3; a++) {
            int up = corner >> a & 1;
            weight *= up ? part[a] : 1 - part[a];
            at = at * l->size[a] + cell[a] + up;
        }
        sum += weight * (double)l->noise[3 * at + c];
    }
    return sum;
}

static enum pnet_status measure(const struct pnet_elastic *elastic, const struct pnet_sample *s,
    struct lattice *l, int64_t *nodes, struct pnet_error *e)
{
    float high[3];
    box(s, l->low, high);
    l->step_m = elastic->granularity_m;
    double total = 1;
    for (int a = 0; a < 3; a++) {
        double n = floor(((double)high[a] - (double)l->low[a]) / l->step_m) + 4;
        total *= n;
        if (!(total <= MOST_NODES))
            return pnet_error_set(e, PNET_USAGE,
                "elastic: a granularity of %g m is too fine for a cloud of %g x %g x %g m: more "
                "than %d nodes",
                l->step_m, (double)high[0] - (double)l->low[0], (double)high[1] - (double)l->low[1],
                (double)high[2] - (double)l->low[2], MOST_NODES);
        l->size[a] = (int64_t)n;
    }
    *nodes = l->size[0] * l->size[1] * l->size[2];
    return PNET_OK;
}

enum pnet_status pnet_elastic_apply(const struct pnet_elastic *elastic, const struct pnet_rand *r,
    int which, struct pnet_sample *s, struct pnet_error *e)
{
    struct lattice l = {.step_m = 0};
    int64_t nodes = 0;
    enum pnet_status status = measure(elastic, s, &l, &nodes, e);
    if (status) return status;
    float *noise = calloc((size_t)nodes + 1, 3 * sizeof *noise);
    float *other = calloc((size_t)nodes + 1, 3 * sizeof *other);
    if (noise && other) {
        for (int64_t i = 0; i < 3 * nodes; i++)
            noise[i] = (float)draw_normal(r, DRAW_ELASTIC + which, (uint64_t)i);
        for (int pass = 0; pass < 6; pass++) {
            smooth(&l, pass % 3, noise, other);
            float *swap = noise;
            noise = other;
            other = swap;
        }
        l.noise = noise;
        for (int64_t i = 0; i < s->rows; i++) {
            float *p = s->xyz + 3 * i, moved[3];
            for (int c = 0; c < 3; c++)
                moved[c] = (float)((double)p[c] + elastic->magnitude_m * interpolate(&l, p, c));
            memcpy(p, moved, sizeof moved);
        }
    } else {
        status = pnet_error_memory(e);
    }
    free(noise);
    free(other);
    return status;
}
