/* Pools over triplets: a row of the other side may meet several rows. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/layer/lists.cuh"
#include "kernels/pool.h"

/* The largest of each channel and the triplet that it came from, the first one among equals. A NaN stays where it is in the first
   triplet of a row, elsewhere it is passed over, as it is on the CPU. */
template <class T, int V_> struct max_triplets {
    static const int V = V_;
    struct sum {
        vector<V> top;
        int64_t from[V];
    };
    struct entry {
        int32_t other;
        int64_t at;
    };
    using row = raw<T, V>;
    const int64_t *offsets;
    const int32_t *other;
    int32_t c;
    const T *x;
    T *y;
    int32_t *argmax;
    const int32_t *to;

    __device__ int64_t begin(int64_t list) const
    {
        return offsets[list];
    }
    __device__ sum start() const
    {
        sum s;
        for (int i = 0; i < V; i++) s.top.v[i] = -INFINITY, s.from[i] = INT64_MAX;
        return s;
    }
    __device__ entry find(int64_t at) const
    {
        return {other[at], at};
    }
    __device__ const T *where(entry from, int32_t channel) const
    {
        return x + (int64_t)from.other * c + channel;
    }
    __device__ void take(sum &s, entry from, const row &r, bool first) const
    {
        vector<V> p = widen_raw<T, V>(r);
        for (int i = 0; i < V; i++)
            if (first || p.v[i] > s.top.v[i]) {
                s.top.v[i] = p.v[i];
                s.from[i] = from.at;
            }
    }
    __device__ void join(sum &s, const sum &with) const
    {
        for (int i = 0; i < V; i++) {
            bool equal = with.top.v[i] == s.top.v[i];
            if (with.top.v[i] > s.top.v[i] || (equal && with.from[i] < s.from[i])) {
                s.top.v[i] = with.top.v[i];
                s.from[i] = with.from[i];
            }
        }
    }
    __device__ void write(sum s, int64_t list, int32_t channel, int64_t count) const
    {
        rows_of<V> from;
        for (int i = 0; i < V; i++) {
            if (count == 0) s.top.v[i] = 0;
            from.v[i] = count > 0 && argmax ? other[s.from[i]] : -1;
        }
        int64_t at = (to ? to[list] : list) * c + channel;
        store<V>(y + at, s.top);
        if (argmax) store_rows<V>(argmax + at, from);
    }
};

static struct pnet_count rows_of_set(const struct pnet_triplets *t, enum pnet_storage storage)
{
    struct pnet_count n = pnet_count(t->rows);
    n.storage = storage;
    return n;
}

void pnet_cuda_triplets_max(const struct pnet_triplets *t, int32_t c, enum pnet_storage storage,
    const float *x, float *y, int32_t *argmax)
{
    by_form_with_rows(
        storage, c, argmax,
        [&](auto form) {
            using T = typename decltype(form)::T;
            struct max_triplets<T, decltype(form)::V> op = {
                t->start, t->other, c, as<T>(x), as<T>(y), argmax, t->row
            };
            launch_lists(op, rows_of_set(t, storage));
        },
        x, y);
}

/* Did the row meet other[at] before, from `begin` on? */
static __device__ bool met_before(const int32_t *other, int64_t begin, int64_t at)
{
    for (int64_t n = begin; n < at; n++)
        if (other[n] == other[at]) return true;
    return false;
}

/* A thread adds what its channels of a row get, in the order of the triplets. */
template <class T, int V>
__global__ static void max_back(const struct pnet_triplets back, bool several, int32_t c,
    const int32_t *argmax, const T *g, T *gx)
{
    for (int64_t place = ROW_BEGIN; place < back.rows; place += ROW_STEP) {
        int64_t row = pnet_triplets_row(&back, place), begin = back.start[place],
                end = back.start[place + 1];
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            double sum[V] = {};
            for (int64_t at = begin; at < end; at++) {
                int64_t from = (int64_t)back.other[at] * c + i;
                rows_of<V> top = load_rows<V>(argmax + from);
                bool own = false;
                for (int k = 0; k < V; k++) own = own || top.v[k] == (int32_t)row;
                if (!own || (several && met_before(back.other, begin, at))) continue;
                vector<V> p = load<V>(g + from);
                for (int k = 0; k < V; k++)
                    if (top.v[k] == (int32_t)row) sum[k] += (double)p.v[k];
            }
            vector<V> r;
            for (int k = 0; k < V; k++) r.v[k] = (float)sum[k];
            store<V>(gx + row * c + i, r);
        }
    }
}

void pnet_cuda_triplets_max_back(const struct pnet_triplets *back, bool several, int32_t c,
    enum pnet_storage storage, const int32_t *argmax, const float *g, float *gx)
{
    if (back->rows <= 0) return;
    by_form_with_rows(
        storage, c, argmax,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            struct layout l = layout_for(back->rows, c / V);
            max_back<T, V><<<l.grid, l.block, 0, pnet_cuda_stream()>>>(
                *back, several, c, argmax, as<T>(g), as<T>(gx));
        },
        g, gx);
}

template <class T, int V>
__global__ static void mean_back(const struct pnet_triplets back, const int64_t *start,
    const int32_t *place, int32_t c, const T *g, T *gx)
{
    for (int64_t list = ROW_BEGIN; list < back.rows; list += ROW_STEP)
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            double sum[V] = {};
            for (int64_t at = back.start[list]; at < back.start[list + 1]; at++) {
                int64_t from = back.other[at], p = place ? place[from] : from;
                float count = (float)(start[p + 1] - start[p]);
                vector<V> v = load<V>(g + from * c + i);
                for (int k = 0; k < V; k++) sum[k] += (double)(v.v[k] / count);
            }
            vector<V> r;
            for (int k = 0; k < V; k++) r.v[k] = (float)sum[k];
            store<V>(gx + pnet_triplets_row(&back, list) * c + i, r);
        }
}

void pnet_cuda_triplets_mean_back(const struct pnet_triplets *back, const struct pnet_triplets *to,
    int32_t c, enum pnet_storage storage, const float *g, float *gx)
{
    if (back->rows <= 0) return;
    by_form(
        storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            struct layout l = layout_for(back->rows, c / V);
            mean_back<T, V><<<l.grid, l.block, 0, pnet_cuda_stream()>>>(
                *back, to->start, to->place, c, as<T>(g), as<T>(gx));
        },
        g, gx);
}
