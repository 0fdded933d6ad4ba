/* What receptive fields say of each layer: where features of one point change, results of points beyond the field do not. The
   field follows from the geometry that a layer asks for, so a layer that reads other rows without any must say so. */
#include "tests/ops/case.h"

#include <math.h>

struct seen {
    int bounded, unbounded, changed;
};

/* The plan of an expression with a result for each point of the cloud, taken there if need be; NULL: there is none. */
static struct pnet_compilation *compile_for_points(const char *expression)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE};
    for (int taken = 1; taken >= 0; taken--) {
        char result[1024], text[4096];
        snprintf(
            result, sizeof result, taken ? "(%s) -> upsample(to=level(p.f))" : "%s", expression);
        snprintf(text, sizeof text, harness, result, "");
        struct pnet_compilation *c = pnet_compile_text("case.pnet", text, strlen(text), &o);
        const struct pnet_plan *p = pnet_compilation_plan(c);
        if (p && p->levels[p->tensors[p->result].type.level].input == CLOUD &&
            p->tensors[p->result].type.type == PNET_F32)
            return c;
        pnet_compilation_free(c);
    }
    return NULL;
}

static float *infer(const struct pnet_plan *p, const struct pnet_batch *b)
{
    struct pnet_target t = {.precision = PNET_FP32};
    struct pnet_error e;
    struct pnet_runner *s = open_runner(p, &t, b);
    float *rows;
    int64_t count;
    must(pnet_runner_forward(s, 0, false, 0, &e), &e);
    must(pnet_runner_result(s, 0, &rows, &count, &e), &e);
    close_runner(s);
    return rows;
}

static int32_t sample_of(const struct pnet_batch_input *in, int64_t row)
{
    int32_t s = 0;
    while (in->row_splits[s + 1] <= row) s++;
    return s;
}

/* Changes the features of a point, and returns how many results changed. */
static int check_point(const char *expression, const struct pnet_plan *p, struct pnet_batch *b,
    const float *before, int64_t point, double field)
{
    struct pnet_batch_input *in = &b->inputs[CLOUD];
    size_t width = (size_t)p->tensors[p->result].type.width;
    int changed = 0;
    for (int f = 0; f < p->inputs[CLOUD].field_count; f++) {
        const struct pnet_input_field *d = &p->inputs[CLOUD].fields[f];
        float *x = in->fields[f];
        if (d->kind != PNET_INPUT_FEATURE || !x) continue;
        for (int k = 0; k < d->width; k++) x[point * d->width + k] += 0.75f;
    }
    float *after = infer(p, b);
    for (int64_t i = 0; i < in->rows; i++) {
        if (memcmp(after + (size_t)i * width, before + (size_t)i * width, width * sizeof *after) ==
            0)
            continue;
        double away = sample_of(in, i) == sample_of(in, point) ? 0 : (double)INFINITY;
        for (int k = 0; k < 3; k++)
            away = fmax(away, fabs((double)in->xyz[3 * i + k] - (double)in->xyz[3 * point + k]));
        changed++;
        CHECKF(away <= field * (1 + 1e-6) + 1e-6,
            "%s: features of point %lld change the result of point %lld, %g m away; its field has "
            "%g m",
            expression, (long long)point, (long long)i, away, field);
    }
    free(after);
    return changed;
}

static void check_case(const char *expression, struct seen *seen)
{
    static const int64_t sizes[SAMPLES] = {90, 40, 1, 120};
    struct pnet_receptive_field field;
    struct pnet_error e;
    struct pnet_compilation *c = compile_for_points(expression);
    if (!c) return;
    const struct pnet_plan *p = pnet_compilation_plan(c);
    must(pnet_plan_receptive_field(p, p->result, &field, &e), &e);
    if (isinf(field.metres)) {
        seen->unbounded++;
    } else {
        struct pnet_batch *b = make_batch(p, sizes, 5);
        float *before = infer(p, b);
        int changed = check_point(expression, p, b, before, 17, field.metres);
        seen->bounded++;
        seen->changed += changed > 0;
        free(before);
        pnet_batch_free(b);
    }
    pnet_compilation_free(c);
}

int main(void)
{
    struct seen seen = {0};
    for (int i = 0; i < pnet_op_count; i++) {
        const struct pnet_op *op = pnet_ops[i];
        if (op->class_ != PNET_LAYER || !op->cases) continue;
        for (const char *at = op->cases; *at;) {
            char expression[512];
            size_t n = strcspn(at, "\n");
            snprintf(expression, sizeof expression, "%.*s", (int)n, at);
            check_case(expression, &seen);
            at += n + (at[n] == '\n');
        }
    }
    printf("%d cases with a bound, in %d of which results changed; %d without\n", seen.bounded,
        seen.changed, seen.unbounded);
    CHECKF(seen.bounded > 60 && seen.changed > 50, "too few cases: %d, %d", seen.bounded,
        seen.changed);
    CHECKF(seen.unbounded > 20, "too few cases without a bound: %d", seen.unbounded);
    return check_end();
}
