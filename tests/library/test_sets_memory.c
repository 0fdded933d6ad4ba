/* Sets under an allocator that fails: every call ends with a status, and nothing is left. And a thousand sets hold memory
   constant. */
#include "tests/heap.h"

#if HEAP_REPLACED
#include "tests/library/sets.h"

#include <omp.h>

static struct sets_case layer;
static struct sets_sums sums;
static float *pooled; /* results of a pool, and its gradient */

/* A pool there and back, through a set in a block of bytes. */
static enum pnet_status run_pool(const struct pnet_set *set, struct pnet_error *e)
{
    _Alignas(64) static char block[2][1 << 17];
    struct pnet_packed p = {.size = sizeof p};
    struct pnet_set_info i = {.size = sizeof i};
    struct pnet_set *unpacked = NULL;
    enum pnet_status st = pnet_set_counts(set, &i, e);
    if (!st) st = pnet_set_packed_sizes(set, &p, e);
    if (!st && (p.by_out_bytes > sizeof block[0] || p.by_in_bytes > sizeof block[1])) exit(1);
    p.by_out = block[0];
    p.by_in = block[1];
    if (!st) st = pnet_set_pack(set, &p, e);
    if (!st) st = pnet_set_unpack(&p, &unpacked, e);
    struct pnet_array f = sets_array(sums.features, i.rows_in, layer.in),
                      g = sets_array(pooled, i.rows_out, layer.in);
    struct pnet_array_out y = sets_out(pooled, i.rows_out, layer.in),
                          x = sets_out(sums.to_features, i.rows_in, layer.in);
    if (!st) st = pnet_pool_forward(unpacked, PNET_POOLING_MEAN, &f, NULL, &y, NULL, e);
    if (!st) st = pnet_pool_backward(unpacked, PNET_POOLING_MEAN, &g, NULL, NULL, &x, e);
    pnet_set_free(unpacked);
    return st;
}

/* Everything once: a set, its inverse, one of triplets, all sums, a pool. */
static enum pnet_status run_all(struct pnet_error *e)
{
    static const int32_t list[] = {0, 1, 1, 0};
    struct pnet_array indices = {layer.index, PNET_DTYPE_I32, layer.rows, 4, 0},
                      column = {list, PNET_DTYPE_I32, 2, 1, 2};
    struct pnet_conv_options o = {.size = sizeof o};
    struct pnet_set *set = NULL, *back = NULL, *listed = NULL;
    enum pnet_status st = pnet_set_voxels(&indices, &layer.o, &set, e);
    if (!st) st = pnet_set_inverse(set, &back, e);
    if (!st) st = pnet_set_triplets(&column, &column, &column, 2, 2, 2, NULL, &listed, e);
    if (!st) st = sets_try(&layer, set, &o, &sums, e);
    if (!st) st = run_pool(set, e);
    pnet_set_free(set);
    pnet_set_free(back);
    pnet_set_free(listed);
    return st;
}

static void test_failing(bool all_behind)
{
    struct pnet_error why;
    float *expected = sets_room((size_t)sums.result_count, sizeof *expected);
    NEED(run_all(&e));
    memcpy(expected, sums.result, (size_t)sums.result_count * sizeof *expected);
    long failed = 0, at = 1;
    for (bool over = false; !over; at++) {
        heap_begin(at, all_behind);
        enum pnet_status st = run_all(&why);
        heap.counting = false;
        CHECKF(st == PNET_OK || st == PNET_NO_MEMORY, "allocation %ld: %d: %s", at, (int)st,
            why.message);
        CHECKF(!heap.live, "allocation %ld: %ld blocks are left", at, heap.live);
        if (!st)
            CHECK(!memcmp(sums.result, expected, (size_t)sums.result_count * sizeof *expected));
        failed += st != PNET_OK;
        over = heap.calls < at;
    }
    CHECKF(failed > 25 && failed == at - 2, "%ld of %ld failed", failed, at);
    free(expected);
}

static void test_constant(void)
{
    for (int i = 0; i < 1000; i++) {
        if (i == 10) heap_begin(0, false);
        NEED(run_all(&e));
    }
    heap.counting = false;
    CHECKF(heap.live == 0, "%ld blocks more", heap.live);
}

int main(void)
{
    omp_set_num_threads(1); /* the counts belong to one thread */
    for (int kind = 0; kind < 3; kind++) {
        layer = (struct sets_case){.o = {.size = sizeof layer.o,
                                       .kind = (enum pnet_set_kind)kind,
                                       .kernel = {3, 3, 3},
                                       .stride = {2, 2, 2},
                                       .padding = {1, 1, 1},
                                       .extent = {7, 6, 5},
                                       .batches = 2},
            .axes = 3,
            .in = 4,
            .out = 3,
            .groups = 1};
        sets_fill(&layer, 4, -1);
        struct pnet_set *set = sets_make(&layer);
        sums = sets_take(&layer, set);
        pooled = sets_floats(sets_info(set).rows_out * layer.in);
        pnet_set_free(set);
        test_failing(false);
        test_failing(true);
        test_constant();
        sets_drop(&sums);
        free(pooled);
        free(layer.index);
    }
    return check_end();
}
#endif
