#include "runtime/run/apart.h"

#include "runtime/run/waits.h"

#include <stdlib.h>

/* Measured on an H200 (bench/notes/concurrent.md): a reach beyond 4 steps gains nothing, and a reach of 2 gives most of the
   gain in large networks. */
const struct pnet_reach pnet_reaches[PNET_REACHES] = {
    {4, PNET_WORK_MOST, 16}, {2, PNET_WORK_MOST, 7}};

/* For each block of the arena a set of parts. */
struct pnet_apart {
    uint64_t *touch; /* [blocks][words]: parts that touch it */
    /* [blocks][words]: parts that may run at the same time as one of those */
    uint64_t *concurrent[PNET_REACHES];
    int blocks, parts, words;
};

/* The schedule's steps, and the order that what they read and write alone imposes. */
struct schedule {
    struct pnet_waits *waits;
    struct pnet_touched (*touched)[PNET_STEP_PARTS]; /* [step_count] */
};

/* Gives every object a place of its own: the place of a block is its index. */
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

static uint64_t *set_of(uint64_t *sets, const struct pnet_apart *a, int block)
{
    return sets + (size_t)block * (size_t)a->words;
}

static void add_part(uint64_t *set, int part)
{
    set[part / 64] |= (uint64_t)1 << part % 64;
}

/* Adds the parts within `reach` steps that are not ordered with `part`. */
static void add_concurrent(
    uint64_t *set, const struct pnet_apart *a, const struct pnet_waits *w, int part, int reach)
{
    int step = part / PNET_STEP_PARTS, first = (step - reach) * PNET_STEP_PARTS,
        end = (step + reach + 1) * PNET_STEP_PARTS;
    for (int k = first > 0 ? first : 0; k < end && k < a->parts; k++)
        if (!pnet_waits_ordered(w, k, part) && !pnet_waits_ordered(w, part, k)) add_part(set, k);
}

static void note_part(
    struct pnet_apart *a, const struct pnet_waits *w, const struct pnet_touched *t, int part)
{
    for (int i = 0; i < t->count; i++) {
        int block = (int)t->at[i].begin;
        if (block >= a->blocks) continue;
        add_part(set_of(a->touch, a, block), part);
        for (int r = 0; r < PNET_REACHES; r++)
            add_concurrent(set_of(a->concurrent[r], a, block), a, w, part, pnet_reaches[r].steps);
    }
}

struct pnet_apart *pnet_apart_new(const struct pnet_plan *p)
{
    struct schedule s = {0};
    struct pnet_apart *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->blocks = p->tensor_count + p->step_count;
    a->parts = p->step_count * PNET_STEP_PARTS;
    a->words = a->parts / 64 + 1;
    size_t words = (size_t)a->blocks * (size_t)a->words + 1;
    bool ok = (a->touch = calloc(words, sizeof *a->touch)) != NULL;
    for (int r = 0; r < PNET_REACHES && ok; r++)
        ok = (a->concurrent[r] = calloc(words, sizeof *a->concurrent[r])) != NULL;
    if (ok) ok = open_schedule(p, &s);
    for (int i = 0; i < a->parts && ok; i++)
        note_part(a, s.waits, &s.touched[i / PNET_STEP_PARTS][i % PNET_STEP_PARTS], i);
    pnet_waits_free(s.waits);
    free(s.touched);
    if (ok) return a;
    pnet_apart_free(a);
    return NULL;
}

void pnet_apart_free(struct pnet_apart *a)
{
    if (!a) return;
    free(a->touch);
    for (int r = 0; r < PNET_REACHES; r++) free(a->concurrent[r]);
    free(a);
}

bool pnet_apart_concurrent(const struct pnet_apart *a, int reach, int x, int y)
{
    const uint64_t *touch = set_of(a->touch, a, x),
                   *concurrent = set_of(a->concurrent[reach], a, y);
    uint64_t both = 0;
    for (int i = 0; i < a->words; i++) both |= touch[i] & concurrent[i];
    return both;
}
