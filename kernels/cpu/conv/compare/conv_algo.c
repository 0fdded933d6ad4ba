/* Calls the algorithm chunk by chunk; begins and ends the sums. */
#include "kernels/cpu/conv/compare/conv_algo_parts.h"

#include <string.h>

void pnet_conv_widen_cell(
    const float *weight, struct pnet_conv_shape s, bool transposed, int64_t k, float *dense)
{
    int cin = s.cin / s.groups, cout = s.cout / s.groups;
    if (s.groups > 1) memset(dense, 0, (size_t)s.cin * (size_t)s.cout * sizeof *dense);
    for (int a = 0; a < s.cin; a++) {
        int first = a / cin * cout;
        float *to = dense + (int64_t)a * s.cout + first;
        if (transposed) {
            for (int b = 0; b < cout; b++) to[b] = weight[(k * cout + b) * s.cin + a];
        } else {
            memcpy(to, weight + (k * cin + a % cin) * s.cout + first, (size_t)cout * sizeof *to);
        }
    }
}

void pnet_conv_narrow_cell(
    const float *dense, int64_t stride, struct pnet_conv_shape s, int64_t k, float *gweight)
{
    int cin = s.cin / s.groups, cout = s.cout / s.groups;
    for (int a = 0; a < s.cin; a++) {
        int first = a / cin * cout;
        float *to = gweight + (k * cin + a % cin) * s.cout + first;
        for (int b = 0; b < cout; b++) to[b] += dense[a * stride + first + b];
    }
}

/* out = bias, or 0, or what is there and the bias. */
static void begin_rows(const struct pnet_mvmr *m)
{
    int width = m->shape.cout;
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < m->triplets->rows; r++) {
        float *out = m->out + r * width;
        for (int c = 0; c < width; c++) out[c] = (m->add ? out[c] : 0) + (m->bias ? m->bias[c] : 0);
    }
}

static void end_rows(const struct pnet_mvmr *m)
{
    if (m->add || m->act == PNET_ACT_NONE) return;
    int64_t elements = m->triplets->rows * m->shape.cout;
#pragma omp parallel for schedule(static)
    for (int64_t e = 0; e < elements; e++) {
        float x = m->out[e];
        if (x < 0) m->out[e] = m->act == PNET_ACT_RELU ? 0 : m->slope * x; /* NaN stays */
    }
}

static void begin_weight(const struct pnet_vvor *v)
{
    struct pnet_conv_shape s = v->shape;
    size_t floats = (size_t)v->triplets->cells * (size_t)(s.cin / s.groups) * (size_t)s.cout;
    if (!v->add) memset(v->gweight, 0, floats * sizeof *v->gweight);
}

/* Triplets of a chunk, with what the algorithm lays out for each. */
static int64_t chunk(
    enum pnet_conv_algo algo, const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    int64_t bytes = 22;
    if (algo == PNET_ALGO_GATHER) bytes += ((int64_t)s.cin + s.cout) * (int64_t)sizeof(float);
    return pnet_conv_chunk(t->count, bytes);
}

static size_t lists_work(int64_t step)
{
    return pnet_align64(pnet_cpu_conv_list_bytes(step)) +
           pnet_align64(pnet_cpu_conv_list_work(step));
}

/* The lists of a set, one after the other: parts of the given one, or made in `lists`. */
struct walk {
    enum pnet_conv_algo algo;
    const struct pnet_triplets *triplets;
    const struct pnet_conv_list *given;
    int64_t first, step;
    char *lists;
};

static struct walk walk_begin(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, const struct pnet_conv_list *given, char **work)
{
    struct walk w = {algo, t, given, 0, chunk(algo, t, s), *work};
    *work += lists_work(w.step);
    /* the listings need nothing but a list */
    if (given && algo != PNET_ALGO_GATHER) w.step = t->count;
    return w;
}

/* False: there are no more. */
static bool walk_next(struct walk *w, struct pnet_conv_list *list)
{
    int64_t first = w->first, left = w->triplets->start[w->triplets->rows] - first;
    if (left <= 0) return false;
    int64_t most = left < w->step ? left : w->step;
    w->first += most;
    if (w->given)
        *list = (struct pnet_conv_list){
            most, NULL, w->given->row + first, w->given->other + first, w->given->cell + first};
    else
        *list = pnet_cpu_conv_list(w->triplets, w->algo, first, most, w->lists,
            w->lists + pnet_align64(pnet_cpu_conv_list_bytes(w->step)));
    return true;
}

/* A transposed weight is turned once, groups and all: W[k] as [cin / groups, cout]. */
static size_t turned_bytes(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    return pnet_align64(
        (size_t)t->cells * (size_t)(s.cin / s.groups) * (size_t)s.cout * sizeof(float));
}

static const float *turned(const struct pnet_mvmr *m, float *to)
{
    if (!m->transposed) return m->weight;
    struct pnet_conv_shape s = m->shape;
    int cin = s.cin / s.groups, cout = s.cout / s.groups;
#pragma omp parallel for schedule(static)
    for (int k = 0; k < m->triplets->cells; k++)
        for (int a = 0; a < cin; a++)
            for (int b = 0; b < s.cout; b++)
                to[((int64_t)k * cin + a) * s.cout + b] =
                    m->weight[((int64_t)k * cout + b % cout) * s.cin + b / cout * cin + a];
    return to;
}

size_t pnet_cpu_mvmr_algo_work(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision)
{
    if (pnet_conv_algo_is_usual(algo)) return pnet_cpu_mvmr_work(t, s, precision);
    if (algo == PNET_ALGO_IM2COL) return 64 + pnet_conv_im2col_mvmr_work(t, s);
    int64_t step = chunk(algo, t, s);
    return 64 + lists_work(step) +
           (algo == PNET_ALGO_GATHER ? pnet_conv_gather_mvmr_work(step, s) : turned_bytes(t, s));
}

void pnet_cpu_mvmr_algo(const struct pnet_mvmr *m, void *work)
{
    char *at = pnet_align64_pointer(work);
    if (m->algo == PNET_ALGO_IM2COL) {
        pnet_conv_im2col_mvmr(m, at);
        return;
    }
    struct walk w = walk_begin(m->algo, m->triplets, m->shape, m->list, &at);
    struct pnet_conv_list list;
    bool gather = m->algo == PNET_ALGO_GATHER;
    const float *weight = gather ? NULL : turned(m, (float *)(void *)at);
    begin_rows(m);
    while (walk_next(&w, &list)) {
        if (gather)
            pnet_conv_gather_mvmr(m, &list, at);
        else
            pnet_conv_listing_mvmr(m, &list, weight);
    }
    end_rows(m);
}

size_t pnet_cpu_vvor_algo_work(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision)
{
    if (pnet_conv_algo_is_usual(algo)) return pnet_cpu_vvor_work(t, s, precision);
    if (algo == PNET_ALGO_IM2COL) return 64 + pnet_conv_im2col_vvor_work(t, s);
    int64_t step = chunk(algo, t, s);
    return 64 + lists_work(step) +
           (algo == PNET_ALGO_GATHER ? pnet_conv_gather_vvor_work(step, s) : 0);
}

void pnet_cpu_vvor_algo(const struct pnet_vvor *v, void *work)
{
    char *at = pnet_align64_pointer(work);
    begin_weight(v);
    if (v->algo == PNET_ALGO_IM2COL) {
        pnet_conv_im2col_vvor(v, at);
        return;
    }
    struct walk w = walk_begin(v->algo, v->triplets, v->shape, v->list, &at);
    struct pnet_conv_list list;
    while (walk_next(&w, &list)) {
        if (v->algo == PNET_ALGO_GATHER)
            pnet_conv_gather_vvor(v, &list, at);
        else
            pnet_conv_listing_vvor(v, &list);
    }
}
