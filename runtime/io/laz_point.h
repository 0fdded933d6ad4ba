/* Decoders of the points of one chunk of LAZ: the first point stands as it is, each other one is coded by what it differs from
   points before it. Records are those of plain LAS. */
#ifndef PNET_RUNTIME_IO_LAZ_POINT_H
#define PNET_RUNTIME_IO_LAZ_POINT_H

#include "runtime/io/laz_coder.h"

#include <stddef.h>
#include <stdint.h>

struct pnet_laz_layout {
    unsigned format;      /* 0 to 3, 6 to 8 */
    unsigned version;     /* of the items: 1 or 2 for formats 0 to 3, 3 or 4 for 6 to 8 */
    size_t record, extra; /* bytes a point, the extra ones among them */
};

/* Formats 0 to 3, version 2: all items of a point after each other in one stream. */
struct pnet_laz_pointwise;
/* NULL: no memory. The caller frees it by free(). */
struct pnet_laz_pointwise *pnet_laz_pointwise_new(const struct pnet_laz_layout *l);
/* Begins a chunk at its first point. */
void pnet_laz_pointwise_begin(struct pnet_laz_pointwise *p, const uint8_t *first);
/* Writes the record after `last`. */
void pnet_laz_pointwise_next(
    struct pnet_laz_pointwise *p, struct pnet_laz_decoder *d, const uint8_t *last, uint8_t *record);

/* The same of version 1. */
struct pnet_laz_old;
struct pnet_laz_old *pnet_laz_old_new(const struct pnet_laz_layout *l);
void pnet_laz_old_begin(struct pnet_laz_old *p, const uint8_t *first);
void pnet_laz_old_next(
    struct pnet_laz_old *p, struct pnet_laz_decoder *d, const uint8_t *last, uint8_t *record);

/* Formats 6 to 8: a stream, or layer, for each group of fields, and for each extra byte. */
struct pnet_laz_layered;
struct pnet_laz_layered *pnet_laz_layered_new(const struct pnet_laz_layout *l);
/* Begins a chunk of `size` bytes: its first point, the number of points, the sizes of the layers, the layers. Returns false, with
   what is wrong, if it does not hold these, or fewer than `points` points. */
bool pnet_laz_layered_begin(struct pnet_laz_layered *p, struct pnet_laz_state *state,
    const uint8_t *chunk, size_t size, uint64_t points, const char **wrong);
/* Writes the next record, after the first one. */
void pnet_laz_layered_next(struct pnet_laz_layered *p, uint8_t *record);

#endif
