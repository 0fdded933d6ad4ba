/* VVOR from tiles (kernels/geometry.h, struct pnet_tiles) in 16 bits, for layers with few input channels. The input
   channels of all kernel cells stand side by side as columns: a block of threads has up to 512 of them, and 32 output
   channels. It goes through blocks of 64 rows: it sums their runs into a matrix of 64 x 512, zero where a row has no run,
   copies the other side's 64 x 32, and multiplies the two. Sums stay in registers until the end. The partial sums of
   blocks are added in order. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/base/hopper.cuh"
#include "kernels/cuda/conv/conv_steps.cuh"
#include "kernels/cuda/conv/conv_common.cuh"

#include <type_traits>

enum {
    WIDTH = NARROW_WIDTH, /* input channels, at most */
    THREADS = 512,
    WARPS = THREADS / 32,
    ROWS = PNET_TILE_ROWS / PNET_TILE_BLOCKS,
    SLABS = ROWS / 16,
    COLUMNS = NARROW_COLUMNS,        /* of a block of threads */
    WARP_COLUMNS = COLUMNS / WARPS,  /* two products of 16 */
    OUT = NARROW_OUT,                /* output channels of a block of threads */
    BRINGERS = THREADS - 32 * SLABS, /* threads that do not list runs */
    X_ROW = COLUMNS * 2 + 16, /* bytes from row to row; 8 rows in a row fall into different banks */
    G_ROW = OUT * 2 + 16,
    X_BYTES = ROWS * X_ROW,
    G_BYTES = ROWS * G_ROW
};
static_assert(WARP_COLUMNS == 32 && OUT == 32, "a warp multiplies 32 columns by 32");

/* T: what features are stored as; MOST: input channels. */
template <conv_form FORM_, class T_, int MOST_> struct narrow_config {
    using T = T_;
    static constexpr bool BFLOAT = FORM_ == CONV_BFLOAT;
    using S = typename std::conditional<BFLOAT, __nv_bfloat16, __half>::type; /* operands */
    static constexpr int MOST = MOST_;
    static constexpr int AT_ONCE = MOST <= 4 ? 2 : 1; /* blocks of threads of a processor */
};

/* What a launch knows. */
struct narrow_job {
    conv_outer o;
    int cells;      /* of a block of threads */
    float *partial; /* [splits][cells][cin][cout] */
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* What a block of threads has of the sums. */
struct narrow_share {
    int cell0, cells, width, n0; /* width: of its columns */
};

/* Runs of a slab: the first round, and the column of the first channel with the number of rounds in the upper half. */
struct narrow_shared {
    uint2 run[SLABS][COLUMNS];
    int runs[SLABS];
};

static __device__ __forceinline__ narrow_share share_of(const narrow_job &j)
{
    narrow_share s;
    s.cell0 = (int)blockIdx.y * j.cells;
    s.cells = min(j.cells, j.o.set.cells - s.cell0);
    s.width = s.cells * j.o.cin;
    s.n0 = (int)blockIdx.z * OUT;
    return s;
}

static __device__ __forceinline__ const pnet_tile_cell *cells_of(
    const pnet_tiles &tiles, const pnet_tile &t)
{
    return (const pnet_tile_cell *)(tiles.list + t.at + (t.neighbours + 3) / 4 * 4);
}

/* Finds the runs of a slab in the block's cells; a warp calls it. `at`: the slab in the tile. */
static __device__ __forceinline__ void list_runs(const narrow_share &s, int cin,
    const pnet_tile_cell *cell, int cells, uint32_t before, int at, uint2 *run, int *runs)
{
    int lane = threadIdx.x % 32, found = 0;
#pragma unroll 2
    for (int c0 = 0; c0 < cells; c0 += 32) {
        const pnet_tile_cell &c = cell[min(c0 + lane, cells - 1)];
        int k = (int)__ldg(&c.cell) - s.cell0;
        uint32_t rounds = c0 + lane < cells ? __ldg(&c.rounds[at]) : 0, upto = rounds;
#pragma unroll
        for (int i = 1; i < 32; i *= 2) {
            uint32_t other = __shfl_up_sync(~0u, upto, i);
            upto += lane >= i ? other : 0;
        }
        bool has = rounds > 0 && k >= 0 && k < s.cells;
        uint32_t all = __ballot_sync(~0u, has);
        if (has)
            run[found + __popc(all & ((1u << lane) - 1))] = {
                before + upto - rounds, (uint32_t)(k * cin) | rounds << 16};
        found += __popc(all);
        before += __shfl_sync(~0u, upto, 31);
    }
    if (lane == 0) *runs = found;
}

/* Clears the sums, and copies the other side's rows; rows that do not exist become zeros. `place0`: of the tile in the set;
   `place`: of each row, in the tile; `from`: column n0 of the first row; `there`: rows that the block has. */
template <class C>
static __device__ __forceinline__ void bring_rows(const narrow_share &s, const conv_set &set,
    int64_t place0, const uint8_t *place, int there, const typename C::T *from, int cout,
    unsigned char *x, unsigned char *g)
{
    using T = typename C::T;
    int thread = (int)threadIdx.x - (THREADS - BRINGERS), pieces = (s.width + 31) / 32 * 4;
    for (int i = thread; i < ROWS * OUT / 2; i += BRINGERS) {
        int r = i / (OUT / 2), n = i % (OUT / 2) * 2, left = cout - s.n0 - n;
        T a = T(0.0f), b = T(0.0f);
        if (r < there && left > 0) {
            const T *p = from + conv_row(set, place0 + place[r]) * cout + n;
            a = p[0];
            if (left > 1) b = p[1];
        }
        *(uint32_t *)(g + r * G_ROW + n * 2) = narrow_pair<typename C::S>(widen(a), widen(b));
    }
    for (int i = thread; i < ROWS * pieces; i += BRINGERS)
        *(uint4 *)(x + i / pieces * X_ROW + i % pieces * 16) = {0, 0, 0, 0};
}

/* Adds a row of the input; -1: there is none. */
template <class C>
static __device__ __forceinline__ void add_row(
    float (&sum)[C::MOST], const typename C::T *in, int cin, int row)
{
    const typename C::T *from = in + row * (int64_t)cin;
#pragma unroll
    for (int c = 0; c < C::MOST; c++)
        if (row >= 0 && c < cin) sum[c] += widen(from[c]);
}

template <class C>
static __device__ __forceinline__ void put_sums(
    const float (&sum)[C::MOST], int cin, unsigned char *to)
{
#pragma unroll
    for (int c = 0; c < C::MOST; c++)
        if (c < cin) narrow(sum[c], (typename C::S *)to + c);
}

/* Sums the runs of the slabs. A warp takes every fourth group of runs of a slab; a lane sums the runs of two rows in a
   cell. */
template <class C>
static __device__ __forceinline__ void sum_runs(const narrow_job &j, const narrow_shared &m,
    const int32_t *neighbour, const uint32_t *words, unsigned char *x)
{
    const typename C::T *in = (const typename C::T *)j.o.in;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, slab = warp % SLABS, cin = j.o.cin;
    unsigned char *to = x + (slab * 16 + lane % 8) * X_ROW;
    for (int e = warp / SLABS * 4 + lane / 8; e < m.runs[slab]; e += WARPS / SLABS * 4) {
        uint2 run = m.run[slab][e];
        const uint32_t *w = words + (int64_t)run.x * 8 + lane % 8;
        float low[C::MOST] = {}, high[C::MOST] = {};
        for (uint32_t rounds = run.y >> 16; rounds > 0; rounds--, w += 8) {
            uint32_t slots = __ldg(w), a = slots & 0xFFFF, b = slots >> 16;
            int row_a = a ? __ldg(neighbour + a - 1) : -1,
                row_b = b ? __ldg(neighbour + b - 1) : -1;
            add_row<C>(low, in, cin, row_a);
            add_row<C>(high, in, cin, row_b);
        }
        put_sums<C>(low, cin, to + (run.y & 0xFFFF) * 2);
        put_sums<C>(high, cin, to + 8 * X_ROW + (run.y & 0xFFFF) * 2);
    }
}

/* The same from the triplets, for a tile that lists nothing: eight threads a row, each every eighth cell. */
template <class C>
static __device__ __noinline__ void sum_triplets(const narrow_job &j, const narrow_share &s,
    int64_t row0, const uint8_t *rows, int there, unsigned char *x)
{
    constexpr int EACH = THREADS / ROWS;
    const conv_set &set = j.o.set;
    int place = threadIdx.x / EACH;
    if (place >= there) return;
    int64_t row = row0 + rows[place], end = set.start[row + 1];
#pragma unroll 1
    for (int64_t n = set.start[row]; n < end;) {
        int cell = set.cell[n], k = cell - s.cell0;
        bool own = cell % EACH == threadIdx.x % EACH && k >= 0 && k < s.cells;
        float sum[C::MOST] = {};
#pragma unroll 1
        for (; n < end && set.cell[n] == cell; n++)
            add_row<C>(sum, (const typename C::T *)j.o.in, j.o.cin, own ? set.other[n] : -1);
        if (own) put_sums<C>(sum, j.o.cin, x + place * X_ROW + k * j.o.cin * 2);
    }
}

using narrow_sums = float[2][4][4]; /* of 16 columns, of 8 output channels, of a lane */

/* Adds the product of the warp's columns, transposed, and the other side. */
template <class C>
static __device__ __forceinline__ void multiply(narrow_sums &sum, uint32_t x, uint32_t g)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x += (lane / 16 * 8 + lane % 8) * X_ROW + lane / 8 % 2 * 16 + warp * WARP_COLUMNS * 2;
    g += lane % 16 * G_ROW + lane / 16 * 16;
#pragma unroll 1
    for (int r = 0; r < ROWS; r += 16) {
        uint32_t a[2][4], b[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            load_matrices_turned(a[i], x + r * X_ROW + i * 32);
            load_matrices_turned(b[i], g + r * G_ROW + i * 32);
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const uint32_t pair[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};
                step_short<C::BFLOAT>(sum[m][n], a[m], pair);
            }
    }
}

static __device__ __forceinline__ void write_sums(
    const narrow_job &j, const narrow_share &s, const narrow_sums &sum)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, cout = j.o.cout;
    float *to = j.partial + ((int64_t)blockIdx.x * j.o.set.cells + s.cell0) * j.o.cin * cout;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int column = warp * WARP_COLUMNS + m * 16 + e / 2 * 8 + lane / 4,
                    out = s.n0 + n * 8 + lane % 4 * 2 + e % 2;
                if (column < s.width && out < cout) to[(int64_t)column * cout + out] = sum[m][n][e];
            }
}
#endif

template <class C>
static __global__ __launch_bounds__(THREADS, C::AT_ONCE) void vvor(
    const __grid_constant__ narrow_job j)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    using T = typename C::T;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ narrow_shared m;
    const conv_set &set = j.o.set;
    unsigned char *x = memory, *g = memory + X_BYTES;
    narrow_share s = share_of(j);
    narrow_sums sum = {};
    int warp = threadIdx.x / 32;
    int64_t live = pnet_live(set.rows), blocks = (live + ROWS - 1) / ROWS;
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        const pnet_tile &t = set.tiles.tile[block / PNET_TILE_BLOCKS];
        int in_tile = (int)(block % PNET_TILE_BLOCKS), neighbours = t.neighbours;
        if (neighbours == 0) continue;
        int64_t row0 = block / PNET_TILE_BLOCKS * PNET_TILE_ROWS;
        const uint8_t *rows = t.row + in_tile * ROWS;
        /* rows that are not there come last */
        int there = (int)min((int64_t)ROWS, live - row0 - in_tile * ROWS);
        const pnet_tile_cell *cell = neighbours > 0 ? cells_of(set.tiles, t) : nullptr;
        if (warp >= SLABS)
            bring_rows<C>(s, set, row0, rows, there, (const T *)j.o.gout + s.n0, j.o.cout, x, g);
        else if (neighbours > 0)
            list_runs(s, j.o.cin, cell, t.cells, t.first[in_tile * SLABS + warp],
                in_tile * SLABS + warp, m.run[warp], &m.runs[warp]);
        __syncthreads();
        if (neighbours > 0)
            sum_runs<C>(j, m, (const int32_t *)set.tiles.list + t.at,
                (const uint32_t *)(cell + t.cells), x);
        else
            sum_triplets<C>(j, s, row0, rows, there, x);
        __syncthreads();
        if (warp * WARP_COLUMNS < s.width) multiply<C>(sum, shared_address(x), shared_address(g));
        __syncthreads();
    }
    write_sums(j, s, sum);
#else
    (void)j;
#endif
}

template <class C> static void launch(const conv_outer &o, void *work)
{
    narrow_plan p = pnet_cuda_conv_narrow_plan(&o.set, &o.groups);
    narrow_job j = {o, p.cells, (float *)work};
    dim3 grid((unsigned)p.splits, (unsigned)p.windows, (unsigned)p.wide);
    cudaFuncSetAttribute(vvor<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, X_BYTES + G_BYTES);
    vvor<C><<<grid, THREADS, X_BYTES + G_BYTES, pnet_cuda_stream()>>>(j);
    pnet_cuda_conv_reduce(o, j.partial, p.splits);
}

template <conv_form FORM, class T> static void launch_form(const conv_outer &o, void *work)
{
    if (o.cin == 1)
        launch<narrow_config<FORM, T, 1>>(o, work);
    else if (o.cin <= 4)
        launch<narrow_config<FORM, T, 4>>(o, work);
    else
        launch<narrow_config<FORM, T, 8>>(o, work);
}

void pnet_cuda_conv_narrow_vvor(
    const struct conv_outer *sum, enum pnet_precision precision, void *work)
{
    const conv_outer &o = *sum;
    bool stored = o.set.rows.storage != PNET_STORE_F32;
    if (precision == PNET_BF16)
        stored ? launch_form<CONV_BFLOAT, __nv_bfloat16>(o, work)
               : launch_form<CONV_BFLOAT, float>(o, work);
    else
        stored ? launch_form<CONV_HALF, __half>(o, work) : launch_form<CONV_HALF, float>(o, work);
}
