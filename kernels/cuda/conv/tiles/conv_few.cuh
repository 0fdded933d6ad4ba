/* MVMR of few rows. Tiles of such a layer would leave most of the GPU idle, so it is divided among kernel cells and input
   channels too. An item is 64 or 128 rows of a tile, a block of output columns and a range of units; a unit is FEW_DEPTH
   input channels of a kernel cell. Each warp gathers a slab of 16 rows and multiplies 64 rows by a quarter of the
   columns. Weights are not packed. The sums of ranges are added afterwards, in order. */
#ifndef PNET_KERNELS_CUDA_CONV_FEW_CUH
#define PNET_KERNELS_CUDA_CONV_FEW_CUH

#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/base/hopper.cuh"
#include "kernels/cuda/conv/conv_steps.cuh"
#include "kernels/cuda/base/early.cuh"

enum { FEW_DEPTH = CONV_FEW_DEPTH, FEW_STAGES = 3, FEW_LANE_ROWS = 4, FEW_AHEAD = 2 };

/* T: what features are stored as; operands are 16 bits. */
template <conv_form FORM_, class T_, int ROWS_, int COLUMNS_> struct few_config {
    static constexpr conv_form FORM = FORM_;
    using T = T_;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr bool BFLOAT = FORM == CONV_BFLOAT;
    static constexpr int THREADS = 2 * ROWS, SLABS = ROWS / 16,
                         GROUPS = ROWS / 64;                   /* of 4 warps, of 64 rows each */
    static constexpr int STEP = COLUMNS / 4, TILES = STEP / 8; /* columns of a warp */
    /* Bytes from row to row in shared memory, such that the lanes of a warp fall into different banks: gathered rows;
       weights as [DEPTH][COLUMNS] or, transposed, [COLUMNS][DEPTH]. */
    static constexpr int A_ROW = FEW_DEPTH * 2 + 16;
    static constexpr int B_ROW = COLUMNS * 4 + 16, B_TURNED = FEW_DEPTH * 4 + 32;
    static constexpr int A_BYTES = ROWS * A_ROW, B_BYTES = COLUMNS * B_TURNED;
    static_assert(FEW_DEPTH * B_ROW <= B_BYTES, "both forms fit");
    static constexpr int BYTES = FEW_STAGES * B_BYTES + 2 * A_BYTES;
    /* Blocks of threads of a processor. */
    static constexpr int AT_ONCE = GROUPS == 1 ? 3 : 2;
};

/* What a launch knows. */
struct few_launch {
    conv_product p;
    int deep, wide, splits;       /* blocks of channels of a group; ranges of units */
    float *partial;               /* [splits][rows][cout], or NULL: there is one range */
    bool wide_rows, wide_weights; /* 4 numbers can be read at once */
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Shared by the threads besides operands: the cells that an item has, and the rounds of each slab in them. */
template <class C> struct few_shared {
    uint16_t cell[CONV_FEW_CELLS], rounds[CONV_FEW_CELLS][C::SLABS];
    int cells;
};

struct few_item {
    int64_t row0;
    int group, column0, begin, end; /* units */
};

/* How a warp finds the runs of its slab (kernels/geometry.h, struct pnet_tiles): the words of the next cell. Lane 8 j + g
   has word g of round j. */
struct few_view {
    const int32_t *neighbour; /* slot 1 */
    const uint32_t *words;
    uint32_t word;
};

/* The runs of a slab in a cell. Lane 8 j + g has the neighbours of rows g and g + 8 in round j; -1 where there is none.
   */
struct few_runs {
    int rounds;
    const uint32_t *words;
    int low, high;
};

/* A unit: the index of its cell among those of the item, and the block of channels. */
struct few_unit {
    int c, k, deep, end;
};

template <class C> static __device__ __forceinline__ few_item item_of(const few_launch &l)
{
    int units = l.p.set.cells * l.deep;
    few_item i;
    i.row0 = (int64_t)blockIdx.z * C::ROWS;
    i.group = blockIdx.y / l.wide;
    i.column0 = blockIdx.y % l.wide * C::COLUMNS;
    i.begin = (int)((int64_t)units * blockIdx.x / l.splits);
    i.end = (int)((int64_t)units * (blockIdx.x + 1) / l.splits);
    return i;
}

static __device__ __forceinline__ int slab_of()
{
    return threadIdx.x / 32;
}

/* Collects the cells that the item has, in ascending order, and returns the view of the first. A dense product has one
   cell. */
template <class C>
static __device__ __forceinline__ few_view list_cells(
    few_shared<C> &m, const few_launch &l, const few_item &i, const pnet_tile *t)
{
    int lane = threadIdx.x % 32, slab = (int)(i.row0 % PNET_TILE_ROWS / 16) + slab_of(), found = 0;
    if (!l.p.set.start) {
        if (threadIdx.x == 0) m.cell[0] = 0, m.cells = 1;
        if (lane == 0) m.rounds[0][slab_of()] = 1;
        return {nullptr, nullptr, 0};
    }
    const uint32_t *list = l.p.set.tiles.list + t->at;
    const pnet_tile_cell *cells = (const pnet_tile_cell *)(list + (t->neighbours + 3) / 4 * 4);
    uint32_t mine = ((1u << C::GROUPS) - 1) << i.row0 % PNET_TILE_ROWS / 64, before = 0;
    int least = i.begin / l.deep, most = (i.end - 1) / l.deep;
    for (int c0 = 0; c0 < t->cells; c0 += 32) {
        bool there = c0 + lane < t->cells;
        const pnet_tile_cell &c = cells[min(c0 + lane, t->cells - 1)];
        int k = (int)c.cell;
        uint32_t rounds = c.rounds[slab];
        bool has = there && k >= least && k <= most && c.blocks & mine;
        uint32_t all = __ballot_sync(~0u, has);
        if (there && k < least) before += rounds;
        if (has) {
            int to = found + __popc(all & ((1u << lane) - 1));
            m.rounds[to][slab_of()] = (uint16_t)rounds;
            if (slab_of() == 0) m.cell[to] = (uint16_t)k;
        }
        found += __popc(all);
    }
    if (threadIdx.x == 0) m.cells = found;
    before = t->first[slab] + __reduce_add_sync(~0u, before);
    const uint32_t *words = (const uint32_t *)(cells + t->cells) + (int64_t)before * 8 + lane;
    __syncwarp();
    uint32_t first = found ? m.rounds[0][slab_of()] : 0;
    return {(const int32_t *)list, words, lane / 8 < first ? __ldg(words) : 0};
}

template <class C>
static __device__ __forceinline__ few_unit unit_at(
    const few_shared<C> &m, const few_launch &l, const few_item &i, int c)
{
    if (c >= m.cells) return {c, 0, 0, 0};
    int k = m.cell[c];
    return {c, k, max(0, i.begin - k * l.deep), min(l.deep, i.end - k * l.deep)};
}

template <class C>
static __device__ __forceinline__ few_unit unit_after(
    const few_shared<C> &m, const few_launch &l, const few_item &i, few_unit u)
{
    if (++u.deep == u.end) return unit_at(m, l, i, u.c + 1);
    return u;
}

static __device__ __forceinline__ int neighbour_of(const few_view &v, uint32_t slot)
{
    return slot ? __ldg(v.neighbour + slot - 1) : -1;
}

/* Loads the runs of the slab in cell number c, the one after that of the last call, and requests the words of the next
   cell. */
template <class C>
static __device__ __forceinline__ void find_runs(
    few_runs &r, few_view &v, const few_shared<C> &m, const few_launch &l, const few_item &i, int c)
{
    int lane = threadIdx.x % 32;
    r.rounds = m.rounds[c][slab_of()];
    if (!l.p.set.start) {
        int64_t row = i.row0 + slab_of() * 16 + lane, live = pnet_live(l.p.set.rows);
        r.low = lane < 8 && row < live ? (int)row : -1;
        r.high = lane < 8 && row + 8 < live ? (int)row + 8 : -1;
        return;
    }
    r.words = v.words;
    r.low = neighbour_of(v, v.word & 0xFFFF);
    r.high = neighbour_of(v, v.word >> 16);
    v.words += r.rounds * 8;
    v.word = c + 1 < m.cells && lane / 8 < m.rounds[c + 1][slab_of()] ? __ldg(v.words) : 0;
}

/* The same for rounds `first` to `first` + 3 of a run of more than four rounds. */
static __device__ __forceinline__ void find_more(few_runs &r, const few_view &v, int first)
{
    uint32_t word = first + threadIdx.x % 32 / 8 < r.rounds ? __ldg(r.words + first * 8) : 0;
    r.low = neighbour_of(v, word & 0xFFFF);
    r.high = neighbour_of(v, word >> 16);
}

/* Loads four channels of a row. 8 lanes share a row, so a warp loads four rows at once. */
template <class C>
static __device__ __forceinline__ stored<typename C::T, 4> row_load(
    const few_launch &l, const few_item &i, const few_unit &u, int64_t row)
{
    using T = typename C::T;
    int width = l.p.groups.cin, channel = u.deep * FEW_DEPTH + threadIdx.x % 8 * 4;
    const T *from = (const T *)l.p.in + row * l.p.cin + i.group * width + channel;
    stored<T, 4> x;
    if (l.wide_rows && channel + 4 <= width) return *(const stored<T, 4> *)from;
#pragma unroll
    for (int j = 0; j < 4; j++) x.at[j] = channel + j < width ? from[j] : T(0.0f);
    return x;
}

/* What a lane gathers: 4 channels of rows lane / 8, lane / 8 + 4, + 8 and + 12, of FEW_AHEAD rounds. */
template <class C> using few_portion = stored<typename C::T, 4>[FEW_AHEAD][FEW_LANE_ROWS];

/* Requests rounds `first` to `first` + FEW_AHEAD - 1; `runs` has the four rounds that these are among. */
template <class C>
static __device__ __forceinline__ void gather_begin(few_portion<C> &x, const few_runs &runs,
    int first, const few_launch &l, const few_item &i, const few_unit &u)
{
    using T = typename C::T;
#pragma unroll
    for (int j = 0; j < FEW_AHEAD; j++)
#pragma unroll
        for (int p = 0; p < FEW_LANE_ROWS; p++) {
            int lane = (first + j) % 4 * 8 + p % 2 * 4 + threadIdx.x % 32 / 8;
            int row = __shfl_sync(~0u, p < 2 ? runs.low : runs.high, lane);
            if (first + j < runs.rounds && row >= 0)
                x[j][p] = row_load<C>(l, i, u, row);
            else
                x[j][p] = {{T(0.0f), T(0.0f), T(0.0f), T(0.0f)}};
        }
}

/* Adds the remaining rounds of the runs, and stores the sums as operands. */
template <class C>
static __device__ __forceinline__ void gather_end(few_portion<C> &x, few_runs runs,
    const few_view &v, const few_launch &l, const few_item &i, const few_unit &u, uint32_t to)
{
    float sum[FEW_LANE_ROWS][4] = {};
#pragma unroll 1
    for (int first = 0;;) {
#pragma unroll
        for (int j = 0; j < FEW_AHEAD; j++)
#pragma unroll
            for (int p = 0; p < FEW_LANE_ROWS; p++)
#pragma unroll
                for (int e = 0; e < 4; e++) sum[p][e] += widen(x[j][p].at[e]);
        first += FEW_AHEAD;
        if (first >= runs.rounds) break;
        if (first % 4 == 0) find_more(runs, v, first);
        gather_begin<C>(x, runs, first, l, i, u);
    }
#pragma unroll
    for (int p = 0; p < FEW_LANE_ROWS; p++) {
        using S = typename std::conditional<C::BFLOAT, __nv_bfloat16, __half>::type;
        uint32_t at =
            to + (slab_of() * 16 + p * 4 + threadIdx.x % 32 / 8) * C::A_ROW + threadIdx.x % 8 * 8;
        shared_store(at, narrow_pair<S>(sum[p][0], sum[p][1]));
        shared_store(at + 4, narrow_pair<S>(sum[p][2], sum[p][3]));
    }
}

/* Copies the weights of a unit to shared memory; asynchronously where four numbers can be copied at once. */
template <class C>
static __device__ __forceinline__ void stage_weights(
    const few_launch &l, const few_item &i, const few_unit &u, uint32_t to)
{
    const conv_product &p = l.p;
    const conv_groups &g = p.groups;
    int channel0 = u.deep * FEW_DEPTH;
    if (!l.wide_weights) {
#pragma unroll 1
        for (int e = threadIdx.x; e < FEW_DEPTH * C::COLUMNS; e += C::THREADS) {
            int c = p.transposed ? e % FEW_DEPTH : e / C::COLUMNS,
                n = p.transposed ? e / FEW_DEPTH : e % C::COLUMNS;
            float w = conv_weight(p.weight, g, p.cin, p.cout, p.transposed, u.k, i.group,
                channel0 + c, i.column0 + n);
            shared_store(to + (p.transposed ? n * C::B_TURNED + c * 4 : c * C::B_ROW + n * 4),
                __float_as_uint(w));
        }
        return;
    }
    const float *from = p.weight;
    int c, n;
    if (p.transposed) {
        n = threadIdx.x / (FEW_DEPTH / 4), c = channel0 + threadIdx.x % (FEW_DEPTH / 4) * 4;
        from += ((int64_t)u.k * g.cout + i.column0 + n) * p.cin + i.group * g.cin + c;
        uint32_t at = to + n * C::B_TURNED + threadIdx.x % (FEW_DEPTH / 4) * 16;
        constexpr int NEXT = C::THREADS * 4 / FEW_DEPTH;
#pragma unroll
        for (int e = 0; e < C::COLUMNS; e += NEXT, at += NEXT * C::B_TURNED, from += NEXT * p.cin)
            copy16_or_zeros(at, from, p.weight, c < g.cin && i.column0 + n + e < g.cout);
    } else {
        c = threadIdx.x / (C::COLUMNS / 4), n = i.column0 + threadIdx.x % (C::COLUMNS / 4) * 4;
        from += ((int64_t)u.k * g.cin + channel0 + c) * p.cout + i.group * g.cout + n;
        uint32_t at = to + c * C::B_ROW + threadIdx.x % (C::COLUMNS / 4) * 16;
        constexpr int NEXT = C::THREADS * 4 / C::COLUMNS;
#pragma unroll
        for (int e = 0; e < FEW_DEPTH; e += NEXT, at += NEXT * C::B_ROW, from += NEXT * p.cout)
            copy16_or_zeros(at, from, p.weight, channel0 + c + e < g.cin && n < g.cout);
    }
}

/* The weights that a lane multiplies in a step of `depth` channels, in column n: those of channels 2 (lane % 4) and 2
   (lane % 4) + 1 and, with 16 channels, of 8 further. */
template <class C, bool TURNED>
static __device__ __forceinline__ float2 weight_pair(uint32_t stage, int channel, int n)
{
    if constexpr (TURNED) return shared_load_pair(stage + n * C::B_TURNED + channel * 4);
    uint32_t at = stage + channel * C::B_ROW + n * 4;
    return {
        __uint_as_float(shared_load_word(at)), __uint_as_float(shared_load_word(at + C::B_ROW))};
}

template <class C> using few_sums = float[4][C::TILES][4];

/* Multiplies a unit: 64 rows and STEP columns a warp. */
template <class C, bool TURNED>
static __device__ __forceinline__ void multiply(few_sums<C> &sum, uint32_t rows, uint32_t weights)
{
    using S = typename std::conditional<C::BFLOAT, __nv_bfloat16, __half>::type;
    int lane = threadIdx.x % 32, n0 = threadIdx.x / 32 % 4 * C::STEP + lane / 4;
    uint32_t row = rows + (threadIdx.x / 128 * 64 + lane % 16) * C::A_ROW + lane / 16 * 16;
#pragma unroll 1
    for (int s = 0; s < FEW_DEPTH; s += 16) {
        uint32_t b[C::TILES][2];
#pragma unroll
        for (int j = 0; j < C::TILES; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float2 w = weight_pair<C, TURNED>(weights, s + h * 8 + lane % 4 * 2, n0 + j * 8);
                b[j][h] = narrow_pair<S>(w.x, w.y);
            }
#pragma unroll
        for (int m = 0; m < 4; m++) {
            uint32_t a[4];
            load_matrices(a, row + m * 16 * C::A_ROW + s * 2);
#pragma unroll
            for (int j = 0; j < C::TILES; j++) step_short<C::BFLOAT>(sum[m][j], a, b[j]);
        }
    }
}

/* The place in the set of what is at a place of the item. Those that are not there come last. */
static __device__ __forceinline__ int64_t place_of(
    const few_launch &l, const few_item &i, int place)
{
    int64_t at = i.row0 + place, tile = at / PNET_TILE_ROWS;
    if (!l.p.set.start) return at;
    return tile * PNET_TILE_ROWS + __ldg(&l.p.set.tiles.tile[tile].row[at % PNET_TILE_ROWS]);
}

/* Calls f(m, j, h, row, column) for each pair of sums that a lane has, 2 h and 2 h + 1 of sum[m][j], if there is such a row. */
template <class C, class F>
static __device__ __forceinline__ void each_pair(const few_launch &l, const few_item &i, F f)
{
    int lane = threadIdx.x % 32, n0 = i.column0 + threadIdx.x / 32 % 4 * C::STEP + lane % 4 * 2,
        place0 = threadIdx.x / 128 * 64 + lane / 4;
    int64_t live = pnet_live(l.p.set.rows);
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int64_t row = place_of(l, i, place0 + m * 16 + h * 8);
            if (row >= live) continue;
            row = conv_row(l.p.set, row);
#pragma unroll
            for (int j = 0; j < C::TILES; j++)
                if (n0 + j * 8 < l.p.groups.cout) f(m, j, h, row, n0 + j * 8);
        }
}

/* Adds the bias to the accumulators and applies the activation; where the result is added to what is there, no activation
   follows. */
template <class C>
static __device__ __forceinline__ void finish_sums(
    const few_launch &l, const few_item &i, few_sums<C> &sum)
{
    const conv_end &e = l.p.end;
    if (e.bias)
        each_pair<C>(l, i, [&](int m, int j, int h, int64_t, int n) {
            const float *bias = e.bias + i.group * l.p.groups.cout + n;
            sum[m][j][2 * h] += bias[0];
            if (n + 1 < l.p.groups.cout) sum[m][j][2 * h + 1] += bias[1];
        });
    if (e.act == PNET_ACT_NONE || e.add) return;
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int j = 0; j < C::TILES; j++)
#pragma unroll
            for (int h = 0; h < 4; h++) sum[m][j][h] = conv_activate(sum[m][j][h], e.act, e.slope);
}

/* Writes sums to the rows of a matrix, or adds them to it. */
template <class C, class T>
static __device__ __forceinline__ void write_sums(
    const few_launch &l, const few_item &i, const few_sums<C> &sum, T *rows, bool add)
{
    int width = l.p.groups.cout, first = i.group * width;
    bool pairs = (l.p.cout | width) % 2 == 0;
    each_pair<C>(l, i, [&](int m, int j, int h, int64_t row, int n) {
        T *at = rows + row * l.p.cout + first + n;
        float x = sum[m][j][2 * h], y = sum[m][j][2 * h + 1];
        bool two = n + 1 < width;
        if (add) {
            x += widen(at[0]);
            if (two) y += widen(at[1]);
        }
        if (pairs) {
            float v[2] = {x, y};
            store_wide<2>(at, v);
        } else {
            narrow(x, at);
            if (two) narrow(y, at + 1);
        }
    });
}

/* Computes the rows of an item whose tile lists nothing, from the triplets. The first range of the item does it, for all
   cells. */
template <class C>
static __device__ __noinline__ void write_plain(const few_launch &l, const few_item &i)
{
    using T = typename C::T;
    const conv_product &p = l.p;
    const conv_set &s = p.set;
    int64_t live = pnet_live(s.rows);
#pragma unroll 1
    for (int e = threadIdx.x; e < C::ROWS * C::COLUMNS; e += C::THREADS) {
        int64_t place = place_of(l, i, e / C::COLUMNS);
        int column = i.column0 + e % C::COLUMNS, to = i.group * p.groups.cout + column;
        if (place >= live || column >= p.groups.cout) continue;
        int64_t row = conv_row(s, place);
        double sum = 0;
#pragma unroll 1
        for (int64_t n = s.start[place]; n < s.start[place + 1]; n++)
#pragma unroll 1
            for (int c = 0; c < p.groups.cin; c++)
                sum +=
                    (double)widen(((
                        const T *)p.in)[s.other[n] * (int64_t)p.cin + i.group * p.groups.cin + c]) *
                    (double)conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed, s.cell[n],
                        i.group, c, column);
        if (l.partial)
            l.partial[row * p.cout + to] = (float)sum;
        else
            conv_finish<T>(p.end, row, p.cout, to, (float)sum);
    }
}
#endif

template <class C>
static __global__ __launch_bounds__(C::THREADS, C::AT_ONCE) void few(
    const __grid_constant__ few_launch l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ few_shared<C> m;
    if ((int64_t)blockIdx.z * C::ROWS >= pnet_live(l.p.set.rows)) return;
    uint32_t weights = shared_base(memory), rows = weights + FEW_STAGES * C::B_BYTES;
    few_item item = item_of<C>(l);
    few_sums<C> sum = {};
    few_portion<C> x;
    few_runs runs = {}; /* of `next` */
    const pnet_tile *t = l.p.set.start ? l.p.set.tiles.tile + item.row0 / PNET_TILE_ROWS : nullptr;
    few_view view = list_cells<C>(m, l, item, t);
    wait_for_earlier(); /* waits for the features; geometry and weights were complete before the recording began */
    __syncthreads();
    int cells = m.cells;
    /* In turn t unit t is multiplied, the rows of unit t + 1 are gathered, and the weights of unit t + 2 are requested.
       */
    few_unit here = {}, next = {-1, 0, 0, 0}, then = unit_at<C>(m, l, item, 0);
    static_assert(FEW_STAGES == 3, "weights are asked for two turns ahead");
    for (int turn = -2; turn < 0 || here.c < cells; turn++) {
        copies_wait_but<FEW_STAGES - 2>();
        __syncthreads();
        if (then.c < cells)
            stage_weights<C>(l, item, then, weights + (turn + 2) % FEW_STAGES * C::B_BYTES);
        copies_commit();
        bool gathers = turn >= -1 && next.c < cells;
        if (gathers) gather_begin<C>(x, runs, 0, l, item, next);
        few_runs later = runs;
        if (then.c < cells && then.c != next.c) find_runs<C>(later, view, m, l, item, then.c);
        if (turn >= 0) {
            uint32_t a = rows + turn % 2 * C::A_BYTES, b = weights + turn % FEW_STAGES * C::B_BYTES;
            if (l.p.transposed)
                multiply<C, true>(sum, a, b);
            else
                multiply<C, false>(sum, a, b);
        }
        if (gathers)
            gather_end<C>(x, runs, view, l, item, next, rows + (turn + 1) % 2 * C::A_BYTES);
        runs = later;
        here = next;
        next = then;
        if (then.c < cells) then = unit_after<C>(m, l, item, then);
    }
    let_next_come();
    using T = typename C::T;
    if (t && t->neighbours < 0 && blockIdx.x == 0) {
        write_plain<C>(l, item);
    } else if (l.partial) {
        write_sums<C, float>(
            l, item, sum, l.partial + blockIdx.x * l.p.set.rows.most * l.p.cout, false);
    } else {
        finish_sums<C>(l, item, sum);
        write_sums<C, T>(l, item, sum, (T *)l.p.end.out, l.p.end.add);
    }
#else
    (void)l;
#endif
}

#endif
