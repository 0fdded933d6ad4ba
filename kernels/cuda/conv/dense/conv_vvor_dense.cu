/* VVOR of dense products: the outer products of the rows of two matrices. A block of threads has a share of the rows for
   one tile of the sums. It copies 64 rows at a time to shared memory as two panels, and multiplies one panel by the other
   while it copies the next. The sums of shares are added in order. The number of shares depends on the true number of
   rows and on the widths alone, and so do the bits. */
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/conv/conv_flat.cuh"
#include "kernels/cuda/base/hopper.cuh"
#include "kernels/cuda/conv/conv_steps.cuh"
#include "kernels/cuda/conv/conv_common.cuh"

enum {
    THREADS = 256,
    BATCH = 64, /* rows multiplied at once */
    SHARE_ROWS = DENSE_SHARE_ROWS,
    SHARED_BYTES = 1 << 17, /* of the batches that are on their way */
    MOST_LANES = 8,         /* that add the shares of an element */
    SHARES_LANE = 8,        /* of a lane, at most, if there could be more lanes */
};

/* How many rows shares have, and how many there are. */
struct shares {
    int64_t rows;
    int count;
};

static __device__ shares share_out(int64_t rows, int most)
{
    shares s;
    s.rows = ((rows + most - 1) / most + BATCH - 1) / BATCH * BATCH;
    if (s.rows < SHARE_ROWS) s.rows = SHARE_ROWS;
    s.count = (int)((rows + s.rows - 1) / s.rows);
    return s;
}

/* TALL: 128 input channels, shared by two warpgroups; else 64 input channels, and the warpgroups share the output
   channels. Operands are `PLANES` numbers of 16 bits: three bfloats hold a float, two more than hold tf32. COPIED:
   operands are stored so, and rows are aligned to 16 bytes. LAID: batches are aligned, rows are not, and are moved to
   panels. */
enum way { CONVERTED, COPIED, LAID };

template <conv_form FORM_, way WAY_, bool TALL_, int COLUMNS_> struct config {
    static constexpr conv_form FORM = FORM_;
    static constexpr way WAY = WAY_;
    static constexpr bool TALL = TALL_, BFLOAT = FORM != CONV_HALF;
    static constexpr int ROWS = TALL ? 128 : 64, COLUMNS = COLUMNS_;
    static constexpr int PLANES = FORM == CONV_SPLIT ? 3 : FORM == CONV_SCALED ? 2 : 1;
    /* Batches that the matrix unit adds itself: it does not round to nearest. */
    static constexpr int TOGETHER = FORM == CONV_SPLIT ? 1 : 16;
    static constexpr int WIDE = TALL ? COLUMNS : COLUMNS / 2; /* of a warpgroup */
    static constexpr int BLOCK = BATCH * 128;                 /* bytes of 64 columns of a panel */
    static constexpr int X = ROWS / 64 * BLOCK, Y = COLUMNS / 64 * BLOCK;
    static constexpr int BUFFER = PLANES * (X + Y);
    static constexpr int STAGES = WAY == CONVERTED ? 2 : SHARED_BYTES / BUFFER;
    static constexpr int BYTES = (STAGES + (WAY == LAID ? 2 : 0)) * BUFFER;
};

/* One side of the products: a matrix, and the columns that are multiplied. */
template <typename T> struct side {
    const T *from;
    int width;
    bool aligned; /* to four numbers */
    bool flat;    /* LAID: the rows' units are not whole */
    int first;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Copies WIDTH columns of a side, batch by batch, unchanged. A thread has the same 16 bytes of some rows of each batch.
   */
template <class C, int WIDTH, typename T> struct copier {
    static constexpr int UNITS = WIDTH / 8, STEP = THREADS / UNITS;
    const T *from;
    int width, row;
    uint32_t to; /* in a panel */
    bool there;

    __device__ __forceinline__ copier(const side<T> &s, int64_t begin)
    {
        int unit = threadIdx.x % UNITS;
        row = threadIdx.x / UNITS;
        width = s.width;
        there = s.first + unit * 8 < s.width;
        from = s.from + (begin + row) * s.width + (there ? s.first + unit * 8 : 0);
        to = (uint32_t)(unit / 8 * C::BLOCK + row * 128 + (unit % 8 ^ row % 8) * 16);
    }
    /* The next batch, of which `left` rows are there. */
    __device__ __forceinline__ void copy(uint32_t panel, int64_t left)
    {
        static_assert(STEP % 8 == 0, "rows of a thread are swizzled alike");
#pragma unroll
        for (int i = 0; i < BATCH / STEP; i++)
            copy16_any(panel + to + i * STEP * 128,
                row + i * STEP < left ? from + (int64_t)i * STEP * width : from,
                there && row + i * STEP < left);
        if (left > BATCH + row) from += (int64_t)BATCH * width;
    }
};

/* Two numbers rounded to 16 bits; what is left of them stays. */
template <class C> static __device__ __forceinline__ uint32_t take2(float &x, float &y)
{
    if constexpr (C::BFLOAT) {
        __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
        x -= __low2float(v);
        y -= __high2float(v);
        return *(uint32_t *)&v;
    } else {
        __half2 v = __floats2half2_rn(x, y);
        return *(uint32_t *)&v;
    }
}

/* The same through registers, where numbers are converted. */
template <class C, int WIDTH, typename T> struct converter {
    static constexpr int FOURS = WIDTH / 4, STEP = THREADS / FOURS, COUNT = BATCH / STEP;
    float4 v[COUNT];

    __device__ __forceinline__ void load(const side<T> &s, int64_t begin, int64_t end)
    {
        int c = s.first + threadIdx.x % FOURS * 4;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            int64_t row = begin + threadIdx.x / FOURS + i * STEP;
            const T *from = s.from + row * s.width + c;
            float u[4] = {};
            if (row < end) {
                if (s.aligned) {
                    if (c < s.width) load_wide<4>(from, u);
                } else {
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        if (c + k < s.width) u[k] = widen(from[k]);
                }
            }
            v[i] = {u[0], u[1], u[2], u[3]};
        }
    }
    /* Into all planes of a panel. */
    __device__ __forceinline__ void store(unsigned char *panel)
    {
        int column = threadIdx.x % FOURS * 4;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            int n = threadIdx.x / FOURS + i * STEP;
            unsigned char *to = panel + column / 64 * C::BLOCK + n * 128 +
                                ((column % 64 / 8 ^ n % 8) * 16) + column % 8 * 2;
#pragma unroll
            for (int p = 0; p < C::PLANES; p++) {
                uint2 w = {take2<C>(v[i].x, v[i].y), take2<C>(v[i].z, v[i].w)};
                *(uint2 *)(to + p * WIDTH / 64 * C::BLOCK) = w;
            }
        }
    }
};

/* Issues the products of one batch of two panels; small terms first. */
template <class C>
static __device__ __forceinline__ void multiply(
    float (&sum)[C::WIDE / 2], const unsigned char *x, const unsigned char *y, bool fresh)
{
    int warpgroup = threadIdx.x / 128;
    if (C::TALL) x += warpgroup * C::BLOCK;
    /* half a block of columns begins 64 bytes into its rows */
    if (!C::TALL) y += warpgroup * C::WIDE / 64 * C::BLOCK + warpgroup * C::WIDE % 64 * 2;
    int first = fresh ? 1 : 0;
    product_touch(sum);
    product_fence();
#pragma unroll
    for (int order = C::PLANES - 1; order >= 0; order--) {
#pragma unroll
        for (int p = 0; p <= order; p++) {
            uint64_t a = product_panel(x + p * C::X, C::BLOCK),
                     b = product_panel(y + (order - p) * C::Y, C::BLOCK);
#pragma unroll
            for (int i = 0; i < BATCH / 16; i++)
                product_outer<C::WIDE, C::BFLOAT>(sum, a + i * (2048 >> 4), b + i * (2048 >> 4),
                    order == C::PLANES - 1 && p == 0 && i == 0 ? first : 0);
        }
    }
    product_commit();
}

/* Waits for the products of batch - 1. After TOGETHER batches, or with `all`, adds their sums to `sum`. */
template <class C>
static __device__ __forceinline__ void take_products(
    float (&sum)[C::WIDE / 2], float (&part)[C::WIDE / 2], int batch, bool all)
{
    product_wait();
    product_touch(part);
    if (batch == 0 || (batch % C::TOGETHER != 0 && !all)) return;
#pragma unroll
    for (int i = 0; i < C::WIDE / 2; i++) sum[i] += part[i];
}

/* The sums of rows [begin, end). */
template <class C, typename T>
static __device__ __forceinline__ void sum_rows(float (&sum)[C::WIDE / 2], const side<T> &x,
    const side<T> &y, int64_t begin, int64_t end, unsigned char *memory)
{
    float part[C::WIDE / 2];
    int batches = (int)((end - begin + BATCH - 1) / BATCH), batch = 0;
    for (int i = 0; i < C::WIDE / 2; i++) part[i] = 0;
    if constexpr (C::WAY == LAID) {
        copier<C, C::ROWS, T> xs(x, begin);
        copier<C, C::COLUMNS, T> ys(y, begin);
        uint32_t base = shared_address(memory), panels = base + C::STAGES * C::BUFFER;
        auto copy_side = [&](const side<T> &s, auto &rows, uint32_t to, int64_t at) {
            if (s.flat)
                flat_copy(
                    to, s.from + at * s.width, BATCH, s.width, end - at, threadIdx.x, THREADS);
            else
                rows.copy(to, end - at);
        };
        auto copy = [&](int i) {
            uint32_t to = base + i % C::STAGES * C::BUFFER;
            if (i < batches) {
                copy_side(x, xs, to, begin + (int64_t)i * BATCH);
                copy_side(y, ys, to + C::X, begin + (int64_t)i * BATCH);
            }
            copies_commit();
        };
        for (int i = 0; i < C::STAGES - 1; i++) copy(i);
        for (; batch < batches; batch++) {
            uint32_t from = batch % C::STAGES * C::BUFFER, to = batch % 2 * C::BUFFER;
            copies_wait_but<C::STAGES - 2>();
            __syncthreads();
            if (x.flat) flat_lay(base + from, panels + to, x.width, C::BLOCK, threadIdx.x, THREADS);
            if (y.flat)
                flat_lay(base + from + C::X, panels + to + C::X, y.width, C::BLOCK, threadIdx.x,
                    THREADS);
            take_products<C>(sum, part, batch, false);
            fence_async();
            __syncthreads();
            to += C::STAGES * C::BUFFER;
            multiply<C>(part, memory + (x.flat ? to : from), memory + (y.flat ? to : from) + C::X,
                batch % C::TOGETHER == 0);
            copy(batch + C::STAGES - 1); /* to where the batch before this one was */
        }
    } else if constexpr (C::WAY == COPIED) {
        copier<C, C::ROWS, T> xs(x, begin);
        copier<C, C::COLUMNS, T> ys(y, begin);
        uint32_t base = shared_address(memory);
        auto copy = [&](int i) {
            uint32_t to = base + i % C::STAGES * C::BUFFER;
            if (i < batches) {
                xs.copy(to, end - begin - (int64_t)i * BATCH);
                ys.copy(to + C::X, end - begin - (int64_t)i * BATCH);
            }
            copies_commit();
        };
        for (int i = 0; i < C::STAGES - 1; i++) copy(i);
        for (; batch < batches; batch++) {
            copies_wait_but<C::STAGES - 2>();
            take_products<C>(sum, part, batch, false);
            fence_async();
            __syncthreads();
            const unsigned char *buffer = memory + batch % C::STAGES * C::BUFFER;
            multiply<C>(part, buffer, buffer + C::X, batch % C::TOGETHER == 0);
            copy(batch + C::STAGES - 1); /* to where the batch before this one was */
        }
    } else {
        converter<C, C::ROWS, T> xs;
        converter<C, C::COLUMNS, T> ys;
        xs.load(x, begin, end);
        ys.load(y, begin, end);
        for (; batch < batches; batch++) {
            unsigned char *buffer = memory + batch % 2 * C::BUFFER;
            int64_t next = begin + (batch + 1) * (int64_t)BATCH;
            xs.store(buffer);
            ys.store(buffer + C::PLANES * C::X);
            xs.load(x, next, end);
            ys.load(y, next, end);
            take_products<C>(sum, part, batch, false);
            fence_async();
            __syncthreads();
            multiply<C>(part, buffer, buffer + C::PLANES * C::X, batch % C::TOGETHER == 0);
        }
    }
    take_products<C>(sum, part, batch, true);
}
#endif

/* Sums a share (blockIdx.y) of a tile. `partial` is [shares][cin][cout]. */
template <class C, typename T>
static __global__ __launch_bounds__(THREADS, 1) void outer_products(
    struct pnet_count rows, side<T> x, side<T> y, int most, int tiles_b, float *partial)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    wait_for_earlier();
    int64_t live = pnet_live(rows);
    shares s = share_out(live, most);
    x.first = (int)blockIdx.x / tiles_b * C::ROWS;
    y.first = (int)blockIdx.x % tiles_b * C::COLUMNS;
    int64_t begin = blockIdx.y * s.rows, end = begin + s.rows < live ? begin + s.rows : live;
    if (begin >= live) return;
    float sum[C::WIDE / 2] = {};
    sum_rows<C>(sum, x, y, begin, end, memory);
    let_next_come();
    float *to = partial + (int64_t)blockIdx.y * x.width * y.width;
    int warpgroup = threadIdx.x / 128;
    int a1 = x.first + (C::TALL ? warpgroup * 64 : 0) + threadIdx.x % 128 / 32 * 16 +
             threadIdx.x % 32 / 4;
    int b1 = y.first + (C::TALL ? 0 : warpgroup * C::WIDE) + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < C::WIDE / 2; i++) {
        int a = a1 + i / 2 % 2 * 8, b = b1 + i / 4 * 8 + i % 2;
        if (a < x.width && b < y.width) to[(int64_t)a * y.width + b] = sum[i];
    }
#endif
}

/* gweight (+)= the sum of all shares. Of each element a thread adds every LANES-th share. */
template <int LANES>
static __global__ __launch_bounds__(THREADS) void add_shares(
    conv_outer o, int most, const float *partial)
{
    const int ELEMENTS = THREADS / LANES;
    __shared__ double sums[LANES][ELEMENTS];
    wait_for_earlier();
    let_next_come();
    int lane = (int)threadIdx.x / ELEMENTS, at = (int)threadIdx.x % ELEMENTS;
    int64_t elements = (int64_t)o.cin * o.cout, n = (int64_t)blockIdx.x * ELEMENTS + at;
    int count = share_out(pnet_live(o.set.rows), most).count;
    double sum = 0;
    if (n < elements)
#pragma unroll 8
        for (int s = lane; s < count; s += LANES) sum += (double)partial[s * elements + n];
    if constexpr (LANES > 1) {
        sums[lane][at] = sum;
        __syncthreads();
        if (lane > 0) return;
        for (int l = 1; l < LANES; l++) sum += sums[l][at];
    }
    if (n < elements) o.gweight[n] = o.add ? o.gweight[n] + (float)sum : (float)sum;
}

/* Lanes are as many as the widths ask for, whatever the rows are. */
template <int LANES> static void launch_adding(const conv_outer &o, int most, const float *partial)
{
    if (LANES > 1 && most <= LANES / 2 * SHARES_LANE) {
        launch_adding<(LANES > 1 ? LANES / 2 : 1)>(o, most, partial);
        return;
    }
    const int ELEMENTS = THREADS / LANES;
    int64_t blocks = ((int64_t)o.cin * o.cout + ELEMENTS - 1) / ELEMENTS;
    launch_early(add_shares<LANES>, dim3((unsigned)blocks), dim3(THREADS), 0, 1, o, most, partial);
}

template <class C, typename T>
static void launch(const conv_outer &o, const dense_plan &p, void *work)
{
    cudaFuncSetAttribute(
        outer_products<C, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
    dim3 grid((unsigned)(p.tiles_a * p.tiles_b), (unsigned)p.shares);
    const T *in = as<T>(o.in), *gout = as<T>(o.gout);
    side<T> x = {in, o.cin, fits<T, 4>(o.cin, in), !fits<T, 8>(o.cin, in), 0},
            y = {gout, o.cout, fits<T, 4>(o.cout, gout), !fits<T, 8>(o.cout, gout), 0};
    launch_early(outer_products<C, T>, grid, dim3(THREADS), C::BYTES, 1, o.set.rows, x, y, p.most,
        p.tiles_b, (float *)work);
}

template <conv_form FORM, way WAY, typename T>
static void launch_form(const conv_outer &o, const dense_plan &p, void *work)
{
    if (o.cin > 64)
        o.cout > 64 ? launch<config<FORM, WAY, true, 128>, T>(o, p, work)
                    : launch<config<FORM, WAY, true, 64>, T>(o, p, work);
    else
        o.cout > 64 ? launch<config<FORM, WAY, false, 128>, T>(o, p, work)
                    : launch<config<FORM, WAY, false, 64>, T>(o, p, work);
}

/* Can a side be copied batch by batch, and laid as one tile? */
template <typename T> static bool is_laid(int width, const T *from)
{
    return fits<T, 8>(width, from) || (width <= 128 && (uintptr_t)from % 16 == 0);
}

/* Numbers of 16 bits, or float32 that becomes such ones. */
template <conv_form FORM, typename T>
static void launch_narrow(const conv_outer &o, const dense_plan &p, void *work)
{
    const T *in = as<T>(o.in), *gout = as<T>(o.gout);
    if (o.set.rows.storage == PNET_STORE_F32)
        launch_form<FORM, CONVERTED, float>(o, p, work);
    else if (fits<T, 8>(o.cin, in) && fits<T, 8>(o.cout, gout))
        launch_form<FORM, COPIED, T>(o, p, work);
    else if (is_laid(o.cin, in) && is_laid(o.cout, gout))
        launch_form<FORM, LAID, T>(o, p, work);
    else
        launch_form<FORM, CONVERTED, T>(o, p, work);
}

static void launch_precision(
    const conv_outer &o, const dense_plan &p, enum pnet_precision precision, void *work)
{
    switch (pnet_cuda_conv_form_of(precision)) {
    case CONV_SPLIT: launch_form<CONV_SPLIT, CONVERTED, float>(o, p, work); break;
    case CONV_SCALED: launch_form<CONV_SCALED, CONVERTED, float>(o, p, work); break;
    case CONV_BFLOAT: launch_narrow<CONV_BFLOAT, __nv_bfloat16>(o, p, work); break;
    case CONV_HALF: launch_narrow<CONV_HALF, __half>(o, p, work); break;
    case CONV_TILE_SCALED: break; /* of MVMR alone */
    }
}

/* The same with the sides exchanged, where the result is to be transposed: sums then lie as the result does. */
static conv_outer straight(conv_outer o)
{
    if (!o.transposed) return o;
    conv_outer turned = o;
    turned.in = o.gout, turned.gout = turned.gout_matrix = o.in;
    turned.cin = o.cout, turned.cout = o.cin;
    turned.transposed = false;
    return turned;
}

void pnet_cuda_conv_dense_vvor(
    const struct conv_outer *sum, enum pnet_precision precision, void *work)
{
    const conv_outer &outer = *sum;
    conv_outer o = straight(outer);
    dense_plan p = pnet_cuda_conv_dense_plan(o.set.rows, o.cin, o.cout);
    if (p.shares > 0) launch_precision(o, p, precision, work);
    launch_adding<MOST_LANES>(o, p.most, (const float *)work);
}
