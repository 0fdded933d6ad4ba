/* Measuring and binding under an allocator that fails: they end with a status and hold nothing. And a step by what was
   chosen asks for no memory. */
#include "tests/heap.h"

#if HEAP_REPLACED
#include "tests/runtime/tuned.h"

static const struct pnet_device_info here = {"device", "1.0"};
static const struct pnet_plan *plan;
static struct pnet_runner *runner;

/* All of it that works in memory; the text is what a checkpoint would keep. */
static enum pnet_status tune(struct pnet_error *e)
{
    struct tuned_clock k = tuned_even();
    struct pnet_tune_options o = tuned_options(&k);
    struct pnet_tune_cache cache;
    struct pnet_tuning t = {0};
    struct pnet_bound *chosen = NULL, *again = NULL;
    struct pnet_target target = {.where = {PNET_CPU, 0}};
    struct pnet_choices c = {0}, read = {0};
    char warning[1024], *table = NULL, *text = NULL;
    k.seconds[PNET_FORWARD][PNET_ALGO_IM2COL] = 0.5;
    pnet_tune_cache_open(&cache, NULL, PNET_CPU, &here, warning);
    enum pnet_status st = pnet_tune(runner, 0, &o, &cache, &t, e);
    if (!st && !(table = pnet_tuning_print(&t))) st = pnet_error_memory(e);
    if (!st) st = pnet_tuning_bind(&t, plan, &target, &chosen, e);
    if (!st) st = pnet_choices_of(chosen, &here, &c, e);
    if (!st && !(text = pnet_choices_print(&c))) st = pnet_error_memory(e);
    if (!st) st = pnet_choices_parse("text", text, strlen(text), &read, e);
    if (!st) st = pnet_choices_bind(&read, plan, &target, &again, e);
    free(text);
    free(table);
    pnet_choices_free(&read);
    pnet_choices_free(&c);
    pnet_bound_free(again);
    pnet_bound_free(chosen);
    pnet_tuning_free(&t);
    pnet_tune_cache_free(&cache);
    return st;
}

static void test_failing(void)
{
    struct pnet_error e;
    long failed = 0, at = 1;
    need(tune(&e), &e, "without failures"); /* the arena is there from now on */
    for (bool over = false; !over && at < 10000; at++) {
        heap_begin(at, false);
        enum pnet_status st = tune(&e);
        heap.counting = false;
        CHECKF(st == PNET_OK || st == PNET_NO_MEMORY, "allocation %ld: %s", at, e.message);
        CHECKF(!heap.live, "allocation %ld: %ld blocks are left", at, heap.live);
        failed += st != PNET_OK;
        over = heap.calls < at;
    }
    CHECKF(failed > 20, "%ld allocations failed of %ld", failed, at);
}

/* A plan bound to a GPU, which takes more memory than for the CPU; to one by its architecture, since asking for the one at
   hand lets the CUDA runtime allocate. */
static void test_binding(void)
{
    const struct pnet_target t = {
        .where = {PNET_CUDA, 0}, .architecture = 90, .precision = PNET_BF16};
    struct pnet_error e;
    long failed = 0, at = 1;
    for (bool over = false; !over; at++) {
        struct pnet_bound *b = NULL;
        heap_begin(at, false);
        enum pnet_status st = pnet_bound_new(plan, &t, &b, &e);
        if (!st) pnet_bound_free(b);
        heap.counting = false;
        CHECKF(st == PNET_OK || st == PNET_NO_MEMORY, "allocation %ld: %s", at, e.message);
        CHECKF(!heap.live, "allocation %ld: %ld blocks are left", at, heap.live);
        failed += st != PNET_OK;
        over = heap.calls < at;
    }
    CHECKF(failed == at - 2, "%ld allocations of %ld failed", failed, at - 2);
}

static void test_step(const struct cloud *cloud)
{
    struct pnet_algos table[256] = {0};
    struct pnet_target tuned = {.algos = table};
    struct pnet_error e;
    for (int n = 0; n < plan->node_count; n++)
        table[n] = (struct pnet_algos){
            {(enum pnet_conv_algo)(n % PNET_ALGO_COUNT), PNET_ALGO_GATHER, PNET_ALGO_MVMR_K}};
    struct pnet_runner *s = tuned_open(plan, &tuned, cloud);
    for (int i = 0; i < 3; i++) {
        if (i) heap_begin(0, false);
        need(pnet_runner_forward(s, 0, true, 1, &e), &e, "forward");
        need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
        heap.counting = false;
        CHECKF(!i || !heap.calls, "%ld allocations in a step", heap.calls);
    }
    runner_end(s);
}

int main(void)
{
    struct pnet_compilation *c = tuned_compile();
    struct cloud cloud = cloud_corner(600, 2, 1);
    plan = pnet_compilation_plan(c);
    runner = tuned_open(plan, &(struct pnet_target){0}, &cloud);
    test_failing();
    test_binding();
    test_step(&cloud);
    runner_end(runner);
    cloud_free(&cloud);
    pnet_compilation_free(c);
    return check_end();
}
#endif
