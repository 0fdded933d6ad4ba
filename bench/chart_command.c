/* pnet-bench chart: draws numbers that a script has collected. */
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/chart.h"
#include "bench/commands.h"
#include "runtime/base/error.h"

static const char usage[] = "Usage: pnet-bench chart [options] <NUMBERS >CHART.svg\n"
                            "Draws a line chart on logarithmic axes. A line of the input is X Y "
                            "NAME: a point of the line NAME, whose name "
                            "is the rest\n"
                            "of the line. Lines of the chart come in the order in which they are "
                            "first named; at most 8 lines, and 16 "
                            "values of X.\n"
                            "\n"
                            "  --title TEXT\n"
                            "  --x TEXT            label of the axis\n"
                            "  --y TEXT\n"
                            "  --help\n";

enum { NAME_BYTES = 80 };

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench chart: %s\nTry pnet-bench chart --help.\n", message);
    exit(PNET_USAGE);
}

/* The index of an x; values are sorted later. */
static int find_x(struct chart *c, double x)
{
    for (int p = 0; p < c->points; p++)
        if (c->x[p] == x) return p;
    if (c->points == CHART_POINTS) fail_usage("more than 16 values of X");
    c->x[c->points] = x;
    return c->points++;
}

static int find_line(struct chart *c, char (*names)[NAME_BYTES], const char *name)
{
    for (int l = 0; l < c->lines; l++)
        if (strcmp(names[l], name) == 0) return l;
    if (c->lines == CHART_LINES) fail_usage("more than 8 lines");
    snprintf(names[c->lines], NAME_BYTES, "%s", name);
    c->line[c->lines].name = names[c->lines];
    return c->lines++;
}

static void sort(struct chart *c)
{
    for (int i = 1; i < c->points; i++)
        for (int k = i; k > 0 && c->x[k] < c->x[k - 1]; k--) {
            double x = c->x[k];
            c->x[k] = c->x[k - 1];
            c->x[k - 1] = x;
            for (int l = 0; l < c->lines; l++) {
                double y = c->line[l].y[k];
                c->line[l].y[k] = c->line[l].y[k - 1];
                c->line[l].y[k - 1] = y;
            }
        }
}

int pnet_bench_chart(int argc, char **argv)
{
    static const struct option names[] = {{"title", 1, NULL, 't'}, {"x", 1, NULL, 'x'},
        {"y", 1, NULL, 'y'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
    static char line_names[CHART_LINES][NAME_BYTES];
    struct chart c = {.title = "", .x_label = "", .y_label = ""};
    char text[256], name[NAME_BYTES];
    double x, y;
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 't': c.title = optarg; break;
        case 'x': c.x_label = optarg; break;
        case 'y': c.y_label = optarg; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fail_usage("unknown option, or one without its value");
        }
    }
    if (optind != argc) fail_usage("there is nothing behind the options");
    while (fgets(text, sizeof text, stdin)) {
        if (sscanf(text, "%lf %lf %79[^\n]", &x, &y, name) != 3 || !(x > 0 && y > 0))
            fail_usage("a line is X Y NAME, with numbers above 0");
        int p = find_x(&c, x), l = find_line(&c, line_names, name);
        c.line[l].y[p] = y;
    }
    if (!c.points) fail_usage("there are no numbers");
    sort(&c);
    pnet_bench_chart_write(stdout, &c);
    return fflush(stdout) || ferror(stdout) ? PNET_FAILED : PNET_OK;
}
