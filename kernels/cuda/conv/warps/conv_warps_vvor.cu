/* VVOR by matrix instructions of a warp, for GPUs from architecture 80 on: of triplets sorted by kernel cell, as
   conv_vvor_sorted.cu, and of the rows of dense products, which are pairs (row, row) in order. A block of threads has the sum
   of one cell for 128 or 64 channels of each side. All threads copy the two rows of each of 64 triplets to shared memory, some
   steps ahead (float32, which is not multiplied as it is, a step ahead, by registers), and multiply: a warp has a quarter of the
   channels of the side of rows and half of those of the gathered side. */
#include "kernels/cuda/conv/vvor/conv_vvor_sorted.cuh"
#include "kernels/cuda/conv/warps/conv_warps.cuh"

enum { MOST_STAGES = 6 };

/* FORM, CONV_SCALED and CONV_SPLIT: features in float32, scaled to half once or as the sum of two. Those of the latter take
   twice the place, so a step is copied in two parts, and their sums leave the matrix unit, which truncates them, after
   each part. The other forms: features are stored so. CHANNELS: of a side. ACCESS: channels of a row that can be read at a
   time, 8, 2 or 1 (float32 has 2 with 1). With 1 a row of 16 bits begins anywhere within 16 bytes: all 16 are copied, and
   channels are moved to where they belong when they are there. */
template <conv_form FORM, int CHANNELS_, int ACCESS_> struct warps_config {
    static constexpr bool BFLOAT = FORM == CONV_BFLOAT, SPLIT = FORM == CONV_SPLIT,
                          FLOATS = SPLIT || FORM == CONV_SCALED;
    static constexpr int CHANNELS = CHANNELS_, ACCESS = ACCESS_;
    static constexpr bool MOVES = ACCESS == 1 && !FLOATS;
    using short_t = typename std::conditional<BFLOAT, __nv_bfloat16, __half>::type;
    using T = typename std::conditional<FLOATS, float, short_t>::type;
    static constexpr int UNITS = CHANNELS / 8; /* threads that copy a row */
    static constexpr int PARTS = SPLIT ? 2 : 1, ROWS = SORT_STEP / PARTS, STEPS = ROWS / 16,
                         OWN = ROWS * UNITS / SORTED_THREADS;
    /* bytes: of a row of one side, of its rows, of a side, of a step */
    static constexpr int PITCH = CHANNELS * 2, PLANE = ROWS * PITCH, SIDE = PLANE * PARTS,
                         STEP_BYTES = 2 * SIDE;
    /* products of 16 rows and 16 gathered channels of a warp */
    static constexpr int HIGH = CHANNELS / 64, WIDE = CHANNELS / 32, SUMS = CHANNELS * CHANNELS;
    static constexpr int BLOCKS =
        CHANNELS == SORTED_NARROW ? 2 : 1; /* of threads, of a processor */
    /* Sum e of thread t: [16 channels of rows][8 gathered channels][mma.sync's four]. */
    static __device__ __forceinline__ int2 place(int t, int e)
    {
        int high = e / (8 * WIDE), eight = e % (8 * WIDE) / 4;
        return {(t / 32 % 4 * HIGH + high) * 16 + t % 32 / 4 + e / 2 % 2 * 8,
            t / 128 * (CHANNELS / 2) + eight * 8 + t % 4 * 2 + e % 2};
    }
};

/* With MOVES: does a side of that width fill a block so far that its rows may end in a unit more? That one goes behind all
   stages. */
template <class C> static __host__ __device__ __forceinline__ bool has_last_unit(int width)
{
    return width > C::CHANNELS - 8;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* What a thread copies of each step: 8 channels of each side of a triplet, and of others a fixed number apart. With ACCESS 8
   these channels are neighbours; else they are four pairs, so that the threads of a row read what lies side by side. With MOVES
   the addresses and widths are those of the block's first channel. */
struct side_copies {
    const char *gathered, *rows;
    int64_t gathered_stride, rows_stride; /* bytes */
    int gathered_left, rows_left;         /* channels to the end of the group */
    bool pairs;                           /* a pair can be read at once */
    vvor_scales scale;
};

template <class C>
static __device__ __forceinline__ side_copies copies_of(const sorted_job &j, const sorted_kind &k)
{
    constexpr int SIZE = sizeof(typename C::T), APART = C::ACCESS == 8 ? 8 : 2;
    int at = C::MOVES ? 0 : threadIdx.x % C::UNITS * APART, n = k.n0 + at, m = k.m0 + at;
    side_copies c = {};
    c.pairs = ((uintptr_t)j.gathered | (uintptr_t)j.rows) % (2 * SIZE) == 0 &&
              (j.gathered_stride | j.rows_stride | j.gathered_width | j.rows_width) % 2 == 0;
    c.gathered_left = j.gathered_width - n;
    c.rows_left = j.rows_width - m;
    c.gathered = (const char *)j.gathered +
                 SIZE * ((int64_t)k.group * j.gathered_width + (c.gathered_left > 0 ? n : 0));
    c.rows =
        (const char *)j.rows + SIZE * ((int64_t)k.group * j.rows_width + (c.rows_left > 0 ? m : 0));
    c.gathered_stride = (int64_t)j.gathered_stride * SIZE;
    c.rows_stride = (int64_t)j.rows_stride * SIZE;
    if constexpr (C::FLOATS) c.scale = scales_of(j);
    return c;
}

/* The thread's i-th triplet of a part. */
template <class C> static __device__ __forceinline__ int own_triplet(int i)
{
    return i * (SORTED_THREADS / C::UNITS) + (int)threadIdx.x / C::UNITS;
}

/* Where its channels lie in a stage. */
template <class C> static __device__ __forceinline__ uint32_t unit_at(uint32_t stage, int i)
{
    int n = own_triplet<C>(i);
    return stage + n * C::PITCH + ((threadIdx.x % C::UNITS ^ n % 8) << 4);
}

/* Where a pair of them lies. */
template <class C>
static __device__ __forceinline__ uint32_t pair_at(uint32_t stage, int i, int pair)
{
    int n = own_triplet<C>(i), word = pair * C::UNITS + threadIdx.x % C::UNITS;
    return stage + n * C::PITCH + ((word / 4 ^ n % 8) << 4) + word % 4 * 4;
}

/* Stores the i-th unit as it is multiplied, and, with CONV_SPLIT, what that leaves of it. */
template <class C>
static __device__ __forceinline__ void store_unit(
    uint32_t side, int at, const float (&x)[8], float scale)
{
    using H = typename C::short_t;
    uint32_t high[4], low[4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float a = C::FLOATS ? x[2 * i] * scale : x[2 * i],
              b = C::FLOATS ? x[2 * i + 1] * scale : x[2 * i + 1];
        high[i] = narrow_pair<H>(a, b);
        if constexpr (C::SPLIT) {
            float2 near = widen_pair<H>(high[i]);
            low[i] = narrow_pair<H>(a - near.x, b - near.y);
        }
    }
    if constexpr (C::ACCESS == 8) {
        uint32_t to = unit_at<C>(side, at);
        shared_store(to, uint4{high[0], high[1], high[2], high[3]});
        if constexpr (C::SPLIT) shared_store(to + C::PLANE, uint4{low[0], low[1], low[2], low[3]});
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t to = pair_at<C>(side, at, i);
            shared_store(to, high[i]);
            if constexpr (C::SPLIT) shared_store(to + C::PLANE, low[i]);
        }
    }
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
    int64_t first = (int64_t)w.step.at * SORT_STEP + w.part * C::ROWS;
    if (j.sorted.pair) {
#pragma unroll
        for (int i = 0; i < C::OWN; i++) p.at[i] = __ldg(j.sorted.pair + first + own_triplet<C>(i));
    } else {
        int64_t live = pnet_live(j.outer.set.rows);
#pragma unroll
        for (int i = 0; i < C::OWN; i++) {
            int64_t row = first + own_triplet<C>(i);
            p.at[i].y = p.at[i].x = row < live ? (int)row : -1;
        }
    }
}

template <class C>
static __device__ __forceinline__ void copy_part(
    const side_copies &c, const part_pairs<C> &p, uint32_t stage)
{
#pragma unroll
    for (int i = 0; i < C::OWN; i++) {
        bool there = p.at[i].x >= 0;
        const char *row = c.rows + c.rows_stride * max(p.at[i].x, 0),
                   *other = c.gathered + c.gathered_stride * max(p.at[i].y, 0);
        if constexpr (C::ACCESS == 8) {
            uint32_t to = unit_at<C>(stage, i);
            copy16_any(to, row, there && c.rows_left > 0);
            copy16_any(to + C::SIDE, other, there && c.gathered_left > 0);
        } else {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                uint32_t to = pair_at<C>(stage, i, q);
                int at = q * C::UNITS * 2;
                bool has = there && at < c.rows_left, has_other = there && at < c.gathered_left;
                copy4_part(to, row + (has ? at * 2 : 0), has ? 4 : 0);
                copy4_part(to + C::SIDE, other + (has_other ? at * 2 : 0), has_other ? 4 : 0);
            }
        }
    }
}

/* Rows that begin anywhere within 16 bytes, MOVES. */

template <class C> static __device__ __forceinline__ uint32_t last_unit_at(uint32_t last, int i)
{
    return last + own_triplet<C>(i) * 16;
}

/* Where the thread's rows begin within 16 bytes: of each stage four bits for a row of each side in turn. */
struct row_starts {
    uint32_t of_stage[MOST_STAGES];
    __device__ __forceinline__ void set(int stage, uint32_t starts)
    {
#pragma unroll
        for (int i = 0; i < MOST_STAGES; i++)
            if (i == stage) of_stage[i] = starts;
    }
    __device__ __forceinline__ uint32_t of(int stage) const
    {
        uint32_t starts = 0;
#pragma unroll
        for (int i = 0; i < MOST_STAGES; i++)
            if (i == stage) starts = of_stage[i];
        return starts;
    }
};

/* Copies the units that hold a row's channels, `left` of which there are, or zeros; returns where in the first one the row
   begins. */
template <class C, bool LAST>
static __device__ __forceinline__ uint32_t copy_units(
    const char *row, bool there, int left, uint32_t side, uint32_t last, int i)
{
    int start = (uintptr_t)row % 16, unit = threadIdx.x % C::UNITS;
    int bytes = there ? left * 2 + start - unit * 16 : 0;
    const char *from = row - start;
    copy16_part(unit_at<C>(side, i), from + (bytes > 0 ? unit * 16 : 0), min(max(bytes, 0), 16));
    if (LAST && unit == C::UNITS - 1 && has_last_unit<C>(left))
        copy16_part(last_unit_at<C>(last, i), from + (bytes > 16 ? (unit + 1) * 16 : 0),
            min(max(bytes - 16, 0), 16));
    return start;
}

template <class C, bool LAST>
static __device__ __forceinline__ uint32_t copy_part_units(
    const side_copies &c, const part_pairs<C> &p, uint32_t stage, uint32_t last)
{
    uint32_t starts = 0;
#pragma unroll
    for (int i = 0; i < C::OWN; i++) {
        bool there = p.at[i].x >= 0;
        starts |= copy_units<C, LAST>(c.rows + c.rows_stride * max(p.at[i].x, 0), there,
                      c.rows_left, stage, last, i)
                  << 8 * i;
        starts |= copy_units<C, LAST>(c.gathered + c.gathered_stride * max(p.at[i].y, 0), there,
                      c.gathered_left, stage + C::SIDE, last + C::ROWS * 16, i)
                  << (8 * i + 4);
    }
    return starts;
}

/* The thread's unit of a row that begins at `start`, from the two units that hold it. */
template <class C, bool LAST>
static __device__ __forceinline__ uint4 moved_unit(
    uint32_t side, uint32_t last, int left, int start, int i)
{
    int n = own_triplet<C>(i), unit = threadIdx.x % C::UNITS;
    uint32_t row = side + n * C::PITCH;
    uint4 low = shared_load(row + ((unit ^ n % 8) << 4)), high = {0, 0, 0, 0};
    if (unit < C::UNITS - 1)
        high = shared_load(row + ((unit + 1 ^ n % 8) << 4));
    else if (LAST && has_last_unit<C>(left))
        high = shared_load(last_unit_at<C>(last, i));
    uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int k = 0; k < 6; k++) w[k] = start & 8 ? w[k + 2] : w[k];
#pragma unroll
    for (int k = 0; k < 5; k++) w[k] = start & 4 ? w[k + 1] : w[k];
#pragma unroll
    for (int k = 0; k < 4; k++) w[k] = __funnelshift_r(w[k], w[k + 1], (start & 2) * 8);
    return {w[0], w[1], w[2], w[3]};
}

/* Moves the channels of the thread's rows to where they belong. The threads of a row are of one warp: they have waited for
   their copies, and each reads two of the row's units before any of them is written. */
template <class C, bool LAST>
static __device__ __forceinline__ void move_units(
    const side_copies &c, uint32_t starts, uint32_t stage, uint32_t last)
{
    __syncwarp();
#pragma unroll
    for (int i = 0; i < C::OWN; i++) {
        uint4 x = moved_unit<C, LAST>(stage, last, c.rows_left, starts >> 8 * i & 15, i);
        uint4 y = moved_unit<C, LAST>(
            stage + C::SIDE, last + C::ROWS * 16, c.gathered_left, starts >> (8 * i + 4) & 15, i);
        __syncwarp();
        uint32_t to = unit_at<C>(stage, i);
        shared_store(to, x);
        shared_store(to + C::SIDE, y);
    }
}

/* The rows of all stages that are copied so. */
template <class C> struct unit_stages {
    row_starts starts;
    bool last;              /* is there a unit behind those of a row? */
    uint32_t stage, behind; /* the stages, and the units behind their rows */
    __device__ __forceinline__ void copy(const side_copies &c, const part_pairs<C> &p, int to)
    {
        uint32_t at = stage + to * C::STEP_BYTES;
        starts.set(to, last ? copy_part_units<C, true>(c, p, at, behind + to * C::ROWS * 32)
                            : copy_part_units<C, false>(c, p, at, 0));
    }
    __device__ __forceinline__ void move(const side_copies &c, int from)
    {
        uint32_t at = stage + from * C::STEP_BYTES;
        if (last)
            move_units<C, true>(c, starts.of(from), at, behind + from * C::ROWS * 32);
        else
            move_units<C, false>(c, starts.of(from), at, 0);
    }
};

/* The numbers of a part in float32: they wait in registers while the part before them is multiplied. */
template <class C> struct part_numbers {
    float row[C::OWN][8], other[C::OWN][8];
};

template <class C>
static __device__ __forceinline__ void load_unit(
    float (&x)[8], const char *from, int left, bool pairs)
{
    using T = typename C::T;
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = 0;
    if (left <= 0) return;
    const T *row = (const T *)from;
    constexpr int APART = C::UNITS * 2;
    if constexpr (C::ACCESS == 8) {
#pragma unroll
        for (int i = 0; i < 8; i += WIDEST<T>) load_wide<WIDEST<T>>(row + i, x + i);
    } else if (pairs) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i * APART < left) load_wide<2>(row + i * APART, x + 2 * i);
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i / 2 * APART + i % 2 < left) x[i] = widen(row[i / 2 * APART + i % 2]);
    }
}

template <class C>
static __device__ __forceinline__ void load_numbers(
    part_numbers<C> &f, const side_copies &c, const part_pairs<C> &p)
{
#pragma unroll
    for (int i = 0; i < C::OWN; i++) {
        bool there = p.at[i].x >= 0;
        load_unit<C>(
            f.row[i], c.rows + c.rows_stride * max(p.at[i].x, 0), there ? c.rows_left : 0, c.pairs);
        load_unit<C>(f.other[i], c.gathered + c.gathered_stride * max(p.at[i].y, 0),
            there ? c.gathered_left : 0, c.pairs);
    }
}

template <class C>
static __device__ __forceinline__ void store_numbers(
    const part_numbers<C> &f, const side_copies &c, uint32_t stage)
{
#pragma unroll
    for (int i = 0; i < C::OWN; i++) {
        store_unit<C>(stage, i, f.row[i], c.scale.rows);
        store_unit<C>(stage + C::SIDE, i, f.other[i], c.scale.gathered);
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

/* A block's sums of a thread. */
template <class C> using warp_sums = float[C::HIGH][2 * C::WIDE][4];

template <class C>
static __device__ __forceinline__ void multiply_part(warp_sums<C> &sum, uint32_t stage)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int a_unit = warp % 4 * 2 * C::HIGH + lane / 8 % 2, b_unit = warp / 4 * 2 * C::WIDE + lane / 16;
    uint32_t a_row = stage + (lane / 16 * 8 + lane % 8) * C::PITCH,
             b_row = stage + C::SIDE + (lane / 8 % 2 * 8 + lane % 8) * C::PITCH;
#pragma unroll
    for (int step = 0; step < C::STEPS; step++) {
        uint32_t a[C::PARTS][C::HIGH][4];
#pragma unroll
        for (int p = 0; p < C::PARTS; p++)
#pragma unroll
            for (int s = 0; s < C::HIGH; s++)
                load_matrices_turned(a[p][s], a_row + p * C::PLANE + step * 16 * C::PITCH +
                                                  (((a_unit + s * 2) ^ lane % 8) << 4));
#pragma unroll
        for (int n = 0; n < C::WIDE; n++) {
            uint32_t b[C::PARTS][4];
#pragma unroll
            for (int p = 0; p < C::PARTS; p++)
                load_matrices_turned(b[p], b_row + p * C::PLANE + step * 16 * C::PITCH +
                                               (((b_unit + n * 2) ^ lane % 8) << 4));
#pragma unroll
            for (int s = 0; s < C::HIGH; s++)
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
static __device__ __forceinline__ void add_part(warp_sums<C> &sum, uint32_t stage)
{
    if constexpr (C::SPLIT) {
        warp_sums<C> part = {};
        multiply_part<C>(part, stage);
#pragma unroll
        for (int i = 0; i < SUMS_OF_A_THREAD<C>; i++) (&sum[0][0][0])[i] += (&part[0][0][0])[i];
    } else {
        multiply_part<C>(sum, stage);
    }
}

/* A number of the thread in local memory: the compiler would find registers for it, and none for what is multiplied. */
static __device__ __forceinline__ void local_store(uint32_t to, float v)
{
    asm volatile("st.local.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory");
}

static __device__ __forceinline__ float local_load(uint32_t from)
{
    float v;
    asm volatile("ld.local.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
    return v;
}

/* The sum of a cell in a thread. One of CONV_SPLIT is kept in two numbers, since a long sum in float32 loses bits: that of up
   to LONG parts in registers, and that of those before them in local memory. */
template <class C> struct cell_sums {
    enum { LONG = 128, AT_ONCE = 8, COUNT = SUMS_OF_A_THREAD<C> };
    warp_sums<C> sum;
    int parts;
    uint32_t before; /* numbers in local memory; for CONV_SPLIT */
    __device__ __forceinline__ float &at(int i)
    {
        return (&sum[0][0][0])[i];
    }
    __device__ __forceinline__ uint32_t before_of(int i)
    {
        return before + i * (int)sizeof(float);
    }
    __device__ __forceinline__ void begin()
    {
        parts = 0;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            at(i) = 0;
            if constexpr (C::SPLIT) local_store(before_of(i), 0);
        }
    }
    __device__ __forceinline__ void take_before()
    {
#pragma unroll
        for (int i = 0; i < COUNT; i += AT_ONCE) {
            float x[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) x[k] = local_load(before_of(i + k));
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) at(i + k) += x[k];
        }
    }
    __device__ __forceinline__ void add(uint32_t stage)
    {
        if constexpr (C::SPLIT) {
            if (parts == LONG) {
                take_before();
#pragma unroll
                for (int i = 0; i < COUNT; i++) {
                    local_store(before_of(i), at(i));
                    at(i) = 0;
                }
                parts = 0;
            }
            parts++;
        }
        add_part<C>(sum, stage);
    }
    __device__ __forceinline__ void end(
        const sorted_job &j, const uint32_t *step, uint32_t low, uint32_t high, int cell)
    {
        if constexpr (C::SPLIT) take_before();
        if (!has_all(step, low, high, cell)) {
            put_slot<C>(j, step, low, cell, reinterpret_cast<float(&)[COUNT]>(sum));
            return;
        }
        put_whole(j, cell);
    }
    /* A loop that is not unrolled, since it would be larger than all the rest, over sums in local memory. */
    __device__ __forceinline__ void put_whole(const sorted_job &j, int cell)
    {
        float x[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++) x[i] = at(i);
        sorted_kind kind = kind_of(j, (int)blockIdx.x / j.blocks);
        bool add = j.outer.add || !j.first;
#pragma unroll 1
        for (int i = 0; i < COUNT; i += AT_ONCE) {
            float *to[AT_ONCE], old[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                to[k] = gradient_of<C>(j, kind, cell, threadIdx.x, i + k);
                old[k] = add && to[k] ? *to[k] : 0;
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                float sum = gradient_sum<C>(j, x[i + k]);
                if (to[k]) *to[k] = add ? old[k] + sum : sum;
            }
        }
    }
};
#endif

template <class C>
static __global__ __launch_bounds__(SORTED_THREADS, C::BLOCKS) void warps_vvor(
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
    side_copies c = copies_of<C>(j, kind_of(j, (int)blockIdx.x / j.blocks));
    part_pairs<C> pairs;
    bool more = ahead.next();
    if (more) load_pairs<C>(pairs, j, ahead);
    part_numbers<C> numbers;
    unit_stages<C> units = {{}, has_last_unit<C>(max(c.rows_left, c.gathered_left)), base,
        base + stages * C::STEP_BYTES};
    auto fetch = [&]() {
        if (more) {
            if constexpr (C::FLOATS)
                load_numbers<C>(numbers, c, pairs);
            else if constexpr (C::MOVES)
                units.copy(c, pairs, to);
            else
                copy_part<C>(c, pairs, base + to * C::STEP_BYTES);
            more = ahead.next();
            if (more) load_pairs<C>(pairs, j, ahead);
        }
        if constexpr (!C::FLOATS) {
            copies_commit();
            to = to + 1 == stages ? 0 : to + 1;
        }
    };
    for (int i = 0; i < (C::FLOATS ? 1 : stages - 1); i++) fetch();
    cell_sums<C> sums;
    float before[C::SPLIT ? SUMS_OF_A_THREAD<C> : 1];
    if constexpr (C::SPLIT) sums.before = (uint32_t)__cvta_generic_to_local(before);
#pragma unroll 1
    while (here.next()) {
        if (here.step.cell != cell) {
            if (cell >= 0) sums.end(j, first_step, low, high, cell);
            cell = here.step.cell;
            sums.begin();
        }
        if constexpr (C::FLOATS) {
            store_numbers<C>(numbers, c, base + at * C::STEP_BYTES);
            fetch();
            __syncthreads();
        } else {
            wait_part(stages);
            if constexpr (C::MOVES) units.move(c, at);
            __syncthreads();
            fetch();
        }
        sums.add(base + at * C::STEP_BYTES);
        at = at + 1 == stages ? 0 : at + 1;
    }
    copies_wait_but<0>();
    if (cell >= 0) sums.end(j, first_step, low, high, cell);
#else
    (void)j, (void)stages;
#endif
}

template <class C>
static void launch(const conv_outer &o, const sorted_plan &p, sorted_job j, void *work)
{
    char *memory = (char *)work + p.slot_bytes;
    bool dense = !o.set.start;
    /* of a block beside its stages: where its cells begin, and what the system takes of a processor */
    enum { CELL_BYTES = 640, SYSTEM_BYTES = 1024 };
    conv_room room = warp_room();
    bool last_units = C::MOVES && has_last_unit<C>(std::max(j.gathered_width, j.rows_width));
    int most = std::min(room.block, room.processor / C::BLOCKS - SYSTEM_BYTES) - CELL_BYTES,
        each = C::STEP_BYTES + (last_units ? C::ROWS * 32 : 0),
        stages = C::FLOATS ? 2 : std::min(most / each, (int)MOST_STAGES), bytes = stages * each;
    warp_reserve(warps_vvor<C>, bytes);
    for (sort_window w = {0, 0}; w.first < o.set.cells; w.first += p.sort.cells) {
        w.count = std::min(p.sort.cells, o.set.cells - w.first);
        j.cells = w.count;
        j.outer.gweight = o.gweight + (int64_t)w.first * o.groups.cin1 * o.cout;
        if (!dense) pnet_cuda_sort_count(o.set, w, p.sort, memory);
        for (int chunk = 0; chunk < p.sort.chunks; chunk++) {
            if (!dense) j.sorted = pnet_cuda_sort_one_chunk(o.set, w, p.sort, chunk, memory);
            j.first = chunk == 0;
            warps_vvor<C><<<(unsigned)(p.kinds * p.blocks), SORTED_THREADS, (size_t)bytes,
                pnet_cuda_stream()>>>(j, stages);
            reduce_sorted<C><<<(unsigned)(p.kinds * j.cells * SUMS_OF_A_THREAD<C>), SORTED_THREADS,
                0, pnet_cuda_stream()>>>(j);
        }
    }
}

/* Channels of a row that can be read at a time: 8, 2 or 1. */
static int access_of(const conv_outer &o)
{
    int size = pnet_storage_bytes(o.set.rows.storage),
        widths = o.cin | o.cout | o.groups.cin | o.groups.cout;
    uintptr_t at = (uintptr_t)o.in | (uintptr_t)o.gout;
    return at % 16 == 0 && widths % 8 == 0 ? 8 : at % (2 * size) == 0 && widths % 2 == 0 ? 2 : 1;
}

template <conv_form FORM, int CHANNELS>
static void launch_access(
    const conv_outer &o, const sorted_plan &p, const sorted_job &j, void *work)
{
    int access = access_of(o);
    if (access == 8) return launch<warps_config<FORM, CHANNELS, 8>>(o, p, j, work);
    if constexpr (FORM == CONV_BFLOAT || FORM == CONV_HALF)
        if (access == 2) return launch<warps_config<FORM, CHANNELS, 2>>(o, p, j, work);
    launch<warps_config<FORM, CHANNELS, 1>>(o, p, j, work);
}

template <conv_form FORM>
static void launch_form(const conv_outer &o, const sorted_plan &p, const sorted_job &j, void *work)
{
    if (p.columns == SORTED_NARROW)
        launch_access<FORM, SORTED_NARROW>(o, p, j, work);
    else
        launch_access<FORM, SORTED_SIDE>(o, p, j, work);
}

void pnet_cuda_conv_warps_vvor(
    const struct conv_outer *sum, enum pnet_precision precision, void *work)
{
    const conv_outer &o = *sum;
    bool floats = o.set.rows.storage == PNET_STORE_F32;
    sorted_plan p = o.set.start
                        ? pnet_cuda_conv_sorted_plan(&o.set, &o.groups, o.swapped, floats, true)
                        : pnet_cuda_conv_warps_outer_plan(o.set.rows, o.cin, o.cout, floats);
    sorted_job j = sorted_job_of(o, p, floats, work);
    if (floats) {
        pnet_cuda_vvor_measure(o, (vvor_measures *)((char *)work + p.measures));
        if (precision == PNET_FP32)
            launch_form<CONV_SPLIT>(o, p, j, work);
        else /* scaled to half they have as many bits as in tf32, more than in bf16 */
            launch_form<CONV_SCALED>(o, p, j, work);
    } else if (pnet_cuda_conv_form_of(precision) == CONV_BFLOAT) {
        launch_form<CONV_BFLOAT>(o, p, j, work);
    } else {
        launch_form<CONV_HALF>(o, p, j, work);
    }
}
