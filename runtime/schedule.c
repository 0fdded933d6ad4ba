/* Learning rate schedules. */
#include "runtime/config.h"

#include <math.h>

/* From a to b along half a cosine, t from 0 to 1. */
static double ease(double a, double b, double t)
{
    return b + (a - b) * (1 + cos(M_PI * t)) / 2;
}

static double share(int64_t done, int64_t of)
{
    double t = of > 0 ? (double)done / (double)of : 1;
    return t < 0 ? 0 : t > 1 ? 1 : t;
}

double pnet_schedule_lr(const struct pnet_schedule_config *s, double lr, int64_t step,
    int64_t steps, int64_t steps_an_epoch)
{
    int64_t warm = s->warmup_steps ? s->warmup_steps : (int64_t)llround(s->warmup * (double)steps);
    double rest = share(step - warm, steps - 1 - warm);
    double epoch = (double)step / (double)(steps_an_epoch > 0 ? steps_an_epoch : 1);
    double factor = 1;
    if (s->kind == PNET_SCHEDULE_ONECYCLE) {
        if (step < warm) return lr * ease(1 / s->div, 1, share(step, warm));
        return lr * ease(1, s->final, rest);
    }
    if (step < warm) return lr * (double)(step + 1) / (double)warm;
    switch (s->kind) {
    case PNET_SCHEDULE_STEP:
        if (s->every) factor = pow(s->gamma, floor(epoch / (double)s->every));
        for (int i = 0; i < s->milestone_count; i++)
            if (epoch >= (double)s->milestones[i]) factor *= s->gamma;
        return lr * factor;
    case PNET_SCHEDULE_COSINE: return lr * ease(1, s->final, rest);
    case PNET_SCHEDULE_EXPONENTIAL: return lr * pow(s->gamma, floor(epoch));
    default: return lr;
    }
}
