/* Points of formats 0 to 3, as LASzip and laz-perf define the items POINT10, GPSTIME11, RGB12 and BYTE of version 2. */
#include "runtime/io/laz_item.h"
#include "runtime/io/laz_point.h"
#include "runtime/io/laz_record.h"

#include <stdlib.h>

/* Of what has changed. */
enum { SOURCE_CHANGED = 1, USER_CHANGED = 2, ANGLE_CHANGED = 4, CLASS_CHANGED = 8 };
enum { INTENSITY_CHANGED = 16, BITS_CHANGED = 32 };

struct pnet_laz_pointwise {
    bool timed, coloured;
    size_t extra;
    uint16_t intensity[16]; /* the last one for each context of returns */
    struct pnet_laz_median x[16], y[16];
    uint32_t z[8]; /* the last one for each distance of the return to the last return */
    struct pnet_laz_model changed, bits[256], class[256], angle[2], user[256];
    struct pnet_laz_integer intensity_of, source, dx, dy, z_of;
    struct pnet_laz_times times;
    struct pnet_laz_colour colour;
    struct pnet_laz_model bytes[]; /* `extra` */
};

/* Contexts by number of returns, then return number, of well-formed returns and of others. */
static const uint8_t return_context[8][8] = {{15, 14, 13, 12, 11, 10, 9, 8},
    {14, 0, 1, 3, 6, 10, 10, 9}, {13, 1, 2, 4, 7, 11, 11, 10}, {12, 3, 4, 5, 8, 12, 12, 11},
    {11, 6, 7, 8, 9, 13, 13, 12}, {10, 10, 11, 12, 13, 14, 14, 13}, {9, 10, 11, 12, 13, 14, 15, 14},
    {8, 9, 10, 11, 12, 13, 14, 15}};

struct pnet_laz_pointwise *pnet_laz_pointwise_new(const struct pnet_laz_layout *l)
{
    struct pnet_laz_pointwise *p = calloc(1, sizeof *p + l->extra * sizeof *p->bytes);
    if (!p) return NULL;
    p->timed = l->format & 1;
    p->coloured = l->format >= 2;
    p->extra = l->extra;
    return p;
}

void pnet_laz_pointwise_begin(struct pnet_laz_pointwise *p, const uint8_t *first)
{
    memset(p->intensity, 0, sizeof p->intensity);
    memset(p->x, 0, sizeof p->x);
    memset(p->y, 0, sizeof p->y);
    memset(p->z, 0, sizeof p->z);
    uint64_t time = 0;
    if (p->timed) memcpy(&time, first + POINT_SIZE, sizeof time);
    pnet_laz_times_begin(&p->times, time);
}

static void decode_attributes(struct pnet_laz_pointwise *p, struct pnet_laz_decoder *d,
    unsigned changed, unsigned context, uint8_t *r)
{
    uint16_t *intensity = &p->intensity[context];
    if (changed & INTENSITY_CHANGED)
        *intensity = (uint16_t)pnet_laz_integer(
            d, &p->intensity_of, 16, context < 3 ? context : 3, *intensity);
    pnet_laz_store(r + INTENSITY, *intensity, 2);
    if (changed & CLASS_CHANGED) decode_byte(d, p->class, r + CLASS);
    if (changed & ANGLE_CHANGED)
        r[ANGLE] += (uint8_t)pnet_laz_symbol(d, &p->angle[r[BITS] >> 6 & 1], 256);
    if (changed & USER_CHANGED) decode_byte(d, p->user, r + USER);
    if (changed & SOURCE_CHANGED)
        pnet_laz_store(
            r + SOURCE, pnet_laz_integer(d, &p->source, 16, 0, pnet_laz_load(r + SOURCE, 2)), 2);
}

static void decode_point(struct pnet_laz_pointwise *p, struct pnet_laz_decoder *d, uint8_t *r)
{
    unsigned changed = pnet_laz_symbol(d, &p->changed, 64);
    if (changed & BITS_CHANGED) decode_byte(d, p->bits, r + BITS);
    unsigned back = r[BITS] & 7, returns = r[BITS] >> 3 & 7, only = returns == 1;
    unsigned context = return_context[returns][back];
    decode_attributes(p, d, changed, context, r);

    struct pnet_laz_median *x = &p->x[context], *y = &p->y[context];
    uint32_t by = pnet_laz_integer(d, &p->dx, 32, only, (uint32_t)x->sorted[2]);
    pnet_laz_median_add(x, (int32_t)by);
    pnet_laz_store(r + X, pnet_laz_load(r + X, 4) + by, 4);

    unsigned k = p->dx.k < 20 ? p->dx.k & ~1U : 20;
    by = pnet_laz_integer(d, &p->dy, 32, only + k, (uint32_t)y->sorted[2]);
    pnet_laz_median_add(y, (int32_t)by);
    pnet_laz_store(r + Y, pnet_laz_load(r + Y, 4) + by, 4);

    k = (p->dx.k + p->dy.k) / 2;
    k = k < 18 ? k & ~1U : 18;
    uint32_t *z = &p->z[returns > back ? returns - back : back - returns];
    *z = pnet_laz_integer(d, &p->z_of, 32, only + k, *z);
    pnet_laz_store(r + Z, *z, 4);
}

void pnet_laz_pointwise_next(
    struct pnet_laz_pointwise *p, struct pnet_laz_decoder *d, const uint8_t *last, uint8_t *record)
{
    uint8_t *r = record + POINT_SIZE;
    const uint8_t *l = last + POINT_SIZE;
    memcpy(record, last, POINT_SIZE);
    decode_point(p, d, record);
    if (p->timed) {
        uint64_t time = pnet_laz_time(d, &p->times, false);
        memcpy(r, &time, sizeof time);
        r += sizeof time;
        l += sizeof time;
    }
    if (p->coloured) {
        pnet_laz_colour(d, &p->colour, l, r);
        r += 6;
        l += 6;
    }
    for (size_t i = 0; i < p->extra; i++)
        r[i] = (uint8_t)(l[i] + pnet_laz_symbol(d, &p->bytes[i], 256));
}
