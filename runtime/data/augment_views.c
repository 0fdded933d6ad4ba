#include "runtime/data/augment_views.h"
#include "runtime/data/augment_draw.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* Reads [from, to], or one number for both. */
static void read_range(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double least, double range[2])
{
    range[0] = range[1] = 1;
    if (!n) return;
    if (n->kind == PNET_YAML_SCALAR) {
        range[0] = range[1] = pnet_yaml_real(y, n, least, 1, 1);
        return;
    }
    if (!pnet_yaml_list(y, n, 2, 2)) return;
    range[0] = pnet_yaml_real(y, n->first, least, 1, 1);
    range[1] = pnet_yaml_real(y, n->first->next, least, 1, 1);
    if (range[0] > range[1])
        pnet_yaml_fail(y, n, "%s: from %g down to %g", n->key, range[0], range[1]);
}

void pnet_views_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_views *v)
{
    static const char *const keys[] = {
        "count", "overlap", "disjoint", "points", "noise", "rotate", "shift", "level", "seed"};
    const struct pnet_yaml_node *rotate;
    *v = (struct pnet_views){.rotate = PNET_ROTATE_XYZ};
    if (!pnet_yaml_map(y, n, "views", keys, COUNT(keys))) return;
    v->count = pnet_yaml_int(y, pnet_yaml_get(n, "count"), 1, 1 << 20, 1);
    read_range(y, pnet_yaml_get(n, "overlap"), 0, v->overlap);
    read_range(y, pnet_yaml_get(n, "points"), 1e-6, v->points);
    v->disjoint = pnet_yaml_bool(y, pnet_yaml_get(n, "disjoint"), false);
    v->level = pnet_yaml_bool(y, pnet_yaml_get(n, "level"), false);
    v->noise_m = pnet_yaml_unit_length(y, pnet_yaml_get(n, "noise"), 0, 1e6, 0);
    v->shift_m = pnet_yaml_unit_length(y, pnet_yaml_get(n, "shift"), 0, 1e6, 0);
    v->seed = pnet_yaml_seed(y, pnet_yaml_get(n, "seed"), 1);
    if ((rotate = pnet_yaml_get(n, "rotate")))
        pnet_rotate_parse(y, rotate, &v->rotate, v->angle_deg);
}

struct pnet_views_draw pnet_views_fixed(const struct pnet_views *v, int split, uint32_t sample)
{
    /* Training never reaches this epoch, so the same seed gives other views there. */
    return (struct pnet_views_draw){
        .seed = v->seed, .epoch = UINT32_MAX - (uint32_t)split, .sample = sample};
}

static double draw_range(const struct pnet_rand *r, int part, const double range[2])
{
    return range[0] + (range[1] - range[0]) * draw_unit(r, part, 0);
}

struct height {
    float along; /* position along the direction across which the cloud is cut */
    int64_t row;
};

static int by_height(const void *a, const void *b)
{
    const struct height *x = a, *y = b;
    if (x->along != y->along) return x->along < y->along ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Draws a uniform direction or, with `level`, a uniform horizontal one. */
static void draw_direction(const struct pnet_rand *r, bool level, double u[3])
{
    double turn = 2 * M_PI * draw_unit(r, DRAW_VIEW_CUT, 1);
    u[2] = level ? 0 : 2 * draw_unit(r, DRAW_VIEW_CUT, 2) - 1;
    u[0] = sqrt(1 - u[2] * u[2]) * cos(turn);
    u[1] = sqrt(1 - u[2] * u[2]) * sin(turn);
}

enum { IN_SOURCE = 1, IN_TARGET = 2 };

/* Chooses the rows that each view sees: the lower and the upper rows along a direction. Of n rows each view has n / (2 -
   overlap); the rows that both have are `overlap` of that. */
static enum pnet_status cut(const struct pnet_views *v, const struct pnet_rand *r,
    const struct pnet_sample *s, uint8_t *seen, struct pnet_error *e)
{
    double overlap = draw_range(r, DRAW_VIEW_CUT, v->overlap), u[3];
    int64_t n = s->rows, size = (int64_t)ceil((double)n / (2 - overlap));
    memset(seen, IN_SOURCE | IN_TARGET, (size_t)n);
    if (size >= n) return PNET_OK;
    struct height *all = malloc((size_t)n * sizeof *all);
    if (!all) return pnet_error_memory(e);
    draw_direction(r, v->level, u);
    for (int64_t i = 0; i < n; i++) {
        const float *p = s->xyz + 3 * i;
        double along = u[0] * (double)p[0] + u[1] * (double)p[1] + u[2] * (double)p[2];
        all[i] = (struct height){(float)along, i};
    }
    qsort(all, (size_t)n, sizeof *all, by_height);
    for (int64_t i = 0; i < n; i++)
        seen[all[i].row] = (uint8_t)((i < size ? IN_SOURCE : 0) | (i >= n - size ? IN_TARGET : 0));
    free(all);
    return PNET_OK;
}

/* Keeps a view's rows, thinned by the view's own share. */
static enum pnet_status thin(const struct pnet_views *v, const struct pnet_rand *r, int side,
    const uint8_t *seen, struct pnet_sample *s, struct pnet_error *e)
{
    int part = side == IN_TARGET ? DRAW_TARGET : 0;
    double share = draw_range(r, DRAW_VIEW_SHARE + part, v->points);
    int64_t *rows = malloc((size_t)s->rows * sizeof *rows), count = 0, first = -1;
    if (!rows) return pnet_error_memory(e);
    for (int64_t i = 0; i < s->rows; i++) {
        if (!(seen[i] & side)) continue;
        if (first < 0) first = i;
        if (draw_unit(r, DRAW_VIEW_POINTS + part, (uint64_t)i) < share) rows[count++] = i;
    }
    if (!count) rows[count++] = first < 0 ? 0 : first;
    pnet_sample_keep(s, rows, count);
    free(rows);
    return PNET_OK;
}

/* Rotates and moves the source; `pose` is the inverse motion. */
static void move_away(const struct pnet_views *v, const struct pnet_rand *r, struct pnet_sample *s,
    struct pnet_pose *pose)
{
    struct pnet_augment turn = {.rotate = v->rotate};
    struct pnet_motion motion;
    memcpy(turn.angle_deg, v->angle_deg, sizeof turn.angle_deg);
    pnet_motion_draw(&turn, r, DRAW_VIEW_TURN, s, &motion);
    for (int c = 0; c < 3; c++)
        motion.shift[c] = v->shift_m * (2 * draw_unit(r, DRAW_VIEW_SHIFT, (uint64_t)c) - 1);
    pnet_motion_apply(&motion, s);
    struct pnet_pose away = pnet_motion_pose(&motion);
    *pose = pnet_pose_inverse(&away);
}

enum pnet_status pnet_views_apply(const struct pnet_views *v, const struct pnet_views_draw *draw,
    struct pnet_sample *source, struct pnet_sample *target, struct pnet_pose *pose,
    struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(draw->seed, draw->epoch, draw->sample);
    int64_t n = source->rows;
    assert(target->rows == n);
    *pose = pnet_pose_identity();
    if (!n) return PNET_OK;
    uint8_t *seen = malloc((size_t)n);
    if (!seen) return pnet_error_memory(e);
    enum pnet_status status = cut(v, &r, source, seen, e);
    /* all points are dealt out, so that a view has the same density inside and outside of the overlap */
    for (int64_t i = 0; v->disjoint && i < n; i++)
        seen[i] &= draw_bits(&r, DRAW_VIEW_DEAL, (uint64_t)i) >> 31 ? IN_SOURCE : IN_TARGET;
    if (!status) status = thin(v, &r, IN_SOURCE, seen, source, e);
    if (!status) status = thin(v, &r, IN_TARGET, seen, target, e);
    free(seen);
    if (status) return status;
    move_away(v, &r, source, pose);
    if (v->noise_m > 0) {
        pnet_jitter(v->noise_m, &r, DRAW_VIEW_NOISE, source);
        pnet_jitter(v->noise_m, &r, DRAW_VIEW_NOISE + DRAW_TARGET, target);
    }
    return PNET_OK;
}
