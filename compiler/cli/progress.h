/* How far a long piece of work is: a bar redrawn in place on a terminal, a plain line now and then
   elsewhere.

     [########............]  1224/3600  3:21 left  epoch 3  loss 0.4312  812k points/s

   Used by one thread. All functions take NULL for a display that shows nothing. */
#ifndef PNET_CLI_PROGRESS_H
#define PNET_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum pnet_progress_mode {
    PNET_PROGRESS_AUTO,  /* a bar where `out` is a terminal that can redraw (TERM is set and not
                            "dumb") */
    PNET_PROGRESS_BAR,   /* a bar, for any `out` */
    PNET_PROGRESS_LINES, /* plain lines */
};

struct pnet_progress_options {
    FILE *out; /* stderr for commands */
    enum pnet_progress_mode mode;
    double line_every_s; /* seconds between plain lines; 0: none but those of pnet_progress_line */
    int width; /* cells of a row of the terminal; 0: ask the terminal before each redraw */
    double (*clock_s)(void); /* clock in seconds that never goes back; NULL: CLOCK_MONOTONIC */
};

/* Returns NULL if memory is out. NO_COLOR in the environment, if not empty, turns colours off (no-color.org). */
struct pnet_progress *pnet_progress_open(const struct pnet_progress_options *o);
/* Begins a display with PNET_PROGRESS_AUTO and a line every 30 seconds. */
struct pnet_progress *pnet_progress_new(FILE *out);

/* Shows that `done` of `total` (at least 1) items are done, with a text: fields separated by two spaces, the most important
   first; the last ones are left out if the terminal is narrow. Draws at most ten times a second, so it may be called after
   every item. The time left follows from the pace of the last half minute or so, counted from the first call, so work of an
   earlier process does not count. */
void pnet_progress_show(struct pnet_progress *p, int64_t done, int64_t total, const char *text);

/* Prints a line above the bar, where it stays; `line` has no newline. */
void pnet_progress_line(struct pnet_progress *p, const char *line);

/* Draws the last state, leaves it on the terminal, and frees the display. */
void pnet_progress_free(struct pnet_progress *p);

#endif
