/* The listings of PointCNN++ on columns of one thread: groups of 128 triplets, the sum kept in registers while its index
   stays the same, the matrix of a cell in the innermost cache while that one does. */
#include "kernels/cpu/isa/listing.h"

#include <stdbool.h>

enum { SIDE = 32 /* input channels taken at once */ };

ALWAYS_INLINE vec load(const bool full, const float *p, int columns)
{
    return full ? vec_load(p) : vec_load_part(p, columns);
}

/* p += v */
ALWAYS_INLINE void add(const bool full, float *p, vec v, int columns)
{
    if (full)
        vec_store(p, vec_load(p) + v);
    else
        vec_store_part(p, vec_load_part(p, columns) + v, columns);
}

/* x[0..depth) times a block of `depth` rows; four chains hide the latency of multiply-add. */
ALWAYS_INLINE vec multiply(
    const bool full, const float *x, const float *w, size_t stride, int depth, int columns)
{
    vec sum[4] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
    int a = 0;
    for (; a + 4 <= depth; a += 4) {
        UNROLL
        for (int i = 0; i < 4; i++)
            sum[i] = vec_madd(
                vec_set(x[a + i]), load(full, w + (size_t)(a + i) * stride, columns), sum[i]);
    }
    for (; a < depth; a++)
        sum[0] = vec_madd(vec_set(x[a]), load(full, w + (size_t)a * stride, columns), sum[0]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Triplets [first, end) and input channels from `a` on. */
ALWAYS_INLINE void mvmr_group(
    const bool full, const struct pnet_listing *l, int64_t first, int64_t end, int a)
{
    int depth = l->depth - a < SIDE ? l->depth - a : SIDE;
    int32_t row = l->row[first];
    vec sum = vec_set(0);
    for (int64_t n = first; n < end; n++) {
        if (l->row[n] != row) {
            add(full, l->out + (size_t)row * l->out_stride, sum, l->columns);
            sum = vec_set(0);
            row = l->row[n];
        }
        sum += multiply(full, l->in + (size_t)l->other[n] * l->in_stride + a,
            l->weight + l->cell[n] * l->cell_stride + (size_t)a * l->weight_stride,
            l->weight_stride, depth, l->columns);
    }
    add(full, l->out + (size_t)row * l->out_stride, sum, l->columns);
}

ALWAYS_INLINE void mvmr(const bool full, const struct pnet_listing *l)
{
    for (int64_t first = 0; first < l->count; first += PNET_LISTING_LENGTH) {
        int64_t end =
            first + PNET_LISTING_LENGTH < l->count ? first + PNET_LISTING_LENGTH : l->count;
        for (int a = 0; a < l->depth; a += SIDE) mvmr_group(full, l, first, end, a);
    }
}

void ISA_NAME(pnet_listing_mvmr)(const struct pnet_listing *l)
{
    if (l->columns == VECTOR)
        mvmr(true, l);
    else
        mvmr(false, l);
}

ALWAYS_INLINE void vvor_flush(const bool full, const int depth, const struct pnet_listing *l,
    uint16_t cell, vec sum[PNET_LISTING_DEPTH])
{
    float *to = l->out + cell * l->cell_stride;
    UNROLL
    for (int a = 0; a < depth; a++) {
        add(full, to + (size_t)a * l->out_stride, sum[a], l->columns);
        sum[a] = vec_set(0);
    }
}

ALWAYS_INLINE void vvor_group(
    const bool full, const int depth, const struct pnet_listing *l, int64_t first, int64_t end)
{
    vec sum[PNET_LISTING_DEPTH];
    uint16_t cell = l->cell[first];
    UNROLL
    for (int a = 0; a < PNET_LISTING_DEPTH; a++) sum[a] = vec_set(0);
    for (int64_t n = first; n < end; n++) {
        if (l->cell[n] != cell) {
            vvor_flush(full, depth, l, cell, sum);
            cell = l->cell[n];
        }
        const float *x = l->in + (size_t)l->other[n] * l->in_stride;
        vec g = load(full, l->gout + (size_t)l->row[n] * l->gout_stride, l->columns);
        UNROLL
        for (int a = 0; a < depth; a++) sum[a] = vec_madd(vec_set(x[a]), g, sum[a]);
    }
    vvor_flush(full, depth, l, cell, sum);
}

void ISA_NAME(pnet_listing_vvor)(const struct pnet_listing *l)
{
    for (int64_t first = 0; first < l->count; first += PNET_LISTING_LENGTH) {
        int64_t end =
            first + PNET_LISTING_LENGTH < l->count ? first + PNET_LISTING_LENGTH : l->count;
        if (l->columns < VECTOR)
            vvor_group(false, l->depth, l, first, end);
        else if (l->depth < PNET_LISTING_DEPTH)
            vvor_group(true, l->depth, l, first, end);
        else
            vvor_group(true, PNET_LISTING_DEPTH, l, first, end);
    }
}
