/* VVOR from tiles in float32 (kernels/geometry.h, struct pnet_tiles), for layers wider than 64 channels. A block of threads
   keeps the sum of one kernel cell for 128 channels of either side. Scouts find the runs of the cell and cut them into
   pieces of up to 8 triplets, 32 pieces a step. Gatherers sum the triplets of a piece into one panel and copy the rows of
   the other side to another; multipliers multiply the two. Blocks go through the tiles at the same time, so that one finds
   in the cache what another has read. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/vvor/conv_tiles_vvor_cells.cuh"
#include "kernels/cuda/conv/vvor/conv_vvor_gather.cuh"

#include <cstddef>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* A lane's four channels of rows on one side. */
struct cell_columns {
    const float *from;
    int64_t stride;
    bool there;
};

static __device__ __forceinline__ cell_columns columns_from(
    const float *from, int stride, int width, int group, int first)
{
    int column = first + threadIdx.x % 32 * 4;
    bool there = column < width;
    return {from + (int64_t)group * width + (there ? column : 0), stride, there};
}

/* Returns the offset, in bytes, of the lane's channels of piece n in a plane of a panel. */
template <class C> static __device__ __forceinline__ int in_panel(int n)
{
    int lane = threadIdx.x % 32;
    return lane / 16 * C::BLOCK + n * 128 + (lane / 2 % 8 ^ n % 8) * 16 + lane % 2 * 8;
}

static __device__ __forceinline__ float4 load_if(const float *from, bool there)
{
    return there ? __ldg((const float4 *)from) : float4{0, 0, 0, 0};
}

static __device__ __forceinline__ void add(float4 &x, float4 y)
{
    x = {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w};
}

/* Starts to copy 16 bytes through L1, where neighbouring runs share rows. Copies zeros if `there` is false. */
static __device__ __forceinline__ void copy_if(uint32_t to, const float *from, bool there)
{
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
        : "memory");
}

/* A gatherer. It requests the lane's 16 bytes of each row, and of the first triplets of each piece, AHEAD - 1 steps earlier;
   they arrive in shared memory. */
template <class C> struct cell_gatherer {
    cell_control<C> &c;
    cell_columns sums, rows;
    int n;        /* the warp's first piece */
    uint32_t raw; /* the lane's first address */
    int begun, end;

    __device__ __forceinline__ uint32_t place(int step, int p, int what) const
    {
        return raw +
               (uint32_t)(((step % C::AHEAD * PIECES + p) * C::KEPT + what) * C::GATHERERS) * 16;
    }
    /* Begins the next step. Sets `end` if there is none. */
    __device__ __forceinline__ void begin()
    {
        int at = begun % LISTS;
        if (begun < end) {
            barrier_wait(&c.ready[at], begun / LISTS % 2);
            const cell_list<C> &l = c.list[at];
            if (!l.there) end = begun;
            if (l.there)
#pragma unroll
                for (int p = 0; p < PIECES; p++) {
                    int row = l.row[n + p], count = sums.there ? l.count[n + p] : 0;
                    int2 other = *(const int2 *)&l.other[n + p][0];
                    copy_if(place(begun, p, 0), rows.from + max(row, 0) * rows.stride,
                        row >= 0 && rows.there);
                    copy_if(place(begun, p, 1), sums.from + other.x * sums.stride, count > 0);
                    copy_if(place(begun, p, 2), sums.from + other.y * sums.stride, count > 1);
                }
        }
        copies_commit();
        begun++;
    }
    __device__ __forceinline__ float4 kept(int step, int p, int what) const
    {
        uint4 v = shared_load(place(step, p, what));
        return {
            __uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w)};
    }
    /* Writes a step's rows and sums into panels. */
    __device__ __forceinline__ void put(
        int step, const vvor_scales &scale, unsigned char *panel) const
    {
        const cell_list<C> &l = c.list[step % LISTS];
        float4 sum[PIECES];
        int count[PIECES], most = 0;
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            put4<C>(panel + C::PLANES * C::PANEL + in_panel<C>(n + p), C::PANEL, kept(step, p, 0),
                scale.rows);
            sum[p] = kept(step, p, 1);
            add(sum[p], kept(step, p, 2));
            count[p] = sums.there ? l.count[n + p] : 0;
            most = max(most, count[p]);
        }
#pragma unroll 1
        for (int first = C::KEPT - 1; first < most; first += 2) {
            float4 v[PIECES], w[PIECES];
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                int2 other = *(const int2 *)&l.other[n + p][first];
                v[p] = load_if(sums.from + other.x * sums.stride, first < count[p]);
                w[p] = load_if(sums.from + other.y * sums.stride, first + 1 < count[p]);
            }
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                add(sum[p], v[p]);
                add(sum[p], w[p]);
            }
        }
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            put4<C>(panel + in_panel<C>(n + p), C::PANEL, sum[p], scale.gathered);
    }
};

template <class C>
static __device__ __forceinline__ void gather(
    const cell_job &j, unsigned char *memory, cell_control<C> &c)
{
    vvor_scales scale = vvor_scales_of<C::SCALED>(j.measures);
    int kind = (int)blockIdx.x / j.blocks, n0 = kind % j.tiles_n * SIDE,
        m0 = kind / j.tiles_n % j.tiles_m * SIDE, group = kind / j.tiles_n / j.tiles_m;
    int thread = (int)threadIdx.x - MULTIPLIERS;
    cell_gatherer<C> g = {c,
        columns_from(j.gathered, j.gathered_stride, j.gathered_width, group, n0),
        columns_from(j.rows, j.rows_stride, j.rows_width, group, m0), thread / 32 * PIECES,
        shared_address(memory + C::BUFFERS * C::BUFFER) + thread * 16, 0, INT32_MAX};
#pragma unroll 1
    for (int i = 1; i < C::AHEAD; i++) g.begin();
#pragma unroll 1
    for (int step = 0;; step++) {
        int buffer = step % C::BUFFERS;
        g.begin();
        if (step >= g.end) break;
        asm volatile("cp.async.wait_group %0;" ::"n"(C::AHEAD - 1) : "memory");
        barrier_wait(&c.empty[buffer], (step / C::BUFFERS + 1) % 2);
        g.put(step, scale, memory + buffer * C::BUFFER);
        fence_async();
        barrier_arrive(&c.full[buffer]);
        barrier_arrive(&c.free[step % LISTS]);
    }
}

/* Issues the products of a step, small terms first: the warpgroup's 64 channels of the rows by N gathered ones from
   `first` on. */
template <class C, int N>
static __device__ __forceinline__ void multiply(
    float (&d)[N / 2], const unsigned char *buffer, int warpgroup, int first, bool fresh)
{
    const unsigned char *sums = buffer + first / 64 * C::BLOCK,
                        *rows = buffer + C::PLANES * C::PANEL + warpgroup * C::BLOCK;
#pragma unroll
    for (int order = C::PLANES - 1; order >= 0; order--)
#pragma unroll
        for (int p = 0; p <= order; p++) {
            uint64_t a = product_panel(rows + p * C::PANEL, C::BLOCK),
                     b = product_panel(sums + (order - p) * C::PANEL, C::BLOCK);
#pragma unroll
            for (int i = 0; i < C::ROWS / 16; i++)
                product_outer<N, C::BFLOAT>(d, a + i * (2048 >> 4), b + i * (2048 >> 4),
                    fresh && order == C::PLANES - 1 && p == 0 && i == 0);
        }
    product_commit();
}

/* Multiplies a step in parts of 64 channels, whose sums are rounded to nearest when they are added. */
template <class C>
static __device__ __forceinline__ void multiply_parts(
    float (&sum)[64], const unsigned char *buffer, int warpgroup)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float part[32];
        product_touch(part);
        product_fence();
        multiply<C, 64>(part, buffer, warpgroup, half * 64, true);
        product_wait();
        product_touch(part);
#pragma unroll
        for (int i = 0; i < 32; i++) sum[half * 32 + i] += part[i];
    }
}

template <class C>
static __device__ __forceinline__ void multiply_all(
    const cell_job &j, unsigned char *memory, cell_control<C> &c)
{
    int warpgroup = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
    float sum[64] = {};
    int quiet = 0; /* coming steps before this one are fillers */
    bool fresh = true;
#pragma unroll 1
    for (int step = 0;; step++) {
        int at = step % LISTS, buffer = step % C::BUFFERS;
        barrier_wait(&c.ready[at], step / LISTS % 2);
        int there = __shfl_sync(~0u, c.list[at].there, 0),
            slot = __shfl_sync(~0u, c.list[at].slot, 0);
        int4 f = *(const int4 *)c.finished[step % (2 * LISTS)];
        bool finished = __shfl_sync(~0u, f.x & f.y & f.z & f.w, 0);
        if (!there) break;
        barrier_arrive(&c.free[at]);
        barrier_wait(&c.full[buffer], step / C::BUFFERS % 2);
        multiply_parts<C>(sum, memory + buffer * C::BUFFER, warpgroup);
        barrier_arrive(&c.empty[buffer]);
        if (step < quiet || !(finished || step % PUT_ASIDE == 0)) continue;
        float *to = j.slots + (int64_t)slot * SIDE * SIDE + threadIdx.x;
#pragma unroll
        for (int i = 0; i < 64; i++) {
            to[i * MULTIPLIERS] = fresh ? sum[i] : sum[i] + to[i * MULTIPLIERS];
            sum[i] = 0;
        }
        fresh = finished;
        if (finished) quiet = step + LISTS;
    }
}
#endif

template <class C>
static __global__ __launch_bounds__(C::THREADS_ALL, 1) void cells_vvor_kernel(
    const __grid_constant__ cell_job j)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(16) cell_control<C> c;
    static_assert(offsetof(cell_control<C>, finished) % 16 == 0, "flags are read together");
    if (threadIdx.x < LISTS) {
        barrier_init(&c.ready[threadIdx.x], SCOUTS);
        barrier_init(&c.free[threadIdx.x], C::GATHERERS + MULTIPLIERS);
    }
    if (threadIdx.x < C::BUFFERS) {
        barrier_init(&c.full[threadIdx.x], C::GATHERERS);
        barrier_init(&c.empty[threadIdx.x], MULTIPLIERS);
    }
    fence_async();
    __syncthreads();
    if (threadIdx.x < MULTIPLIERS) {
        registers_more<112>();
        multiply_all<C>(j, memory, c);
    } else if (threadIdx.x < MULTIPLIERS + C::GATHERERS) {
        registers_fewer<88>();
        gather<C>(j, memory, c);
    } else {
        registers_fewer<80>();
        scout<C>(j, (int)((pnet_live(j.set.rows) + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS), c);
    }
#endif
}

/* Counts the work of each cell into weight[cell + 1]: its triplets and its runs. Consecutive triplets of one cell count
   as one run. */
static __global__ void weigh_cells(const conv_set s, unsigned long long *weight)
{
    __shared__ unsigned mine[MOST_CELLS];
    for (int k = threadIdx.x; k < s.cells; k += CELL_THREADS) mine[k] = 0;
    __syncthreads();
    int64_t tiles = (pnet_live(s.rows) + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
    if (blockIdx.x == 0)
        for (int k = threadIdx.x; k < s.cells; k += CELL_THREADS) mine[k] = (unsigned)tiles * VISIT;
    __syncthreads();
    int64_t all = s.start[pnet_live(s.rows)], step = (int64_t)gridDim.x * CELL_THREADS;
#pragma unroll 4
    for (int64_t n = blockIdx.x * (int64_t)CELL_THREADS + threadIdx.x; n < all; n += step) {
        unsigned k = s.cell[n], before = n > 0 ? s.cell[n - 1] : s.cells;
        atomicAdd(&mine[k], k == before ? 1u : 2u);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < s.cells; k += CELL_THREADS)
        if (mine[k]) atomicAdd(&weight[k + 1], (unsigned long long)mine[k]);
}

static __global__ void add_weights(int cells, unsigned long long *weight)
{
    unsigned long long before = 0;
    for (int first = 0; first <= cells; first += 32) {
        int k = first + threadIdx.x;
        unsigned long long own = k <= cells ? weight[k] : 0;
        for (int step = 1; step < 32; step *= 2) {
            unsigned long long other = __shfl_up_sync(~0u, own, step);
            if (threadIdx.x >= step) own += other;
        }
        own += before;
        before = __shfl_sync(~0u, own, 31);
        if (k <= cells) weight[k] = own;
    }
}

/* Adds the sums of all blocks that share a cell, in the order in which `multiply_all` stores them. */
static __global__ void reduce_cells(conv_outer o, const cell_plan p, const float *slots,
    const unsigned long long *weight, const vvor_measures *measures)
{
    const conv_groups &g = o.groups;
    vvor_scales scale = vvor_scales_of<true>(measures);
    double unit = 1 / ((double)scale.gathered * (double)scale.rows);
    constexpr int SUMS = SIDE * SIDE, PARTS = SUMS / CELL_THREADS;
    __shared__ bool has[BLOCKS_AT_ONCE];
    int type = blockIdx.x / PARTS, i = blockIdx.x % PARTS * CELL_THREADS + threadIdx.x,
        t = i % MULTIPLIERS, e = i / MULTIPLIERS, lane = t % 32;
    int cells = o.set.cells, cell = type % cells, kind = type / cells;
    int n0 = kind % p.tiles_n * SIDE, m0 = kind / p.tiles_n % p.tiles_m * SIDE,
        group = kind / p.tiles_n / p.tiles_m;
    if ((int)threadIdx.x < p.blocks) {
        cell_share w = cell_share_of(weight, cells, p.blocks, (int)threadIdx.x, cell);
        has[threadIdx.x] = w.low < w.high;
    }
    __syncthreads();
    int row_side = m0 + t / 32 * 16 + lane / 4 + e / 2 % 2 * 8,
        gathered = n0 + e / 4 * 8 + lane % 4 * 2 + e % 2;
    int a = o.swapped ? row_side : gathered, b = o.swapped ? gathered : row_side;
    if (a >= g.cin || b >= g.cout || a / g.cin1 != b / g.cout1) return;
    double sum = 0;
    for (int block = 0; block < p.blocks; block++)
        if (has[block])
            sum += slots[(int64_t)cell_slot(p.blocks, cells, kind, block, cell) * SUMS + i];
    sum *= unit;
    int64_t at = ((int64_t)cell * g.cin1 + a % g.cin1) * o.cout + group * g.cout + b;
    float *to = o.gweight + at;
    *to = o.add ? *to + (float)sum : (float)sum;
}

void pnet_cuda_conv_cells_vvor(const struct conv_outer *sum, enum pnet_precision, void *work)
{
    const conv_outer &o = *sum;
    using C = cell_config;
    cell_plan p = pnet_cuda_conv_cell_plan(&o.set, &o.groups, o.swapped);
    const conv_groups &g = o.groups;
    char *w = (char *)work;
    unsigned long long *weight = (unsigned long long *)(w + p.weight);
    vvor_measures *measures = (vvor_measures *)(w + p.measures);
    cell_job j = {o.set, o.swapped ? o.gout : o.in, o.swapped ? o.in : o.gout,
        o.swapped ? o.cout : o.cin, o.swapped ? o.cin : o.cout, o.swapped ? g.cout : g.cin,
        o.swapped ? g.cin : g.cout, p.tiles_n, p.tiles_m, p.blocks, measures, weight,
        (float *)work};
    pnet_cuda_vvor_measure(o, measures);
    cudaMemsetAsync(weight, 0, ((size_t)o.set.cells + 1) * 8, pnet_cuda_stream());
    weigh_cells<<<4 * BLOCKS_AT_ONCE, CELL_THREADS, 0, pnet_cuda_stream()>>>(o.set, weight);
    add_weights<<<1, 32, 0, pnet_cuda_stream()>>>(o.set.cells, weight);
    cudaFuncSetAttribute(
        cells_vvor_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
    cells_vvor_kernel<C>
        <<<(unsigned)(p.kinds * p.blocks), C::THREADS_ALL, C::BYTES, pnet_cuda_stream()>>>(j);
    reduce_cells<<<(unsigned)(p.kinds * o.set.cells * (SIDE * SIDE / CELL_THREADS)), CELL_THREADS,
        0, pnet_cuda_stream()>>>(o, p, (const float *)work, weight, measures);
}
