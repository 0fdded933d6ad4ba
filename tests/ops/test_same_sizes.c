/* Losses and metrics that need as many points in one set as in the other refuse a batch in which a sample has not, before
   anything runs. */
#include "runtime/run/runner.h"
#include "compiler/compile.h"
#include "tests/check.h"

enum { SAMPLES = 3, SETS = 2 };

static const char model[] = "pnet 1\n"
                            "input a { xyz : position }\n"
                            "input b { xyz : position }\n"
                            "net shift(p: cloud) { return p.xyz -> linear(3) }\n"
                            "y = shift(a)\n";

static void must(enum pnet_status st, const struct pnet_error *e)
{
    if (!st) return;
    fprintf(stderr, "%s\n", e->message);
    exit(1);
}

static struct pnet_batch *batch_of(
    const struct pnet_plan *p, const int64_t sizes[SETS][SAMPLES], uint64_t id)
{
    int64_t splits[SETS][SAMPLES + 1] = {{0}};
    const int64_t *all[SETS] = {splits[0], splits[1]};
    struct pnet_batch *b = NULL;
    struct pnet_error e;
    for (int k = 0; k < SETS; k++)
        for (int s = 0; s < SAMPLES; s++) splits[k][s + 1] = splits[k][s] + sizes[k][s];
    must(pnet_batch_new(p->inputs, p->input_count, SAMPLES, all, &b, &e), &e);
    for (int k = 0; k < SETS; k++)
        for (int64_t i = 0; i < 3 * splits[k][SAMPLES]; i++)
            b->inputs[k].xyz[i] = (float)((7 * i + k) % 11);
    b->id = id;
    return b;
}

static void test(const char *tail, enum pnet_purpose_kind purpose, const char *path)
{
    char text[512], message[256];
    snprintf(text, sizeof text, "%s%s\n", model, tail);
    snprintf(message, sizeof message,
        "%s: emd() needs as many points in x as in y, but sample 2 of the batch has 6 and 7 "
        "(samples count from 0)",
        path);
    struct pnet_compile_options o = {.purpose = purpose};
    struct pnet_compilation *c = pnet_compile_text("shift.pnet", text, strlen(text), &o);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    CHECK(p != NULL);
    if (!p) {
        pnet_compilation_report(c, stderr, false, false);
        pnet_compilation_free(c);
        return;
    }
    struct pnet_target target = {.where = {PNET_CPU, 0}};
    struct pnet_runner_options so = {.slots = 1, .seed = 7};
    struct pnet_bound *bound = NULL;
    struct pnet_runner *s = NULL;
    struct pnet_error e;
    must(pnet_bound_new(p, &target, &bound, &e), &e);
    must(pnet_runner_new(bound, &so, &s, &e), &e);
    must(pnet_runner_init_params(s, &e), &e);

    /* an empty set is none of unlike size */
    struct pnet_batch *fits = batch_of(p, (const int64_t[SETS][SAMPLES]){{4, 0, 6}, {4, 5, 6}}, 1);
    struct pnet_batch *unlike =
        batch_of(p, (const int64_t[SETS][SAMPLES]){{4, 5, 6}, {4, 5, 7}}, 2);
    for (int again = 0; again < 2; again++) {
        must(pnet_runner_prepare(s, 0, fits, &e), &e);
        must(pnet_runner_forward(s, 0, true, 0, &e), &e);
        CHECK(!p->training || pnet_runner_objective(s, 0, NULL) > 0);
        /* the second time the geometry of the batch must not count as built */
        for (int k = 0; k < 2; k++) {
            memset(&e, 0, sizeof e);
            CHECK(pnet_runner_prepare(s, 0, unlike, &e) == PNET_BAD_DATA);
            CHECK_STR(e.message, message);
        }
    }
    pnet_batch_free(fits);
    pnet_batch_free(unlike);
    pnet_runner_free(s);
    pnet_bound_free(bound);
    pnet_compilation_free(c);
}

int main(void)
{
    test("loss far = emd(y, b.xyz)", PNET_FOR_TRAINING, "far.emd");
    test("metric far = completion(y, b.xyz, emd=yes)", PNET_FOR_EVAL, "far.emd");
    return check_end();
}
