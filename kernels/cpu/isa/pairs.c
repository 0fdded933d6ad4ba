/* Loops over the pairs of one point and many. Compiled with PNET_ISA naming the instruction set, and without contraction. */
#include "kernels/cpu/isa/pairs.h"
#include "kernels/cpu/isa/vec.h"

#include <stdbool.h>

/* Points whose exponents are formed before they are summed: 4 KiB. */
enum { LANES = PNET_PAIR_LANES, CHUNK = 1024 };

extern const struct pnet_pairs_isa ISA_NAME(pnet_pairs_isa);

ALWAYS_INLINE int32_t near_keys(bool sums, const float x[3], const struct pnet_pair_points *y,
    int32_t first, int32_t count, float limit, uint64_t *key)
{
    vec x0 = vec_set(x[0]), x1 = vec_set(x[1]), x2 = vec_set(x[2]), most = vec_set(limit);
    int32_t found = 0;
    for (int32_t j = first; j < first + count; j += VECTOR) {
        vec a = x0 - vec_load(y->at[0] + j), b = x1 - vec_load(y->at[1] + j),
            c = x2 - vec_load(y->at[2] + j), value = vec_load(y->value + j);
        vec v = vec_sqrt((a * a + b * b) + c * c);
        if (sums) v += value;
        unsigned mask = vec_up_to(v, most);
        if (!sums) mask &= vec_up_to(v, value);
        if (!mask) continue;
        float number[VECTOR];
        vec_store(number, v);
        for (; mask; mask &= mask - 1) {
            int lane = __builtin_ctz(mask);
            key[found++] = pnet_pair_key(number[lane], j + lane);
        }
    }
    return found;
}

static int32_t keys_of_sums(const float x[3], const struct pnet_pair_points *y, int32_t first,
    int32_t count, float limit, uint64_t *key)
{
    return near_keys(true, x, y, first, count, limit, key);
}

static int32_t keys_up_to(const float x[3], const struct pnet_pair_points *y, int32_t first,
    int32_t count, float limit, uint64_t *key)
{
    return near_keys(false, x, y, first, count, limit, key);
}

/* value_j - c |x - y_j|^2, with the differences. */
ALWAYS_INLINE vec exponent_of(
    const vec x[3], const struct pnet_pair_points *y, int64_t j, vec minus_c, vec d[3])
{
    d[0] = x[0] - vec_load(y->at[0] + j);
    d[1] = x[1] - vec_load(y->at[1] + j);
    d[2] = x[2] - vec_load(y->at[2] + j);
    vec d2 = vec_madd(d[2], d[2], vec_madd(d[1], d[1], d[0] * d[0]));
    return vec_madd(minus_c, d2, vec_load(y->value + j));
}

static double sum_of(vec v)
{
    float lane[VECTOR];
    double sum = 0;
    vec_store(lane, v);
    for (int l = 0; l < VECTOR; l++) sum += (double)lane[l];
    return sum;
}

static float largest_of(vec v)
{
    float lane[VECTOR], top;
    vec_store(lane, v);
    top = lane[0];
    for (int l = 1; l < VECTOR; l++) top = lane[l] > top ? lane[l] : top;
    return top;
}

static double log_sum(const float x[3], const struct pnet_pair_points *y, int64_t count, float c)
{
    vec at[3] = {vec_set(x[0]), vec_set(x[1]), vec_set(x[2])}, minus_c = vec_set(-c), d[3];
    float exponent[CHUNK], top = -3e38f;
    double sum = 0;
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t n = count - first < CHUNK ? count - first : CHUNK;
        vec most = vec_set(top), part = vec_set(0);
        for (int64_t j = 0; j < n; j += VECTOR) {
            vec e = exponent_of(at, y, first + j, minus_c, d);
            vec_store(exponent + j, e);
            most = vec_max(most, e);
        }
        float now = largest_of(most);
        if (now > top) sum = sum > 0 ? sum * exp2((double)top - (double)now) : 0;
        top = now;
        for (int64_t j = 0; j < n; j += VECTOR)
            part += vec_power2(vec_load(exponent + j) - vec_set(top));
        sum += sum_of(part);
    }
    return (double)top + log2(sum);
}

static void pull(const float x[3], const struct pnet_pair_points *y, int64_t count, float c,
    float top, double sum[4])
{
    vec at[3] = {vec_set(x[0]), vec_set(x[1]), vec_set(x[2])}, minus_c = vec_set(-c), d[3];
    for (int k = 0; k < 4; k++) sum[k] = 0;
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t end = count - first < CHUNK ? count : first + CHUNK;
        vec part[4] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
        for (int64_t j = first; j < end; j += VECTOR) {
            vec e = exponent_of(at, y, j, minus_c, d);
            vec w = vec_power2(e - vec_set(top));
            part[3] += w;
            for (int k = 0; k < 3; k++) part[k] = vec_madd(w, d[k], part[k]);
        }
        for (int k = 0; k < 4; k++) sum[k] += sum_of(part[k]);
    }
}

const struct pnet_pairs_isa ISA_NAME(pnet_pairs_isa) = {keys_of_sums, keys_up_to, log_sum, pull};
