/* VVOR in 16 bits from tiles, for layers wider than 64 channels. Triplets are sorted by kernel cell, chunk by chunk
   (conv_sort.cuh). A block of threads has the sum of one cell for 128 channels of the side of rows and 128 or 256 of the
   gathered side. Producers copy the two rows of each of 64 triplets to shared memory, several steps ahead, as the matrix
   unit reads them; multipliers multiply. Runs are not summed first. Of the steps of a cell a block has every m-th, so
   that all blocks go through the rows together and find in the cache what another has read. */
#include "kernels/cuda/conv/vvor/conv_vvor_sorted.cuh"

enum {
    SORTED_BLOCK = SORT_STEP * 128, /* 64 channels of a step */
    SORTED_MULTIPLIERS = 256,       /* two warpgroups, 64 channels of the rows each */
    SORTED_PRODUCERS = 256,         /* eight warps, 8 triplets of a step each */
    SORTED_ALL = SORTED_MULTIPLIERS + SORTED_PRODUCERS
};

/* HALVES: of 128 gathered channels. FLOATS: rows are stored in float32, and scaled to half on their way to shared memory. */
template <bool BFLOAT_, int HALVES_, bool FLOATS_ = false> struct sorted_config {
    static constexpr bool BFLOAT = BFLOAT_, FLOATS = FLOATS_;
    static constexpr int HALVES = HALVES_, N = HALVES * 128;
    static_assert(!FLOATS || (!BFLOAT && HALVES == 1), "a producer has registers for 128 channels");
    static constexpr int PANEL = 2 * HALVES * SORTED_BLOCK, STAGE = PANEL + 2 * SORTED_BLOCK;
    static constexpr int STAGES = HALVES == 1 ? 6 : 4, BYTES = STAGES * STAGE;
    static constexpr int SUMS = N * SORTED_SIDE;
    static_assert((int)SORTED_THREADS == (int)SORTED_MULTIPLIERS, "a multiplier has sums");
    static __device__ __forceinline__ int2 place(int t, int e) /* as the matrix unit has them */
    {
        return {t / 32 * 16 + t % 32 / 4 + e / 2 % 2 * 8, e / 4 * 8 + t % 4 * 2 + e % 2};
    }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Shared memory besides the stages. */
template <class C> struct sorted_control {
    uint32_t step[SORT_CELLS + 1];
    uint64_t full[C::STAGES], empty[C::STAGES];
};

template <class C>
static __device__ __forceinline__ void produce(
    const sorted_job &j, sorted_walk walk, unsigned char *memory, sorted_control<C> &c)
{
    enum { AHEAD = 2 };
    int thread = (int)threadIdx.x - SORTED_MULTIPLIERS, warp = thread / 32, lane = thread % 32;
    sorted_kind k = kind_of(j, (int)blockIdx.x / j.blocks);
    int n_left = j.gathered_width - k.n0 - lane % 8 * 8,
        m_left = j.rows_width - k.m0 - lane % 8 * 8;
    /* channels beyond the last become zeros; nothing outside of the row is read */
    const char *gathered = (const char *)j.gathered + 2 * (int64_t)k.group * j.gathered_width +
                           (n_left > 0 ? 2 * (k.n0 + lane % 8 * 8) : 0),
               *rows = (const char *)j.rows + 2 * (int64_t)k.group * j.rows_width +
                       (m_left > 0 ? 2 * (k.m0 + lane % 8 * 8) : 0);
    uint32_t n_stride = (uint32_t)j.gathered_stride * 2, m_stride = (uint32_t)j.rows_stride * 2;
    int n_bytes[2 * C::HALVES], m_bytes[2];
#pragma unroll
    for (int block = 0; block < 2 * C::HALVES; block++)
        n_bytes[block] = block * 64 < n_left ? 16 : 0;
#pragma unroll
    for (int block = 0; block < 2; block++) m_bytes[block] = block * 64 < m_left ? 16 : 0;
    const int2 *list = j.sorted.pair + warp * 8 + lane / 8;
    /* rows of 128 bytes, 8 lanes each, units in the order that the matrix unit expects */
    uint32_t base = shared_address(memory) + (warp * 8 + lane / 8) * 128;
    uint32_t to[2] = {
        base + (lane % 8 ^ lane / 8) * 16, base + 512 + (lane % 8 ^ (lane / 8 + 4)) * 16};
    int2 pair[AHEAD + 1][2];
    uint32_t steps = walk.high - walk.low, stage = 0, turn = 1;
    auto look = [&](int i) {
        if (!walk.next()) return;
        pair[i][0] = __ldg(list + (int64_t)walk.at * SORT_STEP);
        pair[i][1] = __ldg(list + (int64_t)walk.at * SORT_STEP + 4);
    };
#pragma unroll
    for (int i = 0; i < AHEAD; i++) look(i);
#pragma unroll 1
    for (uint32_t step = 0; step < steps; step++) {
        look(AHEAD);
        if (step >= C::STAGES) barrier_wait(&c.empty[stage], turn);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            bool there = pair[0][i].x >= 0;
            const char *row = rows + (uint64_t)m_stride * (uint32_t)max(pair[0][i].x, 0),
                       *other = gathered + (uint64_t)n_stride * (uint32_t)max(pair[0][i].y, 0);
            uint32_t place = to[i] + stage * C::STAGE;
#pragma unroll
            for (int block = 0; block < 2 * C::HALVES; block++)
                copy16_part(place + block * SORTED_BLOCK, other + n_bytes[block] * (block * 8),
                    there ? n_bytes[block] : 0);
#pragma unroll
            for (int block = 0; block < 2; block++)
                copy16_part(place + C::PANEL + block * SORTED_BLOCK,
                    row + m_bytes[block] * (block * 8), there ? m_bytes[block] : 0);
        }
        barrier_arrive_copies(shared_address(&c.full[stage]));
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            pair[i][0] = pair[i + 1][0];
            pair[i][1] = pair[i + 1][1];
        }
        if (++stage == C::STAGES) {
            stage = 0;
            turn ^= 1;
        }
    }
}

/* 64 channels of a row, of which a lane has 8, and as they are multiplied. */
struct float_unit {
    float4 low, high;
};

static __device__ __forceinline__ float_unit unit_load(const float *from, bool any)
{
    if (!any) return {};
    const float4 *at = (const float4 *)from;
    return {__ldg(at), __ldg(at + 1)};
}

static __device__ __forceinline__ uint4 unit_narrow(const float_unit &u, float scale)
{
    return {narrow_pair<__half>(u.low.x * scale, u.low.y * scale),
        narrow_pair<__half>(u.low.z * scale, u.low.w * scale),
        narrow_pair<__half>(u.high.x * scale, u.high.y * scale),
        narrow_pair<__half>(u.high.z * scale, u.high.w * scale)};
}

/* The same for rows in float32. Half of a step's rows are on their way while the other half is narrowed. */
template <class C>
static __device__ __forceinline__ void produce_floats(
    const sorted_job &j, sorted_walk walk, unsigned char *memory, sorted_control<C> &c)
{
    int thread = (int)threadIdx.x - SORTED_MULTIPLIERS, warp = thread / 32, lane = thread % 32;
    sorted_kind k = kind_of(j, (int)blockIdx.x / j.blocks);
    int n_left = j.gathered_width - k.n0 - lane % 8 * 8,
        m_left = j.rows_width - k.m0 - lane % 8 * 8;
    const float *gathered = (const float *)j.gathered + (int64_t)k.group * j.gathered_width + k.n0 +
                            lane % 8 * 8,
                *rows =
                    (const float *)j.rows + (int64_t)k.group * j.rows_width + k.m0 + lane % 8 * 8;
    vvor_scales scale = scales_of(j);
    const int2 *list = j.sorted.pair + warp * 8 + lane / 8;
    uint32_t base = shared_address(memory) + (warp * 8 + lane / 8) * 128;
    uint32_t to[2] = {
        base + (lane % 8 ^ lane / 8) * 16, base + 512 + (lane % 8 ^ (lane / 8 + 4)) * 16};
    uint32_t steps = walk.high - walk.low, stage = 0, turn = 1;
    int2 pair[2], ahead[2];
    float_unit n[2][2], m[2][2]; /* [triplet][64 channels] */
    auto look = [&]() {
        if (!walk.next()) return;
        ahead[0] = __ldg(list + (int64_t)walk.at * SORT_STEP);
        ahead[1] = __ldg(list + (int64_t)walk.at * SORT_STEP + 4);
    };
    auto load = [&](int i) {
        pair[i] = ahead[i];
        bool there = pair[i].x >= 0;
        const float *row = rows + (uint64_t)j.rows_stride * (uint32_t)max(pair[i].x, 0),
                    *other = gathered + (uint64_t)j.gathered_stride * (uint32_t)max(pair[i].y, 0);
#pragma unroll
        for (int block = 0; block < 2; block++) {
            n[i][block] = unit_load(other + block * 64, there && block * 64 < n_left);
            m[i][block] = unit_load(row + block * 64, there && block * 64 < m_left);
        }
    };
    if (steps == 0) return;
    look();
    load(0);
    load(1);
    look();
#pragma unroll 1
    for (uint32_t step = 0; step < steps; step++) {
        if (step >= C::STAGES) barrier_wait(&c.empty[stage], turn);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t place = to[i] + stage * C::STAGE;
#pragma unroll
            for (int block = 0; block < 2; block++) {
                shared_store(
                    place + block * SORTED_BLOCK, unit_narrow(n[i][block], scale.gathered));
                shared_store(
                    place + C::PANEL + block * SORTED_BLOCK, unit_narrow(m[i][block], scale.rows));
            }
            if (step + 1 < steps) load(i);
        }
        look();
        fence_async();
        barrier_arrive(&c.full[stage]);
        if (++stage == C::STAGES) {
            stage = 0;
            turn ^= 1;
        }
    }
}

template <class C>
static __device__ __forceinline__ void multiply(
    const sorted_job &j, sorted_walk walk, unsigned char *memory, sorted_control<C> &c)
{
    int warpgroup = __shfl_sync(~0u, (int)threadIdx.x / 128, 0), cell = -1;
    uint32_t step = 0, low = walk.low, high = walk.high;
    float sum[C::HALVES][64];
#pragma unroll 1
    for (; walk.next(); step++) {
        uint32_t stage = step % C::STAGES;
        bool fresh = walk.cell != cell;
        if (fresh && cell >= 0) {
            product_wait();
#pragma unroll
            for (int h = 0; h < C::HALVES; h++) product_touch(sum[h]);
            put_sums<C>(
                j, c.step, low, high, cell, reinterpret_cast<float(&)[SUMS_OF_A_THREAD<C>]>(sum));
        }
        cell = walk.cell;
        barrier_wait(&c.full[stage], step / C::STAGES % 2);
        fence_async(); /* what was copied is read by the matrix unit */
        const unsigned char *panel = memory + stage * C::STAGE;
        uint64_t a = product_panel(panel + C::PANEL + warpgroup * SORTED_BLOCK, SORTED_BLOCK);
#pragma unroll
        for (int h = 0; h < C::HALVES; h++) product_touch(sum[h]);
        product_fence();
#pragma unroll
        for (int i = 0; i < SORT_STEP / 16; i++)
#pragma unroll
            for (int h = 0; h < C::HALVES; h++)
                product_outer<128, C::BFLOAT>(sum[h], a + i * (2048 >> 4),
                    product_panel(panel + 2 * h * SORTED_BLOCK, SORTED_BLOCK) + i * (2048 >> 4),
                    i == 0 && fresh);
        product_commit();
        if (step > 0) {
            product_wait<1>();
            barrier_arrive(&c.empty[(step - 1) % C::STAGES]);
        }
    }
    product_wait();
#pragma unroll
    for (int h = 0; h < C::HALVES; h++) product_touch(sum[h]);
    if (cell >= 0)
        put_sums<C>(
            j, c.step, low, high, cell, reinterpret_cast<float(&)[SUMS_OF_A_THREAD<C>]>(sum));
}
#endif

template <class C>
static __global__ __launch_bounds__(SORTED_ALL, 1) void sorted_vvor_kernel(
    const __grid_constant__ sorted_job j)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ sorted_control<C> c;
    for (int i = threadIdx.x; i <= j.cells; i += SORTED_ALL) c.step[i] = j.sorted.share->step[i];
    __syncthreads(); /* compute-sanitizer racecheck reports the initialisation of the barriers as a write to the steps */
    if (threadIdx.x < C::STAGES) {
        barrier_init(&c.full[threadIdx.x], SORTED_PRODUCERS);
        barrier_init(&c.empty[threadIdx.x], SORTED_MULTIPLIERS);
    }
    fence_async();
    __syncthreads();
    sorted_walk walk(c.step, j.cells, j.blocks, (int)blockIdx.x % j.blocks);
    if (threadIdx.x < SORTED_MULTIPLIERS) {
        if constexpr (C::HALVES > 1) registers_more<176>();
        multiply<C>(j, walk, memory, c);
    } else {
        if constexpr (C::HALVES > 1) registers_fewer<80>();
        if constexpr (C::FLOATS)
            produce_floats<C>(j, walk, memory, c);
        else
            produce<C>(j, walk, memory, c);
    }
#endif
}

template <class C>
static void multiply_sorted(const conv_outer &o, const sorted_plan &p, sorted_job j, void *work)
{
    char *memory = (char *)work + p.slot_bytes;
    cudaFuncSetAttribute(
        sorted_vvor_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
    sort_window all = {0, o.set.cells};
    pnet_cuda_sort_count(o.set, all, p.sort, memory);
    for (int chunk = 0; chunk < p.sort.chunks; chunk++) {
        j.sorted = pnet_cuda_sort_one_chunk(o.set, all, p.sort, chunk, memory);
        j.first = chunk == 0;
        sorted_vvor_kernel<C>
            <<<(unsigned)(p.kinds * p.blocks), SORTED_ALL, C::BYTES, pnet_cuda_stream()>>>(j);
        reduce_sorted<C><<<(unsigned)(p.kinds * j.cells * (C::SUMS / SORTED_THREADS)),
            SORTED_THREADS, 0, pnet_cuda_stream()>>>(j);
    }
}

template <bool BFLOAT>
static void choose_columns(
    const conv_outer &o, const sorted_plan &p, const sorted_job &j, void *work)
{
    if (p.columns == 256)
        multiply_sorted<sorted_config<BFLOAT, 2>>(o, p, j, work);
    else
        multiply_sorted<sorted_config<BFLOAT, 1>>(o, p, j, work);
}

void pnet_cuda_conv_sorted_vvor(
    const struct conv_outer *sum, enum pnet_precision precision, void *work)
{
    const conv_outer &o = *sum;
    bool floats = o.set.rows.storage == PNET_STORE_F32;
    sorted_plan p = pnet_cuda_conv_sorted_plan(&o.set, &o.groups, o.swapped, floats, false);
    sorted_job j = sorted_job_of(o, p, floats, work);
    if (floats) {
        pnet_cuda_vvor_measure(o, (vvor_measures *)((char *)work + p.measures));
        multiply_sorted<sorted_config<false, 1, true>>(o, p, j, work);
    } else if (pnet_cuda_conv_form_of(precision) == CONV_BFLOAT)
        choose_columns<true>(o, p, j, work);
    else
        choose_columns<false>(o, p, j, work);
}
