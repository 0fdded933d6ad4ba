/* Optimisers: a step of training on the block of parameters. Formulas: w the
   weights, g' = scale g + decay w, where `scale` clips, and undoes loss scaling.

   SGD: v = momentum v + g';  w -= lr v, or lr (g' + momentum v) with nesterov (Sutskever, Martens,
   Dahl, Hinton, 2013, in the form of PyTorch without dampening).

   Adam (Kingma and Ba, 2015): w = keep w;  m += (1 - beta1) (g' - m);  v = beta2 v + (1 - beta2)
   g'^2;  w -= rate m / (sqrt(v) inverse_root + eps) with rate = lr / (1 - beta1^t), inverse_root =
   1 / sqrt(1 - beta2^t) at step t = 1, 2, ... Decoupled decay (AdamW: Loshchilov and Hutter, 2019)
   is keep = 1 - lr * weight decay with decay = 0. m and v start as 0. */
#ifndef PNET_KERNELS_OPTIM_H
#define PNET_KERNELS_OPTIM_H

#include "kernels/both.h"
#include "kernels/philox.h" /* PNET_HD */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pnet_sgd_step {
    float scale, lr, momentum, decay;
    bool nesterov;
};

struct pnet_adam_step {
    float scale, rate, inverse_root, eps, decay, keep;
    float beta1_rest, beta2, beta2_rest; /* 1 - beta1, beta2, 1 - beta2 */
};

/* One call computes the gradient's norm, decides whether to skip the step, clips and updates; the host reads nothing in between.
   Values that change from step to step lie in a record in the memory of the device, so that on a GPU the step is recorded once
   and replayed. */
enum pnet_optim_formula { PNET_STEP_SGD, PNET_STEP_ADAM };

/* Values that are the same in all steps. */
struct pnet_optim_rule {
    enum pnet_optim_formula formula;
    bool nesterov, decoupled; /* of sgd; of adam */
    double momentum, beta1, beta2, eps, weight_decay;
};

struct pnet_optim_record {
    /* set by the host, any time between steps */
    double lr;
    double clip; /* largest norm of the gradient, which is scaled down to it; 0: no limit */
    double
        loss_scale; /* factor of the loss, by which the gradient is divided; 1: no loss scaling */
    /* set by the step */
    double step;     /* steps that changed the parameters so far: set by the host once */
    double norm;     /* 2-norm of the gradient divided by loss_scale, before clipping; it does not
                        overflow, because squares of floats do not in double */
    int64_t skips;   /* steps that changed nothing, counted up: set by the host once */
    int32_t skipped; /* 1: this step changed nothing, because the norm or a loss is not finite */
    /* coefficients for the update: [0] without weight decay, [1] with it */
    struct pnet_sgd_step sgd[2];
    struct pnet_adam_step adam[2];
};

/* A piece of the parameter block. */
enum { PNET_OPTIM_CHUNK = 4096 };
struct pnet_optim_chunk {
    int64_t offset;
    int16_t count, decays; /* elements, at most PNET_OPTIM_CHUNK; 0 or 1 */
    float rate;            /* factor of the learning rate */
};

/* The arguments of a step. Parameters that no chunk covers are neither read nor changed. On a GPU no value that changes from step
   to step is an argument of a kernel, so that a step can be recorded and replayed. */
struct pnet_optim_update {
    struct pnet_optim_rule rule;
    const struct pnet_optim_chunk *chunks; /* [chunk_count] */
    int64_t chunk_count;
    const float *g;
    float *w, *state[2];  /* sgd: its v, or NULL where momentum is 0; adam: m and v */
    const double *losses; /* [loss_count]: the step is skipped if one is not finite; may be NULL */
    int32_t loss_count;
    struct pnet_optim_record *record;
    int64_t
        squared; /* the first so many chunks' squares are in `work` already, from optim_squares */
};
/* Puts the sums of squares of the gradient of chunks first .. first + count - 1 into `work`, for the update that gets the same
   `work`. */
PNET_BOTH(void, optim_squares, const struct pnet_optim_update *u, int64_t first, int64_t count,
    void *work);
/* A whole step: computes the norm of the gradient, lets pnet_optim_decide decide, and updates w and its state unless the step is
   skipped; u->record->skipped says whether it is. Work: bytes for so many chunks. */
PNET_BOTH(size_t, optim_update_work, int64_t chunk_count);
PNET_BOTH(void, optim_update, const struct pnet_optim_update *u, void *work);

/* sum (+)= weight * loss: the sum over micro-batches of an objective, for `losses` and the log. */
PNET_BOTH(void, loss_add, const float *loss, double weight, bool add, double *sum);

/* Coefficients of a step, the same on both devices. Corrections are computed in double: 1 - beta2^t
   loses all digits in float while t is small. */
PNET_HD struct pnet_sgd_step pnet_sgd_step_of(
    const struct pnet_optim_rule *r, double lr, float scale, bool decays)
{
    struct pnet_sgd_step s;
    s.scale = scale;
    s.lr = (float)lr;
    s.momentum = (float)r->momentum;
    s.decay = decays ? (float)r->weight_decay : 0;
    s.nesterov = r->nesterov;
    return s;
}

/* The share of the averages at step t that is missing because they begin at 0. */
struct pnet_adam_powers {
    double first, second; /* beta1^t, beta2^t */
};

PNET_HD struct pnet_adam_step pnet_adam_step_of(const struct pnet_optim_rule *r,
    struct pnet_adam_powers power, double lr, float scale, bool decays)
{
    struct pnet_adam_step s;
    double decay = decays ? r->weight_decay : 0;
    s.scale = scale;
    s.rate = (float)(lr / (1 - power.first));
    s.inverse_root = (float)(1 / sqrt(1 - power.second));
    s.eps = (float)r->eps;
    s.decay = r->decoupled ? 0 : (float)decay;
    s.keep = r->decoupled ? (float)(1 - lr * decay) : 1;
    s.beta1_rest = (float)(1 - r->beta1);
    s.beta2 = (float)r->beta2;
    s.beta2_rest = (float)(1 - r->beta2);
    return s;
}

/* The same steps with another learning rate: `rate` times that. With 1 they are the same bits. */
PNET_HD struct pnet_sgd_step pnet_sgd_step_at(struct pnet_sgd_step s, float rate)
{
    s.lr *= rate;
    return s;
}

PNET_HD struct pnet_adam_step pnet_adam_step_at(struct pnet_adam_step s, float rate)
{
    s.rate *= rate;
    if (rate != 1) s.keep = 1 - rate * (1 - s.keep);
    return s;
}

/* The factor for a gradient of 2-norm `norm` to get one of at most `limit`: 1 where it is below, or
   where limit is 0; else limit / (norm + 1e-6) (Pascanu, Mikolov, Bengio, 2013). */
PNET_HD double pnet_clip_factor(double norm, double limit)
{
    return limit == 0 || norm <= limit ? 1 : limit / (norm + 1e-6);
}

/* Decides whether to skip the step, and computes clipping and the step's coefficients into *r. `square_sum`: of the
   gradient, with the loss scale in it; `power`: beta1^t and beta2^t of adam at t = r->step + 1. */
PNET_HD void pnet_optim_decide(const struct pnet_optim_rule *rule, double square_sum,
    bool losses_finite, struct pnet_adam_powers power, struct pnet_optim_record *r)
{
    r->norm = sqrt(square_sum) / r->loss_scale;
    r->skipped = !(losses_finite && isfinite(r->norm));
    if (r->skipped) {
        r->skips++;
        return;
    }
    r->step++;
    float scale = (float)(pnet_clip_factor(r->norm, r->clip) / r->loss_scale);
    for (int decays = 0; decays < 2; decays++) {
        if (rule->formula == PNET_STEP_SGD)
            r->sgd[decays] = pnet_sgd_step_of(rule, r->lr, scale, decays);
        else
            r->adam[decays] = pnet_adam_step_of(rule, power, r->lr, scale, decays);
    }
}

#endif
