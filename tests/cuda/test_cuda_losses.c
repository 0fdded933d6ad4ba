/* Losses and metrics on a GPU against their CPU twins, on random data. The number of rows is known on
   the device alone, and smaller than what the buffers have room for. */
#include "kernels/cpu/loss.h"
#include "tests/check.h"

#include <float.h>

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "kernels/cuda/loss.h"
#include "kernels/cuda/pool.h"
#include "tests/cuda/levels_case.h"

/* Labels on both devices: one a row of scores, or those of its cell. */
struct targets {
    struct pnet_targets cpu, gpu;
};

static struct targets make_targets(int64_t labels, int64_t rows, int32_t classes)
{
    struct targets t = {{.classes = classes}, {.classes = classes}};
    int32_t *label = random_labels(labels, classes);
    if (labels > 1000)
        for (int64_t i = 0; i < labels; i++) label[i] = label[i] == classes / 2 ? -1 : label[i];
    t.cpu.label = label;
    t.gpu.label = device_ints(label, labels, labels + SLACK);
    if (labels != rows) {
        struct cells s = make_cells(labels, rows);
        t.cpu.start = s.cpu.start;
        t.cpu.child = s.cpu.child;
        t.gpu.start = s.gpu.start;
        t.gpu.child = s.gpu.child;
    }
    t.cpu.rows = pnet_count(rows);
    t.cpu.label_rows = pnet_count(labels);
    t.gpu.rows = device_count(rows, 1);
    t.gpu.label_rows = device_count(labels, 1);
    return t;
}

/* A loss is what probabilities near one leave of it: off by their rounding, however small it is. */
static void check_loss(const struct result *r, const float *want)
{
    check_near(name, r->first, want, 1, BOUND, (double)FLT_EPSILON);
}

static void test_cross_entropy(
    const struct targets *t, const float *x, const float *gx, bool weighted, double smoothing)
{
    int64_t n = t->cpu.rows.most * t->cpu.classes;
    double weight[PNET_CROSS_ENTROPY_WEIGHTS];
    for (int i = 0; i < PNET_CROSS_ENTROPY_WEIGHTS; i++) weight[i] = (double)(i % 5) * 0.5;
    struct pnet_cross_entropy cpu = {t->cpu, x, weighted ? weight : NULL, smoothing};
    struct pnet_cross_entropy gpu = {t->gpu, gx, cpu.weight, smoothing};
    float want[2], gloss = 0.75f;
    struct result loss = make_result(NULL, 1, 1, sizeof(float));
    struct result divisor = make_result(NULL, 1, 1, sizeof(float));
    void *work = device_work(pnet_cuda_cross_entropy_work(&gpu));
    void *cpu_work = host_bytes(pnet_cpu_cross_entropy_work(&cpu));
    pnet_cpu_cross_entropy(&cpu, &want[0], &want[1], cpu_work);
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_cross_entropy(&gpu, loss.device, divisor.device, work);
        collect(&loss, turn, name);
        collect(&divisor, turn, name);
    }
    check_loss(&loss, &want[0]);
    check_floats(name, &divisor, &want[1], BOUND);
    pnet_cuda_cross_entropy(&gpu, loss.device, NULL, work);
    pnet_cuda_copy_in(divisor.device, &want[1], sizeof(float));
    const float *on_device = device_floats(&gloss, 1, 1);
    for (int add = 0; add < 2; add++) {
        float *back = random_features(add ? n : 0, true);
        if (!add) back = host_bytes((size_t)n * sizeof *back);
        struct result r = make_features(back, n, n + SLACK * t->cpu.classes);
        pnet_cpu_cross_entropy_backward(&cpu, &want[1], &gloss, add, back, cpu_work);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_cross_entropy_backward(&gpu, divisor.device, on_device, add, r.device, work);
            collect(&r, turn, name);
        }
        check_features(name, &r, back, BOUND);
    }
}

/* Errors that differ by a rounding between the devices may be sorted otherwise, which moves the
   gradient, not the loss: `bound` of the gradient says whether there are such. */
static void test_lovasz(const struct targets *t, const float *x, const float *gx, double bound)
{
    int32_t classes = t->cpu.classes;
    int64_t n = t->cpu.rows.most * classes, most = n + SLACK * classes;
    float want, gloss = -0.5f, *gprob = host_bytes((size_t)n * sizeof *gprob);
    struct result loss = make_result(NULL, 1, 1, sizeof(float));
    struct result u = make_result(NULL, n, most, sizeof(float));
    void *work = device_work(pnet_cuda_lovasz_work(&t->gpu));
    pnet_cpu_lovasz(&t->cpu, x, &want, gprob, host_bytes(pnet_cpu_lovasz_work(&t->cpu)));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_lovasz(&t->gpu, gx, loss.device, u.device, work);
        collect(&loss, turn, name);
        collect(&u, turn, name);
    }
    check_loss(&loss, &want);
    check_floats(name, &u, gprob, bound);
    pnet_cuda_lovasz(&t->gpu, gx, loss.device, NULL, work);
    collect(&loss, 1, name);
    pnet_cuda_copy_in(u.device, gprob, u.live);
    const float *on_device = device_floats(&gloss, 1, 1);
    for (int add = 0; add < 2; add++) {
        float *back = random_floats(n, true);
        if (add)
            for (int64_t i = 0; i < n; i++) back[i] *= 1e-6f;
        round_to_storage(storage, back, n);
        struct result r = make_features(back, n, most);
        pnet_cpu_lovasz_backward(t->cpu.rows, classes, x, gprob, &gloss, add, back);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_lovasz_backward(t->gpu.rows, classes, gx, u.device, on_device, add, r.device);
            collect(&r, turn, name);
        }
        check_features(name, &r, back, BOUND);
    }
}

static void test_metrics(const struct targets *t, const float *x, const float *gx)
{
    int64_t rows = t->cpu.rows.most;
    int32_t classes = t->cpu.classes, *best = host_bytes((size_t)rows * sizeof *best);
    int64_t cells = (int64_t)classes * classes;
    double count[2], *matrix = host_bytes((size_t)cells * sizeof *matrix);
    struct result b = make_result(NULL, rows, rows + SLACK, sizeof(int32_t));
    struct result r = make_result(NULL, 2, 2, sizeof(double));
    struct result m = make_result(NULL, cells, cells, sizeof(double));
    void *work = device_work(pnet_cuda_correct_work());
    void *matrix_work = device_work(pnet_cuda_confusion_work(classes));
    pnet_cpu_best_class(t->cpu.rows, classes, x, best);
    pnet_cpu_correct(&t->cpu, best, count, host_bytes(pnet_cpu_correct_work()));
    pnet_cpu_confusion(&t->cpu, best, matrix, host_bytes(pnet_cpu_confusion_work(classes)));
    pnet_cuda_best_class(t->gpu.rows, classes, gx, b.device);
    collect(&b, 0, name);
    check_bytes(name, &b, best);
    pnet_cuda_copy_in(b.device, best, b.live);
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_correct(&t->gpu, b.device, r.device, work);
        collect(&r, turn, name);
        pnet_cuda_confusion(&t->gpu, b.device, m.device, matrix_work);
        collect(&m, turn, name);
    }
    check_bytes(name, &r, count);
    check_bytes(name, &m, matrix);
}

/* Scores of rows that are the same on both devices or far from it, so that errors are sorted alike: few
   values, of which neither permutations nor shifts nor complements come close. */
static float *distinct_scores(int64_t rows, int32_t classes)
{
    float *x = random_features(rows * classes, true);
    for (int64_t i = 0; i < rows * classes; i++) {
        int32_t c = (int32_t)(i % classes);
        x[i] = c ? x[i] + (float)(c % 32) * 0.140625f : 0;
    }
    round_to_storage(storage, x, rows * classes);
    return x;
}

static void test_losses(int64_t labels, int64_t rows, int32_t classes)
{
    snprintf(name, sizeof name, "losses of %lld labels on %lld rows, %d classes", (long long)labels,
        (long long)rows, (int)classes);
    for (int coarse = 0; coarse < 2; coarse++) {
        struct targets t = make_targets(labels, rows, classes);
        float *x = coarse ? distinct_scores(rows, classes) : random_features(rows * classes, false);
        float *gx = device_features(x, rows * classes, (rows + SLACK) * classes);
        test_cross_entropy(&t, x, gx, false, 0);
        test_lovasz(&t, x, gx, storage != PNET_STORE_F32 ? 1e-2 : coarse ? BOUND : 1e-4);
        release(name);
        t = make_targets(labels, rows, classes);
        x = random_features(rows * classes, coarse);
        if (coarse && rows > 1) x[(rows - 1) * classes] = NAN; /* wins as the first class */
        gx = device_features(x, rows * classes, (rows + SLACK) * classes);
        test_metrics(&t, x, gx);
        if (coarse && rows > 1) x[(rows - 1) * classes] = 1;
        put_features(gx, x, rows * classes);
        test_cross_entropy(&t, x, gx, classes <= PNET_CROSS_ENTROPY_WEIGHTS, 0.1);
        release(name);
    }
}

static void test_mse(int64_t rows, int32_t c)
{
    snprintf(name, sizeof name, "squares of %lld x %d", (long long)rows, (int)c);
    int64_t n = rows * c, most = (rows + SLACK) * c;
    float *x = random_features(n, false), *y = random_features(n, false), want, gloss = 3;
    struct pnet_count count = device_count(rows, c);
    float *gx = device_features(x, n, most), *gy = device_features(y, n, most);
    struct result loss = make_result(NULL, 1, 1, sizeof(float));
    void *work = device_work(pnet_cuda_mse_work());
    pnet_cpu_mse(pnet_count(n), x, y, &want, host_bytes(pnet_cpu_mse_work()));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_mse(count, gx, gy, loss.device, work);
        collect(&loss, turn, name);
    }
    check_floats(name, &loss, &want, BOUND);
    const float *on_device = device_floats(&gloss, 1, 1);
    for (int add = 0; add < 2; add++) {
        float *back = random_features(n, false);
        struct result r = make_features(back, n, most);
        pnet_cpu_mse_backward(pnet_count(n), x, y, &gloss, add, back);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_mse_backward(count, gx, gy, on_device, add, r.device);
            collect(&r, turn, name);
        }
        check_features(name, &r, back, BOUND);
    }
    struct result copy = make_features(NULL, n, most);
    pnet_cuda_copy_elements(count, gx, copy.device);
    collect(&copy, 0, name);
    check_features(name, &copy, x, 0);
    release(name);
}

/* A recorded launch goes on with the numbers and data that stand in device memory when it is
   replayed. */
static void test_replay(void)
{
    enum { MOST = 5000 + SLACK, CLASSES = 7 };
    static const int64_t counts[] = {5000, 1, 3000, 0};
    float gloss = 1;
    struct targets all = make_targets(5000, 5000, CLASSES);
    float *x = distinct_scores(5000, CLASSES);
    float *gx = device_floats(x, 5000 * CLASSES, MOST * CLASSES);
    int64_t *live = (int64_t *)(uintptr_t)all.gpu.rows.live;
    all.gpu.label_rows.live = live;
    struct pnet_cross_entropy gpu = {all.gpu, gx, NULL, 0};
    struct result lovasz = make_result(NULL, 1, 1, sizeof(float));
    struct result entropy = make_result(NULL, 1, 1, sizeof(float));
    struct result divisor = make_result(NULL, 1, 1, sizeof(float));
    struct result gradient = make_result(NULL, 5000 * CLASSES, MOST * CLASSES, sizeof(float));
    const float *scale = device_floats(&gloss, 1, 1);
    float *gprob = device_floats(NULL, 0, MOST * CLASSES);
    void *work = device_work(pnet_cuda_lovasz_work(&all.gpu));
    void *other_work = device_work(pnet_cuda_cross_entropy_work(&gpu));
    snprintf(name, sizeof name, "replay");
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    pnet_cuda_lovasz(&all.gpu, gx, lovasz.device, gprob, work);
    pnet_cuda_lovasz_backward(all.gpu.rows, CLASSES, gx, gprob, scale, false, gradient.device);
    pnet_cuda_cross_entropy(&gpu, entropy.device, divisor.device, other_work);
    pnet_cuda_cross_entropy_backward(
        &gpu, divisor.device, scale, true, gradient.device, other_work);
    void *record = pnet_cuda_record_end();
    CHECKF(record, "%s", pnet_cuda_error());
    for (int i = 0; record && i < 4; i++) {
        int64_t rows = counts[i];
        struct pnet_targets t = all.cpu;
        t.rows = t.label_rows = pnet_count(rows);
        struct pnet_cross_entropy cpu = {t, x, NULL, 0};
        float want[3], *u = host_bytes((size_t)rows * CLASSES * sizeof *u);
        float *back = host_bytes((size_t)rows * CLASSES * sizeof *back);
        void *cpu_work = host_bytes(pnet_cpu_lovasz_work(&t) + pnet_cpu_cross_entropy_work(&cpu));
        pnet_cpu_lovasz(&t, x, &want[0], u, cpu_work);
        pnet_cpu_lovasz_backward(t.rows, CLASSES, x, u, &gloss, false, back);
        pnet_cpu_cross_entropy(&cpu, &want[1], &want[2], cpu_work);
        pnet_cpu_cross_entropy_backward(&cpu, &want[2], &gloss, true, back, cpu_work);
        gradient.live = (size_t)rows * CLASSES * sizeof(float);
        pnet_cuda_copy_in(live, &rows, sizeof rows);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_replay(record);
            collect(&lovasz, turn, name);
            collect(&entropy, turn, name);
            collect(&gradient, turn, name);
        }
        check_floats(name, &lovasz, &want[0], BOUND);
        check_floats(name, &entropy, &want[1], BOUND);
        check_floats(name, &gradient, back, BOUND);
    }
    pnet_cuda_record_free(record);
    release(name);
}

static void test_all(bool small)
{
    static const int32_t channels[] = {1, 3, 33, 64, 512};
    static const int32_t classes[] = {1, 2, 5, 20, 40, 150, 1200};
    const bool few = small || storage != PNET_STORE_F32;
    for (int i = 0; i < 5; i++) test_mse(few ? 300 : channels[i] > 64 ? 6000 : 100000, channels[i]);
    test_mse(1, 3);
    test_mse(0, 4);
    for (int i = 0; i < (small ? 4 : 7); i++) {
        int32_t c = classes[i];
        test_losses(700, 700, c);
        if (small && c != 5) continue;
        test_losses(1, 1, c);
        test_losses(3000, 400, c);
        if (few || c > 40) continue;
        test_losses(100000, 100000, c);
        test_losses(100000, 9000, c);
    }
    test_losses(0, 0, 5);
    test_losses(0, 3, 5);
}

/* With an argument only what a sanitizer gets through in seconds; every kernel is among it. */
int main(int argc, char **argv)
{
    const char *why;
    const bool small = getenv("PNET_SHORT") || (argc > 1 && !strcmp(argv[1], "small"));
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    for (int i = PNET_STORE_FP16; i >= PNET_STORE_F32; i--) {
        storage = (enum pnet_storage)i;
        test_all(small);
    }
    test_replay();
    return check_end();
}
#endif
