/* pnetc ops: the op table as text or Markdown. */
#include "compiler/cli/cli.h"
#include "runtime/plan/op.h"

#include <string.h>

static const char *const type_names[] = {"features", "labels", "values", "whole number", "number",
    "length", "yes/no", "word", "level", "numbers", "features or labels", "pose", "matches",
    "angle"};
static const char *const class_titles[] = {"Layers", "Losses", "Metrics"};

/* Returns "; 1 to 4096", or "" if the range is not limited. */
static const char *range_of(const struct pnet_arg *a, char range[64])
{
    bool whole = a->type == PNET_ARG_INT;
    const char *unit = a->type == PNET_ARG_LENGTH ? "m" : "";
    *range = 0;
    if (a->min < a->max)
        snprintf(range, 64, "; %.*g%s to %.*g%s", whole ? 17 : 6, a->min, unit, whole ? 17 : 6,
            a->max, unit);
    return range;
}

static void print_argument(const struct pnet_arg *a, bool markdown)
{
    const char *type = a->type == PNET_ARG_CHOICE ? a->choices : type_names[a->type];
    char standard[64] = "", range[64];
    if (!a->standard)
        strcpy(standard, "required");
    else if (*a->standard)
        snprintf(standard, sizeof standard, "default %s", a->standard);
    else
        strcpy(standard, "optional");
    if (!markdown) {
        printf("  %-12s %-22s %-18s %s%s\n", a->name, type, standard, a->help, range_of(a, range));
        return;
    }
    char escaped[128] = "";
    size_t n = 0;
    for (const char *p = type; *p && n + 3 < sizeof escaped; p++) {
        if (*p == '|') escaped[n++] = '\\';
        escaped[n++] = *p;
    }
    printf("| `%s` | %s | %s | %s%s |\n", a->name, escaped, standard, a->help, range_of(a, range));
}

static void print_op(const struct pnet_op *op, bool markdown)
{
    if (markdown)
        printf("### %s\n\n%s.\n\n%s\n\n| argument | type | | meaning |\n|---|---|---|---|\n",
            op->name, op->summary, op->doc);
    else
        printf("%s: %s\n\n%s\n\narguments:\n", op->name, op->summary, op->doc);
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        print_argument(&op->args[i], markdown);
    puts("");
}

static void print_reference(void)
{
    puts("# Layers, losses and metrics\n\nGenerated from the op table by `pnetc ops --markdown`; a "
         "test compares the two.\n\n"
         "A layer gets its value through a pipe or as the first argument: `x -> conv(64)` is "
         "`conv(x, 64)`. Every call also takes\n"
         "`name=\"..\"`, which names its weights in place of their path.");
    for (int c = PNET_LAYER; c <= PNET_METRIC; c++) {
        printf("\n## %s\n\n", class_titles[c]);
        for (int i = 0; i < pnet_op_count; i++)
            if ((int)pnet_ops[i]->class_ == c) print_op(pnet_ops[i], true);
    }
}

int pnet_command_ops(int argc, char **argv)
{
    static const struct usage usage = {"pnetc ops [NAME] [options]",
        "Lists the layers, losses and metrics, or describes one.",
        "  pnetc ops\n  pnetc ops conv\n"};
    bool markdown = false, done;
    const char *name;
    int words, code;
    struct option options[] = {
        {"markdown", 0, OPT_FLAG, &markdown, NULL, "the whole reference, as docs/layers.md"}};
    if ((code = pnet_cli_parse_options(argc, argv, options, 1, &usage, &name, 1, &words, &done)) ||
        done)
        return code;
    if (markdown) {
        print_reference();
        return PNET_OK;
    }
    if (!words) {
        for (int i = 0; i < pnet_op_count; i++)
            printf("  %-16s %s\n", pnet_ops[i]->name, pnet_ops[i]->summary);
        return PNET_OK;
    }
    const struct pnet_op *op = pnet_op_find(name);
    if (op) {
        print_op(op, false);
        return PNET_OK;
    }
    const char *names[256];
    int n = pnet_op_count < 256 ? pnet_op_count : 256;
    for (int i = 0; i < n; i++) names[i] = pnet_ops[i]->name;
    const char *near = pnet_nearest(name, names, n);
    return near ? pnet_cli_usage_error("no layer '%s': did you mean %s?", name, near)
                : pnet_cli_usage_error("no layer '%s': pnetc ops lists them", name);
}
