#include "runtime/data/origin.h"
#include "runtime/base/number.h"
#include "runtime/io/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double farthest_m = 1e9;

void pnet_origin_parse(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_origin *origin)
{
    *origin = (struct pnet_origin){.named = true};
    if (n->kind != PNET_YAML_LIST || n->count != 3) {
        pnet_yaml_fail(y, n, "origin: expected three coordinates in metres, [x, y, z]");
        return;
    }
    int a = 0;
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next)
        origin->at[a++] = pnet_yaml_real(y, c, -farthest_m, farthest_m, 0);
}

enum pnet_status pnet_origin_read(
    const char *text, struct pnet_origin *origin, struct pnet_error *e)
{
    const char *at = text;
    *origin = (struct pnet_origin){.named = false};
    if (strcmp(text, "file") == 0) return PNET_OK;
    origin->named = true;
    for (int a = 0; a < 3; a++) {
        char *end;
        double v = pnet_number_read(at, &end);
        bool good = end > at && fabs(v) <= farthest_m && *end == (a < 2 ? ',' : '\0');
        if (!good)
            return pnet_error_set(e, PNET_USAGE,
                "--origin takes three coordinates in metres, such as 154000,463000,0, or file, not "
                "'%.100s'",
                text);
        origin->at[a] = v;
        at = end + 1;
    }
    return PNET_OK;
}

const char *pnet_origin_text(const struct pnet_origin *origin, char text[PNET_ORIGIN_TEXT])
{
    const double *p = origin->at;
    if (!origin->named) return "that of each file";
    for (int a = 0, n = 0; a < 3; a++) {
        if (a) n += sprintf(text + n, ", ");
        n += pnet_number_print(text + n, (size_t)(PNET_ORIGIN_TEXT - n), p[a], false);
    }
    return text;
}

bool pnet_origin_same(const struct pnet_origin *a, const struct pnet_origin *b)
{
    bool same = a->named == b->named;
    for (int k = 0; k < 3 && same && a->named; k++) same = a->at[k] == b->at[k];
    return same;
}
