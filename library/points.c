/* Points of the caller's, put along a curve; and what is read of them and of levels. */
#include "library/points.h"

#include "kernels/geometry_stage.h"
#include "kernels/rows.h"
#include "runtime/geo/grids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINT_BYTES = 3 * sizeof(float) };

/* What points are made of. */
struct making {
    struct pnet_points_options o;
    const struct pnet_array *positions;
    struct pnet_points *points;
    int32_t samples;
    /* [rows]: the caller's rows, those of a sample together, in their order; NULL: they are */
    int32_t *group;
    float *copy;        /* [rows, 3] */
    const float *given; /* positions by `group`: the caller's, or `copy` */
};

void pnet_points_free(struct pnet_points *p)
{
    while (p && pnet_handle_is(p, PNET_CLASS_POINTS) && atomic_fetch_sub(&p->owners, 1) == 1) {
        struct pnet_points *finer = p->finer;
        free(p->splits);
        if (pnet_points_on_gpu(p)) {
            pnet_home_give(&p->home, p->home.stream, &p->rooms);
        } else {
            free(p->xyz);
            free(p->key);
            free(p->source);
            free(p->parent);
        }
        pnet_handle_free(p);
        p = finer;
    }
}

enum pnet_status pnet_points_bad_position(int64_t row, const float p[3], struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA,
        "positions: row %lld: %g %g %g is not finite, or beyond 1e18 m", (long long)row,
        (double)p[0], (double)p[1], (double)p[2]);
}

enum pnet_status pnet_points_bad_sample(
    int64_t row, int64_t sample, int32_t samples, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA, "sample: row %lld: %lld is none of 0 .. %d",
        (long long)row, (long long)sample, (int)samples - 1);
}

enum pnet_status pnet_points_beyond(int64_t count, struct pnet_grid grid, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA,
        "%lld points lie beyond the %d cells of %g m that a grid reaches from the origin",
        (long long)count, PNET_KEY_BIAS, (double)grid.base);
}

static enum pnet_status check_shape(const struct pnet_array *a, struct pnet_error *e)
{
    if (a->dtype != PNET_DTYPE_F32)
        return pnet_error_set(
            e, PNET_USAGE, "positions: dtype %d, expected PNET_DTYPE_F32", (int)a->dtype);
    if (a->width != 3)
        return pnet_error_set(e, PNET_USAGE, "positions: [%lld, %lld], expected [%lld, 3]",
            (long long)a->rows, (long long)a->width, (long long)a->rows);
    return pnet_library_check_rows("positions", a, "points have", e);
}

static enum pnet_status check_positions(const struct pnet_array *a, struct pnet_error *e)
{
    int64_t stride = pnet_library_stride(a);
    for (int64_t i = 0; i < a->rows; i++) {
        const float *p = (const float *)a->data + i * stride;
        const float farthest = (float)PNET_FARTHEST;
        if (fabsf(p[0]) <= farthest && fabsf(p[1]) <= farthest && fabsf(p[2]) <= farthest) continue;
        return pnet_points_bad_position(i, p, e);
    }
    return PNET_OK;
}

/* Takes the memory of points whose rows and samples are known. */
static enum pnet_status take_room(struct making *m, struct pnet_error *e)
{
    struct pnet_points *p = m->points;
    int64_t n = m->positions->rows;
    p->splits = pnet_library_room((int64_t)m->samples + 1, sizeof *p->splits, e);
    if (!p->splits) return PNET_NO_MEMORY;
    p->xyz = pnet_library_room(n, POINT_BYTES, e);
    if (!p->xyz) return PNET_NO_MEMORY;
    p->key = pnet_library_room(n, sizeof *p->key, e);
    if (!p->key) return PNET_NO_MEMORY;
    p->source = pnet_library_room(n, sizeof *p->source, e);
    return p->source ? PNET_OK : PNET_NO_MEMORY;
}

/* The sample of each row is given. */
static enum pnet_status group_rows(struct making *m, struct pnet_error *e)
{
    const struct pnet_array *a = m->o.sample;
    int64_t *splits = m->points->splits, n = a->rows;
    for (int64_t i = 0; i < n; i++) {
        int64_t s = pnet_library_integer(a, i);
        if (s < 0 || s >= m->samples) return pnet_points_bad_sample(i, s, m->samples, e);
        splits[s + 1]++;
    }
    m->group = pnet_library_room(n, sizeof *m->group, e);
    if (!m->group) return PNET_NO_MEMORY;
    for (int32_t s = 0; s < m->samples; s++) splits[s + 1] += splits[s];
    for (int64_t i = 0; i < n; i++) m->group[splits[pnet_library_integer(a, i)]++] = (int32_t)i;
    /* now each is the end of its sample, where the next one begins */
    memmove(splits + 1, splits, (size_t)m->samples * sizeof *splits);
    splits[0] = 0;
    return PNET_OK;
}

enum pnet_status pnet_points_check_samples(
    const struct pnet_points_options *o, int64_t n, int32_t *samples, struct pnet_error *e)
{
    if (o->row_splits && o->sample)
        return pnet_error_set(e, PNET_USAGE, "row_splits and sample are both there");
    if (o->batches < 0)
        return pnet_error_set(e, PNET_USAGE, "batches %d: expected 0 or more", (int)o->batches);
    *samples = o->sample && o->batches ? o->batches : 1;
    if (o->row_splits) {
        enum pnet_status st =
            pnet_library_check_splits("row_splits", o->row_splits, n, "positions", e);
        if (st) return st;
        *samples = (int32_t)(o->row_splits->rows - 1);
    }
    if (!o->sample && o->batches && o->batches != *samples)
        return pnet_error_set(e, PNET_USAGE, "batches %d, but there %s %d sample%s",
            (int)o->batches, *samples > 1 ? "are" : "is", (int)*samples, *samples > 1 ? "s" : "");
    if (!o->sample) return PNET_OK;
    if (!pnet_library_is_integer(o->sample))
        return pnet_error_set(e, PNET_USAGE,
            "sample: dtype %d, expected PNET_DTYPE_I32 or PNET_DTYPE_I64", (int)o->sample->dtype);
    if (o->sample->rows != n || o->sample->width != 1)
        return pnet_error_set(e, PNET_USAGE, "sample: [%lld, %lld], expected [%lld, 1]",
            (long long)o->sample->rows, (long long)o->sample->width, (long long)n);
    return pnet_library_check_rows("sample", o->sample, "points have", e);
}

static enum pnet_status find_samples(struct making *m, struct pnet_error *e)
{
    int64_t *splits = m->points->splits;
    memset(splits, 0, ((size_t)m->samples + 1) * sizeof *splits);
    if (m->o.sample) return group_rows(m, e);
    splits[m->samples] = m->positions->rows;
    for (int32_t s = 0; m->o.row_splits && s < m->samples; s++)
        splits[s] = pnet_library_integer(m->o.row_splits, s);
    return PNET_OK;
}

/* Copies the positions, unless they are contiguous and ordered by sample already. */
static enum pnet_status join_rows(struct making *m, struct pnet_error *e)
{
    const struct pnet_array *a = m->positions;
    int64_t stride = pnet_library_stride(a);
    m->given = a->data;
    if (!m->group && (stride == 3 || a->rows < 2) && a->data) return PNET_OK;
    m->copy = pnet_library_room(a->rows, POINT_BYTES, e);
    if (!m->copy) return PNET_NO_MEMORY;
    for (int64_t i = 0; i < a->rows && m->given; i++)
        memcpy(m->copy + 3 * i, m->given + pnet_points_row(m->group, i) * stride, POINT_BYTES);
    m->given = m->copy;
    return PNET_OK;
}

static enum pnet_status put_in_order(struct making *m, struct pnet_error *e)
{
    struct pnet_points *p = m->points;
    int64_t n = m->positions->rows;
    struct pnet_grid grid = {(float)m->o.cell, (float)(1 / m->o.cell), 1};
    if (!(m->o.cell > 0)) grid = pnet_grid_of_extent(n, m->given);
    void *work = pnet_library_room((int64_t)pnet_cpu_order_points_work(n), 1, e);
    if (!work) return PNET_NO_MEMORY;
    int64_t outside =
        pnet_cpu_order_points(n, m->samples, p->splits, m->given, grid, p->source, p->xyz, work);
    free(work);
    if (outside) return pnet_points_beyond(outside, grid, e);
    pnet_cpu_gather(n, 3, m->given, p->source, p->xyz);
    pnet_cpu_keys(n, p->xyz, grid, p->key);
    if (m->group) pnet_cpu_gather(n, 1, m->group, p->source, p->source);
    int64_t moved = 0;
    for (int64_t i = 0; i < n; i++) moved += p->source[i] != i;
    p->as_given = moved == 0;
    p->level = (struct pnet_level){.rows = n,
        .samples = m->samples,
        .row_splits = p->splits,
        .xyz = p->xyz,
        .key = p->key,
        .grid = grid};
    return PNET_OK;
}

static enum pnet_status make(struct making *m, struct pnet_error *e)
{
    struct pnet_points *p = m->points;
    enum pnet_status st = check_shape(m->positions, e);
    if (!st && m->o.cell != 0 && !(m->o.cell >= 1e-6 && m->o.cell <= 1e5))
        st = pnet_error_set(e, PNET_USAGE, "cell %g: expected 0, or 1e-6 to 1e5 m", m->o.cell);
    if (!st)
        st =
            pnet_home_read("the points lie", m->o.device, m->o.stream, m->o.allocator, &p->home, e);
    if (!st && pnet_points_on_gpu(p))
        return PNET_ON_GPU(&p->home, pnet_points_new_on_gpu(p, m->positions, &m->o, e), e);
    if (!st) st = check_positions(m->positions, e);
    if (!st) st = pnet_points_check_samples(&m->o, m->positions->rows, &m->samples, e);
    if (!st) st = take_room(m, e);
    if (!st) st = find_samples(m, e);
    if (!st) st = join_rows(m, e);
    if (!st) st = put_in_order(m, e);
    return st;
}

enum pnet_status pnet_points_new(const struct pnet_array *positions,
    const struct pnet_points_options *o, struct pnet_points **points, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, points);
    PNET_REQUIRE(e, PNET_A(ANY, positions));
    PNET_OWN_ERROR(e);
    struct making m = {.positions = positions};
    enum pnet_status st = pnet_library_take("pnet_points_options", o, &m.o, sizeof m.o, e);
    if (st) return st;
    m.points = pnet_handle_new(PNET_CLASS_POINTS, sizeof *m.points, e);
    if (!m.points) return PNET_NO_MEMORY;
    atomic_init(&m.points->owners, 1);
    st = make(&m, e);
    free(m.group);
    free(m.copy);
    if (st)
        pnet_points_free(m.points);
    else
        *points = m.points;
    return st;
}

enum pnet_status pnet_points_counts(
    const struct pnet_points *p, struct pnet_points_info *info, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_AS(POINTS, "points", p), PNET_A(ANY, info));
    struct pnet_points_info i = {
        .rows = p->level.rows, .batches = p->level.samples, .cell = p->cell};
    return pnet_library_give("pnet_points_info", &i, info, sizeof i, e);
}

enum pnet_status pnet_points_positions(
    const struct pnet_points *p, const struct pnet_array_out *to, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_AS(POINTS, "points", p), PNET_A(ANY, to));
    const int32_t *order = pnet_points_order(p);
    int64_t n = p->level.rows;
    enum pnet_status st = pnet_library_check_filled("to", to, PNET_DTYPE_F32, n, 3, e);
    if (!st && pnet_points_on_gpu(p))
        return PNET_ON_GPU(&p->home, pnet_points_positions_on_gpu(p, to->data, e), e);
    for (int64_t i = 0; i < n && !st; i++)
        memcpy((float *)to->data + 3 * (int64_t)pnet_points_row(order, i), p->xyz + 3 * i,
            POINT_BYTES);
    return st;
}

enum pnet_status pnet_points_samples(
    const struct pnet_points *p, const struct pnet_array_out *to, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_AS(POINTS, "points", p), PNET_A(ANY, to));
    const int32_t *order = pnet_points_order(p);
    enum pnet_status st = pnet_library_check_filled("to", to, PNET_DTYPE_I32, p->level.rows, 1, e);
    if (!st && pnet_points_on_gpu(p))
        return PNET_ON_GPU(&p->home, pnet_points_samples_on_gpu(p, to->data, e), e);
    for (int32_t s = 0; s < p->level.samples && !st; s++)
        for (int64_t i = p->splits[s]; i < p->splits[s + 1]; i++)
            ((int32_t *)to->data)[pnet_points_row(order, i)] = s;
    return st;
}

enum pnet_status pnet_points_sources(
    const struct pnet_points *p, const struct pnet_array_out *to, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_AS(POINTS, "points", p), PNET_A(ANY, to));
    const int32_t *order = pnet_points_order(p);
    enum pnet_status st = pnet_library_check_filled("to", to, PNET_DTYPE_I32, p->level.rows, 1, e);
    if (!st && pnet_points_on_gpu(p))
        return PNET_ON_GPU(&p->home, pnet_points_sources_on_gpu(p, to->data, e), e);
    for (int64_t i = 0; i < p->level.rows && !st; i++)
        ((int32_t *)to->data)[pnet_points_row(order, i)] = p->source[i];
    return st;
}

enum pnet_status pnet_points_same_samples(const char *a_name, const struct pnet_points *a,
    const char *b_name, const struct pnet_points *b, struct pnet_error *e)
{
    if (a->level.samples == b->level.samples) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE, "%s has %d samples, and %s has %d", a_name,
        (int)a->level.samples, b_name, (int)b->level.samples);
}

enum pnet_status pnet_points_same_home(const char *a_name, const struct pnet_points *a,
    const char *b_name, const struct pnet_points *b, struct pnet_error *e)
{
    const struct pnet_device x = a->home.device, y = b->home.device;
    if (x.kind == y.kind && x.index == y.index) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE, "%s and %s lie on different devices", a_name, b_name);
}
