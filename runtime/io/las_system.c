/* GeoTIFF keys (OGC 19-008, and GeoTIFF 1.0) and well-known text in LAS files. */
#include "runtime/io/las_system.h"
#include "runtime/io/wkt.h"

#include <stdio.h>
#include <string.h>

/* Records, and keys in the list of keys. */
enum {
    GEO_KEYS = 34735,
    GEO_DOUBLES = 34736,
    WELL_KNOWN_TEXT = 2112,

    MODEL_TYPE = 1024,
    GEOGRAPHIC_SYSTEM = 2048,
    GEOCENTRIC_UNIT = 2052,
    ANGULAR_UNIT = 2054,
    PROJECTED_SYSTEM = 3072,
    LINEAR_UNIT = 3076,
    LINEAR_UNIT_SIZE = 3077,
    VERTICAL_SYSTEM = 4096,
    VERTICAL_UNIT = 4099,
};
enum { MODEL_GEOGRAPHIC = 2, MODEL_GEOCENTRIC = 3, USER_DEFINED = 32767 };

bool pnet_las_system_note(struct pnet_las_system *s, const struct pnet_bytes *b, uint64_t head,
    uint64_t body, uint64_t length)
{
    const char *user = (const char *)b->data + head + 2;
    uint16_t id;
    memcpy(&id, b->data + head + 18, sizeof id);
    struct pnet_las_record *to = NULL;
    if (memcmp(user, "LASF_Projection", 15) == 0)
        to = id == GEO_KEYS          ? &s->keys
             : id == GEO_DOUBLES     ? &s->doubles
             : id == WELL_KNOWN_TEXT ? &s->wkt
                                     : NULL;
    else if (memcmp(user, "liblas", 7) == 0 && id == WELL_KNOWN_TEXT)
        to = &s->liblas;
    if (!to || to->length) return false;
    *to = (struct pnet_las_record){body, length};
    return true;
}

/* Returns the value of a key, four numbers in the list: key, where its value is, how many there are, the value or its place;
   0: there is none. A real value is written to `real`. */
static unsigned find_key(
    const struct pnet_las_system *s, const struct pnet_bytes *b, unsigned key, double *real)
{
    for (uint64_t k = 8; k + 8 <= s->keys.length; k += 8) {
        uint16_t entry[4];
        memcpy(entry, b->data + s->keys.at + k, sizeof entry);
        if (entry[0] != key) continue;
        if (entry[1] == 0) return entry[3];
        uint64_t at = (uint64_t)entry[3] * 8;
        if (real && entry[1] == GEO_DOUBLES && at + 8 <= s->doubles.length)
            memcpy(real, b->data + s->doubles.at + at, sizeof *real);
    }
    return 0;
}

/* A system that is only named by its code has the unit of the EPSG data set. These are the systems of whole continents; a list
   of all has thousands. */
static struct pnet_axis_unit unit_of_projected(unsigned code)
{
    static const struct {
        unsigned first, last;
    } metric[] = {{32601, 32660}, {32701, 32760}, /* WGS 84 / UTM */
        {25828, 25838}, {3034, 3035},             /* ETRS89 / UTM, LCC, LAEA */
        {26901, 26923},                           /* NAD83 / UTM */
        {28348, 28358}, {7846, 7859},             /* GDA94 and GDA2020 / MGA */
        {3857, 3857}};                            /* WGS 84 / Pseudo-Mercator */
    struct pnet_axis_unit u = {.kind = PNET_AXIS_UNCLEAR};
    for (size_t i = 0; i < sizeof metric / sizeof *metric; i++)
        if (code >= metric[i].first && code <= metric[i].last) return pnet_unit_length_code(9001);
    snprintf(u.name, sizeof u.name, "EPSG:%u, without its unit", code);
    return u;
}

static struct pnet_axis_unit unit_of_vertical(unsigned code)
{
    static const struct {
        unsigned code, unit;
    } known[] = {{5703, 9001}, {6360, 9003}, {8228, 9002}, /* NAVD88 height */
        {7968, 9001}, {5702, 9003},                        /* NGVD29 height */
        {5773, 9001}, {3855, 9001}};                       /* EGM96 and EGM2008 height */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) return pnet_unit_length_code(known[i].unit);
    return (struct pnet_axis_unit){.kind = PNET_AXIS_UNSTATED};
}

static struct pnet_axis_unit length_or_unstated(unsigned code)
{
    return code ? pnet_unit_length_code(code) : (struct pnet_axis_unit){.kind = PNET_AXIS_UNSTATED};
}

static void read_keys(
    const struct pnet_las_system *s, const struct pnet_bytes *b, struct pnet_axis_unit unit[2])
{
    double size = 0;
    unsigned model = find_key(s, b, MODEL_TYPE, NULL), linear = find_key(s, b, LINEAR_UNIT, NULL),
             projected = find_key(s, b, PROJECTED_SYSTEM, NULL),
             angular = find_key(s, b, ANGULAR_UNIT, NULL),
             vertical = find_key(s, b, VERTICAL_UNIT, NULL);
    bool geographic = model == MODEL_GEOGRAPHIC ||
                      (!model && !projected && !linear && find_key(s, b, GEOGRAPHIC_SYSTEM, NULL));
    find_key(s, b, LINEAR_UNIT_SIZE, &size);
    unit[1] = vertical ? pnet_unit_length_code(vertical)
                       : unit_of_vertical(find_key(s, b, VERTICAL_SYSTEM, NULL));
    if (geographic) {
        unit[0] = pnet_unit_angle_code(angular ? angular : 9102);
    } else if (model == MODEL_GEOCENTRIC) {
        unit[0] = unit[1] = length_or_unstated(find_key(s, b, GEOCENTRIC_UNIT, NULL));
    } else if (linear == USER_DEFINED && size > 0) {
        unit[0] = pnet_unit_length(size, "unit", 4);
    } else if (linear || !projected || projected == USER_DEFINED) {
        unit[0] = length_or_unstated(linear);
    } else {
        unit[0] = unit_of_projected(projected);
    }
}

/* Joins two statements about one axis: none gives way to any, an unclear one to a clear one; two that differ are unclear. */
static void join(struct pnet_axis_unit *a, const struct pnet_axis_unit *b)
{
    char text[sizeof a->name];
    if (b->kind == PNET_AXIS_UNSTATED || pnet_unit_same(a, b)) return;
    if (a->kind == PNET_AXIS_UNSTATED || a->kind == PNET_AXIS_UNCLEAR) {
        if (a->kind == PNET_AXIS_UNSTATED || b->kind != PNET_AXIS_UNCLEAR) *a = *b;
        return;
    }
    if (b->kind == PNET_AXIS_UNCLEAR) return;
    snprintf(text, sizeof text, "%.14s by keys, %.14s by text", a->name, b->name);
    *a = (struct pnet_axis_unit){.kind = PNET_AXIS_UNCLEAR};
    memcpy(a->name, text, sizeof text);
}

static struct pnet_span text_of(const struct pnet_bytes *b, const struct pnet_las_record *r)
{
    const char *at = (const char *)b->data + r->at;
    return (struct pnet_span){at, at + r->length};
}

void pnet_las_system_units(
    const struct pnet_las_system *s, const struct pnet_bytes *b, struct pnet_axis_unit unit[2])
{
    struct pnet_axis_unit by_text[2], by_liblas[2];
    read_keys(s, b, unit);
    pnet_wkt_units(text_of(b, &s->wkt), by_text);
    pnet_wkt_units(text_of(b, &s->liblas), by_liblas);
    for (int i = 0; i < 2; i++) {
        join(&unit[i], &by_text[i]);
        /* libLAS's own copy may be older than the records of the format */
        if (unit[i].kind == PNET_AXIS_UNSTATED) unit[i] = by_liblas[i];
    }
}
