/* The nearest row of another set, by comparing all rows of a sample. A block has the rows of a tile of a and a part of each
   sample of b, which it streams through shared memory. Parts are joined by an integer minimum of (distance^2, row), which is the
   same in any order.

   The distance that decides is rounded after each operation. To compare all pairs a cheaper one is enough, which differs from it
   by a few roundings: rows of b are taken in groups, and of each group only the least cheap distance is kept. If the least of all
   groups is below that of every other group by more than these roundings, then the nearest row is in that group, and the group's
   distances are computed as the contract says. If not, as where points coincide, a warp computes all of them. */
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/levels.cuh"
#include "kernels/cuda/sets/set_tree.h"

enum {
    NEAR_THREADS = 128,
    EACH = 4,                   /* rows of a that a thread has */
    TILE = EACH * NEAR_THREADS, /* rows of a that a block has */
    GROUP = 16,                 /* rows of b */
    CHUNK = 1024,               /* rows of b in shared memory at a time */
    LEAST_PART = 256,           /* rows of b that are worth a block */
    MOST_PARTS = 64,
    BLOCKS_WANTED = 512, /* that fill a large machine */
};

static const uint64_t NONE = UINT64_MAX;

/* By how much a group must be nearer than the others: a cheap and an exact distance differ by 6 roundings of 2^-24 each, or by a
   few of the smallest numbers. */
static __device__ __forceinline__ float surely_less(float cheap)
{
    return __fmaf_rn(cheap, 1 + 0x1p-19f, 0x1p-140f);
}

struct rows_of_b {
    alignas(16) float at[3][CHUNK];
};

/* Rows of b [begin, end), which are at most CHUNK, and NaN up to a whole group: a distance to it is not compared. */
static __device__ __forceinline__ void stage(
    struct rows_of_b &to, const float *xyz, int64_t begin, int64_t end)
{
    int count = (int)(end - begin), whole = (count + GROUP - 1) / GROUP * GROUP;
    __syncthreads(); /* the last chunk has been read */
    for (int i = (int)threadIdx.x; i < 3 * whole; i += NEAR_THREADS)
        to.at[i % 3][i / 3] = i < 3 * count ? xyz[3 * begin + i] : nanf("");
    __syncthreads();
}

/* The rows of a thread in one sample: NaN where a row is in none or in another one. */
struct queries {
    float at[EACH][3];
    float least[EACH],
        second[EACH];    /* cheap distances: of the nearest group, and of the nearest other one */
    int32_t group[EACH]; /* its first row */
};

static __device__ __forceinline__ void offer_group(
    struct queries &q, int r, float distance2, int32_t group)
{
    bool nearer = distance2 < q.least[r];
    q.second[r] = fminf(q.second[r], fmaxf(q.least[r], distance2));
    q.least[r] = fminf(q.least[r], distance2);
    q.group[r] = nearer ? group : q.group[r];
}

/* Rows of b in shared memory, `first` on. */
static __device__ __forceinline__ void compare(
    struct queries &q, const struct rows_of_b &b, int64_t first, int count)
{
    for (int group = 0; group < count; group += GROUP) {
        float least[EACH];
#pragma unroll
        for (int r = 0; r < EACH; r++) least[r] = INFINITY;
#pragma unroll
        for (int k = 0; k < GROUP; k += 4) {
            float at[3][4];
#pragma unroll
            for (int c = 0; c < 3; c++) *(float4 *)at[c] = *(const float4 *)(b.at[c] + group + k);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int r = 0; r < EACH; r++) {
                    float dx = q.at[r][0] - at[0][i], dy = q.at[r][1] - at[1][i],
                          dz = q.at[r][2] - at[2][i];
                    least[r] = fminf(least[r], __fmaf_rn(dz, dz, __fmaf_rn(dy, dy, dx * dx)));
                }
        }
#pragma unroll
        for (int r = 0; r < EACH; r++) offer_group(q, r, least[r], (int32_t)first + group);
    }
}

/* (distance^2, row) from the highest bit down: distances are not negative, so the order of their bits is theirs. A
   distance that is not finite is none. */
static __device__ __forceinline__ uint64_t key_of(const float a[3], const float *xyz, int64_t row)
{
    float dx = __fsub_rn(a[0], xyz[3 * row]), dy = __fsub_rn(a[1], xyz[3 * row + 1]),
          dz = __fsub_rn(a[2], xyz[3 * row + 2]);
    float d = __fadd_rn(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy)), __fmul_rn(dz, dz));
    return d < INFINITY ? (uint64_t)__float_as_uint(d) << 32 | (uint32_t)row : NONE;
}

static __device__ __forceinline__ uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The least key of rows [begin, end) of b: in groups that are near for sure by one thread, else by the warp. All threads of the
   warp take part; `there`: the thread's row is in the sample. */
static __device__ uint64_t exact_key(const float a[3], float least, float second, int32_t group,
    bool there, const float *xyz, int64_t begin, int64_t end)
{
    const int lane = (int)threadIdx.x % WARP;
    const bool sure = there && second > surely_less(least);
    uint64_t key = NONE;
    if (sure)
        for (int64_t row = group; row < end && row < group + GROUP; row++)
            key = least_of(key, key_of(a, xyz, row));
    for (unsigned rest = __ballot_sync(~0u, there && !sure); rest; rest &= rest - 1) {
        int from = __ffs((int)rest) - 1;
        float at[3];
        uint64_t own = NONE;
        for (int c = 0; c < 3; c++) at[c] = __shfl_sync(~0u, a[c], from);
        for (int64_t row = begin + lane; row < end; row += WARP)
            own = least_of(own, key_of(at, xyz, row));
        for (int d = WARP / 2; d; d /= 2) own = least_of(own, __shfl_xor_sync(~0u, own, d));
        if (lane == from) key = own;
    }
    return key;
}

/* The part of a sample's rows that a block compares with. */
static __device__ __forceinline__ void part_of(
    int64_t first, int64_t last, int64_t *begin, int64_t *end)
{
    int64_t size = (last - first + gridDim.y - 1) / gridDim.y;
    size = max((size + GROUP - 1) / GROUP * GROUP, (int64_t)LEAST_PART);
    *begin = min(first + size * blockIdx.y, last);
    *end = min(*begin + size, last);
}

/* Row r of a thread. The rows of a warp are consecutive, so they belong to few samples. */
static __device__ __forceinline__ int64_t row_of(int64_t tile, int r)
{
    return tile + (int64_t)(threadIdx.x / WARP * EACH + r) * WARP + threadIdx.x % WARP;
}

/* Grid: tiles of a, parts of b. key [a.rows] holds NONE before. */
__global__ static void __launch_bounds__(NEAR_THREADS)
    near_parts(const __grid_constant__ struct pnet_point_set a,
        const __grid_constant__ struct pnet_point_set b, unsigned long long *key)
{
    __shared__ struct rows_of_b shared;
    const int64_t tile = (int64_t)blockIdx.x * TILE;
    wait_for_earlier();
    const int64_t rows = min(pnet_live(a.rows), tile + TILE);
    if (tile >= rows) return;
    int32_t sample = 0;
    for (int32_t high = a.samples; high - sample > 1;) {
        int32_t middle = sample + (high - sample) / 2;
        (a.splits[middle] <= tile ? sample : high) = middle;
    }
    for (; sample < a.samples && a.splits[sample] < rows; sample++) {
        const int64_t a_begin = a.splits[sample], a_end = a.splits[sample + 1];
        int64_t begin, end;
        struct queries q;
        bool any = false;
        part_of(b.splits[sample], b.splits[sample + 1], &begin, &end);
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            int64_t row = row_of(tile, r);
            bool there = row >= a_begin && row < a_end;
            any |= there;
            for (int c = 0; c < 3; c++) q.at[r][c] = there ? a.xyz[3 * row + c] : nanf("");
            q.least[r] = q.second[r] = INFINITY;
            q.group[r] = (int32_t)begin;
        }
        any = __any_sync(~0u, any);
        for (int64_t chunk = begin; chunk < end; chunk += CHUNK) {
            int64_t last = min(chunk + CHUNK, end);
            stage(shared, b.xyz, chunk, last);
            if (any) compare(q, shared, chunk, (int)(last - chunk));
        }
        if (!any || begin == end) continue;
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            int64_t row = row_of(tile, r);
            bool there = row >= a_begin && row < a_end;
            uint64_t own =
                exact_key(q.at[r], q.least[r], q.second[r], q.group[r], there, b.xyz, begin, end);
            if (own != NONE) atomicMin(key + row, (unsigned long long)own);
        }
    }
}

__global__ static void __launch_bounds__(THREADS)
    write_near(struct pnet_count rows, const unsigned long long *key, int32_t *near)
{
    let_next_come();
    wait_for_earlier();
    const int64_t n = pnet_live(rows);
    for (int64_t row = FLAT_BEGIN; row < n; row += FLAT_STEP)
        near[row] = key[row] == NONE ? -1 : (int32_t)key[row];
}

/* As many parts as let all blocks fill a machine. */
static unsigned parts_for(int64_t tiles, int64_t rows_of_b)
{
    int64_t parts = (BLOCKS_WANTED + tiles - 1) / tiles,
            most = (rows_of_b + LEAST_PART - 1) / LEAST_PART;
    if (parts > most) parts = most;
    if (parts > MOST_PARTS) parts = MOST_PARTS;
    return parts > 1 ? (unsigned)parts : 1;
}

void pnet_cuda_near_pairs(
    const struct pnet_point_set *a, const struct pnet_point_set *b, int32_t *near, void *work)
{
    const int64_t n = a->rows.most, tiles = (n + TILE - 1) / TILE;
    unsigned long long *key = (unsigned long long *)work;
    if (n <= 0) return;
    cudaMemsetAsync(key, 0xff, (size_t)n * sizeof *key, pnet_cuda_stream());
    near_parts<<<dim3((unsigned)tiles, parts_for(tiles, b->rows.most)), NEAR_THREADS, 0,
        pnet_cuda_stream()>>>(*a, *b, key);
    launch_early(write_near, dim3(element_blocks(n)), dim3(THREADS), 0, 1, a->rows,
        (const unsigned long long *)key, near);
}

void pnet_cuda_set_near(
    const struct pnet_point_set *a, const struct pnet_point_set *b, int32_t *near, void *work)
{
    if (pnet_cuda_near_by_tree(a, b))
        pnet_cuda_near_tree(a, b, near, work);
    else
        pnet_cuda_near_pairs(a, b, near, work);
}
