#include "compiler/cli/bar.h"

#include "runtime/evaluate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 24 };

void bar_begin(struct bar *b, FILE *out)
{
    *b = (struct bar){.out = out, .terminal = isatty(fileno(out)), .colour = !getenv("NO_COLOR"), .begun = pnet_seconds()};
}

static int terminal_width(FILE *out)
{
    struct winsize w;
    return ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

void bar_show(struct bar *b, int64_t done, int64_t total, const char *text)
{
    double now = pnet_seconds(), share = total > 0 ? (double)done / (double)total : 0;
    if (!b->started) {
        b->started = true;
        b->first = done > 0 ? done - 1 : 0;
        b->drawn = now - (b->terminal ? 1 : 0);
    }
    if (now - b->drawn < (b->terminal ? 0.1 : 10) && (done < total || !b->terminal)) return;
    b->drawn = now;
    double left = done > b->first ? (now - b->begun) * (double)(total - done) / (double)(done - b->first) : 0;
    char line[512];
    int n = snprintf(line, sizeof line, "%3.0f%%  step %lld/%lld  %s  left %d:%02d", 100 * share, (long long)done, (long long)total, text, (int)(left / 60), (int)left % 60);
    if (!b->terminal) {
        fprintf(b->out, "%s\n", line);
        return;
    }
    int width = terminal_width(b->out), filled = (int)(share * BAR);
    fprintf(b->out, "\r%s[", b->colour ? "\033[32m" : "");
    for (int i = 0; i < BAR; i++) fputc(i < filled ? '#' : ' ', b->out);
    int room = width - BAR - 4;
    fprintf(b->out, "]%s %.*s\033[K", b->colour ? "\033[0m" : "", room < n ? room : n, line);
    fflush(b->out);
}

void bar_line(struct bar *b, const char *text)
{
    fprintf(b->out, b->terminal ? "\r%s\033[K\n" : "%s\n", text);
    b->drawn = 0;
}

void bar_end(struct bar *b)
{
    if (b->terminal && b->started) fputs("\r\033[K", b->out);
}
