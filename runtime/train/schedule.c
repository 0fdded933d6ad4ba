#include "runtime/train/schedule.h"

#include <inttypes.h>
#include <math.h>

const char *const pnet_schedule_names[PNET_SCHEDULES] = {
    "constant", "step", "cosine", "one-cycle", "exponential"};

struct pnet_schedule pnet_schedule_default(enum pnet_schedule_kind kind, double lr)
{
    return (struct pnet_schedule){.kind = kind,
        .lr = lr,
        .every = 10,
        .gamma = kind == PNET_SCHEDULE_STEP ? 0.1 : 0.99,
        .warm_fraction = 0.3,
        .div_factor = 25,
        .final_div_factor = 1e4};
}

static enum pnet_status bad(
    struct pnet_error *e, const char *name, const char *expected, double found)
{
    return pnet_error_set(e, PNET_USAGE, "%s: expected %s, found %g", name, expected, found);
}

enum pnet_status pnet_schedule_check(const struct pnet_schedule *s, struct pnet_error *e)
{
    enum pnet_schedule_kind kind = s->kind;
    if (!(s->lr > 0 && s->lr < 1e30)) return bad(e, "lr", "more than 0, below 1e30", s->lr);
    if (s->warmup_steps < 0) return bad(e, "warmup", "0 steps or more", (double)s->warmup_steps);
    if (kind == PNET_SCHEDULE_STEP && s->every < 1)
        return bad(e, "every", "1 epoch or more", (double)s->every);
    if ((kind == PNET_SCHEDULE_STEP || kind == PNET_SCHEDULE_EXPONENTIAL) &&
        !(s->gamma > 0 && s->gamma <= 1))
        return bad(e, "gamma", "more than 0, at most 1", s->gamma);
    if (kind == PNET_SCHEDULE_COSINE && !(s->final_lr >= 0 && s->final_lr <= s->lr))
        return bad(e, "final_lr", "0 up to lr", s->final_lr);
    if (kind != PNET_SCHEDULE_ONE_CYCLE) return PNET_OK;
    if (!(s->warm_fraction >= 0 && s->warm_fraction <= 1))
        return bad(e, "warm_fraction", "0 up to 1", s->warm_fraction);
    if (!(s->div_factor >= 1 && isfinite(s->div_factor)))
        return bad(e, "div_factor", "1 or more, and finite", s->div_factor);
    if (!(s->final_div_factor >= 1 && isfinite(s->final_div_factor)))
        return bad(e, "final_div_factor", "1 or more, and finite", s->final_div_factor);
    return PNET_OK;
}

/* Half a cosine from `from` at 0 to `to` at 1; both ends are met exactly. */
static double swing(double from, double to, double at)
{
    if (at <= 0) return from;
    if (at >= 1) return to;
    return to + (from - to) * 0.5 * (1 + cos(3.14159265358979323846 * at));
}

/* `step` of `steps`, from 0. */
static double cosine(const struct pnet_schedule *s, int64_t step, int64_t steps)
{
    return swing(s->lr, s->final_lr, steps > 1 ? (double)step / (double)(steps - 1) : 0);
}

static double one_cycle(const struct pnet_schedule *s, int64_t step, int64_t steps)
{
    double first = s->lr / s->div_factor, last = first / s->final_div_factor;
    double end = (double)steps - 1, at = (double)step;
    /* The step with the highest rate, which need not be a whole one. */
    double top = fmax(s->warm_fraction * (double)steps - 1, 0);
    if (at < top) return swing(first, s->lr, at / top);
    return end > top ? swing(s->lr, last, (at - top) / (end - top)) : s->lr;
}

static double proper(const struct pnet_schedule *s, int64_t step, int64_t steps, int64_t epoch)
{
    int64_t drops = s->kind == PNET_SCHEDULE_STEP ? epoch / s->every : epoch;
    switch (s->kind) {
    case PNET_SCHEDULE_STEP:
    case PNET_SCHEDULE_EXPONENTIAL: return s->lr * pow(s->gamma, (double)drops);
    case PNET_SCHEDULE_COSINE: return cosine(s, step, steps);
    case PNET_SCHEDULE_ONE_CYCLE: return one_cycle(s, step, steps);
    case PNET_SCHEDULE_CONSTANT:
    case PNET_SCHEDULES: break;
    }
    return s->lr;
}

double pnet_schedule_lr(
    const struct pnet_schedule *s, int64_t step, int64_t total_steps, int64_t steps_per_epoch)
{
    int64_t warm = s->warmup_steps, last = total_steps > 0 ? total_steps - 1 : 0;
    if (step > last) step = last;
    int64_t steps = last + 1 - warm;
    if (step < warm) return proper(s, 0, steps, 0) * (double)(step + 1) / (double)(warm + 1);
    return proper(s, step - warm, steps, steps_per_epoch > 0 ? step / steps_per_epoch : 0);
}
