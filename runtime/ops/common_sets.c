#include "runtime/ops/common_sets.h"

#include "runtime/ops/common.h"

static bool check_set(struct pnet_rule *r, const char *name, int arg)
{
    struct pnet_type t = r->in[arg];
    char text[96];
    enum pnet_geo_id kind = r->levels[t.level].kind;
    pnet_type_text(r->levels, t, text);
    if (kind == PNET_GEO_SAMPLE || kind == PNET_GEO_SCALAR) {
        r->error_in = arg;
        return pnet_rule_fail(
            r, arg, "%s() compares points, and %s has one row a sample", name, text);
    }
    if (t.width == 3) return true;
    r->error_in = arg;
    return pnet_rule_fail(r, arg, "%s() takes points with 3 channels, not %s", name, text);
}

bool pnet_op_sets_rule(struct pnet_rule *r, const char *name)
{
    r->out = (struct pnet_type){PNET_F32, 1, r->scalar_level, 0, false};
    return check_set(r, name, PNET_SETS_X) && check_set(r, name, PNET_SETS_Y);
}

static struct pnet_point_set set_of(const struct pnet_tensor *t)
{
    return (struct pnet_point_set){pnet_op_rows(t), t->samples, t->row_splits, t->data};
}

struct pnet_set_pair pnet_op_sets(const struct pnet_exec *x)
{
    return (struct pnet_set_pair){
        .x = set_of(&x->in[PNET_SETS_X]), .y = set_of(&x->in[PNET_SETS_Y])};
}
