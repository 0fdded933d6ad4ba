/* MVMR from tiles by matrix instructions of a warp (PTX ISA, mma.sync), in any precision, for GPUs from architecture 80 on. A
   block of threads has a tile. It copies the tile's neighbours to shared memory, up to 128 bytes of each at a time, and goes
   through the tile's cells: each of 8 or 16 warps sums the runs of its two slabs, or of its one, from the neighbours, straight
   into the registers of the operands, and multiplies them by the weights, which the warps in turn copy to shared memory some
   cells ahead. Where there are few tiles, several blocks of threads share the cells of one, and a second kernel adds their sums
   in order. */
#include "kernels/cuda/conv/tiles/conv_tiles_portion.cuh"
#include "kernels/cuda/conv/warps/conv_warps.cuh"

enum {
    RING = 4,     /* blocks of weights that have room */
    AHEAD = 2,    /* of them, copied before they are multiplied */
    ADDING = 256, /* threads of a block that adds sums */
    AT_FULL = 0,  /* barriers, in bytes of shared memory */
    AT_EMPTY = AT_FULL + RING * 8,
    AT_RING = 128
};

/* PIECES: of 64 bytes, of a staged row. */
template <conv_form FORM, class T, int COLUMNS, int PIECES_>
struct tile_operands : warp_operands<FORM, T, COLUMNS> {
    using base = warp_operands<FORM, T, COLUMNS>;
    static constexpr int PIECES = PIECES_, STAGED = PIECES * 64, UNITS = PIECES * 4;
    static constexpr bool SCALED = base::FLOATS; /* for conv_tiles_portion.cuh */
    /* Slabs of a warp. With one slab of 64 columns, a processor has 16 warps whose sums fit into registers, and they stage
       neighbours once; two blocks of threads with two slabs each stage them twice, and have half the room. */
    static constexpr int OWN = COLUMNS == 64 ? 1 : 2, WARPS = 16 / OWN, THREADS = WARPS * 32;
    static constexpr int ROW_WARPS = WARPS, WIDTH = COLUMNS, EIGHTS = COLUMNS / 8,
                         SIXTEENS = COLUMNS / 16, STEPS = 2 * PIECES;
    /* bytes of weights of a cell; those of CONV_SPLIT are split already */
    static constexpr int PLANE = STEPS * base::B_STEP, BLOCK = base::SPLIT ? 2 * PLANE : PLANE;
    static constexpr int BLOCKS = COLUMNS >= 64 ? 1 : 2; /* of threads, of a processor */
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* The list of a tile. Registers are scarce where tiles are multiplied: what follows from the rest is computed again. */
struct tile_list {
    const pnet_tile_cell *cells;
    int neighbours, count; /* -1: no list; of cells */
};

static __device__ __forceinline__ tile_list list_of(const conv_set &s)
{
    const pnet_tile &t = s.tiles.tile[blockIdx.x];
    const uint32_t *list = s.tiles.list + t.at + (max(t.neighbours, 0) + 3) / 4 * 4;
    return {(const pnet_tile_cell *)list, t.neighbours, t.cells};
}

static __device__ __forceinline__ const int32_t *neighbours_of(const tile_list &t)
{
    return (const int32_t *)t.cells - (t.neighbours + 3) / 4 * 4;
}

/* Neighbours that are staged; others are read from global memory. */
static __device__ __forceinline__ int staged_of(const warp_launch &l, const tile_list &t)
{
    return min(t.neighbours, l.room - 1);
}

/* What a block of threads multiplies: cells of the tile's list for each block of channels, one block of channels after the
   other. Those before `first` and from `end` on are for others. */
struct tile_part {
    int first, end;
};

static __device__ __forceinline__ tile_part part_of(const warp_launch &l, const tile_list &t)
{
    int64_t all = (int64_t)t.count * l.b.deep;
    return {(int)(all * blockIdx.z / gridDim.z), (int)(all * (blockIdx.z + 1) / gridDim.z)};
}

/* The weights of a part. The warps take turns: each copies those of every 8th or 16th cell, AHEAD cells before they are
   multiplied. Places of the part are counted from the tile's first cell with the first block of channels on. */
struct weight_feed {
    int end;       /* of the part */
    uint32_t cell; /* kernel cell of the warp's next turn */
};

/* Reads which kernel cell a place is, long before its weights are copied. */
static __device__ __forceinline__ void feed_ask(weight_feed &f, const tile_list &t, int at)
{
    if (at < f.end) f.cell = __ldg(&t.cells[at % t.count].cell);
}

/* Copies the weights of a place if it is the warp's turn. `turn` counts the copies of the block of threads. */
template <class C>
static __device__ __forceinline__ void feed_weights(weight_feed &f, const warp_launch &l,
    const tile_list &t, uint32_t shared, int group, int wide, int at, uint32_t turn)
{
    if (turn % C::WARPS != threadIdx.x / 32 || at >= f.end) return;
    int lane = threadIdx.x % 32;
    int64_t block =
        (((int64_t)f.cell * l.p.groups.count + group) * l.b.deep + at / t.count) * l.b.wide + wide;
    uint32_t place = turn % RING, to = shared + AT_RING + place * C::BLOCK + lane * 16;
    const unsigned char *from = l.blocks + block * C::BLOCK + lane * 16;
    if (turn >= RING) barrier_wait(shared + AT_EMPTY + place * 8, (turn / RING - 1) & 1);
#pragma unroll 8
    for (int i = 0; i < C::BLOCK; i += 512) copy16(to + i, from + i);
    barrier_arrive_copies(shared + AT_FULL + place * 8);
    feed_ask(f, t, at + C::WARPS);
}

/* Stages 64 or 128 bytes of each neighbour, from slot 1 on. */
template <class C>
static __device__ __forceinline__ void stage_neighbours(
    const warp_launch &l, const tile_list &t, uint32_t stage, int group, int deep)
{
    using T = typename C::T;
    constexpr int ROWS = C::THREADS / C::UNITS, AT_ONCE = 8;
    int unit = threadIdx.x % C::UNITS, c = deep * l.b.depth + unit * C::UNIT,
        width = min(C::UNIT, l.p.groups.cin - c), staged = staged_of(l, t);
    const int32_t *neighbour = neighbours_of(t);
    const T *in = (const T *)l.p.in + group * l.p.groups.cin + (width > 0 ? c : 0);
    uint32_t to = stage + unit * 16;
    if (threadIdx.x < C::UNITS) shared_store(to, uint4{0, 0, 0, 0});
    for (int i0 = threadIdx.x / C::UNITS; i0 < staged; i0 += ROWS * AT_ONCE) {
        int row[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            row[j] = __ldg(neighbour + min(i0 + j * ROWS, staged - 1));
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            int i = i0 + j * ROWS;
            const T *from = in + (int64_t)row[j] * l.p.cin;
            if (i >= staged) continue;
            if (C::STORED && l.copies) {
                copy16_any(to + (i + 1) * C::STAGED, from, width > 0);
            } else {
                float x[C::UNIT] = {};
                if (width > 0) add_unit<C>(x, l, from, width);
                shared_store(to + (i + 1) * C::STAGED, unit_of<C>(x));
            }
        }
    }
    copies_wait();
}

/* The slow path: sums a run in float32, and reads neighbours that are not staged from global memory. Word r of piece p goes to
   sum[8 p + r] for the first row and to sum[8 p + 4 + r] for the other. `words`: the lane's word of the first round, from the
   tile's cells on. The caller must leave the registers that this function takes: so it sums a word at a time. */
template <class C>
static __device__ __noinline__ void sum_slowly(uint32_t *sum, const warp_launch &l,
    const tile_list &t, uint32_t stage, int first, uint32_t words, int rounds)
{
    using T = typename C::T;
    constexpr int CHANNELS = 4 / C::SIZE; /* of a word */
    int lane = threadIdx.x % 32, odd = C::PIECES > 1 ? lane / 4 % 2 : 0;
#pragma unroll 1
    for (int i = 0; i < 8 * C::PIECES; i++) {
        int c = ((i / 8 ^ odd) * 4 + lane % 4) * C::UNIT + i % 4 * CHANNELS;
        uint32_t from = (stage ^ i / 8 * 64) + i % 4 * 4;
        float x = 0, y = 0;
#pragma unroll 1
        for (int n = 0; n < rounds; n++) {
            uint32_t slot = __ldg((const uint32_t *)t.cells + words + n * 8) >> i / 4 % 2 * 16 &
                            0xFFFF,
                     v;
            if ((int)slot < l.room) {
                v = shared_load_word(from + slot * C::STAGED);
            } else { /* rounded as if it were staged */
                const T *in =
                    (const T *)l.p.in + (int64_t)__ldg(neighbours_of(t) + slot - 1) * l.p.cin;
                int at = first % l.p.groups.cin + c;
                float u = at < l.p.groups.cin ? widen(in[first + c]) : 0,
                      w = CHANNELS > 1 && at + 1 < l.p.groups.cin ? widen(in[first + c + 1]) : 0;
                v = C::FLOATS ? __float_as_uint(u) : narrow_pair<typename C::short_t>(u, w);
            }
            if constexpr (C::FLOATS) {
                x += __uint_as_float(v);
            } else {
                float2 pair = widen_pair<typename C::short_t>(v);
                x += pair.x;
                y += pair.y;
            }
        }
        sum[i] = C::FLOATS ? __float_as_uint(x) : narrow_pair<typename C::short_t>(x, y);
    }
}

/* The runs of a slab, one cell after the other. The words of a run are asked for before the run in front of it is summed and
   multiplied. Lane 4 g + q has word g of rounds q and q + 4. */
struct slab_runs {
    uint32_t at;   /* the lane's word of the run that was asked for: from the tile's cells on */
    uint32_t next; /* that word */
};

static __device__ __forceinline__ void ask_run(slab_runs &s, const tile_list &t, uint32_t rounds)
{
    s.next = threadIdx.x % 4 < rounds ? __ldg((const uint32_t *)t.cells + s.at) : 0;
}

/* Sums the run of `rounds` rounds that was asked for, and asks for the one of `then` rounds that follows. */
template <class C>
static __device__ __forceinline__ void sum_run(tile_portion<C> &sum, slab_runs &s,
    const warp_launch &l, const tile_list &t, uint32_t stage, int group, int deep, uint32_t rounds,
    uint32_t then)
{
    uint32_t first = s.next, second = 0, own = s.at;
    if (threadIdx.x % 4 + 4 < rounds) second = __ldg((const uint32_t *)t.cells + s.at + 32);
    s.at += rounds * 8;
    ask_run(s, t, then);
    if (!rounds) return;
    bool slow = rounds > TILE_LONG;
    if (t.neighbours >= l.room) { /* some are not there */
        uint32_t most = __vmaxu2(first, second);
        slow |= __any_sync(~0u, (int)max(most & 0xFFFF, most >> 16) >= l.room);
    }
    if (slow) {
        uint32_t x[8 * C::PIECES];
        sum_slowly<C>(x, l, t, stage, group * l.p.groups.cin + deep * l.b.depth,
            own - threadIdx.x % 4 * 8, (int)rounds);
#pragma unroll
        for (int i = 0; i < 8 * C::PIECES; i++) sum[i / 4 % 2][i / 8][i % 4] = x[i];
        return;
    }
    uint32_t word = __shfl_sync(~0u, first, 0, 4);
    load_row<C>(sum[0], stage + (word & 0xFFFF) * C::STAGED);
    load_row<C>(sum[1], stage + (word >> 16) * C::STAGED);
#pragma unroll 1
    for (uint32_t i = 1; i < rounds; i++) {
        tile_portion<C> x;
        word = __shfl_sync(~0u, i < 4 ? first : second, i % 4, 4);
        load_row<C>(x[0], stage + (word & 0xFFFF) * C::STAGED);
        load_row<C>(x[1], stage + (word >> 16) * C::STAGED);
        add_row<C>(sum[0], x[0]);
        add_row<C>(sum[1], x[1]);
    }
}

/* The operands of a step: half of a piece of two rows. */
template <class C>
static __device__ __forceinline__ void step_operands(
    uint32_t (&a)[4], const tile_portion<C> &sum, int step)
{
    constexpr int LAST = C::PIECES - 1;
    bool odd = threadIdx.x / 4 % 2;
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int word = step % 2 * 2 + h, piece = step / 2;
            a[2 * h + r] = odd ? sum[r][piece ^ LAST][word] : sum[r][piece][word];
        }
}

/* sum += runs times the weights of a cell, each as two numbers of tf32. SLABS: which of the two the cell has. */
template <class C, int SLABS>
static __device__ __forceinline__ void multiply_split(
    float (&sum)[C::OWN][C::EIGHTS][4], const tile_portion<C> (&run)[C::OWN], uint32_t weights)
{
    uint32_t high[C::STEPS][C::OWN][4], low[C::STEPS][C::OWN][4];
#pragma unroll
    for (int step = 0; step < C::STEPS; step++)
#pragma unroll
        for (int s = 0; s < C::OWN; s++) {
            if (!(SLABS >> s & 1)) continue;
            uint32_t a[4];
            step_operands<C>(a, run[s], step);
#pragma unroll
            for (int i = 0; i < 4; i++) split_float(a[i], high[step][s][i], low[step][s][i]);
        }
#pragma unroll
    for (int n = 0; n < C::SIXTEENS; n++) {
        float part[C::OWN][2][4] = {};
#pragma unroll
        for (int step = 0; step < C::STEPS; step++) {
            uint32_t from = weights + step * C::B_STEP + n * 512;
            uint4 b_high = shared_load(from), b_low = shared_load(from + C::PLANE);
            uint32_t b[2][4] = {
                {b_high.x, b_high.y, b_high.z, b_high.w}, {b_low.x, b_low.y, b_low.z, b_low.w}};
#pragma unroll
            for (int term = 0; term < 3; term++) /* small terms first */
#pragma unroll
                for (int s = 0; s < C::OWN; s++)
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        if (!(SLABS >> s & 1)) continue;
                        const uint32_t(&w)[4] = b[term == 1];
                        step_float(part[s][h], term == 0 ? low[step][s] : high[step][s], w[2 * h],
                            w[2 * h + 1]);
                    }
        }
#pragma unroll
        for (int s = 0; s < C::OWN; s++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (SLABS >> s & 1) sum[s][2 * n + i / 4][i % 4] += part[s][i / 4][i % 4];
    }
}

/* The same in the other forms. */
template <class C, int SLABS>
static __device__ __forceinline__ void multiply_plain(
    float (&sum)[C::OWN][C::EIGHTS][4], const tile_portion<C> (&run)[C::OWN], uint32_t weights)
{
    uint4 next = shared_load(weights);
#pragma unroll
    for (int step = 0; step < C::STEPS; step++) {
        uint32_t a[C::OWN][4];
#pragma unroll
        for (int s = 0; s < C::OWN; s++) {
            if (!(SLABS >> s & 1)) continue;
            step_operands<C>(a[s], run[s], step);
            if constexpr (C::FLOATS)
#pragma unroll
                for (int i = 0; i < 4; i++) a[s][i] = float_to_tf32(__uint_as_float(a[s][i]));
        }
#pragma unroll
        for (int n = 0; n < C::SIXTEENS; n++) {
            uint32_t b[4] = {next.x, next.y, next.z, next.w};
            int ahead = step * C::SIXTEENS + n + 1;
            if (ahead < C::STEPS * C::SIXTEENS) next = shared_load(weights + ahead * 512);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int s = 0; s < C::OWN; s++) {
                    if (!(SLABS >> s & 1)) continue;
                    float(&d)[4] = sum[s][2 * n + h];
                    uint32_t pair[2] = {b[2 * h], b[2 * h + 1]};
                    if constexpr (C::FLOATS)
                        step_float(d, a[s], pair[0], pair[1]);
                    else
                        step_short<C::BFLOAT>(d, a[s], pair);
                }
        }
    }
}

template <class C, int SLABS>
static __device__ __forceinline__ void multiply_cell(
    float (&sum)[C::OWN][C::EIGHTS][4], const tile_portion<C> (&run)[C::OWN], uint32_t weights)
{
    weights += threadIdx.x % 32 * 16;
    if constexpr (C::SPLIT)
        multiply_split<C, SLABS>(sum, run, weights);
    else
        multiply_plain<C, SLABS>(sum, run, weights);
}

/* The rounds that the warp's slabs have in a cell: those of the first slab in the lower half. */
template <class C> static __device__ __forceinline__ uint32_t rounds_in(const pnet_tile_cell &cell)
{
    return C::OWN == 2 ? __ldg((const uint32_t *)cell.rounds + threadIdx.x / 32)
                       : __ldg(cell.rounds + threadIdx.x / 32);
}

static __device__ __forceinline__ uint32_t rounds_of(uint32_t both, int slab)
{
    return slab ? both >> 16 : both & 0xFFFF;
}

/* Moves the warp's slabs from the first cell of the list to cell c. */
template <class C>
static __device__ __forceinline__ void skip_cells(
    slab_runs (&slab)[C::OWN], const tile_list &t, int c)
{
    uint32_t rounds[C::OWN] = {};
    for (int i = threadIdx.x % 32; i < c; i += 32) {
        uint32_t both = rounds_in<C>(t.cells[i]);
#pragma unroll
        for (int s = 0; s < C::OWN; s++) rounds[s] += rounds_of(both, s);
    }
#pragma unroll
    for (int s = 0; s < C::OWN; s++) slab[s].at += __reduce_add_sync(~0u, rounds[s]) * 8;
}

/* The rounds of the cells before `end`: of 32 cells, one a lane. */
template <class C> struct rounds_view {
    uint32_t own;
    int end;
    __device__ __forceinline__ uint32_t at(const tile_list &t, int c, bool first)
    {
        if (c % 32 == 0 || first) {
            int i = c / 32 * 32 + (int)threadIdx.x % 32;
            own = i < end ? rounds_in<C>(t.cells[i]) : 0;
        }
        return __shfl_sync(~0u, own, c % 32);
    }
};

/* Goes through cells [first, end) of a tile with the channels that are staged. `turn`: of the ring. */
template <class C>
static __device__ __forceinline__ void multiply_cells(float (&sum)[C::OWN][C::EIGHTS][4],
    const warp_launch &l, const tile_list &t, weight_feed &feed, uint32_t shared, int group,
    int wide, int deep, int first, int end, uint32_t &turn)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t stage = shared + AT_RING + RING * C::BLOCK + lane % 4 * 16 +
                     (C::PIECES > 1 ? lane / 4 % 2 * 64 : 0);
    slab_runs slab[C::OWN];
#pragma unroll
    for (int s = 0; s < C::OWN; s++)
        slab[s].at = t.count * (int)(sizeof *t.cells / 4) + lane / 4 +
                     (l.p.set.tiles.tile[blockIdx.x].first[warp * C::OWN + s] + lane % 4) * 8;
    if (first > 0) skip_cells<C>(slab, t, first);
    rounds_view<C> view = {0, end};
    uint32_t here = view.at(t, first, true);
#pragma unroll
    for (int s = 0; s < C::OWN; s++) ask_run(slab[s], t, rounds_of(here, s));
#pragma unroll 1
    for (int c = first; c < end; c++, turn++) {
        feed_weights<C>(feed, l, t, shared, group, wide, deep * t.count + c + AHEAD, turn + AHEAD);
        uint32_t then = view.at(t, c + 1, false), place = turn % RING;
        uint32_t weights = shared + AT_RING + place * C::BLOCK;
        tile_portion<C> run[C::OWN];
#pragma unroll
        for (int s = 0; s < C::OWN; s++)
            sum_run<C>(
                run[s], slab[s], l, t, stage, group, deep, rounds_of(here, s), rounds_of(then, s));
        /* without the cell too: a warp that ran ahead would free a place twice */
        barrier_wait(shared + AT_FULL + place * 8, turn / RING & 1);
        if (C::OWN == 2 && here >> 16 && here & 0xFFFF)
            multiply_cell<C, 3>(sum, run, weights);
        else if (C::OWN == 2 && here >> 16)
            multiply_cell<C, 2>(sum, run, weights);
        else if (here)
            multiply_cell<C, 1>(sum, run, weights);
        __syncwarp();
        if (lane == 0) barrier_arrive(shared + AT_EMPTY + place * 8);
        here = then;
    }
}

/* The sums of a block of threads in the workspace: [splits][tiles][ways][PNET_TILE_ROWS][COLUMNS]. */
template <class C> static __device__ __forceinline__ float *partial_sums(float *partial, int split)
{
    return partial + (((int64_t)split * gridDim.x + blockIdx.x) * gridDim.y + blockIdx.y) *
                         PNET_TILE_ROWS * C::COLUMNS;
}

template <class C>
static __device__ __forceinline__ void put_sums(
    float *partial, const float (&sum)[C::OWN][C::EIGHTS][4])
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *to = partial_sums<C>(partial, blockIdx.z) + lane % 4 * 8;
#pragma unroll
    for (int s = 0; s < C::OWN; s++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int place = (warp * C::OWN + s) * 16 + half * 8 + lane / 4;
#pragma unroll
            for (int n = 0; n < C::EIGHTS; n += 2) {
                float4 v = {sum[s][n][half * 2], sum[s][n][half * 2 + 1], sum[s][n + 1][half * 2],
                    sum[s][n + 1][half * 2 + 1]};
                *(float4 *)(to + place * C::COLUMNS + n / 4 * 32 + n % 4 * 2) = v;
            }
        }
}

/* Computes the rows of a tile without a list from the triplets. */
template <class C>
static __device__ __noinline__ void write_plain(const warp_launch &l, int group, int wide)
{
    using T = typename C::T;
    const conv_product &p = l.p;
    int64_t live = pnet_live(p.set.rows), row0 = (int64_t)blockIdx.x * PNET_TILE_ROWS;
    const T *in = (const T *)p.in + group * p.groups.cin;
#pragma unroll 1
    for (int i = threadIdx.x; i < PNET_TILE_ROWS * C::COLUMNS; i += C::THREADS) {
        int64_t at = row0 + i / C::COLUMNS;
        int column = wide * C::COLUMNS + i % C::COLUMNS;
        if (at >= live || column >= p.groups.cout) continue;
        double sum = 0;
#pragma unroll 1
        for (int64_t n = p.set.start[at]; n < p.set.start[at + 1]; n++)
#pragma unroll 1
            for (int c = 0; c < p.groups.cin; c++)
                sum += (double)widen(in[(int64_t)p.set.other[n] * p.cin + c]) *
                       (double)conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed,
                           p.set.cell[n], group, c, column);
        conv_finish<T>(
            p.end, conv_row(p.set, at), p.cout, group * p.groups.cout + column, (float)sum);
    }
}
#endif

template <class C>
static __global__ __launch_bounds__(C::THREADS, C::BLOCKS) void warp_tiles(
    const __grid_constant__ warp_launch l, float *partial)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) unsigned char memory[];
    uint32_t shared = shared_base(memory);
    int group = blockIdx.y / l.b.wide, wide = blockIdx.y % l.b.wide;
    int64_t live = pnet_live(l.p.set.rows), row0 = (int64_t)blockIdx.x * PNET_TILE_ROWS;
    if (row0 >= live) return;
    tile_list t = list_of(l.p.set);
    if (t.neighbours < 0) {
        if (blockIdx.z == 0) write_plain<C>(l, group, l.b.first + wide);
        return;
    }
    if (threadIdx.x == 0)
        for (int i = 0; i < RING; i++) {
            barrier_init((uint64_t *)(memory + AT_FULL) + i, 32);
            barrier_init((uint64_t *)(memory + AT_EMPTY) + i, C::WARPS);
        }
    __syncthreads();
    tile_part part = part_of(l, t);
    weight_feed feed = {part.end, 0};
    feed_ask(feed, t, part.first + (int)threadIdx.x / 32);
    for (int i = 0; i < AHEAD; i++)
        feed_weights<C>(feed, l, t, shared, group, wide, part.first + i, i);
    float sum[C::OWN][C::EIGHTS][4] = {};
    uint32_t turn = 0, stage = shared + AT_RING + RING * C::BLOCK;
    for (int deep = t.count > 0 ? part.first / t.count : 0; deep * t.count < part.end; deep++) {
        int first = max(part.first - deep * t.count, 0),
            end = min(part.end - deep * t.count, t.count);
        if (turn > 0) __syncthreads();
        stage_neighbours<C>(l, t, stage, group, deep);
        __syncthreads();
        multiply_cells<C>(sum, l, t, feed, shared, group, wide, deep, first, end, turn);
    }
    if (gridDim.z > 1) return put_sums<C>(partial, sum);
    write_sums<C>(l, sum, group, l.b.first + wide, [&](int place) {
        int64_t at = row0 + __ldg(&l.p.set.tiles.tile[blockIdx.x].row[place]);
        return at < live ? (int)conv_row(l.p.set, at) : -1;
    });
#else
    (void)l, (void)partial;
#endif
}

/* Adds the sums of `splits` blocks of threads and writes the rows. */
template <class C>
static __global__ __launch_bounds__(ADDING) void warp_tiles_add(
    const __grid_constant__ warp_launch l, float *partial, int splits)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    int group = blockIdx.y / l.b.wide, wide = blockIdx.y % l.b.wide;
    int64_t live = pnet_live(l.p.set.rows), row0 = (int64_t)blockIdx.x * PNET_TILE_ROWS;
    if (row0 >= live || l.p.set.tiles.tile[blockIdx.x].neighbours < 0) return;
    int i = blockIdx.z * ADDING + threadIdx.x, column = wide * C::COLUMNS + i % C::COLUMNS;
    int64_t at = row0 + __ldg(&l.p.set.tiles.tile[blockIdx.x].row[i / C::COLUMNS]);
    if (at >= live || column >= l.p.groups.cout) return;
    float sum = 0;
    for (int s = 0; s < splits; s++) sum += partial_sums<C>(partial, s)[i];
    conv_finish<typename C::T>(
        l.p.end, conv_row(l.p.set, at), l.p.cout, group * l.p.groups.cout + column, sum);
#else
    (void)l, (void)partial, (void)splits;
#endif
}

template <class C> static void launch(const conv_product &p, void *work)
{
    conv_room room = warp_room();
    warp_tiles_plan plan = pnet_cuda_conv_warp_tiles_plan(C::FORM, &p.set, &p.groups, C::PIECES);
    conv_blocks all = plan.blocks;
    warp_launch l = warp_launch_of<C>(p, all, work);
    int reserved = AT_RING + RING * C::BLOCK;
    int most = std::min(room.block, room.processor / C::BLOCKS - 1024);
    l.room = (most - reserved) / C::STAGED;
    int bytes = reserved + l.room * C::STAGED;
    warp_reserve(warp_tiles<C>, bytes);
    unsigned tiles = (unsigned)((p.set.rows.most + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS);
    for (int first = 0; first < all.whole; first += all.wide) {
        l.b = pnet_cuda_conv_blocks_part(all, first);
        warp_pack<C, true>
            <<<(unsigned)l.b.count, 256, 0, pnet_cuda_stream()>>>(l.b, p, (unsigned char *)work);
        dim3 grid(tiles, (unsigned)(p.groups.count * l.b.wide), (unsigned)plan.splits);
        float *partial = (float *)((char *)work + plan.partial);
        warp_tiles<C><<<grid, C::THREADS, (size_t)bytes, pnet_cuda_stream()>>>(l, partial);
        if (plan.splits == 1) continue;
        grid.z = PNET_TILE_ROWS * C::COLUMNS / ADDING;
        warp_tiles_add<C><<<grid, ADDING, 0, pnet_cuda_stream()>>>(l, partial, plan.splits);
    }
}

template <conv_form FORM, class T, int PIECES>
static void launch_columns(const conv_product &p, void *work)
{
    switch (pnet_cuda_conv_tiles_columns(p.groups.cout)) {
    case 128: launch<tile_operands<FORM, T, 128, PIECES>>(p, work); break;
    case 64: launch<tile_operands<FORM, T, 64, PIECES>>(p, work); break;
    default: launch<tile_operands<FORM, T, 32, 1>>(p, work); break;
    }
}

void pnet_cuda_conv_warps_tiles_mvmr(
    const struct conv_product *sum, enum pnet_precision precision, void *work)
{
    enum { TWO_PIECES = 128 << 10 }; /* shared memory of a block of threads */
    warp_with_types(*sum, precision, [&](auto types) {
        using K = decltype(types);
        using T = typename K::T;
        /* split weights take twice the place; features that become 16 bits are rare, and code takes place too */
        constexpr bool ONE =
            K::FORM == CONV_SPLIT || (K::FORM != CONV_SCALED && sizeof(T) == sizeof(float));
        bool two = warp_room().block >= TWO_PIECES &&
                   pnet_cuda_conv_tiles_pieces(K::FORM, sum->groups.cin) == 2;
        if constexpr (!ONE)
            if (two) return launch_columns<K::FORM, T, 2>(*sum, work);
        launch_columns<K::FORM, T, 1>(*sum, work);
    });
}
