#include "runtime/train/tiled.h"

#include "runtime/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Is the tensor a field of labels? */
static bool is_label(const struct pnet_plan *p, int tensor)
{
    return p->tensors[tensor].type.type == PNET_I32;
}

/* Widens the margin by the field of a tensor. The parent of a point lies within the cell of its level. */
static enum pnet_status widen(const struct pnet_plan *p, int tensor, double *margin,
    const char **behind, struct pnet_error *e)
{
    struct pnet_receptive_field f;
    enum pnet_status st = pnet_plan_receptive_field(p, tensor, &f, e);
    if (st) return st;
    const struct pnet_level_info *l = &p->levels[p->tensors[tensor].type.level];
    double metres = f.metres + (l->kind == PNET_GEO_GRID ? l->cell : 0);
    if (metres > *margin) {
        *margin = metres;
        *behind = f.node < 0 ? NULL : p->nodes[f.node].path;
    }
    return PNET_OK;
}

enum pnet_status pnet_tiled_margin(
    const struct pnet_plan *p, double *margin, const char **behind, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    *margin = 0;
    *behind = NULL;
    if (p->result >= 0) return widen(p, p->result, margin, behind, e);
    for (int i = 0; i < p->node_count; i++) {
        const struct pnet_node *n = &p->nodes[i];
        if (n->dead || n->op->class_ == PNET_LAYER) continue;
        for (int k = 0; k < n->in_count && !st; k++)
            if (!is_label(p, n->in[k])) st = widen(p, n->in[k], margin, behind, e);
    }
    return st;
}

enum pnet_status pnet_tiled_can_evaluate(const struct pnet_plan *p, struct pnet_error *e)
{
    for (int i = 0; i < p->node_count; i++) {
        const struct pnet_node *n = &p->nodes[i];
        bool labels = false;
        if (n->dead || n->op->class_ == PNET_LAYER) continue;
        for (int k = 0; k < n->in_count; k++)
            labels |=
                is_label(p, n->in[k]) && p->levels[p->tensors[n->in[k]].type.level].input >= 0;
        if (!labels)
            return pnet_error_set(e, PNET_USAGE,
                "--tile: %s does not count points with labels, so those of margins cannot be left "
                "out: leave --tile out",
                n->path);
    }
    return PNET_OK;
}

/* What all tiles of a cloud share. */
struct job {
    struct pnet_runner *runner;
    const struct pnet_plan *plan;
    const struct pnet_batch *batch;
    int input;
    struct pnet_cloud_tiles tiles;
    struct pnet_tally *tally; /* gets statistics, and there is no result; or NULL */
    bool blend;
    size_t width;
    float *result;  /* [rows, width] */
    double *sum;    /* blended: [rows, width], of results times their weights */
    double *weight; /* blended: [rows] */
};

/* Points of margins have no labels: their own tile counts them. */
static void drop_labels(
    const struct job *j, const struct pnet_cloud_tile *tile, struct pnet_batch *b)
{
    const struct pnet_input *in = &j->plan->inputs[j->input];
    for (int k = 0; k < in->field_count; k++) {
        int32_t *labels = b->inputs[j->input].fields[k];
        if (!labels || in->fields[k].kind != PNET_INPUT_CLASS || in->fields[k].per_cloud) continue;
        for (int64_t i = 0; i < tile->rows; i++)
            if (!tile->is_own[i]) labels[i] = -1;
    }
}

static enum pnet_status run_tile(
    const struct job *j, const struct pnet_cloud_tile *tile, struct pnet_error *e)
{
    struct pnet_batch *b;
    enum pnet_status st =
        pnet_batch_take(j->plan->inputs, j->batch, j->input, tile->row, tile->rows, &b, e);
    if (st) return st;
    b->inputs[j->input].largest = j->tiles.largest;
    drop_labels(j, tile, b);
    st = pnet_runner_prepare(j->runner, 0, b, e);
    pnet_batch_free(b);
    return st ? st : pnet_runner_forward(j->runner, 0, false, 0, e);
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

/* Takes the result of a tile, or adds its statistics. A cloud counts as one sample: its first tile does. */
static enum pnet_status take_tile(
    const struct job *j, int64_t number, const struct pnet_cloud_tile *tile, struct pnet_error *e)
{
    float *result;
    int64_t rows;
    if (j->tally) return pnet_tally_add(j->tally, j->runner, 0, number == 0, tile->own, e);
    enum pnet_status st = pnet_runner_result(j->runner, 0, &result, &rows, e);
    if (st) return st;
    if (j->blend)
        add_all(j, number, tile, result);
    else
        take_own(j, tile, result);
    free(result);
    return PNET_OK;
}

static enum pnet_status run_all(const struct job *j, const struct pnet_tiled_options *o,
    struct pnet_tiled_work *work, struct pnet_error *e)
{
    int64_t done = 0;
    enum pnet_status st = PNET_OK;
    work->tiles += j->tiles.count;
    work->points += j->tiles.rows;
    for (int64_t t = 0; t < j->tiles.count && !st; t++) {
        struct pnet_cloud_tile tile;
        if ((st = pnet_cloud_tile_new(&j->tiles, t, &tile, e))) return st;
        st = run_tile(j, &tile, e);
        if (!st) st = take_tile(j, t, &tile, e);
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
    *work = (struct pnet_tiled_work){.tiles = 0};
    enum pnet_status st =
        pnet_cloud_tiles_new(&o->tiling, (int64_t)rows, b->inputs[input].xyz, &j.tiles, e);
    if (st) return st;
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

/* Adds the statistics of a batch of one sample. */
static enum pnet_status add_cloud(struct pnet_runner *s, const struct pnet_batch *b, int input,
    const struct pnet_tiled_options *o, struct pnet_tally *t, struct pnet_tiled_work *work,
    struct pnet_error *e)
{
    const struct pnet_batch_input *in = &b->inputs[input];
    struct job j = {
        .runner = s, .plan = pnet_runner_plan(s), .batch = b, .input = input, .tally = t};
    enum pnet_status st = pnet_cloud_tiles_new(&o->tiling, in->rows, in->xyz, &j.tiles, e);
    if (st) return st;
    st = run_all(&j, o, work, e);
    pnet_cloud_tiles_free(&j.tiles);
    return st;
}

enum pnet_status pnet_tiled_evaluate(struct pnet_runner *s, struct pnet_loader *l, int input,
    const struct pnet_tiled_options *o, struct pnet_evaluation *v, struct pnet_tiled_work *work,
    struct pnet_error *e)
{
    struct pnet_tally t;
    struct pnet_frame frame = {.clouds = 0};
    double begin = pnet_seconds(), compute = 0;
    *v = (struct pnet_evaluation){0};
    *work = (struct pnet_tiled_work){.tiles = 0};
    enum pnet_status st = pnet_tally_init(&t, pnet_runner_plan(s), e);
    if (st) return st;
    pnet_loader_start(l, 0, 0);
    for (struct pnet_batch *b = NULL; !st; b = NULL) {
        if ((st = pnet_loader_next(l, &b, e)) || !b) break;
        double loaded = pnet_seconds();
        st = add_cloud(s, b, input, o, &t, work, e);
        compute += pnet_seconds() - loaded;
        pnet_frame_merge(&frame, &b->frame);
        pnet_batch_free(b);
    }
    if (!st) st = pnet_tally_finish(&t, v, e);
    pnet_tally_free(&t);
    v->frame = frame;
    v->seconds = pnet_seconds() - begin;
    v->compute_seconds = compute;
    return st;
}
