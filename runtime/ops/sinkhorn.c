/* Sinkhorn divergence of two point sets. */
#include "kernels/sinkhorn.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_sets.h"

#include <math.h>

enum { BLUR = PNET_SETS_INPUTS, SCALING };
enum { X_POTENTIAL, Y_POTENTIAL, POTENTIALS = 4 };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_sets_rule(r, "sinkhorn")) return false;
    for (int i = 0; i < PNET_SETS_INPUTS; i++)
        pnet_rule_save(r, (struct pnet_type){PNET_F32, POTENTIALS, r->in[i].level, 0, false}, true);
    return true;
}

static struct pnet_sinkhorn loss_of(const struct pnet_exec *x)
{
    return (struct pnet_sinkhorn){
        .sets = pnet_op_sets(x), .blur = x->attr[BLUR].r, .scaling = x->attr[SCALING].r};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_sinkhorn s = loss_of(x);
    return PNET_WORK(x->device, sinkhorn_work)(&s, backward);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_sinkhorn s = loss_of(x);
    PNET_KERNEL(x, sinkhorn)
    (&s, x->saved[X_POTENTIAL].data, x->saved[Y_POTENTIAL].data, x->out.data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_sinkhorn s = loss_of(x);
    struct pnet_set_gradients g = pnet_op_sets_gradients(x);
    PNET_KERNEL(x, sinkhorn_backward)
    (&s, x->saved[X_POTENTIAL].data, x->saved[Y_POTENTIAL].data, x->gout.data, &g, x->work);
}

/* -eps ln of the mean over n points y of exp((g - |x - y|^2 / 2) / eps). */
static double soft_least(const double *x, int64_t n, const double *y, const double *g, double eps)
{
    double top = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j < n; j++) {
            double c = 0;
            for (int k = 0; k < 3; k++) c += (x[k] - y[3 * j + k]) * (x[k] - y[3 * j + k]) / 2;
            double e = (g[j] - c) / eps;
            if (pass)
                sum += exp(e - top);
            else
                top = fmax(top, e);
        }
    return -eps * (top + log(sum / (double)n));
}

/* One sample of the reference, in the units of the coordinates. What the gradient takes as constant: the points that are
   summed over, and their potentials before the last step. */
struct sample {
    int64_t n[2];
    const double *at[2]; /* x, y */
    double *still[2];    /* x, y of the first run */
    double *cross[2];    /* f, g */
    double *self[2];     /* a, b */
    double diagonal;
};

static double diagonal_of(const struct sample *s)
{
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int side = 0; side < 2; side++)
            for (int64_t i = 0; i < s->n[side]; i++) {
                low = fmin(low, s->at[side][3 * i + k]);
                high = fmax(high, s->at[side][3 * i + k]);
            }
        sum += (high - low) * (high - low);
    }
    return sqrt(sum);
}

/* An averaged step of all potentials; `next` has room for both sets' two. */
static void step(const struct sample *s, double eps, double *next)
{
    double *to = next;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < s->n[k]; i++) {
            const double *x = s->at[k] + 3 * i;
            *to++ = (s->cross[k][i] + soft_least(x, s->n[!k], s->at[!k], s->cross[!k], eps)) / 2;
            *to++ = (s->self[k][i] + soft_least(x, s->n[k], s->at[k], s->self[k], eps)) / 2;
        }
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < s->n[k]; i++) {
            s->cross[k][i] = *next++;
            s->self[k][i] = *next++;
        }
}

static void find_potentials(const struct sample *s, double blur, double scaling, double *next)
{
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < 3 * s->n[k]; i++) s->still[k][i] = s->at[k][i];
    double least = blur * blur * s->diagonal * s->diagonal;
    for (double eps = s->diagonal * s->diagonal; eps > least; eps *= scaling * scaling)
        step(s, eps, next);
    step(s, least, next);
}

static void reference(const struct pnet_exec *x)
{
    const struct pnet_tensor *t = x->in;
    int64_t rows[2] = {t[0].rows, t[1].rows}, all = rows[0] + rows[1];
    double *out = x->out.data, total = 0, blur = x->attr[BLUR].r;
    bool first;
    double *kept = pnet_op_constants(x, (size_t)(7 * all + t[0].samples), &first);
    for (int32_t i = 0; i < t[0].samples; i++) {
        struct sample s;
        double gain[2] = {0, 0}, *diagonal = kept + 7 * all + i;
        for (int k = 0; k < 2; k++) {
            int64_t begin = t[k].row_splits[i], row = begin + (k ? rows[0] : 0);
            s.n[k] = t[k].row_splits[i + 1] - begin;
            s.at[k] = (const double *)t[k].data + 3 * begin;
            s.still[k] = kept + 3 * row;
            s.cross[k] = kept + 3 * all + row;
            s.self[k] = kept + 4 * all + row;
        }
        if (s.n[0] == 0 || s.n[1] == 0) continue;
        if (first) *diagonal = diagonal_of(&s);
        s.diagonal = *diagonal;
        if (s.diagonal == 0) continue;
        if (first) find_potentials(&s, blur, x->attr[SCALING].r, kept + 5 * all);
        double eps = blur * blur * s.diagonal * s.diagonal;
        for (int k = 0; k < 2; k++)
            for (int64_t j = 0; j < s.n[k]; j++) {
                const double *at = s.at[k] + 3 * j;
                gain[k] += soft_least(at, s.n[!k], s.still[!k], s.cross[!k], eps) -
                           soft_least(at, s.n[k], s.still[k], s.self[k], eps);
            }
        total += gain[0] / (double)s.n[0] + gain[1] / (double)s.n[1];
    }
    *out = t[0].samples > 0 ? total / t[0].samples : 0;
}

const struct pnet_op pnet_op_sinkhorn = {
    .name = "sinkhorn",
    .class_ = PNET_LOSS,
    .summary = "Sinkhorn divergence of two point sets",
    .doc =
        "The mean over samples of `S = OT(x, y) - OT(x, x) / 2 - OT(y, y) / 2`, OT being entropic "
        "optimal transport with the cost `C = |x_i - y_j|^2 / 2` between sets whose points all "
        "weigh the same: 0 for equal sets, half the square of the shift for a set and its "
        "translate. The sets may have different sizes; a sample of which one is empty adds 0.\n\n"
        "With D the diagonal of the box around both sets of a sample, potentials f, g begin at 0, "
        "and for each eps of D^2, (D scaling)^2, (D scaling^2)^2, .. above (D blur)^2, then for "
        "(D blur)^2, become the means of themselves and of "
        "`f~_i = -eps ln mean_j exp((g_j - C_ij) / eps)`, `g~` alike. One full step with "
        "(D blur)^2 ends: `OT = mean f~ + mean g~`. There are ln blur / ln scaling steps, rounded "
        "up, and one more before the full one: a `scaling` nearer to 1 comes nearer to "
        "convergence.\n\n"
        "The gradient takes the potentials and D as constant, which is exact at convergence "
        "(envelope theorem). Each step forms all pairs and stores none: for up to some 16,384 "
        "points a sample.\n\n"
        "Potentials are float32 in units of D^2, and S is a difference of their means: it is right "
        "to some 1e-9 D^2, and may come out below 0. So between sets that differ by less than "
        "1e-4 D the value is mostly rounding; gradients are not.\n\n"
        "Cuturi, Sinkhorn Distances: Lightspeed Computation of Optimal Transport, 2013; Feydy et "
        "al., Interpolating between Optimal Transport and MMD using Sinkhorn Divergences, 2019.",
    .args =
        {
            PNET_SETS_ARGS,
            [BLUR] = {"blur", PNET_ARG_REAL, "0.05", 0.005, 1, NULL,
                "length below which points are one, as a share of the box's diagonal"},
            [SCALING] = {"scaling", PNET_ARG_REAL, "0.5", 0.01, 0.99, NULL,
                "factor from one length of the schedule to the next"},
        },
    .flags = PNET_READS_EXACT,
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = pnet_op_sets_mean,
    .cases = "sinkhorn(p.f -> linear(3), q.f -> linear(3))\n"
             "sinkhorn(x -> linear(3), u -> linear(3), blur=20%, scaling=80%)\n"
             "sinkhorn(x -> linear(3), z -> linear(3), blur=2%)\n"
             "sinkhorn(t -> linear(15) -> split(to=points(sample, 5)), p.xyz, blur=100%)\n",
};
