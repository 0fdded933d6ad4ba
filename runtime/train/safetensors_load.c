#include "runtime/train/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

float pnet_float_from_bfloat(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float pnet_float_from_half(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    float f;
    if (exponent == 31)
        f = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        f = ldexpf((float)fraction, -24);
    else
        f = ldexpf((float)(fraction + 1024), exponent - 25);
    return h & 0x8000 ? -f : f;
}

bool pnet_tensor_type_is_real(enum pnet_tensor_type t)
{
    return t <= PNET_TENSOR_F64;
}

void pnet_safetensor_floats(const struct pnet_safetensor *t, float *out)
{
    const uint8_t *data = t->data; /* of any alignment */
    int64_t count = pnet_safetensor_count(t);
    if (t->dtype == PNET_TENSOR_F32) {
        if (count) memcpy(out, data, (size_t)count * sizeof *out);
    } else if (t->dtype == PNET_TENSOR_F64) {
        for (int64_t i = 0; i < count; i++) {
            double d;
            memcpy(&d, data + i * 8, sizeof d);
            out[i] = (float)d;
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            uint16_t h;
            memcpy(&h, data + i * 2, sizeof h);
            out[i] =
                t->dtype == PNET_TENSOR_F16 ? pnet_float_from_half(h) : pnet_float_from_bfloat(h);
        }
    }
}

enum pnet_status pnet_floats_check_finite(
    const char *file, const char *name, const float *x, int64_t count, struct pnet_error *e)
{
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++) bad += !isfinite(x[i]);
    if (!bad) return PNET_OK;
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: %" PRId64 " of the %" PRId64 " numbers of `%s` are not finite: the training diverged",
        file, bad, count, name);
}

const char *pnet_shape_text(int dims, const int64_t *shape, char text[PNET_SHAPE_TEXT])
{
    int at = snprintf(text, PNET_SHAPE_TEXT, "[");
    for (int d = 0; d < dims; d++)
        at += snprintf(
            text + at, PNET_SHAPE_TEXT - (size_t)at, "%s%" PRId64, d ? ", " : "", shape[d]);
    snprintf(text + at, PNET_SHAPE_TEXT - (size_t)at, "]");
    return text;
}

static enum pnet_status missing(
    const struct pnet_safetensors *f, const char *file, const char *name, struct pnet_error *e)
{
    const char **names = malloc((f->count + 1) * sizeof *names);
    if (!names) return pnet_error_memory(e);
    for (size_t i = 0; i < f->count; i++) names[i] = f->tensors[i].name;
    const char *near = pnet_nearest(name, names, (int)f->count);
    if (near)
        pnet_error_set(e, PNET_BAD_MODEL,
            "%s: does not fit the model: no tensor \"%.200s\"; the nearest name is \"%.200s\"",
            file, name, near);
    else
        pnet_error_set(
            e, PNET_BAD_MODEL, "%s: does not fit the model: no tensor \"%.200s\"", file, name);
    free(names);
    return PNET_BAD_MODEL;
}

enum pnet_status pnet_safetensors_load(const struct pnet_safetensors *f, const char *file,
    const char *name, int dims, const int64_t *shape, float *out, struct pnet_error *e)
{
    const struct pnet_safetensor *t = pnet_safetensors_find(f, name);
    if (!t) return missing(f, file, name, e);
    char have[PNET_SHAPE_TEXT], want[PNET_SHAPE_TEXT];
    bool same = t->dims == dims;
    for (int d = 0; d < dims && same; d++) same = t->shape[d] == shape[d];
    if (!same)
        return pnet_error_set(e, PNET_BAD_MODEL,
            "%s: does not fit the model: \"%.200s\" is %s, expected %s", file, name,
            pnet_shape_text(t->dims, t->shape, have), pnet_shape_text(dims, shape, want));
    if (!pnet_tensor_type_is_real(t->dtype))
        return pnet_error_set(e, PNET_BAD_MODEL,
            "%s: does not fit the model: \"%.200s\" is of type %s, expected F32, F16, BF16 or F64",
            file, name, pnet_tensor_type_name(t->dtype));
    pnet_safetensor_floats(t, out);
    return PNET_OK;
}
