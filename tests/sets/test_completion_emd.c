/* The earth mover's distance that the metric `completion` gives: against exact assignments, by class, of samples that do not
   count, and where it is asked for. */
#include "compiler/compile.h"
#include "kernels/emd.h"
#include "kernels/philox.h"
#include "kernels/sets.h"
#include "runtime/run/runner.h"
#include "tests/check.h"
#include "tests/sets/assign_exact.h"

enum { SAMPLES_MOST = 8, POINTS_MOST = 64, MOST = SAMPLES_MOST * POINTS_MOST };

static const double eps = 0.002;

static void must(enum pnet_status st, const struct pnet_error *e)
{
    if (!st) return;
    fprintf(stderr, "%s\n", e->message);
    exit(1);
}

/* Two sets of a batch with a class for each sample. */
struct pair {
    int32_t samples;
    int64_t splits[2][SAMPLES_MOST + 1];
    float xyz[2][3 * MOST];
    int32_t kind[SAMPLES_MOST];
};

static void add_sample(struct pair *q, int64_t n, int64_t m, int32_t kind)
{
    int32_t s = q->samples++;
    q->splits[0][s + 1] = q->splits[0][s] + n;
    q->splits[1][s + 1] = q->splits[1][s] + m;
    q->kind[s] = kind;
}

static struct pnet_compilation *compile(const char *tail)
{
    char text[1024];
    snprintf(text, sizeof text,
        "pnet 1\ninput a { xyz : position  f : feature[3]  kind : class[4] per cloud }\n"
        "input b { xyz : position  f : feature[3] }\n%s\n",
        tail);
    struct pnet_compile_options o = {.purpose = PNET_FOR_EVAL};
    struct pnet_compilation *c = pnet_compile_text("sets.pnet", text, strlen(text), &o);
    if (!pnet_compilation_plan(c)) pnet_compilation_report(c, stderr, false, false);
    return c;
}

static struct pnet_batch *batch_of(const struct pnet_plan *p, const struct pair *q)
{
    const int64_t *splits[] = {q->splits[0], q->splits[1]};
    struct pnet_batch *b;
    struct pnet_error e;
    must(pnet_batch_new(p->inputs, p->input_count, q->samples, splits, &b, &e), &e);
    for (int i = 0; i < 2; i++) {
        const struct pnet_input *in = &p->inputs[i];
        memset(b->inputs[i].xyz, 0, (size_t)splits[i][q->samples] * 3 * sizeof(float));
        for (int f = 0; f < in->field_count; f++) {
            if (!b->inputs[i].fields[f]) continue; /* the model does not read it */
            if (in->fields[f].kind == PNET_INPUT_CLASS)
                memcpy(b->inputs[i].fields[f], q->kind, (size_t)q->samples * sizeof *q->kind);
            else if (strcmp(in->fields[f].name, "f") == 0)
                memcpy(b->inputs[i].fields[f], q->xyz[i],
                    (size_t)splits[i][q->samples] * 3 * sizeof(float));
        }
    }
    return b;
}

/* What the metric of the model gives, its headline and the others by name. */
static struct pnet_metric_result run(const char *tail, const struct pair *q)
{
    struct pnet_compilation *c = compile(tail);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_bound *bound;
    struct pnet_runner *s;
    struct pnet_error e;
    struct pnet_batch *b = batch_of(p, q);
    must(pnet_bound_new(p, &(struct pnet_target){0}, &bound, &e), &e);
    must(pnet_runner_new(bound, &(struct pnet_runner_options){.slots = 1}, &s, &e), &e);
    must(pnet_runner_prepare(s, 0, b, &e), &e);
    pnet_runner_poison(s);
    must(pnet_runner_forward(s, 0, false, 0, &e), &e);
    int tensor = p->objectives[0].tensor;
    const struct pnet_node *n = &p->nodes[p->tensors[tensor].node];
    struct pnet_metric_result r = {.classes = p->tensors[tensor].type.classes};
    int64_t rows;
    void *sums;
    must(pnet_runner_copy_tensor(s, 0, tensor, &sums, &rows, &e), &e);
    n->op->finish(n->attr, sums, &r);
    free(sums);
    pnet_runner_free(s);
    pnet_bound_free(bound);
    pnet_batch_free(b);
    pnet_compilation_free(c);
    return r;
}

/* A number of the result; -1: there is none of that name. */
static double named(const struct pnet_metric_result *r, const char *name)
{
    for (int i = 0; i < r->value_count; i++)
        if (strcmp(r->values[i].name, name) == 0) return r->values[i].value;
    return -1;
}

static const char plain[] = "metric m = completion(a.f, b.f, emd=yes)";

enum shape { RANDOM, COLLAPSED, LATTICE, SHAPES };

static void draw(struct pair *q, enum shape shape, uint64_t seed)
{
    for (int k = 0; k < 2; k++) {
        struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST, .a = (uint32_t)k};
        for (int64_t i = 0; i < 3 * q->splits[k][q->samples]; i++) {
            float v = pnet_rand_unit(&r, (uint64_t)i);
            if (shape == COLLAPSED && k == 0) v = 0.5f;
            q->xyz[k][i] = shape == LATTICE ? floorf(4 * v) / 4 : v;
        }
    }
}

/* One sample against the exact assignment, within eps. */
static void test_exact(void)
{
    const int64_t sizes[] = {1, 2, 3, 16, 33, 64};
    for (enum shape shape = 0; shape < SHAPES; shape++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            struct pair q = {0};
            add_sample(&q, sizes[k], sizes[k], 0);
            draw(&q, shape, 10 * k + shape);
            struct pnet_metric_result r = run(plain, &q);
            double got = named(&r, "emd") / 1000, best = assign_exact(sizes[k], q.xyz[0], q.xyz[1]);
            CHECKF(got >= best - 1e-6 && got <= best + eps + 1e-6,
                "shape %d, %lld points: %g, best %g", shape, (long long)sizes[k], got, best);
            CHECK(named(&r, "emd_incomplete") == 0);
        }
}

/* A set of 27 points a distance of 1 apart, and the same moved by less, in another order: the assignment is the way back, and the
   distance what it was moved by. */
static void moved_lattice(struct pair *q, int32_t s, float by)
{
    for (int i = 0; i < 27; i++) {
        const float at[3] = {(float)(i % 3), (float)(i / 3 % 3), (float)(i / 9)};
        float *x = q->xyz[0] + 3 * (q->splits[0][s] + i),
              *y = q->xyz[1] + 3 * (q->splits[1][s] + (i * 10 + s) % 27);
        for (int c = 0; c < 3; c++) {
            x[c] = at[c] + (c == s % 3 ? by : 0);
            y[c] = at[c];
        }
    }
}

/* Clouds of classes 0, 0, 2, none and 2; the last one has no points in one set. */
static struct pair labelled_pair(void)
{
    static const int32_t kind[] = {0, 0, 2, -1, 2, 3};
    static const float by[] = {0.125f, 0.25f, 0.375f, 0.0625f, 0, 0.03125f};
    struct pair q = {0};
    for (int32_t s = 0; s < 6; s++) add_sample(&q, 27, s == 4 ? 0 : 27, kind[s]);
    for (int32_t s = 0; s < 6; s++)
        if (s != 4) moved_lattice(&q, s, by[s]);
    return q;
}

static void test_classes(void)
{
    struct pair q = labelled_pair();
    struct pnet_metric_result r = run("metric m = completion(a.f, b.f, label=a.kind, emd=yes)", &q);
    /* class 1 does not occur */
    double want = 1000 * ((0.125 + 0.25) / 2 + 0.375 + 0.03125) / 3;
    CHECKF(fabs(named(&r, "emd") - want) < 1e-3, "mean over classes %g, not %g", named(&r, "emd"),
        want);
    CHECK(named(&r, "clouds") == 4);
    r = run(plain, &q);
    want = 1000 * (0.125 + 0.25 + 0.375 + 0.0625 + 0.03125) / 5;
    CHECKF(fabs(named(&r, "emd") - want) < 1e-3, "mean over clouds %g, not %g", named(&r, "emd"),
        want);
    CHECK(named(&r, "clouds") == 5);
    /* the sets hardly differ for nearest points */
    CHECK(fabs(r.value - want) < 1e-3 && named(&r, "covered") == 1);
}

/* Several metrics of the same sets share one assignment, which is there only where one asks for it. */
static void test_asked_for(void)
{
    static const struct {
        const char *tail;
        int assignments;
    } models[] = {{"metric m = completion(a.f, b.f)", 0}, {plain, 1},
        {"metric m = completion(a.f, b.f, emd=yes, at=0.1)\nmetric k = completion(a.f, b.f, "
         "emd=yes)\nmetric l = completion(a.f, b.f)",
            1},
        {"metric m = completion(a.f, b.f, emd=yes)\nmetric k = completion(b.f, a.f, emd=yes)", 2}};
    unsigned devices = pnet_op_find("emd")->flags & PNET_CPU_ONLY;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct pnet_compilation *c = compile(models[i].tail);
        const struct pnet_plan *p = pnet_compilation_plan(c);
        int found = 0;
        for (int k = 0; k < p->node_count; k++) {
            const struct pnet_node *n = &p->nodes[k];
            bool assigns = n->op->forward && strcmp(n->op->name, "emd") == 0;
            found += assigns && !n->dead;
            /* what runs on the CPU alone does so as the loss does */
            CHECK((n->op->flags & PNET_CPU_ONLY) == (assigns ? devices : 0));
        }
        CHECKF(found == models[i].assignments, "model %zu has %d assignments", i, found);
        pnet_compilation_free(c);
    }
    struct pair q = labelled_pair();
    struct pnet_metric_result r = run("metric m = completion(a.f, b.f)", &q);
    CHECK(named(&r, "emd") == -1 && named(&r, "emd_incomplete") == -1 && named(&r, "cd_l2") > 0);
}

/* Without clouds that count there is no mean; a point without a place makes it NaN, and ends. */
static void test_none(void)
{
    struct pair none = {0}, q = {0};
    add_sample(&none, 0, 5, 0);
    add_sample(&none, 4, 0, 0);
    draw(&none, RANDOM, 1);
    struct pnet_metric_result r = run(plain, &none);
    CHECK(isnan(named(&r, "emd")) && isnan(r.value) && named(&r, "clouds") == 0);
    add_sample(&q, 20, 20, 1);
    add_sample(&q, 30, 30, 2);
    draw(&q, RANDOM, 2);
    for (int k = 0; k < 2; k++) {
        struct pair broken = q;
        broken.xyz[k][7] = k ? INFINITY : NAN;
        r = run(plain, &broken);
        CHECK(isnan(named(&r, "emd")));
    }
    r = run(plain, &q);
    CHECK(named(&r, "emd") > 0);
}

/* Of the first of two clouds the only round leaves points: it is told, and the mean is that of the completed assignment. */
static void test_left(void)
{
    static struct pair q;
    int32_t partner[2 * 40], near[2][2 * 40], left = 0;
    add_sample(&q, 40, 40, 0);
    add_sample(&q, 40, 40, 0);
    draw(&q, COLLAPSED, 3);
    memcpy(q.xyz[0] + 120, q.xyz[1] + 120, 120 * sizeof(float)); /* each has its own at once */
    struct pnet_point_set of[2];
    for (int k = 0; k < 2; k++)
        of[k] = (struct pnet_point_set){pnet_count(80), 2, q.splits[k], q.xyz[k]};
    for (int k = 0; k < 2; k++) {
        void *work = malloc(pnet_cpu_set_near_work(&of[k], &of[1 - k]) + 1);
        pnet_cpu_set_near(&of[k], &of[1 - k], near[k], work);
        free(work);
    }
    struct pnet_set_pair sets = {of[0], of[1], near[0], near[1]};
    struct pnet_emd e = {sets, .eps = 10, .rounds = 1, .complete = true, .tell = true};
    void *work = malloc(pnet_cpu_emd_assign_work(&e) + 1);
    pnet_cpu_emd_assign(&e, partner, work);
    free(work);
    double sums[PNET_COMPLETION_SUMS], want = 0;
    for (int i = 0; i < 80; i++) {
        int32_t j = partner[i] <= PNET_EMD_LEFT ? PNET_EMD_LEFT - partner[i] : partner[i];
        left += partner[i] <= PNET_EMD_LEFT;
        CHECK(j / 40 == i / 40 && (i < 40 || partner[i] == i));
        want += assign_exact_distance(q.xyz[0] + 3 * i, q.xyz[1] + 3 * (int64_t)j) / 40;
    }
    CHECKF(left == 39, "%d points are left", left);
    struct pnet_completion c = {.at = 0.1, .classes = 1, .partner = partner};
    work = malloc(pnet_cpu_completion_work(&sets) + 1);
    pnet_cpu_completion(&sets, &c, sums, work);
    free(work);
    CHECK(sums[PNET_COMPLETION_CLOUDS] == 2 && sums[PNET_COMPLETION_LEFT] == 1);
    CHECK(fabs(sums[PNET_COMPLETION_EMD] - want) < 1e-6);
}

int main(void)
{
    test_left();
    test_exact();
    test_classes();
    test_asked_for();
    test_none();
    return check_end();
}
