/* Cross entropy. */
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/loss/slices.cuh"
#include "kernels/cuda/loss/targets.cuh"
#include "kernels/cuda/loss/weights.cuh"

struct cross_entropy {
    struct pnet_targets targets;
    const float *x;
    double smoothing, all_weights;
    struct class_weights weights;
};

static struct cross_entropy argument_of(const struct pnet_cross_entropy *e)
{
    int32_t classes = e->targets.classes;
    struct cross_entropy a = {
        e->targets, e->x, e->smoothing, 0, class_weights_of(e->weight, classes)};
    for (int32_t c = 0; c < classes; c++) a.all_weights += e->weight ? e->weight[c] : 1;
    return a;
}

/* log of the sum of exp(x[c]), in each thread of the row. */
template <class T>
static __device__ double log_sum_exp(const T *x, int32_t classes, const struct row_walk &r)
{
    float top = top_score(x, classes, r);
    double sum = 0;
    for (int32_t c = r.lane; c < classes; c += r.lanes) sum += (double)expf(widen(x[c]) - top);
    return (double)top + log(lanes_sum(sum, r.lanes));
}

template <class T>
__global__ static void __launch_bounds__(THREADS)
    cross_entropy(const __grid_constant__ struct cross_entropy e, int lanes, struct two *part)
{
    const struct pnet_targets &t = e.targets;
    const int32_t classes = t.classes;
    let_next_come();
    wait_for_earlier();
    struct row_walk r = walk_slice(pnet_live(t.rows), lanes);
    double sum = 0, divisor = 0;
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line;
        bool there = row < r.end;
        const T *x = (const T *)e.x + (there ? row : base) * classes;
        double lse = log_sum_exp(x, classes, r), hard = 0, soft = 0;
        int64_t end = there ? labels_end(t, row) : 0;
        int32_t valid = 0;
        for (int64_t at = there ? labels_begin(t, row) + r.lane : 0; at < end; at += r.lanes) {
            int32_t label = label_at(t, at);
            if (label < 0) continue;
            valid++;
            hard += weight_of(e.weights, label) * (lse - (double)widen(x[label]));
            divisor += weight_of(e.weights, label);
        }
        valid = lanes_sum(valid, lanes);
        if (valid && e.smoothing > 0)
            for (int32_t c = r.lane; c < classes; c += r.lanes)
                soft += weight_of(e.weights, c) * (lse - (double)widen(x[c]));
        sum += (1 - e.smoothing) * hard + e.smoothing / classes * soft * (double)valid;
    }
    keep_slice(sum, divisor, part);
}

__global__ static void __launch_bounds__(SLICES)
    join_cross_entropy(const struct two *part, float *loss, float *divisor)
{
    let_next_come();
    wait_for_earlier();
    struct two total = join_slices(part);
    if (threadIdx.x) return;
    *loss = total.b > 0 ? (float)(total.a / total.b) : 0;
    if (divisor) *divisor = (float)total.b;
}

void pnet_cuda_cross_entropy(
    const struct pnet_cross_entropy *e, float *loss, float *divisor, void *work)
{
    struct cross_entropy a = argument_of(e);
    struct two *part = (struct two *)work;
    by_storage(e->targets.rows.storage, [&](auto form) {
        launch_early(cross_entropy<typename decltype(form)::T>, dim3(SLICES), dim3(THREADS), 0, 1,
            a, row_lanes(e->targets.classes), part);
    });
    launch_early(join_cross_entropy, dim3(1), dim3(SLICES), 0, 1, part, loss, divisor);
}

/* Classes of a row whose labels are counted at a time. */
enum { TILE = 1024 };

/* Dynamic shared memory: [rows of a block][classes of a tile] counts. */
template <class T>
__global__ static void __launch_bounds__(THREADS)
    cross_entropy_backward(const __grid_constant__ struct cross_entropy e, int lanes,
        const float *divisor, const float *gloss, bool add, T *gx)
{
    extern __shared__ int32_t counts[];
    const struct pnet_targets &t = e.targets;
    const int32_t classes = t.classes, tile = classes < TILE ? classes : TILE;
    const double factor = *divisor > 0 ? (double)*gloss / (double)*divisor : 0;
    struct row_walk r = walk_rows(pnet_live(t.rows), lanes);
    int32_t *count = counts + r.line * tile;
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line;
        bool there = row < r.end;
        const T *x = (const T *)e.x + (there ? row : base) * classes;
        int64_t begin = there ? labels_begin(t, row) : 0, end = there ? labels_end(t, row) : 0;
        float top = top_score(x, classes, r);
        double hard = 0, sum = 0;
        int32_t valid = 0;
        for (int32_t c = r.lane; c < classes; c += lanes) sum += (double)expf(widen(x[c]) - top);
        for (int64_t at = begin + r.lane; at < end; at += lanes) {
            int32_t label = label_at(t, at);
            if (label < 0) continue;
            valid++;
            hard += weight_of(e.weights, label);
        }
        sum = lanes_sum(sum, lanes);
        hard = lanes_sum(hard, lanes);
        valid = lanes_sum(valid, lanes);
        double sharp = (1 - e.smoothing) * factor;
        double soft = e.smoothing / classes * (double)valid * factor;
        double of_power = (sharp * hard + soft * e.all_weights) / sum;
        for (int32_t first = 0; first < classes; first += tile) {
            int32_t last = first + tile < classes ? first + tile : classes;
            count_labels(t, begin, end, first, last, r, count);
            for (int32_t c = first + r.lane; there && c < last; c += lanes) {
                double v = 0;
                if (valid)
                    v = of_power * (double)expf(widen(x[c]) - top) -
                        (sharp * count[c - first] + soft) * weight_of(e.weights, c);
                T *to = gx + row * classes + c;
                narrow((add ? widen(*to) : 0) + (float)v, to);
            }
            __syncwarp();
        }
    }
}

void pnet_cuda_cross_entropy_backward(const struct pnet_cross_entropy *e, const float *divisor,
    const float *gloss, bool add, float *gx, void *work)
{
    struct cross_entropy a = argument_of(e);
    int32_t classes = e->targets.classes;
    int lanes = row_lanes(classes), rows = THREADS / lanes;
    unsigned grid = blocks_for(e->targets.rows.most, rows);
    size_t counts = (size_t)rows * (size_t)(classes < TILE ? classes : TILE) * sizeof(int32_t);
    (void)work;
    if (!grid) return;
    by_storage(e->targets.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        cross_entropy_backward<<<grid, THREADS, counts, pnet_cuda_stream()>>>(
            a, lanes, divisor, gloss, add, as<T>(gx));
    });
}
