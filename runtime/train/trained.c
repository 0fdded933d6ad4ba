#include "runtime/train/trained.h"

#include "kernels/geometry.h"
#include "runtime/run/choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char mode_key[] = "pnet.mode", precision_key[] = "pnet.precision",
                  geometry_key[] = "pnet.geometry", params_key[] = "pnet.params",
                  version_key[] = "pnet.version";

void pnet_trained_record(unsigned degrade, enum pnet_precision precision, const char *params,
    struct pnet_trained_record *r)
{
    pnet_mode_text(degrade, r->mode);
    snprintf(r->geometry, sizeof r->geometry, "%d", (int)PNET_GEOMETRY_VERSION);
    const struct pnet_metadata items[PNET_TRAINED_KEYS] = {{version_key, PNET_VERSION},
        {mode_key, r->mode}, {precision_key, pnet_precision_names[precision]},
        {geometry_key, r->geometry}, {params_key, params}};
    memcpy(r->items, items, sizeof items);
}

static enum pnet_status refuse(
    const char *name, const char *key, const char *value, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: the metadata \"%s\" has a value that pnet does not write: '%.100s'", name, key, value);
}

enum pnet_status pnet_trained_read(const struct pnet_safetensors *f, const char *name,
    struct pnet_trained *t, struct pnet_error *e)
{
    const char *mode = pnet_safetensors_metadata(f, mode_key),
               *precision = pnet_safetensors_metadata(f, precision_key),
               *geometry = pnet_safetensors_metadata(f, geometry_key),
               *params = pnet_safetensors_metadata(f, params_key),
               *version = pnet_safetensors_metadata(f, version_key);
    *t = (struct pnet_trained){.known = mode != NULL, .params = "", .version = ""};
    if (!mode) return PNET_OK;
    if (!pnet_mode_parse(mode, &t->degrade)) return refuse(name, mode_key, mode, e);
    if (precision) {
        int i = 0;
        while (pnet_precision_names[i] && strcmp(pnet_precision_names[i], precision) != 0) i++;
        if (!pnet_precision_names[i]) return refuse(name, precision_key, precision, e);
        t->precision = (enum pnet_precision)i;
    }
    if (geometry) {
        char *end;
        long number = strtol(geometry, &end, 10);
        if (end == geometry || *end || number < 1 || number > 1000000)
            return refuse(name, geometry_key, geometry, e);
        t->geometry = (int)number;
    }
    if (params) t->params = params;
    if (version) t->version = version;
    return PNET_OK;
}

const char *pnet_params_find(const char *params, const char *name, size_t length)
{
    const char *found = NULL;
    for (const char *line = params; *line;) {
        if (strncmp(line, name, length) == 0 && line[length] == '=') found = line + length + 1;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return found;
}

/* Tells whether every name of `a` has the same value in `b`. */
static bool within(const char *a, const char *b)
{
    for (const char *line = a; *line;) {
        size_t length = strcspn(line, "=\n");
        const char *x = pnet_params_find(a, line, length), *y = pnet_params_find(b, line, length);
        if (x) {
            size_t n = strcspn(x, "\n");
            if (!y || strcspn(y, "\n") != n || memcmp(x, y, n) != 0) return false;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return true;
}

bool pnet_params_equal(const char *a, const char *b)
{
    return within(a, b) && within(b, a);
}
