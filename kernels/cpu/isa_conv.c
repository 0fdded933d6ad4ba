/* Gathering and register-blocked products of one instruction set; compiled with PNET_ISA naming it.
 */
#include "kernels/cpu/conv_isa.h"
#include "kernels/cpu/isa_vec.h"
#include "kernels/cpu/isa_depthwise.h"

enum { BLOCK = 2 * VECTOR };

/* -- gathering -- */

/* `vectors` registers of the sum of one run; those of whole rows stay in registers from first to
 * last. */
ALWAYS_INLINE void sum_run(const int vectors, float *panel, const float *in, size_t stride,
    const int32_t *other, const struct pnet_run *run)
{
    vec sum[8];
    const float *row = in + (size_t)other[run->begin] * stride;
    UNROLL
    for (int v = 0; v < vectors; v++) sum[v] = vec_load(row + v * VECTOR);
    for (int32_t t = run->begin + 1; t < run->end; t++) {
        row = in + (size_t)other[t] * stride;
        UNROLL
        for (int v = 0; v < vectors; v++) sum[v] += vec_load(row + v * VECTOR);
    }
    UNROLL
    for (int v = 0; v < vectors; v++) vec_store(panel + v * VECTOR, sum[v]);
}

ALWAYS_INLINE void sum_run_part(float *panel, const float *in, size_t stride, int columns,
    const int32_t *other, const struct pnet_run *run)
{
    vec sum = vec_load_part(in + (size_t)other[run->begin] * stride, columns);
    for (int32_t t = run->begin + 1; t < run->end; t++)
        sum += vec_load_part(in + (size_t)other[t] * stride, columns);
    vec_store(panel, sum);
}

ALWAYS_INLINE void sum_strip(const int vectors, float *panel, const float *in, size_t stride,
    const int32_t *other, const struct pnet_run *runs, int count)
{
    for (int r = 0; r < count; r++)
        sum_run(vectors, panel + (size_t)r * PNET_PANEL_STRIDE, in, stride, other, runs + r);
}

static void sum_runs(float *panel, const float *in, size_t stride, int columns,
    const int32_t *other, const struct pnet_run *runs, int count)
{
    int c = 0;
    for (; c + 8 * VECTOR <= columns; c += 8 * VECTOR)
        sum_strip(8, panel + c, in + c, stride, other, runs, count);
    switch ((columns - c) / VECTOR) {
    case 7: sum_strip(7, panel + c, in + c, stride, other, runs, count); break;
    case 6: sum_strip(6, panel + c, in + c, stride, other, runs, count); break;
    case 5: sum_strip(5, panel + c, in + c, stride, other, runs, count); break;
    case 4: sum_strip(4, panel + c, in + c, stride, other, runs, count); break;
    case 3: sum_strip(3, panel + c, in + c, stride, other, runs, count); break;
    case 2: sum_strip(2, panel + c, in + c, stride, other, runs, count); break;
    case 1: sum_strip(1, panel + c, in + c, stride, other, runs, count); break;
    default: break;
    }
    c = columns / VECTOR * VECTOR;
    if (c < columns) {
        for (int r = 0; r < count; r++)
            sum_run_part(panel + (size_t)r * PNET_PANEL_STRIDE + c, in + c, stride, columns - c,
                other, runs + r);
    }
}

static void copy_rows(float *panel, const float *in, size_t stride, int columns,
    const struct pnet_run *runs, int count)
{
    int whole = columns / VECTOR * VECTOR;
    for (int r = 0; r < count; r++) {
        const float *from = in + (size_t)runs[r].row * stride;
        float *to = panel + (size_t)r * PNET_PANEL_STRIDE;
        for (int c = 0; c < whole; c += VECTOR) vec_store(to + c, vec_load(from + c));
        if (whole < columns) vec_store(to + whole, vec_load_part(from + whole, columns - whole));
    }
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

#if defined(__AVX512F__)
#define ROW_CASES(CASE)                                                                            \
    CASE(1)                                                                                        \
    CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#else
#define ROW_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
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
};
