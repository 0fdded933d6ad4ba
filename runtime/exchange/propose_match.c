#include "runtime/exchange/propose_match.h"
#include "runtime/base/name_table.h"
#include "runtime/exchange/names.h"

#include <stdlib.h>
#include <string.h>

/* Layers of the same weights and shapes are a class. Which fit is found for classes, of which a network has few. */
struct classes {
    size_t *of;    /* [layers] the class of each layer */
    size_t *first; /* [count] a layer of each class */
    size_t *open;  /* [count] layers that are not matched */
    size_t *tried; /* [count] the number of matches when the class was tried last, + 1 */
    size_t count;
};

struct matcher {
    struct pnet_matching *p;
    struct pnet_weight_role *roles; /* [param_count] */
    struct classes ours, theirs;
    bool *fit;              /* [ours.count][theirs.count] */
    size_t *group, *taking; /* layers of the model and of the file that are matched at once */
    size_t matches;
};

const struct pnet_safetensor *pnet_layer_tensor(
    const struct pnet_matching *p, const struct pnet_layer *theirs, const char *word)
{
    for (size_t i = 0; i < theirs->count; i++)
        if (strcmp(pnet_last_word(p->names->names[theirs->items[i]]), word) == 0)
            return &p->file->tensors[theirs->items[i]];
    return NULL;
}

/* ---- classes ---- */

/* A layer while they are sorted. */
struct sorted {
    const struct matcher *m;
    const struct pnet_layer *layer;
    size_t index;
};

static int by_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_shape(int dims, const int64_t *a, int other_dims, const int64_t *b)
{
    int order = by_number(dims, other_dims);
    for (int d = 0; d < dims && !order; d++) order = by_number(a[d], b[d]);
    return order;
}

static bool is_pattern(const struct pnet_layer *l)
{
    return memchr(l->name, '*', l->length) != NULL;
}

static int by_tensors(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    const struct pnet_matching *p = x->m->p;
    int order = by_number((int64_t)x->layer->count, (int64_t)y->layer->count);
    if (!order) order = by_number(is_pattern(x->layer), is_pattern(y->layer));
    for (size_t i = 0; i < x->layer->count && !order; i++) {
        size_t row = x->layer->items[i], other = y->layer->items[i];
        const struct pnet_safetensor *s = &p->file->tensors[row], *t = &p->file->tensors[other];
        order =
            strcmp(pnet_last_word(p->names->names[row]), pnet_last_word(p->names->names[other]));
        if (!order) order = by_number(pnet_name_is_kernel(s->name), pnet_name_is_kernel(t->name));
        if (!order) order = by_number((int64_t)s->dtype, (int64_t)t->dtype);
        if (!order) order = by_shape(s->dims, s->shape, t->dims, t->shape);
    }
    return order;
}

static int by_roles(const struct pnet_weight_role *a, const struct pnet_weight_role *b)
{
    int order = by_number((int64_t)a->kind, (int64_t)b->kind);
    if (!order) order = by_shape(a->dims, a->shape, b->dims, b->shape);
    if (!order) order = by_number(a->kernel, b->kernel);
    if (!order) order = by_number(a->groups, b->groups);
    if (!order) order = by_number(a->finer, b->finer);
    return order ? order : by_number(a->alone, b->alone);
}

static int by_weights(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    const struct pnet_plan_param *params = x->m->p->x->plan->params;
    int order = by_number((int64_t)x->layer->count, (int64_t)y->layer->count);
    for (size_t i = 0; i < x->layer->count && !order; i++) {
        size_t param = x->layer->items[i], other = y->layer->items[i];
        order = strcmp(pnet_last_word(params[param].name), pnet_last_word(params[other].name));
        if (!order) order = by_roles(&x->m->roles[param], &x->m->roles[other]);
    }
    return order;
}

static bool classify(const struct matcher *m, const struct pnet_layers *l,
    int (*order)(const void *, const void *), struct classes *c)
{
    struct sorted *sorted = calloc(l->count + 1, sizeof *sorted);
    c->of = calloc(l->count + 1, sizeof *c->of);
    c->first = calloc(l->count + 1, sizeof *c->first);
    c->open = calloc(l->count + 1, sizeof *c->open);
    c->tried = calloc(l->count + 1, sizeof *c->tried);
    bool made = sorted && c->of && c->first && c->open && c->tried;
    for (size_t i = 0; i < l->count && made; i++) sorted[i] = (struct sorted){m, &l->at[i], i};
    if (made) qsort(sorted, l->count, sizeof *sorted, order);
    for (size_t i = 0; i < l->count && made; i++) {
        if (!i || order(&sorted[i - 1], &sorted[i]) != 0) c->first[c->count++] = sorted[i].index;
        c->of[sorted[i].index] = c->count - 1;
        c->open[c->count - 1]++;
    }
    free(sorted);
    return made;
}

static void classes_free(struct classes *c)
{
    free(c->of);
    free(c->first);
    free(c->open);
    free(c->tried);
}

/* ---- which fit ---- */

static bool fits(
    const struct matcher *m, const struct pnet_layer *ours, const struct pnet_layer *theirs)
{
    const struct pnet_matching *p = m->p;
    if (ours->count != theirs->count) return false;
    if (is_pattern(theirs)) return false; /* a map would take it for a pattern */
    for (size_t i = 0; i < ours->count; i++) {
        size_t param = ours->items[i];
        struct pnet_form forms[PNET_MOST_FORMS];
        const struct pnet_safetensor *t =
            pnet_layer_tensor(p, theirs, pnet_last_word(p->x->plan->params[param].name));
        if (!t || !pnet_tensor_type_is_real(t->dtype)) return false;
        int count = pnet_forms(
            p->x->library, &p->x->axes, &m->roles[param], pnet_name_is_kernel(t->name), forms);
        if (!pnet_form_find(forms, count, t->dims, t->shape)) return false;
    }
    return true;
}

static bool find_fitting(struct matcher *m)
{
    size_t theirs = m->theirs.count;
    m->fit = calloc(m->ours.count * theirs + 1, sizeof *m->fit);
    for (size_t o = 0; o < m->ours.count && m->fit; o++)
        for (size_t t = 0; t < theirs; t++)
            m->fit[o * theirs + t] =
                fits(m, &m->p->ours.at[m->ours.first[o]], &m->p->theirs.at[m->theirs.first[t]]);
    return m->fit != NULL;
}

/* ---- matches ---- */

/* Takes a layer of the file away from all layers of the model but the one that it is matched to. */
static void match(struct matcher *m, size_t ours, size_t theirs)
{
    m->p->ours.at[ours].match = (int64_t)theirs;
    m->p->theirs.at[theirs].taken = true;
    m->ours.open[m->ours.of[ours]]--;
    m->theirs.open[m->theirs.of[theirs]]--;
    m->matches++;
}

/* Matches the layers whose names are right already. False: memory is out. */
static bool match_names(struct matcher *m, size_t *named)
{
    struct pnet_name_table names = {.slots = NULL};
    const struct pnet_layers *ours = &m->p->ours, *theirs = &m->p->theirs;
    bool made = true;
    for (size_t t = 0; t < theirs->count && made; t++)
        made = pnet_name_table_at(&names, theirs->at[t].name, theirs->at[t].length, (int64_t)t);
    for (size_t o = 0; o < ours->count && made; o++) {
        int64_t t = pnet_name_table_find(&names, ours->at[o].name, ours->at[o].length);
        if (t < 0 || !m->fit[m->ours.of[o] * m->theirs.count + m->theirs.of[t]]) continue;
        match(m, o, (size_t)t);
        ++*named;
    }
    pnet_name_table_free(&names);
    return made;
}

/* Do the same open layers of the file fit both classes of the model? */
static bool fit_alike(const struct matcher *m, size_t a, size_t b)
{
    size_t theirs = m->theirs.count;
    for (size_t t = 0; t < theirs; t++)
        if (m->theirs.open[t] && m->fit[a * theirs + t] != m->fit[b * theirs + t]) return false;
    return true;
}

/* Matches the open layers of the model that the same layers of the file fit as those of class `a`, if they are as many as these.
   Returns how many they are, 0 if they stay open. */
static size_t match_class(struct matcher *m, size_t a)
{
    const bool *row = m->fit + a * m->theirs.count;
    const struct pnet_layers *ours = &m->p->ours, *theirs = &m->p->theirs;
    size_t fitting = 0, alike = 0, count = 0, taking = 0;
    for (size_t t = 0; t < m->theirs.count; t++) fitting += row[t] ? m->theirs.open[t] : 0;
    for (size_t b = 0; b < m->ours.count && fitting && alike <= fitting; b++)
        if (m->ours.open[b] && fit_alike(m, a, b)) alike += m->ours.open[b];
    if (!fitting || fitting != alike) return 0;
    for (size_t o = 0; o < ours->count; o++)
        if (ours->at[o].match < 0 && fit_alike(m, a, m->ours.of[o])) m->group[count++] = o;
    for (size_t t = 0; t < theirs->count; t++)
        if (!theirs->at[t].taken && row[m->theirs.of[t]]) m->taking[taking++] = t;
    for (size_t i = 0; i < count; i++) match(m, m->group[i], m->taking[i]);
    return count;
}

/* Matches what can be matched. */
static void match_shapes(struct matcher *m, size_t *alike)
{
    for (bool more = true; more;) { /* what is matched may leave one layer alone for another */
        more = false;
        for (size_t o = 0; o < m->p->ours.count; o++) {
            size_t class = m->ours.of[o];
            bool same = m->ours.tried[class] == m->matches + 1;
            if (m->p->ours.at[o].match >= 0 || same) continue;
            m->ours.tried[class] = m->matches + 1;
            size_t count = match_class(m, class);
            for (size_t i = 0; i < count; i++) alike[m->group[i]] = count;
            more |= count > 0;
        }
    }
}

enum pnet_status pnet_match_layers(
    struct pnet_matching *p, size_t *named, size_t *alike, struct pnet_error *e)
{
    struct matcher m = {.p = p};
    const struct pnet_plan *plan = p->x->plan;
    *named = 0;
    m.roles = calloc((size_t)plan->param_count + 1, sizeof *m.roles);
    m.group = calloc(p->ours.count + 1, sizeof *m.group);
    m.taking = calloc(p->theirs.count + 1, sizeof *m.taking);
    bool made = m.roles && m.group && m.taking;
    for (int i = 0; i < plan->param_count && made; i++) m.roles[i] = pnet_weight_role_of(plan, i);
    made = made && classify(&m, &p->ours, by_weights, &m.ours) &&
           classify(&m, &p->theirs, by_tensors, &m.theirs) && find_fitting(&m) &&
           match_names(&m, named);
    if (made) match_shapes(&m, alike);
    classes_free(&m.ours);
    classes_free(&m.theirs);
    free(m.roles);
    free(m.fit);
    free(m.group);
    free(m.taking);
    return made ? PNET_OK : pnet_error_memory(e);
}
