#include "runtime/io/cloud_doubts.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"
#include "runtime/io/column.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void pnet_doubt_width(const struct pnet_cloud *c, int names, char text[PNET_DOUBT])
{
    char name[16];
    int nameless = 0;
    for (; nameless < c->field_count; nameless++) {
        snprintf(name, sizeof name, "c%d", nameless + 3);
        if (strcmp(c->fields[nameless].name, name) != 0) break;
    }
    if (nameless + 3 > PNET_COLUMNS_LIKELY && names < nameless + 3)
        snprintf(text, PNET_DOUBT,
            "%d columns without names: if these are descriptors, the first three are no "
            "coordinates",
            nameless + 3);
}

void pnet_batch_doubt_begin(struct pnet_batch_doubt *d, const struct pnet_cloud *c, int names)
{
    bool nameless = c->field_count && strcmp(c->fields[0].name, "c3") == 0;
    *d = (struct pnet_batch_doubt){
        .likely = names <= 3 && !(c->metres[0] > 0) && nameless, .whole = true};
}

/* Where the first column is 0 throughout, the columns after it must be whole numbers too, as indices of voxels are. */
void pnet_batch_doubt_add(struct pnet_batch_doubt *d, const struct pnet_cloud *c)
{
    for (int64_t i = 0; i < c->rows && d->likely; i++) {
        double x = pnet_cloud_at(c, i, 0);
        d->likely = x == d->last || x == d->last + 1;
        d->last = x;
        for (int a = 1; a < 3; a++)
            d->whole &= pnet_cloud_at(c, i, a) == rint(pnet_cloud_at(c, i, a));
        double after = pnet_field_get(&c->fields[0], i);
        d->whole &= after == rint(after);
    }
}

void pnet_batch_doubt_end(const struct pnet_batch_doubt *d, int64_t rows, char text[PNET_DOUBT])
{
    if (!d->likely || 4 * (d->last + 1) > (double)rows || (d->last == 0 && !d->whole)) return;
    pnet_number_format(text, PNET_DOUBT,
        "its first column, from 0 to %g, looks like the index of a batch, not like x: leave it out",
        d->last);
}

void pnet_doubt_batch(const struct pnet_cloud *c, int names, char text[PNET_DOUBT])
{
    struct pnet_batch_doubt d;
    pnet_batch_doubt_begin(&d, c, names);
    pnet_batch_doubt_add(&d, c);
    pnet_batch_doubt_end(&d, c->rows, text);
}

/* What float32 takes from the coordinates that models read is told beyond this. */
static const double told_loss_m = 1e-3;

enum { PLACES_TEXT = 240 };

/* Writes what is doubtful about the places of points, or "". An offset that the cloud chose loses the places of strays alone; an
   `origin` that was named may be far from all points. */
static void doubt_places(
    const struct pnet_cloud *c, double lost, bool origin, char text[PLACES_TEXT])
{
    const struct pnet_strays *s = &c->strays;
    text[0] = '\0';
    if (s->count == 1)
        pnet_number_format(text, PLACES_TEXT,
            "row %" PRId64 " lies %.3g km away from the other points", s->row, s->distance / 1000);
    else if (s->count)
        pnet_number_format(text, PLACES_TEXT,
            "row %" PRId64 " (%.3g km) and %" PRId64 " more lie far away from the other points",
            s->row, s->distance / 1000, s->count - 1);
    size_t n = strlen(text);
    if (lost > told_loss_m && (origin || !s->count))
        pnet_number_format(text + n, PLACES_TEXT - n,
            "%smodels read its coordinates less (%.10g, %.10g, %.10g) in float32, off by up to "
            "%.2g m",
            n ? "; " : "", c->offset[0], c->offset[1], c->offset[2], lost);
}

void pnet_cloud_doubts(const struct pnet_cloud *c, const struct pnet_cloud_hints *hints,
    const char *path, const char *doubt, char warning[256])
{
    double lost = *doubt ? 0 : pnet_cloud_loss(c);
    pnet_cloud_doubts_of(c, lost, hints, path, doubt, warning);
}

void pnet_cloud_doubts_of(const struct pnet_cloud *c, double lost,
    const struct pnet_cloud_hints *hints, const char *path, const char *doubt, char warning[256])
{
    char dropped[100] = "", places[PLACES_TEXT] = "", units[256], name[512];
    path = pnet_printable(path, name, sizeof name);
    pnet_unit_doubt(c->unit, &hints->unit, c->metres, units);
    if (c->rows < c->file_rows)
        snprintf(dropped, sizeof dropped,
            "dropped %" PRId64 " of %" PRId64 " points: not finite, or beyond 1e18 m",
            c->file_rows - c->rows, c->file_rows);
    if (!*doubt)
        doubt_places(
            c, lost, hints->origin, places); /* else the numbers may be no coordinates at all */
    const char *rounded =
        c->rounded ? "integers beyond 2^53 are rounded in columns with gaps or fractions" : "";
    const char *parts[] = {dropped, places, units, rounded, doubt};
    int name_most = *places || *units || c->rounded || *doubt ? 100 : 150;
    warning[0] = '\0';
    for (int i = 0; i < 5; i++) {
        size_t n = strlen(warning);
        if (!*parts[i]) continue;
        if (n)
            snprintf(warning + n, 256 - n, "; %s", parts[i]);
        else
            snprintf(warning, 256, "%.*s: %s", name_most, path, parts[i]);
    }
}
