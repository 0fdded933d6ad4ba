#include "compiler/cli/origin.h"

#include <stdio.h>

static void say(
    const char *path, const struct pnet_origin *was, const struct pnet_origin *now, const char *why)
{
    char there[PNET_ORIGIN_TEXT], here[PNET_ORIGIN_TEXT];
    fprintf(stderr, "pnetc: %s was trained with the origin %s; it runs with %s, as %s\n", path,
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
            fprintf(stderr,
                "pnetc: %s was trained with the origin %s and runs with it; the data set names %s, "
                "and --origin takes another\n",
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
        fprintf(stderr, "pnetc: %s was trained with the origin %s; this training has %s\n",
            w->from.path, pnet_origin_text(trained, there), pnet_origin_text(data, here));
}
