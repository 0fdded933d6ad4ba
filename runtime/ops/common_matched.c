/* Losses of two clouds: input 0 holds features of the source, input 1 of the target, argument 2 says
   which rows match. */
#include "runtime/ops/common.h"

#include <math.h>

bool pnet_op_matched_rule(struct pnet_rule *r, const char *name)
{
    const struct pnet_matches *m = r->attr[2].matches;
    char text[96];
    for (int i = 0; i < 2; i++) {
        int level = i ? m->b : m->a;
        if (r->in[i].level == level) continue;
        r->error_in = i;
        pnet_rule_help(r, "match their levels: matches(level(..), level(..), ..)");
        return pnet_rule_fail(r, i, "%s() has features %s, but the matches are of %s", name,
            pnet_type_text(r->levels, r->in[i], text), r->levels[level].name);
    }
    if (r->in[0].width != r->in[1].width) {
        r->error_in = 1;
        return pnet_rule_fail(r, 1, "%s() compares features of one width, not %d and %d", name,
            (int)r->in[0].width, (int)r->in[1].width);
    }
    r->out = (struct pnet_type){PNET_F32, 1, r->scalar_level, 0, false};
    pnet_rule_matches(r, m, m->radius);
    return true;
}

struct pnet_matched pnet_op_matched(const struct pnet_exec *x)
{
    struct pnet_matched p = {.samples = x->in[0].samples,
        .width = x->in[0].width,
        .a_rows = pnet_op_rows(&x->in[0]),
        .b_rows = pnet_op_rows(&x->in[1]),
        .a_splits = x->in[0].row_splits,
        .b_splits = x->in[1].row_splits,
        .a = x->in[0].data,
        .b = x->in[1].data,
        .start = x->geo[0]->forward.start,
        .other = x->geo[0]->forward.other,
        .rand = x->rand};
    p.rand.purpose = PNET_DRAW_LOSS;
    return p;
}

struct pnet_matched_gradients pnet_op_matched_gradients(const struct pnet_exec *x)
{
    return (struct pnet_matched_gradients){
        x->gin[0].data, x->gin[1].data, x->gin_add[0], x->gin_add[1]};
}

double pnet_op_matched_distance(const struct pnet_exec *x, int64_t i, int64_t j)
{
    int32_t width = x->in[0].width;
    const double *a = (const double *)x->in[0].data + i * width,
                 *b = (const double *)x->in[1].data + j * width;
    double sum = 0;
    for (int32_t c = 0; c < width; c++) sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sqrt(sum);
}
