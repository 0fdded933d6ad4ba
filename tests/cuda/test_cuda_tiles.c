/* Sets laid out as tiles on a GPU against a plain look at their triplets, and the same bits each time. With a folder as
   argument it then prints times for the benchmark rooms in it; with anything behind the folder it does that alone. */
#ifndef PNET_CUDA_BUILT
#include <stdio.h>

int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else

#include "tests/cuda/geometry.h"
#include "tests/cuda/geometry_times.h"
#include "tests/kernels/tile_case.h"

/* Under a tool that watches every access. */
static bool little(void)
{
    return getenv("PNET_SHORT") != NULL;
}

/* Tiles in device memory: headers and lists as they come. */
struct device_tiles {
    struct pnet_tile *tile;
    uint32_t *list;
    int64_t words;
};

static struct device_tiles tiles_make(struct arena *a, const struct pnet_triplets *t)
{
    struct device_tiles d;
    d.tile = arena_take(a, (size_t)tile_count(t->rows) * sizeof *d.tile);
    d.words = pnet_cuda_tiles_count(t, d.tile, arena_take(a, pnet_cuda_tiles_work(t->rows)));
    d.list = arena_take(a, (size_t)d.words * sizeof *d.list);
    pnet_cuda_tiles_write(t, d.tile, d.list);
    return d;
}

/* Tiles of a set in host memory, of which `live` rows are there. */
static void check_tiles(
    const char *what, struct arena *a, const struct pnet_triplets *t, int64_t live)
{
    struct pnet_triplets d = triplets_on_device(a, t);
    if (live < t->rows) d.live = arena_copy(a, &live, sizeof live);
    struct device_tiles first = tiles_make(a, &d);
    int64_t tiles = tile_count(t->rows);
    struct tile_case c = {.tile = conv_alloc((size_t)tiles * sizeof *c.tile),
        .list = conv_alloc((size_t)first.words * sizeof *c.list)};
    c.tiles = (struct pnet_tiles){first.words, c.tile, c.list};
    if (tiles) pnet_cuda_copy_out(c.tile, first.tile, (size_t)tiles * sizeof *c.tile);
    if (first.words) pnet_cuda_copy_out(c.list, first.list, (size_t)first.words * sizeof *c.list);
    CHECKF(tile_case_is(t, live, PNET_TILE_SLOTS, &c.tiles), "%s: %lld rows, %lld live", what,
        (long long)t->rows, (long long)live);
    const struct pnet_tile *last = tiles ? &c.tile[tiles - 1] : NULL;
    CHECK(first.words == (last ? last->at + tile_words(last) : 0));
    if (live == t->rows) CHECK(pnet_cpu_tiles_words(t, NULL) == first.words);
    if (!little()) {
        struct device_tiles second = tiles_make(a, &d);
        CHECK(second.words == first.words);
        CHECK(device_holds(second.tile, c.tile, (size_t)tiles * sizeof *c.tile));
        CHECK(second.words != first.words ||
              device_holds(second.list, c.list, (size_t)first.words * sizeof *c.list));
    }
    tile_case_free(&c);
    CHECKF(arena_close(a), "%s", what);
}

static void random_sets(struct arena *a)
{
    static const struct {
        int64_t rows, others;
        int32_t cells;
        int64_t degree;
    } sizes[] = {
        {0, 5, 27, 3}, {5, 0, 27, 3}, {1, 1, 1, 1}, {1, 900, 27, 40}, {255, 300, 27, 12},
        {256, 256, 1, 30}, {257, 90, 125, 40}, {1030, 5000, 343, 25}, {3000, 2000, 8, 3},
        {700, 700, 27, 200}, {300, 250, PNET_TILE_CELLS, 60},
        {600, 100000, 27, 20},  /* more neighbours than the table takes: several ranges */
        {513, 2000000, 64, 60}, /* the same, spread wide */
        {300, 2000000, 27, 150} /* the first tile has more than PNET_TILE_SLOTS, the second fewer */
    };
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        if (little() && sizes[n].rows * sizes[n].degree > 12000) continue;
        struct conv_set s = conv_set_random(
            sizes[n].rows, sizes[n].others, sizes[n].cells, sizes[n].degree, 11 + n);
        int64_t rows = s.t.rows;
        check_tiles("random", a, &s.t, rows);
        /* as of a capacity class: behind the live rows there are no numbers */
        int64_t live = rows * 2 / 3;
        int64_t *start = conv_alloc((size_t)(rows + 1) * sizeof *start);
        for (int64_t i = 0; i <= rows; i++) start[i] = i <= live ? s.start[i] : INT64_MIN;
        struct pnet_triplets part = s.t;
        part.start = start;
        check_tiles("live", a, &part, live);
        if (sizes[n].others < 100000 && !little()) {
            struct conv_set back = conv_set_transposed(&s.t);
            check_tiles("transposed", a, &back.t, back.t.rows);
            conv_set_free(&back);
        }
        free(start);
        conv_set_free(&s);
    }
}

/* One tile has more triplets than are staged, the others few. */
static void uneven(struct arena *a)
{
    enum { ROWS = 1300, DENSE = 40, ALL = PNET_TILE_ROWS * DENSE + ROWS - PNET_TILE_ROWS };
    int64_t(*list)[3] = conv_alloc(ALL * sizeof *list);
    uint64_t seed = 3;
    for (int64_t n = 0, row = 0; n < ALL; n++) {
        list[n][0] = row;
        list[n][1] = (int64_t)(conv_random(&seed) % 27);
        list[n][2] = (int64_t)(conv_random(&seed) % 900);
        if (row >= PNET_TILE_ROWS || (n + 1) % DENSE == 0) row++;
    }
    struct conv_set s = conv_set_make(ROWS, 900, 27, ALL, list);
    check_tiles("uneven", a, &s.t, ROWS);
    free(list);
    conv_set_free(&s);
}

/* Neighbours at both ends of the other side and in a dense piece between them: ranges shrink and grow. */
static void clustered(struct arena *a)
{
    enum { ROWS = 256, EACH = 24, ALL = ROWS * EACH };
    const int64_t others = INT32_MAX;
    struct conv_set s = conv_set_alloc(ROWS, others, 27, ALL);
    for (int64_t i = 0; i < ALL; i++) {
        int64_t row = i / EACH, n = i % EACH;
        s.start[row] = row * EACH;
        s.cell[i] = (uint16_t)(n * 27 / EACH);
        s.other[i] = (int32_t)(n == 0          ? row
                               : n == EACH - 1 ? others - 1 - row
                                               : 1234567890 + row * EACH + n);
    }
    s.start[ROWS] = ALL;
    check_tiles("clustered", a, &s.t, ROWS);
    conv_set_free(&s);
}

/* The longest run that a tile can count, and one that it cannot. */
static void long_runs(struct arena *a)
{
    for (int64_t n = UINT16_MAX; n <= UINT16_MAX + 1; n++) {
        struct conv_set s = conv_set_alloc(1, 1, 1, n);
        memset(s.other, 0, (size_t)n * sizeof *s.other);
        memset(s.cell, 0, (size_t)n * sizeof *s.cell);
        s.start[0] = 0;
        s.start[1] = n;
        check_tiles("long run", a, &s.t, 1);
        conv_set_free(&s);
    }
}

/* One set of the rooms: are its tiles right, and how long do they take? */
static void time_tiles(struct arena *a, const char *what, const struct pnet_level *l,
    bool transposed, struct pnet_neighbourhood nb)
{
    struct watch w;
    struct device_set forward = device_set_make(a, l, l, &nb, NULL), s = forward;
    if (transposed) s = device_set_transposed(a, &forward.t);
    struct set host = set_from_device(&s);
    struct device_tiles d = tiles_make(a, &s.t);
    int64_t tiles = tile_count(s.t.rows);
    void *work = arena_take(a, pnet_cuda_tiles_work(s.t.rows));
    struct tile_case c = {.tile = conv_alloc((size_t)tiles * sizeof *c.tile),
        .list = conv_alloc((size_t)d.words * sizeof *c.list)};
    c.tiles = (struct pnet_tiles){d.words, c.tile, c.list};
    pnet_cuda_copy_out(c.tile, d.tile, (size_t)tiles * sizeof *c.tile);
    pnet_cuda_copy_out(c.list, d.list, (size_t)d.words * sizeof *c.list);
    CHECKF(tile_case_is(&host.t, host.t.rows, PNET_TILE_SLOTS, &c.tiles), "%s", what);
    int64_t neighbours = 0, cells = 0, rounds = 0, most = 0;
    for (int64_t i = 0; i < tiles; i++) {
        neighbours += c.tile[i].neighbours;
        cells += c.tile[i].cells;
        rounds += c.tile[i].rounds;
        if (c.tile[i].neighbours > most) most = c.tile[i].neighbours;
    }
    cudaEventCreate(&w.begin);
    cudaEventCreate(&w.end);
    for (int round = 0; round < REPEAT; round++) {
        watch_start(&w);
        pnet_cuda_tiles_count(&s.t, d.tile, work);
        watch_stop(&w, COUNT, round);
        watch_start(&w);
        pnet_cuda_tiles_write(&s.t, d.tile, d.list);
        watch_stop(&w, WRITE, round);
    }
    double all = (double)tiles;
    printf("%-20s T %9lld  words %9lld  a tile: %.0f neighbours (most %lld) %.1f cells %.0f rounds"
           "  ms: count %.3f write %.3f\n",
        what, (long long)s.t.count, (long long)d.words, (double)neighbours / all, (long long)most,
        (double)cells / all, (double)rounds / all, watch_median(&w, COUNT),
        watch_median(&w, WRITE));
    fflush(stdout);
    cudaEventDestroy(w.begin);
    cudaEventDestroy(w.end);
    tile_case_free(&c);
    set_free(&host);
}

static void time_rooms(const char *dir)
{
    static const struct {
        const char *what;
        bool transposed;
        struct pnet_neighbourhood nb;
    } sets[] = {
        {"voxel, K=3", false, {.kernel = 3, .radius = 0.0375f, .degrade = PNET_VOXEL}},
        {"ball 0.0375 m, K=3", false, {.kernel = 3, .radius = 0.0375f}},
        {"ball 0.05 m, K=3", false, {.kernel = 3, .radius = 0.05f}},
        {"the same transposed", true, {.kernel = 3, .radius = 0.05f}},
        {"ball 0.0625 m, K=5", false, {.kernel = 5, .radius = 0.0625f}},
    };
    struct arena a;
    struct cloud *raw = read_rooms(dir);
    CHECKF(raw, "no rooms in %s", dir);
    if (!raw) return;
    arena_open(&a, (size_t)8 << 30);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct staged s = stage_open(&a, &raw->level);
        stage_level(&s);
        time_tiles(&a, sets[i].what, &s.level, sets[i].transposed, sets[i].nb);
        CHECK(arena_close(&a));
    }
    pnet_cuda_free(a.base);
    cloud_free(raw);
}

int main(int argc, char **argv)
{
    const char *why;
    struct arena a;
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (argc < 3) {
        arena_open(&a, (size_t)1 << 30);
        random_sets(&a);
        uneven(&a);
        clustered(&a);
        long_runs(&a);
        pnet_cuda_free(a.base);
    }
    if (argc > 1) time_rooms(argv[1]);
    return check_end();
}
#endif
