/* Metrics on labels: what sums come to, against hand-made numbers; and the k best classes. */
#include "tests/ops/opcase.h"

static struct pnet_metric_result finish_of(
    const char *name, const double *sum, int32_t classes, double *per_class)
{
    struct pnet_metric_result r = {.per_class = per_class, .classes = classes};
    pnet_op_find(name)->finish(NULL, sum, &r);
    return r;
}

/* Class 2 is labelled and never predicted, or predicted and never labelled, or neither. */
static void test_rare(void)
{
    const double missed[] = {3, 0, 0, 0, 4, 0, 1, 0, 0}, made_up[] = {3, 0, 1, 0, 4, 0, 0, 0, 0};
    const double absent[] = {3, 1, 0, 2, 4, 0, 0, 0, 0};
    const char *const names[] = {"precision", "recall", "f1"};
    double per[3];
    for (int i = 0; i < 3; i++) {
        struct pnet_metric_result r = finish_of(names[i], missed, 3, per);
        CHECKF(per[2] == 0 && fabs(r.value - (per[0] + per[1]) / 3) < 1e-12, "%s", names[i]);
        r = finish_of(names[i], made_up, 3, per);
        CHECKF(per[2] == 0 && fabs(r.value - (per[0] + per[1]) / 3) < 1e-12, "%s", names[i]);
        r = finish_of(names[i], absent, 3, per);
        CHECKF(isnan(per[2]) && fabs(r.value - (per[0] + per[1]) / 2) < 1e-12, "%s", names[i]);
    }
}

/* The matrix itself, the share of labels that are predicted, and kappa: 23 of 30 are right, a third
   would be by chance. */
static void test_confusion(void)
{
    const double full[] = {8, 2, 0, 1, 5, 4, 0, 0, 10}, one[] = {7, 0, 0, 0};
    struct pnet_metric_result r = finish_of("confusion", full, 3, NULL);
    CHECK(r.matrix && memcmp(r.matrix, full, sizeof full) == 0);
    CHECK(fabs(r.value - 23.0 / 30) < 1e-12);
    CHECK(r.value_count == 1 && strcmp(r.values[0].name, "kappa") == 0);
    CHECK(fabs(r.values[0].value - 0.65) < 1e-12);
    r = finish_of("confusion", one, 2, NULL); /* right by chance alone */
    CHECK(r.value == 1 && isnan(r.values[0].value));
    CHECK(!finish_of("iou", full, 3, NULL).matrix);
}

/* Matrices by label, then prediction. Class 2 of the second one never occurs. */
static void test_finish(void)
{
    const double full[] = {8, 2, 0, 1, 5, 4, 0, 0, 10};
    const double sparse[] = {3, 1, 0, 2, 4, 0, 0, 0, 0};
    const double unlabelled[] = {3, 0, 1, 0, 4, 0, 0, 0, 0};
    const double zero[9] = {0};
    double per[3];
    struct pnet_metric_result r = finish_of("iou", full, 3, per);
    CHECK(fabs(per[0] - 8.0 / 11) < 1e-12);
    CHECK(fabs(per[1] - 5.0 / 12) < 1e-12);
    CHECK(fabs(per[2] - 10.0 / 14) < 1e-12);
    CHECK(fabs(r.value - (8.0 / 11 + 5.0 / 12 + 10.0 / 14) / 3) < 1e-12);
    CHECK(finish_of("miou", full, 3, NULL).value == r.value);
    r = finish_of("mean_accuracy", full, 3, per);
    CHECK(fabs(per[0] - 0.8) < 1e-12 && fabs(per[1] - 0.5) < 1e-12 && fabs(per[2] - 1) < 1e-12);
    CHECK(fabs(r.value - 2.3 / 3) < 1e-12);
    r = finish_of("iou", sparse, 3, per);
    CHECK(isnan(per[2]) && fabs(r.value - (3.0 / 6 + 4.0 / 7) / 2) < 1e-12);
    r = finish_of("iou", unlabelled, 3, per); /* predicted once, never right */
    CHECK(per[2] == 0 && fabs(r.value - (0.75 + 1 + 0) / 3) < 1e-12);
    r = finish_of("mean_accuracy", unlabelled, 3, per);
    CHECK(isnan(per[2]) && fabs(r.value - 0.875) < 1e-12);
    CHECK(isnan(finish_of("iou", zero, 3, NULL).value));
    r = finish_of("precision", full, 3, per);
    CHECK(fabs(per[0] - 8.0 / 9) < 1e-12 && fabs(per[1] - 5.0 / 7) < 1e-12);
    CHECK(fabs(per[2] - 10.0 / 14) < 1e-12);
    CHECK(fabs(r.value - (8.0 / 9 + 10.0 / 7) / 3) < 1e-12);
    r = finish_of("recall", full, 3, per);
    CHECK(fabs(per[0] - 0.8) < 1e-12 && fabs(per[1] - 0.5) < 1e-12 && fabs(per[2] - 1) < 1e-12);
    CHECK(fabs(r.value - 2.3 / 3) < 1e-12);
    r = finish_of("f1", full, 3, per);
    CHECK(fabs(per[0] - 16.0 / 19) < 1e-12 && fabs(per[1] - 10.0 / 17) < 1e-12);
    CHECK(fabs(per[2] - 20.0 / 24) < 1e-12);
    CHECK(fabs(r.value - (16.0 / 19 + 10.0 / 17 + 20.0 / 24) / 3) < 1e-12);
    test_rare();
    const double counts[] = {30, 40}, nothing[] = {0, 0};
    CHECK(finish_of("accuracy", counts, 0, NULL).value == 0.75);
    CHECK(isnan(finish_of("accuracy", nothing, 0, NULL).value));
    CHECK(finish_of("top_k_accuracy", counts, 0, NULL).value == 0.75);
    CHECK(isnan(finish_of("top_k_accuracy", nothing, 0, NULL).value));
    const char *const names[] = {"precision", "recall", "f1", "confusion"};
    for (int i = 0; i < 4; i++) CHECK(isnan(finish_of(names[i], zero, 3, NULL).value));
}

/* Rows of scores with many equal ones, and some that are not numbers. */
static struct opcase tied_scores(const struct world *w, const char *name, int64_t k)
{
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, 6, POINTS);
    opcase_label(&c, 6, POINTS);
    if (k) opcase_int(&c, "k", k);
    opcase_fill(&c);
    float *x = c.in_data[0];
    for (int64_t i = 0; i < 6 * w->rows[POINTS]; i++) {
        x[i] = floorf(x[i]);
        if (draw(5, (uint64_t)i) < 0.1f) x[i] = NAN;
        if (draw(6, (uint64_t)i) < 0.1f) x[i] = -INFINITY;
    }
    return c;
}

/* The best one is what accuracy takes; all of them hold every label; each choice holds the last. Every
   class has a place of its own: of labels 0 .. 5 at the same scores exactly k are among the k best. */
static void test_top_k(void)
{
    const int64_t sizes[] = {3000};
    struct world w = world_make(1, sizes);
    struct opcase a = tied_scores(&w, "accuracy", 0);
    opcase_forward(&a);
    double best[2], last = 0;
    memcpy(best, a.out, sizeof best);
    for (int64_t k = 1; k <= 6; k++) {
        struct opcase c = tied_scores(&w, "top_k_accuracy", k);
        double got[2];
        opcase_forward(&c);
        memcpy(got, c.out, sizeof got);
        CHECKF(got[1] == best[1] && got[0] >= last, "k = %d", (int)k);
        CHECKF(k > 1 || got[0] == best[0], "%g are best, not %g", got[0], best[0]);
        CHECKF(k < 6 || got[0] == got[1], "%g of %g", got[0], got[1]);
        last = got[0];
        float *x = c.in_data[0];
        for (int64_t row = 0; row < 3000; row++) {
            memcpy(x + row * 6, x + row / 6 * 36, 6 * sizeof *x);
            ((int32_t *)c.in_data[1])[row] = (int32_t)(row % 6);
        }
        opcase_forward(&c);
        memcpy(got, c.out, sizeof got);
        CHECKF(got[0] == 500 * (double)k && got[1] == 3000, "k = %d: %g", (int)k, got[0]);
        opcase_free(&c);
    }
    opcase_free(&a);
    world_free(&w);
}

int main(void)
{
    test_finish();
    test_confusion();
    test_top_k();
    return check_end();
}
