/* Any bytes as a safetensors file: refused, or tensors that lie within it. */
#include "runtime/train/safetensors.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct pnet_safetensors *f;
    struct pnet_error e;
    if (pnet_safetensors_parse("input", bytes, size, &f, &e) != PNET_OK) return 0;
    unsigned sum = 0;
    size_t total = 0;
    for (size_t i = 0; i < f->count; i++) {
        const struct pnet_safetensor *t = &f->tensors[i];
        size_t length = (size_t)pnet_safetensor_count(t) * pnet_tensor_type_size(t->dtype);
        for (size_t b = 0; b < length; b++) sum += ((const uint8_t *)t->data)[b];
        total += length;
        float *out = length ? malloc(length * 4) : NULL;
        if (pnet_safetensors_find(f, t->name) != t) abort();
        if (out) (void)pnet_safetensors_load(f, "input", t->name, t->dims, t->shape, out, &e);
        free(out);
    }
    volatile unsigned kept = sum; /* so that every byte is read */
    (void)kept;
    if (total + 8 > size) abort();
    pnet_safetensors_free(f);
    return 0;
}
