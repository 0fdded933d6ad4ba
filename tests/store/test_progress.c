/* The progress display, on a made-up clock: how often it draws, that it fits, what it says. */
#include "compiler/cli/progress.h"
#include "tests/check.h"

static double now_s;

static double clock_s(void)
{
    return now_s;
}

/* A display into memory. */
struct screen {
    FILE *file;
    char *text;
    size_t size;
    struct pnet_progress *p;
};

static void open_screen(
    struct screen *s, enum pnet_progress_mode mode, double line_every_s, int width)
{
    *s = (struct screen){.text = NULL};
    s->file = open_memstream(&s->text, &s->size);
    if (!s->file) exit(1);
    struct pnet_progress_options o = {.out = s->file,
        .mode = mode,
        .line_every_s = line_every_s,
        .width = width,
        .clock_s = clock_s};
    s->p = pnet_progress_open(&o);
    if (!s->p) exit(1);
}

/* Ends the display; s->text is all it wrote. */
static void end_screen(struct screen *s)
{
    pnet_progress_free(s->p);
    fclose(s->file);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) n++;
    return n;
}

/* The widest row a terminal would show. */
static int widest(const char *text)
{
    int cells = 0, most = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '\x1b') {
            c += strcspn(c, "mK");
        } else if (*c == '\r' || *c == '\n') {
            cells = 0;
        } else if (((unsigned char)*c & 0xC0) != 0x80) {
            cells++;
        }
        if (cells > most) most = cells;
    }
    return most;
}

static void check_rate_of_drawing(void)
{
    struct screen s;
    now_s = 1000;
    open_screen(&s, PNET_PROGRESS_BAR, 0, 100);
    for (int i = 1; i <= 1000; i++) { /* five seconds */
        now_s = 1000 + i * 0.005;
        pnet_progress_show(s.p, i, 2000, "loss 1.5");
    }
    end_screen(&s);
    int drawn = count(s.text, "\r");
    CHECKF(drawn > 40 && drawn <= 52, "drawn %d times in five seconds", drawn);
    CHECK(strstr(s.text, "1000/2000")); /* the last state, though it came too soon */
    CHECK(s.text[s.size - 1] == '\n' && count(s.text, "\n") == 1);
    free(s.text);
}

static void check_time_left(void)
{
    struct screen s;
    now_s = 0;
    open_screen(&s, PNET_PROGRESS_BAR, 0, 100);
    pnet_progress_show(s.p, 5000, 10000, ""); /* resumed: the past tells nothing */
    fflush(s.file);
    CHECK(!strstr(s.text, "left"));
    for (int i = 1; i <= 100; i++) {
        now_s = i;
        pnet_progress_show(s.p, 5000 + i, 10000, "");
    }
    fflush(s.file);
    CHECKF(strstr(s.text, "5100/10000  1:21:40 left"), "%s", s.text + s.size - 60);
    /* Ten times faster: after two minutes the old pace has no say. */
    for (int i = 1; i <= 120; i++) {
        now_s = 100 + i;
        pnet_progress_show(s.p, 5100 + 10 * i, 10000, "");
    }
    end_screen(&s);
    const char *last = strrchr(s.text, '\r');
    int minutes = 0, seconds = 0;
    CHECK(last &&
          sscanf(strstr(last, "6300/10000"), "6300/10000 %d:%d left", &minutes, &seconds) == 2);
    CHECKF(
        minutes * 60 + seconds >= 370 && minutes * 60 + seconds < 450, "%d:%02d", minutes, seconds);
    free(s.text);
}

static void check_width(void)
{
    static const char text[] = "epoch 3  loss 0.4312  m\xC3\xA9trique 0.91  812k points/s";
    for (int width = 1; width < 150; width++) {
        struct screen s;
        now_s = 0;
        open_screen(&s, PNET_PROGRESS_BAR, 0, width);
        pnet_progress_show(s.p, 1, 360, text);
        now_s = 10;
        pnet_progress_show(s.p, 120, 360, text);
        end_screen(&s);
        CHECKF(widest(s.text) < width || width == 1, "%d cells of %d", widest(s.text), width);
        if (width > 30) CHECK(strstr(s.text, "120/360") && strstr(s.text, "["));
        if (width > 80) CHECK(strstr(s.text, "812k points/s") && strstr(s.text, "0:21 left"));
        /* Fields are there whole or not at all. */
        CHECK(count(s.text, "loss") == count(s.text, "loss 0.4312"));
        CHECK(count(s.text, "812") == count(s.text, "812k points/s"));
        free(s.text);
    }
}

static void check_lines_between(void)
{
    struct screen s;
    now_s = 0;
    open_screen(&s, PNET_PROGRESS_BAR, 0, 80);
    pnet_progress_line(s.p, "first");
    pnet_progress_show(s.p, 1, 4, "a\nb\x1b[31m");
    pnet_progress_line(s.p, "second");
    end_screen(&s);
    CHECK(strncmp(s.text, "first\n", 6) == 0);
    CHECK(strstr(s.text, "\r\x1b[Ksecond\n\r\x1b[K["));
    CHECK(strstr(s.text, "a b [31m"));
    free(s.text);
}

static void check_colour(void)
{
    for (int colour = 0; colour < 2; colour++) {
        struct screen s;
        if (colour)
            unsetenv("NO_COLOR");
        else
            setenv("NO_COLOR", "1", 1);
        open_screen(&s, PNET_PROGRESS_BAR, 0, 80);
        pnet_progress_show(s.p, 2, 4, "");
        end_screen(&s);
        CHECK((strstr(s.text, "\x1b[32m") != NULL) == colour);
        CHECKF(colour || strstr(s.text, "[###############...............]"), "%s", s.text);
        free(s.text);
    }
}

/* Not a terminal: plain lines at their interval, or none. */
static void check_plain(void)
{
    for (int every = 0; every <= 10; every += 10) {
        struct screen s;
        now_s = 50;
        open_screen(&s, PNET_PROGRESS_AUTO, every, 0);
        for (int i = 1; i <= 95; i++) {
            now_s = 50 + i;
            pnet_progress_show(s.p, i, 100, "loss 2");
        }
        pnet_progress_line(s.p, "saved");
        end_screen(&s);
        CHECK(!strstr(s.text, "\x1b") && !strstr(s.text, "\r"));
        CHECKF(count(s.text, "\n") == (every ? 11 : 1), "%s", s.text);
        CHECK(strstr(s.text, "saved\n"));
        if (every) CHECK(strstr(s.text, "10/100  loss 2  1:30 left\n") && strstr(s.text, "95/100"));
        free(s.text);
    }
}

int main(void)
{
    check_rate_of_drawing();
    check_time_left();
    check_width();
    check_lines_between();
    check_colour();
    check_plain();
    pnet_progress_show(NULL, 1, 2, "");
    pnet_progress_line(NULL, "");
    pnet_progress_free(NULL);
    return check_end();
}
