#include "runtime/exchange/propose.h"
#include "runtime/base/yaml.h"
#include "runtime/exchange/names.h"

#include <stdlib.h>
#include <string.h>

/* The tensors or weights whose names differ in the last word alone. */
struct layer {
    const char *name; /* [length], without the last word and its dot */
    size_t length;
    size_t *items; /* [count] rows of the file, or parameters */
    size_t count;
    int64_t match; /* of a model's layer: the layer of the file; -1: none */
    bool taken;    /* of a file's layer */
};

struct layers {
    struct layer *at; /* [count] */
    size_t count;
    size_t *items; /* of all layers */
};

struct proposing {
    const struct pnet_exchange *x;
    const struct pnet_safetensors *file;
    struct layers theirs, ours;
    struct pnet_renamed names; /* "kernel" made "weight", no map */
    bool *fit;                 /* [ours.count][theirs.count] */
};

/* ---- layers ---- */

/* One tensor or weight, while layers are put together. */
struct item {
    const char *name;
    size_t stem, index; /* length of the name without its last word */
};

static size_t stem_of(const char *name)
{
    const char *word = pnet_last_word(name);
    return word > name ? (size_t)(word - name) - 1 : 0;
}

static bool same_stem(const struct item *a, const struct item *b)
{
    return a->stem == b->stem && memcmp(a->name, b->name, a->stem) == 0;
}

static int by_stem(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    size_t least = x->stem < y->stem ? x->stem : y->stem;
    int order = memcmp(x->name, y->name, least);
    if (order) return order;
    if (x->stem != y->stem) return x->stem < y->stem ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_first_item(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;
    return (x->items[0] > y->items[0]) - (x->items[0] < y->items[0]);
}

/* Puts items of one stem together; layers are in the order of their first items. */
static enum pnet_status collect(
    struct item *items, size_t count, struct layers *l, struct pnet_error *e)
{
    l->at = calloc(count + 1, sizeof *l->at);
    l->items = calloc(count + 1, sizeof *l->items);
    if (!l->at || !l->items) return pnet_error_memory(e);
    qsort(items, count, sizeof *items, by_stem);
    for (size_t i = 0; i < count; i++) {
        l->items[i] = items[i].index;
        if (!i || !same_stem(&items[i], &items[i - 1]))
            l->at[l->count++] = (struct layer){
                .name = items[i].name, .length = items[i].stem, .items = &l->items[i], .match = -1};
        l->at[l->count - 1].count++;
    }
    qsort(l->at, l->count, sizeof *l->at, by_first_item);
    return PNET_OK;
}

static enum pnet_status collect_ours(struct proposing *p, struct pnet_error *e)
{
    const struct pnet_plan *plan = p->x->plan;
    struct item *items = calloc((size_t)plan->param_count + 1, sizeof *items);
    size_t count = 0;
    if (!items) return pnet_error_memory(e);
    for (int i = 0; i < plan->param_count; i++)
        if (plan->params[i].offset >= 0)
            items[count++] =
                (struct item){plan->params[i].name, stem_of(plan->params[i].name), (size_t)i};
    enum pnet_status st = collect(items, count, &p->ours, e);
    free(items);
    return st;
}

/* ---- order of the file ---- */

/* Orders names as people count: conv2 before conv10. */
static int by_count(const char *a, const char *b)
{
    while (*a && *b) {
        size_t m = strspn(a, "0123456789"), n = strspn(b, "0123456789");
        if (m && n) {
            const char *x = a + strspn(a, "0"), *y = b + strspn(b, "0");
            size_t left = x < a + m ? (size_t)(a + m - x) : 0,
                   right = y < b + n ? (size_t)(b + n - y) : 0;
            int order = left != right ? (left < right ? -1 : 1) : memcmp(x, y, left);
            if (order) return order;
            a += m;
            b += n;
        } else if (*a != *b) {
            break;
        } else {
            a++;
            b++;
        }
    }
    return (int)(unsigned char)*a - (int)(unsigned char)*b;
}

static int by_name(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = by_count(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Are tensors of one type in the order of the alphabet? Then the file does not know the order of the layers. */
static bool is_alphabetical(const struct pnet_safetensors *f)
{
    const char *last[PNET_TENSOR_TYPES] = {NULL};
    for (size_t i = 0; i < f->count; i++) {
        const char **before = &last[f->tensors[i].dtype];
        if (*before && strcmp(*before, f->tensors[i].name) > 0) return false;
        *before = f->tensors[i].name;
    }
    return true;
}

/* Collects the file's layers; items are rows of the file. */
static enum pnet_status collect_theirs(struct proposing *p, struct pnet_error *e)
{
    const struct pnet_safetensors *f = p->file;
    struct item *items = calloc(f->count + 1, sizeof *items);
    size_t *rows = calloc(f->count + 1, sizeof *rows), count = 0;
    enum pnet_status st = items && rows ? PNET_OK : pnet_error_memory(e);
    for (size_t i = 0; i < f->count && !st; i++)
        if (!p->names.left[i])
            items[count++] = (struct item){f->tensors[i].name, stem_of(f->tensors[i].name), i};
    if (!st && is_alphabetical(f)) qsort(items, count, sizeof *items, by_name);
    for (size_t i = 0; i < count && !st; i++) { /* for a while items count in the chosen order */
        rows[i] = items[i].index;
        items[i].index = i;
    }
    if (!st) st = collect(items, count, &p->theirs, e);
    for (size_t i = 0; i < count && !st; i++) p->theirs.items[i] = rows[p->theirs.items[i]];
    free(items);
    free(rows);
    return st;
}

/* ---- which fit ---- */

/* Returns the layer's tensor for a weight of that last word, or NULL. */
static const struct pnet_safetensor *tensor_for(
    const struct proposing *p, const struct layer *theirs, const char *word)
{
    for (size_t i = 0; i < theirs->count; i++)
        if (strcmp(pnet_last_word(p->names.names[theirs->items[i]]), word) == 0)
            return &p->file->tensors[theirs->items[i]];
    return NULL;
}

static bool fits(const struct proposing *p, const struct layer *ours, const struct layer *theirs)
{
    if (ours->count != theirs->count) return false;
    if (memchr(theirs->name, '*', theirs->length))
        return false; /* a map would take it for a pattern */
    for (size_t i = 0; i < ours->count; i++) {
        int param = (int)ours->items[i];
        struct pnet_form forms[PNET_MOST_FORMS];
        const struct pnet_safetensor *t =
            tensor_for(p, theirs, pnet_last_word(p->x->plan->params[param].name));
        if (!t || !pnet_tensor_type_is_real(t->dtype)) return false;
        struct pnet_weight_role role = pnet_weight_role_of(p->x->plan, param);
        int count =
            pnet_forms(p->x->library, &p->x->axes, &role, pnet_name_is_kernel(t->name), forms);
        if (!pnet_form_find(forms, count, t->dims, t->shape)) return false;
    }
    return true;
}

static enum pnet_status find_fitting(struct proposing *p, struct pnet_error *e)
{
    size_t theirs = p->theirs.count;
    p->fit = calloc(p->ours.count * theirs + 1, sizeof *p->fit);
    if (!p->fit) return pnet_error_memory(e);
    for (size_t m = 0; m < p->ours.count; m++)
        for (size_t t = 0; t < theirs; t++)
            p->fit[m * theirs + t] = fits(p, &p->ours.at[m], &p->theirs.at[t]);
    return PNET_OK;
}

/* Takes a layer of the file away from all layers of the model but the one that it is matched to. */
static void match(struct proposing *p, size_t ours, size_t theirs)
{
    p->ours.at[ours].match = (int64_t)theirs;
    p->theirs.at[theirs].taken = true;
    for (size_t m = 0; m < p->ours.count; m++) p->fit[m * p->theirs.count + theirs] = false;
}

/* Matches the layers whose names are right already. */
static size_t match_names(struct proposing *p)
{
    size_t named = 0;
    for (size_t m = 0; m < p->ours.count; m++)
        for (size_t t = 0; t < p->theirs.count; t++) {
            const struct layer *a = &p->ours.at[m], *b = &p->theirs.at[t];
            if (a->length != b->length || memcmp(a->name, b->name, a->length) != 0) continue;
            if (!p->fit[m * p->theirs.count + t]) continue;
            match(p, m, t);
            named++;
            break;
        }
    return named;
}

/* Matches the open layers of the model that the same layers of the file fit as layer `first`, if they are as many as these.
   Returns how many they are, 0 if they stay open. `group` has room for all layers of the model. */
static size_t match_alike(struct proposing *p, size_t first, size_t *group)
{
    size_t theirs = p->theirs.count, fitting = 0, alike = 0;
    const bool *row = p->fit + first * theirs;
    for (size_t t = 0; t < theirs; t++) fitting += row[t];
    for (size_t m = first; m < p->ours.count && fitting; m++)
        if (p->ours.at[m].match < 0 && memcmp(row, p->fit + m * theirs, theirs * sizeof *row) == 0)
            group[alike++] = m;
    if (!fitting || fitting != alike) return 0;
    for (size_t t = 0, at = 0; t < theirs && at < alike; t++)
        if (row[t]) match(p, group[at++], t);
    return alike;
}

/* Matches what can be matched. sizes[m]: how many layers are alike to the model's layer `m`; 0: it is open, or has its name. */
static void match_shapes(struct proposing *p, size_t *group, size_t *sizes)
{
    for (bool more = true; more;) { /* what is matched may leave one layer alone for another */
        more = false;
        for (size_t m = 0; m < p->ours.count; m++) {
            size_t alike = p->ours.at[m].match < 0 ? match_alike(p, m, group) : 0;
            for (size_t i = 0; i < alike; i++) sizes[group[i]] = alike;
            more |= alike > 0;
        }
    }
}

/* ---- the map ---- */

/* Does a name of another layer begin with the words of this one? Then a rule for the words would change it too. */
static bool is_begun_elsewhere(const struct proposing *p, const struct layer *l)
{
    for (size_t i = 0; i < p->theirs.count; i++) {
        const struct layer *o = &p->theirs.at[i];
        if (o != l && o->length > l->length && o->name[l->length] == '.' &&
            memcmp(o->name, l->name, l->length) == 0)
            return true;
    }
    return false;
}

/* Writes one rule; false: memory is out. `alike`: how many layers the one of the rule was chosen from by their order. */
static bool put_rule(const char *from, const char *to, size_t alike, FILE *out)
{
    bool is_long = strlen(from) > 90; /* YAML bounds plain keys; an escape may take ten letters */
    char *marked = NULL;
    if (alike > 1 && asprintf(&marked, "%c%s", PNET_NAME_GUESS, to) < 0) return false;
    if (is_long) fputs("? ", out);
    pnet_yaml_put_word(from, out);
    fputs(is_long ? "\n: " : ": ", out);
    pnet_yaml_put_word(marked ? marked : to, out);
    if (marked)
        fprintf(out, "  # one of %zu layers of these shapes, in order\n", alike);
    else
        fputs("  # the only layer of these shapes\n", out);
    free(marked);
    return true;
}

/* Writes the rules of one match; false: memory is out. There is one rule for the words of the layer, unless the library calls a
   linear layer's weight "kernel": going back, only a rule for the whole name says so. */
static bool put_match(const struct proposing *p, const struct layer *ours, size_t alike, FILE *out)
{
    const struct layer *theirs = &p->theirs.at[ours->match];
    bool words = ours->length && theirs->length && !is_begun_elsewhere(p, theirs);
    for (size_t i = 0; i < ours->count && words; i++) {
        const struct pnet_plan_param *q = &p->x->plan->params[ours->items[i]];
        const struct pnet_safetensor *t = tensor_for(p, theirs, pnet_last_word(q->name));
        words = q->info.kind != PNET_PARAM_MATRIX || !t || !pnet_name_is_kernel(t->name);
    }
    if (words) {
        char *from = strndup(theirs->name, theirs->length), *to = strndup(ours->name, ours->length);
        words = from && to && put_rule(from, to, alike, out);
        free(from);
        free(to);
        return words;
    }
    for (size_t i = 0; i < ours->count; i++) {
        const char *name = p->x->plan->params[ours->items[i]].name;
        const struct pnet_safetensor *t = tensor_for(p, theirs, pnet_last_word(name));
        if (t && !put_rule(t->name, name, alike, out)) return false;
    }
    return true;
}

/* Lists what the map leaves open as comments. */
static void put_open(const struct proposing *p, FILE *out)
{
    char shape[PNET_SHAPE_TEXT];
    for (size_t m = 0; m < p->ours.count; m++)
        for (size_t i = 0; i < p->ours.at[m].count && p->ours.at[m].match < 0; i++) {
            const struct pnet_plan_param *q = &p->x->plan->params[p->ours.at[m].items[i]];
            fprintf(out, "# open, in the model: %s %s\n", q->name,
                pnet_shape_text(q->info.dims, q->info.shape, shape));
        }
    for (size_t t = 0; t < p->theirs.count; t++)
        for (size_t i = 0; i < p->theirs.at[t].count && !p->theirs.at[t].taken; i++) {
            const struct pnet_safetensor *s = &p->file->tensors[p->theirs.at[t].items[i]];
            fputs("# open, in the file: ", out);
            pnet_yaml_put_word(s->name, out);
            fprintf(out, " %s\n", pnet_shape_text(s->dims, s->shape, shape));
        }
}

static enum pnet_status put_map(
    struct proposing *p, FILE *out, struct pnet_proposal *r, struct pnet_error *e)
{
    size_t *group = calloc(p->ours.count + 1, sizeof *group);
    size_t *sizes = calloc(p->ours.count + 1, sizeof *sizes);
    bool done = group && sizes;
    if (done) {
        r->named = match_names(p);
        match_shapes(p, group, sizes);
        fputs("# A proposal for a map: check it before it is used.\n", out);
        for (size_t m = 0; m < p->ours.count && !r->ordered; m++) r->ordered = sizes[m] > 1;
        if (r->ordered)
            fputs("# A ? marks what was matched by order alone: compare it with the network, and "
                  "take "
                  "the ? away.\n# While one is left, the map is refused.\n",
                out);
        r->ordered = 0;
    }
    for (size_t m = 0; m < p->ours.count && done; m++) {
        r->open += p->ours.at[m].match < 0;
        r->alone += sizes[m] == 1;
        r->ordered += sizes[m] > 1;
        if (sizes[m]) done = put_match(p, &p->ours.at[m], sizes[m], out);
    }
    if (done && !r->alone && !r->ordered) fputs("{}\n", out); /* a map without rules */
    if (done) put_open(p, out);
    free(group);
    free(sizes);
    return done ? PNET_OK : pnet_error_memory(e);
}

enum pnet_status pnet_propose_map(const struct pnet_exchange *x,
    const struct pnet_safetensors *file, FILE *out, struct pnet_proposal *r, struct pnet_error *e)
{
    static const struct pnet_name_rules none;
    struct proposing p = {.x = x, .file = file};
    *r = (struct pnet_proposal){0};
    enum pnet_status st = pnet_names_theirs(x->library, file, &none, x->map_name, &p.names, e);
    if (!st) st = collect_ours(&p, e);
    if (!st) st = collect_theirs(&p, e);
    if (!st) st = find_fitting(&p, e);
    if (!st) st = put_map(&p, out, r, e);
    pnet_renamed_free(&p.names);
    free(p.fit);
    free(p.theirs.at);
    free(p.theirs.items);
    free(p.ours.at);
    free(p.ours.items);
    return st;
}
