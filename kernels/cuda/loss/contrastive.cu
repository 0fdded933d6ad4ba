/* The hardest contrastive loss. The drawn rows of a sample are [i of positives][candidates of a][j of positives]
   [candidates of b]. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/loss/matched.cuh"

struct parts {
    struct matched_rows rows;
    struct terms *terms;
};

static struct parts lay_out(const struct pnet_hardest *h, struct carver *room)
{
    int32_t side = h->positives + h->candidates;
    int64_t drawn = (int64_t)h->pair.samples * 2 * side;
    struct parts p = {
        {2 * side, side, room->take<int32_t>(drawn), room->take<float>(drawn * h->pair.width)},
        room->take<struct terms>((int64_t)h->pair.samples * h->positives)};
    return p;
}

__global__ static void __launch_bounds__(THREADS)
    draw_rows(const __grid_constant__ struct pnet_hardest h, int32_t *row, int32_t *mined)
{
    const struct pnet_matched &p = h.pair;
    const struct pnet_rand rand = rand_now(p);
    int32_t side = h.positives + h.candidates;
    for (int64_t n = FLAT_BEGIN; n < (int64_t)p.samples * side; n += FLAT_STEP) {
        int32_t sample = (int32_t)(n / side), draw = (int32_t)(n % side);
        int32_t *of_a = row + (int64_t)sample * 2 * side + draw, *of_b = of_a + side;
        if (draw < h.positives) {
            int32_t *m = mined + 4 * ((int64_t)sample * h.positives + draw);
            pnet_matched_at(&p, &rand, sample, h.positives, draw, of_a, of_b);
            m[0] = *of_a;
            m[1] = *of_b;
            continue;
        }
        draw -= h.positives;
        for (int of = 0; of < 2; of++) {
            const int64_t *splits = of ? p.b_splits : p.a_splits;
            int64_t count = splits[sample + 1] - splits[sample];
            enum pnet_matched_draw what = of ? PNET_DRAW_TARGET : PNET_DRAW_SOURCE;
            int32_t drawn = -1;
            if (draw < count)
                drawn = (int32_t)(splits[sample] + pnet_matched_draw(&rand, sample, what, count,
                                                       h.candidates, draw));
            *(of ? of_b : of_a) = drawn;
        }
    }
}

/* A warp's best candidate: the least distance, then the lowest place. */
static __device__ void take_least(double &distance, int32_t &place)
{
    for (int d = WARP / 2; d; d /= 2) {
        double other = __shfl_xor_sync(WHOLE_WARP, distance, d);
        int32_t at = __shfl_xor_sync(WHOLE_WARP, place, d);
        if (other < distance || (other == distance && at < place)) {
            distance = other;
            place = at;
        }
    }
}

enum { CHANNELS = 32 }; /* of candidates that a block holds at a time */

/* The place of the candidate that lies nearest to `x` (of a warp's positive), and its squared distance. All warps of a
   block go through the same candidates. */
static __device__ int32_t nearest_place(const struct pnet_hardest &h, const float *x,
    const int32_t *candidate, const float *feature, float (*tile)[CHANNELS + 1], double *distance)
{
    const int32_t width = h.pair.width;
    int lane = (int)threadIdx.x % WARP;
    double least = INFINITY;
    int32_t best = INT32_MAX;
    for (int32_t k = 0; k < h.candidates; k += WARP) {
        double sum = 0;
        for (int32_t first = 0; first < width; first += CHANNELS) {
            int32_t channels = width - first < CHANNELS ? width - first : CHANNELS;
            __syncthreads(); /* what was there has been read */
            for (int32_t t = (int32_t)threadIdx.x; t < WARP * CHANNELS; t += THREADS) {
                int32_t at = k + t / CHANNELS, c = t % CHANNELS;
                if (at < h.candidates && c < channels)
                    tile[t / CHANNELS][c] = feature[(int64_t)at * width + first + c];
            }
            __syncthreads();
            for (int32_t c = 0; c < channels; c++) {
                double d = (double)x[first + c] - (double)tile[lane][c];
                sum += d * d;
            }
        }
        bool there = k + lane < h.candidates && candidate[k + lane] >= 0;
        if (there && sum < least) {
            least = sum;
            best = k + lane;
        }
    }
    take_least(least, best);
    *distance = least;
    return best < h.candidates ? best : 0; /* of what is not a number, any */
}

static __device__ __forceinline__ double squared_excess(double x)
{
    return x > 0 ? x * x : 0;
}

/* A warp a positive; blocks do not cross samples. */
__global__ static void __launch_bounds__(THREADS)
    mine(const __grid_constant__ struct pnet_hardest h, const __grid_constant__ struct parts parts,
        int32_t blocks_of_sample, int32_t *mined)
{
    __shared__ float tile[WARP][CHANNELS + 1];
    const struct pnet_matched &p = h.pair;
    const int32_t side = h.positives + h.candidates, width = p.width;
    int32_t sample = (int32_t)(blockIdx.x / (unsigned)blocks_of_sample);
    int32_t draw =
        (int32_t)(blockIdx.x % (unsigned)blocks_of_sample) * WARPS + (int32_t)threadIdx.x / WARP;
    int32_t held = draw < h.positives ? draw : h.positives - 1; /* warps stay together */
    const int32_t *row = parts.rows.row + (int64_t)sample * 2 * side;
    const float *feature = parts.rows.feature + (int64_t)sample * 2 * side * width;
    const float *x = feature + (int64_t)held * width, *y = x + (int64_t)side * width;
    const int64_t of_a = h.positives, of_b = side + h.positives;
    double to_a, to_b;
    int32_t hard_b = nearest_place(h, x, row + of_b, feature + of_b * width, tile, &to_b);
    int32_t hard_a = nearest_place(h, y, row + of_a, feature + of_a * width, tile, &to_a);
    if (draw >= h.positives || threadIdx.x % WARP) return;
    int64_t at = (int64_t)sample * h.positives + draw;
    int32_t *m = mined + 4 * at;
    struct terms t = {{-1, -1, -1}};
    m[2] = m[3] = -1;
    if (m[0] >= 0) {
        t.of[0] = squared_excess(sqrt(distance2(width, x, y)) - h.pos);
        hard_a = row[of_a + hard_a];
        hard_b = row[of_b + hard_b];
        if (!pnet_matched_in(p.start, p.other, m[0], hard_b)) {
            m[2] = hard_b;
            t.of[1] = squared_excess(h.neg - sqrt(to_b));
        }
        if (!pnet_matched_in(p.start, p.other, hard_a, m[1])) {
            m[3] = hard_a;
            t.of[2] = squared_excess(h.neg - sqrt(to_a));
        }
    }
    parts.terms[at] = t;
}

/* One block. */
__global__ static void __launch_bounds__(1024)
    sum_terms(int64_t n, const struct terms *terms, float *sizes, float *loss)
{
    double total = 0;
    for (int k = 0; k < 3; k++) {
        double sum = 0, count = 0;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            if (terms[i].of[k] < 0) continue;
            sum += terms[i].of[k];
            count++;
        }
        sum = block_sum(sum);
        count = block_sum(count);
        if (threadIdx.x == 0) sizes[k] = (float)count;
        if (count > 0) total += (k ? 0.5 : 1) * sum / count;
    }
    if (threadIdx.x == 0) *loss = (float)total;
}

void pnet_cuda_hardest(
    const struct pnet_hardest *h, int32_t *mined, float *sizes, float *loss, void *work)
{
    struct carver room = {(char *)work};
    struct parts p = lay_out(h, &room);
    int64_t positives = (int64_t)h->pair.samples * h->positives;
    int32_t blocks = (h->positives + WARPS - 1) / WARPS;
    cudaStream_t stream = pnet_cuda_stream();
    if (positives) {
        draw_rows<<<element_blocks((int64_t)h->pair.samples * p.rows.of_a), THREADS, 0, stream>>>(
            *h, p.rows.row, mined);
        pnet_cuda_matched_gather(&h->pair, &p.rows);
        mine<<<(unsigned)(h->pair.samples * blocks), THREADS, 0, stream>>>(*h, p, blocks, mined);
    }
    sum_terms<<<1, 1024, 0, stream>>>(positives, p.terms, sizes, loss);
}

/* share * excess / distance, the excess as on the CPU. */
static __device__ __forceinline__ double factor_of(
    double distance2, double margin, bool push, double share)
{
    double d = sqrt(distance2), excess = d - margin;
    if (d == 0 || (push ? excess > 0 : excess < 0)) return 0;
    return share * excess / d;
}

/* The squared distance of two rows, in each lane. */
template <class T> static __device__ double warp_distance2(int32_t width, const T *x, const T *y)
{
    double sum = 0;
    for (int32_t c = (int32_t)threadIdx.x % WARP; c < width; c += WARP) {
        double d = (double)widen(x[c]) - (double)widen(y[c]);
        sum += d * d;
    }
    return lanes_sum(sum, WARP);
}

/* A warp a positive and side, a lane a channel: the gradient of its own row, and of the row that was mined on its
   side. */
template <class T>
__global__ static void __launch_bounds__(THREADS) make_entries(
    const __grid_constant__ struct pnet_hardest h, const __grid_constant__ struct matched_entries e,
    const int32_t *mined, const float *sizes, const float *gloss)
{
    const int32_t width = h.pair.width;
    const T *features[2] = {(const T *)h.pair.a, (const T *)h.pair.b};
    int64_t all = (int64_t)h.pair.samples * h.positives * 2, warps = (int64_t)gridDim.x * WARPS;
    double share[3];
    for (int k = 0; k < 3; k++)
        share[k] = sizes[k] > 0 ? (k ? 1 : 2) * (double)*gloss / (double)sizes[k] : 0;
    for (int64_t n = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP; n < all; n += warps) {
        int side = (int)(n % 2);
        int64_t positive = n / 2;
        const int32_t *m = mined + 4 * positive;
        int32_t hard_there = m[2 + side], hard_here = m[3 - side];
        int64_t at = (positive / h.positives * 2 + side) * e.each + 2 * (positive % h.positives);
        if (threadIdx.x % WARP == 0) {
            e.row[at] = m[side];
            e.row[at + 1] = hard_here;
        }
        if (m[0] < 0) continue; /* and so no row that was mined */
        const T *here = features[side], *there = features[!side];
        const T *x = here + (int64_t)m[side] * width, *y = there + (int64_t)m[!side] * width;
        const T *far = hard_there < 0 ? y : there + (int64_t)hard_there * width;
        const T *near = hard_here < 0 ? x : here + (int64_t)hard_here * width;
        double pull = factor_of(warp_distance2(width, x, y), h.pos, false, share[0]), push = 0,
               hard = 0;
        if (hard_there >= 0)
            push = factor_of(warp_distance2(width, x, far), h.neg, true, share[1 + side]);
        if (hard_here >= 0)
            hard = factor_of(warp_distance2(width, near, y), h.neg, true, share[2 - side]);
        for (int32_t c = (int32_t)threadIdx.x % WARP; c < width; c += WARP) {
            double of_x = (double)widen(x[c]), of_y = (double)widen(y[c]);
            float own = (float)(pull * (of_x - of_y));
            own += (float)(push * (of_x - (double)widen(far[c])));
            e.gradient[at * width + c] = own;
            e.gradient[(at + 1) * width + c] = (float)(hard * ((double)widen(near[c]) - of_y));
        }
    }
}

void pnet_cuda_hardest_backward(const struct pnet_hardest *h, const int32_t *mined,
    const float *sizes, const float *gloss, const struct pnet_matched_gradients *g, void *work)
{
    struct matched_entries e = pnet_cuda_matched_entries_of(&h->pair, 2 * h->positives, work);
    int64_t all = (int64_t)h->pair.samples * h->positives * 2;
    if (all)
        by_storage(h->pair.a_rows.storage, [&](auto f) {
            using T = typename decltype(f)::T;
            make_entries<T><<<blocks_for(all, WARPS), THREADS, 0, pnet_cuda_stream()>>>(
                *h, e, mined, sizes, gloss);
        });
    pnet_cuda_matched_add_entries(&h->pair, &e, g);
}
