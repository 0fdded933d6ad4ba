#include "runtime/train/tiled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum pnet_status pnet_tiled_margin(
    const struct pnet_plan *p, double *margin, const char **behind, struct pnet_error *e)
{
    struct pnet_receptive_field f;
    enum pnet_status st = pnet_plan_receptive_field(p, p->result, &f, e);
    *behind = NULL;
    if (st) return st;
    *margin = f.metres;
    if (f.node >= 0) *behind = p->nodes[f.node].path;
    return PNET_OK;
}

/* What all tiles of a cloud share. */
struct job {
    struct pnet_runner *runner;
    const struct pnet_plan *plan;
    const struct pnet_batch *batch;
    int input;
    bool blend;
    struct pnet_cloud_tiles tiles;
    size_t width;
    float *result;  /* [rows, width] */
    double *sum;    /* blended: [rows, width], of results times their weights */
    double *weight; /* blended: [rows] */
};

static enum pnet_status run_tile(
    const struct job *j, const struct pnet_cloud_tile *tile, float **result, struct pnet_error *e)
{
    struct pnet_batch *b;
    int64_t rows;
    enum pnet_status st =
        pnet_batch_take(j->plan->inputs, j->batch, j->input, tile->row, tile->rows, &b, e);
    if (st) return st;
    b->inputs[j->input].largest = j->tiles.largest;
    st = pnet_runner_prepare(j->runner, 0, b, e);
    pnet_batch_free(b);
    if (!st) st = pnet_runner_forward(j->runner, 0, false, 0, e);
    return st ? st : pnet_runner_result(j->runner, 0, result, &rows, e);
}

static void take_own(const struct job *j, const struct pnet_cloud_tile *tile, const float *result)
{
    for (int64_t i = 0; i < tile->rows; i++)
        if (tile->is_own[i])
            memcpy(j->result + (size_t)tile->row[i] * j->width, result + (size_t)i * j->width,
                j->width * sizeof *result);
}

static void add_all(
    const struct job *j, int64_t number, const struct pnet_cloud_tile *tile, const float *result)
{
    for (int64_t i = 0; i < tile->rows; i++) {
        int64_t row = tile->row[i];
        double weight = pnet_cloud_tile_weight(&j->tiles, number, j->tiles.xyz + 3 * row);
        if (weight <= 0) continue;
        j->weight[row] += weight;
        for (size_t k = 0; k < j->width; k++)
            j->sum[(size_t)row * j->width + k] += weight * (double)result[(size_t)i * j->width + k];
    }
}

static void divide(const struct job *j)
{
    for (int64_t i = 0; i < j->tiles.rows; i++)
        for (size_t k = 0; k < j->width; k++) {
            size_t at = (size_t)i * j->width + k;
            j->result[at] = (float)(j->sum[at] / j->weight[i]);
        }
}

static enum pnet_status run_all(const struct job *j, const struct pnet_tiled_options *o,
    struct pnet_tiled_work *work, struct pnet_error *e)
{
    int64_t done = 0;
    enum pnet_status st = PNET_OK;
    for (int64_t t = 0; t < j->tiles.count && !st; t++) {
        struct pnet_cloud_tile tile;
        float *result = NULL;
        if ((st = pnet_cloud_tile_new(&j->tiles, t, &tile, e))) return st;
        st = run_tile(j, &tile, &result, e);
        if (!st && j->blend) add_all(j, t, &tile, result);
        if (!st && !j->blend) take_own(j, &tile, result);
        free(result);
        done += tile.own;
        work->computed += tile.rows;
        if (tile.rows > work->largest) work->largest = tile.rows;
        pnet_cloud_tile_free(&tile);
        if (!st && o->go_on && !o->go_on(o->context, done, j->tiles.rows))
            st = pnet_error_set(e, PNET_INTERRUPTED, "interrupted");
    }
    return st;
}

enum pnet_status pnet_tiled_result(struct pnet_runner *s, const struct pnet_batch *b, int input,
    const struct pnet_tiled_options *o, float **result, struct pnet_tiled_work *work,
    struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    struct job j = {.runner = s,
        .plan = p,
        .batch = b,
        .input = input,
        .blend = o->blend,
        .width = (size_t)p->tensors[p->result].type.width};
    size_t rows = (size_t)b->inputs[input].rows, count = rows * j.width;
    *result = NULL;
    enum pnet_status st =
        pnet_cloud_tiles_new(&o->tiling, (int64_t)rows, b->inputs[input].xyz, &j.tiles, e);
    if (st) return st;
    *work = (struct pnet_tiled_work){.tiles = j.tiles.count, .points = (int64_t)rows};
    j.result = malloc(count * sizeof *j.result + 1);
    if (j.blend) {
        j.sum = calloc(count + 1, sizeof *j.sum);
        j.weight = calloc(rows + 1, sizeof *j.weight);
    }
    bool ok = j.result && (!j.blend || (j.sum && j.weight));
    st = ok ? run_all(&j, o, work, e) : pnet_error_memory(e);
    if (!st && j.blend) divide(&j);
    if (st)
        free(j.result);
    else
        *result = j.result;
    free(j.sum);
    free(j.weight);
    pnet_cloud_tiles_free(&j.tiles);
    return st;
}
