/* Pooling of the cells of a grid. */
#include "kernels/pool.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/layer/lists.cuh"

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
        copy_elements<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
            n, (const uint16_t *)x, (uint16_t *)y);
    else
        copy_elements<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
            n, (const uint32_t *)x, (uint32_t *)y);
}

/* The fine row of an entry of `parent`. */
static __device__ __forceinline__ int64_t fine_row(const struct pnet_cells &cells, int64_t place)
{
    return cells.fine ? cells.fine[place] : place;
}

/* The row of `to` that a list's result goes to; without `to` the list itself. */
static __device__ __forceinline__ int64_t row_of_list(const int32_t *to, int64_t list)
{
    return to ? to[list] : list;
}

template <class T, int V_> struct sum_cells {
    static const int V = V_;
    struct sum {
        double v[V];
    };
    using entry = int32_t; /* a fine row */
    using row = raw<T, V>;
    const int64_t *offsets;
    const int32_t *child;
    int32_t c;
    const T *x;
    bool mean, add;
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
        return child ? child[at] : (int32_t)at;
    }
    __device__ const T *where(entry from, int32_t channel) const
    {
        return x + (int64_t)from * c + channel;
    }
    __device__ void take(sum &s, entry, const row &r, bool) const
    {
        vector<V> p = widen_raw<T, V>(r);
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
        store_or_add<V>(y + row_of_list(to, list) * c + channel, add, r);
    }
};

/* The largest of each channel and the row it came from, the lowest one among equals. A NaN stays where it is in the
   first row of a cell, elsewhere it is passed over, as it is on the CPU. */
template <class T, int V_> struct max_cells {
    static const int V = V_;
    struct sum {
        vector<V> top;
        rows_of<V> from;
    };
    using entry = int32_t; /* a fine row */
    using row = raw<T, V>;
    const int64_t *offsets;
    const int32_t *child;
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
        for (int i = 0; i < V; i++) s.top.v[i] = -INFINITY, s.from.v[i] = INT32_MAX;
        return s;
    }
    __device__ entry find(int64_t at) const
    {
        return child ? child[at] : (int32_t)at;
    }
    __device__ const T *where(entry from, int32_t channel) const
    {
        return x + (int64_t)from * c + channel;
    }
    __device__ void take(sum &s, entry from, const row &r, bool first) const
    {
        vector<V> p = widen_raw<T, V>(r);
        for (int i = 0; i < V; i++)
            if (first || p.v[i] > s.top.v[i]) {
                s.top.v[i] = p.v[i];
                s.from.v[i] = from;
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
    __device__ void write(sum s, int64_t list, int32_t channel, int64_t count) const
    {
        if (count == 0)
            for (int i = 0; i < V; i++) s.top.v[i] = 0, s.from.v[i] = -1;
        int64_t at = row_of_list(to, list) * c + channel;
        store<V>(y + at, s.top);
        if (argmax) store_rows<V>(argmax + at, s.from);
    }
};

/* Rows of C numbers, C below 4, as stored. PAIRED: rows of three 16-bit numbers, of which two are read
   at once, the first or the last two, whichever are aligned. */
template <class T, int C, bool PAIRED> struct few_numbers {
    T at[C];
    __device__ static few_numbers fetch(const T *x, int32_t row)
    {
        few_numbers f;
        for (int i = 0; i < C; i++) f.at[i] = x[(int64_t)row * C + i];
        return f;
    }
    __device__ float number(int i, int32_t) const
    {
        return widen(at[i]);
    }
};
template <class T> struct few_numbers<T, 3, true> {
    uint32_t pair;
    T single;
    __device__ static few_numbers fetch(const T *x, int32_t row)
    {
        const T *p = x + (int64_t)row * 3;
        int odd = row & 1;
        return {*reinterpret_cast<const uint32_t *>(p + odd), p[odd ? 0 : 2]};
    }
    __device__ float number(int i, int32_t row) const
    {
        float2 two = widen_pair<T>(pair);
        float one = widen(single);
        if (row & 1) return i == 0 ? one : i == 1 ? two.x : two.y;
        return i == 0 ? two.x : i == 1 ? two.y : one;
    }
};

/* Sums of rows of C channels, where there are many short lists: a thread has one, and adds as gather_lists does. */
template <class T, int C, bool PAIRED>
__global__ static void __launch_bounds__(THREADS, 4)
    few_sums(sum_cells<T, 1> op, struct pnet_count lists)
{
    constexpr int COLUMNS = C == 3 ? 4 : C;
    using numbers = few_numbers<T, C, PAIRED>;
    __shared__ typename sum_cells<T, 1>::sum parts[WARPS][WARP];
    const int32_t column = (int32_t)threadIdx.x % COLUMNS;
    int64_t n = pnet_live(lists), step = (int64_t)gridDim.x * THREADS;
    for (int64_t base = (int64_t)blockIdx.x * THREADS; base < n; base += step) {
        int64_t list = base + threadIdx.x, begin = 0, count = -1;
        if (list < n) {
            begin = op.begin(list);
            count = op.begin(list + 1) - begin;
        }
        double sum[C] = {};
        int entries = count <= SHORT ? (int)count : -1;
#pragma unroll 1
        for (int at = 0; at < entries; at += AHEAD) {
            int32_t row[AHEAD];
            numbers ahead[AHEAD] = {};
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                row[k] = at + k < entries ? op.find(begin + at + k) : -1;
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                if (row[k] >= 0) ahead[k] = numbers::fetch(op.x, row[k]);
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                for (int i = 0; i < C; i++) sum[i] += (double)ahead[k].number(i, row[k]);
        }
        for (int i = 0; i < C && entries >= 0; i++) op.write({{sum[i]}}, list, i, count);
        for_chosen(count > SHORT && count <= LONG, list, begin, count,
            [&](int64_t of, int64_t from, int64_t all) {
                warp_list(op, of, from, all, column, COLUMNS);
            });
        if (__syncthreads_or(count > LONG))
            long_lists(op, parts, base, min(base + THREADS, n), column, COLUMNS);
    }
}

template <class T, int C, bool PAIRED>
static void launch_few(const sum_cells<T, 1> &op, struct pnet_count lists)
{
    few_sums<T, C, PAIRED>
        <<<blocks_for(lists.most, THREADS), THREADS, 0, pnet_cuda_stream()>>>(op, lists);
}

/* Lists of few channels, many enough to keep the machine busy with 32 a warp? */
template <class T> static bool launch_few_if(const sum_cells<T, 1> &op, struct pnet_count lists)
{
    if (op.c > 3 || lists.most < FEW_WARPS) return false;
    if (op.c == 1)
        launch_few<T, 1, false>(op, lists);
    else if (op.c == 2)
        launch_few<T, 2, false>(op, lists);
    else if (sizeof(T) == 2 && (uintptr_t)op.x % 4 == 0)
        launch_few<T, 3, sizeof(T) == 2>(op, lists);
    else
        launch_few<T, 3, false>(op, lists);
    return true;
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
                cells->start, cells->child, c, as<T>(x), mean, add, as<T>(y), cells->row
            };
            if constexpr (decltype(form)::V == 1)
                if (launch_few_if(op, cells->coarse_rows)) return;
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
                cells->start, cells->child, c, as<T>(x), as<T>(y), argmax, cells->row
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
    let_next_come();
    wait_for_earlier();
    for (int64_t place = ROW_BEGIN; place < rows; place += ROW_STEP) {
        int64_t cell = cells.parent[place], row = fine_row(cells, place);
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
            launch_early(spread_cells<T, V>, l.grid, l.block, 0, 1, *cells, c, as<T>(x), mean, add,
                as<T>(y));
        },
        x, y);
}

template <class T, int V>
__global__ static void max_cells_backward(
    struct pnet_cells cells, int32_t c, const int32_t *argmax, const T *g, bool add, T *gx)
{
    int64_t rows = pnet_live(cells.fine_rows);
    let_next_come();
    wait_for_earlier();
    for (int64_t place = ROW_BEGIN; place < rows; place += ROW_STEP) {
        int64_t cell = cells.parent[place], row = fine_row(cells, place);
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
            launch_early(max_cells_backward<T, V>, l.grid, l.block, 0, 1, *cells, c, argmax,
                as<T>(g), add, as<T>(gx));
        },
        g, gx);
}
