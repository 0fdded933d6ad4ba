/* Pools over a set on the caller's arrays. Rows of a set with their triplets are what kernels/pool.h calls cells and their rows,
   but for a fine row that may lie in several cells. */
#include "library/array.h"
#include "library/set.h"

#include "kernels/pool.h"

#include <stdlib.h>
#include <string.h>

enum { CHANNEL_LIMIT = 1 << 16, BLOCK = 16 /* channels */ };

static enum pnet_status check_pool(enum pnet_pooling kind, int64_t channels, struct pnet_error *e)
{
    if ((int)kind < PNET_POOLING_MAX || kind > PNET_POOLING_SUM)
        return pnet_error_set(
            e, PNET_USAGE, "kind %d: expected a value of enum pnet_pooling", (int)kind);
    if (channels < 1 || channels > CHANNEL_LIMIT)
        return pnet_error_set(
            e, PNET_USAGE, "%lld channels: expected 1 to %d", (long long)channels, CHANNEL_LIMIT);
    return PNET_OK;
}

/* The rows of one side, each with those that it meets. */
static struct pnet_cells cells_of(const struct pnet_triplets *t)
{
    return (struct pnet_cells){.fine_rows = {.most = t->count},
        .coarse_rows = {.most = t->rows},
        .start = t->start,
        .child = t->other,
        .row = t->row};
}

/* result[row] = the sum, or mean, of x[other]. */
static enum pnet_status add_up(const struct pnet_triplets *t, int32_t channels, const float *x,
    bool mean, float *result, struct pnet_error *e)
{
    struct pnet_cells cells = cells_of(t);
    void *work = pnet_library_room((int64_t)pnet_cpu_cells_sum_work(channels), 1, e);
    if (!work) return PNET_NO_MEMORY;
    pnet_cpu_cells_sum(&cells, channels, x, mean, false, result, work);
    free(work);
    return PNET_OK;
}

/* A call. On a GPU features may be stored in 16 bits. */
struct pool {
    const struct pnet_set *set;
    struct pnet_pool_arrays a;
    enum pnet_dtype dtype; /* of features */
};

/* Checks what both directions have: `from`, by its name, becomes `to`. */
static enum pnet_status begin(struct pool *p, const struct pnet_pool_options *options,
    const char *name, const struct pnet_array *from, int64_t from_rows,
    const struct pnet_array_out *to, int64_t to_rows, struct pnet_error *e)
{
    struct pnet_pool_options o;
    int64_t channels = from->width;
    enum pnet_status st = pnet_library_take("pnet_pool_options", options, &o, sizeof o, e);
    if (!st) st = check_pool(p->a.kind, channels, e);
    if (!st && pnet_set_on_gpu(p->set)) {
        p->dtype = from->dtype;
        st = pnet_home_storage(name, p->dtype, &p->a.storage, e);
    }
    if (!st) st = pnet_library_check_matrix(name, from, p->dtype, from_rows, channels, e);
    if (!st) st = pnet_library_check_filled("result", to, p->dtype, to_rows, channels, e);
    p->a.stream = st ? NULL : o.stream;
    p->a.channels = (int32_t)channels;
    return st;
}

/* Arrays of a set on a GPU lie there; the last one may be NULL. */
static enum pnet_status check_places(const struct pool *p, const char *name, const void *from,
    const void *to, const void *argmax, struct pnet_error *e)
{
    const struct pnet_home *home = &p->set->home;
    if (!pnet_set_on_gpu(p->set)) return PNET_OK;
    enum pnet_status st = pnet_home_check(home, name, from, PNET_HOME_ALIGNMENT, e);
    if (!st) st = pnet_home_check(home, "result", to, PNET_HOME_ALIGNMENT, e);
    return st ? st : pnet_home_check(home, "argmax", argmax, PNET_HOME_ALIGNMENT, e);
}

enum pnet_status pnet_pool_forward(const struct pnet_set *set, enum pnet_pooling kind,
    const struct pnet_array *features, const struct pnet_pool_options *o,
    const struct pnet_array_out *result, const struct pnet_array_out *argmax, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SET, set), PNET_A(ANY, features), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    const struct pnet_triplets *t = &set->by_out.triplets;
    struct pool p = {.set = set, .a = {.kind = kind}};
    int32_t channels;
    int32_t *from = argmax ? argmax->data : NULL;
    enum pnet_status st =
        begin(&p, o, "features", features, set->in.rows, result, set->out.rows, e);
    if (!st && argmax && kind != PNET_POOLING_MAX)
        st = pnet_error_set(e, PNET_USAGE, "argmax: the maximum alone has one");
    channels = p.a.channels;
    if (!st && argmax)
        st =
            pnet_library_check_filled("argmax", argmax, PNET_DTYPE_I32, set->out.rows, channels, e);
    if (!st) st = check_places(&p, "features", features->data, result->data, from, e);
    if (st) return st;
    if (pnet_set_on_gpu(set))
        return PNET_ON_GPU(&set->home,
            pnet_pool_forward_on_gpu(set, &p.a, features->data, result->data, from, e), e);
    if (kind != PNET_POOLING_MAX)
        return add_up(t, channels, features->data, kind == PNET_POOLING_MEAN, result->data, e);
    struct pnet_cells cells = cells_of(t);
    pnet_cpu_cells_max(&cells, channels, features->data, result->data, from);
    return PNET_OK;
}

static enum pnet_status check_argmax(
    const struct pnet_set *set, const struct pnet_array *argmax, struct pnet_error *e)
{
    const int32_t *row = argmax->data;
    int64_t count = argmax->rows * argmax->width;
    for (int64_t n = 0; n < count; n++)
        if (row[n] < -1 || row[n] >= set->in.rows)
            return pnet_error_set(e, PNET_BAD_DATA, "argmax: row %lld: %d is none of -1 .. %lld",
                (long long)(n / argmax->width), (int)row[n], (long long)set->in.rows - 1);
    return PNET_OK;
}

/* Every number goes to the row that it came from, in the order of the results. Threads share channels. */
static void give_back(
    const struct pnet_array *gradient, const int32_t *argmax, const struct pnet_array_out *result)
{
    int64_t width = gradient->width, blocks = (width + BLOCK - 1) / BLOCK;
    const float *g = gradient->data;
    float *to = result->data;
    if (result->rows) memset(to, 0, (size_t)(result->rows * width) * sizeof *to);
#pragma omp parallel for schedule(static) if (blocks > 1 && gradient->rows > 1024)
    for (int64_t block = 0; block < blocks; block++) {
        int64_t first = block * BLOCK, end = first + BLOCK < width ? first + BLOCK : width;
        for (int64_t row = 0; row < gradient->rows; row++)
            for (int64_t c = first; c < end; c++) {
                int64_t at = row * width + c;
                if (argmax[at] >= 0) to[argmax[at] * width + c] += g[at];
            }
    }
}

/* Divides the gradient of each mean by how many it is the mean of. */
static void divide(const struct pnet_set *set, const struct pnet_array *gradient, float *to)
{
    const struct pnet_triplets *t = &set->by_out.triplets;
    const float *g = gradient->data;
    for (int64_t p = 0; p < gradient->rows; p++) {
        int64_t count = t->start[p + 1] - t->start[p], row = pnet_triplets_row(t, p);
        for (int64_t c = 0; c < gradient->width; c++) {
            int64_t at = row * gradient->width + c;
            to[at] = count ? g[at] / (float)count : 0;
        }
    }
}

/* The gradient of means. */
static enum pnet_status share_out(const struct pnet_set *set, const struct pnet_array *gradient,
    float *result, struct pnet_error *e)
{
    float *each = pnet_library_room(set->out.rows * gradient->width, sizeof *each, e);
    if (!each) return PNET_NO_MEMORY;
    divide(set, gradient, each);
    enum pnet_status st =
        add_up(&set->by_in.triplets, (int32_t)gradient->width, each, false, result, e);
    free(each);
    return st;
}

enum pnet_status pnet_pool_backward(const struct pnet_set *set, enum pnet_pooling kind,
    const struct pnet_array *gradient, const struct pnet_array *argmax,
    const struct pnet_pool_options *o, const struct pnet_array_out *result, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SET, set), PNET_A(ANY, gradient), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    struct pool p = {.set = set, .a = {.kind = kind}};
    const int32_t *from = argmax ? argmax->data : NULL;
    bool gpu = pnet_set_on_gpu(set);
    enum pnet_status st =
        begin(&p, o, "gradient", gradient, set->out.rows, result, set->in.rows, e);
    if (!st && !argmax != (kind != PNET_POOLING_MAX))
        st = pnet_error_set(e, PNET_USAGE, "argmax: the maximum has one, and no other kind");
    if (!st && argmax)
        st = pnet_library_check_matrix(
            "argmax", argmax, PNET_DTYPE_I32, set->out.rows, gradient->width, e);
    if (!st && argmax && !gpu) st = check_argmax(set, argmax, e);
    if (!st) st = check_places(&p, "gradient", gradient->data, result->data, from, e);
    if (st) return st;
    if (gpu)
        return PNET_ON_GPU(&set->home,
            pnet_pool_backward_on_gpu(set, &p.a, gradient->data, from, result->data, e), e);
    if (kind == PNET_POOLING_SUM)
        return add_up(&set->by_in.triplets, p.a.channels, gradient->data, false, result->data, e);
    if (kind == PNET_POOLING_MEAN) return share_out(set, gradient, result->data, e);
    if (argmax) give_back(gradient, argmax->data, result);
    return PNET_OK;
}
