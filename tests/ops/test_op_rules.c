/* What the rows refuse, and how they say it; and what their types come to. */
#include "runtime/ops/common.h"
#include "tests/ops/opcase.h"

static struct opcase make(const struct world *w, const char *name, int32_t width, int level)
{
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, width, level);
    return c;
}

static void refuses(struct opcase *c, const char *error, int error_arg, int error_in)
{
    bool fits = opcase_rule(c);
    CHECKF(!fits, "%s accepts what it should not", c->label);
    CHECK_STR(c->rule.error, error);
    CHECKF(c->rule.error_arg == error_arg && c->rule.error_in == error_in,
        "%s: argument %d, input %d", c->label, c->rule.error_arg, c->rule.error_in);
}

static void test_two_values(const struct world *w)
{
    struct opcase c = make(w, "add", 8, FINE);
    opcase_in(&c, 8, COARSE);
    refuses(&c, "add() joins points of different levels: 8@g[0] (10cm) and 8@g[1] (20cm)", 1, 1);
    c = make(w, "add", 8, FINE);
    opcase_in(&c, 4, FINE);
    refuses(&c, "add() joins different widths: 8@g[0] (10cm) and 4@g[0] (10cm)", 1, 1);
    CHECK_STR(c.rule.help, "bring it to the same width with -> linear(8)");
    c = make(w, "mul", 8, FINE);
    opcase_in(&c, 4, FINE);
    refuses(&c, "mul() joins different widths: 8@g[0] (10cm) and 4@g[0] (10cm)", 1, 1);
    c = make(w, "mul", 1, FINE);
    opcase_in(&c, 4, FINE);
    refuses(&c, "mul() spreads its second value over the channels of the first, not the other way",
        1, 1);
    c = make(w, "mse", 2, SAMPLE);
    opcase_in(&c, 2, POINTS);
    refuses(&c, "mse() joins points of different levels: 2@sample and 2@p", 1, 1);
    c = make(w, "cat", 8, FINE);
    opcase_in(&c, 4, FINE);
    opcase_in(&c, 4, COARSE);
    refuses(&c, "cat() joins points of different levels", 0, 2);
    CHECK_STR(c.rule.help, "move it with -> conv(.., to=g[0])");
    c.in_count = 2;
    CHECK(opcase_rule(&c) && c.rule.out.width == 12 && c.rule.out.level == FINE);
}

/* Losses of two clouds: here two levels of one stand for them, which no rule looks at. */
static void test_matched(const struct world *w)
{
    static const char *const names[] = {"hardest_contrastive", "circle"};
    const struct pnet_matches m = {.a = FINE, .b = COARSE, .pose = 7, .radius = 0.15f};
    for (int i = 0; i < 2; i++) {
        char text[160];
        struct opcase c = make(w, names[i], 8, FINE);
        c.attr[opcase_arg(&c, "M")] = (struct pnet_attr){.set = true, .matches = &m};
        opcase_in(&c, 8, FINE);
        snprintf(text, sizeof text, "%s() has features 8@g[0] (10cm), but the matches are of g[1]",
            names[i]);
        refuses(&c, text, 1, 1);
        CHECK_STR(c.rule.help, "match their levels: matches(level(..), level(..), ..)");
        c.in[1] = (struct pnet_type){.width = 4, .level = COARSE};
        snprintf(text, sizeof text, "%s() compares features of one width, not 8 and 4", names[i]);
        refuses(&c, text, 1, 1);
        c.in[1].width = 8;
        CHECK(opcase_rule(&c) && c.rule.out.level == SCALAR && c.rule.out.width == 1);
        const struct pnet_geo_request *q = c.rule.geo;
        CHECK(
            q->kind == PNET_GEO_MATCHES && q->a == FINE && q->b == COARSE && q->matches.pose == 7);
        CHECK(c.rule.geo_count == i + 1 && q[i].matches.radius == m.radius);
        if (i == 0) continue;
        opcase_real(&c, "safe", 0.1);
        refuses(&c, "safe=0.1m of circle() is less than the radius of its matches, 0.15m",
            opcase_arg(&c, "safe"), -1);
        opcase_real(&c, "safe", 0.4);
        CHECK(opcase_rule(&c) && q[0].matches.radius == m.radius && q[1].matches.radius == 0.4f);
    }
}

static void test_levels(const struct world *w)
{
    struct opcase c = make(w, "pool", 4, COARSE);
    opcase_int(&c, "to", FINE);
    refuses(&c, "pool() cannot go from g[1] to g[0]: it is not a coarser level", 2, -1);
    CHECK_STR(c.rule.help, "-> upsample(to=g[0]) goes to a finer level");
    c = make(w, "pool", 4, SAMPLE);
    opcase_int(&c, "to", FINE);
    refuses(&c, "pool() cannot go from sample to g[0]: it is not a coarser level", 2, -1);
    CHECK_STR(c.rule.help, "-> expand(to=g[0]) gives every point its sample's row");
    c = opcase_of(w, "pool");
    opcase_label(&c, 4, POINTS);
    opcase_int(&c, "to", FINE);
    opcase_int(&c, "kind", 1);
    refuses(&c, "pool() joins labels by majority only", 1, -1);
    c = make(w, "upsample", 4, FINE);
    opcase_int(&c, "to", COARSE);
    refuses(&c, "upsample() cannot go from g[0] to g[1]: it is not a finer level", 1, -1);
    CHECK_STR(c.rule.help, "-> pool(mean, to=g[1]) goes to a coarser level");
    c = make(w, "upsample", 4, SAMPLE);
    opcase_int(&c, "to", FINE);
    refuses(&c, "upsample() cannot go from sample to g[0]: it is not a finer level", 1, -1);
    c = make(w, "expand", 4, COARSE);
    opcase_int(&c, "to", FINE);
    refuses(&c, "expand() takes one row a sample, not the points of g[1]", 0, 0);
    c = make(w, "expand", 4, SAMPLE);
    opcase_int(&c, "to", SCALAR);
    refuses(&c, "expand() goes to the points of a level, not to scalar", 1, -1);
    c = make(w, "groupnorm", 6, FINE);
    opcase_int(&c, "groups", 4);
    refuses(&c, "groups=4 does not divide the 6 channels of the input", 1, -1);
}

static void test_labels(const struct world *w)
{
    const char *const names[] = {"cross_entropy", "focal", "lovasz_softmax", "dice", "accuracy",
        "top_k_accuracy", "mean_accuracy", "precision", "recall", "f1", "iou", "miou", "confusion"};
    char text[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct opcase c = make(w, names[i], 20, POINTS);
        opcase_label(&c, 13, POINTS);
        snprintf(text, sizeof text,
            "%s() has 13 classes in its label but the prediction has 20 channels", names[i]);
        refuses(&c, text, 0, 0);
        CHECK_STR(c.rule.help, "end the prediction with -> linear(13)");
        c = make(w, names[i], 13, FINE);
        opcase_label(&c, 13, SAMPLE);
        snprintf(text, sizeof text,
            "%s() has one label a cloud but a prediction for the points of g[0]", names[i]);
        refuses(&c, text, 0, 0);
        c = make(w, names[i], 13, SAMPLE);
        opcase_label(&c, 13, POINTS);
        snprintf(text, sizeof text, "%s() has labels on the points of p but one prediction a cloud",
            names[i]);
        refuses(&c, text, 0, 0);
        c = make(w, names[i], 13, POINTS);
        opcase_label(&c, 13, FINE);
        snprintf(text, sizeof text,
            "%s() has labels on g[0] but its prediction on the finer level p", names[i]);
        refuses(&c, text, 0, 0);
        c = make(w, names[i], 13, COARSE);
        opcase_label(&c, 13, POINTS);
        CHECK(opcase_rule(&c) && c.rule.geo_count == 1);
        CHECK(c.rule.geo[0].kind == PNET_GEO_PARENT && c.rule.geo[0].a == POINTS &&
              c.rule.geo[0].b == COARSE);
        CHECK(c.rule.out.level == SCALAR);
    }
}

static void test_weights(const struct world *w)
{
    static const double three[] = {1, 1, 1}, negative[] = {1, -1}, endless[] = {INFINITY, 1},
                        none[] = {1, NAN};
    static const char *const names[] = {"cross_entropy", "focal"};
    char text[96];
    for (int i = 0; i < 2; i++) {
        struct opcase c = make(w, names[i], 2, POINTS);
        int arg = opcase_arg(&c, "weights");
        opcase_label(&c, 2, POINTS);
        opcase_list(&c, "weights", three, 3);
        snprintf(text, sizeof text, "%s() has 3 weights for 2 classes", names[i]);
        refuses(&c, text, arg, -1);
        opcase_list(&c, "weights", negative, 2);
        snprintf(text, sizeof text, "%s() has a negative weight: class 1", names[i]);
        refuses(&c, text, arg, -1);
        opcase_list(&c, "weights", endless, 2);
        snprintf(text, sizeof text, "%s() has an infinite weight: class 0", names[i]);
        refuses(&c, text, arg, -1);
        opcase_list(&c, "weights", none, 2);
        snprintf(text, sizeof text, "%s() has a weight that is not a number: class 1", names[i]);
        refuses(&c, text, arg, -1);
    }
}

static void test_differences(const struct world *w)
{
    static const char *const names[] = {"mse", "huber", "l1"};
    char text[96];
    for (int i = 0; i < 3; i++) {
        struct opcase c = make(w, names[i], 2, SAMPLE);
        opcase_in(&c, 2, POINTS);
        snprintf(
            text, sizeof text, "%s() joins points of different levels: 2@sample and 2@p", names[i]);
        refuses(&c, text, 1, 1);
        c = make(w, names[i], 2, POINTS);
        opcase_in(&c, 3, POINTS);
        snprintf(text, sizeof text, "%s() joins different widths: 2@p and 3@p", names[i]);
        refuses(&c, text, 1, 1);
        c.in[1].width = 2;
        CHECK(opcase_rule(&c) && c.rule.out.level == SCALAR && c.rule.out.width == 1);
    }
}

static void test_top_k(const struct world *w)
{
    struct opcase c = make(w, "top_k_accuracy", 4, POINTS);
    opcase_label(&c, 4, POINTS);
    refuses(&c, "top_k_accuracy() cannot choose the best 5 of 4 classes", 2, -1);
    CHECK_STR(c.rule.help, "choose k from 1 to 4");
    opcase_int(&c, "k", 4);
    CHECK(opcase_rule(&c));
}

/* A reference gets zeros in its first run, and what it left there in the next one. */
static void test_constants(void)
{
    struct pnet_constants constants = {NULL, 0};
    struct pnet_exec x = {.constants = &constants};
    bool first;
    double *value = pnet_op_constants(&x, 3, &first);
    CHECK(first && value[0] == 0 && value[2] == 0);
    value[2] = 7;
    CHECK(pnet_op_constants(&x, 3, &first)[2] == 7);
    CHECK(!first);
    free(constants.value);
}

/* Every row says what it is, has what a row needs, and names arguments once. */
static void test_rows(void)
{
    for (int i = 0; i < pnet_op_count; i++) {
        const struct pnet_op *op = pnet_ops[i];
        CHECKF(op->summary && op->doc && op->cases && op->rule && op->work && op->reference &&
                   op->forward,
            "%s", op->name);
        CHECKF(op->summary[strlen(op->summary) - 1] != '.', "%s", op->name);
        CHECKF(op->backward != NULL || (op->flags & PNET_NO_GRAD), "%s", op->name);
        CHECKF((op->class_ == PNET_METRIC) == (op->finish != NULL), "%s", op->name);
        CHECKF(op->class_ == PNET_METRIC || !(op->flags & PNET_ON_HOST), "%s", op->name);
        CHECKF(op->cases[0] && op->cases[strlen(op->cases) - 1] == '\n', "%s: cases", op->name);
        CHECKF(pnet_op_find(op->name) == op, "%s stands twice", op->name);
        for (int a = 0; op->args[a].name; a++) {
            CHECKF(op->args[a].help != NULL, "%s %s", op->name, op->args[a].name);
            for (int b = 0; b < a; b++)
                CHECKF(strcmp(op->args[a].name, op->args[b].name) != 0, "%s", op->name);
        }
    }
}

/* Which layers need no geometry: a convolution without neighbours, attention in the order of rows, whatever `cell` says. */
static void test_geometry(const struct world *w)
{
    static const struct {
        const char *op, *first, *second; /* arguments: names of numbers, or NULL */
        double one, two;
        int items;
    } cases[] = {
        {"conv", "kernel", NULL, 1, 0, 0},
        {"conv", "kernel", "to", 1, FINE, 0},
        {"conv", "kernel", "to", 1, COARSE, 1},
        {"conv", "kernel", "knn", 1, 3, 1},
        {"conv", "kernel", "radius", 1, 0.1, 1},
        {"conv", "kernel", NULL, 3, 0, 1},
        {"attend", "order", NULL, 0, 0, 0},
        {"attend", "order", "cell", 0, 0.1, 0},
        {"attend", "order", "cell", 2, 0.1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct opcase c = make(w, cases[i].op, 24, FINE);
        const char *names[] = {cases[i].first, cases[i].second};
        const double values[] = {cases[i].one, cases[i].two};
        if (strcmp(cases[i].op, "conv") == 0)
            opcase_int(&c, "channels", 4);
        else
            opcase_int(&c, "heads", 1);
        for (int k = 0; k < 2 && names[k]; k++)
            if (strcmp(names[k], "radius") == 0 || strcmp(names[k], "cell") == 0)
                opcase_real(&c, names[k], values[k]);
            else
                opcase_int(&c, names[k], (int64_t)values[k]);
        CHECKF(opcase_rule(&c), "%s: %s", c.label, c.rule.error);
        CHECKF(c.rule.geo_count == cases[i].items, "%s, %s, %s: %d items", c.label, names[0],
            names[1] ? names[1] : "-", c.rule.geo_count);
    }
}

int main(void)
{
    const int64_t sizes[] = {20};
    struct world w = world_make(1, sizes);
    test_two_values(&w);
    test_matched(&w);
    test_levels(&w);
    test_labels(&w);
    test_weights(&w);
    test_differences(&w);
    test_top_k(&w);
    test_geometry(&w);
    test_constants();
    test_rows();
    world_free(&w);
    return check_end();
}
