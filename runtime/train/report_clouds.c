#include "runtime/train/report_clouds.h"
#include "runtime/train/report_plot.h"

#include <math.h>
#include <stdbool.h>

/* Units of a drawing, and of the space around its clouds. */
enum { SIDE = 210, GAP = 5, MARGIN = 14, TITLE = 18 };

/* The camera: how far a point lies to the right, up, and towards the camera. */
struct camera {
    double axis[3][3];
    double middle[2], scale; /* of the first two */
    double near, far;        /* depths */
};

static struct camera camera_at(double azimuth, double elevation)
{
    double a = azimuth / 180 * 3.14159265358979323846, e = elevation / 180 * 3.14159265358979323846;
    return (struct camera){
        .axis = {{-sin(a), cos(a), 0}, {-sin(e) * cos(a), -sin(e) * sin(a), cos(e)},
            {cos(e) * cos(a), cos(e) * sin(a), sin(e)}}};
}

static void look(const struct camera *c, const float p[3], double at[3])
{
    for (int k = 0; k < 3; k++)
        at[k] = c->axis[k][0] * (double)p[0] + c->axis[k][1] * (double)p[1] +
                c->axis[k][2] * (double)p[2];
}

static bool is_finite(const float p[3])
{
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);
}

/* Points the camera at the partial and the true cloud. */
static void aim(struct camera *c, const struct pnet_report_sample *s)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int k = 0; k < PNET_REPORT_CLOUDS; k += PNET_REPORT_TRUTH - PNET_REPORT_PARTIAL)
        for (int64_t i = 0; i < s->clouds[k].rows; i++) {
            double at[3];
            if (!is_finite(s->clouds[k].xyz + 3 * i)) continue;
            look(c, s->clouds[k].xyz + 3 * i, at);
            for (int d = 0; d < 3; d++) {
                low[d] = fmin(low[d], at[d]);
                high[d] = fmax(high[d], at[d]);
            }
        }
    if (!(low[0] <= high[0]))
        for (int d = 0; d < 3; d++) low[d] = high[d] = 0;
    double widest = fmax(fmax(high[0] - low[0], high[1] - low[1]), 1e-6);
    for (int d = 0; d < 2; d++) c->middle[d] = (low[d] + high[d]) / 2;
    c->scale = (SIDE - 2 * MARGIN) / widest;
    c->far = low[2];
    c->near = high[2];
}

/* Far points are drawn first. */
enum { DEPTHS = 3 };
static const double strengths[DEPTHS] = {0.25, 0.5, 0.9};

/* Where a point is drawn in a frame, and at which depth. Returns whether it lies in the frame. */
static bool place(const struct camera *c, const float p[3], double xy[2], int *depth)
{
    double at[3] = {INFINITY, INFINITY, INFINITY};
    if (is_finite(p)) look(c, p, at);
    double share = (at[2] - c->far) / fmax(c->near - c->far, 1e-9) * DEPTHS;
    *depth = share >= DEPTHS ? DEPTHS - 1 : share >= 1 ? (int)share : 0;
    xy[0] = SIDE / 2.0 + (at[0] - c->middle[0]) * c->scale;
    xy[1] = SIDE / 2.0 - (at[1] - c->middle[1]) * c->scale;
    return xy[0] >= 0 && xy[0] <= SIDE && xy[1] >= 0 && xy[1] <= SIDE;
}

/* Draws the points of one depth as lines of length 0 with round ends. Returns how many lie beyond the frame. */
static int64_t draw_depth(FILE *out, const struct camera *c, const struct pnet_report_cloud *cloud,
    int depth, double left, const char *colour)
{
    int64_t step = (cloud->rows + PNET_REPORT_DOTS - 1) / PNET_REPORT_DOTS, beyond = 0;
    fprintf(out, "<path class=\"dots %s\" opacity=\"%g\" d=\"", colour, strengths[depth]);
    for (int64_t i = 0; i < cloud->rows; i += step) {
        double xy[2];
        int own;
        bool inside = place(c, cloud->xyz + 3 * i, xy, &own);
        if (own != depth) continue;
        beyond += !inside;
        if (inside) fprintf(out, "M%.1f %.1fh0", left + xy[0], TITLE + xy[1]);
    }
    fputs("\"/>", out);
    return beyond;
}

void pnet_report_sample_put(FILE *out, const struct pnet_report_sample *s)
{
    static const char *const titles[] = {"partial", "prediction", "truth"};
    static const char *const colours[] = {"s0", "s1", "s2"};
    struct camera c = camera_at(-60, 25);
    aim(&c, s);
    fputs("<figure><figcaption>", out);
    pnet_html_put(out, s->name);
    fprintf(out, "</figcaption>\n<svg viewBox=\"0 0 %d %d\">", 3 * SIDE + 2 * GAP, TITLE + SIDE);
    for (int k = 0; k < PNET_REPORT_CLOUDS; k++) {
        double left = k * (SIDE + GAP);
        int64_t beyond = 0;
        fprintf(out, "<rect class=\"frame\" x=\"%g\" y=\"%d\" width=\"%d\" height=\"%d\"/>", left,
            TITLE, SIDE, SIDE);
        for (int depth = 0; depth < DEPTHS; depth++)
            beyond += draw_depth(out, &c, &s->clouds[k], depth, left, colours[k]);
        fprintf(out, "<text x=\"%g\" y=\"12\">%s, %lld points", left, titles[k],
            (long long)s->clouds[k].rows);
        if (beyond) fprintf(out, ", %lld drawn ones beyond the frame", (long long)beyond);
        fputs("</text>\n", out);
    }
    fputs("</svg></figure>\n", out);
}
