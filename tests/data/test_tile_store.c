/* The store of tiles gives what tiles in memory are, and keeps values for those who take the work up again. */
#include "runtime/data/tile_store.h"
#include "tests/models/batch.h"

#include <sys/stat.h>
#include <unistd.h>

enum { POINTS = 4000 };

static char folder[4096];

/* A cloud of which some rows of the file have no point: row_of() ascends. */
static int64_t row_of(int64_t point)
{
    return point + point / 7;
}

static struct cloud made_up(uint64_t seed)
{
    struct cloud c = cloud_new(POINTS);
    for (int64_t i = 0; i < 3 * c.n; i++)
        c.xyz[i] = 12 * cloud_unit(seed, (uint64_t)i) * (i % 3 == 2 ? 0.2f : 1) - 5;
    cloud_paint(&c, seed);
    return c;
}

/* The points from `first` on as a sample, as readers make them. */
static struct pnet_sample sample_of(
    const struct pnet_plan *p, const struct cloud *c, int64_t first, int64_t rows, float *features)
{
    static void *fields[3];
    for (int64_t i = 0; i < rows; i++)
        memcpy(features + 2 * i, c->features + CLOUD_FEATURES * (first + i), 2 * sizeof(float));
    fields[1] = features;
    return (struct pnet_sample){
        .input = &p->inputs[0], .rows = rows, .xyz = c->xyz + 3 * first, .fields = fields};
}

static struct pnet_tile_store *fill(
    const struct pnet_plan *p, const struct cloud *c, struct pnet_tiling tiling, int64_t piece)
{
    struct pnet_tile_store *s;
    struct pnet_error e;
    struct pnet_tile_store_options o = {.folder = folder,
        .tiling = tiling,
        .inputs = p->inputs,
        .input_count = p->input_count,
        .value_bytes = 2 * sizeof(int64_t)};
    float *features = must(malloc(sizeof(float) * 2 * POINTS));
    int64_t *rows = must(malloc(sizeof *rows * POINTS));
    need(pnet_tile_store_open(&o, &s, &e), &e, "open");
    for (int64_t i = 0; i < c->n; i += piece)
        need(pnet_tile_store_count(s, c->n - i < piece ? c->n - i : piece, c->xyz + 3 * i, &e), &e,
            "count");
    need(pnet_tile_store_turn(s, &e), &e, "turn");
    for (int64_t i = 0; i < c->n; i += piece) {
        struct pnet_sample part = sample_of(p, c, i, c->n - i < piece ? c->n - i : piece, features);
        for (int64_t k = 0; k < part.rows; k++) rows[k] = row_of(i + k);
        need(pnet_tile_store_put(s, &part, rows, &e), &e, "put");
    }
    free(features);
    free(rows);
    return s;
}

static void compare_tile(const struct pnet_tile_store *s, int64_t number,
    const struct pnet_cloud_tiles *t, const struct cloud *c)
{
    struct pnet_cloud_tile tile;
    struct pnet_batch *b;
    struct pnet_error e;
    bool *is_own;
    need(pnet_cloud_tile_new(t, number, &tile, &e), &e, "tile");
    need(pnet_tile_store_take(s, number, &b, &is_own, &e), &e, "take");
    const struct pnet_batch_input *in = &b->inputs[0];
    bool same = in->rows == tile.rows && pnet_tile_store_own(s, number) == tile.own;
    CHECKF(same, "tile %lld: %lld points, in memory %lld", (long long)number, (long long)in->rows,
        (long long)tile.rows);
    for (int64_t i = 0; same && i < tile.rows; i++) {
        const float *features = in->fields[1];
        same = is_own[i] == tile.is_own[i] &&
               memcmp(in->xyz + 3 * i, c->xyz + 3 * tile.row[i], 3 * sizeof(float)) == 0 &&
               memcmp(features + 2 * i, c->features + CLOUD_FEATURES * tile.row[i],
                   2 * sizeof(float)) == 0;
        CHECKF(same, "tile %lld: another point %lld", (long long)number, (long long)i);
    }
    CHECKF(in->largest == t->largest, "the largest coordinate is %g", (double)in->largest);
    pnet_cloud_tile_free(&tile);
    pnet_batch_free(b);
    free(is_own);
}

/* The value of a point is its row and a number of the run. */
static void give(
    struct pnet_tile_store *s, const struct pnet_cloud_tiles *t, int64_t tile, int64_t run)
{
    struct pnet_error e;
    int64_t own = t->first[tile + 1] - t->first[tile],
            (*values)[2] = must(malloc((size_t)own * sizeof *values));
    for (int64_t i = 0; i < own; i++) {
        values[i][0] = row_of(t->row[t->first[tile] + i]);
        values[i][1] = run;
    }
    need(pnet_tile_store_give(s, tile, values, &e), &e, "give");
    free(values);
}

/* Reads all values in pieces; returns how many are of the first run. */
static int64_t check_values(struct pnet_tile_store *s, int64_t rows, int64_t piece)
{
    struct pnet_error e;
    int64_t(*values)[2] = must(malloc((size_t)piece * sizeof *values)), points = 0, of_first = 0;
    bool *there = must(malloc((size_t)piece));
    for (int64_t first = 0; first < rows; first += piece) {
        int64_t count = rows - first < piece ? rows - first : piece;
        need(pnet_tile_store_values(s, first, count, values, there, &e), &e, "values");
        for (int64_t i = 0; i < count; i++) {
            CHECKF(there[i] == ((first + i) % 8 != 7), "row %lld", (long long)(first + i));
            if (!there[i]) continue;
            CHECKF(values[i][0] == first + i, "row %lld has the value of row %lld",
                (long long)(first + i), (long long)values[i][0]);
            of_first += values[i][1] == 1;
            points++;
        }
    }
    CHECKF(points == POINTS, "%lld points", (long long)points);
    free(values);
    free(there);
    return of_first;
}

static int64_t marked(const struct pnet_tile_store *s)
{
    int64_t count = 0;
    for (int64_t t = 0; t < pnet_tile_store_tiles(s); t++) count += pnet_tile_store_has(s, t);
    return count;
}

/* Half of the tiles are done in a first run, the others in a second one; other keys and other points begin anew. */
static void check_again(const struct pnet_plan *p, const struct cloud *c, struct pnet_tiling tiling)
{
    struct pnet_error e;
    struct pnet_cloud_tiles t;
    struct cloud other = made_up(2);
    int64_t of_first = 0;
    need(pnet_cloud_tiles_new(&tiling, c->n, c->xyz, &t, &e), &e, "tiles");
    struct pnet_tile_store *s = fill(p, c, tiling, 700);
    need(pnet_tile_store_begin(s, 11, &e), &e, "begin");
    CHECK(!pnet_tile_store_has_any(s));
    for (int64_t i = 0; i < t.count; i += 2) {
        give(s, &t, i, 1);
        of_first += t.first[i + 1] - t.first[i];
    }
    pnet_tile_store_close(s, true);
    s = fill(p, c, tiling, 999);
    CHECK(pnet_tile_store_has_any(s));
    need(pnet_tile_store_begin(s, 11, &e), &e, "begin");
    CHECKF(marked(s) == (t.count + 1) / 2, "%lld tiles stay", (long long)marked(s));
    for (int64_t i = 0; i < t.count; i++)
        if (!pnet_tile_store_has(s, i)) give(s, &t, i, 2);
    int64_t rows = row_of(POINTS - 1) + 1, found = check_values(s, rows, 256);
    CHECKF(found == of_first, "%lld values of the first run, not %lld", (long long)found,
        (long long)of_first);
    check_values(s, rows, 1);
    check_values(s, rows, rows);
    pnet_tile_store_close(s, true);
    s = fill(p, c, tiling, 999);
    need(pnet_tile_store_begin(s, 12, &e), &e, "another key");
    CHECK(marked(s) == 0);
    give(s, &t, 0, 1);
    pnet_tile_store_close(s, true);
    s = fill(p, &other, tiling, 999);
    need(pnet_tile_store_begin(s, 12, &e), &e, "other points");
    CHECK(marked(s) == 0);
    pnet_tile_store_close(s, false);
    CHECK(access(folder, F_OK) != 0);
    pnet_cloud_tiles_free(&t);
    cloud_free(&other);
}

/* What lies in the way stays; what has changed is told. */
static void check_refusals(
    const struct pnet_plan *p, const struct cloud *c, struct pnet_tiling tiling)
{
    char path[sizeof folder + 8];
    struct pnet_tile_store *s;
    struct pnet_error e;
    struct pnet_tile_store_options o = {
        .folder = folder, .tiling = tiling, .inputs = p->inputs, .input_count = p->input_count};
    snprintf(path, sizeof path, "%s/done", folder);
    mkdir(folder, 0777);
    FILE *f = must(fopen(path, "w"));
    fputs("a diary of somebody, longer than the head", f);
    fclose(f);
    CHECK(pnet_tile_store_open(&o, &s, &e) == PNET_USAGE && !s && strstr(e.message, "in the way"));
    CHECK(access(path, F_OK) == 0);
    unlink(path);
    s = fill(p, c, tiling, POINTS);
    float more = c->xyz[0];
    struct pnet_sample again = sample_of(p, c, 0, 1, &(float[2]){more, more}[0]);
    CHECK(pnet_tile_store_put(s, &again, &(int64_t){POINTS}, &e) == PNET_FAILED &&
          strstr(e.message, "changed"));
    pnet_tile_store_close(s, false);
    CHECK(access(folder, F_OK) != 0);
}

int main(void)
{
    const char *text =
        "pnet 1\ninput cloud { xyz : position  f : feature[2]  unread : feature[3] }\n"
        "net test(p: cloud) {\n  g = grid(p, 20cm * [1, 2])\n"
        "  return p.f -> pool(mean, to=g[1]) -> conv(2, kernel=3)\n}\n"
        "y = test(cloud)\n";
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE};
    struct pnet_compilation *compilation =
        need_plan(pnet_compile_text("store.pnet", text, strlen(text), &o), "store.pnet");
    const struct pnet_plan *p = pnet_compilation_plan(compilation);
    const char *temporary = getenv("TMPDIR");
    struct pnet_tiling tiling = pnet_tiling_new(p, 1.5);
    struct pnet_cloud_tiles t;
    struct pnet_error e;
    struct cloud c = made_up(1);
    tiling.margin = 1.1;
    snprintf(folder, sizeof folder, "%.4000s/pnet-tiles-%ld", temporary ? temporary : "/tmp",
        (long)getpid());
    need(pnet_cloud_tiles_new(&tiling, c.n, c.xyz, &t, &e), &e, "tiles");
    for (int64_t piece = 1; piece <= POINTS; piece = 63 * piece) {
        struct pnet_tile_store *s = fill(p, &c, tiling, piece);
        CHECK(pnet_tile_store_tiles(s) == t.count && pnet_tile_store_points(s) == c.n);
        for (int64_t i = 0; i < t.count; i++) compare_tile(s, i, &t, &c);
        pnet_tile_store_close(s, false);
    }
    check_again(p, &c, tiling);
    check_refusals(p, &c, tiling);
    pnet_cloud_tiles_free(&t);
    cloud_free(&c);
    pnet_compilation_free(compilation);
    return check_end();
}
