/* Depthwise convolution: one multiplication a triplet and channel, so nothing is gathered; a row's
   sums stay in registers over all its triplets. Compiled with PNET_ISA naming the instruction set.
 */
#include "kernels/cpu/isa/depthwise.h"

#include <stddef.h>

ALWAYS_INLINE void depthwise_strip(const int vectors, int first, int channels, int64_t count,
    const uint16_t *cell, const int32_t *other, const float *in, const float *weight, float *out)
{
    vec sum[8];
    UNROLL
    for (int v = 0; v < vectors; v++) sum[v] = vec_set(0);
    for (int64_t t = 0; t < count; t++) {
        const float *x = in + (size_t)other[t] * (size_t)channels + first;
        const float *w = weight + (size_t)cell[t] * (size_t)channels + first;
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[v] = vec_madd(vec_load(x + v * VECTOR), vec_load(w + v * VECTOR), sum[v]);
    }
    UNROLL
    for (int v = 0; v < vectors; v++) vec_store(out + first + v * VECTOR, sum[v]);
}

static void depthwise_part(int first, int channels, int64_t count, const uint16_t *cell,
    const int32_t *other, const float *in, const float *weight, float *out)
{
    int n = channels - first;
    vec sum = vec_set(0);
    for (int64_t t = 0; t < count; t++)
        sum = vec_madd(vec_load_part(in + (size_t)other[t] * (size_t)channels + first, n),
            vec_load_part(weight + (size_t)cell[t] * (size_t)channels + first, n), sum);
    vec_store_part(out + first, sum, n);
}

void ISA_NAME(pnet_depthwise)(int channels, int64_t count, const uint16_t *cell,
    const int32_t *other, const float *in, const float *weight, float *out)
{
    int c = 0;
    for (; c + 8 * VECTOR <= channels; c += 8 * VECTOR)
        depthwise_strip(8, c, channels, count, cell, other, in, weight, out);
    if (c + 4 * VECTOR <= channels) {
        depthwise_strip(4, c, channels, count, cell, other, in, weight, out);
        c += 4 * VECTOR;
    }
    if (c + 2 * VECTOR <= channels) {
        depthwise_strip(2, c, channels, count, cell, other, in, weight, out);
        c += 2 * VECTOR;
    }
    if (c + VECTOR <= channels) {
        depthwise_strip(1, c, channels, count, cell, other, in, weight, out);
        c += VECTOR;
    }
    if (c < channels) depthwise_part(c, channels, count, cell, other, in, weight, out);
}

/* One cell run: triplets [begin, end) of one row. */
ALWAYS_INLINE void outer_strip(const int vectors, int channels, int64_t begin, int64_t end,
    const int32_t *other, const float *in, const float *g, float *sum)
{
    vec x[4];
    UNROLL
    for (int v = 0; v < vectors; v++)
        x[v] = vec_load(in + (size_t)other[begin] * (size_t)channels + v * VECTOR);
    for (int64_t t = begin + 1; t < end; t++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            x[v] += vec_load(in + (size_t)other[t] * (size_t)channels + v * VECTOR);
    }
    UNROLL
    for (int v = 0; v < vectors; v++)
        vec_store(
            sum + v * VECTOR, vec_madd(x[v], vec_load(g + v * VECTOR), vec_load(sum + v * VECTOR)));
}

static void outer_part(int columns, int channels, int64_t begin, int64_t end, const int32_t *other,
    const float *in, const float *g, float *sum)
{
    vec x = vec_load_part(in + (size_t)other[begin] * (size_t)channels, columns);
    for (int64_t t = begin + 1; t < end; t++)
        x += vec_load_part(in + (size_t)other[t] * (size_t)channels, columns);
    vec_store_part(
        sum, vec_madd(x, vec_load_part(g, columns), vec_load_part(sum, columns)), columns);
}

void ISA_NAME(pnet_depthwise_outer)(int channels, int64_t count, const uint16_t *cell,
    const int32_t *other, const float *in, const float *g, float *sum)
{
    for (int64_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && cell[end] == cell[begin]; end++) {
        }
        float *to = sum + (size_t)cell[begin] * (size_t)channels;
        int c = 0;
        for (; c + 4 * VECTOR <= channels; c += 4 * VECTOR)
            outer_strip(4, channels, begin, end, other, in + c, g + c, to + c);
        for (; c + VECTOR <= channels; c += VECTOR)
            outer_strip(1, channels, begin, end, other, in + c, g + c, to + c);
        if (c < channels)
            outer_part(channels - c, channels, begin, end, other, in + c, g + c, to + c);
    }
}
