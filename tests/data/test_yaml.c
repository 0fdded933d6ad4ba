/* The YAML reader: values, and the text of every error. */
#include "runtime/base/yaml.h"
#include "tests/check.h"

#include <stdbool.h>

static struct pnet_yaml *parse(const char *text)
{
    struct pnet_yaml *y;
    struct pnet_error e;
    enum pnet_status status = pnet_yaml_parse("t.yaml", text, strlen(text), PNET_USAGE, &y, &e);
    CHECKF(!status, "%s", e.message);
    if (!y) exit(1);
    return y;
}

/* A document that is no good must say so in these words. */
static void expect_bad(const char *text, const char *message)
{
    struct pnet_yaml *y;
    struct pnet_error e = {.message = "nothing"};
    CHECK(pnet_yaml_parse("t.yaml", text, strlen(text), PNET_USAGE, &y, &e) == PNET_USAGE && !y);
    CHECK_STR(e.message, message);
}

static void test_tree(void)
{
    struct pnet_yaml *y =
        parse("# comment\na: 1\nb:\n  - x\n  - {c: 'd e', f: [1, 2]}\nempty:\nt: ~\n");
    const struct pnet_yaml_node *root = pnet_yaml_root(y), *b = pnet_yaml_get(root, "b");
    CHECK(root->kind == PNET_YAML_MAP && root->count == 4);
    CHECK(b && b->kind == PNET_YAML_LIST && b->count == 2 && b->first->line == 4);
    CHECK_STR(b->first->text, "x");
    const struct pnet_yaml_node *map = b->first->next;
    CHECK(map->line == 5 && !map->next);
    CHECK_STR(pnet_yaml_get(map, "c")->text, "d e");
    CHECK(pnet_yaml_get(map, "f")->first->next->kind == PNET_YAML_SCALAR);
    CHECK(pnet_yaml_get(root, "empty")->kind == PNET_YAML_NULL);
    CHECK(pnet_yaml_get(root, "empty")->line == 6);
    CHECK(pnet_yaml_get(root, "t")->kind == PNET_YAML_NULL);
    CHECK(!pnet_yaml_get(root, "missing") && !pnet_yaml_get(b, "a") && !pnet_yaml_get(NULL, "a"));
    pnet_yaml_free(y);
    y = parse("");
    CHECK(pnet_yaml_root(y)->kind == PNET_YAML_NULL);
    pnet_yaml_free(y);
}

static void test_bad_documents(void)
{
    expect_bad("a: 1\nb: 2\na: 3\n", "t.yaml:3: the key `a` is there twice, first in line 1");
    expect_bad("x: &n 1\ny: *n\n", "t.yaml:2: aliases (*name) are not supported");
    expect_bad("x: !!int 1\n", "t.yaml:1: tags (!...) are not supported");
    expect_bad("x: 1\n---\ny: 1\n", "t.yaml:2: a second document");
    expect_bad("{[a]: 1}\n", "t.yaml:1: a key must be a plain word");
    expect_bad("a: \"x\\0y\"\n", "t.yaml:1: a zero byte inside a word");
    char deep[200] = "";
    memset(deep, '[', 100);
    expect_bad(deep, "t.yaml:1: nested more than 32 deep");
    struct pnet_yaml *y;
    struct pnet_error e;
    CHECK(pnet_yaml_parse("t.yaml", "a: [1\nb: 2", 10, PNET_BAD_DATA, &y, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "t.yaml:2: not YAML: ") == e.message, "%s", e.message);
    CHECK(pnet_yaml_parse("t.yaml", "\xff\xfe", 2, PNET_BAD_DATA, &y, &e) == PNET_BAD_DATA);
    CHECK(pnet_yaml_read("/nowhere/x.yaml", PNET_USAGE, &y, &e) == PNET_FAILED && !y);
}

/* Reads `text` as the value of v, by one of the getters. */
enum getter { INT, REAL, LENGTH, DEGREES, BYTES, BOOL, SEED };

static double get(enum getter g, const char *text, char message[1024])
{
    char line[256];
    struct pnet_error e = {.message = ""};
    double v = 0;
    snprintf(line, sizeof line, "\nv: %s\n", text);
    struct pnet_yaml *y = parse(line);
    const struct pnet_yaml_node *n = pnet_yaml_get(pnet_yaml_root(y), "v");
    switch (g) {
    case INT: v = (double)pnet_yaml_int(y, n, -5, 100, -77); break;
    case REAL: v = pnet_yaml_real(y, n, -5, 100, -77); break;
    case LENGTH: v = pnet_yaml_length(y, n, 0, 1e4, -77); break;
    case DEGREES: v = pnet_yaml_degrees(y, n, 0, 360, -77); break;
    case BYTES: v = (double)pnet_yaml_bytes(y, n, 77); break;
    case BOOL: v = pnet_yaml_bool(y, n, false); break;
    case SEED: v = (double)pnet_yaml_seed(y, n, 77); break;
    }
    pnet_yaml_end(y, &e);
    snprintf(message, 1024, "%s", e.message);
    pnet_yaml_free(y);
    return v;
}

static void test_numbers(void)
{
    static const struct {
        enum getter getter;
        const char *text;
        double value;
    } good[] = {{INT, "12", 12}, {INT, "-5", -5}, {REAL, "1e-3", 1e-3}, {REAL, "50%", 0.5},
        {REAL, ".5", 0.5}, {REAL, "1/4", 0.25}, {REAL, "-2", -2}, {LENGTH, "5cm", 0.05},
        {LENGTH, "5mm", 0.005}, {LENGTH, "2", 2}, {LENGTH, "1.5m", 1.5}, {LENGTH, "1km", 1000},
        {DEGREES, "30", 30}, {DEGREES, "30deg", 30}, {DEGREES, "1rad", 57.29577951308232},
        {BYTES, "1024", 1024}, {BYTES, "2KiB", 2048}, {BYTES, "2GiB", 0x1p31},
        {BYTES, "0.5MB", 5e5}, {BOOL, "yes", 1}, {BOOL, "true", 1}, {BOOL, "no", 0},
        {SEED, "18446744073709551615", 0x1p64}, {SEED, "0", 0}};
    static const struct {
        enum getter getter;
        const char *text, *message;
    } bad[] = {{INT, "1.5", "v: expected an integer, got `1.5`"},
        {INT, "101", "v: 101 is out of range, -5 to 100"},
        {INT, "99999999999999999999", "v: expected an integer, got `99999999999999999999`"},
        {INT, "[1]", "v: expected an integer, got a list"},
        {INT, "", "v: expected an integer, got nothing"},
        {REAL, "nan", "v: expected a number, got `nan`"},
        {REAL, "inf", "v: expected a number, got `inf`"},
        {REAL, "0x10", "v: expected a number, got `0x10`"},
        {REAL, "1e999", "v: expected a number, got `1e999`"},
        {REAL, "101", "v: `101` is out of range, -5 to 100"},
        {REAL, "1/0", "v: expected a number, got `1/0`"},
        {LENGTH, "5deg", "v: expected a length (metres, or mm cm m km), got `5deg`"},
        {LENGTH, "-1", "v: `-1` is out of range, 0 to 10000"},
        {DEGREES, "5cm", "v: expected an angle (degrees, or deg rad), got `5cm`"},
        {BYTES, "2gigs", "v: expected a size such as 512MiB or 2GiB, got `2gigs`"},
        {BOOL, "maybe", "v: expected yes or no, got `maybe`"},
        {SEED, "-1", "v: expected an integer from 0 to 2^64 - 1, got `-1`"}};
    char message[1024], want[1024];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double v = get(good[i].getter, good[i].text, message);
        CHECKF(fabs(v - good[i].value) <= 1e-12 * fabs(v), "%s: %g, %s", good[i].text, v, message);
        CHECK_STR(message, "");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double v = get(bad[i].getter, bad[i].text, message);
        snprintf(want, sizeof want, "t.yaml:2: %s", bad[i].message);
        CHECK_STR(message, want);
        CHECK(fabs(v) == 77 || (bad[i].getter == BOOL && v == 0));
    }
}

static void test_words(void)
{
    static const char *const words[] = {"adam", "adamw", "sgd"};
    static const char *const keys[] = {"alpha", "beta"};
    struct pnet_error e;
    struct pnet_yaml *y = parse("o: sgd\np: adm\nq: [1, 2]\nr: {alpa: 1}\n");
    const struct pnet_yaml_node *root = pnet_yaml_root(y);
    CHECK(pnet_yaml_choice(y, pnet_yaml_get(root, "o"), words, 3, 0) == 2);
    CHECK(pnet_yaml_choice(y, pnet_yaml_get(root, "none"), words, 3, 1) == 1);
    CHECK(pnet_yaml_list(y, pnet_yaml_get(root, "q"), 2, 2));
    CHECK(pnet_yaml_ok(y) && !pnet_yaml_end(y, &e));
    CHECK(pnet_yaml_choice(y, pnet_yaml_get(root, "p"), words, 3, 1) == 1);
    CHECK(!pnet_yaml_map(y, pnet_yaml_get(root, "r"), "r", keys, 2)); /* the first error sticks */
    CHECK(pnet_yaml_end(y, &e) == PNET_USAGE);
    CHECK_STR(e.message, "t.yaml:2: p: `adm` is not one of adam, adamw, sgd; did you mean `adam`?");
    pnet_yaml_free(y);
    y = parse("r: {alpa: 1}\n");
    CHECK(!pnet_yaml_map(y, pnet_yaml_get(pnet_yaml_root(y), "r"), "r", keys, 2));
    CHECK(pnet_yaml_end(y, &e) == PNET_USAGE);
    CHECK_STR(e.message, "t.yaml:1: r: unknown key `alpa`; did you mean `alpha`?");
    pnet_yaml_free(y);
    y = parse("q: [1, 2, 3]\n");
    CHECK(!pnet_yaml_list(y, pnet_yaml_get(pnet_yaml_root(y), "q"), 2, 2));
    CHECK(pnet_yaml_end(y, &e) == PNET_USAGE);
    CHECK_STR(e.message, "t.yaml:1: q: a list of 3 items, expected 2");
    pnet_yaml_free(y);
    y = parse("q: 1\n");
    CHECK(!pnet_yaml_list(y, pnet_yaml_get(pnet_yaml_root(y), "q"), 2, 2));
    CHECK(pnet_yaml_end(y, &e) == PNET_USAGE);
    CHECK_STR(e.message, "t.yaml:1: q: expected a list [a, b], got a word");
    pnet_yaml_free(y);
}

/* A word is read as it was written, and a byte that is not UTF-8 as the character for that, U+FFFD; nothing behind it is lost. */
static void test_written(void)
{
    static const char *const words[][2] = {{"plain", "plain"}, {"a \"b\" \\c\n", "a \"b\" \\c\n"},
        {"\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80", "\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80"},
        {"d\xff/set", "d\xef\xbf\xbd/set"}, {"\xe6\x97", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        if (!f) continue;
        pnet_yaml_put_word(words[i][0], f);
        fclose(f);
        struct pnet_error e;
        struct pnet_yaml *y;
        CHECKF(!pnet_yaml_parse("t", text, size, PNET_BAD_DATA, &y, &e), "%s: %s", text, e.message);
        if (y) CHECK_STR(pnet_yaml_string(y, pnet_yaml_root(y), ""), words[i][1]);
        pnet_yaml_free(y);
        free(text);
    }
}

int main(void)
{
    test_written();
    test_tree();
    test_bad_documents();
    test_numbers();
    test_words();
    return check_end();
}
