/* docs/formats.md lists the formats of clouds and the keys of run configs as the program has them, and its examples are run
   configs. */
#include "runtime/io/cloud.h"
#include "runtime/train/config.h"
#include "runtime/base/file.h"
#include "tests/check.h"

#include <stdbool.h>

static const char document[] = "docs/formats.md";

/* The next line of [*at, end) without its line end; false: there is none. */
static bool next_line(const char **at, const char *end, const char **line, size_t *length)
{
    if (*at == end) return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *length = (size_t)((newline ? newline : end) - *at);
    *at = newline ? newline + 1 : end;
    return true;
}

static bool is_line(const char *line, size_t length, const char *text)
{
    return strlen(text) == length && memcmp(line, text, length) == 0;
}

/* The rows below the head of the table are the keys, all of them, in their order. */
static void check_keys(const struct pnet_bytes *b)
{
    const char *at = (const char *)b->data, *end = at + b->size, *line = "";
    size_t length = 0;
    bool found = false;
    while (!found && next_line(&at, end, &line, &length))
        found = is_line(line, length, "| key | default | meaning |");
    CHECKF(found, "%s has no table of keys", document);
    CHECK(next_line(&at, end, &line, &length));
    const struct pnet_config_key *k;
    for (int i = 0; (k = pnet_config_key(i)); i++) {
        char row[512];
        const char *quote = *k->standard ? "`" : "";
        snprintf(
            row, sizeof row, "| `%s` | %s%s%s | %s |", k->name, quote, k->standard, quote, k->help);
        bool any = next_line(&at, end, &line, &length);
        CHECKF(any && is_line(line, length, row), "%s says: %.*s\nthe program: %s", document,
            any ? (int)length : 0, line, row);
    }
    CHECKF(next_line(&at, end, &line, &length) && length == 0, "%s has more keys than the program",
        document);
}

/* Every ```yaml config block can be read. */
static void check_examples(const struct pnet_bytes *b)
{
    const char *at = (const char *)b->data, *end = at + b->size, *line = "";
    size_t length = 0;
    int examples = 0;
    while (next_line(&at, end, &line, &length)) {
        if (!is_line(line, length, "```yaml config")) continue;
        const char *begin = at, *stop = at;
        while (next_line(&at, end, &line, &length) && !is_line(line, length, "```")) stop = at;
        struct pnet_config *c;
        struct pnet_error e;
        bool ok =
            pnet_config_parse("example.yaml", begin, (size_t)(stop - begin), &c, &e) == PNET_OK;
        CHECKF(ok, "%s: %s", document, e.message);
        pnet_config_free(c);
        examples++;
    }
    CHECKF(examples >= 2, "only %d examples found", examples);
}

/* An ending of clouds in the second column of a row, by the backticks around it or by blanks. It is the next one of the table of
   the program, unless a row before has it, and the last column says whether it is written. */
static void check_ending(const char *ending, bool written, int *next)
{
    char name[16];
    snprintf(name, sizeof name, "A%s", ending);
    CHECKF(
        pnet_cloud_read_by(name), "%s names %s, which the program does not read", document, ending);
    for (int i = 0; i < *next; i++)
        if (strcmp(pnet_cloud_ending(i), ending + 1) == 0) return;
    if (strcmp(ending, ".pcd.bin") == 0) return; /* a .bin */
    const char *own = pnet_cloud_ending((*next)++);
    CHECKF(own && strcmp(own, ending + 1) == 0, "%s has %s where the program has %s", document,
        ending, own ? own : "no more");
    CHECKF(pnet_cloud_written_as(name) == written, "%s: is %s written?", document, ending);
}

/* The table of clouds names all endings. */
static void check_clouds(const struct pnet_bytes *b)
{
    const char *at = (const char *)b->data, *end = at + b->size, *line = "";
    size_t length = 0;
    int next = 0;
    bool found = false;
    while (!found && next_line(&at, end, &line, &length))
        found = is_line(line, length, "| format | names | read | written |");
    CHECKF(found, "%s has no table of clouds", document);
    CHECK(next_line(&at, end, &line, &length));
    while (next_line(&at, end, &line, &length) && length) {
        char row[512], *names;
        snprintf(row, sizeof row, "%.*s", (int)length, line);
        bool written = strcmp(row + length - 4, " | |") != 0;
        names = strchr(row + 1, '|') + 1;
        *strchr(names, '|') = '\0';
        for (char *word = strtok(names, " `,"); word; word = strtok(NULL, " `,"))
            check_ending(word, written, &next);
    }
    CHECKF(!pnet_cloud_ending(next), "%s does not name .%s", document, pnet_cloud_ending(next));
    CHECK(!pnet_cloud_read_by("ply") && !pnet_cloud_read_by("a.ply2") && !pnet_cloud_read_by(""));
}

int main(void)
{
    struct pnet_bytes b;
    struct pnet_error e;
    if (pnet_bytes_read(document, &b, &e)) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    check_clouds(&b);
    check_keys(&b);
    check_examples(&b);
    pnet_bytes_free(&b);
    return check_end();
}
