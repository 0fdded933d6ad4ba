#include "runtime/data/augment.h"
#include "runtime/data/augment_draw.h"

#include <stdlib.h>
#include <string.h>

bool pnet_augment_any(const struct pnet_augment *a)
{
    return a->crop_points || a->crop_radius_m > 0 || a->drop_points > 0 || a->elastic_count ||
           a->flip[0] || a->flip[1] || a->flip[2] || a->rotate || a->scale[1] > 0 ||
           a->jitter_m > 0 || a->colour_drop > 0 || a->colour_shift > 0 || a->colour_jitter > 0;
}

static int by_row(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum pnet_status pnet_limit_side(
    int64_t most, const struct pnet_rand *r, int part, struct pnet_sample *s, struct pnet_error *e)
{
    if (!most || s->rows <= most) return PNET_OK;
    int64_t *rows = calloc((size_t)s->rows, sizeof *rows);
    if (!rows) return pnet_error_memory(e);
    for (int64_t i = 0; i < s->rows; i++) rows[i] = i;
    for (int64_t i = 0; i < most; i++) {
        int64_t k = i + draw_below(r, part, (uint64_t)i, s->rows - i), swap = rows[i];
        rows[i] = rows[k];
        rows[k] = swap;
    }
    qsort(rows, (size_t)most, sizeof *rows, by_row);
    pnet_sample_keep(s, rows, most);
    free(rows);
    return PNET_OK;
}

enum pnet_status pnet_sample_limit(int64_t most, uint64_t seed, uint32_t epoch, uint32_t sample,
    struct pnet_sample *s, struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(seed, epoch, sample);
    return pnet_limit_side(most, &r, DRAW_LIMIT, s, e);
}

struct near {
    float distance2;
    int64_t row;
};

static int by_distance(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    if (x->distance2 != y->distance2) return x->distance2 < y->distance2 ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Crops to the points around a random one: first all points in the ball, then the nearest of these up to the count. */
static enum pnet_status crop(const struct pnet_augment *a, const struct pnet_rand *r, int offset,
    struct pnet_sample *s, struct pnet_error *e)
{
    if ((!a->crop_points || s->rows <= a->crop_points) && !(a->crop_radius_m > 0)) return PNET_OK;
    struct near *all = malloc((size_t)s->rows * sizeof *all);
    int64_t *rows = malloc((size_t)s->rows * sizeof *rows), count = 0;
    if (!all || !rows) {
        free(all);
        free(rows);
        return pnet_error_memory(e);
    }
    const float *centre = s->xyz + 3 * draw_below(r, DRAW_CROP + offset, 0, s->rows);
    float radius = (float)a->crop_radius_m;
    for (int64_t i = 0; i < s->rows; i++) {
        float d[3] = {s->xyz[3 * i] - centre[0], s->xyz[3 * i + 1] - centre[1],
            s->xyz[3 * i + 2] - centre[2]};
        float distance2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        if (radius > 0 && distance2 > radius * radius) continue;
        all[count++] = (struct near){distance2, i};
    }
    if (a->crop_points && count > a->crop_points) {
        qsort(all, (size_t)count, sizeof *all, by_distance);
        count = a->crop_points;
    }
    for (int64_t i = 0; i < count; i++) rows[i] = all[i].row;
    qsort(rows, (size_t)count, sizeof *rows, by_row);
    pnet_sample_keep(s, rows, count);
    free(all);
    free(rows);
    return PNET_OK;
}

static enum pnet_status drop_points(double share, const struct pnet_rand *r, int offset,
    struct pnet_sample *s, struct pnet_error *e)
{
    int64_t *rows = malloc((size_t)s->rows * sizeof *rows), count = 0;
    if (!rows) return pnet_error_memory(e);
    for (int64_t i = 0; i < s->rows; i++)
        if (draw_unit(r, DRAW_DROP + offset, (uint64_t)i) >= share) rows[count++] = i;
    if (!count) rows[count++] = 0;
    pnet_sample_keep(s, rows, count);
    free(rows);
    return PNET_OK;
}

/* c = a * b */
static void multiply(double a[3][3], double b[3][3], double c[3][3])
{
    double out[3][3];
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            out[i][k] = a[i][0] * b[0][k] + a[i][1] * b[1][k] + a[i][2] * b[2][k];
    memcpy(c, out, sizeof out);
}

/* m = (rotation about an axis) * m */
static void turn(double m[3][3], int axis, double angle)
{
    int p = (axis + 1) % 3, q = (axis + 2) % 3;
    double t[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    t[p][p] = t[q][q] = cos(angle);
    t[q][p] = sin(angle);
    t[p][q] = -t[q][p];
    multiply(t, m, m);
}

/* Sets a uniform rotation from three uniform numbers (Shoemake, "Uniform random rotations", Graphics Gems III, 1992). */
static void turn_any(double m[3][3], const struct pnet_rand *r, int part)
{
    double u = draw_unit(r, part, 0), s = sqrt(1 - u), t = sqrt(u);
    double a = 2 * M_PI * draw_unit(r, part, 1), b = 2 * M_PI * draw_unit(r, part, 2);
    double x = s * sin(a), y = s * cos(a), z = t * sin(b), w = t * cos(b);
    double q[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
        {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
        {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    multiply(q, m, m);
}

void pnet_turn_draw(
    const struct pnet_augment *a, const struct pnet_rand *r, int offset, double m[3][3])
{
    int part = DRAW_ROTATE + offset;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) m[i][k] = i == k;
    for (int i = 0; i < 3; i++)
        if (a->flip[i] && draw_bits(r, DRAW_FLIP, (uint64_t)i) >> 31) m[i][i] = -1;
    if (a->rotate == PNET_ROTATE_Z) turn(m, 2, 2 * M_PI * draw_unit(r, part, 0));
    if (a->rotate == PNET_ROTATE_XYZ) turn_any(m, r, part);
    for (int i = 0; a->rotate == PNET_ROTATE_ANGLES && i < 3; i++)
        turn(m, i, (2 * draw_unit(r, part, (uint64_t)i) - 1) * a->angle_deg[i] * M_PI / 180);
}

static void transform(
    float p[3], const double m[3][3], const double centre[3], const double shift[3])
{
    double d[3];
    for (int i = 0; i < 3; i++) d[i] = (double)p[i] - centre[i];
    for (int i = 0; i < 3; i++)
        p[i] = (float)(centre[i] + (m[i][0] * d[0] + m[i][1] * d[1] + m[i][2] * d[2]) + shift[i]);
}

static bool is_normal(const struct pnet_input_field *f)
{
    return f->kind == PNET_INPUT_FEATURE && f->width == 3 && !f->per_cloud &&
           strcmp(f->name, "normal") == 0;
}

static bool is_colour(const struct pnet_input_field *f)
{
    return f->kind == PNET_INPUT_FEATURE && f->width == 3 && !f->per_cloud &&
           (strcmp(f->name, "rgb") == 0 || strcmp(f->name, "color") == 0 ||
               strcmp(f->name, "colour") == 0);
}

void pnet_motion_draw(const struct pnet_augment *a, const struct pnet_rand *r, int offset,
    const struct pnet_sample *s, struct pnet_motion *motion)
{
    double factor = a->scale[1] > 0
                        ? a->scale[0] + (a->scale[1] - a->scale[0]) * draw_unit(r, DRAW_SCALE, 0)
                        : 1;
    *motion = (struct pnet_motion){.centre = {0, 0, 0}};
    pnet_turn_draw(a, r, offset, motion->turn);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) motion->m[i][k] = motion->turn[i][k] * factor;
    for (int64_t i = 0; i < s->rows; i++)
        for (int c = 0; c < 3; c++) motion->centre[c] += (double)s->xyz[3 * i + c];
    for (int c = 0; c < 3; c++) motion->centre[c] /= (double)s->rows;
}

void pnet_normals_turn(const double turn[3][3], struct pnet_sample *s)
{
    static const double none[3] = {0, 0, 0};
    for (int f = 0; f < s->input->field_count; f++) {
        float *normal = s->fields[f];
        if (!normal || !is_normal(&s->input->fields[f])) continue;
        for (int64_t i = 0; i < s->rows; i++) transform(normal + 3 * i, turn, none, none);
    }
}

void pnet_motion_apply(const struct pnet_motion *motion, struct pnet_sample *s)
{
    for (int64_t i = 0; i < s->rows; i++)
        transform(s->xyz + 3 * i, motion->m, motion->centre, motion->shift);
    pnet_normals_turn(motion->turn, s);
}

void pnet_jitter(double sigma, const struct pnet_rand *r, int part, struct pnet_sample *s)
{
    for (int64_t i = 0; i < 3 * s->rows; i += 2) {
        double two[2];
        draw_two_normals(r, part, (uint64_t)i / 2, two);
        for (int k = 0; k < 2 && i + k < 3 * s->rows; k++) {
            double d = two[k] > 3 ? 3 : two[k] < -3 ? -3 : two[k];
            s->xyz[i + k] = (float)((double)s->xyz[i + k] + sigma * d);
        }
    }
}

static void recolour(const struct pnet_augment *a, const struct pnet_rand *r, int offset, int field,
    struct pnet_sample *s)
{
    int part = DRAW_COLOUR + offset, noise = DRAW_COLOUR_JITTER + field + offset;
    float *colour = s->fields[field];
    bool dropped = draw_unit(r, part, 0) < a->colour_drop;
    for (int64_t i = 0; i < 3 * s->rows; i++) {
        double v = (double)colour[i];
        v += a->colour_shift * (2 * draw_unit(r, part, 1 + (uint64_t)(i % 3)) - 1);
        if (a->colour_jitter > 0) v += a->colour_jitter * draw_normal(r, noise, (uint64_t)i);
        colour[i] = dropped ? 0 : (float)v;
    }
}

static bool moves(const struct pnet_augment *a)
{
    return a->flip[0] || a->flip[1] || a->flip[2] || a->rotate || a->scale[1] > 0;
}

enum pnet_status pnet_augment_side(const struct pnet_augment *a, const struct pnet_rand *r,
    int offset, struct pnet_sample *s, struct pnet_motion *motion, struct pnet_error *e)
{
    static const struct pnet_augment still = {.crop_points = 0};
    enum pnet_status status = crop(a, r, offset, s, e);
    if (!status && a->drop_points > 0) status = drop_points(a->drop_points, r, offset, s, e);
    for (int i = 0; i < a->elastic_count && !status; i++)
        status = pnet_elastic_apply(&a->elastic[i], r, i, s, e);
    if (status) return status;
    pnet_motion_draw(moves(a) ? a : &still, r, offset, s, motion);
    if (moves(a)) pnet_motion_apply(motion, s);
    if (a->jitter_m > 0) pnet_jitter(a->jitter_m, r, DRAW_JITTER + offset, s);
    if (a->colour_drop > 0 || a->colour_shift > 0 || a->colour_jitter > 0)
        for (int f = 0; f < s->input->field_count; f++)
            if (s->fields[f] && is_colour(&s->input->fields[f])) recolour(a, r, offset, f, s);
    return PNET_OK;
}

enum pnet_status pnet_augment_apply(const struct pnet_augment *a, uint64_t seed, uint32_t epoch,
    uint32_t sample, struct pnet_sample *s, struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(seed, epoch, sample);
    struct pnet_motion motion;
    return s->rows ? pnet_augment_side(a, &r, 0, s, &motion, e) : PNET_OK;
}
