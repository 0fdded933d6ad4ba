/* APML, a soft assignment of two point sets. */
#include "kernels/apml.h"

#include "runtime/ops/common.h"
#include "runtime/ops/common_apml.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = PNET_APML_NEXT, MOST, ENTRIES };
enum { ENDS, BY_ROW, BY_COLUMN };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_apml_rule(r, "apml")) return false;
    int x = r->in[PNET_SETS_X].level, y = r->in[PNET_SETS_Y].level;
    int32_t entries = (int32_t)r->attr[ENTRIES].i; /* of two words each */
    pnet_rule_save(r, (struct pnet_type){PNET_I32, 4, x, 0, false}, false);
    pnet_rule_save(r, (struct pnet_type){PNET_I32, 2 * entries, x, 0, false}, false);
    pnet_rule_save(r, (struct pnet_type){PNET_I32, 2 * entries, y, 0, false}, false);
    return true;
}

static struct pnet_apml apml_of(const struct pnet_exec *x)
{
    struct pnet_apml a = pnet_op_apml_search(x, MOST);
    a.rounds = (int32_t)x->attr[ROUNDS].i;
    return a;
}

static struct pnet_apml_plan plan_of(const struct pnet_exec *x)
{
    return (struct pnet_apml_plan){
        x->saved[ENDS].data, x->saved[BY_ROW].data, x->saved[BY_COLUMN].data};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_apml a = apml_of(x);
    return PNET_WORK(x->device, apml_work)(&a, backward);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_apml a = apml_of(x);
    struct pnet_apml_plan plan = plan_of(x);
    PNET_KERNEL(x, apml)(&a, &plan, x->out.data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_apml a = apml_of(x);
    struct pnet_apml_plan plan = plan_of(x);
    struct pnet_apml_gradients g = {.x = x->gin[PNET_SETS_X].data,
        .y = x->gin[PNET_SETS_Y].data,
        .x_add = x->gin_add[PNET_SETS_X],
        .y_add = x->gin_add[PNET_SETS_Y]};
    PNET_KERNEL(x, apml_backward)(&a, &plan, x->gout.data, &g, x->work);
}

/* Adds half of the weights of one side's rows to the plan of a sample, [rows of x, rows of y]. */
static void ref_weights(const struct pnet_apml_dense *d, int side, int32_t s, double *plan)
{
    const int64_t *own = d->x->in[side].row_splits + s, *other = d->x->in[1 - side].row_splits + s;
    int64_t n = own[1] - own[0], m = other[1] - other[0];
    double *weight = calloc((size_t)m + 1, sizeof *weight);
    if (!weight) abort();
    for (int64_t i = 0; i < n; i++) {
        struct pnet_apml_row r = pnet_op_apml_row(d, side, own[0] + i, other[0], other[1]);
        double sum = 0;
        for (int64_t j = 0; j < m; j++) {
            float at = pnet_op_apml_distance(d, side, own[0] + i, other[0] + j);
            int64_t before = 0;
            weight[j] = 0;
            if (!(at <= r.radius)) continue;
            for (int64_t k = 0; k < m; k++) {
                float than = pnet_op_apml_distance(d, side, own[0] + i, other[0] + k);
                before += than < at || (than == at && k < j);
            }
            if (before >= d->limit[side]) continue;
            weight[j] = m == 1 ? 1 : exp(-((double)at - (double)r.a) * r.slope / (double)r.g);
            sum += weight[j];
        }
        for (int64_t j = 0; j < m; j++)
            plan[side == 0 ? i * m + j : j * n + i] += weight[j] / sum / 2;
    }
    free(weight);
}

/* Divides the `rows` rows of a plan by their sums; entry k of row i is plan[i * of_row + k * of_entry]. */
static void ref_normalise(
    double *plan, int64_t rows, int64_t of_row, int64_t entries, int64_t of_entry)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = 1e-8;
        for (int64_t k = 0; k < entries; k++) sum += plan[i * of_row + k * of_entry];
        for (int64_t k = 0; k < entries; k++) plan[i * of_row + k * of_entry] /= sum;
    }
}

static double ref_carried(const struct pnet_exec *x, int32_t s, const double *plan)
{
    const int64_t *rows = x->in[PNET_SETS_X].row_splits + s,
                  *others = x->in[PNET_SETS_Y].row_splits + s;
    double sum = 0;
    for (int64_t i = rows[0]; i < rows[1]; i++)
        for (int64_t j = others[0]; j < others[1]; j++, plan++) {
            const double *p = (const double *)x->in[PNET_SETS_X].data + 3 * i,
                         *q = (const double *)x->in[PNET_SETS_Y].data + 3 * j;
            sum += *plan * sqrt(pow(p[0] - q[0], 2) + pow(p[1] - q[1], 2) + pow(p[2] - q[2], 2));
        }
    return sum;
}

static void reference(const struct pnet_exec *x)
{
    const struct pnet_tensor *a = &x->in[PNET_SETS_X], *b = &x->in[PNET_SETS_Y];
    int32_t rounds = (int32_t)x->attr[ROUNDS].i;
    double *out = x->out.data;
    size_t pairs = 0;
    bool first;
    for (int32_t s = 0; s < a->samples; s++)
        pairs += (size_t)((a->row_splits[s + 1] - a->row_splits[s]) *
                          (b->row_splits[s + 1] - b->row_splits[s]));
    double *plan = pnet_op_constants(x, pairs, &first);
    struct pnet_apml_dense d = {.x = NULL};
    if (first) d = pnet_op_apml_dense(x, MOST);
    *out = 0;
    for (int32_t s = 0; s < a->samples; s++) {
        int64_t n = a->row_splits[s + 1] - a->row_splits[s],
                m = b->row_splits[s + 1] - b->row_splits[s];
        for (int side = 0; first && side < 2; side++) ref_weights(&d, side, s, plan);
        for (int32_t k = 0; first && k < rounds; k++) {
            ref_normalise(plan, m, 1, n, m);
            ref_normalise(plan, n, m, m, 1);
        }
        *out += ref_carried(x, s, plan) / a->samples;
        plan += n * m;
    }
}

const struct pnet_op pnet_op_apml = {
    .name = "apml",
    .class_ = PNET_LOSS,
    .summary = "Distances under a soft assignment of two point sets, summed over the points",
    .doc =
        "Adaptive probabilistic matching. For each sample with points `x_i` and `y_j`, `d_ij = "
        "|x_i - y_j|`:\n\n"
        "1. For a point `x_i`, with `K` points `y_j`: `a` and `b` are its two smallest distances, "
        "`g = max(b - a, 1e-8)`, `L = ln((K - 1) p / (1 - p))`, and the similarities are `s_ij = "
        "exp(-(d_ij - a) L / g)`. Similarities below `tau` are left out; those that stay are "
        "divided by their sum. So the nearest point gets a weight of at least `p` if all others "
        "lie at least a gap `g` farther. With `K = 1` the weight is 1.\n"
        "2. The points `y_j` get weights of points `x_i` likewise. The plan `P` is the mean of "
        "both.\n"
        "3. `rounds` times the columns, then the rows of `P` are divided by their sums + 1e-8. "
        "Where all predictions lie together, or the sets have different sizes, this scales some "
        "rows by more than float32 holds: factors of rows and columns have exponents of their "
        "own.\n"
        "4. The loss is the mean over samples of `sum P_ij d_ij`, a sum over points: it grows with "
        "their number, where `chamfer` has a mean. A sample of which either set is empty adds "
        "0.\n\n"
        "The gradient takes `P` as constant: `dloss/dx_i = sum_j P_ij (x_i - y_j) / max(d_ij, "
        "1e-6) / samples`, and the same for `y`. The sets may have different sizes; then rows add "
        "up to 1, and columns on average to the quotient of the sizes. Two equal sets do not give "
        "0. A coordinate that is not finite makes the loss and its gradients NaN.\n\n"
        "`s_ij >= tau` is the same as `d_ij <= a + g ln(1 / tau) / L`, so farther pairs are not "
        "looked at. Rounds magnify what `tau` leaves out: for two samples of 2,048 points of one "
        "surface, the loss at `tau=1e-8` is 0.6 % below that without a threshold; at `tau=1e-16` "
        "they are equal. A point keeps the `most` nearest of the points that stay, and its "
        "weights add up to 1 over these. Memory is planned for `entries` of them a point, on "
        "average over each set of the batch. If a set needs more, as where all predictions lie in "
        "one place, its points keep the largest of 32, 16, 12, 8, 6, 4 or 2 nearest points that "
        "fits. The metric `apml_support` tells whether that happens.\n\n"
        "Source: *APML: Adaptive Probabilistic Matching Loss* (arXiv 2509.08104) and *CUDA-APML* "
        "(arXiv 2512.19743). Where these papers and their code differ, this is the definition of "
        "the papers, but a tied nearest point has the gap 1e-8 instead of uniform weights, and as "
        "in the code no gradient passes through `P`.",
    .args = {PNET_APML_FIRST_ARGS, PNET_APML_LIMIT_ARGS(MOST),
        [ROUNDS] = {"rounds", PNET_ARG_INT, "10", 0, 1000, NULL,
            "how often columns and rows of the plan are normalised"}},
    .flags = PNET_READS_EXACT,
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = pnet_op_sets_mean,
    .cases = "apml(p.xyz, q.xyz)\n"
             "apml(x -> linear(3), u -> linear(3), tau=1e-12, rounds=3)\n"
             "apml(p.f -> linear(3), p.xyz, p=0.6, rounds=0)\n"
             "apml(z -> linear(3), p.xyz, p=95%, most=4, entries=2)\n",
};
