#include "compiler/cli/label_file.h"
#include "compiler/cli/class_tables.h"
#include "compiler/cli/cli.h"
#include "compiler/cli/result_columns.h"
#include "runtime/io/format.h"

#include <inttypes.h>
#include <string.h>

/* The high 16 bits of SemanticKITTI are the instance. */
static const struct label_format formats[] = {
    {.name = "label", .ending = ".label", .by_ending = true, .bytes = 4, .most = UINT16_MAX},
    {.name = "lidarseg",
        .ending = "_lidarseg.bin",
        .by_ending = true,
        .bytes = 1,
        .most = UINT8_MAX},
    {.name = "scannet", .ending = ".txt", .bytes = 0, .most = UINT16_MAX},
};
enum { FORMATS = sizeof formats / sizeof *formats };

enum pnet_status pnet_cli_label_format(const char *output, const char *format, bool many,
    const struct label_format **found, struct pnet_error *e)
{
    const struct label_format *f = NULL;
    for (int i = 0; i < FORMATS && !f; i++)
        if (format && strcmp(format, formats[i].name) == 0) f = &formats[i];
    if (f && !many && output && !pnet_path_ends(output, f->ending))
        return pnet_error_set(
            e, PNET_USAGE, "%.500s: names of --format %s end in %s", output, f->name, f->ending);
    for (int i = 0; i < FORMATS && !f && !many && output; i++)
        if (formats[i].by_ending && pnet_path_ends(output, formats[i].ending)) f = &formats[i];
    *found = f;
    return PNET_OK;
}

void pnet_cli_name_labels(const struct label_format *format, const char *folder, const char *stem,
    int length, char path[PNET_PATH_MOST])
{
    if (length > 4 && memcmp(stem + length - 4, ".pcd", 4) == 0) length -= 4;
    snprintf(path, PNET_PATH_MOST, "%s/%.*s%s", folder, length, stem, format->ending);
}

/* Gives the classes that have no code yet the labels of the training's data set. */
static enum pnet_status take_trained(const struct label_format *format,
    const struct pnet_input_map *map, bool quiet, struct class_codes *codes, struct pnet_error *e)
{
    char list[PNET_WORDS_MOST] = "", number[16], word[200];
    for (int i = 0; i < map->label_count; i++) {
        const struct pnet_class_label *l = &map->labels[i];
        bool first = !i || l[-1].class_ != l->class_,
             several = i + 1 < map->label_count && l[1].class_ == l->class_;
        if (!first || l->class_ >= codes->count || codes->code[l->class_] >= 0) continue;
        const char *name = pnet_cli_class_name(l->class_, map->classes, map->class_count, number);
        if (l->label < 0 || l->label > format->most)
            return pnet_error_set(e, PNET_USAGE,
                "the label of class %.100s is %" PRId64
                ", and --format %s has labels from 0 to %d: --classification CLASS=CODE,... or "
                "another format",
                name, l->label, format->name, format->most);
        codes->code[l->class_] = (int)l->label;
        if (!several) continue;
        snprintf(word, sizeof word, "%.150s %d", name, codes->code[l->class_]);
        pnet_cli_add_word(list, word);
    }
    if (*list && !quiet)
        pnet_cli_notice("several labels of the training are one class, which is written as the "
                        "smallest of them (--classification CLASS=CODE takes another): %s",
            list);
    return PNET_OK;
}

/* Gives each class its number. */
static enum pnet_status take_numbers(
    const struct label_format *format, bool quiet, struct class_codes *codes, struct pnet_error *e)
{
    int last = codes->count - 1;
    if (last > format->most)
        return pnet_error_set(e, PNET_USAGE,
            "the model has classes up to %d, and --format %s has labels up to %d: write another "
            "format",
            last, format->name, format->most);
    for (int i = 0; i <= last; i++) codes->code[i] = i;
    if (!quiet)
        pnet_cli_notice("the weights name no labels of files: the classes are written as their "
                        "numbers, 0 to %d (--classification gives others)",
            last);
    return PNET_OK;
}

/* Refuses codes of a table that the format does not hold. */
static enum pnet_status check_most(
    const struct label_format *format, const struct class_codes *codes, struct pnet_error *e)
{
    for (int i = 0; i < codes->count; i++)
        if (codes->code[i] > format->most)
            return pnet_error_set(e, PNET_USAGE,
                "class %d gets label %d, and --format %s has labels up to %d", i, codes->code[i],
                format->name, format->most);
    return PNET_OK;
}

enum pnet_status pnet_cli_label_codes(const struct label_format *format, const char *text,
    const struct pnet_input_map *map, int count, bool quiet, struct class_codes *codes,
    struct pnet_error *e)
{
    codes->labels = true;
    codes->most = format->most;
    enum pnet_status st =
        pnet_cli_parse_codes(text, map->classes, map->class_count, count, codes, e);
    if (!st && !(text && pnet_cli_class_table(text))) {
        if (map->label_count)
            st = take_trained(format, map, quiet, codes, e);
        else if (!text)
            st = take_numbers(format, quiet, codes, e);
    }
    if (!st) st = check_most(format, codes, e);
    if (!st && !quiet) pnet_cli_say_codes(codes, map->classes, map->class_count);
    return st;
}

enum pnet_status pnet_cli_write_labels(const char *path, const struct label_format *format,
    const float *result, const int64_t *row_of, int64_t rows, const struct class_codes *codes,
    struct pnet_error *e)
{
    struct pnet_output o;
    enum pnet_status st = pnet_output_open(path, &o, e);
    if (st) return st;
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = row_of ? row_of[i] : i;
        int code =
            row < 0 ? -1 : codes->code[pnet_cli_best(result + row * codes->count, codes->count)];
        unsigned label = code < 0 ? 0 : (unsigned)code;
        for (int k = 0; k < format->bytes; k++) putc((int)(label >> 8 * k & 0xff), o.file);
        if (!format->bytes) fprintf(o.file, "%u\n", label);
    }
    return pnet_output_commit(&o, e);
}
