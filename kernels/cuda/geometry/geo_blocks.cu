#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_blocks.h"
#include "kernels/cuda/geometry/geo_gather.h"
#include "kernels/cuda/geometry/geo_rank.h"

enum { WARPS = 2, BLOCKS = 8 /* blocks that a window meets */ };

bool pnet_cuda_geo_blocks_serve(
    const struct pnet_level *out, const struct pnet_level *in, const struct pnet_neighbourhood *nb)
{
    unsigned both = PNET_NEIGHBOUR | PNET_KERNEL;
    return (nb->degrade & both) == both && nb->kernel <= BLOCK_KERNEL && in->key && out->key;
}

static __device__ __forceinline__ uint32_t slot_of(
    const struct block_table &b, uint64_t block, int32_t sample)
{
    uint64_t mixed = (block ^ (uint64_t)sample << 40) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(mixed >> (64 - b.bits));
}

static __device__ __forceinline__ uint32_t next_slot(const struct block_table &b, uint32_t slot)
{
    return (slot + 1) & ((1u << b.bits) - 1);
}

/* Enters the first row of every block into the table. */
static __global__ void find_blocks(
    const struct block_table b, int64_t n, int32_t samples, const int64_t *row_splits)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        int32_t sample = sample_of(row_splits, samples, i);
        int64_t begin = row_splits[sample], end = row_splits[sample + 1];
        uint64_t key = b.key[i], before = i > begin ? b.key[i - 1] : 0, mask = 0;
        if (i > begin && key <= before) *b.missing = 1;
        if (i > begin && key >> 6 == before >> 6) continue;
        for (int64_t r = i; r < end && r < i + 64 && b.key[r] >> 6 == key >> 6; r++)
            mask |= 1ull << (b.key[r] & 63);
        b.mask[i] = mask;
        uint32_t slot = slot_of(b, key >> 6, sample);
        while (atomicCAS(&b.table[slot], -1, (int32_t)i) != -1) slot = next_slot(b, slot);
    }
}

void pnet_cuda_geo_blocks_build(const struct block_table *b, const struct pnet_level *level)
{
    struct block_table blocks = *b;
    cudaStream_t stream = pnet_cuda_stream();
    cudaMemsetAsync(b->missing, 0, sizeof *b->missing, stream);
    cudaMemsetAsync(b->table, 0xff, sizeof *b->table << b->bits, stream);
    if (level->rows <= 0) return;
    find_blocks<<<geo_blocks(level->rows), GEO_THREADS, 0, stream>>>(
        blocks, level->rows, level->samples, level->row_splits);
}

/* Returns the first row of a block among rows [first, end) of a sample; -1: the block holds no point. */
static __device__ __forceinline__ int32_t find_block(
    const struct block_table &b, uint64_t block, int32_t sample, int64_t first, int64_t end)
{
    uint32_t slot = slot_of(b, block, sample);
    for (;;) {
        int32_t row = b.table[slot];
        if (row < 0 || (row >= first && row < end && b.key[row] >> 6 == block)) return row;
        slot = next_slot(b, slot);
    }
}

/* The blocks that a lane's window meets, from that of its lowest voxel on. */
struct around {
    uint64_t mask[BLOCKS][32];
    int32_t first[BLOCKS][32];
};

struct corner {
    uint32_t in_block[3]; /* position of the lowest voxel in its block */
};

static __device__ struct corner look_around(
    const struct geo_set &s, int64_t row, struct around &around)
{
    int lane = threadIdx.x % 32;
    int32_t sample = sample_of(s.out.row_splits, s.out.samples, row);
    int64_t first = s.in.row_splits[sample], end = s.in.row_splits[sample + 1], low[3];
    struct corner c;
    bool inside = true;
    for (int a = 0; a < 3; a++) {
        int64_t voxel = voxel_index(s.out.xyz[3 * row + a], s.out.grid, inside);
        low[a] = s.step * voxel + (int64_t)s.low + PNET_KEY_BIAS;
        c.in_block[a] = (uint32_t)(low[a] & 3);
    }
    for (int n = 0; n < BLOCKS; n++) {
        bool meets = true;
        uint32_t at[3];
        for (int a = 0; a < 3; a++) {
            int up = n >> (2 - a) & 1;
            int64_t block = (low[a] >> 2) + up;
            meets = meets && block >= 0 && block < PNET_KEY_LIMIT >> 2 &&
                    (!up || (int)c.in_block[a] + s.cells.kernel > 4);
            at[a] = (uint32_t)block;
        }
        int32_t head = -1;
        if (meets)
            head = find_block(s.blocks, pnet_key_join(at[0], at[1], at[2]), sample, first, end);
        around.first[n][lane] = head;
        around.mask[n][lane] = head >= 0 ? s.blocks.mask[head] : 0;
    }
    return c;
}

/* Calls take(cell, row) for the points in a lane's window, in the order of cells. */
template <class Take>
static __device__ __forceinline__ void for_window(
    const struct geo_set &s, struct corner c, const struct around &around, Take take)
{
    int lane = threadIdx.x % 32, K = s.cells.kernel, last = s.backward ? K - 1 : 0;
    int cell = 0;
    for (int x = 0; x < K; x++) {
        uint32_t px = c.in_block[0] + (uint32_t)abs(last - x);
        uint32_t bx = (px & 2) << 4 | (px & 1) << 2, nx = px & 4;
        for (int y = 0; y < K; y++) {
            uint32_t py = c.in_block[1] + (uint32_t)abs(last - y);
            uint32_t by = (py & 2) << 3 | (py & 1) << 1, ny = py >> 1 & 2;
            for (int z = 0; z < K; z++, cell++) {
                uint32_t pz = c.in_block[2] + (uint32_t)abs(last - z);
                uint32_t n = nx | ny | (pz >> 2 & 1), bit = bx | by | (pz & 2) << 2 | (pz & 1);
                uint64_t mask = around.mask[n][lane];
                if (mask >> bit & 1)
                    take(cell, around.first[n][lane] + __popcll(mask & ((1ull << bit) - 1)));
            }
        }
    }
}

static __global__ void __launch_bounds__(32 * WARPS)
    count_windows(const __grid_constant__ struct geo_set s, int64_t *count)
{
    __shared__ struct around rooms[WARPS];
    struct around &around = rooms[threadIdx.x / 32];
    int64_t row = thread_index();
    if (*s.blocks.missing || row >= s.out.rows) return;
    struct corner c = look_around(s, row, around);
    int found = 0;
    for_window(s, c, around, [&](int, int32_t) { found++; });
    count[row + 1] = found;
}

static __global__ void __launch_bounds__(32 * WARPS)
    write_windows(const __grid_constant__ struct geo_set s, const struct geo_results set)
{
    __shared__ struct around rooms[WARPS];
    __shared__ struct rank_rows all_rows[WARPS];
    struct around &around = rooms[threadIdx.x / 32];
    struct rank_rows &rows = all_rows[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    struct tile t = tile_of(s.out);
    if (*s.blocks.missing || !t.lanes) return;
    bool there = lane < t.lanes;
    int64_t row = there ? t.first + lane : 0, start = there ? set.start[row] : 0;
    int ends = lane_sums(there ? (int)(set.start[row + 1] - start) : 0);
    struct corner c = {};
    if (there) c = look_around(s, row, around);
    rows.start[lane] = start;
    if (lane == 0) rows.offset[0] = 0;
    for (int from = 0, to; from < t.lanes; from = to) {
        int before = from ? __shfl_sync(WARP_ALL, ends, from - 1) : 0;
        to = rank_share(from, t.lanes, ends, before);
        rows.offset[lane + 1] = ends - before;
        __syncwarp();
        int found = rows.offset[lane];
        if (lane >= from && lane < to)
            for_window(s, c, around, [&](int cell, int32_t other) {
                rows.other[found] = other;
                rows.cell[found++] = (uint16_t)cell;
            });
        __syncwarp();
        rank_copy(rows, from, to, set.other, set.cell);
        __syncwarp();
    }
}

static unsigned blocks_of(int64_t rows)
{
    return (unsigned)((rows + 32 * WARPS - 1) / (32 * WARPS));
}

void pnet_cuda_geo_blocks_count(const struct geo_set *s, int64_t *count)
{
    count_windows<<<blocks_of(s->out.rows), 32 * WARPS, 0, pnet_cuda_stream()>>>(*s, count);
}

void pnet_cuda_geo_blocks_write(const struct geo_set *s, const struct geo_results *to)
{
    write_windows<<<blocks_of(s->out.rows), 32 * WARPS, 0, pnet_cuda_stream()>>>(*s, *to);
}
