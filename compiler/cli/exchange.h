/* What import and export share: options, and the list of what went from one file to the other. */
#ifndef PNET_COMPILER_CLI_EXCHANGE_H
#define PNET_COMPILER_CLI_EXCHANGE_H

#include "compiler/cli/cli.h"
#include "runtime/exchange/exchange.h"

struct exchange_options {
    struct model_options m;
    const char *model, *weights, *library, *axes, *map, *net, *value, *output;
};
#define EXCHANGE_OPTIONS(o)                                                                        \
    {"map", 0, OPT_TEXT, &(o)->map, "MAP.yaml",                                                    \
        "names there and names here, as weights_map of a run config"},                             \
        {"axes", 0, OPT_WORD, CHOICE(&(o)->axes, "xyz", "zyx"), "ORDER",                           \
            "of the columns of coordinates there: xyz (minkowski, torchsparse), zyx (spconv, "     \
            "torch)"},                                                                             \
        {"net", 0, OPT_TEXT, &(o)->net, "NAME", "only the weights of this net"},                   \
        {"value", 0, OPT_TEXT, &(o)->value, "NAME", "only the weights that this value needs"},     \
        {"set", 0, OPT_LIST, &(o)->m.sets, "NAME=VALUE",                                           \
            "set a param of the model; may be repeated"},                                          \
        {"json", 0, OPT_FLAG, &(o)->m.json, NULL, "print for machines"},                           \
    {                                                                                              \
        "quiet", 'q', OPT_FLAG, &(o)->m.quiet, NULL, "print what does not fit, alone"              \
    }

/* A model, a map and a library, opened. */
struct exchange {
    struct pnet_compilation *compilation;
    struct pnet_name_rules map;
    struct pnet_exchange x; /* points to both */
};

/* Checks the options that both commands need. `from` names the option of the library. Returns 0, or the exit code with a
   message on stderr. */
int pnet_cli_exchange_check(
    const struct exchange_options *o, const char *from, const struct usage *usage);
/* Reads the map and compiles the model for that mode and those params. Returns 0, or the exit code with a message; then
   nothing is left open. */
int pnet_cli_exchange_open(const struct exchange_options *o, unsigned degrade,
    const struct text_list *sets, struct exchange *x);
void pnet_cli_exchange_close(struct exchange *x);

/* Prints the lines of the kinds, bits of 1 << PNET_EXCHANGE_TAKEN and so on; `out_first`: as an export. */
void pnet_cli_exchange_print(
    const struct pnet_exchanged *r, unsigned kinds, bool out_first, FILE *out);
/* Prints what an import takes from the options and the model because no file of weights says it: the columns of coordinates, the
   mode and the eps of norms. A change there changes results without a word, so they are to be compared. */
void pnet_cli_exchange_print_assumed(const struct pnet_exchange *x, const char *mode, FILE *out);
/* Tells of each tensor that was taken and whose shape another layout has, too. */
void pnet_cli_exchange_warn(const struct pnet_exchanged *r, FILE *out);
/* Prints all lines as one object of JSON on standard output. `import`: what was imported, with what it assumes; NULL for an
   export. `output` is left out if it is NULL. */
enum pnet_status pnet_cli_exchange_json(const struct pnet_exchanged *r,
    const struct pnet_exchange *import, const struct exchange_options *o, const char *output,
    struct pnet_error *e);

#endif
