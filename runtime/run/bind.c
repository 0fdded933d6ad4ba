#include "runtime/run/bind.h"

#include "runtime/run/waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t rows_of(const struct pnet_counts *c, int level, bool capacity)
{
    return capacity ? pnet_capacity(c->rows[level]) : c->rows[level];
}

static struct pnet_tensor shape_of(
    const struct pnet_plan *p, const struct pnet_counts *c, int tensor, bool capacity)
{
    const struct pnet_type *t = &p->tensors[tensor].type;
    return (struct pnet_tensor){
        .rows = t->level == p->scalar_level ? 1 : rows_of(c, t->level, capacity),
        .width = t->width,
        .type = t->type,
        .storage = pnet_plan_storage(p, tensor),
        .level = t->level,
        .samples = c->samples};
}

static struct pnet_geo_view view_of(
    const struct pnet_plan *p, const struct pnet_counts *c, int item, bool capacity)
{
    return pnet_geo_view_of(&(struct pnet_geo_look){.plan = p,
        .q = &p->geo[item].request,
        .item = item,
        .forms = pnet_plan_forms(p, item),
        .device = p->device,
        .counts = c,
        .capacity = capacity});
}

void pnet_bind_shapes(const struct pnet_plan *p, const struct pnet_counts *counts, int step,
    bool capacity, struct pnet_exec *x, struct pnet_geo_view views[PNET_MAX_GEO])
{
    const struct pnet_step *s = &p->steps[step];
    const struct pnet_node *n = &p->nodes[s->node];
    memset(x, 0, sizeof *x);
    x->device = p->device;
    x->precision = p->precision;
    x->algos = pnet_plan_algos(p, s->node);
    x->attr = n->attr;
    x->in_count = n->in_count;
    x->act = n->act;
    x->slope = n->slope;
    for (int i = 0; i < n->in_count; i++)
        x->in[i] = x->gin[i] = shape_of(p, counts, n->in[i], capacity);
    x->out = x->gout = shape_of(p, counts, n->out, capacity);
    for (int i = 0; i < n->saved_count; i++)
        x->saved[i] = shape_of(p, counts, n->saved[i], capacity);
    for (int i = 0; i < n->geo_count && views; i++) {
        views[i] = view_of(p, counts, n->geo[i], capacity);
        x->geo[i] = &views[i];
    }
}

static size_t element_bytes(const struct pnet_tensor *t)
{
    if (t->type == PNET_F32) return (size_t)pnet_storage_bytes(t->storage);
    return t->type == PNET_F64 ? 8 : 4;
}

static size_t tensor_bytes(const struct pnet_plan *p, const struct pnet_counts *c, int tensor)
{
    struct pnet_tensor t = shape_of(p, c, tensor, true);
    return pnet_round_bytes((size_t)t.rows * (size_t)t.width * element_bytes(&t));
}

/* Something that needs `bytes` from step `first` to step `last`. */
struct block {
    size_t bytes, offset;
    int first, last;
    int index; /* tensor, or tensor_count + step for a workspace */
};

static int by_size(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->index - y->index;
}

static int by_offset(const void *a, const void *b)
{
    const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* What keeps two blocks from lying in the same place, beside their steps: that parts of the schedule which touch them may
   run at once (runtime/run/waits.h). A set of parts for each block. */
struct apart {
    uint64_t *touch;  /* [blocks][words]: parts that touch it */
    uint64_t *beside; /* [blocks][words]: parts that may run beside one of those */
    int blocks, parts, words;
    int reach; /* in steps: parts farther from each other are ordered by the memory that they share */
};

static uint64_t *set_of(uint64_t *sets, const struct apart *a, int block)
{
    return sets + (size_t)block * (size_t)a->words;
}

static bool may_meet(const struct apart *a, const struct block *x, const struct block *y)
{
    if (x->first <= y->last && y->first <= x->last) return true;
    if (!a || x->first - y->last > a->reach || y->first - x->last > a->reach) return false;
    const uint64_t *touch = set_of(a->touch, a, x->index), *beside = set_of(a->beside, a, y->index);
    uint64_t both = 0;
    for (int i = 0; i < a->words; i++) both |= touch[i] & beside[i];
    return both;
}

/* Largest first, each at the lowest offset that is free while it lives. Returns where the last one ends. */
static size_t place(struct block *blocks, int count, struct block **alive, const struct apart *a)
{
    size_t total = 0;
    qsort(blocks, (size_t)count, sizeof *blocks, by_size);
    for (int i = 0; i < count; i++) {
        struct block *b = &blocks[i];
        int n = 0;
        for (int k = 0; k < i; k++)
            if (may_meet(a, &blocks[k], b)) alive[n++] = &blocks[k];
        qsort(alive, (size_t)n, sizeof *alive, by_offset);
        size_t at = 0;
        for (int k = 0; k < n; k++) {
            if (alive[k]->offset >= at + b->bytes) break;
            if (alive[k]->offset + alive[k]->bytes > at) at = alive[k]->offset + alive[k]->bytes;
        }
        b->offset = at;
        if (at + b->bytes > total) total = at + b->bytes;
    }
    return total;
}

/* Every object at a place of its own: a block's is its index. */
static struct pnet_stretch own_place(void *context, enum pnet_object object, int index)
{
    const struct pnet_plan *p = context;
    const int first[] = {[PNET_OBJECT_TENSOR] = 0,
        [PNET_OBJECT_WORK] = p->tensor_count,
        [PNET_OBJECT_PARAM] = p->tensor_count + p->step_count,
        [PNET_OBJECT_GRADIENT] = p->tensor_count + p->step_count + p->param_count};
    uintptr_t at = (uintptr_t)first[object] + (uintptr_t)index;
    return (struct pnet_stretch){at, at + 1, false};
}

static void add_part(uint64_t *set, int part)
{
    set[part / 64] |= (uint64_t)1 << part % 64;
}

/* What `part` touches must not share memory with what parts within reach touch that are not ordered with it. */
static void keep_apart(
    struct apart *a, const struct pnet_waits *w, const struct pnet_touched *t, int part)
{
    int step = part / PNET_STEP_PARTS, first = (step - a->reach) * PNET_STEP_PARTS,
        end = (step + a->reach + 1) * PNET_STEP_PARTS;
    for (int i = 0; i < t->count; i++) {
        int block = (int)t->at[i].begin;
        if (block >= a->blocks) continue;
        add_part(set_of(a->touch, a, block), part);
        for (int k = first > 0 ? first : 0; k < end && k < a->parts; k++)
            if (!pnet_waits_ordered(w, k, part) && !pnet_waits_ordered(w, part, k))
                add_part(set_of(a->beside, a, block), k);
    }
}

/* The schedule's steps, and what waits for what by that alone which they read and write. */
struct schedule {
    struct pnet_waits *waits;
    struct pnet_touched (*touched)[PNET_STEP_PARTS]; /* [step_count] */
};

static bool open_schedule(const struct pnet_plan *p, struct schedule *s)
{
    int *others = calloc((size_t)p->step_count * PNET_STEP_PARTS + 1, sizeof *others);
    s->waits = pnet_waits_new(p->step_count);
    s->touched = calloc((size_t)p->step_count + 1, sizeof *s->touched);
    bool ok = s->waits && s->touched && others;
    for (int i = 0; i < p->step_count && ok; i++) {
        for (int part = 0; part < PNET_STEP_PARTS; part++)
            pnet_step_touches(p, i, part, own_place, (void *)p, &s->touched[i][part]);
        pnet_waits_add(s->waits, s->touched[i], others);
    }
    free(others);
    return ok;
}

/* Places blocks such that steps up to `reach` from each other can run at once. Returns where the last one ends; 0: no
   memory. */
static size_t place_apart(const struct pnet_plan *p, const struct schedule *s, int reach,
    struct block *blocks, int count, struct block **alive)
{
    struct apart a = {.blocks = p->tensor_count + p->step_count,
        .parts = p->step_count * PNET_STEP_PARTS,
        .reach = reach};
    size_t total = 0;
    a.words = a.parts / 64 + 1;
    a.touch = calloc((size_t)a.blocks * (size_t)a.words + 1, sizeof *a.touch);
    a.beside = calloc((size_t)a.blocks * (size_t)a.words + 1, sizeof *a.beside);
    if (a.touch && a.beside) {
        for (int i = 0; i < a.parts; i++)
            keep_apart(&a, s->waits, &s->touched[i / PNET_STEP_PARTS][i % PNET_STEP_PARTS], i);
        total = place(blocks, count, alive, &a);
    }
    free(a.touch);
    free(a.beside);
    return total;
}

static int collect_blocks(const struct pnet_plan *p, const struct pnet_counts *c,
    struct pnet_layout *l, struct block *blocks)
{
    int n = 0;
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *tensor = &p->tensors[t];
        if (tensor->first < 0 || tensor->role == PNET_ROLE_INPUT) continue;
        l->bytes[t] = tensor_bytes(p, c, t);
        if (tensor->shares == t && l->bytes[t])
            blocks[n++] = (struct block){l->bytes[t], 0, tensor->first, tensor->last, t};
    }
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_op *op = p->nodes[p->steps[s].node].op;
        struct pnet_exec x;
        struct pnet_geo_view views[PNET_MAX_GEO];
        bool on_host = p->device != PNET_CPU && (op->flags & PNET_ON_HOST);
        if (!op->work || on_host) continue; /* the host has a workspace of its own */
        pnet_bind_shapes(p, c, s, true, &x, views);
        l->work_bytes[s] = pnet_round_bytes(op->work(&x, p->steps[s].backward));
        if (l->work_bytes[s])
            blocks[n++] = (struct block){l->work_bytes[s], 0, s, s, p->tensor_count + s};
    }
    return n;
}

/* How far steps that run at once may be from each other, the more the better, and what that may cost. Measured on an H200
   (bench/NOTES.md): beyond 4 steps nothing is gained, and 2 are most of it in large networks. */
static const struct {
    int reach;
    size_t bytes, share; /* so many, or a share-th of the memory */
} most_apart[] = {{4, PNET_WORK_MOST, 16}, {2, PNET_WORK_MOST, 7}};

/* Tells in `total` where the last block ends. false: no memory. */
static bool place_blocks(const struct pnet_plan *p, bool beside, struct block *blocks, int count,
    struct block **alive, size_t *total)
{
    struct schedule s = {0};
    size_t least = *total = place(blocks, count, alive, NULL);
    if (p->device == PNET_CPU || !beside) return true;
    bool ok = open_schedule(p, &s), done = false;
    for (size_t i = 0; i < sizeof most_apart / sizeof most_apart[0] && ok && !done; i++) {
        size_t share = least / most_apart[i].share, bytes = most_apart[i].bytes;
        *total = place_apart(p, &s, most_apart[i].reach, blocks, count, alive);
        ok = *total > 0 || least == 0;
        done = *total <= least + (share > bytes ? share : bytes);
    }
    if (!done) *total = place(blocks, count, alive, NULL);
    pnet_waits_free(s.waits);
    free(s.touched);
    return ok;
}

enum pnet_status pnet_layout_make(const struct pnet_plan *p, const struct pnet_counts *counts,
    bool beside, struct pnet_layout *l, struct pnet_error *e)
{
    size_t tensors = (size_t)p->tensor_count + 1, steps = (size_t)p->step_count + 1;
    *l = (struct pnet_layout){.offset = calloc(tensors, sizeof(size_t)),
        .bytes = calloc(tensors, sizeof(size_t)),
        .work = calloc(steps, sizeof(size_t)),
        .work_bytes = calloc(steps, sizeof(size_t))};
    struct block *blocks = calloc(tensors + steps, sizeof *blocks),
                 **alive = calloc(tensors + steps, sizeof *alive);
    if (!l->offset || !l->bytes || !l->work || !l->work_bytes || !blocks || !alive) {
        free(blocks);
        free(alive);
        pnet_layout_free(l);
        return pnet_error_memory(e);
    }
    int n = collect_blocks(p, counts, l, blocks);
    if (!place_blocks(p, beside, blocks, n, alive, &l->total)) {
        free(blocks);
        free(alive);
        pnet_layout_free(l);
        return pnet_error_memory(e);
    }
    for (int i = 0; i < n; i++) {
        const struct block *b = &blocks[i];
        *(b->index < p->tensor_count ? &l->offset[b->index]
                                     : &l->work[b->index - p->tensor_count]) = b->offset;
    }
    for (int t = 0; t < p->tensor_count; t++) l->offset[t] = l->offset[p->tensors[t].shares];
    for (int s = 0; s < p->step_count; s++) {
        size_t sum = 0;
        for (int i = 0; i < n; i++)
            if (blocks[i].first <= s && s <= blocks[i].last) sum += blocks[i].bytes;
        if (sum > l->live) {
            l->live = sum;
            l->peak_step = s;
        }
    }
    free(blocks);
    free(alive);
    return PNET_OK;
}

void pnet_layout_name_peak(
    const struct pnet_plan *p, const struct pnet_layout *l, struct pnet_error *e)
{
    int step = l->peak_step;
    char text[sizeof e->message], size[32];
    size_t used =
        (size_t)snprintf(text, sizeof text, "%.400s; alive at the peak, in %s of %s:", e->message,
            p->steps[step].backward ? "backward" : "forward", p->nodes[p->steps[step].node].path);
    bool *told = calloc((size_t)p->tensor_count + 1, sizeof *told);
    for (int i = 0; told && i < 6 && used < sizeof text; i++) {
        int best = -1;
        for (int t = 0; t < p->tensor_count; t++) {
            const struct pnet_plan_tensor *tensor = &p->tensors[t];
            bool alive =
                tensor->shares == t && tensor->first <= step && step <= tensor->last && l->bytes[t];
            if (alive && !told[t] && (best < 0 || l->bytes[t] > l->bytes[best])) best = t;
        }
        if (best < 0) break;
        told[best] = true;
        used += (size_t)snprintf(text + used, sizeof text - used, "\n  %10s  %s%s",
            pnet_bytes_text(l->bytes[best], size),
            p->tensors[best].role == PNET_ROLE_GRAD ? "gradient of " : "", p->tensors[best].name);
    }
    free(told);
    pnet_error_set(e, PNET_NO_MEMORY, "%s", text);
}

void pnet_layout_free(struct pnet_layout *l)
{
    free(l->offset);
    free(l->bytes);
    free(l->work);
    free(l->work_bytes);
    *l = (struct pnet_layout){0};
}
