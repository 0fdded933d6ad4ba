/* The JSON writer, read back by an independent reader (jansson); the reader's rules, and how much work it is. */
#include "runtime/base/json.h"
#include "tests/check.h"

#include <stdint.h>
#include <time.h>

/* Parses "[value]" and returns the value; the caller drops *root. */
static json_t *only_value(struct pnet_json *j, json_t **root)
{
    struct pnet_error e;
    *root = NULL;
    CHECKF(!j->failed && pnet_json_parse("text", j->text, j->size, root, &e) == PNET_OK, "%s: %s",
        j->text, e.message);
    return json_array_get(*root, 0);
}

static void check_double(double x)
{
    struct pnet_json j = {.text = NULL};
    pnet_json_begin(&j, NULL, '[');
    pnet_json_double(&j, NULL, x);
    pnet_json_end(&j, ']');
    json_t *root, *v = only_value(&j, &root);
    double back = json_number_value(v);
    CHECKF(memcmp(&back, &x, sizeof x) == 0 || (x == 0 && back == 0), "%.17g became %s", x, j.text);
    json_decref(root);
    pnet_json_free(&j);
}

static void check_float(float x)
{
    struct pnet_json j = {.text = NULL};
    pnet_json_begin(&j, NULL, '[');
    pnet_json_float(&j, NULL, x);
    pnet_json_end(&j, ']');
    json_t *root, *v = only_value(&j, &root);
    CHECKF((float)json_number_value(v) == x, "%.9g became %s", (double)x, j.text);
    json_decref(root);
    pnet_json_free(&j);
}

static void check_numbers(void)
{
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double d;
        float f;
        memcpy(&d, &bits, sizeof d);
        memcpy(&f, &bits, sizeof f);
        if (isfinite(d)) check_double(d);
        if (isfinite(f)) check_float(f);
    }
    check_double(0.1);
    check_double(1.0 / 3);
    check_double(5e-324);
    check_double(1.7976931348623157e308);
    check_float(1.17549435e-38f);
}

static void check_text(void)
{
    struct pnet_json j = {.text = NULL};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_int(&j, "least", INT64_MIN);
    pnet_json_double(&j, "tenth", 0.1);
    pnet_json_float(&j, "tenth32", 0.1f);
    pnet_json_double(&j, "nan", NAN);
    pnet_json_float(&j, "inf", INFINITY);
    pnet_json_begin(&j, "list", '[');
    pnet_json_bool(&j, NULL, true);
    pnet_json_bool(&j, NULL, false);
    pnet_json_begin(&j, NULL, '[');
    pnet_json_end(&j, ']');
    pnet_json_begin(&j, NULL, '{');
    pnet_json_end(&j, '}');
    pnet_json_null(&j, NULL);
    pnet_json_end(&j, ']');
    pnet_json_string(&j, "a \"b\"\\", "\n\t\r\b\f\x01/");
    pnet_json_end(&j, '}');
    CHECK(!j.failed && strlen(j.text) == j.size);
    CHECK_STR(j.text,
        "{\"least\":-9223372036854775808,\"tenth\":0.1,\"tenth32\":0.1,\"nan\":null,\"inf\":null,"
        "\"list\":[true,false,[],{},null],\"a \\\"b\\\"\\\\\":\"\\n\\t\\r\\b\\f\\u0001/\"}");
    pnet_json_free(&j);
}

/* Any two bytes, and sequences of any validity, make a string that the reader takes; valid UTF-8
   comes back as it was. */
static void check_strings(void)
{
    for (int a = 1; a < 256; a++)
        for (int b = 0; b < 256; b += b < 8 ? 1 : 3) {
            char text[] = {(char)a, (char)b, 'x', '\0'};
            struct pnet_json j = {.text = NULL};
            pnet_json_begin(&j, NULL, '[');
            pnet_json_string(&j, NULL, text);
            pnet_json_end(&j, ']');
            json_t *root, *v = only_value(&j, &root);
            json_t *plain = json_string(text); /* NULL where it is not UTF-8 */
            CHECK(json_is_string(v) && (!plain || json_equal(plain, v)));
            if (!plain) CHECK(strstr(json_string_value(v), "\xEF\xBF\xBD"));
            json_decref(plain);
            json_decref(root);
            pnet_json_free(&j);
        }
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"\xF0\x9F\x98\x80\xE2\x82\xAC", "\xF0\x9F\x98\x80\xE2\x82\xAC"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* a surrogate */
        {"\xF4\x90\x80\x80",
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* beyond U+10FFFF */
        {"\xE2\x82", "\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pnet_json j = {.text = NULL};
        pnet_json_begin(&j, NULL, '[');
        pnet_json_string(&j, NULL, rows[i].in);
        pnet_json_end(&j, ']');
        json_t *root;
        CHECK_STR(json_string_value(only_value(&j, &root)), rows[i].out);
        json_decref(root);
        pnet_json_free(&j);
    }
}

static void check_reading(void)
{
    static const char text[] = "{\"i\": 3, \"r\": 2.5, \"s\": \"x\", \"o\": {}}";
    struct pnet_error e;
    json_t *root, *o;
    int64_t i = 0;
    double r = 0;
    const char *s = "";
    CHECK(pnet_json_parse("f", text, sizeof text - 1, &root, &e) == PNET_OK);
    CHECK(pnet_json_get_int("f", root, "i", &i, &e) == PNET_OK && i == 3);
    CHECK(pnet_json_get_number("f", root, "i", &r, &e) == PNET_OK && r == 3);
    CHECK(pnet_json_get_number("f", root, "r", &r, &e) == PNET_OK && r == 2.5);
    CHECK(pnet_json_get_string("f", root, "s", &s, &e) == PNET_OK && strcmp(s, "x") == 0);
    CHECK(pnet_json_get("f", root, "o", JSON_OBJECT, &o, &e) == PNET_OK && o);
    CHECK(pnet_json_get_int("f", root, "r", &i, &e) == PNET_BAD_DATA);
    CHECK_STR(e.message, "f: expected an integer under \"r\"");
    CHECK(pnet_json_get_number("f", root, "s", &r, &e) == PNET_BAD_DATA);
    CHECK(pnet_json_get_string("f", root, "t", &s, &e) == PNET_BAD_DATA);
    CHECK_STR(e.message, "f: expected a string under \"t\", which is missing");
    json_decref(root);
    CHECK(pnet_json_parse("f", "{\"a\":1,\n\"a\":2}", 14, &root, &e) == PNET_BAD_DATA && !root);
    CHECKF(strncmp(e.message, "f:2:", 4) == 0, "%s", e.message);
    CHECK(pnet_json_parse("f", "", 0, &root, &e) == PNET_BAD_DATA);
}

/* A program around the library may use jansson too: what it took before the first reading, it frees after, and the reverse; and
   functions of its own keep getting their blocks. */
static int blocks;

static void *own_take(size_t size)
{
    char *block = malloc(size + 16);
    if (!block) return NULL;
    blocks++;
    memcpy(block, "a block of ours", 16);
    return block + 16;
}

static void own_give(void *data)
{
    if (!data) return;
    CHECK(memcmp((char *)data - 16, "a block of ours", 16) == 0);
    blocks--;
    free((char *)data - 16);
}

static void check_neighbours(void)
{
    struct pnet_error e;
    json_t *read = NULL;
    json_set_alloc_funcs(own_take, own_give);
    json_t *before = json_pack("{s:[i,i]}", "before", 1, 2);
    CHECK(pnet_json_parse("text", "[1, {\"a\": \"b\"}]", 15, &read, &e) == PNET_OK);
    CHECK(pnet_json_parse("text", "[1, {\"a\": \"b\"", 13, &(json_t *){NULL}, &e) == PNET_BAD_DATA);
    json_t *after = json_pack("[s, o]", "after", before);
    json_decref(read);
    json_decref(after);
    CHECKF(blocks == 0, "%d blocks are left", blocks);
}

/* A text that ends in an error gives all its blocks back in the order in which they came: in time that grows as the text does. */
static void check_large_error(void)
{
    enum { ITEMS = 300000, LIMIT_S = 10 };
    struct pnet_error e;
    json_t *root;
    char *text = malloc(3 * (size_t)ITEMS + 2), *at = text;
    if (!text) return;
    *at++ = '[';
    for (int i = 0; i < ITEMS; i++) at = stpcpy(at, "[],");
    *at++ = '}';
    clock_t begin = clock();
    CHECK(pnet_json_parse("text", text, (size_t)(at - text), &root, &e) == PNET_BAD_DATA && !root);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    CHECKF(seconds < LIMIT_S, "%.1f s", seconds);
    CHECKF(blocks == 0, "%d blocks are left", blocks);
    free(text);
}

/* ---- the work of a reading ---- */

/* A text with `n` of something; NULL: memory is out. The caller frees it. */
static char *many(const char *open, const char *item, int n, const char *close, size_t *size)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, size);
    fputs(open, f);
    for (int i = 0; i < n; i++) {
        if (i) fputc(',', f);
        for (const char *at = item; *at; at++) { /* # is the number of the item */
            if (*at == '#')
                fprintf(f, "%d", i);
            else
                fputc(*at, f);
        }
    }
    fputs(close, f);
    fclose(f);
    return text;
}

/* A reading looks at a few places of its set of blocks for each byte of the text, whatever its size. Counted, not timed. */
static void check_steps(void)
{
    static const struct {
        const char *open, *item, *close;
        bool whole;
    } rows[] = {
        {"{", "\"layer#.weight\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [#, #]}",
            "}", true}, /* safetensors */
        {"{", "\"#\": #", "}", true},
        {"[", "\"#\"", "]", true},
        {"[", "#.5", "]", true},
        {"[", "[]", "]", true},
        {"[", "{\"a\": {\"a\": []}}", "]", true},
        {"[", "[[#]]", "", false},
        {"{", "\"#\": \"\\u00e4 \\ud83d\\ude80 \\n\"", "}", true},
        {"{\"jsonrpc\": \"2.0\", \"params\": {\"contentChanges\": [",
            "{\"range\": {\"start\": {\"line\": #, \"character\": 0}}, \"text\": \"x\"}", "]}}",
            true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int n = 1000; n <= 100000; n *= 10) {
            struct pnet_error e;
            struct pnet_json_reading how = {.zeros = false};
            json_t *root;
            size_t size;
            char *text = many(rows[i].open, rows[i].item, n, rows[i].close, &size);
            enum pnet_status st = pnet_json_read("text", text, size, &how, &root, &e);
            CHECK(st == (rows[i].whole ? PNET_OK : PNET_BAD_DATA));
            CHECKF(how.steps > 0 && how.steps <= 8 * size,
                "row %zu, %d items: %llu steps for %zu bytes", i, n, (unsigned long long)how.steps,
                size);
            json_decref(root);
            free(text);
        }
}

/* ---- strings that are legal in JSON alone ---- */

static void check_zeros(void)
{
    static const char text[] = "[\"a\\u0000b\\u0000\"]", key[] = "{\"a\\u0000\": 1}";
    struct pnet_error e;
    struct pnet_json_reading how = {.zeros = true};
    json_t *root;
    CHECK(pnet_json_parse("f", text, sizeof text - 1, &root, &e) == PNET_BAD_DATA && !root);
    CHECK(pnet_json_read("f", text, sizeof text - 1, &how, &root, &e) == PNET_OK);
    const json_t *v = json_array_get(root, 0);
    CHECK(json_string_length(v) == 4 && memcmp(json_string_value(v), "a\0b\0", 5) == 0);
    json_decref(root);
    CHECK(pnet_json_read("f", key, sizeof key - 1, &how, &root, &e) == PNET_BAD_DATA && !root);
}

static void check_halves(void)
{
    static const struct {
        const char *in, *out;
        bool replaced;
    } rows[] = {
        {"", "", false},
        {"\\", "\\", false},
        {"\\u", "\\u", false},
        {"\\ud80", "\\ud80", false},
        {"\\ud800", "\\uFFFD", true},
        {"\\uDFFFx", "\\uFFFDx", true},
        {"\\ud83d\\ude80", "\\ud83d\\ude80", false},
        {"\\uD83D\\uDE80\\uDE80", "\\uD83D\\uDE80\\uFFFD", true},
        {"\\ude80\\ud83d", "\\uFFFD\\uFFFD", true},
        {"\\ud83d\\ud83d\\ude80", "\\uFFFD\\ud83d\\ude80", true},
        {"\\ud83dx\\ude80", "\\uFFFDx\\uFFFD", true},
        {"\\ud83d\\\\ude80", "\\uFFFD\\\\ude80", true}, /* a backslash, then text */
        {"\\\\ud800", "\\\\ud800", false},
        {"\\\\\\ud800", "\\\\\\uFFFD", true},
        {"\\ud7ff\\ue000\\u0000", "\\ud7ff\\ue000\\u0000", false},
        {"\\ud8zz\\udc00", "\\ud8zz\\uFFFD", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t size = strlen(rows[i].in);
        char *text = malloc(size + 1);
        if (!text) return;
        memcpy(text, rows[i].in, size);
        bool replaced = pnet_json_replace_halves(text, size);
        text[size] = 0;
        CHECK(replaced == rows[i].replaced);
        CHECK_STR(text, rows[i].out);
        free(text);
    }
    struct pnet_error e;
    json_t *root;
    char text[] = "[\"\\ud800\"]";
    CHECK(pnet_json_parse("f", text, sizeof text - 1, &root, &e) == PNET_BAD_DATA && !root);
    CHECK(pnet_json_replace_halves(text, sizeof text - 1));
    CHECK(pnet_json_parse("f", text, sizeof text - 1, &root, &e) == PNET_OK);
    CHECK_STR(json_string_value(json_array_get(root, 0)), "\xEF\xBF\xBD");
    json_decref(root);
}

int main(void)
{
    check_neighbours(); /* first: the first reading sets the functions */
    check_numbers();
    check_text();
    check_strings();
    check_reading();
    check_large_error();
    check_steps();
    check_zeros();
    check_halves();
    return check_end();
}
