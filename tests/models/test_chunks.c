/* Levels of chunks in a plan: their rows and points, maps to them, triplet sets on them, and what must not change them, nor
   attention on them and on other levels: the company of a batch, the number of threads, the order of the points in the file, the
   mode. */
#include "kernels/cpu/geometry/ref_geometry.h"
#include "runtime/run/slot.h"
#include "tests/models/batch.h"

#include <omp.h>

/* Convolutions on chunks, on a level between, and from chunks to what they are cut from. */
static const char model[] =
    "pnet 1\n"
    "input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }\n"
    "net n(p: cloud) {\n"
    "  g = grid(p, 20cm)\n"
    "  c = chunks(g, [2, 6])\n"
    "  f = chunks(p, 4)\n"
    "  a = p.rgb -> pool(mean, to=g) -> pool(mean, to=c[1]) -> conv(8, radius=80cm) -> relu\n"
    "  b = a -> conv(8, kernel=2, to=g)\n"
    "  d = p.rgb -> pool(max, to=f) -> conv(4, knn=5)\n"
    "  e = d -> upsample(to=level(p), kind=inverse_distance) -> pool(mean, to=g)\n"
    "  h = b -> conv(4, radius=60cm, to=c[0]) -> upsample(to=g)\n"
    "  return cat(b, e, h) -> linear(12) -> pool(max, to=c[1])\n"
    "}\n"
    "y = n(cloud)\n";

/* Attention along every order, on a cloud, a grid and chunks; several scopes a sample. */
static const char attention[] =
    "pnet 1\n"
    "input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }\n"
    "net n(p: cloud) {\n"
    "  g = grid(p, 10cm)\n"
    "  c = chunks(g, [2, 4])\n"
    "  a = p.rgb -> pool(mean, to=g) -> linear(48)\n"
    "    -> attend(2, order=xor_div, bucket=16, scope=2, shift=1, stride=2)\n"
    "  a = a -> linear(48) -> attend(1, order=hilbert, bucket=32, scope=2, shift=3, wrap=yes)\n"
    "  a = a -> linear(24) -> attend(1, order=z_trans, bucket=16, scope=3)\n"
    "  b = a -> pool(mean, to=c[0]) -> linear(24) -> attend(1, order=xor_mod, bucket=16, scope=2)\n"
    "  b = b -> linear(48) -> attend(1, order=z_mod, bucket=16, scope=1, stride=3)\n"
    "  d = b -> pool(max, to=c[1]) -> linear(24) -> attend(1, bucket=16, scope=2, shift=1)\n"
    "  e = p.rgb -> linear(24) -> attend(1, order=hilbert_trans, bucket=16, scope=4, cell=3cm)\n"
    "  return cat(a, b -> upsample(to=g), d -> upsample(to=g), e -> pool(mean, to=g)) -> "
    "linear(12)\n"
    "}\n"
    "y = n(cloud)\n";

static struct pnet_compilation *compile(const char *text, unsigned degrade)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE, .degrade = degrade};
    return need_plan(pnet_compile_text("chunks.pnet", text, strlen(text), &o), "the model");
}

static const struct pnet_level *level_of(const struct pnet_slot *s, int level)
{
    return &s->views[pnet_geo_level_item(s->plan, level)].level;
}

/* The rows and points of a level of chunks, against the reference. */
static void check_level(const struct pnet_slot *s, int level)
{
    const struct pnet_level_info *info = &s->plan->levels[level];
    const struct pnet_level *fine = level_of(s, info->finer), *l = level_of(s, level);
    size_t rows = (size_t)fine->rows + 1, splits_bytes = ((size_t)l->samples + 1) * 8;
    int32_t *keep = must(malloc(rows * sizeof *keep)), *parent = must(malloc(rows * 4));
    int64_t *splits = must(malloc(splits_bytes)), wrong = 0, falls = 0;
    CHECK(pnet_ref_chunks(fine, info->count, keep, parent, splits) == l->rows);
    CHECK(memcmp(splits, l->row_splits, splits_bytes) == 0);
    for (int64_t i = 0; i < l->rows && i < splits[l->samples]; i++)
        wrong += memcmp(l->xyz + 3 * i, fine->xyz + 3 * (int64_t)keep[i], 12) != 0;
    CHECKF(wrong == 0, "%s: %d points", info->name, (int)wrong);
    CHECK(info->cell == 0 && l->grid.base > 0);
    CHECK(memcmp(&l->grid, &fine->grid, sizeof l->grid) == 0);
    for (int32_t n = 0; n < l->samples && l->key; n++)
        for (int64_t i = splits[n] + 1; i < splits[n + 1]; i++) falls += l->key[i] < l->key[i - 1];
    CHECKF(falls == 0, "%s: rows do not follow their keys", info->name);
    free(keep);
    free(parent);
    free(splits);
}

/* How many rows of `fine` one of `coarse` stands for, where there are chunks alone between them; 0: there is a grid. */
static int64_t rows_between(const struct pnet_plan *p, int fine, int coarse)
{
    int64_t size = 1;
    for (int l = coarse; l != fine; l = p->levels[l].finer)
        size *= p->levels[l].kind == PNET_GEO_CHUNKS ? p->levels[l].count : 0;
    return size;
}

/* A map over chunks: the parent of a row follows from its number in the sample, children are stretches. */
static void check_map(const struct pnet_slot *s, const struct pnet_geo_view *v, int64_t size)
{
    const int64_t *fine = pnet_slot_splits(s, v->a), *coarse = pnet_slot_splits(s, v->b);
    int64_t wrong = 0;
    for (int32_t n = 0; n < s->counts.samples; n++) {
        for (int64_t i = fine[n]; i < fine[n + 1]; i++)
            wrong += v->parent[i] != coarse[n] + (i - fine[n]) / size;
        for (int64_t r = coarse[n]; r < coarse[n + 1] && v->child_start; r++)
            wrong += v->child_start[r] != fine[n] + (r - coarse[n]) * size;
    }
    CHECKF(wrong == 0, "%d parents of chunks of %d", (int)wrong, (int)size);
    CHECK(!v->child);
}

/* A triplet set, in the form that is kept, against the reference. */
static void check_set(const struct pnet_slot *s, int item)
{
    const struct pnet_geo_view *v = &s->views[item];
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    const struct pnet_geo_request map = {.kind = PNET_GEO_PARENT, .a = q->b, .b = q->a};
    const struct pnet_level *out = level_of(s, q->a), *in = level_of(s, q->b);
    int64_t count, wrong = 0;
    const int32_t *parent = q->a == q->b ? NULL : s->views[pnet_geo_find(s->plan, &map)].parent;
    struct pnet_ref_triplet *want =
        must(pnet_ref_triplets(out, in, &q->triplets.nb, parent, &count));
    const struct pnet_triplets *set = v->forward.other ? &v->forward : &v->transposed;
    if (set == &v->transposed) pnet_ref_transpose(count, want);
    CHECK(count == set->count && count > set->rows);
    for (int64_t row = 0, n = 0; row < set->rows && count == set->count; row++)
        for (; n < set->start[row + 1]; n++)
            wrong += want[n].i != row || want[n].j != set->other[n] || want[n].k != set->cell[n];
    CHECKF(wrong == 0, "%d triplets of %s", (int)wrong, s->plan->levels[q->a].name);
    free(want);
}

static void test_geometry(const struct cloud *clouds, int32_t count)
{
    struct pnet_compilation *c = compile(model, 0);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_bound *b = need_bound(p, (struct pnet_device){0}, PNET_FP32);
    struct host_slot host;
    int levels = 0, maps = 0, sets = 0;
    host_slot_open(&host, b, clouds, count);
    for (int i = 0; i < p->geo_count; i++) {
        const struct pnet_geo_request *q = &p->geo[i].request;
        if (q->kind == PNET_GEO_CHUNKS) check_level(host.slot, q->a), levels++;
        if (q->kind == PNET_GEO_PARENT && rows_between(p, q->a, q->b) > 0)
            check_map(host.slot, &host.slot->views[i], rows_between(p, q->a, q->b)), maps++;
        if (q->kind == PNET_GEO_TRIPLETS) check_set(host.slot, i), sets++;
    }
    CHECKF(levels == 3 && maps == 3 && sets == 4, "%d %d %d", levels, maps, sets);
    host_slot_close(&host);
    pnet_bound_free(b);
    pnet_compilation_free(c);
}

/* Of a grid of chunks: a row belongs to the cell of the point that its chunk keeps, which need not be the cell it lies in. */
static void test_grid_of_chunks(const struct cloud *clouds, int32_t count)
{
    static const char text[] =
        "pnet 1\n"
        "input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }\n"
        "net n(p: cloud) { return p.rgb -> pool(max, to=grid(chunks(grid(p, 5cm), 4), 20cm)) }\n"
        "y = n(cloud)\n";
    struct pnet_compilation *c = compile(text, 0);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_bound *b = need_bound(p, (struct pnet_device){0}, PNET_FP32);
    struct host_slot host;
    enum { POINTS, GRID, CHUNKS, CELLS };
    host_slot_open(&host, b, clouds, count);
    int level[4] = {-1, -1, -1, -1};
    for (int l = 0; l < p->level_count; l++) {
        enum pnet_geo_id kind = p->levels[l].kind;
        if (kind == PNET_GEO_INPUT) level[POINTS] = l;
        if (kind == PNET_GEO_CHUNKS) level[CHUNKS] = l;
        if (kind == PNET_GEO_GRID) level[p->levels[l].finer == level[POINTS] ? GRID : CELLS] = l;
    }
    const struct pnet_geo_request map = {
        .kind = PNET_GEO_PARENT, .a = level[POINTS], .b = level[CELLS]};
    const struct pnet_level *points = level_of(host.slot, level[POINTS]),
                            *grid = level_of(host.slot, level[GRID]),
                            *chunks = level_of(host.slot, level[CHUNKS]),
                            *cells = level_of(host.slot, level[CELLS]);
    const int32_t *parent = host.slot->views[pnet_geo_find(p, &map)].parent;
    int64_t wrong = 0, elsewhere = 0;
    for (int32_t s = 0; s < points->samples; s++)
        for (int64_t i = points->row_splits[s]; i < points->row_splits[s + 1]; i++) {
            int32_t own[3], of_chunk[3], of_cell[3], of_row[3];
            int64_t row = grid->row_splits[s];
            pnet_ref_voxel(points->xyz + 3 * i, grid->grid, own);
            for (;; row++) { /* the row of the fine grid that holds the point */
                pnet_ref_voxel(grid->xyz + 3 * row, grid->grid, of_row);
                if (memcmp(own, of_row, sizeof own) == 0) break;
            }
            int64_t chunk = chunks->row_splits[s] + (row - grid->row_splits[s]) / 4;
            pnet_ref_voxel(chunks->xyz + 3 * chunk, cells->grid, of_chunk);
            pnet_ref_voxel(cells->xyz + 3 * (int64_t)parent[i], cells->grid, of_cell);
            pnet_ref_voxel(points->xyz + 3 * i, cells->grid, own);
            wrong += memcmp(of_chunk, of_cell, sizeof own) != 0;
            elsewhere += memcmp(own, of_cell, sizeof own) != 0;
        }
    CHECKF(wrong == 0 && elsewhere > 0, "%d, %d", (int)wrong, (int)elsewhere);
    host_slot_close(&host);
    pnet_bound_free(b);
    pnet_compilation_free(c);
}

/* The points of every level of chunks in the model of the file, in one array to be freed. */
static float *points_of(unsigned degrade, const struct cloud *clouds, int32_t count, int64_t *rows)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE, .degrade = degrade};
    struct pnet_compilation *c =
        need_plan(pnet_compile_file("tests/models/chunks.pnet", &o), "the model");
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_bound *b = need_bound(p, (struct pnet_device){0}, PNET_FP32);
    struct host_slot host;
    float *points = NULL;
    *rows = 0;
    host_slot_open(&host, b, clouds, count);
    for (int l = 0; l < p->level_count; l++) {
        if (p->levels[l].kind != PNET_GEO_CHUNKS) continue;
        const struct pnet_level *level = level_of(host.slot, l);
        points = must(realloc(points, (size_t)(*rows + level->rows) * 12 + 1));
        memcpy(points + 3 * *rows, level->xyz, (size_t)level->rows * 12);
        *rows += level->rows;
    }
    host_slot_close(&host);
    pnet_bound_free(b);
    pnet_compilation_free(c);
    return points;
}

static void check_same_points(
    const char *what, unsigned degrade, const struct cloud *a, const struct cloud *b, int32_t count)
{
    int64_t rows, others;
    float *want = points_of(0, a, count, &rows), *got = points_of(degrade, b, count, &others);
    CHECKF(rows == others && rows > a->n / 3, "%s: %d rows, %d", what, (int)rows, (int)others);
    CHECKF(rows == others && memcmp(want, got, (size_t)rows * 12) == 0, "%s: points differ", what);
    free(want);
    free(got);
}

/* A point in every cell of 10 cm of a slab, anywhere in it. */
static struct cloud one_a_cell(int64_t n)
{
    struct cloud c = cloud_new(n);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            c.xyz[3 * i + k] = 0.1f * ((float)(k == 0   ? i % 17
                                               : k == 1 ? i / 17 % 13
                                                        : i / 221) +
                                          0.1f + 0.8f * cloud_unit(3, (uint64_t)(3 * i + k)));
    cloud_paint(&c, 4);
    return c;
}

static void test_invariance(const struct cloud *clouds, int32_t count)
{
    struct cloud cells = one_a_cell(500);
    int64_t *order = must(malloc((size_t)cells.n * sizeof *order));
    for (int64_t i = 0; i < cells.n; i++) order[i] = (i * 77 + 5) % cells.n;
    struct cloud mixed = cloud_pick(&cells, order, cells.n);
    CHECK(memcmp(mixed.xyz, cells.xyz, (size_t)cells.n * 12) != 0);
    check_same_points("order of the file", 0, &cells, &mixed, 1);
    check_same_points("voxel mode", PNET_VOXEL, clouds, clouds, count);
    free(order);
    cloud_free(&cells);
    cloud_free(&mixed);
}

/* Weights by name. */
static const float *give(void *context, const char *name, int64_t count)
{
    float *data = context;
    uint64_t seed = 7;
    for (const char *c = name; *c; c++) seed = seed * 31 + (uint8_t)*c;
    for (int64_t i = 0; i < count; i++) data[i] = (cloud_unit(seed, (uint64_t)i) - 0.5f) * 0.4f;
    return data;
}

/* The result in the order of the file, [points, 12], to be freed. */
static float *infer(const struct pnet_plan *p, const struct cloud *clouds, int32_t count)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 1};
    struct pnet_runner *s;
    struct pnet_error e;
    float *weights = must(malloc(sizeof(float) * 100000)), *rows;
    struct pnet_batch *b = batch_of(p, clouds, count);
    int64_t points = b->inputs[0].rows, found;
    need(pnet_runner_new(need_bound(p, (struct pnet_device){0}, PNET_FP32), &o, &s, &e), &e,
        "runner");
    need(pnet_runner_load_params(s, give, weights, &e), &e, "weights");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    need(pnet_runner_forward(s, 0, false, 0, &e), &e, "forward");
    need(pnet_runner_result(s, 0, &rows, &found, &e), &e, "result");
    CHECK(found == points);
    runner_end(s);
    pnet_batch_free(b);
    free(weights);
    return rows;
}

/* A sample has the same bits alone and in a batch, on any number of threads. */
static void test_splitting(const char *text, const struct cloud *clouds, int32_t count)
{
    struct pnet_compilation *c = compile(text, 0);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    omp_set_num_threads(1);
    float *all = infer(p, clouds, count);
    const float *at = all;
    for (int32_t i = 0; i < count; i++) {
        omp_set_num_threads(1 + (i + 1) % 3);
        float *one = infer(p, &clouds[i], 1);
        size_t n = (size_t)clouds[i].n * 12;
        CHECKF(memcmp(one, at, n * sizeof *one) == 0, "sample %d", (int)i);
        at += n;
        free(one);
    }
    bool varied = false;
    for (int64_t i = 12; i < 12 * clouds[0].n; i++) varied |= all[i] != all[i % 12];
    CHECK(varied);
    free(all);
    pnet_compilation_free(c);
}

/* Points in another order in the file, each in a cell of its own, have the same bits; so has every mode. */
static void test_mixed_attention(void)
{
    enum { POINTS = 500 };
    struct pnet_compilation *native = compile(attention, 0),
                            *voxel = compile(attention, PNET_VOXEL);
    struct cloud cells = one_a_cell(POINTS);
    int64_t order[POINTS], wrong = 0;
    for (int64_t i = 0; i < POINTS; i++) order[i] = (i * 77 + 5) % POINTS;
    struct cloud mixed = cloud_pick(&cells, order, POINTS);
    float *want = infer(pnet_compilation_plan(native), &cells, 1),
          *got = infer(pnet_compilation_plan(native), &mixed, 1),
          *other = infer(pnet_compilation_plan(voxel), &cells, 1);
    for (int64_t i = 0; i < POINTS; i++)
        wrong += memcmp(got + 12 * i, want + 12 * order[i], 12 * sizeof *got) != 0;
    CHECKF(wrong == 0, "%d of %d points differ", (int)wrong, (int)POINTS);
    CHECK(memcmp(want, other, sizeof(float) * 12 * POINTS) == 0);
    free(want);
    free(got);
    free(other);
    cloud_free(&cells);
    cloud_free(&mixed);
    pnet_compilation_free(native);
    pnet_compilation_free(voxel);
}

int main(void)
{
    enum { CLOUDS = 5 };
    struct cloud clouds[CLOUDS] = {cloud_corner(700, 4, 1), cloud_corner(1, 4, 2), cloud_new(0),
        cloud_corner(6, 3, 3), cloud_corner(401, 3, 4)};
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        test_geometry(clouds, CLOUDS);
    }
    test_grid_of_chunks(clouds, CLOUDS);
    test_invariance(clouds, CLOUDS);
    test_splitting(model, clouds, CLOUDS);
    test_splitting(attention, clouds, CLOUDS);
    test_mixed_attention();
    for (int i = 0; i < CLOUDS; i++) cloud_free(&clouds[i]);
    return check_end();
}
