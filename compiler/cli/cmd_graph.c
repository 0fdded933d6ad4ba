/* pnetc graph */
#include "compiler/cli/cli.h"
#include "runtime/base/file.h"

#include <string.h>

/* Sets *dot by the suffix of the file name. A name without a suffix is allowed, for /dev/stdout. Returns 0, or the exit code
   with a message. */
static int check_format(const char *path, bool *dot)
{
    const char *name = strrchr(path, '/'), *ending = strrchr(name ? name + 1 : path, '.');
    if (!ending || strcmp(path, "-") == 0) return PNET_OK;
    bool svg = strcmp(ending, ".svg") == 0;
    if (!svg && strcmp(ending, ".dot") != 0 && strcmp(ending, ".gv") != 0)
        return pnet_cli_usage_error(
            "%s: a drawing is .svg, or .dot (also .gv), not '%s'", path, ending);
    if (svg && *dot) return pnet_cli_usage_error("%s: --dot writes .dot (or .gv)", path);
    *dot = !svg;
    return PNET_OK;
}

int pnet_command_graph(int argc, char **argv)
{
    static const struct usage usage = {"pnetc graph MODEL.pnet [-o FILE] [options]",
        "Draws the network as SVG, a column for each level; or writes it as DOT. The ending of "
        "FILE "
        "says which: .svg, .dot or .gv.",
        "  pnetc graph models/fcgf.pnet -o fcgf.svg\n  pnetc graph models/fcgf.pnet --dot | dot "
        "-Tpdf > fcgf.pdf\n"};
    struct model_options m = {0};
    const char *model, *path = "-";
    bool dot = false, done, ok = true;
    struct option options[] = {
        {"output", 'o', OPT_OUTPUT, &path, "FILE", "where to (standard output)"},
        {"dot", 0, OPT_FLAG, &dot, NULL, "DOT instead of SVG"}, MODEL_OPTIONS(&m)};
    int words, code;
    unsigned degrade;
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which model? usage: %s", usage.synopsis);
    if ((code = check_format(path, &dot)) || (code = pnet_cli_check_model_options(&m, &degrade)))
        return code;
    struct pnet_compile_options o = {.purpose = PNET_FOR_EVAL,
        .degrade = degrade,
        .sets = m.sets.items,
        .set_count = m.sets.count};
    struct pnet_compilation *c = pnet_cli_compile_model(model, &o, &m, &code);
    struct pnet_output out;
    struct pnet_error e = {0};
    if (!c) return code;
    if (!pnet_make_folder_of(path, &e) && !pnet_output_open(path, &out, &e)) {
        if (dot)
            pnet_plan_dot(pnet_compilation_plan(c), out.file);
        else
            ok = pnet_plan_svg(pnet_compilation_plan(c), out.file);
        if (ok) {
            pnet_output_commit(&out, &e);
        } else {
            pnet_output_drop(&out);
            pnet_error_memory(&e);
        }
    }
    pnet_compilation_free(c);
    return e.status ? pnet_cli_complain(&e) : PNET_OK;
}
