#include "runtime/train/report_plot.h"

#include <math.h>
#include <stdbool.h>

/* Units of the drawing; the page scales it. */
enum { WIDTH = 640, HEIGHT = 260, LEFT = 64, RIGHT = 24, TOP = 10, BOTTOM = 30, COLUMNS = 280 };

/* The area of the data in the drawing. */
struct frame {
    double x0, x1, y0, y1; /* y in decades where `decades` */
    bool decades;
};

void pnet_html_put(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&')
            fputs("&amp;", out);
        else if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else if (c >= 0x20 || c == '\n' || c == '\t')
            fputc(c, out);
    }
}

void pnet_html_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.4g", value);
    else
        fputs("&ndash;", out);
}

/* Tells whether the value is finite and small enough that differences do not overflow. */
static bool is_drawable(double value)
{
    return fabs(value) <= 1e300;
}

static double y_of(const struct frame *f, double y)
{
    if (f->decades) y = log10(y);
    return TOP + (f->y1 - y) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

static double x_of(const struct frame *f, double x)
{
    return LEFT + (x - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

/* Widens an interval of length 0. */
static void widen(double *low, double *high)
{
    if (*high > *low) return;
    double by = *low != 0 ? fabs(*low) * 0.1 : 0.5;
    *low -= by;
    *high += by;
}

/* The box around all finite points. Returns false where there is none. */
static bool frame_of(const struct pnet_series *series, size_t count, struct frame *f)
{
    *f = (struct frame){.x0 = INFINITY, .x1 = -INFINITY, .y0 = INFINITY, .y1 = -INFINITY};
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < series[s].count; i++) {
            double x = series[s].x[i], y = series[s].y[i];
            if (!is_drawable(x) || !is_drawable(y)) continue;
            f->x0 = fmin(f->x0, x);
            f->x1 = fmax(f->x1, x);
            f->y0 = fmin(f->y0, y);
            f->y1 = fmax(f->y1, y);
        }
    if (f->x0 > f->x1) return false;
    f->decades = f->y0 > 0 && f->y1 / f->y0 > 100;
    if (f->decades) {
        f->y0 = log10(f->y0);
        f->y1 = log10(f->y1);
    }
    widen(&f->x0, &f->x1);
    widen(&f->y0, &f->y1);
    return true;
}

/* Returns the distance of ticks: 1, 2 or 5 times a power of ten, for at most `most` of them. */
static double tick_step(double low, double high, int most)
{
    double rough = (high - low) / most, power = pow(10, floor(log10(rough)));
    double digit = rough / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static void put_y_tick(FILE *out, const struct frame *f, double value)
{
    double y = y_of(f, value);
    fprintf(out,
        "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" class=\"y\">%.4g</text>",
        LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, value);
}

/* Ticks are counted, so the loop ends even if adding the distance does not change a value. */
static void put_axes(FILE *out, const struct frame *f)
{
    enum { MOST = 8 };
    double step = tick_step(f->y0, f->y1, MOST - 2);
    if (f->decades) step = fmax(ceil(step), 1);
    double first = ceil(f->y0 / step);
    for (int k = 0; k < MOST && (first + k) * step <= f->y1; k++)
        put_y_tick(out, f, f->decades ? pow(10, (first + k) * step) : (first + k) * step);
    step = fmax(tick_step(f->x0, f->x1, MOST - 1), 1);
    first = ceil(f->x0 / step);
    for (int k = 0; k <= MOST && (first + k) * step <= f->x1; k++)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" class=\"x\">%.10g</text>",
            x_of(f, (first + k) * step), HEIGHT - 8, (first + k) * step);
    fprintf(out, "<path class=\"axis\" d=\"M%d %dH%d\"/>", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT);
}

/* One column of a curve. */
struct column {
    double x, mean, low, high;
    size_t points; /* finite ones */
};

/* Fills the columns of a series, or one for each point if there are few. Returns their number. */
static size_t columns_of(
    const struct pnet_series *s, const struct frame *f, struct column columns[COLUMNS])
{
    size_t used = 0;
    long last = -1;
    for (size_t i = 0; i < s->count; i++) {
        double span = (s->x[i] - f->x0) / (f->x1 - f->x0);
        if (!is_drawable(s->x[i]) || !(span >= 0 && span <= 1)) continue;
        long place = s->count <= COLUMNS ? (long)i : (long)(span * (COLUMNS - 1));
        if (place != last && used < COLUMNS)
            columns[used++] = (struct column){.x = s->x[i], .low = INFINITY, .high = -INFINITY};
        last = place;
        struct column *c = &columns[used - 1];
        if (!is_drawable(s->y[i])) continue;
        c->points++;
        c->mean += (s->y[i] - c->mean) / (double)c->points;
        c->low = fmin(c->low, s->y[i]);
        c->high = fmax(c->high, s->y[i]);
    }
    return used;
}

static void put_band(
    FILE *out, const struct frame *f, const struct column *columns, size_t count, size_t colour)
{
    fprintf(out, "<path class=\"band s%zu\" d=\"", colour);
    for (size_t begin = 0; begin < count;) {
        size_t end = begin;
        while (end < count && columns[end].points) end++;
        for (size_t i = begin; i < end; i++)
            fprintf(out, "%c%.1f %.1f", i == begin ? 'M' : 'L', x_of(f, columns[i].x),
                y_of(f, columns[i].high));
        for (size_t i = end; i > begin; i--)
            fprintf(out, "L%.1f %.1f", x_of(f, columns[i - 1].x), y_of(f, columns[i - 1].low));
        if (end > begin) fputc('Z', out);
        begin = end + 1;
    }
    fputs("\"/>", out);
}

static void put_curve(FILE *out, const struct frame *f, const struct pnet_series *s, size_t colour)
{
    struct column columns[COLUMNS];
    size_t count = columns_of(s, f, columns);
    if (s->count > COLUMNS) put_band(out, f, columns, count, colour);
    fprintf(out, "<path class=\"line s%zu\" d=\"", colour);
    for (size_t i = 0; i < count; i++)
        if (columns[i].points)
            fprintf(out, "%c%.1f %.1f", i && columns[i - 1].points ? 'L' : 'M',
                x_of(f, columns[i].x), y_of(f, columns[i].mean));
    fputs("\"/>", out);
    for (size_t i = 0; count <= 60 && i < count; i++) {
        if (!columns[i].points) continue;
        fprintf(out, "<circle class=\"dot s%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>", colour,
            x_of(f, columns[i].x), y_of(f, columns[i].mean));
        pnet_html_put(out, s->name);
        fprintf(out, " %.6g at %.10g</title></circle>", columns[i].mean, columns[i].x);
    }
}

void pnet_plot_put(FILE *out, const char *title, const struct pnet_series *series, size_t count)
{
    enum { COLOURS = 8 };
    struct frame f;
    if (!frame_of(series, count, &f)) return;
    fputs("<figure><figcaption>", out);
    pnet_html_put(out, title);
    if (f.decades) fputs(" <small>(logarithmic)</small>", out);
    for (size_t s = 0; s < count; s++) {
        fprintf(out, " <span class=\"key s%zu\">", s % COLOURS);
        pnet_html_put(out, series[s].name);
        fputs(" <b>", out);
        pnet_html_number(out, series[s].y[series[s].count - 1]);
        fputs("</b></span>", out);
    }
    fprintf(
        out, "</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    pnet_html_put(out, title);
    fputs("\">", out);
    put_axes(out, &f);
    for (size_t s = 0; s < count; s++) put_curve(out, &f, &series[s], s % COLOURS);
    fputs("</svg></figure>\n", out);
}
