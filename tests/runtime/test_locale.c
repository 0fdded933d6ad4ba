/* A program around this library may have set a locale with a decimal comma: what is read and what is
   written is the same as without it. */
#include "compiler/compile.h"
#include "runtime/io/cloud.h"
#include "runtime/base/json.h"
#include "runtime/train/report.h"
#include "runtime/base/yaml.h"
#include "tests/io/files.h"

#include <locale.h>

/* Makes a locale with a decimal comma in the folder and sets it, or skips. */
static void set_comma(const char *folder)
{
    char command[2048], text[32];
    snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 '%s/comma' >/dev/null 2>&1",
        folder);
    if (system(command) != 0) {
        printf("skipped: localedef cannot make a locale with a decimal comma here\n");
        exit(77);
    }
    setenv("LOCPATH", folder, 1);
    CHECK(setlocale(LC_ALL, "comma") != NULL);
    snprintf(text, sizeof text, "%.1f", 0.5);
    CHECK_STR(text, "0,5"); /* else nothing here says anything */
    CHECK(strtod("0.5", NULL) == 0);
}

static char text[1 << 16];

/* Appends to `text`. */
static void note(const char *what, const void *bytes, size_t size)
{
    size_t n = strlen(text);
    CHECK(n + size + strlen(what) + 3 < sizeof text);
    snprintf(text + n, sizeof text - n, "%s: %.*s\n", what, (int)size, (const char *)bytes);
}

static void note_file(const char *path)
{
    struct pnet_bytes b;
    CHECK(pnet_bytes_read(path, &b, NULL) == PNET_OK);
    note(strrchr(path, '/'), b.data, b.size);
    pnet_bytes_free(&b);
}

/* Bits: a number printed in a locale would prove nothing. */
static void note_double(const char *what, double v)
{
    uint64_t bits;
    char hex[32];
    memcpy(&bits, &v, sizeof bits);
    note(what, hex, (size_t)snprintf(hex, sizeof hex, "%llx", (unsigned long long)bits));
}

static void use_clouds(const char *folder)
{
    static const char *const names[] = {"a.csv", "a.xyz", "a.pts"};
    static const float xyz[] = {0.1f, 1e-30f, 3.25f, -0.5f, 1e20f, 7};
    struct pnet_error e;
    struct pnet_cloud c = {.rows = 2, .file_rows = 2, .xyz_type = PNET_F32}, d;
    c.xyz = malloc(sizeof xyz);
    memcpy(c.xyz, xyz, sizeof xyz);
    double *heat = pnet_cloud_add(&c, "heat", PNET_F64)->data;
    heat[0] = 1.0 / 3;
    heat[1] = 1e-300;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = files_path(folder, names[i]);
        CHECK(pnet_cloud_write(path, &c, &e) == PNET_OK);
        note_file(path);
        CHECKF(
            pnet_cloud_read(path, &d, NULL, &e) == PNET_OK && d.field_count == 1, "%s", e.message);
        for (int k = 0; k < 2; k++) note_double("heat", pnet_field_get(&d.fields[0], k));
        pnet_cloud_free(&d);
        remove(path);
    }
    pnet_cloud_free(&c);
    static const char ply[] = "ply\nformat ascii 1.0\nelement vertex 1\nproperty double x\n"
                              "property double y\nproperty double z\nend_header\n"
                              "0.5 1234567.000000000000000123 2.5e-3\n";
    const char *path = files_path(folder, "a.ply");
    write_file(path, ply, sizeof ply - 1);
    CHECK(pnet_cloud_read(path, &d, NULL, &e) == PNET_OK);
    note_double("y", d.offset[1] + (double)d.xyz[1]);
    pnet_cloud_free(&d);
    remove(path);
}

static void use_documents(const char *folder)
{
    struct pnet_error e;
    struct pnet_yaml *y;
    struct pnet_json j = {.text = NULL};
    json_t *root;
    double value = 0;
    static const char yaml[] = "a: 0.25\nb: 10%\nc: 1/3\nd: 2.5cm\n", bad[] = "a: 7.5\n";
    CHECK(pnet_yaml_parse("y", yaml, sizeof yaml - 1, PNET_USAGE, &y, &e) == PNET_OK);
    const struct pnet_yaml_node *n = pnet_yaml_root(y);
    note_double("a", pnet_yaml_real(y, pnet_yaml_get(n, "a"), 0, 1, 0));
    note_double("b", pnet_yaml_real(y, pnet_yaml_get(n, "b"), 0, 1, 0));
    note_double("c", pnet_yaml_real(y, pnet_yaml_get(n, "c"), 0, 1, 0));
    note_double("d", pnet_yaml_length(y, pnet_yaml_get(n, "d"), 0, 1, 0));
    CHECKF(pnet_yaml_end(y, &e) == PNET_OK, "%s", e.message);
    pnet_yaml_free(y);
    CHECK(pnet_yaml_parse("y", bad, sizeof bad - 1, PNET_USAGE, &y, &e) == PNET_OK);
    pnet_yaml_real(y, pnet_yaml_get(pnet_yaml_root(y), "a"), 0.5, 1.5, 0);
    CHECK(pnet_yaml_end(y, &e) == PNET_USAGE);
    note("message", e.message, strlen(e.message));
    pnet_yaml_free(y);

    pnet_json_begin(&j, NULL, '{');
    pnet_json_double(&j, "third", 1.0 / 3);
    pnet_json_float(&j, "half", 0.5f);
    pnet_json_end(&j, '}');
    note("json", j.text, j.size);
    CHECK(pnet_json_parse("j", j.text, j.size, &root, &e) == PNET_OK);
    CHECK(pnet_json_get_number("j", root, "third", &value, &e) == PNET_OK);
    note_double("third", value);
    json_decref(root);
    pnet_json_free(&j);

    static const char metrics[] =
        "{\"epoch\":0,\"step\":1,\"loss\":1.5,\"lr\":0.001,\"time_s\":90.5}\n"
        "{\"epoch\":0,\"step\":2,\"loss\":0.75,\"lr\":0.002,\"time_s\":91.5}\n";
    write_file(files_path(folder, "metrics.jsonl"), metrics, sizeof metrics - 1);
    CHECKF(pnet_report_write(folder, &(struct pnet_report_info){.class_count = 0}, &e) == PNET_OK,
        "%s", e.message);
    const char *page = files_path(folder, "report.html");
    struct pnet_bytes b;
    CHECK(pnet_bytes_read(page, &b, &e) == PNET_OK);
    const char *main = memmem(b.data, b.size, "</h1>", 5);
    CHECK(main != NULL);
    if (main) note("report", main, (size_t)((const char *)b.data + b.size - main));
    pnet_bytes_free(&b);
    remove(page);
    remove(files_path(folder, "metrics.jsonl"));
}

static void use_models(void)
{
    static const char model[] =
        "pnet 1\nparam v = 2.5cm\ninput cloud {\n  xyz : position\n  rgb : feature[3]\n}\n"
        "net a(p: cloud) {\n  g = grid(p, v)\n  return p.rgb -> pool(mean, to=g) -> conv(4, "
        "radius=1.5 * v)\n}\n"
        "y = a(cloud)\n",
                      wrong[] =
                          "pnet 1\ninput cloud {\n  xyz : position\n  rgb : feature[3]\n}\n"
                          "net a(p: cloud) {\n  return p.rgb -> dropout(1.5)\n}\ny = a(cloud)\n";
    const struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE};
    char *made = NULL;
    size_t size = 0;
    for (int k = 0; k < 2; k++) {
        FILE *out = open_memstream(&made, &size);
        struct pnet_compilation *c = pnet_compile_text(
            "model", k ? wrong : model, k ? sizeof wrong - 1 : sizeof model - 1, &o);
        pnet_compilation_report(c, out, false, false);
        const struct pnet_plan *p = pnet_compilation_plan(c);
        CHECK(!p == (k == 1));
        if (p) pnet_plan_print(p, out);
        if (p) CHECK(pnet_plan_svg(p, out));
        pnet_compilation_free(c);
        fclose(out);
        note(k ? "wrong" : "model", made, size);
        CHECKF(strstr(made, k ? "from 0 to 1" : "2.5cm"), "%s", made);
        free(made);
    }
}

int main(void)
{
    static char plain[sizeof text];
    const char *folder = files_folder();
    for (int k = 0; k < 2; k++) {
        if (k) set_comma(folder);
        memset(text, 0, sizeof text);
        use_clouds(folder);
        use_documents(folder);
        use_models();
        if (!k) memcpy(plain, text, sizeof text);
    }
    size_t at = 0;
    while (plain[at] && plain[at] == text[at]) at++;
    CHECKF(strcmp(plain, text) == 0, "\"%.80s\", not \"%.80s\"", text + (at > 40 ? at - 40 : 0),
        plain + (at > 40 ? at - 40 : 0));
    char command[1024];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK(system(command) == 0);
    return check_end();
}
