/* Golden files: text with cases that carry their input and the output expected of it.

   == title
   --- main.pnet            what is parsed; other names are files to include
   ...
   --- output
   ...

   With `--- main.pnet escaped`, \r \t \xHH and \\ in the text stand for bytes, and `\` at the end
   of a line joins it with the next. */
#ifndef PNET_TESTS_LANG_GOLDEN_H
#define PNET_TESTS_LANG_GOLDEN_H

#include "tests/check.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* All of a file as a string the caller frees; NULL where it cannot be read. */
static inline char *golden_read(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = calloc(1, (size_t)size + 1);
    if (text) *length = fread(text, 1, (size_t)size, f);
    fclose(f);
    return text;
}

static inline size_t golden_unescape(char *text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned value;
        if (text[i] != '\\') {
            text[n++] = text[i];
        } else if (text[i + 1] == 'x' && sscanf(text + i + 2, "%2x", &value) == 1) {
            text[n++] = (char)value;
            i += 3;
        } else {
            char c = text[++i];
            if (c == '\n') continue;
            text[n++] = c == 'r' ? '\r' : c == 't' ? '\t' : c;
        }
    }
    return n;
}

/* Changes into a new folder and gives its path, to be removed by golden_leave. */
static inline void golden_enter(char *folder, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, size, "%s/pnet-golden-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder) || chdir(folder)) {
        perror(folder);
        exit(1);
    }
}

static inline void golden_write(const char *name, const char *text, size_t length)
{
    char path[256];
    snprintf(path, sizeof path, "%s", name);
    char *slash = strrchr(path, '/');
    if (slash) {
        *slash = 0;
        mkdir(path, 0700);
    }
    FILE *f = fopen(name, "wb");
    CHECKF(f && fwrite(text, 1, length, f) == length, "%s cannot be written", name);
    if (f) fclose(f);
}

/* Writes the file that stands between a line `--- NAME [escaped]` and `next`. */
static inline void golden_file(const char *line, const char *body, const char *next)
{
    char name[128] = "", escaped[16] = "", head[160];
    snprintf(head, sizeof head, "%.*s", (int)(body - line), line);
    sscanf(head, "--- %127s %15s", name, escaped);
    size_t size = (size_t)(next - body);
    char *content = calloc(1, size + 1);
    if (!content) exit(1);
    memcpy(content, body, size);
    if (*escaped) size = golden_unescape(content, size);
    golden_write(name, content, size);
    free(content);
}

/* Runs every case of the golden file: `run` writes the output of main.pnet, which lies in the
   current folder. Returns how many cases there were. With PNET_GOLDEN=write the file is written
   anew. */
static inline int golden_run(const char *path, void (*run)(FILE *out))
{
    size_t length = 0, out_length;
    char *text = golden_read(path, &length), *absolute = realpath(path, NULL);
    CHECKF(text && absolute, "%s cannot be read", path);
    if (!text || !absolute) {
        free(text);
        free(absolute);
        return 0;
    }
    char folder[4096], home[4096], title[256] = "";
    if (!getcwd(home, sizeof home)) exit(1);
    char *fresh = NULL;
    FILE *rewritten = open_memstream(&fresh, &out_length);
    int cases = 0;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n'), *body = end ? end + 1 : line + strlen(line);
        char *next = body;
        while (*next && strncmp(next, "--- ", 4) != 0 && strncmp(next, "== ", 3) != 0) {
            char *newline = strchr(next, '\n');
            next = newline ? newline + 1 : next + strlen(next);
        }
        bool output = strncmp(line, "--- output", 10) == 0;
        fwrite(line, 1, (size_t)((output ? body : next) - line), rewritten);
        if (strncmp(line, "== ", 3) == 0) {
            snprintf(title, sizeof title, "%.*s", (int)(end ? end - line - 3 : 0), line + 3);
            golden_enter(folder, sizeof folder);
        } else if (output) {
            char *got = NULL;
            size_t got_length;
            FILE *out = open_memstream(&got, &got_length);
            run(out);
            fclose(out);
            fwrite(got, 1, got_length, rewritten);
            fputs(*next ? "\n" : "", rewritten);
            /* An empty line stands between cases. */
            size_t want = (size_t)(next - body) - (*next && next > body ? 1 : 0);
            CHECKF(want == got_length && memcmp(body, got, want) == 0,
                "%s\n--- got\n%s--- expected\n%.*s", title, got, (int)want, body);
            free(got);
            char command[5000];
            snprintf(command, sizeof command, "rm -rf '%s'", folder);
            if (chdir(home) || system(command)) exit(1);
            cases++;
        } else if (strncmp(line, "--- ", 4) == 0) {
            golden_file(line, body, next);
        }
        line = next;
    }
    fclose(rewritten);
    const char *mode = getenv("PNET_GOLDEN");
    if (mode && !strcmp(mode, "write")) golden_write(absolute, fresh, out_length);
    free(fresh);
    free(text);
    free(absolute);
    return cases;
}

#endif
