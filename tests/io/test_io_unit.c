/* Units of coordinates: well-known text and GeoTIFF keys, written by hand after their standards, in LAS files; and coordinates
   converted, against products computed here. */
#include "runtime/io/wkt.h"
#include "tests/io/las.h"

#include <math.h>

static const double us_foot = 1200.0 / 3937;

#define DEGREE "UNIT[\"degree\",0.0174532925199433]"
#define BASE                                                                                       \
    "GEOGCS[\"NAD83\",DATUM[\"D\",SPHEROID[\"GRS "                                                 \
    "1980\",6378137,298.257222101]],PRIMEM[\"Greenwich\",0]," DEGREE "]"
#define BASE2                                                                                      \
    "BASEGEOGCRS[\"NAD83\",DATUM[\"D\",ELLIPSOID[\"GRS "                                           \
    "1980\",6378137,298.257,LENGTHUNIT[\"metre\",1]]],"                                            \
    "ANGLEUNIT[\"degree\",0.0174532925199433]]"
#define CONVERSION2                                                                                \
    "CONVERSION[\"SPCS83\",METHOD[\"Transverse Mercator\"],PARAMETER[\"Latitude\",31,"             \
    "ANGLEUNIT[\"degree\",0.0174532925199433]],PARAMETER[\"False "                                 \
    "easting\",500000,LENGTHUNIT[\"metre\",1]]]"

static void check_text(const char *text, enum pnet_axis_unit_kind xy, double xy_size,
    enum pnet_axis_unit_kind z, double z_size)
{
    struct pnet_axis_unit u[2];
    pnet_wkt_units(pnet_span_of(text), u);
    CHECKF(u[0].kind == xy && fabs(u[0].size - xy_size) <= 1e-12, "%.60s: x, y: %d %.17g %s", text,
        (int)u[0].kind, u[0].size, u[0].name);
    CHECKF(u[1].kind == z && fabs(u[1].size - z_size) <= 1e-12, "%.60s: z: %d %.17g %s", text,
        (int)u[1].kind, u[1].size, u[1].name);
}

#define NONE PNET_AXIS_UNSTATED, 0
#define METRE PNET_AXIS_LENGTH, 1
#define FOOT PNET_AXIS_LENGTH, 0.3048
#define US_FOOT PNET_AXIS_LENGTH, us_foot
#define DEGREES PNET_AXIS_ANGLE, M_PI / 180
#define UNCLEAR PNET_AXIS_UNCLEAR, 0

/* WKT 2: units of axes, or of the system. */
static void check_newer_texts(void)
{
    check_text("PROJCRS[\"a\"," BASE2 "," CONVERSION2 ",CS[Cartesian,2],AXIS[\"(E)\",east,ORDER[1],"
               "LENGTHUNIT[\"US survey foot\",0.304800609601219]],AXIS[\"(N)\",north,ORDER[2],"
               "LENGTHUNIT[\"US survey foot\",0.304800609601219]]]",
        US_FOOT, NONE);
    check_text("PROJCRS[\"a\"," BASE2 "," CONVERSION2
               ",CS[Cartesian,2],AXIS[\"(E)\",east],AXIS[\"(N)\",north],"
               "LENGTHUNIT[\"foot\",0.3048]]",
        FOOT, NONE);
    check_text("COMPOUNDCRS[\"a\",PROJCRS[\"b\"," BASE2 "," CONVERSION2
               ",CS[Cartesian,2],AXIS[\"e\",east],AXIS[\"n\",north],"
               "LENGTHUNIT[\"metre\",1]],VERTCRS[\"c\",VDATUM[\"d\"],CS[vertical,1],AXIS[\"H\",up,"
               "LENGTHUNIT[\"foot\",0.3048]]]]",
        METRE, FOOT);
    check_text("GEOGCRS[\"a\",DATUM[\"d\",ELLIPSOID[\"e\",6378137,298,LENGTHUNIT[\"metre\",1]]],CS["
               "ellipsoidal,3],"
               "AXIS[\"lat\",north,ANGLEUNIT[\"degree\",0.0174532925199433]],AXIS[\"lon\",east,"
               "ANGLEUNIT[\"degree\",0.0174532925199433]],"
               "AXIS[\"h\",up,LENGTHUNIT[\"foot\",0.3048]]]",
        DEGREES, FOOT);
    check_text("GEODCRS[\"a\",DATUM[\"d\"],CS[Cartesian,3],AXIS[\"X\",geocentricX],AXIS[\"Y\","
               "geocentricY],"
               "AXIS[\"Z\",geocentricZ],LENGTHUNIT[\"metre\",1]]",
        METRE, METRE);
    check_text(
        "BOUNDCRS[SOURCECRS[PROJCRS[\"a\"," BASE2 ",CS[Cartesian,2],LENGTHUNIT[\"foot\",0.3048]]],"
        "TARGETCRS[GEOGCRS[\"w\",CS[ellipsoidal,2],ANGLEUNIT[\"degree\",0.0174532925199433]]],"
        "ABRIDGEDTRANSFORMATION[\"t\",PARAMETER[\"x\",1,LENGTHUNIT[\"metre\",1]]]]",
        FOOT, NONE);
}

static void check_texts(void)
{
    check_text("", NONE, NONE);
    check_text("''", NONE, NONE);
    check_text(BASE, DEGREES, NONE);
    check_text("GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\"]]", DEGREES, NONE);
    check_text("GEOGCS[\"NTF (Paris)\",DATUM[\"NTF\"],UNIT[\"grad\",0.01570796326794897]]",
        PNET_AXIS_ANGLE, M_PI / 200, NONE);
    check_text("PROJCS[\"UTM\",GEOGCS[\"WGS 84\"]]", NONE, NONE);
    check_text("PROJCS[\"UTM\"," BASE ",PROJECTION[\"Transverse_Mercator\"],UNIT[\"metre\",1]]",
        METRE, NONE);
    /* The unit of the projection, before or after its parameters, whatever it is called. */
    check_text("PROJCS[\"a\"," BASE
               ",PROJECTION[\"L\"],PARAMETER[\"False_Easting\",1312335.958],UNIT[\"Foot\",0.3048]]",
        FOOT, NONE);
    check_text("PROJCS(\"a\", " BASE ", UNIT(\"Foot_US\", 0.30480060960121924), PROJECTION(\"L\"))",
        US_FOOT, NONE);
    check_text("PROJCS[\"a\"," BASE ",UNIT[\"any\",0.3048006]]", US_FOOT, NONE);
    check_text("PROJCS[\"a\"," BASE ",UNIT[\"Clarke's foot\",0.3047972654]]", PNET_AXIS_LENGTH,
        0.3047972654, NONE);
    check_text("PROJCS[\"a\"," BASE ",UNIT[\"foot\",1]]", UNCLEAR, NONE);
    check_text("PROJCS[\"a\"," BASE ",UNIT[\"metre\",0.3048]]", UNCLEAR, NONE);
    /* Compound: metres, and feet above. A vertical system may stand in the projected one, or after it. */
    check_text("COMPD_CS[\"a\",PROJCS[\"b\"," BASE
               ",UNIT[\"metre\",1]],VERT_CS[\"c\",VERT_DATUM[\"NAVD88\",2005],"
               "UNIT[\"US survey foot\",0.3048006096012192],AXIS[\"Up\",UP]]]",
        METRE, US_FOOT);
    check_text("PROJCS[\"b\"," BASE
               ",UNIT[\"foot\",0.3048],VERTCS[\"c\",VDATUM[\"d\"],UNIT[\"metre\",1]]]",
        FOOT, METRE);
    check_text("PROJCS[\"b\"," BASE
               ",UNIT[\"foot\",0.3048]],VERTCS[\"c\",VDATUM[\"d\"],UNIT[\"Meter\",1]]",
        FOOT, METRE);
    check_text("COMPD_CS[\"a\"," BASE ",VERT_CS[\"c\",VERT_DATUM[\"d\",2005],UNIT[\"metre\",1]]]",
        DEGREES, METRE);
    check_text(
        "GEOCCS[\"WGS 84\",DATUM[\"W\"],PRIMEM[\"Greenwich\",0],UNIT[\"metre\",1]]", METRE, METRE);
    check_text("LOCAL_CS[\"site\",LOCAL_DATUM[\"d\",0],UNIT[\"foot\",0.3048]]", FOOT, NONE);
    /* A name with brackets and quotes. */
    check_text(
        "PROJCS[\"a \"\"UNIT[\"\"x\"\",5]\"\" (ft)\"," BASE ",UNIT[\"metre\",1]]", METRE, NONE);
    /* Cut, or nested without end. */
    check_text("PROJCS[\"a\",UNIT[\"foot\",0.3048", NONE, NONE);
    check_text("]]]PROJCS[\"a\",UNIT[\"foot\",0.3048]]", NONE, NONE);
    char deep[4000];
    for (size_t i = 0; i + 1 < sizeof deep; i++) deep[i] = "COMPD_CS["[i % 9];
    deep[sizeof deep - 1] = '\0';
    check_text(deep, NONE, NONE);
}

/* Reads a LAS file with the keys, 8 bytes each after the head, and the text, or NULL; as `how` says. */
static enum pnet_status read_system(const char *path, const uint16_t (*keys)[4], size_t key_count,
    const char *text, const struct pnet_cloud_hints *how, struct pnet_cloud *c, char warning[256],
    struct pnet_error *e)
{
    static const double doubles[] = {7, 0.25};
    static uint8_t records[2000];
    static struct las l;
    uint16_t list[4 + 4 * 16] = {1, 1, 0, (uint16_t)key_count};
    if (key_count) memcpy(list + 4, keys, key_count * 8);
    size_t size = put_record(records, 34735, list, 8 + 8 * key_count);
    size += put_record(records + size, 34736, doubles, sizeof doubles);
    if (text) size += put_record(records + size, 2112, text, strlen(text) + 1);
    make(&l, 2, 1, records, size, 0);
    set_number(&l, 100, text ? 3 : 2, 4);
    write_file(path, l.data, l.size);
    enum pnet_status status = pnet_cloud_read_as(path, how, c, warning, e);
    remove(path);
    return status;
}

enum { KEYS_MOST = 5 };
struct system {
    uint16_t keys[KEYS_MOST][4];
    const char *text;
    enum pnet_axis_unit_kind xy;
    double xy_size;
    enum pnet_axis_unit_kind z;
    double z_size;
    const char *warning; /* NULL: none */
};

#define KEY(key, value)                                                                            \
    {                                                                                              \
        key, 0, 1, value                                                                           \
    }
#define PROJECTED KEY(1024, 1)
#define LAMBERT_FEET "PROJCS[\"a\"," BASE ",UNIT[\"foot\",0.3048]]"

static const struct system systems[] = {
    {{{0}}, NULL, NONE, NONE, NULL},
    {{PROJECTED, KEY(3072, 32632), KEY(3076, 9001), KEY(4099, 9001)}, NULL, METRE, METRE, NULL},
    {{PROJECTED, KEY(3072, 2994), KEY(3076, 9002)}, NULL, FOOT, NONE,
        "x and y are feet, z is not stated, taken as metres: --unit file converts them"},
    {{PROJECTED, KEY(3072, 26995), KEY(3076, 9003), KEY(4099, 9003)}, NULL, US_FOOT, US_FOOT,
        "x, y and z are US survey feet, taken as metres"},
    {{PROJECTED, KEY(3072, 32632), KEY(3076, 9001), KEY(4099, 9003)}, NULL, METRE, US_FOOT,
        "x and y are metres, z is US survey feet, taken as metres"},
    /* the key may be missing: the code of a system tells, if it is one of the usual ones */
    {{PROJECTED, KEY(3072, 32760), KEY(4096, 6360)}, NULL, METRE, US_FOOT, "z is US survey feet"},
    {{PROJECTED, KEY(3072, 2994)}, NULL, UNCLEAR, NONE, "unclear (EPSG:2994, without its unit)"},
    {{PROJECTED, KEY(3072, 32767), {3077, 34736, 1, 1}, KEY(3076, 32767)}, NULL, PNET_AXIS_LENGTH,
        0.25, NONE, "of 0.25 m"},
    {{PROJECTED, KEY(3076, 32632), KEY(4099, 9001)}, NULL, UNCLEAR, METRE,
        "unclear (unit code 32632)"},
    {{KEY(3076, 9002)}, NULL, FOOT, NONE, "feet"}, /* no model type */
    {{KEY(1024, 2), KEY(2048, 4326), KEY(2054, 9102)}, NULL, DEGREES, NONE,
        "x and y are degrees, where metres"},
    {{KEY(1024, 2), KEY(2048, 4326)}, NULL, DEGREES, NONE, "degrees"},
    {{KEY(1024, 2), KEY(2048, 4807), KEY(2054, 9105), KEY(4099, 9002)}, NULL, PNET_AXIS_ANGLE,
        M_PI / 200, FOOT, "x and y are grads, where metres are expected; z is feet"},
    {{KEY(1024, 3), KEY(2048, 4978), KEY(2052, 9001)}, NULL, METRE, METRE, NULL},
    /* text alone, with keys that agree, that add to it, and that contradict it */
    {{{0}}, LAMBERT_FEET, FOOT, NONE, "feet"},
    {{PROJECTED, KEY(3076, 9002)}, LAMBERT_FEET, FOOT, NONE, "feet"},
    {{PROJECTED, KEY(4099, 9003)}, LAMBERT_FEET, FOOT, US_FOOT,
        "x and y are feet, z is US survey feet"},
    {{PROJECTED, KEY(3076, 9001)}, LAMBERT_FEET, UNCLEAR, NONE, "metres by keys, feet by text"},
};

static void check_systems(const char *path)
{
    const struct pnet_cloud_hints as_is = {0};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        const struct system *s = &systems[i];
        size_t count = 0;
        while (count < KEYS_MOST && s->keys[count][0]) count++;
        struct pnet_cloud c;
        struct pnet_error e = {.message = ""};
        char warning[256];
        CHECKF(read_system(path, s->keys, count, s->text, &as_is, &c, warning, &e) == PNET_OK, "%s",
            e.message);
        CHECKF(c.unit[0].kind == s->xy && fabs(c.unit[0].size - s->xy_size) < 1e-12,
            "%zu: x: %d, %s", i, (int)c.unit[0].kind, c.unit[0].name);
        CHECKF(c.unit[1].kind == s->z && fabs(c.unit[1].size - s->z_size) < 1e-12, "%zu: z: %d, %s",
            i, (int)c.unit[1].kind, c.unit[1].name);
        CHECKF(s->warning ? strstr(warning, s->warning) != NULL : !*warning, "%zu: \"%s\"", i,
            warning);
        CHECK(fabs(c.offset[0] + (double)c.xyz[0] - 500001) < 0.01 && c.metres[0] == 0);
        pnet_cloud_free(&c);
    }
}

/* Reads the file of feet (x, y) and US survey feet (z) in another unit, and checks it against `metres`; then writes it: in the
   numbers of the file. */
static void check_converted(
    const char *path, const char *copy, const char *unit, const double metres[2], const char *doubt)
{
    static const uint16_t keys[][4] = {PROJECTED, KEY(3076, 9002), KEY(4099, 9003)};
    static const double scale[] = {0.001, 0.01, 0.5}, shift[] = {500000, -20, 0.25};
    struct pnet_cloud_hints how = {0};
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    char warning[256];
    CHECK(pnet_unit_parse(unit, &how.unit));
    CHECKF(read_system(path, keys, 3, NULL, &how, &c, warning, &e) == PNET_OK, "%s: %s", unit,
        e.message);
    CHECKF(doubt ? strstr(warning, doubt) != NULL : !*warning, "%s: \"%s\"", unit, warning);
    for (int row = 0; row < ROWS; row++)
        for (int a = 0; a < 3; a++) {
            double file = stored(row, a) * scale[a] + shift[a], want = file * metres[a == 2];
            double got = c.offset[a] + (double)c.xyz[3 * row + a];
            CHECKF(fabs(got - want) <= 2e-5 && c.offset[a] == floor(c.offset[a] / 100) * 100,
                "%s: %.9g, not %.9g", unit, got, want);
            CHECKF(fabs(pnet_cloud_coordinate(&c, row, a) - file) <= 2e-5 / metres[a == 2], "%s",
                unit);
        }
    static const char *const names[] = {"copy.csv", "copy.ply", "copy.npy"};
    /* three rows of many columns are refused as a transposed matrix */
    while (c.field_count) {
        struct pnet_field *f = &c.fields[--c.field_count];
        free(f->name);
        free(f->data);
        free(f->dropped);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char full[1200];
        struct pnet_cloud d;
        snprintf(full, sizeof full, "%s%s", copy, names[i]);
        CHECK(pnet_cloud_write(full, &c, &e) == PNET_OK &&
              pnet_cloud_read(full, &d, NULL, &e) == PNET_OK);
        for (int row = 0; row < ROWS; row++)
            for (int a = 0; a < 3; a++) {
                double file = stored(row, a) * scale[a] + shift[a];
                /* one rounding each way, of doubles; NPY may have float32, off by 0.1 mm */
                double close = i == 2 ? 1e-4 / metres[a == 2] : 4e-16 * fabs(file);
                CHECKF(fabs(pnet_cloud_coordinate(&d, row, a) - file) <= close, "%s", full);
            }
        pnet_cloud_free(&d);
        remove(full);
    }
    pnet_cloud_free(&c);
}

static void check_conversion(const char *path, const char *copy)
{
    const double file[2] = {0.3048, us_foot}, feet[2] = {0.3048, 0.3048}, mixed[2] = {1, 0.001};
    check_converted(path, copy, "file", file, NULL);
    check_converted(path, copy, "ft,us-ft", file, NULL);
    check_converted(path, copy, "ft", feet, "z is US survey feet by the file, and taken as feet");
    check_converted(path, copy, "m,mm", mixed,
        "x and y are feet by the file, and taken as metres; z is US survey");
    struct pnet_cloud_hints of_file = {.unit.of_file = true};
    struct pnet_cloud c;
    struct pnet_error e;
    char warning[256];
    static const uint16_t feet_keys[][4] = {PROJECTED, KEY(3076, 9002)},
                          degree_keys[][4] = {KEY(1024, 2)},
                          unknown[][4] = {PROJECTED, KEY(3076, 9001), KEY(4099, 4)};
    CHECK(read_system(path, feet_keys, 2, NULL, &of_file, &c, warning, &e) == PNET_OK);
    CHECK(c.metres[0] == 0.3048 && c.metres[1] == 0.3048);
    CHECKF(strstr(warning, "z is not stated and converted from feet"), "%s", warning);
    pnet_cloud_free(&c);
    CHECK(read_system(path, degree_keys, 1, NULL, &of_file, &c, warning, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "degrees, which no factor converts") && !c.xyz, "%s", e.message);
    CHECK(read_system(path, unknown, 3, NULL, &of_file, &c, warning, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "unclear about its unit (unit code 4)"), "%s", e.message);
    CHECK(read_system(path, NULL, 0, NULL, &of_file, &c, warning, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "does not state its unit: name the unit"), "%s", e.message);
}

static void check_words(void)
{
    static const struct {
        const char *text;
        double xy, z;
    } good[] = {{"m", 1, 1}, {"km", 1000, 1000}, {"cm", 0.01, 0.01}, {"mm", 0.001, 0.001},
        {"in", 0.0254, 0.0254}, {"ft", 0.3048, 0.3048}, {"us-ft", 1200.0 / 3937, 1200.0 / 3937},
        {"yd", 0.9144, 0.9144}, {"m,us-ft", 1, 1200.0 / 3937}};
    static const char *const bad[] = {
        "", "M", "foot", "m,", ",m", "m,ft,m", "file,m", "m, ft", "ftus"};
    struct pnet_unit_choice c;
    char text[32];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECKF(pnet_unit_parse(good[i].text, &c) && !c.of_file, "%s", good[i].text);
        CHECK(c.axes[0]->metres == good[i].xy && c.axes[1]->metres == good[i].z);
        pnet_unit_print(&c, text);
        CHECK_STR(text, good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECKF(!pnet_unit_parse(bad[i], &c), "%s", bad[i]);
    CHECK(pnet_unit_parse("file", &c) && c.of_file && !c.axes[0]);
    pnet_unit_print(&c, text);
    CHECK_STR(text, "file");
    pnet_unit_print(&(struct pnet_unit_choice){0}, text);
    CHECK_STR(text, "");
}

/* Files without a place for a system say nothing, however fine their steps are: neither do LAS files without one. */
static void check_silent(const char *path, const char *text)
{
    static struct las l;
    struct pnet_cloud c;
    struct pnet_error e;
    char warning[256];
    make(&l, 2, 1, NULL, 0, 0);
    for (size_t a = 0; a < 2; a++) {
        set_double(&l, 131 + 8 * a, 1e-9);
        set_double(&l, 155 + 8 * a, 5);
    }
    write_file(path, l.data, l.size);
    CHECKF(pnet_cloud_read(path, &c, warning, &e) == PNET_OK && !*warning, "%s", warning);
    CHECK(c.unit[0].kind == PNET_AXIS_UNSTATED && c.unit[1].kind == PNET_AXIS_UNSTATED);
    pnet_cloud_free(&c);
    remove(path);
    write_file(text, "1 2 3\n", 6);
    CHECK(pnet_cloud_read(text, &c, warning, &e) == PNET_OK && c.unit[0].kind == PNET_AXIS_NONE);
    pnet_cloud_free(&c);
    struct pnet_cloud_hints how = {0};
    CHECK(pnet_unit_parse("cm", &how.unit) &&
          pnet_cloud_read_as(text, &how, &c, warning, &e) == PNET_OK);
    CHECK(c.xyz[0] == 0.01f && c.xyz[1] == 0.02f && c.xyz[2] == 0.03f && !*warning);
    pnet_cloud_free(&c);
    how.unit = (struct pnet_unit_choice){.of_file = true};
    CHECK(pnet_cloud_read_as(text, &how, &c, warning, &e) == PNET_BAD_DATA && !c.xyz);
    remove(text);
}

/* Text after the points, as LAS 1.4 may have it. */
static void check_extended(void)
{
    static const char geographic[] = BASE;
    static struct las l;
    struct pnet_cloud c;
    make(&l, 4, 6, NULL, 0, 0);
    set_number(&l, 235, l.size, 8);
    set_number(&l, 243, 1, 4);
    size_t at = l.size;
    memcpy(l.data + at + 2, "LASF_Projection", 15);
    set_number(&l, at + 18, 2112, 2);
    set_number(&l, at + 20, sizeof geographic, 8);
    set(&l, at + 60, geographic, sizeof geographic);
    l.size += 60 + sizeof geographic;
    CHECK(read_las(&l, &c, NULL) == PNET_OK && c.unit[0].kind == PNET_AXIS_ANGLE);
    pnet_cloud_free(&c);
    set_number(&l, at + 20, UINT64_MAX - 5, 8); /* runs out of the file: left alone */
    CHECK(read_las(&l, &c, NULL) == PNET_OK && c.unit[0].kind == PNET_AXIS_UNSTATED);
    pnet_cloud_free(&c);
}

int main(void)
{
    const char *folder = files_folder();
    char path[1024], copy[1024];
    snprintf(path, sizeof path, "%s/a.las", folder);
    snprintf(copy, sizeof copy, "%s/", folder);
    check_words();
    check_texts();
    check_newer_texts();
    check_systems(path);
    check_conversion(path, copy);
    check_silent(path, files_path(folder, "a.txt"));
    check_extended();
    CHECK(rmdir(folder) == 0);
    return check_end();
}
