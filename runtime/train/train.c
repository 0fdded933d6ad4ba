#include "runtime/train/train.h"

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/data/loader.h"
#include "runtime/train/run_folder.h"
#include "runtime/train/train_frame.h"
#include "runtime/train/train_log.h"
#include "runtime/train/train_pictures.h"
#include "runtime/train/train_report.h"
#include "runtime/train/train_tune.h"
#include "runtime/train/train_weights.h"
#include "runtime/train/trained.h"
#include "runtime/run/not_finite.h"
#include "runtime/run/updater.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Loss scaling for fp16 (Micikevicius et al., 2018): as large as the gradients allow. */
enum { SCALE_GROWS_AFTER = 1000, MAX_SKIPS = 40 };
static const double FIRST_SCALE = 65536, LARGEST_SCALE = 16777216;

struct trainer {
    const struct pnet_train_options *o;
    const struct pnet_plan *plan;
    struct pnet_runner *runner;
    struct pnet_checkpoint *last; /* the checkpoint from which to resume; NULL: none */
    struct pnet_train_kernels kernels;
    struct pnet_train_frame frame;
    struct pnet_loader *loader, *val_loader; /* val_loader: NULL without validation */
    struct pnet_pipeline *pipeline;
    int slot; /* of the last batch that has run */
    struct pnet_optim optim;
    struct pnet_schedule schedule;
    struct pnet_updater updater;
    double loss_scale;
    int64_t unskipped, skips; /* steps since the scale changed, and skipped ones in a row */
    struct pnet_train_log log;
    int64_t step, steps, steps_an_epoch;
    double optimizer_step;
    uint32_t epoch; /* of the next batch */
    int64_t batch;
    double best;       /* NaN: none yet */
    int64_t validated; /* step of the last validation */
    double seconds;    /* of training before this process */
    bool kept;         /* last/ exists */
    bool began;        /* the first batch of this process is there */
    struct pnet_run_folder folder;
    float *rates; /* [param_count] factors of the learning rate; NULL: all 1 */
    struct pnet_held held;
    struct pnet_train_result *result;
};

static enum pnet_status open_loader(
    struct trainer *t, enum pnet_split split, struct pnet_loader **l, struct pnet_error *e)
{
    const struct pnet_config *c = t->o->config;
    bool training = split == PNET_TRAIN;
    struct pnet_loader_options o = {.data = t->o->data,
        .split = split,
        .inputs = t->plan->inputs,
        .input_count = t->plan->input_count,
        .map = &c->inputs,
        .one_frame = pnet_plan_one_frame(t->plan),
        .batch_size = c->batch_size,
        .workers = c->workers,
        .training = training,
        .augment = training ? &c->augment : NULL,
        .max_points = training ? c->max_points : 0,
        .drop_last = training && c->drop_last,
        .skip_empty = c->skip_empty,
        .cache_bytes = training ? c->cache_bytes : c->cache_bytes / 4,
        .seed = c->seed,
        .warn = t->o->warn,
        .context = t->o->context};
    return pnet_loader_new(&o, l, e);
}

static enum pnet_status open_trainer(struct trainer *t, struct pnet_error *e)
{
    const struct pnet_config *c = t->o->config;
    enum pnet_status st;
    t->best = NAN;
    pnet_train_frame_begin(&t->frame, t->o);
    t->optim = c->optimizer;
    t->schedule = c->schedule;
    if ((st = pnet_optim_check(&t->optim, e))) return st;
    t->loss_scale = t->o->target.precision == PNET_FP16 ? FIRST_SCALE : 1;
    if ((st = open_loader(t, PNET_TRAIN, &t->loader, e))) return st;
    const char *saved = t->last ? t->last->state.kernels : NULL;
    if ((st = pnet_train_kernels_choose(t->o, saved, t->loader, &t->kernels, e))) return st;
    struct pnet_runner_options so = {.memory_limit = t->o->memory_limit,
        .slots = 2,
        .seed = c->seed,
        .extra_bytes = (int64_t)pnet_updater_bytes(t->kernels.bound, &t->optim)};
    bool validated = t->o->data->counts[PNET_VAL] && (c->eval_every.epochs || c->eval_every.steps);
    if (validated && (st = open_loader(t, PNET_VAL, &t->val_loader, e))) return st;
    if ((st = pnet_runner_new(t->kernels.bound, &so, &t->runner, e)) ||
        (st = pnet_runner_init_params(t->runner, e)))
        return st;
    if (c->weights && !t->last && (st = pnet_train_load(t->o, t->runner, e))) return st;
    int64_t batches = pnet_loader_batches(t->loader);
    if (batches < 1)
        return pnet_error_set(e, PNET_USAGE,
            "batch_size: an epoch holds no whole batch, and drop_last leaves out the rest");
    t->steps_an_epoch = batches / c->accumulate > 0 ? batches / c->accumulate : 1;
    t->steps = c->steps ? c->steps : c->epochs * t->steps_an_epoch;
    if (c->warmup_share > 0)
        t->schedule.warmup_steps = (int64_t)(c->warmup_share * (double)t->steps);
    return PNET_OK;
}

/* Checkpoints. */

/* Weights and the optimiser's state on the host. */
struct snapshot {
    float *params, *state; /* [param_elements], [states * trained_elements] */
};

static enum pnet_status take_snapshot(
    const struct trainer *t, struct snapshot *shot, struct pnet_error *e)
{
    int64_t params = t->plan->param_elements,
            state = pnet_optim_state_count(&t->optim) * t->plan->trained_elements;
    shot->params = malloc((size_t)params * sizeof(float) + 1);
    shot->state = malloc((size_t)state * sizeof(float) + 1);
    if (!shot->params || !shot->state) return pnet_error_memory(e);
    enum pnet_status st =
        pnet_runner_read(t->runner, PNET_BLOCK_PARAMS, 0, params, shot->params, e);
    return st ? st : pnet_runner_read(t->runner, PNET_BLOCK_EXTRA, 0, state, shot->state, e);
}

static void free_snapshot(struct snapshot *shot)
{
    free(shot->params);
    free(shot->state);
}

static struct pnet_safetensor *list_tensors(const struct trainer *t, const struct snapshot *shot,
    bool optimizer, size_t *count, char **names)
{
    const struct pnet_plan *p = t->plan;
    int states = optimizer ? pnet_optim_state_count(&t->optim) : 1;
    struct pnet_safetensor *list = calloc((size_t)(p->param_count * states) + 1, sizeof *list);
    size_t size = 1;
    *count = 0;
    for (int i = 0; i < p->param_count; i++)
        size += (size_t)states * (strlen(p->params[i].name) + 16);
    char *at = *names = calloc(size, 1);
    if (!list || !at) {
        free(list);
        free(*names);
        *names = NULL;
        return NULL;
    }
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        if (q->offset < 0 || (optimizer && !q->info.trained)) continue;
        for (int s = 0; s < states; s++) {
            struct pnet_safetensor *x = &list[(*count)++];
            *x = (struct pnet_safetensor){
                .name = at, .dtype = PNET_TENSOR_F32, .dims = q->info.dims};
            at += sprintf(at, optimizer ? "%s.%s" : "%s", q->name,
                      optimizer ? pnet_optim_state_name(&t->optim, s) : "") +
                  1;
            memcpy(x->shape, q->info.shape, sizeof q->info.shape);
            x->data =
                (optimizer ? shot->state + s * p->trained_elements : shot->params) + q->offset;
        }
    }
    return list;
}

static enum pnet_status save(
    struct trainer *t, const char *name, const struct pnet_evaluation *v, struct pnet_error *e)
{
    enum { MAX_SCORES = 64 };
    char path[4096], *weight_names = NULL, *state_names = NULL,
                     *map = pnet_train_frame_print(&t->frame);
    struct pnet_score scores[MAX_SCORES];
    size_t weight_count = 0, state_count = 0, score_count = 0;
    struct snapshot shot = {0};
    enum pnet_status st = pnet_held_put(&t->held, t->runner, e);
    if (!st) st = take_snapshot(t, &shot, e);
    if (st) {
        free_snapshot(&shot);
        free(map);
        return st;
    }
    struct pnet_safetensor *weights = list_tensors(t, &shot, false, &weight_count, &weight_names);
    struct pnet_safetensor *states = list_tensors(t, &shot, true, &state_count, &state_names);
    bool bare = t->o->without_optimizer && (t->step == t->steps || strcmp(name, "best") == 0);
    if (!isnan(t->best)) scores[score_count++] = (struct pnet_score){"best", t->best};
    for (int i = 0; v && i < v->count && score_count < MAX_SCORES; i++)
        scores[score_count++] = (struct pnet_score){v->lines[i].name, v->lines[i].value};
    struct pnet_counter counters[] = {{"validated", t->validated}, {"plan", (int64_t)t->plan->hash},
        {"loss_scale", (int64_t)t->loss_scale}, {"unskipped", t->unskipped}};
    struct pnet_trained_record trained;
    const struct pnet_bound *bound = t->kernels.bound;
    pnet_trained_record(bound->plan->degrade, bound->precision, t->o->params, &trained);
    struct pnet_checkpoint_state s = {.counters = counters,
        .counter_count = sizeof counters / sizeof counters[0],
        .epoch = t->epoch,
        .step = t->step,
        .loader_position = t->batch * t->o->config->batch_size,
        .optimizer_step = t->optimizer_step,
        .seed = t->o->config->seed,
        .metrics = scores,
        .metric_count = score_count,
        .model = t->o->model_text,
        .input_map = map,
        .kernels = t->kernels.text,
        .params = t->o->params,
        .metadata = trained.items,
        .metadata_count = PNET_TRAINED_KEYS};
    snprintf(path, sizeof path, "%s/%s", t->o->folder, name);
    if (!weights || !states || !map)
        st = pnet_error_memory(e);
    else
        st = pnet_checkpoint_write(
            path, &s, weights, weight_count, bare ? NULL : states, state_count, e);
    free(weights);
    free(states);
    free(weight_names);
    free(state_names);
    free(map);
    free_snapshot(&shot);
    t->kept |= !st && strcmp(name, "last") == 0;
    return st;
}

static enum pnet_status restore_tensors(
    struct trainer *t, const struct pnet_checkpoint *c, struct pnet_error *e)
{
    const struct pnet_plan *p = t->plan;
    int states = pnet_optim_state_count(&t->optim);
    struct snapshot shot = {0};
    char name[4096];
    enum pnet_status st = take_snapshot(t, &shot, e);
    for (int i = 0; i < p->param_count && !st; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        if (q->offset < 0) continue;
        st = pnet_safetensors_load(c->weights, "last/weights.safetensors", q->name, q->info.dims,
            q->info.shape, shot.params + q->offset, e);
        for (int s = 0; !st && c->optimizer && q->info.trained && s < states; s++) {
            snprintf(name, sizeof name, "%s.%s", q->name, pnet_optim_state_name(&t->optim, s));
            st = pnet_safetensors_load(c->optimizer, "last/optimizer.safetensors", name,
                q->info.dims, q->info.shape, shot.state + s * p->trained_elements + q->offset, e);
        }
    }
    if (!st)
        st = pnet_runner_write(t->runner, PNET_BLOCK_PARAMS, 0, p->param_elements, shot.params, e);
    if (!st)
        st = pnet_runner_write(
            t->runner, PNET_BLOCK_EXTRA, 0, states * p->trained_elements, shot.state, e);
    free_snapshot(&shot);
    return st;
}

static int64_t counter(const struct pnet_checkpoint *c, const char *name)
{
    for (size_t i = 0; i < c->state.counter_count; i++)
        if (strcmp(c->state.counters[i].name, name) == 0) return c->state.counters[i].value;
    return 0;
}

/* Reads the checkpoint from which to resume; t->last stays NULL if the run ended before it wrote one. A training starts from
   the beginning only where neither last/ nor best/ exists. */
static enum pnet_status read_last(struct trainer *t, struct pnet_error *e)
{
    char path[4200];
    bool last, best;
    enum pnet_status st = pnet_run_folder_holds(&t->folder, "last", &last, e);
    if (!st) st = pnet_run_folder_holds(&t->folder, "best", &best, e);
    if (st || !(last || best)) return st;
    if (!t->o->resume)
        return pnet_error_set(e, PNET_USAGE,
            "%s holds a run already: continue it with --resume, or choose another folder",
            t->o->folder);
    if (!last)
        return pnet_error_set(e, PNET_FAILED,
            "%s/last is missing, but %s/best exists: copy best to last to resume from it, or "
            "choose another folder",
            t->o->folder, t->o->folder);
    snprintf(path, sizeof path, "%s/last", t->folder.path);
    st = pnet_checkpoint_read(path, &t->last, e);
    t->kept = !st;
    return st;
}

/* Says why the plan differs from the plan of the checkpoint. Always an error. */
static enum pnet_status refuse_plan(const struct trainer *t, const char *path, struct pnet_error *e)
{
    struct pnet_trained was;
    char there[PNET_MODE_TEXT], now[PNET_MODE_TEXT];
    enum pnet_status st = pnet_trained_read(t->last->weights, path, &was, e);
    if (st) return st;
    if (!was.geometry)
        return pnet_error_set(e, PNET_USAGE,
            "%s was trained in another mode, with other class weights, or under another version of "
            "the geometry's definitions, which it does not record",
            path);
    if (was.geometry != PNET_GEOMETRY_VERSION)
        return pnet_error_set(e, PNET_USAGE,
            "%s was trained under version %d of the geometry's definitions, this program has "
            "version %d: the training cannot be resumed",
            path, was.geometry, (int)PNET_GEOMETRY_VERSION);
    if (was.degrade != t->plan->degrade)
        return pnet_error_set(e, PNET_USAGE, "%s was trained in mode %s, and this is mode %s", path,
            pnet_mode_text(was.degrade, there), pnet_mode_text(t->plan->degrade, now));
    return pnet_error_set(e, PNET_USAGE, "%s was trained with other class weights", path);
}

/* A run that went further than it is asked to go is left as it is. */
static void tell_if_beyond(const struct trainer *t)
{
    char text[300];
    if (!t->o->warn || t->step <= t->steps) return;
    snprintf(text, sizeof text,
        "%.100s has made %lld steps, and %lld are asked for: nothing is trained", t->o->folder,
        (long long)t->step, (long long)t->steps);
    t->o->warn(t->o->context, text);
}

/* Restores parameters, optimiser and position from the last checkpoint, or says why the training does not fit it. */
static enum pnet_status resume(struct trainer *t, struct pnet_error *e)
{
    const struct pnet_checkpoint *c = t->last;
    char path[4096];
    enum pnet_status st = PNET_OK;
    snprintf(path, sizeof path, "%s/last", t->o->folder);
    if (c->state.model_hash != pnet_checkpoint_hash(t->o->model_text))
        st = pnet_error_set(
            e, PNET_BAD_MODEL, "%s was trained with another text of the model", path);
    else if (!pnet_params_equal(c->state.params, t->o->params))
        st = pnet_error_set(e, PNET_BAD_MODEL,
            "%s was trained with other params: '%.200s' there, '%.200s' now", path, c->state.params,
            t->o->params);
    else if (c->state.seed != t->o->config->seed)
        st = pnet_error_set(e, PNET_USAGE, "%s was trained with seed %llu", path,
            (unsigned long long)c->state.seed);
    else if ((uint64_t)counter(c, "plan") != t->plan->hash)
        st = refuse_plan(t, path, e);
    else if (!c->optimizer && c->state.step < t->steps)
        st = pnet_error_set(e, PNET_USAGE,
            "%s was saved without the optimiser's state (--without-optimizer): a training cannot "
            "resume from it",
            path);
    else
        st = restore_tensors(t, c, e);
    if (!st) st = pnet_train_frame_resume(&t->frame, c->state.input_map, e);
    if (!st) {
        t->step = c->state.step;
        t->optimizer_step = c->state.optimizer_step;
        t->epoch = (uint32_t)c->state.epoch;
        t->batch = c->state.loader_position / t->o->config->batch_size;
        for (size_t i = 0; i < c->state.metric_count; i++)
            if (strcmp(c->state.metrics[i].name, "best") == 0) t->best = c->state.metrics[i].value;
        t->validated = counter(c, "validated");
        t->unskipped = counter(c, "unskipped");
        if (t->o->target.precision == PNET_FP16 && counter(c, "loss_scale") > 0)
            t->loss_scale = (double)counter(c, "loss_scale");
        tell_if_beyond(t);
    }
    pnet_checkpoint_free(t->last);
    t->last = NULL;
    return st;
}

static bool stopped(const struct trainer *t)
{
    return t->o->stop && t->o->stop();
}

/* Steps. */

static enum pnet_status start_pipeline(struct trainer *t, struct pnet_error *e)
{
    if (t->pipeline) return PNET_OK;
    pnet_loader_start(t->loader, t->epoch, t->batch);
    return pnet_pipeline_start(t->runner, t->loader, &t->pipeline, e);
}

static void stop_pipeline(struct trainer *t)
{
    pnet_pipeline_stop(t->pipeline);
    t->pipeline = NULL;
}

/* `first`: of a step. The others cannot be left out, as the first one has changed the statistics of norms. */
static enum pnet_status next_batch(
    struct trainer *t, bool first, struct pnet_ready *r, struct pnet_error *e)
{
    for (int ends = 0;;) {
        enum pnet_status st = pnet_pipeline_next(t->pipeline, first ? t->o->stop : NULL, r, e);
        if (st) return st;
        if (r->slot >= 0) break;
        if (++ends == 2)
            return pnet_error_set(
                e, PNET_BAD_DATA, "an epoch holds no batch: all clouds are empty");
    }
    t->epoch = r->epoch;
    t->batch = r->batch + 1;
    if (t->o->begun && !t->began) t->o->begun();
    t->began = true;
    pnet_train_frame_add(&t->frame, &r->frame);
    return PNET_OK;
}

/* Sets the error of a step whose loss or gradient is not finite: what is not, and what may help. */
static enum pnet_status refuse_step(struct trainer *t, struct pnet_error *e)
{
    char where[PNET_NOT_FINITE_TEXT];
    enum pnet_status st = pnet_not_finite(t->runner, t->slot, where, e);
    if (st) return st;
    return pnet_error_set(e, PNET_FAILED,
        "the loss or its gradient is not finite at step %lld: %s. A lower learning rate, or "
        "clip_grad, may help",
        (long long)t->step, where);
}

/* Adapts the loss scale after a step. A skipped step is not an error if a smaller scale may help. */
static enum pnet_status adapt_scale(
    struct trainer *t, const struct pnet_optim_record *r, struct pnet_error *e)
{
    bool scaled = t->o->target.precision == PNET_FP16;
    t->skips = r->skipped ? t->skips + 1 : 0;
    if (r->skipped && (!scaled || t->loss_scale <= 1 || t->skips > MAX_SKIPS))
        return refuse_step(t, e);
    if (!scaled) return PNET_OK;
    t->unskipped = r->skipped ? 0 : t->unskipped + 1;
    if (r->skipped) t->loss_scale /= 2;
    if (t->unskipped == SCALE_GROWS_AFTER) {
        t->unskipped = 0;
        if (t->loss_scale < LARGEST_SCALE) t->loss_scale *= 2;
    }
    return PNET_OK;
}

/* Runs forward and backward of one batch. The slot of the previous batch is handed back first, so it must not be in use. */
static enum pnet_status run_batch(
    struct trainer *t, int micro, struct pnet_step_log *log, struct pnet_error *e)
{
    int accumulate = t->o->config->accumulate;
    struct pnet_ready r;
    enum pnet_status st;
    if ((st = pnet_runner_wait(t->runner, e)) || (st = next_batch(t, micro == 0, &r, e))) return st;
    t->slot = r.slot;
    st = pnet_runner_forward(t->runner, r.slot, true, (uint32_t)(t->step * accumulate + micro), e);
    if (st) return st;
    float scale = (float)(t->loss_scale / accumulate);
    pnet_updater_watch(&t->updater, micro == accumulate - 1);
    if ((st = pnet_runner_backward(t->runner, r.slot, scale, micro > 0, e))) return st;
    pnet_updater_note_losses(&t->updater, 1.0 / accumulate, micro > 0);
    for (int i = 0; i < t->plan->objective_count; i++) log->counted[i] += !(r.idle >> i & 1);
    log->points += r.points;
    return PNET_OK;
}

/* A loss is the mean over the batches of the step in which it found something to count; it was 0 in the others. */
static void finish_losses(struct trainer *t, struct pnet_step_log *log)
{
    bool any = false;
    for (int i = 0; i < t->plan->objective_count; i++) {
        if (t->plan->objectives[i].metric) continue;
        if (!log->counted[i])
            log->losses[i] = NAN;
        else if (log->counted[i] < t->o->config->accumulate)
            log->losses[i] *= (double)t->o->config->accumulate / log->counted[i];
        if (log->counted[i]) log->loss += log->losses[i];
        any |= log->counted[i] > 0;
    }
    if (any) return;
    log->loss = NAN;
    if (!t->result->idle_steps++ && t->o->warn) {
        char text[160];
        snprintf(text, sizeof text,
            "step %lld: nothing in its data counts for a loss, such as a labelled point: the "
            "gradient is 0",
            (long long)t->step + 1);
        t->o->warn(t->o->context, text);
    }
}

/* Runs one optimiser step: forward and backward of `accumulate` batches, then the update. */
static enum pnet_status train_step(
    struct trainer *t, struct pnet_step_log *log, struct pnet_error *e)
{
    const struct pnet_config *c = t->o->config;
    struct pnet_optim_record record;
    enum pnet_status st = PNET_OK;
    for (int micro = 0; micro < c->accumulate && !st; micro++) st = run_batch(t, micro, log, e);
    if (st) return st;
    log->lr = pnet_schedule_lr(&t->schedule, t->step, t->steps, t->steps_an_epoch);
    st = pnet_updater_step(
        &t->updater, log->lr, c->clip_grad, t->loss_scale, &record, log->losses, e);
    if (st || (st = adapt_scale(t, &record, e))) return st;
    finish_losses(t, log);
    log->gradient_norm = record.norm;
    t->optimizer_step = record.step;
    t->step++;
    t->result->points += log->points;
    return PNET_OK;
}

static bool due(struct pnet_interval every, int64_t step, int64_t steps_an_epoch)
{
    return (every.steps && step % every.steps == 0) ||
           (every.epochs && step % (every.epochs * steps_an_epoch) == 0);
}

static bool go_on_evaluating(void *context, int64_t batch)
{
    struct trainer *t = context;
    struct pnet_train_progress p = {.step = t->step,
        .steps = t->steps,
        .epoch = t->epoch,
        .evaluating = true,
        .batch = batch,
        .batches = pnet_loader_batches(t->val_loader)};
    if (t->o->progress) t->o->progress(t->o->context, &p);
    return !(t->o->stop && t->o->stop());
}

/* Returns what should be high: the first metric, negative if it is an error; without metrics the negative loss. */
static double headline(const struct trainer *t, const struct pnet_evaluation *v)
{
    for (int i = 0; i < v->count; i++) {
        if (!v->lines[i].metric) continue;
        const struct pnet_op *op = t->plan->nodes[t->plan->objectives[i].node].op;
        return op->flags & PNET_LESS_IS_BETTER ? -v->lines[i].value : v->lines[i].value;
    }
    return -v->loss;
}

/* Weights whose validation gives NaN are never the best, whatever their metric is. */
static bool is_better(const struct trainer *t, const struct pnet_evaluation *v)
{
    double value = headline(t, v);
    return !isnan(v->loss) && !isnan(value) && (isnan(t->best) || value > t->best);
}

static void warn_not_a_number(const struct trainer *t, const struct pnet_evaluation *v)
{
    char text[200];
    if (!t->o->warn || !(isnan(v->loss) || isnan(headline(t, v)))) return;
    bool counted = false;
    for (int i = 0; i < v->count; i++) counted |= v->lines[i].counted && !v->lines[i].metric;
    snprintf(text, sizeof text, "step %lld: %s; best/ is not replaced", (long long)t->step,
        counted ? "the validation gives NaN"
                : "nothing in the validation data counts for a loss, such as a labelled point");
    t->o->warn(t->o->context, text);
}

static enum pnet_status validate(struct trainer *t, struct pnet_error *e)
{
    struct pnet_evaluation v;
    stop_pipeline(t);
    /* a run with only best/ could not be resumed */
    enum pnet_status st = t->kept ? PNET_OK : save(t, "last", NULL, e);
    if (!st) st = pnet_held_put(&t->held, t->runner, e);
    if (st) return st;
    st = pnet_evaluate(t->runner, t->val_loader, go_on_evaluating, t, &v, e);
    if (!st) st = pnet_train_log_evaluation(&t->log, t->step, t->epoch, &v, e);
    if (!st) t->validated = t->step;
    if (!st) warn_not_a_number(t, &v);
    if (!st) pnet_train_frame_compare(&t->frame, &v.frame);
    if (!st && is_better(t, &v)) {
        t->best = headline(t, &v);
        st = save(t, "best", &v, e);
    }
    if (!st && t->o->progress) {
        struct pnet_train_progress p = {
            .step = t->step, .steps = t->steps, .epoch = t->epoch, .evaluation = &v};
        t->o->progress(t->o->context, &p);
    }
    if (st) {
        pnet_evaluation_free(&v);
        return st;
    }
    pnet_evaluation_free(&t->result->validation);
    t->result->validation = v;
    return PNET_OK;
}

/* Runs one step of training and logs it. */
static enum pnet_status logged_step(struct trainer *t, double begin, struct pnet_error *e)
{
    struct pnet_step_log log;
    double step_begin = pnet_seconds();
    enum pnet_status st = pnet_step_log_init(&log, t->plan, e);
    if (st) return st;
    st = start_pipeline(t, e);
    if (!st) st = train_step(t, &log, e);
    log.step = t->step;
    log.epoch = t->epoch;
    log.seconds = t->seconds + pnet_seconds() - begin;
    log.points_per_s = (double)log.points / (pnet_seconds() - step_begin);
    if (!st) st = pnet_train_log_step(&t->log, t->plan, &log, e);
    struct pnet_train_progress p = {.step = t->step,
        .steps = t->steps,
        .epoch = t->epoch,
        .loss = log.loss,
        .points_per_s = log.points_per_s};
    pnet_step_log_free(&log);
    if (st) return st;
    t->result->steps++;
    if (t->o->progress) t->o->progress(t->o->context, &p);
    return PNET_OK;
}

/* Does the work that is due after a step: validation, then the checkpoint. A run that was interrupted before the end of its
   validation has saved without it, and validates when it resumes. */
static enum pnet_status finish_step(struct trainer *t, bool saved, struct pnet_error *e)
{
    const struct pnet_config *c = t->o->config;
    bool last = t->step == t->steps;
    enum pnet_status st;
    bool validation = t->val_loader && t->step > 0 && t->validated != t->step &&
                      (last || due(c->eval_every, t->step, t->steps_an_epoch));
    if (validation && !stopped(t)) {
        if ((st = validate(t, e)) && st != PNET_INTERRUPTED) return st;
        saved = false;
    }
    if (!saved && (last || stopped(t) || due(c->save_every, t->step, t->steps_an_epoch)) &&
        (st = save(t, "last", NULL, e)))
        return st;
    bool over = last && !(validation && t->validated != t->step);
    if (stopped(t) && !over)
        return pnet_error_set(e, PNET_INTERRUPTED,
            "interrupted at step %lld of %lld; continue with --resume", (long long)t->step,
            (long long)t->steps);
    return PNET_OK;
}

static enum pnet_status run(struct trainer *t, struct pnet_error *e)
{
    double begin = pnet_seconds();
    enum pnet_status st = finish_step(t, true, e);
    while (!st && t->step < t->steps) {
        st = logged_step(t, begin, e);
        if (!st ||
            st == PNET_INTERRUPTED) /* while it waited for its batch: after the step before */
            st = finish_step(t, !t->result->steps, e);
    }
    /* without validation the last weights count as the best */
    return st || t->val_loader ? st : save(t, "best", NULL, e);
}

static void close_trainer(struct trainer *t)
{
    stop_pipeline(t);
    if (t->runner) {
        t->result->peak_bytes = pnet_runner_memory(t->runner)->peak;
        t->result->planned_bytes = pnet_runner_planned(t->runner);
    }
    pnet_train_log_close(&t->log);
    if (t->loader) pnet_loader_free(t->loader);
    if (t->val_loader) pnet_loader_free(t->val_loader);
    pnet_updater_close(&t->updater);
    pnet_runner_free(t->runner);
    pnet_train_kernels_free(&t->kernels);
    pnet_checkpoint_free(t->last);
    pnet_held_free(&t->held);
    free(t->rates);
}

/* Begins to write to the folder. All reasons to refuse the training have been checked. */
static enum pnet_status begin_folder(struct trainer *t, struct pnet_error *e)
{
    const char *folder = t->folder.path;
    enum pnet_status st = pnet_run_folder_begin(&t->folder, t->o->resume, t->o->model_text, e);
    if (!st) st = pnet_train_log_open(&t->log, folder, t->step, t->validated, &t->seconds, e);
    if (!st) st = pnet_run_folder_write(&t->folder, "model.pnet", t->o->model_text, e);
    if (!st) st = pnet_run_folder_write(&t->folder, "config.yaml", t->o->config_text, e);
    return st ? st : pnet_train_kernels_write(&t->kernels, folder, e);
}

/* A training that could not begin leaves no files; one that is interrupted or fails later leaves all files. */
static void end_folder(struct trainer *t, enum pnet_status st)
{
    bool given = st && st != PNET_FAILED && st != PNET_INTERRUPTED;
    if (!t->kept && (given || (st == PNET_FAILED && !t->step)))
        pnet_run_folder_undo(&t->folder);
    else
        pnet_run_folder_close(&t->folder);
}

static enum pnet_status train_in_folder(struct trainer *t, struct pnet_error *e)
{
    enum pnet_status st = read_last(t, e);
    if (!st && t->last) st = pnet_train_compare(t->o, e);
    if (!st && t->o->find_ranges)
        st = t->o->find_ranges(t->o->context, t->last ? t->last->state.input_map : NULL, e);
    if (!st) st = open_trainer(t, e);
    if (!st && t->last) st = resume(t, e);
    if (!st) st = pnet_train_rates(t->o->config, t->plan, &t->rates, e);
    if (!st) st = pnet_held_take(&t->held, t->runner, t->rates, e);
    if (!st)
        st = pnet_updater_open_with(
            &t->updater, t->runner, &t->optim, t->rates, t->optimizer_step, e);
    if (!st) st = begin_folder(t, e);
    return st ? st : run(t, e);
}

/* Makes the pictures of a run that validates. */
static enum pnet_status make_pictures(
    struct trainer *t, struct pnet_train_pictures *p, struct pnet_error *e)
{
    if (!t->val_loader) return PNET_OK;
    stop_pipeline(t);
    enum pnet_status st = pnet_held_put(&t->held, t->runner, e);
    return st ? st : pnet_train_pictures_make(t->o, t->runner, p, e);
}

enum pnet_status pnet_train(
    const struct pnet_train_options *o, struct pnet_train_result *r, struct pnet_error *e)
{
    struct trainer t = {.o = o, .plan = o->plan, .result = r};
    *r = (struct pnet_train_result){0};
    double begin = pnet_seconds();
    enum pnet_status st = pnet_run_folder_open(o->folder, &t.folder, e);
    if (!st) st = train_in_folder(&t, e);
    struct pnet_train_pictures pictures = {.count = 0};
    struct pnet_error report;
    bool ended = st == PNET_OK || st == PNET_INTERRUPTED;
    enum pnet_status reported = ended ? make_pictures(&t, &pictures, &report) : PNET_OK;
    close_trainer(&t);
    r->seconds = pnet_seconds() - begin;
    if (ended && !reported)
        reported = pnet_train_report(o, r, &pictures, t.step - r->steps, &report);
    pnet_train_pictures_free(&pictures);
    end_folder(&t, st);
    if (!st && reported) {
        *e = report;
        st = reported;
    }
    return st;
}

void pnet_train_result_free(struct pnet_train_result *r)
{
    pnet_evaluation_free(&r->validation);
}
