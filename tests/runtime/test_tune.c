/* Which algorithms a network gets from given times, where they are kept, and that they form what their names say. */
#include "runtime/run/layout.h"
#include "runtime/run/peak.h"
#include "tests/runtime/tuned.h"
#include "tests/store/folder.h"

static const struct pnet_device_info here = {"a \"quoted\" \\ name\n of: a device", "1.0"};
static struct cloud cloud;
static struct pnet_target target; /* with the fixed table */

static struct pnet_tuning tune(
    const struct pnet_plan *p, const struct pnet_tune_options *o, struct pnet_tune_cache *cache)
{
    struct pnet_target trial = target;
    trial.choosing = true;
    struct pnet_runner *s = tuned_open(p, &trial, &cloud);
    struct pnet_tuning t;
    struct pnet_error e;
    need(pnet_tune(s, 0, o, cache, &t, &e), &e, "tuning");
    runner_end(s);
    return t;
}

static struct pnet_tune_cache no_file(void)
{
    struct pnet_tune_cache c;
    char warning[1024];
    pnet_tune_cache_open(&c, NULL, PNET_CPU, &here, warning);
    CHECK_STR(warning, "");
    return c;
}

/* All lines have the algorithm for a direction that they form. */
static bool all_have(const struct pnet_tuning *t, enum pnet_direction d, enum pnet_conv_algo algo)
{
    for (int i = 0; i < t->count; i++)
        if (t->lines[i].from[d] != PNET_TUNED_NOT && t->lines[i].algos.of[d] != algo) return false;
    return true;
}

/* The fastest of each direction by itself, and the fixed table where the gain is small. */
static void test_choice(const struct pnet_plan *p)
{
    struct tuned_clock k = tuned_even();
    struct pnet_tune_options o = tuned_options(&k);
    k.seconds[PNET_FORWARD][PNET_ALGO_IM2COL] = 0.5;
    k.seconds[PNET_FORWARD][PNET_ALGO_MVMR_J] = 0.6;
    k.seconds[PNET_DF][PNET_ALGO_GATHER] = 0.94;
    k.seconds[PNET_DW][PNET_ALGO_MVMR_I] = 0.96;
    for (int again = 0; again < 2; again++) {
        struct pnet_tune_cache c = no_file();
        k.calls = 0;
        struct pnet_tuning t = tune(p, &o, &c);
        CHECK(t.count == TUNED_LAYERS && t.measured == TUNED_APART && !t.left);
        CHECK(t.known == TUNED_SUMS - TUNED_APART);
        /* what wins forward (4) or in dF (3) has to win again */
        CHECKF(k.calls == TUNED_APART * TUNED_CANDIDATES + 2 * 7, "%d measurements", k.calls);
        CHECK(t.lines[0].from[PNET_DF] == PNET_TUNED_NOT);
        CHECK(t.lines[0].algos.of[PNET_DF] == PNET_ALGO_DEFAULT);
        CHECK(all_have(&t, PNET_FORWARD, PNET_ALGO_IM2COL));
        CHECK(all_have(&t, PNET_DF, PNET_ALGO_GATHER));
        CHECK(all_have(&t, PNET_DW, PNET_ALGO_DEFAULT));
        char *table = pnet_tuning_print(&t);
        CHECK(table && strstr(table, "n.b.conv  forward im2col 500 ms (1e+03 ms)  dF gather"));
        CHECK(table && strstr(table, "(1e+03 ms)  and 3 like it") && !strstr(table, "n.b.conv_2"));
        CHECK(table && strstr(table, "14 sums of 5 convolutions: 11 measured"));
        free(table);
        pnet_tuning_free(&t);
        pnet_tune_cache_free(&c);
    }
}

/* What is known is not measured again; another set of candidates is another question. */
static void test_cache(const struct pnet_plan *p)
{
    struct tuned_clock k = tuned_even();
    struct pnet_tune_options o = tuned_options(&k);
    struct pnet_tune_cache c, again;
    struct pnet_error e;
    char warning[1024];
    k.seconds[PNET_DW][PNET_ALGO_MVMR_K] = 0.1;
    pnet_tune_cache_open(&c, test_folder, PNET_CPU, &here, warning);
    CHECK_STR(warning, "");
    struct pnet_tuning t = tune(p, &o, &c);
    CHECK(c.fresh == TUNED_APART);
    need(pnet_tune_cache_save(&c, &e), &e, "cache");
    pnet_tuning_free(&t);
    k.calls = 0;
    k.seconds[PNET_DW][PNET_ALGO_MVMR_K] = 9;
    pnet_tune_cache_open(&again, test_folder, PNET_CPU, &here, warning);
    CHECK_STR(warning, "");
    CHECK(again.count == c.count && !again.fresh);
    t = tune(p, &o, &again);
    CHECK(!k.calls && !t.measured && t.known == TUNED_SUMS);
    CHECK(all_have(&t, PNET_DW, PNET_ALGO_MVMR_K));
    CHECK(t.lines[1].seconds[PNET_DW] == 0.1 && t.lines[1].standard[PNET_DW] == 1);
    pnet_tuning_free(&t);
    o.all = true;
    t = tune(p, &o, &again);
    CHECK(t.measured == TUNED_APART && all_have(&t, PNET_DW, PNET_ALGO_DEFAULT));
    pnet_tuning_free(&t);
    pnet_tune_cache_free(&again);
    /* the same file seen from another device */
    struct pnet_device_info other = here;
    other.driver[0] = '2';
    pnet_tune_cache_open(&again, test_folder, PNET_CPU, &other, warning);
    CHECK(!again.count && strcmp(again.path, c.path) != 0);
    pnet_tune_cache_free(&again);
    pnet_tune_cache_free(&c);
}

/* A file with any byte changed or missing is read, or told and left out: never half of it. */
static void test_damage(void)
{
    struct pnet_tune_cache c;
    struct pnet_error e;
    char warning[1024];
    pnet_tune_cache_open(&c, test_folder, PNET_CPU, &here, warning);
    int64_t whole = c.count;
    FILE *f = fopen(c.path, "rb");
    static char text[1 << 16];
    size_t size = f ? fread(text, 1, sizeof text, f) : 0;
    if (f) fclose(f);
    CHECK(whole == TUNED_APART && size > 100);
    int told = 0;
    for (size_t i = 0; i < size; i += 3) {
        char kept = text[i];
        text[i] = (char)(kept ^ (1 << i % 7));
        f = fopen(c.path, "wb");
        if (f) {
            fwrite(text, 1, i % 2 ? size : i, f);
            fclose(f);
        }
        text[i] = kept;
        struct pnet_tune_cache d;
        pnet_tune_cache_open(&d, test_folder, PNET_CPU, &here, warning);
        CHECKF(*warning ? !d.count : d.count <= whole, "byte %zu: %d sums, '%s'", i, (int)d.count,
            warning);
        told += *warning != 0;
        pnet_tune_cache_free(&d);
    }
    CHECKF(told > 50, "only %d damaged files told", told);
    c.fresh = 1;
    need(pnet_tune_cache_save(&c, &e), &e, "cache");
    pnet_tune_cache_free(&c);
}

/* Sums beyond the budget keep the fixed table, and are measured the next time. */
static void test_budget(const struct pnet_plan *p)
{
    struct tuned_clock k = tuned_even();
    struct pnet_tune_options o = tuned_options(&k);
    struct pnet_tune_cache c = no_file();
    for (int d = 0; d < PNET_DIRECTIONS; d++) k.seconds[d][PNET_ALGO_IM2COL] = 0.1;
    k.each = 1;
    o.seconds = 2.5 * (TUNED_CANDIDATES + 2); /* the third sum is over the budget before its end */
    struct pnet_tuning t = tune(p, &o, &c);
    CHECKF(t.measured == 2 && c.count == 2, "%d measured", t.measured);
    CHECK(t.measured + t.known + t.left == TUNED_SUMS && t.left > 0);
    CHECK(t.lines[0].algos.of[PNET_FORWARD] == PNET_ALGO_IM2COL);
    CHECK(t.lines[TUNED_LAYERS - 1].algos.of[PNET_FORWARD] == PNET_ALGO_DEFAULT);
    char *table = pnet_tuning_print(&t);
    CHECK(table && strstr(table, "left to the fixed table"));
    free(table);
    pnet_tuning_free(&t);
    o.seconds = 1e6;
    k.calls = 0;
    t = tune(p, &o, &c);
    CHECK(t.measured == TUNED_APART - 2 && !t.left);
    CHECK(k.calls == (TUNED_APART - 2) * (TUNED_CANDIDATES + 2));
    pnet_tuning_free(&t);
    pnet_tune_cache_free(&c);
}

static bool same_algos(const struct pnet_bound *a, const struct pnet_bound *b)
{
    for (int n = 0; n < a->plan->node_count; n++)
        for (int d = 0; d < PNET_DIRECTIONS; d++)
            if (pnet_plan_convolves(a->plan, n) && a->algos[n].of[d] != b->algos[n].of[d])
                return false;
    return true;
}

/* Choices as text, and what becomes of other texts. */
static void test_choices(const struct pnet_plan *p)
{
    struct pnet_algos table[256];
    struct pnet_target mix = {.algos = table};
    struct pnet_choices c, again;
    struct pnet_bound *fixed, *mixed, *chosen;
    struct pnet_error e;
    for (int n = 0; n < p->node_count && n < 256; n++)
        table[n] = (struct pnet_algos){{(enum pnet_conv_algo)(n % PNET_ALGO_COUNT),
            (enum pnet_conv_algo)((n + 2) % PNET_ALGO_COUNT), PNET_ALGO_IM2COL}};
    need(pnet_bound_new(p, &target, &fixed, &e), &e, "binding");
    need(pnet_bound_new(p, &mix, &mixed, &e), &e, "binding");
    need(pnet_choices_of(mixed, &here, &c, &e), &e, "choices");
    char *text = pnet_choices_print(&c);
    CHECK(c.count == TUNED_LAYERS && text);
    size_t size = text ? strlen(text) : 0;
    need(pnet_choices_parse("text", text, size, &again, &e), &e, "parsing");
    CHECK(again.count == c.count && again.device == PNET_CPU && again.precision == PNET_FP32);
    CHECK_STR(again.info.name, here.name);
    need(pnet_choices_bind(&again, p, &target, &chosen, &e), &e, "binding");
    CHECK(chosen && same_algos(chosen, mixed) && !same_algos(chosen, fixed));
    pnet_bound_free(chosen);
    pnet_bound_free(mixed);
    pnet_bound_free(fixed);
    again.precision = PNET_BF16;
    need(pnet_choices_bind(&again, p, &target, &chosen, &e), &e, "binding");
    CHECK(!chosen);
    pnet_choices_free(&again);
    int refused = 0;
    for (size_t i = 0; i < size; i++) {
        enum pnet_status st = pnet_choices_parse("text", text, i, &again, &e);
        CHECK(st == PNET_OK || (st == PNET_BAD_DATA && !again.count && !again.items));
        refused += st != PNET_OK;
        pnet_choices_free(&again);
    }
    CHECKF(refused > 100, "only %d refused", refused);
    static const char *const wrong[] = {"format: 2\n", "layers: {}\n", "[1, 2]\n", "format: 1\n",
        "format: 1\nlayers: 3\n", "format: 1\nlayers: {x: {forward: fft}}\n",
        "format: 1\nlayers: {x: {sideways: default}}\n", "format: 1\nspeed: 9\nlayers: {}\n",
        "format: 1\nprecision: bf16\nlayers: {x: {dW: im2col}}\n",
        "format: 1\ndevice: tpu\nlayers: {}\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECKF(pnet_choices_parse("text", wrong[i], strlen(wrong[i]), &again, &e) == PNET_BAD_DATA,
            "%s", wrong[i]);
    free(text);
    pnet_choices_free(&c);
}

/* Forward, backward, as often as it takes for a recording to be replayed: the loss, and all gradients, to be freed. */
static float *run(const struct pnet_plan *p, const struct pnet_target *t, double *loss)
{
    struct pnet_runner *s = tuned_open(p, t, &cloud);
    const struct pnet_bound *b = pnet_runner_bound(s);
    struct pnet_error e;
    float *grads = must(calloc((size_t)p->trained_elements + 1, sizeof *grads));
    struct pnet_layout l;
    for (int i = 0; i < 3; i++) {
        size_t used = pnet_runner_memory(s)->used;
        need(pnet_runner_forward(s, 0, true, 1, &e), &e, "forward");
        need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
        need(pnet_runner_wait(s, &e), &e, "waiting");
        CHECK(!i || pnet_runner_memory(s)->used == used);
    }
    *loss = pnet_runner_objective(s, 0, NULL);
    need(pnet_runner_read(s, PNET_BLOCK_GRADS, 0, p->trained_elements, grads, &e), &e, "reading");
    const struct pnet_counts *counts = &pnet_runner_slot(s, 0)->counts;
    need(pnet_layout_make(b, counts, true, &l, &e), &e, "layout");
    size_t planned = pnet_peak_of(b, counts, &l, 1, 0).total, taken = pnet_runner_memory(s)->peak;
    CHECKF(planned == taken, "planned %zu, taken %zu", planned, taken);
    pnet_layout_free(&l);
    runner_end(s);
    return grads;
}

static bool same_grads(const struct pnet_plan *p, const float *a, const float *b)
{
    return memcmp(a, b, (size_t)p->trained_elements * sizeof *a) == 0;
}

/* A table with one name everywhere forms the bits of a plan with that name; a direction by itself changes what it forms
   and nothing else. */
static void test_bits(const struct pnet_plan *p)
{
    struct pnet_algos table[256] = {0};
    struct pnet_target tuned = target, named = target;
    double loss, other;
    float *standard = run(p, &target, &loss);
    tuned.algos = table;
    for (int a = 0; a < PNET_ALGO_COUNT; a++) {
        enum pnet_conv_algo algo = (enum pnet_conv_algo)a;
        if (target.precision != PNET_FP32 && !pnet_conv_algo_is_usual(algo)) continue;
        bool repeats = target.where.kind == PNET_CPU || !pnet_conv_algo_lists(algo);
        if (!repeats) continue;
        named.algo = algo;
        float *want = run(p, &named, &loss);
        for (int n = 0; n < p->node_count; n++) table[n] = (struct pnet_algos){{algo, algo, algo}};
        float *got = run(p, &tuned, &other);
        CHECKF(loss == other && same_grads(p, want, got), "%s", pnet_conv_algo_names[a]);
        free(want);
        free(got);
    }
    free(run(p, &target, &loss));
    for (int d = PNET_DF; d < PNET_DIRECTIONS && target.precision == PNET_FP32; d++) {
        memset(table, 0, sizeof table);
        for (int n = 0; n < p->node_count; n++) table[n].of[d] = PNET_ALGO_IM2COL;
        float *got = run(p, &tuned, &other);
        CHECKF(loss == other && !same_grads(p, standard, got), "%s", pnet_direction_names[d]);
        free(got);
    }
    free(standard);
}

/* With real clocks: whatever is chosen is one of the candidates, and was not slower. */
static void test_clock(const struct pnet_plan *p)
{
    struct pnet_tune_options o = {.seconds = 60};
    struct pnet_tune_cache c = no_file();
    struct pnet_tuning t = tune(p, &o, &c);
    CHECK(t.measured == TUNED_APART && !t.left && t.seconds > 0);
    for (int i = 0; i < t.count; i++)
        for (int d = 0; d < PNET_DIRECTIONS; d++) {
            if (t.lines[i].from[d] == PNET_TUNED_NOT) continue;
            CHECK(t.lines[i].seconds[d] > 0 && t.lines[i].seconds[d] <= t.lines[i].standard[d]);
            enum pnet_conv_algo algo = t.lines[i].algos.of[d];
            CHECK(target.where.kind == PNET_CPU ? algo != PNET_ALGO_IMPLICIT
                                                : !pnet_conv_algo_lists(algo));
            CHECK(target.precision == PNET_FP32 || pnet_conv_algo_is_usual(algo));
        }
    pnet_tuning_free(&t);
    pnet_tune_cache_free(&c);
}

/* With the kernels of the device. */
static void test_device(
    const struct pnet_plan *p, struct pnet_device where, enum pnet_precision precision)
{
    target = (struct pnet_target){.where = where, .precision = precision};
    test_bits(p);
    test_clock(p);
}

/* What does not depend on the device. */
static void test_host(const struct pnet_plan *p)
{
    make_folder();
    test_choice(p);
    test_cache(p);
    test_damage();
    test_budget(p);
    test_choices(p);
    remove_tree(test_folder);
}

/* argv[1]: "cpu" (default) or "cuda". */
int main(int argc, char **argv)
{
    struct pnet_device device;
    struct pnet_error e;
    need(pnet_device_parse(argc > 1 ? argv[1] : NULL, &device, &e), &e, "device");
    if (pnet_device_check(device, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    cloud = cloud_corner(1500, 2, 1);
    struct pnet_compilation *c = tuned_compile();
    const struct pnet_plan *p = pnet_compilation_plan(c);
    if (device.kind == PNET_CPU) test_host(p);
    test_device(p, device, PNET_FP32);
    if (device.kind != PNET_CPU) test_device(p, device, PNET_BF16);
    pnet_compilation_free(c);
    cloud_free(&cloud);
    return check_end();
}
