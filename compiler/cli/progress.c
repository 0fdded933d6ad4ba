#include "compiler/cli/progress.h"
#include "runtime/base/printable.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_S 0.1
#define MEMORY_S 30.0 /* older work has little weight in the pace */

enum { TEXT = 512, MOST_CELLS = 30, LEAST_CELLS = 10 };

struct pnet_progress {
    struct pnet_progress_options o;
    bool bar, colour;
    bool begun;   /* show() was called */
    bool pending; /* the last state is not drawn yet */
    bool on_line; /* the cursor is after a bar */
    int64_t done, total;
    char text[TEXT];
    double last_s, drawn_s; /* times of the last show, and of the last drawing or plain line */
    double seconds, items;  /* recent time and work: sums with decaying weights */
};

static double monotonic_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool can_redraw(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && term && *term && strcmp(term, "dumb") != 0;
}

struct pnet_progress *pnet_progress_open(const struct pnet_progress_options *o)
{
    struct pnet_progress *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->o = *o;
    if (!p->o.clock_s) p->o.clock_s = monotonic_s;
    p->bar = o->mode == PNET_PROGRESS_BAR || (o->mode == PNET_PROGRESS_AUTO && can_redraw(o->out));
    const char *no_color = getenv("NO_COLOR");
    p->colour = !(no_color && *no_color);
    p->drawn_s = p->o.clock_s() - (p->bar ? REDRAW_S : 0);
    return p;
}

struct pnet_progress *pnet_progress_new(FILE *out)
{
    return pnet_progress_open(&(struct pnet_progress_options){.out = out, .line_every_s = 30});
}

/* Writes "3:21 left" or "1:02:03 left"; "" if the pace is unknown or the work is done. */
static void time_left(const struct pnet_progress *p, char text[32])
{
    text[0] = '\0';
    if (p->items <= 0 || p->done >= p->total) return;
    double left = ceil(p->seconds / p->items * (double)(p->total - p->done));
    if (!(left < 1e7)) return;
    int s = (int)left;
    if (s >= 3600)
        snprintf(text, 32, "%d:%02d:%02d left", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, 32, "%d:%02d left", s / 60, s % 60);
}

/* Counts cells; every UTF-8 sequence counts as one cell. */
static int cells_of(const char *text, size_t size)
{
    int cells = 0;
    for (size_t i = 0; i < size && text[i]; i++) cells += ((unsigned char)text[i] & 0xC0) != 0x80;
    return cells;
}

/* Returns the bytes of the leading fields of `text` that fit into `cells`. */
static size_t fields_that_fit(const char *text, int cells)
{
    size_t fit = 0, size = strlen(text);
    for (size_t end = 0; end < size;) {
        const char *gap = strstr(text + end + 1, "  ");
        end = gap ? (size_t)(gap - text) : size;
        if (cells_of(text, end) > cells) break;
        fit = end;
    }
    return fit;
}

static int terminal_width(const struct pnet_progress *p)
{
    if (p->o.width > 0) return p->o.width;
    struct winsize size;
    if (ioctl(fileno(p->o.out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 80;
}

/* A redraw is one write, because stderr has no buffer, and half a line would flicker. */
struct line {
    char text[2 * TEXT];
    size_t size;
};

static void put_bytes(struct line *l, const char *bytes, size_t size)
{
    if (size > sizeof l->text - l->size) return;
    memcpy(l->text + l->size, bytes, size);
    l->size += size;
}

static void put(struct line *l, const char *text)
{
    put_bytes(l, text, strlen(text));
}

static void put_bar(struct line *l, const struct pnet_progress *p, int cells)
{
    double share = fmin(fmax((double)p->done / (double)p->total, 0), 1);
    int full = (int)(share * cells);
    put(l, p->colour ? "[\x1b[32m" : "[");
    for (int i = 0; i < full; i++) put(l, "#");
    if (p->colour) put(l, "\x1b[2m");
    for (int i = full; i < cells; i++) put(l, ".");
    put(l, p->colour ? "\x1b[0m]  " : "]  ");
}

/* The line is at least one cell shorter than a row, because some terminals begin a new row after the last cell. */
static void draw(struct pnet_progress *p)
{
    enum { BRACKETS = 4 }; /* the brackets and the blanks after them */
    char count[64], left[32];
    struct line l = {.size = 0};
    int room = terminal_width(p) - 1;
    int need = snprintf(count, sizeof count, "%" PRId64 "/%" PRId64, p->done, p->total);
    time_left(p, left);
    put(&l, "\r\x1b[K");
    int spare = room - need - BRACKETS - (int)strlen(left) - 2 - cells_of(p->text, TEXT) - 2;
    int cells = spare > MOST_CELLS ? MOST_CELLS : spare > LEAST_CELLS ? spare : LEAST_CELLS;
    if (need + cells + BRACKETS <= room) {
        put_bar(&l, p, cells);
        room -= cells + BRACKETS;
    }
    if (need <= room) {
        put(&l, count);
        room -= need;
    }
    if (left[0] && (int)strlen(left) + 2 <= room) {
        put(&l, "  ");
        put(&l, left);
        room -= (int)strlen(left) + 2;
    }
    size_t fit = fields_that_fit(p->text, room - 2);
    if (fit) {
        put(&l, "  ");
        put_bytes(&l, p->text, fit);
    }
    fwrite(l.text, 1, l.size, p->o.out);
    fflush(p->o.out);
    p->on_line = true;
    p->pending = false;
}

static void put_plain_line(struct pnet_progress *p)
{
    char left[32];
    time_left(p, left);
    fprintf(p->o.out, "%" PRId64 "/%" PRId64 "%s%s%s%s\n", p->done, p->total,
        p->text[0] ? "  " : "", p->text, left[0] ? "  " : "", left);
    fflush(p->o.out);
    p->pending = false;
}

static void keep_pace(struct pnet_progress *p, double now, int64_t done)
{
    double passed = now - p->last_s, fade = exp(-passed / MEMORY_S);
    p->last_s = now;
    if (p->begun && done >= p->done) {
        p->seconds = p->seconds * fade + passed;
        p->items = p->items * fade + (double)(done - p->done);
    }
}

/* Characters that would move the cursor become blanks. */
static void keep_text(struct pnet_progress *p, const char *text)
{
    snprintf(p->text, sizeof p->text, "%s", text);
    for (char *c = p->text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = ' ';
}

void pnet_progress_show(struct pnet_progress *p, int64_t done, int64_t total, const char *text)
{
    if (!p) return;
    double now = p->o.clock_s();
    keep_pace(p, now, done);
    p->begun = p->pending = true;
    p->done = done;
    p->total = total > 0 ? total : 1;
    keep_text(p, text);
    double every = p->bar ? REDRAW_S : p->o.line_every_s;
    if (every <= 0 || now - p->drawn_s < every) return;
    p->drawn_s = now;
    if (p->bar)
        draw(p);
    else
        put_plain_line(p);
}

void pnet_progress_line(struct pnet_progress *p, const char *line)
{
    char shown[2048];
    if (!p) return;
    pnet_printable_lines(line, shown, sizeof shown);
    fprintf(p->o.out, "%s%s\n", p->on_line ? "\r\x1b[K" : "", shown);
    p->on_line = false;
    if (p->bar && p->begun)
        draw(p);
    else
        fflush(p->o.out);
}

void pnet_progress_free(struct pnet_progress *p)
{
    if (!p) return;
    if (p->bar && p->pending) draw(p);
    if (!p->bar && p->pending && p->o.line_every_s > 0) put_plain_line(p);
    if (p->on_line) fputc('\n', p->o.out);
    fflush(p->o.out);
    free(p);
}
