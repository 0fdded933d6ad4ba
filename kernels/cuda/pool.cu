/* Pooling of the cells of a grid. */
#include "kernels/cuda/pool.h"
#include "kernels/cuda/lists.cuh"

/* Bits, of features or labels. */
template <class T>
__global__ static void copy_elements(
    struct pnet_count n, const T *__restrict__ x, T *__restrict__ y)
{
    int64_t most = pnet_live(n);
#pragma unroll 4
    for (int64_t i = FLAT_BEGIN; i < most; i += FLAT_STEP) y[i] = x[i];
}

void pnet_cuda_copy_elements(struct pnet_count n, const void *x, void *y)
{
    unsigned grid = element_blocks(n.most);
    if (n.most <= 0) return;
    if (pnet_storage_bytes(n.storage) == 2)
        copy_elements<<<grid, THREADS, 0, cudaStreamPerThread>>>(
            n, (const uint16_t *)x, (uint16_t *)y);
    else
        copy_elements<<<grid, THREADS, 0, cudaStreamPerThread>>>(
            n, (const uint32_t *)x, (uint32_t *)y);
}

template <class T, int V_> struct sum_cells {
    static const int V = V_;
    struct sum {
        double v[V];
    };
    const int64_t *offsets;
    const int32_t *child;
    int32_t c;
    const T *x;
    bool mean, add;
    T *y;

    __device__ int64_t begin(int64_t list) const
    {
        return offsets[list];
    }
    __device__ sum start(int64_t, int32_t) const
    {
        sum s;
        for (int i = 0; i < V; i++) s.v[i] = 0;
        return s;
    }
    __device__ void take(sum &s, int64_t at, int32_t channel) const
    {
        int64_t row = child ? child[at] : at;
        vector<V> p = load<V>(x + row * c + channel);
        for (int i = 0; i < V; i++) s.v[i] += (double)p.v[i];
    }
    __device__ void join(sum &s, const sum &other) const
    {
        for (int i = 0; i < V; i++) s.v[i] += other.v[i];
    }
    __device__ void write(const sum &s, int64_t list, int32_t channel, int64_t count) const
    {
        double factor = mean && count > 0 ? 1 / (double)count : 1;
        vector<V> r;
        for (int i = 0; i < V; i++) r.v[i] = (float)(s.v[i] * factor);
        store_or_add<V>(y + list * c + channel, add, r);
    }
};

/* The largest of each channel and the row it came from, the lowest one among equals. Every thread
   starts from the first row of the cell, so that a NaN there stays, as it does on the CPU. */
template <class T, int V_> struct max_cells {
    static const int V = V_;
    struct sum {
        vector<V> top;
        rows_of<V> from;
    };
    const int64_t *offsets;
    const int32_t *child;
    int32_t c;
    const T *x;
    T *y;
    int32_t *argmax;

    __device__ int64_t begin(int64_t list) const
    {
        return offsets[list];
    }
    __device__ int64_t row_of(int64_t at) const
    {
        return child ? child[at] : at;
    }
    __device__ sum start(int64_t list, int32_t channel) const
    {
        sum s;
        int64_t at = offsets[list];
        bool any = channel < c && at < offsets[list + 1];
        int64_t row = any ? row_of(at) : -1;
        for (int i = 0; i < V; i++) {
            s.top.v[i] = any ? widen(x[row * c + channel + i]) : 0;
            s.from.v[i] = (int32_t)row;
        }
        return s;
    }
    __device__ void take(sum &s, int64_t at, int32_t channel) const
    {
        int64_t row = row_of(at);
        vector<V> p = load<V>(x + row * c + channel);
        for (int i = 0; i < V; i++)
            if (p.v[i] > s.top.v[i]) {
                s.top.v[i] = p.v[i];
                s.from.v[i] = (int32_t)row;
            }
    }
    __device__ void join(sum &s, const sum &other) const
    {
        for (int i = 0; i < V; i++) {
            bool equal = other.top.v[i] == s.top.v[i];
            if (other.top.v[i] > s.top.v[i] || (equal && other.from.v[i] < s.from.v[i])) {
                s.top.v[i] = other.top.v[i];
                s.from.v[i] = other.from.v[i];
            }
        }
    }
    __device__ void write(const sum &s, int64_t list, int32_t channel, int64_t) const
    {
        store<V>(y + list * c + channel, s.top);
        if (argmax) store_rows<V>(argmax + list * c + channel, s.from);
    }
};

size_t pnet_cuda_cells_sum_work(int32_t c)
{
    (void)c;
    return 0;
}

void pnet_cuda_cells_sum(const struct pnet_cells *cells, int32_t c, const float *x, bool mean,
    bool add, float *y, void *work)
{
    (void)work;
    by_form(
        cells->coarse_rows.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            struct sum_cells<T, decltype(form)::V> op = {
                cells->start, cells->child, c, as<T>(x), mean, add, as<T>(y)
            };
            launch_lists(op, cells->coarse_rows);
        },
        x, y);
}

void pnet_cuda_cells_max(
    const struct pnet_cells *cells, int32_t c, const float *x, float *y, int32_t *argmax)
{
    by_form_with_rows(
        cells->coarse_rows.storage, c, argmax,
        [&](auto form) {
            using T = typename decltype(form)::T;
            struct max_cells<T, decltype(form)::V> op = {
                cells->start, cells->child, c, as<T>(x), as<T>(y), argmax
            };
            launch_lists(op, cells->coarse_rows);
        },
        x, y);
}

template <class T, int V>
__global__ static void spread_cells(
    struct pnet_cells cells, int32_t c, const T *x, bool mean, bool add, T *y)
{
    int64_t rows = pnet_live(cells.fine_rows);
    for (int64_t row = ROW_BEGIN; row < rows; row += ROW_STEP) {
        int64_t cell = cells.parent[row];
        float factor = mean ? 1 / (float)(cells.start[cell + 1] - cells.start[cell]) : 1;
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            vector<V> r = load<V>(x + cell * c + i);
            for (int k = 0; k < V; k++) r.v[k] *= factor;
            store_or_add<V>(y + row * c + i, add, r);
        }
    }
}

void pnet_cuda_cells_spread(
    const struct pnet_cells *cells, int32_t c, const float *x, bool mean, bool add, float *y)
{
    if (cells->fine_rows.most <= 0) return;
    by_form(
        cells->fine_rows.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            struct layout l = layout_for(cells->fine_rows.most, c / V);
            spread_cells<T, V><<<l.grid, l.block, 0, cudaStreamPerThread>>>(
                *cells, c, as<T>(x), mean, add, as<T>(y));
        },
        x, y);
}

template <class T, int V>
__global__ static void max_cells_backward(
    struct pnet_cells cells, int32_t c, const int32_t *argmax, const T *g, bool add, T *gx)
{
    int64_t rows = pnet_live(cells.fine_rows);
    for (int64_t row = ROW_BEGIN; row < rows; row += ROW_STEP) {
        int64_t cell = cells.parent[row];
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            vector<V> r = load<V>(g + cell * c + i);
            rows_of<V> from = load_rows<V>(argmax + cell * c + i);
            for (int k = 0; k < V; k++) r.v[k] = from.v[k] == (int32_t)row ? r.v[k] : 0;
            store_or_add<V>(gx + row * c + i, add, r);
        }
    }
}

void pnet_cuda_cells_max_backward(const struct pnet_cells *cells, int32_t c, const int32_t *argmax,
    const float *g, bool add, float *gx)
{
    if (cells->fine_rows.most <= 0) return;
    by_form_with_rows(
        cells->fine_rows.storage, c, argmax,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            struct layout l = layout_for(cells->fine_rows.most, c / V);
            max_cells_backward<T, V><<<l.grid, l.block, 0, cudaStreamPerThread>>>(
                *cells, c, argmax, as<T>(g), add, as<T>(gx));
        },
        g, gx);
}
