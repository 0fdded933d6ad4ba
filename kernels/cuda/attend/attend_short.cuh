/* What the kernels of attention on features in 16 bits share. A warp has 16 M rows of the block's tile as the left operand of its
   products (PTX ISA, mma.sync m16n8k16), in registers; the rows of the scope come by in stages of shared memory as the right one.
   Lane 4 g + t holds rows g and g + 8, and of 8 columns 2 t and 2 t + 1. */
#ifndef PNET_KERNELS_CUDA_ATTEND_SHORT_CUH
#define PNET_KERNELS_CUDA_ATTEND_SHORT_CUH

#include "kernels/cuda/attend/attend_scope.cuh"
#include "kernels/cuda/base/storage.cuh"

#include <type_traits>

enum {
    SHORT_TILE = 128, /* own rows of a block */
    PASSING = 64,     /* rows of a stage */
    AHEAD = 2,        /* stages that are being copied */
};

static __device__ __forceinline__ uint32_t shared_at(const void *p)
{
    uint32_t a = (uint32_t)__cvta_generic_to_shared(p);
    asm volatile("" : "+r"(a)); /* computed once */
    return a;
}

/* Starts to copy 16 bytes. */
static __device__ __forceinline__ void copy_chunk(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
static __device__ __forceinline__ void copies_end_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int PENDING> static __device__ __forceinline__ void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Four matrices of 8 rows of 16 bytes; lane l passes the address of row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void load_matrices(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}
static __device__ __forceinline__ void load_matrices_turned(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

/* sum = a b + start: 16 rows, 8 columns, 16 terms. */
template <class T>
static __device__ __forceinline__ void multiply_add(
    float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, const float (&start)[4])
{
    if constexpr (std::is_same<T, __nv_bfloat16>::value)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                     : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(start[0]),
                     "f"(start[1]), "f"(start[2]), "f"(start[3]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                     : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(start[0]),
                     "f"(start[1]), "f"(start[2]), "f"(start[3]));
}

static __device__ __forceinline__ float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The same on the units for products, which have time where that for powers is what holds a kernel up (after FlashAttention-4):
   2^x = 2^r 2^y with r whole and |y| <= 1/2. The polynomial is off by 7.5e-5 of the power at most. From 128 on it is 2^128 less
   7.5e-5 of it, a finite number. */
static __device__ __forceinline__ float power2_by_products(float x)
{
    const float TO_WHOLE = 12582912.0f; /* 1.5 * 2^23: sums with it are whole */
    x = fminf(fmaxf(x, -126.0f), 128.0f);
    float r = x + TO_WHOLE, y = x - (r - TO_WHOLE);
    float p = fmaf(fmaf(fmaf(0.055171434f, y, 0.24261081f), y, 0.69326097f), y, 0.99992812f);
    return __uint_as_float(__float_as_uint(p) + (__float_as_uint(r) << 23));
}

/* Of number `n` of those that a lane has: every EVERY-th is made by products; 0: none. */
template <int EVERY> static __device__ __forceinline__ float power2_of(int n, float x)
{
    if constexpr (EVERY > 0)
        if (n % EVERY == EVERY - 1) return power2_by_products(x);
    return power2(x);
}

/* Features as they are stored. */
template <class T> static __device__ __forceinline__ const T *stored_at(const float *p)
{
    return reinterpret_cast<const T *>(p);
}
template <class T> static __device__ __forceinline__ T *stored_at(float *p)
{
    return reinterpret_cast<T *>(p);
}

/* How a kernel works on heads of D channels: a warp has 16 M own rows, and takes COLUMNS passing rows at a time. Heads of 8 are
   filled up with zeros. */
template <class T_, int D_, int M_, int COLUMNS_, int EVERY_ = 0> struct short_form {
    using T = T_;
    static const bool GROUP = false, KEPT = false,
                      HERE = true; /* the GPU that code is compiled for has it */
    static const int STAGES = AHEAD + 1, D = D_, M = M_, COLUMNS = COLUMNS_, EVERY = EVERY_;
    static const int FULL = D < 16 ? 16 : D,
                     STEPS = FULL / 16, /* of channels, in products over them */
        TILES = D / 8,                  /* of channels, in sums over rows */
        PARTS = COLUMNS / 8;            /* of passing rows */
    static const int WARPS = SHORT_TILE / (16 * M), THREADS = 32 * WARPS, BLOCK = THREADS;
    static const int LINE = FULL * 2, CHUNKS = LINE / 16,
                     STAGE = PASSING * LINE; /* bytes of one matrix */

    using own = uint32_t[M][STEPS][4];           /* left operand */
    using products = float[M][PARTS][4];         /* of own and passing rows */
    using sums = float[M][TILES][4];             /* of channels */
    using shares = uint32_t[M][COLUMNS / 16][4]; /* of passing rows, as a left operand */
};

/* A chunk of 16 bytes of a row in a stage; rows that are read at once lie in different banks. */
template <class F> static __device__ __forceinline__ uint32_t chunk_at(int row, int chunk)
{
    const int CYCLE = F::CHUNKS < 8 ? F::CHUNKS : 8, ROWS = F::LINE < 128 ? 128 / F::LINE : 1;
    if constexpr (F::GROUP)
        return (uint32_t)(chunk / 8 * F::PLANE + row * 128 + ((chunk ^ row) & 7) * 16);
    return (uint32_t)(row * F::LINE + ((chunk ^ (row / ROWS & (CYCLE - 1))) * 16));
}

/* Copies rows of a scope into stages, from `first` on. SHARE threads have a row, each of them EACH chunks of a matrix. Behind the
   scope its last row is copied again. */
template <class F> struct row_copies {
    static const int SHARE = F::THREADS / PASSING, CHUNKS = F::D / 8,
                     EACH = (CHUNKS + SHARE - 1) / SHARE;
    const struct scope_rows &scope;
    const int32_t *order;
    struct row_walk walk;
    int last, place; /* of the scope */
    int32_t row;     /* of the next stage */

    __device__ row_copies(const struct scope_rows &s, const int32_t *o, int first = 0)
        : scope(s), order(o), walk{0}, last(s.rows - 1), place(first + (int)threadIdx.x / SHARE)
    {
        row = walk.row(scope, order, min(place, last));
    }
    /* Where the thread's first chunk lies in a row, in numbers. */
    static __device__ __forceinline__ int channel()
    {
        return (int)threadIdx.x % SHARE * 8;
    }
    /* `from` has the thread's channel of row 0. */
    __device__ __forceinline__ void copy(
        uint32_t to, const typename F::T *from, int32_t stride) const
    {
        const typename F::T *at = from + (int64_t)row * stride;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (CHUNKS >= SHARE || channel() < 8 * CHUNKS)
                copy_chunk(to + chunk_at<F>(
                                    (int)threadIdx.x / SHARE, (int)threadIdx.x % SHARE + SHARE * i),
                    at + 8 * SHARE * i);
    }
    __device__ __forceinline__ void next_stage()
    {
        place += PASSING;
        row = walk.row(scope, order, min(place, last));
    }
};

/* What comes by in stages: channels of a head of two matrices, and in the half for keys the pairs of queries. */
template <class T> struct passing_rows {
    const T *one, *two;             /* row 0 */
    int32_t one_stride, two_stride; /* numbers from row to row */
    const float *pair;              /* of the scope's first tile; or NULL */
};

/* The 16 bytes of pairs that thread `n` of 32 copies, in numbers from the stage's: log_sum, then -D. */
static __device__ __forceinline__ int pair_at(int n, int row_bytes)
{
    return n / (PASSING / 4) * row_bytes + n % (PASSING / 4) * 4;
}

/* Stages of BYTES: two matrices, then pairs. One is worked on, the next AHEAD ones are being copied, by all threads. group_stages
   has the same calls. */
template <class F, uint32_t BYTES> struct block_stages {
    const struct passing_rows<typename F::T> from;
    struct row_copies<F> copies;
    uint32_t base, end, now, fill;
    int at; /* of the scope: the next stage's first row */

    __device__ block_stages(uint32_t to, const struct scope_rows &s, const int32_t *order,
        const struct passing_rows<typename F::T> &p)
        : from{p.one + copies.channel(), p.two + copies.channel(), p.one_stride, p.two_stride,
              p.pair},
          copies(s, order), base(to), end(to + F::STAGES * BYTES), now(to), fill(to), at(0)
    {
    }
    /* Whether this thread does nothing but copy; then copy_all does that. */
    static __device__ __forceinline__ bool copies_only()
    {
        return false;
    }
    __device__ __forceinline__ void copy_all() {}
    __device__ __forceinline__ void copy_next()
    {
        copies.copy(fill, from.one, from.one_stride);
        copies.copy(fill + F::STAGE, from.two, from.two_stride);
        if (from.pair && threadIdx.x < 32 &&
            at < copies.scope.rows) /* a tile has pairs behind the scope's end too */
            copy_chunk(fill + 2 * F::STAGE + pair_at((int)threadIdx.x, PASSING) * 4,
                from.pair + at / SHORT_TILE * 2 * SHORT_TILE + at % SHORT_TILE +
                    pair_at((int)threadIdx.x, SHORT_TILE));
        at += PASSING;
        copies_end_group();
        copies.next_stage();
        fill = fill + BYTES == end ? base : fill + BYTES;
    }
    __device__ __forceinline__ void begin()
    {
        for (int s = 0; s < AHEAD; s++) copy_next();
    }
    /* Waits until the stage `now` is there. */
    __device__ __forceinline__ void wait()
    {
        copies_wait<AHEAD - 1>();
        __syncthreads();
        copy_next();
    }
    __device__ __forceinline__ void next()
    {
        now = now + BYTES == end ? base : now + BYTES;
    }
    __device__ __forceinline__ void end_all() const
    {
        copies_wait<0>();
    }
};

/* Zeros in the channels that fill up heads of 8, of all stages. */
template <class F> static __device__ void fill_up(char *stages, int matrices)
{
    if constexpr (F::D < F::FULL)
        for (int i = (int)threadIdx.x; i < matrices * PASSING; i += F::THREADS)
            *reinterpret_cast<uint4 *>(
                stages + i / PASSING * F::STAGE + chunk_at<F>(i % PASSING, 1)) = {};
}

/* The rows that a lane holds: row[m][0] and row[m][1], -1: none. */
template <class F> struct own_rows {
    int32_t row[F::M][2];

    __device__ own_rows(const struct scope_rows &s, const int32_t *order)
    {
        struct row_walk walk = {0};
        for (int m = 0; m < F::M; m++)
            for (int h = 0; h < 2; h++)
                row[m][h] = walk.row(s, order, s.tile * SHORT_TILE + place(m, h));
    }
    /* In the block's tile. */
    static __device__ __forceinline__ int place(int m, int half)
    {
        return ((int)threadIdx.x / 32 * F::M + m) * 16 + half * 8 + (int)threadIdx.x % 32 / 4;
    }
    /* The left operand; zeros for rows and channels that are not there. */
    __device__ void fetch(const typename F::T *from, int64_t stride, typename F::own &to) const
    {
        int t = (int)threadIdx.x % 4;
        for (int m = 0; m < F::M; m++)
            for (int k = 0; k < F::STEPS; k++)
                for (int i = 0; i < 4; i++) {
                    int channel = 16 * k + i / 2 * 8;
                    int32_t r = row[m][i % 2];
                    to[m][k][i] = 0;
                    if (r >= 0 && channel < F::D)
                        to[m][k][i] = *reinterpret_cast<const uint32_t *>(
                            from + r * stride + channel + 2 * t);
                }
    }
    __device__ void write(
        const typename F::sums &s, float factor, bool add, int64_t stride, typename F::T *to) const
    {
        int t = (int)threadIdx.x % 4;
        for (int m = 0; m < F::M; m++)
            for (int h = 0; h < 2; h++) {
                if (row[m][h] < 0) continue;
                for (int n = 0; n < F::TILES; n++) {
                    auto *at =
                        reinterpret_cast<uint32_t *>(to + row[m][h] * stride + 8 * n + 2 * t);
                    float2 v = {factor * s[m][n][2 * h], factor * s[m][n][2 * h + 1]};
                    if (add) {
                        float2 old = widen_pair<typename F::T>(*at);
                        v.x += old.x;
                        v.y += old.y;
                    }
                    *at = narrow_pair<typename F::T>(v.x, v.y);
                }
            }
    }
};

/* p[m][n] = start(m, n) + own times COLUMNS passing rows from `first` on, over channels. */
template <class F, class S>
static __device__ __forceinline__ void multiply_rows(
    const typename F::own &own, uint32_t stage, int first, S start, typename F::products &p)
{
    int lane = (int)threadIdx.x % 32, row = first + lane / 16 * 8 + lane % 8, chunk = lane / 8 % 2;
#pragma unroll
    for (int k = 0; k < F::STEPS; k++)
#pragma unroll
        for (int n = 0; n < F::PARTS; n += 2) {
            uint32_t b[4];
            load_matrices(b, stage + chunk_at<F>(row + 8 * n, chunk + 2 * k));
#pragma unroll
            for (int m = 0; m < F::M; m++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    if (k > 0)
                        multiply_add<typename F::T>(
                            p[m][n + i], own[m][k], b[2 * i], b[2 * i + 1], p[m][n + i]);
                    else
                        multiply_add<typename F::T>(
                            p[m][n + i], own[m][k], b[2 * i], b[2 * i + 1], start(m, n + i).of);
                }
        }
}

/* What products begin with. */
struct four {
    float of[4];
};
static __device__ __forceinline__ struct four from_zero(int, int)
{
    return {{0, 0, 0, 0}};
}

/* s += shares times the channels of COLUMNS passing rows from `first` on, over those rows. */
template <class F>
static __device__ __forceinline__ void add_rows(
    const typename F::products &share, uint32_t stage, int first, typename F::sums &s)
{
    int lane = (int)threadIdx.x % 32, row = first + lane / 8 % 2 * 8 + lane % 8, chunk = lane / 16;
#pragma unroll
    for (int k = 0; k < F::PARTS / 2; k++) {
        uint32_t a[F::M][4];
#pragma unroll
        for (int m = 0; m < F::M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[m][i] = narrow_pair<typename F::T>(
                    share[m][2 * k + i / 2][i % 2 * 2], share[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < F::TILES; n += 2) {
            uint32_t b[4];
            load_matrices_turned(b, stage + chunk_at<F>(row + 16 * k, chunk + n));
#pragma unroll
            for (int m = 0; m < F::M; m++) {
                multiply_add<typename F::T>(s[m][n], a[m], b[0], b[1], s[m][n]);
                if (n + 1 < F::TILES)
                    multiply_add<typename F::T>(s[m][n + 1], a[m], b[2], b[3], s[m][n + 1]);
            }
        }
    }
}

/* Sums and maxima over the four lanes that hold a row. */
static __device__ __forceinline__ float quad_sum(float v)
{
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}
static __device__ __forceinline__ float quad_max(float v)
{
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}

#endif
