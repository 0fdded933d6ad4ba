/* Points in buckets along an order, and attention among them. */
#include "library/attend.h"

#include "kernels/geometry_stage.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void pnet_buckets_free(struct pnet_buckets *b)
{
    if (!b || !pnet_handle_is(b, PNET_CLASS_BUCKETS)) return;
    if (pnet_buckets_on_gpu(b)) {
        pnet_home_give(&b->home, b->home.stream, &b->rooms);
    } else {
        free(b->splits);
        free(b->order);
    }
    pnet_handle_free(b);
}

static enum pnet_status check_number(
    const char *name, int32_t value, int32_t low, int32_t high, struct pnet_error *e)
{
    if (value >= low && value <= high) return PNET_OK;
    return pnet_error_set(
        e, PNET_USAGE, "%s %d: expected %d to %d", name, (int)value, (int)low, (int)high);
}

static enum pnet_status take_options(const struct pnet_points *p, struct pnet_buckets_options *o,
    struct pnet_scopes *s, struct pnet_error *e)
{
    *s = (struct pnet_scopes){.bucket = o->bucket ? o->bucket : 512,
        .scope = o->scope ? o->scope : 8,
        .shift = o->shift,
        .stride = o->stride ? o->stride : 1,
        .wrap = o->wrap != 0};
    enum pnet_status st = check_number("bucket", s->bucket, 16, 4096, e);
    if (!st && s->bucket % 16)
        st = pnet_error_set(e, PNET_USAGE, "bucket %d: expected a multiple of 16", (int)s->bucket);
    if (!st) st = check_number("scope", s->scope, 1, 64, e);
    if (!st) st = check_number("shift", s->shift, 0, 1000000, e);
    if (!st) st = check_number("stride", s->stride, 1, 8, e);
    if (st) return st;
    if ((int)o->order < PNET_BUCKETS_Z || o->order > PNET_BUCKETS_Z_MOD)
        return pnet_error_set(
            e, PNET_USAGE, "order %d: expected a value of enum pnet_buckets_order", (int)o->order);
    if (o->cell != 0 && !(o->cell >= 1e-6 && o->cell <= 1e5))
        return pnet_error_set(e, PNET_USAGE, "cell %g: expected 1e-6 to 1e5 m", o->cell);
    if (o->order != PNET_BUCKETS_Z && o->cell == 0 && !p->finer)
        return pnet_error_set(e, PNET_USAGE,
            "cell: it is needed, as these points have no cells to make the order of");
    return PNET_OK;
}

enum pnet_status pnet_buckets_beyond(int64_t count, double cell, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA,
        "%lld points lie beyond the %d voxels of %g m that an order reaches from the origin",
        (long long)count, PNET_KEY_BIAS, cell);
}

/* Sets the order inside. `o->order` has the numbers of enum pnet_order. */
static enum pnet_status find_order(const struct pnet_points *p,
    const struct pnet_buckets_options *o, struct pnet_buckets *b, struct pnet_error *e)
{
    struct pnet_grid grid = p->level.grid;
    size_t bytes = pnet_cpu_bucket_order_work(&p->level), keys = (size_t)b->rows * sizeof(uint64_t);
    int64_t outside = 0;
    if (o->order == PNET_BUCKETS_Z) {
        for (int64_t i = 0; i < b->rows; i++) b->order[i] = (int32_t)i;
        return PNET_OK;
    }
    void *work = pnet_library_room((int64_t)(bytes > keys ? bytes : keys), 1, e);
    if (!work) return PNET_NO_MEMORY;
    if (o->cell > 0) {
        grid = (struct pnet_grid){(float)o->cell, (float)(1 / o->cell), 1};
        outside = pnet_cpu_keys(b->rows, p->xyz, grid, work);
    }
    if (!outside)
        pnet_cpu_bucket_order(
            &p->level, grid, (enum pnet_order)o->order, b->scopes.bucket, b->order, work);
    free(work);
    return outside ? pnet_buckets_beyond(outside, o->cell, e) : PNET_OK;
}

static enum pnet_status make(const struct pnet_points *p, const struct pnet_buckets_options *o,
    struct pnet_buckets *b, struct pnet_error *e)
{
    const int32_t *rows = pnet_points_order(p);
    b->rows = p->level.rows;
    b->samples = p->level.samples;
    b->home = p->home;
    if (pnet_buckets_on_gpu(b))
        return PNET_ON_GPU(&b->home, pnet_buckets_find_on_gpu(b, p, o, e), e);
    b->splits = pnet_library_room((int64_t)b->samples + 1, sizeof *b->splits, e);
    if (!b->splits) return PNET_NO_MEMORY;
    memcpy(b->splits, p->splits, ((size_t)b->samples + 1) * sizeof *b->splits);
    if (o->order == PNET_BUCKETS_Z && !rows) return PNET_OK;
    b->order = pnet_library_room(b->rows, sizeof *b->order, e);
    if (!b->order) return PNET_NO_MEMORY;
    enum pnet_status st = find_order(p, o, b, e);
    if (!st) pnet_points_name(b->rows, rows, b->order);
    return st;
}

enum pnet_status pnet_buckets_new(const struct pnet_points *points,
    const struct pnet_buckets_options *options, struct pnet_buckets **buckets, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, buckets);
    PNET_REQUIRE(e, PNET_A(POINTS, points));
    PNET_OWN_ERROR(e);
    struct pnet_buckets_options o;
    struct pnet_scopes scopes;
    enum pnet_status st = pnet_library_take("pnet_buckets_options", options, &o, sizeof o, e);
    if (!st) st = take_options(points, &o, &scopes, e);
    if (st) return st;
    struct pnet_buckets *b = pnet_handle_new(PNET_CLASS_BUCKETS, sizeof *b, e);
    if (!b) return PNET_NO_MEMORY;
    b->scopes = scopes;
    st = make(points, &o, b, e);
    if (st)
        pnet_buckets_free(b);
    else
        *buckets = b;
    return st;
}

static struct pnet_attend plain(const struct pnet_buckets *b)
{
    return (struct pnet_attend){.rows = pnet_count(b->rows),
        .samples = b->samples,
        .splits = b->splits,
        .order = b->order,
        .scopes = b->scopes,
        .precision = PNET_FP32};
}

/* Sets what a call has of its options, and of the width of qkv. */
static enum pnet_status take_heads(
    struct pnet_attend *a, const struct pnet_attend_options *o, int64_t width, struct pnet_error *e)
{
    int32_t heads = o->heads ? o->heads : 1;
    int64_t channels = width / 3, each = heads > 0 ? channels / heads : 0;
    if (heads < 1 || heads > 4096)
        return pnet_error_set(e, PNET_USAGE, "%d heads: expected 1 to 4096", (int)heads);
    if (width % 3 || channels % heads)
        return pnet_error_set(e, PNET_USAGE,
            "qkv: width %lld, expected queries, keys and values for %d heads", (long long)width,
            (int)heads);
    if (each != 8 && each != 16 && each != 32 && each != 64 && each != 128)
        return pnet_error_set(e, PNET_USAGE,
            "a head has %lld channels: 8, 16, 32, 64 or 128 are possible", (long long)each);
    if (!(fabs(o->scale) <= FLT_MAX))
        return pnet_error_set(e, PNET_USAGE, "scale %g: expected a finite float32", o->scale);
    a->heads = heads;
    a->width = (int32_t)each;
    a->scale = (float)(o->scale != 0 ? o->scale : 1 / sqrt((double)channels / heads));
    return PNET_OK;
}

/* On a GPU for features stored in either size, so that a program asks once. */
enum pnet_status pnet_attend_workspace(const struct pnet_buckets *buckets, int backward,
    int32_t heads, int32_t channels, size_t *bytes, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(BUCKETS, buckets), PNET_A(ANY, bytes));
    struct pnet_attend a = plain(buckets);
    const struct pnet_attend_options o = {.heads = heads};
    enum pnet_status st = take_heads(&a, &o, 3 * (int64_t)channels, e);
    if (st) return st;
    if (!pnet_buckets_on_gpu(buckets)) {
        *bytes = pnet_cpu_attend_work(&a, backward != 0);
        return PNET_OK;
    }
    *bytes = pnet_cuda_attend_work(&a, backward != 0);
    a.rows.storage = PNET_STORE_BF16;
    size_t of_short = pnet_cuda_attend_work(&a, backward != 0);
    if (of_short > *bytes) *bytes = of_short;
    return PNET_OK;
}

/* Checks what both directions have. Sets *dtype to that of features. */
static enum pnet_status begin(struct pnet_attend_call *c, const struct pnet_buckets *b,
    const struct pnet_array *qkv, const struct pnet_attend_options *given, enum pnet_dtype *dtype,
    struct pnet_error *e)
{
    bool gpu = pnet_buckets_on_gpu(b);
    *dtype = gpu ? qkv->dtype : PNET_DTYPE_F32;
    c->a = plain(b);
    c->qkv = qkv->data;
    enum pnet_status st = pnet_library_take("pnet_attend_options", given, &c->o, sizeof c->o, e);
    if (!st) st = take_heads(&c->a, &c->o, qkv->width, e);
    if (!st) st = pnet_home_storage("qkv", *dtype, &c->a.rows.storage, e);
    if (!st) st = pnet_library_check_matrix("qkv", qkv, *dtype, b->rows, qkv->width, e);
    if (st) return st;
    c->bytes =
        gpu ? pnet_cuda_attend_work(&c->a, c->backward) : pnet_cpu_attend_work(&c->a, c->backward);
    return PNET_OK;
}

/* Arrays of buckets on a GPU lie there. */
static enum pnet_status check_places(
    const struct pnet_attend_call *c, const struct pnet_buckets *b, struct pnet_error *e)
{
    const char *const names[] = {"qkv", "out", "gradient", "result", "log_sum", "workspace"};
    const void *const places[] = {
        c->qkv, c->out, c->gradient, c->result, c->o.log_sum, c->o.workspace};
    enum pnet_status st = PNET_OK;
    if (!pnet_buckets_on_gpu(b)) return PNET_OK;
    for (int i = 0; i < 6 && !st; i++)
        st = pnet_home_check(&b->home, names[i], places[i], PNET_HOME_ALIGNMENT, e);
    return st;
}

static enum pnet_status run(
    const struct pnet_attend_call *c, const struct pnet_buckets *b, struct pnet_error *e)
{
    const struct pnet_attend_options *o = &c->o;
    if (pnet_buckets_on_gpu(b)) return PNET_ON_GPU(&b->home, pnet_attend_on_gpu(b, c, e), e);
    void *own, *work = pnet_library_workspace(
                   o->workspace, o->workspace_bytes, c->bytes, "pnet_attend_workspace", &own, e);
    if (!work) return e->status;
    if (c->backward)
        pnet_cpu_attend_backward(
            &c->a, c->qkv, c->out, o->log_sum, c->gradient, o->accumulate != 0, c->result, work);
    else
        pnet_cpu_attend(&c->a, c->qkv, c->result, o->log_sum, work);
    free(own);
    return PNET_OK;
}

enum pnet_status pnet_attend_forward(const struct pnet_buckets *buckets,
    const struct pnet_array *qkv, const struct pnet_attend_options *options,
    const struct pnet_array_out *result, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(BUCKETS, buckets), PNET_A(ANY, qkv), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    struct pnet_attend_call c = {.result = result->data};
    enum pnet_dtype dtype;
    enum pnet_status st = begin(&c, buckets, qkv, options, &dtype, e);
    if (!st)
        st = pnet_library_check_filled("result", result, dtype, buckets->rows, qkv->width / 3, e);
    if (!st && c.o.accumulate)
        st = pnet_error_set(e, PNET_USAGE, "accumulate: the backward alone has it");
    if (!st) st = check_places(&c, buckets, e);
    return st ? st : run(&c, buckets, e);
}

enum pnet_status pnet_attend_backward(const struct pnet_buckets *buckets,
    const struct pnet_array *qkv, const struct pnet_array *out, const struct pnet_array *gradient,
    const struct pnet_attend_options *options, const struct pnet_array_out *result,
    struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(BUCKETS, buckets), PNET_A(ANY, qkv), PNET_A(ANY, out),
        PNET_A(ANY, gradient), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    struct pnet_attend_call c = {
        .backward = true, .out = out->data, .gradient = gradient->data, .result = result->data};
    enum pnet_dtype dtype;
    int64_t rows = buckets->rows, width = qkv->width / 3;
    enum pnet_status st = begin(&c, buckets, qkv, options, &dtype, e);
    if (!st) st = pnet_library_check_matrix("out", out, dtype, rows, width, e);
    if (!st) st = pnet_library_check_matrix("gradient", gradient, dtype, rows, width, e);
    if (!st) st = pnet_library_check_filled("result", result, dtype, rows, qkv->width, e);
    if (!st && !c.o.log_sum && rows)
        st = pnet_error_set(e, PNET_USAGE, "log_sum: the gradient needs that of the forward");
    if (!st) st = check_places(&c, buckets, e);
    return st ? st : run(&c, buckets, e);
}
