/* The origin of a set: the place, in file coordinates, from which the coordinates that a model reads are counted. Without one
   each cloud has its own, the offset that its reader chose (runtime/io/cloud.h): one place has different coordinates in two
   files that were cut from one scan, and lies elsewhere in the cells of grids. */
#ifndef PNET_RUNTIME_ORIGIN_H
#define PNET_RUNTIME_ORIGIN_H

#include "runtime/base/error.h"
#include "runtime/base/yaml.h"

#include <stdbool.h>

/* Zeroed: none is named, and each cloud keeps its own. */
struct pnet_origin {
    bool named;
    double at[3]; /* metres */
};

enum { PNET_ORIGIN_TEXT = 96 };

/* Reads `[x, y, z]`; errors stick to `y`. */
void pnet_origin_parse(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_origin *origin);
/* Reads "X,Y,Z", or "file", which names none. PNET_USAGE. */
enum pnet_status pnet_origin_read(
    const char *text, struct pnet_origin *origin, struct pnet_error *e);
/* Writes "X, Y, Z" in full, or "that of each file". Returns `text`. */
const char *pnet_origin_text(const struct pnet_origin *origin, char text[PNET_ORIGIN_TEXT]);
bool pnet_origin_same(const struct pnet_origin *a, const struct pnet_origin *b);
/* Returns the origin for pnet_cloud_hints, NULL where none is named; it lives as long as `origin`. */
static inline const double *pnet_origin_hint(const struct pnet_origin *origin)
{
    return origin->named ? origin->at : NULL;
}

#endif
