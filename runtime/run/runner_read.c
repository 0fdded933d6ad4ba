/* Reading a runner's results on the host. */
#include "runtime/run/runner_own.h"

#include "kernels/halves.h"

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
        wide[i] = storage == PNET_STORE_BF16 ? pnet_from_bf16(b) : pnet_from_fp16(b);
    }
    return pnet_device_wait(s->device, e);
}
