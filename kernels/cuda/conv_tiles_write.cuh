/* What becomes of the sums of a tile's rows. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_WRITE_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_WRITE_CUH

#include "kernels/cuda/conv_tiles_stage.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Makes of sums what belongs into the output at `at`, and writes it; the storage is looked at here, not outside, for the
   sake of the size of the code. */
static __device__ __forceinline__ void write_one(const conv_product &p, int64_t at, float v)
{
    const conv_end &e = p.end;
    switch (p.set.rows.storage) {
    case PNET_STORE_F32:
        e.out[at] = e.add ? e.out[at] + v : conv_activate(v, e.act, e.slope);
        break;
    case PNET_STORE_BF16: {
        __nv_bfloat16 *to = (__nv_bfloat16 *)e.out + at;
        narrow(e.add ? widen(*to) + v : conv_activate(v, e.act, e.slope), to);
        break;
    }
    case PNET_STORE_FP16: {
        __half *to = (__half *)e.out + at;
        narrow(e.add ? widen(*to) + v : conv_activate(v, e.act, e.slope), to);
        break;
    }
    }
}

/* The same for two that follow each other, at an even place. */
static __device__ __forceinline__ void write_two(
    const conv_product &p, int64_t at, float v, float w)
{
    const conv_end &e = p.end;
    bool wide = p.set.rows.storage == PNET_STORE_F32,
         bfloat = p.set.rows.storage == PNET_STORE_BF16;
    float2 *two = (float2 *)(e.out + at);
    uint32_t *word = (uint32_t *)((uint16_t *)e.out + at);
    if (e.add) {
        float2 old;
        if (wide)
            old = *two;
        else
            old = bfloat ? widen_pair<__nv_bfloat16>(*word) : widen_pair<__half>(*word);
        v += old.x;
        w += old.y;
    } else {
        v = conv_activate(v, e.act, e.slope);
        w = conv_activate(w, e.act, e.slope);
    }
    if (wide)
        *two = {v, w};
    else
        *word = bfloat ? narrow_pair<__nv_bfloat16>(v, w) : narrow_pair<__half>(v, w);
}

/* Writes the sums of a block of 64 rows. */
template <class C>
static __device__ __forceinline__ void write_block(const tile_launch &l, const tile_item &item,
    const float (&sum)[C::COLUMNS / 2], int block, int64_t live)
{
    const conv_product &p = l.p;
    int lane = threadIdx.x % 32, first = item.group * p.groups.cout;
    int64_t row0 = item.tile * PNET_TILE_ROWS + block * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    if ((p.cout | p.groups.cout) % 2) { /* from local memory, where registers have an index */
        float copy[C::COLUMNS / 2];
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++) copy[i] = sum[i];
#pragma unroll 1
        for (int i = 0; i < C::COLUMNS / 2; i++) {
            int c = item.wide * C::COLUMNS + i / 4 * 8 + lane % 4 * 2 + i % 2;
            int64_t row = row0 + i / 2 % 2 * 8;
            if (row >= live || c >= p.groups.cout) continue;
            float bias = p.end.bias ? p.end.bias[first + c] : 0;
            write_one(p, row * p.cout + first + c, copy[i] + bias);
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < C::COLUMNS / 8; j++) {
        int c = item.wide * C::COLUMNS + 8 * j + lane % 4 * 2;
        if (c >= p.groups.cout) continue;
        float2 bias = {0, 0};
        if (p.end.bias) bias = {p.end.bias[first + c], p.end.bias[first + c + 1]};
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (row0 + 8 * h < live)
                write_two(p, (row0 + 8 * h) * p.cout + first + c, sum[4 * j + 2 * h] + bias.x,
                    sum[4 * j + 2 * h + 1] + bias.y);
    }
}

/* The rows of an item whose tile lists nothing. */
template <class C>
static __device__ void write_plain(const tile_launch &l, const tile_item &item, int64_t live)
{
    const conv_product &p = l.p;
    int64_t row0 = item.tile * PNET_TILE_ROWS + item.half * C::ROWS;
    tile_source from = source_at<C>(l, item, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < C::ROWS * C::COLUMNS; i += TILE_CONSUMERS) {
        int64_t row = row0 + i / C::COLUMNS;
        int column = item.wide * C::COLUMNS + i % C::COLUMNS,
            to = item.group * p.groups.cout + column;
        if (row >= live || column >= p.groups.cout) continue;
        double sum = p.end.bias ? p.end.bias[to] : 0;
#pragma unroll 1
        for (int64_t n = p.set.start[row]; n < p.set.start[row + 1]; n++)
#pragma unroll 1
            for (int c = 0; c < p.groups.cin; c++)
                sum += (double)source_value(from, p.set.other[n], c) *
                       (double)conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed,
                           p.set.cell[n], item.group, c, column);
        write_one(p, row * p.cout + to, (float)sum);
    }
}
#endif
#endif
