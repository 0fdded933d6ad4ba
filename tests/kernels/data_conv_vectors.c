/* The golden cases: values and gradients of every one, through the triplets of its file. argv[1]:
 * "cpu" (default), on every instruction set, or "cuda". */
#include <dirent.h>
#include "runtime/device/device.h"
#include "runtime/io/npy.h"
#include "tests/kernels/conv_case.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/conv.h"
#include "tests/cuda/geometry.h"
#endif

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

/* Where the kernels run. Both take pointers to host memory, and write `count` numbers of a result. */
struct processor {
    const char *(*name)(void);
    void (*mvmr)(const struct pnet_mvmr *m, size_t count);
    void (*vvor)(const struct pnet_vvor *v, size_t count);
};

static void mvmr_on_cpu(const struct pnet_mvmr *m, size_t count)
{
    (void)count;
    struct conv_work work = conv_work(pnet_cpu_mvmr_work(m->triplets, m->shape, m->precision));
    pnet_cpu_mvmr(m, conv_work_use(&work));
    CHECK(conv_work_end(&work));
}

static void vvor_on_cpu(const struct pnet_vvor *v, size_t count)
{
    (void)count;
    struct conv_work work = conv_work(pnet_cpu_vvor_work(v->triplets, v->shape, v->precision));
    pnet_cpu_vvor(v, conv_work_use(&work));
    CHECK(conv_work_end(&work));
}

static const struct processor cpu = {pnet_cpu_isa, mvmr_on_cpu, vvor_on_cpu};

#ifdef PNET_CUDA_BUILT
static const char *gpu_name(void)
{
    return "cuda";
}

static const size_t ARENA_BYTES = (size_t)256 << 20;

static float *floats_on_gpu(struct arena *a, const float *from, int64_t rows, int32_t width)
{
    return arena_copy(a, from, (size_t)rows * (size_t)width * sizeof *from);
}

static void mvmr_on_gpu(const struct pnet_mvmr *m, size_t count)
{
    struct arena a;
    arena_open(&a, ARENA_BYTES);
    struct pnet_triplets t = triplets_on_device(&a, m->triplets);
    struct pnet_mvmr d = *m;
    d.triplets = &t;
    d.in = floats_on_gpu(&a, m->in, t.others, m->shape.cin);
    d.weight = floats_on_gpu(
        &a, m->weight, (int64_t)t.cells * (m->shape.cin / m->shape.groups), m->shape.cout);
    if (m->bias) d.bias = floats_on_gpu(&a, m->bias, 1, m->shape.cout);
    d.out = arena_copy(&a, m->out, count * sizeof *m->out);
    pnet_cuda_mvmr(&d, arena_take(&a, pnet_cuda_mvmr_work(&t, d.shape, d.precision)));
    pnet_cuda_copy_out(m->out, d.out, count * sizeof *m->out);
    CHECK(arena_close(&a));
    pnet_cuda_free(a.base);
}

static void vvor_on_gpu(const struct pnet_vvor *v, size_t count)
{
    struct arena a;
    arena_open(&a, ARENA_BYTES);
    struct pnet_triplets t = triplets_on_device(&a, v->triplets);
    struct pnet_vvor d = *v;
    d.triplets = &t;
    d.in = floats_on_gpu(&a, v->in, v->swapped ? t.rows : t.others, v->shape.cin);
    d.gout = floats_on_gpu(&a, v->gout, v->swapped ? t.others : t.rows, v->shape.cout);
    d.gweight = arena_copy(&a, v->gweight, count * sizeof *v->gweight);
    pnet_cuda_vvor(&d, arena_take(&a, pnet_cuda_vvor_work(&t, d.shape, d.precision)));
    pnet_cuda_copy_out(v->gweight, d.gweight, count * sizeof *v->gweight);
    CHECK(arena_close(&a));
    pnet_cuda_free(a.base);
}

static const struct processor gpu = {gpu_name, mvmr_on_gpu, vvor_on_gpu};
#endif

static void check_result(const struct golden *g, const struct processor *p, const char *what,
    float *x, const struct pnet_npy *want)
{
    double error = conv_error(x, want->data, (size_t)want->count);
    CHECKF(error <= TOLERANCE, "%s: %s on %s: error %g", g->folder, what, p->name(), error);
    free(x);
}

static void check_values(const struct golden *g, const struct processor *p, bool transposed,
    const char *what, const struct pnet_npy *want)
{
    const struct pnet_conv_shape forward = g->shape,
                                 backward = {forward.cout, forward.cin, forward.groups};
    float *out = conv_poison((size_t)want->count);
    p->mvmr(&(struct pnet_mvmr){.triplets = transposed ? &g->backward.t : &g->forward.t,
                .shape = transposed ? backward : forward,
                .in = transposed ? g->grad_out.data : g->features.data,
                .weight = g->weight.data,
                .bias = transposed ? NULL : g->bias.data,
                .out = out,
                .transposed = transposed},
        (size_t)want->count);
    check_result(g, p, what, out, want);
}

static void check_weights(
    const struct golden *g, const struct processor *p, bool swapped, const char *what)
{
    size_t count = (size_t)g->grad_weight.count;
    float *gweight = conv_poison(count);
    p->vvor(&(struct pnet_vvor){.triplets = swapped ? &g->backward.t : &g->forward.t,
                .shape = g->shape,
                .in = g->features.data,
                .gout = g->grad_out.data,
                .gweight = gweight,
                .swapped = swapped},
        count);
    check_result(g, p, what, gweight, &g->grad_weight);
}

static void check_case(const struct golden *g, const struct processor *p)
{
    check_values(g, p, false, "values", &g->out);
    check_values(g, p, true, "feature gradients", &g->grad_features);
    check_weights(g, p, false, "weight gradients by i");
    check_weights(g, p, true, "weight gradients by j");
}

static void check_case_on(const struct golden *g, struct pnet_device device)
{
#ifdef PNET_CUDA_BUILT
    if (device.kind == PNET_CUDA) {
        check_case(g, &gpu);
        return;
    }
#endif
    (void)device;
    const char *isas[3];
    int isa_count = conv_isa_list(isas);
    for (int s = 0; s < isa_count; s++) {
        pnet_cpu_isa_limit(isas[s]);
        check_case(g, &cpu);
    }
}

int main(int argc, char **argv)
{
    struct pnet_device device;
    struct pnet_error e;
    if (pnet_device_parse(argc > 1 ? argv[1] : NULL, &device, &e)) {
        fprintf(stderr, "%s\n", e.message);
        return 2;
    }
    if (pnet_device_check(device, &e)) {
        printf("skipped: %s\n", e.message);
        return 77;
    }
    CHECK(pnet_device_enter(device, &e) == PNET_OK);
    char vectors[2048];
    snprintf(vectors, sizeof vectors, "%s/vectors", check_data_dir());
    struct dirent **entries;
    int cases = 0, n = scandir(vectors, &entries, NULL, alphasort);
    CHECK(n > 0);
    for (int i = 0; i < n; i++) {
        struct golden g;
        snprintf(g.folder, sizeof g.folder, "%s/%s", vectors, entries[i]->d_name);
        int groups = entries[i]->d_name[0] == '.' ? 0 : read_groups(g.folder);
        free(entries[i]);
        if (groups == 0) continue;
        load_case(&g, groups);
        check_case_on(&g, device);
        free_case(&g);
        cases++;
    }
    if (n > 0) free(entries);
    CHECKF(cases >= 30, "%d cases", cases);
    return check_end();
}
