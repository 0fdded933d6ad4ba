#include "runtime/optim.h"
#include "kernels/cpu/optim.h"

#include <math.h>
#include <stddef.h>

const char *const pnet_optim_names[PNET_OPTIMS] = {"sgd", "adam", "adamw"};

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
    /* It must stay a normal float. */
    if (o->kind != PNET_SGD && !(o->eps >= 1e-37 && o->eps < 1e30))
        return pnet_error_set(e, PNET_USAGE, "eps: expected 1e-37 or more, found %g", o->eps);
    if (!(o->weight_decay >= 0 && o->weight_decay < 1e30))
        return pnet_error_set(
            e, PNET_USAGE, "weight_decay: expected 0 or more, found %g", o->weight_decay);
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

static struct pnet_sgd_step sgd_step(const struct pnet_optim *o, double lr, float scale, bool decay)
{
    return (struct pnet_sgd_step){.scale = scale,
        .lr = (float)lr,
        .momentum = (float)o->momentum,
        .decay = decay ? (float)o->weight_decay : 0,
        .nesterov = o->nesterov};
}

/* Corrections are computed in double: 1 - beta2^t loses all digits in float while t is small. */
static struct pnet_adam_step adam_step(
    const struct pnet_optim *o, double t, double lr, float scale, bool decay)
{
    double weight_decay = decay ? o->weight_decay : 0;
    bool apart = o->kind == PNET_ADAMW;
    return (struct pnet_adam_step){.scale = scale,
        .rate = (float)(lr / (1 - pow(o->beta1, t))),
        .inverse_root = (float)(1 / sqrt(1 - pow(o->beta2, t))),
        .eps = (float)o->eps,
        .decay = apart ? 0 : (float)weight_decay,
        .keep = apart ? (float)(1 - lr * weight_decay) : 1,
        .beta1_rest = (float)(1 - o->beta1),
        .beta2 = (float)o->beta2,
        .beta2_rest = (float)(1 - o->beta2)};
}

void pnet_optim_step_cpu(const struct pnet_optim *o, double t, double lr, float scale,
    const struct pnet_optim_part *parts, int part_count, const float *g, float *w,
    float *const *state)
{
    bool momentum = pnet_optim_state_count(o) == 1;
    for (int i = 0; i < part_count; i++) {
        const struct pnet_optim_part *p = &parts[i];
        bool decay = p->decay || o->decay_all;
        if (o->kind == PNET_SGD) {
            struct pnet_sgd_step s = sgd_step(o, lr, scale, decay);
            pnet_cpu_sgd(
                p->count, &s, g + p->offset, w + p->offset, momentum ? state[0] + p->offset : NULL);
        } else {
            struct pnet_adam_step s = adam_step(o, t, lr, scale, decay);
            pnet_cpu_adam(p->count, &s, g + p->offset, w + p->offset, state[0] + p->offset,
                state[1] + p->offset);
        }
    }
}

float pnet_optim_clip(double norm, double limit)
{
    if (limit == 0 || norm <= limit) return 1;
    return (float)(limit / (norm + 1e-6));
}
