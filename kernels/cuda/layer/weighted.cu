/* Weighted sums of rows, each by the threads that lists.cuh gives its list. */
#include "kernels/corners.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/layer/lists.cuh"

template <class T, int V_> struct weigh_rows {
    static const int V = V_;
    using sum = vector<V>;
    struct entry {
        int32_t from;
        float weight;
    };
    using row = raw<T, V>;
    const int64_t *offsets;
    const int32_t *other;
    const float *weight;
    int32_t c;
    const T *x;
    bool add;
    T *y;
    const int32_t *to;

    __device__ int64_t begin(int64_t list) const
    {
        return offsets[list];
    }
    __device__ sum start() const
    {
        return {};
    }
    __device__ entry find(int64_t at) const
    {
        return {other[at], weight ? weight[at] : 1.0f};
    }
    __device__ const T *where(entry from, int32_t channel) const
    {
        return x + (int64_t)from.from * c + channel;
    }
    __device__ void take(sum &s, entry from, const row &r, bool) const
    {
        vector<V> p = widen_raw<T, V>(r);
        for (int i = 0; i < V; i++) s.v[i] += from.weight * p.v[i];
    }
    __device__ void join(sum &s, const sum &other) const
    {
        for (int i = 0; i < V; i++) s.v[i] += other.v[i];
    }
    __device__ void write(const sum &s, int64_t list, int32_t channel, int64_t) const
    {
        store_or_add<V>(y + (to ? to[list] : list) * c + channel, add, s);
    }
};

void pnet_cuda_weighted_rows(
    const struct pnet_weighted *w, int32_t c, const float *x, bool add, float *y)
{
    by_form(
        w->rows.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            struct weigh_rows<T, decltype(form)::V> op = {
                w->start, w->other, w->weight, c, as<T>(x), add, as<T>(y), w->row
            };
            launch_lists(op, w->rows);
        },
        x, y);
}

__global__ static void __launch_bounds__(THREADS)
    weighted_labels(struct pnet_weighted w, const int32_t *label, int32_t *y)
{
    int64_t rows = pnet_live(w.rows);
    for (int64_t list = FLAT_BEGIN; list < rows; list += FLAT_STEP) {
        int64_t at = w.start[list];
        y[w.row ? w.row[list] : list] = at < w.start[list + 1] ? label[w.other[at]] : -1;
    }
}

void pnet_cuda_weighted_labels(const struct pnet_weighted *w, const int32_t *label, int32_t *y)
{
    if (w->rows.most > 0)
        weighted_labels<<<blocks_for(w->rows.most, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
            *w, label, y);
}
