/* Learning rates against PyTorch's, and by their properties. */
#include "runtime/train/schedule.h"
#include "tests/check.h"

static void check_table(const char *name, struct pnet_schedule s, int64_t steps_per_epoch,
    const double *want, int count)
{
    struct pnet_error e;
    CHECKF(pnet_schedule_check(&s, &e) == PNET_OK, "%s", e.message);
    for (int i = 0; i < count; i++) {
        double lr = pnet_schedule_lr(&s, i, count, steps_per_epoch);
        CHECKF(fabs(lr - want[i]) < 1e-15, "%s: step %d: %.17g, PyTorch has %.17g", name, i, lr,
            want[i]);
    }
}

/* Rates of PyTorch 2.15: OneCycleLR(total_steps = 12, pct_start = 0.3, div_factor = 25) and (10,
   0.5, 10, final_div_factor = 100), CosineAnnealingLR(T_max = 7, eta_min = 0.05), StepLR(3, 0.5),
   ExponentialLR(0.9). */
static void check_pytorch(void)
{
    struct pnet_schedule s = pnet_schedule_default(PNET_SCHEDULE_ONE_CYCLE, 0.4);
    check_table("one-cycle", s, 1,
        (double[]){0.016000000000000014, 0.13991586168783321, 0.35171406364885149,
            0.39776617418036475, 0.37320518793656471, 0.32469826157990522, 0.25895159907804133,
            0.18505484106679002, 0.11322439928347969, 0.053391012075532242, 0.013826794970158089,
            1.5999999999999999e-06},
        12);
    s.warm_fraction = 0.5;
    s.div_factor = 10;
    s.final_div_factor = 100;
    check_table("one-cycle", s, 1,
        (double[]){0.03999999999999998, 0.092720779386421426, 0.22, 0.34727922061357858, 0.4,
            0.3618415954761145, 0.26194159547611451, 0.13845840452388553, 0.038558404523885523,
            0.0004},
        10);
    s = pnet_schedule_default(PNET_SCHEDULE_COSINE, 0.4);
    s.final_lr = 0.05;
    check_table("cosine", s, 1,
        (double[]){0.4, 0.38266955188292334, 0.33411071532527836, 0.26394116344235502,
            0.18605883655764499, 0.11588928467472165, 0.067330448117076669, 0.05},
        8);
    s = pnet_schedule_default(PNET_SCHEDULE_STEP, 0.4);
    s.every = 3;
    s.gamma = 0.5;
    check_table("step", s, 1, (double[]){0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1}, 8);
    s = pnet_schedule_default(PNET_SCHEDULE_EXPONENTIAL, 0.4);
    s.gamma = 0.9;
    check_table("exponential", s, 1, (double[]){0.4, 0.36, 0.324, 0.2916, 0.26244, 0.236196}, 6);
}

/* Epochs are whole: the rate changes where one begins. */
static void check_epochs(void)
{
    struct pnet_schedule s = pnet_schedule_default(PNET_SCHEDULE_EXPONENTIAL, 1);
    s.gamma = 0.5;
    for (int64_t step = 0; step < 50; step++)
        CHECK(pnet_schedule_lr(&s, step, 50, 10) == pow(0.5, (double)(step / 10)));
    s.kind = PNET_SCHEDULE_STEP;
    s.every = 2;
    for (int64_t step = 0; step < 50; step++)
        CHECK(pnet_schedule_lr(&s, step, 50, 10) == pow(0.5, (double)(step / 20)));
    s.kind = PNET_SCHEDULE_CONSTANT;
    for (int64_t step = 0; step < 50; step++) CHECK(pnet_schedule_lr(&s, step, 50, 10) == 1);
}

/* Whatever the numbers: rates lie between 0 and lr, the warm-up is a line, one-cycle and cosine end
   where they should, and beyond the end nothing changes. */
static void check_properties(void)
{
    static const int64_t totals[] = {1, 2, 3, 4, 10, 101};
    for (int kind = 0; kind < PNET_SCHEDULES; kind++)
        for (size_t n = 0; n < sizeof totals / sizeof *totals; n++)
            for (int64_t warm = 0; warm <= 12; warm += 4) {
                int64_t total = totals[n];
                struct pnet_schedule s = pnet_schedule_default((enum pnet_schedule_kind)kind, 0.3);
                s.warmup_steps = warm;
                s.final_lr = 0.01;
                double last = pnet_schedule_lr(&s, total - 1, total, 7);
                for (int64_t i = 0; i < total; i++) {
                    double lr = pnet_schedule_lr(&s, i, total, 7);
                    CHECKF(lr > 0 && lr <= 0.3 * (1 + 1e-15), "kind %d, step %d of %d: %g", kind,
                        (int)i, (int)total, lr);
                    if (i < warm)
                        CHECK(
                            fabs(lr - (double)(i + 1) * pnet_schedule_lr(&s, 0, total, 7)) < 1e-15);
                }
                CHECK(pnet_schedule_lr(&s, total + 5, total, 7) == last);
                if (total - warm < 2) continue;
                if (kind == PNET_SCHEDULE_COSINE) CHECK(last == 0.01);
                if (kind == PNET_SCHEDULE_ONE_CYCLE) CHECK(fabs(last - 0.3 / 25e4) < 1e-20);
            }
}

/* The warm-up leads to the first rate of the schedule, which then runs over what is left. */
static void check_warm_up(void)
{
    struct pnet_schedule s = pnet_schedule_default(PNET_SCHEDULE_COSINE, 0.4), cold = s;
    s.warmup_steps = 9;
    CHECK(fabs(pnet_schedule_lr(&s, 0, 30, 1) - 0.04) < 1e-16);
    CHECK(fabs(pnet_schedule_lr(&s, 8, 30, 1) - 0.36) < 1e-16);
    for (int64_t i = 9; i < 30; i++)
        CHECK(pnet_schedule_lr(&s, i, 30, 1) == pnet_schedule_lr(&cold, i - 9, 21, 1));
}

static void check_refused(void)
{
    struct pnet_error e;
    struct {
        const char *name;
        struct pnet_schedule s;
    } bad[] = {
        {"lr", {.kind = PNET_SCHEDULE_CONSTANT, .lr = 0}},
        {"lr", {.kind = PNET_SCHEDULE_CONSTANT, .lr = NAN}},
        {"warmup", {.kind = PNET_SCHEDULE_CONSTANT, .lr = 1, .warmup_steps = -1}},
        {"every", {.kind = PNET_SCHEDULE_STEP, .lr = 1, .gamma = 0.1}},
        {"gamma", {.kind = PNET_SCHEDULE_STEP, .lr = 1, .every = 1, .gamma = 0}},
        {"gamma", {.kind = PNET_SCHEDULE_EXPONENTIAL, .lr = 1, .gamma = 1.5}},
        {"final_lr", {.kind = PNET_SCHEDULE_COSINE, .lr = 1, .final_lr = 2}},
        {"warm_fraction", {.kind = PNET_SCHEDULE_ONE_CYCLE, .lr = 1, .warm_fraction = 2}},
        {"div_factor", {.kind = PNET_SCHEDULE_ONE_CYCLE, .lr = 1, .div_factor = 0}},
        {"final_div_factor", {.kind = PNET_SCHEDULE_ONE_CYCLE, .lr = 1, .div_factor = 1}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(pnet_schedule_check(&bad[i].s, &e) == PNET_USAGE);
        CHECKF(strncmp(e.message, bad[i].name, strlen(bad[i].name)) == 0, "%s", e.message);
    }
    for (int kind = 0; kind < PNET_SCHEDULES; kind++) {
        struct pnet_schedule s = pnet_schedule_default((enum pnet_schedule_kind)kind, 0.1);
        CHECK(pnet_schedule_check(&s, &e) == PNET_OK);
        CHECK(strlen(pnet_schedule_names[kind]) > 3);
    }
}

int main(void)
{
    check_pytorch();
    check_epochs();
    check_properties();
    check_warm_up();
    check_refused();
    return check_end();
}
