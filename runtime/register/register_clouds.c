#include "runtime/register/register_clouds.h"

#include <stdlib.h>
#include <string.h>

/* Allocates at least one byte, so that NULL always means that memory is out. */
static void *workspace(size_t bytes)
{
    return aligned_alloc(64, (bytes + 64) / 64 * 64);
}

/* The rows that are drawn, and their number. */
struct drawn {
    int32_t *row;
    int64_t count;
};

static enum pnet_status draw_rows(const struct pnet_register_cloud *c, int64_t points,
    struct pnet_rand rand, uint32_t side, struct drawn *d, struct pnet_error *e)
{
    void *work = workspace(pnet_register_draw_work(c->rows));
    rand.a = side;
    d->row = calloc((size_t)(c->rows < points ? c->rows : points) + 1, sizeof *d->row);
    enum pnet_status st = work && d->row ? PNET_OK : pnet_error_memory(e);
    if (!st) d->count = pnet_register_draw(c->rows, points, &rand, d->row, work);
    free(work);
    return st;
}

static enum pnet_status match(const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, const struct drawn drawn[2], bool mutual,
    struct pnet_match *matches, int64_t *count, struct pnet_error *e)
{
    struct pnet_described s = {source->features, source->width, drawn[0].row, drawn[0].count, NULL},
                          t = {target->features, target->width, drawn[1].row, drawn[1].count, NULL};
    void *work = workspace(pnet_register_match_work(s.count, t.count, s.width));
    if (!work) return pnet_error_memory(e);
    *count = pnet_register_match(&s, &t, mutual, matches, NULL, work);
    free(work);
    return PNET_OK;
}

/* Counts the inliers that RANSAC finds among meaningless matches: shuffles the targets of `matches`, so that the rows on
   either side stay the same. */
static int64_t by_chance(const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, struct pnet_ransac o, int64_t count,
    struct pnet_match *matches, void *work)
{
    struct pnet_ransac_result r;
    struct pnet_rand rand = o.rand;
    rand.a = 3;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t k =
            (int64_t)((uint64_t)pnet_rand_bits(&rand, (uint64_t)i) * (uint64_t)(i + 1) >> 32);
        int32_t other = matches[i].target;
        matches[i].target = matches[k].target;
        matches[k].target = other;
    }
    pnet_register_ransac(count, matches, source->xyz, target->xyz, &o, &r, work);
    return r.inliers;
}

/* Sets what the inliers determine. Leaves the matches as they are. */
static enum pnet_status measure_inliers(const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, double distance, const struct pnet_match *matches,
    struct pnet_register_found *found, struct pnet_error *e)
{
    size_t count = (size_t)found->matches;
    struct pnet_match *inliers = malloc((count + 1) * sizeof *inliers);
    double rms;
    if (!inliers) return pnet_error_memory(e);
    memcpy(inliers, matches, count * sizeof *inliers);
    int64_t right = pnet_register_right(
        found->matches, inliers, source->xyz, target->xyz, found->ransac.pose, distance, &rms);
    found->off_line_m = pnet_register_off_line(right, inliers, source->xyz);
    free(inliers);
    return PNET_OK;
}

enum pnet_status pnet_register_features(const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, const struct pnet_register_options *o,
    struct pnet_register_found *found, struct pnet_error *e)
{
    struct drawn drawn[2] = {0};
    struct pnet_match *matches = NULL;
    void *work = NULL;
    struct pnet_ransac ransac = o->ransac;
    enum pnet_status st = draw_rows(source, o->points, o->ransac.rand, 0, &drawn[0], e);
    if (!st) st = draw_rows(target, o->points, o->ransac.rand, 1, &drawn[1], e);
    if (!st) {
        matches = calloc((size_t)drawn[0].count + 1, sizeof *matches);
        if (!matches) st = pnet_error_memory(e);
    }
    *found = (struct pnet_register_found){0};
    if (!st) st = match(source, target, drawn, o->mutual, matches, &found->matches, e);
    if (!st) {
        work = workspace(pnet_register_ransac_work(found->matches));
        if (!work) st = pnet_error_memory(e);
    }
    ransac.rand.a = 2;
    if (!st) {
        pnet_register_ransac(
            found->matches, matches, source->xyz, target->xyz, &ransac, &found->ransac, work);
        st = measure_inliers(source, target, ransac.distance, matches, found, e);
    }
    if (!st) {
        found->chance = by_chance(source, target, ransac, found->matches, matches, work);
    }
    free(work);
    free(matches);
    free(drawn[0].row);
    free(drawn[1].row);
    return st;
}

enum pnet_status pnet_register_refine(const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, const double pose[16], const struct pnet_icp *o,
    struct pnet_icp_result *r, double hold[6], struct pnet_error *e)
{
    struct pnet_icp surfaces = *o;
    surfaces.planes = true;
    void *work = workspace(pnet_register_icp_work(source->rows, target->rows, &surfaces));
    if (!work) return pnet_error_memory(e);
    pnet_register_icp(source->rows, source->xyz, target->rows, target->xyz, pose, o, r, work);
    pnet_register_hold(
        source->rows, source->xyz, target->rows, target->xyz, r->pose, &surfaces, hold, work);
    free(work);
    return PNET_OK;
}
