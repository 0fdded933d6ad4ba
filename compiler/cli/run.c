#include "compiler/cli/run.h"
#include "compiler/cli/ranges.h"
#include "compiler/cli/matrix.h"
#include "compiler/cli/origin.h"

#include "runtime/base/file.h"
#include "runtime/base/glob.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_stream.h"
#include "runtime/base/printable.h"
#include "runtime/plan/mode.h"
#include "runtime/run/peak.h"
#include "compiler/cli/progress.h"
#include "runtime/base/yaml.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the command line over the config ---- */

enum { MOST_CONFIG_SETS = 100, MOST_OVERRIDES = MOST_CONFIG_SETS + 20 };

struct overrides {
    struct pnet_config_override items[MOST_OVERRIDES];
    int count;
    char *texts[2 * MOST_OVERRIDES]; /* the documents that the items point into */
    int text_count;
    bool failed; /* out of memory */
};

static const char *keep(struct overrides *v, char *text)
{
    if (!text)
        v->failed = true;
    else
        v->texts[v->text_count++] = text;
    return text;
}

static void override(struct overrides *v, const char *key, const char *from, const char *format,
    ...) __attribute__((format(printf, 4, 5)));
static void override(
    struct overrides *v, const char *key, const char *from, const char *format, ...)
{
    va_list args;
    char *text;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    if (keep(v, text)) v->items[v->count++] = (struct pnet_config_override){key, text, from};
}

static void free_overrides(struct overrides *v)
{
    for (int i = 0; i < v->text_count; i++) free(v->texts[i]);
}

/* KEY=VALUE; the value is YAML. */
static enum pnet_status override_key(struct overrides *v, const char *set, struct pnet_error *e)
{
    const char *value = strchr(set, '=');
    if (!value || value == set)
        return pnet_error_set(
            e, PNET_USAGE, "--set-config takes KEY=VALUE, as lr=0.01, not '%.100s'", set);
    if (strncmp(set, "set=", 4) == 0)
        return pnet_error_set(e, PNET_USAGE, "--set-config: params of the model are for --set");
    const char *key = keep(v, strndup(set, (size_t)(value - set)));
    const char *text = keep(v, strdup(value + 1));
    if (!key || !text) return pnet_error_memory(e);
    v->items[v->count++] = (struct pnet_config_override){key, text, "--set-config"};
    return PNET_OK;
}

/* A path from the current folder, whatever folder the config lies in. */
static enum pnet_status override_path(
    struct overrides *v, const char *key, const char *from, const char *path, struct pnet_error *e)
{
    struct pnet_memory_stream t;
    char here[4096], *quoted = NULL;
    char *whole = getcwd(here, sizeof here) ? pnet_path_join(here, path) : strdup(path);
    if (whole && !pnet_is_utf8(whole)) {
        pnet_error_set(e, PNET_USAGE,
            "%s: the path %s is not UTF-8, as run configs are: rename its folder or file", from,
            whole);
        free(whole);
        return PNET_USAGE;
    }
    if (whole && pnet_memory_stream_open(&t)) {
        pnet_yaml_put_word(whole, t.file);
        quoted = pnet_memory_stream_close(&t, NULL);
    }
    if (quoted)
        override(v, key, from, "%s", quoted);
    else
        v->failed = true;
    free(quoted);
    free(whole);
    return PNET_OK;
}

static void override_mode(struct overrides *v, unsigned degrade)
{
    char text[PNET_MODE_TEXT];
    bool whole = degrade == 0 || degrade == PNET_VOXEL;
    override(v, "mode", "--mode", "%s", whole ? pnet_mode_text(degrade, text) : "native");
    override(v, "degrade", "--degrade", "[%s]", whole ? "" : pnet_mode_text(degrade, text));
}

static enum pnet_status collect_overrides(
    struct overrides *v, const struct run_options *o, struct pnet_error *e)
{
    const struct model_options *m = &o->model;
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < o->config_sets.count; i++) {
        if (i == MOST_CONFIG_SETS)
            return pnet_error_set(e, PNET_USAGE, "--set-config: at most %d", (int)MOST_CONFIG_SETS);
        st = override_key(v, o->config_sets.items[i], e);
        if (st) return st;
    }
    if (o->data) st = override_path(v, "data", "--data", o->data, e);
    if (!st && o->weights) st = override_path(v, "weights", "--weights", o->weights, e);
    if (st) return st;
    if (o->seed >= 0) override(v, "seed", "--seed", "%lld", (long long)o->seed);
    if (o->steps > 0) override(v, "steps", "--steps", "%lld", (long long)o->steps);
    if (m->device) override(v, "device", "--device", "%s", m->device);
    if (m->precision) override(v, "precision", "--precision", "%s", m->precision);
    if (m->algo) override(v, "algo", "--algo", "%s", m->algo);
    if (m->memory) override(v, "memory", "--memory", "%zu", m->memory);
    if (m->threads) override(v, "threads", "--threads", "%lld", (long long)m->threads);
    if (o->autotune.given) override(v, "autotune", "--autotune", "%g", o->autotune.value);
    if (o->autotune_all) override(v, "autotune_all", "--autotune-all", "yes");
    if (o->without_optimizer) override(v, "without_optimizer", "--without-optimizer", "yes");
    return v->failed ? pnet_error_memory(e) : PNET_OK;
}

/* Returns the overrides as lines; of several for one key the last one counts. */
static char *print_overrides(const struct overrides *v, const struct text_list *sets)
{
    struct pnet_memory_stream t;
    if (!pnet_memory_stream_open(&t)) return NULL;
    for (int i = 0; i < v->count; i++) {
        bool last = true;
        for (int k = i + 1; k < v->count; k++)
            last &= strcmp(v->items[i].key, v->items[k].key) != 0;
        if (last) fprintf(t.file, "%s: %s\n", v->items[i].key, v->items[i].value);
    }
    for (int i = 0; i < sets->count; i++) fprintf(t.file, "set: %s\n", sets->items[i]);
    return pnet_memory_stream_close(&t, NULL);
}

/* Fills options that are not on the command line from the config. */
static int take_from_config(struct run *run, enum pnet_purpose_kind purpose)
{
    const struct pnet_config *c = run->config;
    struct model_options *m = &run->o.model;
    unsigned ignored;
    bool training = purpose == PNET_FOR_TRAINING;
    if (!m->device) m->device = c->device;
    if (!m->memory) m->memory = (size_t)c->memory_bytes;
    if (!m->threads) m->threads = c->threads;
    /* weights bring the algorithms they were trained with */
    if (training && !m->algo) m->algo = c->algo;
    if (training && c->autotune > 0) run->o.autotune = (struct seconds){true, c->autotune};
    if (training) run->o.autotune_all |= c->autotune_all;
    run->o.without_optimizer |= c->without_optimizer;
    int code = pnet_cli_check_model_options(m, &ignored);
    return code ? code : pnet_cli_check_autotune(&run->o);
}

/* ---- params ---- */

/* Collects the params: the config's, unless the weights record theirs, then the weights' and the user's. */
static enum pnet_status collect_sets(struct run *run, const struct setting *s, struct pnet_error *e)
{
    const struct text_list *sets = s ? &s->sets : &run->o.model.sets;
    int of_config = s && s->sets_known ? 0 : run->config->set_count;
    bool fits = true;
    for (int i = 0; i < of_config; i++)
        fits = fits && pnet_cli_put_set(&run->sets, run->config->sets[i]);
    for (int i = 0; i < sets->count; i++)
        fits = fits && pnet_cli_put_set(&run->sets, sets->items[i]);
    if (!fits)
        return pnet_error_set(e, PNET_USAGE,
            "more than %d params: those of --set and of the run config together", TEXT_LIST_MOST);
    run->params = pnet_cli_join_sets(&run->sets);
    return run->params ? PNET_OK : pnet_error_memory(e);
}

static enum pnet_status weigh_classes(struct run *run, struct pnet_error *e)
{
    const struct pnet_config *c = run->config;
    int n = run->data->class_count;
    if (c->weighting == PNET_WEIGHTS_NONE) return PNET_OK;
    run->class_weights = calloc((size_t)n + 1, sizeof *run->class_weights);
    int64_t *counts = calloc((size_t)n + 1, sizeof *counts);
    enum pnet_status st = run->class_weights && counts ? PNET_OK : pnet_error_memory(e);
    if (!st && c->weighting == PNET_WEIGHTS_LIST) {
        if (c->class_weight_count != n)
            st = pnet_error_set(e, PNET_USAGE,
                "%s: class_weights has %d numbers, the data set %d classes", c->path,
                c->class_weight_count, n);
        else
            memcpy(run->class_weights, c->class_weights, (size_t)n * sizeof *run->class_weights);
    } else if (!st) {
        st = pnet_dataset_count(run->data, PNET_TRAIN, counts, e);
        if (!st) pnet_class_weights(counts, n, run->class_weights);
    }
    free(counts);
    return st;
}

/* ---- opening ---- */

static enum pnet_status read_config(struct run *run, const unsigned *degrade, struct pnet_error *e)
{
    const struct run_options *o = &run->o;
    struct overrides v = {.count = 0};
    enum pnet_status st = collect_overrides(&v, o, e);
    if (!st && degrade) override_mode(&v, *degrade);
    if (!st && v.failed) st = pnet_error_memory(e);
    if (!st) st = pnet_config_read_with(o->config_path, v.items, v.count, &run->config, e);
    if (!st && !(run->overrides = print_overrides(&v, &o->model.sets))) st = pnet_error_memory(e);
    free_overrides(&v);
    return st;
}

static enum pnet_status choose_precision(
    struct run *run, const struct setting *s, struct pnet_error *e)
{
    const struct model_options *m = &run->o.model;
    const struct pnet_config *c = run->config;
    run->precision = s && s->precision_known ? s->precision : c->precision;
    if (run->precision != PNET_FP32 && m->where.kind == PNET_CPU) {
        if (!s)
            return pnet_error_set(e, PNET_USAGE,
                "%s: the CPU computes in fp32, other precisions are for --device cuda", c->path);
        pnet_cli_notice(
            "%s says %s; the CPU computes in fp32", c->path, pnet_precision_names[run->precision]);
        run->precision = PNET_FP32;
    }
    if (run->precision != PNET_FP32 && !pnet_conv_algo_is_usual(m->sums))
        return pnet_error_set(e, PNET_USAGE,
            "%s: --algo %s computes in fp32, give --precision fp32", c->path, m->algo);
    return PNET_OK;
}

static enum pnet_status open_files(struct run *run, const struct setting *s, struct pnet_error *e)
{
    struct pnet_config *c = run->config;
    enum pnet_status st = choose_precision(run, s, e);
    if (!st) st = collect_sets(run, s, e);
    if (!st) st = pnet_dataset_read(c->data, &run->data, e);
    if (!st) {
        const struct pnet_cloud_hints hints = pnet_dataset_hints(run->data);
        st =
            pnet_input_map_adopt(&c->inputs, &hints, run->data->classes, run->data->class_count, e);
    }
    if (!st && run->data->mapped)
        st = pnet_input_map_adopt_labels(
            &c->inputs, run->data->raw, run->data->raw_class, run->data->map_count, e);
    if (!st) st = weigh_classes(run, e);
    if (st) return st;
    run->config_text = pnet_config_print(c, run->sets.items, run->sets.count);
    return run->config_text ? PNET_OK : pnet_error_memory(e);
}

static int compile_run(
    struct run *run, const char *model, enum pnet_purpose_kind purpose, const struct setting *s)
{
    struct pnet_error e = {0};
    int code = 0;
    struct pnet_compile_options co = {.purpose = purpose,
        .degrade = s && s->mode_known ? s->degrade : run->config->degrade,
        .sets = run->sets.items,
        .set_count = run->sets.count,
        .class_weights = run->class_weights,
        .class_weight_count = run->class_weights ? run->data->class_count : 0};
    run->compilation = pnet_cli_compile_model(model, &co, &run->o.model, &code);
    if (!run->compilation) return code;
    run->plan = pnet_compilation_plan(run->compilation);
    if (pnet_dataset_check(run->data, run->plan->inputs, run->plan->input_count, &e))
        return pnet_cli_complain(&e);
    return 0;
}

/* `degrade`: the mode that replaces that of the config; NULL: the config decides. */
static int open_run(struct run *run, const struct run_options *o, const char *model,
    enum pnet_purpose_kind purpose, const unsigned *degrade, const struct setting *s)
{
    struct pnet_error e = {0};
    int code = 0;
    *run = (struct run){.o = *o};
    if (!o->config_path) return pnet_cli_usage_error("which run config? --config RUN.yaml");
    if (read_config(run, degrade, &e)) code = pnet_cli_complain(&e);
    if (!code) code = take_from_config(run, purpose);
    if (!code && (pnet_cli_device(&run->o.model, &e) || open_files(run, s, &e)))
        code = pnet_cli_complain(&e);
    if (!code && purpose == PNET_FOR_TRAINING && pnet_config_check_paths(run->config, &e))
        code = pnet_cli_complain(&e);
    if (!code && purpose == PNET_FOR_TRAINING && run->config->weights &&
        pnet_weights_guard(run->config->weights, &e))
        code = pnet_cli_complain(&e);
    if (!code) code = compile_run(run, model, purpose, s);
    if (code) pnet_cli_run_close(run);
    return code;
}

int pnet_cli_run_open(struct run *run, const struct run_options *o, const char *model,
    enum pnet_purpose_kind purpose, const struct setting *s)
{
    unsigned degrade;
    struct run_options checked = *o;
    int code = pnet_cli_check_model_options(&checked.model, &degrade);
    bool given = o->model.mode || o->model.degrade;
    return code ? code : open_run(run, o, model, purpose, given && !s ? &degrade : NULL, s);
}

int pnet_cli_run_open_in_mode(
    struct run *run, const struct run_options *o, const char *model, unsigned degrade)
{
    return open_run(run, o, model, PNET_FOR_TRAINING, &degrade, NULL);
}

void pnet_cli_run_close(struct run *run)
{
    if (run->compilation) pnet_compilation_free(run->compilation);
    if (run->data) pnet_dataset_free(run->data);
    if (run->config) pnet_config_free(run->config);
    free(run->class_weights);
    free(run->config_text);
    free(run->overrides);
    free(run->params);
    *run = (struct run){0};
}

static void put_shell_word(const char *word, FILE *f)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+%@";
    if (*word && !word[strspn(word, plain)]) {
        fputs(word, f);
        return;
    }
    fputc('\'', f);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", f);
        else
            fputc(*word, f);
    }
    fputc('\'', f);
}

char *pnet_command_text(const char *name, int argc, char **argv)
{
    struct pnet_memory_stream t;
    if (!pnet_memory_stream_open(&t)) return NULL;
    fprintf(t.file, "pnetc %s", name);
    for (int i = 0; i < argc; i++) {
        fputc(' ', t.file);
        put_shell_word(argv[i], t.file);
    }
    return pnet_memory_stream_close(&t, NULL);
}

struct display {
    struct pnet_progress *bar; /* NULL: no display */
    bool quiet;
    const struct run *run;
    struct weights start; /* weights from which the training starts */
};

/* A loss that counted nothing is "-". Returns `text`. */
static const char *loss_text(double loss, char text[40])
{
    snprintf(text, 40, isnan(loss) ? "-" : "%.4f", loss);
    return text;
}

static void show(void *context, const struct pnet_train_progress *p)
{
    struct display *d = context;
    if (d->quiet) return;
    if (p->evaluation) {
        char line[512], value[40];
        size_t n = (size_t)snprintf(line, sizeof line, "step %lld: validation loss %s",
            (long long)p->step, loss_text(p->evaluation->loss, value));
        for (int i = 0; i < p->evaluation->count && n < sizeof line; i++)
            if (p->evaluation->lines[i].metric)
                n += (size_t)snprintf(line + n, sizeof line - n, ", %s %.4f",
                    p->evaluation->lines[i].name, p->evaluation->lines[i].value);
        pnet_progress_line(d->bar, line);
        return;
    }
    char text[160], value[40];
    if (p->evaluating)
        snprintf(
            text, sizeof text, "validating %lld/%lld", (long long)p->batch, (long long)p->batches);
    else
        snprintf(text, sizeof text, "epoch %lld  loss %s  %.0fk points/s", (long long)p->epoch + 1,
            loss_text(p->loss, value), p->points_per_s / 1000);
    pnet_progress_show(d->bar, p->step, p->steps, text);
}

static void warn(void *context, const char *text)
{
    struct display *d = context;
    if (!d->quiet)
        pnet_progress_line(d->bar, text);
    else
        pnet_cli_notice("%s", text);
}

static void note(void *context, const char *text)
{
    struct display *d = context;
    if (!d->quiet) pnet_progress_line(d->bar, text);
}

/* Opens the weights from which the training starts, once. */
static enum pnet_status open_weights(struct display *d, struct pnet_error *e)
{
    if (d->start.from.file) return PNET_OK;
    return pnet_cli_weights_open(d->run->config->weights, &d->start, e);
}

static enum pnet_status find_ranges(void *context, const char *map, struct pnet_error *e)
{
    struct display *d = context;
    bool starts = !map && d->run->config->weights;
    enum pnet_status st = starts ? open_weights(d, e) : PNET_OK;
    bool records = starts && d->start.from.checkpoint;
    return st ? st : pnet_cli_training_ranges(d->run, map, records ? &d->start.map : NULL, e);
}

static enum pnet_status open_start(
    void *context, const struct pnet_safetensors **file, struct pnet_error *e)
{
    struct display *d = context;
    enum pnet_status st = open_weights(d, e);
    if (st) return st;
    pnet_cli_weights_start(&d->start, d->run->plan->degrade);
    pnet_cli_origin_start(&d->start, &d->run->data->origin);
    pnet_cli_say_unit(&d->start, d->run->data);
    *file = d->start.from.file;
    return PNET_OK;
}

int pnet_cli_check_autotune(const struct run_options *o)
{
    if (!o->model.algo || !(o->autotune.given || o->autotune_all)) return 0;
    return pnet_cli_usage_error(
        "--algo names the algorithm that --autotune would choose: give one of them");
}

enum pnet_status pnet_cli_run_train(const struct run *run, const char *folder, bool resume,
    struct pnet_train_result *r, struct pnet_error *e)
{
    const struct run_options *o = &run->o;
    struct display display = {.quiet = o->model.quiet, .run = run};
    struct pnet_train_options t = {.plan = run->plan,
        .config = run->config,
        .config_text = run->config_text,
        .data = run->data,
        .folder = folder,
        .model_text = pnet_compilation_text(run->compilation),
        .command = o->command,
        .overrides = run->overrides,
        .params = run->params,
        .memory_limit = pnet_cli_memory_budget(&o->model),
        .target = {.where = o->model.where, .precision = run->precision, .algo = o->model.sums},
        .resume = resume,
        .without_optimizer = o->without_optimizer,
        .algo_given = o->model.algo != NULL,
        .autotune = o->autotune.given || o->autotune_all,
        .autotune_all = o->autotune_all,
        .autotune_seconds = o->autotune.value,
        .open_weights = open_start,
        .begun = pnet_cli_catch_interrupts,
        .find_ranges = find_ranges,
        .stop = pnet_cli_interrupted,
        .progress = show,
        .warn = warn,
        .note = note,
        .context = &display};
    if (!display.quiet) display.bar = pnet_progress_new(stderr);
    enum pnet_status st = pnet_train(&t, r, e);
    pnet_progress_free(display.bar);
    pnet_cli_weights_close(&display.start);
    return st;
}

static void print_named(const char *named, int width, double value)
{
    char name[256];
    pnet_printable(named, name, sizeof name);
    if (isnan(value))
        printf("  %-*s -\n", width, name);
    else
        printf("  %-*s %.4f\n", width, name, value);
}

void pnet_cli_print_evaluation(
    const struct pnet_evaluation *v, char *const *classes, int class_count)
{
    for (int i = 0; i < v->count; i++) {
        const struct pnet_score_line *l = &v->lines[i];
        if (l->counted)
            printf("%-12s %.4f\n", l->name, l->value);
        else
            printf("%-12s -\n", l->name);
        for (int k = 0; k < l->value_count; k++)
            print_named(l->values[k].name, 22, l->values[k].value);
        for (int c = 0; c < l->classes; c++)
            print_named(c < class_count ? classes[c] : "?", 16, l->per_class[c]);
        if (l->matrix) pnet_cli_print_matrix(l->matrix, l->matrix_classes, classes, class_count);
    }
}

void pnet_cli_json_evaluation(struct pnet_json *j, const char *key, const struct pnet_evaluation *v)
{
    pnet_json_begin(j, key, '{');
    pnet_json_double(j, "loss", v->loss);
    for (int i = 0; i < v->count; i++) {
        char name[256];
        pnet_json_double(j, v->lines[i].name, v->lines[i].value);
        if (v->lines[i].value_count) {
            snprintf(name, sizeof name, "%s.values", v->lines[i].name);
            pnet_json_begin(j, name, '{');
            for (int k = 0; k < v->lines[i].value_count; k++)
                pnet_json_double(j, v->lines[i].values[k].name, v->lines[i].values[k].value);
            pnet_json_end(j, '}');
        }
        if (v->lines[i].error_pose) {
            snprintf(name, sizeof name, "%s.error_pose", v->lines[i].name);
            pnet_json_begin(j, name, '[');
            for (int k = 0; k < 16; k++) pnet_json_double(j, NULL, v->lines[i].error_pose[k]);
            pnet_json_end(j, ']');
        }
        if (v->lines[i].matrix) {
            snprintf(name, sizeof name, "%s.matrix", v->lines[i].name);
            pnet_cli_json_matrix(j, name, v->lines[i].matrix, v->lines[i].matrix_classes);
        }
        if (!v->lines[i].classes) continue;
        snprintf(name, sizeof name, "%s.per_class", v->lines[i].name);
        pnet_json_begin(j, name, '[');
        for (int c = 0; c < v->lines[i].classes; c++)
            pnet_json_double(j, NULL, v->lines[i].per_class[c]);
        pnet_json_end(j, ']');
    }
    pnet_json_int(j, "samples", v->samples);
    pnet_json_int(j, "points", v->points);
    pnet_json_double(j, "seconds", v->seconds);
    pnet_json_double(j, "compute_seconds", v->compute_seconds);
    pnet_json_end(j, '}');
}

void pnet_cli_run_print(
    const struct run *run, const struct pnet_train_result *r, const char *folder)
{
    char peak[32], shown[PNET_PATH_MOST];
    pnet_cli_print_evaluation(&r->validation, run->data->classes, run->data->class_count);
    printf("%lld steps, %.1f s, %.0f points/s, peak memory %s\n%s/report.html\n",
        (long long)r->steps, r->seconds, (double)r->points / r->seconds,
        pnet_bytes_text(r->peak_bytes, peak), pnet_printable(folder, shown, sizeof shown));
    if (r->idle_steps)
        printf(
            "%lld steps of them without anything that a loss counts\n", (long long)r->idle_steps);
}

enum pnet_status pnet_cli_run_print_json(
    const struct run *run, const struct pnet_train_result *r, struct pnet_error *e)
{
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_int(&j, "parameters", run->plan->parameter_count);
    pnet_json_int(&j, "steps", r->steps);
    pnet_json_int(&j, "idle_steps", r->idle_steps);
    pnet_json_double(&j, "seconds", r->seconds);
    pnet_json_int(&j, "points", r->points);
    pnet_json_int(&j, "peak_bytes", (int64_t)r->peak_bytes);
    pnet_json_int(&j, "planned_bytes", (int64_t)r->planned_bytes);
    pnet_cli_json_evaluation(&j, "validation", &r->validation);
    pnet_json_end(&j, '}');
    return pnet_json_print(&j, stdout, e);
}
