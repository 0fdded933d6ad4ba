/* MVMR in any precision by matrix instructions of a warp (PTX ISA, mma.sync), for GPUs from architecture 80 on. A block of
   threads has 128 rows: half of a tile, in the order in which the tile has them, or rows one after the other where there
   are no tiles. It looks up what its rows gather in up to 28 kernel cells, and goes through these cells, some channels at
   a time: the rows that are gathered and the weights are copied to shared memory one or two steps ahead. A row that is
   gathered alone is copied as it is; runs of several are summed first. A warp has 16 or 32 rows; 16 rows without a cell
   are left out. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/conv/conv_steps.cuh"

#include <climits>
#include <type_traits>

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    ROWS = 128,
    SLABS = ROWS / 16,
    CELLS = 28,     /* looked up at once */
    ROW_BYTES = 128 /* of a stage */
};

/* FORM: how operands are multiplied. CONV_SPLIT, for fp32: as two numbers of tf32 each, three products; the sums of a step
   leave the matrix unit, which truncates them. CONV_SCALED: tf32. T: what features are stored as. */
template <conv_form FORM_, class T_, int COLUMNS_> struct warp_config {
    static constexpr conv_form FORM = FORM_;
    using T = T_;
    static constexpr int COLUMNS = COLUMNS_;
    static constexpr bool BFLOAT = FORM == CONV_BFLOAT, SPLIT = FORM == CONV_SPLIT,
                          FLOATS = SPLIT || FORM == CONV_SCALED;
    static constexpr int SIZE = FLOATS ? 4 : 2, UNIT = 16 / SIZE, STEP = 2 * UNIT;
    static constexpr bool STORED =
        sizeof(T) == SIZE; /* features are stored as they are multiplied */
    static constexpr int ROW_WARPS = COLUMNS == 32 ? 8 : 4, OWN = SLABS / ROW_WARPS,
                         WIDTH = COLUMNS / (WARPS / ROW_WARPS), EIGHTS = WIDTH / 8;
    static constexpr int A_BYTES = ROWS * ROW_BYTES, B_STEP = COLUMNS * 32, B_BYTES = 4 * B_STEP,
                         STAGE = A_BYTES + B_BYTES, TABLE = CELLS * ROWS * 4;
};

struct warp_launch {
    conv_product p;
    conv_blocks b;
    const unsigned char *blocks;
    int stages;
    bool copies; /* rows can be copied 16 bytes at a time */
    bool units;  /* rows can be written 8 channels at a time */
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
    int64_t first, row0;       /* triplet, place of the tile */
    int row[ROWS], last[ROWS]; /* -1: none; the end of its triplets, from the first */
    int cell[CELLS];
    uint32_t mask[32]; /* slabs that have a cell */
    int begin[CELLS][SLABS];
    uint16_t rounds[CELLS][SLABS];
    int least[WARPS];
};

/* The list of the tile that a block has half of; none: `neighbours` is -1, and triplets are read. */
struct block_list {
    const int32_t *others; /* by slot */
    const pnet_tile_cell *cells;
    const uint32_t *rounds;
    int neighbours, count; /* of cells */
};

static __device__ __forceinline__ block_list list_of(const conv_set &s)
{
    block_list l = {nullptr, nullptr, nullptr, -1, 0};
    if (!s.tiles.tile) return l;
    const pnet_tile &t = s.tiles.tile[blockIdx.x / 2];
    const uint32_t *list = s.tiles.list + t.at;
    l.neighbours = t.neighbours;
    l.count = t.cells;
    l.others = (const int32_t *)list - 1;
    l.cells = (const pnet_tile_cell *)(list + (max(t.neighbours, 0) + 3) / 4 * 4);
    l.rounds = (const uint32_t *)(l.cells + l.count);
    return l;
}

static __device__ __forceinline__ int block_least(block_rows &r, int x)
{
    x = __reduce_min_sync(~0u, x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) r.least[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < WARPS; w++) x = min(x, r.least[w]);
    return x;
}

/* The triplets that a row has left; those of threads without a row are none. Of a tile with a list: `at`, in the first
   threads, is the next round of a slab. */
struct row_left {
    int64_t at, last;
};

static __device__ __forceinline__ row_left find_rows(
    block_rows &r, const conv_set &s, const block_list &l)
{
    int64_t live = pnet_live(s.rows), tile = blockIdx.x / 2;
    int place = blockIdx.x % 2 * ROWS + threadIdx.x;
    bool listed = l.neighbours >= 0;
    row_left left = {0, 0};
    if (threadIdx.x == 0) {
        r.row0 = tile * PNET_TILE_ROWS;
        r.first = r.row0 < live && !listed ? conv_start(s, r.row0) : 0;
    }
    __syncthreads();
    if (threadIdx.x < ROWS) {
        int in_tile = s.tiles.tile ? s.tiles.tile[tile].row[place] : place;
        int64_t at = r.row0 + in_tile;
        r.row[threadIdx.x] = at < live ? (int)conv_row(s, at) : -1;
        if (at < live && !listed) left = {conv_start(s, at), conv_start(s, at + 1)};
        r.last[threadIdx.x] = (int)(left.last - r.first);
    }
    if (listed && threadIdx.x < SLABS)
        left.at = s.tiles.tile[tile].first[blockIdx.x % 2 * SLABS + threadIdx.x];
    __syncthreads();
    return left;
}

/* Fills table[cell][row]: -1 without a triplet, the row to gather, or -2 - the first triplet of a run of several. False: no row
   has triplets left. */
static __device__ __forceinline__ bool look_up_triplets(
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

/* The same from the list of a tile, from its cell `done` on: -2 stands for a run of several, whose rounds are in `begin` and
   `rounds`. */
static __device__ __forceinline__ bool look_up_list(
    block_rows &r, int (*table)[ROWS], const block_list &l, row_left &left, int done)
{
    int count = min(l.count - done, (int)CELLS), slab0 = blockIdx.x % 2 * SLABS;
    if (count <= 0) return false;
    __syncthreads(); /* the table is no longer read */
    for (int i = threadIdx.x; i < CELLS * SLABS; i += THREADS)
        r.rounds[i / SLABS][i % SLABS] =
            i / SLABS < count ? l.cells[done + i / SLABS].rounds[slab0 + i % SLABS] : 0;
    if (threadIdx.x < CELLS)
        r.cell[threadIdx.x] = (int)threadIdx.x < count ? (int)l.cells[done + threadIdx.x].cell : 0;
    __syncthreads();
    if (threadIdx.x < SLABS)
        for (int c = 0; c < CELLS; c++) {
            r.begin[c][threadIdx.x] = (int)left.at;
            left.at += r.rounds[c][threadIdx.x];
        }
    if (threadIdx.x >= 32 && threadIdx.x < 64) {
        uint32_t mask = 0;
        int c = threadIdx.x - 32;
        for (int s = 0; s < SLABS && c < CELLS; s++) mask |= (uint32_t)(r.rounds[c][s] > 0) << s;
        r.mask[c] = mask;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < CELLS * ROWS / 2 / THREADS; i++) {
        int at = i * THREADS + threadIdx.x, c = at / (ROWS / 2), slab = at / 8 % SLABS, g = at % 8;
        int rounds = r.rounds[c][slab], entry[2] = {-1, -1};
        const uint32_t *word = l.rounds + (int64_t)r.begin[c][slab] * 8 + g;
        if (rounds > 0) {
            uint32_t now = __ldg(word), next = rounds > 1 ? __ldg(word + 8) : 0;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int slot = now >> 16 * h & 0xffff;
                if (slot) entry[h] = next >> 16 * h & 0xffff ? -2 : __ldg(l.others + slot);
            }
        }
        table[c][slab * 16 + g] = entry[0];
        table[c][slab * 16 + g + 8] = entry[1];
    }
    __syncthreads();
    return true;
}

/* Adds channels c, c + 1, .. of a row to x. */
template <class C>
static __device__ __forceinline__ void add_unit(
    float (&x)[C::UNIT], const warp_launch &l, const typename C::T *from, int width)
{
    using T = typename C::T;
    if (l.copies) {
        constexpr int AT_ONCE = C::UNIT < WIDEST<T> ? C::UNIT : WIDEST<T>;
        float y[C::UNIT];
#pragma unroll
        for (int i = 0; i < C::UNIT; i += AT_ONCE) load_wide<AT_ONCE>(from + i, y + i);
#pragma unroll
        for (int i = 0; i < C::UNIT; i++) x[i] += y[i];
    } else {
#pragma unroll
        for (int i = 0; i < C::UNIT; i++) x[i] += i < width ? widen(from[i]) : 0;
    }
}

/* A unit of channels of a run, rounded once: from channel c of a group on. `v`: of the table. */
template <class C>
static __device__ __forceinline__ uint4 sum_unit(const warp_launch &l, const block_rows &r,
    const block_list &list, int place, int cell, int v, const typename C::T *in, int c)
{
    enum { AT_ONCE = 2 };
    const conv_set &s = l.p.set;
    float x[C::UNIT] = {};
    int width = min(C::UNIT, l.p.groups.cin - c);
    if (v == -1 || width <= 0) return {};
    in += c;
    if (v >= 0) {
        add_unit<C>(x, l, in + (int64_t)v * l.p.cin, width);
    } else if (list.neighbours >= 0) {
        int slab = place / 16, row = place % 16, rounds = r.rounds[cell][slab];
        const uint16_t *slot = /* of the row, by round */
            (const uint16_t *)(list.rounds + (int64_t)r.begin[cell][slab] * 8) + row % 8 * 2 +
            row / 8;
        for (int n = 0; n < rounds; n += AT_ONCE) {
            int other[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                int at = n + i < rounds ? __ldg(slot + (n + i) * 16) : 0;
                other[i] = at ? __ldg(list.others + at) : -1;
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                if (other[i] >= 0) add_unit<C>(x, l, in + (int64_t)other[i] * l.p.cin, width);
            if (other[AT_ONCE - 1] < 0) break;
        }
    } else {
        int64_t n = r.first + (-2 - v), last = r.first + r.last[place];
        for (int k = r.cell[cell]; n < last && conv_cell(s, n) == k; n++)
            add_unit<C>(x, l, in + conv_other(s, n) * l.p.cin, width);
    }
    if constexpr (C::FLOATS) {
        return {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
            __float_as_uint(x[3])};
    } else {
        using H = typename std::conditional<C::BFLOAT, __nv_bfloat16, __half>::type;
        return {narrow_pair<H>(x[0], x[1]), narrow_pair<H>(x[2], x[3]), narrow_pair<H>(x[4], x[5]),
            narrow_pair<H>(x[6], x[7])};
    }
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
    const block_list &list, int (*table)[ROWS], const cell_walk &w, int group, int wide,
    uint32_t stage)
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
            sum_unit<C>(l, r, list, place, w.cell, table[w.cell][place], in, c));
    }
}

/* Splits a float32 into two numbers of tf32. */
static __device__ __forceinline__ void split_float(uint32_t x, uint32_t &high, uint32_t &low)
{
    high = float_to_tf32(__uint_as_float(x));
    low = float_to_tf32(__uint_as_float(x) - __uint_as_float(high));
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

template <class C>
static __device__ __forceinline__ void write_sums(const warp_launch &l, const block_rows &r,
    float (&sum)[C::OWN][C::EIGHTS][4], int group, int wide)
{
    using T = typename C::T;
    const conv_end &e = l.p.end;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, cout = l.p.groups.cout;
#pragma unroll
    for (int s = 0; s < C::OWN; s++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t row = r.row[(warp % C::ROW_WARPS * C::OWN + s) * 16 + half * 8 + lane / 4];
            if (row < 0) continue;
#pragma unroll
            for (int n = 0; n < C::EIGHTS / 4; n++) {
                int c = wide * C::COLUMNS + warp / C::ROW_WARPS * C::WIDTH + n * 32 + lane % 4 * 8,
                    to = group * cout + c;
                float v[8];
#pragma unroll
                for (int i = 0; i < 8; i++) v[i] = sum[s][n * 4 + i / 2][half * 2 + i % 2];
                if (c >= cout) continue;
                if (!l.units) {
#pragma unroll
                    for (int i = 0; i < 8; i++)
                        if (c + i < cout) conv_finish<T>(e, row, l.p.cout, to + i, v[i]);
                    continue;
                }
                T *out = (T *)e.out + row * l.p.cout + to;
                if (e.bias)
#pragma unroll
                    for (int i = 0; i < 8; i++) v[i] += e.bias[to + i];
#pragma unroll
                for (int i = 0; i < 8; i += WIDEST<T>) {
                    float old[WIDEST<T>];
                    if (e.add) load_wide<WIDEST<T>>(out + i, old);
#pragma unroll
                    for (int j = 0; j < WIDEST<T>; j++)
                        v[i + j] =
                            e.add ? old[j] + v[i + j] : conv_activate(v[i + j], e.act, e.slope);
                    store_wide<WIDEST<T>>(out + i, v + i);
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
    if ((int64_t)(blockIdx.x / 2) * PNET_TILE_ROWS >= pnet_live(l.p.set.rows)) return;
    block_list list = list_of(l.p.set);
    row_left left = find_rows(r, l.p.set, list);
    for (int done = 0; list.neighbours >= 0 ? look_up_list(r, table, list, left, done)
                                            : look_up_triplets(r, table, l.p.set, left);
         done += CELLS) {
        uint32_t active = __ballot_sync(~0u, r.mask[threadIdx.x % 32] != 0);
        cell_walk ahead = {active, -1, 0, l.b.deep}, here = ahead;
        int to = 0, at = 0;
        for (int i = 0; i < l.stages - 1; i++, to++) {
            if (ahead.next())
                copy_step<C>(l, r, list, table, ahead, group, wide, stages + to * C::STAGE);
            copies_commit();
        }
        while (here.next()) {
            if (l.stages == 2)
                copies_wait_but<0>();
            else
                copies_wait_but<1>();
            __syncthreads();
            if (ahead.next())
                copy_step<C>(l, r, list, table, ahead, group, wide, stages + to * C::STAGE);
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
            to = to + 1 == l.stages ? 0 : to + 1;
            at = at + 1 == l.stages ? 0 : at + 1;
        }
        copies_wait_but<0>();
    }
    write_sums<C>(l, r, sum, group, l.b.first + wide);
#else
    (void)l;
#endif
}

/* Weights in the order in which lanes read them: 16 channels, or 8 in float32, of 16 columns a time, 16 bytes a lane. */
template <class C>
static __global__ __launch_bounds__(THREADS) void pack(
    conv_blocks b, conv_product p, unsigned char *blocks)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    int64_t id = blockIdx.x, cell = id / b.wide / b.deep;
    int wide = b.first + (int)(id % b.wide), deep = (int)(id / b.wide % b.deep),
        group = (int)(cell % p.groups.count);
    int64_t k = cell / p.groups.count;
    uint4 *to = (uint4 *)(blocks + id * b.bytes);
    for (int i = threadIdx.x; i < (int)(b.bytes / 16); i += THREADS) {
        int lane = i % 32, sixteen = i / 32 % (C::COLUMNS / 16), step = i / 32 / (C::COLUMNS / 16);
        uint32_t w[4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            int n = wide * C::COLUMNS + conv_column_at(sixteen * 16 + r / 2 * 8 + lane / 4);
            int c = deep * b.depth + step * C::STEP + r % 2 * C::UNIT + lane % 4 * (4 / C::SIZE);
            auto weight = [&](int i) {
                return conv_weight(
                    p.weight, p.groups, p.cin, p.cout, p.transposed, k, group, c + i, n);
            };
            if constexpr (C::SPLIT)
                w[r] = __float_as_uint(weight(0));
            else if constexpr (C::FLOATS)
                w[r] = float_to_tf32(weight(0));
            else
                w[r] =
                    narrow_pair<typename std::conditional<C::BFLOAT, __nv_bfloat16, __half>::type>(
                        weight(0), weight(1));
        }
        to[i] = {w[0], w[1], w[2], w[3]};
    }
#else
    (void)b, (void)p, (void)blocks;
#endif
}

template <class C> static void launch(const conv_product &p, void *work)
{
    using T = typename C::T;
    int device = 0, processor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    conv_blocks all = pnet_cuda_conv_warp_blocks(C::FORM, p.set.cells, &p.groups);
    int reserved = 1024 + 3 * 1024; /* of the system, and what is declared */
    int stages = 2 * (C::TABLE + 3 * C::STAGE + reserved) <= processor ? 3 : 2;
    warp_launch l = {p, all, (const unsigned char *)work, stages, false, false};
    l.copies = fits<T, WIDEST<T>>(p.cin, p.in) && p.groups.cin % (16 / (int)sizeof(T)) == 0 &&
               p.groups.cin % C::UNIT == 0;
    l.units = fits<T, WIDEST<T>>(p.cout, p.end.out) && (p.cout | p.groups.cout) % 8 == 0;
    int bytes = C::TABLE + stages * C::STAGE;
    cudaFuncSetAttribute(mvmr<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    unsigned tiles = (unsigned)((p.set.rows.most + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS);
    for (int first = 0; first < all.whole; first += all.wide) {
        l.b = pnet_cuda_conv_blocks_part(all, first);
        pack<C><<<(unsigned)l.b.count, THREADS, 0, pnet_cuda_stream()>>>(
            l.b, p, (unsigned char *)work);
        mvmr<C><<<dim3(2 * tiles, (unsigned)(p.groups.count * l.b.wide)), THREADS, (size_t)bytes,
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
    const conv_product &p = *sum;
    bool stored = p.set.rows.storage != PNET_STORE_F32; /* as operands are */
    if (p.set.rows.most == 0) return;
    switch (pnet_cuda_conv_form_of(precision)) {
    case CONV_SPLIT: launch_columns<CONV_SPLIT, float>(p, work); break;
    case CONV_SCALED: launch_columns<CONV_SCALED, float>(p, work); break;
    case CONV_BFLOAT:
        stored ? launch_columns<CONV_BFLOAT, __nv_bfloat16>(p, work)
               : launch_columns<CONV_BFLOAT, float>(p, work);
        break;
    case CONV_HALF:
        stored ? launch_columns<CONV_HALF, __half>(p, work)
               : launch_columns<CONV_HALF, float>(p, work);
        break;
    case CONV_TILE_SCALED: break;
    }
}
