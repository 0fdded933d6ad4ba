#include "runtime/exchange/propose.h"
#include "runtime/base/name_table.h"
#include "runtime/base/yaml.h"
#include "runtime/exchange/names.h"
#include "runtime/exchange/propose_match.h"

#include <stdlib.h>
#include <string.h>

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
    const struct pnet_layer *x = a, *y = b;
    return (x->items[0] > y->items[0]) - (x->items[0] < y->items[0]);
}

/* Puts items of one stem together; layers are in the order of their first items. */
static enum pnet_status collect(
    struct item *items, size_t count, struct pnet_layers *l, struct pnet_error *e)
{
    l->at = calloc(count + 1, sizeof *l->at);
    l->items = calloc(count + 1, sizeof *l->items);
    if (!l->at || !l->items) return pnet_error_memory(e);
    qsort(items, count, sizeof *items, by_stem);
    for (size_t i = 0; i < count; i++) {
        l->items[i] = items[i].index;
        if (!i || !same_stem(&items[i], &items[i - 1]))
            l->at[l->count++] = (struct pnet_layer){
                .name = items[i].name, .length = items[i].stem, .items = &l->items[i], .match = -1};
        l->at[l->count - 1].count++;
    }
    qsort(l->at, l->count, sizeof *l->at, by_first_item);
    return PNET_OK;
}

static enum pnet_status collect_ours(struct pnet_matching *p, struct pnet_error *e)
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
static enum pnet_status collect_theirs(struct pnet_matching *p, struct pnet_error *e)
{
    const struct pnet_safetensors *f = p->file;
    struct item *items = calloc(f->count + 1, sizeof *items);
    size_t *rows = calloc(f->count + 1, sizeof *rows), count = 0;
    enum pnet_status st = items && rows ? PNET_OK : pnet_error_memory(e);
    for (size_t i = 0; i < f->count && !st; i++)
        if (!p->names->left[i])
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

/* ---- the map ---- */

/* Adds the first words of all names of the file's layers, each number of them but all: a rule for such words would change these
   names. False: memory is out. */
static bool find_beginnings(const struct pnet_layers *theirs, struct pnet_name_table *begun)
{
    for (size_t i = 0; i < theirs->count; i++)
        for (size_t at = 0; at < theirs->at[i].length; at++)
            if (theirs->at[i].name[at] == '.' &&
                !pnet_name_table_at(begun, theirs->at[i].name, at, 0))
                return false;
    return true;
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
static bool put_match(const struct pnet_matching *p, const struct pnet_name_table *begun,
    const struct pnet_layer *ours, size_t alike, FILE *out)
{
    const struct pnet_layer *theirs = &p->theirs.at[ours->match];
    bool words = ours->length && theirs->length &&
                 pnet_name_table_find(begun, theirs->name, theirs->length) < 0;
    for (size_t i = 0; i < ours->count && words; i++) {
        const struct pnet_plan_param *q = &p->x->plan->params[ours->items[i]];
        const struct pnet_safetensor *t = pnet_layer_tensor(p, theirs, pnet_last_word(q->name));
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
        const struct pnet_safetensor *t = pnet_layer_tensor(p, theirs, pnet_last_word(name));
        if (t && !put_rule(t->name, name, alike, out)) return false;
    }
    return true;
}

/* Lists what the map leaves open as comments. */
static void put_open(const struct pnet_matching *p, FILE *out)
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
    struct pnet_matching *p, FILE *out, struct pnet_proposal *r, struct pnet_error *e)
{
    struct pnet_name_table begun = {.slots = NULL};
    size_t *sizes = calloc(p->ours.count + 1, sizeof *sizes);
    enum pnet_status st = sizes ? pnet_match_layers(p, &r->named, sizes, e) : pnet_error_memory(e);
    bool done = !st && find_beginnings(&p->theirs, &begun);
    if (done) {
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
        if (sizes[m]) done = put_match(p, &begun, &p->ours.at[m], sizes[m], out);
    }
    if (done && !r->alone && !r->ordered) fputs("{}\n", out); /* a map without rules */
    if (done) put_open(p, out);
    pnet_name_table_free(&begun);
    free(sizes);
    return st ? st : done ? PNET_OK : pnet_error_memory(e);
}

enum pnet_status pnet_propose_map(const struct pnet_exchange *x,
    const struct pnet_safetensors *file, FILE *out, struct pnet_proposal *r, struct pnet_error *e)
{
    static const struct pnet_name_rules none;
    struct pnet_renamed names;
    struct pnet_matching p = {.x = x, .file = file, .names = &names};
    *r = (struct pnet_proposal){0};
    enum pnet_status st = pnet_names_theirs(x->library, file, &none, x->map_name, &names, e);
    if (st) return st;
    st = collect_ours(&p, e);
    if (!st) st = collect_theirs(&p, e);
    if (!st) st = put_map(&p, out, r, e);
    pnet_renamed_free(&names);
    free(p.theirs.at);
    free(p.theirs.items);
    free(p.ours.at);
    free(p.ours.items);
    return st;
}
