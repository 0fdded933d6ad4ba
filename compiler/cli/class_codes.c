#include "compiler/cli/class_codes.h"
#include "compiler/cli/cli.h"
#include "compiler/cli/result_columns.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { UNCLASSIFIED = 1, CODE_MOST = 255, LIST = 480 };

/* LAS 1.4 - R15, table 17: classes of points. */
static const struct {
    const char *name;
    int code;
} asprs[] = {{"never_classified", 0}, {"unclassified", UNCLASSIFIED}, {"ground", 2},
    {"low_vegetation", 3}, {"medium_vegetation", 4}, {"high_vegetation", 5}, {"building", 6},
    {"low_point", 7}, {"low_noise", 7}, {"noise", 7}, {"water", 9}, {"rail", 10},
    {"road_surface", 11}, {"wire_guard", 13}, {"wire_conductor", 14}, {"transmission_tower", 15},
    {"wire_connector", 16}, {"bridge_deck", 17}, {"high_noise", 18}, {"overhead_structure", 19},
    {"ignored_ground", 20}, {"snow", 21}, {"temporal_exclusion", 22}};
enum { ASPRS = sizeof asprs / sizeof *asprs };

/* Adds a word to a list with commas; what does not fit is "...". */
static void add_word(char list[LIST], const char *word)
{
    size_t used = strlen(list);
    if (used + strlen(word) + 8 < LIST)
        snprintf(list + used, LIST - used, "%s%s", used ? ", " : "", word);
    else if (used < 3 || strcmp(list + used - 3, "...") != 0)
        snprintf(list + used, LIST - used, ", ...");
}

static void list_asprs(char list[LIST])
{
    list[0] = '\0';
    for (int i = 0; i < ASPRS; i++) {
        char word[40];
        snprintf(word, sizeof word, "%s %d", asprs[i].name, asprs[i].code);
        add_word(list, word);
    }
}

static void list_classes(char list[LIST], char *const *names, int name_count, int count)
{
    list[0] = '\0';
    for (int i = 0; i < name_count && i < count; i++) add_word(list, names[i]);
    if (!name_count) snprintf(list, LIST, "0 to %d, without names", count - 1);
}

/* Returns the code of a class that ASPRS names, in upper or lower case, with _, - or blanks between words; -1: there is none. */
static int code_of(const char *name, size_t length)
{
    for (int i = 0; i < ASPRS; i++) {
        size_t k = 0;
        for (; k < length && asprs[i].name[k]; k++) {
            int c = tolower((unsigned char)name[k]);
            if (asprs[i].name[k] != (c == ' ' || c == '-' ? '_' : c)) break;
        }
        if (k == length && !asprs[i].name[k]) return asprs[i].code;
    }
    return -1;
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

/* Takes one CLASS=CODE. */
static enum pnet_status take_item(const char *item, size_t length, char *const *names,
    int name_count, struct class_codes *codes, struct pnet_error *e)
{
    char list[LIST];
    size_t equals = length;
    while (equals && item[equals - 1] != '=') equals--;
    if (equals < 2 || equals == length)
        return pnet_error_set(e, PNET_USAGE,
            "--classification takes asprs, or CLASS=CODE with commas between, not '%.*s'",
            (int)(length < 100 ? length : 100), item);
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
    const char *code = item + equals;
    codes->code[class_] = read_number(code, length - equals, CODE_MOST);
    if (codes->code[class_] < 0) codes->code[class_] = code_of(code, length - equals);
    if (codes->code[class_] >= 0) return PNET_OK;
    list_asprs(list);
    return pnet_error_set(e, PNET_USAGE,
        "--classification %.*s: a code is a number from 0 to %d, or one of %s",
        (int)(length < 100 ? length : 100), item, CODE_MOST, list);
}

/* Gives each class the code that ASPRS has for its name. */
static enum pnet_status take_asprs(
    char *const *names, int name_count, struct class_codes *codes, struct pnet_error *e)
{
    char classes[LIST], list[LIST];
    bool any = false;
    for (int i = 0; i < name_count && i < codes->count; i++) {
        codes->code[i] = code_of(names[i], strlen(names[i]));
        any |= codes->code[i] >= 0;
    }
    if (any) return PNET_OK;
    list_classes(classes, names, name_count, codes->count);
    list_asprs(list);
    pnet_error_set(
        e, PNET_USAGE, "--classification asprs: no class of the model (%s) is called ", classes);
    pnet_error_append(e, "as one of ASPRS: ");
    pnet_error_append(e, list);
    pnet_error_append(e, "; --classification CLASS=CODE,... gives codes to others");
    return PNET_USAGE;
}

enum pnet_status pnet_cli_parse_codes(const char *text, char *const *names, int name_count,
    int count, struct class_codes *codes, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    codes->count = count;
    codes->code = malloc((size_t)count * sizeof *codes->code + 1);
    if (!codes->code) return pnet_error_memory(e);
    for (int i = 0; i < count; i++) codes->code[i] = -1;
    if (strcmp(text, "asprs") == 0) return take_asprs(names, name_count, codes, e);
    for (const char *at = text; !st; at++) {
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

void pnet_cli_say_codes(const struct class_codes *codes, char *const *names, int name_count)
{
    char list[LIST] = "";
    for (int i = 0; i < codes->count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        if (codes->code[i] < 0) add_word(list, i < name_count ? names[i] : number);
    }
    if (*list)
        pnet_cli_notice(
            "--classification: points of these classes keep the code that they have, or "
            "get %d, unclassified: %s",
            UNCLASSIFIED, list);
}

/* Returns the field of the codes, which is made if there is none. */
static enum pnet_status find_codes(struct pnet_cloud *c, const struct class_codes *codes,
    const char *path, struct pnet_field **field, struct pnet_error *e)
{
    static const char name[] = "classification";
    struct pnet_field *f = *field = pnet_cloud_field(c, name);
    if (!f) {
        f = *field = pnet_cloud_add(c, name, PNET_U8);
        if (!f) return pnet_error_memory(e);
        memset(f->data, UNCLASSIFIED, (size_t)c->rows);
    }
    for (int i = 0; i < codes->count && f->type == PNET_I8; i++)
        if (codes->code[i] > INT8_MAX)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%.400s: %s has the type int8, which does not hold code %d", path, name,
                codes->code[i]);
    return PNET_OK;
}

enum pnet_status pnet_cli_add_codes(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, const struct class_codes *codes, const char *path, struct pnet_error *e)
{
    struct pnet_field *f;
    enum pnet_status st = find_codes(c, codes, path, &f, e);
    if (st) return st;
    double *p = malloc((size_t)codes->count * sizeof *p + 1);
    if (!p) return pnet_error_memory(e);
    for (int64_t i = 0; i < c->rows; i++) {
        int64_t row = row_of ? row_of[i] : i;
        if (row < 0) continue; /* the point was dropped on loading */
        int code =
            codes->code[pnet_cli_probabilities(result + row * codes->count, codes->count, p)];
        if (code >= 0)
            pnet_scalar_store(
                code, f->type, (uint8_t *)f->data + (size_t)i * pnet_scalar_size(f->type));
    }
    free(p);
    return PNET_OK;
}
