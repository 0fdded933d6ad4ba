/* What the slots of a runner share is not read once a batch is built: another batch that is built behind it changes no
   bit of a step. argv[1]: "cpu" (default) or "cuda". */
#include "runtime/run/peak.h"
#include "tests/models/batch.h"

static struct pnet_device device;

static struct pnet_runner *open_runner(const struct pnet_bound *b, int slots)
{
    struct pnet_runner_options o = {.slots = slots, .seed = 5};
    struct pnet_runner *s;
    struct pnet_error e;
    need(pnet_runner_new(b, &o, &s, &e), &e, "runner");
    need(pnet_runner_init_params(s, &e), &e, "parameters");
    return s;
}

static void prepare(struct pnet_runner *s, int slot, const struct cloud *clouds, int32_t count)
{
    struct pnet_batch *b = batch_of(pnet_runner_plan(s), clouds, count);
    struct pnet_error e;
    need(pnet_runner_prepare(s, slot, b, &e), &e, "geometry");
    pnet_batch_free(b);
}

/* Gradients, then losses and metrics, of slot 0; to be freed. */
static float *step(struct pnet_runner *s)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    int64_t n = p->trained_elements;
    float *result = must(malloc((size_t)(n + p->objective_count) * sizeof *result));
    struct pnet_error e;
    need(pnet_runner_forward(s, 0, true, 1, &e), &e, "forward");
    need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
    need(pnet_runner_wait(s, &e), &e, "waiting");
    need(pnet_runner_read(s, PNET_BLOCK_GRADS, 0, n, result, &e), &e, "gradients");
    need(pnet_runner_forward(s, 0, false, 1, &e), &e, "evaluation");
    need(pnet_runner_wait(s, &e), &e, "waiting");
    for (int i = 0; i < p->objective_count; i++)
        result[n + i] = (float)pnet_runner_objective(s, i, NULL);
    return result;
}

static int64_t count_differing(const struct pnet_plan *p, const float *a, const float *b)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < p->trained_elements + p->objective_count; i++)
        differ += memcmp(a + i, b + i, sizeof *a) != 0;
    return differ;
}

static void test_model(const char *model, const char *set, unsigned degrade)
{
    struct pnet_compile_options o = {
        .purpose = PNET_FOR_TRAINING, .degrade = degrade, .sets = &set, .set_count = set ? 1 : 0};
    struct pnet_compilation *compiled = need_plan(pnet_compile_file(model, &o), model);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct cloud clouds[2] = {cloud_corner(700, 2, 1), cloud_corner(500, 2, 2)},
                 others[2] = {cloud_corner(900, 1.5f, 3), cloud_corner(1400, 2, 4)};
    struct pnet_bound *b =
        need_bound(p, device, device.kind == PNET_CPU || degrade ? PNET_FP32 : PNET_BF16);
    struct pnet_runner *alone = open_runner(b, 1), *two = open_runner(b, 2);
    prepare(alone, 0, clouds, 2);
    prepare(two, 1, clouds, 2);
    prepare(two, 0, clouds, 2);
    prepare(two, 1, others, 2);
    float *want = step(alone), *got = step(two);
    int64_t differ = count_differing(p, want, got);
    CHECKF(differ == 0, "%s, degraded %u: %lld numbers differ", model, degrade, (long long)differ);
    free(want);
    free(got);
    pnet_runner_free(alone);
    pnet_runner_free(two);
    pnet_bound_free(b);
    for (int i = 0; i < 2; i++) {
        cloud_free(&clouds[i]);
        cloud_free(&others[i]);
    }
    pnet_compilation_free(compiled);
}

/* A run of more triplets than a tile lists: they are kept one by one, and counted. */
static void test_unlisted(void)
{
    static const char text[] =
        "pnet 1\n"
        "input cloud { xyz : position  rgb : feature[3]  label : class[5] per cloud }\n"
        "net one(p: cloud) {\n"
        "  g = grid(p, 2cm * [1, 500])\n"
        "  a = p.rgb -> conv(8, kernel=1, radius=9m, to=g[1]) -> relu\n"
        "  return a -> pool(max, to=sample) -> linear(5)\n"
        "}\n"
        "y = one(cloud)\n"
        "loss ce = cross_entropy(y, cloud.label)\n";
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    struct pnet_compilation *compiled =
        need_plan(pnet_compile_text("one.pnet", text, strlen(text), &o), "the model");
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct pnet_target choosing = {.where = device, .precision = PNET_BF16, .choosing = true};
    struct pnet_bound *tiles = need_bound(p, device, PNET_BF16), *both;
    struct cloud many = cloud_corner(70000, 1, 6), few = cloud_corner(60000, 1, 6);
    float *results[2];
    struct pnet_layout l;
    struct pnet_error e;
    need(pnet_bound_new(p, &choosing, &both, &e), &e, "binding");
    for (int k = 0; k < 2; k++) {
        struct pnet_runner *s = open_runner(k ? both : tiles, 1);
        prepare(s, 0, &few, 1);
        free(step(s));
        prepare(s, 0, &many, 1);
        results[k] = step(s);
        const struct pnet_counts *c = &pnet_runner_slot(s, 0)->counts;
        bool unlisted = false;
        for (int i = 0; i < p->geo_count; i++) unlisted |= c->marks[i] & 1;
        CHECK(unlisted);
        need(pnet_layout_make(tiles, c, true, &l, &e), &e, "layout");
        if (!k) CHECK(pnet_peak_of(tiles, c, &l, 1, 0).total == pnet_runner_memory(s)->used);
        pnet_layout_free(&l);
        pnet_runner_free(s);
    }
    CHECK(count_differing(p, results[0], results[1]) == 0);
    free(results[0]);
    free(results[1]);
    cloud_free(&few);
    cloud_free(&many);
    pnet_bound_free(tiles);
    pnet_bound_free(both);
    pnet_compilation_free(compiled);
}

int main(int argc, char **argv)
{
    struct pnet_error e;
    need(pnet_device_parse(argc > 1 ? argv[1] : NULL, &device, &e), &e, "device");
    if (pnet_device_check(device, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    for (unsigned degrade = 0; degrade <= PNET_VOXEL; degrade += PNET_VOXEL) {
        test_model("models/rooms.pnet", NULL, degrade);
        test_model("models/shapes.pnet", NULL, degrade);
        test_model("tests/models/chunks.pnet", NULL, degrade);
        test_model("models/fcgf.pnet", "v=10cm", degrade);
        test_model("models/minkunet18a.pnet", NULL, degrade);
        test_model("models/resnet18.pnet", NULL, degrade);
        test_model("models/fcgf_kitti.pnet", "v=5cm", degrade);
        test_model("models/flash3d.pnet", "c=16", degrade);
        test_model("models/flash3d_wide.pnet", "c=16", degrade);
        test_model("models/ptv3.pnet", "c=16", degrade);
        test_model("models/pcn.pnet", "coarse=64", degrade);
        test_model("models/foldingnet.pnet", "count=1024", degrade);
    }
    if (device.kind != PNET_CPU) test_unlisted();
    return check_end();
}
