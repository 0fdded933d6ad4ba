/* Lovasz-softmax, class after class as in kernels/cpu/loss/lovasz.c: a row makes at most two entries, one
   for its labels of the class and one for its others, each with a count; entries are sorted by
   error, and a scan over their counts gives the growth of the Jaccard loss at each. Which classes
   occur is known on the device alone: an absent one makes no entries. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/sort.h"
#include "kernels/cuda/loss/targets.cuh"

typedef unsigned long long count_type; /* what atomicAdd takes */

static const uint32_t ONE = 0x3F800000;    /* the bits of 1.0f */
static const uint32_t ABSENT = 0x3FFFFFFF; /* the upper half of an entry that is not there */
enum { FIRST_BIT = 32, LAST_BIT = 62 };    /* of what entries are sorted by */

/* An entry: in the upper half ONE minus the bits of the error, so that errors fall as entries grow;
   in the lower half its item: twice the row, plus 1 for the labels of the class. */
struct lovasz {
    struct pnet_targets t;
    const float *x; /* as t.rows says */
    int64_t most;   /* entries: one a row where rows have one label each, else two */
    uint64_t
        *entry[2];  /* [most] sorted from one to the other; growth [2 rows] takes the one left */
    float *lse;     /* [rows] log of the sum of exp(x) */
    int32_t *valid; /* [rows] labels that count */
    int32_t *hits;  /* [rows] those of the class at hand */
    count_type *totals; /* [classes] labels of each class */
    int32_t *present;   /* [1] classes that have any */
    uint64_t *before;   /* [SLICES] hits << 32 | others in a slice, then before it */
    double *part;       /* [classes, SLICES] of the loss */
    void *sort;
};

static int64_t most_entries(const struct pnet_targets *t)
{
    return t->rows.most * (t->start ? 2 : 1);
}

static struct lovasz lovasz_of(const struct pnet_targets *t, const float *x, void *work)
{
    struct carver w = {(char *)work};
    struct lovasz v;
    v.t = *t;
    v.x = x;
    v.most = most_entries(t);
    v.entry[0] = w.take<uint64_t>(v.most);
    v.entry[1] = w.take<uint64_t>(v.most);
    v.lse = w.take<float>(t->rows.most);
    v.valid = w.take<int32_t>(t->rows.most);
    v.hits = w.take<int32_t>(t->rows.most);
    v.totals = w.take<count_type>(t->classes);
    v.present = w.take<int32_t>(1);
    v.before = w.take<uint64_t>(SLICES);
    v.part = w.take<double>((int64_t)t->classes * SLICES);
    v.sort = w.at;
    return v;
}

/* Labels of each class over all label rows, counted in shared memory where classes fit. */
enum { MOST_SHARED = 4096 };

__global__ static void __launch_bounds__(THREADS) count_totals(struct lovasz v)
{
    __shared__ uint32_t own[MOST_SHARED];
    const bool in_shared = v.t.classes <= MOST_SHARED;
    const int64_t labels = pnet_live(v.t.label_rows);
    const int32_t cells = in_shared ? v.t.classes : 0;
    for (int32_t c = (int32_t)threadIdx.x; c < cells; c += THREADS) own[c] = 0;
    __syncthreads();
    for (int64_t at = FLAT_BEGIN; at < labels; at += FLAT_STEP) {
        int32_t label = v.t.label[at];
        if (label < 0 || label >= v.t.classes) continue;
        if (in_shared)
            atomicAdd(own + label, 1u);
        else
            atomicAdd(v.totals + label, (count_type)1);
    }
    __syncthreads();
    for (int32_t c = (int32_t)threadIdx.x; c < cells; c += THREADS)
        if (own[c]) atomicAdd(v.totals + c, (count_type)own[c]);
}

__global__ static void __launch_bounds__(THREADS) count_present(struct lovasz v)
{
    int32_t present = 0;
    for (int32_t c = (int32_t)threadIdx.x; c < v.t.classes; c += THREADS)
        present += v.totals[c] > 0;
    present = block_sum(present);
    if (threadIdx.x == 0) *v.present = present;
}

template <class T>
__global__ static void __launch_bounds__(THREADS) prepare_rows(struct lovasz v, int lanes)
{
    const int32_t classes = v.t.classes;
    struct row_walk r = walk_rows(pnet_live(v.t.rows), lanes);
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line;
        bool there = row < r.end;
        const T *p = (const T *)v.x + (there ? row : base) * classes;
        float top = top_score(p, classes, r);
        double sum = 0;
        int32_t valid = 0;
        int64_t end = there ? labels_end(v.t, row) : 0;
        for (int32_t c = r.lane; c < classes; c += lanes) sum += (double)expf(widen(p[c]) - top);
        for (int64_t at = there ? labels_begin(v.t, row) + r.lane : 0; at < end; at += lanes)
            valid += label_at(v.t, at) >= 0;
        sum = lanes_sum(sum, lanes);
        valid = lanes_sum(valid, lanes);
        if (!there || r.lane) continue;
        v.lse[row] = top + (float)log(sum);
        v.valid[row] = valid;
    }
}

/* NaN goes on, to show in the loss; its entry is none that is ABSENT. */
static __device__ uint64_t make_entry(float error, int64_t row, bool of_class)
{
    float e = error < 0 ? 0 : error > 1 ? 1 : error;
    return (uint64_t)(ONE - __float_as_uint(e)) << 32 | (uint64_t)(2 * row + of_class);
}

static __device__ float error_of(uint64_t entry)
{
    return __uint_as_float(ONE - (uint32_t)(entry >> 32));
}

/* The entries of class c in the order of rows, those that are not there among them. */
template <class T> __global__ static void make_entries(struct lovasz v, int32_t c)
{
    const uint64_t absent = (uint64_t)ABSENT << 32;
    const bool occurs = v.totals[c] > 0;
    const int64_t rows = pnet_live(v.t.rows);
    for (int64_t row = FLAT_BEGIN; row < v.t.rows.most; row += FLAT_STEP) {
        uint64_t hit = absent, other = absent;
        if (row < rows && occurs) {
            int32_t hits = 0, valid = v.valid[row];
            for (int64_t at = labels_begin(v.t, row); at < labels_end(v.t, row); at++)
                hits += label_at(v.t, at) == c;
            v.hits[row] = hits;
            float p = valid ? expf(widen(((const T *)v.x)[row * v.t.classes + c]) - v.lse[row]) : 0;
            if (hits > 0) hit = make_entry(1 - p, row, true);
            if (valid > hits) other = make_entry(p, row, false);
        }
        if (v.t.start) {
            v.entry[0][2 * row] = hit;
            v.entry[0][2 * row + 1] = other;
        } else {
            v.entry[0][row] = hit != absent ? hit : other;
        }
    }
}

/* Entries that the live rows can have; those behind, after sorting, are not there. */
static __device__ int64_t live_entries(const struct lovasz &v)
{
    return pnet_live(v.t.rows) * (v.t.start ? 2 : 1);
}

/* Labels an entry stands for: hits in the upper half, others in the lower one. */
static __device__ uint64_t entry_count(const struct lovasz &v, uint64_t entry)
{
    uint32_t item = (uint32_t)entry, row = item / 2;
    if ((uint32_t)(entry >> 32) == ABSENT) return 0;
    if (item % 2) return (uint64_t)(v.t.start ? v.hits[row] : 1) << 32;
    return (uint64_t)(v.t.start ? v.valid[row] - v.hits[row] : 1);
}

__global__ static void __launch_bounds__(THREADS)
    count_slices(struct lovasz v, int32_t c, const uint64_t *entry)
{
    const int32_t slice = (int32_t)blockIdx.x;
    const int64_t n = live_entries(v), end = slice_begin(n, slice + 1);
    uint64_t count = 0;
    if (!v.totals[c]) return;
    for (int64_t i = slice_begin(n, slice) + threadIdx.x; i < end; i += THREADS)
        count += entry_count(v, entry[i]);
    count = block_sum(count);
    if (threadIdx.x == 0) v.before[slice] = count;
}

/* The sum over the threads before this one; `all` over all of the block. */
static __device__ uint64_t block_scan(uint64_t own, uint64_t *all)
{
    __shared__ uint64_t part[WARP];
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    uint64_t sum = own;
    for (unsigned d = 1; d < WARP; d *= 2) {
        uint64_t left = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= d) sum += left;
    }
    __syncthreads(); /* the last parts have been read */
    if (lane == WARP - 1) part[warp] = sum;
    __syncthreads();
    uint64_t before = 0, total = 0;
    for (unsigned w = 0; w < blockDim.x / WARP; w++) {
        if (w == warp) before = total;
        total += part[w];
    }
    *all = total;
    return before + sum - own;
}

__global__ static void __launch_bounds__(SLICES) scan_slices(struct lovasz v, int32_t c)
{
    uint64_t all;
    if (!v.totals[c]) return;
    v.before[threadIdx.x] = block_scan(v.before[threadIdx.x], &all);
}

/* The loss of a slice of sorted entries; growth[item] := dloss/derror. With F labels of the class
   and B others among the wrong ones, out of `total` of the class, the Jaccard loss is
   1 - (total - F) / (total + B); its growth is written out to lose nothing in differences. */
__global__ static void __launch_bounds__(THREADS)
    sum_slices(struct lovasz v, int32_t c, const uint64_t *entry, float *growth)
{
    const int32_t slice = (int32_t)blockIdx.x;
    const int64_t n = live_entries(v), end = slice_begin(n, slice + 1);
    const double total = (double)v.totals[c];
    double loss = 0;
    if (total > 0) {
        uint64_t before = v.before[slice];
        for (int64_t base = slice_begin(n, slice); base < end; base += THREADS) {
            int64_t i = base + threadIdx.x;
            uint64_t own = i < end ? entry[i] : (uint64_t)ABSENT << 32;
            uint64_t count = entry_count(v, own), all;
            uint64_t seen = before + block_scan(count, &all);
            double others = (double)(uint32_t)seen, hits = (double)(seen >> 32), grows;
            before += all;
            if (!count) continue;
            if ((uint32_t)own % 2) {
                grows = (double)(count >> 32) / (total + others);
            } else {
                double k = (double)count;
                grows = (total - hits) * k / ((total + others) * (total + others + k));
            }
            loss += (double)error_of(own) * grows;
            growth[(uint32_t)own] = (float)grows;
        }
    }
    loss = block_sum(loss);
    if (threadIdx.x == 0) v.part[(int64_t)c * SLICES + slice] = loss;
}

/* The error is 1 - p for labels of the class, p for the others. */
__global__ static void write_gradient(struct lovasz v, int32_t c, const float *growth, float *gprob)
{
    const bool occurs = v.totals[c] > 0;
    const float factor = occurs ? 1 / (float)*v.present : 0;
    const int64_t rows = pnet_live(v.t.rows);
    for (int64_t row = FLAT_BEGIN; row < rows; row += FLAT_STEP) {
        float of_class = 0, of_others = 0;
        if (occurs) {
            if (v.hits[row] > 0) of_class = growth[2 * row + 1];
            if (v.valid[row] > v.hits[row]) of_others = growth[2 * row];
        }
        gprob[row * v.t.classes + c] = (of_others - of_class) * factor;
    }
}

/* The loss of each class into the first of its parts. */
__global__ static void __launch_bounds__(SLICES) join_slices(struct lovasz v)
{
    double *part = v.part + (int64_t)blockIdx.x * SLICES;
    double sum = block_sum(part[threadIdx.x]);
    if (threadIdx.x == 0) part[0] = sum;
}

__global__ static void __launch_bounds__(THREADS) join_classes(struct lovasz v, float *loss)
{
    double sum = 0;
    for (int32_t c = (int32_t)threadIdx.x; c < v.t.classes; c += THREADS)
        sum += v.part[(int64_t)c * SLICES];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *loss = *v.present ? (float)(sum / *v.present) : 0;
}

template <class T> static void one_class(const struct lovasz *v, int32_t c, float *gprob)
{
    unsigned grid = blocks_for(v->t.rows.most, THREADS);
    if (grid) make_entries<T><<<grid, THREADS, 0, pnet_cuda_stream()>>>(*v, c);
    const uint64_t *sorted =
        pnet_cuda_sort_keys(v->most, v->entry[0], v->entry[1], FIRST_BIT, LAST_BIT, v->sort);
    float *growth = (float *)(sorted == v->entry[0] ? v->entry[1] : v->entry[0]);
    count_slices<<<SLICES, THREADS, 0, pnet_cuda_stream()>>>(*v, c, sorted);
    scan_slices<<<1, SLICES, 0, pnet_cuda_stream()>>>(*v, c);
    sum_slices<<<SLICES, THREADS, 0, pnet_cuda_stream()>>>(*v, c, sorted, growth);
    if (gprob && grid)
        write_gradient<<<grid, THREADS, 0, pnet_cuda_stream()>>>(*v, c, growth, gprob);
}

void pnet_cuda_lovasz(
    const struct pnet_targets *t, const float *x, float *loss, float *gprob, void *work)
{
    struct lovasz v = lovasz_of(t, x, work);
    int lanes = row_lanes(t->classes);
    unsigned rows = blocks_for(t->rows.most, THREADS / lanes);
    unsigned labels = blocks_for(t->label_rows.most, THREADS);
    cudaMemsetAsync(v.totals, 0, (size_t)t->classes * sizeof *v.totals, pnet_cuda_stream());
    if (labels > (unsigned)SLICES) labels = SLICES;
    if (labels) count_totals<<<labels, THREADS, 0, pnet_cuda_stream()>>>(v);
    count_present<<<1, THREADS, 0, pnet_cuda_stream()>>>(v);
    by_storage(t->rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        if (rows) prepare_rows<T><<<rows, THREADS, 0, pnet_cuda_stream()>>>(v, lanes);
        for (int32_t c = 0; c < t->classes; c++) one_class<T>(&v, c, gprob);
    });
    join_slices<<<(unsigned)t->classes, SLICES, 0, pnet_cuda_stream()>>>(v);
    join_classes<<<1, THREADS, 0, pnet_cuda_stream()>>>(v, loss);
}

/* gx = p (gprob - sum of p gprob), p = softmax(x). */
template <class T>
__global__ static void __launch_bounds__(THREADS) lovasz_backward(struct pnet_count rows,
    int32_t classes, int lanes, const T *x, const float *gprob, const float *gloss, bool add, T *gx)
{
    struct row_walk r = walk_rows(pnet_live(rows), lanes);
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line;
        bool there = row < r.end;
        const T *p = x + (there ? row : base) * classes;
        const float *u = gprob + (there ? row : base) * classes;
        float top = top_score(p, classes, r);
        double sum = 0, dot = 0;
        for (int32_t c = r.lane; c < classes; c += lanes) {
            double e = (double)expf(widen(p[c]) - top);
            sum += e;
            dot += e * (double)u[c];
        }
        sum = lanes_sum(sum, lanes);
        dot = lanes_sum(dot, lanes);
        float mean = (float)(dot / sum), factor = (float)((double)*gloss / sum);
        for (int32_t c = r.lane; there && c < classes; c += lanes) {
            float v = expf(widen(p[c]) - top) * factor * (u[c] - mean);
            T *to = gx + row * classes + c;
            narrow(add ? widen(*to) + v : v, to);
        }
    }
}

void pnet_cuda_lovasz_backward(struct pnet_count rows, int32_t classes, const float *x,
    const float *gprob, const float *gloss, bool add, float *gx)
{
    int lanes = row_lanes(classes);
    unsigned grid = blocks_for(rows.most, THREADS / lanes);
    if (!grid) return;
    by_storage(rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        lovasz_backward<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
            rows, classes, lanes, as<T>(x), gprob, gloss, add, as<T>(gx));
    });
}
