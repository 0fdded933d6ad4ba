/* The supports of APML. */
#include <math.h>

#include "kernels/cpu/geometry/geo_nearest.h"
#include "kernels/cpu/sets/apml.h"

void pnet_apml_search_take(
    struct pnet_apml_search *s, const struct pnet_apml *a, struct pnet_geo_purse *purse)
{
    const struct pnet_point_set *set[2] = {&a->sets.x, &a->sets.y};
    size_t scratch = 0;
    *s = (struct pnet_apml_search){.loss = a};
    for (int k = 0; k < 2; k++) {
        struct pnet_apml_side *side = &s->side[k];
        side->level = (struct pnet_level){.rows = set[k]->rows.most,
            .samples = set[k]->samples,
            .row_splits = set[k]->splits,
            .xyz = set[k]->xyz};
        size_t rows = (size_t)side->level.rows, samples = (size_t)side->level.samples,
               curve = pnet_geo_curve_work(side->level.rows);
        side->start = pnet_geo_take(purse, (samples + 1) * sizeof *side->start);
        side->order = pnet_geo_take(purse, rows * sizeof *side->order);
        side->near = pnet_geo_take(purse, 2 * rows * sizeof *side->near);
        side->count = pnet_geo_take(purse, rows * sizeof *side->count);
        side->kept = pnet_geo_take(purse, (size_t)pnet_geo_blocks_bound(&side->level));
        scratch = curve > scratch ? curve : scratch;
    }
    struct pnet_geo_purse shared = *purse;
    s->scratch = pnet_geo_take(&shared, scratch);
    for (int k = 0; k < 2; k++) pnet_geo_tree_take(&s->side[k].tree, &s->side[k].level, purse);
    if (purse->used < shared.used) purse->used = shared.used;
}

/* Extends a box by points. Returns whether they are finite. */
static bool extend(const struct pnet_point_set *set, int32_t sample, float low[3], float high[3])
{
    bool finite = true;
    for (int64_t i = set->splits[sample]; i < set->splits[sample + 1]; i++)
        for (int a = 0; a < 3; a++) {
            float p = set->xyz[3 * i + a];
            finite &= isfinite(p) != 0;
            low[a] = p < low[a] ? p : low[a];
            high[a] = p > high[a] ? p : high[a];
        }
    return finite;
}

bool pnet_apml_finite(const struct pnet_apml *a)
{
    bool finite = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : finite)
    for (int32_t s = 0; s < a->sets.x.samples; s++) {
        float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY},
              d[3];
        finite = extend(&a->sets.x, s, low, high) && extend(&a->sets.y, s, low, high) && finite;
        if (low[0] > high[0]) continue; /* no points */
        for (int k = 0; k < 3; k++) d[k] = high[k] - low[k];
        finite = finite && isfinite((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]);
    }
    return finite;
}

/* What the rows of one sample have in common. */
struct shape {
    int64_t points; /* K */
    float slope, kappa;
};

static struct shape shape_of(
    const struct pnet_apml *a, const struct pnet_apml_side *in, int32_t sample)
{
    struct shape h = {.points = in->level.row_splits[sample + 1] - in->level.row_splits[sample]};
    if (h.points < 2) return h;
    double slope = pnet_apml_slope(h.points, a->p);
    h.slope = (float)slope;
    h.kappa = pnet_apml_kappa(slope, a->tau);
    return h;
}

static float gap(const float near[2])
{
    return fmaxf(near[1] - near[0], 1e-8f);
}

static float radius(const struct shape *h, const float near[2])
{
    return h->points < 2 ? near[0] : fmaf(h->kappa, gap(near), near[0]);
}

/* The first place of a block's slot, in rows. */
static int64_t place_of(
    const struct pnet_apml_side *side, const struct pnet_geo_block *block, int64_t b)
{
    return side->level.row_splits[block->sample] + (b - side->start[block->sample]) * WIDE;
}

/* One thread's memory. */
struct room {
    const struct pnet_geo_isa *isa;
    struct pnet_geo_nearest two, within;
};

/* Finds the supports of the rows of a block. */
static void find_block(
    struct pnet_apml_search *s, int side, int64_t b, uint64_t *slots, struct room *r)
{
    const struct pnet_apml *a = s->loss;
    struct pnet_apml_side *out = &s->side[side], *in = &s->side[1 - side];
    struct pnet_geo_earlier earlier = {.there = false};
    struct pnet_geo_block block;
    pnet_geo_block_get(&out->blocks, b, &block);
    struct shape h = shape_of(a, in, block.sample);
    uint64_t *slot = slots ? slots + place_of(out, &block, b) * a->entries : NULL;
    int64_t space = (int64_t)block.count * a->entries, used = 0;
    for (int i = 0; i < block.count; i++) {
        int32_t row = block.row[i];
        const float *at = out->level.xyz + 3 * (int64_t)row;
        float *near = out->near + 2 * (int64_t)row;
        out->count[row] = 0;
        if (h.points == 0) continue;
        pnet_geo_find_nearest(r->isa, &in->tree, block.sample, at, -1, &earlier, &r->two);
        pnet_geo_sort_nearest(&r->two);
        near[0] = sqrtf(pnet_geo_key_float(r->two.key[0]));
        near[1] = sqrtf(pnet_geo_key_float(r->two.key[r->two.count - 1]));
        r->within.reach2 = pnet_geo_square(radius(&h, near));
        out->count[row] =
            (int32_t)pnet_geo_find_within(r->isa, &in->tree, block.sample, at, &r->within);
        used += r->within.count;
        for (int n = 0; slot && used <= space && n < r->within.count; n++)
            slot[used - r->within.count + n] = r->within.key[n];
    }
    out->kept[b] = slot && used <= space;
}

/* The largest limit with which the lists of a side fit. */
static int32_t limit_of(const struct pnet_apml *a, const struct pnet_apml_side *side)
{
    int32_t limit = a->most;
    for (int i = 0;; i++) {
        int32_t next = pnet_apml_limit(a->most, i);
        if (next == 0) return limit;
        int64_t sum = 0;
        limit = next;
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int64_t row = 0; row < side->level.rows; row++)
            sum += side->count[row] < limit ? side->count[row] : limit;
        if (sum <= side->level.rows * a->entries) return limit;
    }
}

void pnet_apml_find(struct pnet_apml_search *s, uint64_t *const slots[2])
{
    for (int k = 0; k < 2; k++)
        pnet_geo_blocks_make(
            &s->side[k].blocks, &s->side[k].level, s->side[k].order, s->side[k].start, s->scratch);
    for (int k = 0; k < 2; k++) pnet_geo_tree_build(&s->side[k].tree, &s->side[k].blocks, false);
    for (int k = 0; k < 2; k++) {
        int64_t blocks = s->side[k].start[s->side[k].level.samples];
#pragma omp parallel
        {
            struct room r = {.isa = pnet_geo_isa(), .two.limit = 2, .within.limit = s->loss->most};
#pragma omp for schedule(dynamic, 16)
            for (int64_t b = 0; b < blocks; b++) find_block(s, k, b, slots[k], &r);
        }
        s->side[k].limit = limit_of(s->loss, &s->side[k]);
    }
}

static uint64_t by_row(uint64_t key)
{
    return key << 32 | key >> 32;
}

/* Sorts keys by row. */
static void sort_by_row(struct pnet_geo_nearest *keys, struct pnet_geo_nearest *spare)
{
    enum { SHORT = 24 };
    int n = keys->count;
    for (int i = 1; n <= SHORT && i < n; i++) {
        uint64_t key = keys->key[i];
        int to = i;
        for (; to > 0 && pnet_geo_key_row(keys->key[to - 1]) > pnet_geo_key_row(key); to--)
            keys->key[to] = keys->key[to - 1];
        keys->key[to] = key;
    }
    if (n <= SHORT) return;
    spare->count = 0;
    spare->limit = n;
    for (int i = 0; i < n; i++) pnet_geo_offer(spare, by_row(keys->key[i]));
    pnet_geo_sort_nearest(spare);
    for (int i = 0; i < n; i++) keys->key[i] = by_row(spare->key[i]);
}

/* Writes the weights of one row, halved. */
static void write_row(const struct shape *h, const float near[2],
    const struct pnet_geo_nearest *keys, struct pnet_apml_entry *to)
{
    float steep = h->points < 2 ? 0 : h->slope / gap(near), sum = 0;
    for (int n = 0; n < keys->count; n++) {
        float s = expf(-(pnet_geo_key_float(keys->key[n]) - near[0]) * steep);
        to[n] = (struct pnet_apml_entry){pnet_geo_key_row(keys->key[n]), s};
        sum += s;
    }
    for (int n = 0; n < keys->count; n++) to[n].p = 0.5f * (to[n].p / sum);
}

static void write_block(const struct pnet_apml_search *s, int side, int64_t b,
    const uint64_t *slots, const int64_t *start, struct pnet_apml_entry *to, struct room *r)
{
    const struct pnet_apml *a = s->loss;
    const struct pnet_apml_side *out = &s->side[side], *in = &s->side[1 - side];
    struct pnet_geo_nearest *keys = &r->within;
    struct pnet_geo_block block;
    pnet_geo_block_get(&out->blocks, b, &block);
    struct shape h = shape_of(a, in, block.sample);
    const uint64_t *slot = slots + place_of(out, &block, b) * a->entries;
    for (int i = 0; i < block.count && h.points; i++) {
        int32_t row = block.row[i];
        const float *near = out->near + 2 * (int64_t)row;
        keys->count = 0;
        if (out->kept[b]) {
            int32_t kept = out->count[row] < a->most ? out->count[row] : a->most;
            for (int32_t n = 0; n < kept; n++) pnet_geo_offer(keys, slot[n]);
            slot += kept;
        } else {
            keys->reach2 = pnet_geo_square(radius(&h, near));
            pnet_geo_find_within(
                r->isa, &in->tree, block.sample, out->level.xyz + 3 * (int64_t)row, keys);
        }
        sort_by_row(keys, &r->two);
        write_row(&h, near, keys, to + start[row]);
    }
}

void pnet_apml_write(const struct pnet_apml_search *s, int side, const uint64_t *slots,
    int64_t *start, struct pnet_apml_entry *to)
{
    const struct pnet_apml_side *out = &s->side[side];
    int64_t blocks = out->start[out->level.samples];
    start[0] = 0;
    for (int64_t row = 0; row < out->level.rows; row++)
        start[row + 1] = start[row] + (out->count[row] < out->limit ? out->count[row] : out->limit);
#pragma omp parallel
    {
        struct room r = {.isa = pnet_geo_isa(), .within.limit = out->limit};
#pragma omp for schedule(dynamic, 16)
        for (int64_t b = 0; b < blocks; b++) write_block(s, side, b, slots, start, to, &r);
    }
}

size_t pnet_cpu_apml_support_work(const struct pnet_apml *a)
{
    struct pnet_geo_purse purse = pnet_geo_open(NULL);
    struct pnet_apml_search s;
    pnet_apml_search_take(&s, a, &purse);
    return purse.used;
}

void pnet_cpu_apml_support(const struct pnet_apml *a, double *sum, void *work)
{
    struct pnet_geo_purse purse = pnet_geo_open(work);
    struct pnet_apml_search s;
    bool finite = pnet_apml_finite(a);
    for (int k = 0; k < PNET_APML_SUMS; k++) sum[k] = finite ? 0 : (double)NAN;
    if (!finite) return;
    pnet_apml_search_take(&s, a, &purse);
    pnet_apml_find(&s, (uint64_t *const[2]){NULL, NULL});
    for (int k = 0; k < 2; k++)
        for (int64_t row = 0; row < s.side[k].level.rows; row++) {
            int32_t count = s.side[k].count[row];
            if (count == 0) continue; /* its sample has no points of the other set */
            sum[PNET_APML_ROWS]++;
            sum[PNET_APML_COUNT] += count;
            sum[PNET_APML_CUT] += count > s.side[k].limit;
            sum[PNET_APML_BIN + pnet_apml_bin(count)]++;
        }
}
