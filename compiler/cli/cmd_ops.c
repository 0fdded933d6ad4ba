/* pnetc ops: the op table as text or Markdown. */
#include "compiler/cli/cli.h"
#include "compiler/op_page.h"

#include <string.h>

static const char *const class_titles[] = {"Layers", "Losses", "Metrics"};

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
            if ((int)pnet_ops[i]->class_ == c) pnet_op_page(pnet_ops[i], true, stdout);
    }
}

int pnet_command_ops(int argc, char **argv)
{
    static const struct usage usage = {"pnetc ops [OP] [options]",
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
        pnet_op_page(op, false, stdout);
        return PNET_OK;
    }
    const char *names[256];
    int n = pnet_op_count < 256 ? pnet_op_count : 256;
    for (int i = 0; i < n; i++) names[i] = pnet_ops[i]->name;
    const char *near = pnet_nearest(name, names, n);
    return near ? pnet_cli_usage_error("no layer '%s': did you mean %s?", name, near)
                : pnet_cli_usage_error("no layer '%s': pnetc ops lists them", name);
}
