/* A progress bar on a terminal; elsewhere a plain line now and then. */
#ifndef PNET_COMPILER_CLI_BAR_H
#define PNET_COMPILER_CLI_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bar {
    FILE *out;
    bool terminal, colour;
    double begun, drawn; /* seconds: first call, last drawing */
    int64_t first;       /* step at the first call: a resumed run does not start at zero */
    bool started;
};

void bar_begin(struct bar *b, FILE *out);
/* "[#####     ] 40%  TEXT  left 1:20": at most ten times a second; a line every 10 s where there is no terminal. */
void bar_show(struct bar *b, int64_t done, int64_t total, const char *text);
/* A line above the bar. */
void bar_line(struct bar *b, const char *text);
/* Clears the bar. */
void bar_end(struct bar *b);

#endif
