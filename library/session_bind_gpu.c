/* A batch of arrays that lie on the session's GPU. */
#include "library/session_bind.h"

#include <string.h>

enum pnet_status pnet_binding_check(
    const struct pnet_binding *b, const struct pnet_value *v, struct pnet_error *e)
{
    const struct pnet_array *a = &v->array;
    size_t element = a->dtype == PNET_DTYPE_I64 ? sizeof(int64_t) : sizeof(int32_t);
    if (a->rows > 1 && pnet_library_stride(a) != a->width)
        return pnet_error_set(e, PNET_USAGE,
            "%s: the stride %lld is not the width %lld: arrays on a GPU are contiguous", v->name,
            (long long)a->stride, (long long)a->width);
    return pnet_home_check(&b->session->home, v->name, a->data, element, e);
}

/* Is it the name of row splits? */
static bool is_splits(const struct pnet_plan *p, const char *name)
{
    for (int i = 0; i < p->input_count; i++)
        if (strcmp(p->inputs[i].name, name) == 0) return !pnet_input_is_pose(&p->inputs[i]);
    return false;
}

static enum pnet_status bring(struct pnet_binding *b, struct pnet_value *v, struct pnet_error *e)
{
    struct pnet_array *a = &v->array;
    enum pnet_status st = pnet_library_check_rows(v->name, a, "a batch has", e);
    /* their type and width are checked where they are read */
    if (st || !pnet_library_is_integer(a) || a->width != 1 || !a->rows) return st;
    if ((st = pnet_binding_check(b, v, e))) return st;
    size_t bytes =
        (size_t)a->rows * (a->dtype == PNET_DTYPE_I64 ? sizeof(int64_t) : sizeof(int32_t));
    void *copy = pnet_binding_room(b, bytes, e);
    if (!copy) return PNET_NO_MEMORY;
    pnet_device_get(b->session->home.device, copy, a->data, bytes);
    a->data = copy;
    a->stride = 0;
    return pnet_device_wait(b->session->home.device, e);
}

enum pnet_status pnet_binding_bring_splits(struct pnet_binding *b, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    struct pnet_value *own = pnet_binding_room(b, b->count * sizeof *own, e);
    if (!own) return PNET_NO_MEMORY;
    if (b->count) memcpy(own, b->values, b->count * sizeof *own);
    for (size_t i = 0; i < b->count && !st; i++)
        if (is_splits(b->plan, own[i].name)) st = bring(b, &own[i], e);
    b->values = own;
    return st;
}

#ifdef PNET_CUDA_BUILT
#include "kernels/given.h"

static size_t bytes_of(const struct pnet_array *a)
{
    return pnet_round_bytes((size_t)a->rows * sizeof(int32_t));
}

/* Takes memory for all classes of 64 bits, and a word in front of it. */
static enum pnet_status take_room(struct pnet_binding *b, struct pnet_error *e)
{
    const struct pnet_home *home = &b->session->home;
    size_t bytes = pnet_round_bytes(sizeof(int64_t));
    if (b->next) return PNET_OK;
    for (size_t i = 0; i < b->count; i++) {
        const struct pnet_value *v = &b->values[i];
        enum pnet_status st = pnet_library_check_rows(v->name, &v->array, "a batch has", e);
        if (st) return st;
        if (v->array.dtype == PNET_DTYPE_I64) bytes += bytes_of(&v->array);
    }
    char *room = pnet_home_take(home, home->stream, bytes, &b->rooms, e);
    if (!room) return e->status;
    b->next = room + pnet_round_bytes(sizeof(int64_t));
    return PNET_OK;
}

enum pnet_status pnet_binding_take_classes(struct pnet_binding *b, const struct pnet_value *v,
    int32_t classes, void **to, struct pnet_error *e)
{
    struct pnet_device device = b->session->home.device;
    const struct pnet_array *a = &v->array;
    bool wide = a->dtype == PNET_DTYPE_I64;
    enum pnet_status st = pnet_binding_check(b, v, e);
    if (!st) st = take_room(b, e);
    if (st) return st;
    int64_t bad =
        pnet_cuda_integers_outside(a->rows, a->data, wide, -1, classes, b->rooms.room[0].memory);
    if ((st = pnet_device_wait(device, e))) return st;
    if (bad >= 0) {
        int64_t label = 0;
        int32_t narrow = 0;
        const char *at =
            (const char *)a->data + (size_t)bad * (wide ? sizeof label : sizeof narrow);
        pnet_device_get(
            device, wide ? (void *)&label : &narrow, at, wide ? sizeof label : sizeof narrow);
        return pnet_binding_bad_class(v, bad, wide ? label : narrow, classes, e);
    }
    *to = (void *)a->data; /* only read */
    if (!wide) return PNET_OK;
    *to = b->next;
    b->next += bytes_of(a);
    pnet_cuda_integers_narrow(a->rows, a->data, *to);
    return PNET_OK;
}
#else
/* No session has arrays on a GPU. */
enum pnet_status pnet_binding_take_classes(struct pnet_binding *b, const struct pnet_value *v,
    int32_t classes, void **to, struct pnet_error *e)
{
    (void)v;
    (void)classes;
    (void)to;
    return pnet_device_check(b->session->home.device, e);
}
#endif
