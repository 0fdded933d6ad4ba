/* Points on a GPU: the steps of library/points.c on its kernels, and what is read of points. */
#include "library/points.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#include "kernels/geometry_stage.h"
#include "kernels/given.h"
#include "kernels/rows.h"
#include "kernels/taps.h"
#include "runtime/geo/grids.h"

#include <stdlib.h>
#include <string.h>

enum { POINT_BYTES = 3 * sizeof(float) };

/* What points are made of. */
struct making {
    struct pnet_making w;
    struct pnet_points_options o;
    const struct pnet_array *positions;
    struct pnet_points *points;
    int32_t samples;
    float largest;   /* coordinate, in size */
    int64_t *splits; /* [samples + 1], on the GPU */
    int32_t *
        group; /* [rows]: the caller's rows, those of a sample together, in their order; NULL: they are */
    const float *given; /* positions by `group` */
    void *host;         /* the caller's row splits, copied */
    struct pnet_array row_splits;
};

static enum pnet_status check_values(struct making *m)
{
    const struct pnet_array *a = m->positions;
    float p[3];
    void *work = pnet_making_once(&m->w, 2, sizeof(int64_t));
    if (!work) return PNET_NO_MEMORY;
    int64_t bad =
        pnet_cuda_positions_beyond(a->rows, a->data, (float)PNET_FARTHEST, &m->largest, work);
    enum pnet_status st = pnet_making_step(&m->w);
    if (st || bad < 0) return st;
    st = pnet_making_get(&m->w, p, (const float *)a->data + 3 * bad, 3, sizeof *p);
    return st ? st : pnet_points_bad_position(bad, p, m->w.e);
}

/* Copies row splits to the host, where they are checked and kept. */
static enum pnet_status fetch_splits(struct making *m)
{
    const struct pnet_array *a = m->o.row_splits;
    size_t each = a->dtype == PNET_DTYPE_I64 ? sizeof(int64_t) : sizeof(int32_t);
    enum pnet_status st = pnet_library_check_rows("row_splits", a, "a batch has", m->w.e);
    if (st || !pnet_library_is_integer(a) || a->width != 1 || !a->rows)
        return st; /* the check of samples says it */
    m->host = pnet_library_room(a->rows, each, m->w.e);
    if (!m->host) return PNET_NO_MEMORY;
    m->row_splits = *a;
    m->row_splits.data = m->host;
    m->o.row_splits = &m->row_splits;
    return pnet_making_get(&m->w, m->host, a->data, a->rows, each);
}

/* The sample of each row: the first that is not there is an error. */
static enum pnet_status check_column(struct making *m)
{
    const struct pnet_array *a = m->o.sample;
    bool wide = a->dtype == PNET_DTYPE_I64;
    int64_t one[1] = {0};
    void *work = pnet_making_once(&m->w, 1, sizeof(int64_t));
    if (!work) return PNET_NO_MEMORY;
    int64_t bad = pnet_cuda_integers_outside(a->rows, a->data, wide, 0, m->samples, work);
    enum pnet_status st = pnet_making_step(&m->w);
    if (st || bad < 0) return st;
    size_t each = wide ? sizeof(int64_t) : sizeof(int32_t);
    st = pnet_making_get(&m->w, one, (const char *)a->data + (size_t)bad * each, 1, each);
    struct pnet_array row = {one, a->dtype, 1, 1, 0};
    return st ? st : pnet_points_bad_sample(bad, pnet_library_integer(&row, 0), m->samples, m->w.e);
}

/* Sorts rows by their sample, in their order: as triplets (sample, row, 0). */
static enum pnet_status group_rows(struct making *m)
{
    const struct pnet_array *a = m->o.sample;
    int64_t n = a->rows;
    int32_t *sample = pnet_making_once(&m->w, n, sizeof *sample);
    int32_t *row = pnet_making_once(&m->w, n, sizeof *row);
    int32_t *zero = pnet_making_once(&m->w, n, sizeof *zero);
    uint16_t *cell = pnet_making_once(&m->w, n, sizeof *cell);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_listed_work(n, m->samples), 1);
    m->group = pnet_making_take(&m->w, n, sizeof *m->group);
    if (!sample || !row || !zero || !cell || !work || !m->group) return PNET_NO_MEMORY;
    if (a->dtype == PNET_DTYPE_I64)
        pnet_cuda_integers_narrow(n, a->data, sample);
    else if (n)
        pnet_cuda_copy(sample, a->data, (size_t)n * sizeof *sample);
    pnet_cuda_count_up(n, row);
    pnet_cuda_fill_bytes(zero, 0, (size_t)n * sizeof *zero);
    const struct pnet_listed l = {n, sample, row, zero};
    pnet_cuda_listed(&l, m->samples, m->splits, m->group, cell, work);
    enum pnet_status st = pnet_making_step(&m->w);
    if (st) return st;
    return pnet_making_get(
        &m->w, m->points->splits, m->splits, (int64_t)m->samples + 1, sizeof *m->splits);
}

static enum pnet_status find_samples(struct making *m)
{
    struct pnet_points *p = m->points;
    int64_t n = m->positions->rows;
    enum pnet_status st = m->o.row_splits ? fetch_splits(m) : PNET_OK;
    if (!st) st = pnet_points_check_samples(&m->o, n, &m->samples, m->w.e);
    if (!st && m->o.sample) st = check_column(m);
    if (st) return st;
    p->splits = pnet_library_room((int64_t)m->samples + 1, sizeof *p->splits, m->w.e);
    m->splits = pnet_making_keep(&m->w, (int64_t)m->samples + 1, sizeof *m->splits);
    if (!p->splits || !m->splits) return PNET_NO_MEMORY;
    if (m->o.sample) return group_rows(m);
    memset(p->splits, 0, ((size_t)m->samples + 1) * sizeof *p->splits);
    p->splits[m->samples] = n;
    for (int32_t s = 0; m->o.row_splits && s < m->samples; s++)
        p->splits[s] = pnet_library_integer(m->o.row_splits, s);
    pnet_cuda_copy_in(m->splits, p->splits, ((size_t)m->samples + 1) * sizeof *p->splits);
    return pnet_making_error(&m->w);
}

static enum pnet_status join_rows(struct making *m)
{
    int64_t n = m->positions->rows;
    m->given = m->positions->data;
    if (!m->group) return PNET_OK;
    float *copy = pnet_making_take(&m->w, n, POINT_BYTES);
    if (!copy) return PNET_NO_MEMORY;
    pnet_cuda_gather(n, 3, m->given, m->group, copy);
    m->given = copy;
    return PNET_OK;
}

static enum pnet_status put_in_order(struct making *m)
{
    struct pnet_points *p = m->points;
    int64_t n = m->positions->rows;
    struct pnet_grid grid = {(float)m->o.cell, (float)(1 / m->o.cell), 1};
    const float corner[3] = {m->largest};
    if (!(m->o.cell > 0)) grid = pnet_grid_of_extent(1, corner);
    p->xyz = pnet_making_keep(&m->w, n, POINT_BYTES);
    p->key = pnet_making_keep(&m->w, n, sizeof *p->key);
    p->source = pnet_making_keep(&m->w, n, sizeof *p->source);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_order_points_work(n), 1);
    void *word = pnet_making_once(&m->w, 1, sizeof(int64_t));
    if (!p->xyz || !p->key || !p->source || !work || !word) return PNET_NO_MEMORY;
    int64_t outside =
        pnet_cuda_order_points(n, m->samples, m->splits, m->given, grid, p->source, p->xyz, work);
    enum pnet_status st = pnet_making_error(&m->w);
    if (!st && outside) st = pnet_points_beyond(outside, grid, m->w.e);
    if (st) return st;
    pnet_cuda_gather(n, 3, m->given, p->source, p->xyz);
    pnet_cuda_keys(n, p->xyz, grid, p->key);
    if (m->group) pnet_cuda_gather(n, 1, m->group, p->source, p->source);
    p->as_given = pnet_cuda_first_moved(n, p->source, word) < 0;
    p->level = (struct pnet_level){.rows = n,
        .samples = m->samples,
        .row_splits = m->splits,
        .xyz = p->xyz,
        .key = p->key,
        .grid = grid};
    return pnet_making_step(&m->w);
}

enum pnet_status pnet_points_new_on_gpu(struct pnet_points *p, const struct pnet_array *positions,
    const struct pnet_points_options *o, struct pnet_error *e)
{
    struct making m = {.w = {.home = &p->home, .kept = &p->rooms, .e = e},
        .o = *o,
        .positions = positions,
        .points = p};
    enum pnet_status st = pnet_home_check_rows(&p->home, "positions", positions, e);
    if (!st && o->row_splits) st = pnet_home_check_rows(&p->home, "row_splits", o->row_splits, e);
    if (!st && o->sample) st = pnet_home_check_rows(&p->home, "sample", o->sample, e);
    if (!st) st = pnet_making_begin(&m.w);
    if (st) return st;
    st = check_values(&m);
    if (!st) st = find_samples(&m);
    if (!st) st = join_rows(&m);
    if (!st) st = put_in_order(&m);
    free(m.host);
    return pnet_making_end(&m.w, st);
}

/* Begins a call that fills an array of int32 or float. */
static enum pnet_status enter(
    const struct pnet_points *p, const void *to, int *before, struct pnet_error *e)
{
    enum pnet_status st = pnet_home_check(&p->home, "to", to, sizeof(int32_t), e);
    return st ? st : pnet_home_enter(&p->home, p->home.stream, before, e);
}

static enum pnet_status leave(const struct pnet_points *p, int before, struct pnet_error *e)
{
    return pnet_home_leave(&p->home, p->home.stream, before, PNET_OK, e);
}

/* Fills `to` with what rows inside have, so many words each. */
static enum pnet_status place(
    const struct pnet_points *p, int32_t words, const void *from, void *to, struct pnet_error *e)
{
    const int32_t *order = pnet_points_order(p);
    int64_t n = p->level.rows;
    int before;
    enum pnet_status st = enter(p, to, &before, e);
    if (st) return st;
    if (order)
        pnet_cuda_scatter(n, words, from, order, to);
    else
        pnet_cuda_gather(n, words, from, NULL, to);
    return leave(p, before, e);
}

enum pnet_status pnet_points_positions_on_gpu(
    const struct pnet_points *p, void *to, struct pnet_error *e)
{
    return place(p, 3, p->xyz, to, e);
}

enum pnet_status pnet_points_sources_on_gpu(
    const struct pnet_points *p, void *to, struct pnet_error *e)
{
    return place(p, 1, p->source, to, e);
}

enum pnet_status pnet_points_samples_on_gpu(
    const struct pnet_points *p, void *to, struct pnet_error *e)
{
    const struct pnet_level *l = &p->level;
    int before;
    enum pnet_status st = enter(p, to, &before, e);
    if (st) return st;
    pnet_cuda_list_samples(l->rows, l->samples, l->row_splits, pnet_points_order(p), to);
    return leave(p, before, e);
}
#endif
