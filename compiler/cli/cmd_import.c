/* pnetc import */
#include "compiler/cli/exchange.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"
#include "runtime/exchange/propose.h"
#include "runtime/plan/mode.h"
#include "runtime/train/trained.h"

#include <stdlib.h>
#include <string.h>

/* The options of `import`. */
struct import_request {
    struct exchange_options o;
    const char *proposal;
    bool partial;
    unsigned degrade;
};

enum {
    TAKEN = 1u << PNET_EXCHANGE_TAKEN,
    IGNORED = 1u << PNET_EXCHANGE_IGNORED,
    PROBLEMS = 1u << PNET_EXCHANGE_MISFIT | 1u << PNET_EXCHANGE_MISSING | 1u << PNET_EXCHANGE_LEFT,
};

/* Fails if the weights do not fill the model or tensors are left, unless only a part is asked for. */
static enum pnet_status check_complete(
    const struct import_request *r, const struct pnet_exchanged *w, struct pnet_error *e)
{
    size_t misfits = w->counts[PNET_EXCHANGE_MISFIT], missing = w->counts[PNET_EXCHANGE_MISSING],
           left = w->counts[PNET_EXCHANGE_LEFT];
    if (!w->counts[PNET_EXCHANGE_TAKEN])
        return pnet_error_set(e, PNET_BAD_MODEL,
            "%s: none of its tensors has the name and shape of a weight of the model; --propose "
            "writes a map",
            r->o.weights);
    if (r->partial || !(misfits || missing || left)) return PNET_OK;
    return pnet_error_set(e, PNET_BAD_MODEL,
        "%s: does not fit the model (of another shape: %zu, missing: %zu, not in the model: %zu); "
        "--partial writes what fits",
        r->o.weights, misfits, missing, left);
}

static void print_text(const struct import_request *r, const struct exchange *x,
    const struct pnet_exchanged *w, bool written, FILE *out)
{
    size_t taken = w->counts[PNET_EXCHANGE_TAKEN];
    if (!r->o.m.quiet) {
        pnet_cli_exchange_print(w, TAKEN | IGNORED, false, out);
        if (written) {
            char shown[PNET_PATH_MOST];
            fprintf(out, "%s: %zu weights of the model's %zu, %zu counters ignored\n",
                pnet_printable(r->o.output, shown, sizeof shown), taken,
                taken + w->counts[PNET_EXCHANGE_MISFIT] + w->counts[PNET_EXCHANGE_MISSING],
                w->counts[PNET_EXCHANGE_IGNORED]);
            pnet_cli_exchange_print_assumed(&x->x, r->o.m.mode, out);
        }
    }
    pnet_cli_exchange_print(w, PROBLEMS, false, written ? out : stderr);
}

static enum pnet_status write_weights(
    const struct import_request *r, const struct pnet_exchanged *w, struct pnet_error *e)
{
    struct pnet_trained_record record;
    struct text_list sets = {.count = 0};
    for (int i = 0; i < r->o.m.sets.count; i++) /* there is room for as many as options give */
        pnet_cli_put_set(&sets, r->o.m.sets.items[i]);
    char *params = pnet_cli_join_sets(&sets);
    if (!params) return pnet_error_memory(e);
    pnet_trained_record(r->degrade, PNET_FP32, params, &record);
    enum pnet_status st = pnet_make_folder_of(r->o.output, e);
    if (!st)
        st = pnet_safetensors_write(
            r->o.output, w->tensors, w->tensor_count, record.items, PNET_TRAINED_KEYS, e);
    free(params);
    return st;
}

static enum pnet_status import(const struct import_request *r, const struct exchange *x,
    const struct pnet_safetensors *file, struct pnet_error *e)
{
    struct pnet_exchanged w;
    bool to_stdout = strcmp(r->o.output, "-") == 0;
    enum pnet_status st = pnet_import_weights(&x->x, r->o.weights, file, &w, e);
    if (st) return st;
    st = check_complete(r, &w, e);
    if (!st) st = write_weights(r, &w, e);
    if (st && st != PNET_BAD_MODEL) {
        pnet_exchanged_free(&w);
        return st;
    }
    struct pnet_error json = {0};
    if (!r->o.m.json)
        print_text(r, x, &w, !st, to_stdout ? stderr : stdout);
    else if (pnet_cli_exchange_json(&w, &x->x, &r->o, st ? NULL : r->o.output, &json))
        *e = json;
    pnet_cli_exchange_warn(&w, stderr);
    pnet_exchanged_free(&w);
    return json.status ? json.status : st;
}

static enum pnet_status propose(const struct import_request *r, const struct exchange *x,
    const struct pnet_safetensors *file, struct pnet_error *e)
{
    struct pnet_output out;
    struct pnet_proposal p;
    enum pnet_status st = pnet_make_folder_of(r->proposal, e);
    if (!st) st = pnet_output_open(r->proposal, &out, e);
    if (st) return st;
    st = pnet_propose_map(&x->x, file, out.file, &p, e);
    if (st)
        pnet_output_drop(&out);
    else
        st = pnet_output_commit(&out, e);
    char shown[PNET_PATH_MOST];
    if (!st && !r->o.m.quiet && strcmp(r->proposal, "-") != 0)
        printf("%s: of the model's layers %zu have their names in the file, %zu were matched by "
               "shape, %zu by shape and order, %zu are open; check the map before it is used%s\n",
            pnet_printable(r->proposal, shown, sizeof shown), p.named, p.alone, p.ordered, p.open,
            p.ordered ? ": it is refused while a ? marks a line" : "");
    return st;
}

static int run(const struct import_request *r)
{
    struct pnet_safetensors *file;
    struct pnet_error e = {0};
    struct exchange x = {.compilation = NULL};
    int code = pnet_cli_exchange_open(&r->o, r->degrade, &r->o.m.sets, &x);
    if (code) return code;
    enum pnet_status st = pnet_safetensors_read(r->o.weights, &file, &e);
    if (!st) {
        st = pnet_export_record_check(x.x.library, r->o.weights, file, &e);
        if (!st) st = r->proposal ? propose(r, &x, file, &e) : import(r, &x, file, &e);
        pnet_safetensors_free(file);
    }
    pnet_cli_exchange_close(&x);
    return st ? pnet_cli_complain(&e) : PNET_OK;
}

int pnet_command_import(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc import MODEL.pnet --weights FILE.safetensors --from LIBRARY -o OUT.safetensors",
        "Makes a weights file of the model from one of another library: minkowski, spconv (2), "
        "torchsparse or torch. Tensors\n"
        "are named by the map, and kernels are brought into pnet's order. What was taken is "
        "listed; the exit code is 3, and nothing\n"
        "is written, if a weight is missing or a tensor has no place. --propose writes a map to "
        "start from. docs/weights.md has more.",
        "  pnetc import models/fcgf.pnet --net fcgf --weights fcgf.safetensors --from minkowski "
        "--map models/fcgf_minkowski.yaml -o fcgf-pnet.safetensors\n"
        "  pnetc import models/rooms.pnet --weights unet.safetensors --from spconv --propose "
        "map.yaml\n"};
    struct import_request r = {.o.m.mode = "voxel"};
    bool done;
    struct option options[] = {
        {"weights", 'w', OPT_TEXT, &r.o.weights, "FILE", "safetensors file of the library"},
        {"from", 0, OPT_CHOICE, CHOICE_OF(&r.o.library, pnet_library_names), "LIBRARY",
            "minkowski, spconv, torchsparse or torch"},
        {"output", 'o', OPT_OUTPUT, &r.o.output, "OUT", "weights file to write"},
        {"propose", 0, OPT_OUTPUT, &r.proposal, "MAP.yaml",
            "write a map by the shapes and the order of layers, and import nothing"},
        {"partial", 0, OPT_FLAG, &r.partial, NULL, "write the weights that fit"},
        {"mode", 0, OPT_CHOICE, CHOICE(&r.o.m.mode, "native", "voxel"), "MODE",
            "that the file records: voxel (default), as the libraries compute, or native"},
        EXCHANGE_OPTIONS(&r.o)};
    int words, code;
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &r.o.model, 1, &words, &done)) ||
        done)
        return code;
    if ((code = pnet_cli_exchange_check(&r.o, "from", &usage))) return code;
    if (!r.o.output == !r.proposal)
        return pnet_cli_usage_error(
            r.proposal ? "-o or --propose, not both" : "where to? -o OUT.safetensors");
    if ((code = pnet_cli_check_model_options(&r.o.m, &r.degrade))) return code;
    return run(&r);
}
