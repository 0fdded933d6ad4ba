/* Predicted classes, and counts of how they agree with labels. Counts are integers: their order
   does not matter, so they are made by atomics. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/loss/targets.cuh"

typedef unsigned long long count_type; /* what atomicAdd takes */

template <class T>
__global__ static void __launch_bounds__(THREADS)
    best_class(struct pnet_count rows, int32_t classes, int lanes, const T *x, int32_t *best)
{
    struct row_walk r = walk_rows(pnet_live(rows), lanes);
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line;
        bool there = row < r.end;
        float top;
        int32_t at = best_class_of(x + (there ? row : base) * classes, classes, r, &top);
        if (there && r.lane == 0) best[row] = at;
    }
}

void pnet_cuda_best_class(struct pnet_count rows, int32_t classes, const float *x, int32_t *best)
{
    int lanes = row_lanes(classes);
    unsigned grid = blocks_for(rows.most, THREADS / lanes);
    if (!grid) return;
    by_storage(rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        best_class<<<grid, THREADS, 0, pnet_cuda_stream()>>>(rows, classes, lanes, as<T>(x), best);
    });
}

__global__ static void __launch_bounds__(THREADS)
    correct(struct pnet_targets t, const int32_t *best, count_type *sum)
{
    int64_t rows = pnet_live(t.rows);
    count_type agree = 0, all = 0;
    for (int64_t row = FLAT_BEGIN; row < rows; row += FLAT_STEP)
        for (int64_t at = labels_begin(t, row); at < labels_end(t, row); at++) {
            int32_t label = label_at(t, at);
            agree += label == best[row];
            all += label >= 0;
        }
    agree = block_sum(agree);
    all = block_sum(all);
    if (threadIdx.x) return;
    atomicAdd(sum, agree);
    atomicAdd(sum + 1, all);
}

__global__ static void write_counts(int64_t n, const count_type *count, double *to)
{
    for (int64_t i = FLAT_BEGIN; i < n; i += FLAT_STEP) to[i] = (double)count[i];
}

/* Blocks that are enough to keep a GPU busy, each with many rows. */
static unsigned counting_blocks(int64_t rows)
{
    unsigned blocks = blocks_for(rows, THREADS);
    return blocks < (unsigned)SLICES ? blocks : (unsigned)SLICES;
}

void pnet_cuda_correct(
    const struct pnet_targets *t, const int32_t *best, double correct_[2], void *work)
{
    count_type *sum = (count_type *)work;
    unsigned grid = counting_blocks(t->rows.most);
    cudaMemsetAsync(sum, 0, pnet_cuda_correct_work(), pnet_cuda_stream());
    if (grid) correct<<<grid, THREADS, 0, pnet_cuda_stream()>>>(*t, best, sum);
    write_counts<<<1, 2, 0, pnet_cuda_stream()>>>(2, sum, correct_);
}

/* Is class c before `other` among scores from the largest on? */
template <class T>
static __device__ __forceinline__ bool comes_before(const T *x, int32_t c, int32_t other)
{
    float a = widen(x[c]), b = widen(x[other]);
    if (isnan(a)) return c == 0 ? other != 0 : isnan(b) && other != 0 && c < other;
    if (isnan(b)) return other != 0;
    return a > b || (a == b && c < other);
}

/* The threads of a row take its labels one by one, and share the classes. Rows of a warp have different
   numbers of labels: all threads make as many turns as the most of them takes. */
template <class T>
__global__ static void __launch_bounds__(THREADS)
    top_k(struct pnet_targets t, int lanes, int32_t k, const T *x, count_type *sum)
{
    struct row_walk r = walk_rows(pnet_live(t.rows), lanes);
    count_type agree = 0, all = 0;
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line;
        bool there = row < r.end;
        const T *p = x + (there ? row : base) * t.classes;
        int64_t begin = there ? labels_begin(t, row) : 0, end = there ? labels_end(t, row) : 0;
        for (int64_t at = begin; __any_sync(0xffffffffu, at < end); at++) {
            int32_t label = at < end ? label_at(t, at) : -1, before = 0;
            for (int32_t c = r.lane; label >= 0 && c < t.classes; c += lanes)
                before += comes_before(p, c, label);
            before = lanes_sum(before, lanes);
            if (r.lane || label < 0) continue;
            agree += before < k;
            all++;
        }
    }
    agree = block_sum(agree);
    all = block_sum(all);
    if (threadIdx.x) return;
    atomicAdd(sum, agree);
    atomicAdd(sum + 1, all);
}

void pnet_cuda_top_k(
    const struct pnet_targets *t, int32_t k, const float *x, double correct[2], void *work)
{
    count_type *sum = (count_type *)work;
    int lanes = row_lanes(t->classes);
    unsigned grid = blocks_for(t->rows.most, THREADS / lanes), most = 8 * SLICES;
    cudaMemsetAsync(sum, 0, pnet_cuda_correct_work(), pnet_cuda_stream());
    if (grid > most) grid = most;
    by_storage(t->rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        if (grid) top_k<<<grid, THREADS, 0, pnet_cuda_stream()>>>(*t, lanes, k, as<T>(x), sum);
    });
    write_counts<<<1, 2, 0, pnet_cuda_stream()>>>(2, sum, correct);
}

/* Pairs are counted in shared memory where `own` has room for them all. */
__global__ static void __launch_bounds__(THREADS)
    confusion(struct pnet_targets t, const int32_t *best, bool in_shared, count_type *sum)
{
    extern __shared__ uint32_t own[];
    const int64_t rows = pnet_live(t.rows);
    const int32_t cells = in_shared ? t.classes * t.classes : 0;
    for (int32_t i = (int32_t)threadIdx.x; i < cells; i += THREADS) own[i] = 0;
    __syncthreads();
    for (int64_t row = FLAT_BEGIN; row < rows; row += FLAT_STEP)
        for (int64_t at = labels_begin(t, row); at < labels_end(t, row); at++) {
            int32_t label = label_at(t, at);
            int64_t cell = (int64_t)label * t.classes + best[row];
            if (label < 0) continue;
            if (in_shared)
                atomicAdd(own + cell, 1u);
            else
                atomicAdd(sum + cell, (count_type)1);
        }
    __syncthreads();
    for (int32_t i = (int32_t)threadIdx.x; i < cells; i += THREADS)
        if (own[i]) atomicAdd(sum + i, (count_type)own[i]);
}

void pnet_cuda_confusion(
    const struct pnet_targets *t, const int32_t *best, double *matrix, void *work)
{
    enum { MOST_SHARED = 48 * 1024 };
    count_type *sum = (count_type *)work;
    int64_t cells = (int64_t)t->classes * t->classes;
    unsigned grid = counting_blocks(t->rows.most);
    size_t shared = (size_t)cells * sizeof(uint32_t);
    bool fits = shared <= MOST_SHARED;
    cudaMemsetAsync(sum, 0, pnet_cuda_confusion_work(t->classes), pnet_cuda_stream());
    if (grid)
        confusion<<<grid, THREADS, fits ? shared : 0, pnet_cuda_stream()>>>(*t, best, fits, sum);
    write_counts<<<blocks_for(cells, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        cells, sum, matrix);
}
