/* The gradients of APML: forces along the pairs of the plan, added up by rows of x from the plan, and by rows of y from its lists
   transposed. One list is added to the other's sums, so that one transposed list is there at a time. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/apml_lists.cuh"
#include "kernels/cuda/sets/points.cuh"

enum {
    SHORT =
        16, /* entries of a row that one thread adds up; a warp has more, a block those of long rows */
    TOGETHER = 256 /* terms that a thread adds up in float32; sums of these are added in float64 */
};

static __device__ __forceinline__ void extend(
    struct pnet_cuda_apml_box &box, const struct pnet_cuda_apml_box &by)
{
    for (int c = 0; c < 3; c++) {
        box.low[c] = fminf(box.low[c], by.low[c]);
        box.high[c] = fmaxf(box.high[c], by.high[c]);
    }
    box.finite &= by.finite;
}

static __device__ __forceinline__ struct pnet_cuda_apml_box no_box()
{
    return {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}, 1};
}

/* The box of all threads of a warp. */
static __device__ __forceinline__ struct pnet_cuda_apml_box warp_box(struct pnet_cuda_apml_box box)
{
    for (int d = WARP / 2; d; d /= 2) {
        struct pnet_cuda_apml_box other;
        for (int c = 0; c < 3; c++) {
            other.low[c] = __shfl_xor_sync(~0u, box.low[c], d);
            other.high[c] = __shfl_xor_sync(~0u, box.high[c], d);
        }
        other.finite = __shfl_xor_sync(~0u, box.finite, d);
        extend(box, other);
    }
    return box;
}

/* The boxes of a stretch of a sample, of both sets together. Grid: stretches. */
__global__ static void __launch_bounds__(THREADS) find_boxes(
    const __grid_constant__ struct sides sides, int32_t parts, struct pnet_cuda_apml_box *box)
{
    __shared__ struct pnet_cuda_apml_box of_warp[WARPS];
    const int64_t all = (int64_t)sides.of[0].a.samples * parts;
    for (int64_t at = blockIdx.x; at < all; at += gridDim.x) {
        struct pnet_cuda_apml_box own = no_box();
        for (int side = 0; side < SIDES; side++) {
            const struct pnet_point_set &set = sides.of[side].a;
            struct stretch r = stretch_of(set, (int32_t)(at / parts), (int32_t)(at % parts), parts);
            for (int64_t row = r.begin + threadIdx.x; row < r.end; row += THREADS)
                for (int c = 0; c < 3; c++) {
                    float p = set.xyz[3 * row + c];
                    own.low[c] = fminf(own.low[c], p);
                    own.high[c] = fmaxf(own.high[c], p);
                    own.finite &= isfinite(p) != 0;
                }
        }
        own = warp_box(own);
        __syncthreads(); /* the last boxes have been read */
        if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = own;
        __syncthreads();
        if (threadIdx.x) continue;
        for (int w = 1; w < WARPS; w++) extend(own, of_warp[w]);
        box[at] = own;
    }
}

/* Are all coordinates finite, and the squared distances within each sample? One block; a warp has a sample at a time. */
__global__ static void __launch_bounds__(1024) judge_boxes(
    int32_t samples, int32_t parts, const struct pnet_cuda_apml_box *box, int32_t *finite)
{
    bool good = true;
    for (int32_t s = (int32_t)(threadIdx.x / WARP); s < samples; s += 1024 / WARP) {
        struct pnet_cuda_apml_box all = no_box();
        float d[3];
        for (int32_t k = (int32_t)(threadIdx.x % WARP); k < parts; k += WARP)
            extend(all, box[(int64_t)s * parts + k]);
        all = warp_box(all);
        for (int c = 0; c < 3; c++) d[c] = all.high[c] - all.low[c];
        bool empty = all.low[0] > all.high[0];
        good &= all.finite && (empty || isfinite((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]));
    }
    good = __syncthreads_and(good);
    if (threadIdx.x == 0) *finite = good;
}

/* One list that pulls at the rows of a set. */
struct apml_pull {
    struct apml_list list;
    const float *own, *other; /* places of both sets */
    int32_t samples;
    const float *gloss;
    const int32_t *finite;
    bool add;
    float *to;
    struct long_rows longest;
};

__global__ static void __launch_bounds__(THREADS)
    list_long_rows(const __grid_constant__ struct apml_list list, struct long_rows longest)
{
    const int64_t rows = pnet_live(list.rows);
    for (int64_t row = FLAT_BEGIN; row < rows; row += FLAT_STEP)
        if (list_length(list, row) > PNET_APML_LONG)
            longest.row[atomicAdd(longest.count, 1)] = (int32_t)row;
}

struct force {
    float of[3];
};

/* The pull of entries first, first + step .. of a row with n entries. */
static __device__ __forceinline__ struct force pull_of(const struct apml_pull &p, int64_t row,
    const struct pnet_apml_entry *entry, int first, int n, int step)
{
    struct force sum = {};
    const float *own = p.own + 3 * row;
    for (int k = first; k < n; k += step) {
        struct pnet_apml_entry e = entry_at(entry + k);
        const float *other = p.other + 3 * (int64_t)e.other;
        float d[3];
        for (int c = 0; c < 3; c++) d[c] = own[c] - other[c];
        float f = e.p / fmaxf(sqrtf((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]), 1e-6f);
        for (int c = 0; c < 3; c++) sum.of[c] += f * d[c];
    }
    return sum;
}

static __device__ __forceinline__ void write_pull(
    const struct apml_pull &p, int64_t row, const struct force &sum)
{
    const float share = *p.gloss * (1 / (float)p.samples);
    for (int c = 0; c < 3; c++) {
        float g = *p.finite ? share * sum.of[c] : nanf(""), *to = p.to + 3 * row + c;
        *to = p.add ? *to + g : g;
    }
}

__global__ static void __launch_bounds__(THREADS)
    pull_rows(const __grid_constant__ struct apml_pull p)
{
    const int64_t rows = pnet_live(p.list.rows);
    const int lane = (int)threadIdx.x % WARP;
    for (int64_t base = FLAT_BEGIN - lane; base < rows; base += FLAT_STEP) {
        const int64_t row = base + lane, begin = row < rows ? list_begin(p.list, row) : 0;
        const int n = row < rows ? (int)list_length(p.list, row) : PNET_APML_LONG + 1;
        const struct pnet_apml_entry *entry = p.list.entry;
        if (n <= SHORT) write_pull(p, row, pull_of(p, row, entry + begin, 0, n, 1));
        for (unsigned rest = __ballot_sync(~0u, n > SHORT && n <= PNET_APML_LONG); rest;
             rest &= rest - 1) {
            int from = __ffs((int)rest) - 1, count = __shfl_sync(~0u, n, from);
            int64_t first = __shfl_sync(~0u, begin, from);
            struct force sum = pull_of(p, base + from, entry + first, lane, count, WARP);
            for (int c = 0; c < 3; c++) sum.of[c] = lanes_sum(sum.of[c], WARP);
            if (lane == 0) write_pull(p, base + from, sum);
        }
    }
    for (int k = (int)blockIdx.x; k < *p.longest.count; k += (int)gridDim.x) {
        const int64_t row = p.longest.row[k], n = list_length(p.list, row);
        const struct pnet_apml_entry *entry = p.list.entry + list_begin(p.list, row);
        double all[3] = {};
        struct force sum;
        for (int64_t first = 0; first < n; first += TOGETHER * THREADS) {
            sum = pull_of(p, row, entry, (int)first + (int)threadIdx.x,
                (int)min(first + TOGETHER * THREADS, n), THREADS);
            for (int c = 0; c < 3; c++) all[c] += (double)sum.of[c];
        }
        for (int c = 0; c < 3; c++) sum.of[c] = (float)block_sum(all[c]);
        if (threadIdx.x == 0) write_pull(p, row, sum);
    }
}

static void pull(const struct apml_pull &p)
{
    const int64_t rows = p.list.rows.most;
    cudaStream_t stream = pnet_cuda_stream();
    if (rows <= 0) return;
    cudaMemsetAsync(p.longest.count, 0, sizeof *p.longest.count, stream);
    list_long_rows<<<element_blocks(rows), THREADS, 0, stream>>>(p.list, p.longest);
    pull_rows<<<blocks_for(rows, THREADS), THREADS, 0, stream>>>(p);
}

static void find_finite(const struct pnet_apml *a, const struct pnet_cuda_apml_backward_room *p)
{
    const int32_t samples = a->sets.x.samples, parts = parts_of_sample(samples);
    if (samples > 0)
        find_boxes<<<stretch_blocks(samples), THREADS, 0, pnet_cuda_stream()>>>(
            sides_of(&a->sets), parts, p->box);
    judge_boxes<<<1, 1024, 0, pnet_cuda_stream()>>>(samples, parts, p->box, p->finite);
}

void pnet_cuda_apml_backward(const struct pnet_apml *a, const struct pnet_apml_plan *plan,
    const float *gloss, const struct pnet_apml_gradients *g, void *work)
{
    const struct pnet_point_set &x = a->sets.x, &y = a->sets.y;
    struct pnet_cuda_apml_backward_room p;
    pnet_cuda_apml_backward_room(a, work, &p);
    find_finite(a, &p);
    for (int which = 0; which < 2; which++) {
        struct apml_list list = {
            x.rows, plan->end + which, 2, which ? plan->by_column : plan->by_row};
        struct apml_pull at_x = {list, x.xyz, y.xyz, x.samples, gloss, p.finite,
            g->x_add || which == 1, g->x, {p.long_count, p.long_row}};
        struct apml_pull at_y = at_x;
        if (g->x) pull(at_x);
        if (!g->y || y.rows.most <= 0) continue;
        pnet_cuda_apml_transpose(&list, y.rows, p.start, p.by_y, p.longer, p.sums);
        at_y.list = list_from(y.rows, p.start, p.by_y);
        at_y.own = y.xyz;
        at_y.other = x.xyz;
        at_y.add = g->y_add || which == 1;
        at_y.to = g->y;
        pull(at_y);
    }
}
