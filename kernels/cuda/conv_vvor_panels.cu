/* VVOR on the matrix unit. A block of threads sums the outer products of one kernel cell over a chunk of rows: it finds
   the runs of the cell, gathers 64 of them at a time as rows of two panels in shared memory, and multiplies one panel by
   the other while it gathers the next 64. The chunks' partial sums are added in order. */
#include "kernels/cuda/conv_fast.cuh"
#include "kernels/cuda/conv_mma.cuh"
#include "kernels/cuda/conv_pairs.cuh"
#include "kernels/cuda/conv_vvor.cuh"

enum { THREADS = CONV_PAIR_ROWS, WARPS = THREADS / 32, BATCH = 64, QUEUE = BATCH + CONV_PAIR_ROWS };

/* TALL: 128 input channels, shared by two warpgroups; else 64, and they share the output channels. Operands are `PLANES`
   numbers of 16 bits each: 3 bfloats hold all of a float, 2 the 16 bits that are more than enough for tf32. */
template <conv_form FORM_, bool TALL_, int COLUMNS_> struct config {
    static constexpr conv_form FORM = FORM_;
    static constexpr bool TALL = TALL_, BFLOAT = FORM != CONV_HALF;
    static constexpr int ROWS = TALL ? 128 : 64, COLUMNS = COLUMNS_;
    static constexpr int PLANES = FORM == CONV_SPLIT ? 3 : FORM == CONV_SCALED ? 2 : 1;
    static constexpr bool PARTS = FORM == CONV_SPLIT;         /* sums of sums, against rounding */
    static constexpr int WIDE = TALL ? COLUMNS : COLUMNS / 2; /* of a warpgroup */
    static constexpr int BLOCK = BATCH * 128;                 /* bytes of 64 columns of a panel */
    static constexpr int X = ROWS / 64 * BLOCK, Y = COLUMNS / 64 * BLOCK;
    static constexpr int BUFFER = PLANES * (X + Y), BYTES = 2 * BUFFER;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Runs waiting to be gathered, first come first served. */
struct queue {
    int64_t row[QUEUE], begin[QUEUE];
    int length[QUEUE];
    int counts[WARPS];
};

/* Appends the runs of cell k among rows [first, end) to the `held` ones; returns how many there are then. */
static __device__ int find_runs(
    queue &q, const conv_set &s, int64_t first, int64_t end, int k, int held)
{
    int64_t row = first + threadIdx.x, at = 0, last = 0;
    if (row < end) {
        last = conv_start(s, row + 1);
        at = conv_find_cell(s, conv_start(s, row), last, k);
    }
    int64_t begin = at;
    while (at < last && conv_cell(s, at) == k) at++;
    unsigned found = __ballot_sync(~0u, at > begin);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) q.counts[warp] = __popc(found);
    __syncthreads();
    int to = held + __popc(found & ((1u << lane) - 1));
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) to += q.counts[w];
        held += q.counts[w];
    }
    if (at > begin) {
        q.row[to] = row;
        q.begin[to] = begin;
        q.length[to] = (int)(at - begin);
    }
    __syncthreads();
    return held;
}

/* Moves what is behind the first BATCH runs to the front. */
static __device__ int drop_batch(queue &q, int held)
{
    int left = max(held - BATCH, 0), i = threadIdx.x;
    int64_t row = 0, begin = 0;
    int length = 0;
    if (i < left) {
        row = q.row[BATCH + i];
        begin = q.begin[BATCH + i];
        length = q.length[BATCH + i];
    }
    __syncthreads();
    if (i < left) {
        q.row[i] = row;
        q.begin[i] = begin;
        q.length[i] = length;
    }
    __syncthreads();
    return left;
}

/* One side of the pairs: a matrix and the columns wanted of it. */
template <typename T> struct side {
    const T *from;
    int stride, first, width; /* channels [first, width) of rows `stride` apart */
    bool aligned;
};

template <typename T>
static __device__ __forceinline__ float4 load4(const side<T> &s, int64_t row, int column)
{
    const T *from = s.from + row * s.stride;
    int c = s.first + column;
    float v[4];
    if (s.aligned && c + 4 <= s.width) {
        load_wide<4>(from + c, v);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = c + i < s.width ? widen(from[c + i]) : 0;
    }
    return {v[0], v[1], v[2], v[3]};
}

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

/* Puts four channels of pair `n` into all planes of a panel of `bytes` a plane. */
template <class C>
static __device__ __forceinline__ void put4(
    unsigned char *panel, int bytes, int n, int column, float4 v)
{
    unsigned char *to = panel + column / 64 * C::BLOCK + n * 128 +
                        ((column % 64 / 8 ^ n % 8) * 16) + column % 8 * 2;
#pragma unroll
    for (int p = 0; p < C::PLANES; p++) {
        uint2 w = {take2<C>(v.x, v.y), take2<C>(v.z, v.w)};
        *(uint2 *)(to + p * bytes) = w;
    }
}

/* A warp's pairs of a batch: rows as they are, WIDTH columns of them. */
template <class C, int WIDTH, typename T>
static __device__ __forceinline__ void gather_rows(
    const queue &q, int count, const side<T> &s, unsigned char *panel)
{
    constexpr int LANES = WIDTH / 4, AT_ONCE = 32 / LANES, PAIRS = BATCH / WARPS;
    int lane = threadIdx.x % 32, n = threadIdx.x / 32 * PAIRS + lane / LANES,
        column = lane % LANES * 4;
    float4 v[PAIRS / AT_ONCE];
#pragma unroll
    for (int i = 0; i < PAIRS / AT_ONCE; i++) {
        int at = n + i * AT_ONCE;
        v[i] = at < count ? load4(s, q.row[at], column) : float4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < PAIRS / AT_ONCE; i++)
        put4<C>(panel, WIDTH / 64 * C::BLOCK, n + i * AT_ONCE, column, v[i]);
}

/* A warp's pairs of a batch: sums of runs. Their triplets are taken as one list, several at a time. */
template <class C, int WIDTH, typename T>
static __device__ __forceinline__ void gather_runs(
    const queue &q, int count, const conv_set &set, const side<T> &s, unsigned char *panel)
{
    constexpr int LANES = WIDTH / 4, PAIRS = BATCH / WARPS, TEAMS = 32 / LANES,
                  SHARE = PAIRS / TEAMS, AHEAD = C::PARTS ? 8 : 4;
    int lane = threadIdx.x % 32, team = lane / LANES, in_team = lane % LANES, column = in_team * 4;
    int n0 = threadIdx.x / 32 * PAIRS + team * SHARE;
    int64_t begin[SHARE];
    int end[SHARE], total = 0; /* end: of the pair in the team's list */
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        begin[i] = n0 + i < count ? q.begin[n0 + i] - total : 0;
        total += n0 + i < count ? q.length[n0 + i] : 0;
        end[i] = total;
    }
    float4 sum = {0, 0, 0, 0};
    int pair = 0;
    int most = __reduce_max_sync(~0u, total);
    for (int first = 0; first < most; first += LANES) {
        /* each lane looks up one triplet of the list */
        int m = first + in_team;
        int64_t from = begin[0], other = 0;
#pragma unroll
        for (int i = 1; i < SHARE; i++)
            if (m >= end[i - 1]) from = begin[i];
        if (m < total) other = conv_other(set, from + m);
        for (int t = 0; t < LANES && first + t < most; t += AHEAD) {
            float4 v[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                int64_t row = __shfl_sync(~0u, other, t + u, LANES);
                v[u] = first + t + u < total ? load4(s, row, column) : float4{0, 0, 0, 0};
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                int at = first + t + u;
                if (at >= total) continue;
                sum.x += v[u].x;
                sum.y += v[u].y;
                sum.z += v[u].z;
                sum.w += v[u].w;
                int stop = end[0];
#pragma unroll
                for (int i = 1; i < SHARE; i++) stop = pair == i ? end[i] : stop;
                if (at + 1 == stop) {
                    put4<C>(panel, WIDTH / 64 * C::BLOCK, n0 + pair, column, sum);
                    sum = {0, 0, 0, 0};
                    pair++;
                }
            }
        }
    }
    for (; pair < SHARE; pair++)
        put4<C>(panel, WIDTH / 64 * C::BLOCK, n0 + pair, column, float4{0, 0, 0, 0});
}

/* Issues the products of one batch; small ones first. */
template <class C>
static __device__ __forceinline__ void multiply(
    float (&sum)[C::WIDE / 2], const unsigned char *buffer, bool fresh)
{
    int warpgroup = threadIdx.x / 128;
    const unsigned char *x = buffer + (C::TALL ? warpgroup * C::BLOCK : 0),
                        *y = buffer + C::PLANES * C::X;
    /* half a block of columns begins 64 bytes into its rows */
    if (!C::TALL) y += warpgroup * C::WIDE / 64 * C::BLOCK + warpgroup * C::WIDE % 64 * 2;
    int first = fresh ? 1 : 0;
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
}
#endif

template <class C, typename T>
static __global__ __launch_bounds__(THREADS, C::PARTS ? 1 : 2) void vvor(conv_outer o, const T *in,
    const T *gout, int64_t chunk, int tiles_a, int tiles_b, float *partial)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ queue q;
    const conv_groups &g = o.groups;
    int64_t id = blockIdx.x;
    int b0 = (int)(id % tiles_b) * C::COLUMNS, a0 = (int)(id / tiles_b % tiles_a) * C::ROWS;
    id /= (int64_t)tiles_a * tiles_b;
    int group = (int)(id % g.count), k = (int)(id / g.count);
    int64_t live = pnet_live(o.set.rows), row = blockIdx.y * chunk;
    int64_t end = row + chunk < live ? row + chunk : live;
    side<T> x = {in + (int64_t)group * g.cin, o.cin, a0, g.cin, (o.cin | g.cin) % 4 == 0},
            y = {gout + (int64_t)group * g.cout, o.cout, b0, g.cout, (o.cout | g.cout) % 4 == 0};
    float sum[C::WIDE / 2] = {}, part[C::PARTS ? C::WIDE / 2 : 1];
    int held = 0, batch = 0;
    for (;; batch++) {
        while (held < BATCH && row < end) {
            held = find_runs(
                q, o.set, row, row + CONV_PAIR_ROWS < end ? row + CONV_PAIR_ROWS : end, k, held);
            row += CONV_PAIR_ROWS;
        }
        if (held == 0) break;
        unsigned char *buffer = memory + batch % 2 * C::BUFFER;
        int count = min(held, (int)BATCH);
        if (o.swapped) {
            gather_rows<C, C::ROWS>(q, count, x, buffer);
            gather_runs<C, C::COLUMNS>(q, count, o.set, y, buffer + C::PLANES * C::X);
        } else {
            gather_rows<C, C::COLUMNS>(q, count, y, buffer + C::PLANES * C::X);
            gather_runs<C, C::ROWS>(q, count, o.set, x, buffer);
        }
        product_wait();
        if constexpr (C::PARTS) {
            if (batch > 0) {
                product_touch(part);
#pragma unroll
                for (int i = 0; i < C::WIDE / 2; i++) sum[i] += part[i];
            }
        } else {
            product_touch(sum);
        }
        fence_async();
        held = drop_batch(q, held); /* all threads are through with both buffers */
        if constexpr (C::PARTS) {
            product_touch(part);
            product_fence();
            multiply<C>(part, buffer, true);
        } else {
            product_touch(sum);
            product_fence();
            multiply<C>(sum, buffer, false);
        }
        product_commit();
    }
    product_wait();
    if constexpr (C::PARTS) {
        if (batch > 0) {
            product_touch(part);
#pragma unroll
            for (int i = 0; i < C::WIDE / 2; i++) sum[i] += part[i];
        }
    } else {
        product_touch(sum);
    }
    float *to = partial + (int64_t)blockIdx.y * o.set.cells * g.cin1 * o.cout;
    int warpgroup = threadIdx.x / 128;
    int a1 =
        a0 + (C::TALL ? warpgroup * 64 : 0) + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    int b1 = b0 + (C::TALL ? 0 : warpgroup * C::WIDE) + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < C::WIDE / 2; i++) {
        int a = a1 + i / 2 % 2 * 8, b = b1 + i / 4 * 8 + i % 2;
        if (a < g.cin && b < g.cout && a / g.cin1 == b / g.cout1)
            to[((int64_t)k * g.cin1 + a % g.cin1) * o.cout + group * g.cout + b] = sum[i];
    }
#endif
}

struct plan {
    int rows, columns, tiles_a, tiles_b;
    int64_t blocks, bytes;
    conv_splits splits;
};

static plan make_plan(const conv_set &s, const conv_groups &g, int cout)
{
    plan p;
    p.rows = g.cin > 64 ? 128 : 64;
    p.columns = g.cout > 64 ? 128 : 64;
    p.tiles_a = (g.cin + p.rows - 1) / p.rows;
    p.tiles_b = (g.cout + p.columns - 1) / p.columns;
    p.blocks = (int64_t)s.cells * g.count * p.tiles_a * p.tiles_b;
    p.bytes = (int64_t)s.cells * g.cin1 * cout * (int64_t)sizeof(float);
    p.splits = conv_split_rows(s.rows.most, p.blocks, p.bytes);
    return p;
}

size_t conv_fast_vvor_work(const conv_set &s, const conv_groups &g, int cout)
{
    /* Sizes do not tell a set of one cell from a dense product. */
    size_t fast = vvor_fast_work(s, g), tiles = tiles_vvor_work(s, g);
    if (tiles > fast) fast = tiles;
    if (s.cells > 1) return fast;
    plan p = make_plan(s, g, cout);
    size_t dense = (size_t)p.splits.count * (size_t)p.bytes;
    return dense > fast ? dense : fast;
}

template <class C, typename T> static void launch(const conv_outer &o, void *work)
{
    plan p = make_plan(o.set, o.groups, o.cout);
    cudaFuncSetAttribute(vvor<C, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
    dim3 grid((unsigned)p.blocks, (unsigned)p.splits.count);
    vvor<C, T><<<grid, THREADS, C::BYTES, cudaStreamPerThread>>>(
        o, as<T>(o.in), as<T>(o.gout), p.splits.rows, p.tiles_a, p.tiles_b, (float *)work);
    conv_reduce(o, (const float *)work, p.splits.count);
}

template <conv_form FORM, typename T> static void launch_form(const conv_outer &o, void *work)
{
    if (o.groups.cin > 64)
        o.groups.cout > 64 ? launch<config<FORM, true, 128>, T>(o, work)
                           : launch<config<FORM, true, 64>, T>(o, work);
    else
        o.groups.cout > 64 ? launch<config<FORM, false, 128>, T>(o, work)
                           : launch<config<FORM, false, 64>, T>(o, work);
}

void conv_fast_vvor(const conv_outer &o, enum pnet_precision precision, void *work)
{
    if (o.set.start) {
        vvor_fast(o, precision, work);
        return;
    }
    bool same = o.set.rows.storage != PNET_STORE_F32; /* as the form's operands */
    switch (conv_form_of(precision)) {
    case CONV_SPLIT: launch_form<CONV_SPLIT, float>(o, work); break;
    case CONV_SCALED: launch_form<CONV_SCALED, float>(o, work); break;
    case CONV_BFLOAT:
        same ? launch_form<CONV_BFLOAT, __nv_bfloat16>(o, work)
             : launch_form<CONV_BFLOAT, float>(o, work);
        break;
    case CONV_HALF:
        same ? launch_form<CONV_HALF, __half>(o, work) : launch_form<CONV_HALF, float>(o, work);
        break;
    }
}
