/* The rows `registration` and `feature_match_recall` on batches whose answers are known: features are the places the
   points have in the target, so that every correspondence is right where the features are left alone. */
#include "compiler/compile.h"
#include "runtime/train/evaluate.h"
#include "tests/check.h"
#include "tests/register/clouds.h"

#include <omp.h>

static const char model[] =
    "pnet 1\n"
    "input src { xyz : position  at : feature[3] }\n"
    "input dst { xyz : position  at : feature[3] }\n"
    "input T : pose\n"
    "net same(p: cloud) { return p.at -> scale(1) }\n"
    "fs = same(src)\n"
    "fd = same(dst)\n"
    "metric reg = registration(fs, fd, T, ransac=5000, distance=5cm, points=%d%s)\n"
    "metric fmr = feature_match_recall(fs, fd, T, points=%d)\n";

enum { SAMPLES = 4, ROWS = 400 };

/* Samples: exact; the truth turned by 2 degrees and moved by 50 cm; features that mean nothing; no source. */
static struct pnet_batch *make_batch(const struct pnet_plan *p)
{
    int64_t source[SAMPLES + 1] = {0, ROWS, 2 * ROWS, 3 * ROWS, 3 * ROWS},
                             target[SAMPLES + 1] = {0, ROWS, 2 * ROWS, 3 * ROWS, 4 * ROWS},
                             none[SAMPLES + 1] = {0};
    const int64_t *splits[3] = {source, target, none};
    struct pnet_batch *b = NULL;
    struct pnet_error e;
    struct pnet_rand r = test_rand(9);
    if (pnet_batch_new(p->inputs, p->input_count, SAMPLES, splits, &b, &e)) exit(1);
    float *poses = b->inputs[2].fields[0];
    for (int s = 0; s < SAMPLES; s++) {
        struct scene c = scene_new(ROWS, 0, 0);
        double off[16], truth[16];
        float *xyz = b->inputs[1].xyz + 3 * target[s],
              *at = (float *)b->inputs[1].fields[1] + 3 * target[s];
        memcpy(xyz, c.target, sizeof(float) * 3 * ROWS);
        memcpy(at, c.target, sizeof(float) * 3 * ROWS);
        memcpy(truth, c.truth, sizeof truth);
        if (s == 1) {
            pnet_rigid_make((double[3]){0, 0, 1}, 2, (double[3]){0, 0, 0}, off);
            pnet_rigid_multiply(truth, off, truth);
            truth[3] += 0.5;
        }
        for (int k = 0; k < 16; k++) poses[16 * s + k] = (float)truth[k];
        if (s < 3) {
            at = (float *)b->inputs[0].fields[1] + 3 * source[s];
            memcpy(b->inputs[0].xyz + 3 * source[s], c.source, sizeof(float) * 3 * ROWS);
            memcpy(at, c.target, sizeof(float) * 3 * ROWS);
            for (int i = 0; i < 3 * ROWS && s == 2; i++)
                at[i] = (float)signed_unit(&r, (uint64_t)i);
        }
        scene_free(&c);
    }
    return b;
}

typedef struct pnet_batch *make_samples(const struct pnet_plan *p);

/* `arguments` of the metric as well. */
static struct pnet_evaluation evaluate_with(
    make_samples *make, int samples, int points, const char *arguments)
{
    char text[2048];
    snprintf(text, sizeof text, model, points, arguments, points);
    struct pnet_compile_options o = {.purpose = PNET_FOR_EVAL};
    struct pnet_compilation *c = pnet_compile_text("rows.pnet", text, strlen(text), &o);
    struct pnet_runner *s = NULL;
    struct pnet_error e;
    struct pnet_tally t;
    struct pnet_evaluation v;
    if (!pnet_compilation_plan(c)) {
        pnet_compilation_report(c, stderr, false, false);
        exit(1);
    }
    struct pnet_batch *b = make(pnet_compilation_plan(c));
    struct pnet_runner_options so = {.slots = 1, .seed = 3};
    struct pnet_bound *bound = NULL;
    if (pnet_bound_new(pnet_compilation_plan(c), &(struct pnet_target){0}, &bound, &e) ||
        pnet_runner_new(bound, &so, &s, &e) || pnet_runner_prepare(s, 0, b, &e) ||
        pnet_runner_init_params(s, &e) || pnet_tally_init(&t, pnet_compilation_plan(c), &e)) {
        fprintf(stderr, "%s\n", e.message);
        exit(1);
    }
    pnet_runner_poison(s);
    if (pnet_runner_forward(s, 0, false, 0, &e)) exit(1);
    if (pnet_tally_add(&t, s, 0, samples, 1, &e) || pnet_tally_finish(&t, &v, &e)) exit(1);
    for (int i = 0; i < v.count; i++)
        v.lines[i].name = i ? "fmr" : "reg"; /* the plan's are freed */
    pnet_tally_free(&t);
    pnet_batch_free(b);
    pnet_runner_free(s);
    pnet_bound_free(bound);
    pnet_compilation_free(c);
    return v;
}

static struct pnet_evaluation evaluate(int points)
{
    return evaluate_with(make_batch, SAMPLES, points, "");
}

static double named(const struct pnet_evaluation *v, int line, const char *name)
{
    for (int k = 0; k < v->lines[line].value_count; k++)
        if (strcmp(v->lines[line].values[k].name, name) == 0) return v->lines[line].values[k].value;
    CHECKF(false, "no value %s", name);
    return NAN;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 2e-3;
}

static void test_values(void)
{
    struct pnet_evaluation v = evaluate(5000);
    CHECK(v.count == 2 && v.lines[0].metric && v.lines[1].metric);
    CHECK(named(&v, 0, "pairs") == 4);
    /* the first two are found; only the first by strict thresholds */
    CHECKF(v.lines[0].value == 0.5, "recall %g", v.lines[0].value);
    CHECKF(near(named(&v, 0, "rre_success_deg"), 1), "%g", named(&v, 0, "rre_success_deg"));
    CHECKF(near(named(&v, 0, "rte_success_m"), 0.25), "%g", named(&v, 0, "rte_success_m"));
    CHECK(named(&v, 0, "strict_recall") == 0.25);
    CHECKF(named(&v, 0, "strict_rre_success_deg") < 1e-3, "%g",
        named(&v, 0, "strict_rre_success_deg"));
    CHECK(named(&v, 0, "strict_rte_success_m") < 1e-4);
    /* of the second nothing lies near under its wrong truth but by chance, where it is 0.5 m and more away */
    CHECK(named(&v, 0, "rmse_recall") == 0.25 && named(&v, 0, "rmse_rte_success_m") < 1e-4);
    /* no source, no pose: the identity is as wrong as the truth is far */
    CHECK(named(&v, 0, "rre_all_deg") > 67.0 / 4 && named(&v, 0, "found") >= 0.5);
    CHECK(named(&v, 0, "found") <= 0.75);
    /* all, none (moved away), hardly any, none */
    double ratio = named(&v, 0, "inlier_ratio");
    CHECKF(ratio >= 0.25 && ratio < 0.26 && named(&v, 1, "inlier_ratio") == ratio, "%g", ratio);
    CHECK(v.lines[1].value == 0.25 && named(&v, 1, "pairs") == 4);
    /* of rows: all, hardly any, all (features do not count), none */
    CHECKF(named(&v, 0, "overlap") >= 0.5 && named(&v, 0, "overlap") < 0.6, "%g",
        named(&v, 0, "overlap"));
    CHECK(named(&v, 1, "matches") > 200 && named(&v, 1, "matches") < 300);
    pnet_evaluation_free(&v);
}

static void test_same_bits(void)
{
    int threads = omp_get_max_threads();
    struct pnet_evaluation v = evaluate(100);
    CHECK(named(&v, 0, "matches") <= 50 && named(&v, 0, "matches") > 5);
    for (int n = 1; n <= 3; n++) {
        omp_set_num_threads(n);
        struct pnet_evaluation w = evaluate(100);
        for (int l = 0; l < 2; l++)
            CHECK(memcmp(v.lines[l].values, w.lines[l].values,
                      (size_t)v.lines[l].value_count * sizeof *v.lines[l].values) == 0);
        pnet_evaluation_free(&w);
    }
    omp_set_num_threads(threads);
    pnet_evaluation_free(&v);
}

/* Points in twos, one above the other, turned about z and moved sideways alike: then a fit turns about z alone, by
   atan2(sum p x q, sum p . q) of what is left of p and q without their means. The first REAL rows have their place in the
   target as a feature, the others lie beside an earlier row and have nearly its feature: REAL different rows are chosen, and
   matched. WRONG of them lie half a metre off. In a second sample every source row chooses the first row of the target. */
enum { FITTED = 80, REAL = 60, WRONG = 10 };
static const double turn_deg = 30, move[3] = {0.7, -0.2, 0.4};

static struct pnet_batch *make_fitted(const struct pnet_plan *p)
{
    int64_t rows[3] = {0, FITTED, 2 * FITTED}, none[3] = {0};
    const int64_t *splits[3] = {rows, rows, none};
    struct pnet_batch *b = NULL;
    struct pnet_error e;
    struct pnet_rand r = test_rand(11);
    double truth[16], back[16];
    if (pnet_batch_new(p->inputs, p->input_count, 2, splits, &b, &e)) exit(1);
    pnet_rigid_make((double[3]){0, 0, 1}, turn_deg, move, truth);
    pnet_rigid_invert(truth, back);
    for (int i = 0; i < 2 * FITTED; i++) {
        int row = i % FITTED, two = row / 2;
        int place = row < REAL ? two : two - REAL / 2; /* beside the row whose feature it has */
        float *source = b->inputs[0].xyz + (size_t)3 * (size_t)i, *to = b->inputs[1].xyz + 3 * i;
        float *from_at = (float *)b->inputs[0].fields[1] + 3 * i,
              *to_at = (float *)b->inputs[1].fields[1] + 3 * i;
        double off[3] = {0};
        for (int k = 0; k < 2; k++) {
            to[k] = (float)(2 * signed_unit(&r, (uint64_t)place * 4 + (uint64_t)k) +
                            (row < REAL ? 0 : 0.02));
            off[k] = 0.06 * signed_unit(&r, (uint64_t)two * 4 + 2 + (uint64_t)k);
        }
        to[2] = row % 2 ? -0.5f : 0.5f;
        if (row < WRONG) off[0] += 0.5;
        for (int k = 0; k < 3; k++) {
            double x = to[0] + off[0], y = to[1] + off[1], z = (double)to[2];
            source[k] = (float)(back[4 * k] * x + back[4 * k + 1] * y + back[4 * k + 2] * z +
                                back[4 * k + 3]);
            to_at[k] = to[k];
            from_at[k] =
                b->inputs[1].xyz[3 * (i < FITTED ? row < REAL ? row : row - REAL : FITTED) + k];
        }
        if (i < FITTED && row >= REAL) from_at[2] += 1e-3f;
    }
    float *poses = b->inputs[2].fields[0];
    for (int i = 0; i < 32; i++) poses[i] = (float)truth[i % 16];
    return b;
}

static double apart(const float *a, const float *b)
{
    return hypot(hypot((double)a[0] - b[0], (double)a[1] - b[1]), (double)a[2] - b[2]);
}

/* Of the rows [WRONG, REAL) of the first sample rms, rotation and translation error, how far their errors move the middle,
   and the spread: z, of which all are half a metre from the middle, is a principal axis. Of all its rows the share whose
   neighbour has the feature of the same target. */
struct by_hand {
    double rms, rre, rte, shift, spread, shared;
};

static struct by_hand fit_by_hand(void)
{
    struct by_hand h = {0};
    char text[2048];
    snprintf(text, sizeof text, model, 10, "", 10);
    struct pnet_compile_options o = {.purpose = PNET_FOR_EVAL};
    struct pnet_compilation *c = pnet_compile_text("rows.pnet", text, strlen(text), &o);
    struct pnet_batch *b = make_fitted(pnet_compilation_plan(c));
    const float *p = b->inputs[0].xyz, *q = b->inputs[1].xyz;
    double from[3] = {0}, to[3] = {0}, n = REAL - WRONG, across = 0, along = 0, squares = 0;
    double middle[2] = {0}, xx = 0, yy = 0, xy = 0;
    double turn = turn_deg / 57.295779513082320877, error[3];
    for (int i = WRONG; i < REAL; i++) {
        const float *a = p + 3 * i, *z = q + 3 * i;
        double x = cos(turn) * a[0] - sin(turn) * a[1] + move[0] - z[0],
               y = sin(turn) * a[0] + cos(turn) * a[1] + move[1] - z[1];
        squares += x * x + y * y;
        middle[0] += x / n;
        middle[1] += y / n;
        for (int k = 0; k < 3; k++) {
            from[k] += a[k] / n;
            to[k] += z[k] / n;
        }
    }
    for (int i = WRONG; i < REAL; i++) {
        double a[2] = {p[3 * i] - from[0], p[3 * i + 1] - from[1]};
        double z[2] = {q[3 * i] - to[0], q[3 * i + 1] - to[1]};
        across += a[0] * z[1] - a[1] * z[0];
        along += a[0] * z[0] + a[1] * z[1];
        xx += a[0] * a[0] / n;
        yy += a[1] * a[1] / n;
        xy += a[0] * a[1] / n;
    }
    for (int i = 0; i < FITTED; i++) {
        int near = !i;
        for (int k = 0; k < FITTED; k++)
            if (k != i && apart(p + 3 * i, p + 3 * k) < apart(p + 3 * i, p + 3 * near)) near = k;
        h.shared += (i < REAL ? i : i - REAL) == (near < REAL ? near : near - REAL);
    }
    h.shared /= FITTED;
    double fit = atan2(across, along);
    error[0] = to[0] - (cos(fit) * from[0] - sin(fit) * from[1]) - move[0];
    error[1] = to[1] - (sin(fit) * from[0] + cos(fit) * from[1]) - move[1];
    error[2] = to[2] - from[2] - move[2];
    h.rms = sqrt(squares / n);
    h.rre = fabs(fit - turn) * 57.295779513082320877;
    h.rte = sqrt(error[0] * error[0] + error[1] * error[1] + error[2] * error[2]);
    h.shift = hypot(middle[0], middle[1]);
    double level = (xx + yy + 0.5) / ((xx + 0.25) * (yy + 0.25) - xy * xy), upright = 1 / (xx + yy);
    h.spread = sqrt(3 / (level + upright));
    pnet_batch_free(b);
    pnet_compilation_free(c);
    return h;
}

/* What features are worth before RANSAC. The second sample has one match, from which nothing can be fitted. */
static void test_before_ransac(void)
{
    struct by_hand h = fit_by_hand();
    CHECKF(h.rms > 0.02 && h.rre > 0.05 && h.rte > 1e-3 && h.shift > 1e-3,
        "too exact to tell: %g %g %g %g", h.rms, h.rre, h.rte, h.shift);
    struct pnet_evaluation v = evaluate_with(make_fitted, 2, 5000, "");
    CHECKF(fabs(named(&v, 0, "distinct") - ((double)REAL + 1) / FITTED / 2) < 1e-12, "%g",
        named(&v, 0, "distinct"));
    CHECKF(h.shared > 0.2 && fabs(named(&v, 0, "shared") - (h.shared + 1) / 2) < 1e-12,
        "%g, by hand %g", named(&v, 0, "shared"), (h.shared + 1) / 2);
    CHECK(named(&v, 0, "matches") == (REAL + 1) / 2.0);
    CHECK(named(&v, 0, "fit_pairs") == 1 && named(&v, 0, "pairs") == 2);
    CHECKF(near(named(&v, 0, "turn_deg"), turn_deg), "%g", named(&v, 0, "turn_deg"));
    CHECKF(fabs(named(&v, 0, "right_rms_m") - h.rms) < 1e-6, "%g, by hand %g",
        named(&v, 0, "right_rms_m"), h.rms);
    CHECKF(fabs(named(&v, 0, "fit_rre_deg") - h.rre) < 2e-5, "%g, by hand %g",
        named(&v, 0, "fit_rre_deg"), h.rre);
    CHECKF(fabs(named(&v, 0, "fit_rte_m") - h.rte) < 1e-6, "%g, by hand %g",
        named(&v, 0, "fit_rte_m"), h.rte);
    CHECKF(fabs(named(&v, 0, "right_spread_m") - h.spread) < 1e-6, "%g, by hand %g",
        named(&v, 0, "right_spread_m"), h.spread);
    CHECKF(fabs(named(&v, 0, "fit_shift_m") - h.shift) < 1e-6, "%g, by hand %g",
        named(&v, 0, "fit_shift_m"), h.shift);
    pnet_evaluation_free(&v);
    v = evaluate_with(make_fitted, 2, 5000, ", mutual=no");
    CHECK(named(&v, 0, "matches") == FITTED); /* and as many different rows as before */
    CHECK(fabs(named(&v, 0, "distinct") - ((double)REAL + 1) / FITTED / 2) < 1e-12);
    pnet_evaluation_free(&v);
    v = evaluate_with(make_fitted, 2, 5000, ", near=1mm");
    CHECK(named(&v, 0, "fit_pairs") == 0 && isnan(named(&v, 0, "right_rms_m")));
    CHECK(isnan(named(&v, 0, "fit_rre_deg")) && isnan(named(&v, 0, "fit_rte_m")));
    CHECK(isnan(named(&v, 0, "right_spread_m")) && isnan(named(&v, 0, "fit_shift_m")));
    pnet_evaluation_free(&v);
}

/* Each mistake gets its own message. */
static void test_rules(void)
{
    static const char *const cases[][2] = {
        {"registration(fs, fs, T, distance=5cm)", "registration() compares two clouds"},
        {"registration(fd, fs, T, distance=5cm)", "takes the source first"},
        {"registration(fs, cat(fd, fd), T, distance=5cm)", "compares 3 channels with 6"},
        {"registration(fs, fd, T)", "has no cell size"},
        {"registration(fs, fd, fs, distance=5cm)", "a pose"},
        {"registration(fs, fd, T, rre=5, distance=5cm)", "an angle"},
        {"feature_match_recall(fs, fd -> pool(mean, to=sample), T)", "features of points"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2048], *said = NULL;
        size_t length;
        snprintf(text, sizeof text, model, 10, "", 10);
        char *metric = strstr(text, "metric");
        snprintf(metric, sizeof text - (size_t)(metric - text), "metric m = %s\n", cases[i][0]);
        struct pnet_compile_options o = {.purpose = PNET_FOR_EVAL};
        struct pnet_compilation *c = pnet_compile_text("rows.pnet", text, strlen(text), &o);
        FILE *f = open_memstream(&said, &length);
        pnet_compilation_report(c, f, false, false);
        fclose(f);
        CHECKF(!pnet_compilation_plan(c) && strstr(said, cases[i][1]), "%s: %s", cases[i][0], said);
        free(said);
        pnet_compilation_free(c);
    }
}

int main(void)
{
    test_values();
    test_same_bits();
    test_before_ransac();
    test_rules();
    return check_end();
}
