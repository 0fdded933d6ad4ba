/* What the caller asks for: values by their path or their name in the file, or for inference the result of a net. */
#include "compiler/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Names for "did you mean", and what was found so far. */
struct search {
    const char *names[256];
    int count;
};

static void add_name(struct search *s, const char *name)
{
    if (s->count < (int)(sizeof s->names / sizeof *s->names)) s->names[s->count++] = name;
}

/* A value by the path of its layer: "fcgf.s.0" is what the last layer of that statement makes, "fcgf.s.0.conv" one of its
   layers. -1: there is none. */
static int find_path(const struct pnet_plan *p, const char *path, struct search *s)
{
    size_t length = strlen(path);
    int inside = -1, exact = -1;
    for (int t = 0; t < p->tensor_count; t++) {
        const char *name = p->tensors[t].name;
        if (p->tensors[t].role != PNET_ROLE_RESULT) continue;
        if (strncmp(name, path, length) == 0) {
            if (name[length] == '.') inside = t;
            if (!name[length]) exact = t;
        }
        add_name(s, name);
    }
    return exact >= 0 ? exact : inside;
}

/* The value of the file with that name, or what the first use of the net with that name gives; NULL: there is neither. */
static const struct value *find_value(struct pnet_compilation *c, const char *name)
{
    struct binding *b = pnet_find_own_binding(c->global, name);
    if (b) return &b->value;
    int *d = pnet_map_find(&c->definition_names, name);
    return d && c->definitions[*d].value.kind != V_NONE ? &c->definitions[*d].value : NULL;
}

/* Reads "[1][0]" and takes that item; NULL: an error was reported. `at` follows the name at the start of `whole`. */
static const struct value *take_item(
    struct pnet_compilation *c, const struct value *v, const char *at, const char *whole)
{
    const struct pnet_span nowhere = {0};
    while (*at) {
        char *end = NULL;
        long i = *at == '[' && isdigit((unsigned char)at[1]) ? strtol(at + 1, &end, 10) : -1;
        if (i < 0 || *end != ']') {
            pnet_diag_help(ERROR(c, nowhere, "'%s' is no name of a value", whole),
                "write a name and, behind the name of a list, an index: y[1]");
            return NULL;
        }
        if (v->kind != V_LIST) {
            ERROR(c, nowhere, "%.*s is %s, not a list", (int)(at - whole), whole,
                pnet_value_text(c, *v));
            return NULL;
        }
        if (i >= v->count) {
            pnet_diag_help(
                ERROR(c, nowhere, "there is no value '%.*s'", (int)(end + 1 - whole), whole),
                "%.*s has %d, from 0 to %d", (int)(at - whole), whole, v->count, v->count - 1);
            return NULL;
        }
        v = &v->items[i];
        at = end + 1;
    }
    return v;
}

/* A value by its name in the file, "y", or of a list, "y[1]". Reports an error if something has the name that is no result.
   -1: an error was reported, or nothing has the name. */
static int find_named(struct pnet_compilation *c, const char *text)
{
    size_t n = strcspn(text, "[");
    const char *name = pnet_arena_copy(&c->arena, text, n);
    const struct value *v = name ? find_value(c, name) : NULL;
    if (v) v = take_item(c, v, text + n, text);
    if (!v || v->kind == V_UNKNOWN) return -1;
    if (v->kind == V_LIST && v->count)
        pnet_diag_help(ERROR(c, (struct pnet_span){0}, "%s is a list of %d values", text, v->count),
            "choose one of them, %s[0] to %s[%d]", text, text, v->count - 1);
    else if (v->kind != V_TENSOR || c->plan.tensors[v->index].type.type != PNET_F32)
        ERROR(c, (struct pnet_span){0}, "%s is %s: a result is features", text,
            v->kind == V_TENSOR ? "no features" : pnet_value_text(c, *v));
    else
        return v->index;
    return -1;
}

/* The last features of a list, and their place in it: "[1]". -1: there are none. */
static int last_of(struct pnet_compilation *c, const struct value *list, const char **place)
{
    for (int i = list->count - 1; i >= 0; i--) {
        const struct value *v = &list->items[i];
        const char *inner = "";
        int tensor = v->kind == V_TENSOR ? v->index
                     : v->kind == V_LIST ? last_of(c, v, &inner)
                                         : -1;
        if (tensor < 0) continue;
        *place = pnet_arena_printf(&c->arena, "[%d]%s", i, inner);
        return tensor;
    }
    return -1;
}

/* Of a net that gives a list the result is its last value, if the net is asked for or its first use stands in no other net. */
static void take_net(struct pnet_compilation *c, const struct definition *d)
{
    const char *place = NULL;
    int tensor = d->value.kind == V_TENSOR ? d->value.index : -1;
    if (d->value.kind == V_LIST && (c->options.net || !d->inner))
        tensor = last_of(c, &d->value, &place);
    if (tensor < 0) return;
    c->plan.result = tensor;
    c->plan.result_input = d->input;
    c->result_name = place ? pnet_arena_printf(&c->arena, "%s%s", d->item->name, place) : NULL;
}

static void find_net(struct pnet_compilation *c, struct search *s)
{
    for (int i = 0; i < c->definition_count; i++) {
        const struct definition *d = &c->definitions[i];
        if (d->item->kind != PNET_ITEM_NET || d->value.kind == V_NONE) continue;
        if (!c->options.net || strcmp(c->options.net, d->item->name) == 0) take_net(c, d);
        add_name(s, d->item->name);
    }
}

/* Says that nothing has the name, unless an error was reported since there were `errors`. */
static void report_missing(struct pnet_compilation *c, const char *what, const char *wanted,
    const struct search *s, int errors)
{
    if (pnet_diags_errors(c->diags) != errors) return;
    struct pnet_diag *d = wanted
                              ? ERROR(c, (struct pnet_span){0}, "there is no %s '%s'", what, wanted)
                              : ERROR(c, (struct pnet_span){0}, "no net is used: nothing to infer");
    const char *near = wanted ? pnet_nearest(wanted, s->names, s->count) : NULL;
    if (near) pnet_diag_help(d, "did you mean %s?", near);
    if (!wanted) pnet_diag_help(d, "add a line such as y = mynet(cloud)");
}

static void choose_output(struct pnet_compilation *c, const char *name)
{
    struct pnet_plan *p = &c->plan;
    const struct pnet_span nowhere = {0};
    struct search s = {.count = 0};
    int errors = pnet_diags_errors(c->diags), tensor = find_path(p, name, &s);
    if (tensor < 0) tensor = find_named(c, name);
    if (tensor < 0) {
        report_missing(c, "value", name, &s, errors);
        return;
    }
    int node = p->tensors[tensor].node;
    if (node < 0) {
        ERROR(c, nowhere, "'%s' is what the caller gives: no layer makes it", name);
        return;
    }
    if (p->nodes[node].op->class_ != PNET_LAYER) {
        ERROR(c, nowhere, "'%s' is a loss or metric, not a value", name);
        return;
    }
    if (p->tensors[tensor].type.type != PNET_F32) {
        ERROR(c, nowhere, "'%s' is no features", name);
        return;
    }
    for (int i = 0; i < p->output_count; i++)
        if (p->outputs[i].tensor == tensor) {
            ERROR(c, nowhere, "'%s' and '%s' are one value", p->outputs[i].name, name);
            return;
        }
    p->outputs[p->output_count++] = (struct pnet_plan_output){
        .name = pnet_arena_copy(&c->arena, name, strlen(name)), .tensor = tensor, .gradient = -1};
    const char *own = pnet_arena_copy(&c->arena, name, strcspn(name, "["));
    struct binding *b = own ? pnet_find_own_binding(c->global, own) : NULL;
    if (b && b->use >= 0) c->uses[b->use].used = true;
}

void pnet_choose_outputs(struct pnet_compilation *c)
{
    size_t count = (size_t)c->options.output_count;
    if (!count) return;
    c->plan.outputs = pnet_arena_array(&c->arena, count, sizeof *c->plan.outputs);
    if (!c->plan.outputs) return;
    for (size_t i = 0; i < count; i++) choose_output(c, c->options.outputs[i]);
}

/* The classes of which a value holds scores: a loss or metric takes it as such, or takes the scores that `pool` or
   `interpolate` has brought to its level. 0: none. */
static int classes_of(const struct pnet_plan *p, int tensor)
{
    const struct pnet_plan_tensor *t = &p->tensors[tensor];
    while (!t->type.classes && t->node >= 0 && p->nodes[t->node].op->flags & PNET_MOVES_SCORES)
        t = &p->tensors[p->nodes[t->node].in[0]];
    return t->type.classes;
}

void pnet_choose_result(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    struct search s = {.count = 0};
    const char *wanted = c->options.value ? c->options.value : c->options.net;
    int errors = pnet_diags_errors(c->diags);
    if (c->options.value) {
        p->result = find_path(p, c->options.value, &s);
        if (p->result < 0) p->result = find_named(c, c->options.value);
    } else {
        find_net(c, &s);
    }
    if (p->result < 0) {
        report_missing(c, c->options.value ? "value" : "net", wanted, &s, errors);
        return;
    }
    const struct pnet_plan_tensor *t = &p->tensors[p->result];
    if (p->levels[t->type.level].input >= 0) p->result_input = p->levels[t->type.level].input;
    p->result_classes = classes_of(p, p->result);
}
