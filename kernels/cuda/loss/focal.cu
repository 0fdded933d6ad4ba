/* Focal loss: kernels/cpu/loss/focal.c on a GPU. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/loss/slices.cuh"
#include "kernels/cuda/loss/targets.cuh"
#include "kernels/cuda/loss/weights.cuh"

struct focal {
    struct pnet_targets targets;
    const float *x;
    double gamma;
    struct class_weights weights;
};

static struct focal argument_of(const struct pnet_focal *f)
{
    return {f->targets, f->x, f->gamma, class_weights_of(f->weight, f->targets.classes)};
}

/* What the softmax gives a class: p, what it leaves the others, and -log p. */
struct share {
    double p, others, nll;
};

static __device__ __forceinline__ struct share share_of(
    const struct soft_row &s, float x, bool best)
{
    double total = 1 + s.rest, e = (double)expf(x - s.top);
    /* beside a class that is not the best one, the others have at least e = 1 of it */
    double others = best ? s.rest : total - e;
    return {e / total, others / total, (double)s.top - (double)x + log1p(s.rest)};
}

template <class T>
__global__ static void __launch_bounds__(THREADS)
    sum_focal(const __grid_constant__ struct focal f, int lanes, struct two *part)
{
    const struct pnet_targets &t = f.targets;
    struct row_walk r = walk_slice(pnet_live(t.rows), lanes);
    double sum = 0, divisor = 0;
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line;
        bool there = row < r.end;
        const T *x = (const T *)f.x + (there ? row : base) * t.classes;
        struct soft_row s = soft_row_of(x, t.classes, r);
        int64_t end = there ? labels_end(t, row) : 0;
        for (int64_t at = there ? labels_begin(t, row) + r.lane : 0; at < end; at += lanes) {
            int32_t label = label_at(t, at);
            if (label < 0) continue;
            struct share h = share_of(s, widen(x[label]), label == s.best);
            sum += weight_of(f.weights, label) * pow(h.others, f.gamma) * h.nll;
            divisor += weight_of(f.weights, label);
        }
    }
    keep_slice(sum, divisor, part);
}

__global__ static void __launch_bounds__(SLICES)
    join_focal(const struct two *part, float *loss, float *divisor)
{
    struct two total = join_slices(part);
    if (threadIdx.x) return;
    *loss = total.b > 0 ? (float)(total.a / total.b) : 0;
    if (divisor) *divisor = (float)total.b;
}

void pnet_cuda_focal(const struct pnet_focal *f, float *loss, float *divisor, void *work)
{
    struct focal a = argument_of(f);
    struct two *part = (struct two *)work;
    int lanes = row_lanes(f->targets.classes);
    by_storage(f->targets.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        sum_focal<T><<<SLICES, THREADS, 0, pnet_cuda_stream()>>>(a, lanes, part);
    });
    join_focal<<<1, SLICES, 0, pnet_cuda_stream()>>>(part, loss, divisor);
}

/* The derivative of -w (1 - p)^gamma log p by the score of the label is slope times 1 - p, that by
   another score -slope times its p. */
static __device__ __forceinline__ double slope_of(
    const struct focal &f, const struct share &h, int32_t label)
{
    double quotient = h.others > 0 ? h.nll / h.others : 1;
    return -weight_of(f.weights, label) * pow(h.others, f.gamma) * (1 + f.gamma * h.p * quotient);
}

/* Classes of a row whose labels are counted at a time. */
enum { TILE = 1024 };

/* Dynamic shared memory: [rows of a block][classes of a tile] counts. */
template <class T>
__global__ static void __launch_bounds__(THREADS)
    focal_backward(const __grid_constant__ struct focal f, int lanes, const float *divisor,
        const float *gloss, bool add, T *gx)
{
    extern __shared__ int32_t counts[];
    const struct pnet_targets &t = f.targets;
    const int32_t classes = t.classes, tile = classes < TILE ? classes : TILE;
    const double factor = *divisor > 0 ? (double)*gloss / (double)*divisor : 0;
    struct row_walk r = walk_rows(pnet_live(t.rows), lanes);
    int32_t *count = counts + r.line * tile;
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line;
        bool there = row < r.end;
        const T *x = (const T *)f.x + (there ? row : base) * classes;
        int64_t begin = there ? labels_begin(t, row) : 0, end = there ? labels_end(t, row) : 0;
        struct soft_row s = soft_row_of(x, classes, r);
        double sum = 0;
        int64_t valid = 0;
        for (int64_t at = begin + r.lane; at < end; at += lanes) {
            int32_t label = label_at(t, at);
            if (label < 0) continue;
            valid++;
            sum += slope_of(f, share_of(s, widen(x[label]), label == s.best), label);
        }
        sum = lanes_sum(sum, lanes);
        valid = lanes_sum(valid, lanes);
        for (int32_t first = 0; first < classes; first += tile) {
            int32_t last = first + tile < classes ? first + tile : classes;
            count_labels(t, begin, end, first, last, r, count);
            for (int32_t c = first + r.lane; there && c < last; c += lanes) {
                int32_t own_labels = count[c - first];
                double v = 0;
                if (valid) {
                    struct share h = share_of(s, widen(x[c]), c == s.best);
                    double own = own_labels ? own_labels * slope_of(f, h, c) : 0;
                    double of_others = own_labels == valid ? 0 : sum - own;
                    v = factor * (own * h.others - of_others * h.p);
                }
                T *to = gx + row * classes + c;
                narrow((add ? widen(*to) : 0) + (float)v, to);
            }
            __syncwarp();
        }
    }
}

void pnet_cuda_focal_backward(const struct pnet_focal *f, const float *divisor, const float *gloss,
    bool add, float *gx, void *work)
{
    struct focal a = argument_of(f);
    int32_t classes = f->targets.classes;
    int lanes = row_lanes(classes), rows = THREADS / lanes;
    unsigned grid = blocks_for(f->targets.rows.most, rows);
    size_t counts = (size_t)rows * (size_t)(classes < TILE ? classes : TILE) * sizeof(int32_t);
    (void)work;
    if (!grid) return;
    by_storage(f->targets.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        focal_backward<<<grid, THREADS, counts, pnet_cuda_stream()>>>(
            a, lanes, divisor, gloss, add, as<T>(gx));
    });
}
