#include "runtime/data/partial.h"
#include "runtime/data/augment_draw.h"
#include "runtime/data/dataset.h"

#include <stdlib.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const int64_t MOST_POINTS = 1 << 24;

static int64_t read_count(
    struct pnet_yaml *y, const struct pnet_yaml_node *map, const char *key, int64_t standard)
{
    return pnet_yaml_int(y, pnet_yaml_get(map, key), 1, MOST_POINTS, standard);
}

void pnet_partial_parse_files(
    struct pnet_yaml *y, const struct pnet_yaml_node *entry, struct pnet_partial *p)
{
    *p = (struct pnet_partial){.kind = PNET_PARTIAL_FILE, .count = 1, .seed = 1};
    p->points = read_count(y, entry, "points", 0);
    p->full_points = read_count(y, entry, "full_points", 0);
}

struct pnet_views_draw pnet_partial_fixed(const struct pnet_partial *p, int split, uint32_t sample)
{
    /* Training never reaches this epoch, so the same seed gives other draws there. */
    return (struct pnet_views_draw){
        .seed = p->seed, .epoch = UINT32_MAX - (uint32_t)split, .sample = sample};
}

/* Reads [from, to], or one number for both. */
static void read_part(struct pnet_yaml *y, const struct pnet_yaml_node *n, double part[2])
{
    part[0] = 0.25;
    part[1] = 0.75;
    if (!n) return;
    if (n->kind == PNET_YAML_SCALAR) {
        part[0] = part[1] = pnet_yaml_real(y, n, 0, 0.99, 0.5);
        return;
    }
    if (!pnet_yaml_list(y, n, 2, 2)) return;
    part[0] = pnet_yaml_real(y, n->first, 0, 0.99, 0.25);
    part[1] = pnet_yaml_real(y, n->first->next, 0, 0.99, 0.75);
    if (part[0] > part[1]) pnet_yaml_fail(y, n, "part: from %g down to %g", part[0], part[1]);
}

/* Reads the keys of `views`; p->kind is the standard one. */
static void read_views(
    struct pnet_yaml *y, const struct pnet_yaml_node *views, struct pnet_partial *p)
{
    static const char *const keys[] = {"count", "kind", "points", "part", "seed"};
    static const char *const kinds[] = {"depth", "cut"};
    if (!views || !pnet_yaml_map(y, views, "views", keys, COUNT(keys))) return;
    int kind = pnet_yaml_choice(y, pnet_yaml_get(views, "kind"), kinds, COUNT(kinds), p->cloud);
    p->kind = kind == 1 ? PNET_PARTIAL_CUT : PNET_PARTIAL_DEPTH;
    if (p->cloud && kind == 0)
        pnet_yaml_fail(y, views,
            "kind: depth is for `mesh`: a camera sees surfaces, and a cloud has none; use `kind: "
            "cut`");
    if (p->kind != PNET_PARTIAL_CUT && pnet_yaml_get(views, "part"))
        pnet_yaml_fail(y, views, "part: is for `kind: cut`");
    p->count = pnet_yaml_int(y, pnet_yaml_get(views, "count"), 1, 1 << 20, 1);
    p->points = read_count(y, views, "points", 2048);
    read_part(y, pnet_yaml_get(views, "part"), p->part);
    p->seed = pnet_yaml_seed(y, pnet_yaml_get(views, "seed"), 1);
}

void pnet_partial_parse_mesh(
    struct pnet_yaml *y, const struct pnet_yaml_node *entry, struct pnet_partial *p)
{
    *p = (struct pnet_partial){.kind = PNET_PARTIAL_DEPTH, .count = 1, .points = 2048, .seed = 1};
    if (!pnet_yaml_get(entry, "points"))
        pnet_yaml_fail(y, entry, "`mesh` needs `points`, the number of points of the full cloud");
    p->full_points = read_count(y, entry, "points", 1);
    read_views(y, pnet_yaml_get(entry, "views"), p);
}

void pnet_partial_parse_cloud(
    struct pnet_yaml *y, const struct pnet_yaml_node *entry, struct pnet_partial *p)
{
    const struct pnet_yaml_node *points = pnet_yaml_get(entry, "points");
    *p = (struct pnet_partial){
        .kind = PNET_PARTIAL_CUT, .cloud = true, .count = 1, .points = 2048, .seed = 1};
    if (points)
        pnet_yaml_fail(y, points,
            "points: of the full cloud they are `full_points`, of the partial one `points` in "
            "`views`");
    p->full_points = read_count(y, entry, "full_points", 0);
    read_views(y, pnet_yaml_get(entry, "views"), p);
}

struct pnet_views_draw pnet_partial_full(const struct pnet_partial *p, int split, uint32_t sample)
{
    /* Training, views and turned pairs use other epochs. */
    return (struct pnet_views_draw){
        .seed = p->seed, .epoch = UINT32_MAX - 2 * PNET_SPLITS - (uint32_t)split, .sample = sample};
}

/* Gives one cloud `count` points; 0: it keeps its own. */
static enum pnet_status set_count(
    int64_t count, const struct pnet_rand *r, int part, struct pnet_sample *s, struct pnet_error *e)
{
    if (!count || !s->rows || s->rows == count) return PNET_OK;
    if (s->rows > count) return pnet_limit_side(count, r, part, s, e);
    int64_t *rows = malloc((size_t)count * sizeof *rows);
    if (!rows) return pnet_error_memory(e);
    for (int64_t i = 0; i < count; i++)
        rows[i] = i < s->rows ? i : draw_below(r, part, (uint64_t)i, s->rows);
    enum pnet_status status = pnet_sample_take(s, rows, count, e);
    free(rows);
    return status;
}

enum pnet_status pnet_partial_count_full(const struct pnet_partial *p,
    const struct pnet_views_draw *draw, struct pnet_sample *full, struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(draw->seed, draw->epoch, draw->sample);
    return set_count(p->full_points, &r, DRAW_COUNT + DRAW_TARGET, full, e);
}

enum pnet_status pnet_partial_count(const struct pnet_partial *p,
    const struct pnet_views_draw *draw, struct pnet_sample *partial, struct pnet_sample *full,
    struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(draw->seed, draw->epoch, draw->sample);
    enum pnet_status status = set_count(p->points, &r, DRAW_COUNT, partial, e);
    return status ? status : set_count(p->full_points, &r, DRAW_COUNT + DRAW_TARGET, full, e);
}
