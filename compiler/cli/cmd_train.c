/* pnetc train */
#include "compiler/cli/run.h"
#include "runtime/io/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool exists(const char *folder, const char *name)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &st) == 0;
}

static enum pnet_status write_text(
    const char *folder, const char *name, const void *text, size_t size, struct pnet_error *e)
{
    char path[4096];
    struct pnet_output out;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    enum pnet_status st = pnet_output_open(path, &out, e);
    if (st) return st;
    fwrite(text, 1, size, out.file);
    return pnet_output_commit(&out, e);
}

/* The folder with the texts that make the run repeatable. */
static enum pnet_status make_run_folder(const char *folder, const struct run_options *r,
    const char *model, bool resume, struct pnet_error *e)
{
    struct pnet_bytes config;
    if (!resume && (exists(folder, "last/state.json") || exists(folder, "best/state.json")))
        return pnet_error_set(e, PNET_USAGE,
            "%s holds a run already: --resume goes on with it, or choose another folder", folder);
    enum pnet_status st = pnet_make_folder(folder, e);
    /* a model that differs from the one of the run is refused later, and must not be in its place
     * then */
    if (!st && !(resume && exists(folder, "model.pnet")))
        st = write_text(folder, "model.pnet", model, strlen(model), e);
    if (!st) st = pnet_bytes_read(r->config_path, &config, e);
    if (st) return st;
    st = write_text(folder, "config.yaml", config.data, config.size, e);
    pnet_bytes_free(&config);
    return st;
}

int command_train(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc train MODEL.pnet --config RUN.yaml -o RUNDIR [options]",
        "Trains a model. RUNDIR gets config.yaml, model.pnet, metrics.jsonl, the checkpoints last/ "
        "and best/, and report.html.\n"
        "Ctrl-C saves and ends; --resume goes on to the same bits.",
        "  pnetc train models/rooms.pnet --config models/rooms.yaml -o out/run\n"
        "  pnetc train models/rooms.pnet --config models/rooms.yaml -o out/voxel --mode voxel\n"
        "  pnetc train models/rooms.pnet --config models/rooms.yaml -o out/run --resume\n"};
    struct run_options r = {.seed = -1, .autotune.value = AUTOTUNE_SECONDS};
    const char *model, *folder = NULL;
    bool resume = false, done;
    struct option options[] = {{"output", 'o', OPT_TEXT, &folder, "RUNDIR", "folder of the run"},
        {"resume", 0, OPT_FLAG, &resume, NULL, "go on with the run in RUNDIR"}, TRAIN_OPTIONS(&r),
        RUN_OPTIONS(&r)};
    int words, code;
    struct pnet_error e = {0};
    struct run run;
    if ((code = parse_options(argc, argv, options, sizeof options / sizeof options[0], &usage,
             &model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return usage_error("which model? usage: %s", usage.synopsis);
    if (!folder) return usage_error("where to? -o RUNDIR");
    if ((code = check_autotune(&r))) return code;
    if ((code = run_open(&run, &r, model, PNET_FOR_TRAINING))) return code;
    enum pnet_status st =
        make_run_folder(folder, &r, pnet_compilation_text(run.compilation), resume, &e);
    struct pnet_train_result result = {0};
    catch_interrupts();
    if (!st) st = run_train(&run, &r, folder, resume, &result, &e);
    if (st)
        complain(&e);
    else if (r.model.json)
        run_print_json(&run, &result);
    else if (!r.model.quiet)
        run_print(&run, &result, folder);
    pnet_train_result_free(&result);
    run_close(&run);
    return (int)st;
}
