/* MVMR from tiles (kernels/geometry.h, struct pnet_tiles). A block of threads takes tile after tile. One warp copies the
   weights of the tile's cells; three warps stage the tile's distinct neighbours, some channels at a time, one step ahead.
   Warpgroups of 64 rows each sum the runs of cell after cell into the registers that the matrix unit reads. While one
   warpgroup waits, the others work. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_MVMR_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_MVMR_CUH

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/tiles/conv_tiles_runs.cuh"
#include "kernels/cuda/conv/tiles/conv_tiles_write.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Issues the products of one block of weights, small terms first: this loses less to rounding. */
template <class C>
static __device__ __forceinline__ void issue_products(
    float (&sum)[C::COLUMNS / 2], const uint32_t (&a)[C::PLANES][C::STEPS][4], uint32_t block)
{
    constexpr int FRESH = C::SCALED;
    uint64_t high = product_matrix<C::DEPTH * 2>(block);
    if constexpr (C::SPLIT) {
        uint64_t low = product_matrix<C::DEPTH * 2>(block + C::PLANE);
#pragma unroll
        for (int i = 0; i < C::STEPS; i++) {
            product<C::COLUMNS, C::BFLOAT>(sum, a[0][i], low + 2 * i, i == 0 ? FRESH : 0);
            product<C::COLUMNS, C::BFLOAT>(sum, a[1][i], high + 2 * i, 0);
        }
    }
#pragma unroll
    for (int i = 0; i < C::STEPS; i++)
        product<C::COLUMNS, C::BFLOAT>(sum, a[0][i], high + 2 * i, i == 0 && !C::SPLIT ? FRESH : 0);
}

/* The scale of gathered values. */
static __device__ __forceinline__ float stage_scale(uint32_t shared, uint32_t place, int longest)
{
    uint4 sizes = shared_load(shared + AT_SIZES + place * 16);
    float most =
        fmaxf(fmaxf(__uint_as_float(sizes.x), __uint_as_float(sizes.y)), __uint_as_float(sizes.z));
    return conv_scale(most, tile_top(longest));
}

/* The sums of a block of 64 rows. */
template <class C> struct tile_sums {
    float sum[C::COLUMNS / 2];
    /* Where sums are added outside of the matrix unit: the sums of the product under way, and the inverse of their scale.
       factor 0: no product is under way. */
    float part[C::SCALED ? C::COLUMNS / 2 : 1], factor;
    uint32_t pending; /* barrier of the weights in use; 0: no weights are in use */
    uint32_t a[C::PLANES][C::STEPS]
              [4]; /* operands; the matrix unit reads them while a product is under way */
};

/* Waits for the product under way, adds its sums to `s.sum`, and frees its weights. */
template <class C> static __device__ __forceinline__ void finish_product(tile_sums<C> &s)
{
    product_wait();
    if constexpr (C::SCALED) {
        product_touch(s.part);
        if (s.factor != 0) { /* without a product s.part may hold NaN */
#pragma unroll
            for (int i = 0; i < C::COLUMNS / 2; i++) s.sum[i] += s.part[i] * s.factor;
        }
        s.factor = 0;
    } else {
        product_touch(s.sum);
    }
    if constexpr (C::WIDE) product_touch(s.a);
    if (s.pending) free_block<C>(s.pending);
    s.pending = 0;
}

/* Sums DEPTH channels of the runs of all cells, and multiplies them by the weights. `turn` counts blocks of weights. AHEAD:
   the next runs are summed while a product is under way. Other kernels have more warps, but too few registers for that. */
template <class C>
static __device__ __forceinline__ void multiply_cells(tile_sums<C> &s, tile_view &v,
    const tile_launch &l, uint32_t shared, int deep, float scale, uint32_t &turn)
{
    float unscale = 1 / scale;
    for (int c0 = 0; c0 < list_load(l, v.item).count; c0 += 32) {
        if (c0 > 0) {
            view_cells(v, l, c0);
            view_ahead(v, view_left<C>(v));
        }
#pragma unroll 1
        for (uint32_t left = view_left<C>(v); left; turn++) {
            int c = __ffs(left) - 1;
            left &= left - 1;
            uint32_t place = turn % C::RING, weights = shared + AT_RING + place * C::BLOCK;
            tile_run run = view_take(v, c, left);
            if (!run.mine) {
                if constexpr (C::AHEAD) finish_product(s);
                barrier_wait(shared + AT_FULL + place * 8, turn / C::RING & 1);
                free_block<C>(shared + AT_EMPTY + place * 8);
                continue;
            }
            tile_portion<C> x;
            /* finish first: the slow path is a called function, and may use registers that belong to the matrix unit; all
               four warps of the warpgroup decide alike */
            if (run.waits) finish_product(s);
            if (run.rounds == 0) {
#pragma unroll
                for (int i = 0; i < 8 * C::PIECES; i++) x[i % 2][i / 8][i / 2 % 4] = 0;
            } else if (!run.slow) {
                sum_run<C>(x, run, v.stage);
            } else {
                sum_any_run<C>(x, run, v, l, deep);
                /* requested after the slow path, which has no register to keep it in */
                view_ahead(v, left);
            }
            if constexpr (C::WIDE) barrier_wait(shared + AT_FULL + place * 8, turn / C::RING & 1);
            if constexpr (C::AHEAD) finish_product(s);
            if constexpr (!C::WIDE) barrier_wait(shared + AT_FULL + place * 8, turn / C::RING & 1);
            make_operands<C>(s.a, x, scale);
            if constexpr (C::SCALED) {
                /* only lane 0, which later frees these weights, reads their scale */
                uint32_t factor = 0;
                if (threadIdx.x % 32 == 0)
                    factor = shared_load_word(shared + AT_SCALES + place * 4);
                s.factor = unscale * __uint_as_float(__shfl_sync(~0u, factor, 0));
                product_touch(s.part);
                product_fence();
                issue_products<C>(s.part, s.a, weights);
            } else {
                product_touch(s.sum);
                product_fence();
                issue_products<C>(s.sum, s.a, weights);
            }
            product_commit();
            s.pending = shared + AT_EMPTY + place * 8;
            if constexpr (!C::AHEAD) finish_product(s);
        }
    }
}

/* Sets the view to the first cells of the n-th item. Returns false if there is no n-th item. */
template <class C>
static __device__ __forceinline__ bool view_item(
    tile_view &v, const tile_launch &l, uint32_t shared, uint32_t n)
{
    v.item = item_wait(shared, n);
    tile_item item = item_load(v.item);
    if (item.tile < 0) return false;
    v.slab = item.half * C::BLOCKS * 4 + threadIdx.x / 32;
    view_cells(v, l, 0);
    view_rounds<C>(v, l);
    return true;
}

/* Undoes the scales of the tile and of the weights one after the other, because the product of both may be out of range. */
template <class C>
static __device__ __forceinline__ void unscale_sums(
    const tile_launch &l, const tile_item &item, float (&sum)[C::COLUMNS / 2])
{
    float features = 1 / __ldg(l.scales + item.tile),
          weights = 1 / conv_scale(__uint_as_float(__ldg(l.weight_size)), WEIGHT_TOP);
#pragma unroll
    for (int i = 0; i < C::COLUMNS / 2; i++) sum[i] = sum[i] * features * weights;
}

/* The work of a multiplying warp: sums runs, multiplies them and writes the rows, item after item. */
template <class C> static __device__ void consume(const tile_launch &l, uint32_t shared)
{
    int lane = threadIdx.x % 32;
    uint32_t unit = lane % 4 * 16 + (C::PIECES > 1 ? lane / 4 % 2 * 64 : 0);
    uint32_t turn = 0, chunk = 0, n = 0;
    tile_sums<C> s = {};
    tile_view v;
    bool more = view_item<C>(v, l, shared, n);
    while (more) {
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++) s.sum[i] = 0;
#pragma unroll 1
        for (int deep = 0; deep < l.b.deep; deep++, chunk++) {
            uint32_t place = chunk % 2;
            if (deep > 0) {
                if (list_load(l, v.item).count > 32) view_cells(v, l, 0);
                view_rounds<C>(v, l);
            }
            uint32_t zeros =
                stage_at<C>(l, shared, chunk, takes_both(l, list_load(l, v.item).neighbours));
            /* through a shuffle from the lane itself: otherwise ptxas computes the sum again at each use */
            v.stage = __shfl_sync(~0u, unit + zeros, lane);
            barrier_wait(shared + AT_STAGED + place * 8, chunk / 2 & 1);
            float scale = 1;
            if constexpr (C::SCALED) {
                barrier_wait(shared + AT_SIZED + place * 8, chunk / 2 & 1);
                scale = stage_scale(shared, place, (int)shared_load_word(v.item + ITEM_REST));
            }
            multiply_cells(s, v, l, shared, deep, scale, turn);
            barrier_arrive(shared + AT_FREE + place * 8);
        }
        finish_product(s);
        tile_item item = item_load(v.item);
        int block = v.slab / 4;
        bool plain = list_load(l, v.item).neighbours < 0;
        more = view_item<C>(v, l, shared, ++n); /* its loads arrive while rows are written */
        if constexpr (C::BY_TILE) unscale_sums<C>(l, item, s.sum);
        if (plain)
            write_plain<C>(l, item);
        else
            write_block<C>(l, shared, item, s.sum, block);
    }
}
#endif

template <class C>
static __global__ __launch_bounds__(C::THREADS, 1) void mvmr_tiles(
    const __grid_constant__ tile_launch l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    uint32_t shared = shared_base(memory);
    if (threadIdx.x == 0) {
        uint64_t *full = (uint64_t *)(memory + AT_FULL), *empty = (uint64_t *)(memory + AT_EMPTY);
        for (int i = 0; i < C::RING; i++) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, C::CONSUMERS / 32 * C::CLUSTER);
        }
        for (int i = 0; i < 2; i++) {
            barrier_init((uint64_t *)(memory + AT_STAGED) + i, TILE_STAGERS);
            barrier_init((uint64_t *)(memory + AT_SIZED) + i, TILE_STAGERS);
            barrier_init((uint64_t *)(memory + AT_FREE) + i, C::CONSUMERS + 32);
        }
        for (int i = 0; i < ITEMS; i++) barrier_init((uint64_t *)(memory + AT_GIVEN) + i, 32);
        if (C::CLUSTER > 1) {
            barrier_init((uint64_t *)(memory + AT_TOLD), 1);
            barrier_init((uint64_t *)(memory + AT_READ), 1);
        }
        fence_async();
    }
    if constexpr (C::CLUSTER > 1)
        cluster_wait();
    else
        __syncthreads();
    if (threadIdx.x < C::CONSUMERS) {
        registers_more<C::MORE>();
        consume<C>(l, shared);
    } else {
        registers_fewer<C::FEWER>();
        if (threadIdx.x < C::CONSUMERS + 32)
            feed_weights<C>(l, shared);
        else
            stage_neighbours<C>(l, shared);
    }
    /* the other block still writes and arrives in this shared memory */
    if constexpr (C::CLUSTER > 1) cluster_wait();
#else
    (void)l;
#endif
}

/* Returns the bytes, at most 16, that one load or store can take anywhere in a group's part of a row. */
static inline int bytes_at_once(const void *p, int width, int group, int size)
{
    int bytes = 16;
    while (((uintptr_t)p | (uintptr_t)(width * size) | (uintptr_t)(group * size)) % bytes)
        bytes /= 2;
    return bytes;
}

/* Can rows be read in units of 16 bytes and written in units of 8 channels? */
template <class C> static bool is_even(const conv_product &p)
{
    enum pnet_storage storage = p.set.rows.storage;
    int size = pnet_storage_bytes(storage);
    bool staged = storage == C::STORED ||
                  (!C::SCALED && storage == PNET_STORE_F32 && p.groups.cin % C::DEPTH == 0),
         units = (p.cout | p.groups.cout) % 8 == 0 && (uintptr_t)p.end.out % 16 == 0;
    return staged && units && bytes_at_once(p.in, p.cin, p.groups.cin, size) == 16;
}

template <class C> static void launch_tiles(const conv_product &p, void *work)
{
    int processors = 0, device = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    conv_blocks all = pnet_cuda_conv_block_weights(
        C::FORM, p.set.cells, &p.groups, C::DEPTH, C::COLUMNS, C::UNIT, true);
    int read =
            bytes_at_once(p.in, p.cin, p.groups.cin, (int)pnet_storage_bytes(p.set.rows.storage)),
        leaving = C::CONSUMERS / 32 * C::LEAVING;
    unsigned long long *taken =
        (unsigned long long *)((char *)work + pnet_cuda_conv_tiles_taken_at(&all));
    tile_scales scales = {};
    if constexpr (C::BY_TILE) scales = pnet_cuda_conv_tile_scales(p, all, work);
    tile_launch l = {p, all, (const unsigned char *)work, taken,
        (TILE_SHARED - AT_RING - C::RING * C::BLOCK - leaving) / (2 * C::STAGED), read == 16,
        read >= 4, scales.tile, scales.weight_size};
    size_t bytes = (size_t)(AT_RING + C::RING * C::BLOCK + 2 * l.slots * C::STAGED + leaving);
    cudaFuncSetAttribute(mvmr_tiles<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    for (int first = 0; first < all.whole; first += all.wide) {
        constexpr int ROWS = C::ROWS * C::CLUSTER;
        l.b = pnet_cuda_conv_blocks_part(all, first);
        int64_t items = (p.set.rows.most + ROWS - 1) / ROWS * p.groups.count * l.b.wide,
                most = processors / C::CLUSTER;
        pnet_cuda_conv_pack_weights(l.b, p, work, scales.weight_size);
        cudaMemsetAsync(taken, 0, sizeof *taken, pnet_cuda_stream());
        if constexpr (C::CLUSTER == 1) {
            mvmr_tiles<C><<<(unsigned)(items < most ? items : most), C::THREADS, bytes,
                pnet_cuda_stream()>>>(l);
        } else {
            cudaLaunchAttribute cluster = {};
            cluster.id = cudaLaunchAttributeClusterDimension;
            cluster.val.clusterDim = {C::CLUSTER, 1, 1};
            cudaLaunchConfig_t how = {};
            how.gridDim = (unsigned)(items < most ? items : most) * C::CLUSTER;
            how.blockDim = C::THREADS;
            how.dynamicSmemBytes = bytes;
            how.stream = pnet_cuda_stream();
            how.attrs = &cluster;
            how.numAttrs = 1;
            cudaLaunchKernelEx(&how, mvmr_tiles<C>, l);
        }
    }
}

template <conv_form FORM, int PIECES, int COLUMNS>
static void launch_tile_width(const conv_product &p, void *work)
{
    if (is_even<tile_config<FORM, PIECES, COLUMNS, true>>(p))
        launch_tiles<tile_config<FORM, PIECES, COLUMNS, true>>(p, work);
    else
        launch_tiles<tile_config<FORM, PIECES, COLUMNS, false>>(p, work);
}

template <conv_form FORM, int PIECES>
static void launch_tile_columns(const conv_product &p, void *work)
{
    switch (pnet_cuda_conv_tiles_columns(p.groups.cout)) {
    case 128: launch_tile_width<FORM, PIECES, 128>(p, work); break;
    case 64: launch_tile_width<FORM, PIECES, 64>(p, work); break;
    default: launch_tile_width<FORM, PIECES, 32>(p, work); break;
    }
}

/* Each has a file of its own. */
void pnet_cuda_conv_tiles_split(const conv_product &p, void *work);
void pnet_cuda_conv_tiles_scaled(const conv_product &p, void *work);
void pnet_cuda_conv_tiles_bfloat(const conv_product &p, void *work);
void pnet_cuda_conv_tiles_half(const conv_product &p, void *work);

template <conv_form FORM> static void launch_tile_form(const conv_product &p, void *work)
{
    if (pnet_cuda_conv_tiles_pieces(FORM, p.groups.cin) == 2)
        launch_tile_columns<FORM, 2>(p, work);
    else
        launch_tile_columns<FORM, 1>(p, work);
}

#endif
