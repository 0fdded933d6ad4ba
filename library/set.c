/* Sets of triplets: from lists, turned around, read. */
#include "library/points.h"
#include "library/set.h"

#include "kernels/geometry_stage.h"

#include <stdlib.h>
#include <string.h>

enum pnet_status pnet_library_check_integers(
    const char *name, const struct pnet_array *a, int64_t width, struct pnet_error *e)
{
    if (a->dtype != PNET_DTYPE_I32)
        return pnet_error_set(
            e, PNET_USAGE, "%s: dtype %d, expected PNET_DTYPE_I32", name, (int)a->dtype);
    if (width >= 0 && a->width != width)
        return pnet_error_set(e, PNET_USAGE, "%s: width %lld, expected %lld", name,
            (long long)a->width, (long long)width);
    return pnet_library_check_rows(name, a, "a set has", e);
}

enum pnet_status pnet_set_form_take(struct pnet_set_form *f, int64_t rows, int64_t others,
    int64_t count, int32_t cells, struct pnet_error *e)
{
    if (!f->start) f->start = pnet_library_room(rows + 1, sizeof *f->start, e);
    if (!f->start) return PNET_NO_MEMORY;
    f->other = pnet_library_room(count, sizeof *f->other, e);
    if (!f->other) return PNET_NO_MEMORY;
    f->cell = pnet_library_room(count, sizeof *f->cell, e);
    if (!f->cell) return PNET_NO_MEMORY;
    f->triplets = (struct pnet_triplets){.rows = rows,
        .others = others,
        .count = count,
        .cells = cells,
        .start = f->start,
        .other = f->other,
        .cell = f->cell};
    return PNET_OK;
}

enum pnet_status pnet_set_form_turn(
    const struct pnet_set_form *from, struct pnet_set_form *to, struct pnet_error *e)
{
    const struct pnet_triplets *t = &from->triplets;
    enum pnet_status st = pnet_set_form_take(to, t->others, t->rows, t->count, t->cells, e);
    if (st) return st;
    void *work = pnet_library_room((int64_t)pnet_cpu_transpose_work(t), 1, e);
    if (!work) return PNET_NO_MEMORY;
    pnet_cpu_transpose(t, to->start, to->other, to->cell, work);
    free(work);
    return PNET_OK;
}

enum pnet_status pnet_set_check_cpu(
    const struct pnet_set *s, const char *what, struct pnet_error *e)
{
    if (!pnet_set_on_gpu(s)) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE, "the set lies on GPU %d: %s are there on the CPU so far",
        s->home.device.index, what);
}

void pnet_set_form_free(struct pnet_set_form *f)
{
    free(f->start);
    free(f->other);
    free(f->cell);
}

static void free_side(const struct pnet_set_side *s)
{
    free(s->index);
    free(s->row);
    free(s->place);
}

enum pnet_status pnet_set_side_take(struct pnet_set_side *s, struct pnet_error *e)
{
    s->row = pnet_library_room(s->rows, sizeof *s->row, e);
    if (!s->row) return PNET_NO_MEMORY;
    s->place = pnet_library_room(s->rows, sizeof *s->place, e);
    return s->place ? PNET_OK : PNET_NO_MEMORY;
}

static void name_rows(
    struct pnet_set_form *f, const struct pnet_set_side *rows, const struct pnet_set_side *others)
{
    f->triplets.row = rows->row;
    f->triplets.place = rows->place;
    if (others->row) pnet_points_name(f->triplets.count, others->row, f->other);
}

void pnet_set_name_rows(struct pnet_set *s)
{
    name_rows(&s->by_out, &s->out, &s->in);
    name_rows(&s->by_in, &s->in, &s->out);
}

void pnet_set_free(struct pnet_set *set)
{
    if (!set || !pnet_handle_is(set, PNET_CLASS_SET) || atomic_fetch_sub(&set->owners, 1) > 1)
        return;
    if (set->of) {
        pnet_set_free(set->of);
    } else if (pnet_set_on_gpu(set)) {
        pnet_home_give(&set->home, set->home.stream, &set->rooms);
    } else {
        pnet_set_form_free(&set->by_out);
        pnet_set_form_free(&set->by_in);
        struct pnet_set_side out = set->out;
        if (out.index == set->in.index) out.index = NULL;
        if (out.row == set->in.row) out.row = out.place = NULL;
        free_side(&out);
        free_side(&set->in);
    }
    pnet_handle_free(set);
}

enum pnet_status pnet_set_inverse(
    const struct pnet_set *of, struct pnet_set **set, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, set);
    PNET_REQUIRE(e, PNET_A(SET, of));
    struct pnet_set *s = *set = pnet_handle_new(PNET_CLASS_SET, sizeof *s, e);
    if (!s) return PNET_NO_MEMORY;
    /* the owner of the memory, which counts this set as an owner */
    struct pnet_set *owner = of->of ? of->of : (struct pnet_set *)of;
    *s = (struct pnet_set){.handle = s->handle,
        .of = owner,
        .axes = of->axes,
        .samples = of->samples,
        .in = of->out,
        .out = of->in,
        .by_out = of->by_in,
        .by_in = of->by_out,
        .several = of->several,
        .inside = of->inside,
        .home = of->home};
    atomic_init(&s->owners, 1);
    atomic_fetch_add(&owner->owners, 1);
    return PNET_OK;
}

/* A list of the caller's, contiguous. */
struct list {
    const char *name;
    const struct pnet_array *array;
    int64_t end;         /* numbers are below */
    const int32_t *data; /* the caller's, or `copy` */
    int32_t *copy;
};

enum pnet_status pnet_set_outside(
    const char *name, int64_t row, int32_t number, int64_t end, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA, "%s: row %lld: %d is none of 0 .. %lld", name,
        (long long)row, (int)number, (long long)end - 1);
}

static enum pnet_status check_length(const struct list *l, int64_t count, struct pnet_error *e)
{
    enum pnet_status st = pnet_library_check_integers(l->name, l->array, 1, e);
    if (st || l->array->rows == count) return st;
    return pnet_error_set(e, PNET_USAGE, "%s has %lld rows, and i has %lld", l->name,
        (long long)l->array->rows, (long long)count);
}

static enum pnet_status check_numbers(struct list *l, int64_t count, struct pnet_error *e)
{
    const int32_t *from = l->data = l->array->data;
    int64_t stride = l->array->stride ? l->array->stride : 1;
    if (!from) return PNET_OK; /* there are no rows */
    for (int64_t n = 0; n < count; n++)
        if (from[n * stride] < 0 || from[n * stride] >= l->end)
            return pnet_set_outside(l->name, n, from[n * stride], l->end, e);
    if (stride == 1) return PNET_OK;
    l->data = l->copy = pnet_library_room(count, sizeof *l->copy, e);
    if (!l->copy) return PNET_NO_MEMORY;
    for (int64_t n = 0; n < count; n++) l->copy[n] = from[n * stride];
    return PNET_OK;
}

static enum pnet_status check_sizes(
    int64_t rows_out, int64_t rows_in, int32_t taps, struct pnet_error *e)
{
    if (rows_out < 0 || rows_out > INT32_MAX || rows_in < 0 || rows_in > INT32_MAX)
        return pnet_error_set(e, PNET_USAGE, "%lld rows out and %lld in: expected 0 to 2147483647",
            (long long)rows_out, (long long)rows_in);
    if (taps < 1 || taps > UINT16_MAX + 1)
        return pnet_error_set(e, PNET_USAGE, "%d taps: expected 1 to 65536", (int)taps);
    return PNET_OK;
}

static enum pnet_status make_forms(struct pnet_set *s, struct list list[3], struct pnet_error *e)
{
    int64_t count = list[0].array->rows, rows_out = s->out.rows;
    enum pnet_status st = PNET_OK;
    for (int n = 0; n < 3 && !st; n++) st = check_numbers(&list[n], count, e);
    if (!st)
        st = pnet_set_form_take(&s->by_out, rows_out, s->in.rows, count, (int32_t)list[2].end, e);
    if (!st) {
        pnet_cpu_listed(count, list[0].data, list[1].data, list[2].data, rows_out, s->by_out.start,
            s->by_out.other, s->by_out.cell);
        st = pnet_set_form_turn(&s->by_out, &s->by_in, e);
    }
    for (int n = 0; n < 3; n++) free(list[n].copy);
    return st;
}

enum pnet_status pnet_set_triplets(const struct pnet_array *i, const struct pnet_array *j,
    const struct pnet_array *k, int64_t rows_out, int64_t rows_in, int32_t taps,
    const struct pnet_triplet_options *options, struct pnet_set **set, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, set);
    PNET_REQUIRE(e, PNET_A(ANY, i), PNET_A(ANY, j), PNET_A(ANY, k));
    PNET_OWN_ERROR(e);
    struct list list[] = {{.name = "i", .array = i, .end = rows_out},
        {.name = "j", .array = j, .end = rows_in}, {.name = "k", .array = k, .end = taps}};
    struct pnet_triplet_options o;
    enum pnet_status st = check_sizes(rows_out, rows_in, taps, e);
    if (!st) st = pnet_library_take("pnet_triplet_options", options, &o, sizeof o, e);
    for (int n = 0; n < 3 && !st; n++) st = check_length(&list[n], i->rows, e);
    struct pnet_set *s = st ? NULL : pnet_handle_new(PNET_CLASS_SET, sizeof *s, e);
    if (!st && !s) st = PNET_NO_MEMORY;
    if (!st) st = pnet_home_read("the set lies", o.device, o.stream, o.allocator, &s->home, e);
    if (!st) {
        atomic_init(&s->owners, 1);
        s->out = (struct pnet_set_side){.rows = rows_out, .extent = {1, 1, 1}};
        s->in = (struct pnet_set_side){.rows = rows_in, .extent = {1, 1, 1}};
        s->samples = 1;
        s->several = true;
        const struct pnet_array *const lists[] = {i, j, k};
        st = pnet_set_on_gpu(s) ? pnet_set_lists_on_gpu(s, lists, rows_out, rows_in, taps, e)
                                : make_forms(s, list, e);
    }
    if (st) {
        pnet_set_free(s);
        return st;
    }
    *set = s;
    return PNET_OK;
}

enum pnet_status pnet_set_counts(
    const struct pnet_set *set, struct pnet_set_info *info, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SET, set), PNET_A(ANY, info));
    struct pnet_set_info i = {.rows_in = set->in.rows,
        .rows_out = set->out.rows,
        .triplets = set->by_out.triplets.count,
        .taps = set->by_out.triplets.cells,
        .axes = set->axes,
        .batches = set->samples};
    memcpy(i.extent_in, set->in.extent, sizeof i.extent_in);
    memcpy(i.extent_out, set->out.extent, sizeof i.extent_out);
    return pnet_library_give("pnet_set_info", &i, info, sizeof i, e);
}

enum pnet_status pnet_set_indices(
    const struct pnet_set *set, int32_t *to, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SET, set));
    if (count) PNET_REQUIRE(e, PNET_A(ANY, to));
    PNET_OWN_ERROR(e);
    if (!set->axes)
        return pnet_error_set(
            e, PNET_USAGE, "the set was made from triplets or points: it has no voxels");
    int64_t there = set->out.rows * (1 + set->axes);
    if (count != there)
        return pnet_error_set(e, PNET_USAGE,
            "the indices of the outputs are %lld numbers, not %lld", (long long)there,
            (long long)count);
    if (pnet_set_on_gpu(set)) return pnet_set_indices_on_gpu(set, to, count, e);
    if (count) memcpy(to, set->out.index, (size_t)count * sizeof *to);
    return PNET_OK;
}

static int compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the triplets of one row and tap: those of a set of points lie in the order in which they are summed. */
static void sort_run(int32_t *j, int64_t count)
{
    for (int64_t n = 1; n < count; n++)
        if (j[n] < j[n - 1]) {
            qsort(j, (size_t)count, sizeof *j, compare);
            return;
        }
}

static void sort_row(const uint16_t *cell, int64_t count, int32_t *j)
{
    for (int64_t n = 0, end; n < count; n = end) {
        end = n + 1;
        while (end < count && cell[end] == cell[n]) end++;
        sort_run(j + n, end - n);
    }
}

/* Lists the triplets of a set on the CPU. Rows that do not lie as the caller has them are counted first. */
static enum pnet_status list_triplets(
    const struct pnet_triplets *t, int32_t *i, int32_t *j, int32_t *k, struct pnet_error *e)
{
    int64_t *start = pnet_library_room(t->rows + 1, sizeof *start, e);
    if (!start) return PNET_NO_MEMORY;
    start[0] = 0;
    for (int64_t row = 0; row < t->rows; row++) {
        int64_t p = t->place ? t->place[row] : row;
        start[row + 1] = start[row] + t->start[p + 1] - t->start[p];
    }
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < t->rows; row++) {
        int64_t from = t->start[t->place ? t->place[row] : row], to = start[row],
                count = start[row + 1] - to;
        for (int64_t n = 0; n < count; n++) {
            if (i) i[to + n] = (int32_t)row;
            if (j) j[to + n] = t->other[from + n];
            if (k) k[to + n] = t->cell[from + n];
        }
        if (j && count) sort_row(t->cell + from, count, j + to);
    }
    free(start);
    return PNET_OK;
}

enum pnet_status pnet_set_get_triplets(const struct pnet_set *set, int32_t *i, int32_t *j,
    int32_t *k, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SET, set));
    PNET_OWN_ERROR(e);
    const struct pnet_triplets *t = &set->by_out.triplets;
    if (count != t->count)
        return pnet_error_set(e, PNET_USAGE, "the set has %lld triplets, not %lld",
            (long long)t->count, (long long)count);
    if (pnet_set_on_gpu(set)) return pnet_set_get_triplets_on_gpu(set, i, j, k, e);
    return list_triplets(t, i, j, k, e);
}
