/* VVOR from tiles (kernels/geometry.h, struct pnet_tiles). A block of threads keeps the sums of up to 9 kernel cells for 32
   or 40 channels of the gathered side and 64 or 128 of the side of rows, and goes through its share of the tiles. Loaders
   stage the neighbours of a tile ahead of time. A producer takes a slab of 16 rows: it sums the slab's runs of these cells
   into panels, one a cell, and copies the rows of the other side. Consumers multiply the rows by the panels of the cells
   that the slab has. Blocks for different channels or cells go through the tiles at the same time, so that they share reads
   through the cache. The sums of blocks are added in order. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/vvor/conv_tiles_vvor_gather.cuh"
#include "kernels/cuda/conv/vvor/conv_vvor_product.cuh"

#include <type_traits>

enum {
    STEP = 2 /* slabs multiplied at a time */,
    WEIGH_THREADS = 256,
    MOST_PARTS = (PNET_TILE_CELLS + CELLS - 1) / CELLS
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* What all threads of a block of threads share. */
template <class C> struct tiles_block {
    const tiles_job<typename C::T> &j;
    tiles_share w;
    int tiles;
    unsigned char *memory;
    tiles_control<C> &c;
    vvor_scales scale;
    int units; /* gathered rows before this one may be read in units */

    __device__ __forceinline__ int tile(int n) const
    {
        return w.first + n * w.step;
    }
    __device__ __forceinline__ unsigned char *buffer(int n) const
    {
        return memory + C::OFFSET_TILE + n % C::BUFFERS * C::BUFFER;
    }
    __device__ __forceinline__ int32_t *list(int n) const
    {
        return (int32_t *)(memory + C::OFFSET_LIST) + n % 2 * C::STAGED;
    }
    __device__ __forceinline__ tile_source<C> source(int n, int piece) const
    {
        const tile_info &info = c.info[n % INFOS];
        int column = w.n0 + piece * C::PIECE, left = j.gathered_width - column;
        return {buffer(n) + piece * 16,
            j.gathered + (int64_t)w.group * j.gathered_width + (left > 0 ? column : 0),
            j.gathered_stride, left, (const int32_t *)j.set.tiles.list + info.list, info.staged,
            units};
    }
};

template <class C>
static __device__ __forceinline__ void stage_neighbours(const tiles_block<C> &b, int n)
{
    int staged = b.c.info[n % INFOS].staged;
    if constexpr (C::ALIGNED) {
        stage_tile<C>(b.source(n, threadIdx.x % C::LANES), b.list(n), staged, b.buffer(n));
    } else if constexpr (!C::WIDE) {
        stage_rows<C>(b.source(n, 0), b.list(n), staged, b.buffer(n));
    } else {
        uneven_share<C> share(b.j, b.w);
        if (share.piece >= 0)
            stage_uneven<C>(b.source(n, share.piece), b.list(n), staged, share, b.buffer(n));
    }
}

template <class C> static __device__ __forceinline__ void load(const tiles_block<C> &b)
{
    if (b.tile(0) < b.tiles) {
        prepare_tile<C>(b.j, b.w, b.tile(0), b.c.info[0], b.list(0));
        barrier_arrive(&b.c.info_full[0]);
    }
    for (int n = 0; b.tile(n) < b.tiles; n++) {
        copies_wait();
        loaders_meet<C>();
        if (n >= C::BUFFERS)
            barrier_wait(&b.c.tile_empty[n % C::BUFFERS], (n / C::BUFFERS + 1) % 2);
        stage_neighbours<C>(b, n);
        copies_commit();
        copies_wait();
        barrier_arrive(&b.c.tile_full[n % C::BUFFERS]);
        if (b.tile(n + 1) < b.tiles) {
            prepare_tile<C>(b.j, b.w, b.tile(n + 1), b.c.info[(n + 1) % INFOS], b.list(n + 1));
            barrier_arrive(&b.c.info_full[(n + 1) % INFOS]);
        }
    }
}

/* Starts to copy the first rounds of a slab to the buffer for its turn. */
template <class C>
static __device__ __forceinline__ void begin_slab(
    const tiles_block<C> &b, int n, int slab, uint32_t *buffer)
{
    if (b.tile(n) < b.tiles) {
        if (slab < C::TEAMS) barrier_wait(&b.c.info_full[n % INFOS], n / INFOS % 2);
        const tile_info &info = b.c.info[n % INFOS];
        slab_share share = info.slab[slab];
        copy_rounds(buffer, b.j.set.tiles.list + info.rounds + (int64_t)share.begin * 8,
            min((int)share.total, (int)ROUNDS));
    }
    copies_commit();
}

/* The slow path: tiles whose neighbours do not fit shared memory, long runs, tiles without lists. Only lanes that are `own`
   store sums. */
template <class C>
static __device__ __forceinline__ void gather_slow(const tiles_block<C> &b, int n, int slab,
    uint32_t *held, const lane_place<C> &place, bool own, unsigned char *panels)
{
    using sum = std::conditional_t<C::WIDE, float_sum<C>, long_sum<C>>;
    const tile_info &info = b.c.info[n % INFOS];
    float scale = b.scale.gathered;
    if (info.neighbours < 0) {
        if (own)
            gather_plain<C, sum>(b.j.set, b.tile(n), info.row + slab * 16, b.w.cell0, b.w.cells,
                b.source(n, place.piece), place, scale, panels);
    } else {
        const uint32_t *rounds =
            b.j.set.tiles.list + info.rounds + (int64_t)info.slab[slab].begin * 8;
        gather_any<C, sum>(
            info, slab, b.source(n, place.piece), held, rounds, place, scale, own, panels);
    }
}

template <class C>
static __device__ __forceinline__ void gather(const tiles_block<C> &b, int n, int slab,
    uint32_t *held, const lane_place<C> &place, unsigned char *panels)
{
    using short_sum = std::conditional_t<C::WIDE, float_sum<C>, packed_sum<C>>;
    const tile_info &info = b.c.info[n % INFOS];
    slab_share share = info.slab[slab];
    const uint32_t *rounds = b.j.set.tiles.list + info.rounds + (int64_t)share.begin * 8;
    float scale = b.scale.gathered;
    if (info.neighbours == info.staged && (C::LONG || share.total <= ROUNDS) &&
        (C::WIDE || info.longest <= SHORT_RUN)) {
        /* lanes without channels would only cost time */
        bool own = C::ALIGNED || C::MORE || b.w.n0 + place.piece * C::PIECE < b.j.gathered_width;
        if (own || C::LONG)
            gather_slab<C, short_sum>(info, slab, share, b.buffer(n) + place.piece * 16, held,
                rounds, place, scale, own, panels);
        return;
    }
    if constexpr (C::MORE) {
        gather_slow<C>(b, n, slab, held, more_place<C>::in_pairs(), threadIdx.x % 32 < 8, panels);
        if (share.total > ROUNDS) { /* the first rounds have been overwritten */
            __syncwarp();
            copy_rounds(held, rounds, ROUNDS);
            copies_wait();
            __syncwarp();
        }
    }
    gather_slow<C>(b, n, slab, held, place, true, panels);
}

template <class C> static __device__ __forceinline__ void produce(const tiles_block<C> &b)
{
    int warp = (threadIdx.x - CONSUMERS) / 32;
    uint32_t *rounds = (uint32_t *)(b.memory + C::OFFSET_ROUNDS) + warp * 2 * ROUNDS * 8;
    const typename C::T *side = b.j.rows + (int64_t)b.w.group * b.j.rows_width;
    lane_place<C> place;
    int n = 0, slab = warp / C::WARPS, stage = slab, phase = 1, turn = 0;
    begin_slab<C>(b, n, slab, rounds);
    while (b.tile(n) < b.tiles) {
        if (slab < C::TEAMS) barrier_wait(&b.c.tile_full[n % C::BUFFERS], n / C::BUFFERS % 2);
        unsigned char *panels = b.memory + stage * C::STAGE;
        uint32_t mask = b.c.info[n % INFOS].slab[slab].mask;
        barrier_wait(&b.c.empty[stage], phase);
        const uint8_t *rows = b.c.info[n % INFOS].row + slab * 16;
        uint32_t shifts = 0; /* shifts of rows that begin at any address */
        if (mask) {
            if constexpr (C::ALIGNED)
                copy_side<C>(b.j, side, b.tile(n), rows, b.w.m0, panels + C::PANELS);
            else
                shifts = copy_side_units<C>(b.j, side, b.tile(n), rows, b.w.m0, panels + C::PANELS);
        }
        copies_commit();
        copies_wait_but<1>();
        __syncwarp();
        int next = (slab + C::TEAMS) % PNET_TILE_SLABS,
            next_n = n + (slab + C::TEAMS) / PNET_TILE_SLABS;
        begin_slab<C>(b, next_n, next, rounds + (turn ^ 1) * ROUNDS * 8);
        if (mask) gather<C>(b, n, slab, rounds + turn * ROUNDS * 8, place, panels);
        if constexpr (!C::ALIGNED) {
            copies_wait_but<1>();
            __syncwarp();
            if (mask) join_side<C>(b.j, b.w.m0, shifts, panels + C::PANELS);
        }
        if (threadIdx.x % (32 * C::WARPS) == 0) b.c.mask[stage] = mask;
        fence_async();
        barrier_arrive(&b.c.full[stage]);
        barrier_arrive_copies(&b.c.full[stage]);
        if (next_n > n) barrier_arrive(&b.c.tile_empty[n % C::BUFFERS]);
        n = next_n;
        slab = next;
        stage += C::TEAMS;
        if (stage >= C::STAGES) {
            stage -= C::STAGES;
            phase ^= 1;
        }
        turn ^= 1;
    }
}

/* The left operand of a warp: its 16 channels of the slab's rows. */
template <class C>
static __device__ __forceinline__ void load_side(
    uint32_t (&a)[4], const unsigned char *side, float scale)
{
    if constexpr (sizeof(typename C::T) == 2) {
        load_rows(a, side, C::PITCH);
    } else {
        int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
        const unsigned char *p =
            side + lane % 4 * 2 * C::PITCH + (warp * 16 + lane / 4) * (int)sizeof(float);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const unsigned char *at = p + i / 2 * 8 * C::PITCH + i % 2 * 8 * (int)sizeof(float);
            float x = *(const float *)at, y = *(const float *)(at + C::PITCH);
            if constexpr (C::SCALED) {
                x *= scale;
                y *= scale;
            }
            a[i] = take2<C>(x, y);
        }
    }
}

template <class C> struct tiles_consumer {
    float sum[C::SHARE][C::SUMS];
    int warpgroup;

    __device__ __forceinline__ int cell(int q) const
    {
        return C::BLOCKS == 2 ? q : 2 * q + warpgroup;
    }
    __device__ __forceinline__ void multiply(
        const uint32_t (&a)[STEP][4], const unsigned char *panels, const uint32_t (&mask)[STEP])
    {
        touch<C>(sum);
        product_fence();
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            uint64_t panel = panel_of<C>(panels + i * C::STAGE + cell(0) * C::CELL_BYTES);
            if (C::BLOCKS == 2 && mask[i] == (1u << CELLS) - 1) {
#pragma unroll
                for (int q = 0; q < C::SHARE; q++)
                    product_of<C>(sum[q], a[i], panel + q * (C::CELL_BYTES >> 4), 0);
                continue;
            }
#pragma unroll
            for (int q = 0; q < C::SHARE; q++) {
                if (!(mask[i] >> cell(q) & 1)) continue;
                product_fence();
                product_of<C>(sum[q], a[i], panel + q * (3 - C::BLOCKS) * (C::CELL_BYTES >> 4), 0);
            }
        }
        product_commit();
        product_wait();
        touch<C>(sum);
    }
};

template <class C> static __device__ __forceinline__ void consume(const tiles_block<C> &b)
{
    static_assert(C::STAGES % STEP == 0, "a step's slabs stand one behind the other");
    tiles_consumer<C> t = {{}, (int)threadIdx.x / 128};
    int tiles = b.tile(0) < b.tiles ? (b.tiles - 1 - b.tile(0)) / b.w.step + 1 : 0,
        steps = tiles * (PNET_TILE_SLABS / STEP);
    int side = C::PANELS + (C::BLOCKS == 2 ? t.warpgroup * 64 * (int)sizeof(typename C::T) : 0);
    int stage = 0, phase = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const unsigned char *panels = b.memory + stage * C::STAGE;
        uint32_t mask[STEP], a[STEP][4];
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            barrier_wait(&b.c.full[stage + i], phase);
            mask[i] = b.c.mask[stage + i];
            load_side<C>(a[i], panels + i * C::STAGE + side, b.scale.rows);
        }
        t.multiply(a, panels, mask);
#pragma unroll
        for (int i = 0; i < STEP; i++) barrier_arrive(&b.c.empty[stage + i]);
        stage += STEP;
        if (stage == C::STAGES) {
            stage = 0;
            phase ^= 1;
        }
        if (step % TILE_FLUSH == TILE_FLUSH - 1)
            flush<C>(
                t.sum, b.j.slots + (int64_t)blockIdx.x * C::SLOT + threadIdx.x, step < TILE_FLUSH);
    }
    flush<C>(t.sum, b.j.slots + (int64_t)blockIdx.x * C::SLOT + threadIdx.x, steps < TILE_FLUSH);
}
#endif

template <class C>
static __global__ __launch_bounds__(THREADS, 1) void vvor(
    const __grid_constant__ tiles_job<typename C::T> j)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(16) tiles_control<C> c;
    static_assert(sizeof c <= 4096, "shared memory is full");
    tiles_block<C> b = {j, tiles_share_of(j, j.first, j.set.cells, (int)blockIdx.x, C::M),
        (int)((pnet_live(j.set.rows) + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS), memory, c,
        vvor_scales_of<C::SCALED>(j.measures),
        C::ALIGNED ? 0
                   : rows_of_units(
                         j.measures->others, j.gathered_stride * (int64_t)sizeof(typename C::T))};
    if (threadIdx.x < C::BUFFERS * C::SLOT_BYTES / 16)
        *(uint4 *)(memory + C::OFFSET_TILE + threadIdx.x / (C::SLOT_BYTES / 16) * C::BUFFER +
                   threadIdx.x % (C::SLOT_BYTES / 16) * 16) = uint4{0, 0, 0, 0};
    if (threadIdx.x < C::STAGES) {
        barrier_init(&c.full[threadIdx.x], 2 * 32 * C::WARPS);
        barrier_init(&c.empty[threadIdx.x], CONSUMERS);
    }
    if (threadIdx.x < C::BUFFERS) {
        barrier_init(&c.tile_full[threadIdx.x], C::LOADERS);
        barrier_init(&c.tile_empty[threadIdx.x], C::GATHERERS);
    }
    if (threadIdx.x < INFOS) barrier_init(&c.info_full[threadIdx.x], C::LOADERS);
    fence_async();
    __syncthreads();
    if (threadIdx.x < CONSUMERS) {
        registers_more<256 - C::REGISTERS>();
        consume<C>(b);
    } else {
        registers_fewer<C::REGISTERS>();
        if (threadIdx.x < CONSUMERS + C::GATHERERS)
            produce<C>(b);
        else
            load<C>(b);
    }
#endif
}

/* Computes the work of each part of the cells: rounds to gather, and slabs to multiply. */
static __global__ void weigh(const conv_set s, int parts, unsigned long long *weight)
{
    __shared__ unsigned long long mine[MOST_PARTS];
    for (int p = threadIdx.x; p < parts; p += WEIGH_THREADS) mine[p] = 0;
    __syncthreads();
    int64_t tiles = (pnet_live(s.rows) + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int64_t i = blockIdx.x * (WEIGH_THREADS / 32) + warp; i < tiles;
         i += (int64_t)gridDim.x * (WEIGH_THREADS / 32)) {
        const pnet_tile &t = s.tiles.tile[i];
        if (t.neighbours <= 0) continue;
        const pnet_tile_cell *cell =
            (const pnet_tile_cell *)(s.tiles.list + t.at + (t.neighbours + 3) / 4 * 4);
        for (int e = lane; e < t.cells; e += 32) {
            int k = (int)cell[e].cell, p = (int)((int64_t)k * parts / s.cells);
            while (vvor_part_cell(s.cells, parts, p + 1) <= k) p++;
            unsigned rounds = 0;
            for (int n = 0; n < PNET_TILE_SLABS; n++)
                rounds += cell[e].rounds[n] + (cell[e].rounds[n] > 0 ? 2 : 0);
            atomicAdd(&mine[p], (unsigned long long)rounds);
        }
    }
    __syncthreads();
    for (int p = threadIdx.x; p < parts; p += WEIGH_THREADS) atomicAdd(&weight[p], mine[p]);
}

/* Assigns blocks to parts, one after the other, each to the part that has the most work for each of its blocks. */
static __global__ void deal(
    int parts, int blocks, int64_t slabs, const unsigned long long *weight, int *first)
{
    __shared__ int count[MOST_PARTS];
    for (int p = threadIdx.x; p < parts; p += 32) count[p] = 1;
    __syncwarp();
    for (int i = parts; i < blocks; i++) {
        float most = -1;
        int best = 0;
        for (int p = threadIdx.x; p < parts; p += 32) {
            float each = ((float)weight[p] + 6 * (float)slabs) / (float)count[p];
            if (each > most) {
                most = each;
                best = p;
            }
        }
        uint32_t all = __reduce_max_sync(~0u, __float_as_uint(fmaxf(most, 0)));
        best = (int)__reduce_min_sync(
            ~0u, __float_as_uint(fmaxf(most, 0)) == all && most >= 0 ? (unsigned)best : ~0u);
        if (threadIdx.x == 0) count[best]++;
        __syncwarp();
    }
    if (threadIdx.x > 0) return;
    first[0] = 0;
    for (int p = 0; p < parts; p++) first[p + 1] = first[p] + count[p];
}

/* Adds element `i` of the sums, in the order in which `flush` stores them, over all blocks of its part. */
template <bool SCALED>
static __global__ void reduce(conv_outer o, const tiles_plan p, const float *slots,
    const int *first, const vvor_measures *measures)
{
    int halves = p.halves, slot = p.slot, sums = p.columns / 2;
    const conv_groups &g = o.groups;
    vvor_scales scale = vvor_scales_of<SCALED>(measures);
    double unit = 1 / ((double)scale.gathered * (double)scale.rows);
    int64_t all = (int64_t)p.kinds * p.parts * slot;
    for (int64_t n = blockIdx.x * (int64_t)WEIGH_THREADS + threadIdx.x; n < all;
         n += (int64_t)gridDim.x * WEIGH_THREADS) {
        int type = (int)(n / slot), i = (int)(n % slot), t = i % CONSUMERS, e = i / CONSUMERS;
        int block0 = type / p.parts * p.blocks + first[type % p.parts],
            block1 = type / p.parts * p.blocks + first[type % p.parts + 1];
        tiles_share w = tiles_share_of(p, first, o.set.cells, block0, halves * 64);
        int warpgroup = t / 128, lane = t % 32;
        int cell = halves == 2 ? e / sums : e / sums * 2 + warpgroup;
        int row_side = w.m0 + (halves == 2 ? warpgroup * 64 : 0) + t % 128 / 32 * 16 + lane / 4 +
                       e / 2 % 2 * 8,
            gathered = w.n0 + e % sums / 4 * 8 + lane % 4 * 2 + e % 2;
        int a = o.swapped ? row_side : gathered, b = o.swapped ? gathered : row_side;
        if (cell >= w.cells || a >= g.cin || b >= g.cout || a / g.cin1 != b / g.cout1) continue;
        double sum = 0;
        for (int s = block0; s < block1; s++) sum += slots[(int64_t)s * slot + i];
        sum *= unit;
        int64_t at =
            ((int64_t)(w.cell0 + cell) * g.cin1 + a % g.cin1) * o.cout + w.group * g.cout + b;
        float *to = o.gweight + at;
        *to = o.add ? *to + (float)sum : (float)sum;
    }
}

template <class C> static void launch(const conv_outer &o, const tiles_plan &p, void *work)
{
    using T = typename C::T;
    const conv_groups &g = o.groups;
    char *w = (char *)work;
    unsigned long long *weight = (unsigned long long *)(w + p.weight);
    int *first = (int *)(w + p.first);
    vvor_measures *measures = (vvor_measures *)(w + p.measures);
    if constexpr (C::SCALED)
        pnet_cuda_vvor_measure(o, measures);
    else if constexpr (!C::ALIGNED)
        pnet_cuda_vvor_measure_set(o.set, measures);
    cudaMemsetAsync(weight, 0, (size_t)p.parts * 8, pnet_cuda_stream());
    weigh<<<BLOCKS_AT_ONCE, WEIGH_THREADS, 0, pnet_cuda_stream()>>>(o.set, p.parts, weight);
    deal<<<1, 32, 0, pnet_cuda_stream()>>>(p.parts, p.blocks, o.set.rows.most / 16, weight, first);
    tiles_job<T> j = {o.set, (const T *)(o.swapped ? o.gout : o.in),
        (const T *)(o.swapped ? o.in : o.gout), o.swapped ? o.cout : o.cin,
        o.swapped ? o.cin : o.cout, o.swapped ? g.cout : g.cin, o.swapped ? g.cin : g.cout, p.parts,
        p.columns, p.tiles_n, p.tiles_m, p.blocks, measures, first, (float *)work};
    cudaFuncSetAttribute(vvor<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
    vvor<C><<<(unsigned)(p.kinds * p.blocks), THREADS, C::BYTES, pnet_cuda_stream()>>>(j);
    reduce<C::SCALED><<<1024, WEIGH_THREADS, 0, pnet_cuda_stream()>>>(
        o, p, (const float *)work, first, measures);
}

static bool is_even(const conv_outer &o, int each)
{
    return (o.cin | o.cout | o.groups.cin | o.groups.cout) % each == 0;
}

template <conv_form FORM, typename T>
static void launch_form(const conv_outer &o, const tiles_plan &p, void *work)
{
    if (is_even(o, 16 / sizeof(T))) {
        p.halves > 1 ? launch<tiles_config<FORM, 2, T, true>>(o, p, work)
                     : launch<tiles_config<FORM, 1, T, true>>(o, p, work);
        return;
    }
    if constexpr (sizeof(T) == 2) {
        if (p.columns > 32) return launch<tiles_config<FORM, 1, T, false, 40>>(o, p, work);
    }
    p.halves > 1 ? launch<tiles_config<FORM, 2, T, false>>(o, p, work)
                 : launch<tiles_config<FORM, 1, T, false>>(o, p, work);
}

/* Returns the largest number of gathered channels of a block. */
static int most_columns(const conv_outer &o)
{
    return o.set.rows.storage != PNET_STORE_F32 && !is_even(o, 8) ? 40 : 32;
}

void pnet_cuda_conv_tiles_vvor(
    const struct conv_outer *sum, enum pnet_precision precision, void *work)
{
    const conv_outer &o = *sum;
    tiles_plan p = pnet_cuda_conv_tiles_plan(&o.set, &o.groups, o.swapped, most_columns(o));
    bool same = o.set.rows.storage != PNET_STORE_F32;
    if (precision == PNET_TF32)
        launch_form<CONV_SCALED, float>(o, p, work);
    else if (precision == PNET_BF16)
        same ? launch_form<CONV_BFLOAT, __nv_bfloat16>(o, p, work)
             : launch_form<CONV_BFLOAT, float>(o, p, work);
    else
        same ? launch_form<CONV_HALF, __half>(o, p, work)
             : launch_form<CONV_HALF, float>(o, p, work);
}
