/* Points, and all that is made of them, under an allocator that fails: every call ends with a status, and nothing is left. And a
   thousand turns hold memory constant. */
#include "tests/heap.h"

#if HEAP_REPLACED
#include "tests/library/points.h"

#include <omp.h>

enum { ROWS = 60, WIDTH = 24 };

static struct points_cloud cloud;
static float results[4][ROWS * WIDTH];

/* One of the objects, and what is computed with it; which: 0 .. 4. */
struct made {
    struct pnet_points *p, *g, *h;
    struct pnet_set *set, *back;
    struct pnet_map *map;
    struct pnet_buckets *buckets;
};

static enum pnet_status run_sets(struct made *m, struct pnet_error *e)
{
    struct pnet_near_options o = {.size = sizeof o, .kernel = 2, .radius = 0.3},
                             same = {.size = sizeof same, .radius = 0.3};
    enum pnet_status st = pnet_set_points(m->g, m->p, &o, &m->set, e);
    pnet_set_free(m->set);
    m->set = NULL;
    if (!st) st = pnet_set_points(m->p, m->p, &same, &m->set, e);
    if (!st) st = pnet_set_inverse(m->set, &m->back, e);
    return st;
}

static enum pnet_status run_maps(struct made *m, struct pnet_error *e)
{
    struct pnet_array x = sets_array(cloud.f, ROWS, WIDTH);
    struct pnet_array_out y = sets_out(results[0], ROWS, WIDTH),
                          gx = sets_out(results[1], ROWS, WIDTH);
    enum pnet_status st = PNET_OK;
    for (int kind = PNET_MAP_MEAN; kind <= PNET_MAP_NEAREST && !st; kind++) {
        struct pnet_map_options o = {.size = sizeof o,
            .kind = (enum pnet_map_kind)kind,
            .outside_nearest = kind == PNET_MAP_TRILINEAR};
        bool up = kind >= PNET_MAP_PARENT;
        x.rows = gx.rows = points_info(up ? m->g : m->p).rows;
        y.rows = points_info(up ? m->p : m->g).rows;
        struct pnet_array g = sets_array(results[2], y.rows, WIDTH);
        int32_t argmax[ROWS * WIDTH];
        struct pnet_map_run r = {.size = sizeof r, .argmax = argmax};
        st = pnet_map_new(up ? m->p : m->g, up ? m->g : m->p, &o, &m->map, e);
        if (!st) st = pnet_map_forward(m->map, &x, &r, &y, e);
        if (!st) st = pnet_map_backward(m->map, &g, &r, &gx, e);
        pnet_map_free(m->map);
        m->map = NULL;
    }
    return st;
}

static enum pnet_status run_attention(struct made *m, struct pnet_error *e)
{
    struct pnet_array x = sets_array(cloud.f, ROWS, WIDTH), y = sets_array(results[0], ROWS, 8);
    struct pnet_array_out to = sets_out(results[0], ROWS, 8),
                          into = sets_out(results[1], ROWS, WIDTH);
    struct pnet_buckets_options o = {
        .size = sizeof o, .order = PNET_BUCKETS_HILBERT, .bucket = 16, .cell = 0.1};
    struct pnet_attend_options run = {.size = sizeof run, .log_sum = results[2]};
    enum pnet_status st = pnet_buckets_new(m->p, &o, &m->buckets, e);
    if (!st) st = pnet_attend_forward(m->buckets, &x, &run, &to, e);
    if (!st) st = pnet_attend_backward(m->buckets, &x, &y, &y, &run, &into, e);
    return st;
}

static enum pnet_status run_losses(struct made *m, struct pnet_error *e)
{
    static char kept[1 << 16];
    struct pnet_array_out to = sets_out(results[0], ROWS, 3), of = sets_out(results[1], ROWS, 3);
    enum pnet_status st = PNET_OK;
    for (int kind = PNET_LOSS_CHAMFER; kind <= PNET_LOSS_APML && !st; kind++) {
        struct pnet_loss_options o = {.size = sizeof o};
        struct pnet_loss_run r = {.size = sizeof r, .kept = kept, .kept_bytes = sizeof kept};
        st = pnet_loss_default((enum pnet_loss_kind)kind, &o, e);
        if (!st) st = pnet_loss_forward(m->p, m->p, &o, &r, results[3], e);
        if (!st) st = pnet_loss_backward(m->p, m->p, &o, &r, 1, &to, &of, e);
    }
    return st;
}

/* Everything once, of points whose rows have to be put together. */
static enum pnet_status run_all(struct pnet_error *e)
{
    static int32_t rows[ROWS];
    struct pnet_array at = sets_array(cloud.xyz, ROWS, 3), sample = points_ints(cloud.sample, ROWS);
    struct pnet_points_options o = {.size = sizeof o, .sample = &sample, .batches = POINTS_SAMPLES};
    struct pnet_array_out to = points_ints_out(rows, ROWS);
    struct made m = {0};
    enum pnet_status st = pnet_points_new(&at, &o, &m.p, e);
    if (!st) st = pnet_points_grid(m.p, 0.1, &m.g, e); /* along another grid than the points */
    if (!st) st = pnet_points_grid(m.g, 0.3, &m.h, e);
    if (!st) st = pnet_points_parents(m.p, m.h, &to, e);
    if (!st) st = run_sets(&m, e);
    if (!st) st = run_maps(&m, e);
    if (!st) st = run_attention(&m, e);
    if (!st) st = run_losses(&m, e);
    pnet_set_free(m.set);
    pnet_set_free(m.back);
    pnet_buckets_free(m.buckets);
    pnet_points_free(m.p);
    pnet_points_free(m.g);
    pnet_points_free(m.h);
    return st;
}

static void test_failing(bool all_behind)
{
    struct pnet_error why;
    static float expected[4][ROWS * WIDTH];
    memset(results, 0, sizeof results);
    NEED(run_all(&e));
    memcpy(expected, results, sizeof expected);
    long failed = 0, at = 1;
    for (bool over = false; !over; at++) {
        memset(results, 0, sizeof results);
        heap_begin(at, all_behind);
        enum pnet_status st = run_all(&why);
        heap.counting = false;
        CHECKF(st == PNET_OK || st == PNET_NO_MEMORY, "allocation %ld: %d: %s", at, (int)st,
            why.message);
        CHECKF(!heap.live, "allocation %ld: %ld blocks are left", at, heap.live);
        if (!st) CHECK(!memcmp(results, expected, sizeof expected));
        failed += st != PNET_OK;
        over = heap.calls < at;
    }
    CHECKF(failed > 100 && failed == at - 2, "%ld of %ld failed", failed, at);
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
    cloud = points_fill_wide(ROWS, WIDTH);
    int64_t moved[ROWS];
    points_shuffle(&cloud, moved);
    test_failing(false);
    test_failing(true);
    test_constant();
    points_drop(&cloud);
    return check_end();
}
#endif
