/* Convolution on the caller's arrays. */
#include "library/set.h"

#include "kernels/conv.h"

#include <stdlib.h>

/* One of the three sums. */
struct sum {
    const struct pnet_set *set;
    enum pnet_conv_sum_kind kind;
    int32_t in, out; /* channels of the layer */
    struct pnet_conv_options o;
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

static const struct pnet_set_form *form_of(const struct sum *s)
{
    return s->kind == PNET_CONV_GRAD_INPUT ? &s->set->by_in : &s->set->by_out;
}

static const struct pnet_triplets *triplets_of(const struct sum *s)
{
    return &form_of(s)->triplets;
}

static size_t work_of(const struct sum *s)
{
    return s->kind == PNET_CONV_GRAD_WEIGHT
               ? pnet_cpu_vvor_work(triplets_of(s), shape_of(s), PNET_FP32)
               : pnet_cpu_mvmr_work(triplets_of(s), shape_of(s), PNET_FP32);
}

enum pnet_status pnet_conv_workspace(const struct pnet_set *set, enum pnet_conv_sum_kind kind,
    int32_t in, int32_t out, int32_t groups, size_t *bytes, struct pnet_error *e)
{
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
    int64_t weights = (int64_t)s->set->by_out.triplets.cells * (s->in / s->o.groups);
    st = pnet_library_check_matrix(name[0], m->features, PNET_DTYPE_F32, s->set->in.rows, s->in, e);
    if (!st)
        st = pnet_library_check_matrix(name[1], m->weights, PNET_DTYPE_F32, weights, s->out, e);
    if (!st)
        st = pnet_library_check_matrix(
            name[2], m->outputs, PNET_DTYPE_F32, s->set->out.rows, s->out, e);
    if (!st && s->o.bias && s->kind != PNET_CONV_FORWARD)
        st = pnet_error_set(e, PNET_USAGE, "bias: the forward sum alone has one");
    return st;
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

/* Forward, or the gradient of the input: rows into rows. */
static enum pnet_status run_rows(const struct sum *s, const struct pnet_array *from,
    const struct pnet_array *weights, const struct pnet_array_out *result, struct pnet_error *e)
{
    void *own, *work = workspace(s, &own, e);
    if (!work) return e->status;
    struct pnet_mvmr m = {.triplets = triplets_of(s),
        .sequence = form_of(s)->sequence,
        .shape = shape_of(s),
        .in = from->data,
        .weight = weights->data,
        .bias = s->o.bias,
        .out = result->data,
        .transposed = s->kind == PNET_CONV_GRAD_INPUT,
        .add = s->o.accumulate != 0};
    pnet_cpu_mvmr(&m, work);
    free(own);
    return PNET_OK;
}

enum pnet_status pnet_conv_forward(const struct pnet_set *set, const struct pnet_array *features,
    const struct pnet_array *weights, const struct pnet_conv_options *o,
    const struct pnet_array_out *result, struct pnet_error *e)
{
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
    PNET_OWN_ERROR(e);
    struct sum s = {.set = set, .kind = PNET_CONV_GRAD_WEIGHT};
    struct pnet_array out = as_array(result);
    enum pnet_status st = begin(&s, o, &(struct matrices){features, &out, gradient}, e);
    if (st) return st;
    void *own, *work = workspace(&s, &own, e);
    if (!work) return e->status;
    struct pnet_vvor v = {.triplets = triplets_of(&s),
        .sequence = form_of(&s)->sequence,
        .shape = shape_of(&s),
        .in = features->data,
        .gout = gradient->data,
        .gweight = result->data,
        .add = s.o.accumulate != 0};
    pnet_cpu_vvor(&v, work);
    free(own);
    return PNET_OK;
}
