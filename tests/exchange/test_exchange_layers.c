/* Each library's submanifold, strided, transposed and 1-wide convolutions of odd and even kernels, its groups, norms and linear
   layers, with random weights in the library's names and layout: imported, the model gives the results of the layers' definitions
   in double. Going back gives the library's bits again. */
#include "tests/exchange/imported.h"

/* Names as the libraries' modules give them: the map knows them by their layer. */
static const char model[] =
    "pnet 1\n"
    "input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }\n"
    "net small(p: cloud) {\n"
    "  g = grid(p, 50cm * [1, 2])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(8, kernel=3, name=\"first\") -> bn(name=\"norm\") "
    "-> relu\n"
    "  b = a -> conv(12, kernel=2, to=g[1], name=\"down\") -> relu\n"
    "  c = a -> conv(6, kernel=3, to=g[1], name=\"wide\") -> relu\n"
    "  n = a -> conv(4, kernel=1, to=g[1], name=\"corner\") -> relu\n"
    "  d = cat(b, c, n) -> conv(16, kernel=5, bias=yes, name=\"low\") -> relu\n"
    "  e = d -> conv(10, kernel=2, to=g[0], name=\"up\") -> relu\n"
    "  f = d -> conv(7, kernel=3, to=g[0], name=\"up_wide\") -> relu\n"
    "  m = d -> conv(3, kernel=1, to=g[0], name=\"up_corner\") -> relu\n"
    "  h = cat(e, f, a, m) -> conv(9, kernel=1, bias=yes, name=\"point\") -> relu\n"
    "  return h -> linear(5, name=\"head\")\n"
    "}\n"
    "y = small(cloud)\n"
    "loss ce = cross_entropy(y -> linear(12), cloud.label)\n";

/* Groups: PyTorch has any, and so has pnet.torch.spconv, in spconv's layout; spconv itself has none; MinkowskiEngine has one a
   channel. */
static const char grouped[] =
    "pnet 1\n"
    "param n = 2\n"
    "input cloud { xyz : position  rgb : feature[4]  label : class[12] per point }\n"
    "net small(p: cloud) {\n"
    "  g = grid(p, 50cm * [1, 2])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(if n == 4 then 4 else 6, kernel=3, groups=n, "
    "name=\"first\")\n"
    "  b = a -> conv(if n == 4 then 4 else 8, kernel=3, groups=n, to=g[1], name=\"down\") -> relu\n"
    "  return b -> conv(if n == 4 then 4 else 10, kernel=2, groups=n, to=g[0], name=\"up\")\n"
    "}\n"
    "y = small(cloud)\n"
    "loss ce = cross_entropy(y -> linear(12), cloud.label)\n";

static struct pnet_compilation *compile(const char *text, int groups, bool fused)
{
    char set[16];
    const char *sets[] = {set};
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE,
        .degrade = PNET_VOXEL,
        .net = "small",
        .sets = sets,
        .set_count = groups ? 1 : 0,
        .no_fusion = !fused};
    snprintf(set, sizeof set, "n=%d", groups);
    return need_plan(pnet_compile_text("small.pnet", text, strlen(text), &o), "the model");
}

/* All names of the file have a word before those of the model. */
static struct pnet_name_rules map_of(void)
{
    static struct pnet_name_rule rules[] = {{.pattern = "module", .to = "small"}};
    return (struct pnet_name_rules){rules, 1};
}

struct sample {
    struct cloud cloud;
    const int (*voxels)[3];
    struct sites fine, coarse;
};

/* Draws the weights of a layer, of as many channels in as x has, and runs it. */
static struct values step(
    struct store *s, struct conv c, bool bias, const struct values *x, const struct sites *to)
{
    char name[64];
    snprintf(name, sizeof name, "module.%s", c.name);
    c.name = name;
    c.in = x->width;
    conv_draw(s, &c, bias);
    return convolve(s, &c, x, to);
}

/* The model's network by the library's definitions; draws its weights on the way. */
static struct values run_layers(struct store *s, enum library l, const struct sample *m)
{
    struct values x = cloud_values(&m->cloud, m->voxels, &m->fine, 3);
    struct values a = step(s, (struct conv){l, "first", 3, 0, 8, 1, SAME}, false, &x, &m->fine);
    norm_draw(s, "module.norm", 8);
    normalise(s, "module.norm", &a);
    rectify(&a);
    struct values b = step(s, (struct conv){l, "down", 2, 0, 12, 1, DOWN}, false, &a, &m->coarse);
    struct values c = step(s, (struct conv){l, "wide", 3, 0, 6, 1, DOWN}, false, &a, &m->coarse);
    struct values n = step(s, (struct conv){l, "corner", 1, 0, 4, 1, DOWN}, false, &a, &m->coarse);
    rectify(&b);
    rectify(&c);
    rectify(&n);
    struct values bc = concatenate(&b, &c), bcn = concatenate(&bc, &n);
    struct values d = step(s, (struct conv){l, "low", 5, 0, 16, 1, SAME}, true, &bcn, &m->coarse);
    rectify(&d);
    struct values e = step(s, (struct conv){l, "up", 2, 0, 10, 1, UP}, false, &d, &m->fine);
    struct values f = step(s, (struct conv){l, "up_wide", 3, 0, 7, 1, UP}, false, &d, &m->fine);
    struct values o = step(s, (struct conv){l, "up_corner", 1, 0, 3, 1, UP}, false, &d, &m->fine);
    rectify(&e);
    rectify(&f);
    rectify(&o);
    struct values ef = concatenate(&e, &f), efa = concatenate(&ef, &a),
                  efao = concatenate(&efa, &o);
    struct values h = step(s, (struct conv){l, "point", 1, 0, 9, 1, SAME}, true, &efao, &m->fine);
    rectify(&h);
    linear_draw(s, "module.head", 9, 5);
    struct values y = linear(s, "module.head", &h, 5);
    struct values *all[] = {&x, &a, &b, &c, &n, &bc, &bcn, &d, &e, &f, &o, &ef, &efa, &efao, &h};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->v);
    return y;
}

static struct values run_grouped(
    struct store *s, enum library l, int groups, const struct sample *m)
{
    bool each = groups == 4;
    struct values x = cloud_values(&m->cloud, m->voxels, &m->fine, 4);
    struct values a =
        step(s, (struct conv){l, "first", 3, 0, each ? 4 : 6, groups, SAME}, false, &x, &m->fine);
    struct values b =
        step(s, (struct conv){l, "down", 3, 0, each ? 4 : 8, groups, DOWN}, false, &a, &m->coarse);
    rectify(&b);
    struct values y =
        step(s, (struct conv){l, "up", 2, 0, each ? 4 : 10, groups, UP}, false, &b, &m->fine);
    free(x.v);
    free(a.v);
    free(b.v);
    return y;
}

/* Exports what was imported, and compares with the store, bit for bit. */
static void check_back(const struct store *s, const struct pnet_plan *p, enum library l,
    const char *axes, const struct pnet_name_rules *map, const char *path)
{
    struct pnet_exchange x = {.plan = p, .map = map, .map_name = "map"};
    struct pnet_safetensors *file;
    struct pnet_exchanged r;
    struct pnet_error e;
    size_t compared = 0;
    CHECK(pnet_library_parse(library_names[l], &x.library));
    x.axes = pnet_axes_usual(x.library);
    if (axes) CHECK(pnet_axes_parse(axes, &x.axes));
    need(pnet_safetensors_read(path, &file, &e), &e, "reading");
    need(pnet_export_weights(&x, path, file, &r, &e), &e, "export");
    for (size_t i = 0; i < r.tensor_count; i++)
        for (int k = 0; k < s->count; k++) {
            const struct pnet_safetensor *a = &r.tensors[i], *b = &s->tensors[k];
            if (strcmp(a->name, b->name) != 0) continue;
            compared++;
            CHECKF(a->dims == b->dims &&
                       memcmp(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape) == 0,
                "%s: %s has another shape", library_names[l], a->name);
            CHECKF(memcmp(a->data, b->data, (size_t)pnet_safetensor_count(b) * 4) == 0,
                "%s: %s has other numbers", library_names[l], a->name);
        }
    CHECKF(compared == r.tensor_count, "%s: %zu of %zu names are theirs", library_names[l],
        compared, r.tensor_count);
    pnet_exchanged_free(&r);
    pnet_safetensors_free(file);
}

static void check_import(const char *text, int groups, enum library l, const char *axes,
    bool same_axes, const struct sample *m)
{
    static struct store s;
    s.seed = 7 + (uint64_t)l;
    struct pnet_name_rules map = map_of();
    struct pnet_compilation *apart = compile(text, groups, false),
                            *fused = compile(text, groups, true);
    const char *path = in_folder("ours.safetensors");
    int64_t rows;
    struct values want = groups ? run_grouped(&s, l, groups, m) : run_layers(&s, l, m);
    import_store(&s, pnet_compilation_plan(apart), l, axes, &map, path);
    float *have = run_file(pnet_compilation_plan(fused), path, &m->cloud, &rows);
    double d = result_difference(have, &want, m->voxels, rows);
    printf("%s, groups %d, axes %s: %g\n", library_names[l], groups, axes ? axes : "as usual", d);
    CHECK(rows == m->cloud.n);
    CHECKF(same_axes ? d < 5e-6 : d > 0.05, "%s, groups %d, axes %s: %g", library_names[l], groups,
        axes ? axes : "as usual", d);
    check_back(&s, pnet_compilation_plan(apart), l, axes, &map, path);
    free(have);
    free(want.v);
    store_free(&s);
    pnet_compilation_free(apart);
    pnet_compilation_free(fused);
}

int main(void)
{
    struct sample m;
    int(*voxels)[3];
    make_folder();
    m.cloud = cloud_voxels(14, 0.5f, 9, &voxels);
    m.voxels = (const int(*)[3])voxels;
    m.fine = cloud_sites(&m.cloud, m.voxels);
    m.coarse = sites_coarser(&m.fine);
    CHECK(m.cloud.n > 150 && m.coarse.count > 60);
    for (int l = 0; l < LIBRARIES; l++) {
        bool turned = l == SPCONV || l == TORCH;
        check_import(model, 0, (enum library)l, NULL, true, &m);
        check_import(model, 0, (enum library)l, turned ? "zyx" : "xyz", true, &m);
        check_import(model, 0, (enum library)l, turned ? "xyz" : "zyx", false, &m);
        check_import(model, 0, (enum library)l, "yzx", false, &m);
    }
    check_import(grouped, 2, SPCONV, NULL, true, &m);
    check_import(grouped, 2, TORCH, NULL, true, &m);
    check_import(grouped, 4, SPCONV, NULL, true, &m);
    check_import(grouped, 4, TORCH, NULL, true, &m);
    check_import(grouped, 4, MINKOWSKI, NULL, true, &m);
    free(m.fine.at);
    free(m.coarse.at);
    free(voxels);
    cloud_free(&m.cloud);
    remove_tree(test_folder);
    return check_end();
}
