/* pnetc lsp */
#include "compiler/cli/cli.h"
#include "compiler/lsp/lsp.h"

#include <unistd.h>

int pnet_command_lsp(int argc, char **argv)
{
    static const struct usage usage = {"pnetc lsp",
        "Serves an editor over standard input and output: the Language Server Protocol 3.17. "
        "Editors start it themselves;\n"
        "docs/editors.md says how they are told to.",
        "  pnetc lsp\n"};
    bool stdio = false, done;
    const char *word;
    int words, code;
    struct option options[] = {{"stdio", 0, OPT_FLAG, &stdio, NULL,
        "the default, and the only way to talk; some editors pass it"}};
    if ((code = pnet_cli_parse_options(argc, argv, options, 1, &usage, &word, 1, &words, &done)) ||
        done)
        return code;
    if (words) return pnet_cli_usage_error("pnetc lsp takes no files: the editor sends them");
    if (isatty(STDIN_FILENO))
        fputs("pnetc lsp: an editor talks to this program; see docs/editors.md\n", stderr);
    pnet_cli_ignore_closed_pipes();
    struct pnet_error e;
    enum pnet_status st = pnet_lsp_serve(stdin, stdout, &e);
    return st ? pnet_cli_complain(&e) : PNET_OK;
}
