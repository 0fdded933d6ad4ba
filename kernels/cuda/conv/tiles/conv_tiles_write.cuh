/* MVMR from tiles: how the sums of a tile's rows are finished, converted and written. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_WRITE_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_WRITE_CUH

#include "kernels/cuda/conv/tiles/conv_tiles_stage.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Adds bias and old output, applies the activation, converts the sum to the storage of the output and writes it at `at`. The
   storage is tested here, in the innermost place, to keep the code small. */
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

/* The two rows of a lane, and whether they exist. */
struct lane_rows {
    int64_t row[2];
    bool live[2];
};

/* Returns the row at a place of the item's tile; -1: it is not there. */
static __device__ __forceinline__ int row_at(
    const tile_launch &l, const tile_item &item, int place, int64_t live)
{
    int64_t at = item.tile * PNET_TILE_ROWS +
                 (is_dense(l) ? place : __ldg(&l.p.set.tiles.tile[item.tile].row[place]));
    return at < live ? (int)conv_row(l.p.set, at) : -1;
}

static __device__ __forceinline__ lane_rows lane_rows_of(
    const tile_launch &l, const tile_item &item, int block)
{
    int place = block * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    int64_t live = pnet_live(l.p.set.rows);
    lane_rows r;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        r.row[half] = row_at(l, item, place + 8 * half, live);
        r.live[half] = r.row[half] >= 0;
    }
    return r;
}

/* Writes the sums of a block of 64 rows one by one. The sums are in local memory, since registers cannot be indexed. */
template <class C>
static __device__ __noinline__ void write_slowly(const tile_launch &l, const tile_item &item,
    const float (&sum)[C::COLUMNS / 2], const lane_rows &rows)
{
    const conv_product &p = l.p;
#pragma unroll 1
    for (int i = 0; i < C::COLUMNS / 2; i++) {
        int c = item.wide * C::COLUMNS + i / 16 * 32 + threadIdx.x % 4 * 8 + i / 4 % 4 * 2 + i % 2,
            to = item.group * p.groups.cout + c;
        int half = i / 2 % 2;
        if (!rows.live[half] || c >= p.groups.cout) continue;
        write_one(p, rows.row[half] * p.cout + to, sum[i] + (p.end.bias ? p.end.bias[to] : 0));
    }
}

/* Calls f(u, half) for each unit of 8 channels that a lane has of its two rows, 32 channels apart; `left`: channels from
   the first one to the end of the group. */
template <class C, class F>
static __device__ __forceinline__ void each_unit(int left, const lane_rows &rows, F f)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (!rows.live[half]) continue;
#pragma unroll
        for (int u = 0; u < C::COLUMNS / 32; u++)
            if (u * 32 < left) f(u, half);
    }
}

/* Returns the index of sum i of a unit. */
static __device__ __forceinline__ constexpr int sum_at(int u, int half, int i)
{
    return u * 16 + i / 2 * 4 + half * 2 + i % 2;
}

/* Finishes the sums of a row and writes them. The first unit of the row is at channel `first`. */
template <class C, class T>
static __device__ __forceinline__ void write_units(const tile_launch &l, T *out, int first,
    int left, float (&sum)[C::COLUMNS / 2], const lane_rows &rows)
{
    constexpr int AT_ONCE = WIDEST<T>;
    T *const to[2] = {out + rows.row[0] * l.p.cout + first, out + rows.row[1] * l.p.cout + first};
    if (l.p.end.add)
        each_unit<C>(left, rows, [&](int u, int half) {
#pragma unroll
            for (int i = 0; i < 8; i += AT_ONCE) {
                float old[AT_ONCE];
                load_wide<AT_ONCE>(to[half] + u * 32 + i, old);
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) sum[sum_at(u, half, i + j)] += old[j];
            }
        });
    each_unit<C>(left, rows, [&](int u, int half) {
#pragma unroll
        for (int i = 0; i < 8; i += AT_ONCE) {
            float v[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) v[j] = sum[sum_at(u, half, i + j)];
            store_wide<AT_ONCE>(to[half] + u * 32 + i, v);
        }
    });
}

/* Writes the sums of a block of 64 rows of any alignment. A warp takes 8 rows and 32 channels at a time through shared
   memory and writes row after row, a channel a lane. */
template <class C, class T>
static __device__ __forceinline__ void write_rows(const tile_launch &l, uint32_t leaving,
    const tile_item &item, const float (&sum)[C::COLUMNS / 2], int block)
{
    const conv_end &e = l.p.end;
    int lane = threadIdx.x % 32, c = item.wide * C::COLUMNS, left = l.p.groups.cout - c,
        first = item.group * l.p.groups.cout + c,
        own = row_at(
            l, item, block * 64 + threadIdx.x % 128 / 32 * 16 + lane % 16, pnet_live(l.p.set.rows));
    uint32_t here = leaving + lane / 4 * LEAVING_ROW + lane % 4 * 32;
    T *out = (T *)e.out + first + lane;
#pragma unroll
    for (int u = 0; u < C::COLUMNS / 32; u++) {
        if (u * 32 >= left) break;
        bool mine = u * 32 + lane < left;
        float bias = e.bias && mine ? e.bias[first + u * 32 + lane] : 0;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 8; i += 4)
                shared_store(here + i * 4, uint4{__float_as_uint(sum[sum_at(u, half, i)]),
                                               __float_as_uint(sum[sum_at(u, half, i + 1)]),
                                               __float_as_uint(sum[sum_at(u, half, i + 2)]),
                                               __float_as_uint(sum[sum_at(u, half, i + 3)])});
            __syncwarp();
#pragma unroll 4
            for (int r = 0; r < 8; r++) {
                int row = __shfl_sync(~0u, own, half * 8 + r);
                if (!mine || row < 0) continue;
                T *to = out + row * (int64_t)l.p.cout + u * 32;
                float v = shared_load_float(leaving + r * LEAVING_ROW + lane * 4) + bias;
                narrow(e.add ? widen(*to) + v : conv_activate(v, e.act, e.slope), to);
            }
        }
    }
}

/* Writes the sums of a block of 64 rows in any storage. */
template <class C>
static __device__ __forceinline__ void write_uneven(const tile_launch &l, uint32_t shared,
    const tile_item &item, const float (&sum)[C::COLUMNS / 2], int block)
{
    using T = typename std::conditional<C::BFLOAT, __nv_bfloat16, __half>::type;
    constexpr enum pnet_storage SHORT = C::BFLOAT ? PNET_STORE_BF16 : PNET_STORE_FP16;
    enum pnet_storage storage = l.p.set.rows.storage;
    uint32_t leaving = shared + AT_RING + C::RING * C::BLOCK + 2 * l.slots * C::STAGED +
                       threadIdx.x / 32 * C::LEAVING;
    if (storage == PNET_STORE_F32) {
        write_rows<C, float>(l, leaving, item, sum, block);
    } else if (!C::SCALED && storage == SHORT) {
        write_rows<C, T>(l, leaving, item, sum, block);
    } else {
        float copy[C::COLUMNS / 2];
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++) copy[i] = sum[i];
        write_slowly<C>(l, item, copy, lane_rows_of(l, item, block));
    }
}

/* Writes the sums of a block of 64 rows. */
template <class C>
static __device__ __forceinline__ void write_block(const tile_launch &l, uint32_t shared,
    const tile_item &item, float (&sum)[C::COLUMNS / 2], int block)
{
    if constexpr (!C::EVEN) return write_uneven<C>(l, shared, item, sum, block);
    using T = typename std::conditional<C::BFLOAT, __nv_bfloat16, __half>::type;
    const conv_end &e = l.p.end;
    int cout = l.p.groups.cout;
    enum pnet_storage storage = l.p.set.rows.storage;
    int c = item.wide * C::COLUMNS + threadIdx.x % 4 * 8, first = item.group * cout + c;
    lane_rows rows = lane_rows_of(l, item, block);
    if (e.bias)
        each_unit<C>(cout - c, {{0, 0}, {true, true}}, [&](int u, int half) {
#pragma unroll
            for (int i = 0; i < 8; i++) sum[sum_at(u, half, i)] += e.bias[first + u * 32 + i];
        });
    if (e.act != PNET_ACT_NONE && !e.add) { /* conv_activate, with one branch for all sums */
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++) {
            float below = e.act == PNET_ACT_LEAKY ? e.slope * sum[i] : 0;
            sum[i] = sum[i] < 0 ? below : sum[i];
        }
    }
    if (storage == PNET_STORE_F32)
        write_units<C>(l, e.out, first, cout - c, sum, rows);
    else if constexpr (!C::SCALED)
        write_units<C>(l, (T *)e.out, first, cout - c, sum, rows);
}

/* Computes the rows of an item from the triplets, for a tile without a list. */
template <class C>
static __device__ __noinline__ void write_plain(const tile_launch &l, const tile_item &item)
{
    const conv_product &p = l.p;
    int64_t live = pnet_live(p.set.rows);
    int64_t row0 = item_row<C>(item);
    tile_source from = source_at<C>(l, item, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < C::ROWS * C::COLUMNS; i += C::CONSUMERS) {
        int64_t place = row0 + i / C::COLUMNS;
        int column = item.wide * C::COLUMNS + i % C::COLUMNS,
            to = item.group * p.groups.cout + column;
        if (place >= live || column >= p.groups.cout) continue;
        double sum = p.end.bias ? p.end.bias[to] : 0;
#pragma unroll 1
        for (int64_t n = p.set.start[place]; n < p.set.start[place + 1]; n++)
#pragma unroll 1
            for (int c = 0; c < p.groups.cin; c++)
                sum += (double)source_value(from, p.set.other[n], c) *
                       (double)conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed,
                           p.set.cell[n], item.group, c, column);
        write_one(p, conv_row(p.set, place) * p.cout + to, (float)sum);
    }
}
#endif
#endif
