/* Pooling of the cells of a grid. */
#include "kernels/cuda/pool.h"
#include "kernels/cuda/lists.cuh"

__global__ static void copy_elements(
    struct pnet_count n, const uint32_t *__restrict__ x, uint32_t *__restrict__ y)
{
    int64_t most = pnet_live(n);
#pragma unroll 4
    for (int64_t i = FLAT_BEGIN; i < most; i += FLAT_STEP) y[i] = x[i];
}

void pnet_cuda_copy_elements(struct pnet_count n, const void *x, void *y)
{
    if (n.most <= 0) return;
    copy_elements<<<element_blocks(n.most), THREADS, 0, cudaStreamPerThread>>>(
        n, (const uint32_t *)x, (uint32_t *)y);
}

template <int V_> struct sum_cells {
    static const int V = V_;
    struct sum {
        double v[V];
    };
    const int64_t *offsets;
    const int32_t *child;
    int32_t c;
    const float *x;
    bool mean, add;
    float *y;

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
template <int V_> struct max_cells {
    static const int V = V_;
    struct sum {
        vector<V> top;
        rows_of<V> from;
    };
    const int64_t *offsets;
    const int32_t *child;
    int32_t c;
    const float *x;
    float *y;
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
            s.top.v[i] = any ? x[row * c + channel + i] : 0;
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
        if (argmax) store<V>(argmax + list * c + channel, s.from);
    }
};

size_t pnet_cuda_cells_sum_work(int32_t c)
{
    (void)c;
    return 0;
}

template <int V>
static void launch_sum(
    const struct pnet_cells *cells, int32_t c, const float *x, bool mean, bool add, float *y)
{
    struct sum_cells<V> op = {
        cells->start, cells->child, c, x, mean, add, y
    };
    launch_lists(op, cells->coarse_rows);
}

void pnet_cuda_cells_sum(const struct pnet_cells *cells, int32_t c, const float *x, bool mean,
    bool add, float *y, void *work)
{
    (void)work;
    if (by_four(c, x, y))
        launch_sum<4>(cells, c, x, mean, add, y);
    else
        launch_sum<1>(cells, c, x, mean, add, y);
}

template <int V>
static void launch_max(
    const struct pnet_cells *cells, int32_t c, const float *x, float *y, int32_t *argmax)
{
    struct max_cells<V> op = {
        cells->start, cells->child, c, x, y, argmax
    };
    launch_lists(op, cells->coarse_rows);
}

void pnet_cuda_cells_max(
    const struct pnet_cells *cells, int32_t c, const float *x, float *y, int32_t *argmax)
{
    if (by_four(c, x, y, argmax))
        launch_max<4>(cells, c, x, y, argmax);
    else
        launch_max<1>(cells, c, x, y, argmax);
}

template <int V>
__global__ static void spread_cells(
    struct pnet_cells cells, int32_t c, const float *x, bool mean, bool add, float *y)
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
    bool four = by_four(c, x, y);
    struct layout l = layout_for(cells->fine_rows.most, four ? c / 4 : c);
    if (!l.grid) return;
    if (four)
        spread_cells<4><<<l.grid, l.block, 0, cudaStreamPerThread>>>(*cells, c, x, mean, add, y);
    else
        spread_cells<1><<<l.grid, l.block, 0, cudaStreamPerThread>>>(*cells, c, x, mean, add, y);
}

template <int V>
__global__ static void max_cells_backward(
    struct pnet_cells cells, int32_t c, const int32_t *argmax, const float *g, bool add, float *gx)
{
    int64_t rows = pnet_live(cells.fine_rows);
    for (int64_t row = ROW_BEGIN; row < rows; row += ROW_STEP) {
        int64_t cell = cells.parent[row];
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            vector<V> r = load<V>(g + cell * c + i);
            rows_of<V> from = load<V>(argmax + cell * c + i);
            for (int k = 0; k < V; k++) r.v[k] = from.v[k] == (int32_t)row ? r.v[k] : 0;
            store_or_add<V>(gx + row * c + i, add, r);
        }
    }
}

void pnet_cuda_cells_max_backward(const struct pnet_cells *cells, int32_t c, const int32_t *argmax,
    const float *g, bool add, float *gx)
{
    bool four = by_four(c, argmax, g, gx);
    struct layout l = layout_for(cells->fine_rows.most, four ? c / 4 : c);
    if (!l.grid) return;
    if (four)
        max_cells_backward<4>
            <<<l.grid, l.block, 0, cudaStreamPerThread>>>(*cells, c, argmax, g, add, gx);
    else
        max_cells_backward<1>
            <<<l.grid, l.block, 0, cudaStreamPerThread>>>(*cells, c, argmax, g, add, gx);
}
