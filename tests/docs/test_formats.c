/* docs/formats.md lists the keys of run configs as the program has them, and its examples are run
 * configs. */
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

int main(void)
{
    struct pnet_bytes b;
    struct pnet_error e;
    if (pnet_bytes_read(document, &b, &e)) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    check_keys(&b);
    check_examples(&b);
    pnet_bytes_free(&b);
    return check_end();
}
