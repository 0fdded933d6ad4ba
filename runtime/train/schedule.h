/* Learning rates over a training: pure functions of the step. */
#ifndef PNET_RUNTIME_SCHEDULE_H
#define PNET_RUNTIME_SCHEDULE_H

#include "runtime/base/error.h"

#include <stdint.h>

enum pnet_schedule_kind {
    PNET_SCHEDULE_CONSTANT, /* lr */
    PNET_SCHEDULE_STEP,     /* lr * gamma^floor(epoch / every) */
    PNET_SCHEDULE_COSINE,   /* from lr down to final_lr, half a cosine (Loshchilov and Hutter, 2017)
                             */
    PNET_SCHEDULE_ONE_CYCLE,   /* up from lr / div_factor to lr, then down to lr / (div_factor *
                                  final_div_factor), both half a cosine (Smith and Topin, 2018) */
    PNET_SCHEDULE_EXPONENTIAL, /* lr * gamma^epoch */
    PNET_SCHEDULES,
};
/* "constant", "step", "cosine", "one-cycle", "exponential" */
extern const char *const pnet_schedule_names[PNET_SCHEDULES];

struct pnet_schedule {
    enum pnet_schedule_kind kind;
    double lr;            /* the highest rate, above 0 */
    int64_t warmup_steps; /* warm-up: the rate rises linearly before the schedule begins; 0: none */
    int64_t every;        /* STEP: epochs */
    double gamma;         /* STEP EXPONENTIAL: above 0, at most 1 */
    double final_lr;      /* COSINE: 0 .. lr */
    double warm_fraction; /* ONE_CYCLE: share of the steps that go up, 0 .. 1 */
    double div_factor;    /* ONE_CYCLE: 1 or more */
    double final_div_factor; /* ONE_CYCLE: 1 or more */
};

/* every 10 epochs with gamma 0.1 (STEP), gamma 0.99 (EXPONENTIAL), final_lr 0, 30% up, from lr /
   25, to lr / 250000; no warm-up. */
struct pnet_schedule pnet_schedule_default(enum pnet_schedule_kind kind, double lr);

/* Returns PNET_USAGE if a value is out of range; the message names it. */
enum pnet_status pnet_schedule_check(const struct pnet_schedule *s, struct pnet_error *e);

/* Returns the rate of step 0 .. total_steps - 1; later steps have the rate of the last one. With N warm-up steps, step i < N
   has the share (i + 1) / (N + 1) of the first rate of the schedule, and COSINE and ONE_CYCLE run over the other steps. Both
   end exactly in the last step. Epochs (whole, step / steps_per_epoch) count from step 0. */
double pnet_schedule_lr(
    const struct pnet_schedule *s, int64_t step, int64_t total_steps, int64_t steps_per_epoch);

#endif
