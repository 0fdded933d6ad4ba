/* From clouds to samples and batches: the input map's rules, and what is refused. */
#include "runtime/data/sample.h"
#include "tests/check.h"

static struct pnet_cloud cloud; /* of two points, one of three dropped */

static void add(const char *name, enum pnet_scalar type, double a, double b)
{
    struct pnet_field *f = pnet_cloud_add(&cloud, name, type);
    if (!f) exit(1);
    if (type == PNET_U8) {
        ((uint8_t *)f->data)[0] = (uint8_t)a;
        ((uint8_t *)f->data)[1] = (uint8_t)b;
    } else if (type == PNET_U16) {
        ((uint16_t *)f->data)[0] = (uint16_t)a;
        ((uint16_t *)f->data)[1] = (uint16_t)b;
    } else {
        ((float *)f->data)[0] = (float)a;
        ((float *)f->data)[1] = (float)b;
    }
}

static void make_cloud(void)
{
    static const double xyz[] = {1, 2, 3, NAN, 0, 0, 4, 5, 6};
    struct pnet_error e;
    pnet_cloud_free(&cloud);
    CHECK(!pnet_cloud_place(&cloud, 3, xyz, &e) && cloud.rows == 2 && cloud.file_row[1] == 2);
}

/* The values a feature gets; the map is YAML. */
static enum pnet_status feature(
    const char *name, int32_t width, const char *map_text, float *out, struct pnet_error *e)
{
    struct pnet_input_field field = {.name = name, .kind = PNET_INPUT_FEATURE, .width = width};
    struct pnet_input input = {.name = "cloud", .fields = &field, .field_count = 1};
    struct pnet_input_map map;
    CHECK(!pnet_input_map_read("map", map_text, strlen(map_text), &map, e));
    enum pnet_status status = pnet_input_map_feature(&map, &input, &field, &cloud, "c.ply", out, e);
    pnet_input_map_free(&map);
    return status;
}

static void expect(const char *name, int32_t width, const char *map, const float *want)
{
    float out[8];
    struct pnet_error e = {.message = ""};
    enum pnet_status status = feature(name, width, map, out, &e);
    CHECKF(!status, "%s: %s", name, e.message);
    for (int i = 0; i < 2 * width && !status; i++)
        CHECKF(fabsf(out[i] - want[i]) < 1e-6f, "%s[%d] is %g, expected %g", name, i,
            (double)out[i], (double)want[i]);
}

static void expect_error(const char *name, int32_t width, const char *map, const char *part)
{
    float out[8];
    struct pnet_error e = {.message = ""};
    CHECK(feature(name, width, map, out, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, part), "\"%s\" is not in \"%s\"", part, e.message);
}

static void test_rules(void)
{
    make_cloud();
    expect_error("rgb", 3, "{}",
        "c.ply: has no field for cloud.rgb (3 channels); its fields: none, and x y z "
        "z_above_lowest");
    expect("z", 1, "{}", (float[]){3, 6});
    expect("height", 1, "inputs: {cloud: {height: z}}", (float[]){3, 6});
    expect("one", 2, "inputs: {cloud: {one: {value: 1/4}}}", (float[]){0.25, 0.25, 0.25, 0.25});
    add("r", PNET_F32, 0.5, 1);
    add("g", PNET_F32, 0.25, 0);
    add("b", PNET_F32, 0, 0);
    expect("rgb", 3, "{}", (float[]){0.5, 0.25, 0, 1, 0, 0});
    add("red", PNET_U8, 255, 0);
    add("green", PNET_U8, 51, 0);
    expect_error("rgb", 3, "{}", "has no blue");
    add("blue", PNET_U16, 0, 65535);
    expect("rgb", 3, "{}", (float[]){1, 0.2f, 0, 0, 0, 1});
    expect("rgb", 3, "inputs: {cloud: {rgb: {field: [red, green, red], scale: 2, shift: -1}}}",
        (float[]){509, 101, 509, -1, -1, -1});
    add("nx", PNET_F32, 1, 0);
    add("ny", PNET_F32, 0, 1);
    add("nz", PNET_F32, 0, 0);
    expect("normal", 3, "{}", (float[]){1, 0, 0, 0, 1, 0});
    add("e_0", PNET_F32, 1, 2);
    expect_error("e", 2, "{}", "has no e_1 for cloud.e (2 channels)");
    add("e_1", PNET_F32, 3, 4);
    expect("e", 2, "{}", (float[]){1, 3, 2, 4});
    expect("ny", 1, "{}", (float[]){0, 1});
    expect_error("g", 1, "inputs: {cloud: {g: heat}}",
        "has no heat for cloud.g (1 channel); its fields: r, g, b");
}

static void test_values(void)
{
    make_cloud();
    add("red", PNET_F32, 1, 1.5);
    add("green", PNET_F32, 1, 1);
    add("blue", PNET_F32, 1, 1);
    static const char scale[] = "inputs: {cloud: {rgb: {field: [red, green, blue], scale: 1/255}}}";
    expect_error("rgb", 3, "{}", "c.ply: row 2: the colour red is 1.5, the largest of its source");
    expect_error("rgb", 3, "{}", scale);
    expect_error("rgb", 3, "inputs: {cloud: {rgb: {field: [red, green, blue]}}}", scale);
    expect("rgb", 3, "inputs: {cloud: {rgb: {field: [red, green, blue], scale: 1}}}",
        (float[]){1, 1, 1, 1.5, 1, 1});
    add("red", PNET_F32, 1, -0.5);
    expect_error("rgb", 3, "{}", "c.ply: row 2: the colour red is -0.5, and colours reach from 0");
    expect_error("rgb", 3, "{}", scale);
    add("red", PNET_F32, 1, 65536);
    expect_error("rgb", 3, "{}", "c.ply: row 2: the colour red is 65536, and colours reach from 0");
    add("heat", PNET_F32, 1, INFINITY);
    expect_error("heat", 1, "{}",
        "row 2: heat is not finite\n"
        "  help: give a number in its place in the run config (--config of infer and register), "
        "inputs: {cloud: {heat: {field: heat, missing: 0}}}, or feed heat from other columns or a "
        "constant, --map heat=0");
    expect("heat", 1, "inputs: {cloud: {heat: {field: heat, missing: 0}}}", (float[]){1, 0});
    expect("heat", 1, "inputs: {cloud: {heat: {field: heat, scale: 2, shift: 1, missing: -7}}}",
        (float[]){3, -7});
    add("red", PNET_F32, 0.5, NAN);
    expect_error("rgb", 3, "{}", "inputs: {cloud: {rgb: {field: [red, green, blue], missing: 0}}}");
    expect("rgb", 3, "inputs: {cloud: {rgb: {field: [red, green, blue], missing: 0.25}}}",
        (float[]){0.5, 1, 1, 0.25, 1, 1});
}

static void test_map_text(void)
{
    static const char text[] =
        "inputs:\n  \"a\\\"b\": {rgb: {field: [red, g, b], scale: 1/255, shift: -0.5}, one: "
        "{value: 3}}\n"
        "  other: {label: kind, heat: {field: t, missing: -2}}\n"
        "ranges: [{field: heat, from: -1, to: 2.5}, {field: \"r: b\", type: integer, from: 0, to: "
        "400,"
        " divisor: 65535}]\n"
        "columns: [x, y, z, \"odd: name\"]\nclasses: [wall, "
        "\"caf\xc3\xa9\\u2028\\x85\\t\\U0001F600\"]\nunit: m,us-ft\n";
    struct pnet_input_map m, again;
    struct pnet_error e = {.message = ""};
    char *printed;
    size_t size;
    CHECK(!pnet_input_map_read("m", text, sizeof text - 1, &m, &e));
    FILE *f = open_memstream(&printed, &size);
    pnet_input_map_print(&m, f);
    fclose(f);
    enum pnet_status status = pnet_input_map_read("m", printed, size, &again, &e);
    CHECKF(!status, "%s in:\n%s", e.message, printed);
    CHECK(again.count == 4 && again.column_count == 4 && again.class_count == 2);
    for (int i = 0; i < 4 && i < again.count; i++) {
        const struct pnet_input_source *a = &m.sources[i], *b = &again.sources[i];
        CHECK_STR(b->input, a->input);
        CHECK_STR(b->field, a->field);
        CHECK(a->count == b->count && a->scale == b->scale && a->shift == b->shift);
        CHECK(a->scaled == b->scaled && a->replaced == b->replaced && a->missing == b->missing);
        for (int k = 0; k < a->count; k++) CHECK_STR(b->names[k], a->names[k]);
    }
    CHECK(again.sources[0].scaled && !again.sources[3].scaled && again.sources[3].missing == -2);
    const struct pnet_range *fed = pnet_ranges_find(&again.ranges, "heat", PNET_RANGE_FED);
    const struct pnet_range *rb = pnet_ranges_find(&again.ranges, "r: b", PNET_RANGE_INTEGERS);
    CHECK(again.ranges.count == 2 && fed && fed->least == -1 && fed->most == 2.5);
    CHECK(rb && rb->most == 400 && rb->divisor == 65535);
    CHECK(again.unit.axes[0]->metres == 1 && again.unit.axes[1]->metres == 1200.0 / 3937);
    CHECK_STR(again.columns[3], "odd: name");
    CHECK_STR(again.classes[1], "caf\xc3\xa9\xe2\x80\xa8\xc2\x85\t\xf0\x9f\x98\x80");
    free(printed);
    pnet_input_map_free(&m);
    pnet_input_map_free(&again);
    CHECK(pnet_input_map_read("m", "input: {}", 9, &m, &e) == PNET_BAD_DATA && !m.count);
    CHECK_STR(e.message, "m:1: input map: unknown key `input`; did you mean `inputs`?");
    CHECK(pnet_input_map_read("m", "unit: feet", 10, &m, &e) == PNET_BAD_DATA);
    CHECK_STR(e.message, "m:1: unit: `feet` is not known");
}

/* Names that YAML takes for keys only where they are announced: 1024 characters and more. */
static void test_map_long_names(void)
{
    char name[1100], text[4000], *printed;
    size_t size;
    struct pnet_input_map m, again;
    struct pnet_error e = {.message = ""};
    memset(name, '\'', sizeof name - 1);
    memset(name, '\\', 200);
    name[0] = 'n';
    name[sizeof name - 1] = 0;
    int n = snprintf(
        text, sizeof text, "inputs:\n  ? %s\n  :\n    ? %s\n    : red\n    b: c\n", name, name);
    CHECK(!pnet_input_map_read("m", text, (size_t)n, &m, &e));
    FILE *f = open_memstream(&printed, &size);
    pnet_input_map_print(&m, f);
    fclose(f);
    enum pnet_status status = pnet_input_map_read("m", printed, size, &again, &e);
    CHECKF(!status, "%s in:\n%s", e.message, printed);
    CHECK(m.count == 2 && again.count == 2);
    for (int i = 0; i < again.count; i++) {
        CHECK_STR(again.sources[i].input, name);
        CHECK_STR(again.sources[i].field, i ? "b" : name);
    }
    free(printed);
    pnet_input_map_free(&m);
    pnet_input_map_free(&again);
}

static void expect_check(const char *text, const char *message)
{
    static struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3},
        {.name = "size", .kind = PNET_INPUT_FEATURE, .width = 1, .per_cloud = true},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 5}};
    static const struct pnet_input inputs[] = {
        {.name = "spare", .fields = fields, .field_count = 1, .unused = true},
        {.name = "cloud", .fields = fields, .field_count = 4}};
    struct pnet_input_map m;
    struct pnet_error e = {.message = ""};
    int input;
    CHECK(!pnet_input_map_read("m", text, strlen(text), &m, &e));
    enum pnet_status status = pnet_input_map_check(&m, inputs, 2, &input, &e);
    CHECK(status == (message[0] ? PNET_USAGE : PNET_OK));
    CHECK_STR(e.message, message);
    if (!status) CHECK(input == 1);
    pnet_input_map_free(&m);
    struct pnet_input both[] = {inputs[1], inputs[1]};
    m = (struct pnet_input_map){.count = 0};
    CHECK(pnet_input_map_check(&m, both, 2, &input, &e) == PNET_USAGE &&
          strstr(e.message, "two clouds"));
    CHECK(pnet_input_map_check(&m, inputs, 1, &input, &e) == PNET_USAGE);
}

static void test_check(void)
{
    expect_check("inputs: {cloud: {rgb: [a, b, c], label: kind, size: {value: 1}}}", "");
    expect_check("inputs: {clod: {rgb: [a, b, c]}}", "inputs: the model has no input `clod`");
    expect_check("inputs: {cloud: {rbg: [a, b, c]}}",
        "inputs: the model's input `cloud` has no field `rbg`; did you mean `rgb`?");
    expect_check(
        "inputs: {cloud: {rgb: a}}", "inputs: cloud.rgb has 3 channels, but is mapped to 1 field");
    expect_check("inputs: {cloud: {xyz: a}}", "inputs: cloud.xyz: positions are not mapped");
    expect_check("inputs: {cloud: {label: {value: 1}}}",
        "inputs: cloud.label: classes come from one field, unscaled");
    expect_check("inputs: {cloud: {size: a}}",
        "inputs: cloud.size: a feature of the whole cloud can only be a constant, {value: 1}");
}

static void test_samples(void)
{
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "heat", .kind = PNET_INPUT_FEATURE, .width = 1},
        {.name = "gone", .kind = PNET_INPUT_FEATURE, .width = 9, .unused = true},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 3},
        {.name = "kind", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 3}};
    struct pnet_input inputs[] = {
        {.name = "spare", .fields = fields, .field_count = 1, .unused = true},
        {.name = "cloud", .fields = fields, .field_count = 5}};
    static const char text[] = "inputs: {cloud: {kind: what}}";
    struct pnet_input_map map;
    struct pnet_error e = {.message = ""};
    struct pnet_sample *s[2];
    struct pnet_batch *b;
    int32_t labels[] = {2, -1};
    make_cloud();
    add("heat", PNET_F32, 7, 8);
    add("what", PNET_F32, 1, -5);
    CHECK(!pnet_input_map_read("m", text, sizeof text - 1, &map, &e));
    CHECK(!pnet_sample_make(&inputs[1], &map, &cloud, labels, 2, "c", &s[0], &e));
    CHECK(!pnet_sample_copy(s[0], &s[1], &e) && pnet_sample_bytes(s[0]) >= 2 * (12 + 4 + 4 + 4));
    pnet_sample_keep(s[1], (int64_t[]){1}, 1);
    CHECK(!pnet_samples_batch(inputs, 2, 1, (const struct pnet_sample *const *)s, 2, true, &b, &e));
    const struct pnet_batch_input *in = &b->inputs[1];
    static const float xyz[] = {1, 2, 3, 4, 5, 6, 4, 5, 6}, heat[] = {7, 8, 8};
    static const int32_t label[] = {2, -1, -1}, kind[] = {1, -1, -1};
    CHECK(b->samples == 2 && in->rows == 3 && in->row_splits[1] == 2 && in->row_splits[2] == 3);
    CHECK(memcmp(in->xyz, xyz, sizeof xyz) == 0 && memcmp(in->fields[1], heat, sizeof heat) == 0);
    CHECK(memcmp(in->fields[3], label, sizeof label) == 0 &&
          memcmp(in->fields[4], kind, sizeof kind) == 0);
    CHECK(!in->fields[0] && !in->fields[2] && b->inputs[0].rows == 0 &&
          b->inputs[0].row_splits[2] == 0);
    uint64_t id = b->id;
    pnet_batch_free(b);
    CHECK(
        !pnet_samples_batch(inputs, 2, 1, (const struct pnet_sample *const *)s, 2, true, &b, &e) &&
        b->id == id);
    pnet_batch_free(b);
    struct pnet_sample *turned[] = {s[1], s[0]};
    CHECK(!pnet_samples_batch(
        inputs, 2, 1, (const struct pnet_sample *const *)turned, 2, true, &b, &e));
    CHECK(b->id != id && b->id != 0);
    pnet_batch_free(b);
    CHECK(
        !pnet_samples_batch(inputs, 2, 1, (const struct pnet_sample *const *)s, 2, false, &b, &e) &&
        b->id == 0);
    pnet_batch_free(b);
    pnet_sample_free(s[0]);
    pnet_sample_free(s[1]);

    CHECK(pnet_sample_make(&inputs[1], &map, &cloud, NULL, 0, "c", &s[0], &e) == PNET_BAD_DATA &&
          !s[0]);
    CHECK_STR(e.message, "c: has no labels for `label`, which wants one a point");
    fields[4].classes = 1;
    CHECK(pnet_sample_make(&inputs[1], &map, &cloud, labels, 2, "c", &s[0], &e) == PNET_BAD_DATA);
    CHECK_STR(e.message, "c: row 0: what is 1, expected an integer below 1");
    fields[4].classes = 3;
    float *what = pnet_cloud_field(&cloud, "what")->data;
    static const float bad[] = {NAN, -INFINITY, 0.5f};
    static const char *const parts[] = {"what is nan, expected an integer below 3; where NaN marks",
        "what is -inf, expected an integer", "what is 0.5, expected an integer"};
    for (int i = 0; i < 3; i++) {
        what[1] = bad[i];
        CHECK(
            pnet_sample_make(&inputs[1], &map, &cloud, labels, 2, "c", &s[0], &e) == PNET_BAD_DATA);
        CHECKF(strstr(e.message, parts[i]) && strstr(e.message, "row 2"), "%s", e.message);
    }
    pnet_input_map_free(&map);
}

int main(void)
{
    test_rules();
    test_values();
    test_map_text();
    test_map_long_names();
    test_check();
    test_samples();
    pnet_cloud_free(&cloud);
    return check_end();
}
