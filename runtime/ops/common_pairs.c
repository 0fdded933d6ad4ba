#include "runtime/ops/common_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/register/register_room.h"

enum { SOURCE = PNET_PAIRS_SOURCE, TARGET = PNET_PAIRS_TARGET, POSE = PNET_PAIRS_POSE };
enum { DRAW_SOURCE, DRAW_TARGET, DRAW_POSE };

bool pnet_op_pairs_rule(struct pnet_rule *r, const char *name)
{
    const struct pnet_type *s = &r->in[SOURCE], *t = &r->in[TARGET];
    for (int i = SOURCE; i <= TARGET; i++)
        if (r->levels[r->in[i].level].input < 0) {
            r->error_in = i;
            return pnet_rule_fail(r, i, "%s() compares features of points, not of samples", name);
        }
    if (s->width != t->width) {
        r->error_in = TARGET;
        return pnet_rule_fail(
            r, TARGET, "%s() compares %d channels with %d", name, (int)s->width, (int)t->width);
    }
    int source = r->levels[s->level].input, target = r->levels[t->level].input;
    if (source >= target) {
        r->error_in = TARGET;
        return pnet_rule_fail(r, TARGET,
            source == target ? "%s() compares two clouds, these features are of one"
                             : "%s() takes the source first, which is the cloud declared first",
            name);
    }
    const int levels[] = {s->level, t->level};
    for (int i = 0; i < 2; i++)
        pnet_rule_geo(r, (struct pnet_geo_request){
                             .kind = r->levels[levels[i]].kind, .a = levels[i], .b = levels[i]});
    return true;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where things lie for samples of at most that many rows. */
struct pairs_room {
    struct pnet_match *pairs;
    int32_t *row[2];
    void *free;
    size_t used, bytes;
};

static struct pairs_room pairs_room(
    void *work, const int64_t rows[2], int32_t width, int64_t points)
{
    struct room r = {.base = work};
    struct pairs_room p;
    int64_t n[2] = {least(rows[0], points), least(rows[1], points)};
    p.pairs = room_take(&r, (size_t)n[0] * sizeof *p.pairs);
    p.used = r.used;
    p.row[0] = room_take(&r, (size_t)n[0] * sizeof(int32_t));
    p.row[1] = room_take(&r, (size_t)n[1] * sizeof(int32_t));
    size_t draw = pnet_register_draw_work(rows[0] > rows[1] ? rows[0] : rows[1]),
           match = pnet_register_match_work(n[0], n[1], width);
    p.free = room_take(&r, draw > match ? draw : match);
    p.bytes = r.used;
    return p;
}

size_t pnet_op_pairs_work(const struct pnet_exec *x, int64_t points, size_t *used)
{
    int64_t rows[2] = {x->in[SOURCE].rows, x->in[TARGET].rows};
    struct pairs_room p = pairs_room(NULL, rows, x->in[SOURCE].width, points);
    *used = p.used;
    return p.bytes;
}

/* All but the pairs; where the rows of the sample begin. */
static void open_sample(
    const struct pnet_exec *x, int32_t sample, struct pnet_op_pairs *p, int64_t first[2])
{
    *p = (struct pnet_op_pairs){.rand = x->rand};
    for (int i = SOURCE; i <= TARGET; i++) first[i] = x->in[i].row_splits[sample];
    p->source_rows = x->in[SOURCE].row_splits[sample + 1] - first[SOURCE];
    p->target_rows = x->in[TARGET].row_splits[sample + 1] - first[TARGET];
    p->source = x->geo[SOURCE]->level.xyz + 3 * first[SOURCE];
    p->target = x->geo[TARGET]->level.xyz + 3 * first[TARGET];
    p->rand.purpose = PNET_DRAW_METRIC;
    p->rand.live = NULL;
    p->rand.a = DRAW_POSE;
}

static int64_t draw_side(
    const struct pnet_op_pairs *p, int side, int64_t points, int32_t *row, void *work)
{
    struct pnet_rand rand = p->rand;
    rand.a = side == SOURCE ? DRAW_SOURCE : DRAW_TARGET;
    return pnet_register_draw(
        side == SOURCE ? p->source_rows : p->target_rows, points, &rand, row, work);
}

void pnet_op_pairs_make(
    const struct pnet_exec *x, int32_t sample, int64_t points, bool mutual, struct pnet_op_pairs *p)
{
    int64_t first[2], rows[2] = {x->in[SOURCE].rows, x->in[TARGET].rows};
    int32_t width = x->in[SOURCE].width;
    struct pairs_room room = pairs_room(x->work, rows, width, points);
    struct pnet_described side[2];
    open_sample(x, sample, p, first);
    pnet_rigid_from_floats((const float *)x->in[POSE].data + 16 * (int64_t)sample, p->truth);
    for (int i = SOURCE; i <= TARGET; i++)
        side[i] =
            (struct pnet_described){.features = (const float *)x->in[i].data + first[i] * width,
                .width = width,
                .row = room.row[i],
                .count = draw_side(p, i, points, room.row[i], room.free),
                .xyz = i == SOURCE ? p->source : p->target};
    struct pnet_register_choice chosen;
    p->pairs = room.pairs;
    p->count =
        pnet_register_match(&side[SOURCE], &side[TARGET], mutual, p->pairs, &chosen, room.free);
    double drawn = side[SOURCE].count ? (double)side[SOURCE].count : 1;
    p->distinct = (double)chosen.distinct / drawn;
    p->shared = (double)chosen.shared / drawn;
}

/* The row of `b` nearest to row `at` of `a`, among those drawn. */
static int64_t nearest(
    const double *a, int64_t at, const double *b, const int32_t *row, int64_t count, int32_t width)
{
    double best = INFINITY;
    int64_t found = -1;
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int32_t c = 0; c < width; c++) {
            double d = a[at * width + c] - b[row[i] * (int64_t)width + c];
            sum += d * d;
        }
        if (sum < best) {
            best = sum;
            found = i;
        }
    }
    return found;
}

/* From the target chosen by each drawn source row: a choice is different from those before it, or not. */
static void reference_choice(
    struct pnet_op_pairs *p, const int32_t *row, int64_t count, const int64_t *chosen)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t before = 0, next = -1;
        while (before < i && chosen[before] != chosen[i]) before++;
        p->distinct += before == i && chosen[i] >= 0;
        double best = INFINITY;
        for (int64_t k = 0; k < count; k++) {
            const float *a = p->source + 3 * (int64_t)row[i], *b = p->source + 3 * (int64_t)row[k];
            double x = (double)a[0] - b[0], y = (double)a[1] - b[1], z = (double)a[2] - b[2];
            if (k == i || x * x + y * y + z * z >= best) continue;
            best = x * x + y * y + z * z;
            next = k;
        }
        p->shared += next >= 0 && chosen[i] >= 0 && chosen[i] == chosen[next];
    }
    p->distinct /= count ? (double)count : 1;
    p->shared /= count ? (double)count : 1;
}

void pnet_op_pairs_reference(
    const struct pnet_exec *x, int32_t sample, int64_t points, bool mutual, struct pnet_op_pairs *p)
{
    int64_t first[2], count[2];
    int32_t width = x->in[SOURCE].width, *row[2];
    const double *f[2];
    float pose[16];
    open_sample(x, sample, p, first);
    for (int k = 0; k < 16; k++)
        pose[k] = (float)((const double *)x->in[POSE].data)[16 * (int64_t)sample + k];
    pnet_rigid_from_floats(pose, p->truth);
    for (int i = SOURCE; i <= TARGET; i++) {
        int64_t rows = i == SOURCE ? p->source_rows : p->target_rows;
        void *work = malloc(pnet_register_draw_work(rows) + 1);
        row[i] = calloc((size_t)rows + 1, sizeof *row[i]);
        if (!work || !row[i]) abort();
        count[i] = draw_side(p, i, points, row[i], work);
        f[i] = (const double *)x->in[i].data + first[i] * width;
        free(work);
    }
    p->pairs = calloc((size_t)count[SOURCE] + 1, sizeof *p->pairs);
    int64_t *chosen = calloc((size_t)count[SOURCE] + 1, sizeof *chosen);
    if (!p->pairs || !chosen) abort();
    for (int64_t i = 0; i < count[SOURCE]; i++) {
        int64_t j =
            nearest(f[SOURCE], row[SOURCE][i], f[TARGET], row[TARGET], count[TARGET], width);
        chosen[i] = j;
        if (j < 0 || (mutual && nearest(f[TARGET], row[TARGET][j], f[SOURCE], row[SOURCE],
                                    count[SOURCE], width) != i))
            continue;
        p->pairs[p->count++] = (struct pnet_match){row[SOURCE][i], row[TARGET][j]};
    }
    reference_choice(p, row[SOURCE], count[SOURCE], chosen);
    free(chosen);
    free(row[SOURCE]);
    free(row[TARGET]);
}

void pnet_metric_name(struct pnet_metric_result *r, const char *name, double value)
{
    if (r->value_count < PNET_MAX_NAMED)
        r->values[r->value_count++] = (struct pnet_named_value){name, value};
}
