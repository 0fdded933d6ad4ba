/* Any bytes: an error or a tree, never a crash. A tree keeps its meaning when it is formatted, and
   what was formatted stays as it is. */
#include "lang/dump.h"
#include "lang/parse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A parse of its own and what it writes. The caller frees the texts. */
struct result {
    int errors;
    char *tree, *formatted;
    size_t formatted_length;
};

static struct result parse(const char *text, size_t length, size_t fail_at)
{
    struct result r = {0};
    struct pnet_arena a = {.fail_at = fail_at};
    size_t ignored;
    char *messages = NULL;
    struct pnet_sources *s = pnet_sources_new(&a);
    struct pnet_diags *d = s ? pnet_diags_new(&a, s) : NULL;
    struct pnet_file *f = d ? pnet_parse_text(&a, s, d, "fuzz.pnet", text, length) : NULL;
    if (d) {
        FILE *out = open_memstream(&messages, &ignored);
        pnet_diags_print(d, out, true);
        pnet_diags_json(d, out);
        fclose(out);
        r.errors = pnet_diags_errors(d) + (a.failed ? 1 : 0);
    }
    if (f) {
        FILE *out = open_memstream(&r.tree, &ignored);
        pnet_ast_dump(out, f, NULL);
        fclose(out);
    } else if (!r.errors && !a.failed) {
        abort();
    }
    if (f && !r.errors) {
        const char *formatted = pnet_format(&a, s, f, &r.formatted_length);
        if (formatted) {
            r.formatted = calloc(1, r.formatted_length + 1);
            if (r.formatted) memcpy(r.formatted, formatted, r.formatted_length);
        } else if (!a.failed && length < 4096) {
            abort();
        }
    }
    pnet_arena_free(&a);
    free(messages);
    return r;
}

static void release(struct result r)
{
    free(r.tree);
    free(r.formatted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result first = parse((const char *)data, size, 0);
    if (first.formatted) {
        struct result second = parse(first.formatted, first.formatted_length, 0);
        if (second.errors || !second.tree || strcmp(first.tree, second.tree) != 0) abort();
        if (strcmp(first.formatted, second.formatted) != 0) abort();
        release(second);
    }
    release(first);
    size_t hash = 5381;
    for (size_t i = 0; i < size; i++) hash = hash * 33 + data[i];
    release(parse((const char *)data, size, 1 + hash % (size + 20)));

    struct pnet_arena a = {0};
    struct pnet_sources *s = pnet_sources_new(&a);
    struct pnet_diags *d = pnet_diags_new(&a, s);
    struct pnet_expr *e = pnet_parse_expr(&a, s, d, "--set", (const char *)data, size);
    if (!e != (pnet_diags_errors(d) > 0)) abort();
    pnet_arena_free(&a);
    return 0;
}
