/* Convolution on the caller's arrays. */
#include "library/set.h"

#include "kernels/conv.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#endif

#include <stdlib.h>

/* One of the three sums. */
struct sum {
    const struct pnet_set *set;
    enum pnet_conv_sum_kind kind;
    int32_t in, out; /* channels of the layer */
    struct pnet_conv_options o;
    enum pnet_precision precision;
    enum pnet_storage storage; /* of features and outputs */
};

enum { CHANNEL_LIMIT = 1 << 16 };

static enum pnet_status check_channels(const struct sum *s, struct pnet_error *e)
{
    if (s->in < 1 || s->in > CHANNEL_LIMIT || s->out < 1 || s->out > CHANNEL_LIMIT)
        return pnet_error_set(e, PNET_USAGE, "%d channels in and %d out: expected 1 to %d",
            (int)s->in, (int)s->out, CHANNEL_LIMIT);
    if (s->o.groups < 1 || s->in % s->o.groups || s->out % s->o.groups)
        return pnet_error_set(e, PNET_USAGE, "%d groups do not divide %d channels in and %d out",
            (int)s->o.groups, (int)s->in, (int)s->out);
    return PNET_OK;
}

/* The gradient of the input is the forward sum of the other form, from `out` to `in` channels. */
static struct pnet_conv_shape shape_of(const struct sum *s)
{
    bool back = s->kind == PNET_CONV_GRAD_INPUT;
    return (struct pnet_conv_shape){back ? s->out : s->in, back ? s->in : s->out, s->o.groups};
}

static const struct pnet_triplets *triplets_of(const struct sum *s)
{
    return s->kind == PNET_CONV_GRAD_INPUT ? &s->set->by_in.triplets : &s->set->by_out.triplets;
}

static size_t work_on_gpu(const struct sum *s, enum pnet_precision precision)
{
    return s->kind == PNET_CONV_GRAD_WEIGHT
               ? pnet_cuda_vvor_work(triplets_of(s), shape_of(s), precision)
               : pnet_cuda_mvmr_work(triplets_of(s), shape_of(s), precision);
}

/* On a GPU for every precision, so that a program asks once. */
static size_t work_of(const struct sum *s)
{
    size_t most = 0;
    if (!pnet_set_on_gpu(s->set))
        return s->kind == PNET_CONV_GRAD_WEIGHT
                   ? pnet_cpu_vvor_work(triplets_of(s), shape_of(s), PNET_FP32)
                   : pnet_cpu_mvmr_work(triplets_of(s), shape_of(s), PNET_FP32);
    for (int p = PNET_FP32; p <= PNET_FP16; p++) {
        size_t bytes = work_on_gpu(s, (enum pnet_precision)p);
        if (bytes > most) most = bytes;
    }
    return most;
}

enum pnet_status pnet_conv_workspace(const struct pnet_set *set, enum pnet_conv_sum_kind kind,
    int32_t in, int32_t out, int32_t groups, size_t *bytes, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SET, set), PNET_A(ANY, bytes));
    struct sum s = {.set = set, .kind = kind, .in = in, .out = out, .o = {.groups = groups}};
    if (!groups) s.o.groups = 1;
    if ((int)kind < PNET_CONV_FORWARD || kind > PNET_CONV_GRAD_WEIGHT)
        return pnet_error_set(
            e, PNET_USAGE, "sum %d: expected a value of enum pnet_conv_sum_kind", (int)kind);
    enum pnet_status st = check_channels(&s, e);
    if (!st) *bytes = work_of(&s);
    return st;
}

/* The three matrices of a sum; one of them is the result. */
struct matrices {
    const struct pnet_array *features; /* of the input, or their gradient */
    const struct pnet_array *weights;  /* or their gradient */
    const struct pnet_array *outputs;  /* or their gradient */
};

static int32_t channels(const struct pnet_array *a)
{
    return a->width > 0 && a->width <= CHANNEL_LIMIT ? (int32_t)a->width : 0;
}

/* Sets in what features are stored, and the precision of products. */
static enum pnet_status take_types(
    struct sum *s, const char *const names[3], const struct matrices *m, struct pnet_error *e)
{
    enum pnet_products products = s->o.precision;
    bool gpu = pnet_set_on_gpu(s->set);
    enum pnet_dtype of = m->features->dtype, to = m->outputs->dtype;
    if ((int)products < PNET_PRODUCTS_AS_STORED || products > PNET_PRODUCTS_FP16)
        return pnet_error_set(
            e, PNET_USAGE, "precision %d: expected a value of enum pnet_products", (int)products);
    if (!gpu && products > PNET_PRODUCTS_FP32)
        return pnet_error_set(
            e, PNET_USAGE, "precision: the CPU computes in fp32; the others are for a GPU");
    enum pnet_status st = gpu ? pnet_home_storage(names[0], of, &s->storage, e) : PNET_OK;
    if (st) return st;
    if (gpu && to != of)
        return pnet_error_set(e, PNET_USAGE, "%s: dtype %d, but %s has %d: both are stored alike",
            names[2], (int)to, names[0], (int)of);
    enum pnet_precision stored = s->storage == PNET_STORE_F32    ? PNET_FP32
                                 : s->storage == PNET_STORE_BF16 ? PNET_BF16
                                                                 : PNET_FP16;
    s->precision = products ? (enum pnet_precision)(products - PNET_PRODUCTS_FP32) : stored;
    if (s->storage == PNET_STORE_F32 || s->precision == stored) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "precision %d: %s in 16 bits are multiplied as they are stored", (int)products, names[0]);
}

/* Arrays of a set on a GPU lie there. */
static enum pnet_status check_places(
    const struct sum *s, const char *const names[3], const struct matrices *m, struct pnet_error *e)
{
    const struct pnet_home *p = &s->set->home;
    const struct pnet_array *const a[] = {m->features, m->weights, m->outputs};
    enum pnet_status st = PNET_OK;
    if (!pnet_set_on_gpu(s->set)) return PNET_OK;
    for (int i = 0; i < 3 && !st; i++)
        st = pnet_home_check(p, names[i], a[i]->data, PNET_HOME_ALIGNMENT, e);
    if (!st) st = pnet_home_check(p, "bias", s->o.bias, PNET_HOME_ALIGNMENT, e);
    return st ? st : pnet_home_check(p, "workspace", s->o.workspace, PNET_HOME_ALIGNMENT, e);
}

/* Sets *s of a call; the caller checks arrays by their names. */
static enum pnet_status begin(struct sum *s, const struct pnet_conv_options *o,
    const struct matrices *m, struct pnet_error *e)
{
    static const char *const names[][3] = {[PNET_CONV_FORWARD] = {"features", "weights", "result"},
        [PNET_CONV_GRAD_INPUT] = {"result", "weights", "gradient"},
        [PNET_CONV_GRAD_WEIGHT] = {"features", "result", "gradient"}};
    enum pnet_status st = pnet_library_take("pnet_conv_options", o, &s->o, sizeof s->o, e);
    if (st) return st;
    if (!s->o.groups) s->o.groups = 1;
    s->in = channels(m->features);
    s->out = channels(m->outputs);
    st = check_channels(s, e);
    if (st) return st;
    const char *const *name = names[s->kind];
    st = take_types(s, name, m, e);
    if (st) return st;
    enum pnet_dtype rows = pnet_set_on_gpu(s->set) ? m->features->dtype : PNET_DTYPE_F32;
    int64_t weights = (int64_t)s->set->by_out.triplets.cells * (s->in / s->o.groups);
    st = pnet_library_check_matrix(name[0], m->features, rows, s->set->in.rows, s->in, e);
    if (!st)
        st = pnet_library_check_matrix(name[1], m->weights, PNET_DTYPE_F32, weights, s->out, e);
    if (!st) st = pnet_library_check_matrix(name[2], m->outputs, rows, s->set->out.rows, s->out, e);
    if (!st && s->o.bias && s->kind != PNET_CONV_FORWARD)
        st = pnet_error_set(e, PNET_USAGE, "bias: the forward sum alone has one");
    return st ? st : check_places(s, name, m, e);
}

/* The caller's workspace, or *own to free. */
static void *workspace(const struct sum *s, void **own, struct pnet_error *e)
{
    return pnet_library_workspace(
        s->o.workspace, s->o.workspace_bytes, work_of(s), "pnet_conv_workspace", own, e);
}

static struct pnet_array as_array(const struct pnet_array_out *a)
{
    return (struct pnet_array){a->data, a->dtype, a->rows, a->width, a->stride};
}

#ifdef PNET_CUDA_BUILT
/* Runs one of the two on the set's GPU; the other one is NULL. Where there is nothing to add up, kernels are not asked. */
static enum pnet_status run_on_gpu(const struct sum *s, const struct pnet_mvmr *rows,
    const struct pnet_vvor *weights, size_t weight_bytes, struct pnet_error *e)
{
    struct pnet_running r = {.home = &s->set->home, .stream = s->o.stream, .e = e};
    enum pnet_status st = pnet_running_begin(&r, s->o.workspace, s->o.workspace_bytes,
        work_on_gpu(s, s->precision), "pnet_conv_workspace");
    if (st) return st;
    if (rows && rows->triplets->rows)
        pnet_cuda_mvmr(rows, r.work);
    else if (weights && weights->triplets->count)
        pnet_cuda_vvor(weights, r.work);
    else if (weights && !weights->add)
        pnet_cuda_fill_bytes(weights->gweight, 0, weight_bytes);
    return pnet_running_end(&r, st);
}
#else
/* No set lies on a GPU. */
static enum pnet_status run_on_gpu(const struct sum *s, const struct pnet_mvmr *rows,
    const struct pnet_vvor *weights, size_t weight_bytes, struct pnet_error *e)
{
    (void)rows;
    (void)weights;
    (void)weight_bytes;
    return pnet_device_check(s->set->home.device, e);
}
#endif

/* Forward, or the gradient of the input: rows into rows. */
static enum pnet_status run_rows(const struct sum *s, const struct pnet_array *from,
    const struct pnet_array *weights, const struct pnet_array_out *result, struct pnet_error *e)
{
    struct pnet_mvmr m = {.triplets = triplets_of(s),
        .shape = shape_of(s),
        .in = from->data,
        .weight = weights->data,
        .bias = s->o.bias,
        .out = result->data,
        .transposed = s->kind == PNET_CONV_GRAD_INPUT,
        .add = s->o.accumulate != 0,
        .precision = s->precision,
        .storage = s->storage};
    if (pnet_set_on_gpu(s->set)) return run_on_gpu(s, &m, NULL, 0, e);
    void *own, *work = workspace(s, &own, e);
    if (!work) return e->status;
    pnet_cpu_mvmr(&m, work);
    free(own);
    return PNET_OK;
}

enum pnet_status pnet_conv_forward(const struct pnet_set *set, const struct pnet_array *features,
    const struct pnet_array *weights, const struct pnet_conv_options *o,
    const struct pnet_array_out *result, struct pnet_error *e)
{
    PNET_REQUIRE(
        e, PNET_A(SET, set), PNET_A(ANY, features), PNET_A(ANY, weights), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    struct sum s = {.set = set, .kind = PNET_CONV_FORWARD};
    struct pnet_array out = as_array(result);
    enum pnet_status st = begin(&s, o, &(struct matrices){features, weights, &out}, e);
    return st ? st : run_rows(&s, features, weights, result, e);
}

enum pnet_status pnet_conv_grad_input(const struct pnet_set *set, const struct pnet_array *gradient,
    const struct pnet_array *weights, const struct pnet_conv_options *o,
    const struct pnet_array_out *result, struct pnet_error *e)
{
    PNET_REQUIRE(
        e, PNET_A(SET, set), PNET_A(ANY, gradient), PNET_A(ANY, weights), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    struct sum s = {.set = set, .kind = PNET_CONV_GRAD_INPUT};
    struct pnet_array out = as_array(result);
    enum pnet_status st = begin(&s, o, &(struct matrices){&out, weights, gradient}, e);
    return st ? st : run_rows(&s, gradient, weights, result, e);
}

enum pnet_status pnet_conv_grad_weight(const struct pnet_set *set,
    const struct pnet_array *features, const struct pnet_array *gradient,
    const struct pnet_conv_options *o, const struct pnet_array_out *result, struct pnet_error *e)
{
    PNET_REQUIRE(
        e, PNET_A(SET, set), PNET_A(ANY, features), PNET_A(ANY, gradient), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    struct sum s = {.set = set, .kind = PNET_CONV_GRAD_WEIGHT};
    struct pnet_array out = as_array(result);
    enum pnet_status st = begin(&s, o, &(struct matrices){features, &out, gradient}, e);
    if (st) return st;
    struct pnet_vvor v = {.triplets = triplets_of(&s),
        .shape = shape_of(&s),
        .in = features->data,
        .gout = gradient->data,
        .gweight = result->data,
        .add = s.o.accumulate != 0,
        .precision = s.precision,
        .storage = s.storage};
    size_t bytes = (size_t)(result->rows * result->width) * sizeof(float);
    if (pnet_set_on_gpu(set)) return run_on_gpu(&s, NULL, &v, bytes, e);
    void *own, *work = workspace(&s, &own, e);
    if (!work) return e->status;
    pnet_cpu_vvor(&v, work);
    free(own);
    return PNET_OK;
}
