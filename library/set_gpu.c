/* Sets on a GPU: the steps of library/set_voxels.c and library/set.c on its kernels. Counts come to the host in between, so that
   each piece of memory has its size. */
#include "library/set.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/conv.h"
#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/stream.h"
#include "kernels/geometry_stage.h"
#include "kernels/given.h"

/* What a set is made with. */
struct making {
    struct pnet_making w;
    struct pnet_set *set;
    const struct pnet_taps *taps;
    bool up; /* outputs are the coarse side */
    struct pnet_sites in, out;
    int64_t *
        found; /* the first row of the indices that is outside, and the first that is there twice; NULL: they were told */
};

/* Copies the indices. Kernels go on with those that are outside as if they were not: the error comes to the host with a number
   that is waited for anyway. */
static enum pnet_status take_indices(struct making *m, const struct pnet_array *indices)
{
    struct pnet_set *s = m->set;
    int64_t rows = indices->rows, width = indices->width;
    m->found = pnet_making_take(&m->w, 2, sizeof *m->found);
    if (!m->found) return PNET_NO_MEMORY;
    pnet_cuda_sites_outside(rows, s->samples, s->axes, s->in.extent, indices->data, m->found);
    s->in.rows = rows;
    s->in.index = pnet_making_keep(&m->w, rows * width, sizeof *s->in.index);
    if (!s->in.index) return PNET_NO_MEMORY;
    if (rows)
        pnet_cuda_copy(s->in.index, indices->data, (size_t)(rows * width) * sizeof *s->in.index);
    return PNET_OK;
}

/* Brings a number to the host, and what is wrong with the indices. */
static enum pnet_status get_number(struct making *m, const int64_t *at, int64_t *number)
{
    struct pnet_set *s = m->set;
    const int64_t *const from[] = {at, m->found, m->found ? m->found + 1 : NULL};
    int64_t got[3];
    pnet_cuda_numbers(m->found ? 3 : 1, from, got);
    enum pnet_status st = pnet_making_error(&m->w);
    *number = got[0];
    if (st || !m->found) return st;
    m->found = NULL;
    if (got[1] >= 0) {
        int32_t voxel[4] = {0}, width = 1 + s->axes;
        st = pnet_making_get(&m->w, voxel, s->in.index + got[1] * width, width, sizeof *voxel);
        return st ? st : pnet_set_check_voxel(s, got[1], voxel, m->w.e);
    }
    return got[2] < 0 ? PNET_OK : pnet_set_same_voxel(got[2] & UINT32_MAX, got[2] >> 32, m->w.e);
}

static enum pnet_status sort_inputs(struct making *m)
{
    struct pnet_set *s = m->set;
    int64_t n = s->in.rows;
    int64_t *splits = pnet_making_take(&m->w, (int64_t)s->samples + 1, sizeof *splits);
    uint64_t *key = pnet_making_take(&m->w, n, sizeof *key);
    int32_t *row = pnet_making_take(&m->w, n, sizeof *row);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_sites_sort_work(n), 1);
    if (!splits || !key || !row || !work) return PNET_NO_MEMORY;
    pnet_cuda_sites_sort(n, s->samples, s->axes, s->in.extent, s->in.index, splits, key, row, work);
    m->in = (struct pnet_sites){
        .rows = n, .samples = s->samples, .splits = splits, .key = key, .row = row};
    for (int a = 0; a < 3; a++) m->in.extent[a] = s->in.extent[a];
    pnet_cuda_sites_twice(&m->in, m->found + 1);
    return pnet_making_step(&m->w);
}

/* Goes from `m->out` to the voxels that meet one of them on one axis. */
static enum pnet_status reach_axis(struct making *m, int axis)
{
    const struct pnet_sites *from = &m->out;
    int32_t extent = m->set->out.extent[axis];
    int64_t *start = pnet_making_once(&m->w, from->rows + 1, sizeof *start);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_sites_reach_work(from->rows), 1);
    if (!start || !work) return PNET_NO_MEMORY;
    int64_t n = pnet_cuda_sites_reach(from, m->taps, axis, m->up, extent, start, work);
    enum pnet_status st = pnet_making_error(&m->w);
    if (st) return st;
    if (n > INT32_MAX)
        return pnet_error_set(m->w.e, PNET_NO_MEMORY,
            "the taps of axis %d lead to more than 2147483647 output voxels, counted for each tap",
            axis);
    uint64_t *key = pnet_making_once(&m->w, n, sizeof *key);
    int32_t *sample = pnet_making_once(&m->w, n, sizeof *sample);
    struct pnet_led led = {.count = n,
        .samples = from->samples,
        .key = key,
        .sample = sample,
        .order = pnet_making_once(&m->w, n, sizeof *led.order),
        .mark = pnet_making_once(&m->w, n, sizeof *led.mark)};
    void *merge = pnet_making_once(&m->w, (int64_t)pnet_cuda_sites_merge_work(n), 1);
    if (!key || !sample || !led.order || !led.mark || !merge) return PNET_NO_MEMORY;
    pnet_cuda_sites_lead(from, m->taps, axis, m->up, extent, start, key, sample);
    struct pnet_sites to = *from;
    to.extent[axis] = extent;
    to.rows = pnet_cuda_sites_merge(&led, to.extent, merge);
    st = pnet_making_error(&m->w);
    if (st) return st;
    int64_t *splits = pnet_making_take(&m->w, (int64_t)to.samples + 1, sizeof *splits);
    uint64_t *keys = pnet_making_take(&m->w, to.rows, sizeof *keys);
    if (!splits || !keys) return PNET_NO_MEMORY;
    pnet_cuda_sites_merged(&led, splits, keys);
    to.splits = splits;
    to.key = keys;
    to.row = NULL;
    m->out = to;
    return pnet_making_step(&m->w);
}

/* Goes from `m->in` to the voxels that meet one of them, on all axes at once. */
static enum pnet_status reach_all(struct making *m)
{
    const struct pnet_sites *from = &m->in;
    struct pnet_sites to = {.samples = from->samples};
    int64_t most = from->rows * pnet_taps_leads(m->taps, m->up);
    int64_t *splits = pnet_making_take(&m->w, (int64_t)to.samples + 1, sizeof *splits);
    uint64_t *key = pnet_making_take(&m->w, most, sizeof *key);
    void *work = pnet_making_once(
        &m->w, (int64_t)pnet_cuda_sites_spread_work(from->rows, m->taps, m->up), 1);
    if (!splits || !key || !work) return PNET_NO_MEMORY;
    for (int a = 0; a < 3; a++) to.extent[a] = m->set->out.extent[a];
    const int64_t *count =
        pnet_cuda_sites_spread(from, m->taps, m->up, to.extent, splits, key, work);
    enum pnet_status st = get_number(m, count, &to.rows);
    to.splits = splits;
    to.key = key;
    m->out = to;
    return st ? st : pnet_making_step(&m->w);
}

/* The same on one axis after the other, where a voxel may be led to many. */
static enum pnet_status reach_by_axis(struct making *m)
{
    int64_t none;
    enum pnet_status st = get_number(m, m->in.splits, &none); /* or errors would come late */
    m->out = m->in;
    for (int axis = 2; axis >= 0 && !st; axis--)
        if (axis < m->set->axes) st = reach_axis(m, axis);
    return st;
}

static enum pnet_status find_outputs(struct making *m, enum pnet_set_kind kind)
{
    struct pnet_set *s = m->set;
    if (kind == PNET_SET_SUBMANIFOLD) {
        m->out = m->in;
        return PNET_OK; /* the side of the inputs */
    }
    bool at_once =
        pnet_cuda_sites_spreads(m->taps, m->up, m->in.rows, m->in.samples, s->out.extent);
    enum pnet_status st = at_once ? reach_all(m) : reach_by_axis(m);
    if (st) return st;
    s->out.rows = m->out.rows;
    s->out.index = pnet_making_keep(&m->w, s->out.rows * (1 + s->axes), sizeof *s->out.index);
    if (!s->out.index) return PNET_NO_MEMORY;
    pnet_cuda_sites_list(&m->out, s->axes, s->out.index);
    return PNET_OK;
}

/* Memory of a form. */
struct form {
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

/* Takes what depends on the number of triplets; `start` is there. */
static enum pnet_status take_form(
    struct making *m, struct form *f, const struct pnet_triplets *shape, struct pnet_set_form *to)
{
    f->other = pnet_making_keep(&m->w, shape->count, sizeof *f->other);
    f->cell = pnet_making_keep(&m->w, shape->count, sizeof *f->cell);
    if (!f->other || !f->cell) return PNET_NO_MEMORY;
    to->triplets = *shape;
    to->triplets.start = f->start;
    to->triplets.other = f->other;
    to->triplets.cell = f->cell;
    return PNET_OK;
}

/* Whether kernels read tiles of a form. */
static bool has_tiles(const struct pnet_triplets *t)
{
    const struct pnet_conv_sum sum = {.shape = {64, 64, 1},
        .cells = t->cells,
        .rows = t->rows,
        .count = t->count,
        .precision = PNET_BF16};
    return t->rows > 0 && pnet_cuda_conv_reads_tiles(&sum);
}

enum pnet_status pnet_set_lay_tiles(struct pnet_making *m, struct pnet_set_form *const form[2])
{
    struct pnet_tile *tile[2];
    const int64_t *from[2];
    int64_t words[2];
    struct pnet_set_form *laid[2];
    int count = 0;
    for (int n = 0; n < 2; n++) {
        const struct pnet_triplets *t = &form[n]->triplets;
        if (!has_tiles(t)) continue;
        int64_t tiles = (t->rows + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
        tile[count] = pnet_making_keep(m, tiles, sizeof **tile);
        void *work = pnet_making_once(m, (int64_t)pnet_cuda_tiles_work(t->rows), 1);
        if (!tile[count] || !work) return PNET_NO_MEMORY;
        from[count] = pnet_cuda_tiles_measure(t, tile[count], work);
        laid[count++] = form[n];
    }
    if (count) pnet_cuda_numbers(count, from, words);
    enum pnet_status st = pnet_making_error(m);
    for (int n = 0; n < count && !st; n++) {
        struct pnet_triplets *t = &laid[n]->triplets;
        uint32_t *list = pnet_making_keep(m, words[n], sizeof *list);
        if (!list) return PNET_NO_MEMORY;
        pnet_cuda_tiles_write(t, tile[n], list);
        t->tiles = (struct pnet_tiles){words[n], tile[n], list};
    }
    return st ? st : pnet_making_step(m);
}

static enum pnet_status turn(
    struct making *m, const struct pnet_set_form *from, struct pnet_set_form *to)
{
    const struct pnet_triplets *t = &from->triplets;
    const struct pnet_triplets shape = {
        .rows = t->others, .others = t->rows, .count = t->count, .cells = t->cells};
    struct form f = {.start = pnet_making_keep(&m->w, t->others + 1, sizeof *f.start)};
    enum pnet_status st = f.start ? take_form(m, &f, &shape, to) : PNET_NO_MEMORY;
    void *work = st ? NULL : pnet_making_once(&m->w, (int64_t)pnet_cuda_transpose_work(t), 1);
    if (!work) return st ? st : PNET_NO_MEMORY;
    pnet_cuda_transpose(t, f.start, f.other, f.cell, work);
    return pnet_making_step(&m->w);
}

/* The same of a submanifold set: its rows begin where those of the other form begin. */
static enum pnet_status turn_same(
    struct making *m, const struct pnet_set_form *from, struct pnet_set_form *to)
{
    const struct pnet_triplets *t = &from->triplets;
    struct form f = {.start = (int64_t *)t->start};
    enum pnet_status st = take_form(m, &f, t, to);
    if (!st) pnet_cuda_taps_turn(t, f.other, f.cell);
    return st ? st : pnet_making_error(&m->w);
}

enum pnet_status pnet_set_side_keep(struct pnet_making *m, struct pnet_set_side *s)
{
    s->row = pnet_making_keep(m, s->rows, sizeof *s->row);
    s->place = pnet_making_keep(m, s->rows, sizeof *s->place);
    return s->row && s->place ? PNET_OK : PNET_NO_MEMORY;
}

static void name_rows(
    struct pnet_triplets *t, const struct pnet_set_side *rows, const struct pnet_set_side *others)
{
    t->row = rows->row;
    t->place = rows->place;
    if (others->row) pnet_cuda_rename(t->count, others->row, (int32_t *)t->other);
}

void pnet_set_name_rows_on_gpu(struct pnet_set *s)
{
    name_rows(&s->by_out.triplets, &s->out, &s->in);
    name_rows(&s->by_in.triplets, &s->in, &s->out);
}

/* Orders the rows of a side along a curve; the voxels get their places there for rows. */
static enum pnet_status order_side(
    struct making *m, struct pnet_sites *sites, struct pnet_set_side *side)
{
    enum pnet_status st = pnet_set_side_keep(&m->w, side);
    int32_t *along = st ? NULL : pnet_making_take(&m->w, sites->rows, sizeof *along);
    void *work =
        along ? pnet_making_once(&m->w, (int64_t)pnet_cuda_sites_curve_work(sites->rows), 1) : NULL;
    if (!work) return PNET_NO_MEMORY;
    pnet_cuda_sites_curve(sites, along, side->row, side->place, work);
    sites->row = along;
    return pnet_making_step(&m->w);
}

static enum pnet_status order_sides(struct making *m, enum pnet_set_kind kind)
{
    struct pnet_set *s = m->set;
    enum pnet_status st = order_side(m, &m->in, &s->in);
    if (kind != PNET_SET_SUBMANIFOLD) return st ? st : order_side(m, &m->out, &s->out);
    m->out = m->in;
    s->out = s->in;
    return st;
}

/* Makes both forms, by place. */
static enum pnet_status find_triplets(struct making *m, enum pnet_set_kind kind)
{
    struct pnet_set *s = m->set;
    const struct pnet_sites *coarse = m->up ? &m->out : &m->in, *fine = m->up ? &m->in : &m->out;
    struct pnet_set_form *to = m->up ? &s->by_out : &s->by_in;
    struct pnet_triplets shape = {
        .rows = coarse->rows, .others = fine->rows, .cells = pnet_taps_count(m->taps)};
    struct form f = {.start = pnet_making_keep(&m->w, coarse->rows + 1, sizeof *f.start)};
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_taps_work(coarse->rows), 1);
    if (!f.start || !work) return PNET_NO_MEMORY;
    pnet_cuda_taps_count(coarse, fine, m->taps, f.start, work);
    enum pnet_status st = get_number(m, f.start + coarse->rows, &shape.count);
    if (!st) st = take_form(m, &f, &shape, to);
    if (st) return st;
    pnet_cuda_taps_write(coarse, fine, m->taps, f.start, f.other, f.cell);
    if (kind == PNET_SET_SUBMANIFOLD) return turn_same(m, to, &s->by_in);
    return turn(m, to, m->up ? &s->by_in : &s->by_out);
}

static enum pnet_status end(struct making *m, enum pnet_status st)
{
    struct pnet_set_form *const both[] = {&m->set->by_out, &m->set->by_in};
    if (!st) st = pnet_set_lay_tiles(&m->w, both);
    return pnet_making_end(&m->w, st);
}

enum pnet_status pnet_set_voxels_on_gpu(struct pnet_set *s, const struct pnet_array *indices,
    const struct pnet_taps *t, enum pnet_set_kind kind, struct pnet_error *e)
{
    PNET_OWN_ERROR(e);
    struct making m = {.w = {.home = &s->home, .kept = &s->rooms, .e = e},
        .set = s,
        .taps = t,
        .up = kind != PNET_SET_TRANSPOSED};
    enum pnet_status st = pnet_home_check_rows(&s->home, "indices", indices, e);
    if (!st) st = pnet_making_begin(&m.w);
    if (st) return st;
    st = take_indices(&m, indices);
    if (!st) st = sort_inputs(&m);
    if (!st) st = find_outputs(&m, kind);
    if (!st) st = order_sides(&m, kind);
    if (!st) st = find_triplets(&m, kind);
    if (!st) pnet_set_name_rows_on_gpu(s);
    return end(&m, st);
}

static enum pnet_status check_list(
    struct making *m, const char *name, const struct pnet_array *list, int64_t limit)
{
    void *word = pnet_making_once(&m->w, 1, sizeof(int64_t));
    if (!word) return PNET_NO_MEMORY;
    int64_t bad = pnet_cuda_list_outside(list->rows, list->data, limit, word);
    enum pnet_status st = pnet_making_error(&m->w);
    int32_t number = 0;
    if (st || bad < 0) return st;
    st = pnet_making_get(&m->w, &number, (const int32_t *)list->data + bad, 1, sizeof number);
    return st ? st : pnet_set_outside(name, bad, number, limit, m->w.e);
}

/* One form from the lists. Not by transposing the other: a triplet may be there twice. */
static enum pnet_status list_form(struct making *m, const struct pnet_listed *l,
    const struct pnet_triplets *shape, struct pnet_set_form *to)
{
    struct form f = {.start = pnet_making_keep(&m->w, shape->rows + 1, sizeof *f.start)};
    enum pnet_status st = f.start ? take_form(m, &f, shape, to) : PNET_NO_MEMORY;
    void *work =
        st ? NULL
           : pnet_making_once(&m->w, (int64_t)pnet_cuda_listed_work(l->count, shape->rows), 1);
    if (!work) return st ? st : PNET_NO_MEMORY;
    pnet_cuda_listed(l, shape->rows, f.start, f.other, f.cell, work);
    return pnet_making_step(&m->w);
}

enum pnet_status pnet_set_lists_on_gpu(struct pnet_set *s, const struct pnet_array *const list[3],
    int64_t rows_out, int64_t rows_in, int32_t taps, struct pnet_error *e)
{
    PNET_OWN_ERROR(e);
    static const char *const names[] = {"i", "j", "k"};
    const int64_t limits[] = {rows_out, rows_in, taps};
    const int64_t count = list[0]->rows;
    const struct pnet_listed l = {count, list[0]->data, list[1]->data, list[2]->data},
                             back = {count, l.j, l.i, l.k};
    const struct pnet_triplets by_out = {
        .rows = rows_out, .others = rows_in, .count = count, .cells = taps};
    const struct pnet_triplets by_in = {
        .rows = rows_in, .others = rows_out, .count = count, .cells = taps};
    struct making m = {.w = {.home = &s->home, .kept = &s->rooms, .e = e}, .set = s};
    enum pnet_status st = PNET_OK;
    for (int n = 0; n < 3 && !st; n++) st = pnet_home_check_rows(&s->home, names[n], list[n], e);
    if (!st) st = pnet_making_begin(&m.w);
    if (st) return st;
    for (int n = 0; n < 3 && !st; n++) st = check_list(&m, names[n], list[n], limits[n]);
    if (!st) st = list_form(&m, &l, &by_out, &s->by_out);
    if (!st) st = list_form(&m, &back, &by_in, &s->by_in);
    return end(&m, st);
}

enum pnet_status pnet_set_indices_on_gpu(
    const struct pnet_set *s, int32_t *to, int64_t count, struct pnet_error *e)
{
    const struct pnet_home *p = &s->home;
    int before;
    if (!count) return PNET_OK;
    enum pnet_status st = pnet_home_check(p, "to", to, sizeof *to, e);
    if (!st) st = pnet_home_enter(p, p->stream, &before, e);
    if (st) return st;
    pnet_cuda_copy(to, s->out.index, (size_t)count * sizeof *to);
    return pnet_home_leave(p, p->stream, before, PNET_OK, e);
}

/* Leads triplets to a copy in which they lie by row, sorted. */
static enum pnet_status sort_copy(const struct pnet_home *p, struct pnet_triplets *t,
    struct pnet_rooms *own, struct pnet_error *e)
{
    size_t n = (size_t)t->count;
    int64_t *start = (int64_t *)t->start;
    int32_t *other = pnet_home_take(p, p->stream, n * sizeof *other, own, e);
    uint16_t *cell = other ? pnet_home_take(p, p->stream, n * sizeof *cell, own, e) : NULL;
    if (!cell) return e->status;
    if (t->row) {
        start = pnet_home_take(p, p->stream, (size_t)(t->rows + 1) * sizeof *start, own, e);
        void *work =
            start ? pnet_home_take(p, p->stream, pnet_cuda_place_starts_work(t->rows), own, e)
                  : NULL;
        if (!work) return e->status;
        pnet_cuda_place_starts(t->rows, t->row, t->start, start, work);
        pnet_cuda_place_lists(t->rows, t->row, t->start, start, sizeof *other, t->other, other);
        pnet_cuda_place_lists(t->rows, t->row, t->start, start, sizeof *cell, t->cell, cell);
    } else {
        pnet_cuda_copy(other, t->other, n * sizeof *other);
        pnet_cuda_copy(cell, t->cell, n * sizeof *cell);
    }
    pnet_cuda_sort_rows(t->rows, start, other, cell);
    t->start = start;
    t->other = other;
    t->cell = cell;
    return PNET_OK;
}

enum pnet_status pnet_set_get_triplets_on_gpu(
    const struct pnet_set *s, int32_t *i, int32_t *j, int32_t *k, struct pnet_error *e)
{
    const struct pnet_home *p = &s->home;
    PNET_OWN_ERROR(e);
    struct pnet_rooms own = {.count = 0};
    struct pnet_triplets t = s->by_out.triplets;
    int before;
    enum pnet_status st = pnet_home_check(p, "i", i, sizeof *i, e);
    if (!st) st = pnet_home_check(p, "j", j, sizeof *j, e);
    if (!st) st = pnet_home_check(p, "k", k, sizeof *k, e);
    if (!st) st = pnet_home_enter(p, p->stream, &before, e);
    if (st) return st;
    if (t.row || (s->inside && j)) st = sort_copy(p, &t, &own, e);
    if (!st) pnet_cuda_triplets_list(&t, i, j, k);
    st = pnet_home_leave(p, p->stream, before, st, e);
    pnet_home_give(p, p->stream, &own);
    return st;
}
#else
/* pnet_home_read refuses a GPU, so that none of these is reached; they say the same. */
enum pnet_status pnet_set_voxels_on_gpu(struct pnet_set *s, const struct pnet_array *indices,
    const struct pnet_taps *t, enum pnet_set_kind kind, struct pnet_error *e)
{
    (void)indices;
    (void)t;
    (void)kind;
    return pnet_device_check(s->home.device, e);
}

enum pnet_status pnet_set_lists_on_gpu(struct pnet_set *s, const struct pnet_array *const list[3],
    int64_t rows_out, int64_t rows_in, int32_t taps, struct pnet_error *e)
{
    (void)list;
    (void)rows_out;
    (void)rows_in;
    (void)taps;
    return pnet_device_check(s->home.device, e);
}

enum pnet_status pnet_set_indices_on_gpu(
    const struct pnet_set *s, int32_t *to, int64_t count, struct pnet_error *e)
{
    (void)to;
    (void)count;
    return pnet_device_check(s->home.device, e);
}

enum pnet_status pnet_set_get_triplets_on_gpu(
    const struct pnet_set *s, int32_t *i, int32_t *j, int32_t *k, struct pnet_error *e)
{
    (void)i;
    (void)j;
    (void)k;
    return pnet_device_check(s->home.device, e);
}
#endif
