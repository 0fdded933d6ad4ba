#include "compiler/cli/cloud_feed.h"
#include "compiler/cli/cloud_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes "`a`, `b`": the inputs that the result reads or, with `declared`, all clouds that the model declares. */
static void name_inputs(const struct cloud_feed *f, const struct pnet_input *inputs,
    int input_count, bool declared, char list[400])
{
    list[0] = 0;
    for (int i = 0, k = 0; i < input_count; i++) {
        bool read = k < f->count && f->input[k] == i;
        size_t used = strlen(list);
        k += read;
        if (read || (declared && !pnet_input_is_pose(&inputs[i])))
            snprintf(list + used, 400 - used, "%s`%s`", used ? ", " : "", inputs[i].name);
    }
}

static enum pnet_status find_read(
    const struct pnet_input *inputs, int input_count, struct cloud_feed *f, struct pnet_error *e)
{
    for (int i = 0; i < input_count; i++) {
        if (inputs[i].unused || pnet_input_is_pose(&inputs[i])) continue;
        if (f->count == CLOUD_FEED_MOST)
            return pnet_error_set(
                e, PNET_USAGE, "the result reads more than %d clouds", CLOUD_FEED_MOST);
        f->input[f->count++] = i;
    }
    return f->count ? PNET_OK : pnet_error_set(e, PNET_USAGE, "the model reads no cloud");
}

/* Returns the length of NAME in NAME=CLOUD; 0: the text is a path. */
static size_t name_length(const char *text)
{
    size_t n = 0;
    if (!isalpha((unsigned char)text[0]) && text[0] != '_') return 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_') n++;
    return text[n] == '=' ? n : 0;
}

/* Finds the input that an option names: *which is its place among those that are read; -1: the option names none. */
static enum pnet_status find_named(const char *text, const struct pnet_input *inputs,
    int input_count, const struct cloud_feed *f, int *which, struct pnet_error *e)
{
    size_t n = name_length(text);
    char list[400];
    *which = -1;
    for (int i = 0, k = 0; n && i < input_count; i++) {
        bool read = k < f->count && f->input[k] == i;
        if (strlen(inputs[i].name) == n && memcmp(inputs[i].name, text, n) == 0) {
            if (read) *which = k;
            return read ? PNET_OK
                        : pnet_error_set(e, PNET_USAGE,
                              "--input %s: the result does not read `%s`; leave it out", text,
                              inputs[i].name);
        }
        k += read;
    }
    if (!n || access(text, F_OK) == 0) return PNET_OK;
    name_inputs(f, inputs, input_count, true, list);
    return pnet_error_set(e, PNET_USAGE, "--input %s: the model has no cloud `%.*s`; it has %s",
        text, (int)n, text, list);
}

/* Gives the cloud without a name to the only input that has none yet. */
static enum pnet_status take_unnamed(const char *text, const struct pnet_input *inputs,
    int input_count, const struct cloud_feed *f, struct text_list *files, struct pnet_error *e)
{
    char list[400];
    int missing = 0, last = 0;
    for (int k = 0; k < f->count; k++)
        if (!files->items[k]) {
            missing++;
            last = k;
        }
    if (missing == 1) {
        files->items[last] = text;
        return PNET_OK;
    }
    name_inputs(f, inputs, input_count, false, list);
    return pnet_error_set(e, PNET_USAGE,
        missing
            ? "--input %s: the result reads the clouds %s: give the others too, --input NAME=CLOUD"
            : "--input %s: the clouds %s have names already: leave it out",
        text, list);
}

/* Several inputs: options name theirs; one may be left that has no name. */
static enum pnet_status take_each(const struct text_list *options, const struct pnet_input *inputs,
    int input_count, const struct cloud_feed *f, struct text_list *files, struct pnet_error *e)
{
    const char *unnamed = NULL;
    char list[400];
    name_inputs(f, inputs, input_count, false, list);
    for (int i = 0; i < options->count; i++) {
        const char *text = options->items[i];
        int which;
        enum pnet_status st = find_named(text, inputs, input_count, f, &which, e);
        if (st) return st;
        if (which < 0 && unnamed)
            return pnet_error_set(e, PNET_USAGE,
                "--input %s: the result reads the clouds %s: say which one it is, --input "
                "NAME=CLOUD",
                text, list);
        if (which < 0) {
            unnamed = text;
            continue;
        }
        if (files->items[which])
            return pnet_error_set(e, PNET_USAGE, "--input %s: `%s` has a cloud already", text,
                inputs[f->input[which]].name);
        files->items[which] = text + name_length(text) + 1;
    }
    enum pnet_status st =
        unnamed ? take_unnamed(unnamed, inputs, input_count, f, files, e) : PNET_OK;
    for (int k = 0; k < f->count && !st; k++)
        if (!files->items[k])
            st = pnet_error_set(e, PNET_USAGE,
                "the result reads the clouds %s: --input %s=CLOUD is missing", list,
                inputs[f->input[k]].name);
    files->count = f->count;
    return st;
}

enum pnet_status pnet_cli_feed_clouds(const struct text_list *options,
    const struct pnet_input *inputs, int input_count, struct cloud_feed *f, struct pnet_error *e)
{
    struct text_list files = {.count = 0};
    *f = (struct cloud_feed){.count = 0};
    enum pnet_status st = find_read(inputs, input_count, f, e);
    if (st) return st;
    if (f->count > 1) {
        st = take_each(options, inputs, input_count, f, &files, e);
        if (!st) st = pnet_cli_list_clouds(&files, &f->clouds, &f->many, e);
        f->many = false;
        if (!st && f->clouds.count != f->count) {
            pnet_paths_free(&f->clouds);
            st = pnet_error_set(e, PNET_USAGE,
                "--input: with several inputs each takes one cloud, no folder and no pattern");
        }
        return st;
    }
    for (int i = 0; i < options->count && !st; i++) {
        int which;
        const char *text = options->items[i];
        st = find_named(text, inputs, input_count, f, &which, e);
        files.items[files.count++] = which < 0 ? text : text + name_length(text) + 1;
    }
    return st ? st : pnet_cli_list_clouds(&files, &f->clouds, &f->many, e);
}
