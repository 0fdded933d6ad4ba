/* Which tensors of a plan lie in 16 bits, what memory that saves, and that the host can plan for such a GPU. */
#include "kernels/conv.h"
#include "runtime/run/peak.h"
#include "tests/models/batch.h"

static struct pnet_compilation *compile(const char *model)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    return need_plan(pnet_compile_file(model, &o), model);
}

/* Everything on the CPU is float32; on a GPU features and their gradients are as the precision says, and nothing else. */
static void test_tensors(const char *model)
{
    struct pnet_compilation *c = compile(model);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    for (int device = PNET_CPU; device <= PNET_CUDA; device++)
        for (int precision = PNET_FP32; precision <= PNET_FP16; precision++) {
            struct pnet_device where = {(enum pnet_device_kind)device, 0};
            struct pnet_bound *b = need_bound(p, where, (enum pnet_precision)precision);
            enum pnet_storage half = device == PNET_CUDA && precision == PNET_BF16 ? PNET_STORE_BF16
                                     : device == PNET_CUDA && precision == PNET_FP16
                                         ? PNET_STORE_FP16
                                         : PNET_STORE_F32;
            int features = 0;
            for (int t = 0; t < p->tensor_count; t++) {
                const struct pnet_plan_tensor *x = &p->tensors[t];
                bool exact = x->type.type != PNET_F32 || x->type.pose ||
                             x->role == PNET_ROLE_SAVED || x->type.level == p->scalar_level ||
                             p->tensors[x->role == PNET_ROLE_GRAD ? x->of : t].exact;
                features += !exact;
                CHECKF(b->storage[t] == (exact ? PNET_STORE_F32 : half),
                    "%s, device %d, precision %d: %s", model, device, precision, x->name);
                if (x->shares != t)
                    CHECKF(b->storage[t] == b->storage[x->shares], "%s: %s shares the memory of %s",
                        model, x->name, p->tensors[x->shares].name);
            }
            CHECKF(features > 20, "%s has %d tensors of features", model, features);
            pnet_bound_free(b);
        }
    pnet_compilation_free(c);
}

/* A node that reads another storage than it writes is one that can. */
static void check_mixed(
    const struct pnet_plan *p, const struct pnet_bound *b, const struct pnet_node *n)
{
    const struct pnet_plan_tensor *in = &p->tensors[n->in[0]];
    enum pnet_storage from = b->storage[n->in[0]], to = b->storage[n->out];
    bool converts = strcmp(n->op->name, "narrow") == 0 || strcmp(n->op->name, "widen") == 0,
         few = in->type.width <= PNET_EXACT_CHANNELS,
         can = to == PNET_STORE_F32 ? n->op->flags & PNET_WIDENS
                                    : (n->op->flags & PNET_NARROWS) && few;
    for (int k = 0; k < n->in_count; k++)
        CHECKF(p->tensors[n->in[k]].type.type != PNET_F32 || b->storage[n->in[k]] == from,
            "%s reads two storages", n->path);
    CHECKF(from == to || converts || can, "%s reads and writes two storages", n->path);
}

/* Coordinates that a network predicts stay in float32, from the layer that multiplies last, in inference too; what layers with
   16-bit features read of them is narrowed, once. Checks how often that happens, and how the result is stored. */
static void test_exact(const struct pnet_compile_options *o, enum pnet_precision precision,
    int want_narrowed, int want_widened, enum pnet_storage want)
{
    struct pnet_compilation *c =
        need_plan(pnet_compile_file("models/pcn.pnet", o), "models/pcn.pnet");
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_bound *b = need_bound(p, (struct pnet_device){PNET_CUDA, 0}, precision);
    int narrowed = 0, widened = 0;
    for (int i = 0; i < p->node_count; i++) {
        const struct pnet_node *n = &p->nodes[i];
        if (n->dead) continue;
        narrowed += strcmp(n->op->name, "narrow") == 0;
        for (int k = 0; k < n->in_count; k++) {
            const struct pnet_plan_tensor *in = &p->tensors[n->in[k]];
            CHECKF(in->node < i, "%s comes too early", n->path);
            if (in->type.type != PNET_F32) continue;
            bool reads = n->op->flags & PNET_READS_EXACT;
            CHECKF(!reads || b->storage[n->in[k]] == PNET_STORE_F32, "%s reads 16 bits", n->path);
            if (reads || p->tensors[n->out].type.level == p->scalar_level) continue;
            bool same = b->storage[n->in[k]] == b->storage[n->out],
                 widens = !same && b->storage[n->out] == PNET_STORE_F32;
            widened += widens && (n->op->flags & PNET_WIDENS);
            check_mixed(p, b, n);
        }
    }
    CHECKF(narrowed == want_narrowed && widened == want_widened, "%d narrowed, %d widened",
        narrowed, widened);
    if (p->result >= 0) CHECK(b->storage[p->result] == want);
    pnet_bound_free(b);
    pnet_compilation_free(c);
}

static void test_points(void)
{
    struct pnet_compile_options training = {.purpose = PNET_FOR_TRAINING},
                                last = {.purpose = PNET_FOR_INFERENCE},
                                first = {.purpose = PNET_FOR_INFERENCE, .value = "y[0]"},
                                vector = {.purpose = PNET_FOR_INFERENCE, .net = "encode"},
                                wide = {
                                    .purpose = PNET_FOR_INFERENCE, .value = "pcn.out.to3.out.bn"};
    for (int precision = PNET_BF16; precision <= PNET_FP16; precision++) {
        enum pnet_precision q = (enum pnet_precision)precision;
        enum pnet_storage half = q == PNET_BF16 ? PNET_STORE_BF16 : PNET_STORE_FP16;
        /* the coarse points, which the fold reads; the last layers of either stage */
        test_exact(&training, q, 1, 2, PNET_STORE_F32);
        test_exact(&last, q, 1, 2, PNET_STORE_F32);
        test_exact(&first, q, 0, 1, PNET_STORE_F32);
        test_exact(&vector, q, 0, 0, half);
        test_exact(&wide, q, 0, 0, half);
    }
}

struct stored {
    const char *name;
    bool wide; /* float32 */
};

/* `tensors` ends with a NULL name. Nodes that read what is named `wide` multiply in fp32, unless they store 16 bits. */
static void check_positions(const char *name, struct pnet_compilation *c, enum pnet_precision q,
    const struct stored *tensors)
{
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_bound *b = need_bound(p, (struct pnet_device){PNET_CUDA, 0}, q);
    enum pnet_storage half = pnet_storage_of(q);
    for (; tensors->name; tensors++) {
        int found = 0;
        for (int t = 0; t < p->tensor_count; t++) {
            const struct pnet_plan_tensor *x = &p->tensors[t];
            if (x->role == PNET_ROLE_SAVED || strcmp(x->name, tensors->name) != 0) continue;
            found++;
            CHECKF(
                b->storage[t] == (tensors->wide ? PNET_STORE_F32 : half), "%s: %s", name, x->name);
        }
        CHECKF(found > 0, "%s: there is no %s", name, tensors->name);
    }
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_node *n = &p->nodes[p->steps[s].node];
        bool fp32 = n->exact && b->storage[n->out] == PNET_STORE_F32;
        CHECKF(b->exec[s].precision == (fp32 ? PNET_FP32 : q), "%s: %s", name, n->path);
        if (!(n->op->flags & PNET_READS_EXACT) && p->tensors[n->out].type.level != p->scalar_level)
            check_mixed(p, b, n);
    }
    pnet_bound_free(b);
    pnet_compilation_free(c);
}

static void test_positions(void)
{
    static const char head[] =
        "pnet 1\ninput cloud { xyz : position  rgb : feature[3]  label : class[12] per point }\n"
        "net n(p: cloud) {\n"
        "  g = grid(p, [5cm, 10cm])\n"
        "  f = p.rgb -> pool(mean, to=g[0]) -> linear(8)\n"
        "  a = cat(p.xyz, p.rgb) -> pool(mean, to=g[0]) -> bn\n"
        "  b = (a * 0.5) -> pool(max, to=g[1]) -> upsample(to=g[0])\n"
        "  c = b -> linear(16)\n"
        "  d = cat(b, f) -> linear(16)\n"
        "  e = (c + d) -> conv(8)\n"
        "  h = a -> conv(8, to=g[1]) -> relu\n"
        "  return cat(e, h -> upsample(to=g[0])) -> linear(12)\n"
        "}\ny = n(cloud)\nloss ce = cross_entropy(y, cloud.label)\n";
    /* what is learned beside positions is widened for the layer that reads both; a layer of more channels, or neighbours, writes
       float32, which is narrowed */
    static const struct stored all[] = {{"cloud.xyz", true}, {"cloud.rgb", true},
        {"cloud.rgb.narrow", false}, {"n.f.linear", false}, {"n.f.linear.widen", true},
        {"n.a.bn", true}, {"n.b.pool", true}, {"n.b.upsample", true}, {"n.c.linear", false},
        {"n.d.cat", true}, {"n.d.linear", true}, {"n.d.linear.narrow", false}, {"n.e.conv", false},
        {"n.h.relu", true}, {"n.h.relu.narrow", false}, {NULL, false}},
                               flash3d[] = {{"cloud.xyz", true}, {"flash3d.x.pool", true},
                                   {"flash3d.x.linear", false}, {NULL, false}},
                               ptv3[] = {{"cloud.xyz", true}, {"cloud.rgb", true},
                                   {"ptv3.x.cat", true}, {"ptv3.x.pool", true},
                                   {"ptv3.x.conv", true}, {"ptv3.x.conv.narrow", false},
                                   {"ptv3.x.gelu", false}, {NULL, false}};
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    for (int q = PNET_FP32; q <= PNET_FP16; q++) {
        enum pnet_precision precision = (enum pnet_precision)q;
        check_positions("all", need_plan(pnet_compile_text("all", head, strlen(head), &o), "all"),
            precision, all);
        check_positions("flash3d", compile("models/flash3d.pnet"), precision, flash3d);
        check_positions("ptv3", compile("models/ptv3.pnet"), precision, ptv3);
    }
}

/* A layer from few channels of positions reads them as they lie, and writes 16 bits: no step has room for another form. */
static void test_few_positions(void)
{
    const struct pnet_op *op = pnet_op_find("linear");
    for (int half = PNET_STORE_BF16; half <= PNET_STORE_FP16; half++)
        for (int32_t channels = 1; channels <= PNET_EXACT_CHANNELS; channels++) {
            struct pnet_exec x = {.device = PNET_CUDA,
                .precision = half == PNET_STORE_BF16 ? PNET_BF16 : PNET_FP16,
                .in_count = 1,
                .in = {{.rows = 600000, .width = channels, .storage = PNET_STORE_F32}},
                .out = {.rows = 600000, .width = 64, .storage = (enum pnet_storage)half}};
            CHECK(op->work(&x, false) == 0);
            CHECK(op->work(&x, true) < (size_t)16 << 20);
            for (int d = PNET_FORWARD; d < PNET_DIRECTIONS; d++)
                CHECK(strcmp(op->kernel(&x, (enum pnet_direction)d), "slim") == 0);
        }
}

/* A layer from features in 16 bits to a few channels of coordinates takes both as they lie: no step has room for its input in
   float32. One of more channels has. */
static void test_few_channels(void)
{
    const struct pnet_op *op = pnet_op_find("linear");
    const int64_t rows = 32 * 16384;
    const size_t widened = (size_t)rows * 512 * sizeof(float);
    for (int half = PNET_STORE_BF16; half <= PNET_STORE_FP16; half++)
        for (int32_t channels = 1; channels <= PNET_EXACT_CHANNELS + 1; channels++) {
            struct pnet_exec x = {.device = PNET_CUDA,
                .precision = half == PNET_STORE_BF16 ? PNET_BF16 : PNET_FP16,
                .in_count = 1,
                .in = {{.rows = rows, .width = 512, .storage = (enum pnet_storage)half}},
                .out = {.rows = rows, .width = channels, .storage = PNET_STORE_F32}};
            size_t forward = op->work(&x, false), backward = op->work(&x, true);
            bool few = channels <= PNET_EXACT_CHANNELS;
            CHECKF(few ? forward == 0 : forward >= widened, "%d channels: forward takes %zu bytes",
                channels, forward);
            CHECKF(few ? backward < (size_t)16 << 20 : backward >= widened,
                "%d channels: backward takes %zu bytes", channels, backward);
        }
}

/* The geometry of a batch, fields included, built here; then the peak on the GPU. */
static struct pnet_peak plan_peak(
    const char *model, const struct cloud *cloud, enum pnet_precision precision)
{
    struct pnet_compilation *c = compile(model);
    struct pnet_bound *b =
        need_bound(pnet_compilation_plan(c), (struct pnet_device){PNET_CUDA, 0}, precision);
    struct host_slot host;
    struct pnet_layout l;
    struct pnet_peak k;
    struct pnet_error e;
    host_slot_open(&host, b, cloud, 1);
    need(pnet_peak_plan(b, &host.slot->counts, 2, 0, 0, &l, &k, &e), &e, "layout");
    pnet_layout_free(&l);
    host_slot_close(&host);
    pnet_bound_free(b);
    pnet_compilation_free(c);
    return k;
}

int main(void)
{
    static const char *const models[] = {"models/rooms.pnet", "models/resnet18.pnet",
        "models/fcgf_kitti.pnet", "models/pcn.pnet", "models/flash3d.pnet", "models/ptv3.pnet"};
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) test_tensors(models[m]);
    test_points();
    test_positions();
    test_few_positions();
    test_few_channels();
    /* so many that tensors take more than workspaces, which 16 bits do not halve */
    struct cloud cloud = cloud_corner(400000, 12, 4);
    struct pnet_peak wide = plan_peak("models/rooms.pnet", &cloud, PNET_FP32),
                     half = plan_peak("models/rooms.pnet", &cloud, PNET_BF16),
                     same = plan_peak("models/rooms.pnet", &cloud, PNET_FP16);
    CHECK(half.total == same.total && half.parameters == wide.parameters);
    CHECKF(half.features < wide.features * 8 / 10, "the feature stage takes %zu bytes, in fp32 %zu",
        half.features, wide.features);
    CHECK(half.geometry.fields < wide.geometry.fields);
    cloud_free(&cloud);
    return check_end();
}
