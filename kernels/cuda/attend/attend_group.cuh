/* Attention on features in 16 bits by Hopper's matrix unit, for heads of 64 and 128 channels. A group of four warps has 64 own
   rows as the left operand of its products, in registers; the right one is a stage, whose rows lie as the unit reads them: 64
   channels in 128 bytes, swizzled, and the next 64 channels in a plane behind all rows. A lane holds the same rows and columns of
   a product as where its warp multiplies alone (attend_short.cuh). */
#ifndef PNET_KERNELS_CUDA_ATTEND_GROUP_CUH
#define PNET_KERNELS_CUDA_ATTEND_GROUP_CUH

#include "kernels/cuda/attend/attend_short.cuh"
#include "kernels/cuda/base/hopper.cuh"

/* How such a kernel works: COLUMNS passing rows at a time, BLOCKS blocks at once on a processor. KEPT: own rows stay in shared
   memory, not in registers. */
template <class T_, int D_, int COLUMNS_, int BLOCKS, bool KEPT_ = false>
struct group_form : short_form<T_, D_, 1, COLUMNS_> {
    static const bool GROUP = true, KEPT = KEPT_, BFLOAT = std::is_same<T_, __nv_bfloat16>::value;
    static const int STAGES = D_ == 64 ? 6 : 4, PLANE = PASSING * 128;
    static const int BLOCK = 2 * SHORT_TILE + 128; /* four warps copy */
    /* of a thread, in sum what 384 threads have at the start: 168 each, or 80 where two blocks run */
    static const int REGISTERS = BLOCKS > 1 ? 104 : 232, COPY_REGISTERS = BLOCKS > 1 ? 32 : 40;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    static const bool HERE = true;
#else
    static const bool HERE = false;
#endif
};

/* Whether this GPU runs a kernel. Kernels of groups have a body, which uses shared memory, in code for Hopper alone. */
template <class F, class K> static bool runs_here(K *kernel)
{
    cudaFuncAttributes a;
    if (!F::GROUP) return true;
    return cudaFuncGetAttributes(&a, kernel) == cudaSuccess && a.sharedSizeBytes > 0;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <class A> static __device__ __forceinline__ auto &numbers_of(A &a)
{
    return reinterpret_cast<float(&)[sizeof a / sizeof(float)]>(a);
}
#endif

/* As block_stages, but four warps of their own copy, and each group waits for the stage that it needs alone, so that one
   multiplies while the other one makes powers. */
template <class F, uint32_t BYTES> struct group_stages {
    const struct passing_rows<typename F::T> from;
    const struct scope_rows &scope;
    const int32_t *order;
    uint32_t base, now, slot, parity;
    uint32_t there; /* barriers [2 STAGES]: of stages that are there, then of those that are free */

    /* All threads take part. */
    __device__ group_stages(uint32_t to, const struct scope_rows &s, const int32_t *o,
        const struct passing_rows<typename F::T> &p, uint64_t *barriers)
        : from(p), scope(s), order(o), base(to), now(to), slot(0), parity(0),
          there(shared_at(barriers))
    {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        if (threadIdx.x == 0)
            for (int i = 0; i < F::STAGES; i++) {
                barrier_init(barriers + i, 128);
                barrier_init(barriers + F::STAGES + i, F::THREADS);
            }
        __syncthreads();
#endif
    }
    static __device__ __forceinline__ bool copies_only()
    {
        return threadIdx.x >= F::THREADS;
    }
    __device__ __forceinline__ void copy_all()
    {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        registers_fewer<F::COPY_REGISTERS>();
        struct row_walk walk = {0};
        int place = (int)threadIdx.x % 128 / 32 * 16 + (int)threadIdx.x % 16, last = scope.rows - 1;
        uint32_t to = 0, free_parity = 1, done = 0;
        int32_t row = walk.row(scope, order, min(place, last));
        for (int at = 0; at < scope.rows + AHEAD * PASSING; at += PASSING) {
            if (at < scope.rows) {
                barrier_wait(there + 8 * (F::STAGES + to), free_parity);
                copy(base + to * BYTES, at, row);
                if (++to == F::STAGES) {
                    to = 0;
                    free_parity ^= 1;
                }
                place += PASSING;
                row = walk.row(scope, order, min(place, last));
            }
            copies_end_group();
            if (at < AHEAD * PASSING) continue;
            ::copies_wait<AHEAD>();
            fence_async(); /* the matrix unit does not see ordinary writes */
            barrier_arrive(there + 8 * done);
            done = done + 1 == F::STAGES ? 0 : done + 1;
        }
#endif
    }
    /* A warp has 16 rows, of which `row` is number lane % 16; eight lanes copy 128 bytes of one. */
    __device__ __forceinline__ void copy(uint32_t to, int at, int32_t row)
    {
        int warp = (int)threadIdx.x % 128 / 32, lane = (int)threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int32_t r = __shfl_sync(~0u, row, 4 * i + lane / 8);
#pragma unroll
            for (int chunk = 0; chunk < F::CHUNKS; chunk += 8) {
                uint32_t place = to + chunk_at<F>(16 * warp + 4 * i + lane / 8, chunk + lane % 8);
                int channel = 8 * (chunk + lane % 8);
                copy_chunk(place, from.one + (int64_t)r * from.one_stride + channel);
                copy_chunk(place + F::STAGE, from.two + (int64_t)r * from.two_stride + channel);
            }
        }
        if (from.pair && warp == 0)
            copy_chunk(to + 2 * F::STAGE + pair_at(lane, PASSING) * 4,
                from.pair + at / SHORT_TILE * 2 * SHORT_TILE + at % SHORT_TILE +
                    pair_at(lane, SHORT_TILE));
    }
    __device__ __forceinline__ void begin() const
    {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        registers_more<F::REGISTERS>();
#endif
    }
    __device__ __forceinline__ void wait() const
    {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        barrier_wait(there + 8 * slot, parity);
#endif
    }
    __device__ __forceinline__ void next()
    {
        if (++slot == F::STAGES) {
            slot = 0;
            parity ^= 1;
        }
        now = base + slot * BYTES;
    }
    /* All threads call it, as each reads pairs: when products with the stage before `now` have ended. */
    __device__ __forceinline__ void release_before() const
    {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        uint32_t before = slot == 0 ? F::STAGES - 1 : slot - 1;
        barrier_arrive(there + 8 * (F::STAGES + before));
#endif
    }
};

/* The stages of a kernel, at `to` in shared memory. */
template <class F, uint32_t BYTES>
static __device__ __forceinline__ auto stages_of(uint32_t to, const struct scope_rows &s,
    const int32_t *order, const struct passing_rows<typename F::T> &p)
{
    if constexpr (F::GROUP) {
        __shared__ uint64_t barriers[2 * F::STAGES];
        return group_stages<F, BYTES>(to, s, order, p, barriers);
    } else {
        return block_stages<F, BYTES>(to, s, order, p);
    }
}

/* Ends a batch of products that were begun. */
static __device__ __forceinline__ void end_batch()
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    product_commit();
#endif
}

/* Waits for all batches but the last PENDING. */
template <int PENDING> static __device__ __forceinline__ void wait_batches()
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    product_wait<PENDING>();
#endif
}

/* What the products that were waited for have written, or read. */
template <int M, int N> static __device__ __forceinline__ void products_done(float (&of)[M][N][4])
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    product_touch(numbers_of(of));
#endif
}
template <int M, int N>
static __device__ __forceinline__ void products_done(uint32_t (&of)[M][N][4])
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    product_touch(of);
#endif
}

/* Begins p = own times COLUMNS passing rows from `first` on, over channels. */
template <class F>
static __device__ __forceinline__ void begin_rows(
    const typename F::own &own, uint32_t stage, int first, typename F::products &p)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    product_fence();
#pragma unroll
    for (int k = 0; k < F::STEPS; k++) {
        uint32_t at = stage + (uint32_t)(k / 4 * F::PLANE + first * 128 + k % 4 * 32);
        product<F::COLUMNS, F::BFLOAT>(numbers_of(p), own[0][k], product_matrix<128>(at), k == 0);
    }
#endif
}

/* The same with own rows in shared memory, which lie as a stage does. */
template <class F>
static __device__ __forceinline__ void begin_rows(
    uint32_t own, uint32_t stage, int first, typename F::products &p)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    product_fence();
#pragma unroll
    for (int k = 0; k < F::STEPS; k++) {
        uint32_t step = (uint32_t)(k / 4 * F::PLANE + k % 4 * 32);
        product_shared<F::COLUMNS, F::BFLOAT>(numbers_of(p), product_matrix<128>(own + step),
            product_matrix<128>(stage + step + (uint32_t)(first * 128)), k == 0);
    }
#endif
}

/* Begins to copy the own rows of the block: those of a group lie as a stage does. `from` has channel 0 of row 0. */
template <class F>
static __device__ void copy_own(uint32_t to, const struct scope_rows &s, const int32_t *order,
    const typename F::T *from, int32_t stride)
{
    struct row_copies<F> copies(s, order, s.tile * SHORT_TILE);
    for (int g = 0; g < SHORT_TILE / PASSING; g++) {
        copies.copy(to + (uint32_t)(g * F::STAGE), from + copies.channel(), stride);
        copies.next_stage();
    }
}

/* Waits for copy_own. */
template <class F> static __device__ __forceinline__ void own_wait()
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    copies_wait();
    fence_async();
    asm volatile("bar.sync 1, %0;" ::"n"(F::THREADS) : "memory");
#endif
}

/* Begins s += shares times the channels of COLUMNS passing rows from `first` on, over those rows. */
template <class F>
static __device__ __forceinline__ void begin_sums(
    const typename F::shares &share, uint32_t stage, int first, typename F::sums &s)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    product_touch(numbers_of(s));
    product_fence();
#pragma unroll
    for (int k = 0; k < F::COLUMNS / 16; k++)
        product_turned<F::D, F::BFLOAT>(numbers_of(s), share[0][k],
            product_panel(stage + (uint32_t)((first + 16 * k) * 128), F::PLANE), 0);
#endif
}

/* Shares as a left operand. */
template <class F>
static __device__ __forceinline__ void narrow_shares(
    const typename F::products &p, typename F::shares &to)
{
#pragma unroll
    for (int k = 0; k < F::COLUMNS / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[0][k][i] = narrow_pair<typename F::T>(
                p[0][2 * k + i / 2][i % 2 * 2], p[0][2 * k + i / 2][i % 2 * 2 + 1]);
}

/* Goes through the rows of a scope, COLUMNS a step. begin(stage, first) begins the products with the rows of a stage from `first`
   on. work(left) turns them into powers, where `left` of the rows are there, while the sums of the step before are still being
   made. shares() then makes the left operand of this step's sums, and sums(stage, first) begins them. */
template <class F, class S, class B, class W, class H, class U>
static __device__ __forceinline__ void step_through(
    S &turn, int rows, const B &begin, const W &work, const H &shares, const U &sums)
{
    turn.wait();
    begin(turn.now, 0);
    end_batch();
    wait_batches<0>();
    work(rows);
    shares();
    uint32_t stage = turn.now;
    int first = 0;
    for (int left = rows - F::COLUMNS; left > 0; left -= F::COLUMNS) {
        int next = first + F::COLUMNS;
        if (next == PASSING) {
            next = 0;
            turn.next();
            turn.wait();
        }
        begin(turn.now, next);
        end_batch();
        sums(stage, first);
        end_batch();
        wait_batches<1>();
        work(left);
        wait_batches<0>();
        if (next == 0) turn.release_before();
        shares();
        stage = turn.now;
        first = next;
    }
    sums(stage, first);
    end_batch();
    wait_batches<0>();
}

#endif
