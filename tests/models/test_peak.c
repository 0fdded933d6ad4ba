/* The memory a plan announces is the memory a runner takes, to the byte; and a step that fits what
   is there takes none. */
#include "runtime/run/peak.h"
#include "tests/models/batch.h"

/* argv[1]: "cpu" (default) or "cuda". */
static struct pnet_device device;

enum { SETS = 2 };

struct setup {
    const char *model;
    const char *sets[SETS]; /* NULL: no more */
    unsigned degrade;
    bool training;
    enum pnet_precision precision;
    bool alone; /* in training: one slot */
};

static struct pnet_compilation *compile(const struct setup *u)
{
    struct pnet_compile_options o = {
        .purpose = u->training ? PNET_FOR_TRAINING : PNET_FOR_INFERENCE,
        .degrade = u->degrade,
        .sets = u->sets};
    while (o.set_count < SETS && u->sets[o.set_count]) o.set_count++;
    return need_plan(pnet_compile_file(u->model, &o), u->model);
}

/* Slots of the runners of test_equal and test_growing: in training the next batch may be prepared ahead, or not. */
static int slots_of(const struct setup *u)
{
    return u->training && !u->alone ? 2 : 1;
}

static struct pnet_runner *open_runner(const struct pnet_bound *b, int slots, int64_t extra)
{
    struct pnet_runner_options o = {.slots = slots, .seed = 1, .extra_bytes = extra};
    struct pnet_runner *s;
    struct pnet_error e;
    need(pnet_runner_new(b, &o, &s, &e), &e, "runner");
    return s;
}

/* One step as training or inference has it. The other slot gets the same batch. */
static void step(struct pnet_runner *s, const struct cloud *c)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    struct pnet_batch *b = batch_of(p, c, 1);
    struct pnet_error e;
    for (int slot = 0; slot < 2 && pnet_runner_slot(s, slot); slot++)
        need(pnet_runner_prepare(s, slot, b, &e), &e, "geometry");
    need(pnet_runner_forward(s, 0, p->training, 1, &e), &e, "forward");
    if (p->training) need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
    need(pnet_runner_wait(s, &e), &e, "waiting");
    pnet_batch_free(b);
}

static int64_t extra_of(const struct pnet_plan *p)
{
    return p->training ? 2 * p->trained_elements * (int64_t)sizeof(float) : 0;
}

static size_t planned(const struct pnet_runner *s)
{
    const struct pnet_bound *b = pnet_runner_bound(s);
    const struct pnet_plan *p = b->plan;
    const struct pnet_counts *counts = &pnet_runner_slot(s, 0)->counts;
    struct pnet_layout l;
    struct pnet_error e;
    need(pnet_layout_make(b, counts, true, &l, &e), &e, "layout");
    struct pnet_peak k =
        pnet_peak_of(b, counts, &l, pnet_runner_slot(s, 1) ? 2 : 1, (size_t)extra_of(p));
    CHECK(l.live <= l.total);
    CHECK(k.total == k.parameters + k.gradients + k.optimizer + (size_t)k.slots * k.geometry.kept +
                         k.geometry.shared + k.features + k.runner);
    pnet_layout_free(&l);
    return k.total;
}

/* A plan for a GPU that is made on the host knows the same. */
static struct pnet_slot_sizes geometry_on_host(const struct pnet_bound *b, const struct cloud *c)
{
    struct host_slot host;
    host_slot_open(&host, b, c, 1);
    struct pnet_slot_sizes bytes = pnet_slot_estimate(b, &host.slot->counts);
    host_slot_close(&host);
    return bytes;
}

static void test_equal(const struct setup *u, const struct cloud *c)
{
    struct pnet_compilation *compiled = compile(u);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct pnet_bound *b = need_bound(p, device, u->precision);
    struct pnet_runner *s = open_runner(b, slots_of(u), extra_of(p));
    step(s, c);
    size_t peak = pnet_runner_memory(s)->peak, plan = planned(s);
    CHECKF(peak == plan, "%s, degraded %u, %s, precision %d, %lld points: planned %zu, taken %zu",
        u->model, u->degrade, u->training ? "training" : "inference", (int)u->precision,
        (long long)c->n, plan, peak);
    CHECK(pnet_runner_memory(s)->used == peak);
    struct pnet_slot_sizes host = geometry_on_host(b, c),
                           own = pnet_slot_estimate(b, &pnet_runner_slot(s, 0)->counts);
    CHECK(memcmp(&host, &own, sizeof own) == 0);
    step(s, c);
    CHECK(pnet_runner_memory(s)->peak == peak);
    pnet_runner_free(s);
    pnet_bound_free(b);
    pnet_compilation_free(compiled);
}

static bool same_class(
    const struct pnet_plan *p, const struct pnet_counts *a, const struct pnet_counts *b)
{
    for (int l = 0; l < p->level_count; l++)
        if (pnet_capacity(a->rows[l]) != pnet_capacity(b->rows[l])) return false;
    for (int i = 0; i < p->geo_count; i++) {
        for (int k = 0; k < PNET_GEO_COUNTS; k++)
            if (pnet_capacity(a->of[i][k]) != pnet_capacity(b->of[i][k])) return false;
    }
    return true;
}

/* Clouds that grow point by point: whenever the classes stay, so does the memory. */
static int test_growing(const struct setup *u, const struct cloud *whole, int64_t from)
{
    struct pnet_compilation *compiled = compile(u);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct pnet_bound *bound = need_bound(p, device, u->precision);
    struct pnet_runner *small = open_runner(bound, slots_of(u), 0),
                       *large = open_runner(bound, slots_of(u), 0);
    int pairs = 0;
    for (int64_t n = from; n + 9 <= whole->n; n += 9) {
        struct cloud a = *whole, b = *whole;
        a.n = n;
        b.n = n + 9;
        step(small, &a);
        step(large, &b);
        const struct pnet_counts *ca = &pnet_runner_slot(small, 0)->counts;
        if (!same_class(p, ca, &pnet_runner_slot(large, 0)->counts)) continue;
        size_t used = pnet_runner_memory(small)->used;
        step(small, &b);
        pairs++;
        CHECKF(pnet_runner_memory(small)->used == used,
            "%s, degraded %u: %lld bytes more for the points %lld to %lld of one class", u->model,
            u->degrade, (long long)(pnet_runner_memory(small)->used - used), (long long)n,
            (long long)n + 9);
    }
    pnet_runner_free(small);
    pnet_runner_free(large);
    pnet_bound_free(bound);
    pnet_compilation_free(compiled);
    return pairs;
}

/* What a runner takes where there is no room for concurrent steps. */
static size_t least_peak(const struct pnet_runner *s)
{
    struct pnet_layout l;
    struct pnet_peak k;
    struct pnet_error e;
    const struct pnet_counts *counts = &pnet_runner_slot(s, 0)->counts;
    need(pnet_peak_plan(pnet_runner_bound(s), counts, 2, 0, 1, &l, &k, &e), &e, "layout");
    pnet_layout_free(&l);
    return k.total;
}

/* A budget of the peak suffices. With one byte less, steps that were concurrent run in sequence, in less memory. A budget of
   one byte less than that is refused before anything runs, and the message names tensors. */
static void test_budget(const struct cloud *c)
{
    struct setup u = {.model = "models/rooms.pnet", .training = true};
    struct pnet_compilation *compiled = compile(&u);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct pnet_bound *bound = need_bound(p, device, u.precision);
    struct pnet_runner *s = open_runner(bound, 2, 0);
    struct pnet_batch *b = batch_of(p, c, 1);
    struct pnet_error e;
    step(s, c);
    size_t peak = pnet_runner_memory(s)->peak, least = least_peak(s);
    pnet_runner_free(s);
    CHECK(device.kind == PNET_CPU ? least == peak : least < peak);
    const size_t limits[] = {peak, peak - 1, least, least - 1};
    for (int i = 0; i < 4; i++) {
        struct pnet_runner_options o = {.slots = 2, .seed = 1, .memory_limit = limits[i]};
        bool enough = limits[i] >= least;
        need(pnet_runner_new(bound, &o, &s, &e), &e, "runner");
        for (int slot = 0; slot < 2; slot++)
            need(pnet_runner_prepare(s, slot, b, &e), &e, "geometry");
        enum pnet_status status = pnet_runner_forward(s, 0, true, 0, &e);
        CHECK(status == (enough ? PNET_OK : PNET_NO_MEMORY));
        if (!enough) CHECKF(strstr(e.message, "rooms."), "%s", e.message);
        CHECK(pnet_runner_memory(s)->peak <= limits[i]);
        if (enough) CHECK(pnet_runner_memory(s)->peak == (limits[i] < peak ? least : peak));
        need(pnet_runner_wait(s, &e), &e, "waiting");
        pnet_runner_free(s);
    }
    pnet_batch_free(b);
    pnet_bound_free(bound);
    pnet_compilation_free(compiled);
}

/* What docs/performance.md says of a million points of either set on a GPU, when the next batch is not prepared ahead. */
static void test_large_sets(void)
{
    static const struct {
        const char *arguments;
        int64_t most;
    } cases[] = {{"entries=12", 520000000}, {"entries=6", 280000000}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING, .input_gradients = true};
        struct pnet_target target = {.where = {.kind = PNET_CUDA}, .architecture = 90};
        struct pnet_bound *b;
        struct pnet_counts counts;
        struct pnet_layout l;
        struct pnet_peak peak;
        struct pnet_error e;
        char text[256];
        int length = snprintf(text, sizeof text,
            "pnet 1\ninput a { xyz : position }\ninput b { xyz : position }\n"
            "loss l = apml(a.xyz, b.xyz, %s)\n",
            cases[k].arguments);
        struct pnet_compilation *compiled =
            need_plan(pnet_compile_text("sets", text, (size_t)length, &o), "sets");
        const struct pnet_plan *p = pnet_compilation_plan(compiled);
        need(pnet_bound_new(p, &target, &b, &e), &e, "binding");
        need(pnet_counts_new(p, &counts, &e), &e, "counts");
        pnet_counts_assume(b, &counts, 1000000);
        need(pnet_peak_plan(b, &counts, 1, 0, 0, &l, &peak, &e), &e, "plan");
        CHECKF(
            (int64_t)peak.total <= cases[k].most, "%s: %zu bytes", cases[k].arguments, peak.total);
        pnet_layout_free(&l);
        pnet_counts_free(&counts);
        pnet_bound_free(b);
        pnet_compilation_free(compiled);
    }
}

int main(int argc, char **argv)
{
    struct pnet_error e;
    need(pnet_device_parse(argc > 1 ? argv[1] : NULL, &device, &e), &e, "device");
    if (pnet_device_check(device, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    static const struct {
        const char *model, *sets[SETS];
        int sizes; /* of those below */
    } models[] = {{"models/rooms.pnet", {NULL}, 4}, {"models/shapes.pnet", {NULL}, 4},
        {"tests/models/chunks.pnet", {NULL}, 4}, {"models/fcgf.pnet", {NULL}, 2},
        {"models/minkunet18a.pnet", {NULL}, 2}, {"models/resnet18.pnet", {NULL}, 2},
        {"models/fcgf_kitti.pnet", {"v=5cm"}, 2}, {"models/fcgf_kitti.pnet", {"hardest=no"}, 2},
        {"models/flash3d.pnet", {"c=16"}, 3},
        {"models/flash3d_wide.pnet", {"c=16", "bucket=64"}, 3},
        {"models/ptv3.pnet", {"c=16", "patch=64"}, 3}, {"models/pcn.pnet", {"coarse=64"}, 3},
        {"models/pcn.pnet", {"coarse=64", "way=\"apml\""}, 3},
        {"models/foldingnet.pnet", {"count=1024"}, 3}};
    static const int64_t sizes[] = {1, 70, 700, 5000};
    /* PNET_SHORT: one size and training alone, for tools under which every launch takes long */
    const bool brief = getenv("PNET_SHORT") != NULL;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++)
        for (int i = brief ? 1 : 0; i < (brief ? 2 : models[m].sizes); i++) {
            struct cloud c = cloud_corner(sizes[i], 2, (uint64_t)i + 1);
            for (int way = brief ? 2 : 0; way < 4; way++)
                test_equal(&(struct setup){models[m].model, {models[m].sets[0], models[m].sets[1]},
                               way & 1 ? PNET_VOXEL : 0, way & 2, PNET_FP32, false},
                    &c);
            test_equal(&(struct setup){models[m].model, {models[m].sets[0], models[m].sets[1]}, 0,
                           true, PNET_FP32, true},
                &c);
            for (int way = brief ? 1 : 0; way < 2 && device.kind != PNET_CPU; way++) {
                struct setup u = {models[m].model, {models[m].sets[0], models[m].sets[1]}, 0, way,
                    PNET_BF16, false};
                test_equal(&u, &c);
            }
            cloud_free(&c);
        }
    struct cloud c = cloud_corner(1000, 2, 9);
    int pairs = 0;
    for (int way = brief ? 2 : 0; way < 4; way++)
        pairs += test_growing(&(struct setup){"models/rooms.pnet", {"c=8"},
                                  way & 1 ? PNET_VOXEL : 0, way & 2, PNET_FP32, false},
            &c, 800);
    CHECKF(pairs >= (brief ? 4 : 8), "only %d pairs of one class", pairs);
    static const struct setup others[] = {
        {"models/flash3d.pnet", {"c=16"}, 0, true, PNET_FP32, false},
        {"models/pcn.pnet", {"coarse=16", "way=\"apml\""}, 0, true, PNET_FP32, false}};
    for (size_t m = 0; m < (brief ? 0 : sizeof others / sizeof others[0]); m++) {
        pairs = test_growing(&others[m], &c, 900);
        CHECKF(pairs >= 2, "%s: only %d pairs of one class", others[m].model, pairs);
    }
    test_budget(&c);
    test_large_sets();
    cloud_free(&c);
    return check_end();
}
