/* pnetc export */
#include "compiler/cli/exchange.h"
#include "compiler/cli/weights.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"

#include <assert.h>
#include <string.h>

/* Tells that the library computes on voxels, if the weights were trained otherwise and some layer has kernels. */
static void say_mode(const struct exchange_options *o, unsigned degrade, const struct pnet_plan *p)
{
    char mode[PNET_MODE_TEXT];
    bool kernels = false;
    for (int i = 0; i < p->param_count; i++)
        kernels |= p->params[i].info.kind == PNET_PARAM_CELLS && !pnet_weight_role_of(p, i).alone;
    if (kernels && degrade != PNET_VOXEL)
        pnet_cli_notice("%s runs in mode %s; %s computes on voxels, so its results differ",
            o->weights, pnet_mode_text(degrade, mode), o->library);
}

static enum pnet_status write_export(const struct exchange_options *o, const struct exchange *x,
    const struct pnet_safetensors *file, struct pnet_error *e)
{
    struct pnet_export_record record;
    struct pnet_exchanged w;
    bool to_stdout = strcmp(o->output, "-") == 0;
    enum pnet_status st = pnet_export_weights(&x->x, o->weights, file, &w, e);
    if (st) return st;
    pnet_export_record(x->x.library, &record);
    st = pnet_make_folder_of(o->output, e);
    if (!st)
        st = pnet_safetensors_write(
            o->output, w.tensors, w.tensor_count, record.items, PNET_EXPORT_KEYS, e);
    if (!st && o->m.json) st = pnet_cli_exchange_json(&w, NULL, o, o->output, e);
    if (!st && !o->m.json && !o->m.quiet) {
        FILE *out = to_stdout ? stderr : stdout;
        char shown[PNET_PATH_MOST];
        pnet_cli_exchange_print(&w, 1u << PNET_EXCHANGE_TAKEN, true, out);
        fprintf(out, "%s: %zu tensors\n", pnet_printable(o->output, shown, sizeof shown),
            w.tensor_count);
    }
    pnet_exchanged_free(&w);
    return st;
}

static int run(const struct exchange_options *o)
{
    struct weights w;
    struct setting setting;
    struct exchange x = {.compilation = NULL};
    struct pnet_error e = {0};
    if (pnet_cli_weights_open(o->weights, &w, &e)) return pnet_cli_complain(&e);
    enum pnet_status st = pnet_cli_weights_setting(&w, &o->m, 0, &setting, &e);
    int code =
        st ? pnet_cli_complain(&e) : pnet_cli_exchange_open(o, setting.degrade, &setting.sets, &x);
    if (!code) {
        assert(x.x.plan);
        say_mode(o, setting.degrade, x.x.plan);
        st = write_export(o, &x, w.from.file, &e);
        if (st) code = pnet_cli_complain(&e);
        pnet_cli_exchange_close(&x);
    }
    pnet_cli_weights_close(&w);
    return code;
}

int pnet_command_export(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc export MODEL.pnet --weights W --to LIBRARY -o OUT.safetensors",
        "Writes the weights of the model as another library has them: minkowski, spconv (2), "
        "torchsparse or torch. Names are those of\n"
        "the map, used backwards; import with the same options gives the same bits again. "
        "docs/weights.md has more.",
        "  pnetc export models/rooms.pnet --weights out/run --to spconv -o rooms.safetensors\n"};
    struct exchange_options o = {.model = NULL};
    bool done;
    struct option options[] = {
        {"weights", 'w', OPT_TEXT, &o.weights, "W", "checkpoint, run folder or weights file"},
        {"to", 0, OPT_CHOICE, CHOICE_OF(&o.library, pnet_library_names), "LIBRARY",
            "minkowski, spconv, torchsparse or torch"},
        {"output", 'o', OPT_OUTPUT, &o.output, "OUT", "file to write"}, EXCHANGE_OPTIONS(&o)};
    int words, code;
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &o.model, 1, &words, &done)) ||
        done)
        return code;
    if ((code = pnet_cli_exchange_check(&o, "to", &usage))) return code;
    if (!o.output) return pnet_cli_usage_error("where to? -o OUT.safetensors");
    return run(&o);
}
