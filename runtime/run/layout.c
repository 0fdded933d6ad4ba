#include "runtime/run/layout.h"

#include "kernels/conv_plan.h"
#include "runtime/device/memory.h"
#include "runtime/run/apart.h"

#include <stdio.h>
#include <stdlib.h>

/* A block of `bytes` that is alive from step `first` to step `last`. */
struct block {
    size_t bytes, offset;
    int first, last;
    int index; /* tensor, or tensor_count + step for a workspace */
};

/* The blocks to place; `by_offset` has those that are placed, in the order of their offsets. */
struct blocks {
    struct block *items, **by_offset;
    int count;
};

static int by_size(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->index - y->index;
}

/* Steps in sequence: a reach under which only blocks that are alive at the same step must not overlap. */
enum { IN_SEQUENCE = -1 };

static bool may_meet(
    const struct pnet_bound *b, int reach, const struct block *x, const struct block *y)
{
    if (x->first <= y->last && y->first <= x->last) return true;
    if (reach == IN_SEQUENCE) return false;
    int most = pnet_reaches[reach].steps;
    if (x->first - y->last > most || y->first - x->last > most) return false;
    return pnet_apart_concurrent(b->apart, reach, x->index, y->index);
}

/* Returns the lowest offset at which `x` overlaps none of the first `count` blocks that must not share memory with it. */
static size_t find_room(const struct pnet_bound *b, int reach, const struct block *x,
    struct block *const *by_offset, int count)
{
    size_t at = 0;
    for (int k = 0; k < count; k++) {
        const struct block *y = by_offset[k];
        if (y->offset >= at + x->bytes) break;
        if (y->offset + y->bytes > at && may_meet(b, reach, y, x)) at = y->offset + y->bytes;
    }
    return at;
}

/* No device has as much; sums of a few such numbers stay within 64 bits. */
static const size_t MOST = SIZE_MAX / 16;

/* Places blocks, the largest first. Returns where the last one ends, or MOST if that is beyond it. */
static size_t place(const struct pnet_bound *b, int reach, struct blocks *all)
{
    size_t total = 0;
    for (int i = 0; i < all->count; i++) {
        struct block *x = &all->items[i];
        x->offset = find_room(b, reach, x, all->by_offset, i);
        if (x->bytes > MOST || x->offset > MOST - x->bytes) return MOST;
        if (x->offset + x->bytes > total) total = x->offset + x->bytes;
        int k = i;
        for (; k > 0 && all->by_offset[k - 1]->offset > x->offset; k--)
            all->by_offset[k] = all->by_offset[k - 1];
        all->by_offset[k] = x;
    }
    return total;
}

static size_t tensor_bytes(const struct pnet_bound *b, const struct pnet_counts *c, int tensor)
{
    const struct pnet_type *t = &b->plan->tensors[tensor].type;
    int64_t rows = t->level == b->plan->scalar_level ? 1 : pnet_capacity(c->rows[t->level]);
    return pnet_round_bytes((size_t)rows * (size_t)t->width * pnet_bound_element_bytes(b, tensor));
}

/* Returns the bytes of a step's workspace. The host has a workspace of its own for the steps that a GPU leaves to it. */
static size_t work_bytes(const struct pnet_bound *b, const struct pnet_counts *c, int step,
    const struct pnet_geo_view *views)
{
    const struct pnet_step *s = &b->plan->steps[step];
    const struct pnet_op *op = b->plan->nodes[s->node].op;
    bool on_host = !s->backward && step >= b->device_steps;
    struct pnet_exec x;
    if (!op->work || on_host) return 0;
    pnet_bound_exec(b, step, c, true, views, &x);
    pnet_cuda_conv_plan_for(x.architecture);
    size_t bytes = op->work(&x, s->backward);
    pnet_cuda_conv_plan_for(0);
    return pnet_round_bytes(bytes);
}

static void collect_blocks(const struct pnet_bound *b, const struct pnet_counts *c,
    const struct pnet_geo_view *views, struct pnet_layout *l, struct blocks *all)
{
    const struct pnet_plan *p = b->plan;
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *tensor = &p->tensors[t];
        if (tensor->first < 0 || tensor->role == PNET_ROLE_INPUT) continue;
        l->bytes[t] = tensor_bytes(b, c, t);
    }
    /* a row cut into rows of generated points is of another capacity class */
    for (int t = 0; t < p->tensor_count; t++) {
        size_t *root = &l->bytes[p->tensors[t].shares];
        if (l->bytes[t] > *root) *root = l->bytes[t];
    }
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *tensor = &p->tensors[t];
        if (tensor->shares == t && l->bytes[t])
            all->items[all->count++] =
                (struct block){l->bytes[t], 0, tensor->first, tensor->last, t};
    }
    for (int s = 0; s < p->step_count; s++) {
        l->work_bytes[s] = work_bytes(b, c, s, views);
        if (l->work_bytes[s])
            all->items[all->count++] =
                (struct block){l->work_bytes[s], 0, s, s, p->tensor_count + s};
    }
}

/* Places blocks so that steps may be concurrent, if that costs no more than allowed. Returns where the last block ends. */
static size_t place_blocks(const struct pnet_bound *b, bool concurrent, struct blocks *all)
{
    qsort(all->items, (size_t)all->count, sizeof *all->items, by_size);
    size_t least = place(b, IN_SEQUENCE, all);
    if (!b->apart || !concurrent || least == MOST) return least;
    for (int r = 0; r < PNET_REACHES; r++) {
        size_t share = least / pnet_reaches[r].share, bytes = pnet_reaches[r].bytes,
               total = place(b, r, all);
        if (total <= least + (share > bytes ? share : bytes)) return total;
    }
    return place(b, IN_SEQUENCE, all);
}

/* Finds the step at which most bytes are alive. `change` [step_count + 1]: zeroed scratch. */
static void find_peak(
    const struct pnet_plan *p, const struct blocks *all, int64_t *change, struct pnet_layout *l)
{
    int64_t sum = 0;
    for (int i = 0; i < all->count; i++) {
        change[all->items[i].first] += (int64_t)all->items[i].bytes;
        change[all->items[i].last + 1] -= (int64_t)all->items[i].bytes;
    }
    for (int s = 0; s < p->step_count; s++) {
        sum += change[s];
        if ((size_t)sum > l->live) {
            l->live = (size_t)sum;
            l->peak_step = s;
        }
    }
}

static void fill_layout(const struct pnet_bound *b, const struct blocks *all, struct pnet_layout *l)
{
    const struct pnet_plan *p = b->plan;
    for (int i = 0; i < all->count; i++) {
        const struct block *x = &all->items[i];
        *(x->index < p->tensor_count ? &l->offset[x->index]
                                     : &l->work[x->index - p->tensor_count]) = x->offset;
    }
    for (int t = 0; t < p->tensor_count; t++) l->offset[t] = l->offset[p->tensors[t].shares];
}

enum pnet_status pnet_layout_make(const struct pnet_bound *b, const struct pnet_counts *counts,
    bool concurrent, struct pnet_layout *l, struct pnet_error *e)
{
    const struct pnet_plan *p = b->plan;
    size_t tensors = (size_t)p->tensor_count + 1, steps = (size_t)p->step_count + 1;
    *l = (struct pnet_layout){.offset = calloc(tensors, sizeof(size_t)),
        .bytes = calloc(tensors, sizeof(size_t)),
        .work = calloc(steps, sizeof(size_t)),
        .work_bytes = calloc(steps, sizeof(size_t))};
    struct blocks all = {.items = calloc(tensors + steps, sizeof *all.items),
        .by_offset = calloc(tensors + steps, sizeof *all.by_offset)};
    struct pnet_geo_view *views = calloc((size_t)p->geo_count + 1, sizeof *views);
    int64_t *change = calloc(steps, sizeof *change);
    bool ok = l->offset && l->bytes && l->work && l->work_bytes && all.items && all.by_offset &&
              views && change;
    if (ok) {
        pnet_bound_views(b, counts, true, views);
        collect_blocks(b, counts, views, l, &all);
        l->total = place_blocks(b, concurrent, &all);
    }
    bool fits = ok && l->total < MOST;
    if (fits) {
        fill_layout(b, &all, l);
        find_peak(p, &all, change, l);
    } else {
        pnet_layout_free(l);
    }
    free(all.items);
    free(all.by_offset);
    free(views);
    free(change);
    if (fits) return PNET_OK;
    return ok ? pnet_error_set(e, PNET_NO_MEMORY, "the batch needs more than an exabyte of memory")
              : pnet_error_memory(e);
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
