#include "runtime/session.h"

#include "kernels/philox.h"
#include "runtime/bind.h"
#include "runtime/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pnet_session {
    const struct pnet_plan *plan;
    struct pnet_session_options options;
    struct pnet_memory memory;
    struct pnet_buffer params, grads, extra, arena;
    struct pnet_slot *slots[2];
    struct pnet_layout layout;
    struct pnet_counts class_; /* capacities the layout was made for */
    bool bound;
    uint32_t step;
    double *times;
};

enum pnet_status pnet_session_new(const struct pnet_plan *p, const struct pnet_session_options *o,
    struct pnet_session **session, struct pnet_error *e)
{
    struct pnet_session *s = calloc(1, sizeof *s);
    enum pnet_status st = PNET_OK;
    if (!s) return pnet_error_memory(e);
    s->plan = p;
    s->options = *o;
    pnet_memory_init(&s->memory, o->memory_limit);
    s->class_.rows = calloc((size_t)p->level_count + 1, sizeof *s->class_.rows);
    s->class_.triplets = calloc((size_t)p->geo_count + 1, sizeof *s->class_.triplets);
    s->times = calloc((size_t)p->step_count + 1, sizeof *s->times);
    if (!s->class_.rows || !s->class_.triplets || !s->times) st = pnet_error_memory(e);
    size_t grads = p->training ? (size_t)p->trained_elements * sizeof(float) : 0;
    if (!st)
        st = pnet_buffer_ensure(
            &s->memory, &s->params, (size_t)p->param_elements * sizeof(float), "the parameters", e);
    if (!st && grads) st = pnet_buffer_ensure(&s->memory, &s->grads, grads, "the gradients", e);
    if (!st && o->extra_bytes > 0)
        st = pnet_buffer_ensure(
            &s->memory, &s->extra, (size_t)o->extra_bytes, "the optimiser's state", e);
    for (int i = 0; i < o->slots && !st; i++) st = pnet_slot_new(p, &s->memory, &s->slots[i], e);
    if (st) {
        pnet_session_free(s);
        return st;
    }
    if (s->params.data) memset(s->params.data, 0, s->params.size);
    if (s->grads.data) memset(s->grads.data, 0, s->grads.size);
    if (s->extra.data) memset(s->extra.data, 0, s->extra.size);
    *session = s;
    return PNET_OK;
}

void pnet_session_free(struct pnet_session *s)
{
    if (!s) return;
    for (int i = 0; i < 2; i++) pnet_slot_free(s->slots[i]);
    pnet_buffer_free(&s->memory, &s->params);
    pnet_buffer_free(&s->memory, &s->grads);
    pnet_buffer_free(&s->memory, &s->extra);
    pnet_buffer_free(&s->memory, &s->arena);
    pnet_layout_free(&s->layout);
    free(s->class_.rows);
    free(s->class_.triplets);
    free(s->times);
    pnet_memory_end(&s->memory);
    free(s);
}

const struct pnet_plan *pnet_session_plan(const struct pnet_session *s)
{
    return s->plan;
}
float *pnet_session_params(struct pnet_session *s)
{
    return s->params.data;
}
float *pnet_session_grads(struct pnet_session *s)
{
    return s->grads.data;
}
void *pnet_session_extra(struct pnet_session *s)
{
    return s->extra.data;
}
const struct pnet_slot *pnet_session_slot(const struct pnet_session *s, int slot)
{
    return s->slots[slot];
}
const struct pnet_memory *pnet_session_memory(const struct pnet_session *s)
{
    return &s->memory;
}
const double *pnet_session_times(const struct pnet_session *s)
{
    return s->times;
}

enum pnet_status pnet_session_prepare(
    struct pnet_session *s, int slot, const struct pnet_batch *b, struct pnet_error *e)
{
    return pnet_slot_build(s->slots[slot], b, e);
}

static bool same_class(const struct pnet_session *s, const struct pnet_counts *c)
{
    if (!s->bound || s->class_.samples != c->samples) return false;
    for (int l = 0; l < s->plan->level_count; l++)
        if (s->class_.rows[l] != pnet_capacity(c->rows[l])) return false;
    for (int i = 0; i < s->plan->geo_count; i++)
        if (s->class_.triplets[i] != pnet_capacity(c->triplets[i])) return false;
    return true;
}

static enum pnet_status bind_counts(
    struct pnet_session *s, const struct pnet_counts *c, struct pnet_error *e)
{
    if (same_class(s, c)) return PNET_OK;
    s->bound = false;
    pnet_layout_free(&s->layout);
    enum pnet_status st = pnet_layout_make(s->plan, c, &s->layout, e);
    if (st) return st;
    st = pnet_buffer_ensure(&s->memory, &s->arena, s->layout.total, "the feature stage", e);
    if (st) {
        pnet_layout_name_peak(s->plan, &s->layout, e);
        return st;
    }
    s->class_.samples = c->samples;
    for (int l = 0; l < s->plan->level_count; l++) s->class_.rows[l] = pnet_capacity(c->rows[l]);
    for (int i = 0; i < s->plan->geo_count; i++)
        s->class_.triplets[i] = pnet_capacity(c->triplets[i]);
    s->bound = true;
    return PNET_OK;
}

static void *data_of(const struct pnet_session *s, const struct pnet_slot *slot, int tensor)
{
    const struct pnet_plan_tensor *t = &s->plan->tensors[tensor];
    if (t->first < 0) return NULL;
    if (t->role == PNET_ROLE_INPUT) return slot->fields[tensor].data;
    return (char *)s->arena.data + s->layout.offset[tensor];
}

static void point(
    const struct pnet_session *s, const struct pnet_slot *slot, int tensor, struct pnet_tensor *t)
{
    t->data = data_of(s, slot, tensor);
    t->row_splits = pnet_slot_splits(slot, t->level);
}

void pnet_session_exec(
    const struct pnet_session *s, int slot_index, int step, bool training, struct pnet_exec *x)
{
    const struct pnet_plan *p = s->plan;
    const struct pnet_slot *slot = s->slots[slot_index];
    const struct pnet_step *st = &p->steps[step];
    const struct pnet_node *n = &p->nodes[st->node];
    struct pnet_geo_view shapes[PNET_MAX_GEO];
    pnet_bind_shapes(p, &slot->counts, step, false, x, shapes);
    x->training = training;
    x->rand = (struct pnet_rand){
        .seed = s->options.seed, .purpose = PNET_DRAW_DROPOUT, .a = s->step, .b = n->draw};
    for (int i = 0; i < n->in_count; i++) {
        bool kept = n->op->keep & (1u << i);
        x->gin[i].row_splits = pnet_slot_splits(slot, x->gin[i].level);
        point(s, slot, n->in[i], &x->in[i]);
        if (st->backward && !kept) x->in[i].data = NULL;
        if (st->backward && st->gin[i] >= 0) {
            x->gin[i].data = data_of(s, slot, st->gin[i]);
            x->gin_add[i] = st->gin_add[i];
        }
    }
    point(s, slot, n->out, &x->out);
    if (st->backward) {
        if (!(n->op->keep & PNET_KEEP_OUT) && !n->act) x->out.data = NULL;
        x->gout.data = data_of(s, slot, st->gout);
    }
    x->gout.row_splits = x->out.row_splits;
    for (int i = 0; i < n->saved_count; i++) point(s, slot, n->saved[i], &x->saved[i]);
    for (int i = 0; i < n->geo_count; i++) x->geo[i] = &slot->views[n->geo[i]];
    for (int i = 0; i < n->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[n->param[i]];
        x->param[i] = (float *)s->params.data + q->offset;
        if (st->backward && q->info.trained) {
            x->gparam[i] = (float *)s->grads.data + q->offset;
            x->gparam_add[i] = st->gparam_add[i];
        }
    }
    x->work = s->layout.work_bytes[step] ? (char *)s->arena.data + s->layout.work[step] : NULL;
}

void pnet_session_poison(struct pnet_session *s)
{
    if (s->arena.data) memset(s->arena.data, 0xff, s->arena.size);
}

enum pnet_status pnet_session_forward(
    struct pnet_session *s, int slot, bool training, uint32_t step, struct pnet_error *e)
{
    enum pnet_status st = bind_counts(s, &s->slots[slot]->counts, e);
    if (st) return st;
    s->step = step;
    for (int i = 0; i < s->plan->forward_steps; i++) {
        struct pnet_exec x;
        double begin = pnet_seconds();
        pnet_session_exec(s, slot, i, training, &x);
        s->plan->nodes[s->plan->steps[i].node].op->forward(&x);
        s->times[i] += pnet_seconds() - begin;
    }
    return PNET_OK;
}

void pnet_session_backward(struct pnet_session *s, int slot, float scale, bool accumulate)
{
    const struct pnet_plan *p = s->plan;
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *g = &p->tensors[t];
        bool seed = g->role == PNET_ROLE_GRAD && g->first == p->forward_steps &&
                    p->tensors[g->of].type.level == p->scalar_level;
        for (int i = 0; i < p->objective_count && seed; i++)
            if (p->objectives[i].tensor == g->of && !p->objectives[i].metric)
                *(float *)data_of(s, s->slots[slot], t) = scale;
    }
    for (int i = p->forward_steps; i < p->step_count; i++) {
        struct pnet_exec x;
        double begin = pnet_seconds();
        pnet_session_exec(s, slot, i, true, &x);
        for (int k = 0; k < PNET_MAX_PARAMS; k++) x.gparam_add[k] |= accumulate;
        p->nodes[p->steps[i].node].op->backward(&x);
        s->times[i] += pnet_seconds() - begin;
    }
}

double pnet_session_objective(const struct pnet_session *s, int objective, double *sum)
{
    const struct pnet_objective *o = &s->plan->objectives[objective];
    const struct pnet_type *t = &s->plan->tensors[o->tensor].type;
    const void *data = data_of(s, s->slots[0], o->tensor);
    for (int i = 0; sum && i < t->width; i++)
        sum[i] +=
            t->type == PNET_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
    return t->type == PNET_F64 ? ((const double *)data)[0] : (double)((const float *)data)[0];
}

const void *pnet_session_tensor(const struct pnet_session *s, int slot, int tensor, int64_t *rows)
{
    const struct pnet_type *t = &s->plan->tensors[tensor].type;
    *rows = t->level == s->plan->scalar_level ? 1 : s->slots[slot]->counts.rows[t->level];
    return data_of(s, s->slots[slot], tensor);
}

/* parent[row of the input level] at the result's level; NULL where they are the same. */
static const int32_t *result_parent(
    const struct pnet_session *s, const struct pnet_slot *slot, int input, int level)
{
    for (int i = 0; i < s->plan->geo_count; i++) {
        const struct pnet_geo_request *q = &s->plan->geo[i].request;
        if (q->kind == PNET_GEO_PARENT && q->a == input && q->b == level)
            return slot->views[i].parent;
    }
    return NULL;
}

enum pnet_status pnet_session_result(
    const struct pnet_session *s, int slot_index, float **data, int64_t *rows, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    const struct pnet_slot *slot = s->slots[slot_index];
    const struct pnet_type *t = &p->tensors[p->result].type;
    const float *from = data_of(s, slot, p->result);
    int level = t->level, input = level;
    while (p->levels[input].finer >= 0) input = p->levels[input].finer;
    const int32_t *parent = input != level ? result_parent(s, slot, input, level) : NULL;
    const int32_t *order = pnet_slot_order(slot, input);
    size_t width = (size_t)t->width;
    *rows = level == p->scalar_level ? 1 : slot->counts.rows[input];
    *data = malloc((size_t)*rows * width * sizeof(float) + 1);
    if (!*data) return pnet_error_memory(e);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < *rows; i++)
        memcpy(*data + (size_t)(order ? order[i] : i) * width,
            from + (size_t)(parent ? parent[i] : i) * width, width * sizeof(float));
    return PNET_OK;
}

/* Two normal numbers from two uniform ones (Box and Muller, 1958). */
static float normal(const struct pnet_rand *r, uint64_t i)
{
    uint32_t bits[4];
    pnet_philox(r, i >> 1, bits);
    double u = ((double)bits[0] + 1) * 0x1p-32, v = (double)bits[1] * 0x1p-32;
    double radius = sqrt(-2 * log(u)), angle = 6.283185307179586 * v;
    return (float)(radius * (i & 1 ? sin(angle) : cos(angle)));
}

void pnet_session_init_params(struct pnet_session *s)
{
    for (int i = 0; i < s->plan->param_count; i++) {
        const struct pnet_plan_param *q = &s->plan->params[i];
        if (q->offset < 0) continue;
        float *w = (float *)s->params.data + q->offset;
        uint32_t hash = 2166136261u;
        for (const char *c = q->name; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
        struct pnet_rand r = {.seed = s->options.seed, .purpose = PNET_DRAW_INIT, .b = hash};
        float deviation = (float)sqrt(2.0 / (double)(q->info.fan > 0 ? q->info.fan : 1));
        float bound = (float)(1 / sqrt((double)(q->info.fan > 0 ? q->info.fan : 1)));
        for (int64_t k = 0; k < q->count; k++) switch (q->info.init) {
            case PNET_INIT_ZERO: w[k] = 0; break;
            case PNET_INIT_ONE: w[k] = 1; break;
            case PNET_INIT_KAIMING: w[k] = deviation * normal(&r, (uint64_t)k); break;
            case PNET_INIT_UNIFORM: w[k] = bound * (2 * pnet_rand_unit(&r, (uint64_t)k) - 1); break;
            }
    }
}

static const float *fetch(const struct pnet_plan *p, int param, pnet_param_source *source,
    void *context, struct pnet_error *e)
{
    const struct pnet_plan_param *q = &p->params[param];
    const float *w = source(context, q->name, q->count);
    if (!w)
        pnet_error_set(e, PNET_BAD_MODEL,
            "the weights do not fit the model: no tensor '%s' of %lld numbers", q->name,
            (long long)q->count);
    return w;
}

static enum pnet_status fold(struct pnet_session *s, const struct pnet_plan_fold *f,
    pnet_param_source *source, void *context, struct pnet_error *e)
{
    const struct pnet_plan_param *wp = &s->plan->params[f->weight], *bp = &s->plan->params[f->bias];
    int64_t cout = bp->count, inner = wp->count / cout;
    float *w = (float *)s->params.data + wp->offset, *b = (float *)s->params.data + bp->offset;
    enum { SCALE, SHIFT, MEAN, VAR };
    const int params[4] = {f->scale, f->shift, f->mean, f->var};
    double *norm = malloc((size_t)(4 * cout) * sizeof *norm);
    if (!norm) return pnet_error_memory(e);
    for (int k = 0; k < 4; k++) { /* a source may reuse its memory: copy one before the next */
        const float *v = fetch(s->plan, params[k], source, context, e);
        if (!v) {
            free(norm);
            return e->status;
        }
        for (int64_t o = 0; o < cout; o++) norm[k * cout + o] = (double)v[o];
    }
    for (int64_t o = 0; o < cout; o++) {
        double scale = norm[SCALE * cout + o] / sqrt(norm[VAR * cout + o] + f->eps);
        double bias = f->bias_was_there ? (double)b[o] : 0;
        b[o] = (float)((bias - norm[MEAN * cout + o]) * scale + norm[SHIFT * cout + o]);
        for (int64_t k = 0; k < inner; k++) {
            float *x = f->out_first ? &w[o * inner + k] : &w[k * cout + o];
            *x = (float)((double)*x * scale);
        }
    }
    free(norm);
    return PNET_OK;
}

enum pnet_status pnet_session_load_params(
    struct pnet_session *s, pnet_param_source *source, void *context, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        bool made_by_fold = false;
        for (int f = 0; f < p->fold_count; f++)
            made_by_fold |= p->folds[f].bias == i && !p->folds[f].bias_was_there;
        if (q->offset < 0 || made_by_fold) continue;
        const float *w = fetch(p, i, source, context, e);
        if (!w) return e->status;
        memcpy((float *)s->params.data + q->offset, w, (size_t)q->count * sizeof(float));
    }
    for (int f = 0; f < p->fold_count; f++) {
        enum pnet_status st = fold(s, &p->folds[f], source, context, e);
        if (st) return st;
    }
    return PNET_OK;
}
