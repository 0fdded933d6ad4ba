#include "bench/chart.h"

#include <math.h>

enum { WIDTH = 720, HEIGHT = 400, LEFT = 64, RIGHT = 168, TOP = 44, BOTTOM = 52, LABEL_STEP = 15 };

/* Colours that most eyes can distinguish, dark enough for thin lines on white. */
static const char *const colours[CHART_LINES] = {
    "#0b5fa5", "#c8500a", "#0a7f5c", "#b0407f", "#8a6d00", "#4a4a4a", "#6a51c4", "#2596a8"};

/* Decades of both axes. */
struct frame {
    double x0, x1, y0, y1;
};

static double x_of(const struct frame *f, double x)
{
    return LEFT + (log10(x) - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct frame *f, double y)
{
    return TOP + (f->y1 - log10(y)) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

static void put(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&' || *text == '<' || *text == '>')
            fprintf(out, "&#%d;", *text);
        else
            fputc(*text, out);
    }
}

/* Writes 1200000 as 1.2M. */
static void put_number(FILE *out, double x)
{
    if (x >= 1e6)
        fprintf(out, "%.3gM", x * 1e-6);
    else if (x >= 1e4)
        fprintf(out, "%.3gk", x * 1e-3);
    else
        fprintf(out, "%.4g", x);
}

/* Returns a frame around the data with some margin, at least a third of a decade in all. */
static struct frame frame_of(const struct chart *c)
{
    struct frame f = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int p = 0; p < c->points; p++) {
        f.x0 = fmin(f.x0, log10(c->x[p]));
        f.x1 = fmax(f.x1, log10(c->x[p]));
        for (int l = 0; l < c->lines; l++) {
            double y = c->line[l].y[p];
            if (!(y > 0)) continue;
            f.y0 = fmin(f.y0, log10(y));
            f.y1 = fmax(f.y1, log10(y));
        }
    }
    if (!(f.y0 <= f.y1)) f.y0 = f.y1 = 0;
    double x_room = fmax(0.03, (0.3 - (f.x1 - f.x0)) / 2),
           y_room = fmax(0.06, (0.4 - (f.y1 - f.y0)) / 2);
    return (struct frame){f.x0 - x_room, f.x1 + x_room, f.y0 - y_room, f.y1 + y_room};
}

static void write_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put(out, text);
    fputs("</text>\n", out);
}

/* Lines at 1, 2, 5, 10, ..; over many decades at powers of ten alone. */
static void write_y_axis(FILE *out, const struct frame *f)
{
    static const double steps[] = {1, 2, 5};
    int count = f->y1 - f->y0 > 2.5 ? 1 : 3;
    for (int e = (int)floor(f->y0); e <= (int)ceil(f->y1); e++)
        for (int i = 0; i < count; i++) {
            double value = steps[i] * pow(10, e), y = y_of(f, value);
            if (y < TOP || y > HEIGHT - BOTTOM) continue;
            fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#e3e3e3\"/>\n", LEFT, y, WIDTH - RIGHT);
            fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + 4);
            put_number(out, value);
            fputs("</text>\n", out);
        }
}

static void write_axes(FILE *out, const struct chart *c, const struct frame *f)
{
    int bottom = HEIGHT - BOTTOM, middle = (LEFT + WIDTH - RIGHT) / 2;
    write_y_axis(out, f);
    fprintf(out, "<path d=\"M%d %dH%d\" stroke=\"#888\"/>\n", LEFT, bottom, WIDTH - RIGHT);
    for (int p = 0; p < c->points; p++) {
        double x = x_of(f, c->x[p]);
        fprintf(out, "<path d=\"M%.1f %dv5\" stroke=\"#888\"/>\n", x, bottom);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, bottom + 19);
        put_number(out, c->x[p]);
        fputs("</text>\n", out);
    }
    write_text(out, middle, HEIGHT - 12, "middle", c->x_label);
    fprintf(out, "<g transform=\"translate(16 %d) rotate(-90)\">\n", (TOP + bottom) / 2);
    write_text(out, 0, 0, "middle", c->y_label);
    fputs("</g>\n", out);
}

static void write_line(FILE *out, const struct chart *c, const struct frame *f, int l)
{
    const double *y = c->line[l].y;
    const char *verb = "M";
    fprintf(out, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\" d=\"", colours[l]);
    for (int p = 0; p < c->points; p++) {
        if (!(y[p] > 0)) continue;
        fprintf(out, "%s%.1f %.1f", verb, x_of(f, c->x[p]), y_of(f, y[p]));
        verb = "L";
    }
    fputs("\"/>\n", out);
    for (int p = 0; p < c->points; p++)
        if (y[p] > 0)
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n",
                x_of(f, c->x[p]), y_of(f, y[p]), colours[l]);
}

/* Writes names at the ends of the lines, moved down where they would overlap. */
static void write_names(FILE *out, const struct chart *c, const struct frame *f)
{
    double at[CHART_LINES], above = -INFINITY, low = HEIGHT - BOTTOM;
    int order[CHART_LINES];
    for (int l = 0; l < c->lines; l++) {
        at[l] = low;
        for (int p = 0; p < c->points; p++)
            if (c->line[l].y[p] > 0) at[l] = y_of(f, c->line[l].y[p]);
        int n = l;
        for (; n > 0 && at[order[n - 1]] > at[l]; n--) order[n] = order[n - 1];
        order[n] = l;
    }
    for (int n = 0; n < c->lines; n++) {
        int l = order[n];
        double y = fmax(at[l], above + LABEL_STEP);
        above = y;
        fprintf(
            out, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">", WIDTH - RIGHT + 4, y + 4, colours[l]);
        put(out, c->line[l].name);
        fputs("</text>\n", out);
    }
}

void pnet_bench_chart_write(FILE *out, const struct chart *c)
{
    struct frame f = frame_of(c);
    fprintf(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
        "height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
        "<text x=\"%d\" y=\"24\" font-size=\"15\" font-weight=\"bold\">",
        WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    put(out, c->title);
    fputs("</text>\n", out);
    write_axes(out, c, &f);
    for (int l = 0; l < c->lines; l++) write_line(out, c, &f, l);
    write_names(out, c, &f);
    fputs("</svg>\n", out);
}
