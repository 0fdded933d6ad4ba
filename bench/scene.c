#include "bench/scene.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "runtime/io/cloud.h"

/* Writes the shell of a ball, in units of a cell; rows in the order of x, y, z. With `xyz` NULL it only counts. */
static int64_t shell(int size, double cell, float *xyz)
{
    int64_t rows = 0;
    double half = size / 2.0, inner = half - 1.25;
    for (int x = 0; x < size; x++) {
        for (int y = 0; y < size; y++) {
            double a = x - half + 0.5, b = y - half + 0.5, flat = a * a + b * b;
            if (flat > half * half) continue;
            for (int z = 0; z < size; z++) {
                double c = z - half + 0.5, square = flat + c * c;
                if (square > half * half || inner < 0 || square < inner * inner) continue;
                const int voxel[3] = {x, y, z};
                for (int d = 0; d < 3 && xyz; d++)
                    xyz[3 * rows + d] = (float)((voxel[d] + 0.5) * cell);
                rows++;
            }
        }
    }
    return rows;
}

static enum pnet_status read_shell(
    const char *size_text, double cell, float **xyz, int64_t *rows, struct pnet_error *e)
{
    char *end;
    long size = strtol(size_text, &end, 10);
    if (end == size_text || *end || size < 3 || size > 1024)
        return pnet_error_set(
            e, PNET_USAGE, "sphere:%.40s: a sphere has 3 to 1024 cells an axis", size_text);
    *rows = shell((int)size, cell, NULL);
    *xyz = bench_alloc((size_t)*rows * 3 * sizeof **xyz);
    shell((int)size, cell, *xyz);
    return PNET_OK;
}

static enum pnet_status read_points(
    const char *path, double cell, float **xyz, int64_t *rows, struct pnet_error *e)
{
    static const char sphere[] = "sphere:";
    if (strncmp(path, sphere, sizeof sphere - 1) == 0)
        return read_shell(path + sizeof sphere - 1, cell, xyz, rows, e);
    struct pnet_cloud cloud;
    enum pnet_status status = pnet_cloud_read(path, &cloud, NULL, e);
    if (status != PNET_OK) return status;
    *rows = cloud.rows;
    *xyz = bench_alloc((size_t)cloud.rows * 3 * sizeof **xyz);
    memcpy(*xyz, cloud.xyz, (size_t)cloud.rows * 3 * sizeof **xyz);
    pnet_cloud_free(&cloud);
    return PNET_OK;
}

enum pnet_status pnet_bench_scene_read(struct scene *s, int paths, const char *const *path,
    int times, double cell, struct pnet_error *e)
{
    float *piece[SCENES_MAX] = {NULL};
    int64_t rows[SCENES_MAX] = {0}, all = 0;
    enum pnet_status status = PNET_OK;
    *s = (struct scene){.level = {.samples = paths * times}};
    if (paths * times > SCENES_MAX)
        return pnet_error_set(e, PNET_USAGE, "at most %d samples", SCENES_MAX);
    for (int i = 0; i < paths && !status; i++) {
        status = read_points(path[i], cell, &piece[i], &rows[i], e);
        all += rows[i];
    }
    if (!status && all == 0) status = pnet_error_set(e, PNET_BAD_DATA, "%s has no points", path[0]);
    if (!status) s->xyz = bench_alloc((size_t)all * (size_t)times * 3 * sizeof *s->xyz);
    for (int n = 0; n < paths * times && !status; n++) {
        int i = n % paths;
        if (piece[i])
            memcpy(s->xyz + 3 * s->splits[n], piece[i], (size_t)rows[i] * 3 * sizeof *s->xyz);
        s->splits[n + 1] = s->splits[n] + rows[i];
    }
    for (int i = 0; i < paths; i++) free(piece[i]);
    return status;
}

bool pnet_bench_scene_order(struct scene *s, double cell)
{
    int64_t rows = s->splits[s->level.samples];
    struct pnet_grid grid = {(float)cell, (float)(1 / cell), 1};
    uint64_t *key = bench_alloc((size_t)rows * sizeof *key);
    int32_t *order = bench_alloc((size_t)rows * sizeof *order);
    float *xyz = bench_alloc((size_t)rows * 3 * sizeof *xyz);
    void *work = bench_alloc(pnet_cpu_order_work(rows));
    bool inside = pnet_cpu_keys(rows, s->xyz, grid, key) == 0;
    pnet_cpu_order(rows, s->level.samples, s->splits, key, order, work);
    for (int64_t i = 0; i < rows; i++)
        memcpy(xyz + 3 * i, s->xyz + 3 * (int64_t)order[i], 3 * sizeof *xyz);
    pnet_cpu_keys(rows, xyz, grid, key);
    free(work);
    free(order);
    free(s->xyz);
    s->xyz = xyz;
    s->key = key;
    s->level = (struct pnet_level){rows, s->level.samples, s->splits, xyz, key, grid};
    return inside;
}

void pnet_bench_scene_thin(struct scene *s)
{
    size_t rows = (size_t)s->level.rows;
    int32_t *keep = bench_alloc(rows * sizeof *keep), *parent = bench_alloc(rows * sizeof *parent);
    void *work = bench_alloc(pnet_cpu_sample_work(s->level.rows, true));
    int64_t splits[SCENES_MAX + 1];
    s->level.rows = pnet_cpu_sample(&s->level, s->level.grid, true, keep, parent, splits, work);
    for (int64_t i = 0; i < s->level.rows; i++) { /* rows ascend: keep[i] >= i */
        memmove(s->xyz + 3 * i, s->xyz + 3 * (int64_t)keep[i], 3 * sizeof *s->xyz);
        s->key[i] = s->key[keep[i]];
    }
    memcpy(s->splits, splits, ((size_t)s->level.samples + 1) * sizeof *splits);
    free(keep);
    free(parent);
    free(work);
}

void pnet_bench_scene_piece(const struct scene *s, int64_t rows, struct scene *piece)
{
    *piece = *s;
    piece->level.rows = rows;
    for (int i = 0; i <= s->level.samples; i++)
        if (piece->splits[i] > rows) piece->splits[i] = rows;
    piece->level.row_splits = piece->splits;
}

void pnet_bench_scene_free(struct scene *s)
{
    free(s->xyz);
    free(s->key);
}

struct scene_set pnet_bench_scene_triplets(
    const struct scene *s, const struct pnet_neighbourhood *nb)
{
    const struct pnet_level *l = &s->level;
    struct scene_set set = {.start = bench_alloc((size_t)(l->rows + 1) * sizeof(int64_t))};
    void *work = bench_alloc(pnet_cpu_triplets_work(l, l, nb));
    int64_t count = pnet_cpu_triplets_count(l, l, nb, NULL, set.start, work);
    set.other = bench_alloc((size_t)count * sizeof *set.other);
    set.cell = bench_alloc((size_t)count * sizeof *set.cell);
    pnet_cpu_triplets_write(l, l, nb, NULL, set.start, set.other, set.cell, work);
    free(work);
    int32_t cells = nb->kernel * nb->kernel * nb->kernel;
    set.t = (struct pnet_triplets){.rows = l->rows,
        .others = l->rows,
        .count = count,
        .cells = cells,
        .start = set.start,
        .other = set.other,
        .cell = set.cell};
    return set;
}

struct scene_set pnet_bench_scene_transposed(const struct pnet_triplets *t)
{
    struct scene_set set = {.start = bench_alloc((size_t)(t->others + 1) * sizeof(int64_t)),
        .other = bench_alloc((size_t)t->count * sizeof(int32_t)),
        .cell = bench_alloc((size_t)t->count * sizeof(uint16_t))};
    void *work = bench_alloc(pnet_cpu_transpose_work(t));
    pnet_cpu_transpose(t, set.start, set.other, set.cell, work);
    free(work);
    set.t = (struct pnet_triplets){.rows = t->others,
        .others = t->rows,
        .count = t->count,
        .cells = t->cells,
        .start = set.start,
        .other = set.other,
        .cell = set.cell};
    return set;
}

static void name(struct scene_set *s, const int32_t *row, const int32_t *place)
{
    s->t.row = row;
    s->t.place = place;
#pragma omp parallel for
    for (int64_t n = 0; n < s->t.count; n++) s->other[n] = row[s->other[n]];
}

void pnet_bench_scene_mix(struct scene_set *forward, struct scene_set *backward)
{
    int64_t rows = forward->t.rows;
    int32_t *row = bench_alloc((size_t)rows * sizeof *row),
            *place = bench_alloc((size_t)rows * sizeof *place);
    uint64_t state = 1;
    for (int64_t p = 0; p < rows; p++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t q = (int64_t)((state >> 33) % (uint64_t)(p + 1));
        row[p] = row[q];
        row[q] = (int32_t)p;
    }
    for (int64_t p = 0; p < rows; p++) place[row[p]] = (int32_t)p;
    name(forward, row, place);
    name(backward, row, place);
    forward->row = row;
    forward->place = place;
}

void pnet_bench_scene_set_free(struct scene_set *s)
{
    free(s->start);
    free(s->other);
    free(s->cell);
    free(s->row);
    free(s->place);
}

bool pnet_bench_scene_file(const char *paths[SCENES_MAX], int *count, const char *path)
{
    if (*count == SCENES_MAX) return false;
    paths[(*count)++] = path;
    return true;
}

bool pnet_bench_scene_mode(const char *text, unsigned *degrade)
{
    bool voxel = strcmp(text, "voxel") == 0;
    *degrade = voxel ? PNET_VOXEL : 0;
    return voxel || strcmp(text, "native") == 0;
}
