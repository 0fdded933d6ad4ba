/* VVOR by matrix instructions of a warp, for GPUs from architecture 80 on: of triplets sorted by kernel cell, as
   conv_vvor_sorted.cu, and of the rows of dense products, which are pairs (row, row) in order. A block of threads has the sum
   of one cell for 128 channels of each side. All threads copy the two rows of each of 64 triplets to shared memory, some
   steps ahead (float32 a step ahead, by registers), and multiply: a warp has 32 channels of the side of rows and 64 of the
   gathered side. */
#include "kernels/cuda/conv/vvor/conv_vvor_sorted.cuh"
#include "kernels/cuda/conv/warps/conv_warps.cuh"

enum {
    SIDE_PITCH = 256, /* bytes of a row of one side, in 16 bits */
    STEP_BYTES = 2 * SORT_STEP * SIDE_PITCH,
    MOST_STAGES = 6
};

/* FORM, CONV_SCALED and CONV_SPLIT: features in float32, scaled to half once or as the sum of two. Those of the latter take
   twice the place, so a step is copied in two parts, and their sums leave the matrix unit, which truncates them, after
   each part. */
template <conv_form FORM> struct warps_config {
    static constexpr bool BFLOAT = FORM == CONV_BFLOAT, SPLIT = FORM == CONV_SPLIT,
                          FLOATS = SPLIT || FORM == CONV_SCALED;
    static constexpr int PARTS = SPLIT ? 2 : 1, ROWS = SORT_STEP / PARTS, OWN = ROWS / 16,
                         PLANE = ROWS * SIDE_PITCH, SIDE = PLANE * PARTS;
    static constexpr int HALVES = 1, SUMS = 128 * SORTED_SIDE;
    /* Sum e of thread t: [16 channels of rows][8 gathered channels][mma.sync's four]. */
    static __device__ __forceinline__ int2 place(int t, int e)
    {
        return {t / 32 % 4 * 32 + e / 32 * 16 + t % 32 / 4 + e / 2 % 2 * 8,
            t / 128 * 64 + e % 32 / 4 * 8 + t % 4 * 2 + e % 2};
    }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* What a thread copies of each step: 8 channels of each side of every 16th triplet. */
struct side_copies {
    const char *gathered, *rows;
    int64_t gathered_stride, rows_stride; /* bytes */
    bool any_gathered, any_rows;
    vvor_scales scale;
};

template <bool FLOATS>
static __device__ __forceinline__ side_copies copies_of(const sorted_job &j, const sorted_kind &k)
{
    constexpr int SIZE = FLOATS ? 4 : 2;
    int n = k.n0 + threadIdx.x % 16 * 8, m = k.m0 + threadIdx.x % 16 * 8;
    side_copies c = {};
    c.any_gathered = n < j.gathered_width;
    c.any_rows = m < j.rows_width;
    c.gathered = (const char *)j.gathered +
                 SIZE * ((int64_t)k.group * j.gathered_width + (c.any_gathered ? n : 0));
    c.rows = (const char *)j.rows + SIZE * ((int64_t)k.group * j.rows_width + (c.any_rows ? m : 0));
    c.gathered_stride = (int64_t)j.gathered_stride * SIZE;
    c.rows_stride = (int64_t)j.rows_stride * SIZE;
    if constexpr (FLOATS) c.scale = scales_of(j);
    return c;
}

/* Stores 8 numbers in half, and, with SPLIT, what that leaves of them. */
template <bool SPLIT>
static __device__ __forceinline__ void store_unit(
    uint32_t to, int plane, const float (&x)[8], float scale)
{
    uint32_t high[4], low[4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float a = x[2 * i] * scale, b = x[2 * i + 1] * scale;
        high[i] = narrow_pair<__half>(a, b);
        if constexpr (SPLIT) {
            float2 near = widen_pair<__half>(high[i]);
            low[i] = narrow_pair<__half>(a - near.x, b - near.y);
        }
    }
    shared_store(to, uint4{high[0], high[1], high[2], high[3]});
    if constexpr (SPLIT) shared_store(to + plane, uint4{low[0], low[1], low[2], low[3]});
}

/* The parts of a block's steps, in order. */
template <int PARTS> struct part_walk {
    sorted_walk step;
    int part;
    __device__ __forceinline__ explicit part_walk(const sorted_walk &w) : step(w), part(PARTS - 1)
    {
    }
    __device__ __forceinline__ bool next()
    {
        if (++part < PARTS) return true;
        part = 0;
        return step.next();
    }
};

/* The triplets of a part that a thread copies. */
template <class C> struct part_pairs {
    int2 at[C::OWN];
};

template <class C>
static __device__ __forceinline__ void load_pairs(
    part_pairs<C> &p, const sorted_job &j, const part_walk<C::PARTS> &w)
{
    int64_t first = (int64_t)w.step.at * SORT_STEP + w.part * C::ROWS + threadIdx.x / 16;
    if (j.sorted.pair) {
#pragma unroll
        for (int i = 0; i < C::OWN; i++) p.at[i] = __ldg(j.sorted.pair + first + i * 16);
    } else {
        int64_t live = pnet_live(j.outer.set.rows);
#pragma unroll
        for (int i = 0; i < C::OWN; i++) {
            p.at[i].x = first + i * 16 < live ? (int)first + i * 16 : -1;
            p.at[i].y = p.at[i].x;
        }
    }
}

/* Where the thread's i-th unit of a part lies in a stage. */
static __device__ __forceinline__ uint32_t unit_at(uint32_t stage, int i)
{
    int n = i * 16 + threadIdx.x / 16;
    return stage + n * SIDE_PITCH + ((threadIdx.x % 16 ^ n % 8) << 4);
}

template <class C>
static __device__ __forceinline__ void copy_part(
    const side_copies &c, const part_pairs<C> &p, uint32_t stage)
{
#pragma unroll
    for (int i = 0; i < C::OWN; i++) {
        bool there = p.at[i].x >= 0;
        uint32_t to = unit_at(stage, i);
        copy16_any(to, c.rows + c.rows_stride * max(p.at[i].x, 0), there && c.any_rows);
        copy16_any(to + C::SIDE, c.gathered + c.gathered_stride * max(p.at[i].y, 0),
            there && c.any_gathered);
    }
}

/* The float32 of a part, which wait in registers while the part before them is multiplied. */
template <class C> struct part_floats {
    float row[C::OWN][8], other[C::OWN][8];
};

static __device__ __forceinline__ void load_unit(float (&x)[8], const char *from, bool any)
{
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = 0;
    if (!any) return;
    load_wide<4>((const float *)from, x);
    load_wide<4>((const float *)from + 4, x + 4);
}

template <class C>
static __device__ __forceinline__ void load_floats(
    part_floats<C> &f, const side_copies &c, const part_pairs<C> &p)
{
#pragma unroll
    for (int i = 0; i < C::OWN; i++) {
        bool there = p.at[i].x >= 0;
        load_unit(f.row[i], c.rows + c.rows_stride * max(p.at[i].x, 0), there && c.any_rows);
        load_unit(f.other[i], c.gathered + c.gathered_stride * max(p.at[i].y, 0),
            there && c.any_gathered);
    }
}

template <class C>
static __device__ __forceinline__ void store_floats(
    const part_floats<C> &f, const side_copies &c, uint32_t stage)
{
#pragma unroll
    for (int i = 0; i < C::OWN; i++) {
        uint32_t to = unit_at(stage, i);
        store_unit<C::SPLIT>(to, C::PLANE, f.row[i], c.scale.rows);
        store_unit<C::SPLIT>(to + C::SIDE, C::PLANE, f.other[i], c.scale.gathered);
    }
}

/* Waits for all parts that are being copied but the last `stages` - 2. */
static __device__ __forceinline__ void wait_part(int stages)
{
    switch (stages) {
    case 2: copies_wait_but<0>(); break;
    case 3: copies_wait_but<1>(); break;
    case 4: copies_wait_but<2>(); break;
    case 5: copies_wait_but<3>(); break;
    default: copies_wait_but<4>(); break;
    }
}

template <class C>
static __device__ __forceinline__ void multiply_part(float (&sum)[2][8][4], uint32_t stage)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int a_unit = warp % 4 * 4 + lane / 8 % 2, b_unit = warp / 4 * 8 + lane / 16;
    uint32_t a_row = stage + (lane / 16 * 8 + lane % 8) * SIDE_PITCH,
             b_row = stage + C::SIDE + (lane / 8 % 2 * 8 + lane % 8) * SIDE_PITCH;
#pragma unroll
    for (int step = 0; step < C::OWN; step++) {
        uint32_t a[C::PARTS][2][4];
#pragma unroll
        for (int p = 0; p < C::PARTS; p++)
#pragma unroll
            for (int s = 0; s < 2; s++)
                load_matrices_turned(a[p][s], a_row + p * C::PLANE + step * 16 * SIDE_PITCH +
                                                  (((a_unit + s * 2) ^ lane % 8) << 4));
#pragma unroll
        for (int n = 0; n < 4; n++) {
            uint32_t b[C::PARTS][4];
#pragma unroll
            for (int p = 0; p < C::PARTS; p++)
                load_matrices_turned(b[p], b_row + p * C::PLANE + step * 16 * SIDE_PITCH +
                                               (((b_unit + n * 2) ^ lane % 8) << 4));
#pragma unroll
            for (int s = 0; s < 2; s++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float(&d)[4] = sum[s][2 * n + h];
                    uint32_t high[2] = {b[0][2 * h], b[0][2 * h + 1]};
                    if constexpr (C::SPLIT) { /* small terms first */
                        uint32_t low[2] = {b[1][2 * h], b[1][2 * h + 1]};
                        step_short<false>(d, a[1][s], high);
                        step_short<false>(d, a[0][s], low);
                    }
                    step_short<C::BFLOAT>(d, a[0][s], high);
                }
        }
    }
}

/* sum += the product of a part. */
template <class C>
static __device__ __forceinline__ void add_part(float (&sum)[2][8][4], uint32_t stage)
{
    if constexpr (C::SPLIT) {
        float part[2][8][4] = {};
        multiply_part<C>(part, stage);
#pragma unroll
        for (int i = 0; i < 64; i++) (&sum[0][0][0])[i] += (&part[0][0][0])[i];
    } else {
        multiply_part<C>(sum, stage);
    }
}
#endif

template <class C>
static __global__ __launch_bounds__(SORTED_THREADS, 1) void warps_vvor(
    const __grid_constant__ sorted_job j, int stages)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint32_t first_step[SORT_CELLS + 1];
    for (int i = threadIdx.x; i <= j.cells; i += SORTED_THREADS) first_step[i] = step_of(j, i);
    __syncthreads();
    int block = (int)blockIdx.x % j.blocks, cell = -1, to = 0, at = 0;
    part_walk<C::PARTS> here(sorted_walk(first_step, j.cells, j.blocks, block)), ahead = here;
    uint32_t low = here.step.low, high = here.step.high, base = shared_base(memory);
    side_copies c = copies_of<C::FLOATS>(j, kind_of(j, (int)blockIdx.x / j.blocks));
    part_pairs<C> pairs;
    bool more = ahead.next();
    if (more) load_pairs<C>(pairs, j, ahead);
    part_floats<C> floats;
    auto load = [&]() {
        if (!more) return;
        load_floats<C>(floats, c, pairs);
        more = ahead.next();
        if (more) load_pairs<C>(pairs, j, ahead);
    };
    auto copy = [&]() {
        if (more) {
            copy_part<C>(c, pairs, base + to * STEP_BYTES);
            more = ahead.next();
            if (more) load_pairs<C>(pairs, j, ahead);
        }
        copies_commit();
        to = to + 1 == stages ? 0 : to + 1;
    };
    if constexpr (C::FLOATS)
        load();
    else
        for (int i = 0; i < stages - 1; i++) copy();
    float sum[2][8][4];
#pragma unroll 1
    while (here.next()) {
        if (here.step.cell != cell) {
            if (cell >= 0)
                put_sums<C>(j, first_step, low, high, cell, reinterpret_cast<float(&)[1][64]>(sum));
            cell = here.step.cell;
#pragma unroll
            for (int i = 0; i < 64; i++) (&sum[0][0][0])[i] = 0;
        }
        if constexpr (C::FLOATS) {
            store_floats<C>(floats, c, base + at * STEP_BYTES);
            load();
            __syncthreads();
        } else {
            wait_part(stages);
            __syncthreads();
            copy();
        }
        add_part<C>(sum, base + at * STEP_BYTES);
        at = at + 1 == stages ? 0 : at + 1;
    }
    copies_wait_but<0>();
    if (cell >= 0)
        put_sums<C>(j, first_step, low, high, cell, reinterpret_cast<float(&)[1][64]>(sum));
#else
    (void)j, (void)stages;
#endif
}

template <class C>
static void launch(const conv_outer &o, const sorted_plan &p, sorted_job j, void *work)
{
    char *memory = (char *)work + p.slot_bytes;
    bool dense = !o.set.start;
    int stages =
        C::FLOATS ? 2 : std::min((warp_room().block - 1024) / STEP_BYTES, (int)MOST_STAGES);
    warp_reserve(warps_vvor<C>, stages * STEP_BYTES);
    if (!dense) pnet_cuda_sort_count(o.set, p.sort, memory);
    for (int chunk = 0; chunk < p.sort.chunks; chunk++) {
        if (!dense) j.sorted = pnet_cuda_sort_one_chunk(o.set, p.sort, chunk, memory);
        j.first = chunk == 0;
        warps_vvor<C><<<(unsigned)(p.kinds * p.blocks), SORTED_THREADS,
            (size_t)(stages * STEP_BYTES), pnet_cuda_stream()>>>(j, stages);
        reduce_sorted<C><<<(unsigned)(p.kinds * j.cells * (C::SUMS / SORTED_THREADS)),
            SORTED_THREADS, 0, pnet_cuda_stream()>>>(j);
    }
}

void pnet_cuda_conv_warps_vvor(
    const struct conv_outer *sum, enum pnet_precision precision, void *work)
{
    const conv_outer &o = *sum;
    bool floats = o.set.rows.storage == PNET_STORE_F32;
    sorted_plan p = o.set.start
                        ? pnet_cuda_conv_sorted_plan(&o.set, &o.groups, o.swapped, floats, true)
                        : pnet_cuda_conv_warps_outer_plan(o.set.rows, o.cin, o.cout);
    sorted_job j = sorted_job_of(o, p, floats, work);
    if (floats) pnet_cuda_vvor_measure(o, (vvor_measures *)((char *)work + p.measures));
    switch (pnet_cuda_conv_form_of(precision)) {
    case CONV_SPLIT: launch<warps_config<CONV_SPLIT>>(o, p, j, work); break;
    case CONV_SCALED: launch<warps_config<CONV_SCALED>>(o, p, j, work); break;
    case CONV_BFLOAT: launch<warps_config<CONV_BFLOAT>>(o, p, j, work); break;
    case CONV_HALF: launch<warps_config<CONV_HALF>>(o, p, j, work); break;
    case CONV_TILE_SCALED: break;
    }
}
