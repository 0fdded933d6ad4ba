/* Models: compiled, and asked for what they have. */
#include "library/library.h"
#include "runtime/plan/mode.h"
#include "runtime/train/weights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What decides how a model is compiled: the options, over what the weights record. */
struct recipe {
    unsigned degrade;
    const char **sets; /* [set_count]; point into `lines` and the caller's options */
    int set_count;
    char *lines;
};

static void free_recipe(struct recipe *r)
{
    free(r->sets);
    free(r->lines);
}

/* Of two values of one name the later one counts. */
static void put_set(struct recipe *r, const char *set)
{
    size_t length = strcspn(set, "=");
    for (int i = 0; i < r->set_count; i++) {
        assert(r->sets[i]);
        if (strncmp(r->sets[i], set, length) != 0 || r->sets[i][length] != set[length]) continue;
        r->sets[i] = set;
        return;
    }
    r->sets[r->set_count++] = set;
}

/* Lists the params of the weights, "name=value" lines, then those of the options, and keeps them all as lines of the model. */
static enum pnet_status list_sets(const char *lines, const struct pnet_model_options *o,
    struct recipe *r, struct pnet_model *m, struct pnet_error *e)
{
    enum { LINES_MOST = 4096 }; /* each is compared with those before it */
    size_t count = o->param_count + 1, size = 1;
    for (const char *c = lines; *c; c++) count += *c == '\n';
    if (count - o->param_count > LINES_MOST)
        return pnet_error_set(e, PNET_BAD_DATA, "%s: more than %d params", o->trained, LINES_MOST);
    r->lines = strdup(lines);
    r->sets = calloc(count, sizeof *r->sets);
    if (!r->lines || !r->sets) return pnet_error_memory(e);
    char *rest;
    for (char *line = strtok_r(r->lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        put_set(r, line);
    for (size_t i = 0; i < o->param_count; i++) {
        if (!o->params || !o->params[i])
            return pnet_error_set(e, PNET_USAGE, "params: number %zu is NULL", i);
        put_set(r, o->params[i]);
    }
    for (int i = 0; i < r->set_count; i++) {
        assert(r->sets[i]);
        size += strlen(r->sets[i]) + 1;
    }
    char *at = m->params = calloc(size, 1);
    if (!at) return pnet_error_memory(e);
    for (int i = 0; i < r->set_count; i++) {
        if (i) *at++ = '\n';
        at = stpcpy(at, r->sets[i]);
    }
    return PNET_OK;
}

static enum pnet_status read_mode(const char *mode, unsigned *degrade, struct pnet_error *e)
{
    if (!mode) return PNET_OK;
    *degrade = 0;
    if (pnet_mode_parse(mode, degrade)) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "mode: expected native, voxel or degradations (centre, neighbour, kernel), not '%s'", mode);
}

static enum pnet_status make_recipe(const struct pnet_model_options *o, struct recipe *r,
    struct pnet_model *m, struct pnet_error *e)
{
    struct pnet_weights w = {0};
    const char *kernels = "", *lines = "";
    enum pnet_status st = PNET_OK;
    if (o->purpose > PNET_PURPOSE_TRAIN)
        return pnet_error_set(e, PNET_USAGE, "purpose: no purpose has the number %d", o->purpose);
    if (o->param_count > 256) return pnet_error_set(e, PNET_USAGE, "params: at most 256");
    if (o->output_count > 256) return pnet_error_set(e, PNET_USAGE, "outputs: at most 256");
    for (size_t i = 0; i < o->output_count; i++)
        if (!o->outputs || !o->outputs[i])
            return pnet_error_set(e, PNET_USAGE, "outputs: number %zu is NULL", i);
    if (o->class_weight_count && !o->class_weights)
        return pnet_error_set(
            e, PNET_USAGE, "class_weights is NULL, but there are %zu", o->class_weight_count);
    if (o->class_weight_count > INT32_MAX)
        return pnet_error_set(
            e, PNET_USAGE, "class_weights: %zu are too many", o->class_weight_count);
    if (o->input_gradients && o->purpose != PNET_PURPOSE_TRAIN)
        return pnet_error_set(
            e, PNET_USAGE, "input_gradients: the purpose is not PNET_PURPOSE_TRAIN");
    if (o->trained && (st = pnet_weights_open(o->trained, &w, e))) return st;
    if (o->trained) {
        r->degrade = w.trained.degrade;
        lines = w.trained.params;
        m->precision_known = w.trained.known;
        m->precision = w.trained.precision;
        if (w.checkpoint) kernels = w.checkpoint->state.kernels;
    }
    m->kernels = strdup(kernels);
    if (!m->kernels) st = pnet_error_memory(e);
    if (!st) st = read_mode(o->mode, &r->degrade, e);
    if (!st) st = list_sets(lines, o, r, m, e);
    pnet_weights_close(&w);
    return st;
}

static enum pnet_status keep_diagnostics(struct pnet_model *m, struct pnet_error *e)
{
    const struct pnet_diags *d = pnet_compilation_diags(m->compilation);
    size_t count = (size_t)pnet_diags_count(d);
    m->diagnostics = calloc(count + 1, sizeof *m->diagnostics);
    if (!m->diagnostics) return pnet_error_memory(e);
    for (size_t i = 0; i < count; i++) {
        struct pnet_diag_record r;
        pnet_diags_record(d, (int)i, &r);
        m->diagnostics[i] = (struct pnet_diagnostic){.size = sizeof *m->diagnostics,
            .kind = r.severity == PNET_WARNING ? PNET_DIAGNOSTIC_WARNING : PNET_DIAGNOSTIC_ERROR,
            .file = r.file,
            .line = (int32_t)r.line,
            .column = (int32_t)r.column,
            .end_line = (int32_t)r.end_line,
            .end_column = (int32_t)r.end_column,
            .message = r.message,
            .label = r.label,
            .help = r.help};
    }
    m->diagnostic_count = count;
    return PNET_OK;
}

/* Does a weights file hold the parameter? Not a bias that only folding makes, nor what nothing in the plan reads. */
static bool is_of_file(const struct pnet_plan *p, int param)
{
    bool held = p->params[param].offset >= 0;
    for (int i = 0; i < p->fold_count; i++) {
        const struct pnet_plan_fold *f = &p->folds[i];
        if (f->bias == param && !f->bias_was_there) return false;
        held |= f->scale == param || f->shift == param || f->mean == param || f->var == param;
    }
    return held;
}

static enum pnet_status list_weights(struct pnet_model *m, struct pnet_error *e)
{
    const struct pnet_plan *p = m->plan;
    m->weights = calloc((size_t)p->param_count + 1, sizeof *m->weights);
    if (!m->weights) return pnet_error_memory(e);
    for (int i = 0; i < p->param_count; i++)
        if (is_of_file(p, i)) m->weights[m->weight_count++] = i;
    return PNET_OK;
}

/* Sets the error of a text that does not compile: its first error. */
static enum pnet_status refuse(const struct pnet_model *m, struct pnet_error *e)
{
    for (size_t i = 0; i < m->diagnostic_count; i++) {
        const struct pnet_diagnostic *d = &m->diagnostics[i];
        if (d->kind != PNET_DIAGNOSTIC_ERROR) continue;
        if (!d->line)
            return pnet_error_set(e, PNET_BAD_MODEL, "%.400s: %.500s", d->file, d->message);
        return pnet_error_set(e, PNET_BAD_MODEL, "%.400s:%d:%d: %.500s", d->file, (int)d->line,
            (int)d->column, d->message);
    }
    return pnet_error_set(e, PNET_BAD_MODEL, "the model is too large to be compiled");
}

static enum pnet_status finish(
    struct pnet_model *m, struct pnet_compilation *c, struct pnet_error *e)
{
    if (!c || pnet_compilation_code(c) == PNET_NO_MEMORY) {
        pnet_compilation_free(c);
        return pnet_error_memory(e);
    }
    m->compilation = c;
    m->plan = pnet_compilation_plan(c);
    enum pnet_status st = keep_diagnostics(m, e);
    if (!st && m->plan) st = list_weights(m, e);
    return st;
}

/* Compiles the file at `path`, or the text if that is NULL. */
static enum pnet_status make(const char *path, const char *name, const char *text, size_t length,
    const struct pnet_model_options *options, struct pnet_model **model, struct pnet_error *e)
{
    static const enum pnet_purpose_kind purposes[] = {[PNET_PURPOSE_INFER] = PNET_FOR_INFERENCE,
        [PNET_PURPOSE_EVAL] = PNET_FOR_EVAL,
        [PNET_PURPOSE_TRAIN] = PNET_FOR_TRAINING};
    struct pnet_model_options o;
    struct recipe r = {0};
    *model = NULL;
    struct pnet_model *m = pnet_handle_new(PNET_CLASS_MODEL, sizeof *m, e);
    enum pnet_status st = m ? PNET_OK : PNET_NO_MEMORY;
    if (!st) st = pnet_library_take("pnet_model_options", options, &o, sizeof o, e);
    if (!st) st = make_recipe(&o, &r, m, e);
    if (!st) {
        struct pnet_compile_options co = {.purpose = purposes[o.purpose],
            .degrade = r.degrade,
            .sets = r.sets,
            .set_count = r.set_count,
            .net = o.net,
            .value = o.value,
            .class_weights = o.class_weights,
            .class_weight_count = (int)o.class_weight_count,
            .outputs = o.outputs,
            .output_count = (int)o.output_count,
            .input_gradients = o.input_gradients != 0};
        atomic_init(&m->owners, 1);
        m->purpose = o.purpose;
        m->input_gradients = o.input_gradients != 0;
        st = finish(
            m, path ? pnet_compile_file(path, &co) : pnet_compile_text(name, text, length, &co), e);
    }
    free_recipe(&r);
    if (st) {
        pnet_model_free(m);
        return st;
    }
    *model = m;
    return m->plan ? PNET_OK : refuse(m, e);
}

enum pnet_status pnet_model_compile(const char *name, const char *text, size_t length,
    const struct pnet_model_options *o, struct pnet_model **model, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, model);
    PNET_REQUIRE(e, PNET_A(ANY, name), PNET_A(ANY, text));
    PNET_OWN_ERROR(e);
    return make(NULL, name, text, length, o, model, e);
}

enum pnet_status pnet_model_open(const char *path, const struct pnet_model_options *o,
    struct pnet_model **model, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, model);
    PNET_REQUIRE(e, PNET_A(ANY, path));
    PNET_OWN_ERROR(e);
    /* to the compiler - is standard input */
    return make(strcmp(path, "-") == 0 ? "./-" : path, NULL, NULL, 0, o, model, e);
}

void pnet_library_keep_model(struct pnet_model *m)
{
    atomic_fetch_add(&m->owners, 1);
}

void pnet_model_free(struct pnet_model *m)
{
    if (!m || !pnet_handle_is(m, PNET_CLASS_MODEL) || atomic_fetch_sub(&m->owners, 1) > 1) return;
    pnet_compilation_free(m->compilation);
    free(m->diagnostics);
    free(m->weights);
    free(m->params);
    free(m->kernels);
    pnet_handle_free(m);
}
