/* The graph as a picture. Columns are levels, finest on the left; rows follow the order of
   execution, so a U-net looks like one, turned on its side. */
#include "compiler/internal.h"
#include "runtime/base/number.h"

#include <stdlib.h>

enum { BOX_WIDTH = 190, BOX_HEIGHT = 34, COLUMN = 230, ROW = 46, MARGIN = 24, HEADER = 40 };

struct place {
    int x, y;
    bool used;
};

static const char *colour_of(const struct pnet_node *n)
{
    if (n->op->class_ == PNET_LOSS) return "#f4b6b6";
    if (n->op->class_ == PNET_METRIC) return "#e3d4f3";
    if (n->geo_count) return "#bcd8f5";
    if (n->param_count) return "#cfe8c9";
    return "#eeeeee";
}

/* Text that may hold < or & from names the user wrote. */
static void escaped(const char *text, FILE *out)
{
    for (; *text; text++) switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
}

/* Which column each level gets: only those that hold something. */
static int assign_columns(const struct pnet_plan *p, int *column)
{
    int count = 0;
    for (int kind = PNET_GEO_INPUT; kind <= PNET_GEO_SCALAR; kind++)
        for (int l = 0; l < p->level_count; l++) {
            bool used = false;
            if ((int)p->levels[l].kind != kind) continue;
            for (int t = 0; t < p->tensor_count; t++)
                used |= p->tensors[t].type.level == l && p->tensors[t].first >= 0 &&
                        p->tensors[t].role <= PNET_ROLE_RESULT;
            if (used) column[l] = count++;
        }
    return count;
}

static void draw_edge(const struct place *a, const struct place *b, FILE *out)
{
    int x1 = a->x + BOX_WIDTH / 2, y1 = a->y + BOX_HEIGHT, x2 = b->x + BOX_WIDTH / 2, y2 = b->y;
    if (a->x == b->x && y2 - y1 > ROW) { /* a skip: around the boxes between */
        int side = a->x + BOX_WIDTH + 16;
        fprintf(out, "<path d=\"M%d %d C%d %d %d %d %d %d\"/>\n", a->x + BOX_WIDTH,
            a->y + BOX_HEIGHT / 2, side, a->y + BOX_HEIGHT / 2, side, b->y + BOX_HEIGHT / 2,
            b->x + BOX_WIDTH, b->y + BOX_HEIGHT / 2);
        return;
    }
    fprintf(
        out, "<path d=\"M%d %d C%d %d %d %d %d %d\"/>\n", x1, y1, x1, y1 + 12, x2, y2 - 12, x2, y2);
}

static void draw_box(const struct pnet_plan *p, int tensor, const struct place *at, FILE *out)
{
    const struct pnet_plan_tensor *t = &p->tensors[tensor];
    const struct pnet_node *n = t->role == PNET_ROLE_RESULT ? &p->nodes[t->node] : NULL;
    char text[96];
    fprintf(out, "<g><title>");
    escaped(t->name, out);
    fprintf(out,
        " %s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\"/>",
        pnet_type_text(p->levels, t->type, text), at->x, at->y, BOX_WIDTH, BOX_HEIGHT,
        n ? colour_of(n) : "#fff3c4");
    fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"n\">", at->x + 8, at->y + 14);
    escaped(t->name, out);
    fprintf(out, "</text><text x=\"%d\" y=\"%d\">%s%s%s, %d wide</text></g>\n", at->x + 8,
        at->y + 27, n ? n->op->name : "input", n && n->sums ? " + add" : "",
        n && n->act ? " + act" : "", (int)t->type.width);
}

bool pnet_plan_svg(const struct pnet_plan *p, FILE *out)
{
    int *column = calloc((size_t)p->level_count + 1, sizeof *column), row = 0;
    struct place *places = calloc((size_t)p->tensor_count + 1, sizeof *places);
    if (!column || !places) {
        free(column);
        free(places);
        return false;
    }
    int columns = assign_columns(p, column);
    for (int t = 0; t < p->tensor_count; t++)
        if (p->tensors[t].role == PNET_ROLE_INPUT && p->tensors[t].first >= 0)
            places[t] = (struct place){MARGIN + COLUMN * column[p->tensors[t].type.level],
                HEADER + MARGIN + ROW * row++, true};
    for (int n = 0; n < p->node_count; n++) {
        int t = p->nodes[n].out;
        if (!p->nodes[n].dead)
            places[t] = (struct place){MARGIN + COLUMN * column[p->tensors[t].type.level],
                HEADER + MARGIN + ROW * row++, true};
    }
    int width = 2 * MARGIN + COLUMN * columns, height = HEADER + 2 * MARGIN + ROW * row;
    fprintf(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
        "%d\">\n",
        width, height, width, height);
    fputs("<style>text{font:10px "
          "sans-serif;fill:#555}.n{font-weight:bold;fill:#111}.l{font-size:14px;fill:#111}"
          "path{fill:none;stroke:#888;stroke-width:1.2}rect{stroke:#999}</style>\n<rect "
          "width=\"100%\" height=\"100%\" fill=\"#fff\" stroke=\"none\"/>\n",
        out);
    for (int l = 0; l < p->level_count; l++) {
        bool used = false;
        for (int t = 0; t < p->tensor_count && !used; t++)
            used = places[t].used && p->tensors[t].type.level == l;
        if (!used) continue;
        fprintf(
            out, "<text class=\"l\" x=\"%d\" y=\"%d\">", MARGIN + COLUMN * column[l], HEADER - 8);
        escaped(p->levels[l].name, out);
        if (p->levels[l].cell > 0) pnet_number_write(out, "  %g m", p->levels[l].cell);
        fputs("</text>\n", out);
    }
    for (int n = 0; n < p->node_count; n++)
        for (int i = 0; i < p->nodes[n].in_count && !p->nodes[n].dead; i++)
            draw_edge(&places[p->nodes[n].in[i]], &places[p->nodes[n].out], out);
    for (int t = 0; t < p->tensor_count; t++)
        if (places[t].used) draw_box(p, t, &places[t], out);
    fputs("</svg>\n", out);
    free(column);
    free(places);
    return true;
}
