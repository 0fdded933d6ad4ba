/* The two nearest distances of each row, and how many points its support has. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_scan.h"
#include "kernels/cuda/sets/apml_ball.cuh"

enum {
    FIND_WARPS = 4,
    FIND_BLOCKS = 8 /* of a multiprocessor: walks wait for memory most of the time */
};

/* One block: what rows of a sample have in common, and whether all squared distances within samples are finite. */
static __global__ void __launch_bounds__(THREADS)
    begin_search(const __grid_constant__ struct set_tree t, double p, double log_tau, float *slope,
        float *kappa, int32_t *finite)
{
    bool overflows = false;
    for (int64_t k = threadIdx.x; k < 2 * (int64_t)t.samples; k += THREADS) {
        const int64_t other = k < t.samples ? k + t.samples : k - t.samples;
        const int64_t points = t.splits[other + 1] - t.splits[other];
        const double own = points < 2 ? 0 : pnet_apml_slope(points, p);
        float d[3];
        slope[k] = (float)own;
        kappa[k] = points < 2 ? 0.0f : (float)(-log_tau / own);
        bool any = true;
        for (int c = 0; c < 3; c++) {
            uint32_t low = min(t.low[3 * k + c], t.low[3 * other + c]),
                     high = max(t.high[3 * k + c], t.high[3 * other + c]);
            any = any && low <= high;
            d[c] = rank_float(high) - rank_float(low);
        }
        overflows = overflows || (any && !isfinite((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]));
    }
    overflows = __syncthreads_or(overflows) != 0;
    if (threadIdx.x == 0) *finite = !overflows && !*t.broken;
}

/* The two least squared distances of each lane's point; INFINITY: there is none. */
static __device__ __forceinline__ float2 two_nearest(
    const struct set_search &s, const struct part &p, struct walk_room &room)
{
    float a = INFINITY, b = INFINITY;
    walk_part(
        s, p, room, [&] { return __float_as_uint(b); },
        [&](int, uint32_t, const struct geo_box &, uint32_t gap) {
            return gap < __float_as_uint(b);
        },
        [&](uint32_t distance2, int32_t) {
            float d = __uint_as_float(distance2);
            b = fminf(b, fmaxf(a, d));
            a = fminf(a, d);
        });
    return {a, b};
}

/* Returns the squared distance, as bits, from a point to the farthest place in a box. */
static __device__ __forceinline__ uint32_t far_bits(const struct geo_box &box, const float at[3])
{
    float d[3];
    for (int c = 0; c < 3; c++) d[c] = fmaxf(fabsf(box.low[c] - at[c]), fabsf(box.high[c] - at[c]));
    return __float_as_uint((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]);
}

/* How many points lie in each lane's ball. The points of a box in the ball are not looked at, so that many points in one place
   take no longer than others. */
static __device__ __forceinline__ int64_t count_within(
    const struct set_search &s, const struct part &p, uint32_t square, struct walk_room &room)
{
    int64_t count = 0, in_first = 0, in_end = 0; /* places of the last box in the ball */
    bool inside = false;                         /* are the leaf's points counted? */
    walk_part(
        s, p, room, [&] { return square; },
        [&](int level, uint32_t member, const struct geo_box &box, uint32_t gap) {
            const int shift = 5 * (level + 1);
            const int64_t first = max((int64_t)member << shift, p.first),
                          end = min((int64_t)(member + 1) << shift, p.end);
            inside = first >= in_first && end <= in_end;
            if (inside || gap > square) return false;
            if (far_bits(box, p.own.at) > square) return true;
            inside = true;
            in_first = first;
            in_end = end;
            count += end - first;
            return false;
        },
        [&](uint32_t distance2, int32_t) { count += !inside && distance2 <= square; });
    return count;
}

struct counts {
    int64_t *of[SIDES];
};

static __global__ void __launch_bounds__(FIND_WARPS *WARP, FIND_BLOCKS)
    find_supports(const __grid_constant__ struct set_search s, const struct apml_view v,
        const struct counts count)
{
    __shared__ __align__(16) struct walk_room rooms[FIND_WARPS];
    struct walk_room &room = rooms[threadIdx.x / WARP];
    if (!*v.finite) return;
    for_parts(
        s, *s.in.live, [](int32_t) {},
        [&](const struct part &p) {
            const int64_t points = p.end - p.first;
            int64_t found = 0;
            if (points > 0) {
                float2 near = two_nearest(s, p, room);
                near.x = __fsqrt_rn(near.x);
                near.y = points < 2 ? near.x : __fsqrt_rn(near.y);
                float radius = radius_of(near, v.kappa[p.sample], points);
                found = count_within(s, p, has_point(p) ? square_bits(radius) : 0, room);
                if (has_point(p)) v.near[p.place] = near;
            }
            if (has_point(p)) count.of[p.sample >= s.in.samples / 2][p.own.row] = found;
        });
}

/* The limits that are tried, in order. */
struct limits {
    int32_t of[APML_LIMITS], count;
};

static struct limits limits_of(int32_t most)
{
    struct limits l = {};
    for (int32_t next; (next = pnet_apml_limit(most, l.count)) != 0;) l.of[l.count++] = next;
    return l;
}

/* What the rows of each chunk keep at each limit. Grid: chunks, sides. */
struct kept_side {
    struct pnet_count rows;
    int64_t chunks;
    const int64_t *count;
    int64_t *sums;
};
struct kept_sides {
    struct kept_side of[SIDES];
};

static __global__ void __launch_bounds__(THREADS) sum_kept(
    const __grid_constant__ struct kept_sides sides, struct limits limits, const int32_t *finite)
{
    const struct kept_side &k = sides.of[blockIdx.y];
    const int64_t rows = *finite ? pnet_live(k.rows) : 0, begin = blockIdx.x * (int64_t)APML_CHUNK;
    int64_t sum[APML_LIMITS] = {};
    if (blockIdx.x >= k.chunks) return;
    for (int64_t row = begin + threadIdx.x; row < rows && row < begin + APML_CHUNK;
         row += THREADS) {
        const int64_t count = k.count[row];
#pragma unroll
        for (int l = 0; l < APML_LIMITS; l++) sum[l] += min(count, (int64_t)limits.of[l]);
    }
#pragma unroll
    for (int l = 0; l < APML_LIMITS; l++) {
        const int64_t all = block_sum(sum[l]);
        if (threadIdx.x == 0) k.sums[l * k.chunks + blockIdx.x] = all;
    }
}

/* The largest limit with which the rows of a side keep no more than there is room for; the sums of its chunks become those of all
   chunks before. A block a side. */
static __global__ void __launch_bounds__(THREADS)
    choose_limit(const __grid_constant__ struct kept_sides sides, struct limits limits,
        int64_t entries, int32_t *limit)
{
    const struct kept_side &k = sides.of[blockIdx.x];
    const int64_t room = pnet_live(k.rows) * entries;
    __shared__ int chosen;
    for (int l = 0; l < limits.count; l++) {
        int64_t sum = 0;
        for (int64_t c = threadIdx.x; c < k.chunks; c += THREADS) sum += k.sums[l * k.chunks + c];
        sum = block_sum(sum);
        if (threadIdx.x == 0) chosen = sum <= room || l == limits.count - 1 ? l : -1;
        __syncthreads();
        if (chosen >= 0) break;
    }
    const int64_t *of_chunk = k.sums + chosen * k.chunks;
    int64_t carry = 0, total;
    for (int64_t c = 0; c < k.chunks; c += THREADS) {
        const int64_t i = c + threadIdx.x, own = i < k.chunks ? of_chunk[i] : 0;
        const int64_t sum = block_scan<THREADS>(own, total);
        if (i < k.chunks) k.sums[i] = carry + sum - own;
        carry += total;
    }
    if (threadIdx.x == 0) limit[blockIdx.x] = limits.of[chosen];
}

void pnet_cuda_apml_count(const struct pnet_apml *a, const struct apml_parts *p,
    int64_t *const count[SIDES], int32_t *finite)
{
    const struct pnet_point_set *set[SIDES] = {&a->sets.x, &a->sets.y};
    const struct apml_view view = view_of(p, finite);
    const struct limits limits = limits_of(a->most);
    const struct counts counts = {{count[0], count[1]}};
    struct kept_sides sides;
    unsigned chunks = 1;
    cudaStream_t stream = pnet_cuda_stream();
    for (int side = 0; side < SIDES; side++) {
        int64_t own = pnet_cuda_apml_chunks(set[side]->rows.most);
        sides.of[side] = {set[side]->rows, own, count[side], p->sums[side]};
        chunks = own > chunks ? (unsigned)own : chunks;
    }
    pnet_cuda_set_tree_build(&p->tree, set[0], set[1]);
    begin_search<<<1, THREADS, 0, stream>>>(p->tree, a->p, log(a->tau), p->slope, p->kappa, finite);
    if (p->tree.places > 0)
        find_supports<<<place_blocks(&p->tree, FIND_WARPS * WARP), FIND_WARPS * WARP, 0, stream>>>(
            search_of(&p->tree), view, counts);
    sum_kept<<<dim3(chunks, SIDES), THREADS, 0, stream>>>(sides, limits, finite);
    choose_limit<<<SIDES, THREADS, 0, stream>>>(sides, limits, a->entries, p->limit);
}
