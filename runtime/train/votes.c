#include "runtime/train/votes.h"

#include "runtime/data/augment_draw.h"
#include "runtime/data/cloud_tiles.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

struct pnet_voting pnet_voting_new(const struct pnet_plan *p, int copies)
{
    struct pnet_voting v = {.copies = copies};
    double finest = INFINITY;
    for (int l = 0; l < p->level_count; l++) {
        const struct pnet_level_info *level = &p->levels[l];
        if (level->kind != PNET_GEO_GRID || !(level->cell < finest)) continue;
        finest = level->cell;
        v.grid = level->grid;
    }
    return v;
}

/* What all fragments of a cloud share. */
struct ballot {
    const struct pnet_plan *plan;
    int input;
    size_t width;
    int64_t rows;
    double *sum;     /* [rows, width], of probabilities */
    int64_t *votes;  /* [rows] */
    int64_t *chosen; /* [rows]: rows of a fragment */
    bool *taken;     /* [rows] */
};

/* ---- copies ---- */

/* Changes a copy of a cloud as its number says. */
static void change(const struct pnet_input *input, struct pnet_batch_input *in, int number)
{
    static const double scales[3] = {1, 0.95, 1.05}, sines[4] = {0, 1, 0, -1};
    if (number == 0) return;
    double scale = scales[number / 4 % 3], s = sines[number % 4], c = sines[(number + 1) % 4],
           x = number < 12 ? 1 : -1;
    struct pnet_motion m = {.turn = {{x * c, x * -s, 0}, {s, c, 0}, {0, 0, 1}}};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) m.m[i][k] = scale * m.turn[i][k];
    for (int64_t i = 0; i < 3 * in->rows; i++) m.centre[i % 3] += (double)in->xyz[i];
    for (int k = 0; k < 3; k++) m.centre[k] /= fmax((double)in->rows, 1);
    struct pnet_sample all = {
        .input = input, .rows = in->rows, .xyz = in->xyz, .fields = in->fields};
    pnet_motion_apply(&m, &all);
}

/* ---- fragments ---- */

static void add_probabilities(const struct ballot *a, int64_t row, const float *scores)
{
    float best = scores[0];
    double sum = 0;
    for (size_t c = 1; c < a->width; c++) best = fmaxf(best, scores[c]);
    for (size_t c = 0; c < a->width; c++) sum += exp((double)(scores[c] - best));
    for (size_t c = 0; c < a->width; c++)
        a->sum[(size_t)row * a->width + c] += exp((double)(scores[c] - best)) / sum;
    a->votes[row]++;
}

static enum pnet_status count_votes(const struct ballot *a, const struct pnet_batch *copy,
    int64_t count, pnet_vote *vote, void *context, struct pnet_error *e)
{
    struct pnet_batch *fragment;
    float *scores;
    enum pnet_status st =
        pnet_batch_take(a->plan->inputs, copy, a->input, a->chosen, count, &fragment, e);
    if (st) return st;
    st = vote(context, fragment, &scores, e);
    pnet_batch_free(fragment);
    if (st) return st;
    for (int64_t i = 0; i < count; i++)
        add_probabilities(a, a->chosen[i], scores + (size_t)i * a->width);
    free(scores);
    return PNET_OK;
}

/* Chooses the rows of a fragment, which ascend; returns their number. */
static int64_t choose(const struct ballot *a, const struct pnet_cloud_tiles *voxels, int64_t number)
{
    int64_t count = 0;
    for (int64_t i = 0; i < a->rows; i++) a->taken[i] = false;
    for (int64_t v = 0; v < voxels->count; v++) {
        int64_t points = voxels->first[v + 1] - voxels->first[v];
        a->taken[voxels->row[voxels->first[v] + number % points]] = true;
    }
    for (int64_t i = 0; i < a->rows; i++)
        if (a->taken[i]) a->chosen[count++] = i;
    return count;
}

static enum pnet_status vote_on_copy(const struct ballot *a, const struct pnet_batch *copy,
    const struct pnet_voting *v, pnet_vote *vote, void *context, struct pnet_voting_work *work,
    struct pnet_error *e)
{
    struct pnet_cloud_tiles voxels;
    struct pnet_tiling cells = {.grid = v->grid};
    if (!(v->grid.base > 0)) {
        for (int64_t i = 0; i < a->rows; i++) a->chosen[i] = i;
        work->fragments++;
        work->computed += a->rows;
        return count_votes(a, copy, a->rows, vote, context, e);
    }
    enum pnet_status st =
        pnet_cloud_tiles_new(&cells, a->rows, copy->inputs[a->input].xyz, &voxels, e);
    if (st) return st;
    int64_t fullest = 0;
    for (int64_t i = 0; i < voxels.count; i++)
        if (voxels.first[i + 1] - voxels.first[i] > fullest)
            fullest = voxels.first[i + 1] - voxels.first[i];
    for (int64_t f = 0; f < fullest && !st; f++) {
        int64_t count = choose(a, &voxels, f);
        work->fragments++;
        work->computed += count;
        st = count_votes(a, copy, count, vote, context, e);
    }
    pnet_cloud_tiles_free(&voxels);
    return st;
}

/* Every point has a vote of each copy. */
static float *means(const struct ballot *a)
{
    float *scores = malloc((size_t)a->rows * a->width * sizeof *scores + 1);
    for (size_t i = 0; scores && i < (size_t)a->rows; i++)
        for (size_t at = i * a->width; at < (i + 1) * a->width; at++)
            scores[at] = logf((float)fmax(a->sum[at] / (double)a->votes[i], (double)FLT_MIN));
    return scores;
}

static enum pnet_status vote_on_all(const struct ballot *a, const struct pnet_batch *b,
    const struct pnet_voting *v, pnet_vote *vote, void *context, struct pnet_voting_work *work,
    struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    for (int n = 0; n < v->copies && !st; n++) {
        struct pnet_batch *copy;
        for (int64_t i = 0; i < a->rows; i++) a->chosen[i] = i;
        st = pnet_batch_take(a->plan->inputs, b, a->input, a->chosen, a->rows, &copy, e);
        if (st) return st;
        change(&a->plan->inputs[a->input], &copy->inputs[a->input], n);
        st = vote_on_copy(a, copy, v, vote, context, work, e);
        pnet_batch_free(copy);
    }
    return st;
}

enum pnet_status pnet_votes(const struct pnet_plan *p, const struct pnet_batch *b, int input,
    const struct pnet_voting *v, pnet_vote *vote, void *context, float **scores,
    struct pnet_voting_work *work, struct pnet_error *e)
{
    size_t rows = (size_t)b->inputs[input].rows, width = (size_t)p->tensors[p->result].type.width;
    struct ballot a = {.plan = p,
        .input = input,
        .width = width,
        .rows = (int64_t)rows,
        .sum = calloc(rows * width + 1, sizeof *a.sum),
        .votes = calloc(rows + 1, sizeof *a.votes),
        .chosen = malloc((rows + 1) * sizeof *a.chosen),
        .taken = malloc(rows + 1)};
    bool ok = a.sum && a.votes && a.chosen && a.taken;
    *scores = NULL;
    *work = (struct pnet_voting_work){.fragments = 0};
    enum pnet_status st = ok ? vote_on_all(&a, b, v, vote, context, work, e) : pnet_error_memory(e);
    if (!st && !(*scores = means(&a))) st = pnet_error_memory(e);
    free(a.sum);
    free(a.votes);
    free(a.chosen);
    free(a.taken);
    return st;
}
