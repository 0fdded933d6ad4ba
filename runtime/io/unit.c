#include "runtime/io/unit.h"

#include "runtime/base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* EPSG data set, "Units of Measure". The foot of the US survey is 1200/3937 m. */
static const struct pnet_length lengths[] = {{"m", "metres", 1, 9001},
    {"km", "kilometres", 1000, 9036}, {"cm", "centimetres", 0.01, 1033},
    {"mm", "millimetres", 0.001, 1025}, {"in", "inches", 0.0254, 0}, {"ft", "feet", 0.3048, 9002},
    {"us-ft", "US survey feet", 1200.0 / 3937, 9003}, {"yd", "yards", 0.9144, 9096}};

/* Lengths that files name, but --unit does not take. */
static const struct pnet_length rare[] = {{"", "Clarke's feet", 0.3047972654, 9005},
    {"", "fathoms", 1.8288, 9014}, {"", "nautical miles", 1852, 9030},
    {"", "US survey chains", 66 * 1200.0 / 3937, 9033}, {"", "miles", 1609.344, 9093}};

static const struct {
    const char *name;
    double radians;
    int epsg[2];
} angles[] = {{"degrees", M_PI / 180, {9102, 9122}}, {"radians", 1, {9101, 0}},
    {"grads", M_PI / 200, {9105, 9106}}, {"arc-minutes", M_PI / 180 / 60, {9103, 0}},
    {"arc-seconds", M_PI / 180 / 3600, {9104, 0}}};

static const struct pnet_length *find_symbol(const char *text, size_t size)
{
    for (size_t i = 0; i < COUNT(lengths); i++)
        if (strlen(lengths[i].symbol) == size && memcmp(lengths[i].symbol, text, size) == 0)
            return &lengths[i];
    return NULL;
}

bool pnet_unit_parse(const char *text, struct pnet_unit_choice *c)
{
    size_t n = strcspn(text, ",");
    *c = (struct pnet_unit_choice){.of_file = strcmp(text, "file") == 0};
    if (c->of_file) return true;
    c->axes[0] = find_symbol(text, n);
    c->axes[1] = text[n] ? find_symbol(text + n + 1, strlen(text + n + 1)) : c->axes[0];
    return c->axes[0] && c->axes[1];
}

void pnet_unit_print(const struct pnet_unit_choice *c, char text[32])
{
    const struct pnet_length *xy = c->axes[0], *z = c->axes[1];
    snprintf(text, 32, "%s%s%s",
        c->of_file ? "file"
        : xy       ? xy->symbol
                   : "",
        xy && z != xy ? "," : "", xy && z != xy ? z->symbol : "");
}

/* Factors in files have six digits or more; the nearest two units differ by 2e-6. */
static bool near(double a, double b)
{
    return fabs(a - b) <= 2e-7 * fabs(b);
}

static struct pnet_axis_unit make(enum pnet_axis_unit_kind kind, double size, const char *name)
{
    struct pnet_axis_unit u = {.kind = kind, .size = size};
    snprintf(u.name, sizeof u.name, "%s", name);
    return u;
}

/* Copies a name out of a file: cut, and control bytes replaced. */
static void copy_name(char to[32], const char *name, size_t size)
{
    size_t n = size < 31 ? size : 31;
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)name[i] < 32 || (unsigned char)name[i] >= 127 ? '?' : name[i];
    to[n] = '\0';
}

static bool contains(const char *name, size_t size, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= size; i++) {
        size_t k = 0;
        while (k < n && (name[i + k] | 0x20) == word[k]) k++;
        if (k == n) return true;
    }
    return false;
}

/* Some programs write UNIT["US survey foot",1]. */
static bool contradicts(double metres, const char *name, size_t size)
{
    bool foot = contains(name, size, "foot") || contains(name, size, "feet");
    bool metre = size == 5 && (contains(name, size, "metre") || contains(name, size, "meter"));
    return (foot && fabs(metres - 0.3048) > 0.001) || (metre && !near(metres, 1));
}

struct pnet_axis_unit pnet_unit_length(double metres, const char *name, size_t name_size)
{
    char copy[32];
    struct pnet_axis_unit u;
    copy_name(copy, name, name_size);
    if (!(metres > 0) || !isfinite(metres) || contradicts(metres, name, name_size)) {
        u = make(PNET_AXIS_UNCLEAR, 0, "");
        pnet_number_format(u.name, sizeof u.name, "\"%s\" of %.4g m", copy, metres);
        return u;
    }
    for (size_t i = 0; i < COUNT(lengths); i++)
        if (near(metres, lengths[i].metres))
            return make(PNET_AXIS_LENGTH, lengths[i].metres, lengths[i].name);
    for (size_t i = 0; i < COUNT(rare); i++)
        if (near(metres, rare[i].metres))
            return make(PNET_AXIS_LENGTH, rare[i].metres, rare[i].name);
    u = make(PNET_AXIS_LENGTH, metres, "");
    pnet_number_format(u.name, sizeof u.name, "\"%s\" of %.6g m", copy, metres);
    return u;
}

struct pnet_axis_unit pnet_unit_angle(double radians, const char *name, size_t name_size)
{
    char copy[32];
    for (size_t i = 0; i < COUNT(angles); i++)
        if (near(radians, angles[i].radians))
            return make(PNET_AXIS_ANGLE, angles[i].radians, angles[i].name);
    copy_name(copy, name, name_size);
    struct pnet_axis_unit u = make(PNET_AXIS_ANGLE, radians, "");
    pnet_number_format(u.name, sizeof u.name, "\"%s\" of %.6g rad", copy, radians);
    return u;
}

static struct pnet_axis_unit unknown_code(unsigned code)
{
    struct pnet_axis_unit u = make(PNET_AXIS_UNCLEAR, 0, "");
    snprintf(u.name, sizeof u.name, "unit code %u", code);
    return u;
}

struct pnet_axis_unit pnet_unit_length_code(unsigned code)
{
    for (size_t i = 0; i < COUNT(lengths); i++)
        if (code && (unsigned)lengths[i].epsg == code)
            return make(PNET_AXIS_LENGTH, lengths[i].metres, lengths[i].name);
    for (size_t i = 0; i < COUNT(rare); i++)
        if ((unsigned)rare[i].epsg == code)
            return make(PNET_AXIS_LENGTH, rare[i].metres, rare[i].name);
    return unknown_code(code);
}

struct pnet_axis_unit pnet_unit_angle_code(unsigned code)
{
    for (size_t i = 0; i < COUNT(angles); i++)
        if (code && ((unsigned)angles[i].epsg[0] == code || (unsigned)angles[i].epsg[1] == code))
            return make(PNET_AXIS_ANGLE, angles[i].radians, angles[i].name);
    return unknown_code(code);
}

bool pnet_unit_same(const struct pnet_axis_unit *a, const struct pnet_axis_unit *b)
{
    return a->kind == b->kind && near(a->size, b->size);
}

const char *pnet_unit_symbol(const struct pnet_axis_unit *u)
{
    if (u->kind == PNET_AXIS_ANGLE) return u->name;
    if (u->kind != PNET_AXIS_LENGTH) return "m";
    for (size_t i = 0; i < COUNT(lengths); i++)
        if (u->size == lengths[i].metres) return lengths[i].symbol;
    return u->name;
}

static bool is_metric(const struct pnet_axis_unit *u)
{
    return u->kind == PNET_AXIS_NONE || u->kind == PNET_AXIS_UNSTATED ||
           (u->kind == PNET_AXIS_LENGTH && near(u->size, 1));
}

/* Describes a unit after "is" or "are". */
static void describe(const struct pnet_axis_unit *u, char text[64])
{
    if (u->kind == PNET_AXIS_UNCLEAR)
        snprintf(text, 64, "unclear (%.47s)", u->name);
    else if (u->kind == PNET_AXIS_LENGTH || u->kind == PNET_AXIS_ANGLE)
        snprintf(text, 64, "%.47s", u->name);
    else
        snprintf(text, 64, "not stated");
}

/* The numbers are taken as metres. */
static void doubt_metres(
    const struct pnet_axis_unit u[2], const char xy[64], const char z[64], char text[256])
{
    bool both = pnet_unit_same(&u[0], &u[1]);
    if (is_metric(&u[0]) && is_metric(&u[1])) return;
    if (u[0].kind == PNET_AXIS_ANGLE)
        snprintf(text, 256, "x and y are %s, where metres are expected%s%s", xy,
            is_metric(&u[1]) ? "" : "; z is ", is_metric(&u[1]) ? "" : z);
    else if (both)
        snprintf(text, 256, "x, y and z are %s, taken as metres: --unit file converts them", xy);
    else
        snprintf(text, 256, "x and y are %s, z is %s, taken as metres: --unit %s", xy, z,
            u[0].kind == PNET_AXIS_LENGTH && u[1].kind != PNET_AXIS_UNCLEAR ? "file converts them"
                                                                            : "names the unit");
}

void pnet_unit_doubt(const struct pnet_axis_unit units[2], const struct pnet_unit_choice *c,
    const double metres[2], char text[256])
{
    static const char *const axes[] = {"x and y are", "z is"};
    char words[2][64];
    text[0] = '\0';
    for (int i = 0; i < 2; i++) describe(&units[i], words[i]);
    if (metres[0] == 0) {
        doubt_metres(units, words[0], words[1], text);
        return;
    }
    if (c->of_file && units[1].kind != PNET_AXIS_LENGTH && !near(metres[1], 1))
        snprintf(text, 256, "z is %s and converted from %s, as x and y", words[1], words[0]);
    for (int i = 0; i < 2 && c->axes[i]; i++) {
        bool stated = units[i].kind == PNET_AXIS_LENGTH || units[i].kind == PNET_AXIS_ANGLE;
        size_t n = strlen(text);
        if (!stated || (units[i].kind == PNET_AXIS_LENGTH && near(units[i].size, metres[i])))
            continue;
        snprintf(text + n, 256 - n, "%s%s %s by the file, and taken as %s", n ? "; " : "", axes[i],
            words[i], c->axes[i]->name);
    }
}
