/* Every algorithm of MVMR and VVOR on the GPU against their definitions in double; PNET_SHORT: a few sizes. */
#include "tests/kernels/algo_case.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/conv.h"
#include "kernels/conv_compare.h"
#include "kernels/cuda/base/cuda.h"
#include "tests/cuda/device_case.h"

/* Rows bound on the host beyond those there are, and triplets likewise. */
enum { SPARE_ROWS = 3, SPARE_TRIPLETS = 150 };

struct listed {
    struct pnet_conv_list list;
    struct device_work memory;
};

static struct listed make_list(
    const struct pnet_triplets *t, enum pnet_conv_algo algo, const char *text)
{
    struct listed l = {.memory = device_work(pnet_cuda_conv_list_bytes(t->count))};
    struct device_work work = device_work(pnet_cuda_conv_list_work(t->count));
    l.list = pnet_cuda_conv_list(t, algo, 0, t->count, l.memory.memory, work.memory);
    device_work_end(&work, text);
    return l;
}

/* Float atomics add in any order; all else has one. */
static bool repeats(enum pnet_conv_algo algo)
{
    return pnet_conv_algo_is_usual(algo) || algo == PNET_ALGO_IM2COL;
}

/* Runs twice from what `result` holds, `size` floats of which `live` are compared; the second result stays there. */
#define RUN(product, given, result, live, size)                                                    \
    do {                                                                                           \
        size_t bytes = (live) * sizeof(float);                                                     \
        float *before = conv_alloc(bytes), *first = conv_alloc(bytes);                             \
        struct listed l = {0};                                                                     \
        memcpy(before, result, bytes);                                                             \
        float *host = result;                                                                      \
        if (listed) {                                                                              \
            l = make_list((given).triplets, (given).algo, text);                                   \
            (given).list = &l.list;                                                                \
        }                                                                                          \
        for (int i = 0; i < 2; i++) {                                                              \
            struct device_work work = device_work(pnet_cuda_##product##_algo_work(                 \
                (given).algo, (given).triplets, (given).shape, PNET_FP32));                        \
            result = device_copy_into(before, bytes, (size) * sizeof(float));                      \
            pnet_cuda_##product(&(given), work.memory);                                            \
            pnet_cuda_copy_out(host, result, bytes);                                               \
            device_work_end(&work, text);                                                          \
            pnet_cuda_free(result);                                                                \
            if (i == 0) memcpy(first, host, bytes);                                                \
        }                                                                                          \
        if (repeats((given).algo))                                                                 \
            CHECKF(memcmp(first, host, bytes) == 0, "%s: a second run differs", text);             \
        if (listed) device_work_end(&l.memory, text);                                              \
        const char *wrong = pnet_cuda_sync();                                                      \
        CHECKF(!wrong, "%s: %s", text, wrong);                                                     \
        free(before), free(first);                                                                 \
    } while (0)

static void run_mvmr(const struct pnet_mvmr *given, bool listed, const char *text)
{
    struct pnet_mvmr m = *given;
    struct pnet_conv_shape s = m.shape;
    const struct pnet_triplets *t = given->triplets;
    struct pnet_triplets set = device_set(t, SPARE_ROWS, SPARE_TRIPLETS, 0);
    size_t live = (size_t)t->rows * (size_t)s.cout, size = (size_t)set.rows * (size_t)s.cout;
    m.triplets = &set;
    m.in = device_floats(given->in, (size_t)t->others * (size_t)s.cin);
    m.weight = device_floats(
        given->weight, (size_t)t->cells * (size_t)(s.cin / s.groups) * (size_t)s.cout);
    m.bias = device_floats(given->bias, (size_t)s.cout);
    RUN(mvmr, m, m.out, live, size);
    device_free(m.in), device_free(m.weight), device_free(m.bias);
    device_set_free(&set);
}

static void run_vvor(const struct pnet_vvor *given, bool listed, const char *text)
{
    struct pnet_vvor v = *given;
    struct pnet_conv_shape s = v.shape;
    const struct pnet_triplets *t = given->triplets;
    struct pnet_triplets set = device_set(t, SPARE_ROWS, SPARE_TRIPLETS, 0);
    size_t size = (size_t)t->cells * (size_t)(s.cin / s.groups) * (size_t)s.cout;
    v.triplets = &set;
    v.in = device_floats(given->in, (size_t)(v.swapped ? t->rows : t->others) * (size_t)s.cin);
    v.gout = device_floats(given->gout, (size_t)(v.swapped ? t->others : t->rows) * (size_t)s.cout);
    RUN(vvor, v, v.gweight, size, size);
    device_free(v.in), device_free(v.gout);
    device_set_free(&set);
}

int main(void)
{
    const char *why = NULL;
    algo_check_work(pnet_cuda_mvmr_algo_work, pnet_cuda_vvor_algo_work);
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return check_failed ? 1 : 77;
    }
    bool brief = getenv("PNET_SHORT") != NULL;
    struct algo_device gpu = {"cuda", run_mvmr, run_vvor};
    algo_check_shapes(&gpu, brief);
    if (!brief) algo_check_sizes(&gpu);
    return check_end();
}
#else
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#endif
