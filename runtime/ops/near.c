/* The nearest row of another point set, for the rows that compare sets: models cannot name it. */
#include "runtime/ops/common_sets.h"

#include <math.h>

static bool rule(struct pnet_rule *r)
{
    r->out = (struct pnet_type){PNET_I32, 1, r->in[PNET_SETS_X].level, 0, false};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    return backward ? 0 : PNET_WORK(x->device, set_near_work)(&p.x, &p.y);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    PNET_KERNEL(x, set_near)(&p.x, &p.y, x->out.data, x->work);
}

static void reference(const struct pnet_exec *x)
{
    const struct pnet_tensor *a = &x->in[PNET_SETS_X], *b = &x->in[PNET_SETS_Y];
    const double *from = a->data, *to = b->data;
    int32_t *out = x->out.data;
    for (int32_t s = 0; s < a->samples; s++)
        for (int64_t i = a->row_splits[s]; i < a->row_splits[s + 1]; i++) {
            double best = INFINITY;
            out[i] = -1;
            for (int64_t j = b->row_splits[s]; j < b->row_splits[s + 1]; j++) {
                double d = 0;
                for (int c = 0; c < 3; c++) d += pow(from[3 * i + c] - to[3 * j + c], 2);
                if (d < best) out[i] = (int32_t)j;
                best = fmin(best, d);
            }
        }
}

const struct pnet_op pnet_op_near = {
    .name = "near",
    .class_ = PNET_LAYER,
    .args =
        {
            [PNET_SETS_X] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "points"},
            [PNET_SETS_Y] = {"y", PNET_ARG_VALUE, NULL, 0, 0, NULL, "points to look among"},
        },
    .flags = PNET_NO_GRAD | PNET_READS_EXACT,
    .rule = rule,
    .work = work,
    .forward = forward,
    .reference = reference,
};
