/* Which kernel forms which sum on a GPU: a walk over shapes, and the tables of kernels/cuda/conv/README.md, which
   `test_conv_choice print` writes. Needs no GPU. */
#include "kernels/conv_compare.h"
#include "kernels/conv_plan.h"
#include "kernels/cuda/conv/conv_choice.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static const char readme[] = "kernels/cuda/conv/README.md";
static const int architectures[] = {75, 80, 86, 89, 90, 100, 120};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures, PRECISIONS = 4 };

static struct pnet_conv_sum sum_of(int64_t rows, int32_t cells, struct pnet_conv_shape shape,
    enum pnet_precision precision, int architecture)
{
    return (struct pnet_conv_sum){.shape = shape,
        .cells = cells,
        .rows = rows,
        .count = 14 * rows,
        .precision = precision,
        .storage = pnet_storage_of(precision),
        .architecture = architecture};
}

/* Forward or dF; then dW, which has tiles where forward has asked for them. */
static void choose_form(struct pnet_conv_sum *s, bool dense, bool weights)
{
    s->weights = false;
    s->form = dense                           ? PNET_CONV_DENSE
              : pnet_cuda_conv_reads_tiles(s) ? PNET_CONV_TILES
                                              : PNET_CONV_TRIPLETS;
    s->weights = weights;
}

/* What stands in the page: a layer of 100,000 rows, or as many as it says. */
static const struct example {
    const char *text;
    int64_t rows;
    int32_t cells;
    struct pnet_conv_shape shape;
} examples[] = {
    {"3 to 32 channels, `kernel=3`", 100000, 27, {3, 32, 1}},
    {"32 to 32, `kernel=3`", 100000, 27, {32, 32, 1}},
    {"64 to 128, `kernel=2`", 100000, 8, {64, 128, 1}},
    {"128 to 256, `kernel=3`", 100000, 27, {128, 256, 1}},
    {"50 to 70, `kernel=3`", 100000, 27, {50, 70, 1}},
    {"256 to 256, `kernel=3`, 500 rows", 500, 27, {256, 256, 1}},
    {"64 to 64, `kernel=3`, `groups=4`", 100000, 27, {64, 64, 4}},
    {"64 to 64, `kernel=3`, `groups=64`", 100000, 27, {64, 64, 64}},
    {"128 to 128, `kernel=5`", 100000, 125, {128, 128, 1}},
    {"128 to 128, `kernel=7`", 100000, 343, {128, 128, 1}},
    {"128 to 128, `kernel=11`", 100000, 1331, {128, 128, 1}},
    {"32 to 32, `kernel=31`", 100000, 29791, {32, 32, 1}},
    {"linear, 64 to 64", 100000, 1, {64, 64, 1}},
    {"linear, 512 to 13", 100000, 1, {512, 13, 1}},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static const char *example_kernel(
    const struct example *l, enum pnet_precision precision, int architecture, int direction)
{
    struct pnet_conv_sum s = sum_of(l->rows, l->cells, l->shape, precision, architecture);
    if (direction == 1)
        s.shape = (struct pnet_conv_shape){l->shape.cout, l->shape.cin, l->shape.groups};
    choose_form(&s, l->cells == 1, direction == 2);
    return pnet_cuda_conv_kernel(&s);
}

static void print_choices(FILE *f)
{
    fputs("| sum | kernel | layer | precision | triplets | GPU | file "
          "|\n|---|---|---|---|---|---|---|\n",
        f);
    for (int i = 0; i < pnet_cuda_conv_choice_count; i++) {
        const struct conv_choice *c = &pnet_cuda_conv_choices[i];
        fprintf(f, "| %s | %s | %s | %s | %s | %s | `%s` |\n", c->sums, c->name, c->shape,
            c->storage, c->form,
            c->unit == CONV_UNIT_WARPGROUP ? "90"
            : c->unit == CONV_UNIT_WARP    ? "others from 80 on"
                                           : "any",
            c->file);
    }
}

static void print_examples(FILE *f)
{
    static const char *const names[] = {"fp32", "tf32", "bf16, fp16"};
    fputs("| layer | precision | forward | dF | dW | others from 80 on: forward and dF, dW |\n"
          "|---|---|---|---|---|---|\n",
        f);
    for (int i = 0; i < EXAMPLES; i++)
        for (int p = PNET_FP32; p <= PNET_BF16; p++) {
            fprintf(f, "| %s | %s |", examples[i].text, names[p]);
            for (int d = 0; d < 3; d++)
                fprintf(f, " %s |", example_kernel(&examples[i], (enum pnet_precision)p, 90, d));
            fprintf(f, " %s, %s |\n", example_kernel(&examples[i], (enum pnet_precision)p, 80, 0),
                example_kernel(&examples[i], (enum pnet_precision)p, 80, 2));
        }
}

/* The last column and the last row of a layer say several things at once: they must be the same. */
static void check_joined(const struct example *l)
{
    for (int d = 0; d < 3; d++)
        for (int a = 0; a < ARCHITECTURES; a++) {
            int g = architectures[a];
            CHECK(!strcmp(example_kernel(l, PNET_BF16, g, d), example_kernel(l, PNET_FP16, g, d)));
            for (int p = 0; p < PRECISIONS && g != 90 && g >= 80; p++) {
                const char *other = example_kernel(l, (enum pnet_precision)p, 80, d / 2 * 2);
                CHECKF(!strcmp(other, example_kernel(l, (enum pnet_precision)p, g, d)),
                    "%s: %d differs from 80", l->text, g);
            }
        }
}

static char *read_all(FILE *f)
{
    enum { MOST = 1 << 20 };
    char *text = calloc(MOST, 1);
    if (!text || !f) abort();
    size_t n = fread(text, 1, MOST - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static void check_readme(void (*print)(FILE *f), const char *what)
{
    FILE *f = tmpfile();
    if (!f) abort();
    print(f);
    rewind(f);
    char *want = read_all(f), *page = read_all(fopen(readme, "r"));
    CHECKF(strstr(page, want), "%s: the table of %s is not what test_conv_choice prints", readme,
        what);
    free(want), free(page);
}

static bool reached[64];

static bool is_half(const struct pnet_conv_sum *s)
{
    return s->precision == PNET_BF16 || s->precision == PNET_FP16;
}

/* What holds of a choice whatever the table says. */
static void check_choice(const struct pnet_conv_sum *s, const struct conv_choice *c)
{
    char text[160];
    snprintf(text, sizeof text, "%s for %d -> %d, %d groups, %d cells, form %d, precision %d, %d",
        c->name, s->shape.cin, s->shape.cout, s->shape.groups, s->cells, (int)s->form,
        (int)s->precision, s->architecture);
    bool slim = s->exact && is_half(s),
         plain = c->kernel == CONV_PLAIN || c->kernel == CONV_DEPTHWISE;
    CHECKF((c->kernel == CONV_SLIM) == slim, "%s", text);
    if (slim) return; /* of any GPU */
    bool apart =
        s->shape.groups > 1 && s->shape.groups == s->shape.cin && s->shape.groups == s->shape.cout;
    if (!pnet_conv_algo_is_usual(s->algo)) return;
    bool warps = c->kernel == MVMR_BY_WARPS || c->kernel == VVOR_BY_WARPS;
    CHECKF(s->architecture == 90 ? !warps : plain || warps, "%s", text);
    CHECKF(s->architecture >= 80 || plain, "%s", text);
    /* From 80 on nothing is left to ordinary units but depthwise layers. */
    CHECKF(s->architecture < 80 || !plain || apart, "%s", text);
    CHECKF((c->kernel == CONV_DEPTHWISE) == apart, "%s", text);
    CHECKF(!c->tiles || s->form != PNET_CONV_TRIPLETS, "%s", text);
    CHECKF(c->kernel != VVOR_BY_CELLS || s->precision == PNET_FP32, "%s", text);
    bool half_alone = c->kernel == MVMR_BY_FEW || c->kernel == MVMR_BY_DENSE ||
                      c->kernel == MVMR_BY_WIDE || c->kernel == VVOR_BY_NARROW;
    CHECKF(!half_alone || is_half(s), "%s", text);
    CHECKF(c->kernel != VVOR_BY_SORTED || s->precision != PNET_FP32, "%s", text);
    CHECKF(c->kernel != MVMR_BY_TILE || s->precision == PNET_TF32, "%s", text);
}

/* The workspace that a plan sets aside is enough for what is chosen. */
static void check_work(const struct pnet_conv_sum *s, const struct conv_choice *c)
{
    struct pnet_triplets t = {
        .rows = s->rows, .others = s->rows, .count = s->count, .cells = s->cells};
    struct conv_case k = pnet_cuda_conv_case_of(s);
    size_t need = 0, have;
    if (s->form == PNET_CONV_DENSE && c->kernel == VVOR_BY_WARPS) {
        pnet_cuda_conv_plan_for(s->architecture);
        CHECK(pnet_cuda_outer_work(k.set.rows, s->shape.cin, s->shape.cout, s->precision) >=
              pnet_cuda_conv_warps_outer_plan(k.set.rows, s->shape.cin, s->shape.cout, !is_half(s))
                  .bytes);
    }
    if (s->form == PNET_CONV_DENSE || !pnet_conv_algo_is_usual(s->algo)) return;
    pnet_cuda_conv_plan_for(s->architecture);
    have = s->weights ? pnet_cuda_vvor_work(&t, s->shape, s->precision)
                      : pnet_cuda_mvmr_work(&t, s->shape, s->precision);
    if (c->kernel == MVMR_BY_FEW) need = pnet_cuda_conv_few_plan(&k.set, &k.groups).bytes;
    if (c->kernel == VVOR_BY_NARROW) need = pnet_cuda_conv_narrow_plan(&k.set, &k.groups).bytes;
    if (c->kernel == VVOR_BY_WARPS)
        need = pnet_cuda_conv_sorted_plan(&k.set, &k.groups, false, !is_half(s), true).bytes;
    enum conv_form form = pnet_cuda_conv_form_of(s->precision);
    if (c->kernel == MVMR_BY_WARPS && s->form == PNET_CONV_TILES)
        for (int pieces = 1; pieces <= 2; pieces++) {
            size_t bytes = pnet_cuda_conv_warp_tiles_plan(form, &k.set, &k.groups, pieces).bytes;
            if (bytes > need) need = bytes;
        }
    else if (c->kernel == MVMR_BY_WARPS) {
        struct conv_blocks b = pnet_cuda_conv_warp_blocks(form, s->cells, &k.groups);
        need = pnet_cuda_conv_blocks_bytes(&b);
    }
    if (c->kernel == VVOR_BY_SORTED)
        need =
            pnet_cuda_conv_sorted_plan(&k.set, &k.groups, false, s->precision == PNET_TF32, false)
                .bytes;
    if (c->kernel == VVOR_BY_CELLS || c->kernel == VVOR_BY_TILES || c->kernel == VVOR_BY_TRIPLETS) {
        int columns = pnet_cuda_conv_columns_at_once(s->cells, &k.groups);
        if (columns < k.groups.cout) k.groups.cout = columns;
        need = c->kernel == VVOR_BY_CELLS ? pnet_cuda_cells_vvor_work(&k.set, &k.groups)
               : c->kernel == VVOR_BY_TILES
                   ? pnet_cuda_conv_tiles_plan(&k.set, &k.groups, false, 32).bytes
                   : pnet_cuda_vvor_make_plan(&k.set, &k.groups, false, 32).bytes;
    }
    CHECKF(have >= need, "%s for %d -> %d, %d cells: %zu of %zu bytes", c->name, s->shape.cin,
        s->shape.cout, s->cells, have, need);
}

/* A row launches what it is a row of, and nothing else; those of compare/ are launched elsewhere. */
static void check_launches(void)
{
#ifdef PNET_CUDA_BUILT
    for (int i = 0; i < pnet_cuda_conv_choice_count; i++) {
        const struct conv_choice *c = &pnet_cuda_conv_choices[i];
        bool apart = !strncmp(c->file, "compare/", 8);
        CHECKF((c->mvmr != NULL) == (!apart && c->sums[0] != 'V'), "%s", c->name);
        CHECKF((c->vvor != NULL) == (!apart && c->sums[0] != 'M'), "%s", c->name);
    }
#endif
}

static void check_sum(const struct pnet_conv_sum *s)
{
    struct conv_case k = pnet_cuda_conv_case_of(s);
    const struct conv_choice *c = pnet_cuda_conv_choose(&k);
    reached[c - pnet_cuda_conv_choices] = true;
    CHECK(c->sums[0] != (s->weights ? 'M' : 'V'));
    CHECK(!strcmp(pnet_cuda_conv_kernel(s), c->name));
    check_choice(s, c);
    check_work(s, c);
}

/* Coordinates of a layer, whose features are stored as the precision says. */
static void walk_exact(void)
{
    static const int32_t widths[] = {1, 3, 8};
    for (int i = 0; i < 3; i++)
        for (int p = 0; p < PRECISIONS; p++)
            for (int a = 0; a < ARCHITECTURES; a++)
                for (int weights = 0; weights < 2; weights++) {
                    struct pnet_conv_shape shape = {512, widths[i], 1};
                    struct pnet_conv_sum s =
                        sum_of(5000, 1, shape, (enum pnet_precision)p, architectures[a]);
                    s.exact = true;
                    choose_form(&s, true, weights);
                    check_sum(&s);
                }
}

/* The outer product of coordinates has room for all that is chosen for it, whatever the number of rows, and never less for more
   of them. */
static void check_slim_work(void)
{
    static const int32_t widths[] = {1, 8, 33, 512, 1030, 65536};
    for (int i = 0; i < 6; i++) {
        size_t before = 0;
        for (int64_t n = 0; n < 200000; n += n / 50 + 1) {
            struct slim_plan p = pnet_cuda_conv_slim_plan(pnet_count(n), widths[i], 3);
            size_t have = pnet_cuda_outer_work(pnet_count(n), widths[i], 3, PNET_BF16);
            CHECK(p.shares <= p.most && p.bytes >= before && have >= p.bytes);
            CHECK(p.bytes <= (size_t)16 << 20 && (n > 0) == (p.shares > 0));
            before = p.bytes;
        }
    }
}

/* All that a model can ask for: forms as the runtime has them, features stored as the precision says. */
static void walk(struct pnet_conv_sum s, bool dense)
{
    for (int a = 0; a < ARCHITECTURES; a++)
        for (int p = 0; p < PRECISIONS; p++)
            for (int weights = 0; weights < 2; weights++) {
                s.architecture = architectures[a];
                s.precision = (enum pnet_precision)p;
                s.storage = pnet_storage_of(s.precision);
                choose_form(&s, dense, weights);
                check_sum(&s);
            }
}

static void walk_shapes(void)
{
    static const int32_t widths[] = {1, 3, 8, 13, 32, 33, 64, 96, 128, 192, 256, 512};
    static const int32_t kernels[] = {1, 2, 3, 4, 5, 7, 10, 11, 16, 17, 31};
    static const int64_t rows[] = {0, 1, 300, 5000, 1000000};
    enum { WIDTHS = sizeof widths / sizeof *widths, KERNELS = sizeof kernels / sizeof *kernels };
    for (int i = 0; i < WIDTHS * WIDTHS * KERNELS * 5; i++) {
        int32_t k = kernels[i % KERNELS];
        struct pnet_conv_shape shape = {
            widths[i / KERNELS % WIDTHS], widths[i / KERNELS / WIDTHS % WIDTHS], 1};
        int64_t n = rows[i / KERNELS / WIDTHS / WIDTHS];
        walk(sum_of(n, k * k * k, shape, PNET_FP32, 0), false);
        if (k == 1) walk(sum_of(n, 1, shape, PNET_FP32, 0), true);
        for (int32_t g = 2; g <= shape.cin; g *= 2) {
            if (shape.cin % g || shape.cout % g) continue;
            shape.groups = g;
            walk(sum_of(n, k * k * k, shape, PNET_FP32, 0), false);
        }
    }
}

static void walk_algorithms(void)
{
    for (int algo = 0; algo < PNET_ALGO_COUNT; algo++) {
        struct pnet_conv_sum s =
            sum_of(5000, 27, (struct pnet_conv_shape){32, 32, 1}, PNET_FP32, 90);
        s.algo = (enum pnet_conv_algo)algo;
        for (int weights = 0; weights < 2; weights++) {
            choose_form(&s, false, weights);
            CHECK((s.form == PNET_CONV_TILES) == (algo == PNET_ALGO_DEFAULT));
            check_sum(&s);
        }
        struct pnet_conv_sum cpu = s;
        CHECK(pnet_conv_algo_is_usual(s.algo) == !strcmp(pnet_cpu_conv_kernel(&cpu), "panels"));
    }
}

/* From 11 cells an axis on a set is not laid out as tiles: its kernels use the matrix unit all the same. */
static void check_many_cells(void)
{
    for (int32_t k = 10; k <= PNET_KERNEL_LIMIT; k++)
        for (int p = 0; p < PRECISIONS; p++)
            for (int weights = 0; weights < 2; weights++) {
                struct pnet_conv_sum s = sum_of(5000, k * k * k,
                    (struct pnet_conv_shape){32, 32, 1}, (enum pnet_precision)p, 90);
                choose_form(&s, false, weights);
                CHECK((s.form == PNET_CONV_TILES) == (k == 10));
                CHECKF(k == 10 || !strcmp(pnet_cuda_conv_kernel(&s), "triplets"),
                    "%d cells an axis: %s", k, pnet_cuda_conv_kernel(&s));
            }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "print")) {
        print_choices(stdout);
        puts("");
        print_examples(stdout);
        return 0;
    }
    CHECK(pnet_cuda_conv_choice_count <= (int)(sizeof reached / sizeof *reached));
    for (int i = 0; i < EXAMPLES; i++) check_joined(&examples[i]);
    check_readme(print_choices, "kernels");
    check_readme(print_examples, "layers");
    walk_shapes();
    walk_algorithms();
    walk_exact();
    check_slim_work();
    check_launches();
    check_many_cells();
    for (int i = 0; i < pnet_cuda_conv_choice_count; i++)
        CHECKF(reached[i], "nothing reaches %s of %s", pnet_cuda_conv_choices[i].name,
            pnet_cuda_conv_choices[i].sums);
    return check_end();
}
