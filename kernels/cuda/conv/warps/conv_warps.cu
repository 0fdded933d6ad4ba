/* MVMR in any precision by matrix instructions of a warp (PTX ISA, mma.sync), for GPUs from architecture 80 on. A block of
   threads has 128 rows: half of a tile, in the order in which the tile has them, or rows one after the other where there
   are no tiles. It looks up what its rows gather in up to 28 kernel cells, and goes through these cells, some channels at
   a time: the rows that are gathered and the weights are copied to shared memory one or two steps ahead. A row that is
   gathered alone is copied as it is; runs of several are summed first. A warp has 16 or 32 rows; 16 rows without a cell
   are left out. */
#include "kernels/cuda/conv/warps/conv_warps.cuh"

#include <climits>

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    ROWS = 128,
    SLABS = ROWS / 16,
    CELLS = 28,     /* looked up at once */
    ROW_BYTES = 128 /* of a stage */
};

template <conv_form FORM, class T, int COLUMNS>
struct warp_config : warp_operands<FORM, T, COLUMNS> {
    using base = warp_operands<FORM, T, COLUMNS>;
    static constexpr int ROW_WARPS = COLUMNS == 32 ? 8 : 4, OWN = SLABS / ROW_WARPS,
                         WIDTH = COLUMNS / (WARPS / ROW_WARPS), EIGHTS = WIDTH / 8;
    static constexpr int A_BYTES = ROWS * ROW_BYTES, B_BYTES = 4 * base::B_STEP,
                         STAGE = A_BYTES + B_BYTES, TABLE = CELLS * ROWS * 4;
};

/* Steps of a block of channels. */
template <class C> static __host__ __device__ inline int steps_of(const warp_launch &l, int deep)
{
    int left = l.p.groups.cin - deep * l.b.depth, most = left < l.b.depth ? left : l.b.depth;
    return (most + C::STEP - 1) / C::STEP;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* What a block of threads knows of its rows, and of the cells of its table. */
struct block_rows {
    int64_t first;             /* triplet */
    int row[ROWS], last[ROWS]; /* -1: none; the end of its triplets, from the first */
    int cell[CELLS];
    uint32_t mask[32]; /* slabs that have a cell */
    int least[WARPS];
};

static __device__ __forceinline__ int block_least(block_rows &r, int x)
{
    x = __reduce_min_sync(~0u, x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) r.least[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < WARPS; w++) x = min(x, r.least[w]);
    return x;
}

/* The triplets that a row has left; those of threads without a row are none. */
struct row_left {
    int64_t at, last;
};

static __device__ __forceinline__ row_left find_rows(block_rows &r, const conv_set &s)
{
    int64_t live = pnet_live(s.rows), row0 = (int64_t)blockIdx.x * ROWS, at = row0 + threadIdx.x;
    row_left left = {0, 0};
    if (threadIdx.x == 0) r.first = row0 < live ? conv_start(s, row0) : 0;
    __syncthreads();
    if (threadIdx.x < ROWS) {
        r.row[threadIdx.x] = at < live ? (int)conv_row(s, at) : -1;
        if (at < live) left = {conv_start(s, at), conv_start(s, at + 1)};
        r.last[threadIdx.x] = (int)(left.last - r.first);
    }
    __syncthreads();
    return left;
}

/* Fills table[cell][row]: -1 without a triplet, the row to gather, or -2 - the first triplet of a run of several. False: no row
   has triplets left. */
static __device__ __forceinline__ bool look_up(
    block_rows &r, int (*table)[ROWS], const conv_set &s, row_left &left)
{
    int first = block_least(r, left.at < left.last ? conv_cell(s, left.at) : INT_MAX);
    if (first == INT_MAX) return false;
    for (int i = threadIdx.x; i < CELLS * ROWS / 4; i += THREADS)
        ((int4 *)table)[i] = {-1, -1, -1, -1};
    if (threadIdx.x < CELLS) r.cell[threadIdx.x] = first + threadIdx.x;
    __syncthreads();
    while (left.at < left.last) {
        int k = conv_cell(s, left.at);
        if (k >= first + CELLS) break;
        int64_t n = left.at++;
        while (left.at < left.last && conv_cell(s, left.at) == k) left.at++;
        table[k - first][threadIdx.x] =
            left.at - n == 1 ? (int)conv_other(s, n) : -2 - (int)(n - r.first);
    }
    __syncthreads();
    int lane = threadIdx.x % 32;
    for (int c = threadIdx.x / 32; c < 32; c += WARPS) {
        bool any = false;
        if (c < CELLS) {
            int4 v = ((int4 *)table[c])[lane];
            any = (v.x & v.y & v.z & v.w) != -1;
        }
        uint32_t m = __ballot_sync(~0u, any); /* of 4 rows each */
        m = (m | m >> 1 | m >> 2 | m >> 3) & 0x11111111;
        m = (m | m >> 3) & 0x03030303;
        m = (m | m >> 6) & 0x000f000f;
        if (lane == 0) r.mask[c] = (m | m >> 12) & 0xff;
    }
    __syncthreads();
    return true;
}

/* A unit of channels of a run, rounded once: from channel c of a group on. `v`: of the table. */
template <class C>
static __device__ __forceinline__ uint4 sum_unit(const warp_launch &l, const block_rows &r,
    int place, int cell, int v, const typename C::T *in, int c)
{
    const conv_set &s = l.p.set;
    float x[C::UNIT] = {};
    int width = min(C::UNIT, l.p.groups.cin - c);
    if (v == -1 || width <= 0) return {};
    in += c;
    if (v >= 0) {
        add_unit<C>(x, l, in + (int64_t)v * l.p.cin, width);
    } else {
        int64_t n = r.first + (-2 - v), last = r.first + r.last[place];
        for (int k = r.cell[cell]; n < last && conv_cell(s, n) == k; n++)
            add_unit<C>(x, l, in + conv_other(s, n) * l.p.cin, width);
    }
    return unit_of<C>(x);
}

/* The steps of a window of cells: cell after cell, and the blocks of channels of each. */
struct cell_walk {
    uint32_t left;
    int cell, deep, most;
    __device__ __forceinline__ bool next()
    {
        if (cell >= 0 && ++deep < most) return true;
        if (!left) return false;
        cell = __ffs(left) - 1;
        left &= left - 1;
        deep = 0;
        return true;
    }
};

/* Starts to copy the rows and the weights of a step. */
template <class C>
static __device__ __forceinline__ void copy_step(const warp_launch &l, const block_rows &r,
    int (*table)[ROWS], const cell_walk &w, int group, int wide, uint32_t stage)
{
    using T = typename C::T;
    int unit = threadIdx.x % 8, steps = steps_of<C>(l, w.deep),
        c = w.deep * l.b.depth + unit * C::UNIT;
    uint32_t mask = r.mask[w.cell];
    const T *in = (const T *)l.p.in + group * l.p.groups.cin;
    int64_t block =
        (((int64_t)r.cell[w.cell] * l.p.groups.count + group) * l.b.deep + w.deep) * l.b.wide +
        wide;
    const unsigned char *from = l.blocks + block * l.b.bytes;
    for (int i = threadIdx.x * 16; i < steps * C::B_STEP; i += THREADS * 16)
        copy16(stage + C::A_BYTES + i, from + i);
    if (unit >= 2 * steps) return;
    uint32_t summed = 0; /* rows of the thread that are not copied as they are */
#pragma unroll
    for (int i = 0; i < ROWS / (THREADS / 8); i++) {
        int place = i * (THREADS / 8) + threadIdx.x / 8;
        if (!(mask >> place / 16 & 1)) continue;
        int v = table[w.cell][place];
        if (C::STORED && l.copies && v >= -1)
            copy16_or_zeros(stage + place * ROW_BYTES + ((unit ^ place % 8) << 4),
                in + (int64_t)v * l.p.cin + c, in, v >= 0 && c < l.p.groups.cin);
        else
            summed |= 1u << i;
    }
#pragma unroll 1
    for (; summed; summed &= summed - 1) {
        int place = (__ffs(summed) - 1) * (THREADS / 8) + threadIdx.x / 8;
        shared_store(stage + place * ROW_BYTES + ((unit ^ place % 8) << 4),
            sum_unit<C>(l, r, place, w.cell, table[w.cell][place], in, c));
    }
}

template <class C>
static __device__ __forceinline__ void multiply_step(
    float (&sum)[C::OWN][C::EIGHTS][4], uint32_t stage, uint32_t slabs, int steps)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rows = warp % C::ROW_WARPS * C::OWN * 16,
        row = rows + lane % 16;
    uint32_t weights = stage + C::A_BYTES + warp / C::ROW_WARPS * (C::WIDTH / 16) * 512 + lane * 16;
#pragma unroll
    for (int step = 0; step < 4; step++) {
        if (step >= steps) break;
        uint32_t a[C::OWN][4], low[C::SPLIT ? C::OWN : 1][4];
#pragma unroll
        for (int s = 0; s < C::OWN; s++) {
            load_matrices(a[s],
                stage + (row + s * 16) * ROW_BYTES + (((step * 2 + lane / 16) ^ row % 8) << 4));
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if constexpr (C::SPLIT)
                    split_float(a[s][i], a[s][i], low[s][i]);
                else if constexpr (C::FLOATS)
                    a[s][i] = float_to_tf32(__uint_as_float(a[s][i]));
            }
        }
#pragma unroll
        for (int n = 0; n < C::EIGHTS / 2; n++) {
            uint4 b = shared_load(weights + step * C::B_STEP + n * 512);
            uint32_t w[4] = {b.x, b.y, b.z, b.w}, w_low[4];
            if constexpr (C::SPLIT)
                for (int i = 0; i < 4; i++) split_float(w[i], w[i], w_low[i]);
#pragma unroll
            for (int s = 0; s < C::OWN; s++) {
                if (!(slabs >> s & 1)) continue;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float(&d)[4] = sum[s][2 * n + i];
                    if constexpr (C::SPLIT) { /* small terms first */
                        step_float(d, low[s], w[2 * i], w[2 * i + 1]);
                        step_float(d, a[s], w_low[2 * i], w_low[2 * i + 1]);
                        step_float(d, a[s], w[2 * i], w[2 * i + 1]);
                    } else if constexpr (C::FLOATS) {
                        step_float(d, a[s], w[2 * i], w[2 * i + 1]);
                    } else {
                        uint32_t pair[2] = {w[2 * i], w[2 * i + 1]};
                        step_short<C::BFLOAT>(d, a[s], pair);
                    }
                }
            }
        }
    }
}

#endif

template <class C>
static __global__ __launch_bounds__(THREADS, C::SPLIT ? 1 : 2) void mvmr(
    const __grid_constant__ warp_launch l)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ block_rows r;
    int(*table)[ROWS] = (int(*)[ROWS])memory;
    uint32_t stages = shared_base(memory) + C::TABLE;
    int group = blockIdx.y / l.b.wide, wide = blockIdx.y % l.b.wide, warp = threadIdx.x / 32,
        own = warp % C::ROW_WARPS * C::OWN;
    float sum[C::OWN][C::EIGHTS][4] = {};
    if ((int64_t)blockIdx.x * ROWS >= pnet_live(l.p.set.rows)) return;
    row_left left = find_rows(r, l.p.set);
    while (look_up(r, table, l.p.set, left)) {
        uint32_t active = __ballot_sync(~0u, r.mask[threadIdx.x % 32] != 0);
        cell_walk ahead = {active, -1, 0, l.b.deep}, here = ahead;
        int to = 0, at = 0;
        for (int i = 0; i < l.room - 1; i++, to++) {
            if (ahead.next()) copy_step<C>(l, r, table, ahead, group, wide, stages + to * C::STAGE);
            copies_commit();
        }
        while (here.next()) {
            if (l.room == 2)
                copies_wait_but<0>();
            else
                copies_wait_but<1>();
            __syncthreads();
            if (ahead.next()) copy_step<C>(l, r, table, ahead, group, wide, stages + to * C::STAGE);
            copies_commit();
            uint32_t slabs = r.mask[here.cell] >> own & ((1 << C::OWN) - 1);
            if (slabs) {
                int steps = steps_of<C>(l, here.deep);
                if constexpr (C::SPLIT) {
                    float part[C::OWN][C::EIGHTS][4] = {};
                    multiply_step<C>(part, stages + at * C::STAGE, slabs, steps);
#pragma unroll
                    for (int i = 0; i < C::OWN * C::EIGHTS * 4; i++)
                        (&sum[0][0][0])[i] += (&part[0][0][0])[i];
                } else {
                    multiply_step<C>(sum, stages + at * C::STAGE, slabs, steps);
                }
            }
            to = to + 1 == l.room ? 0 : to + 1;
            at = at + 1 == l.room ? 0 : at + 1;
        }
        copies_wait_but<0>();
    }
    write_sums<C>(l, sum, group, l.b.first + wide, [&](int place) { return r.row[place]; });
#else
    (void)l;
#endif
}

template <class C> static void launch(const conv_product &p, void *work)
{
    conv_blocks all = pnet_cuda_conv_warp_blocks(C::FORM, p.set.cells, &p.groups);
    int reserved = 1024 + 3 * 1024; /* of the system, and what is declared */
    int stages = 2 * (C::TABLE + 3 * C::STAGE + reserved) <= warp_room().processor ? 3 : 2;
    warp_launch l = warp_launch_of<C>(p, all, work);
    l.room = stages;
    int bytes = C::TABLE + stages * C::STAGE;
    warp_reserve(mvmr<C>, bytes);
    unsigned rows = (unsigned)((p.set.rows.most + ROWS - 1) / ROWS);
    for (int first = 0; first < all.whole; first += all.wide) {
        l.b = pnet_cuda_conv_blocks_part(all, first);
        warp_pack<C, false><<<(unsigned)l.b.count, THREADS, 0, pnet_cuda_stream()>>>(
            l.b, p, (unsigned char *)work);
        mvmr<C><<<dim3(rows, (unsigned)(p.groups.count * l.b.wide)), THREADS, (size_t)bytes,
            pnet_cuda_stream()>>>(l);
    }
}

template <conv_form FORM, class T> static void launch_columns(const conv_product &p, void *work)
{
    switch (pnet_cuda_conv_tiles_columns(p.groups.cout)) {
    case 128: launch<warp_config<FORM, T, 128>>(p, work); break;
    case 64: launch<warp_config<FORM, T, 64>>(p, work); break;
    default: launch<warp_config<FORM, T, 32>>(p, work); break;
    }
}

bool pnet_cuda_conv_has_warp(void)
{
    cudaFuncAttributes a;
    return cudaFuncGetAttributes(&a, mvmr<warp_config<CONV_SCALED, float, 32>>) == cudaSuccess &&
           a.sharedSizeBytes > 0;
}

void pnet_cuda_conv_warps_mvmr(
    const struct conv_product *sum, enum pnet_precision precision, void *work)
{
    warp_with_types(*sum, precision, [&](auto types) {
        using K = decltype(types);
        launch_columns<K::FORM, typename K::T>(*sum, work);
    });
}
