/* Parts of points that several point formats of LAZ code alike. */
#ifndef PNET_RUNTIME_IO_LAZ_ITEM_H
#define PNET_RUNTIME_IO_LAZ_ITEM_H

#include "runtime/io/laz_coder.h"

#include <stddef.h>
#include <string.h>

static inline uint32_t pnet_laz_load(const uint8_t *at, size_t size)
{
    uint32_t v = 0;
    memcpy(&v, at, size);
    return v;
}

static inline void pnet_laz_store(uint8_t *at, uint32_t v, size_t size)
{
    memcpy(at, &v, size);
}

/* The median of about the last five values; all 0 in the beginning. A new value replaces the highest or the lowest one by
   turns. */
struct pnet_laz_median {
    int32_t sorted[5];
    bool low; /* the lowest one is replaced next */
};
void pnet_laz_median_add(struct pnet_laz_median *m, int32_t v);

/* GPS times: up to four sequences, each with a step that is expected to repeat. */
struct pnet_laz_times {
    unsigned current, newest; /* sequences */
    uint64_t time[4];         /* the bits of doubles */
    uint32_t step[4];
    unsigned extremes[4]; /* times in a row that were far from the step */
    struct pnet_laz_model no_step, multiple;
    struct pnet_laz_integer difference;
};
void pnet_laz_times_begin(struct pnet_laz_times *t, uint64_t first);
/* Returns the next time. `changed`: it differs from the last one, as the layers of formats 6 to 10 say beforehand. */
uint64_t pnet_laz_time(struct pnet_laz_decoder *d, struct pnet_laz_times *t, bool changed);

/* Red, green and blue as six bytes, low ones first: RGB12 (version 2) and RGB14. */
struct pnet_laz_colour {
    struct pnet_laz_model used, difference[6];
};
void pnet_laz_colour(
    struct pnet_laz_decoder *d, struct pnet_laz_colour *c, const uint8_t last[6], uint8_t next[6]);

#endif
