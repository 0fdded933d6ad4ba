/* Sets of voxels: options, checks, output voxels. docs/library.md has the definition. */
#include "library/set.h"

#include <stdlib.h>
#include <string.h>

/* What a set is made of. */
struct making {
    struct pnet_voxel_options o;
    struct pnet_taps taps;
    struct pnet_set *set;
    struct pnet_sites in, out; /* with the memory of these: */
    int64_t *in_splits, *out_splits;
    uint64_t *in_key, *out_key;
    int32_t *in_row;
};

/* Checks one number of an axis. */
static enum pnet_status check_axis(
    const char *name, int axis, int32_t value, int32_t low, int32_t high, struct pnet_error *e)
{
    if (value >= low && value <= high) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE, "axis %d: %s %d: expected %d to %d", axis, name,
        (int)value, (int)low, (int)high);
}

/* Numbers of one axis, with defaults. */
static enum pnet_status take_axis(struct making *m, int a, struct pnet_error *e)
{
    const struct pnet_voxel_options *o = &m->o;
    struct pnet_taps *t = &m->taps;
    bool there = a < m->set->axes, same = o->kind == PNET_SET_SUBMANIFOLD;
    t->kernel[a] = there ? o->kernel[a] : 1;
    t->stride[a] = there && !same && o->stride[a] ? o->stride[a] : 1;
    t->dilation[a] = there && o->dilation[a] ? o->dilation[a] : 1;
    t->padding[a] = there && !same ? o->padding[a] : 0;
    m->set->in.extent[a] = there ? o->extent[a] : 1;
    if (!there) return PNET_OK;
    enum pnet_status st = check_axis("extent", a, o->extent[a], 1, PNET_SITE_LIMIT, e);
    if (!st) st = check_axis("kernel", a, t->kernel[a], 1, PNET_KERNEL_LIMIT, e);
    if (!st) st = check_axis("stride", a, t->stride[a], 1, PNET_SITE_LIMIT, e);
    if (!st) st = check_axis("dilation", a, t->dilation[a], 1, PNET_SITE_LIMIT, e);
    if (!st) st = check_axis("padding", a, t->padding[a], 0, PNET_SITE_LIMIT, e);
    if (!st && o->kind == PNET_SET_TRANSPOSED)
        st = check_axis("output_padding", a, o->output_padding[a], 0, PNET_SITE_LIMIT, e);
    if (st || !same) return st;
    if (t->kernel[a] % 2 == 0)
        return pnet_error_set(e, PNET_USAGE,
            "axis %d: kernel %d: a submanifold kernel is odd, because it has a middle", a,
            (int)t->kernel[a]);
    int64_t middle = (int64_t)(t->kernel[a] - 1) / 2 * t->dilation[a];
    if (middle <= PNET_SITE_LIMIT) {
        t->padding[a] = (int32_t)middle;
        return PNET_OK;
    }
    return pnet_error_set(e, PNET_USAGE,
        "axis %d: dilation %d: the kernel would reach beyond %d voxels", a, (int)t->dilation[a],
        PNET_SITE_LIMIT);
}

/* The extent of the output on one axis. */
static enum pnet_status find_extent(struct making *m, int a, struct pnet_error *e)
{
    const struct pnet_taps *t = &m->taps;
    int64_t in = m->set->in.extent[a], out = in,
            reach = (int64_t)t->dilation[a] * (t->kernel[a] - 1), p = 2 * (int64_t)t->padding[a];
    if (m->o.kind == PNET_SET_STRIDED)
        out = in + p - reach - 1 < 0 ? 0 : (in + p - reach - 1) / t->stride[a] + 1;
    if (m->o.kind == PNET_SET_TRANSPOSED && a < m->set->axes)
        out = (in - 1) * t->stride[a] - p + reach + m->o.output_padding[a] + 1;
    if (out < 1 || out > PNET_SITE_LIMIT)
        return pnet_error_set(e, PNET_USAGE,
            "axis %d: the extent of the output would be %lld: expected 1 to %d", a, (long long)out,
            PNET_SITE_LIMIT);
    m->set->out.extent[a] = (int32_t)out;
    return PNET_OK;
}

static enum pnet_status take_options(
    struct making *m, const struct pnet_array *indices, struct pnet_error *e)
{
    enum pnet_status st = pnet_library_check_integers("indices", indices, -1, e);
    if (st) return st;
    if (indices->width < 2 || indices->width > 4)
        return pnet_error_set(e, PNET_USAGE,
            "indices: width %lld, expected 2 to 4: the sample and one to three indices",
            (long long)indices->width);
    if ((int)m->o.kind < PNET_SET_SUBMANIFOLD || m->o.kind > PNET_SET_TRANSPOSED)
        return pnet_error_set(
            e, PNET_USAGE, "kind %d: expected a value of enum pnet_set_kind", (int)m->o.kind);
    if (m->o.batches < 0)
        return pnet_error_set(e, PNET_USAGE, "batches %d: expected 0 or more", (int)m->o.batches);
    m->set->axes = (int32_t)indices->width - 1;
    m->set->samples = m->o.batches ? m->o.batches : 1;
    for (int a = 0; a < 3 && !st; a++) {
        st = take_axis(m, a, e);
        if (!st) st = find_extent(m, a, e);
    }
    return st;
}

enum pnet_status pnet_set_check_voxel(
    const struct pnet_set *s, int64_t row, const int32_t *at, struct pnet_error *e)
{
    if (at[0] < 0 || at[0] >= s->samples)
        return pnet_error_set(e, PNET_BAD_DATA, "indices: row %lld: sample %d is none of 0 .. %d",
            (long long)row, (int)at[0], (int)s->samples - 1);
    for (int a = 0; a < s->axes; a++)
        if (at[a + 1] < 0 || at[a + 1] >= s->in.extent[a])
            return pnet_error_set(e, PNET_BAD_DATA,
                "indices: row %lld: index %d of axis %d is none of 0 .. %d", (long long)row,
                (int)at[a + 1], a, (int)s->in.extent[a] - 1);
    return PNET_OK;
}

enum pnet_status pnet_set_same_voxel(int64_t first, int64_t second, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA, "indices: rows %lld and %lld are the same voxel",
        (long long)first, (long long)second);
}

/* Copies the indices, all of which must be inside. */
static enum pnet_status take_indices(
    struct making *m, const struct pnet_array *indices, struct pnet_error *e)
{
    struct pnet_set *s = m->set;
    int64_t width = indices->width, stride = indices->stride ? indices->stride : width;
    s->in.rows = indices->rows;
    s->in.index = pnet_library_room(indices->rows * width, sizeof *s->in.index, e);
    if (!s->in.index) return PNET_NO_MEMORY;
    for (int64_t i = 0; i < indices->rows; i++) {
        const int32_t *at = (const int32_t *)indices->data + i * stride;
        enum pnet_status st = pnet_set_check_voxel(s, i, at, e);
        if (st) return st;
        memcpy(s->in.index + i * width, at, (size_t)width * sizeof *at);
    }
    return PNET_OK;
}

/* Voxels that are there twice are an error, which names the first row whose voxel an earlier row has. */
static enum pnet_status check_twice(const struct pnet_sites *s, struct pnet_error *e)
{
    int64_t place = -1;
    for (int32_t b = 0; b < s->samples; b++)
        for (int64_t i = s->splits[b] + 1; i < s->splits[b + 1]; i++)
            if (s->key[i] == s->key[i - 1] && (place < 0 || s->row[i] < s->row[place])) place = i;
    if (place < 0) return PNET_OK;
    return pnet_set_same_voxel(s->row[place - 1], s->row[place], e);
}

static enum pnet_status sort_inputs(struct making *m, struct pnet_error *e)
{
    struct pnet_set *s = m->set;
    int64_t n = s->in.rows;
    m->in_splits = pnet_library_room((int64_t)s->samples + 1, sizeof *m->in_splits, e);
    m->in_key = pnet_library_room(n, sizeof *m->in_key, e);
    m->in_row = pnet_library_room(n, sizeof *m->in_row, e);
    if (!m->in_splits || !m->in_key || !m->in_row) return PNET_NO_MEMORY;
    void *work = pnet_library_room((int64_t)pnet_cpu_sites_sort_work(n), 1, e);
    if (!work) return PNET_NO_MEMORY;
    pnet_cpu_sites_sort(
        n, s->samples, s->axes, s->in.index, 1 + s->axes, m->in_splits, m->in_key, m->in_row, work);
    free(work);
    m->in = (struct pnet_sites){.rows = n,
        .samples = s->samples,
        .splits = m->in_splits,
        .key = m->in_key,
        .row = m->in_row};
    memcpy(m->in.extent, s->in.extent, sizeof m->in.extent);
    return check_twice(&m->in, e);
}

/* Goes from `m->out` to the voxels that meet one of them on one axis. */
static enum pnet_status reach_axis(struct making *m, int axis, struct pnet_error *e)
{
    bool up = m->o.kind == PNET_SET_STRIDED;
    int32_t extent = m->set->out.extent[axis];
    int64_t *splits = pnet_library_room((int64_t)m->out.samples + 1, sizeof *splits, e);
    if (!splits) return PNET_NO_MEMORY;
    pnet_cpu_sites_reach(&m->out, &m->taps, axis, up, extent, splits, NULL);
    int64_t rows = splits[m->out.samples];
    uint64_t *key = NULL;
    if (rows > INT32_MAX)
        pnet_error_set(e, PNET_NO_MEMORY, "the set has more than 2147483647 output voxels");
    else
        key = pnet_library_room(rows, sizeof *key, e);
    if (!key) {
        free(splits);
        return PNET_NO_MEMORY;
    }
    pnet_cpu_sites_reach(&m->out, &m->taps, axis, up, extent, splits, key);
    free(m->out_splits);
    free(m->out_key);
    m->out.rows = rows;
    m->out.extent[axis] = extent;
    m->out.splits = m->out_splits = splits;
    m->out.key = m->out_key = key;
    m->out.row = NULL;
    return PNET_OK;
}

/* Writes the indices of the outputs. */
static enum pnet_status list_outputs(struct making *m, struct pnet_error *e)
{
    struct pnet_set *s = m->set;
    s->out.rows = m->out.rows;
    s->out.index = pnet_library_room(m->out.rows * (1 + s->axes), sizeof *s->out.index, e);
    if (!s->out.index) return PNET_NO_MEMORY;
    int32_t *to = s->out.index;
    for (int32_t b = 0; b < s->samples; b++)
        for (int64_t i = m->out.splits[b]; i < m->out.splits[b + 1]; i++) {
            *to++ = b;
            for (int a = 0; a < s->axes; a++) *to++ = pnet_site_index(m->out.key[i], a);
        }
    return PNET_OK;
}

static enum pnet_status find_outputs(struct making *m, struct pnet_error *e)
{
    m->out = m->in;
    if (m->o.kind == PNET_SET_SUBMANIFOLD) return PNET_OK; /* the side of the inputs */
    /* The last axis first: where stride is above 1 it leaves the fewest. Any order gives the same voxels. */
    enum pnet_status st = PNET_OK;
    for (int axis = 2; axis >= 0 && !st; axis--)
        if (axis < m->set->axes) st = reach_axis(m, axis, e);
    return st ? st : list_outputs(m, e);
}

/* Orders the rows of a side along a curve. *along, which the caller frees, gets the place of each voxel. */
static enum pnet_status order_side(
    const struct pnet_sites *s, struct pnet_set_side *side, int32_t **along, struct pnet_error *e)
{
    enum pnet_status st = pnet_set_side_take(side, e);
    if (st) return st;
    *along = pnet_library_room(s->rows, sizeof **along, e);
    void *work = pnet_library_room((int64_t)pnet_cpu_sites_curve_work(s->rows), 1, e);
    if (*along && work) pnet_cpu_sites_curve(s, *along, side->row, side->place, work);
    free(work);
    return *along && work ? PNET_OK : PNET_NO_MEMORY;
}

/* Makes both forms, by place: `in` and `out` have places for rows. */
static enum pnet_status find_triplets(struct making *m, const struct pnet_sites *in,
    const struct pnet_sites *out, struct pnet_error *e)
{
    struct pnet_set *s = m->set;
    bool down = m->o.kind == PNET_SET_TRANSPOSED; /* the input is coarse */
    const struct pnet_sites *coarse = down ? in : out, *fine = down ? out : in;
    struct pnet_set_form *form = down ? &s->by_in : &s->by_out;
    form->start = pnet_library_room(coarse->rows + 1, sizeof *form->start, e);
    if (!form->start) return PNET_NO_MEMORY;
    int64_t count = pnet_cpu_taps_count(coarse, fine, &m->taps, form->start);
    enum pnet_status st =
        pnet_set_form_take(form, coarse->rows, fine->rows, count, pnet_taps_count(&m->taps), e);
    if (st) return st;
    pnet_cpu_taps_write(coarse, fine, &m->taps, form->start, form->other, form->cell);
    return pnet_set_form_turn(form, down ? &s->by_out : &s->by_in, e);
}

static enum pnet_status order_and_find(struct making *m, struct pnet_error *e)
{
    struct pnet_set *s = m->set;
    bool same = m->o.kind == PNET_SET_SUBMANIFOLD;
    int32_t *along_in = NULL, *along_out = NULL;
    enum pnet_status st = order_side(&m->in, &s->in, &along_in, e);
    if (!st && !same) st = order_side(&m->out, &s->out, &along_out, e);
    if (same) s->out = s->in;
    if (!st) {
        struct pnet_sites in = m->in, out = m->out;
        in.row = along_in;
        out.row = same ? along_in : along_out;
        st = find_triplets(m, &in, &out, e);
    }
    if (!st) pnet_set_name_rows(s);
    free(along_in);
    free(along_out);
    return st;
}

static enum pnet_status make(
    struct making *m, const struct pnet_array *indices, struct pnet_error *e)
{
    enum pnet_status st = take_indices(m, indices, e);
    if (!st) st = sort_inputs(m, e);
    if (!st) st = find_outputs(m, e);
    return st ? st : order_and_find(m, e);
}

enum pnet_status pnet_set_voxels(const struct pnet_array *indices,
    const struct pnet_voxel_options *options, struct pnet_set **set, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, set);
    PNET_REQUIRE(e, PNET_A(ANY, indices), PNET_AS(ANY, "o", options));
    PNET_OWN_ERROR(e);
    struct making m = {.set = pnet_handle_new(PNET_CLASS_SET, sizeof *m.set, e)};
    if (!m.set) return PNET_NO_MEMORY;
    enum pnet_status st = pnet_library_take("pnet_voxel_options", options, &m.o, sizeof m.o, e);
    if (!st) st = take_options(&m, indices, e);
    if (!st)
        st = pnet_home_read("the set lies", m.o.device, m.o.stream, m.o.allocator, &m.set->home, e);
    if (!st && pnet_set_on_gpu(m.set))
        st = pnet_set_voxels_on_gpu(m.set, indices, &m.taps, m.o.kind, e);
    else if (!st)
        st = make(&m, indices, e);
    free(m.in_splits);
    free(m.in_key);
    free(m.in_row);
    free(m.out_splits);
    free(m.out_key);
    if (st) {
        pnet_set_free(m.set);
        return st;
    }
    atomic_init(&m.set->owners, 1);
    *set = m.set;
    return PNET_OK;
}
