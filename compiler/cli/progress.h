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
    PNET_PROGRESS_BAR,   /* whatever `out` is */
    PNET_PROGRESS_LINES, /* plain lines */
};

struct pnet_progress_options {
    FILE *out; /* stderr for commands */
    enum pnet_progress_mode mode;
    double line_every_s; /* seconds between plain lines; 0: none but those of pnet_progress_line */
    int width;           /* cells of the terminal; 0: ask it, before each redraw */
    double (*clock_s)(void); /* seconds, never going back; NULL: CLOCK_MONOTONIC */
};

/* NULL: out of memory. NO_COLOR in the environment, if not empty, turns colours off (no-color.org).
 */
struct pnet_progress *pnet_progress_open(const struct pnet_progress_options *o);
/* The usual: PNET_PROGRESS_AUTO, a line every 30 seconds. */
struct pnet_progress *pnet_progress_new(FILE *out);

/* `done` of `total` (at least 1) items, with what else there is to say: fields apart by two spaces,
   the most important first; those at the end are left out where the terminal is narrow. Draws at
   most ten times a second, so it may be called after every item. The time left follows the pace of
   the last half minute or so, counted from the first call: what a resumed training had done before
   says nothing. */
void pnet_progress_show(struct pnet_progress *p, int64_t done, int64_t total, const char *text);

/* A line that stays, above the bar; `line` has no newline. */
void pnet_progress_line(struct pnet_progress *p, const char *line);

/* Draws what was shown last, leaves it, and frees. */
void pnet_progress_free(struct pnet_progress *p);

#endif
