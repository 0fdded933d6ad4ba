#include "runtime/run/tune.h"

#include "runtime/run/bound.h"
#include "runtime/base/clock.h"
#include "runtime/base/memory_stream.h"
#include "runtime/base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5 };
static const double GAIN = 0.95; /* an algorithm must win by more than the noise of clocks */

struct tuner {
    struct pnet_runner *runner;
    const struct pnet_bound *bound;
    const struct pnet_plan *plan; /* the bound plan */
    const struct pnet_tune_options *o;
    const struct pnet_counts *counts; /* counts of the batch */
    struct pnet_geo_view *views;      /* [geo_count]: views with the counts of capacity classes */
    struct pnet_tune_cache *cache;
    struct pnet_tuning *result;
    struct pnet_memory memory; /* the memory that holds `work` */
    struct pnet_buffer work;
    double begin;
};

static double now(const struct tuner *t)
{
    return t->o->now ? t->o->now(t->o->context) : pnet_seconds();
}

static struct pnet_tune_line *line_of(const struct pnet_tuning *t, const char *path)
{
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->lines[i].path, path) == 0) return &t->lines[i];
    return NULL;
}

static enum pnet_status list_layers(struct tuner *t, struct pnet_error *e)
{
    const struct pnet_plan *p = t->plan;
    struct pnet_tuning *r = t->result;
    r->lines = calloc((size_t)p->node_count + 1, sizeof *r->lines);
    if (!r->lines) return pnet_error_memory(e);
    for (int n = 0; n < p->node_count; n++)
        if (pnet_plan_convolves(p, n) && !line_of(r, p->nodes[n].path))
            r->lines[r->count++].path = p->nodes[n].path;
    return PNET_OK;
}

/* ---- what tells one sum from another ---- */

/* Returns the least k with 2^k >= n. */
static int log2_of(int64_t n)
{
    int k = 0;
    while (k < 62 && (int64_t)1 << k < n) k++;
    return k;
}

/* Makes the key of a sum. Numbers that differ from batch to batch are rounded to powers of two. */
static void key_of(const struct tuner *t, int step, enum pnet_direction d, char key[PNET_TUNE_KEY])
{
    static const char *const storages[] = {"fp32", "bf16", "fp16"};
    const struct pnet_node *n = &t->plan->nodes[t->plan->steps[step].node];
    const int64_t *weight = t->plan->params[n->param[0]].info.shape; /* [V, cin / groups, cout] */
    struct pnet_exec x;
    pnet_bound_exec(t->bound, step, t->counts, true, t->views, &x);
    snprintf(key, PNET_TUNE_KEY,
        "%s %d to %d, %lld cells, %lld groups, %s in %s, rows 2^%d from 2^%d, triplets 2^%d%s",
        pnet_direction_names[d], x.in[0].width, x.out.width, (long long)weight[0],
        (long long)(x.in[0].width / weight[1]), pnet_precision_names[x.precision],
        storages[x.out.storage], log2_of(x.out.rows), log2_of(x.in[0].rows),
        log2_of(x.geo[0]->forward.count), t->o->all ? ", any" : "");
}

/* Tells whether the step forms that sum. */
static bool forms(const struct pnet_plan *p, int step, enum pnet_direction d)
{
    const struct pnet_step *s = &p->steps[step];
    if (!pnet_plan_convolves(p, s->node) || s->backward != (d != PNET_FORWARD)) return false;
    return d == PNET_FORWARD || d == PNET_DW || s->gin[0] >= 0;
}

static void take_over(struct pnet_tune_line *l, enum pnet_direction d,
    const struct pnet_tune_entry *entry, enum pnet_tuned from)
{
    l->from[d] = from;
    l->algos.of[d] = entry->algo;
    l->seconds[d] = entry->seconds;
    l->standard[d] = entry->standard;
}

/* Returns the line of a layer whose sum is not known yet, and sets the sum's key; NULL: there is nothing to measure. Results
   in the cache are used. */
static struct pnet_tune_line *open_sum(
    struct tuner *t, int step, enum pnet_direction d, char key[PNET_TUNE_KEY])
{
    if (!forms(t->plan, step, d)) return NULL;
    struct pnet_tune_line *l = line_of(t->result, t->plan->nodes[t->plan->steps[step].node].path);
    if (l->from[d] != PNET_TUNED_NOT) return NULL;
    key_of(t, step, d, key);
    const struct pnet_tune_entry *known = pnet_tune_cache_find(t->cache, key);
    if (!known) return l;
    take_over(l, d, known, PNET_TUNED_KNOWN);
    t->result->known++;
    return NULL;
}

/* ---- measuring ---- */

static bool takes_part(const struct tuner *t, const struct pnet_exec *x, enum pnet_conv_algo algo)
{
    if (algo == PNET_ALGO_DEFAULT) return true;
    if (algo == PNET_ALGO_IMPLICIT) /* without tiles it is another name for the default */
        return x->geo[0]->forward.tiles.tile || x->geo[0]->transposed.tiles.tile;
    if (t->bound->precision != PNET_FP32 || x->out.storage != PNET_STORE_F32) return false;
    return t->o->all || x->device == PNET_CPU || !pnet_conv_algo_lists(algo);
}

struct run {
    pnet_kernel *kernel;
    struct pnet_exec x;
};

static void run(void *context)
{
    const struct run *r = context;
    r->kernel(&r->x);
}

/* Makes the record of a step that forms one sum by one algorithm. Returns false if its workspace exceeds the limit. The
   fixed table's algorithm uses the arena's workspace. */
static bool set_up(struct tuner *t, int step, const struct pnet_exec *x, enum pnet_direction d,
    enum pnet_conv_algo algo, struct run *r)
{
    const struct pnet_op *op = t->plan->nodes[t->plan->steps[step].node].op;
    struct pnet_error none;
    *r = (struct run){d == PNET_FORWARD ? op->forward : op->backward, *x};
    for (int i = d == PNET_DF ? 0 : 1; i < PNET_MAX_PARAMS; i++) r->x.gparam[i] = NULL;
    if (d == PNET_DW) r->x.gin[0].data = NULL;
    if (algo == PNET_ALGO_DEFAULT) return true;
    size_t standard = op->work(&r->x, d != PNET_FORWARD);
    r->x.algos.of[d] = algo;
    size_t need = op->work(&r->x, d != PNET_FORWARD);
    if (need > PNET_WORK_MOST && need > standard) return false;
    if (pnet_buffer_ensure(&t->memory, &t->work, need, "measuring", &none)) return false;
    r->x.work = t->work.data;
    return true;
}

static enum pnet_status time_sum(struct tuner *t, struct run *r, enum pnet_direction d,
    double enough, double *seconds, struct pnet_error *e)
{
    if (!t->o->measure)
        return pnet_device_time(pnet_runner_device(t->runner), run, r, RUNS, enough, seconds, e);
    *seconds = t->o->measure(t->o->context, &r->x, d, r->x.algos.of[d]);
    return PNET_OK;
}

static bool out_of_time(const struct tuner *t)
{
    return now(t) - t->begin > t->o->seconds;
}

/* A sum that is being measured. */
struct sum {
    int step;
    enum pnet_direction direction;
    const struct pnet_exec *x;
    struct pnet_tune_line *line;
    struct pnet_tune_entry best;
};

/* Measures and keeps the shorter of the time and *seconds. Does nothing if there is no workspace for the algorithm. */
static enum pnet_status try(struct tuner *t, const struct sum *s, enum pnet_conv_algo algo,
    double enough, double *seconds, struct pnet_error *e)
{
    struct run r;
    double now = 0;
    if (!set_up(t, s->step, s->x, s->direction, algo, &r)) return PNET_OK;
    enum pnet_status st = time_sum(t, &r, s->direction, enough, &now, e);
    if (!st && now < *seconds) *seconds = now;
    return st;
}

/* Measures the fastest one again, because other work on the machine must not decide: it has to win twice. */
static enum pnet_status confirm(struct tuner *t, struct sum *s, struct pnet_error *e)
{
    struct pnet_tune_entry *best = &s->best;
    double enough = 2 * best->standard;
    if (best->algo == PNET_ALGO_DEFAULT) return PNET_OK;
    enum pnet_status st = try(t, s, PNET_ALGO_DEFAULT, enough, &best->standard, e);
    if (!st) st = try(t, s, best->algo, enough, &best->seconds, e);
    if (best->seconds < GAIN * best->standard) return st;
    best->algo = PNET_ALGO_DEFAULT;
    best->seconds = best->standard;
    return st;
}

/* Tries the algorithms in their order. Nothing is kept of a sum over which time runs out. */
static enum pnet_status measure(struct tuner *t, struct sum *s, struct pnet_error *e)
{
    struct pnet_tune_entry *best = &s->best;
    best->seconds = best->standard = INFINITY;
    for (int a = 0; a < PNET_ALGO_COUNT; a++) {
        enum pnet_conv_algo algo = (enum pnet_conv_algo)a;
        /* a slow layer is not run often */
        double seconds = INFINITY, enough = a ? 2 * best->seconds : t->o->seconds / (2 * RUNS);
        if (out_of_time(t)) return PNET_OK;
        if (!takes_part(t, s->x, algo)) continue;
        enum pnet_status st = try(t, s, algo, enough, &seconds, e);
        if (st) return st;
        if (!a) best->seconds = best->standard = seconds;
        if (seconds < best->seconds && seconds < GAIN * best->standard) {
            best->algo = algo;
            best->seconds = seconds;
        }
    }
    enum pnet_status st = confirm(t, s, e);
    if (st) return st;
    take_over(s->line, s->direction, best, PNET_TUNED_HERE);
    t->result->measured++;
    return pnet_tune_cache_add(t->cache, best) ? PNET_OK : pnet_error_memory(e);
}

static enum pnet_status visit(
    void *context, int step, const struct pnet_exec *x, struct pnet_error *e)
{
    struct tuner *t = context;
    for (int d = 0; d < PNET_DIRECTIONS; d++) {
        struct sum s = {.step = step, .direction = (enum pnet_direction)d, .x = x};
        s.line = open_sum(t, step, s.direction, s.best.key);
        enum pnet_status st = s.line ? measure(t, &s, e) : PNET_OK;
        if (st) return st;
    }
    return PNET_OK;
}

static int count_open(struct tuner *t)
{
    char key[PNET_TUNE_KEY];
    int open = 0;
    for (int s = 0; s < t->plan->step_count; s++)
        for (int d = 0; d < PNET_DIRECTIONS; d++)
            open += open_sum(t, s, (enum pnet_direction)d, key) != NULL;
    return open;
}

static enum pnet_status tune(struct tuner *t, int slot, struct pnet_error *e)
{
    const struct pnet_memory *m = pnet_runner_memory(t->runner);
    enum pnet_status st = list_layers(t, e);
    if (st) return st;
    t->begin = now(t);
    if (count_open(t)) {
        size_t left = m->limit > m->used ? m->limit - m->used : 1;
        pnet_memory_init(&t->memory, m->device, m->limit ? left : 0);
        st = pnet_runner_walk(t->runner, slot, visit, t, e);
        pnet_buffer_free(&t->memory, &t->work);
        pnet_memory_end(&t->memory);
        t->result->left = count_open(t);
    }
    t->result->seconds = now(t) - t->begin;
    return st;
}

/* Returns views, for the caller to free; NULL: no memory. */
static struct pnet_geo_view *views_of(const struct pnet_bound *b, const struct pnet_counts *c)
{
    struct pnet_geo_view *views = calloc((size_t)b->plan->geo_count + 1, sizeof *views);
    if (views) pnet_bound_views(b, c, true, views);
    return views;
}

enum pnet_status pnet_tune(struct pnet_runner *s, int slot, const struct pnet_tune_options *o,
    struct pnet_tune_cache *cache, struct pnet_tuning *tuning, struct pnet_error *e)
{
    const struct pnet_bound *b = pnet_runner_bound(s);
    const struct pnet_counts *c = &pnet_runner_slot(s, slot)->counts;
    struct tuner t = {.runner = s,
        .bound = b,
        .plan = b->plan,
        .counts = c,
        .views = views_of(b, c),
        .o = o,
        .cache = cache,
        .result = tuning};
    *tuning = (struct pnet_tuning){0};
    enum pnet_status st = t.views ? tune(&t, slot, e) : pnet_error_memory(e);
    free(t.views);
    if (st) pnet_tuning_free(tuning);
    return st;
}

void pnet_tuning_free(struct pnet_tuning *t)
{
    free(t->lines);
    *t = (struct pnet_tuning){0};
}

/* Tells whether the algorithm of a sum takes a larger workspace than the fixed table's. */
static bool takes_more(const struct pnet_bound *b, const struct pnet_counts *c,
    const struct pnet_geo_view *views, int step, enum pnet_direction d, enum pnet_conv_algo algo)
{
    const struct pnet_op *op = b->plan->nodes[b->plan->steps[step].node].op;
    struct pnet_exec x;
    pnet_bound_exec(b, step, c, true, views, &x);
    size_t standard = op->work(&x, d != PNET_FORWARD);
    x.algos.of[d] = algo;
    return op->work(&x, d != PNET_FORWARD) > standard;
}

enum pnet_status pnet_tuning_save_memory(struct pnet_tuning *t, const struct pnet_bound *b,
    const struct pnet_counts *c, int *changed, struct pnet_error *e)
{
    const struct pnet_plan *p = b->plan;
    struct pnet_geo_view *views = views_of(b, c);
    if (!views) return pnet_error_memory(e);
    for (int s = 0; s < p->step_count; s++)
        for (int d = 0; d < PNET_DIRECTIONS; d++) {
            if (!forms(p, s, (enum pnet_direction)d)) continue;
            struct pnet_tune_line *l = line_of(t, p->nodes[p->steps[s].node].path);
            if (!takes_more(b, c, views, s, (enum pnet_direction)d, l->algos.of[d])) continue;
            l->algos.of[d] = PNET_ALGO_DEFAULT;
            l->seconds[d] = l->standard[d];
            ++*changed;
        }
    free(views);
    return PNET_OK;
}

enum pnet_status pnet_tuning_bind(const struct pnet_tuning *t, const struct pnet_plan *p,
    const struct pnet_target *target, struct pnet_bound **b, struct pnet_error *e)
{
    struct pnet_target chosen = *target;
    struct pnet_algos *algos = calloc((size_t)p->node_count + 1, sizeof *algos);
    if (!algos) return pnet_error_memory(e);
    for (int n = 0; n < p->node_count; n++)
        if (pnet_plan_convolves(p, n)) algos[n] = line_of(t, p->nodes[n].path)->algos;
    chosen.algos = algos;
    enum pnet_status st = pnet_bound_new(p, &chosen, b, e);
    free(algos);
    return st;
}

/* ---- the table ---- */

static bool differs(const struct pnet_tune_line *l)
{
    for (int d = 0; d < PNET_DIRECTIONS; d++)
        if (l->algos.of[d] != PNET_ALGO_DEFAULT) return true;
    return false;
}

static bool alike(const struct pnet_tune_line *a, const struct pnet_tune_line *b)
{
    return memcmp(&a->algos, &b->algos, sizeof a->algos) == 0 &&
           memcmp(a->seconds, b->seconds, sizeof a->seconds) == 0;
}

/* Returns how many layers from the i-th on have the same line; 0: an earlier layer has it, or it is the fixed table's. */
static int count_alike(const struct pnet_tuning *t, int i)
{
    int count = 0;
    if (!differs(&t->lines[i])) return 0;
    for (int k = 0; k < t->count; k++) {
        if (!alike(&t->lines[i], &t->lines[k])) continue;
        if (k < i) return 0;
        count++;
    }
    return count;
}

static void print_line(const struct pnet_tune_line *l, int width, int count, FILE *f)
{
    fprintf(f, "\n  %-*s", width, l->path);
    for (int d = 0; d < PNET_DIRECTIONS; d++)
        if (l->algos.of[d] != PNET_ALGO_DEFAULT)
            pnet_number_write(f, "  %s %s %.3g ms (%.3g ms)", pnet_direction_names[d],
                pnet_conv_algo_names[l->algos.of[d]], 1e3 * l->seconds[d], 1e3 * l->standard[d]);
    if (count > 1) fprintf(f, "  and %d like it", count - 1);
}

static void print(const struct pnet_tuning *t, FILE *f)
{
    int width = 0;
    pnet_number_write(f, "autotune: %d sums of %d convolutions: %d measured in %.1f s, %d known",
        t->measured + t->known + t->left, t->count, t->measured, t->seconds, t->known);
    if (t->left) fprintf(f, ", %d left to the fixed table, as the time ran out", t->left);
    for (int i = 0; i < t->count; i++) {
        int length = (int)strlen(t->lines[i].path);
        if (count_alike(t, i) && length > width) width = length;
    }
    fputs(width ? "; faster than the fixed table, whose times stand in brackets:"
                : "; the fixed table is the fastest for all",
        f);
    for (int i = 0; i < t->count; i++) {
        int count = count_alike(t, i);
        if (count) print_line(&t->lines[i], width, count, f);
    }
}

char *pnet_tuning_print(const struct pnet_tuning *t)
{
    struct pnet_memory_stream text;
    if (!pnet_memory_stream_open(&text)) return NULL;
    print(t, text.file);
    return pnet_memory_stream_close(&text, NULL);
}
