/* Weights of spconv, imported, give the numbers that spconv itself gives. The numbers here were printed by spconv 2.3.8 from
   PyPI, its build for the CPU, in one thread, with PyTorch 2.4.1: all numbers are whole, so results are equal bit for bit.
   Exported again, the weights are the tensors that spconv had. */
#include "tests/exchange/imported.h"

enum { VOXELS = 8, OUT = 2 };
static const int voxels[VOXELS][3] = /* x, y, z; spconv's indices are sample, z, y, x */
    {{0, 0, 0}, {1, 0, 0}, {3, 2, 1}, {2, 2, 0}, {3, 3, 1}, {2, 0, 2}, {3, 0, 3}, {1, 0, 2}};

/* Where spconv has no such voxel. */
#define NONE                                                                                       \
    {                                                                                              \
        NAN, NAN                                                                                   \
    }

/* A tensor of the file: weights are w[i] = (7 i + 3) mod 11 - 5, biases 100, 200, .. */
struct tensor {
    const char *name;
    int dims;
    int64_t shape[5];
};

struct one {
    const char *layers; /* in spconv */
    const char *model;  /* from x on g[0] to a value of two channels on g[0] */
    struct tensor tensors[3];
    float want[VOXELS][OUT];
};

static const struct one cases[] = {
    {"SubMConv3d(3, 2, 1)", "x -> conv(2, kernel=1, bias=yes, name=\"a\")",
        {{"a.weight", 5, {2, 1, 1, 1, 3}}, {"a.bias", 1, {2}}},
        {{107, 204}, {110, 206}, {85, 208}, {88, 210}, {91, 212}, {108, 179}, {111, 181},
            {107, 204}}},
    {"SubMConv3d(3, 2, 1), as a linear layer", "x -> linear(2, name=\"a\")",
        {{"a.weight", 5, {2, 1, 1, 1, 3}}, {"a.bias", 1, {2}}},
        {{107, 204}, {110, 206}, {85, 208}, {88, 210}, {91, 212}, {108, 179}, {111, 181},
            {107, 204}}},
    {"SparseConv3d(3, 2, 1)", "x -> conv(2, kernel=1, name=\"a\")",
        {{"a.weight", 5, {2, 1, 1, 1, 3}}},
        {{7, 4}, {10, 6}, {-15, 8}, {-12, 10}, {-9, 12}, {8, -21}, {11, -19}, {7, 4}}},
    {"SubMConv3d(3, 2, 3)", "x -> conv(2, kernel=3, bias=yes, name=\"a\")",
        {{"a.weight", 5, {2, 3, 3, 3, 3}}, {"a.bias", 1, {2}}},
        {{83, 232}, {82, 209}, {106, 173}, {106, 206}, {84, 228}, {127, 166}, {135, 186},
            {112, 205}}},
    {"SubMConv3d(3, 2, 5)", "x -> conv(2, kernel=5, name=\"a\")",
        {{"a.weight", 5, {2, 5, 5, 5, 3}}},
        {{8, -20}, {5, 0}, {-7, 26}, {21, -7}, {-11, 11}, {20, 18}, {-3, 13}, {14, -21}}},
    /* a strided kernel of one cell is read as its shape says */
    {"SparseConv3d(3, 2, 1, stride=2)",
        "x -> conv(2, kernel=1, to=g[1], name=\"a\") -> upsample(to=g[0])",
        {{"a.weight", 5, {2, 1, 1, 1, 3}}},
        {{-11, -9}, {-11, -9}, {-6, -6}, {-6, -6}, {-6, -6}, {16, 17}, {16, 17}, NONE}},
    {"SparseConv3d(3, 2, 3, stride=2, padding=1)",
        "x -> conv(2, kernel=3, to=g[1], bias=yes, name=\"a\") -> upsample(to=g[0])",
        {{"a.weight", 5, {2, 3, 3, 3, 3}}, {"a.bias", 1, {2}}},
        {{83, 232}, {83, 232}, {106, 206}, {106, 206}, {106, 206}, {127, 166}, {127, 166},
            {95, 216}}},
    {"SparseConv3d(3, 4, 2, stride=2), SparseInverseConv3d(4, 2, 2)",
        "x -> conv(4, kernel=2, to=g[1], name=\"a\") -> conv(2, kernel=2, to=g[0], bias=yes, "
        "name=\"b\")",
        {{"a.weight", 5, {4, 2, 2, 2, 3}}, {"b.weight", 5, {2, 2, 2, 2, 4}}, {"b.bias", 1, {2}}},
        {{329, -46}, {73, 457}, {-65, 212}, {208, 221}, {202, 215}, {65, 92}, {205, 89},
            {89, 319}}},
    {"SparseConv3d(3, 4, 2, stride=2), SparseConvTranspose3d(4, 2, 1, stride=2)",
        "x -> conv(4, kernel=2, to=g[1], name=\"a\") -> conv(2, kernel=1, to=g[0], bias=yes, "
        "name=\"b\")",
        {{"a.weight", 5, {4, 2, 2, 2, 3}}, {"b.weight", 5, {2, 1, 1, 1, 4}}, {"b.bias", 1, {2}}},
        {{329, 173}, NONE, NONE, {208, 128}, NONE, {65, 347}, NONE, NONE}},
    {"SparseConv3d(3, 4, 2, stride=2), SubMConv3d(4, 2, 1)",
        "x -> conv(4, kernel=2, to=g[1], name=\"a\") -> conv(2, kernel=1, bias=yes, name=\"b\") "
        "-> upsample(to=g[0])",
        {{"a.weight", 5, {4, 2, 2, 2, 3}}, {"b.weight", 5, {2, 1, 1, 1, 4}}, {"b.bias", 1, {2}}},
        {{139, -45}, {139, -45}, {223, 146}, {223, 146}, {223, 146}, {-45, 238}, {-45, 238},
            {116, 86}}},
};

static struct pnet_compilation *compile(const char *layers, bool fused)
{
    char text[1024];
    struct pnet_compile_options o = {
        .purpose = PNET_FOR_INFERENCE, .degrade = PNET_VOXEL, .no_fusion = !fused};
    snprintf(text, sizeof text,
        "pnet 1\ninput cloud { xyz : position  f : feature[3] }\nnet n(p: cloud) {\n"
        "  g = grid(p, 1m * [1, 2])\n  x = p.f -> pool(mean, to=g[0])\n  return %s\n}\n"
        "y = n(cloud)\n",
        layers);
    return need_plan(pnet_compile_text("one.pnet", text, strlen(text), &o), layers);
}

static struct cloud make_cloud(void)
{
    struct cloud c = cloud_new(VOXELS);
    for (int v = 0; v < VOXELS; v++)
        for (int k = 0; k < 3; k++) {
            c.xyz[3 * v + k] = (float)voxels[v][k] + 0.5f;
            c.features[CLOUD_FEATURES * v + k] = (float)((5 * (3 * v + k) + 2) % 7 - 3);
        }
    return c;
}

static void fill(struct store *s, const struct tensor *t)
{
    bool bias = t->dims == 1;
    float *data = (float *)(uintptr_t)store_add(
        s, t->name, t->dims, t->shape, 0, 0); /* its owner may write */
    int64_t count = pnet_safetensor_count(&s->tensors[s->count - 1]);
    for (int64_t i = 0; i < count; i++)
        data[i] = bias ? 100 * (float)(i + 1) : (float)((7 * i + 3) % 11 - 5);
}

/* Exports the weights that were imported; each kernel must be the tensor of the store. A linear layer has a matrix in spconv,
   [out, in], so its numbers are in another order. */
static void check_export(const struct one *c, const struct store *s, const struct pnet_plan *p,
    const struct pnet_name_rules *map, const char *path)
{
    struct pnet_exchange x = {
        .plan = p, .library = PNET_LIBRARY_SPCONV, .map = map, .map_name = "map"};
    struct pnet_safetensors *file;
    struct pnet_exchanged r;
    struct pnet_error e;
    x.axes = pnet_axes_usual(x.library);
    need(pnet_safetensors_read(path, &file, &e), &e, "reading");
    need(pnet_export_weights(&x, path, file, &r, &e), &e, "export");
    CHECK(r.tensor_count == (size_t)s->count);
    for (size_t i = 0; i < r.tensor_count; i++) {
        const struct pnet_safetensor *t = &r.tensors[i];
        const float *have = t->data;
        for (int k = 0; k < s->count; k++) {
            const struct pnet_safetensor *want = &s->tensors[k];
            const float *numbers = want->data;
            if (strcmp(t->name, want->name) != 0) continue;
            int64_t n = pnet_safetensor_count(want), out = want->shape[0], in = n / out;
            CHECK(pnet_safetensor_count(t) == n);
            for (int64_t j = 0; j < n && t->dims == want->dims; j++)
                CHECKF(have[j] == numbers[j], "%s: %s, %d", c->layers, t->name, (int)j);
            for (int64_t j = 0; j < n && t->dims != want->dims; j++)
                CHECKF(t->dims == 2 && have[j] == numbers[j % in * out + j / in], "%s: %s, %d",
                    c->layers, t->name, (int)j);
        }
    }
    pnet_exchanged_free(&r);
    pnet_safetensors_free(file);
}

static void check_case(const struct one *c, const struct cloud *cloud)
{
    static struct pnet_name_rule rules[] = {{.pattern = "*", .to = "n.*"}};
    static const struct pnet_name_rules map = {rules, 1};
    static struct store s;
    struct pnet_compilation *apart = compile(c->model, false), *fused = compile(c->model, true);
    const char *path = in_folder("ours.safetensors");
    int64_t rows;
    for (int i = 0; i < 3 && c->tensors[i].name; i++) fill(&s, &c->tensors[i]);
    import_store(&s, pnet_compilation_plan(apart), SPCONV, NULL, &map, path);
    float *have = run_file(pnet_compilation_plan(fused), path, cloud, &rows);
    CHECKF(rows == VOXELS, "%s: %d rows", c->layers, (int)rows);
    for (int v = 0; v < VOXELS && rows == VOXELS; v++)
        for (int k = 0; k < OUT; k++) {
            float want = c->want[v][k], got = have[v * OUT + k];
            CHECKF(isnan(want) || got == want, "%s: voxel %d has %g, in spconv %g", c->layers, v,
                (double)got, (double)want);
        }
    check_export(c, &s, pnet_compilation_plan(apart), &map, path);
    free(have);
    store_free(&s);
    pnet_compilation_free(apart);
    pnet_compilation_free(fused);
}

/* SubMConv3d(3, 2, 1) with the weight 0, 1 .. 5 gives these rows for unit vectors. */
static void check_product(void)
{
    static const float theirs[6] = {0, 1, 2, 3, 4, 5}, rows[3][2] = {{0, 1}, {2, 3}, {4, 5}};
    struct pnet_weight_role role = {.kind = PNET_PARAM_CELLS,
        .dims = 3,
        .shape = {1, 3, 2},
        .weight = 0,
        .kernel = 1,
        .groups = 1,
        .alone = true};
    struct pnet_axes axes = pnet_axes_usual(PNET_LIBRARY_SPCONV);
    struct pnet_form forms[PNET_MOST_FORMS];
    float ours[6], back[6];
    int count = pnet_forms(PNET_LIBRARY_SPCONV, &axes, &role, false, forms);
    const struct pnet_form *f = pnet_form_find(forms, count, 5, (const int64_t[]){2, 1, 1, 1, 3});
    CHECK(f == &forms[0]);
    if (!f) return;
    pnet_form_take(f, &role, theirs, ours);
    CHECK(memcmp(ours, rows, sizeof ours) == 0);
    pnet_form_give(f, &role, &rows[0][0], back);
    CHECK(memcmp(back, theirs, sizeof back) == 0);
}

int main(void)
{
    struct cloud c = make_cloud();
    make_folder();
    check_product();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i], &c);
    cloud_free(&c);
    remove_tree(test_folder);
    return check_end();
}
