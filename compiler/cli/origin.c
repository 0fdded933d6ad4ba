#include "compiler/cli/origin.h"
#include "runtime/data/doubt.h"

#include <stdio.h>
#include <string.h>

static void say(
    const char *path, const struct pnet_origin *was, const struct pnet_origin *now, const char *why)
{
    char there[PNET_ORIGIN_TEXT], here[PNET_ORIGIN_TEXT];
    pnet_cli_notice("%s was trained with the origin %s; it runs with %s, as %s", path,
        pnet_origin_text(was, there), pnet_origin_text(now, here), why);
}

enum pnet_status pnet_cli_origin(
    const char *option, const struct weights *w, struct pnet_origin *origin, struct pnet_error *e)
{
    const struct pnet_origin *trained = &w->map.origin;
    const char *path = w->from.path;
    if (option) {
        enum pnet_status st = pnet_origin_read(option, origin, e);
        if (!st && w->from.checkpoint && !w->told && !pnet_origin_same(origin, trained))
            say(path, trained, origin, "the command line says");
        return st;
    }
    if (trained->named) {
        char there[PNET_ORIGIN_TEXT], here[PNET_ORIGIN_TEXT];
        if (origin->named && !w->told && !pnet_origin_same(origin, trained))
            pnet_cli_notice(
                "%s was trained with the origin %s and runs with it; the data set names %s, "
                "and --origin takes another",
                path, pnet_origin_text(trained, there), pnet_origin_text(origin, here));
        *origin = *trained;
    } else if (origin->named && w->from.checkpoint && !w->told) {
        say(path, trained, origin, "the data set says");
    }
    return PNET_OK;
}

void pnet_cli_origin_start(const struct weights *w, const struct pnet_origin *data)
{
    const struct pnet_origin *trained = &w->map.origin;
    char there[PNET_ORIGIN_TEXT], here[PNET_ORIGIN_TEXT];
    if (trained->named && !pnet_origin_same(trained, data))
        pnet_cli_notice("%s was trained with the origin %s; this training has %s", w->from.path,
            pnet_origin_text(trained, there), pnet_origin_text(data, here));
}

void pnet_cli_say_unit(const struct weights *w, const struct pnet_dataset *data)
{
    char was[32], now[32];
    pnet_unit_print(&w->map.unit, was);
    pnet_unit_print(&data->unit, now);
    if (*was && !*now && !w->told)
        pnet_cli_notice(
            "%s was trained on clouds with `unit: %s`; %s names no unit, so its numbers are taken "
            "as metres",
            w->from.path, was, data->path);
}

void pnet_cli_doubt_offset(struct offset_doubt *d, const struct pnet_frame *trained,
    const struct pnet_frame *cloud, const char *path)
{
    bool recorded = trained->offset_known && !trained->offsets_differ;
    char text[PNET_DOUBT_TEXT];
    if (!d->needed || d->told) return;
    pnet_doubt_offset(recorded ? trained : &d->seen,
        recorded ? "the training" : "the clouds before", cloud, path, text);
    if (*text) pnet_cli_notice("%s", text);
    d->told = *text;
    pnet_frame_merge(&d->seen, cloud);
}

static enum pnet_status say_changed(
    const char *data, const char *key, const char *was, const char *now, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_USAGE,
        "%s: `%s` was %.200s in this run, and is %.200s now: the net would read other numbers, so "
        "the run cannot be resumed with it",
        data, key, *was ? was : "not set", *now ? now : "not set");
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

enum pnet_status pnet_cli_check_reading(const struct pnet_input_map *was,
    const struct pnet_input_map *now, const char *data, struct pnet_error *e)
{
    char unit[2][32], origin[2][PNET_ORIGIN_TEXT];
    pnet_unit_print(&was->unit, unit[0]);
    pnet_unit_print(&now->unit, unit[1]);
    if (strcmp(unit[0], unit[1]) != 0) return say_changed(data, "unit", unit[0], unit[1], e);
    if (!pnet_origin_same(&was->origin, &now->origin))
        return say_changed(data, "origin", pnet_origin_text(&was->origin, origin[0]),
            pnet_origin_text(&now->origin, origin[1]), e);
    if (strcmp(text_of(was->coordinates), text_of(now->coordinates)) != 0)
        return say_changed(
            data, "coordinates", text_of(was->coordinates), text_of(now->coordinates), e);
    bool same = was->column_count == now->column_count;
    for (int i = 0; i < was->column_count && same; i++)
        same = strcmp(was->columns[i], now->columns[i]) == 0;
    return same ? PNET_OK
                : pnet_error_set(e, PNET_USAGE,
                      "%s: `columns` has changed since this run began: the net would read other "
                      "numbers, so the run cannot be resumed with it",
                      data);
}
