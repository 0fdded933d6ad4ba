#include "runtime/train/train_report.h"

#include "kernels/geometry.h"
#include "runtime/run/choices.h"
#include "runtime/base/file.h"
#include "runtime/plan/mode.h"
#include "runtime/train/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the report ---- */

static void date_text(char text[32])
{
    time_t now = time(NULL);
    struct tm utc;
    *text = '\0';
    if (gmtime_r(&now, &utc)) strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &utc);
}

static const char *or_nothing(const char *text)
{
    return text ? text : "";
}

/* Writes both peaks of memory; "" if no batch was run. */
static void memory_text(const struct pnet_train_result *r, char text[128])
{
    char taken[32], planned[32];
    *text = '\0';
    if (r->planned_bytes)
        snprintf(text, 128, "%s; planned for the largest batch: %s",
            pnet_bytes_text(r->peak_bytes, taken), pnet_bytes_text(r->planned_bytes, planned));
}

enum pnet_status pnet_train_report(const struct pnet_train_options *o,
    const struct pnet_train_result *r, const struct pnet_train_pictures *p, int64_t begun_at,
    struct pnet_error *e)
{
    const struct pnet_plan *plan = o->plan;
    char date[32], mode[PNET_MODE_TEXT], data[4400], parameters[32], version[64], resumed[32] = "";
    char memory[128];
    struct pnet_device_info device;
    enum pnet_status st = pnet_device_describe(o->target.where, &device, e);
    if (st) return st;
    date_text(date);
    memory_text(r, memory);
    pnet_mode_text(plan->degrade, mode);
    snprintf(data, sizeof data,
        "%.4000s: %s, %lld clouds to train on, %lld to validate, %d classes", o->data->path,
        pnet_task_name(o->data->task), (long long)o->data->counts[PNET_TRAIN],
        (long long)o->data->counts[PNET_VAL], o->data->class_count);
    snprintf(parameters, sizeof parameters, "%lld", (long long)plan->parameter_count);
    snprintf(version, sizeof version, "pnet %s, geometry version %d", PNET_VERSION,
        (int)PNET_GEOMETRY_VERSION);
    if (begun_at) snprintf(resumed, sizeof resumed, "step %lld", (long long)begun_at);
    const struct pnet_report_fact facts[] = {{"data set", data}, {"mode", mode},
        {"precision", pnet_precision_names[o->target.precision]}, {"parameters", parameters},
        {"params", o->params}, {"device", device.name}, {"peak memory", memory},
        {"version", version}, {"date", date}, {"command", or_nothing(o->command)},
        {"options that override the config", or_nothing(o->overrides)}, {"resumed at", resumed}};
    struct pnet_report_info info = {.facts = facts,
        .fact_count = sizeof facts / sizeof *facts,
        .classes = o->data->classes,
        .class_count = o->data->class_count,
        .samples = p->samples,
        .sample_count = p->count};
    return pnet_report_write(o->folder, &info, e);
}

/* ---- the config of a run that resumes ---- */

struct change {
    const struct pnet_train_options *o;
    enum pnet_status status;
    struct pnet_error *error;
};

static void note_change(void *context, const char *key, const char *was, const char *now)
{
    struct change *c = context;
    enum pnet_on_resume then = pnet_config_on_resume(key);
    const char *none = "not given";
    char text[600];
    was = *was ? was : none;
    now = *now ? now : none;
    if (then == PNET_RESUME_REFUSED && !c->status)
        c->status = pnet_error_set(c->error, PNET_USAGE,
            "%s was begun with another %s, which a resumed training cannot change: %.200s before, "
            "%.200s now",
            c->o->folder, key, was, now);
    if (then != PNET_RESUME_TOLD || !c->o->warn) return;
    snprintf(text, sizeof text, "%.100s resumes, and %s has changed: %.200s before, %.200s now",
        c->o->folder, key, was, now);
    c->o->warn(c->o->context, text);
}

enum pnet_status pnet_train_compare(const struct pnet_train_options *o, struct pnet_error *e)
{
    char path[4200];
    struct pnet_bytes b;
    snprintf(path, sizeof path, "%.4095s/config.yaml", o->folder);
    if (access(path, F_OK) != 0)
        return PNET_OK; /* earlier runs of `pnetc compare` had no config.yaml */
    enum pnet_status st = pnet_bytes_read_own(path, &b, e);
    if (st) return st;
    char *text = strndup((const char *)b.data, b.size);
    pnet_bytes_free(&b);
    if (!text) return pnet_error_memory(e);
    struct change c = {.o = o, .error = e};
    st = pnet_config_compare(path, text, o->config_text, note_change, &c, e);
    free(text);
    return st ? st : c.status;
}
