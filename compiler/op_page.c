/* The page of a layer, loss or metric, from its row. */
#include "compiler/op_page.h"
#include "runtime/base/number.h"

#include <string.h>

static const char *const type_names[] = {"features", "labels", "values", "whole number", "number",
    "length", "yes/no", "word", "level", "numbers", "features or labels", "pose", "matches",
    "angle"};

/* Returns "; 1 to 4096", or "" if the range is not limited. */
static const char *range_of(const struct pnet_arg *a, char range[64])
{
    bool whole = a->type == PNET_ARG_INT;
    const char *unit = a->type == PNET_ARG_LENGTH ? "m" : "";
    *range = 0;
    if (a->min < a->max)
        pnet_number_format(range, 64, "; %.*g%s to %.*g%s", whole ? 17 : 6, a->min, unit,
            whole ? 17 : 6, a->max, unit);
    return range;
}

static const char *type_of(const struct pnet_arg *a)
{
    return a->type == PNET_ARG_CHOICE ? a->choices : type_names[a->type];
}

static const char *standard_of(const struct pnet_arg *a, char text[64])
{
    if (!a->standard) return "required";
    if (!*a->standard) return "optional";
    snprintf(text, 64, "default %s", a->standard);
    return text;
}

const char *pnet_argument_type(const struct pnet_arg *a, char text[PNET_ARGUMENT_TEXT])
{
    char standard[64];
    snprintf(text, PNET_ARGUMENT_TEXT, "%s, %s", type_of(a), standard_of(a, standard));
    return text;
}

const char *pnet_argument_help(const struct pnet_arg *a, char text[PNET_ARGUMENT_TEXT])
{
    char range[64];
    snprintf(text, PNET_ARGUMENT_TEXT, "%s%s", a->help, range_of(a, range));
    return text;
}

static void print_argument(const struct pnet_arg *a, bool markdown, FILE *out)
{
    char standard[64], range[64];
    const char *type = type_of(a);
    if (!markdown) {
        fprintf(out, "  %-12s %-22s %-18s %s%s\n", a->name, type, standard_of(a, standard), a->help,
            range_of(a, range));
        return;
    }
    char escaped[128] = "";
    size_t n = 0;
    for (const char *p = type; *p && n + 3 < sizeof escaped; p++) {
        if (*p == '|') escaped[n++] = '\\';
        escaped[n++] = *p;
    }
    fprintf(out, "| `%s` | %s | %s | %s%s |\n", a->name, escaped, standard_of(a, standard), a->help,
        range_of(a, range));
}

void pnet_op_page(const struct pnet_op *op, bool markdown, FILE *out)
{
    if (markdown)
        fprintf(out, "### %s\n\n%s.\n\n%s\n\n| argument | type | | meaning |\n|---|---|---|---|\n",
            op->name, op->summary, op->doc);
    else
        fprintf(out, "%s: %s\n\n%s\n\narguments:\n", op->name, op->summary, op->doc);
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        print_argument(&op->args[i], markdown, out);
    fputc('\n', out);
}
