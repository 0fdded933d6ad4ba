/* Attention among rows that lie near each other in an order (kernels/order.h), after Flash3D (Chen et al., 2024): the order is
   cut into buckets of equal size, and a scope is a set of buckets. Every row is in one scope, and attends to all rows of it.

   Buckets of a sample are numbered k = 0 .. nb - 1. A sample with nb <= `scope` is one scope. Else the buckets are cut into
   chunks of scope * stride; the first chunk has shift mod (scope * stride) buckets where that is not 0, the last one what is
   left. In a chunk, scope r < stride has the buckets r, r + stride, r + 2 stride .. With `wrap` there is no short first chunk,
   and bucket (k + shift) mod nb stands in the place of k. Scopes without a bucket have no rows. */
#ifndef PNET_KERNELS_ATTEND_H
#define PNET_KERNELS_ATTEND_H

#include "kernels/both.h"
#include "kernels/count.h"
#include "kernels/order.h"

#include <stdbool.h>
#include <stddef.h>

struct pnet_scopes {
    int32_t bucket; /* rows, at most */
    int32_t scope;  /* buckets, at most */
    int32_t shift;  /* buckets, at least 0 */
    int32_t stride; /* at least 1 */
    bool wrap;
};

/* One scope of a sample: its buckets are (first + i * stride + shift) mod buckets for i < count. */
struct pnet_scope {
    int64_t rows, buckets; /* of the sample */
    int64_t first, stride, shift, count;
};

/* How many chunks the buckets of a sample are cut into, and how many buckets the first one lacks. */
PNET_HD int64_t pnet_scope_lack(const struct pnet_scopes *s)
{
    int64_t chunk = (int64_t)s->scope * s->stride;
    return s->wrap || s->shift % chunk == 0 ? 0 : chunk - s->shift % chunk;
}
/* The number of scopes of a sample, those without a bucket among them. */
PNET_HD int64_t pnet_scope_count(const struct pnet_scopes *s, int64_t rows)
{
    int64_t buckets = pnet_bucket_count(rows, s->bucket), chunk = (int64_t)s->scope * s->stride;
    if (buckets <= s->scope) return 1;
    return (buckets + pnet_scope_lack(s) + chunk - 1) / chunk * s->stride;
}
PNET_HD struct pnet_scope pnet_scope_of(const struct pnet_scopes *s, int64_t rows, int64_t scope)
{
    struct pnet_scope p = {rows, pnet_bucket_count(rows, s->bucket), 0, 1, 0, 0};
    p.count = p.buckets;
    if (p.buckets <= s->scope) return p;
    int64_t chunk = (int64_t)s->scope * s->stride,
            begin = scope / s->stride * chunk - pnet_scope_lack(s), end = begin + chunk;
    if (begin < 0) begin = 0;
    if (end > p.buckets) end = p.buckets;
    p.stride = s->stride;
    p.shift = s->wrap ? s->shift % p.buckets : 0;
    p.first = begin + scope % s->stride;
    p.count = p.first < end ? (end - p.first + p.stride - 1) / p.stride : 0;
    return p;
}

/* Bucket i of a scope. */
PNET_HD int64_t pnet_scope_bucket(const struct pnet_scope *p, int64_t i)
{
    int64_t k = p->first + i * p->stride + p->shift;
    return k < p->buckets ? k : k - p->buckets;
}
PNET_HD int64_t pnet_scope_rows(const struct pnet_scope *p)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < p->count; i++) {
        int64_t k = pnet_scope_bucket(p, i);
        rows += pnet_bucket_begin(p->rows, p->buckets, k + 1) -
                pnet_bucket_begin(p->rows, p->buckets, k);
    }
    return rows;
}

/* Rows of each sample, in scopes. */
struct pnet_attend {
    struct pnet_count rows;
    int32_t samples;
    const int64_t *splits; /* [samples + 1] */
    const int32_t *order;  /* [rows]: the row at each place; NULL: places are rows */
    struct pnet_scopes scopes;
    int32_t heads, width; /* width: channels of a head, 8, 16, 32, 64 or 128 */
    float scale;          /* sigma */
    enum pnet_precision precision;
};

/* C = heads * width. qkv [rows, 3 C] has q, then k, then v, each by heads. For row i of a scope and a head, over the rows j of
   the scope in the order of their places:

     s_ij = sigma q_i . k_j      p_ij = exp(s_ij) / sum_j exp(s_ij)      out_i = sum_j p_ij v_j

   out [rows, C]; log_sum [rows, heads]: log2 of sum_j exp(s_ij), for the backward; NULL: not wanted. */
PNET_BOTH(size_t, attend_work, const struct pnet_attend *a, bool backward);
PNET_BOTH(void, attend, const struct pnet_attend *a, const float *qkv, float *out, float *log_sum,
    void *work);

/* gqkv [rows, 3 C] (+)= the gradient, with g = gout [rows, C] and D_i = g_i . out_i:

     dv_j = sum_i p_ij g_i      ds_ij = p_ij (g_i . v_j - D_i)
     dq_i = sigma sum_j ds_ij k_j      dk_j = sigma sum_i ds_ij q_i */
PNET_BOTH(void, attend_backward, const struct pnet_attend *a, const float *qkv, const float *out,
    const float *log_sum, const float *gout, bool add, float *gqkv, void *work);

#endif
