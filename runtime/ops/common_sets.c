#include "runtime/ops/common_sets.h"

#include "runtime/ops/common.h"

#include <assert.h>
#include <math.h>

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

bool pnet_op_sets_same_sizes(struct pnet_rule *r, const char *name, const char *help)
{
    char x[96], y[96];
    int64_t of_x, of_y;
    int under_x = pnet_level_root(r->levels, r->in[PNET_SETS_X].level, -1, &of_x),
        under_y = pnet_level_root(r->levels, r->in[PNET_SETS_Y].level, -1, &of_y);
    if (under_x != under_y || of_x == of_y) return true;
    r->error_in = PNET_SETS_Y;
    pnet_rule_help(r, "%s", help);
    return pnet_rule_fail(r, PNET_SETS_Y,
        "%s needs as many points in y as in x: %s has %lld and %s has %lld for each row of %s",
        name, pnet_type_text(r->levels, r->in[PNET_SETS_Y], y), (long long)of_y,
        pnet_type_text(r->levels, r->in[PNET_SETS_X], x), (long long)of_x, r->levels[under_x].name);
}

void pnet_op_sets_read_near(struct pnet_rule *r)
{
    pnet_rule_reads(r, &pnet_op_near, PNET_SETS_X, PNET_SETS_Y);
    pnet_rule_reads(r, &pnet_op_near, PNET_SETS_Y, PNET_SETS_X);
}

bool pnet_op_near_rule(struct pnet_rule *r, const char *name)
{
    if (!pnet_op_sets_rule(r, name)) return false;
    pnet_op_sets_read_near(r);
    for (int i = 0; i < PNET_SETS_INPUTS; i++)
        pnet_rule_save(r, (struct pnet_type){PNET_F32, 1, r->in[i].level, 0, false}, true);
    return true;
}

static struct pnet_point_set set_of(const struct pnet_tensor *t)
{
    return (struct pnet_point_set){pnet_op_rows(t), t->samples, t->row_splits, t->data};
}

/* The nearest rows for the rows of one side; NULL where the rule did not ask for them. They are the last inputs. */
static const int32_t *near_of(const struct pnet_exec *x, int side)
{
    return x->in_count < 2 * PNET_SETS_INPUTS ? NULL
                                              : x->in[x->in_count - PNET_SETS_INPUTS + side].data;
}

struct pnet_set_pair pnet_op_sets(const struct pnet_exec *x)
{
    return (struct pnet_set_pair){.x = set_of(&x->in[PNET_SETS_X]),
        .y = set_of(&x->in[PNET_SETS_Y]),
        .x_near = near_of(x, PNET_SETS_X),
        .y_near = near_of(x, PNET_SETS_Y)};
}

static struct pnet_set_pull pull_of(const struct pnet_exec *x, int side)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    const float *x_pull = x->saved[PNET_SETS_X_PULL].data,
                *y_pull = x->saved[PNET_SETS_Y_PULL].data;
    if (side == PNET_SETS_X)
        return (struct pnet_set_pull){p.x, p.y, p.x_near, p.y_near, x_pull, y_pull};
    return (struct pnet_set_pull){p.y, p.x, p.y_near, p.x_near, y_pull, x_pull};
}

size_t pnet_op_near_backward_work(const struct pnet_exec *x)
{
    struct pnet_set_pull a = pull_of(x, PNET_SETS_X), b = pull_of(x, PNET_SETS_Y);
    size_t first = PNET_WORK(x->device, set_pull_work)(&a),
           second = PNET_WORK(x->device, set_pull_work)(&b);
    return first > second ? first : second;
}

void pnet_op_near_backward(const struct pnet_exec *x)
{
    for (int side = 0; side < PNET_SETS_INPUTS; side++) {
        struct pnet_set_pull p = pull_of(x, side);
        if (!x->gin[side].data) continue;
        PNET_KERNEL(x, set_pull)
        (&p, x->gout.data, x->gin_add[side], x->gin[side].data, x->work);
    }
}

static double reference_side(const struct pnet_exec *x, int own, int32_t sample,
    double (*term)(const struct pnet_exec *x, const struct pnet_op_near_point *p))
{
    const struct pnet_tensor *a = &x->in[own], *b = &x->in[1 - own];
    const double *from = a->data, *to = b->data;
    struct pnet_op_near_point p = {.own = own,
        .nearest = near_of(x, own),
        .begin = a->row_splits[sample],
        .rows = a->row_splits[sample + 1] - a->row_splits[sample],
        .others = b->row_splits[sample + 1] - b->row_splits[sample]};
    double sum = 0;
    for (p.row = p.begin; p.row < p.begin + p.rows && p.others; p.row++) {
        assert(p.nearest); /* the rule has asked for it */
        p.near = p.nearest[p.row];
        p.square = 0;
        for (int c = 0; c < 3; c++) p.square += pow(from[3 * p.row + c] - to[3 * p.near + c], 2);
        sum += term(x, &p);
    }
    return sum;
}

double pnet_op_near_reference(const struct pnet_exec *x,
    double (*term)(const struct pnet_exec *x, const struct pnet_op_near_point *p))
{
    double sum = 0;
    int32_t samples = x->in[PNET_SETS_X].samples;
    for (int32_t s = 0; s < samples; s++)
        sum += reference_side(x, PNET_SETS_X, s, term) + reference_side(x, PNET_SETS_Y, s, term);
    return samples ? sum / samples : 0;
}

struct pnet_mean pnet_op_sets_mean(const struct pnet_exec *x, double value)
{
    const int64_t *a = x->in[PNET_SETS_X].row_splits, *b = x->in[PNET_SETS_Y].row_splits;
    int32_t samples = x->in[PNET_SETS_X].samples, count = 0;
    for (int32_t s = 0; s < samples; s++) count += a[s] < a[s + 1] && b[s] < b[s + 1];
    return (struct pnet_mean){value * samples, count};
}

struct pnet_set_gradients pnet_op_sets_gradients(const struct pnet_exec *x)
{
    return (struct pnet_set_gradients){x->gin[PNET_SETS_X].data, x->gin[PNET_SETS_Y].data,
        x->gin_add[PNET_SETS_X], x->gin_add[PNET_SETS_Y]};
}
