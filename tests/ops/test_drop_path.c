/* What a sample draws in drop_path, while the other sample of the batch changes: the same, unless its rows have another order. */
#include "compiler/compile.h"
#include "runtime/run/runner.h"
#include "tests/check.h"

enum { SAMPLES = 2, ROWS = 200 };
enum { POSITION, FEATURE }; /* the fields of the cloud */

static void must(enum pnet_status st, const struct pnet_error *e)
{
    if (!st) return;
    fprintf(stderr, "%s\n", e->message);
    exit(1);
}

/* A number in [0, 1) of a row's coordinate. */
static float unit(uint32_t i)
{
    return (float)((i * 2654435761U) >> 8) / 0x1p24F;
}

/* The first sample is the same in every batch. The second one has `other` points up to `reach` metres away. */
static struct pnet_batch *batch_of(const struct pnet_plan *p, int64_t other, float reach)
{
    int64_t splits[SAMPLES + 1] = {0, ROWS, ROWS + other};
    const int64_t *all[] = {splits};
    struct pnet_batch *b = NULL;
    struct pnet_error e;
    must(pnet_batch_new(p->inputs, p->input_count, SAMPLES, all, &b, &e), &e);
    for (int64_t i = 0; i < splits[SAMPLES]; i++) {
        float size = i < ROWS ? 1 : reach;
        for (int a = 0; a < 3; a++)
            b->inputs[0].xyz[3 * i + a] = size * unit((uint32_t)(3 * i + a));
        ((float *)b->inputs[0].fields[FEATURE])[i] = 1 + unit((uint32_t)i);
    }
    return b;
}

/* Which points of the first sample stay, in the order of the file: the results of `expression`, on points. */
static void draw(const char *expression, int64_t other, float reach, bool stays[ROWS])
{
    char text[600];
    snprintf(text, sizeof text,
        "pnet 1\n"
        "input cloud { xyz : position  f : feature[1] }\n"
        "net drops(p: cloud) { return %s }\n"
        "y = drops(cloud)\n"
        "loss l = mse(y -> linear(1), y * 2)\n",
        expression);
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    struct pnet_compilation *c = pnet_compile_text("drops.pnet", text, strlen(text), &o);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    if (!p) {
        pnet_compilation_report(c, stderr, false, false);
        exit(1);
    }
    struct pnet_target target = {.where = {PNET_CPU, 0}};
    struct pnet_runner_options so = {.slots = 1, .seed = 3};
    struct pnet_bound *bound = NULL;
    struct pnet_runner *s = NULL;
    struct pnet_error e;
    struct pnet_batch *b = batch_of(p, other, reach);
    must(pnet_bound_new(p, &target, &bound, &e), &e);
    must(pnet_runner_new(bound, &so, &s, &e), &e);
    must(pnet_runner_init_params(s, &e), &e);
    must(pnet_runner_prepare(s, 0, b, &e), &e);
    must(pnet_runner_forward(s, 0, true, 0, &e), &e);
    int result = -1;
    for (int n = 0; n < p->node_count; n++)
        if (!p->nodes[n].dead && strncmp(p->nodes[n].path, "drops.out.", 10) == 0)
            result = p->nodes[n].out;
    CHECKF(result >= 0 && pnet_runner_tensor_rows(s, 0, result) == ROWS + other, "%s", expression);
    float *rows = calloc((size_t)(ROWS + other), sizeof *rows);
    if (!rows || result < 0) exit(1);
    must(pnet_runner_give(s, 0, result, false, rows, &e), &e);
    int64_t kept = 0;
    for (int i = 0; i < ROWS; i++) kept += stays[i] = rows[i] != 0;
    CHECKF(
        kept > ROWS / 5 && kept < 4 * ROWS / 5, "%s: %d of %d stay", expression, (int)kept, ROWS);
    free(rows);
    pnet_runner_free(s);
    pnet_bound_free(bound);
    pnet_batch_free(b);
    pnet_compilation_free(c);
}

/* Does the first sample draw the same whatever the second one is? */
static void check(const char *expression, bool same)
{
    static const struct {
        int64_t rows;
        float reach;
    } others[] = {{0, 0}, {50, 1}, {300, 20}, {1, 1000}};
    bool want[ROWS], got[ROWS];
    int changed = 0;
    draw(expression, 50, 1, want);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        draw(expression, others[i].rows, others[i].reach, got);
        changed += memcmp(want, got, sizeof want) != 0;
    }
    CHECKF((changed == 0) == same, "%s: %d of 4 differ", expression, changed);
}

int main(void)
{
    /* along a grid */
    check("p.f -> pool(mean, to=grid(p, 1cm)) -> drop_path(0.5) -> upsample(to=level(p))", true);
    check("p.f -> pool(mean, to=grid(p, 1cm)) -> upsample(to=level(p)) -> drop_path(0.5)", true);
    check(
        "p.f -> pool(mean, to=chunks(grid(p, 1cm), 2)) -> drop_path(0.5) -> upsample(to=level(p))",
        true);
    /* along one of the largest coordinate of the batch */
    check("p.f -> drop_path(0.5)", false);
    check("p.f -> pool(mean, to=chunks(p, 2)) -> drop_path(0.5) -> upsample(to=level(p))", false);
    return check_end();
}
