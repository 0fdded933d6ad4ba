/* MVMR on tiles (kernels/geometry.h). A block of threads goes from tile to tile. One warp starts copies of the weights that
   the tile's cells need, three more stage its distinct neighbours, some channels at a time and one step ahead, while two
   warpgroups sum the runs of cell after cell straight into the registers that the matrix unit reads. A warpgroup has
   two blocks of 64 rows (one where sums must be taken out of the matrix unit): it gathers for one while the other is
   multiplied. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_MVMR_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_MVMR_CUH

#include "kernels/cuda/conv_tiles_stage.cuh"
#include "kernels/cuda/conv_tiles_write.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Issues the products of one block of weights; small ones first, so that little is lost when sums are cut off. */
template <class C>
static __device__ __forceinline__ void multiply_tile(
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

/* What a warp of the consumers knows of an item; cells 32 at a time, one a lane. */
template <class C> struct tile_view {
    tile_item item;
    int block, count, neighbours, longest;
    const pnet_tile_cell *cells;
    tile_gather gather;
    uint32_t blocks,
        runs[C::BLOCKS]; /* of the lane's cell: which blocks have it; rounds of the warp's slabs */
};

template <class C>
static __device__ __forceinline__ void view_cells(tile_view<C> &v, const tile_launch &l, int first)
{
    int c = first + threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    bool here = c < v.count, dense = here && is_dense(l);
    v.blocks = dense ? 15 : here ? v.cells[c].blocks : 0;
#pragma unroll
    for (int i = 0; i < C::BLOCKS; i++)
        v.runs[i] = dense ? 1 : here ? v.cells[c].rounds[(v.block + i) * 4 + warp] : 0;
}

/* The one round of a slab of a dense product, `row0` of the item's rows being its first. It stays in the ring's first
   place, and of the others none is ever read: ready is never fallen short of. */
static __device__ __forceinline__ void write_dense_round(const tile_rounds &r, int row0, int rows)
{
    int lane = threadIdx.x % 32, row = row0 + lane;
    uint32_t low = row < rows ? row + 1 : 0, high = row + 8 < rows ? row + 9 : 0;
    if (lane < 8) shared_store(r.ring + lane * 4, low | high << 16);
    __syncwarp();
}

/* Looks at an item and sends for its first rounds. */
template <class C>
static __device__ __forceinline__ void view_item(
    tile_view<C> &v, tile_rounds (&rounds)[C::BLOCKS], const tile_launch &l, int64_t at)
{
    int warpgroup = threadIdx.x / 128, warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    v.item = item_at<C>(l, at);
    tile_list list = list_at<C>(l, v.item);
    v.block = C::BLOCKS == 2 ? 2 * warpgroup : 2 * v.item.half + warpgroup;
    v.count = list.count;
    v.neighbours = list.neighbours;
    v.cells = list.cells;
    int odd = C::PIECES > 1 ? lane / 4 % 2 : 0;
    v.gather = {list.words, list.neighbour, staged_count(l, list.neighbours),
        list.neighbours >= 2 * l.slots, 0, 64 - 128 * odd};
    const pnet_tile *t = is_dense(l) ? nullptr : l.p.set.tiles.tile + v.item.tile;
    v.longest = t ? t->longest : 1;
#pragma unroll
    for (int i = 0; i < C::BLOCKS; i++) {
        int slab = (v.block + i) * 4 + warp;
        uint32_t first = 0, end = 0;
        if (t) {
            first = t->first[slab];
            end = slab + 1 < PNET_TILE_SLABS ? t->first[slab + 1] : t->rounds;
        }
        /* the same in all lanes, which the compiler cannot know */
        rounds[i].first = __shfl_sync(~0u, first, 0);
        rounds[i].count = __shfl_sync(~0u, end - first, 0);
        if (is_dense(l))
            write_dense_round(rounds[i], slab * 16 - v.item.half * C::ROWS, list.neighbours);
        rounds_begin(rounds[i], v.gather);
    }
    view_cells(v, l, 0);
}

/* By how much to scale what is gathered. */
static __device__ __forceinline__ float stage_scale(uint32_t shared, uint32_t place, int longest)
{
    uint4 sizes = shared_load(shared + AT_SIZES + place * 16);
    float most =
        fmaxf(fmaxf(__uint_as_float(sizes.x), __uint_as_float(sizes.y)), __uint_as_float(sizes.z));
    int top = TILE_TOP;
    for (int n = longest / TILE_TOP_RUN; n > 0; n /= 2) top--;
    return conv_scale(most, top);
}

/* Two warpgroups gather and multiply. */
template <class C> static __device__ void consume(const tile_launch &l, uint32_t shared)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int odd = C::PIECES > 1 ? lane / 4 % 2 : 0;
    int64_t items = item_count<C>(l), live = pnet_live(l.p.set.rows);
    const float *scales = conv_block_scales(l.b, l.blocks);
    /* sums; of those that must be taken out of the matrix unit, what it has now */
    float sum[C::BLOCKS][C::COLUMNS / 2], part[C::SCALED ? C::COLUMNS / 2 : 1] = {};
    float factor = 0;
    uint32_t a[C::PLANES][C::STEPS][4];
    uint32_t turn = 0, chunk = 0, pending = 0; /* the barrier of the weights in use */
    tile_rounds rounds[C::BLOCKS];
#pragma unroll
    for (int i = 0; i < C::BLOCKS; i++)
        rounds[i] = {shared + AT_ROUNDS + (warp * 2 + i) * ROUNDS_RING * ROUND_BYTES,
            shared + AT_ROUNDS_FULL + (warp * 2 + i) * 32, 0, 0, 0, 0, 0, 0};
    auto finish = [&]() {
        product_wait();
        if constexpr (C::SCALED) {
            product_touch(part);
#pragma unroll
            for (int i = 0; i < C::COLUMNS / 2; i++) sum[0][i] += part[i] * factor;
            factor = 0;
        } else {
#pragma unroll
            for (int i = 0; i < C::BLOCKS; i++) product_touch(sum[i]);
        }
    };
    auto release = [&]() {
        if (pending && lane == 0) barrier_arrive(pending);
        pending = 0;
    };
    tile_view<C> v;
    int64_t at = blockIdx.x;
    if (at < items) view_item<C>(v, rounds, l, at);
    while (at < items) {
#pragma unroll
        for (int i = 0; i < C::BLOCKS; i++)
#pragma unroll
            for (int j = 0; j < C::COLUMNS / 2; j++) sum[i][j] = 0;
        for (int deep = 0; deep < l.b.deep; deep++, chunk++) {
            uint32_t place = chunk % 2;
            v.gather.stage = stage_at<C>(l, shared, chunk, takes_both(l, v.neighbours)) +
                             lane % 4 * 16 + odd * 64;
            if (deep > 0) {
#pragma unroll
                for (int i = 0; i < C::BLOCKS; i++) rounds_begin(rounds[i], v.gather);
            }
            tile_source from = source_at<C>(l, v.item, deep);
            barrier_wait(shared + AT_STAGED + place * 8, chunk / 2 & 1);
            float scale = 1, unscale = 1;
            if constexpr (C::SCALED) {
                barrier_wait(shared + AT_SIZED + place * 8, chunk / 2 & 1);
                scale = stage_scale(shared, place, v.longest);
                unscale = 1 / scale;
            }
            for (int c0 = 0; c0 < v.count; c0 += 32) {
                if (c0 + deep > 0 && v.count > 32) view_cells(v, l, c0);
                uint32_t has[C::BLOCKS];
#pragma unroll
                for (int i = 0; i < C::BLOCKS; i++)
                    has[i] = __ballot_sync(~0u, v.blocks >> (v.block + i) & 1);
                for (uint32_t left = __ballot_sync(~0u, v.blocks & item_blocks<C>(v.item)); left;
                     left &= left - 1, turn++) {
                    int c = __ffs(left) - 1;
                    uint32_t slot = turn % C::RING, weights = shared + AT_RING + slot * C::BLOCK;
                    float next = 0;
                    if constexpr (C::SCALED)
                        next = __ldg(scales + weights_at(l, v.item,
                                                  is_dense(l) ? 0 : v.cells[c0 + c].cell, deep));
#pragma unroll
                    for (int i = 0; i < C::BLOCKS; i++) {
                        bool mine = has[i] >> c & 1;
                        tile_portion<C> x = {};
                        if (mine)
                            gather_runs<C>(
                                x, v.gather, from, rounds[i], __shfl_sync(~0u, v.runs[i], c));
                        finish();
                        if (i == 0) {
                            release();
                            barrier_wait(shared + AT_FULL + slot * 8, turn / C::RING & 1);
                        }
                        if (!mine) continue;
                        make_operands<C>(a, x, scale);
                        if constexpr (C::SCALED) {
                            factor = next * unscale;
                            product_touch(part);
                            product_fence();
                            multiply_tile<C>(part, a, weights);
                        } else {
                            product_touch(sum[i]);
                            product_fence();
                            multiply_tile<C>(sum[i], a, weights);
                        }
                        product_commit();
                    }
                    pending = shared + AT_EMPTY + slot * 8;
                }
            }
            barrier_arrive(shared + AT_FREE + place * 8);
        }
        finish();
        release();
        tile_item item = v.item;
        int block = v.block;
        bool plain = v.neighbours < 0;
        at += gridDim.x;
        if (at < items) view_item<C>(v, rounds, l, at);
        if (plain) {
            write_plain<C>(l, item, live);
            continue;
        }
#pragma unroll
        for (int i = 0; i < C::BLOCKS; i++) write_block<C>(l, item, sum[i], block + i, live);
    }
}
#endif

template <class C>
static __global__ __launch_bounds__(TILE_THREADS, 1) void mvmr_tiles(tile_launch l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    uint32_t shared = shared_base(memory);
    if (threadIdx.x == 0) {
        uint64_t *full = (uint64_t *)(memory + AT_FULL), *empty = (uint64_t *)(memory + AT_EMPTY);
        for (int i = 0; i < C::RING; i++) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, TILE_CONSUMERS / 32);
        }
        for (int i = 0; i < 2; i++) {
            barrier_init((uint64_t *)(memory + AT_STAGED) + i, TILE_STAGERS);
            barrier_init((uint64_t *)(memory + AT_SIZED) + i, TILE_STAGERS);
            barrier_init((uint64_t *)(memory + AT_FREE) + i, TILE_CONSUMERS);
        }
        for (int i = 0; i < TILE_CONSUMERS / 32 * 8; i++)
            barrier_init((uint64_t *)(memory + AT_ROUNDS_FULL) + i, 1);
        fence_async();
    }
    __syncthreads();
    if (threadIdx.x < TILE_CONSUMERS) {
        registers_more<232>();
        consume<C>(l, shared);
    } else {
        registers_fewer<40>();
        if (threadIdx.x < TILE_CONSUMERS + 32)
            feed_weights<C>(l, shared);
        else
            stage_neighbours<C>(l, shared);
    }
#else
    (void)l;
#endif
}

template <class C> static void launch_tiles(const conv_product &p, void *work)
{
    int processors = 0, device = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    conv_blocks b =
        conv_block_weights(C::FORM, p.set.cells, p.groups, C::DEPTH, C::COLUMNS, C::UNIT);
    conv_pack_weights(b, p, work);
    int size = pnet_storage_bytes(p.set.rows.storage), many = 16 / size;
    enum pnet_storage staged = C::SCALED   ? PNET_STORE_F32
                               : C::BFLOAT ? PNET_STORE_BF16
                                           : PNET_STORE_FP16;
    bool wide = (p.cin | p.groups.cin) % many == 0 && (uintptr_t)p.in % 16 == 0;
    tile_launch l = {p, b, (const unsigned char *)work,
        (TILE_SHARED - AT_RING - C::RING * C::BLOCK) / (2 * C::STAGED), wide,
        wide && p.set.rows.storage == staged && p.groups.cin % C::DEPTH == 0};
    int64_t items = (p.set.rows.most + C::ROWS - 1) / C::ROWS * p.groups.count * b.wide;
    size_t bytes = (size_t)(AT_RING + C::RING * C::BLOCK + 2 * l.slots * C::STAGED);
    cudaFuncSetAttribute(mvmr_tiles<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    mvmr_tiles<C><<<(unsigned)(items < processors ? items : processors), TILE_THREADS, bytes,
        cudaStreamPerThread>>>(l);
}

/* Channels in pieces of 64 bytes: two at a time, unless half of the last two would be empty. */
static inline int tile_pieces(conv_form form, int channels)
{
    int piece = form == CONV_SPLIT || form == CONV_SCALED ? 16 : 32;
    return (channels + piece - 1) / piece % 2 ? 1 : 2;
}

static inline int tile_columns(int channels)
{
    return channels > 64 ? 128 : channels > 32 ? 64 : 32;
}

template <conv_form FORM, int PIECES>
static void launch_tile_columns(const conv_product &p, void *work)
{
    switch (tile_columns(p.groups.cout)) {
    case 128: launch_tiles<tile_config<FORM, PIECES, 128>>(p, work); break;
    case 64: launch_tiles<tile_config<FORM, PIECES, 64>>(p, work); break;
    default: launch_tiles<tile_config<FORM, PIECES, 32>>(p, work); break;
    }
}

/* A file each. */
void conv_tiles_split(const conv_product &p, void *work);
void conv_tiles_scaled(const conv_product &p, void *work);
void conv_tiles_bfloat(const conv_product &p, void *work);
void conv_tiles_half(const conv_product &p, void *work);

template <conv_form FORM> static void launch_tile_form(const conv_product &p, void *work)
{
    if (tile_pieces(FORM, p.groups.cin) == 2)
        launch_tile_columns<FORM, 2>(p, work);
    else
        launch_tile_columns<FORM, 1>(p, work);
}

#endif
