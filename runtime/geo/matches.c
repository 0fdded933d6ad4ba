/* Which rows of two clouds' levels lie near each other under a pose. */
#include "runtime/geo/walk.h"
#include "runtime/base/json.h"
#include "runtime/base/number.h"

#include "kernels/matches.h"

#include <math.h>
#include <string.h>

enum { MATCH_START, MATCH_OTHER };
enum { POSE_BYTES = 16 * sizeof(float) };

static bool same(const struct pnet_geo_request *q, const struct pnet_geo_request *r)
{
    return q->matches.pose == r->matches.pose && q->matches.radius == r->matches.radius;
}

static uint32_t mix(const struct pnet_geo_request *q)
{
    uint32_t bits;
    memcpy(&bits, &q->matches.radius, sizeof bits);
    return bits;
}

static int reads(const struct pnet_geo_request *q)
{
    return q->matches.pose;
}

static void walk(struct pnet_geo_walk *w)
{
    const struct pnet_geo_request *q = w->q;
    const struct pnet_plan_tensor *t = &w->plan->tensors[q->matches.pose];
    float radius = q->matches.radius;
    struct pnet_level from = pnet_geo_level(w, q->a), to = pnet_geo_level(w, q->b),
                      from_room = pnet_geo_room(w, q->a), to_room = pnet_geo_room(w, q->b);
    const void *given = w->batch ? w->batch->inputs[t->input].fields[t->field] : NULL, *pose;
    int32_t samples = w->batch ? w->batch->samples : w->counts->samples;
    int64_t *number = &w->counts->of[w->item][0];
    void *work;
    int64_t *start = pnet_geo_buffer(w, MATCH_START, from.rows, 1, 1, sizeof *start);
    pose = pnet_geo_arrive(w, PNET_WORK(w->device, matches_work)(&from_room, &to_room, radius, 0),
        &work, given, samples, POSE_BYTES);
    if (pnet_geo_builds(w))
        *number = PNET_KERNEL(w, matches_count)(&from, &to, pose, radius, start, work);
    int32_t *other = pnet_geo_buffer(w, MATCH_OTHER, *number, 1, 0, sizeof *other);
    size_t bytes =
        PNET_WORK(w->device, matches_work)(&from_room, &to_room, radius, pnet_capacity(*number));
    pose = pnet_geo_arrive(w, bytes, &work, given, samples, POSE_BYTES);
    if (pnet_geo_builds(w))
        PNET_KERNEL(w, matches_write)(&from, &to, pose, radius, *number, start, other, work);
}

static void view(const struct pnet_geo_look *l, struct pnet_geo_view *v)
{
    v->forward = (struct pnet_triplets){.rows = v->a_rows,
        .others = v->b_rows,
        .count = pnet_look_count(l, 0),
        .start = pnet_look_data(l, l->item, MATCH_START),
        .other = pnet_look_data(l, l->item, MATCH_OTHER),
        .live = v->a_live};
}

/* Matches fill a disk of the level's cells. */
static void assume(const struct pnet_plan *p, int item, unsigned forms, struct pnet_counts *c)
{
    (void)forms;
    const struct pnet_geo_request *q = &p->geo[item].request;
    double cell = p->levels[q->a].cell;
    double each = cell > 0 ? M_PI * pow((double)q->matches.radius / cell, 2) : 16;
    c->of[item][0] = pnet_geo_assumed((double)c->rows[q->a] * each);
}

static void print(const struct pnet_plan *p, const struct pnet_geo_request *q, FILE *out)
{
    pnet_number_write(
        out, "  pose=%s radius=%gm", p->tensors[q->matches.pose].name, (double)q->matches.radius);
}

static void describe(const struct pnet_plan *p, int item, const struct pnet_counts *c, FILE *out)
{
    const struct pnet_geo_request *q = &p->geo[item].request;
    int64_t number = c->of[item][0], rows = c->rows[q->a];
    pnet_number_write(out, "matches: %s to %s, radius %g m: %lld, %.1f a point\n",
        p->levels[q->a].name, p->levels[q->b].name, (double)q->matches.radius, (long long)number,
        rows ? (double)number / (double)rows : 0);
}

static void json(
    const struct pnet_plan *p, int item, const struct pnet_counts *c, struct pnet_json *j)
{
    const struct pnet_geo_request *q = &p->geo[item].request;
    pnet_json_string(j, "source", p->levels[q->a].name);
    pnet_json_string(j, "target", p->levels[q->b].name);
    pnet_json_double(j, "radius_m", (double)q->matches.radius);
    pnet_json_int(j, "matches", c->of[item][0]);
}

const struct pnet_geo_kind pnet_geo_matches = {
    .name = "matches",
    .flags = PNET_GEO_SEARCHES,
    .counts = 1,
    .class_counts = 1,
    .part = {PNET_PART_MAPS, PNET_PART_MAPS},
    .same = same,
    .mix = mix,
    .reads = reads,
    .walk = walk,
    .view = view,
    .assume = assume,
    .print = print,
    .describe = describe,
    .list = "matches",
    .json = json,
};
