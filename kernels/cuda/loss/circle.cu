/* Circle loss. The drawn rows of a sample are [i][j]. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/loss/matched.cuh"

/* A pair of drawn rows. */
struct relation {
    bool positive, negative;
    double distance;
};

/* Draws n of a and k of b of a sample. */
static __device__ struct relation relate(
    const struct pnet_circle &c, const int32_t *drawn, const float *feature, int32_t n, int32_t k)
{
    const struct pnet_matched &p = c.pair;
    int32_t i = drawn[2 * n], j = drawn[2 * k + 1];
    struct relation r = {false, false, 0};
    if (i < 0 || j < 0) return r;
    r.positive = pnet_matched_in(p.start, p.other, i, j);
    r.negative = !r.positive && !pnet_matched_in(c.safe_start, c.safe_other, i, j);
    if (r.positive || r.negative)
        r.distance = sqrt(distance2(
            p.width, feature + (int64_t)n * p.width, feature + (int64_t)(c.pairs + k) * p.width));
    return r;
}

static __device__ __forceinline__ double exponent(
    const struct pnet_circle &c, const struct relation &r)
{
    double excess = r.positive ? fmax(r.distance - c.pos, 0.0) : fmax(c.neg - r.distance, 0.0);
    return c.scale * (excess * excess);
}

/* The logarithm of a sum of exponentials: the sum is rest * exp(top). */
struct log_sum {
    double top, rest;
};

static __device__ void join(struct log_sum &s, double top, double rest)
{
    if (rest <= 0) return;
    if (s.rest <= 0 || top > s.top) {
        s.rest = (s.rest > 0 ? s.rest * exp(s.top - top) : 0) + rest;
        s.top = top;
    } else {
        s.rest += rest * exp(top - s.top);
    }
}

/* Over the lanes of a warp. */
static __device__ double warp_log(struct log_sum s)
{
    for (int d = WARP / 2; d; d /= 2) {
        double top = __shfl_xor_sync(WHOLE_WARP, s.top, d);
        double rest = __shfl_xor_sync(WHOLE_WARP, s.rest, d);
        join(s, top, rest);
    }
    return s.rest > 0 ? s.top + log(s.rest) : -INFINITY;
}

static __device__ __forceinline__ bool counts(const double *sums)
{
    return sums[0] > -INFINITY && sums[1] > -INFINITY;
}

struct parts {
    struct matched_rows rows;
};

static struct parts lay_out(const struct pnet_circle *c, struct carver *room)
{
    int64_t drawn = (int64_t)c->pair.samples * 2 * c->pairs;
    struct parts p = {{2 * c->pairs, c->pairs, room->take<int32_t>(drawn),
        room->take<float>(drawn * c->pair.width)}};
    return p;
}

__global__ static void __launch_bounds__(THREADS)
    draw_pairs(const __grid_constant__ struct pnet_circle c, int32_t *drawn)
{
    const struct pnet_rand rand = rand_now(c.pair);
    for (int64_t n = FLAT_BEGIN; n < (int64_t)c.pair.samples * c.pairs; n += FLAT_STEP)
        pnet_matched_at(&c.pair, &rand, (int32_t)(n / c.pairs), c.pairs, (int32_t)(n % c.pairs),
            &drawn[2 * n], &drawn[2 * n + 1]);
}

__global__ static void __launch_bounds__(THREADS)
    spread_rows(int64_t n, int32_t pairs, const int32_t *drawn, int32_t *row)
{
    for (int64_t i = FLAT_BEGIN; i < n; i += FLAT_STEP) {
        int64_t sample = i / (2 * pairs), place = i % (2 * pairs);
        row[i] = drawn[2 * (sample * pairs + place % pairs) + (place >= pairs)];
    }
}

static void gather_rows(const struct pnet_circle *c, const struct parts *p, const int32_t *drawn)
{
    int64_t n = (int64_t)c->pair.samples * 2 * c->pairs;
    spread_rows<<<element_blocks(n), THREADS, 0, pnet_cuda_stream()>>>(
        n, c->pairs, drawn, p->rows.row);
    pnet_cuda_matched_gather(&c->pair, &p->rows);
}

/* A warp an anchor, a lane one of the draws it meets. */
__global__ static void __launch_bounds__(THREADS)
    sum_anchors(const __grid_constant__ struct pnet_circle c, const float *feature,
        const int32_t *drawn, double *sums)
{
    int64_t all = (int64_t)c.pair.samples * 2 * c.pairs, warps = (int64_t)gridDim.x * WARPS;
    int lane = (int)threadIdx.x % WARP;
    for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < all; i += warps) {
        int64_t sample = i / (2 * c.pairs);
        int32_t n = (int32_t)(i % c.pairs);
        bool side = i % (2 * c.pairs) >= c.pairs;
        const int32_t *own = drawn + sample * 2 * c.pairs;
        const float *features = feature + sample * 2 * c.pairs * c.pair.width;
        struct log_sum positive = {0, 0}, negative = {0, 0};
        for (int32_t k = lane; k < c.pairs; k += WARP) {
            struct relation r = relate(c, own, features, side ? k : n, side ? n : k);
            if (r.positive) join(positive, exponent(c, r), 1);
            if (r.negative) join(negative, exponent(c, r), 1);
        }
        double of[2] = {warp_log(positive), warp_log(negative)};
        if (lane < 2) sums[2 * i + lane] = of[lane];
    }
}

/* One block. */
__global__ static void __launch_bounds__(1024) sum_losses(
    const __grid_constant__ struct pnet_circle c, const double *sums, float *sizes, float *loss)
{
    int64_t all = (int64_t)c.pair.samples * c.pairs;
    double total = 0;
    for (int side = 0; side < 2; side++) {
        double sum = 0, count = 0;
        for (int64_t n = threadIdx.x; n < all; n += blockDim.x) {
            const double *of = sums + 2 * ((n / c.pairs * 2 + side) * c.pairs + n % c.pairs);
            if (!counts(of)) continue;
            double x = of[0] + of[1];
            sum += (fmax(x, 0.0) + log1p(exp(-fabs(x)))) / c.scale;
            count++;
        }
        sum = block_sum(sum);
        count = block_sum(count);
        if (threadIdx.x == 0) sizes[side] = (float)count;
        if (count > 0) total += sum / count / 2;
    }
    if (threadIdx.x == 0) *loss = (float)total;
}

void pnet_cuda_circle(const struct pnet_circle *c, int32_t *drawn, double *sums, float *sizes,
    float *loss, void *work)
{
    struct carver room = {(char *)work};
    struct parts p = lay_out(c, &room);
    int64_t pairs = (int64_t)c->pair.samples * c->pairs;
    cudaStream_t stream = pnet_cuda_stream();
    if (pairs) {
        draw_pairs<<<element_blocks(pairs), THREADS, 0, stream>>>(*c, drawn);
        gather_rows(c, &p, drawn);
        sum_anchors<<<blocks_for(2 * pairs, WARPS), THREADS, 0, stream>>>(
            *c, p.rows.feature, drawn, sums);
    }
    sum_losses<<<1, 1024, 0, stream>>>(*c, sums, sizes, loss);
}

/* What an anchor adds to the derivative of the loss by the distance of one of its pairs. */
static __device__ double anchor_slope(const struct pnet_circle &c, const double *sums,
    const struct relation &r, float size, double gloss)
{
    if (!counts(sums)) return 0;
    double excess = r.positive ? fmax(r.distance - c.pos, 0.0) : fmin(r.distance - c.neg, 0.0);
    double part = exp(exponent(c, r) - sums[r.negative]);
    return gloss / (double)size / 2 / (1 + exp(-(sums[0] + sums[1]))) * part * 2 * excess;
}

/* A warp an anchor: first a lane one of the draws it meets, then a lane a channel. */
__global__ static void __launch_bounds__(THREADS)
    make_entries(const __grid_constant__ struct pnet_circle c,
        const __grid_constant__ struct matched_entries e, const float *feature,
        const int32_t *drawn, const double *sums, const float *sizes, const float *gloss)
{
    const int32_t width = c.pair.width;
    int64_t all = (int64_t)c.pair.samples * 2 * c.pairs, warps = (int64_t)gridDim.x * WARPS;
    int lane = (int)threadIdx.x % WARP;
    for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < all; i += warps) {
        int64_t sample = i / (2 * c.pairs);
        int32_t n = (int32_t)(i % c.pairs);
        bool side = i % (2 * c.pairs) >= c.pairs;
        const int32_t *own = drawn + sample * 2 * c.pairs;
        const double *own_sums = sums + sample * 4 * c.pairs;
        const float *a = feature + sample * 2 * c.pairs * width, *b = a + (int64_t)c.pairs * width;
        if (lane == 0) e.row[i] = own[2 * n + side];
        for (int32_t first = 0; first < width; first += WARP) {
            int32_t w = first + lane;
            float sum = 0;
            for (int32_t k = 0; k < c.pairs; k += WARP) {
                double factor = 0;
                int32_t other = k + lane, of_a = side ? other : n, of_b = side ? n : other;
                if (other < c.pairs) {
                    struct relation r = relate(c, own, a, of_a, of_b);
                    if ((r.positive || r.negative) && r.distance > 0)
                        factor = (anchor_slope(c, own_sums + 2 * of_a, r, sizes[0], *gloss) +
                                     anchor_slope(
                                         c, own_sums + 2 * (c.pairs + of_b), r, sizes[1], *gloss)) /
                                 r.distance;
                }
                unsigned some = __ballot_sync(WHOLE_WARP, factor != 0);
                for (; some; some &= some - 1) {
                    int from = __ffs((int)some) - 1;
                    double f = __shfl_sync(WHOLE_WARP, factor, from);
                    int64_t x = side ? k + from : n, y = side ? n : k + from;
                    if (w < width)
                        sum += (float)((side ? -f : f) *
                                       ((double)a[x * width + w] - (double)b[y * width + w]));
                }
            }
            if (w < width) e.gradient[i * width + w] = sum;
        }
    }
}

void pnet_cuda_circle_backward(const struct pnet_circle *c, const int32_t *drawn,
    const double *sums, const float *sizes, const float *gloss,
    const struct pnet_matched_gradients *g, void *work)
{
    struct carver room = {(char *)work};
    struct parts p = lay_out(c, &room);
    struct matched_entries e = pnet_cuda_matched_entries_of(&c->pair, c->pairs, room.at);
    int64_t anchors = (int64_t)c->pair.samples * 2 * c->pairs;
    if (anchors) {
        gather_rows(c, &p, drawn);
        make_entries<<<blocks_for(anchors, WARPS), THREADS, 0, pnet_cuda_stream()>>>(
            *c, e, p.rows.feature, drawn, sums, sizes, gloss);
    }
    pnet_cuda_matched_add_entries(&c->pair, &e, g);
}
