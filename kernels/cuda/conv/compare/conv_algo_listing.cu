/* MVMR and VVOR as the listings of PointCNN++ have them: a warp takes 128 triplets of a sorted list and a block of 32 x 32
   of their matrices, and keeps the block, the input and the sum while their index stays the same. Sums go out by float
   atomics, since other warps add to the same rows: the last bits vary from run to run.

   PointCNN++: Performant Convolution on Native Points, 2025, listings 1 and 2. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/compare/conv_algo.cuh"

enum { LENGTH = 128, SIDE = 32, WARPS = 4, THREADS = 32 * WARPS };

struct listing {
    pnet_conv_list list;
    conv_groups groups; /* not merged */
    int cin, cout, deep, wide;
    int64_t warps;
    const float *in, *weight, *gout;
    float *out;
    bool swapped;
};

/* What a warp works on: triplets [first, first + count), input channels from `a`, output channel b of the lane. */
struct share {
    int64_t first;
    int count, group, a, b;
};

static __device__ share share_of(const listing &p)
{
    int64_t id = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32;
    if (id >= p.warps) return {};
    share s;
    s.b = (int)(id % p.wide) * SIDE + threadIdx.x % 32;
    id /= p.wide;
    s.a = (int)(id % p.deep) * SIDE;
    id /= p.deep;
    s.group = (int)(id % p.groups.count);
    s.first = id / p.groups.count * LENGTH;
    int64_t left = conv_list_live(p.list) - s.first;
    s.count = (int)(left < LENGTH ? left : (int64_t)LENGTH);
    return s;
}

/* Up to 32 triplets, one a lane. */
struct triplet {
    int i, j, k;
};

static __device__ __forceinline__ triplet load(const listing &p, const share &s, int n)
{
    int64_t at = s.first + n;
    if (n >= s.count) return {};
    return {p.list.row[at], p.list.other[at], p.list.cell[at]};
}

static __device__ __forceinline__ triplet of_lane(const triplet &t, int lane)
{
    return {__shfl_sync(~0u, t.i, lane), __shfl_sync(~0u, t.j, lane), __shfl_sync(~0u, t.k, lane)};
}

/* Input channel a + lane of point j. */
static __device__ __forceinline__ float input(const listing &p, const share &s, int j)
{
    int a = s.a + threadIdx.x % 32;
    return a < p.groups.cin ? p.in[(int64_t)j * p.cin + s.group * p.groups.cin + a] : 0.0f;
}

/* Makes the 32 inputs of the warp readable by all of its lanes. */
static __device__ __forceinline__ void share_input(float *x, float mine)
{
    __syncwarp();
    x[threadIdx.x % 32] = mine;
    __syncwarp();
}

/* w[c] = W[k][a + c][b] */
static __device__ __forceinline__ void load_block(
    const listing &p, const share &s, int64_t k, float (&w)[SIDE])
{
    const conv_groups &g = p.groups;
    const float *from = p.weight + (k * g.cin + s.a) * p.cout + s.group * g.cout + s.b;
#pragma unroll
    for (int c = 0; c < SIDE; c++)
        w[c] = s.a + c < g.cin && s.b < g.cout ? from[(int64_t)c * p.cout] : 0.0f;
}

static __global__ __launch_bounds__(THREADS) void mvmr(listing p)
{
    __shared__ __align__(16) float inputs[WARPS][SIDE];
    float *x = inputs[threadIdx.x / 32];
    share s = share_of(p);
    bool inside = s.b < p.groups.cout;
    float w[SIDE], sum = 0;
    triplet now = {-1, -1, -1};
    auto flush = [&] {
        if (inside && now.i >= 0)
            atomicAdd(p.out + (int64_t)now.i * p.cout + s.group * p.groups.cout + s.b, sum);
    };
    for (int base = 0; base < s.count; base += 32) {
        triplet mine = load(p, s, base + threadIdx.x % 32);
        int count = min(32, s.count - base);
        float ahead = input(p, s, __shfl_sync(~0u, mine.j, 0));
        for (int n = 0; n < count; n++) {
            triplet t = of_lane(mine, n);
            float here = ahead;
            if (n + 1 < count) ahead = input(p, s, __shfl_sync(~0u, mine.j, n + 1));
            if (t.j != now.j) share_input(x, here);
            if (t.k != now.k) load_block(p, s, t.k, w);
            if (t.i != now.i) {
                flush();
                sum = 0;
            }
            now = t;
#pragma unroll
            for (int c = 0; c < SIDE; c++) sum += x[c] * w[c];
        }
    }
    flush();
}

static __global__ __launch_bounds__(THREADS) void vvor(listing p)
{
    __shared__ __align__(16) float inputs[WARPS][SIDE];
    float *x = inputs[threadIdx.x / 32];
    share s = share_of(p);
    bool inside = s.b < p.groups.cout;
    float sum[SIDE] = {};
    int cell = -1, from = -1;
    auto flush = [&] {
        float *to =
            p.out + ((int64_t)cell * p.groups.cin + s.a) * p.cout + s.group * p.groups.cout + s.b;
#pragma unroll
        for (int c = 0; c < SIDE; c++)
            if (inside && cell >= 0 && s.a + c < p.groups.cin)
                atomicAdd(to + (int64_t)c * p.cout, sum[c]);
    };
    for (int base = 0; base < s.count; base += 32) {
        triplet mine = load(p, s, base + threadIdx.x % 32);
        int count = min(32, s.count - base);
        for (int n = 0; n < count; n++) {
            triplet t = of_lane(mine, n);
            int j = p.swapped ? t.i : t.j, i = p.swapped ? t.j : t.i;
            float g = inside ? p.gout[(int64_t)i * p.cout + s.group * p.groups.cout + s.b] : 0.0f;
            if (j != from) share_input(x, input(p, s, j));
            if (t.k != cell) {
                flush();
#pragma unroll
                for (int c = 0; c < SIDE; c++) sum[c] = 0;
            }
            from = j;
            cell = t.k;
#pragma unroll
            for (int c = 0; c < SIDE; c++) sum[c] += x[c] * g;
        }
    }
    flush();
}

static listing make_listing(const pnet_conv_list &list, struct pnet_conv_shape s)
{
    listing p = {};
    p.list = list;
    p.groups = pnet_cuda_conv_merge(s, 0);
    p.cin = s.cin;
    p.cout = s.cout;
    p.deep = (p.groups.cin + SIDE - 1) / SIDE;
    p.wide = (p.groups.cout + SIDE - 1) / SIDE;
    p.warps = (list.most + LENGTH - 1) / LENGTH * p.groups.count * p.deep * p.wide;
    return p;
}

static unsigned blocks_of(const listing &p)
{
    return (unsigned)((p.warps + WARPS - 1) / WARPS);
}

void pnet_cuda_conv_listing_mvmr(
    const struct pnet_mvmr *m, const float *weight, const pnet_conv_list &list)
{
    listing p = make_listing(list, m->shape);
    p.in = m->in;
    p.weight = weight;
    p.out = m->out;
    if (p.warps > 0) mvmr<<<blocks_of(p), THREADS, 0, pnet_cuda_stream()>>>(p);
}

void pnet_cuda_conv_listing_vvor(const struct pnet_vvor *v, const pnet_conv_list &list)
{
    listing p = make_listing(list, v->shape);
    p.in = v->in;
    p.gout = v->gout;
    p.out = v->gweight;
    p.swapped = v->swapped;
    if (p.warps > 0) vvor<<<blocks_of(p), THREADS, 0, pnet_cuda_stream()>>>(p);
}
