/* The golden cases: values and gradients of every one, through the triplets of its file, on every
 * instruction set. */
#include <dirent.h>
#include "runtime/io/npy.h"
#include "tests/kernels/conv_case.h"

static const double TOLERANCE = 1e-5;

/* One case; data as the files have it. */
struct golden {
    char folder[4096];
    struct pnet_conv_shape shape;
    struct pnet_npy features, weight, bias, triplets, out, grad_out, grad_features, grad_weight;
    struct conv_set forward, backward; /* sorted by i, by j */
};

/* A missing file is an error unless it is optional; then `data` is NULL. */
static struct pnet_npy load(
    const char *folder, const char *name, enum pnet_scalar type, int dims, bool optional)
{
    char path[8192];
    struct pnet_npy a = {.data = NULL};
    struct pnet_error e;
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f && optional) return a;
    if (f) fclose(f);
    if (pnet_npy_read(path, &a, &e) != PNET_OK) {
        fprintf(stderr, "%s: %s\n", path, e.message);
        exit(1);
    }
    if (a.type != type || a.dims != dims) {
        fprintf(stderr, "%s: another type or number of dimensions than expected\n", path);
        exit(1);
    }
    return a;
}

static int read_groups(const char *folder)
{
    char path[8192], text[4096] = "";
    int groups = 0;
    snprintf(path, sizeof path, "%s/case.json", folder);
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    const char *at = strstr(text, "\"groups\":");
    return at && sscanf(at, "\"groups\": %d", &groups) == 1 ? groups : 0;
}

static void load_case(struct golden *g, int groups)
{
    const char *folder = g->folder;
    g->features = load(folder, "features", PNET_F32, 2, false);
    g->weight = load(folder, "weight", PNET_F32, 3, false);
    g->bias = load(folder, "bias", PNET_F32, 1, true);
    g->triplets = load(folder, "triplets", PNET_I64, 2, false);
    g->out = load(folder, "out", PNET_F64, 2, false);
    g->grad_out = load(folder, "grad_out", PNET_F32, 2, false);
    g->grad_features = load(folder, "grad_features", PNET_F64, 2, false);
    g->grad_weight = load(folder, "grad_weight", PNET_F64, 3, false);
    g->shape =
        (struct pnet_conv_shape){(int32_t)g->features.shape[1], (int32_t)g->out.shape[1], groups};
    int64_t count = g->triplets.shape[0];
    const int64_t(*ijk)[3] = g->triplets.data;
    int64_t(*list)[3] = conv_alloc((size_t)(count + 1) * sizeof *list);
    for (int64_t t = 0; t < count; t++) {
        list[t][0] = ijk[t][0];
        list[t][1] = ijk[t][2];
        list[t][2] = ijk[t][1];
    }
    g->forward = conv_set_make(
        g->out.shape[0], g->features.shape[0], (int32_t)g->weight.shape[0], count, list);
    g->backward = conv_set_transposed(&g->forward.t);
    free(list);
}

static void free_case(struct golden *g)
{
    pnet_npy_free(&g->features), pnet_npy_free(&g->weight), pnet_npy_free(&g->bias),
        pnet_npy_free(&g->triplets);
    pnet_npy_free(&g->out), pnet_npy_free(&g->grad_out), pnet_npy_free(&g->grad_features);
    pnet_npy_free(&g->grad_weight);
    conv_set_free(&g->forward);
    conv_set_free(&g->backward);
}

static void check_result(
    const struct golden *g, const char *what, float *x, const struct pnet_npy *want)
{
    double error = conv_error(x, want->data, (size_t)want->count);
    CHECKF(error <= TOLERANCE, "%s: %s on %s: error %g", g->folder, what, pnet_cpu_isa(), error);
    free(x);
}

static void check_values(const struct golden *g, const struct pnet_triplets *t,
    struct pnet_conv_shape shape, const float *in, bool transposed, const char *what,
    const struct pnet_npy *want)
{
    float *out = conv_poison((size_t)want->count);
    struct conv_work work = conv_work(pnet_cpu_mvmr_work(t, shape, PNET_FP32));
    pnet_cpu_mvmr(&(struct pnet_mvmr){.triplets = t,
                      .shape = shape,
                      .in = in,
                      .weight = g->weight.data,
                      .bias = transposed ? NULL : g->bias.data,
                      .out = out,
                      .transposed = transposed},
        conv_work_use(&work));
    CHECK(conv_work_end(&work));
    check_result(g, what, out, want);
}

static void check_weights(
    const struct golden *g, const struct pnet_triplets *t, bool swapped, const char *what)
{
    float *gweight = conv_poison((size_t)g->grad_weight.count);
    struct conv_work work = conv_work(pnet_cpu_vvor_work(t, g->shape, PNET_FP32));
    pnet_cpu_vvor(&(struct pnet_vvor){.triplets = t,
                      .shape = g->shape,
                      .in = g->features.data,
                      .gout = g->grad_out.data,
                      .gweight = gweight,
                      .swapped = swapped},
        conv_work_use(&work));
    CHECK(conv_work_end(&work));
    check_result(g, what, gweight, &g->grad_weight);
}

static void check_case(const struct golden *g)
{
    struct pnet_conv_shape back = {g->shape.cout, g->shape.cin, g->shape.groups};
    check_values(g, &g->forward.t, g->shape, g->features.data, false, "values", &g->out);
    check_values(
        g, &g->backward.t, back, g->grad_out.data, true, "feature gradients", &g->grad_features);
    check_weights(g, &g->forward.t, false, "weight gradients by i");
    check_weights(g, &g->backward.t, true, "weight gradients by j");
}

int main(void)
{
    char vectors[2048];
    snprintf(vectors, sizeof vectors, "%s/vectors", check_data_dir());
    const char *isas[3];
    int isa_count = conv_isa_list(isas), cases = 0;
    struct dirent **entries;
    int n = scandir(vectors, &entries, NULL, alphasort);
    CHECK(n > 0);
    for (int i = 0; i < n; i++) {
        struct golden g;
        snprintf(g.folder, sizeof g.folder, "%s/%s", vectors, entries[i]->d_name);
        int groups = entries[i]->d_name[0] == '.' ? 0 : read_groups(g.folder);
        free(entries[i]);
        if (groups == 0) continue;
        load_case(&g, groups);
        for (int s = 0; s < isa_count; s++) {
            setenv("PNET_ISA", isas[s], 1);
            check_case(&g);
        }
        free_case(&g);
        cases++;
    }
    if (n > 0) free(entries);
    CHECKF(cases >= 30, "%d cases", cases);
    return check_end();
}
