#include "compiler/cli/exchange.h"
#include "runtime/base/json.h"
#include "runtime/base/printable.h"
#include "runtime/exchange/names.h"

#include <string.h>

int pnet_cli_exchange_check(
    const struct exchange_options *o, const char *from, const struct usage *usage)
{
    struct pnet_axes a;
    if (!o->model) return pnet_cli_usage_error("which model? usage: %s", usage->synopsis);
    if (!o->weights) return pnet_cli_usage_error("which weights? --weights FILE");
    if (!o->library)
        return pnet_cli_usage_error(
            "which library? --%s minkowski, spconv, torchsparse or torch", from);
    if (o->m.json && o->output && strcmp(o->output, "-") == 0)
        return pnet_cli_usage_error("--json and -o - both write to standard output");
    if (o->axes && !pnet_axes_parse(o->axes, &a))
        return pnet_cli_usage_error(
            "--axes is an order of the letters x, y and z, such as zyx, not '%s'", o->axes);
    return 0;
}

int pnet_cli_exchange_open(const struct exchange_options *o, unsigned degrade,
    const struct text_list *sets, struct exchange *x)
{
    struct pnet_error e = {0};
    int code = 0;
    bool part = o->net || o->value;
    struct pnet_compile_options c = {.purpose = part ? PNET_FOR_INFERENCE : PNET_FOR_EVAL,
        .degrade = degrade,
        .sets = sets->items,
        .set_count = sets->count,
        .net = o->net,
        .value = o->value,
        .no_fusion = true};
    *x = (struct exchange){.x.map_name = o->map ? o->map : "no map"};
    x->x.map = &x->map;
    if (!pnet_library_parse(o->library, &x->x.library)) return PNET_USAGE;
    x->x.axes = pnet_axes_usual(x->x.library);
    if (o->axes && !pnet_axes_parse(o->axes, &x->x.axes)) return PNET_USAGE;
    if (o->map && pnet_names_read(o->map, &x->map, &e))
        code = pnet_cli_complain(&e);
    else
        x->compilation = pnet_cli_compile_model(o->model, &c, &o->m, &code);
    if (x->compilation)
        x->x.plan = pnet_compilation_plan(x->compilation);
    else
        pnet_cli_exchange_close(x);
    return code;
}

void pnet_cli_exchange_close(struct exchange *x)
{
    if (x->compilation) pnet_compilation_free(x->compilation);
    pnet_name_rules_free(&x->map);
    *x = (struct exchange){0};
}

/* Prints a name, made printable, and a shape. */
static void put_part(FILE *out, const char *name, int dims, const int64_t *shape)
{
    char text[512], lengths[PNET_SHAPE_TEXT];
    fprintf(out, "%s %s", pnet_printable(name, text, sizeof text),
        pnet_shape_text(dims, shape, lengths));
}

static void put_line(const struct pnet_exchange_line *l, bool out_first, FILE *out)
{
    char text[512], lengths[PNET_SHAPE_TEXT];
    fputs("  ", out);
    switch (l->kind) {
    case PNET_EXCHANGE_TAKEN:
        put_part(out, out_first ? l->ours : l->theirs, out_first ? l->want_dims : l->dims,
            out_first ? l->want : l->shape);
        fputs(" -> ", out);
        put_part(out, out_first ? l->theirs : l->ours, out_first ? l->dims : l->want_dims,
            out_first ? l->shape : l->want);
        break;
    case PNET_EXCHANGE_MISFIT:
        put_part(out, l->theirs, l->dims, l->shape);
        fprintf(out, " %s: ", pnet_tensor_type_name(l->type));
        fprintf(out, "%s ", pnet_printable(l->ours, text, sizeof text));
        if (!pnet_tensor_type_is_real(l->type))
            fputs("takes F32, F16, BF16 or F64", out);
        else if (l->want_dims < 0)
            fputs("is of a layer that the library has not", out);
        else
            fprintf(out, "takes %s", pnet_shape_text(l->want_dims, l->want, lengths));
        break;
    case PNET_EXCHANGE_MISSING:
        put_part(out, l->ours, l->want_dims, l->want);
        fputs(": missing", out);
        break;
    default:
        put_part(out, l->theirs, l->dims, l->shape);
        if (l->kind == PNET_EXCHANGE_IGNORED)
            fputs(": a counter, ignored", out);
        else if (l->unread)
            fprintf(out, ": nothing depends on %s of the model",
                pnet_printable(l->renamed, text, sizeof text));
        else if (strcmp(l->renamed, l->theirs) != 0)
            fprintf(out, ": not in the model as %s", pnet_printable(l->renamed, text, sizeof text));
        else
            fputs(": not in the model", out);
    }
    fputc('\n', out);
}

void pnet_cli_exchange_print(
    const struct pnet_exchanged *r, unsigned kinds, bool out_first, FILE *out)
{
    for (size_t i = 0; i < r->count; i++)
        if (kinds >> r->lines[i].kind & 1) put_line(&r->lines[i], out_first, out);
}

/* ---- what no file of weights says ---- */

/* Returns the eps of a layer with weights; 0: it has none. */
static double eps_of(const struct pnet_node *n)
{
    for (int i = 0; i < PNET_MAX_ARGS && n->op->args[i].name && n->param_count && !n->dead; i++)
        if (strcmp(n->op->args[i].name, "eps") == 0) return n->attr[i].r;
    return 0;
}

/* Does node `node` have an eps that no node before it has? */
static bool is_new_eps(const struct pnet_plan *p, int node)
{
    double eps = eps_of(&p->nodes[node]);
    for (int n = 0; n < node; n++)
        if (eps_of(&p->nodes[n]) == eps) return false;
    return eps > 0;
}

void pnet_cli_exchange_print_assumed(const struct pnet_exchange *x, const char *mode, FILE *out)
{
    char axes[4];
    const char *before = ", norms with eps ";
    pnet_axes_text(&x->axes, axes);
    fprintf(out, "assumed, as no file of weights says it: axes %s, mode %s", axes, mode);
    for (int n = 0; n < x->plan->node_count; n++) {
        if (!is_new_eps(x->plan, n)) continue;
        fprintf(out, "%s%g", before, eps_of(&x->plan->nodes[n]));
        before = " and ";
    }
    fputc('\n', out);
}

void pnet_cli_exchange_warn(const struct pnet_exchanged *r, FILE *out)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct pnet_exchange_line *l = &r->lines[i];
        if (!l->other) continue;
        fputs("pnetc: ", out);
        put_part(out, l->theirs, l->dims, l->shape);
        fprintf(out, " was read as spconv 2.2 has it; %s have this shape, too\n", l->other);
    }
}

static void put_assumed(struct pnet_json *j, const struct pnet_exchange *x, const char *mode)
{
    char axes[4];
    pnet_axes_text(&x->axes, axes);
    pnet_json_begin(j, "assumed", '{');
    pnet_json_string(j, "axes", axes);
    pnet_json_string(j, "mode", mode);
    pnet_json_begin(j, "eps", '[');
    for (int n = 0; n < x->plan->node_count; n++)
        if (is_new_eps(x->plan, n)) pnet_json_double(j, NULL, eps_of(&x->plan->nodes[n]));
    pnet_json_end(j, ']');
    pnet_json_end(j, '}');
}

/* ---- JSON ---- */

static void put_shape(struct pnet_json *j, const char *key, int dims, const int64_t *shape)
{
    pnet_json_begin(j, key, '[');
    for (int d = 0; d < dims; d++) pnet_json_int(j, NULL, shape[d]);
    pnet_json_end(j, ']');
}

static void put_object(struct pnet_json *j, const struct pnet_exchange_line *l)
{
    pnet_json_begin(j, NULL, '{');
    if (l->theirs) {
        pnet_json_string(j, "tensor", l->theirs);
        pnet_json_string(j, "type", pnet_tensor_type_name(l->type));
        put_shape(j, "shape", l->dims, l->shape);
    }
    if (l->renamed) pnet_json_string(j, "renamed", l->renamed);
    if (l->unread) pnet_json_bool(j, "unread", true);
    if (l->ours) pnet_json_string(j, "weight", l->ours);
    if (l->ours && l->want_dims >= 0)
        put_shape(j, l->kind == PNET_EXCHANGE_MISFIT ? "expected" : "weight_shape", l->want_dims,
            l->want);
    if (l->other) pnet_json_string(j, "other_layout", l->other);
    pnet_json_end(j, '}');
}

enum pnet_status pnet_cli_exchange_json(const struct pnet_exchanged *r,
    const struct pnet_exchange *import, const struct exchange_options *o, const char *output,
    struct pnet_error *e)
{
    static const char *const keys[PNET_EXCHANGE_KINDS] = {[PNET_EXCHANGE_TAKEN] = "taken",
        [PNET_EXCHANGE_MISFIT] = "misfits",
        [PNET_EXCHANGE_MISSING] = "missing",
        [PNET_EXCHANGE_LEFT] = "left",
        [PNET_EXCHANGE_IGNORED] = "ignored"};
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_string(&j, "file", o->weights);
    pnet_json_string(&j, "library", o->library);
    if (output) pnet_json_string(&j, "output", output);
    if (import) put_assumed(&j, import, o->m.mode);
    for (int k = 0; k < PNET_EXCHANGE_KINDS; k++) {
        pnet_json_begin(&j, keys[k], '[');
        for (size_t i = 0; i < r->count; i++)
            if ((int)r->lines[i].kind == k) put_object(&j, &r->lines[i]);
        pnet_json_end(&j, ']');
    }
    pnet_json_end(&j, '}');
    return pnet_json_print(&j, stdout, e);
}
