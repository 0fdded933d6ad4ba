#include "runtime/train/train_pictures.h"

#include "runtime/data/loader.h"
#include "runtime/train/evaluate.h"

#include <stdlib.h>
#include <string.h>

static enum pnet_status open_loader(
    const struct pnet_train_options *o, struct pnet_loader **l, struct pnet_error *e)
{
    const struct pnet_loader_options lo = {.data = o->data,
        .split = PNET_VAL,
        .inputs = o->plan->inputs,
        .input_count = o->plan->input_count,
        .map = &o->config->inputs,
        .one_frame = pnet_plan_one_frame(o->plan),
        .batch_size = 1,
        .skip_empty = o->config->skip_empty,
        .seed = o->config->seed};
    return pnet_loader_new(&lo, l, e);
}

/* The name of the entry's file, the class of the entry, and what the losses and metrics say of it. */
static char *caption(
    const struct pnet_train_options *o, int64_t index, const struct pnet_evaluation *v)
{
    const struct pnet_entry *entry = &o->data->entries[PNET_VAL][index];
    const char *slash = strrchr(entry->cloud, '/');
    char text[1200];
    int n = snprintf(text, 600, "%.400s", slash ? slash + 1 : entry->cloud);
    if (entry->pair && entry->pair->view > 0)
        n += snprintf(text + n, 100, ", view %lld", (long long)entry->pair->view);
    if (entry->label >= 0) n += snprintf(text + n, 200, ", %.150s", o->data->classes[entry->label]);
    for (int i = 0; i < v->count && n < 1000; i++)
        if (v->lines[i].metric)
            n += snprintf(text + n, 200, ", %.150s %.4g", v->lines[i].name, v->lines[i].value);
    return strdup(text);
}

/* Copies what the batch has of the first (partial) or second (full) cloud of the model. */
static enum pnet_status copy_input(const struct pnet_plan *p, const struct pnet_batch *b, int which,
    struct pnet_report_cloud *to, struct pnet_error *e)
{
    for (int i = 0; i < p->input_count; i++) {
        if (pnet_input_is_pose(&p->inputs[i]) || which--) continue;
        size_t bytes = (size_t)b->inputs[i].rows * 3 * sizeof(float);
        float *xyz = malloc(bytes + 1);
        if (!xyz) return pnet_error_memory(e);
        memcpy(xyz, b->inputs[i].xyz, bytes);
        *to = (struct pnet_report_cloud){xyz, b->inputs[i].rows};
        return PNET_OK;
    }
    return PNET_OK;
}

static enum pnet_status describe(const struct pnet_train_options *o, struct pnet_runner *s,
    int64_t index, struct pnet_report_sample *to, struct pnet_error *e)
{
    struct pnet_tally t;
    struct pnet_evaluation v;
    enum pnet_status st = pnet_tally_init(&t, o->plan, e);
    if (st) return st;
    pnet_tally_add_metrics(&t, s);
    st = pnet_tally_finish(&t, &v, e);
    pnet_tally_free(&t);
    if (st) return st;
    to->name = caption(o, index, &v);
    pnet_evaluation_free(&v);
    return to->name ? PNET_OK : pnet_error_memory(e);
}

/* Adds the next sample of the loader, if the epoch has one. */
static enum pnet_status add_sample(const struct pnet_train_options *o, struct pnet_runner *s,
    struct pnet_loader *l, struct pnet_train_pictures *p, struct pnet_error *e)
{
    struct pnet_report_sample *to = &p->samples[p->count];
    struct pnet_batch *b;
    uint32_t epoch;
    int64_t next;
    void *predicted = NULL;
    enum pnet_status st = pnet_loader_next(l, &b, e);
    if (st || !b) return st;
    pnet_loader_position(l, &epoch, &next);
    p->count++;
    *to = (struct pnet_report_sample){.name = NULL};
    st = copy_input(o->plan, b, 0, &to->clouds[PNET_REPORT_PARTIAL], e);
    if (!st) st = copy_input(o->plan, b, 1, &to->clouds[PNET_REPORT_TRUTH], e);
    if (!st) st = pnet_runner_prepare(s, 0, b, e);
    pnet_batch_free(b);
    if (!st) st = pnet_runner_forward(s, 0, false, 0, e);
    if (!st) st = pnet_runner_wait(s, e);
    struct pnet_report_cloud *prediction = &to->clouds[PNET_REPORT_PREDICTION];
    if (!st)
        st = pnet_runner_copy_tensor(s, 0, o->plan->prediction, &predicted, &prediction->rows, e);
    prediction->xyz = predicted;
    if (!st) st = describe(o, s, next - 1, to, e);
    return st;
}

enum pnet_status pnet_train_pictures_make(const struct pnet_train_options *o, struct pnet_runner *s,
    struct pnet_train_pictures *p, struct pnet_error *e)
{
    int64_t samples = o->data->counts[PNET_VAL];
    struct pnet_loader *l;
    *p = (struct pnet_train_pictures){.count = 0};
    if (o->data->task != PNET_COMPLETION || o->plan->prediction < 0 || !samples) return PNET_OK;
    enum pnet_status st = open_loader(o, &l, e);
    if (st) return st;
    int64_t count = samples < PNET_TRAIN_PICTURES ? samples : PNET_TRAIN_PICTURES;
    for (int64_t i = 0; i < count && !st; i++) {
        pnet_loader_start(l, 0, i * samples / count);
        st = add_sample(o, s, l, p, e);
    }
    pnet_loader_free(l);
    return st;
}

void pnet_train_pictures_free(struct pnet_train_pictures *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free((char *)p->samples[i].name);
        for (int k = 0; k < PNET_REPORT_CLOUDS; k++) free((float *)p->samples[i].clouds[k].xyz);
    }
    *p = (struct pnet_train_pictures){.count = 0};
}
