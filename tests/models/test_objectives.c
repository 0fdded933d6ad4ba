/* Each loss and metric gives the same value alone and with any other one of the same predictions: three channels are scores,
   coordinates or features by what takes them, not by their number. */
#include "runtime/plan/op.h"
#include "tests/models/objectives.h"

#include <omp.h>

static const char *const objectives[] = {
    "metric o0 = accuracy(x, p.label)\n",
    "metric o1 = accuracy(t, p.tag)\n",
    "metric o2 = top_k_accuracy(x, p.label, k=2)\n",
    "metric o3 = mean_accuracy(x, p.label)\n",
    "metric o4 = precision(x, p.label)\n",
    "metric o5 = recall(t, p.tag)\n",
    "metric o6 = f1(x, p.label)\n",
    "metric o7 = iou(x, p.label)\n",
    "metric o8 = miou(x, p.label)\n",
    "metric o9 = confusion(x, p.label)\n",
    "metric o10 = feature_match_recall(x, u, T, near=30cm, points=40)\n",
    "metric o11 = registration(x, u, T, ransac=50, points=40, distance=20cm)\n",
    "metric o12 = completion(x, p.xyz, at=0.5)\n",
    "metric o13 = completion(x, p.xyz, at=0.5, label=p.tag)\n",
    "metric o14 = completion(u, x, at=0.5)\n",
    "metric o15 = apml_support(x, p.xyz)\n",
    "loss o16 = cross_entropy(x, p.label)\n",
    "loss o17 = focal(x, p.label)\n",
    "loss o18 = lovasz_softmax(x, p.label)\n",
    "loss o19 = dice(x, p.label)\n",
    "loss o20 = mse(x, p.f)\n",
    "loss o21 = huber(x, p.f)\n",
    "loss o22 = l1(x, p.f)\n",
    "loss o23 = chamfer(x, p.xyz)\n",
    "loss o24 = dcd(x, p.xyz)\n",
    "loss o25 = hypercd(x, p.xyz)\n",
    "loss o26 = infocd(x, p.xyz)\n",
    "loss o27 = apml(x, p.xyz)\n",
    "loss o28 = emd(x, p.xyz)\n",
    "loss o29 = sinkhorn(x, p.xyz)\n",
    "loss o30 = hardest_contrastive(x, u, M)\n",
    "loss o31 = circle(x, u, M)\n",
};
enum { COUNT = sizeof objectives / sizeof objectives[0], CLOUDS = 3 };

static const struct objectives_cloud clouds[CLOUDS] = {{20, 0.8f, 0}, {30, 0.9f, 0}, {12, 1, 0}};

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_all(const double *a, const double *b, int64_t count)
{
    bool all = !a == !b;
    for (int64_t i = 0; all && a && i < count; i++) all = same(a[i], b[i]);
    return all;
}

/* Is a line the same as another one, with all numbers it has? */
static bool same_line(const struct pnet_score_line *a, const struct pnet_score_line *b)
{
    if (!same(a->value, b->value) || a->classes != b->classes ||
        a->matrix_classes != b->matrix_classes || a->value_count != b->value_count)
        return false;
    for (int i = 0; i < a->value_count; i++)
        if (!same(a->values[i].value, b->values[i].value)) return false;
    return same_all(a->per_class, b->per_class, a->classes) &&
           same_all(a->matrix, b->matrix, (int64_t)a->matrix_classes * a->matrix_classes);
}

static void test_pairs(const struct pnet_evaluation alone[COUNT])
{
    char lines[512];
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            if (i == j) continue;
            snprintf(lines, sizeof lines, "%s%s", objectives[i], objectives[j]);
            struct objectives o = objectives_open(lines, PNET_FOR_EVAL, (struct pnet_device){0});
            struct pnet_evaluation v = objectives_evaluate(&o, clouds, CLOUDS, CLOUDS);
            CHECKF(same_line(&v.lines[0], &alone[i].lines[0]), "%sfirst, with %s: %g, alone %g",
                objectives[i], objectives[j], v.lines[0].value, alone[i].lines[0].value);
            CHECKF(same_line(&v.lines[1], &alone[j].lines[0]), "%safter %s: %g, alone %g",
                objectives[j], objectives[i], v.lines[1].value, alone[j].lines[0].value);
            pnet_evaluation_free(&v);
            objectives_close(&o);
        }
}

/* The predictions, [rows, 3], of all clouds in one batch. */
static float *predict(struct pnet_batch **b)
{
    struct objectives o = objectives_open(objectives[0], PNET_FOR_EVAL, (struct pnet_device){0});
    struct pnet_error e;
    void *x = NULL;
    int64_t rows;
    int scores = o.plan->nodes[o.plan->objectives[0].node].in[0];
    *b = objectives_batch(o.plan, clouds, 0, CLOUDS);
    need(pnet_runner_prepare(o.runner, 0, *b, &e), &e, "geometry");
    need(pnet_runner_forward(o.runner, 0, false, 0, &e), &e, "forward");
    need(pnet_runner_copy_tensor(o.runner, 0, scores, &x, &rows, &e), &e, "predictions");
    CHECK(rows == (*b)->inputs[0].rows);
    const int32_t *order =
        pnet_slot_order(pnet_runner_slot(o.runner, 0), o.plan->tensors[scores].type.level);
    float *in_order = must(malloc((size_t)rows * 3 * sizeof *in_order));
    for (int64_t i = 0; i < rows; i++)
        memcpy(in_order + 3 * order[i], (const float *)x + 3 * i, 3 * sizeof *in_order);
    free(x);
    objectives_close(&o);
    return in_order;
}

static double nearest(const float *from, const float *to, int64_t begin, int64_t end)
{
    double best = (double)INFINITY;
    for (int64_t j = begin; j < end; j++) {
        double square = 0;
        for (int c = 0; c < 3; c++) square += pow((double)from[c] - (double)to[3 * j + c], 2);
        best = fmin(best, square);
    }
    return sqrt(best);
}

/* Values alone, against plain loops over the predictions. */
static void test_alone(const struct pnet_evaluation alone[COUNT])
{
    struct pnet_batch *b;
    float *x = predict(&b);
    const struct pnet_batch_input *p = &b->inputs[0];
    double right = 0, labelled = 0, l1 = 0, matrix[3][3] = {{0}}, iou = 0;
    for (int64_t i = 0; i < p->rows; i++) {
        int32_t label = ((int32_t *)p->fields[2])[i], best = 0;
        for (int c = 1; c < 3; c++)
            if (x[3 * i + c] > x[3 * i + best]) best = c;
        if (label < 0) continue;
        labelled++;
        right += label == best;
        matrix[label][best]++;
    }
    for (int c = 0; c < 3; c++) {
        double either = -matrix[c][c];
        for (int k = 0; k < 3; k++) either += matrix[c][k] + matrix[k][c];
        iou += matrix[c][c] / either / 3;
    }
    for (int s = 0; s < CLOUDS; s++) {
        int64_t begin = p->row_splits[s], end = p->row_splits[s + 1];
        for (int64_t i = begin; i < end; i++)
            l1 +=
                (nearest(x + 3 * i, p->xyz, begin, end) + nearest(p->xyz + 3 * i, x, begin, end)) /
                (double)(end - begin) / 2 / CLOUDS;
    }
    CHECKF(fabs(alone[0].lines[0].value - right / labelled) < 1e-12, "%g", alone[0].lines[0].value);
    CHECKF(fabs(alone[7].lines[0].value - iou) < 1e-12, "%g", alone[7].lines[0].value);
    CHECKF(fabs(alone[12].lines[0].value - 1000 * l1) < 1e-3 * l1, "%g, not %g",
        alone[12].lines[0].value, 1000 * l1);
    free(x);
    pnet_batch_free(b);
}

/* Every loss and metric of the language is in the list. */
static void test_complete(void)
{
    char call[64];
    for (int i = 0; i < pnet_op_count; i++) {
        bool found = pnet_ops[i]->class_ == PNET_LAYER;
        snprintf(call, sizeof call, " %s(", pnet_ops[i]->name);
        for (int k = 0; k < COUNT; k++) found |= strstr(objectives[k], call) != NULL;
        CHECKF(found, "%s", pnet_ops[i]->name);
    }
}

/* The classes of which inference writes scores. */
static int classes_of(const char *lines, const char *value)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s", objectives_model, lines);
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE, .value = value};
    struct pnet_compilation *c =
        need_plan(pnet_compile_text("m.pnet", text, strlen(text), &o), lines);
    int classes = pnet_compilation_plan(c)->result_classes;
    pnet_compilation_free(c);
    return classes;
}

static void test_results(void)
{
    static const char labels[] = "loss ce = cross_entropy(x, p.label)\n",
                      sets[] = "metric c = completion(x, p.xyz, label=p.tag)\n",
                      later[] = "z = x -> pool(mean, to=grid(p, 50cm))\n"
                                "w = x -> linear(3)\n"
                                "s = x -> softmax\n"
                                "loss ce = cross_entropy(x, p.label)\n",
                      sooner[] = "loss ce = cross_entropy(x, p.label)\n"
                                 "z = x -> pool(mean, to=grid(p, 50cm))\n"
                                 "w = x -> linear(3)\n"
                                 "s = x -> softmax\n";
    CHECK(classes_of(labels, "x") == 3);
    CHECK(classes_of(sets, "x") == 0); /* coordinates */
    CHECK(classes_of("metric a = accuracy(t, p.tag)\n", "x") == 0);
    CHECK(classes_of("metric a = accuracy(t, p.tag)\n", "t") == 3);
    /* whatever stands first */
    CHECK(classes_of(later, "z") == 3 && classes_of(sooner, "z") == 3);
    CHECK(classes_of(later, "w") == 0 && classes_of(sooner, "w") == 0);
    CHECK(classes_of(later, "s") == 0 && classes_of(sooner, "s") == 0);
}

int main(void)
{
    struct pnet_evaluation alone[COUNT];
    omp_set_num_threads(1); /* the clouds are small */
    test_complete();
    test_results();
    for (int i = 0; i < COUNT; i++) {
        struct objectives o =
            objectives_open(objectives[i], PNET_FOR_EVAL, (struct pnet_device){0});
        alone[i] = objectives_evaluate(&o, clouds, CLOUDS, CLOUDS);
        objectives_close(&o);
    }
    test_alone(alone);
    test_pairs(alone);
    for (int i = 0; i < COUNT; i++) pnet_evaluation_free(&alone[i]);
    return check_end();
}
