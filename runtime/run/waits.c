#include "runtime/run/waits.h"

#include <stdlib.h>
#include <string.h>

struct pnet_waits {
    struct pnet_touched *part; /* [parts] */
    /* [parts][words]: a bit for each part that has ended before this one begins */
    uint64_t *before;
    int count, words; /* parts so far */
};

static void touch(struct pnet_touched *t, struct pnet_stretch at, bool written)
{
    if (at.begin == at.end) return;
    at.written = written;
    t->at[t->count++] = at;
}

static void touch_tensor(struct pnet_touched *t, const struct pnet_plan *p, int tensor,
    bool written, pnet_locate *locate, void *context)
{
    const struct pnet_plan_tensor *x = &p->tensors[tensor];
    if (x->first < 0 || x->role == PNET_ROLE_INPUT) return;
    touch(t, locate(context, PNET_OBJECT_TENSOR, x->shares), written);
}

static bool has_second_part(const struct pnet_plan *p, int step)
{
    const struct pnet_step *s = &p->steps[step];
    const struct pnet_node *n = &p->nodes[s->node];
    return s->backward && (n->op->flags & PNET_GRADS_APART) && s->gin[0] >= 0 &&
           n->param_count > 0 && p->params[n->param[0]].info.trained;
}

void pnet_step_touches(const struct pnet_plan *p, int step, int part, pnet_locate *locate,
    void *context, struct pnet_touched *t)
{
    const struct pnet_step *s = &p->steps[step];
    const struct pnet_node *n = &p->nodes[s->node];
    bool splits = has_second_part(p, step), second = part > 0;
    t->count = 0;
    if (second && !splits) return;
    for (int i = 0; i < n->in_count; i++) {
        bool read = !s->backward || (n->op->keep & (1u << i));
        if (read) touch_tensor(t, p, n->in[i], false, locate, context);
        if (s->backward && s->gin[i] >= 0 && !second)
            touch_tensor(t, p, s->gin[i], true, locate, context);
    }
    if (!s->backward || (n->op->keep & PNET_KEEP_OUT) || n->act)
        touch_tensor(t, p, n->out, !s->backward, locate, context);
    /* a step that splits changes gout, if at all, before the split: its parts only read it */
    if (s->backward) touch_tensor(t, p, s->gout, !splits, locate, context);
    for (int i = 0; i < n->saved_count; i++) touch_tensor(t, p, n->saved[i], true, locate, context);
    for (int i = 0; i < n->param_count; i++) {
        bool trained = p->params[n->param[i]].info.trained;
        touch(t, locate(context, PNET_OBJECT_PARAM, n->param[i]), !trained);
        if (s->backward && trained && splits == second)
            touch(t, locate(context, PNET_OBJECT_GRADIENT, n->param[i]), true);
    }
    touch(t, locate(context, PNET_OBJECT_WORK, step), true);
}

struct pnet_waits *pnet_waits_new(int steps)
{
    size_t parts = (size_t)steps * PNET_STEP_PARTS;
    struct pnet_waits *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->words = (int)(parts / 64 + 1);
    w->part = malloc(parts * sizeof *w->part + 1);
    w->before = calloc(parts * (size_t)w->words + 1, sizeof *w->before);
    if (w->part && w->before) return w;
    pnet_waits_free(w);
    return NULL;
}

void pnet_waits_free(struct pnet_waits *w)
{
    if (!w) return;
    free(w->part);
    free(w->before);
    free(w);
}

static bool conflict(const struct pnet_touched *a, const struct pnet_touched *b)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++) {
            const struct pnet_stretch *x = &a->at[i], *y = &b->at[k];
            if ((x->written || y->written) && x->begin < y->end && y->begin < x->end) return true;
        }
    return false;
}

static uint64_t *before(const struct pnet_waits *w, int part)
{
    return w->before + (size_t)part * (size_t)w->words;
}

static bool has(const uint64_t *set, int part)
{
    return set[part / 64] >> part % 64 & 1;
}

int pnet_waits_add(
    struct pnet_waits *w, const struct pnet_touched parts[PNET_STEP_PARTS], int *others)
{
    int found = 0;
    uint64_t *first = before(w, w->count), *second = before(w, w->count + 1);
    /* from the last part back: what a part waits for is known before that part is reached */
    for (int i = w->count - 1; i >= 0; i--) {
        const struct pnet_touched *other = &w->part[i];
        if (has(first, i) || !(conflict(&parts[0], other) || conflict(&parts[1], other))) continue;
        others[found++] = i;
        for (int k = 0; k < w->words; k++) first[k] |= before(w, i)[k];
        first[i / 64] |= (uint64_t)1 << i % 64;
    }
    memcpy(second, first, (size_t)w->words * sizeof *first);
    memcpy(&w->part[w->count], parts, PNET_STEP_PARTS * sizeof *parts);
    w->count += PNET_STEP_PARTS;
    return found;
}

bool pnet_waits_ordered(const struct pnet_waits *w, int first, int second)
{
    return has(before(w, second), first);
}
