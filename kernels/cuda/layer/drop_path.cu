extern "C" {
#include "kernels/drop_path.h"
}
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/base/levels.cuh"

/* All threads of a row draw its number: they would wait for one that does. */
template <class T, int V>
static __global__ void __launch_bounds__(THREADS) drop_rows(struct pnet_segments samples, int32_t c,
    enum pnet_drop_each each, float p, float scale, pnet_rand rand, const T *x, bool add, T *y)
{
    let_next_come();
    wait_for_earlier();
    int64_t rows = pnet_segment_split(samples, samples.count);
    if (rand.live) rand.a = *rand.live;
    for (int64_t row = ROW_BEGIN; row < rows; row += ROW_STEP) {
        int32_t sample = pnet_segment_of(samples, row);
        int64_t place = row - pnet_segment_split(samples, sample);
        bool kept = pnet_rand_unit(&rand, pnet_drop_number(each, sample, place)) >= p;
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            vector<V> r = {};
            if (kept) r = load<V>(x + row * c + i);
            for (int k = 0; k < V; k++) r.v[k] = kept ? scale * r.v[k] : 0;
            store_or_add<V>(y + row * c + i, add, r);
        }
    }
}

extern "C" void pnet_cuda_drop_path(struct pnet_segments samples, int32_t c,
    enum pnet_drop_each each, float p, const struct pnet_rand *rand, const float *x, bool add,
    float *y)
{
    float scale = p < 1 ? 1 / (1 - p) : 0;
    if (samples.rows <= 0) return;
    by_form(
        samples.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            struct layout l = layout_for(samples.rows, c / V);
            launch_early(drop_rows<T, V>, l.grid, l.block, 0, 1, samples, c, each, p, scale, *rand,
                as<T>(x), add, as<T>(y));
        },
        x, y);
}
