#include "compiler/cli/class_codes.h"
#include "compiler/cli/class_tables.h"
#include "compiler/cli/cli.h"
#include "compiler/cli/result_columns.h"
#include "runtime/io/format.h"
#include "runtime/io/las.h"

#include <stdlib.h>
#include <string.h>

enum { UNCLASSIFIED = 1, LIST = PNET_WORDS_MOST };
/* Point formats of LAS below the first number have codes up to the second one. */
enum { NEW_FORMATS = 6, OLD_FORMATS_MOST = 31 };
static const char field_name[] = "classification";

void pnet_cli_add_word(char list[LIST], const char *word)
{
    size_t used = strlen(list);
    if (used + strlen(word) + 8 < LIST)
        snprintf(list + used, LIST - used, "%s%s", used ? ", " : "", word);
    else if (used < 3 || strcmp(list + used - 3, "...") != 0)
        snprintf(list + used, LIST - used, ", ...");
}

static void list_table(char list[LIST], const struct class_table *t)
{
    list[0] = '\0';
    for (const struct class_row *row = t->rows; row->name; row++) {
        char word[40];
        snprintf(word, sizeof word, "%s %d", row->name, row->code);
        pnet_cli_add_word(list, word);
    }
}

static void list_classes(char list[LIST], char *const *names, int name_count, int count)
{
    list[0] = '\0';
    for (int i = 0; i < name_count && i < count; i++) pnet_cli_add_word(list, names[i]);
    if (!name_count) snprintf(list, LIST, "0 to %d, without names", count - 1);
}

/* Reads a whole number up to `most`; -1: it is none. */
static int read_number(const char *text, size_t length, int most)
{
    int v = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || v > most) return -1;
        v = 10 * v + (text[i] - '0');
    }
    return length && v <= most ? v : -1;
}

/* Returns the class of a name, or of a number where no class has it as its name; -1: there is none. */
static int class_of(const char *text, size_t length, char *const *names, int name_count, int count)
{
    for (int i = 0; i < name_count && i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return i;
    return read_number(text, length, count - 1);
}

/* Reads a code; labels of files have no names. */
static enum pnet_status take_code(const char *item, size_t length, const char *code,
    struct class_codes *codes, int *taken, struct pnet_error *e)
{
    const struct class_table *asprs = pnet_cli_class_table("asprs");
    char list[LIST];
    size_t rest = length - (size_t)(code - item);
    int shown = (int)(length < 100 ? length : 100);
    *taken = read_number(code, rest, codes->most);
    if (*taken < 0 && !codes->labels) *taken = pnet_cli_table_code(asprs, code, rest);
    if (*taken >= 0) return PNET_OK;
    if (codes->labels)
        return pnet_error_set(e, PNET_USAGE,
            "--classification %.*s: a label of this file is a number from 0 to %d", shown, item,
            codes->most);
    list_table(list, asprs);
    return pnet_error_set(e, PNET_USAGE,
        "--classification %.*s: a code is a number from 0 to %d, or one of %s", shown, item,
        codes->most, list);
}

/* Takes one CLASS=CODE. */
static enum pnet_status take_item(const char *item, size_t length, char *const *names,
    int name_count, struct class_codes *codes, struct pnet_error *e)
{
    char list[LIST];
    size_t equals = length;
    while (equals && item[equals - 1] != '=') equals--;
    if (equals < 2 || equals == length) {
        list[0] = '\0';
        for (int i = 0; pnet_cli_class_table_names[i]; i++)
            pnet_cli_add_word(list, pnet_cli_class_table_names[i]);
        return pnet_error_set(e, PNET_USAGE,
            "--classification takes one of %s, or CLASS=CODE with commas between, not '%.*s'", list,
            (int)(length < 100 ? length : 100), item);
    }
    int name = (int)equals - 1,
        class_ = class_of(item, equals - 1, names, name_count, codes->count);
    if (class_ < 0) {
        list_classes(list, names, name_count, codes->count);
        return pnet_error_set(e, PNET_USAGE,
            "--classification %.*s: the model has no such class; it has %s",
            (int)(length < 100 ? length : 100), item, list);
    }
    if (codes->code[class_] >= 0)
        return pnet_error_set(e, PNET_USAGE, "--classification gives class %.*s two codes",
            name < 100 ? name : 100, item);
    return take_code(item, length, item + equals, codes, &codes->code[class_], e);
}

/* Gives the classes of a model without names their codes by the order of the table, with its first class or without. */
static enum pnet_status take_order(
    const struct class_table *t, struct class_codes *codes, struct pnet_error *e)
{
    int left_out = t->ordered - codes->count;
    if (left_out != 0 && left_out != 1)
        return pnet_error_set(e, PNET_USAGE,
            "--classification %s: the model has %d classes without names; %s has %d, or %d with "
            "%s as the first one; --classification CLASS=CODE,... gives codes to others",
            t->option, codes->count, t->title, t->ordered - 1, t->ordered, t->rows[0].name);
    for (int i = 0; i < codes->count; i++) codes->code[i] = t->rows[i + left_out].code;
    return PNET_OK;
}

/* Gives each class the code that the table has for its name. */
static enum pnet_status take_table(const struct class_table *t, char *const *names, int name_count,
    struct class_codes *codes, struct pnet_error *e)
{
    char classes[LIST], list[LIST];
    bool any = false;
    if (!name_count && t->ordered) return take_order(t, codes, e);
    for (int i = 0; i < name_count && i < codes->count; i++) {
        codes->code[i] = pnet_cli_table_code(t, names[i], strlen(names[i]));
        any |= codes->code[i] >= 0;
    }
    if (any) return PNET_OK;
    list_classes(classes, names, name_count, codes->count);
    list_table(list, t);
    pnet_error_set(e, PNET_USAGE, "--classification %s: no class of the model (%s) is called ",
        t->option, classes);
    pnet_error_append(e, "as one of ");
    pnet_error_append(e, t->title);
    pnet_error_append(e, ": ");
    pnet_error_append(e, list);
    pnet_error_append(e, "; --classification CLASS=CODE,... gives codes to others");
    return PNET_USAGE;
}

enum pnet_status pnet_cli_parse_codes(const char *text, char *const *names, int name_count,
    int count, struct class_codes *codes, struct pnet_error *e)
{
    const struct class_table *table = text ? pnet_cli_class_table(text) : NULL;
    enum pnet_status st = PNET_OK;
    codes->count = count;
    codes->code = malloc((size_t)count * sizeof *codes->code + 1);
    if (!codes->code) return pnet_error_memory(e);
    for (int i = 0; i < count; i++) codes->code[i] = -1;
    if (table) return take_table(table, names, name_count, codes, e);
    for (const char *at = text; text && !st; at++) {
        size_t length = strcspn(at, ",");
        st = take_item(at, length, names, name_count, codes, e);
        at += length;
        if (!*at) break;
    }
    return st;
}

void pnet_cli_free_codes(struct class_codes *codes)
{
    free(codes->code);
    *codes = (struct class_codes){.code = NULL};
}

const char *pnet_cli_class_name(int class_, char *const *names, int name_count, char number[16])
{
    if (class_ < name_count) return names[class_];
    snprintf(number, 16, "%d", class_);
    return number;
}

void pnet_cli_say_codes(const struct class_codes *codes, char *const *names, int name_count)
{
    char list[LIST] = "", number[16];
    for (int i = 0; i < codes->count; i++)
        if (codes->code[i] < 0)
            pnet_cli_add_word(list, pnet_cli_class_name(i, names, name_count, number));
    if (*list && codes->labels)
        pnet_cli_notice("these classes have no label, and are written as 0: %s", list);
    else if (*list)
        pnet_cli_notice(
            "--classification: points of these classes keep the code that they have, or "
            "get %d, unclassified: %s",
            UNCLASSIFIED, list);
}

/* Returns the field of the codes, which is made if there is none. NULL: out of memory. */
static struct pnet_field *find_codes(struct pnet_cloud *c)
{
    struct pnet_field *f = pnet_cloud_field(c, field_name);
    if (f) return f;
    f = pnet_cloud_add(c, field_name, PNET_U8);
    if (f) memset(f->data, UNCLASSIFIED, (size_t)c->rows);
    return f;
}

enum pnet_status pnet_cli_check_codes(const struct class_codes *codes, char *const *names,
    int name_count, const struct pnet_cloud *c, const char *input, const char *output,
    struct pnet_error *e)
{
    const struct pnet_field *f = pnet_cloud_field(c, field_name);
    bool old = c->las && c->las->layout.format < NEW_FORMATS &&
               (pnet_path_ends(output, ".las") || pnet_path_ends(output, ".laz"));
    bool small = f && f->type == PNET_I8;
    char number[16];
    for (int i = 0; i < codes->count; i++) {
        const char *name = pnet_cli_class_name(i, names, name_count, number);
        if (small && codes->code[i] > INT8_MAX)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%.400s: %s has the type int8, which does not hold code %d of class %.100s", input,
                field_name, codes->code[i], name);
        if (old && codes->code[i] > OLD_FORMATS_MOST)
            return pnet_error_set(e, PNET_USAGE,
                "%.400s: its point format %u has codes up to %d in %.400s too, and class %.100s "
                "gets %d: give it another code, or write .ply",
                input, c->las->layout.format, OLD_FORMATS_MOST, output, name, codes->code[i]);
    }
    return PNET_OK;
}

enum pnet_status pnet_cli_add_codes(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, const struct class_codes *codes, struct pnet_error *e)
{
    struct pnet_field *f = find_codes(c);
    if (!f) return pnet_error_memory(e);
    for (int64_t i = 0; i < c->rows; i++) {
        int64_t row = row_of ? row_of[i] : i;
        if (row < 0) continue; /* the point was dropped on loading */
        int code = codes->code[pnet_cli_best(result + row * codes->count, codes->count)];
        if (code >= 0)
            pnet_scalar_store(
                code, f->type, (uint8_t *)f->data + (size_t)i * pnet_scalar_size(f->type));
    }
    return PNET_OK;
}
