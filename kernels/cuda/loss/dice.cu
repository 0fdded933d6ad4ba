/* Soft Dice loss: kernels/cpu/loss/dice.c on a GPU. A block sums over a slice of rows, for as many classes
   at a time as its threads hold; one block a class joins the slices, one block in all the classes. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/loss/targets.cuh"

struct dice {
    struct pnet_targets targets;
    const float *x;
    bool square;
};

enum { OWN = 8 }; /* classes a thread sums at a time */

struct parts {
    struct tally *slice; /* [classes, SLICES] */
    struct tally *all;   /* [classes] */
};

static struct parts parts_of(int32_t classes, void *work)
{
    struct carver w = {(char *)work};
    struct parts p;
    p.slice = w.take<struct tally>((int64_t)classes * SLICES);
    p.all = w.take<struct tally>(classes);
    return p;
}

/* The sum over the threads of a block with the same lane, in the first of them. */
static __device__ double same_lane_sum(double v, int lanes)
{
    __shared__ double part[WARPS][WARP];
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    for (int d = lanes; d < WARP; d *= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    __syncthreads(); /* the last sum has been read */
    if (lane < (unsigned)lanes) part[warp][lane] = v;
    __syncthreads();
    v = 0;
    for (unsigned w = 0; w < WARPS && threadIdx.x < (unsigned)lanes; w++) v += part[w][threadIdx.x];
    return v;
}

/* The classes from `first` on that the lanes of a row hold. */
template <class T>
static __device__ void sum_rows(const struct dice &d, const struct row_walk &r, int32_t first,
    int32_t *count, struct tally own[OWN])
{
    const struct pnet_targets &t = d.targets;
    const int32_t tile = r.lanes * OWN;
    const int32_t last = first + tile < t.classes ? first + tile : t.classes;
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line, valid = 0;
        bool there = row < r.end;
        const T *x = (const T *)d.x + (there ? row : base) * t.classes;
        int64_t begin = there ? labels_begin(t, row) : 0, end = there ? labels_end(t, row) : 0;
        struct soft_row s = soft_row_of(x, t.classes, r);
        for (int64_t at = begin + r.lane; at < end; at += r.lanes) valid += label_at(t, at) >= 0;
        valid = lanes_sum(valid, r.lanes);
        count_labels(t, begin, end, first, last, r, count);
        for (int k = 0; k < OWN && valid; k++) {
            int32_t c = first + r.lane + k * r.lanes;
            if (c >= last) break;
            double p = (double)expf(widen(x[c]) - s.top) / (1 + s.rest);
            own[k].hits += count[c - first] * p;
            own[k].mass += (double)valid * (d.square ? p * p : p);
            own[k].labels += count[c - first];
        }
        __syncwarp();
    }
}

template <class T>
__global__ static void __launch_bounds__(THREADS)
    sum_dice(struct dice d, int lanes, struct tally *part)
{
    __shared__ int32_t counts[THREADS * OWN];
    struct row_walk r = walk_slice(pnet_live(d.targets.rows), lanes);
    const int32_t classes = d.targets.classes, tile = lanes * OWN;
    for (int32_t first = 0; first < classes; first += tile) {
        struct tally own[OWN] = {};
        sum_rows<T>(d, r, first, counts + r.line * tile, own);
        for (int k = 0; k < OWN; k++) {
            int32_t c = first + k * lanes;
            if (c >= classes) break; /* for all threads */
            struct tally all = {same_lane_sum(own[k].hits, lanes),
                same_lane_sum(own[k].mass, lanes), same_lane_sum(own[k].labels, lanes)};
            c += (int32_t)threadIdx.x;
            if (threadIdx.x < (unsigned)lanes && c < classes)
                part[(int64_t)c * SLICES + blockIdx.x] = all;
        }
    }
}

__global__ static void __launch_bounds__(SLICES)
    join_slices(const struct tally *part, struct tally *all)
{
    struct tally own = part[(int64_t)blockIdx.x * SLICES + threadIdx.x];
    own.hits = block_sum(own.hits);
    own.mass = block_sum(own.mass);
    own.labels = block_sum(own.labels);
    if (threadIdx.x == 0) all[blockIdx.x] = own;
}

__global__ static void __launch_bounds__(THREADS)
    join_classes(int32_t classes, const struct tally *all, float *loss, double *slope)
{
    __shared__ int32_t found;
    int32_t present = 0;
    double sum = 0;
    for (int32_t c = (int32_t)threadIdx.x; c < classes; c += THREADS) {
        if (!(all[c].labels > 0)) continue;
        double both = all[c].mass + all[c].labels;
        sum += (both - 2 * all[c].hits) / both;
        present++;
    }
    present = block_sum(present);
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        found = present;
        *loss = present ? (float)(sum / present) : 0;
    }
    __syncthreads();
    for (int32_t c = (int32_t)threadIdx.x; slope && c < classes; c += THREADS) {
        double both = all[c].mass + all[c].labels;
        bool occurs = all[c].labels > 0;
        slope[c] = occurs ? -2 / (both * found) : 0;
        slope[classes + c] = occurs ? 2 * all[c].hits / (both * both * found) : 0;
    }
}

void pnet_cuda_dice(const struct pnet_dice *d, float *loss, double *slope, void *work)
{
    int32_t classes = d->targets.classes;
    struct parts p = parts_of(classes, work);
    struct dice a = {d->targets, d->x, d->square};
    int lanes = row_lanes(classes);
    by_storage(d->targets.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        sum_dice<T><<<SLICES, THREADS, 0, pnet_cuda_stream()>>>(a, lanes, p.slice);
    });
    join_slices<<<(unsigned)classes, SLICES, 0, pnet_cuda_stream()>>>(p.slice, p.all);
    join_classes<<<1, THREADS, 0, pnet_cuda_stream()>>>(classes, p.all, loss, slope);
}

/* Classes of a row whose labels are counted at a time. */
enum { TILE = 1024 };

/* gx = p (u - sum of p u) with u the loss's derivative by p, summed over the labels of the row.
   Dynamic shared memory: [rows of a block][classes of a tile] counts. */
template <class T>
__global__ static void __launch_bounds__(THREADS) dice_backward(
    struct dice d, int lanes, const double *slope, const float *gloss, bool add, T *gx)
{
    extern __shared__ int32_t counts[];
    const struct pnet_targets &t = d.targets;
    const int32_t classes = t.classes, tile = classes < TILE ? classes : TILE;
    struct row_walk r = walk_rows(pnet_live(t.rows), lanes);
    int32_t *count = counts + r.line * tile;
    for (int64_t base = r.begin; base < r.end; base += r.step) {
        int64_t row = base + r.line, valid = 0;
        bool there = row < r.end;
        const T *x = (const T *)d.x + (there ? row : base) * classes;
        int64_t begin = there ? labels_begin(t, row) : 0, end = there ? labels_end(t, row) : 0;
        struct soft_row s = soft_row_of(x, classes, r);
        const double total = 1 + s.rest;
        double by_hits = 0, by_mass = 0; /* sums of p u */
        for (int64_t at = begin + r.lane; at < end; at += lanes) {
            int32_t label = label_at(t, at);
            if (label < 0) continue;
            valid++;
            by_hits += (double)expf(widen(x[label]) - s.top) / total * slope[label];
        }
        for (int32_t c = r.lane; c < classes; c += lanes) {
            double p = (double)expf(widen(x[c]) - s.top) / total;
            by_mass += (d.square ? 2 * p * p : p) * slope[classes + c];
        }
        valid = lanes_sum(valid, lanes);
        double mean = lanes_sum(by_hits, lanes) + (double)valid * lanes_sum(by_mass, lanes);
        for (int32_t first = 0; first < classes; first += tile) {
            int32_t last = first + tile < classes ? first + tile : classes;
            count_labels(t, begin, end, first, last, r, count);
            for (int32_t c = first + r.lane; there && c < last; c += lanes) {
                double v = 0;
                if (valid) {
                    double p = (double)expf(widen(x[c]) - s.top) / total;
                    double u = count[c - first] * slope[c] +
                               (double)valid * (d.square ? 2 * p : 1) * slope[classes + c];
                    v = (double)*gloss * p * (u - mean);
                }
                T *to = gx + row * classes + c;
                narrow((add ? widen(*to) : 0) + (float)v, to);
            }
            __syncwarp();
        }
    }
}

void pnet_cuda_dice_backward(const struct pnet_dice *d, const double *slope, const float *gloss,
    bool add, float *gx, void *work)
{
    struct dice a = {d->targets, d->x, d->square};
    int32_t classes = d->targets.classes;
    int lanes = row_lanes(classes), rows = THREADS / lanes;
    unsigned grid = blocks_for(d->targets.rows.most, rows);
    size_t counts = (size_t)rows * (size_t)(classes < TILE ? classes : TILE) * sizeof(int32_t);
    (void)work;
    if (!grid) return;
    by_storage(d->targets.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        dice_backward<<<grid, THREADS, counts, pnet_cuda_stream()>>>(
            a, lanes, slope, gloss, add, as<T>(gx));
    });
}
