/* Two columns, before and after; each has the view from above over the view from the side. */
#include "runtime/register/register_clouds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/number.h"

enum { WIDTH = 560, MARGIN = 24, HEADER = 32, DOTS = 6000 };

/* The box of everything that one column shows, metres. */
struct box {
    double low[3], high[3];
};

static void box_add(struct box *b, int64_t rows, const float *xyz)
{
    for (int64_t i = 0; i < 3 * rows; i++) {
        int k = (int)(i % 3);
        b->low[k] = fmin(b->low[k], (double)xyz[i]);
        b->high[k] = fmax(b->high[k], (double)xyz[i]);
    }
}

static double box_edge(const struct box *b, int axis)
{
    return fmax(b->high[axis] - b->low[axis], 1e-6);
}

struct column {
    const char *title;
    const float *source; /* source points as this column shows them */
    struct box box;
    double scale; /* pixels a metre */
};

/* A dot is a line of length 0 with round ends, which takes few bytes. */
static void draw_cloud(FILE *f, const struct column *c, int64_t rows, const float *xyz, int up,
    double left, double bottom, const char *colour)
{
    int64_t step = rows / DOTS + 1;
    fprintf(f, "<path stroke=\"%s\" d=\"", colour);
    for (int64_t i = 0; i < rows; i += step)
        pnet_number_write(f, "M%.1f %.1fh0", left + ((double)xyz[3 * i] - c->box.low[0]) * c->scale,
            bottom - ((double)xyz[3 * i + up] - c->box.low[up]) * c->scale);
    fputs("\"/>\n", f);
}

static void draw(FILE *f, const struct column columns[2], const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target)
{
    double height[2] = {0}; /* of the two rows: from above, from the side */
    for (int k = 0; k < 2; k++)
        for (int c = 0; c < 2; c++)
            height[k] = fmax(height[k], box_edge(&columns[c].box, 1 + k) * columns[c].scale);
    double total = HEADER + height[0] + height[1] + 3 * MARGIN;
    fprintf(f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
        "font-family=\"sans-serif\" "
        "font-size=\"15\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
        "<g stroke-width=\"1.6\" stroke-linecap=\"round\" stroke-opacity=\"0.6\">\n",
        2 * WIDTH + 3 * MARGIN, total);
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < 2; k++) {
            double left = MARGIN + c * (WIDTH + MARGIN),
                   bottom = HEADER + MARGIN + height[0] + k * (MARGIN + height[1]);
            draw_cloud(f, &columns[c], target->rows, target->xyz, 1 + k, left, bottom, "#2468b4");
            draw_cloud(
                f, &columns[c], source->rows, columns[c].source, 1 + k, left, bottom, "#e07010");
        }
    fputs("</g>\n", f);
    for (int c = 0; c < 2; c++)
        fprintf(f, "<text x=\"%d\" y=\"24\">%s: from above, from the side</text>\n",
            MARGIN + c * (WIDTH + MARGIN), columns[c].title);
    fprintf(f,
        "<text x=\"%d\" y=\"24\" text-anchor=\"end\"><tspan fill=\"#e07010\">source</tspan> "
        "<tspan fill=\"#2468b4\">target</tspan></text>\n</svg>\n",
        2 * WIDTH + 2 * MARGIN);
}

enum pnet_status pnet_register_picture(const char *path, const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, const double before[16], const double after[16],
    struct pnet_error *e)
{
    struct column columns[2] = {{.title = "before"}, {.title = "after"}};
    const double *pose[2] = {before, after};
    struct pnet_output out;
    float *moved = malloc((size_t)source->rows * 6 * sizeof *moved + 1);
    if (!moved) return pnet_error_memory(e);
    for (int c = 0; c < 2; c++) {
        float *to = moved + 3 * source->rows * c;
        struct box *b = &columns[c].box;
        *b = (struct box){{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
        pnet_rigid_apply(pose[c], source->rows, source->xyz, to);
        columns[c].source = to;
        box_add(b, source->rows, to);
        box_add(b, target->rows, target->xyz);
        if (!source->rows && !target->rows) *b = (struct box){0};
        double widest = fmax(box_edge(b, 0), fmax(box_edge(b, 1), box_edge(b, 2)));
        columns[c].scale = WIDTH / widest;
    }
    enum pnet_status st = pnet_output_open(path, &out, e);
    if (!st) {
        draw(out.file, columns, source, target);
        st = pnet_output_commit(&out, e);
    }
    free(moved);
    return st;
}
