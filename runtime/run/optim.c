#include "runtime/run/optim.h"
#include "kernels/optim.h"

#include <math.h>
#include <stddef.h>

const char *const pnet_optim_names[] = {"sgd", "adam", "adamw", NULL};

struct pnet_optim pnet_optim_default(enum pnet_optim_kind kind)
{
    return (struct pnet_optim){.kind = kind,
        .momentum = 0.9,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-8,
        .weight_decay = kind == PNET_ADAMW ? 0.01 : 0};
}

static bool is_fraction(double x)
{
    return x >= 0 && x < 1;
}

enum pnet_status pnet_optim_check(const struct pnet_optim *o, struct pnet_error *e)
{
    if (o->kind == PNET_SGD && !is_fraction(o->momentum))
        return pnet_error_set(
            e, PNET_USAGE, "momentum: expected 0 or more, below 1, found %g", o->momentum);
    if (o->kind == PNET_SGD && o->nesterov && o->momentum == 0)
        return pnet_error_set(e, PNET_USAGE, "nesterov: needs a momentum above 0");
    if (o->kind != PNET_SGD && !is_fraction(o->beta1))
        return pnet_error_set(
            e, PNET_USAGE, "beta1: expected 0 or more, below 1, found %g", o->beta1);
    if (o->kind != PNET_SGD && !is_fraction(o->beta2))
        return pnet_error_set(
            e, PNET_USAGE, "beta2: expected 0 or more, below 1, found %g", o->beta2);
    /* eps must stay a normal float. */
    if (o->kind != PNET_SGD && !(o->eps >= 1e-37 && o->eps < 1e30))
        return pnet_error_set(
            e, PNET_USAGE, "eps: expected 1e-37 or more, below 1e30, found %g", o->eps);
    if (!(o->weight_decay >= 0 && o->weight_decay < 1e30))
        return pnet_error_set(e, PNET_USAGE,
            "weight_decay: expected 0 or more, below 1e30, found %g", o->weight_decay);
    return PNET_OK;
}

int pnet_optim_state_count(const struct pnet_optim *o)
{
    if (o->kind == PNET_SGD) return o->momentum > 0;
    return 2;
}

const char *pnet_optim_state_name(const struct pnet_optim *o, int i)
{
    if (o->kind == PNET_SGD) return "momentum";
    return i == 0 ? "mean" : "square";
}

struct pnet_optim_rule pnet_optim_rule(const struct pnet_optim *o)
{
    return (struct pnet_optim_rule){.formula = o->kind == PNET_SGD ? PNET_STEP_SGD : PNET_STEP_ADAM,
        .nesterov = o->nesterov,
        .decoupled = o->kind == PNET_ADAMW,
        .momentum = o->momentum,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->eps,
        .weight_decay = o->weight_decay};
}

int64_t pnet_optim_chunks(const struct pnet_optim *o, const struct pnet_optim_part *parts,
    int part_count, struct pnet_optim_chunk *chunks)
{
    int64_t count = 0;
    for (int i = 0; i < part_count;) {
        bool decays = parts[i].decay || o->decay_all;
        float rate = parts[i].rate;
        int64_t begin = parts[i].offset, end = begin;
        /* consecutive parts with the same decay and rate are cut as one */
        for (; i < part_count && parts[i].offset == end && parts[i].rate == rate &&
               (parts[i].decay || o->decay_all) == decays;
             i++)
            end += parts[i].count;
        for (; begin < end; begin += PNET_OPTIM_CHUNK, count++) {
            int64_t n = end - begin < PNET_OPTIM_CHUNK ? end - begin : PNET_OPTIM_CHUNK;
            if (chunks) chunks[count] = (struct pnet_optim_chunk){begin, (int16_t)n, decays, rate};
        }
    }
    return count;
}

size_t pnet_optim_work(enum pnet_device_kind device, int64_t chunk_count)
{
    return device == PNET_CUDA ? pnet_cuda_optim_update_work(chunk_count)
                               : pnet_cpu_optim_update_work(chunk_count);
}

void pnet_optim_squares(enum pnet_device_kind device, const struct pnet_optim_update *u,
    int64_t first, int64_t count, void *work)
{
#ifdef PNET_CUDA_BUILT
    if (device == PNET_CUDA) {
        pnet_cuda_optim_squares(u, first, count, work);
        return;
    }
#endif
    (void)device;
    pnet_cpu_optim_squares(u, first, count, work);
}

void pnet_optim_step(enum pnet_device_kind device, const struct pnet_optim_update *u, void *work)
{
#ifdef PNET_CUDA_BUILT
    if (device == PNET_CUDA) {
        pnet_cuda_optim_update(u, work);
        return;
    }
#endif
    (void)device;
    pnet_cpu_optim_update(u, work);
}
