/* As LASzip and laz-perf define the items GPSTIME11, RGB12 (version 2), POINT14 and RGB14. */
#include "runtime/io/laz_item.h"

void pnet_laz_median_add(struct pnet_laz_median *m, int32_t v)
{
    int32_t *s = m->sorted;
    bool low = m->low ? v > s[2] : v >= s[2];
    if (m->low) {
        int i = 0;
        for (; i < 4 && s[i + 1] < v; i++) s[i] = s[i + 1];
        s[i] = v;
    } else {
        int i = 4;
        for (; i > 0 && s[i - 1] > v; i--) s[i] = s[i - 1];
        s[i] = v;
    }
    m->low = low;
}

/* Symbols of `multiple`: the step is multiplied by them; those from 501 on by -1 to -10; then these. Where the time is known to
   have changed, `SAME` does not exist, and those after it are one less. */
enum {
    MULTIPLE_MOST = 500,
    MULTIPLE_LEAST = 510,
    SAME = 511,
    ANEW = 512,
    OTHER = 513,
    MULTIPLES = 516,
};
/* The same of `no_step`; OTHER from 3 on. */
enum { NO_SAME, NO_DIFFERENCE, NO_ANEW, NO_OTHER, NO_STEPS = 6 };

void pnet_laz_times_begin(struct pnet_laz_times *t, uint64_t first)
{
    t->current = t->newest = 0;
    for (int i = 0; i < 4; i++) {
        t->time[i] = i ? 0 : first;
        t->step[i] = 0;
        t->extremes[i] = 0;
    }
}

static uint32_t difference(
    struct pnet_laz_decoder *d, struct pnet_laz_times *t, unsigned context, uint32_t prediction)
{
    return pnet_laz_integer(d, &t->difference, 32, context, prediction);
}

static void advance(struct pnet_laz_times *t, uint32_t by)
{
    t->time[t->current] += (uint64_t)(int64_t)(int32_t)by;
}

/* A time that no sequence is near to begins another one, in place of the oldest. */
static void begin_sequence(struct pnet_laz_decoder *d, struct pnet_laz_times *t)
{
    uint64_t high = difference(d, t, 8, (uint32_t)(t->time[t->current] >> 32));
    t->newest = (t->newest + 1) & 3;
    t->current = t->newest;
    t->time[t->current] = high << 32 | pnet_laz_bits(d, 32);
    t->step[t->current] = 0;
    t->extremes[t->current] = 0;
}

/* The difference of two times as a multiple of the step. After four extreme multiples it becomes the step. */
static void advance_multiple(struct pnet_laz_decoder *d, struct pnet_laz_times *t, unsigned symbol)
{
    unsigned context = symbol == 0               ? 7
                       : symbol == 1             ? 1
                       : symbol < 10             ? 2
                       : symbol < MULTIPLE_MOST  ? 3
                       : symbol == MULTIPLE_MOST ? 4
                       : symbol < MULTIPLE_LEAST ? 5
                                                 : 6;
    uint32_t *step = &t->step[t->current], multiple = symbol;
    if (symbol > MULTIPLE_MOST) multiple = MULTIPLE_MOST - (uint32_t)symbol;
    uint32_t by = difference(d, t, context, multiple * *step);
    unsigned *extremes = &t->extremes[t->current];
    if (symbol == 1) {
        *extremes = 0;
    } else if (symbol == 0 || symbol == MULTIPLE_MOST || symbol == MULTIPLE_LEAST) {
        if (++*extremes > 3) {
            *extremes = 0;
            *step = by;
        }
    }
    advance(t, by);
}

/* Returns the number of sequences to go on, or 0: the time of the current one is the next. */
static unsigned decode_time(struct pnet_laz_decoder *d, struct pnet_laz_times *t, bool changed)
{
    if (t->step[t->current] == 0) {
        unsigned symbol = pnet_laz_symbol(d, &t->no_step, NO_STEPS - changed) + changed;
        if (symbol >= NO_OTHER) return symbol - NO_OTHER + 1;
        if (symbol == NO_ANEW) {
            begin_sequence(d, t);
        } else if (symbol == NO_DIFFERENCE) {
            t->step[t->current] = difference(d, t, 0, 0);
            t->extremes[t->current] = 0;
            advance(t, t->step[t->current]);
        }
        return 0;
    }
    unsigned symbol = pnet_laz_symbol(d, &t->multiple, MULTIPLES - changed);
    if (changed && symbol >= SAME) symbol++;
    if (symbol >= OTHER) return symbol - OTHER + 1;
    if (symbol == ANEW)
        begin_sequence(d, t);
    else if (symbol != SAME)
        advance_multiple(d, t, symbol);
    return 0;
}

uint64_t pnet_laz_time(struct pnet_laz_decoder *d, struct pnet_laz_times *t, bool changed)
{
    unsigned on = decode_time(d, t, changed);
    if (on) {
        t->current = (t->current + on) & 3;
        if (decode_time(d, t, changed)) d->state->damaged = true; /* encoders find it at once */
    }
    return t->time[t->current];
}

static int clamp(int v)
{
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

/* Green and blue are predicted from how much red, and then green, differ from the last point's. */
void pnet_laz_colour(
    struct pnet_laz_decoder *d, struct pnet_laz_colour *c, const uint8_t last[6], uint8_t next[6])
{
    unsigned used = pnet_laz_symbol(d, &c->used, 128);
    memcpy(next, last, 6);
    for (int i = 0; i < 2; i++)
        if (used >> i & 1) next[i] += (uint8_t)pnet_laz_symbol(d, &c->difference[i], 256);
    if (!(used >> 6 & 1)) {
        memcpy(next + 2, next, 2);
        memcpy(next + 4, next, 2);
        return;
    }
    for (int i = 0; i < 2; i++) {
        int green = 2 + i, blue = 4 + i, by = next[i] - last[i];
        if (used >> green & 1)
            next[green] = (uint8_t)(clamp(last[green] + by) +
                                    (int)pnet_laz_symbol(d, &c->difference[green], 256));
        by = (by + next[green] - last[green]) / 2;
        if (used >> blue & 1)
            next[blue] = (uint8_t)(clamp(last[blue] + by) +
                                   (int)pnet_laz_symbol(d, &c->difference[blue], 256));
    }
}
