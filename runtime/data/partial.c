#include "runtime/data/partial.h"
#include "runtime/data/augment_draw.h"

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

enum pnet_status pnet_partial_count(const struct pnet_partial *p,
    const struct pnet_views_draw *draw, struct pnet_sample *partial, struct pnet_sample *full,
    struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(draw->seed, draw->epoch, draw->sample);
    enum pnet_status status = set_count(p->points, &r, DRAW_COUNT, partial, e);
    return status ? status : set_count(p->full_points, &r, DRAW_COUNT + DRAW_TARGET, full, e);
}
