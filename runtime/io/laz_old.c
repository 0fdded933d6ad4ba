/* Points of formats 0 to 3, as LASzip defines the items POINT10, GPSTIME11, RGB12 and BYTE of version 1. */
#include "runtime/io/laz_item.h"
#include "runtime/io/laz_point.h"
#include "runtime/io/laz_record.h"

#include <stdlib.h>

struct pnet_laz_old {
    bool timed, coloured;
    size_t extra;
    int32_t x[3], y[3]; /* the last differences */
    unsigned oldest;
    struct pnet_laz_model changed, bits[256], class[256], user[256];
    struct pnet_laz_integer dx, dy, z, intensity, angle, source;
    uint64_t time;
    uint32_t step;
    unsigned extremes;
    struct pnet_laz_model no_step, multiple;
    struct pnet_laz_integer difference;
    struct pnet_laz_model used;
    struct pnet_laz_integer colour;
    struct pnet_laz_integer byte;
    struct pnet_laz_model bytes[]; /* `extra` contexts */
};

struct pnet_laz_old *pnet_laz_old_new(const struct pnet_laz_layout *l)
{
    struct pnet_laz_old *p = calloc(1, sizeof *p + l->extra * sizeof *p->bytes);
    if (!p) return NULL;
    p->timed = l->format & 1;
    p->coloured = l->format >= 2;
    p->extra = l->extra;
    return p;
}

void pnet_laz_old_begin(struct pnet_laz_old *p, const uint8_t *first)
{
    memset(p->x, 0, sizeof p->x);
    memset(p->y, 0, sizeof p->y);
    p->oldest = 0;
    p->step = 0;
    p->extremes = 0;
    if (p->timed) memcpy(&p->time, first + POINT_SIZE, sizeof p->time);
}

static uint32_t median(const int32_t v[3])
{
    int32_t low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0];
    return (uint32_t)(v[2] < low ? low : v[2] > high ? high : v[2]);
}

/* Decodes the integer at `at` with its last value as the prediction. */
static void decode_integer(struct pnet_laz_decoder *d, struct pnet_laz_integer *i, unsigned bits,
    unsigned context, uint8_t *at)
{
    pnet_laz_store(
        at, pnet_laz_integer(d, i, bits, context, pnet_laz_load(at, bits / 8)), bits / 8);
}

static void decode_point(struct pnet_laz_old *p, struct pnet_laz_decoder *d, uint8_t *r)
{
    uint32_t x = pnet_laz_integer(d, &p->dx, 32, 0, median(p->x));
    pnet_laz_store(r + X, pnet_laz_load(r + X, 4) + x, 4);
    unsigned k = p->dx.k;
    uint32_t y = pnet_laz_integer(d, &p->dy, 32, k < 19 ? k : 19, median(p->y));
    pnet_laz_store(r + Y, pnet_laz_load(r + Y, 4) + y, 4);
    k = (k + p->dy.k) / 2;
    decode_integer(d, &p->z, 32, k < 19 ? k : 19, r + Z);
    p->x[p->oldest] = (int32_t)x;
    p->y[p->oldest] = (int32_t)y;
    p->oldest = (p->oldest + 1) % 3;

    unsigned changed = pnet_laz_symbol(d, &p->changed, 64);
    if (changed & 32) decode_integer(d, &p->intensity, 16, 0, r + INTENSITY);
    if (changed & 16) decode_byte(d, p->bits, r + BITS);
    if (changed & 8) decode_byte(d, p->class, r + CLASS);
    if (changed & 4) decode_integer(d, &p->angle, 8, k < 3, r + ANGLE);
    if (changed & 2) decode_byte(d, p->user, r + USER);
    if (changed & 1) decode_integer(d, &p->source, 16, 0, r + SOURCE);
}

/* Symbols of multiples of the step, and beyond them. */
enum { MULTIPLE_MOST = 509, ANEW = 510, MULTIPLES = 512 };

static uint64_t decode_anew(struct pnet_laz_decoder *d)
{
    uint64_t low = pnet_laz_bits(d, 32);
    return (uint64_t)pnet_laz_bits(d, 32) << 32 | low;
}

static void advance_multiple(struct pnet_laz_old *p, struct pnet_laz_decoder *d, unsigned symbol)
{
    unsigned context = symbol == 1 ? 1 : symbol == 0 ? 2 : symbol < 10 ? 3 : symbol < 50 ? 4 : 5;
    uint32_t expected = symbol ? symbol * p->step : (uint32_t)((int32_t)p->step / 4);
    uint32_t by = pnet_laz_integer(d, &p->difference, 32, context, expected);
    bool extreme = (symbol == 0 || symbol == MULTIPLE_MOST) && ++p->extremes > 3;
    if (symbol == 1 || extreme) {
        p->step = by;
        p->extremes = 0;
    }
    p->time += (uint64_t)(int64_t)(int32_t)by;
}

static void decode_time(struct pnet_laz_old *p, struct pnet_laz_decoder *d)
{
    if (p->step == 0) {
        unsigned symbol = pnet_laz_symbol(d, &p->no_step, 3);
        if (symbol == 1) {
            p->step = pnet_laz_integer(d, &p->difference, 32, 0, 0);
            p->time += (uint64_t)(int64_t)(int32_t)p->step;
        } else if (symbol == 2) {
            p->time = decode_anew(d);
        }
        return;
    }
    unsigned symbol = pnet_laz_symbol(d, &p->multiple, MULTIPLES);
    if (symbol <= MULTIPLE_MOST)
        advance_multiple(p, d, symbol);
    else if (symbol == ANEW)
        p->time = decode_anew(d);
}

static void decode_colour(struct pnet_laz_old *p, struct pnet_laz_decoder *d, uint8_t colour[6])
{
    unsigned used = pnet_laz_symbol(d, &p->used, 64);
    for (unsigned i = 0; i < 6; i++)
        if (used >> i & 1) decode_integer(d, &p->colour, 8, i, colour + i);
}

void pnet_laz_old_next(
    struct pnet_laz_old *p, struct pnet_laz_decoder *d, const uint8_t *last, uint8_t *record)
{
    size_t at = POINT_SIZE;
    memcpy(record, last, POINT_SIZE);
    decode_point(p, d, record);
    if (p->timed) {
        decode_time(p, d);
        memcpy(record + at, &p->time, sizeof p->time);
        at += sizeof p->time;
    }
    if (p->coloured) {
        memcpy(record + at, last + at, 6);
        decode_colour(p, d, record + at);
        at += 6;
    }
    for (size_t i = 0; i < p->extra; i++, at++)
        record[at] = (uint8_t)pnet_laz_integer_by(d, &p->byte, 8, &p->bytes[i], last[at]);
}
