/* Gathering and register-blocked products of one instruction set, which PNET_ISA names. */
#include <stdbool.h>
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/vec.h"
#include "kernels/cpu/isa/depthwise.h"
#include "kernels/cpu/isa/listing.h"

enum { BLOCK = 2 * VECTOR };

/* -- gathering --
   `single`: a run stands for one row of `in`, its own, and there is no `other`. It is a constant in
   each of the calls, so that copying has no loop over triplets. */

ALWAYS_INLINE const float *first_row(const bool single, const float *in, size_t stride,
    const int32_t *other, const struct pnet_run *run)
{
    return in + (size_t)(single ? run->row : other[run->begin]) * stride;
}

/* `vectors` registers of one run: they hold its sum from the first triplet to the last. */
ALWAYS_INLINE void gather_run(const int vectors, const bool single, float *panel, const float *in,
    size_t stride, const int32_t *other, const struct pnet_run *run)
{
    vec sum[8];
    const float *row = first_row(single, in, stride, other, run);
    UNROLL
    for (int v = 0; v < vectors; v++) sum[v] = vec_load(row + v * VECTOR);
    for (int32_t t = run->begin + 1; !single && t < run->end; t++) {
        row = in + (size_t)other[t] * stride;
        UNROLL
        for (int v = 0; v < vectors; v++) sum[v] += vec_load(row + v * VECTOR);
    }
    UNROLL
    for (int v = 0; v < vectors; v++) vec_store(panel + v * VECTOR, sum[v]);
}

ALWAYS_INLINE void gather_strip(const int vectors, const bool single, float *panel, const float *in,
    size_t stride, const int32_t *other, const struct pnet_run *runs, int count)
{
    for (int r = 0; r < count; r++)
        gather_run(
            vectors, single, panel + (size_t)r * PNET_PANEL_STRIDE, in, stride, other, runs + r);
}

/* The last columns, fewer than a register has. */
ALWAYS_INLINE void gather_rest(const bool single, float *panel, const float *in, size_t stride,
    int columns, const int32_t *other, const struct pnet_run *runs, int count)
{
    for (int r = 0; r < count; r++, panel += PNET_PANEL_STRIDE) {
        vec sum = vec_load_part(first_row(single, in, stride, other, runs + r), columns);
        for (int32_t t = runs[r].begin + 1; !single && t < runs[r].end; t++)
            sum += vec_load_part(in + (size_t)other[t] * stride, columns);
        vec_store(panel, sum);
    }
}

ALWAYS_INLINE void gather(const bool single, float *panel, const float *in, size_t stride,
    int columns, const int32_t *other, const struct pnet_run *runs, int count)
{
    int c = 0;
    for (; c + 8 * VECTOR <= columns; c += 8 * VECTOR)
        gather_strip(8, single, panel + c, in + c, stride, other, runs, count);
    for (; c + 4 * VECTOR <= columns; c += 4 * VECTOR)
        gather_strip(4, single, panel + c, in + c, stride, other, runs, count);
    for (; c + 2 * VECTOR <= columns; c += 2 * VECTOR)
        gather_strip(2, single, panel + c, in + c, stride, other, runs, count);
    for (; c + VECTOR <= columns; c += VECTOR)
        gather_strip(1, single, panel + c, in + c, stride, other, runs, count);
    if (c < columns)
        gather_rest(single, panel + c, in + c, stride, columns - c, other, runs, count);
}

static void sum_runs(float *panel, const float *in, size_t stride, int columns,
    const int32_t *other, const struct pnet_run *runs, int count)
{
    gather(false, panel, in, stride, columns, other, runs, count);
}

static void copy_rows(float *panel, const float *in, size_t stride, int columns,
    const struct pnet_run *runs, int count)
{
    gather(true, panel, in, stride, columns, NULL, runs, count);
}

/* -- register blocks --
   `rows` times `vectors` sums stay in registers over the whole depth. `rows` and `vectors` are
   constants in each of the calls below, so every loop but the one over the depth unrolls. */

ALWAYS_INLINE void multiply_block(const int rows, const int vectors, const float *panel, int depth,
    const float *weight, float *out, const struct pnet_run *runs)
{
    vec sum[BLOCK_ROWS][2];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++) sum[r][v] = vec_set(0);
    }
    for (int d = 0; d < depth; d++, weight += BLOCK) {
        vec w[2];
        UNROLL
        for (int v = 0; v < vectors; v++) w[v] = vec_load(weight + v * VECTOR);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vec x = vec_set(panel[r * PNET_PANEL_STRIDE + d]);
            UNROLL
            for (int v = 0; v < vectors; v++) sum[r][v] = vec_madd(x, w[v], sum[r][v]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        float *to = out + (size_t)runs[r].row * BLOCK;
        UNROLL
        for (int v = 0; v < vectors; v++)
            vec_store(to + v * VECTOR, vec_load(to + v * VECTOR) + sum[r][v]);
    }
}

ALWAYS_INLINE void outer_block(const int rows, const int vectors, const float *x, const float *y,
    int count, float *sum, size_t stride)
{
    vec part[BLOCK_ROWS][2];
    UNROLL
    for (int a = 0; a < rows; a++) {
        UNROLL
        for (int v = 0; v < vectors; v++) part[a][v] = vec_set(0);
    }
    /* The sums of all kernel cells exceed L2: fetched now, they are here at the end. */
    UNROLL
    for (int a = 0; a < rows; a++) {
        UNROLL
        for (int v = 0; v < vectors; v++) __builtin_prefetch(sum + (size_t)a * stride + v * VECTOR);
    }
    for (int r = 0; r < count; r++, x += PNET_PANEL_STRIDE, y += PNET_PANEL_STRIDE) {
        vec b[2];
        UNROLL
        for (int v = 0; v < vectors; v++) b[v] = vec_load(y + v * VECTOR);
        UNROLL
        for (int a = 0; a < rows; a++) {
            vec f = vec_set(x[a]);
            UNROLL
            for (int v = 0; v < vectors; v++) part[a][v] = vec_madd(f, b[v], part[a][v]);
        }
    }
    UNROLL
    for (int a = 0; a < rows; a++) {
        float *to = sum + (size_t)a * stride;
        UNROLL
        for (int v = 0; v < vectors; v++)
            vec_store(to + v * VECTOR, vec_load(to + v * VECTOR) + part[a][v]);
    }
}

#define CASES_TO_6(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#define CASES_TO_8(CASE) CASE(7) CASE(8)
#define CASES_TO_12(CASE) CASE(9) CASE(10) CASE(11) CASE(12)
#if defined(__AVX512F__)
#define ROW_CASES(CASE) CASES_TO_6(CASE) CASES_TO_8(CASE) CASES_TO_12(CASE)
#elif defined(__aarch64__)
#define ROW_CASES(CASE) CASES_TO_6(CASE) CASES_TO_8(CASE)
#else
#define ROW_CASES(CASE) CASES_TO_6(CASE)
#endif

#define MULTIPLY_CASE(n)                                                                           \
    case n:                                                                                        \
        multiply_block(n, vectors, panel, depth, weight, out, runs);                               \
        break;
#define OUTER_CASE(n)                                                                              \
    case n: outer_block(n, vectors, x, y, count, sum, stride); break;

ALWAYS_INLINE void multiply_rows(const int vectors, int rows, const float *panel, int depth,
    const float *weight, float *out, const struct pnet_run *runs)
{
    switch (rows) {
        ROW_CASES(MULTIPLY_CASE)
    default: break;
    }
}

ALWAYS_INLINE void outer_rows(const int vectors, int rows, const float *x, const float *y,
    int count, float *sum, size_t stride)
{
    switch (rows) {
        ROW_CASES(OUTER_CASE)
    default: break;
    }
}

/* Splits `count` rows into the fewest register blocks, as equal as can be: a last block of one or
   two rows would leave the multipliers waiting for its sums. */
struct split {
    int blocks, rows, longer; /* the first `longer` blocks have one row more than `rows` */
};

ALWAYS_INLINE struct split split_rows(int count)
{
    int blocks = (count + BLOCK_ROWS - 1) / BLOCK_ROWS;
    return (struct split){blocks, count / blocks, count % blocks};
}

static void multiply(const float *panel, int count, int depth, const float *weight,
    size_t weight_stride, int blocks, int half, float *out, size_t out_stride,
    const struct pnet_run *runs)
{
    struct split s = split_rows(count);
    for (int b = 0; b < blocks; b++, weight += weight_stride, out += out_stride) {
        int narrow = half && b == blocks - 1;
        for (int i = 0, r = 0; i < s.blocks; i++) {
            int rows = s.rows + (i < s.longer);
            const float *p = panel + (size_t)r * PNET_PANEL_STRIDE;
            if (narrow)
                multiply_rows(1, rows, p, depth, weight, out, runs + r);
            else
                multiply_rows(2, rows, p, depth, weight, out, runs + r);
            r += rows;
        }
    }
}

static void outer(
    const float *x, const float *y, int count, int rows, int columns, float *sum, size_t stride)
{
    struct split s = split_rows(rows);
    for (int b = 0; b < columns; b += BLOCK) {
        int narrow = columns - b <= VECTOR;
        for (int i = 0, a = 0; i < s.blocks; i++) {
            int n = s.rows + (i < s.longer);
            if (narrow)
                outer_rows(1, n, x + a, y + b, count, sum + (size_t)a * stride + b, stride);
            else
                outer_rows(2, n, x + a, y + b, count, sum + (size_t)a * stride + b, stride);
            a += n;
        }
    }
}

extern const struct pnet_conv_isa ISA_NAME(pnet_conv_isa);
const struct pnet_conv_isa ISA_NAME(pnet_conv_isa) = {
    .name = ISA_STRING_OF(PNET_ISA),
    .vector = VECTOR,
    .sum_runs = sum_runs,
    .copy_rows = copy_rows,
    .multiply = multiply,
    .outer = outer,
    .depthwise = ISA_NAME(pnet_depthwise),
    .depthwise_outer = ISA_NAME(pnet_depthwise_outer),
    .listing_mvmr = ISA_NAME(pnet_listing_mvmr),
    .listing_vvor = ISA_NAME(pnet_listing_vvor),
};
