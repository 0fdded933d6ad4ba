/* Convolutions of few rows on the GPU, which are divided among kernel cells and input channels, against their definition
   in double. */
#include "tests/kernels/tile_case.h"

#ifdef PNET_CUDA_BUILT
#include "tests/cuda/mvmr_case.h"

static void check_mvmr(const struct layer *l, const struct pnet_triplets *t, bool transposed,
    bool add, bool with_bias, enum pnet_activation act)
{
    struct mvmr_case c = {pnet_cuda_mvmr, 1, 2};
    check_mvmr_case(&c, l, t, transposed, add, with_bias, act);
}

static void check_layer(struct layer l, bool thorough)
{
    struct conv_set set = conv_set_random(l.rows, l.others, l.cells, l.degree, 23);
    check_mvmr(&l, &set.t, false, false, true, PNET_ACT_NONE);
    check_mvmr(&l, &set.t, true, false, false, PNET_ACT_NONE);
    if (thorough) {
        check_mvmr(&l, &set.t, false, true, true, PNET_ACT_NONE);
        check_mvmr(&l, &set.t, true, true, false, PNET_ACT_NONE);
        check_mvmr(&l, &set.t, false, false, true, PNET_ACT_RELU);
        check_mvmr(&l, &set.t, true, false, false, PNET_ACT_LEAKY);
    }
    conv_set_free(&set);
}

/* Widths that rows are read at once in, and others; one block of columns and several. */
static void check_widths(void)
{
    static const int32_t widths[] = {3, 16, 20, 33, 64, 128, 130};
    static const int64_t rows[] = {1, 63, 64, 65, 200};
    enum { WIDTHS = sizeof widths / sizeof *widths, ROWS = sizeof rows / sizeof *rows };
    for (int a = 0; a < WIDTHS; a++)
        for (int b = 0; b < WIDTHS; b++) {
            if ((a + b) % 2 && widths[a] != 64) continue;
            struct layer l = {rows[(a + b) % ROWS], 60 + a, 27, 5, {widths[a], widths[b], 1}};
            check_layer(l, a == b);
        }
}

/* Wide layers, few cells and many, empty rows and long runs, groups of all kinds. */
static void check_kinds(void)
{
    static const struct layer layers[] = {{1, 4, 27, 3, {512, 512, 1}},
        {64, 64, 27, 8, {512, 512, 1}}, {180, 170, 27, 8, {256, 256, 1}},
        {65, 300, 27, 4, {256, 512, 1}}, {960, 900, 27, 9, {128, 128, 1}},
        {1000, 700, 27, 2, {1024, 64, 1}}, {200, 100, 27, 2, {96, 1024, 1}},
        {250, 200, 27, 1, {1024, 1024, 1}}, {300, 300, 8, 6, {640, 320, 1}},
        {1000, 900, 1, 1, {128, 256, 1}}, {120, 130, 343, 40, {96, 128, 1}},
        {90, 7000, 2, 900, {64, 32, 1}}, {700, 50, 125, 30, {48, 72, 1}},
        {200, 150, 27, 6, {64, 64, 4}}, {150, 150, 27, 6, {288, 64, 2}},
        {333, 150, 27, 6, {256, 256, 2}}, {65, 90, 27, 6, {512, 512, 4}},
        {64, 64, 27, 6, {20, 60, 5}}, {70, 0, 27, 3, {64, 64, 1}}, {70, 20, 27, 0, {64, 64, 1}},
        {2000, 1500, 27, 9, {64, 64, 1}}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) check_layer(layers[i], i % 5 == 1);
}

/* Layers whose packed weights would take too much memory are multiplied in parts. */
static void check_parts(void)
{
    struct layer l = {150, 100, 27, 1, {768, 1100, 1}};
    struct conv_set set = conv_set_random(l.rows, l.others, l.cells, l.degree, 29);
    struct mvmr_case c = {pnet_cuda_mvmr_whole, 0, 2};
    check_mvmr_case(&c, &l, &set.t, false, false, true, PNET_ACT_NONE);
    check_mvmr_case(&c, &l, &set.t, true, false, false, PNET_ACT_RELU);
    conv_set_free(&set);
}

/* A workspace bound for a capacity class serves every batch of the class, and stays small. */
static void check_work(struct pnet_conv_shape s)
{
    for (int p = 0; p < PRECISIONS; p++) {
        size_t before = 0;
        for (int64_t rows = 0; rows < 1000000; rows += 1 + rows / 9) {
            struct pnet_triplets t = {.rows = rows, .others = rows, .count = 7 * rows, .cells = 27};
            size_t work = pnet_cuda_mvmr_work(&t, s, (enum pnet_precision)p);
            CHECKF(work >= before && work <= 64u << 20, "%d channels, %s, %lld rows: %zu bytes",
                s.cin, precision_name[p], (long long)rows, work);
            before = work;
        }
    }
}

int main(void)
{
    const char *why = NULL;
    check_work((struct pnet_conv_shape){33, 64, 1});
    check_work((struct pnet_conv_shape){512, 512, 1});
    check_work((struct pnet_conv_shape){1024, 1024, 1});
    check_work((struct pnet_conv_shape){2048, 2048, 1});
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return check_failed ? 1 : 77;
    }
    if (getenv("PNET_SHORT")) {
        check_layer((struct layer){65, 60, 27, 5, {72, 130, 1}}, true);
        check_layer((struct layer){200, 60, 27, 5, {33, 20, 1}}, false);
    } else {
        check_widths();
        check_kinds();
        check_parts();
    }
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    return check_end();
}
#else
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#endif
