/* Drawing rows, and matching them. */
#include "runtime/register/register.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/feature.h"
#include "runtime/register/register_room.h"

size_t pnet_register_draw_work(int64_t rows)
{
    return (size_t)rows * sizeof(uint64_t);
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_rows(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int64_t pnet_register_draw(
    int64_t rows, int64_t count, const struct pnet_rand *rand, int32_t *row, void *work)
{
    uint64_t *key = work; /* a random number above a row: the rows with the lowest are drawn */
    if (count >= rows) {
        for (int64_t i = 0; i < rows; i++) row[i] = (int32_t)i;
        return rows;
    }
    for (int64_t i = 0; i < rows; i++)
        key[i] = (uint64_t)pnet_rand_bits(rand, (uint64_t)i) << 32 | (uint64_t)i;
    qsort(key, (size_t)rows, sizeof *key, compare_keys);
    for (int64_t i = 0; i < count; i++) row[i] = (int32_t)(key[i] & 0xffffffffu);
    qsort(row, (size_t)count, sizeof *row, compare_rows);
    return count;
}

struct match_room {
    float *source, *target; /* features of the drawn rows, contiguous */
    int32_t *forward, *back;
    void *search;
    size_t bytes;
};

static struct match_room match_room(void *work, int64_t sources, int64_t targets, int32_t width)
{
    struct room r = {.base = work};
    struct match_room m;
    size_t row = (size_t)width * sizeof(float);
    m.source = room_take(&r, (size_t)sources * row);
    m.target = room_take(&r, (size_t)targets * row);
    m.forward = room_take(&r, (size_t)sources * sizeof(int32_t));
    m.back = room_take(&r, (size_t)targets * sizeof(int32_t));
    size_t there = pnet_cpu_feature_nearest_work(targets, width),
           back = pnet_cpu_feature_nearest_work(sources, width);
    m.search = room_take(&r, there > back ? there : back);
    m.bytes = r.used;
    return m;
}

size_t pnet_register_match_work(int64_t source_count, int64_t target_count, int32_t width)
{
    return match_room(NULL, source_count, target_count, width).bytes;
}

static void gather(const struct pnet_described *d, float *to)
{
    for (int64_t i = 0; i < d->count; i++)
        memcpy(to + i * d->width, d->features + (int64_t)d->row[i] * d->width,
            (size_t)d->width * sizeof *to);
}

/* Returns how many of the rows 0 .. targets-1 occur in forward[sources]. `named` has room for `targets` rows. */
static int64_t count_distinct(
    int64_t sources, const int32_t *forward, int64_t targets, int32_t *named)
{
    int64_t n = 0;
    for (int64_t j = 0; j < targets; j++) named[j] = 0;
    for (int64_t i = 0; i < sources; i++) {
        if (forward[i] < 0) continue;
        n += !named[forward[i]];
        named[forward[i]] = 1;
    }
    return n;
}

static double apart(const float *xyz, int32_t a, int32_t b)
{
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        double d = (double)xyz[3 * (int64_t)a + k] - (double)xyz[3 * (int64_t)b + k];
        sum += d * d;
    }
    return sum;
}

/* Returns how many drawn rows have the same forward[] as the drawn row nearest to them in space. */
static int64_t count_shared(const struct pnet_described *d, const int32_t *forward)
{
    int64_t n = 0;
#pragma omp parallel for schedule(static) reduction(+ : n)
    for (int64_t i = 0; i < d->count; i++) {
        double least = INFINITY;
        int64_t nearest = -1;
        for (int64_t k = 0; k < d->count; k++) {
            double there = k == i ? INFINITY : apart(d->xyz, d->row[i], d->row[k]);
            if (there >= least) continue;
            least = there;
            nearest = k;
        }
        n += nearest >= 0 && forward[i] >= 0 && forward[i] == forward[nearest];
    }
    return n;
}

int64_t pnet_register_match(const struct pnet_described *source,
    const struct pnet_described *target, bool mutual, struct pnet_match *pairs,
    struct pnet_register_choice *chosen, void *work)
{
    assert(work);
    struct match_room m = match_room(work, source->count, target->count, source->width);
    int64_t n = 0;
    gather(source, m.source);
    gather(target, m.target);
    pnet_cpu_feature_nearest(
        source->count, m.source, target->count, m.target, source->width, m.forward, m.search);
    if (chosen) {
        chosen->distinct = count_distinct(source->count, m.forward, target->count, m.back);
        chosen->shared = count_shared(source, m.forward);
    }
    if (mutual)
        pnet_cpu_feature_nearest(
            target->count, m.target, source->count, m.source, source->width, m.back, m.search);
    for (int64_t i = 0; i < source->count; i++) {
        int32_t j = m.forward[i];
        if (j < 0 || (mutual && m.back[j] != i)) continue;
        pairs[n++] = (struct pnet_match){source->row[i], target->row[j]};
    }
    return n;
}
