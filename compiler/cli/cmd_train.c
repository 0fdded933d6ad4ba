/* pnetc train */
#include "compiler/cli/run.h"

#include <stdlib.h>

int pnet_command_train(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc train MODEL.pnet --config RUN.yaml -o RUNDIR [options]",
        "Trains a model. RUNDIR gets config.yaml, model.pnet, metrics.jsonl, the checkpoints last/ "
        "and best/, and report.html.\n"
        "Ctrl-C saves a checkpoint and ends the run; --resume continues it, to the same bits as "
        "without the interruption.",
        "  pnetc train models/rooms.pnet --config models/rooms.yaml -o out/run\n"
        "  pnetc train models/rooms.pnet --config models/rooms.yaml -o out/voxel --mode voxel\n"
        "  pnetc train models/rooms.pnet --config models/rooms.yaml -o out/run --resume\n"
        "  pnetc train models/rooms.pnet --config models/rooms.yaml -o out/tuned --weights out/run "
        "--set-config lr=0.0005\n"};
    struct run_options r = {.seed = -1, .autotune.value = AUTOTUNE_SECONDS};
    const char *model, *folder = NULL;
    bool resume = false, done;
    struct option options[] = {{"output", 'o', OPT_OUTPUT, &folder, "RUNDIR", "folder of the run"},
        {"resume", 0, OPT_FLAG, &resume, NULL, "resume the run in RUNDIR"},
        {"weights", 'w', OPT_TEXT, &r.weights, "W",
            "start from those of these weights that fit: checkpoint, run folder or file"},
        TRAIN_OPTIONS(&r), RUN_OPTIONS(&r)};
    int words, code;
    struct pnet_error e = {0};
    struct run run;
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which model? usage: %s", usage.synopsis);
    if (!folder) return pnet_cli_usage_error("where to? -o RUNDIR");
    if ((code = pnet_cli_check_autotune(&r))) return code;
    char *command = pnet_command_text("train", argc, argv);
    if (!command) return pnet_cli_out_of_memory();
    r.command = command;
    if ((code = pnet_cli_run_open(&run, &r, model, PNET_FOR_TRAINING, NULL))) {
        free(command);
        return code;
    }
    struct pnet_train_result result = {0};
    pnet_cli_ignore_closed_pipes();
    enum pnet_status st = pnet_cli_run_train(&run, folder, resume, &result, &e);
    if (!st && r.model.json)
        st = pnet_cli_run_print_json(&run, &result, &e);
    else if (!st && !r.model.quiet)
        pnet_cli_run_print(&run, &result, folder);
    if (st) pnet_cli_complain(&e);
    pnet_train_result_free(&result);
    pnet_cli_run_close(&run);
    free(command);
    return (int)st;
}
