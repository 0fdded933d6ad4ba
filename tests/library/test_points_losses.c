/* Losses between points: the numbers of a model's losses and gradients; sums in double by the definitions; rows in another order;
   errors. */
#include "tests/library/points.h"

#include <omp.h>

enum { ROWS = 240 };

struct loss {
    const char *words; /* of a model */
    struct pnet_loss_options o;
};
#define DEFAULT_LOSSES 7
enum { LOSSES = DEFAULT_LOSSES + 5 };

/* Every kind with what a model takes by default, then with other numbers. */
static void list_losses(struct loss losses[LOSSES])
{
    static const char *const words[LOSSES] = {"chamfer(y, q.xyz)", "dcd(y, q.xyz)",
        "hypercd(y, q.xyz)", "infocd(y, q.xyz)", "emd(y, q.xyz)", "sinkhorn(y, q.xyz)",
        "apml(y, q.xyz)", "chamfer(y, q.xyz, kind=l1)",
        "dcd(y, q.xyz, alpha=3, lambda=0.5, at_least_one=yes)",
        "infocd(y, q.xyz, tau=0.5, lambda=0.3, reduce=sum)",
        "sinkhorn(y, q.xyz, blur=0.1, scaling=0.8)",
        "apml(y, q.xyz, p=0.6, tau=1e-12, rounds=3, most=8, entries=3)"};
    static const enum pnet_loss_kind kinds[LOSSES - DEFAULT_LOSSES] = {
        PNET_LOSS_CHAMFER, PNET_LOSS_DCD, PNET_LOSS_INFOCD, PNET_LOSS_SINKHORN, PNET_LOSS_APML};
    for (int i = 0; i < LOSSES; i++) {
        enum pnet_loss_kind kind =
            i < DEFAULT_LOSSES ? (enum pnet_loss_kind)i : kinds[i - DEFAULT_LOSSES];
        losses[i] = (struct loss){words[i], {.size = sizeof losses[i].o}};
        NEED(pnet_loss_default(kind, &losses[i].o, &e));
    }
    struct loss *l = losses + DEFAULT_LOSSES;
    l[0].o.squares = 0;
    l[1].o.alpha = 3;
    l[1].o.lambda = 0.5;
    l[1].o.at_least_one = 1;
    l[2].o.tau = 0.5;
    l[2].o.lambda = 0.3;
    l[2].o.sums = 1;
    l[3].o.blur = 0.1;
    l[3].o.scaling = 0.8;
    l[4].o.p = 0.6;
    l[4].o.tau = 1e-12;
    l[4].o.rounds = 3;
    l[4].o.most = 8;
    l[4].o.entries = 3;
}

/* A loss, and its gradients by the rows of x and y. */
struct result {
    float loss, *x, *y;
};

static struct result run(const struct pnet_points *x, const struct pnet_points *y,
    const struct pnet_loss_options *o, float gradient)
{
    int64_t of_x = points_info(x).rows, of_y = points_info(y).rows;
    struct result a = {NAN, sets_floats(3 * of_x), sets_floats(3 * of_y)};
    struct pnet_loss_bytes bytes = {.size = sizeof bytes};
    NEED(pnet_loss_workspace(x, y, o, &bytes, &e));
    struct pnet_loss_run r = {.size = sizeof r,
        .kept = sets_room(bytes.kept, 1),
        .kept_bytes = bytes.kept,
        .workspace = sets_room(bytes.forward, 1),
        .workspace_bytes = bytes.forward};
    struct pnet_array_out to_x = sets_out(a.x, of_x, 3), to_y = sets_out(a.y, of_y, 3);
    float alone = NAN;
    NEED(pnet_loss_forward(x, y, o, &r, &a.loss, &e));
    NEED(pnet_loss_forward(x, y, o, NULL, &alone, &e));
    CHECK(memcmp(&alone, &a.loss, sizeof alone) == 0);
    free(r.workspace);
    r.workspace = sets_room(bytes.backward, 1);
    r.workspace_bytes = bytes.backward;
    NEED(pnet_loss_backward(x, y, o, &r, gradient, &to_x, &to_y, &e));
    /* each by itself, on top of what is there: twice the gradient, and once more what was there */
    float *twice = sets_floats(3 * of_x);
    struct pnet_array_out more = sets_out(twice, of_x, 3);
    memcpy(twice, a.x, (size_t)of_x * 12);
    r.accumulate = 1;
    NEED(pnet_loss_backward(x, y, o, &r, gradient, &more, NULL, &e));
    int64_t wrong = 0;
    for (int64_t i = 0; i < 3 * of_x; i++)
        wrong += fabs((double)(twice[i] - 2 * a.x[i])) > 1e-6 * fabs((double)a.x[i]) + 1e-9;
    CHECKF(wrong == 0, "%d sums", (int)wrong);
    free(twice);
    free(r.kept);
    free(r.workspace);
    return a;
}

static void drop(struct result *a)
{
    free(a->x);
    free(a->y);
}

/* A model whose prediction is a linear layer that changes nothing: its gradients are sums of those of the points. */
static void check_model(const struct points_cloud *p, const struct points_cloud *q,
    const struct pnet_points *x, const struct pnet_points *y, const struct loss *l)
{
    static const float one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, none[3] = {0};
    char text[512];
    snprintf(text, sizeof text,
        "pnet 1\ninput p { xyz : position }\ninput q { xyz : position }\n"
        "net n(p: cloud) { return p.xyz -> linear(3) }\ny = n(p)\nloss a = %s\n",
        l->words);
    struct pnet_model_options o = {.size = sizeof o, .purpose = PNET_PURPOSE_TRAIN};
    struct pnet_model *m = NULL;
    struct pnet_value v[] = {{"p", {p->splits, PNET_DTYPE_I64, POINTS_SAMPLES + 1, 1, 0}},
        {"p.xyz", {p->xyz, PNET_DTYPE_F32, p->rows, 3, 0}},
        {"q", {q->splits, PNET_DTYPE_I64, POINTS_SAMPLES + 1, 1, 0}},
        {"q.xyz", {q->xyz, PNET_DTYPE_F32, q->rows, 3, 0}}};
    float gw[9], gb[3];
    double loss;
    NEED(pnet_model_compile("loss.pnet", text, strlen(text), &o, &m, &e));
    struct pnet_session *s = api_session(m, NULL);
    NEED(pnet_session_init(s, &e));
    NEED(pnet_session_set_weight(s, "n.out.linear.weight", one, 9, &e));
    NEED(pnet_session_set_weight(s, "n.out.linear.bias", none, 3, &e));
    NEED(pnet_session_bind(s, v, 4, &e));
    NEED(pnet_session_gradients(s, 0.5F, 0, &e));
    NEED(pnet_session_objective(s, "a", &loss, &e));
    NEED(pnet_session_get_gradient(s, "n.out.linear.weight", gw, 9, &e));
    NEED(pnet_session_get_gradient(s, "n.out.linear.bias", gb, 3, &e));
    struct result got = run(x, y, &l->o, 0.5F);
    double most = 0, size = 1e-3;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 4; b++) {
            double sum = 0;
            for (int64_t i = 0; i < p->rows; i++)
                sum += (double)got.x[3 * i + a] * (b < 3 ? (double)p->xyz[3 * i + b] : 1);
            most = fmax(most, fabs(sum - (double)(b < 3 ? gw[3 * a + b] : gb[a])));
            size = fmax(size, fabs(sum));
        }
    CHECKF(
        loss == (double)got.loss && loss > 0, "%s: %.9g, %.9g", l->words, loss, (double)got.loss);
    CHECKF(most < 2e-6 * size, "%s: gradients %g of %g", l->words, most, size);
    drop(&got);
    pnet_session_free(s);
    pnet_model_free(m);
}

/* In double, all pairs. */
struct terms {
    const struct pnet_loss_options *o;
    double square;
    double rows, others, count, sum;
};

static double term(const struct terms *t)
{
    double a = sqrt(t->square), floor = sqrt(fmax(t->square, 1e-9)), f = t->rows / t->others;
    switch (t->o->kind) {
    case PNET_LOSS_CHAMFER: return t->o->squares ? t->square / t->rows : a / t->rows / 2;
    case PNET_LOSS_DCD:
        if (t->o->at_least_one) f = fmax(f, 1);
        return (1 - f * exp(-t->o->alpha * t->square) / (pow(t->count, t->o->lambda) + 1e-6)) /
               t->rows / 2;
    case PNET_LOSS_HYPERCD: return acosh(1 + fmax(t->o->alpha * t->square, 1e-5)) / t->rows;
    case PNET_LOSS_INFOCD:
        return (floor / t->o->tau + t->o->lambda * log(t->sum)) / 2 / (t->o->sums ? 1 : t->rows);
    case PNET_LOSS_EMD:
    case PNET_LOSS_SINKHORN:
    case PNET_LOSS_APML: break;
    }
    return NAN;
}

static double square(const double *p, const double *q)
{
    return pow(p[0] - q[0], 2) + pow(p[1] - q[1], 2) + pow(p[2] - q[2], 2);
}

/* One direction of one sample: n points p, m points q. */
static double one_way(
    const struct pnet_loss_options *o, const double *p, int64_t n, const double *q, int64_t m)
{
    double loss = 0, sum = 0;
    int64_t *near = sets_room((size_t)n, sizeof *near);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 1; j < m; j++)
            if (square(p + 3 * i, q + 3 * j) < square(p + 3 * i, q + 3 * near[i])) near[i] = j;
        sum += exp(-sqrt(fmax(square(p + 3 * i, q + 3 * near[i]), 1e-9)) / o->tau) + 1e-7;
    }
    for (int64_t i = 0; i < n && m; i++) {
        struct terms t = {o, square(p + 3 * i, q + 3 * near[i]), (double)n, (double)m, 0, sum};
        for (int64_t k = 0; k < n; k++) t.count += near[k] == near[i];
        loss += term(&t);
    }
    free(near);
    return loss;
}

/* The loss of a batch whose x is moved by `step` in one coordinate. */
static double by_pairs(const struct pnet_loss_options *o, const struct points_cloud *a,
    const struct points_cloud *b, int64_t moved, double step)
{
    double *p = sets_room((size_t)a->rows, 3 * sizeof *p),
           *q = sets_room((size_t)b->rows, 3 * sizeof *q);
    double loss = 0;
    for (int64_t i = 0; i < 3 * a->rows; i++) p[i] = (double)a->xyz[i] + (i == moved ? step : 0);
    for (int64_t i = 0; i < 3 * b->rows; i++) q[i] = (double)b->xyz[i];
    for (int s = 0; s < POINTS_SAMPLES; s++) {
        int64_t n = a->splits[s + 1] - a->splits[s], m = b->splits[s + 1] - b->splits[s];
        loss += one_way(o, p + 3 * a->splits[s], n, q + 3 * b->splits[s], m) +
                one_way(o, q + 3 * b->splits[s], m, p + 3 * a->splits[s], n);
    }
    free(p);
    free(q);
    return loss / POINTS_SAMPLES;
}

static void check_pairs(const struct points_cloud *p, const struct points_cloud *q,
    const struct pnet_points *x, const struct pnet_points *y, const struct loss *l)
{
    struct result got = run(x, y, &l->o, 1);
    double want = by_pairs(&l->o, p, q, -1, 0), most = 0, size = 0;
    for (int64_t i = 0; i < 3 * p->rows; i += 7) {
        double step = 1e-7,
               slope =
                   (by_pairs(&l->o, p, q, i, step) - by_pairs(&l->o, p, q, i, -step)) / (2 * step);
        most = fmax(most, fabs(slope - (double)got.x[i]));
        size = fmax(size, fabs(slope));
    }
    CHECKF(fabs(want - (double)got.loss) < 1e-6 * want, "%s: %g, %g", l->words, want,
        (double)got.loss);
    CHECKF(most < 1e-5 * size, "%s: gradients %g of %g", l->words, most, size);
    drop(&got);
}

/* Rows in another order: the same loss, and the gradients of the same points. */
static void check_order(const struct pnet_points *x, const struct pnet_points *y,
    const struct pnet_points *mixed, const int64_t *moved, const struct loss *l)
{
    omp_set_num_threads(1);
    struct result one = run(x, y, &l->o, 2);
    omp_set_num_threads(3);
    struct result two = run(mixed, y, &l->o, 2);
    int64_t wrong = memcmp(one.y, two.y, (size_t)points_info(y).rows * 12) != 0;
    for (int64_t i = 0; i < ROWS; i++)
        wrong += memcmp(two.x + 3 * i, one.x + 3 * moved[i], 12) != 0;
    CHECKF(memcmp(&one.loss, &two.loss, 4) == 0 && wrong == 0, "%s: %.9g, %.9g, %d rows", l->words,
        (double)one.loss, (double)two.loss, (int)wrong);
    drop(&one);
    drop(&two);
}

static struct points_cloud spread(void)
{
    struct points_cloud c = points_fill(ROWS);
    for (int64_t i = 0; i < 3 * ROWS; i++) c.xyz[i] = sets_float() / 2; /* none are equally near */
    return c;
}

static void test_losses(void)
{
    struct loss losses[LOSSES];
    struct points_cloud p = spread(), q = spread(), r = points_fill(ROWS);
    int64_t moved[ROWS];
    list_losses(losses);
    memcpy(r.xyz, p.xyz, ROWS * 12);
    points_shuffle(&r, moved);
    struct pnet_points *x = points_make(&p, 0), *y = points_make(&q, 0),
                       *mixed = points_make_mixed(&r, 0);
    for (int i = 0; i < LOSSES; i++) {
        check_model(&p, &q, x, y, &losses[i]);
        check_order(x, y, mixed, moved, &losses[i]);
        if (losses[i].o.kind < PNET_LOSS_EMD) check_pairs(&p, &q, x, y, &losses[i]);
    }
    pnet_points_free(x);
    pnet_points_free(y);
    pnet_points_free(mixed);
    points_drop(&p);
    points_drop(&q);
    points_drop(&r);
}

/* The earth mover's distance of points and the same ones moved by less than they lie apart; Sinkhorn's of a set and its
   translate, which is half the square of the shift. */
static void test_known(void)
{
    enum { SIDE = 5, ALL = SIDE * SIDE * SIDE };
    float a[ALL][3], b[ALL][3];
    for (int i = 0; i < ALL; i++) {
        const int at[] = {i / 25, i / 5 % 5, i % 5};
        for (int k = 0; k < 3; k++) {
            a[i][k] = (float)at[k];
            b[ALL - 1 - i][k] = (float)at[k] + (k == 1 ? 0.25F : 0);
        }
    }
    struct pnet_array of_a = sets_array(a[0], ALL, 3), of_b = sets_array(b[0], ALL, 3);
    struct pnet_points *x = NULL, *y = NULL;
    NEED(pnet_points_new(&of_a, NULL, &x, &e));
    NEED(pnet_points_new(&of_b, NULL, &y, &e));
    struct pnet_loss_options o = {.size = sizeof o};
    NEED(pnet_loss_default(PNET_LOSS_EMD, &o, &e));
    o.rounds = 1000;
    struct result emd = run(x, y, &o, 1);
    CHECKF(fabs((double)emd.loss - 0.25) < 1e-6, "%g", (double)emd.loss);
    CHECKF(fabs((double)emd.x[1] * ALL + 1) < 1e-5 && emd.x[0] == 0, "%g", (double)emd.x[1]);
    NEED(pnet_loss_default(PNET_LOSS_SINKHORN, &o, &e));
    o.blur = 0.005;
    o.scaling = 0.95;
    struct result sinkhorn = run(x, y, &o, 1);
    CHECKF(fabs((double)sinkhorn.loss - 0.03125) < 1e-3, "%g", (double)sinkhorn.loss);
    drop(&emd);
    drop(&sinkhorn);
    pnet_points_free(x);
    pnet_points_free(y);
}

static void test_errors(void)
{
    struct points_cloud c = points_fill(30), d = points_fill(36);
    struct pnet_points *x = points_make(&c, 0), *y = points_make(&d, 0), *one = NULL;
    struct pnet_array at = sets_array(c.xyz, 30, 3);
    NEED(pnet_points_new(&at, NULL, &one, &e));
    struct pnet_loss_options o = {.size = sizeof o};
    struct pnet_loss_bytes bytes = {.size = sizeof bytes};
    struct pnet_loss_run r = {.size = sizeof r};
    struct pnet_array_out few = sets_out(c.f, 29, 3);
    float loss;
    REFUSED(pnet_loss_default((enum pnet_loss_kind)7, &o, &e), PNET_USAGE, "kind 7");
    o.kind = PNET_LOSS_DCD;
    REFUSED(pnet_loss_forward(x, y, &o, NULL, &loss, &e), PNET_USAGE, "alpha 0: expected 1e-06");
    NEED(pnet_loss_default(PNET_LOSS_APML, &o, &e));
    o.p = 1;
    REFUSED(pnet_loss_workspace(x, y, &o, &bytes, &e), PNET_USAGE, "between 0.5 and 1");
    o.p = NAN;
    REFUSED(pnet_loss_workspace(x, y, &o, &bytes, &e), PNET_USAGE, "p nan");
    NEED(pnet_loss_default(PNET_LOSS_EMD, &o, &e));
    REFUSED(pnet_loss_forward(x, y, &o, NULL, &loss, &e), PNET_BAD_DATA, "sample 0 has 12 and 10");
    NEED(pnet_loss_default(PNET_LOSS_CHAMFER, &o, &e));
    REFUSED(pnet_loss_forward(x, one, &o, NULL, &loss, &e), PNET_USAGE, "x has 3 samples");
    REFUSED(pnet_loss_backward(x, y, &o, &r, 1, NULL, NULL, &e), PNET_USAGE, "kept: the gradient");
    REFUSED(pnet_loss_backward(x, y, &o, &r, 1, &few, NULL, &e), PNET_USAGE, "to_x: [29, 3]");
    r.kept = c.f;
    r.kept_bytes = 16;
    REFUSED(pnet_loss_forward(x, y, &o, &r, &loss, &e), PNET_USAGE, "kept_bytes: 16");
    r = (struct pnet_loss_run){.size = sizeof r, .workspace = c.f, .workspace_bytes = 16};
    REFUSED(pnet_loss_forward(x, y, &o, &r, &loss, &e), PNET_USAGE, "pnet_loss_workspace");
    r = (struct pnet_loss_run){.size = sizeof r, .accumulate = 1};
    REFUSED(pnet_loss_forward(x, y, &o, &r, &loss, &e), PNET_USAGE, "accumulate");
    pnet_points_free(x);
    pnet_points_free(y);
    pnet_points_free(one);
    points_drop(&c);
    points_drop(&d);
}

/* The mean over samples of the mean squared distance to the nearest point, in float64. */
static double mean_square(const struct points_cloud *p, const struct points_cloud *q)
{
    double sum = 0;
    for (int s = 0; s < POINTS_SAMPLES; s++)
        for (int64_t i = p->splits[s]; i < p->splits[s + 1]; i++) {
            double least = INFINITY;
            for (int64_t j = q->splits[s]; j < q->splits[s + 1]; j++) {
                double square = 0;
                for (int k = 0; k < 3; k++)
                    square += pow((double)p->xyz[3 * i + k] - (double)q->xyz[3 * j + k], 2);
                least = fmin(least, square);
            }
            sum += least / (double)(p->splits[s + 1] - p->splits[s]) / POINTS_SAMPLES;
        }
    return sum;
}

/* Sets in opposite corners of all that is allowed: squares of distances are near the end of float32. */
static void test_farthest(void)
{
    struct loss losses[LOSSES];
    struct points_cloud p = points_fill(ROWS), q = points_fill(ROWS);
    for (int64_t i = 0; i < 3 * ROWS; i++) {
        p.xyz[i] = 1e18F - 1e16F * fabsf(p.xyz[i]);
        q.xyz[i] = 1e16F * fabsf(q.xyz[i]) - 1e18F;
    }
    struct pnet_points *x = points_make(&p, 0), *y = points_make(&q, 0);
    list_losses(losses);
    for (int k = 0; k < LOSSES; k++) {
        struct result a = run(x, y, &losses[k].o, 1);
        int64_t bad = !isfinite(a.loss);
        for (int64_t i = 0; i < 3 * ROWS; i++) bad += !isfinite(a.x[i]) + !isfinite(a.y[i]);
        CHECKF(bad == 0 && a.loss > 0, "%s: %g, %d numbers are not finite", losses[k].words,
            (double)a.loss, (int)bad);
        drop(&a);
    }
    struct result a = run(x, y, &losses[0].o, 1);
    double want = mean_square(&p, &q) + mean_square(&q, &p);
    CHECKF(fabs((double)a.loss / want - 1) < 1e-6, "%g, not %g", (double)a.loss, want);
    drop(&a);
    pnet_points_free(x);
    pnet_points_free(y);
    points_drop(&p);
    points_drop(&q);
}

int main(void)
{
    test_losses();
    test_known();
    test_errors();
    test_farthest();
    return check_end();
}
