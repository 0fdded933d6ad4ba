/* FCGF as published (Choy, Park, Koltun: Fully Convolutional Geometric Features, 2019; ResUNetBN2C), with random weights in
   MinkowskiEngine's names and layout: imported, the model gives the features of the network's definition in double. */
#include "tests/exchange/imported.h"

#include <stdarg.h>

enum { FIRST = 7, LEVELS = 4 };
static const int channels[LEVELS] = {32, 64, 128, 256}, back[LEVELS - 1] = {64, 64, 128};

static struct conv conv_of(const char *name, int kernel, int in, int out, enum way way)
{
    return (struct conv){MINKOWSKI, name, kernel, in, out, 1, way};
}

static const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *text(const char *format, ...)
{
    static char texts[16][64];
    static int next;
    va_list args;
    va_start(args, format);
    vsnprintf(texts[next = (next + 1) % 16], sizeof texts[0], format, args);
    va_end(args);
    return texts[next];
}

/* BasicBlock: two convolutions of kernel 3 with norms, and the residual. */
static void block_draw(struct store *s, const char *block, int width)
{
    for (int i = 1; i <= 2; i++) {
        struct conv c = conv_of(text("%s.conv%d", block, i), 3, width, width, SAME);
        conv_draw(s, &c, false);
        norm_draw(s, text("%s.norm%d.bn", block, i), width);
    }
}

static void block_run(const struct store *s, const char *block, struct values *x)
{
    struct values y = *x;
    for (int i = 1; i <= 2; i++) {
        struct conv c = conv_of(text("%s.conv%d", block, i), 3, x->width, x->width, SAME);
        struct values z = convolve(s, &c, &y, x->sites);
        normalise(s, text("%s.norm%d.bn", block, i), &z);
        if (i == 1)
            rectify(&z);
        else
            free(y.v);
        y = z;
    }
    for (int64_t i = 0; i < (int64_t)x->sites->count * x->width; i++) x->v[i] += y.v[i];
    free(y.v);
    rectify(x);
}

/* conv, norm, block */
static void stage_draw(struct store *s, const struct conv *c, const char *norm, const char *block)
{
    conv_draw(s, c, false);
    norm_draw(s, text("%s.bn", norm), c->out);
    block_draw(s, block, c->out);
}

static struct values stage_run(const struct store *s, const struct conv *c, const char *norm,
    const char *block, const struct values *x, const struct sites *to)
{
    struct values y = convolve(s, c, x, to);
    normalise(s, text("%s.bn", norm), &y);
    block_run(s, block, &y);
    rectify(&y);
    return y;
}

static struct conv down_of(int i)
{
    return conv_of(text("conv%d", i + 1), i ? 3 : FIRST, i ? channels[i - 1] : 1, channels[i],
        i ? DOWN : SAME);
}

/* From level i + 1 to level i. */
static struct conv up_of(int i)
{
    int in = i == LEVELS - 2 ? channels[i + 1] : channels[i + 1] + back[i + 1];
    return conv_of(text("conv%d_tr", i + 2), 3, in, back[i], UP);
}

static void fcgf_draw(struct store *s)
{
    for (int i = 0; i < LEVELS; i++) {
        struct conv c = down_of(i);
        stage_draw(s, &c, text("norm%d", i + 1), text("block%d", i + 1));
    }
    for (int i = LEVELS - 2; i >= 0; i--) {
        struct conv c = up_of(i);
        stage_draw(s, &c, text("norm%d_tr", i + 2), text("block%d_tr", i + 2));
    }
    struct conv c = conv_of("conv1_tr", 1, channels[0] + back[0], 64, SAME);
    struct conv final = conv_of("final", 1, 64, 32, SAME);
    conv_draw(s, &c, false);
    conv_draw(s, &final, true);
}

static struct values fcgf_run(const struct store *s, struct sites sites[LEVELS])
{
    struct values x = values_new(&sites[0], 1), skip[LEVELS];
    for (int n = 0; n < sites[0].count; n++) x.v[n] = 1;
    for (int i = 0; i < LEVELS; i++) {
        struct conv c = down_of(i);
        skip[i] = stage_run(
            s, &c, text("norm%d", i + 1), text("block%d", i + 1), i ? &skip[i - 1] : &x, &sites[i]);
    }
    free(x.v);
    x = skip[LEVELS - 1];
    for (int i = LEVELS - 2; i >= 0; i--) {
        struct conv c = up_of(i);
        struct values y =
            stage_run(s, &c, text("norm%d_tr", i + 2), text("block%d_tr", i + 2), &x, &sites[i]);
        free(x.v);
        x = concatenate(&y, &skip[i]);
        free(y.v);
        free(skip[i].v);
    }
    struct conv c = conv_of("conv1_tr", 1, x.width, 64, SAME);
    struct conv final = conv_of("final", 1, 64, 32, SAME);
    struct values y = convolve(s, &c, &x, &sites[0]);
    rectify(&y);
    struct values z = convolve(s, &final, &y, &sites[0]);
    for (int n = 0; n < sites[0].count; n++) {
        double *row = z.v + (int64_t)n * 32, length = 0;
        for (int k = 0; k < 32; k++) length += row[k] * row[k];
        for (int k = 0; k < 32; k++) row[k] /= sqrt(length);
    }
    free(x.v);
    free(y.v);
    return z;
}

static struct pnet_compilation *compile(bool fused)
{
    static const char *const sets[] = {"first=7"};
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE,
        .degrade = PNET_VOXEL,
        .net = "fcgf",
        .sets = sets,
        .set_count = 1,
        .no_fusion = !fused};
    return need_plan(pnet_compile_file("models/fcgf.pnet", &o), "models/fcgf.pnet");
}

/* Are the rows' features different ones? Else any weights would do. */
static bool varied(const struct values *v)
{
    double most = 0;
    for (int64_t i = v->width; i < (int64_t)v->sites->count * v->width; i++)
        most = fmax(most, fabs(v->v[i] - v->v[i % v->width]));
    return most > 0.3;
}

int main(void)
{
    static struct store s = {.seed = 31};
    struct sites sites[LEVELS];
    struct pnet_name_rules map;
    struct pnet_error e;
    int(*voxels)[3];
    int64_t rows;
    make_folder();
    struct cloud c = cloud_voxels(18, 0.05f, 5, &voxels);
    sites[0] = cloud_sites(&c, voxels);
    for (int i = 1; i < LEVELS; i++) sites[i] = sites_coarser(&sites[i - 1]);
    CHECK(c.n > 300 && sites[3].count > 10);
    fcgf_draw(&s);
    struct values want = fcgf_run(&s, sites);
    CHECK(varied(&want));
    need(pnet_names_read("models/fcgf_minkowski.yaml", &map, &e), &e, "map");
    struct pnet_compilation *apart = compile(false), *fused = compile(true);
    static const char *const axes[] = {NULL, "xyz", "zyx"};
    for (int i = 0; i < 3; i++) {
        const char *path = in_folder("ours.safetensors");
        import_store(&s, pnet_compilation_plan(apart), MINKOWSKI, axes[i], &map, path);
        float *have = run_file(pnet_compilation_plan(fused), path, &c, &rows);
        double d = result_difference(have, &want, (const int(*)[3])voxels, rows);
        printf("%d points, axes %s: %g\n", (int)rows, axes[i] ? axes[i] : "as usual", d);
        CHECK(rows == c.n);
        /* other axes are another network */
        CHECKF(i < 2 ? d < 2e-5 : d > 0.1, "axes %s: %g", axes[i], d);
        free(have);
    }
    pnet_compilation_free(apart);
    pnet_compilation_free(fused);
    pnet_name_rules_free(&map);
    for (int i = 0; i < LEVELS; i++) free(sites[i].at);
    free(want.v);
    free(voxels);
    cloud_free(&c);
    store_free(&s);
    remove_tree(test_folder);
    return check_end();
}
