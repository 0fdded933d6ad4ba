/* Losses and metrics on a GPU against their CPU twins, on random data. The number of rows is known on
   the device alone, and smaller than what the buffers have room for. */
#include "kernels/loss.h"
#include "tests/check.h"

#include <float.h>

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "kernels/pool.h"
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
    double weight[PNET_CLASS_WEIGHTS];
    for (int i = 0; i < PNET_CLASS_WEIGHTS; i++) weight[i] = (double)(i % 5) * 0.5;
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

/* The power multiplies the rounding of what a row leaves to other classes. */
static void test_focal(
    const struct targets *t, const float *x, const float *gx, bool weighted, double gamma)
{
    const double bound = BOUND * (1 + gamma);
    int64_t n = t->cpu.rows.most * t->cpu.classes;
    double weight[PNET_CLASS_WEIGHTS];
    for (int i = 0; i < PNET_CLASS_WEIGHTS; i++) weight[i] = (double)(i % 5) * 0.5;
    struct pnet_focal cpu = {t->cpu, x, weighted ? weight : NULL, gamma};
    struct pnet_focal gpu = {t->gpu, gx, cpu.weight, gamma};
    float want[2], gloss = 1.25f;
    struct result loss = make_result(NULL, 1, 1, sizeof(float));
    struct result divisor = make_result(NULL, 1, 1, sizeof(float));
    void *work = device_work(pnet_cuda_focal_work(&gpu));
    void *cpu_work = host_bytes(pnet_cpu_focal_work(&cpu));
    pnet_cpu_focal(&cpu, &want[0], &want[1], cpu_work);
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_focal(&gpu, loss.device, divisor.device, work);
        collect(&loss, turn, name);
        collect(&divisor, turn, name);
    }
    check_floats(name, &loss, &want[0], bound);
    check_floats(name, &divisor, &want[1], BOUND);
    pnet_cuda_focal(&gpu, loss.device, NULL, work);
    pnet_cuda_copy_in(divisor.device, &want[1], sizeof(float));
    const float *on_device = device_floats(&gloss, 1, 1);
    for (int add = 0; add < 2; add++) {
        float *back = random_features(add ? n : 0, true);
        if (!add) back = host_bytes((size_t)n * sizeof *back);
        struct result r = make_features(back, n, n + SLACK * t->cpu.classes);
        pnet_cpu_focal_backward(&cpu, &want[1], &gloss, add, back, cpu_work);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_focal_backward(&gpu, divisor.device, on_device, add, r.device, work);
            collect(&r, turn, name);
        }
        check_features(name, &r, back, bound);
    }
}

static void test_dice(const struct targets *t, const float *x, const float *gx, bool square)
{
    int64_t n = t->cpu.rows.most * t->cpu.classes, slopes = 2 * t->cpu.classes;
    struct pnet_dice cpu = {t->cpu, x, square}, gpu = {t->gpu, gx, square};
    float want, gloss = 0.5f;
    double *slope = host_bytes((size_t)slopes * sizeof *slope), error = 0, size = 0;
    struct result loss = make_result(NULL, 1, 1, sizeof(float));
    struct result u = make_result(NULL, slopes, slopes, sizeof(double));
    void *work = device_work(pnet_cuda_dice_work(&gpu));
    void *cpu_work = host_bytes(pnet_cpu_dice_work(&cpu));
    pnet_cpu_dice(&cpu, &want, slope, cpu_work);
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_dice(&gpu, loss.device, u.device, work);
        collect(&loss, turn, name);
        collect(&u, turn, name);
    }
    check_loss(&loss, &want);
    for (int64_t i = 0; i < slopes; i++) {
        double d = ((const double *)u.first)[i] - slope[i];
        error += d * d;
        size += slope[i] * slope[i];
    }
    CHECKF(sqrt(error) <= BOUND * sqrt(size), "%s: slopes are off by %g of %g", name, sqrt(error),
        sqrt(size));
    pnet_cuda_dice(&gpu, loss.device, NULL, work);
    collect(&loss, 1, name);
    pnet_cuda_copy_in(u.device, slope, u.live);
    const float *on_device = device_floats(&gloss, 1, 1);
    for (int add = 0; add < 2; add++) {
        float *back = random_features(n, true);
        for (int64_t i = 0; add && i < n; i++) back[i] *= 0x1p-10f;
        struct result r = make_features(back, n, n + SLACK * t->cpu.classes);
        pnet_cpu_dice_backward(&cpu, slope, &gloss, add, back, cpu_work);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_dice_backward(&gpu, u.device, on_device, add, r.device, work);
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

static void test_top_k(const struct targets *t, const float *x, const float *gx)
{
    struct result r = make_result(NULL, 2, 2, sizeof(double));
    void *work = device_work(pnet_cuda_correct_work());
    void *cpu_work = host_bytes(pnet_cpu_correct_work());
    for (int32_t k = 1; k <= t->cpu.classes; k = 3 * k + 1) {
        double count[2];
        pnet_cpu_top_k(&t->cpu, k, x, count, cpu_work);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_top_k(&t->gpu, k, gx, r.device, work);
            collect(&r, turn, name);
        }
        check_bytes(name, &r, count);
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
        for (int64_t i = 2; coarse && i < rows * classes; i += 7) x[i] = NAN;
        put_features(gx, x, rows * classes);
        test_top_k(&t, x, gx);
        for (int64_t i = 2; coarse && i < rows * classes; i += 7) x[i] = 1;
        if (coarse && rows > 1) x[(rows - 1) * classes] = 1;
        put_features(gx, x, rows * classes);
        test_cross_entropy(&t, x, gx, classes <= PNET_CLASS_WEIGHTS, 0.1);
        release(name);
        t = make_targets(labels, rows, classes);
        x = random_features(rows * classes, coarse);
        gx = device_features(x, rows * classes, (rows + SLACK) * classes);
        test_focal(&t, x, gx, coarse && classes <= PNET_CLASS_WEIGHTS, coarse ? 0.5 : 2);
        test_dice(&t, x, gx, coarse);
        release(name);
    }
}

enum { SQUARES, HUBER, SIZES, DIFFERENCES };
static const double DELTA = 0.75;

static void differences_cpu(
    int kind, int64_t n, const float *x, const float *y, float *loss, void *work)
{
    if (kind == SQUARES) pnet_cpu_mse(pnet_count(n), x, y, loss, work);
    if (kind == HUBER) pnet_cpu_huber(pnet_count(n), DELTA, x, y, loss, work);
    if (kind == SIZES) pnet_cpu_l1(pnet_count(n), x, y, loss, work);
}

static void differences_gpu(
    int kind, struct pnet_count n, const float *x, const float *y, float *loss, void *work)
{
    if (kind == SQUARES) pnet_cuda_mse(n, x, y, loss, work);
    if (kind == HUBER) pnet_cuda_huber(n, DELTA, x, y, loss, work);
    if (kind == SIZES) pnet_cuda_l1(n, x, y, loss, work);
}

static void slopes_cpu(
    int kind, int64_t n, const float *x, const float *y, const float *gloss, bool add, float *gx)
{
    if (kind == SQUARES) pnet_cpu_mse_backward(pnet_count(n), x, y, gloss, add, gx);
    if (kind == HUBER) pnet_cpu_huber_backward(pnet_count(n), DELTA, x, y, gloss, add, gx);
    if (kind == SIZES) pnet_cpu_l1_backward(pnet_count(n), x, y, gloss, add, gx);
}

static void slopes_gpu(int kind, struct pnet_count n, const float *x, const float *y,
    const float *gloss, bool add, float *gx)
{
    if (kind == SQUARES) pnet_cuda_mse_backward(n, x, y, gloss, add, gx);
    if (kind == HUBER) pnet_cuda_huber_backward(n, DELTA, x, y, gloss, add, gx);
    if (kind == SIZES) pnet_cuda_l1_backward(n, x, y, gloss, add, gx);
}

static void test_difference(int kind, int64_t rows, int32_t c)
{
    static const char *const names[] = {"squares", "huber", "sizes"};
    snprintf(name, sizeof name, "%s of %lld x %d", names[kind], (long long)rows, (int)c);
    int64_t n = rows * c, most = (rows + SLACK) * c;
    float *x = random_features(n, false), *y = random_features(n, false), want, gloss = 3;
    for (int64_t i = 0; i < n; i += 5) y[i] = x[i];
    struct pnet_count count = device_count(rows, c);
    float *gx = device_features(x, n, most), *gy = device_features(y, n, most);
    struct result loss = make_result(NULL, 1, 1, sizeof(float));
    void *work = device_work(pnet_cuda_mse_work());
    differences_cpu(kind, n, x, y, &want, host_bytes(pnet_cpu_mse_work()));
    for (int turn = 0; turn < 2; turn++) {
        differences_gpu(kind, count, gx, gy, loss.device, work);
        collect(&loss, turn, name);
    }
    check_floats(name, &loss, &want, BOUND);
    const float *on_device = device_floats(&gloss, 1, 1);
    for (int add = 0; add < 2; add++) {
        float *back = random_features(n, false);
        struct result r = make_features(back, n, most);
        slopes_cpu(kind, n, x, y, &gloss, add, back);
        for (int turn = 0; turn < 2; turn++) {
            slopes_gpu(kind, count, gx, gy, on_device, add, r.device);
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

static void test_differences(int64_t rows, int32_t c)
{
    for (int kind = 0; kind < DIFFERENCES; kind++) test_difference(kind, rows, c);
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

/* The same of focal and Dice loss; the weights of classes are gone when the launch is replayed. */
static void test_replay_focal_and_dice(void)
{
    enum { MOST = 5000 + SLACK, CLASSES = 7 };
    static const int64_t counts[] = {5000, 1, 3000, 0};
    static const double weights[CLASSES] = {1, 0, 2, 0.5, 1, 3, 1};
    double lent[CLASSES];
    float gloss = 1;
    struct targets all = make_targets(5000, 5000, CLASSES);
    float *x = random_floats(5000 * CLASSES, false);
    float *gx = device_floats(x, 5000 * CLASSES, MOST * CLASSES);
    int64_t *live = (int64_t *)(uintptr_t)all.gpu.rows.live;
    all.gpu.label_rows.live = live;
    memcpy(lent, weights, sizeof lent);
    struct pnet_focal focal = {all.gpu, gx, lent, 1.5};
    struct pnet_dice dice = {all.gpu, gx, true};
    struct result loss[2], gradient;
    for (int k = 0; k < 2; k++) loss[k] = make_result(NULL, 1, 1, sizeof(float));
    gradient = make_result(NULL, 5000 * CLASSES, MOST * CLASSES, sizeof(float));
    float *divisor = device_floats(NULL, 0, 1);
    double *slope = device_bytes(NULL, 0, 2 * CLASSES * sizeof *slope, 0xFF);
    const float *scale = device_floats(&gloss, 1, 1);
    void *work = device_work(pnet_cuda_focal_work(&focal));
    void *other_work = device_work(pnet_cuda_dice_work(&dice));
    snprintf(name, sizeof name, "replay of focal and dice");
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    pnet_cuda_focal(&focal, loss[0].device, divisor, work);
    pnet_cuda_focal_backward(&focal, divisor, scale, false, gradient.device, work);
    pnet_cuda_dice(&dice, loss[1].device, slope, other_work);
    pnet_cuda_dice_backward(&dice, slope, scale, true, gradient.device, other_work);
    void *record = pnet_cuda_record_end();
    CHECKF(record, "%s", pnet_cuda_error());
    memset(lent, 0, sizeof lent);
    for (int i = 0; record && i < 4; i++) {
        int64_t rows = counts[i];
        struct pnet_targets t = all.cpu;
        t.rows = t.label_rows = pnet_count(rows);
        struct pnet_focal cpu_focal = {t, x, weights, 1.5};
        struct pnet_dice cpu_dice = {t, x, true};
        float want[3], *back = host_bytes((size_t)rows * CLASSES * sizeof *back);
        double *cpu_slope = host_bytes(2 * CLASSES * sizeof *cpu_slope);
        void *cpu_work = host_bytes(pnet_cpu_focal_work(&cpu_focal));
        void *cpu_other = host_bytes(pnet_cpu_dice_work(&cpu_dice));
        pnet_cpu_focal(&cpu_focal, &want[0], &want[2], cpu_work);
        pnet_cpu_focal_backward(&cpu_focal, &want[2], &gloss, false, back, cpu_work);
        pnet_cpu_dice(&cpu_dice, &want[1], cpu_slope, cpu_other);
        pnet_cpu_dice_backward(&cpu_dice, cpu_slope, &gloss, true, back, cpu_other);
        gradient.live = (size_t)rows * CLASSES * sizeof(float);
        pnet_cuda_copy_in(live, &rows, sizeof rows);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_replay(record);
            for (int k = 0; k < 2; k++) collect(&loss[k], turn, name);
            collect(&gradient, turn, name);
        }
        check_floats(name, &loss[0], &want[0], 3 * BOUND);
        check_floats(name, &loss[1], &want[1], BOUND);
        check_floats(name, &gradient, back, 3 * BOUND);
    }
    pnet_cuda_record_free(record);
    release(name);
}

static void test_all(bool small)
{
    static const int32_t channels[] = {1, 3, 33, 64, 512};
    static const int32_t classes[] = {1, 2, 5, 20, 40, 150, 1200};
    const bool few = small || storage != PNET_STORE_F32;
    for (int i = 0; i < 5; i++)
        test_differences(few ? 300 : channels[i] > 64 ? 6000 : 100000, channels[i]);
    test_differences(1, 3);
    test_differences(0, 4);
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
    test_replay_focal_and_dice();
    return check_end();
}
#endif
