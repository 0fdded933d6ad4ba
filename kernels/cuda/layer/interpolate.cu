/* Interpolation between nearest points, and its gradient without atomics: the pairs are sorted by
   coarse row first, which keeps the fine rows of each in order. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/layer/lists.cuh"
#include "kernels/pool.h"
#include "kernels/cuda/base/sort.h"

static __device__ __forceinline__ float reciprocal(float distance2)
{
    return 1 / (distance2 + 1e-8f);
}

static __device__ __forceinline__ int64_t fine_row(const struct pnet_nearest &n, int64_t place)
{
    return n.row ? n.row[place] : place;
}

/* 1 / sum of the reciprocals of one fine row, by its place. */
static __device__ float row_factor(const struct pnet_nearest &n, int64_t row)
{
    float sum = 0;
    for (int64_t at = row * n.k; at < (row + 1) * n.k; at++)
        if (n.index[at] >= 0) sum += reciprocal(n.distance2[at]);
    return sum > 0 ? 1 / sum : 0;
}

template <class T, int V>
__global__ static void interpolate(struct pnet_nearest n, int32_t c, const T *x, T *y)
{
    int64_t rows = pnet_live(n.fine_rows);
    for (int64_t row = ROW_BEGIN; row < rows; row += ROW_STEP) {
        float factor = row_factor(n, row);
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            vector<V> r = {};
            for (int64_t at = row * n.k; at < (row + 1) * n.k; at++) {
                if (n.index[at] < 0) continue;
                vector<V> p = load<V>(x + (int64_t)n.index[at] * c + i);
                float weight = reciprocal(n.distance2[at]) * factor;
                for (int k = 0; k < V; k++) r.v[k] += weight * p.v[k];
            }
            store<V>(y + fine_row(n, row) * c + i, r);
        }
    }
}

void pnet_cuda_interpolate(const struct pnet_nearest *n, int32_t c, const float *x, float *y)
{
    if (n->fine_rows.most <= 0) return;
    by_form(
        n->fine_rows.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            struct layout l = layout_for(n->fine_rows.most, c / V);
            interpolate<T, V>
                <<<l.grid, l.block, 0, pnet_cuda_stream()>>>(*n, c, as<T>(x), as<T>(y));
        },
        x, y);
}

struct transposed {
    /* [fine_rows * k] coarse row << 32 | place of the fine row; the weights take the one left */
    uint64_t *key[2];
    int64_t *start; /* [coarse_rows + 1] */
    void *sort;
};

static struct transposed transposed_of(const struct pnet_nearest *n, void *work)
{
    struct carver w = {(char *)work};
    struct transposed t;
    t.key[0] = w.take<uint64_t>(n->fine_rows.most * n->k);
    t.key[1] = w.take<uint64_t>(n->fine_rows.most * n->k);
    t.start = w.take<int64_t>(n->coarse_rows.most + 1);
    t.sort = w.at;
    return t;
}

/* Pairs that are not there go behind the last coarse row. */
__global__ static void make_keys(struct pnet_nearest n, uint64_t *key)
{
    int64_t live = pnet_live(n.fine_rows) * n.k, most = n.fine_rows.most * n.k;
    for (int64_t at = FLAT_BEGIN; at < most; at += FLAT_STEP) {
        int32_t to = at < live ? n.index[at] : -1;
        key[at] =
            to < 0 ? (uint64_t)n.coarse_rows.most << 32 : (uint64_t)to << 32 | (uint32_t)(at / n.k);
    }
}

/* The pairs of a coarse row end where those of the next one start. */
__global__ static void find_starts(
    struct pnet_count coarse, int64_t pairs, const uint64_t *key, int64_t *start)
{
    int64_t rows = pnet_live(coarse);
    for (int64_t row = FLAT_BEGIN; row <= rows; row += FLAT_STEP) {
        int64_t low = 0, high = pairs;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if ((int64_t)(key[middle] >> 32) < row)
                low = middle + 1;
            else
                high = middle;
        }
        start[row] = low;
    }
}

/* A coarse row named twice by a fine one has all of its weight in the first of the two pairs. */
__global__ static void make_weights(struct pnet_nearest n, const uint64_t *key, float *weight)
{
    int64_t most = n.fine_rows.most * n.k;
    for (int64_t at = FLAT_BEGIN; at < most; at += FLAT_STEP) {
        int64_t to = (int64_t)(key[at] >> 32), row = (int64_t)(uint32_t)key[at];
        float sum = 0;
        if (to >= n.coarse_rows.most) continue;
        if (at == 0 || key[at - 1] != key[at])
            for (int64_t i = row * n.k; i < (row + 1) * n.k; i++)
                if (n.index[i] == to) sum += reciprocal(n.distance2[i]);
        weight[at] = sum * row_factor(n, row);
    }
}

template <class T, int V_> struct sum_pairs {
    static const int V = V_;
    struct sum {
        double v[V];
    };
    struct entry {
        uint32_t fine;
        float weight;
    };
    using row = raw<T, V>;
    const int64_t *offsets;
    const uint64_t *key;
    const float *weight;
    const int32_t *rows; /* by place; NULL: as they are */
    int32_t c;
    const T *g;
    bool add;
    T *gx;

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
        uint32_t place = (uint32_t)key[at];
        return {rows ? (uint32_t)rows[place] : place, weight[at]};
    }
    __device__ const T *where(entry from, int32_t channel) const
    {
        return g + (int64_t)from.fine * c + channel;
    }
    __device__ void take(sum &s, entry from, const row &r, bool) const
    {
        vector<V> p = widen_raw<T, V>(r);
        double w = (double)from.weight;
        for (int i = 0; i < V; i++) s.v[i] += w * (double)p.v[i];
    }
    __device__ void join(sum &s, const sum &other) const
    {
        for (int i = 0; i < V; i++) s.v[i] += other.v[i];
    }
    __device__ void write(const sum &s, int64_t list, int32_t channel, int64_t) const
    {
        vector<V> r;
        for (int i = 0; i < V; i++) r.v[i] = (float)s.v[i];
        store_or_add<V>(gx + list * c + channel, add, r);
    }
};

void pnet_cuda_interpolate_backward(
    const struct pnet_nearest *n, int32_t c, const float *g, bool add, float *gx, void *work)
{
    struct transposed t = transposed_of(n, work);
    int64_t pairs = n->fine_rows.most * n->k, coarse = n->coarse_rows.most;
    if (coarse <= 0) return;
    unsigned grid = blocks_for(pairs, THREADS);
    if (grid) make_keys<<<grid, THREADS, 0, pnet_cuda_stream()>>>(*n, t.key[0]);
    uint64_t *key = pnet_cuda_sort_keys(
        pairs, t.key[0], t.key[1], 32, 32 + pnet_cuda_sort_bits(coarse), t.sort);
    float *weight = (float *)(key == t.key[0] ? t.key[1] : t.key[0]);
    if (grid) make_weights<<<grid, THREADS, 0, pnet_cuda_stream()>>>(*n, key, weight);
    find_starts<<<blocks_for(coarse + 1, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        n->coarse_rows, pairs, key, t.start);
    by_form(
        n->fine_rows.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            struct sum_pairs<T, decltype(form)::V> op = {
                t.start, key, weight, n->row, c, as<T>(g), add, as<T>(gx)
            };
            launch_lists(op, n->coarse_rows);
        },
        g, gx);
}
