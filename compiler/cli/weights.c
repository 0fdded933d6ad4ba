#include "compiler/cli/weights.h"
#include "runtime/base/printable.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum pnet_status pnet_cli_weights_open(const char *path, struct weights *w, struct pnet_error *e)
{
    *w = (struct weights){0};
    enum pnet_status st = pnet_weights_open(path, &w->from, e);
    if (st) return st;
    const char *map = w->from.checkpoint ? w->from.checkpoint->state.input_map : "";
    if (*map)
        st = pnet_input_map_read("the input map of the checkpoint", map, strlen(map), &w->map, e);
    if (st) pnet_cli_weights_close(w);
    return st;
}

void pnet_cli_weights_close(struct weights *w)
{
    pnet_weights_close(&w->from);
    pnet_input_map_free(&w->map);
    free(w->params);
    *w = (struct weights){0};
}

static void say(const struct weights *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct weights *w, const char *format, ...)
{
    struct pnet_error text;
    va_list args;
    if (w->told) return;
    va_start(args, format);
    pnet_error_vset(&text, PNET_OK, format, args);
    va_end(args);
    pnet_cli_notice("%s", text.message);
}

/* Prints one sentence if the geometry may differ from that of the training. */
static void say_geometry(const struct weights *w)
{
    if (!w->from.trained.known)
        say(w,
            "%s does not record its mode and its version of the geometry's definitions; this "
            "program has version %d",
            w->from.path, (int)PNET_GEOMETRY_VERSION);
    else if (!w->from.trained.geometry)
        say(w,
            "%s does not record its version of the geometry's definitions; this program has "
            "version %d",
            w->from.path, (int)PNET_GEOMETRY_VERSION);
    else if (w->from.trained.geometry != PNET_GEOMETRY_VERSION)
        say(w,
            "%s was trained under version %d of the geometry's definitions, this program has "
            "version "
            "%d: results may differ from those of the training",
            w->from.path, w->from.trained.geometry, (int)PNET_GEOMETRY_VERSION);
}

static void choose_mode(
    const struct weights *w, const struct model_options *m, unsigned degrade, struct setting *s)
{
    char was[PNET_MODE_TEXT], now[PNET_MODE_TEXT];
    bool given = m->mode || m->degrade;
    s->mode_known = given || w->from.trained.known;
    s->degrade = given ? degrade : w->from.trained.degrade;
    if (w->from.trained.known && s->degrade != w->from.trained.degrade)
        say(w, "%s was trained in mode %s; it runs in mode %s, as the command line says",
            w->from.path, pnet_mode_text(w->from.trained.degrade, was),
            pnet_mode_text(s->degrade, now));
}

static void choose_precision(
    const struct weights *w, const struct model_options *m, struct setting *s)
{
    enum pnet_precision was = w->from.trained.precision;
    s->precision_known = m->precision || w->from.trained.known;
    s->precision = m->precision ? m->products : was;
    if (m->precision && w->from.trained.known && s->precision != was)
        say(w, "%s was trained in %s; it runs in %s, as the command line says", w->from.path,
            pnet_precision_names[was], m->precision);
    if (s->precision == PNET_FP32 || m->where.kind != PNET_CPU) return;
    say(w, "%s was trained in %s; the CPU computes in fp32", w->from.path,
        pnet_precision_names[was]);
    s->precision = PNET_FP32;
}

static void say_set(const struct weights *w, const char *set, const char *was, size_t length)
{
    char value[256], text[256];
    snprintf(value, sizeof value, "%.*s", (int)length, was);
    say(w, "%s was trained with %.*s=%s; it runs with %s, as the command line says", w->from.path,
        (int)strcspn(set, "="), set, pnet_printable(value, text, sizeof text), set);
}

/* The params of the user come last, because the last value counts. */
static enum pnet_status choose_sets(
    struct weights *w, const struct model_options *m, struct setting *s, struct pnet_error *e)
{
    char *rest;
    w->params = strdup(w->from.trained.params);
    if (!w->params) return pnet_error_memory(e);
    for (char *line = strtok_r(w->params, "\n", &rest); line && s->sets.count < 256;
         line = strtok_r(NULL, "\n", &rest))
        s->sets.items[s->sets.count++] = line;
    for (int i = 0; i < m->sets.count && s->sets.count < 256; i++) {
        const char *set = m->sets.items[i];
        size_t length = strcspn(set, "=");
        const char *was = pnet_params_find(w->from.trained.params, set, length);
        size_t n = was ? strcspn(was, "\n") : 0;
        if (was && set[length] &&
            (strlen(set + length + 1) != n || memcmp(set + length + 1, was, n) != 0))
            say_set(w, set, was, n);
        s->sets.items[s->sets.count++] = set;
    }
    return PNET_OK;
}

enum pnet_status pnet_cli_weights_setting(struct weights *w, const struct model_options *m,
    unsigned degrade, struct setting *s, struct pnet_error *e)
{
    *s = (struct setting){0};
    s->sets_known = w->from.trained.known || w->from.checkpoint;
    say_geometry(w);
    choose_mode(w, m, degrade, s);
    choose_precision(w, m, s);
    return choose_sets(w, m, s, e);
}

void pnet_cli_weights_start(const struct weights *w, unsigned degrade)
{
    char was[PNET_MODE_TEXT], now[PNET_MODE_TEXT];
    say_geometry(w);
    if (w->from.trained.known && w->from.trained.degrade != degrade)
        say(w, "%s was trained in mode %s; this training is in mode %s", w->from.path,
            pnet_mode_text(w->from.trained.degrade, was), pnet_mode_text(degrade, now));
}

/* Binds the algorithms of the checkpoint; *b is NULL if it has none that fit. */
static enum pnet_status bind_as_trained(const struct weights *w, const struct pnet_target *t,
    const struct pnet_plan *plan, struct pnet_bound **b, struct pnet_error *e)
{
    struct pnet_choices c;
    const char *text = w->from.checkpoint->state.kernels;
    enum pnet_status st =
        pnet_choices_parse("the kernels of the checkpoint", text, strlen(text), &c, e);
    if (st == PNET_BAD_DATA) {
        pnet_cli_notice("%s: ignored", e->message);
        return PNET_OK;
    }
    if (st) return st;
    if (c.count) st = pnet_choices_bind(&c, plan, t, b, e);
    pnet_choices_free(&c);
    return st;
}

enum pnet_status pnet_cli_weights_bind(const struct weights *w, const struct model_options *m,
    enum pnet_precision precision, const struct pnet_plan *plan, struct pnet_bound **b,
    struct pnet_error *e)
{
    struct pnet_target t = {.where = m->where, .precision = precision, .algo = m->sums};
    enum pnet_status st = PNET_OK;
    *b = NULL;
    if (w->from.checkpoint && !m->algo) st = bind_as_trained(w, &t, plan, b, e);
    return st || *b ? st : pnet_bound_new(plan, &t, b, e);
}
