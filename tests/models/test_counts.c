/* Numbers of trained weights, against layer tables of the published architectures. */
#include "compiler/compile.h"
#include "tests/check.h"

static struct pnet_compilation *compile(const char *path, const char *const *sets, int set_count)
{
    struct pnet_compile_options o = {
        .purpose = PNET_FOR_TRAINING, .sets = sets, .set_count = set_count};
    struct pnet_compilation *c = pnet_compile_file(path, &o);
    if (!c || !pnet_compilation_plan(c)) {
        if (c) pnet_compilation_report(c, stderr, false, false);
        fprintf(stderr, "%s does not compile\n", path);
        exit(1);
    }
    return c;
}

/* Trained numbers of the tensors whose name starts with `prefix`. */
static int64_t count_under(const struct pnet_plan *p, const char *prefix)
{
    int64_t sum = 0;
    for (int i = 0; i < p->param_count; i++)
        if (p->params[i].info.trained && !strncmp(p->params[i].name, prefix, strlen(prefix)))
            sum += p->params[i].count;
    return sum;
}

/* Layers by hand: each adds its weights. A norm has a scale and a shift a channel. */
static int64_t conv(int kernel, int from, int to)
{
    return (int64_t)kernel * kernel * kernel * from * to;
}

static int64_t norm(int channels)
{
    return 2 * (int64_t)channels;
}

static int64_t linear(int from, int to, bool bias)
{
    return (int64_t)from * to + (bias ? to : 0);
}

/* He et al., 2015: two convolutions, and a projection where the widths or levels differ. */
static int64_t basic_block(int from, int to, bool projected)
{
    int64_t sum = conv(3, from, to) + norm(to) + conv(3, to, to) + norm(to);
    return sum + (projected ? linear(from, to, false) + norm(to) : 0);
}

static void test_fcgf(void)
{
    struct pnet_compilation *c = compile("models/fcgf.pnet", NULL, 0);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    /* ResUNetBN2C as FCGF publishes it: kernel, channels in and out; each with a residual block of
       its output width. */
    static const int layers[][3] = {{5, 1, 32}, {3, 32, 64}, {3, 64, 128}, {3, 128, 256},
        {3, 256, 128}, {3, 128 + 128, 64}, {3, 64 + 64, 64}};
    int64_t sum = linear(64 + 32, 64, false) + linear(64, 32, true);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const int *l = layers[i];
        sum += conv(l[0], l[1], l[2]) + norm(l[2]) + 2 * (conv(3, l[2], l[2]) + norm(l[2]));
    }
    int64_t got = count_under(p, "fcgf.");
    CHECKF(got == 8753408, "fcgf has %lld", (long long)got);
    CHECKF(sum == 8753408, "the table has %lld", (long long)sum);
    CHECK(p->parameter_count == got + linear(32, 13, true));
    pnet_compilation_free(c);
}

static void test_minkunet(void)
{
    static const char *const sets[] = {"width=3", "classes=20"};
    struct pnet_compilation *c = compile("models/minkunet18a.pnet", sets, 2);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    /* MinkUNet18A: planes of the four levels down and the four up; two basic blocks each. */
    static const int planes[8] = {32, 64, 128, 256, 128, 128, 96, 96};
    static const int skip[4] = {128, 64, 32, 32};
    int64_t sum = conv(5, 3, 32) + norm(32);
    int width = 32;
    for (int i = 0; i < 8; i++) {
        bool up = i >= 4;
        int strided = up ? planes[i] : width, joined = up ? planes[i] + skip[i - 4] : width;
        sum += conv(2, width, strided) + norm(strided);
        sum += basic_block(joined, planes[i], joined != planes[i]);
        sum += basic_block(planes[i], planes[i], false);
        width = planes[i];
    }
    sum += linear(96, 20, true);
    CHECKF(p->parameter_count == sum, "%lld, by the table %lld", (long long)p->parameter_count,
        (long long)sum);
    pnet_compilation_free(c);
}

static void test_resnet(void)
{
    static const char *const sets[] = {"width=3", "classes=40"};
    struct pnet_compilation *c = compile("models/resnet18.pnet", sets, 2);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    /* Two blocks a stage; the first of each goes coarser, so it is projected even at equal width.
     */
    int64_t sum = conv(3, 3, 64) + norm(64);
    int width = 64;
    for (int planes = 64; planes <= 512; planes *= 2) {
        sum += basic_block(width, planes, true) + basic_block(planes, planes, false);
        width = planes;
    }
    sum += conv(3, 512, 512) + norm(512) + linear(512, 40, true);
    CHECKF(p->parameter_count == sum, "%lld, by the table %lld", (long long)p->parameter_count,
        (long long)sum);
    pnet_compilation_free(c);
}

/* Names tell tensors apart, the block counts each once, and everything trained lies in front. */
static void test_blocks(const char *path)
{
    struct pnet_compilation *c = compile(path, NULL, 0);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    int64_t trained = 0;
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        int64_t product = 1;
        for (int d = 0; d < q->info.dims; d++) product *= q->info.shape[d];
        CHECKF(product == q->count, "%s: %s", path, q->name);
        CHECKF(pnet_plan_param_find(p, q->name) == i, "%s: %s", path, q->name);
        if (!q->info.trained) continue;
        trained += q->count;
        CHECKF(
            q->offset >= 0 && q->offset + q->count <= p->trained_elements, "%s: %s", path, q->name);
        for (int k = 0; k < i; k++) {
            const struct pnet_plan_param *r = &p->params[k];
            CHECKF(r->offset >= q->offset + q->count || q->offset >= r->offset + r->count,
                "%s: %s and %s overlap", path, q->name, r->name);
        }
    }
    CHECKF(trained == p->parameter_count, "%s: %lld", path, (long long)trained);
    pnet_compilation_free(c);
}

/* The network of the design's example, and of the two models for registration: that of test_fcgf,
   used for both clouds. In the last one the first layer has a kernel of 7. */
static void test_registration(void)
{
    static const struct {
        const char *path;
        int64_t first;
    } models[] = {{"tests/lang/models/registration.pnet", 5}, {"models/fcgf_kitti.pnet", 5},
        {"models/fcgf_3dmatch.pnet", 7}};
    for (int i = 0; i < 3; i++) {
        int64_t k = models[i].first, want = 8753408 + (k * k * k - 125) * 32;
        struct pnet_compilation *c = compile(models[i].path, NULL, 0);
        int64_t got = pnet_compilation_plan(c)->parameter_count;
        CHECKF(got == want, "%s: %lld", models[i].path, (long long)got);
        CHECKF(pnet_compilation_warnings(c) == 0, "%s", models[i].path);
        pnet_compilation_free(c);
    }
}

/* Attention networks as their authors' code has them, and a head of 16 classes behind 64 channels. */
static void test_attention(void)
{
    static const struct {
        const char *path;
        int64_t weights;
    } models[] = {{"models/flash3d.pnet", 19331712}, {"models/ptv3.pnet", 46166272},
        {"models/flash3d_wide.pnet", 46166272}};
    for (int i = 0; i < 3; i++) {
        struct pnet_compilation *c = compile(models[i].path, NULL, 0);
        int64_t got = pnet_compilation_plan(c)->parameter_count - linear(64, 16, true);
        CHECKF(got == models[i].weights, "%s: %lld", models[i].path, (long long)got);
        CHECKF(pnet_compilation_warnings(c) == 0, "%s", models[i].path);
        pnet_compilation_free(c);
    }
}

int main(void)
{
    static const char *const models[] = {"models/fcgf.pnet", "models/minkunet18a.pnet",
        "models/resnet18.pnet", "models/rooms.pnet", "models/shapes.pnet", "models/fcgf_kitti.pnet",
        "models/fcgf_3dmatch.pnet", "models/flash3d.pnet", "models/ptv3.pnet"};
    test_fcgf();
    test_minkunet();
    test_resnet();
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) test_blocks(models[i]);
    test_registration();
    test_attention();
    return check_end();
}
