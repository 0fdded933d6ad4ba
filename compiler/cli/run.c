#include "compiler/cli/run.h"
#include "compiler/cli/matrix.h"

#include "runtime/io/file.h"
#include "runtime/json.h"
#include "runtime/peak.h"
#include "runtime/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Params: the config's, then the checkpoint's, then the user's. */
static enum pnet_status collect_sets(struct run *run, const struct run_options *o,
    const struct text_list *sets, struct pnet_error *e)
{
    const struct text_list *lists[2] = {sets, &o->model.sets};
    size_t size = 1;
    for (int i = 0; i < run->config->set_count && run->sets.count < 256; i++)
        run->sets.items[run->sets.count++] = run->config->sets[i];
    for (int k = 0; k < 2; k++)
        for (int i = 0; lists[k] && i < lists[k]->count && run->sets.count < 256; i++)
            run->sets.items[run->sets.count++] = lists[k]->items[i];
    for (int i = 0; i < run->sets.count; i++) size += strlen(run->sets.items[i]) + 1;
    run->params = calloc(size, 1);
    if (!run->params) return pnet_error_memory(e);
    for (int i = 0; i < run->sets.count; i++) {
        if (i) strcat(run->params, "\n");
        strcat(run->params, run->sets.items[i]);
    }
    return PNET_OK;
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

static enum pnet_status open_files(struct run *run, const struct run_options *o,
    const struct text_list *sets, struct pnet_error *e)
{
    enum pnet_status st = pnet_config_read(o->config_path, &run->config, e);
    if (st) return st;
    struct pnet_config *c = run->config;
    if (o->seed >= 0) c->seed = (uint64_t)o->seed;
    if (o->steps > 0) {
        c->steps = o->steps;
        c->epochs = 0;
    }
    const char *data = o->data ? o->data : c->data;
    if (!data)
        return pnet_error_set(
            e, PNET_USAGE, "%s names no data set: add `data: FOLDER`, or --data FOLDER", c->path);
    run->precision = o->model.precision ? o->model.products : c->precision;
    if (run->precision != PNET_FP32 && o->model.where.kind == PNET_CPU)
        return pnet_error_set(e, PNET_USAGE,
            "%s: the CPU computes in fp32, other precisions are for --device cuda", c->path);
    if (run->precision != PNET_FP32 && !pnet_conv_algo_is_usual(o->model.sums))
        return pnet_error_set(e, PNET_USAGE,
            "%s: --algo %s computes in fp32, give --precision fp32", c->path, o->model.algo);
    if ((st = pnet_dataset_read(data, &run->data, e))) return st;
    if ((st = pnet_input_map_adopt(&c->inputs, run->data->columns, run->data->column_count,
             run->data->classes, run->data->class_count, e)))
        return st;
    if ((st = collect_sets(run, o, sets, e))) return st;
    return weigh_classes(run, e);
}

int run_open_as(struct run *run, const struct run_options *o, const char *model,
    enum pnet_purpose_kind purpose, unsigned degrade, const struct text_list *sets)
{
    struct pnet_error e = {0};
    int code = 0;
    *run = (struct run){0};
    if (!o->config_path) return usage_error("which run config? --config RUN.yaml");
    if (pnet_device_check(o->model.where, &e)) return complain(&e);
    if (open_files(run, o, sets, &e)) {
        code = complain(&e);
    } else {
        struct pnet_compile_options co = {.purpose = purpose,
            .device = o->model.where.kind,
            .precision = run->precision,
            .algo = o->model.sums,
            .degrade = degrade,
            .sets = run->sets.items,
            .set_count = run->sets.count,
            .class_weights = run->class_weights,
            .class_weight_count = run->class_weights ? run->data->class_count : 0};
        run->compilation = compile_model(model, &co, &o->model, &code);
        if (run->compilation) {
            run->plan = pnet_compilation_plan(run->compilation);
            if (pnet_dataset_check(run->data, run->plan->inputs, run->plan->input_count, &e))
                code = complain(&e);
        }
    }
    if (code) run_close(run);
    return code;
}

int run_open(
    struct run *run, struct run_options *o, const char *model, enum pnet_purpose_kind purpose)
{
    unsigned degrade;
    int code = check_model_options(&o->model, &degrade);
    return code ? code : run_open_as(run, o, model, purpose, degrade, NULL);
}

void run_close(struct run *run)
{
    if (run->compilation) pnet_compilation_free(run->compilation);
    if (run->data) pnet_dataset_free(run->data);
    if (run->config) pnet_config_free(run->config);
    free(run->class_weights);
    free(run->params);
    *run = (struct run){0};
}

struct display {
    struct pnet_progress *bar; /* NULL: shows nothing */
    bool quiet;
};

static void show(void *context, const struct pnet_train_progress *p)
{
    struct display *d = context;
    if (d->quiet) return;
    if (p->evaluation) {
        char line[512];
        size_t n = (size_t)snprintf(line, sizeof line, "step %lld: validation loss %.4f",
            (long long)p->step, p->evaluation->loss);
        for (int i = 0; i < p->evaluation->count && n < sizeof line; i++)
            if (p->evaluation->lines[i].metric)
                n += (size_t)snprintf(line + n, sizeof line - n, ", %s %.4f",
                    p->evaluation->lines[i].name, p->evaluation->lines[i].value);
        pnet_progress_line(d->bar, line);
        return;
    }
    char text[160];
    if (p->evaluating)
        snprintf(
            text, sizeof text, "validating %lld/%lld", (long long)p->batch, (long long)p->batches);
    else
        snprintf(text, sizeof text, "epoch %lld  loss %.4f  %.0fk points/s",
            (long long)p->epoch + 1, p->loss, p->points_per_s / 1000);
    pnet_progress_show(d->bar, p->step, p->steps, text);
}

static void warn(void *context, const char *text)
{
    struct display *d = context;
    if (!d->quiet)
        pnet_progress_line(d->bar, text);
    else
        fprintf(stderr, "pnetc: %s\n", text);
}

static void note(void *context, const char *text)
{
    struct display *d = context;
    if (!d->quiet) pnet_progress_line(d->bar, text);
}

int check_autotune(const struct run_options *o)
{
    if (!o->model.algo || !(o->autotune.given || o->autotune_all)) return 0;
    return usage_error("--algo names the algorithm that --autotune would choose: give one of them");
}

enum pnet_status run_train(const struct run *run, const struct run_options *o, const char *folder,
    bool resume, struct pnet_train_result *r, struct pnet_error *e)
{
    struct display display = {.quiet = o->model.quiet};
    struct pnet_train_options t = {.plan = run->plan,
        .config = run->config,
        .data = run->data,
        .folder = folder,
        .model_text = pnet_compilation_text(run->compilation),
        .params = run->params,
        .memory_limit = memory_budget(&o->model),
        .device = o->model.where,
        .resume = resume,
        .without_optimizer = o->without_optimizer,
        .algo_given = o->model.algo != NULL,
        .autotune = o->autotune.given || o->autotune_all,
        .autotune_all = o->autotune_all,
        .autotune_seconds = o->autotune.value,
        .stop = interrupted,
        .progress = show,
        .warn = warn,
        .note = note,
        .context = &display};
    struct pnet_bytes config;
    enum pnet_status st = pnet_bytes_read(o->config_path, &config, e);
    if (st) return st;
    char *text = strndup((const char *)config.data, config.size);
    pnet_bytes_free(&config);
    if (!text) return pnet_error_memory(e);
    t.config_text = text;
    if (!display.quiet) display.bar = pnet_progress_new(stderr);
    st = pnet_train(&t, r, e);
    free(text);
    pnet_progress_free(display.bar);
    return st;
}

static void print_named(const char *name, int width, double value)
{
    if (isnan(value))
        printf("  %-*s -\n", width, name);
    else
        printf("  %-*s %.4f\n", width, name, value);
}

void print_evaluation(const struct pnet_evaluation *v, char *const *classes, int class_count)
{
    for (int i = 0; i < v->count; i++) {
        const struct pnet_score_line *l = &v->lines[i];
        printf("%-12s %.4f\n", l->name, l->value);
        for (int k = 0; k < l->value_count; k++)
            print_named(l->values[k].name, 22, l->values[k].value);
        for (int c = 0; c < l->classes; c++)
            print_named(c < class_count ? classes[c] : "?", 16, l->per_class[c]);
        if (l->matrix) print_matrix(l->matrix, l->matrix_classes, classes, class_count);
    }
}

void json_evaluation(struct pnet_json *j, const char *key, const struct pnet_evaluation *v)
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
            json_matrix(j, name, v->lines[i].matrix, v->lines[i].matrix_classes);
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

void run_print(const struct run *run, const struct pnet_train_result *r, const char *folder)
{
    char peak[32];
    print_evaluation(&r->validation, run->data->classes, run->data->class_count);
    printf("%lld steps, %.1f s, %.0f points/s, peak memory %s\n%s/report.html\n",
        (long long)r->steps, r->seconds, (double)r->points / r->seconds,
        pnet_bytes_text(r->peak_bytes, peak), folder);
}

void run_print_json(const struct run *run, const struct pnet_train_result *r)
{
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_int(&j, "parameters", run->plan->parameter_count);
    pnet_json_int(&j, "steps", r->steps);
    pnet_json_double(&j, "seconds", r->seconds);
    pnet_json_int(&j, "points", r->points);
    pnet_json_int(&j, "peak_bytes", (int64_t)r->peak_bytes);
    pnet_json_int(&j, "planned_bytes", (int64_t)r->planned_bytes);
    json_evaluation(&j, "validation", &r->validation);
    pnet_json_end(&j, '}');
    if (j.text) puts(j.text);
    pnet_json_free(&j);
}
