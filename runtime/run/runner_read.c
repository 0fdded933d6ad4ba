/* Reading a runner's results on the host. */
#include "runtime/run/runner_own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const void *pnet_runner_objective_data(const struct pnet_runner *s, int objective)
{
    return pnet_runner_data(s, s->slots[0], s->plan->objectives[objective].tensor);
}

double pnet_runner_objective(const struct pnet_runner *s, int objective, double *sum)
{
    const struct pnet_objective *o = &s->plan->objectives[objective];
    const struct pnet_type *t = &s->plan->tensors[o->tensor].type;
    const char *data = pnet_runner_objective_data(s, objective);
    size_t size = t->type == PNET_F64 ? sizeof(double) : sizeof(float);
    double chunk[256], first = 0;
    int per = (int)(sizeof chunk / size), count = sum ? t->width : 1;
    for (int begin = 0; begin < count; begin += per) {
        int n = count - begin < per ? count - begin : per;
        pnet_device_get(s->device, chunk, data + (size_t)begin * size, (size_t)n * size);
        for (int i = 0; i < n; i++) {
            double v = t->type == PNET_F64 ? chunk[i] : (double)((const float *)chunk)[i];
            if (begin + i == 0) first = v;
            if (sum) sum[begin + i] += v;
        }
    }
    return first;
}

const void *pnet_runner_tensor(const struct pnet_runner *s, int slot, int tensor, int64_t *rows)
{
    const struct pnet_type *t = &s->plan->tensors[tensor].type;
    *rows = t->level == s->plan->scalar_level ? 1 : s->slots[slot]->counts.rows[t->level];
    return pnet_runner_data(s, s->slots[slot], tensor);
}

/* Returns parent[row of the input level], the row at the result's level; NULL if both levels are the same. */
static const int32_t *result_parent(
    const struct pnet_runner *s, const struct pnet_slot *slot, int input, int level)
{
    int item = pnet_geo_find(
        s->plan, &(struct pnet_geo_request){.kind = PNET_GEO_PARENT, .a = input, .b = level});
    return item < 0 ? NULL : slot->views[item].parent;
}

/* 16-bit numbers as float32. */
static float from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static float from_fp16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float x = exponent == 31 ? (mantissa ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(mantissa + 1024), exponent - 25)
                             : ldexpf((float)mantissa, -24);
    return bits >> 15 ? -x : x;
}

enum pnet_status pnet_runner_copy_tensor(const struct pnet_runner *s, int slot, int tensor,
    void **data, int64_t *rows, struct pnet_error *e)
{
    const struct pnet_type *t = &s->plan->tensors[tensor].type;
    enum pnet_storage storage = s->bound->storage[tensor];
    const void *from = pnet_runner_tensor(s, slot, tensor, rows);
    size_t n = (size_t)*rows * (size_t)t->width;
    size_t bytes = n * pnet_bound_element_bytes(s->bound, tensor);
    *data = malloc(n * 8 + 1);
    if (!*data) return pnet_error_memory(e);
    pnet_device_get(s->device, *data, from, bytes);
    float *wide = *data;
    /* from the end: each float overwrites 16-bit numbers that have been read */
    const uint16_t *bits = *data;
    for (size_t i = n; t->type == PNET_F32 && storage != PNET_STORE_F32 && i-- > 0;) {
        uint16_t b;
        memcpy(&b, &bits[i], sizeof b);
        wide[i] = storage == PNET_STORE_BF16 ? from_bf16(b) : from_fp16(b);
    }
    return pnet_device_wait(s->device, e);
}

static enum pnet_status copy_index(const struct pnet_runner *s, const int32_t *from, int64_t rows,
    int32_t **to, struct pnet_error *e)
{
    *to = NULL;
    if (!from) return PNET_OK;
    *to = malloc((size_t)rows * sizeof **to + 1);
    if (!*to) return pnet_error_memory(e);
    pnet_device_get(s->device, *to, from, (size_t)rows * sizeof **to);
    return PNET_OK;
}

/* Generated points belong to a row of another level, in its order. Returns that level, and how many each row has (where it has
   rows); of other levels the level itself, and 1. */
static int root_of(const struct pnet_plan *p, int level, int64_t *each)
{
    *each = 1;
    for (; p->levels[level].kind == PNET_GEO_POINTS; level = p->levels[level].from)
        if (*each <= INT32_MAX)
            *each *= p->levels[level].count; /* without rows it may be any number */
    return level;
}

/* Returns the level whose order the rows of the result have. */
static int result_input(const struct pnet_plan *p)
{
    int level = p->tensors[p->result].type.level;
    while (p->levels[level].finer >= 0) level = p->levels[level].finer;
    return level;
}

int64_t pnet_runner_result_rows(const struct pnet_runner *s, int slot)
{
    const struct pnet_plan *p = s->plan;
    bool scalar = p->tensors[p->result].type.level == p->scalar_level;
    return scalar ? 1 : s->slots[slot]->counts.rows[result_input(p)];
}

enum pnet_status pnet_runner_result_to(
    const struct pnet_runner *s, int slot_index, float *to, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    const struct pnet_slot *slot = s->slots[slot_index];
    const struct pnet_type *t = &p->tensors[p->result].type;
    int level = t->level, input = result_input(p);
    size_t width = (size_t)t->width;
    int64_t from_rows, each, rows = pnet_runner_result_rows(s, slot_index);
    int root = root_of(p, input, &each);
    int32_t *parent = NULL, *order = NULL;
    void *from = NULL;
    enum pnet_status st = pnet_runner_copy_tensor(s, slot_index, p->result, &from, &from_rows, e);
    if (!st && input != level)
        st = copy_index(s, result_parent(s, slot, input, level), rows, &parent, e);
    if (!st) st = copy_index(s, pnet_slot_order(slot, root), rows / each, &order, e);
    if (!st) st = pnet_device_wait(s->device, e);
    const float *values = from;
#pragma omp parallel for schedule(static) if (!st)
    for (int64_t i = 0; i < (st ? 0 : rows); i++)
        memcpy(to + (size_t)(order ? order[i / each] * each + i % each : i) * width,
            values + (size_t)(parent ? parent[i] : i) * width, width * sizeof(float));
    free(parent);
    free(order);
    free(from);
    return st;
}

enum pnet_status pnet_runner_result(
    const struct pnet_runner *s, int slot, float **data, int64_t *rows, struct pnet_error *e)
{
    size_t width = (size_t)s->plan->tensors[s->plan->result].type.width;
    *rows = pnet_runner_result_rows(s, slot);
    *data = malloc((size_t)*rows * width * sizeof **data + 1);
    enum pnet_status st = *data ? PNET_OK : pnet_error_memory(e);
    if (!st) st = pnet_runner_result_to(s, slot, *data, e);
    if (!st) return PNET_OK;
    free(*data);
    *data = NULL;
    return st;
}
