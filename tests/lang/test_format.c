/* The canonical form: what it looks like, that it stays, and that it changes no tree. */
#include "tests/lang/golden.h"
#include "tests/lang/parsed.h"

#include <glob.h>

static char *format(struct parsed *p, size_t *length)
{
    const char *text = pnet_format(&p->arena, p->sources, p->file, length);
    CHECK(text != NULL);
    return strdup(text ? text : "");
}

/* Formats a text without errors; checks what holds for every one. */
static char *check_format(const char *text, size_t length)
{
    struct parsed *p = parsed_bytes(text, length, 0);
    CHECKF(!parsed_errors(p), "%.*s\n%s", (int)length, text, p->messages);
    if (parsed_errors(p)) {
        parsed_free(p);
        return strdup("");
    }
    size_t once_length, twice_length;
    char *once = format(p, &once_length);
    struct parsed *again = parsed_bytes(once, once_length, 0);
    CHECKF(!parsed_errors(again), "%s\n%s", once, again->messages);
    if (parsed_errors(again)) exit(check_end());
    CHECKF(!strcmp(p->tree, again->tree), "%s\n--- became\n%s", text, once);
    char *twice = format(again, &twice_length);
    CHECKF(!strcmp(once, twice), "%s\n--- became\n%s", once, twice);
    parsed_free(p);
    parsed_free(again);
    free(twice);
    return once;
}

static void run(FILE *out)
{
    size_t length = 0;
    char *text = golden_read("main.pnet", &length);
    char *formatted = check_format(text, length);
    fputs(formatted, out);
    free(text);
    free(formatted);
}

static void test_canonical(const char *pattern)
{
    glob_t files;
    CHECK(glob(pattern, 0, NULL, &files) == 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        size_t length = 0;
        char *text = golden_read(files.gl_pathv[i], &length);
        char *formatted = check_format(text, length);
        CHECKF(!strcmp(text, formatted), "%s is not canonical:\n%s", files.gl_pathv[i], formatted);
        free(text);
        free(formatted);
    }
    globfree(&files);
}

/* xorshift: the same layouts on every run. */
static uint32_t random_below(uint32_t *state, uint32_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % limit;
}

/* The text with other white space and more comments where a space or line end is. */
static char *shake(const char *text, uint32_t *state, size_t *length)
{
    static const char *const spaces[] = {
        " ", "  ", "\n", "\n\n\n", "\t", " # c\n", "\n## d\n", " ## e\n", "\r\n", "\n# f\n\n"};
    char *out_text = NULL;
    FILE *out = open_memstream(&out_text, length);
    bool comment = false;
    for (; *text; text++) {
        bool was_comment = comment;
        comment = *text == '#' || (comment && *text != '\n');
        if (*text == '\n' || (*text == ' ' && !comment)) {
            if (was_comment || (*text == '\n' && random_below(state, 2))) fputc('\n', out);
            if (*text == ' ' || random_below(state, 4) == 0)
                fputs(spaces[random_below(state, sizeof spaces / sizeof *spaces)], out);
            else
                fputc('\n', out);
        } else {
            fputc(*text, out);
        }
    }
    fclose(out);
    return out_text;
}

static void test_shaken(const char *path)
{
    size_t length = 0;
    char *text = golden_read(path, &length);
    uint32_t state = 12345;
    for (int i = 0; i < 100; i++) {
        char *shaken = shake(text, &state, &length);
        free(check_format(shaken, length));
        free(shaken);
    }
    free(text);
}

int main(void)
{
    CHECK(golden_run("tests/lang/golden/format.txt", run) == 9);
    test_canonical("tests/lang/models/*.pnet");
    test_canonical("models/*.pnet");
    test_shaken("tests/lang/models/registration.pnet");
    test_shaken("tests/lang/models/classification.pnet");
    return check_end();
}
