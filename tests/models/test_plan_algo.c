/* A plan bound to an algorithm of convolutions: every convolution has it, or it is refused. And one plan may be bound to
   several targets, and stays as it is. */
#include "tests/models/batch.h"

static const struct pnet_device gpu = {PNET_CUDA, 0};

static bool all_are(const struct pnet_bound *b, enum pnet_conv_algo algo)
{
    bool same = true;
    int convolutions = 0;
    for (int n = 0; n < b->plan->node_count; n++)
        for (int d = 0; d < PNET_DIRECTIONS && pnet_plan_convolves(b->plan, n); d++) {
            same &= b->algos[n].of[d] == algo;
            convolutions++;
        }
    return same && convolutions > 0;
}

/* By name, or by a table that has it everywhere. */
static bool binds(
    const struct pnet_plan *p, enum pnet_conv_algo algo, enum pnet_precision precision, bool table)
{
    struct pnet_algos *algos = must(calloc((size_t)p->node_count, sizeof *algos));
    struct pnet_target t = {.where = gpu, .precision = precision, .algo = algo};
    struct pnet_bound *b = NULL;
    struct pnet_error e;
    for (int n = 0; n < p->node_count; n++) algos[n] = (struct pnet_algos){{algo, algo, algo}};
    if (table) t = (struct pnet_target){.where = gpu, .precision = precision, .algos = algos};
    enum pnet_status st = pnet_bound_new(p, &t, &b, &e);
    free(algos);
    CHECK(st == PNET_OK || st == PNET_USAGE);
    if (!st) CHECK(all_are(b, algo));
    if (st) CHECK(strstr(e.message, "fp32") && strstr(e.message, pnet_conv_algo_names[algo]));
    if (!st) pnet_bound_free(b);
    return !st;
}

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *b = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ b[i]) * 1099511628211u;
    return hash;
}

/* Of all bytes of a plan and of its tables. */
static uint64_t print_of(const struct pnet_plan *p)
{
    uint64_t h = mix(14695981039346656037u, p, sizeof *p);
    h = mix(h, p->inputs, (size_t)p->input_count * sizeof *p->inputs);
    h = mix(h, p->levels, (size_t)p->level_count * sizeof *p->levels);
    h = mix(h, p->nodes, (size_t)p->node_count * sizeof *p->nodes);
    h = mix(h, p->tensors, (size_t)p->tensor_count * sizeof *p->tensors);
    h = mix(h, p->params, (size_t)p->param_count * sizeof *p->params);
    h = mix(h, p->geo, (size_t)p->geo_count * sizeof *p->geo);
    h = mix(h, p->steps, (size_t)p->step_count * sizeof *p->steps);
    return mix(h, p->objectives, (size_t)p->objective_count * sizeof *p->objectives);
}

/* A step of training on the CPU, with steps for metrics behind it. */
static void run_step(const struct pnet_bound *b)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 1};
    struct cloud cloud = cloud_corner(300, 2, 1);
    struct pnet_batch *batch = batch_of(b->plan, &cloud, 1);
    struct pnet_runner *s;
    struct pnet_error e;
    need(pnet_runner_new(b, &o, &s, &e), &e, "runner");
    need(pnet_runner_init_params(s, &e), &e, "parameters");
    need(pnet_runner_prepare(s, 0, batch, &e), &e, "geometry");
    need(pnet_runner_forward(s, 0, true, 1, &e), &e, "forward");
    need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
    need(pnet_runner_forward(s, 0, false, 1, &e), &e, "evaluation");
    pnet_runner_free(s);
    pnet_batch_free(batch);
    cloud_free(&cloud);
}

/* Two targets of one plan: either has its own choices, and what runs changes neither the plan nor what it is bound to. */
static void test_targets(const struct pnet_plan *p)
{
    uint64_t before = print_of(p);
    struct pnet_bound *host = need_bound(p, (struct pnet_device){0}, PNET_FP32),
                      *half = need_bound(p, gpu, PNET_BF16);
    int narrow = 0, tiled = 0;
    for (int t = 0; t < p->tensor_count; t++) {
        CHECK(host->storage[t] == PNET_STORE_F32);
        narrow += half->storage[t] == PNET_STORE_BF16;
    }
    for (int i = 0; i < p->geo_count; i++) {
        const unsigned tiles = PNET_FORM_FORWARD_TILES | PNET_FORM_TRANSPOSED_TILES;
        CHECK(!(host->forms[i] & tiles));
        tiled += (half->forms[i] & tiles) != 0;
    }
    CHECK(narrow > 0 && tiled > 0);
    for (int s = 0; s < p->step_count; s++) {
        CHECK(host->exec[s].device == PNET_CPU && half->exec[s].device == PNET_CUDA);
        CHECK(host->exec[s].precision == PNET_FP32 && half->exec[s].precision == PNET_BF16);
    }
    uint64_t constants = mix(0, host->exec, (size_t)p->step_count * sizeof *host->exec);
    run_step(host);
    CHECK(print_of(p) == before);
    CHECK(mix(0, host->exec, (size_t)p->step_count * sizeof *host->exec) == constants);
    pnet_bound_free(host);
    pnet_bound_free(half);
}

int main(void)
{
    const char *model = "tests/cli/tiny.pnet";
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    struct pnet_compilation *c = need_plan(pnet_compile_file(model, &o), model);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    for (int a = 0; a < PNET_ALGO_COUNT; a++)
        for (int table = 0; table < 2; table++) {
            enum pnet_conv_algo algo = (enum pnet_conv_algo)a;
            CHECKF(binds(p, algo, PNET_FP32, table), "%s in fp32", pnet_conv_algo_names[a]);
            CHECKF(binds(p, algo, PNET_BF16, table) == pnet_conv_algo_is_usual(algo), "%s in bf16",
                pnet_conv_algo_names[a]);
        }
    test_targets(p);
    pnet_compilation_free(c);
    return check_end();
}
