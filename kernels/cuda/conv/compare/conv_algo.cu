/* Calls the algorithm chunk by chunk; begins and ends the sums. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/compare/conv_algo.cuh"

enum { THREADS = 256 };

static __global__ void begin_rows(
    struct pnet_count rows, int width, const float *bias, bool add, float *out)
{
    int64_t elements = pnet_live(rows) * width;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS)
        out[e] = (add ? out[e] : 0.0f) + (bias ? bias[e % width] : 0.0f);
}

static __global__ void end_rows(
    struct pnet_count rows, int width, enum pnet_activation act, float slope, float *out)
{
    int64_t elements = pnet_live(rows) * width;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS)
        out[e] = conv_activate(out[e], act, slope);
}

static __global__ void set_live(struct pnet_count n, int64_t first, int64_t most, int64_t *live)
{
    int64_t left = pnet_live(n) - first;
    *live = left < 0 ? 0 : left < most ? left : most;
}

void pnet_cuda_conv_algo_live(struct pnet_count n, int64_t first, int64_t most, int64_t *live)
{
    set_live<<<1, 1, 0, pnet_cuda_stream()>>>(n, first, most, live);
}

void pnet_cuda_conv_algo_begin(const struct pnet_mvmr *m)
{
    struct pnet_count rows = pnet_cuda_conv_set_of(m->triplets, PNET_STORE_F32).rows;
    unsigned blocks = conv_algo_blocks(rows.most * m->shape.cout, THREADS);
    if (rows.most > 0 && !(m->add && !m->bias))
        begin_rows<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
            rows, m->shape.cout, m->bias, m->add, m->out);
}

void pnet_cuda_conv_algo_end(const struct pnet_mvmr *m)
{
    struct pnet_count rows = pnet_cuda_conv_set_of(m->triplets, PNET_STORE_F32).rows;
    unsigned blocks = conv_algo_blocks(rows.most * m->shape.cout, THREADS);
    if (rows.most > 0 && !m->add && m->act != PNET_ACT_NONE)
        end_rows<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
            rows, m->shape.cout, m->act, m->slope, m->out);
}

static int64_t weights(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    return (int64_t)t->cells * (s.cin / s.groups) * s.cout;
}

void pnet_cuda_conv_algo_begin(const struct pnet_vvor *v)
{
    size_t bytes = (size_t)weights(v->triplets, v->shape) * sizeof(float);
    if (!v->add) cudaMemsetAsync(v->gweight, 0, bytes, pnet_cuda_stream());
}

static __global__ void turn(
    int64_t elements, int cin, int cout, int cin1, int cout1, const float *weight, float *to)
{
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS) {
        int64_t b = e % cout, a = e / cout % cin1, k = e / cout / cin1;
        to[e] = weight[(k * cout1 + b % cout1) * cin + b / cout1 * cin1 + a];
    }
}

/* The weight as [V, cin / groups, cout]: m's own, or a transposed one turned in `to`. */
static const float *turned(const struct pnet_mvmr *m, float *to)
{
    struct pnet_conv_shape s = m->shape;
    int64_t elements = weights(m->triplets, s);
    if (!m->transposed) return m->weight;
    turn<<<conv_algo_blocks(elements, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        elements, s.cin, s.cout, s.cin / s.groups, s.cout / s.groups, m->weight, to);
    return to;
}

/* Triplets [first, first + most) of a list of the whole set; *live becomes their number. */
static pnet_conv_list part_of(
    const pnet_conv_list &list, int64_t first, int64_t most, int64_t *live)
{
    pnet_cuda_conv_algo_live({list.most, list.live, 1, PNET_STORE_F32}, first, most, live);
    return {most, live, list.row + first, list.other + first, list.cell + first};
}

/* Calls `make` with one list after the other: parts of the given one, or made in `work`, behind which `make` has the
   rest. Listings take a given list whole. */
template <typename Make>
static void walk(enum pnet_conv_algo algo, const struct pnet_triplets *t, struct pnet_conv_shape s,
    const pnet_conv_list *given, void *work, Make make)
{
    if (given && algo != PNET_ALGO_GATHER) {
        make(*given, work);
        return;
    }
    int64_t step = pnet_cuda_conv_list_chunk(algo, t, s);
    char *memory = (char *)work, *scratch = memory + pnet_cuda_conv_list_bytes(step),
         *rest = scratch + pnet_cuda_conv_piece(pnet_cuda_conv_list_work(step));
    for (int64_t first = 0; first < t->count; first += step) {
        int64_t most = step < t->count - first ? step : t->count - first;
        if (given)
            make(part_of(*given, first, most, (int64_t *)memory), rest);
        else
            make(pnet_cuda_conv_list(t, algo, first, most, memory, scratch), rest);
    }
}

void pnet_cuda_mvmr_algo(const struct pnet_mvmr *m, void *work)
{
    if (m->algo == PNET_ALGO_IM2COL) {
        pnet_cuda_conv_im2col_mvmr(m, work);
        return;
    }
    bool gather = m->algo == PNET_ALGO_GATHER;
    const float *weight = gather ? nullptr : turned(m, (float *)work);
    if (!gather) work = (char *)work + pnet_cuda_conv_turned_bytes(m->triplets, m->shape);
    pnet_cuda_conv_algo_begin(m);
    walk(
        m->algo, m->triplets, m->shape, m->list, work, [&](const pnet_conv_list &list, void *rest) {
            if (gather)
                pnet_cuda_conv_gather_mvmr(m, list, rest);
            else
                pnet_cuda_conv_listing_mvmr(m, weight, list);
        });
    pnet_cuda_conv_algo_end(m);
}

void pnet_cuda_vvor_algo(const struct pnet_vvor *v, void *work)
{
    if (v->algo == PNET_ALGO_IM2COL) {
        pnet_cuda_conv_im2col_vvor(v, work);
        return;
    }
    pnet_cuda_conv_algo_begin(v);
    walk(
        v->algo, v->triplets, v->shape, v->list, work, [&](const pnet_conv_list &list, void *rest) {
            if (v->algo == PNET_ALGO_GATHER)
                pnet_cuda_conv_gather_vvor(v, list, rest);
            else
                pnet_cuda_conv_listing_vvor(v, list);
        });
}
