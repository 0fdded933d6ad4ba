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
        .child = t->other};
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

enum pnet_status pnet_pool_forward(const struct pnet_set *set, enum pnet_pooling kind,
    const struct pnet_array *features, const struct pnet_array_out *result,
    const struct pnet_array_out *argmax, struct pnet_error *e)
{
    PNET_OWN_ERROR(e);
    const struct pnet_triplets *t = &set->by_out.triplets;
    int64_t channels = features->width;
    enum pnet_status st = check_pool(kind, channels, e);
    if (!st) st = pnet_set_check_cpu(set, "pools", e);
    if (!st)
        st = pnet_library_check_matrix(
            "features", features, PNET_DTYPE_F32, set->in.rows, channels, e);
    if (!st)
        st =
            pnet_library_check_filled("result", result, PNET_DTYPE_F32, set->out.rows, channels, e);
    if (!st && argmax && kind != PNET_POOLING_MAX)
        st = pnet_error_set(e, PNET_USAGE, "argmax: the maximum alone has one");
    if (!st && argmax)
        st =
            pnet_library_check_filled("argmax", argmax, PNET_DTYPE_I32, set->out.rows, channels, e);
    if (st) return st;
    if (kind != PNET_POOLING_MAX)
        return add_up(
            t, (int32_t)channels, features->data, kind == PNET_POOLING_MEAN, result->data, e);
    struct pnet_cells cells = cells_of(t);
    pnet_cpu_cells_max(
        &cells, (int32_t)channels, features->data, result->data, argmax ? argmax->data : NULL);
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
    const int64_t *start = set->by_out.triplets.start;
    const float *g = gradient->data;
    for (int64_t row = 0; row < gradient->rows; row++)
        for (int64_t c = 0; c < gradient->width; c++) {
            int64_t at = row * gradient->width + c, count = start[row + 1] - start[row];
            to[at] = count ? g[at] / (float)count : 0;
        }
}

enum pnet_status pnet_pool_backward(const struct pnet_set *set, enum pnet_pooling kind,
    const struct pnet_array *gradient, const struct pnet_array *argmax,
    const struct pnet_array_out *result, struct pnet_error *e)
{
    PNET_OWN_ERROR(e);
    int64_t channels = gradient->width;
    enum pnet_status st = check_pool(kind, channels, e);
    if (!st) st = pnet_set_check_cpu(set, "pools", e);
    if (!st)
        st = pnet_library_check_matrix(
            "gradient", gradient, PNET_DTYPE_F32, set->out.rows, channels, e);
    if (!st)
        st = pnet_library_check_filled("result", result, PNET_DTYPE_F32, set->in.rows, channels, e);
    if (!st && !argmax != (kind != PNET_POOLING_MAX))
        st = pnet_error_set(e, PNET_USAGE, "argmax: the maximum has one, and no other kind");
    if (!st && argmax)
        st =
            pnet_library_check_matrix("argmax", argmax, PNET_DTYPE_I32, set->out.rows, channels, e);
    if (!st && argmax) st = check_argmax(set, argmax, e);
    if (st) return st;
    if (argmax) {
        give_back(gradient, argmax->data, result);
        return PNET_OK;
    }
    const struct pnet_triplets *back = &set->by_in.triplets;
    if (kind == PNET_POOLING_SUM)
        return add_up(back, (int32_t)channels, gradient->data, false, result->data, e);
    float *each = pnet_library_room(set->out.rows * channels, sizeof *each, e);
    if (!each) return PNET_NO_MEMORY;
    divide(set, gradient, each);
    st = add_up(back, (int32_t)channels, each, false, result->data, e);
    free(each);
    return st;
}
