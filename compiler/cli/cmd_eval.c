/* pnetc eval, pnetc compare */
#include "compiler/cli/eval_votes.h"
#include "compiler/cli/information.h"
#include "compiler/cli/origin.h"
#include "compiler/cli/ranges.h"
#include "compiler/cli/run.h"
#include "compiler/cli/weights.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/data/doubt.h"
#include "runtime/data/loader.h"
#include "runtime/run/peak.h"
#include "runtime/train/run_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPLIT_OPTION(s)                                                                            \
    {                                                                                              \
        "split", 0, OPT_CHOICE, CHOICE(s, "train", "val", "test"), "SPLIT",                        \
            "train, val (default) or test"                                                         \
    }

static enum pnet_split split_of(const char *name)
{
    int s = 0;
    while (s < PNET_SPLITS - 1 && strcmp(name, pnet_split_name((enum pnet_split)s)) != 0) s++;
    return (enum pnet_split)s;
}

/* What happens to the evaluation of each sample. */
struct listener {
    struct pnet_output *each; /* gets a line; NULL: none */
    struct information information;
    bool measured; /* by the matrices of the index */
    enum pnet_status status;
    struct pnet_error error;
};

static bool go_on(void *context, int64_t batch)
{
    const struct listener *l = context;
    (void)batch;
    return !pnet_cli_interrupted() && !l->status;
}

/* A batch is one sample, counted from 1. */
static void take_sample(void *context, int64_t batch, struct pnet_evaluation *v)
{
    struct listener *l = context;
    struct pnet_json j = {0};
    if (l->measured) l->status = pnet_cli_information_add(&l->information, batch - 1, v, &l->error);
    if (!l->each || l->status) return;
    pnet_cli_json_evaluation(&j, NULL, v);
    l->status = pnet_json_print(&j, l->each->file, &l->error);
}

static void warn(void *context, const char *text)
{
    (void)context;
    pnet_cli_notice("%s", text);
}

/* Warns if the clouds have another offset than those of the training, or several, and the model reads coordinates. */
static void doubt_offsets(
    const struct run *run, const struct weights *w, const struct pnet_frame *clouds)
{
    struct pnet_frame first = *clouds;
    const struct pnet_plan *p = run->plan;
    bool recorded = w->map.frame.offset_known && !w->map.frame.offsets_differ;
    char text[PNET_DOUBT_TEXT];
    first.offsets_differ = false;
    if (w->told || run->data->origin.named ||
        !pnet_reads_coordinates(p->inputs, p->input_count, &run->config->inputs))
        return;
    pnet_doubt_offset(recorded ? &w->map.frame : &first,
        recorded ? "the training" : "another cloud", clouds, run->data->path, text);
    if (*text) warn(NULL, text);
}

/* The objects that an evaluation needs. */
struct ground {
    struct pnet_loader *loader;
    struct pnet_bound *bound;
    struct pnet_runner *runner;
    struct few_warnings warnings;
};

static void close_ground(struct ground *g)
{
    if (g->loader) pnet_loader_free(g->loader); /* its threads warn */
    pnet_cli_few_end(&g->warnings);
    pnet_runner_free(g->runner);
    pnet_bound_free(g->bound);
}

/* The split decides what its colours are divided by, as far as the weights do not; where they say nothing, with `train`. */
static enum pnet_status find_ranges(
    const struct run *run, const struct weights *w, enum pnet_split split, struct pnet_error *e)
{
    unsigned splits = 1u << split;
    if (!pnet_ranges_have_colours(&w->map.ranges)) splits |= 1u << PNET_TRAIN;
    return pnet_cli_data_ranges(run, splits, 0, w->from.checkpoint ? &w->map : NULL, w->told, e);
}

static enum pnet_status open_ground(const struct run *run, const struct weights *w,
    enum pnet_split split, bool one_by_one, struct ground *g, struct pnet_error *e)
{
    const struct pnet_config *c = run->config;
    struct pnet_loader_options lo = {.data = run->data,
        .split = split,
        .inputs = run->plan->inputs,
        .input_count = run->plan->input_count,
        .map = &c->inputs,
        .one_frame = pnet_plan_one_frame(run->plan),
        .batch_size = one_by_one ? 1 : c->batch_size,
        .workers = c->workers,
        .skip_empty = c->skip_empty,
        .seed = c->seed,
        .trained = &w->map.frame,
        .warn = w->told ? NULL : pnet_cli_few_warn,
        .context = &g->warnings};
    struct pnet_runner_options so = {
        .memory_limit = pnet_cli_memory_budget(&run->o.model), .slots = 2, .seed = c->seed};
    enum pnet_status st =
        pnet_cli_weights_bind(w, &run->o.model, run->precision, run->plan, &g->bound, e);
    if (!st) st = pnet_runner_new(g->bound, &so, &g->runner, e);
    if (!st) st = pnet_weights_load(&w->from, g->runner, e);
    if (!st) st = find_ranges(run, w, split, e);
    return st ? st : pnet_loader_new(&lo, &g->loader, e);
}

/* Evaluates a split once, tile by tile. */
static enum pnet_status evaluate_tiles(const struct run *run, const struct weights *w,
    enum pnet_split split, const struct tile_options *tiles, struct pnet_evaluation *v,
    size_t *peak, struct pnet_error *e)
{
    struct ground g = {0};
    struct pnet_tiled_options t;
    enum pnet_status st = pnet_cli_tiling(tiles, run->plan, &run->o.model, &t, e);
    if (!st) st = open_ground(run, w, split, true, &g, e);
    if (!st) st = pnet_cli_tiled_evaluate(g.runner, g.loader, &t, run->o.model.quiet, v, e);
    if (!st) doubt_offsets(run, w, &v->frame);
    if (g.runner) *peak = pnet_runner_memory(g.runner)->peak;
    close_ground(&g);
    return st;
}

/* Evaluates a split by votes. */
static enum pnet_status evaluate_votes(const struct run *run, const struct weights *w,
    enum pnet_split split, const struct votes_request *r, struct pnet_evaluation *v,
    struct pnet_error *e)
{
    struct ground g = {0};
    struct weights again = *w;
    again.told = true; /* the plain evaluation has printed the notices */
    if (!r->copies) return PNET_OK;
    enum pnet_status st = open_ground(run, &again, split, true, &g, e);
    if (!st) st = pnet_cli_eval_votes(run, w, r, g.loader, v, e);
    close_ground(&g);
    return st;
}

/* Evaluates a split once with the given weights; `each` (or NULL) gets a line for each sample. */
static enum pnet_status evaluate(const struct run *run, const struct weights *w,
    enum pnet_split split, struct pnet_output *each, struct pnet_evaluation *v, size_t *peak,
    struct pnet_error *e)
{
    struct ground g = {0};
    struct listener l = {.each = each,
        .information = {.data = run->data, .split = split},
        .measured = pnet_cli_information_is_given(run->data, split)};
    bool one_by_one = each || l.measured;
    if (l.measured && run->config->skip_empty)
        return pnet_error_set(e, PNET_USAGE,
            "skip_empty: pairs with `info` cannot be left out, as each pair has its matrix in the "
            "file");
    enum pnet_status st = open_ground(run, w, split, one_by_one, &g, e);
    if (!st)
        st = pnet_evaluate_each(
            g.runner, g.loader, go_on, one_by_one ? take_sample : NULL, &l, v, e);
    if (l.status) {
        *e = l.error;
        st = l.status;
    }
    if (!st) doubt_offsets(run, w, &v->frame);
    struct pnet_error ignored;
    enum pnet_status finished = pnet_cli_information_finish(&l.information, v, st ? &ignored : e);
    if (!st) st = finished;
    if (g.runner) *peak = pnet_runner_memory(g.runner)->peak;
    close_ground(&g);
    return st;
}

/* Does the same, with the lines in a file of that name if it is not NULL. */
static enum pnet_status evaluate_into(const char *path, const struct run *run,
    const struct weights *w, enum pnet_split split, struct pnet_evaluation *v, size_t *peak,
    struct pnet_error *e)
{
    struct pnet_output out;
    if (!path) return evaluate(run, w, split, NULL, v, peak, e);
    enum pnet_status st = pnet_output_open(path, &out, e);
    if (st) return st;
    st = evaluate(run, w, split, &out, v, peak, e);
    if (!st) return pnet_output_commit(&out, e);
    pnet_output_drop(&out);
    return st;
}

/* Keys of the config that have no effect if the weights record them. --set-config refuses them then. */
static int check_config_sets(const struct run_options *o, const struct setting *s)
{
    static const char *const keys[] = {"mode", "degrade", "precision", "set"};
    for (int i = 0; s->sets_known && i < o->config_sets.count; i++)
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            size_t n = strlen(keys[k]);
            const char *set = o->config_sets.items[i];
            if (strncmp(set, keys[k], n) == 0 && set[n] == '=')
                return pnet_cli_usage_error("--set-config %s has no effect, since the weights "
                                            "record this setting: --%s changes it",
                    set, keys[k]);
        }
    return 0;
}

/* What `eval` prints. */
struct figures {
    const char *split;
    const struct pnet_evaluation *plain, *voted; /* voted: or NULL */
    size_t peak;
};

/* Returns the exit code. */
static int print_figures(const struct figures *f, const struct run *run, bool json)
{
    char text[32];
    if (json) {
        struct pnet_error e;
        struct pnet_json j = {0};
        pnet_json_begin(&j, NULL, '{');
        pnet_cli_json_evaluation(&j, f->split, f->plain);
        if (f->voted) pnet_cli_json_evaluation(&j, "votes", f->voted);
        pnet_json_int(&j, "peak_bytes", (int64_t)f->peak);
        pnet_json_end(&j, '}');
        return pnet_json_print(&j, stdout, &e) ? pnet_cli_complain(&e) : PNET_OK;
    }
    pnet_cli_print_evaluation(f->plain, run->data->classes, run->data->class_count);
    if (f->voted) {
        puts("by votes:");
        pnet_cli_print_evaluation(f->voted, run->data->classes, run->data->class_count);
    }
    printf("%lld clouds, %lld points, %.1f s, peak memory %s\n", (long long)f->plain->samples,
        (long long)f->plain->points, f->plain->seconds, pnet_bytes_text(f->peak, text));
    return PNET_OK;
}

int pnet_command_eval(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc eval MODEL.pnet --weights W --config RUN.yaml [options]",
        "Prints the losses and metrics of trained weights on a split of the data set.",
        "  pnetc eval models/rooms.pnet --weights out/run --config models/rooms.yaml --split "
        "test\n"};
    struct run_options r = {.seed = -1};
    const char *model, *weights = NULL, *split_name = "val", *each = NULL, *origin = NULL;
    struct tile_options tiles = {0};
    struct votes_request votes = {.tiles = &tiles};
    bool done;
    struct option options[] = {{"weights", 'w', OPT_TEXT, &weights, "W",
                                   "trained weights: checkpoint, run folder or file"},
        SPLIT_OPTION(&split_name),
        {"each", 0, OPT_OUTPUT, &each, "FILE", "write a line of JSON for each sample, in order"},
        TILE_LENGTHS(&tiles), VOTES_OPTION(&votes.copies), ORIGIN_OPTION(&origin), RUN_OPTIONS(&r)};
    int words, code;
    unsigned degrade;
    struct pnet_error e = {0};
    struct weights w;
    struct setting setting;
    struct run run;
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which model? usage: %s", usage.synopsis);
    if (!weights) return pnet_cli_usage_error("which weights? --weights FILE or FOLDER");
    votes.model = model;
    bool tiled = tiles.edge > 0 || tiles.margin > 0;
    if (each && tiled) return pnet_cli_usage_error("--each and --tile: one of them only");
    enum pnet_split split = split_of(split_name);
    if ((code = pnet_cli_check_model_options(&r.model, &degrade))) return code;
    if (pnet_cli_weights_open(weights, &w, &e) ||
        pnet_cli_weights_setting(&w, &r.model, degrade, &setting, &e))
        return pnet_cli_complain(&e);
    if (!(code = check_config_sets(&r, &setting)) &&
        !(code = pnet_cli_run_open(&run, &r, model, PNET_FOR_EVAL, &setting))) {
        struct pnet_evaluation v = {0}, voted = {0};
        size_t peak = 0;
        if (each) pnet_cli_catch_interrupts(); /* to remove an incomplete file */
        pnet_cli_say_unit(&w, run.data);
        if (pnet_cli_origin(origin, &w, &run.data->origin, &e) ||
            (tiled ? evaluate_tiles(&run, &w, split, &tiles, &v, &peak, &e)
                   : evaluate_into(each, &run, &w, split, &v, &peak, &e)) ||
            evaluate_votes(&run, &w, split, &votes, &voted, &e)) {
            code = pnet_cli_complain(&e);
        } else {
            struct figures figures = {split_name, &v, votes.copies ? &voted : NULL, peak};
            code = print_figures(&figures, &run, r.model.json);
        }
        pnet_evaluation_free(&v);
        pnet_evaluation_free(&voted);
        pnet_cli_run_close(&run);
    }
    pnet_cli_weights_close(&w);
    return code;
}

/* A column of the comparison. */
struct variant {
    const char *name;
    unsigned degrade;
    struct run run; /* stays open while the names in v are needed */
    struct pnet_evaluation v;
    double train_seconds, points_per_s;
    size_t peak;
};

struct comparison {
    struct run_options r;
    const char *model, *folder, *weights;
    enum pnet_split split;
};

/* Before the first of the trainings, so that none is made in vain. */
static int check_folder(const struct comparison *k, const struct variant *v)
{
    char folder[4096];
    struct pnet_error e;
    snprintf(folder, sizeof folder, "%s/%s", k->folder, v->name);
    return pnet_run_folder_check(folder, &e) ? pnet_cli_complain(&e) : PNET_OK;
}

/* Trains, unless weights are given, and evaluates one variant. */
static int run_variant(const struct comparison *k, struct variant *v)
{
    struct pnet_error e = {0};
    struct run run;
    struct setting setting;
    struct weights w = {0};
    char folder[4096];
    int code = 0;
    snprintf(folder, sizeof folder, "%s", k->weights ? k->weights : "");
    if (!k->weights) {
        struct pnet_train_result result = {0};
        snprintf(folder, sizeof folder, "%s/%s", k->folder, v->name);
        if ((code = pnet_cli_run_open_in_mode(&run, &k->r, k->model, v->degrade))) return code;
        if (!k->r.model.quiet) fprintf(stderr, "training %s\n", v->name);
        enum pnet_status st = pnet_cli_run_train(&run, folder, true, &result, &e);
        v->train_seconds = result.seconds;
        v->points_per_s = result.seconds > 0 ? (double)result.points / result.seconds : 0;
        v->peak = result.peak_bytes;
        pnet_train_result_free(&result);
        pnet_cli_run_close(&run);
        if (st) return pnet_cli_complain(&e);
    }
    if (pnet_cli_weights_open(folder, &w, &e)) return pnet_cli_complain(&e);
    w.told = v->degrade != 0; /* the native variant comes first and prints the notices */
    if (pnet_cli_weights_setting(&w, &k->r.model, 0, &setting, &e)) {
        pnet_cli_weights_close(&w);
        return pnet_cli_complain(&e);
    }
    setting.mode_known = true;
    setting.degrade = v->degrade;
    if (k->weights) code = check_config_sets(&k->r, &setting);
    if (!code && !(code = pnet_cli_run_open(&v->run, &k->r, k->model, PNET_FOR_EVAL, &setting))) {
        size_t peak = 0;
        pnet_cli_say_unit(&w, v->run.data);
        if (pnet_cli_origin(NULL, &w, &v->run.data->origin, &e) ||
            evaluate(&v->run, &w, k->split, NULL, &v->v, &peak, &e))
            code = pnet_cli_complain(&e);
        if (k->weights) v->peak = peak;
    }
    pnet_cli_weights_close(&w);
    return code;
}

/* Prints the values of line `l`'s metric besides its headline. */
static void print_values(const struct variant *v, int count, int l)
{
    for (int k = 0; k < v[0].v.lines[l].value_count; k++) {
        printf("  %-22s", v[0].v.lines[l].values[k].name);
        for (int i = 0; i < count; i++) {
            double value = v[i].v.lines[l].values[k].value;
            if (isnan(value))
                printf(" %14s", "-");
            else
                printf(" %14.4f", value);
        }
        puts("");
    }
}

static void print_comparison(const struct variant *v, int count, bool trained)
{
    char text[32];
    printf("%-24s", "");
    for (int i = 0; i < count; i++) printf(" %14s", v[i].name);
    puts("");
    for (int l = 0; l < v[0].v.count; l++) {
        printf("%-24s", v[0].v.lines[l].name);
        for (int i = 0; i < count; i++)
            if (v[i].v.lines[l].counted)
                printf(" %14.4f", v[i].v.lines[l].value);
            else
                printf(" %14s", "-");
        puts("");
        print_values(v, count, l);
    }
    if (trained) {
        printf("%-24s", "training, s");
        for (int i = 0; i < count; i++) printf(" %14.1f", v[i].train_seconds);
        printf("\n%-24s", "training, points/s");
        for (int i = 0; i < count; i++) printf(" %14.0f", v[i].points_per_s);
        puts("");
    }
    printf("%-24s", "evaluation, s");
    for (int i = 0; i < count; i++) printf(" %14.2f", v[i].v.compute_seconds);
    printf("\n%-24s", "peak memory");
    for (int i = 0; i < count; i++) printf(" %14s", pnet_bytes_text(v[i].peak, text));
    puts("");
}

static int print_comparison_json(const struct variant *v, int count)
{
    struct pnet_error e;
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    for (int i = 0; i < count; i++) {
        pnet_json_begin(&j, v[i].name, '{');
        pnet_cli_json_evaluation(&j, "evaluation", &v[i].v);
        pnet_json_double(&j, "train_seconds", v[i].train_seconds);
        pnet_json_double(&j, "points_per_s", v[i].points_per_s);
        pnet_json_int(&j, "peak_bytes", (int64_t)v[i].peak);
        pnet_json_end(&j, '}');
    }
    pnet_json_end(&j, '}');
    if (pnet_json_print(&j, stdout, &e)) return pnet_cli_complain(&e);
    return PNET_OK;
}

int pnet_command_compare(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc compare MODEL.pnet --config RUN.yaml [-o DIR | --weights W] [options]",
        "Trains the model once in native and once in voxel mode, with the same seed and data, and "
        "prints accuracy, time and peak\n"
        "memory side by side. With --weights nothing is trained: one set of weights is evaluated "
        "in both modes. --all adds\n"
        "the three degradations, each alone. Runs that are already in DIR are resumed.",
        "  pnetc compare models/rooms.pnet --config models/rooms.yaml -o out/compare\n"
        "  pnetc compare models/rooms.pnet --config models/rooms.yaml --weights out/run --all\n"};
    struct comparison k = {
        .r = {.seed = -1, .autotune.value = AUTOTUNE_SECONDS}, .folder = "out/compare"};
    const char *split = "val";
    bool all = false, done;
    struct option options[] = {
        {"output", 'o', OPT_OUTPUT, &k.folder, "DIR", "folder of the runs (out/compare)"},
        {"weights", 'w', OPT_TEXT, &k.weights, "W", "evaluate these instead of training"},
        SPLIT_OPTION(&split), {"all", 0, OPT_FLAG, &all, NULL, "each degradation alone too"},
        TRAIN_OPTIONS(&k.r), RUN_OPTIONS(&k.r)};
    struct variant variants[5] = {{.name = "native"}, {.name = "voxel", .degrade = PNET_VOXEL},
        {.name = "centre", .degrade = PNET_CENTRE},
        {.name = "neighbour", .degrade = PNET_NEIGHBOUR},
        {.name = "kernel", .degrade = PNET_KERNEL}};
    int words, code, count;
    unsigned degrade;
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &k.model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which model? usage: %s", usage.synopsis);
    k.split = split_of(split);
    if ((code = pnet_cli_check_model_options(&k.r.model, &degrade)) ||
        (code = pnet_cli_check_autotune(&k.r)))
        return code;
    k.r.model.mode = k.r.model.degrade = NULL; /* the comparison uses all modes */
    pnet_cli_ignore_closed_pipes();
    char *command = pnet_command_text("compare", argc, argv);
    if (!command) return pnet_cli_out_of_memory();
    k.r.command = command;
    count = all ? 5 : 2;
    for (int i = 0; i < count && !code && !k.weights; i++) code = check_folder(&k, &variants[i]);
    for (int i = 0; i < count && !code; i++) code = run_variant(&k, &variants[i]);
    if (!code && k.r.model.json)
        code = print_comparison_json(variants, count);
    else if (!code)
        print_comparison(variants, count, !k.weights);
    for (int i = 0; i < count; i++) {
        pnet_evaluation_free(&variants[i].v);
        pnet_cli_run_close(&variants[i].run);
    }
    free(command);
    return code;
}
