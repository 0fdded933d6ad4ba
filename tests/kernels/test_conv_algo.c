/* Every algorithm of MVMR and VVOR on the CPU against their definitions in double; PNET_SHORT: a few sizes. */
#include "kernels/conv.h"
#include "kernels/conv_compare.h"

#include <omp.h>
#include "tests/kernels/algo_case.h"

/* A list of the whole set, with what it lies in. */
struct listed {
    struct pnet_conv_list list;
    struct conv_work memory;
};

static struct listed make_list(
    const struct pnet_triplets *t, enum pnet_conv_algo algo, const char *text)
{
    struct listed l = {.memory = conv_work(pnet_cpu_conv_list_bytes(t->count))};
    struct conv_work work = conv_work(pnet_cpu_conv_list_work(t->count));
    l.list =
        pnet_cpu_conv_list(t, algo, 0, t->count, conv_work_use(&l.memory), conv_work_use(&work));
    CHECKF(conv_work_end(&work), "%s: sorting wrote beyond the workspace", text);
    CHECKF(l.list.most == t->count, "%s: %lld triplets are listed", text, (long long)l.list.most);
    return l;
}

/* Runs with one to three threads, each from what `result` holds, and leaves the first one's there. */
#define RUN(product, given, result, size)                                                          \
    do {                                                                                           \
        size_t bytes = (size) * sizeof(float);                                                     \
        float *before = conv_alloc(bytes), *first = conv_alloc(bytes);                             \
        struct listed l = {0};                                                                     \
        memcpy(before, result, bytes);                                                             \
        if (listed) {                                                                              \
            l = make_list((given).triplets, (given).algo, text);                                   \
            (given).list = &l.list;                                                                \
        }                                                                                          \
        for (int threads = 1; threads <= 3; threads++) {                                           \
            omp_set_num_threads(threads);                                                          \
            struct conv_work work = conv_work(pnet_cpu_##product##_algo_work(                      \
                (given).algo, (given).triplets, (given).shape, PNET_FP32));                        \
            memcpy(result, before, bytes);                                                         \
            pnet_cpu_##product(&(given), conv_work_use(&work));                                    \
            CHECKF(conv_work_end(&work), "%s: wrote beyond the workspace", text);                  \
            if (threads == 1) memcpy(first, result, bytes);                                        \
            CHECKF(memcmp(first, result, bytes) == 0, "%s: %d threads differ from one", text,      \
                threads);                                                                          \
        }                                                                                          \
        if (listed) CHECKF(conv_work_end(&l.memory), "%s: wrote beyond the list", text);           \
        free(before), free(first);                                                                 \
    } while (0)

static void run_mvmr(const struct pnet_mvmr *given, bool listed, const char *text)
{
    struct pnet_mvmr m = *given;
    RUN(mvmr, m, m.out, (size_t)m.triplets->rows * (size_t)m.shape.cout);
}

static void run_vvor(const struct pnet_vvor *given, bool listed, const char *text)
{
    struct pnet_vvor v = *given;
    RUN(vvor, v, v.gweight,
        (size_t)v.triplets->cells * (size_t)(v.shape.cin / v.shape.groups) * (size_t)v.shape.cout);
}

/* Lists hold each triplet once, in the order that their name says, equal ones as in the set. */
static void check_lists(void)
{
    struct conv_set set = conv_set_random(700, 70000, 27, 6, 5);
    const struct pnet_triplets *t = &set.t;
    for (int a = PNET_ALGO_MVMR_K; a <= PNET_ALGO_MVMR_J; a++) {
        enum pnet_conv_algo algo = (enum pnet_conv_algo)a;
        struct listed l = make_list(t, algo, pnet_conv_algo_names[a]);
        int64_t(*list)[3] = conv_alloc((size_t)t->count * sizeof *list);
        for (int64_t n = 0; n < t->count; n++) {
            int64_t i = l.list.row[n], j = l.list.other[n], k = l.list.cell[n];
            int64_t keys[3][3] = {{k, i, j}, {i, k, j}, {j, i, k}};
            memcpy(list[n], keys[a - PNET_ALGO_MVMR_K], sizeof list[n]);
            CHECKF(n == 0 || conv_compare(list[n - 1], list[n]) <= 0, "%s: triplet %lld",
                pnet_conv_algo_names[a], (long long)n);
        }
        /* the same triplets as the set's: sorted by row, cell, other they must be equal */
        for (int64_t n = 0; n < t->count; n++) {
            list[n][0] = l.list.row[n];
            list[n][1] = l.list.cell[n];
            list[n][2] = l.list.other[n];
        }
        struct conv_set again = conv_set_make(t->rows, t->others, t->cells, t->count, list);
        CHECK(memcmp(again.start, t->start, (size_t)(t->rows + 1) * sizeof *t->start) == 0);
        CHECK(memcmp(again.other, t->other, (size_t)t->count * sizeof *t->other) == 0);
        CHECK(memcmp(again.cell, t->cell, (size_t)t->count * sizeof *t->cell) == 0);
        conv_set_free(&again);
        CHECK(conv_work_end(&l.memory));
        free(list);
    }
    conv_set_free(&set);
}

static void check_names(void)
{
    enum pnet_conv_algo algo;
    for (int a = 0; a < PNET_ALGO_COUNT; a++)
        CHECK(pnet_conv_algo_parse(pnet_conv_algo_names[a], &algo) && (int)algo == a);
    CHECK(!pnet_conv_algo_names[PNET_ALGO_COUNT]);
    CHECK(!pnet_conv_algo_parse("mvmr", &algo) && !pnet_conv_algo_parse("", &algo));
}

int main(void)
{
    const char *names[3];
    int n = conv_isa_list(names);
    bool brief = getenv("PNET_SHORT") != NULL;
    check_names();
    check_lists();
    algo_check_work(pnet_cpu_mvmr_algo_work, pnet_cpu_vvor_algo_work);
    for (int i = brief ? n - 1 : 0; i < n; i++) {
        pnet_cpu_isa_limit(names[i]);
        struct algo_device cpu = {names[i], run_mvmr, run_vvor};
        algo_check_shapes(&cpu, brief || i + 1 < n);
        if (!brief && i + 1 == n) algo_check_sizes(&cpu);
    }
    return check_end();
}
