#include "runtime/run/bound.h"

#include "runtime/device/memory.h"
#include "runtime/run/apart.h"

#include <stdlib.h>

static bool has_features(const struct pnet_plan *p, const struct pnet_plan_tensor *t)
{
    return t->type.type == PNET_F32 && !t->type.pose && t->role != PNET_ROLE_SAVED &&
           t->type.level != p->scalar_level;
}

static void choose_storage(struct pnet_bound *b)
{
    for (int t = 0; t < b->plan->tensor_count; t++) {
        const struct pnet_plan_tensor *own = &b->plan->tensors[t];
        bool exact = b->plan->tensors[own->role == PNET_ROLE_GRAD ? own->of : t].exact,
             narrow = b->device == PNET_CUDA && has_features(b->plan, own) && !exact;
        b->storage[t] = narrow ? pnet_storage_of(b->precision) : PNET_STORE_F32;
    }
}

static struct pnet_tensor tensor_of(const struct pnet_bound *b, int tensor)
{
    const struct pnet_type *t = &b->plan->tensors[tensor].type;
    const struct pnet_level_info *l = &b->plan->levels[t->level];
    return (struct pnet_tensor){.width = t->width,
        .type = t->type,
        .storage = b->storage[tensor],
        .level = t->level,
        .generated = l->kind == PNET_GEO_POINTS ? l->count : 0};
}

/* Products of positions are formed in fp32: 8 bits of positions at 50 m are steps of 25 cm. A kernel that reads few channels
   of them and writes 16 bits does so in any precision. */
static enum pnet_precision precision_of(const struct pnet_bound *b, const struct pnet_node *n)
{
    return n->exact && b->storage[n->out] == PNET_STORE_F32 ? PNET_FP32 : b->precision;
}

/* Returns the constants of a step. */
static struct pnet_exec exec_of(const struct pnet_bound *b, const struct pnet_step *s)
{
    const struct pnet_node *n = &b->plan->nodes[s->node];
    struct pnet_exec x = {.device = b->device,
        .architecture = b->architecture,
        .precision = precision_of(b, n),
        .algos = b->algos[s->node],
        .attr = n->attr,
        .in_count = n->in_count,
        .act = n->act,
        .slope = n->slope,
        .rand = {.purpose = PNET_DRAW_DROPOUT, .b = n->draw}};
    for (int i = 0; i < n->in_count; i++) {
        x.in[i] = x.gin[i] = tensor_of(b, n->in[i]);
        x.gin_add[i] = s->backward && s->gin[i] >= 0 && s->gin_add[i];
    }
    x.out = x.gout = tensor_of(b, n->out);
    for (int i = 0; i < n->saved_count; i++) x.saved[i] = tensor_of(b, n->saved[i]);
    for (int i = 0; i < n->param_count; i++)
        x.gparam_add[i] =
            s->backward && b->plan->params[n->param[i]].info.trained && s->gparam_add[i];
    return x;
}

struct pnet_geo_look pnet_bound_look(
    const struct pnet_bound *b, int item, const struct pnet_counts *c, bool capacity)
{
    return (struct pnet_geo_look){.plan = b->plan,
        .q = &b->plan->geo[item].request,
        .item = item,
        .forms = b->forms[item],
        .device = b->device,
        .counts = c,
        .capacity = capacity};
}

void pnet_bound_views(const struct pnet_bound *b, const struct pnet_counts *c, bool capacity,
    struct pnet_geo_view *views)
{
    for (int i = 0; i < b->plan->geo_count; i++) {
        struct pnet_geo_look look = pnet_bound_look(b, i, c, capacity);
        views[i] = pnet_geo_view_of(&look);
    }
}

static void count_rows(
    const struct pnet_bound *b, const struct pnet_counts *c, bool capacity, struct pnet_tensor *t)
{
    t->rows = capacity ? pnet_capacity(c->rows[t->level]) : c->rows[t->level];
    if (t->level == b->plan->scalar_level) t->rows = 1;
    t->samples = c->samples;
}

void pnet_bound_exec(const struct pnet_bound *b, int step, const struct pnet_counts *c,
    bool capacity, const struct pnet_geo_view *views, struct pnet_exec *x)
{
    const struct pnet_node *n = &b->plan->nodes[b->plan->steps[step].node];
    *x = b->exec[step];
    for (int i = 0; i < n->in_count; i++) {
        count_rows(b, c, capacity, &x->in[i]);
        x->gin[i].rows = x->in[i].rows;
        x->gin[i].samples = x->in[i].samples;
    }
    count_rows(b, c, capacity, &x->out);
    x->gout.rows = x->out.rows;
    x->gout.samples = x->out.samples;
    for (int i = 0; i < n->saved_count; i++) count_rows(b, c, capacity, &x->saved[i]);
    for (int i = 0; i < n->geo_count; i++) x->geo[i] = &views[n->geo[i]];
}

/* Returns the forms that a step reads of its first item, under its target. */
static unsigned step_forms(const struct pnet_bound *b, int step, const struct pnet_geo_view *views)
{
    const struct pnet_step *s = &b->plan->steps[step];
    const struct pnet_node *n = &b->plan->nodes[s->node];
    struct pnet_exec x = b->exec[step];
    for (int i = 0; i < n->geo_count; i++) x.geo[i] = &views[n->geo[i]];
    if (!s->backward) return n->op->forms(&x, PNET_FORWARD);
    unsigned forms = n->op->forms(&x, PNET_DW);
    return s->gin[0] >= 0 ? forms | n->op->forms(&x, PNET_DF) : forms;
}

static unsigned with_both(unsigned forms)
{
    if (forms & PNET_FORM_FORWARD_TILES) forms |= PNET_FORM_FORWARD;
    if (forms & PNET_FORM_TRANSPOSED_TILES) forms |= PNET_FORM_TRANSPOSED;
    return forms;
}

/* `views` [geo_count]: scratch. */
static void choose_forms(struct pnet_bound *b, bool choosing, struct pnet_geo_view *views)
{
    const struct pnet_plan *p = b->plan;
    pnet_bound_views(b, NULL, false, views); /* no forms yet */
    for (int g = 0; g < p->geo_count; g++) b->forms[g] = p->geo[g].forms;
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_node *n = &p->nodes[p->steps[s].node];
        unsigned forms = n->op->forms && n->geo_count ? step_forms(b, s, views) : 0;
        for (int i = 0; i < n->geo_count; i++) b->forms[n->geo[i]] |= forms;
    }
    for (int g = 0; g < p->geo_count && choosing; g++) b->forms[g] = with_both(b->forms[g]);
}

static void choose_owners(struct pnet_bound *b)
{
    for (int g = 0; g < b->plan->geo_count; g++) {
        const struct pnet_geo_kind *kind = pnet_geo_kind(b->plan->geo[g].request.kind);
        for (int k = 0; k < PNET_GEO_BUFFERS; k++)
            b->owner[g][k] =
                kind->owner ? kind->owner(b->plan, g, b->forms[g], k) : PNET_OWNER_SLOT;
    }
}

static bool is_loss(const struct pnet_plan *p, int tensor)
{
    for (int i = 0; i < p->objective_count; i++)
        if (p->objectives[i].tensor == tensor && !p->objectives[i].metric) return true;
    return false;
}

/* Finds the gradients that no step writes. */
static void find_seeds(struct pnet_bound *b)
{
    const struct pnet_plan *p = b->plan;
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *g = &p->tensors[t];
        if (g->role == PNET_ROLE_GRAD && g->first == p->forward_steps && is_loss(p, g->of))
            b->seeds[b->seed_count++] = t;
    }
}

/* The steps that a GPU leaves to the host come at the end of forward. */
static int count_device_steps(const struct pnet_bound *b)
{
    const struct pnet_plan *p = b->plan;
    int last = p->forward_steps;
    while (b->device != PNET_CPU && last > 0 &&
           (p->nodes[p->steps[last - 1].node].op->flags & PNET_ON_HOST))
        last--;
    return last;
}

/* Features in 16 bits are only for the default kernels. */
static enum pnet_status check(
    const struct pnet_bound *b, enum pnet_conv_algo algo, struct pnet_error *e)
{
    if (b->precision == PNET_FP32 || pnet_conv_algo_is_usual(algo)) return PNET_OK;
    return pnet_error_set(
        e, PNET_USAGE, "convolutions by %s are formed in fp32", pnet_conv_algo_names[algo]);
}

static enum pnet_status choose_algos(
    struct pnet_bound *b, const struct pnet_target *t, struct pnet_error *e)
{
    enum pnet_status st = t->algos ? PNET_OK : check(b, t->algo, e);
    for (int n = 0; n < b->plan->node_count; n++) {
        b->algos[n] = t->algos ? t->algos[n] : (struct pnet_algos){{t->algo, t->algo, t->algo}};
        for (int d = 0; d < PNET_DIRECTIONS && !st && pnet_plan_convolves(b->plan, n); d++)
            st = check(b, b->algos[n].of[d], e);
    }
    return st;
}

/* Returns false if memory is out. */
static bool make_room(struct pnet_bound *b)
{
    const struct pnet_plan *p = b->plan;
    b->algos = calloc((size_t)p->node_count + 1, sizeof *b->algos);
    b->storage = calloc((size_t)p->tensor_count + 1, sizeof *b->storage);
    b->forms = calloc((size_t)p->geo_count + 1, sizeof *b->forms);
    b->owner = calloc((size_t)p->geo_count + 1, sizeof *b->owner);
    b->level_item = calloc((size_t)p->level_count + 1, sizeof *b->level_item);
    b->exec = calloc((size_t)p->step_count + 1, sizeof *b->exec);
    b->seeds = calloc((size_t)p->tensor_count + 1, sizeof *b->seeds);
    return b->algos && b->storage && b->forms && b->owner && b->level_item && b->exec && b->seeds;
}

/* Sets everything that follows from device, precision and algorithms. `views` [geo_count]: scratch. */
static void derive(struct pnet_bound *b, bool choosing, struct pnet_geo_view *views)
{
    const struct pnet_plan *p = b->plan;
    choose_storage(b);
    for (int s = 0; s < p->step_count; s++) b->exec[s] = exec_of(b, &p->steps[s]);
    choose_forms(b, choosing, views);
    choose_owners(b);
    for (int l = 0; l < p->level_count; l++) b->level_item[l] = pnet_geo_level_item(p, l);
    find_seeds(b);
    b->device_steps = count_device_steps(b);
}

static enum pnet_status bind(
    struct pnet_bound *b, const struct pnet_target *t, struct pnet_error *e)
{
    if (!make_room(b)) return pnet_error_memory(e);
    enum pnet_status st = choose_algos(b, t, e);
    if (st) return st;
    struct pnet_geo_view *views = calloc((size_t)b->plan->geo_count + 1, sizeof *views);
    if (!views) return pnet_error_memory(e);
    derive(b, t->choosing, views);
    free(views);
    if (b->device == PNET_CPU) return PNET_OK;
    b->apart = pnet_apart_new(b->plan);
    return b->apart ? PNET_OK : pnet_error_memory(e);
}

enum pnet_status pnet_bound_new(const struct pnet_plan *p, const struct pnet_target *t,
    struct pnet_bound **bound, struct pnet_error *e)
{
    struct pnet_bound *b = malloc(sizeof *b);
    if (!b) return pnet_error_memory(e);
    *b = (struct pnet_bound){.plan = p,
        .where = t->where,
        .device = t->where.kind,
        .architecture = t->architecture,
        .precision = t->precision};
    enum pnet_status st = bind(b, t, e);
    if (!st)
        *bound = b;
    else
        pnet_bound_free(b);
    return st;
}

void pnet_bound_free(struct pnet_bound *b)
{
    if (!b) return;
    free(b->algos);
    free(b->storage);
    free(b->forms);
    free(b->owner);
    free(b->level_item);
    free(b->exec);
    free(b->seeds);
    pnet_apart_free(b->apart);
    free(b);
}

size_t pnet_bound_element_bytes(const struct pnet_bound *b, int tensor)
{
    enum pnet_scalar type = b->plan->tensors[tensor].type.type;
    if (type == PNET_F32) return (size_t)pnet_storage_bytes(b->storage[tensor]);
    return type == PNET_F64 ? 8 : 4;
}
