#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/loss/matched.cuh"

template <class T>
__global__ static void __launch_bounds__(THREADS) gather(
    int64_t n, int32_t width, const __grid_constant__ struct matched_rows r, const T *a, const T *b)
{
    for (int64_t i = FLAT_BEGIN; i < n; i += FLAT_STEP) {
        int64_t at = i / width;
        int32_t row = r.row[at];
        const T *from = at % r.each < r.of_a ? a : b;
        r.feature[i] = row < 0 ? 0 : widen(from[(int64_t)row * width + i % width]);
    }
}

void pnet_cuda_matched_gather(const struct pnet_matched *p, const struct matched_rows *r)
{
    int64_t n = (int64_t)p->samples * r->each * p->width;
    if (!n) return;
    by_storage(p->a_rows.storage, [&](auto f) {
        using T = typename decltype(f)::T;
        gather<T><<<element_blocks(n), THREADS, 0, pnet_cuda_stream()>>>(
            n, p->width, *r, as<T>(p->a), as<T>(p->b));
    });
}

static struct matched_entries lay_out(
    const struct pnet_matched *p, int32_t each, struct carver *room)
{
    int64_t n = (int64_t)p->samples * 2 * each;
    struct matched_entries e = {each, room->take<int32_t>(n), room->take<float>(n * p->width)};
    return e;
}

struct matched_entries pnet_cuda_matched_entries_of(
    const struct pnet_matched *p, int32_t each, void *work)
{
    struct carver room = {(char *)work};
    return lay_out(p, each, &room);
}

/* Is an entry of `row` among those in front of `end`? */
static __device__ bool comes_earlier(const int32_t *rows, int32_t row, int32_t end)
{
    int lane = (int)threadIdx.x % WARP;
    for (int32_t k = 0; k < end; k += WARP)
        if (__any_sync(WHOLE_WARP, k + lane < end && rows[k + lane] == row)) return true;
    return false;
}

/* A warp an entry: the first one of a row adds up all of that row, a lane a channel. */
template <class T>
__global__ static void __launch_bounds__(THREADS) add_entries(
    int64_t entries, int32_t width, const __grid_constant__ struct matched_entries e, T *a, T *b)
{
    int lane = (int)threadIdx.x % WARP;
    int64_t warps = (int64_t)gridDim.x * WARPS;
    for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < entries; i += warps) {
        int64_t part = i / e.each;
        int32_t own = (int32_t)(i % e.each);
        const int32_t *rows = e.row + part * e.each;
        const float *gradient = e.gradient + part * e.each * width;
        T *side = part % 2 ? b : a;
        int32_t row = rows[own];
        if (row < 0 || !side || comes_earlier(rows, row, own)) continue;
        for (int32_t first = 0; first < width; first += WARP) {
            int32_t c = first + lane;
            float sum = 0;
            for (int32_t k = own; k < e.each; k += WARP) {
                unsigned same =
                    __ballot_sync(WHOLE_WARP, k + lane < e.each && rows[k + lane] == row);
                for (; same; same &= same - 1) {
                    int64_t at = k + __ffs((int)same) - 1;
                    if (c < width) sum += gradient[at * width + c];
                }
            }
            T *to = side + (int64_t)row * width + c;
            if (c < width) narrow(widen(*to) + sum, to);
        }
    }
}

void pnet_cuda_matched_add_entries(const struct pnet_matched *p, const struct matched_entries *e,
    const struct pnet_matched_gradients *g)
{
    int64_t entries = (int64_t)p->samples * 2 * e->each;
    size_t row = (size_t)p->width * (size_t)pnet_storage_bytes(p->a_rows.storage);
    if (g->a && !g->add_a)
        cudaMemsetAsync(g->a, 0, (size_t)p->a_rows.most * row, pnet_cuda_stream());
    if (g->b && !g->add_b)
        cudaMemsetAsync(g->b, 0, (size_t)p->b_rows.most * row, pnet_cuda_stream());
    if (!entries) return;
    by_storage(p->a_rows.storage, [&](auto f) {
        using T = typename decltype(f)::T;
        add_entries<T><<<blocks_for(entries, WARPS), THREADS, 0, pnet_cuda_stream()>>>(
            entries, p->width, *e, as<T>(g->a), as<T>(g->b));
    });
}
