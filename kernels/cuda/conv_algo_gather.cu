/* Gather, product, scatter: the rows of a list laid one after the other, multiplied by the matrices of their cells, and
   added to where they belong by float atomics, so that the last bits vary from run to run. Outer products need no
   atomics. */
#include "kernels/cuda/conv_algo.cuh"

enum { THREADS = 256, MERGED_WIDTH = 64 };

/* to[n] = from[index[n]] */
static __global__ void gather(
    pnet_conv_list list, const int32_t *index, int width, const float *from, float *to)
{
    int64_t elements = conv_list_live(list) * width;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS)
        to[e] = from[index[e / width] * (int64_t)width + e % width];
}

/* to[row[n]] += from[n] */
static __global__ void scatter(pnet_conv_list list, int width, const float *from, float *to)
{
    int64_t elements = conv_list_live(list) * width;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS)
        atomicAdd(to + list.row[e / width] * (int64_t)width + e % width, from[e]);
}

/* One triplet (n, n, cell of n) for each row of the list. */
static conv_set set_of(const pnet_conv_list &list, int32_t cells)
{
    conv_set s = conv_dense_set({list.most, list.live, 1, PNET_STORE_F32});
    s.cells = cells;
    s.cell = list.cell;
    return s;
}

static float *gather_rows(conv_pieces &pieces, const pnet_conv_list &list, const int32_t *index,
    int width, const float *from)
{
    float *to = pieces.take<float>(list.most * width);
    gather<<<conv_algo_blocks(list.most * width, THREADS), THREADS, 0, cudaStreamPerThread>>>(
        list, index, width, from, to);
    return to;
}

void conv_gather_mvmr(const struct pnet_mvmr *m, const pnet_conv_list &list, void *work)
{
    if (list.most == 0) return;
    conv_pieces pieces = {(char *)work};
    struct pnet_conv_shape s = m->shape;
    const float *x = gather_rows(pieces, list, list.other, s.cin, m->in);
    float *y = pieces.take<float>(list.most * s.cout);
    conv_plain_mvmr({set_of(list, m->triplets->cells), conv_merge(s, MERGED_WIDTH), s.cin, s.cout,
        x, m->weight, m->transposed, {nullptr, y, false, PNET_ACT_NONE, 0}});
    scatter<<<conv_algo_blocks(list.most * s.cout, THREADS), THREADS, 0, cudaStreamPerThread>>>(
        list, s.cout, y, m->out);
}

size_t conv_gather_vvor_work(const struct pnet_triplets *t, struct pnet_conv_shape s, int64_t most)
{
    return conv_pieces::round((size_t)most * (size_t)s.cin * sizeof(float)) +
           conv_pieces::round((size_t)most * (size_t)s.cout * sizeof(float)) +
           conv_plain_vvor_work(set_of({most, nullptr, nullptr, nullptr, nullptr}, t->cells), s);
}

void conv_gather_vvor(const struct pnet_vvor *v, const pnet_conv_list &list, void *work)
{
    if (list.most == 0) return;
    conv_pieces pieces = {(char *)work};
    struct pnet_conv_shape s = v->shape;
    const float *x = gather_rows(pieces, list, v->swapped ? list.row : list.other, s.cin, v->in);
    const float *g = gather_rows(pieces, list, v->swapped ? list.other : list.row, s.cout, v->gout);
    conv_plain_vvor({set_of(list, v->triplets->cells), conv_merge(s, MERGED_WIDTH), s.cin, s.cout,
                        x, g, v->gweight, false, false, true},
        s, pieces.at);
}
