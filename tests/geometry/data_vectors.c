/* The golden cases: triplets of every one, exactly. Rows are in the order of the files.
   argv[1]: "cpu" (default), where the reference is checked too, or "cuda". */
#include <dirent.h>

#include "tests/check.h"
#include "kernels/cpu/geometry/geo_grid.h"
#include "kernels/cpu/geometry/ref_geometry.h"
#include "tests/geometry/arrays.h"
#include "tests/geometry/cloud.h"
#include "runtime/device/device.h"
#ifdef PNET_CUDA_BUILT
#include "tests/cuda/geometry.h"
#endif

/* What case.json says. */
struct golden {
    int kernel, knn, factor, samples;
    double radius, cell; /* radius 0: the default */
    bool cube, coarser, finer;
    unsigned degrade;
};

static double number(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at || !(at = strchr(at, ':'))) {
        fprintf(stderr, "case.json has no %s\n", name);
        exit(1);
    }
    return strtod(at + 1, NULL); /* null reads as 0 */
}

static struct golden read_case(const char *folder)
{
    char path[8192], text[2048];
    snprintf(path, sizeof path, "%s/case.json", folder);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    struct golden g = {
        .kernel = (int)number(text, "\"kernel\": "),
        .knn = (int)number(text, "\"knn\""),
        .factor = (int)number(text, "\"factor\""),
        .samples = (int)number(text, "\"samples\""),
        .radius = number(text, "\"radius\""),
        .cell = number(text, "\"cell\""),
        .cube = strstr(text, "\"cube\"") != NULL,
        .coarser = strstr(text, "\"coarser\"") != NULL,
        .finer = strstr(text, "\"finer\"") != NULL,
    };
    const char *degrade = strstr(text, "\"degrade\"");
    const char *const end = degrade ? strchr(degrade, ']') : NULL;
    for (const char *at = degrade; at && at < end; at++) {
        if (strncmp(at, "\"centre\"", 8) == 0) g.degrade |= PNET_CENTRE;
        if (strncmp(at, "\"neighbour\"", 11) == 0) g.degrade |= PNET_NEIGHBOUR;
        if (strncmp(at, "\"kernel\"", 8) == 0) g.degrade |= PNET_KERNEL;
    }
    return g;
}

static struct cloud *read_level(
    const char *folder, const char *points, const char *sample, int samples, struct pnet_grid grid)
{
    struct array p = array_read(folder, points, "<f4", 4), s = array_read(folder, sample, "<i8", 8);
    int64_t splits[MAX_SAMPLES + 1] = {0};
    if (!p.data || !s.data || s.rows != p.rows || samples > MAX_SAMPLES) {
        fprintf(stderr, "%s: %s and %s do not fit\n", folder, points, sample);
        exit(1);
    }
    for (int64_t i = 0; i < s.rows; i++) splits[((int64_t *)s.data)[i] + 1]++;
    for (int n = 0; n < samples; n++) splits[n + 1] += splits[n];
    struct cloud *c = cloud_of(samples, splits, p.data, grid);
    free(p.data);
    free(s.data);
    return c;
}

static int32_t *read_parents(const char *folder, int64_t rows)
{
    struct array a = array_read(folder, "parent.npy", "<i8", 8);
    int32_t *parent = memory((size_t)rows * sizeof *parent);
    CHECK(a.rows == rows);
    for (int64_t j = 0; j < a.rows; j++) parent[j] = (int32_t)((int64_t *)a.data)[j];
    free(a.data);
    return parent;
}

/* The files list (i, j, k) with i the output row: the fine one where a layer goes finer. */
static void check_triplets(const char *name, const struct set *s, const struct array *want)
{
    const int64_t *t = want->data;
    int64_t wrong = 0, n = 0;
    CHECKF(s->t.count == want->rows, "%s: %lld triplets for %lld", name, (long long)s->t.count,
        (long long)want->rows);
    if (s->t.count != want->rows) return;
    for (int64_t i = 0; i <= s->t.rows; i++) {
        wrong += s->start[i] != n;
        for (; n < want->rows && t[3 * n] == i; n++)
            wrong += t[3 * n + 1] != s->other[n] || t[3 * n + 2] != s->cell[n];
    }
    CHECKF(wrong == 0 && n == want->rows, "%s: of %lld triplets and %lld rows, %lld differ", name,
        (long long)want->rows, (long long)s->t.rows, (long long)wrong);
}

static void check_reference(const char *name, const struct pnet_level *out,
    const struct pnet_level *in, const struct pnet_neighbourhood *nb, const int32_t *parent,
    bool finer, const struct array *want)
{
    int64_t count = 0, wrong = 0;
    const int64_t *w = want->data;
    struct pnet_ref_triplet *t = pnet_ref_triplets(out, in, nb, parent, &count);
    CHECK(t != NULL);
    if (t && finer) pnet_ref_transpose(count, t);
    CHECKF(count == want->rows, "%s: reference has %lld", name, (long long)count);
    for (int64_t n = 0; t && count == want->rows && n < count; n++)
        wrong += w[3 * n] != t[n].i || w[3 * n + 1] != t[n].j || w[3 * n + 2] != t[n].k;
    CHECKF(wrong == 0, "%s: %lld triplets of the reference differ", name, (long long)wrong);
    free(t);
}

/* A set sorted by output row: with `finer`, the transposed form of the set from `in` to `out`. */
static struct set set_on_cpu(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, bool finer)
{
    struct set s = set_make(out, in, nb, parent);
    if (!finer) return s;
    struct set back = set_transposed(&s);
    set_free(&s);
    return back;
}

/* The same by the kernels of a GPU. */
static struct set set_on_gpu(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, bool finer)
{
#ifdef PNET_CUDA_BUILT
    struct arena a;
    arena_open(&a, (size_t)256 << 20);
    struct pnet_level in_device = level_on_device(&a, in), out_device = in_device;
    if (out != in) out_device = level_on_device(&a, out);
    if (parent) parent = arena_copy(&a, parent, (size_t)in->rows * sizeof *parent);
    struct device_set d = device_set_make(&a, &out_device, &in_device, nb, parent);
    if (finer) d = device_set_transposed(&a, &d.t);
    struct set s = set_from_device(&d);
    CHECK(arena_close(&a));
    pnet_cuda_free(a.base);
    return s;
#else
    (void)out, (void)in, (void)nb, (void)parent, (void)finer;
    abort(); /* pnet_device_check has refused the GPU */
#endif
}

static void check_case(const char *folder, const char *name, bool gpu)
{
    struct golden g = read_case(folder);
    bool between = g.coarser || g.finer;
    struct pnet_grid grid = grid_of((float)g.cell, 1),
                     coarse_grid = grid_of((float)g.cell, g.factor);
    struct cloud *fine = read_level(folder, "points.npy", "sample.npy", g.samples, grid),
                 *coarse = NULL;
    int32_t *parent = NULL;
    if (between) {
        coarse =
            read_level(folder, "coarse_points.npy", "coarse_sample.npy", g.samples, coarse_grid);
        parent = read_parents(folder, fine->level.rows);
    }
    struct pnet_neighbourhood nb = {.kernel = g.kernel,
        .radius = (float)(g.radius > 0 ? g.radius : g.kernel / 2.0 * g.cell),
        .knn = g.knn,
        .shape = g.cube ? PNET_CUBE : PNET_BALL,
        .degrade = g.degrade,
        .pointwise = g.kernel == 1 && !between && !(g.radius > 0) && !g.knn};
    struct array want = array_read(folder, "triplets.npy", "<i8", 8);
    CHECKF(want.data && want.columns == 3, "%s", name);
    const struct pnet_level *out = coarse ? &coarse->level : &fine->level, *in = &fine->level;
    struct set s = (gpu ? set_on_gpu : set_on_cpu)(out, in, &nb, parent, g.finer);
    check_triplets(name, &s, &want);
    if (!gpu) check_reference(name, out, in, &nb, parent, g.finer, &want);
    set_free(&s);
    free(want.data);
    free(parent);
    if (coarse) cloud_free(coarse);
    cloud_free(fine);
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
    char path[4200], folder[6000];
    int cases = 0;
    snprintf(path, sizeof path, "%s/vectors", check_data_dir());
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(folder, sizeof folder, "%s/%s/case.json", path, entry->d_name);
        FILE *f = fopen(folder, "r");
        if (!f) continue;
        fclose(f);
        snprintf(folder, sizeof folder, "%s/%s", path, entry->d_name);
        check_case(folder, entry->d_name, device.kind == PNET_CUDA);
        cases++;
    }
    if (dir) closedir(dir);
    printf("%d cases\n", cases);
    CHECKF(cases >= 30, "%d cases", cases);
    return check_end();
}
