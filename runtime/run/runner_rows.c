/* Rows between tensors and the caller, who has those of points in the order of the batch. */
#include "runtime/run/runner_own.h"

#include "kernels/rows.h"

#include <stdlib.h>

/* How the rows of a tensor lie with the caller. */
struct shape {
    struct pnet_placing place; /* `index` on the device */
    const int32_t
        *from;   /* likewise: the row of the tensor that each of these rows has; NULL: its own */
    int64_t own; /* rows of the tensor */
};

/* Returns the level whose order the rows of the result have. */
static int result_input(const struct pnet_plan *p)
{
    int level = p->tensors[p->result].type.level;
    while (p->levels[level].finer >= 0) level = p->levels[level].finer;
    return level;
}

static int64_t rows_of(const struct pnet_runner *s, int slot, int level)
{
    return level == s->plan->scalar_level ? 1 : s->slots[slot]->counts.rows[level];
}

int64_t pnet_runner_result_rows(const struct pnet_runner *s, int slot)
{
    int level = s->plan->tensors[s->plan->result].type.level;
    return rows_of(s, slot, level == s->plan->scalar_level ? level : result_input(s->plan));
}

int64_t pnet_runner_tensor_rows(const struct pnet_runner *s, int slot, int tensor)
{
    return rows_of(s, slot, s->plan->tensors[tensor].type.level);
}

/* Returns parent[row of the input level], the row at the result's level; NULL if both levels are the same. */
static const int32_t *result_parent(
    const struct pnet_runner *s, const struct pnet_slot *slot, int input, int level)
{
    int item = pnet_geo_find(
        s->plan, &(struct pnet_geo_request){.kind = PNET_GEO_PARENT, .a = input, .b = level});
    return item < 0 ? NULL : slot->views[item].parent;
}

/* `level`: whose rows the caller has. */
static struct shape shape_of(const struct pnet_runner *s, int slot, int tensor, int level)
{
    const struct pnet_type *t = &s->plan->tensors[tensor].type;
    struct shape h = {.own = rows_of(s, slot, t->level),
        .place = {.rows = rows_of(s, slot, level), .width = t->width, .each = 1}};
    if (t->level == s->plan->scalar_level) return h;
    /* generated points belong to a row of the root, in its order */
    int root = pnet_level_root(s->plan->levels, level, -1, &h.place.each);
    h.place.index = pnet_slot_order(s->slots[slot], root);
    if (level != t->level) h.from = result_parent(s, s->slots[slot], level, t->level);
    return h;
}

static enum pnet_status copy_index(const struct pnet_runner *s, const int32_t **index, int64_t rows,
    int32_t **own, struct pnet_error *e)
{
    *own = NULL;
    if (!*index) return PNET_OK;
    *own = malloc((size_t)rows * sizeof **own + 1);
    if (!*own) return pnet_error_memory(e);
    pnet_device_get(s->device, *own, *index, (size_t)rows * sizeof **own);
    *index = *own;
    return PNET_OK;
}

/* From a GPU to the host, by copies there of all that the rows are made of. */
static enum pnet_status bring(const struct pnet_runner *s, int slot, int tensor, struct shape h,
    float *to, struct pnet_error *e)
{
    size_t bytes = (size_t)(h.own * h.place.width) * pnet_bound_element_bytes(s->bound, tensor);
    int32_t *order = NULL, *from = NULL;
    void *x = malloc(bytes + 1);
    enum pnet_status st = x ? PNET_OK : pnet_error_memory(e);
    if (!st) st = copy_index(s, &h.place.index, h.place.rows / h.place.each, &order, e);
    if (!st) st = copy_index(s, &h.from, h.place.rows, &from, e);
    if (!st) {
        pnet_device_get(s->device, x, pnet_runner_data(s, s->slots[slot], tensor), bytes);
        st = pnet_device_wait(s->device, e);
    }
    if (!st) pnet_cpu_rows_out(h.place, x, s->bound->storage[tensor], h.from, to);
    free(order);
    free(from);
    free(x);
    return st;
}

static enum pnet_status give_rows(const struct pnet_runner *s, int slot, int tensor, int level,
    bool there, float *to, struct pnet_error *e)
{
    struct shape h = shape_of(s, slot, tensor, level);
    if (!h.place.rows) return PNET_OK;
    if (!there && s->device.kind != PNET_CPU) return bring(s, slot, tensor, h, to, e);
    PNET_KERNEL(s->bound, rows_out)
    (h.place, pnet_runner_data(s, s->slots[slot], tensor), s->bound->storage[tensor], h.from, to);
    return PNET_OK;
}

enum pnet_status pnet_runner_give(
    const struct pnet_runner *s, int slot, int tensor, bool there, float *to, struct pnet_error *e)
{
    return give_rows(s, slot, tensor, s->plan->tensors[tensor].type.level, there, to, e);
}

enum pnet_status pnet_runner_give_result(
    const struct pnet_runner *s, int slot, bool there, float *to, struct pnet_error *e)
{
    int level = s->plan->tensors[s->plan->result].type.level;
    return give_rows(s, slot, s->plan->result,
        level == s->plan->scalar_level ? level : result_input(s->plan), there, to, e);
}

enum pnet_status pnet_runner_result(
    const struct pnet_runner *s, int slot, float **data, int64_t *rows, struct pnet_error *e)
{
    size_t width = (size_t)s->plan->tensors[s->plan->result].type.width;
    *rows = pnet_runner_result_rows(s, slot);
    *data = malloc((size_t)*rows * width * sizeof **data + 1);
    enum pnet_status st = *data ? PNET_OK : pnet_error_memory(e);
    if (!st) st = pnet_runner_give_result(s, slot, false, *data, e);
    if (!st) return PNET_OK;
    free(*data);
    *data = NULL;
    return st;
}

/* From the host to a GPU, by a copy here in the order and the storage of the tensor. */
static enum pnet_status send(const struct pnet_runner *s, int slot, int tensor, struct shape h,
    const float *from, struct pnet_error *e)
{
    size_t bytes = (size_t)(h.own * h.place.width) * pnet_bound_element_bytes(s->bound, tensor);
    int32_t *order = NULL;
    void *x = malloc(bytes + 1);
    enum pnet_status st = x ? PNET_OK : pnet_error_memory(e);
    if (!st) st = copy_index(s, &h.place.index, h.place.rows / h.place.each, &order, e);
    if (!st) {
        pnet_cpu_rows_in(h.place, from, s->bound->storage[tensor], x);
        pnet_device_put(s->device, pnet_runner_data(s, s->slots[slot], tensor), x, bytes);
        st = pnet_device_wait(s->device, e);
    }
    free(order);
    free(x);
    return st;
}

enum pnet_status pnet_runner_take_gradient(struct pnet_runner *s, int slot, int output, bool there,
    const float *from, struct pnet_error *e)
{
    int tensor = s->plan->outputs[output].gradient;
    struct shape h = shape_of(s, slot, tensor, s->plan->tensors[tensor].type.level);
    enum pnet_status st = PNET_OK;
    if (h.place.rows && !there && s->device.kind != PNET_CPU)
        st = send(s, slot, tensor, h, from, e);
    else if (h.place.rows)
        PNET_KERNEL(s->bound, rows_in)
    (h.place, from, s->bound->storage[tensor], pnet_runner_data(s, s->slots[slot], tensor));
    if (!st) s->seeded[output] = true;
    return st;
}

void pnet_runner_seed_rest(struct pnet_runner *s, int slot)
{
    for (int i = 0; i < s->plan->output_count; i++) {
        int tensor = s->plan->outputs[i].gradient;
        if (tensor >= 0 && !s->seeded[i])
            pnet_device_fill(
                s->device, pnet_runner_data(s, s->slots[slot], tensor), 0, s->layout.bytes[tensor]);
        s->seeded[i] = false;
    }
}
