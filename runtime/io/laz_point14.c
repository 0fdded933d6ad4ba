/* Points of formats 6 to 8, as LASzip and laz-perf define the items POINT14, RGB14, RGBNIR14 and BYTE14 of versions 3 and 4. */
#include "runtime/io/laz_item.h"
#include "runtime/io/laz_point.h"

#include <stdlib.h>

/* Offsets in the record. */
enum {
    X = 0,
    Y = 4,
    Z = 8,
    INTENSITY = 12,
    RETURNS = 14, /* the return number below, the number of returns above */
    FLAGS = 15,   /* four of the class, two bits of the channel, scan direction and edge */
    CLASS = 16,
    USER = 17,
    ANGLE = 18,
    SOURCE = 20,
    TIME = 22,
    POINT_SIZE = 30,
};
/* Of what has changed; the two lowest bits are about the return number. */
enum { RETURNS_CHANGED = 4, ANGLE_CHANGED = 8, TIME_CHANGED = 16, SOURCE_CHANGED = 32 };
enum { CHANNEL_CHANGED = 64 };
/* Layers in their order in the file; those of the extra bytes follow. */
enum layer { XY_L, Z_L, CLASS_L, FLAGS_L, INTENSITY_L, ANGLE_L, USER_L, SOURCE_L, TIME_L };
enum { COLOUR_L = TIME_L + 1, NIR_L, EXTRA_L, CHANNELS = 4 };

/* What is known of the points of one scanner channel. */
struct channel {
    bool used, time_changed; /* at the last point */
    uint8_t last[POINT_SIZE];
    uint32_t z[8];
    uint16_t intensity[8];
    struct pnet_laz_median x[12], y[12];
    struct pnet_laz_model changed[8], channel, returns[16], back[16], back_same;
    struct pnet_laz_model class[64], flags[64], user[64];
    struct pnet_laz_integer dx, dy, z_of, intensity_of, angle, source;
    struct pnet_laz_times times;
};

/* The same of what follows the point in its record: colours, nir and extra bytes. */
struct tail {
    bool used;
    uint8_t *last;
    struct pnet_laz_colour colour;
    struct pnet_laz_model nir_used, nir[2];
    struct pnet_laz_model *extra;
};

struct pnet_laz_layered {
    bool coloured, nir;
    unsigned version;
    size_t extra, tail_size;
    unsigned channel, tail_channel; /* of the last point */
    struct channel channels[CHANNELS];
    struct tail tails[CHANNELS];
    struct pnet_laz_decoder layers[]; /* EXTRA_L + extra; those of the file have a state */
};

/* Contexts by number of returns, then return number. */
static const uint8_t return_context[16][16] = {{0, 1, 2, 3, 4, 5, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5},
    {1, 0, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3},
    {2, 1, 2, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3},
    {3, 3, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
    {4, 3, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
    {5, 3, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
    {3, 3, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4},
    {4, 3, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4},
    {4, 3, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4},
    {5, 3, 4, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4},
    {5, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4},
    {5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 4, 4, 4},
    {5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 4, 4},
    {5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 4},
    {5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5},
    {5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5}};

/* One block: the models and the last tails follow the layers. */
struct pnet_laz_layered *pnet_laz_layered_new(const struct pnet_laz_layout *l)
{
    struct pnet_laz_layered *p;
    size_t layers = sizeof *p + (EXTRA_L + l->extra) * sizeof *p->layers;
    size_t models = l->extra * sizeof *p->tails->extra, tail = l->record - POINT_SIZE;
    p = calloc(1, layers + CHANNELS * (models + tail));
    if (!p) return NULL;
    p->coloured = l->format >= 7;
    p->nir = l->format == 8;
    p->version = l->version;
    p->extra = l->extra;
    p->tail_size = tail;
    uint8_t *block = (uint8_t *)p + layers;
    for (size_t i = 0; i < CHANNELS; i++) {
        p->tails[i].extra = (struct pnet_laz_model *)(void *)(block + i * models);
        p->tails[i].last = block + CHANNELS * models + i * tail;
    }
    return p;
}

/* Begins a channel after the last point of another one, or at the first point. */
static void begin_channel(struct channel *c, const uint8_t *point)
{
    c->used = true;
    c->time_changed = false;
    memcpy(c->last, point, POINT_SIZE);
    for (int i = 0; i < 8; i++) {
        c->z[i] = pnet_laz_load(point + Z, 4);
        c->intensity[i] = (uint16_t)pnet_laz_load(point + INTENSITY, 2);
    }
    memset(c->x, 0, sizeof c->x);
    memset(c->y, 0, sizeof c->y);
    uint64_t time;
    memcpy(&time, point + TIME, sizeof time);
    pnet_laz_times_begin(&c->times, time);
}

static void begin_tail(struct pnet_laz_layered *p, unsigned channel, const uint8_t *tail)
{
    p->tails[channel].used = true;
    memcpy(p->tails[channel].last, tail, p->tail_size);
}

static bool has_layer(const struct pnet_laz_layered *p, size_t layer)
{
    return (layer != COLOUR_L || p->coloured) && (layer != NIR_L || p->nir);
}

bool pnet_laz_layered_begin(struct pnet_laz_layered *p, struct pnet_laz_state *state,
    const uint8_t *chunk, size_t size, uint64_t points, const char **wrong)
{
    size_t count = EXTRA_L + p->extra - (size_t)!p->coloured - (size_t)!p->nir;
    size_t head = POINT_SIZE + p->tail_size + 4;
    *wrong = "it ends within its sizes";
    if (size < head || (size - head) / 4 < count) return false;
    *wrong = "it has fewer points";
    if (pnet_laz_load(chunk + head - 4, 4) < points) return false;
    const uint8_t *sizes = chunk + head, *at = sizes + 4 * count, *end = chunk + size;
    *wrong = "its sizes do not add up";
    for (size_t i = 0; i < EXTRA_L + p->extra; i++) {
        p->layers[i].state = NULL;
        if (!has_layer(p, i)) continue;
        size_t n = pnet_laz_load(sizes, 4);
        sizes += 4;
        if (n > (size_t)(end - at)) return false;
        if (n || i == XY_L) pnet_laz_begin(&p->layers[i], state, at, at + n);
        at += n;
    }
    if (at != end) return false;
    for (int i = 0; i < CHANNELS; i++) p->channels[i].used = p->tails[i].used = false;
    p->channel = p->tail_channel = chunk[FLAGS] >> 4 & 3;
    begin_channel(&p->channels[p->channel], chunk);
    begin_tail(p, p->channel, chunk + POINT_SIZE);
    return true;
}

static bool is_there(const struct pnet_laz_decoder *layer)
{
    return layer->state != NULL;
}

/* Decodes what has changed, and with it the channel. */
static unsigned decode_changed(struct pnet_laz_layered *p)
{
    struct pnet_laz_decoder *d = &p->layers[XY_L];
    struct channel *c = &p->channels[p->channel];
    unsigned back = c->last[RETURNS] & 15, returns = c->last[RETURNS] >> 4;
    unsigned context = (back == 1) + 2U * (back >= returns) + 4U * c->time_changed;
    unsigned changed = pnet_laz_symbol(d, &c->changed[context], 128);
    if (changed & CHANNEL_CHANGED) {
        p->channel = (p->channel + pnet_laz_symbol(d, &c->channel, 3) + 1) % CHANNELS;
        struct channel *next = &p->channels[p->channel];
        if (!next->used) begin_channel(next, c->last);
        next->last[FLAGS] = (uint8_t)((next->last[FLAGS] & ~0x30U) | p->channel << 4);
    }
    return changed;
}

static void decode_returns(struct pnet_laz_decoder *d, struct channel *c, unsigned changed)
{
    unsigned back = c->last[RETURNS] & 15, returns = c->last[RETURNS] >> 4;
    if (changed & RETURNS_CHANGED) returns = pnet_laz_symbol(d, &c->returns[returns], 16);
    switch (changed & 3) {
    case 1: back++; break;
    case 2: back += 15; break;
    case 3:
        if (changed & TIME_CHANGED)
            back = pnet_laz_symbol(d, &c->back[back], 16);
        else
            back += pnet_laz_symbol(d, &c->back_same, 13) + 2;
        break;
    default: break;
    }
    c->last[RETURNS] = (uint8_t)((back & 15) | returns << 4);
}

static void decode_place(
    struct pnet_laz_decoder *xy, struct pnet_laz_decoder *z_layer, struct channel *c, bool timed)
{
    unsigned back = c->last[RETURNS] & 15, returns = c->last[RETURNS] >> 4, only = returns == 1;
    unsigned context = 2U * return_context[returns][back] + timed;
    struct pnet_laz_median *x = &c->x[context], *y = &c->y[context];
    uint32_t by = pnet_laz_integer(xy, &c->dx, 32, only, (uint32_t)x->sorted[2]);
    pnet_laz_median_add(x, (int32_t)by);
    pnet_laz_store(c->last + X, pnet_laz_load(c->last + X, 4) + by, 4);

    unsigned k = c->dx.k < 20 ? c->dx.k & ~1U : 20;
    by = pnet_laz_integer(xy, &c->dy, 32, only + k, (uint32_t)y->sorted[2]);
    pnet_laz_median_add(y, (int32_t)by);
    pnet_laz_store(c->last + Y, pnet_laz_load(c->last + Y, 4) + by, 4);

    if (!is_there(z_layer)) return;
    k = (c->dx.k + c->dy.k) / 2;
    k = k < 18 ? k & ~1U : 18;
    unsigned from_last = returns > back ? returns - back : back - returns;
    uint32_t *z = &c->z[from_last < 7 ? from_last : 7];
    *z = pnet_laz_integer(z_layer, &c->z_of, 32, only + k, *z);
    pnet_laz_store(c->last + Z, *z, 4);
}

static void decode_attributes(struct pnet_laz_layered *p, struct channel *c, unsigned changed)
{
    struct pnet_laz_decoder *layers = p->layers;
    uint8_t *r = c->last;
    unsigned back = r[RETURNS] & 15, returns = r[RETURNS] >> 4;
    unsigned place = 2U * (back == 1) + (back >= returns), timed = !!(changed & TIME_CHANGED);
    if (is_there(&layers[CLASS_L]))
        r[CLASS] = (uint8_t)pnet_laz_symbol(
            &layers[CLASS_L], &c->class[2U * (r[CLASS] & 31) + (place == 3)], 256);
    if (is_there(&layers[FLAGS_L])) { /* all but the channel */
        unsigned last = (r[FLAGS] & 15U) | (unsigned)(r[FLAGS] >> 6) << 4;
        unsigned flags = pnet_laz_symbol(&layers[FLAGS_L], &c->flags[last], 64);
        r[FLAGS] = (uint8_t)((r[FLAGS] & 0x30U) | (flags & 15) | flags >> 4 << 6);
    }
    if (is_there(&layers[INTENSITY_L])) {
        uint16_t *last = &c->intensity[2 * place + timed];
        *last =
            (uint16_t)pnet_laz_integer(&layers[INTENSITY_L], &c->intensity_of, 16, place, *last);
        pnet_laz_store(r + INTENSITY, *last, 2);
    }
    if (changed & ANGLE_CHANGED && is_there(&layers[ANGLE_L]))
        pnet_laz_store(r + ANGLE,
            pnet_laz_integer(&layers[ANGLE_L], &c->angle, 16, timed, pnet_laz_load(r + ANGLE, 2)),
            2);
    if (is_there(&layers[USER_L]))
        r[USER] = (uint8_t)pnet_laz_symbol(&layers[USER_L], &c->user[r[USER] / 4], 256);
    if (changed & SOURCE_CHANGED && is_there(&layers[SOURCE_L]))
        pnet_laz_store(r + SOURCE,
            pnet_laz_integer(&layers[SOURCE_L], &c->source, 16, 0, pnet_laz_load(r + SOURCE, 2)),
            2);
    if (timed && is_there(&layers[TIME_L])) {
        uint64_t time = pnet_laz_time(&layers[TIME_L], &c->times, true);
        memcpy(r + TIME, &time, sizeof time);
    }
}

static void decode_nir(
    struct pnet_laz_decoder *d, struct tail *t, const uint8_t last[2], uint8_t next[2])
{
    unsigned used = pnet_laz_symbol(d, &t->nir_used, 4);
    for (int i = 0; i < 2; i++)
        next[i] =
            used >> i & 1 ? (uint8_t)(last[i] + pnet_laz_symbol(d, &t->nir[i], 256)) : last[i];
}

/* In version 3 the channel of a tail is that of the point where the channel has just changed, and 0 otherwise; and a tail that
   returns to a channel still continues the last values of the channel it comes from. Version 4 mends both. */
static void decode_tail(struct pnet_laz_layered *p, bool changed, uint8_t *next)
{
    unsigned channel = p->version >= 4 || changed ? p->channel : 0;
    uint8_t *last = p->tails[p->tail_channel].last;
    struct tail *t = &p->tails[channel];
    if (channel != p->tail_channel) {
        bool begins = !t->used;
        if (begins) begin_tail(p, channel, last);
        if (begins || p->version >= 4) last = t->last;
        p->tail_channel = channel;
    }
    size_t at = 0;
    memcpy(next, last, p->tail_size);
    if (p->coloured) {
        if (is_there(&p->layers[COLOUR_L]))
            pnet_laz_colour(&p->layers[COLOUR_L], &t->colour, last, next);
        at = 6;
    }
    if (p->nir) {
        if (is_there(&p->layers[NIR_L])) decode_nir(&p->layers[NIR_L], t, last + at, next + at);
        at += 2;
    }
    for (size_t i = 0; i < p->extra; i++)
        if (is_there(&p->layers[EXTRA_L + i]))
            next[at + i] += (uint8_t)pnet_laz_symbol(&p->layers[EXTRA_L + i], &t->extra[i], 256);
    memcpy(last, next, p->tail_size);
}

void pnet_laz_layered_next(struct pnet_laz_layered *p, uint8_t *record)
{
    unsigned changed = decode_changed(p);
    struct channel *c = &p->channels[p->channel];
    decode_returns(&p->layers[XY_L], c, changed);
    c->time_changed = changed & TIME_CHANGED;
    decode_place(&p->layers[XY_L], &p->layers[Z_L], c, c->time_changed);
    decode_attributes(p, c, changed);
    memcpy(record, c->last, POINT_SIZE);
    decode_tail(p, changed & CHANNEL_CHANGED, record + POINT_SIZE);
}
