#include "runtime/io/laz_coder.h"

#include <assert.h>
#include <stdlib.h>

enum {
    SHIFT = 15,     /* of probabilities of symbols */
    BIT_SHIFT = 13, /* of probabilities of bits */
    HIGH_BITS = 8,  /* of a correction, coded as a symbol; those below are equally likely */
    SYMBOLS_MOST = 516,
    BLOCK = 1 << 13, /* symbols */
};
static const uint32_t length_least = UINT32_C(1) << 24, half = UINT32_C(1) << 31;

struct pnet_laz_block {
    struct pnet_laz_block *next;
    unsigned used;
    struct pnet_laz_symbol_state symbols[BLOCK];
};

void pnet_laz_state_free(struct pnet_laz_state *state)
{
    while (state->blocks) {
        struct pnet_laz_block *next = state->blocks->next;
        free(state->blocks);
        state->blocks = next;
    }
}

/* Returns NULL, and notes it, if memory is out. */
static struct pnet_laz_symbol_state *take_symbols(struct pnet_laz_state *state, unsigned symbols)
{
    struct pnet_laz_block *b = state->blocks;
    if (!b || b->used + symbols > BLOCK) {
        b = malloc(sizeof *b);
        if (!b) {
            state->no_memory = state->damaged = true;
            return NULL;
        }
        b->next = state->blocks;
        b->used = 0;
        state->blocks = b;
    }
    b->used += symbols;
    return b->symbols + b->used - symbols;
}

static uint32_t next_byte(struct pnet_laz_decoder *d)
{
    if (d->at < d->end) return *d->at++;
    d->state->damaged = true;
    return 0;
}

void pnet_laz_begin(
    struct pnet_laz_decoder *d, struct pnet_laz_state *state, const uint8_t *at, const uint8_t *end)
{
    *d = (struct pnet_laz_decoder){.state = state, .at = at, .end = end, .length = UINT32_MAX};
    for (int i = 0; i < 4; i++) d->value = d->value << 8 | next_byte(d);
}

/* The length is never 0 here: no symbol has a probability of 0. */
static void renormalise(struct pnet_laz_decoder *d)
{
    assert(d->length);
    while (d->length < length_least) {
        d->value = d->value << 8 | next_byte(d);
        d->length <<= 8;
    }
}

static void update(struct pnet_laz_model *m, unsigned symbols)
{
    struct pnet_laz_symbol_state *s = m->symbols;
    m->total += m->cycle;
    if (m->total > 1 << SHIFT) {
        m->total = 0;
        for (unsigned k = 0; k < symbols; k++) {
            s[k].count = (uint16_t)((s[k].count + 1) >> 1);
            m->total += s[k].count;
        }
    }
    uint32_t scale = half / m->total, sum = 0;
    for (unsigned k = 0; k < symbols; k++) {
        s[k].start = (uint16_t)(scale * sum >> (31 - SHIFT));
        sum += s[k].count;
    }
    uint32_t most = (symbols + 6) << 3, longer = 5 * m->cycle >> 2;
    m->cycle = longer < most ? longer : most;
    m->left = m->cycle;
}

static bool begin_model(struct pnet_laz_model *m, struct pnet_laz_state *state, unsigned symbols)
{
    if (!m->symbols) m->symbols = take_symbols(state, symbols);
    if (!m->symbols) return false;
    m->epoch = state->epoch;
    m->total = 0;
    m->cycle = symbols;
    for (unsigned k = 0; k < symbols; k++) m->symbols[k].count = 1;
    update(m, symbols);
    m->left = m->cycle = (symbols + 6) >> 1;
    return true;
}

unsigned pnet_laz_symbol(struct pnet_laz_decoder *d, struct pnet_laz_model *m, unsigned symbols)
{
    assert(symbols >= 2 && symbols <= SYMBOLS_MOST);
    if (m->epoch != d->state->epoch && !begin_model(m, d->state, symbols)) return 0;
    unsigned symbol = 0, beyond = symbols;
    uint32_t low = 0, high = d->length, unit = d->length >> SHIFT;
    while (beyond - symbol > 1) {
        unsigned middle = (symbol + beyond) / 2;
        uint32_t start = unit * m->symbols[middle].start;
        if (start > d->value) {
            beyond = middle;
            high = start;
        } else {
            symbol = middle;
            low = start;
        }
    }
    d->value -= low;
    d->length = high - low;
    renormalise(d);
    m->symbols[symbol].count++;
    if (--m->left == 0) update(m, symbols);
    return symbol;
}

static void update_bit(struct pnet_laz_bit_model *m)
{
    m->total += m->cycle;
    if (m->total > 1 << BIT_SHIFT) {
        m->total = (m->total + 1) >> 1;
        m->zeros = (m->zeros + 1) >> 1;
        if (m->zeros == m->total) m->total++;
    }
    m->chance = m->zeros * (half / m->total) >> (31 - BIT_SHIFT);
    uint32_t longer = 5 * m->cycle >> 2;
    m->cycle = longer < 64 ? longer : 64;
    m->left = m->cycle;
}

static unsigned decode_bit(struct pnet_laz_decoder *d, struct pnet_laz_bit_model *m)
{
    if (m->epoch != d->state->epoch)
        *m = (struct pnet_laz_bit_model){.epoch = d->state->epoch,
            .total = 2,
            .zeros = 1,
            .cycle = 4,
            .left = 4,
            .chance = 1 << (BIT_SHIFT - 1)};
    uint32_t split = m->chance * (d->length >> BIT_SHIFT);
    unsigned bit = d->value >= split;
    if (bit) {
        d->value -= split;
        d->length -= split;
    } else {
        d->length = split;
        m->zeros++;
    }
    renormalise(d);
    if (--m->left == 0) update_bit(m);
    return bit;
}

uint32_t pnet_laz_bits(struct pnet_laz_decoder *d, unsigned count)
{
    assert(count >= 1 && count <= 32);
    if (count > 19) { /* more would leave too few bits of the length */
        uint32_t low = pnet_laz_bits(d, 16);
        return pnet_laz_bits(d, count - 16) << 16 | low;
    }
    d->length >>= count;
    uint32_t v = d->value / d->length;
    d->value -= v * d->length;
    renormalise(d);
    if (v >> count) d->state->damaged = true;
    return v & ((UINT32_C(1) << count) - 1);
}

/* Returns a correction of k bits: one of -(2^k - 1) to -2^(k-1), and 2^(k-1) + 1 to 2^k; at k = 0 it is 0 or 1. */
static uint32_t decode_correction(
    struct pnet_laz_decoder *d, struct pnet_laz_integer *i, unsigned k)
{
    if (k == 0) return decode_bit(d, &i->small);
    if (k == 32) return half; /* the least of all 32-bit integers */
    unsigned high = k < HIGH_BITS ? k : HIGH_BITS;
    uint32_t c = pnet_laz_symbol(d, &i->correction[k], 1U << high);
    if (k > high) {
        c <<= k - high;
        c |= pnet_laz_bits(d, k - high);
    }
    return c >= UINT32_C(1) << (k - 1) ? c + 1 : c - ((UINT32_C(1) << k) - 1);
}

uint32_t pnet_laz_integer_by(struct pnet_laz_decoder *d, struct pnet_laz_integer *i, unsigned bits,
    struct pnet_laz_model *context, uint32_t prediction)
{
    i->k = pnet_laz_symbol(d, context, bits + 1);
    uint32_t v = prediction + decode_correction(d, i, i->k);
    return bits < 32 ? v & ((UINT32_C(1) << bits) - 1) : v;
}

uint32_t pnet_laz_integer(struct pnet_laz_decoder *d, struct pnet_laz_integer *i, unsigned bits,
    unsigned context, uint32_t prediction)
{
    assert(context < PNET_LAZ_CONTEXTS_MOST);
    return pnet_laz_integer_by(d, i, bits, &i->bits[context], prediction);
}
