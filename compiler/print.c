/* Listings of a plan: text and DOT. */
#include "compiler/internal.h"
#include "runtime/base/number.h"
#include "runtime/run/bound.h"

#include <stdlib.h>
#include <string.h>

static const char *const direction_names[] = {"forward ", "backward"};

static void print_type(const struct pnet_plan *p, struct pnet_type t, FILE *out)
{
    char text[96];
    fprintf(out, "%s%s", pnet_type_text(p->levels, t, text), t.type == PNET_I32 ? " labels" : "");
}

static void print_attrs(const struct pnet_node *n, const struct pnet_level_info *levels, FILE *out)
{
    const char *comma = "";
    for (int i = 0; i < PNET_MAX_ARGS && n->op->args[i].name; i++) {
        const struct pnet_arg *a = &n->op->args[i];
        const struct pnet_attr *v = &n->attr[i];
        if (!v->set) continue;
        fprintf(out, "%s%s=", comma, a->name);
        comma = ", ";
        switch (a->type) {
        case PNET_ARG_BOOL: fputs(v->i ? "yes" : "no", out); break;
        case PNET_ARG_LEVEL: fputs(levels[v->i].name, out); break;
        case PNET_ARG_LENGTH: pnet_number_write(out, "%gm", v->r); break;
        case PNET_ARG_ANGLE: pnet_number_write(out, "%grad", v->r); break;
        case PNET_ARG_REAL: pnet_number_write(out, "%g", v->r); break;
        case PNET_ARG_REALS: fprintf(out, "[%d numbers]", v->list.count); break;
        case PNET_ARG_MATCHES:
            pnet_number_write(out, "within %gm", (double)v->matches->radius);
            break;
        case PNET_ARG_CHOICE: {
            const char *word = a->choices;
            for (int64_t k = 0; k < v->i; k++) word = strchr(word, '|') + 1;
            fprintf(out, "%.*s", (int)strcspn(word, "|"), word);
            break;
        }
        default: fprintf(out, "%lld", (long long)v->i); break;
        }
    }
}

static void print_node(const struct pnet_plan *p, int index, FILE *out)
{
    static const char *const acts[] = {"", " + relu", " + leaky_relu"};
    const struct pnet_node *n = &p->nodes[index];
    fprintf(out, "  %4d  %-36s %s(", index, n->path, n->op->name);
    print_attrs(n, p->levels, out);
    fprintf(out, ")%s%s", n->sums ? " + add" : "", acts[n->act]);
    fputs("  <-", out);
    for (int i = 0; i < n->in_count; i++) fprintf(out, " %%%d", n->in[i]);
    fprintf(out, "  -> %%%d ", n->out);
    print_type(p, p->tensors[n->out].type, out);
    fputc('\n', out);
}

static void print_schedule(const struct pnet_plan *p, FILE *out)
{
    fprintf(out, "schedule: %d steps, %d of them forward\n", p->step_count, p->forward_steps);
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_step *st = &p->steps[s];
        const struct pnet_node *n = &p->nodes[st->node];
        fprintf(out, "  %4d  %s  %s", s, direction_names[st->backward], n->path);
        if (st->backward) {
            fprintf(out, "  %%%d ->", st->gout);
            for (int i = 0; i < n->in_count; i++)
                if (st->gin[i] >= 0) fprintf(out, " %s%%%d", st->gin_add[i] ? "+" : "", st->gin[i]);
        }
        fputc('\n', out);
    }
}

static void print_tensors(const struct pnet_plan *p, FILE *out)
{
    static const char *const roles[] = {"input", "value", "saved", "gradient"};
    fputs("tensors: steps they live in, and whose memory they share\n", out);
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *x = &p->tensors[t];
        if (x->first < 0) continue;
        fprintf(out, "  %%%-4d %-8s %-36s ", t, roles[x->role], x->name);
        print_type(p, x->type, out);
        fprintf(out, "  [%d, %d]", x->first, x->last);
        if (p->tensors[x->role == PNET_ROLE_GRAD ? x->of : t].exact) fputs(" float32", out);
        if (x->shares != t) fprintf(out, " in %%%d", x->shares);
        fputc('\n', out);
    }
}

static bool print_geometry(const struct pnet_plan *p, FILE *out)
{
    /* whether a set is transposed does not depend on what the plan is bound to */
    struct pnet_bound *b;
    struct pnet_error e;
    if (pnet_bound_new(p, &(struct pnet_target){0}, &b, &e)) return false;
    fputs("geometry:\n", out);
    for (int i = 0; i < p->geo_count; i++) {
        const struct pnet_geo_request *q = &p->geo[i].request;
        const struct pnet_geo_kind *kind = pnet_geo_kind(q->kind);
        fprintf(out, "  %4d  %-8s %s", i, kind->name, p->levels[q->a].name);
        if (q->a != q->b) fprintf(out, " <- %s", p->levels[q->b].name);
        if (kind->print) kind->print(p, q, out);
        if (p->geo[i].users > 1) fprintf(out, "  shared by %d layers", p->geo[i].users);
        if (b->forms[i] & (PNET_FORM_TRANSPOSED | PNET_FORM_TRANSPOSED_TILES))
            fputs("  transposed too", out);
        fputc('\n', out);
    }
    pnet_bound_free(b);
    return true;
}

bool pnet_plan_print(const struct pnet_plan *p, FILE *out)
{
    fputs("nodes:\n", out);
    for (int n = 0; n < p->node_count; n++)
        if (!p->nodes[n].dead) print_node(p, n, out);
    if (!p->step_count) return true;
    print_schedule(p, out);
    if (!print_geometry(p, out)) return false;
    print_tensors(p, out);
    fprintf(out, "parameters: %lld trained\n", (long long)p->parameter_count);
    for (int i = 0; i < p->param_count; i++)
        if (p->params[i].offset >= 0)
            fprintf(out, "  %-48s %12lld at %lld\n", p->params[i].name,
                (long long)p->params[i].count, (long long)p->params[i].offset);
    return true;
}

/* Names may hold quotes. */
static void print_label(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
}

void pnet_plan_dot(const struct pnet_plan *p, FILE *out)
{
    fputs("digraph model {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n", out);
    for (int t = 0; t < p->tensor_count; t++)
        if (p->tensors[t].role == PNET_ROLE_INPUT && p->tensors[t].first >= 0)
            fprintf(out, "  t%d [label=\"%s\", shape=ellipse];\n", t, p->tensors[t].name);
    for (int n = 0; n < p->node_count; n++) {
        const struct pnet_node *node = &p->nodes[n];
        char text[96];
        if (node->dead) continue;
        fprintf(out, "  t%d [label=\"", node->out);
        print_label(node->path, out);
        fprintf(out, "\\n%s %s\"];\n", node->op->name,
            pnet_type_text(p->levels, p->tensors[node->out].type, text));
        for (int i = 0; i < node->in_count; i++)
            fprintf(out, "  t%d -> t%d;\n", node->in[i], node->out);
    }
    fputs("}\n", out);
}
