#include "runtime/io/wkt.h"

#include <math.h>
#include <string.h>

enum { DEPTH_MOST = 32 };

enum keyword {
    OTHER,
    WRAPPER, /* holds systems */
    PROJECTED,
    GEOGRAPHIC,
    GEODETIC, /* geographic, or geocentric with Cartesian axes */
    GEOCENTRIC,
    LOCAL,
    VERTICAL,
    AXES, /* CS[Cartesian,2] */
    AXIS,
    LENGTH_UNIT,
    ANGLE_UNIT,
    UNIT,        /* of length or angle, as the system has */
    HEIGHT_UNIT, /* of a geographic system: ESRI */
};

static const struct {
    const char *word;
    enum keyword keyword;
} keywords[] = {{"COMPD_CS", WRAPPER}, {"COMPOUNDCRS", WRAPPER}, {"BOUNDCRS", WRAPPER},
    {"SOURCECRS", WRAPPER}, {"PROJCS", PROJECTED}, {"PROJCRS", PROJECTED},
    {"PROJECTEDCRS", PROJECTED}, {"DERIVEDPROJCRS", PROJECTED}, {"GEOGCS", GEOGRAPHIC},
    {"GEOGCRS", GEOGRAPHIC}, {"GEOGRAPHICCRS", GEOGRAPHIC}, {"GEODCRS", GEODETIC},
    {"GEODETICCRS", GEODETIC}, {"GEOCCS", GEOCENTRIC}, {"LOCAL_CS", LOCAL}, {"ENGCRS", LOCAL},
    {"ENGINEERINGCRS", LOCAL}, {"VERT_CS", VERTICAL}, {"VERTCS", VERTICAL}, {"VERTCRS", VERTICAL},
    {"VERTICALCRS", VERTICAL}, {"CS", AXES}, {"AXIS", AXIS}, {"LENGTHUNIT", LENGTH_UNIT},
    {"ANGLEUNIT", ANGLE_UNIT}, {"UNIT", UNIT}, {"LINUNIT", HEIGHT_UNIT}};

/* KEYWORD["name", number, word, KEYWORD[...], ...] */
struct node {
    enum keyword keyword;
    bool
        counts; /* what it says is about the coordinates, and not about what their system was made of */
    struct pnet_span name, word;
    double number;  /* the first one; 0: none */
    int axes;       /* of a system: how many it has so far */
    bool cartesian; /* a system whose three axes are lengths */
};

struct wkt {
    const char *at, *end;
    struct node nodes[DEPTH_MOST];
    int depth;
    bool horizontal; /* a system for x and y was met */
    struct pnet_axis_unit *unit;
};

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_word(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

static enum keyword find_keyword(struct pnet_span word)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (pnet_span_is_nocase(word, keywords[i].word)) return keywords[i].keyword;
    return OTHER;
}

static bool is_system(enum keyword k)
{
    return k >= PROJECTED && k <= VERTICAL;
}

/* Tells whether a node counts below its parent. A projected system holds the geographic one that it projects, and units of
   its parameters; some programs put the vertical system into it too. */
static bool counts(const struct wkt *w, const struct node *parent, enum keyword k)
{
    if (k == OTHER || (parent && !parent->counts)) return false;
    if (k == VERTICAL) return true;
    if (!parent || parent->keyword == WRAPPER)
        return k == WRAPPER || (is_system(k) && !w->horizontal);
    if (parent->keyword == AXIS) return k >= LENGTH_UNIT;
    return is_system(parent->keyword) && k >= AXES;
}

static bool push(struct wkt *w, struct pnet_span word)
{
    struct node *parent = w->depth ? &w->nodes[w->depth - 1] : NULL;
    if (w->depth == DEPTH_MOST) return false;
    struct node *n = &w->nodes[w->depth++];
    *n = (struct node){.keyword = find_keyword(word)};
    n->counts = counts(w, parent, n->keyword);
    if (n->counts && is_system(n->keyword) && n->keyword != VERTICAL) w->horizontal = true;
    if (parent && n->counts && n->keyword == AXIS) parent->axes++;
    if (n->keyword == GEOCENTRIC) n->cartesian = true;
    return true;
}

/* Takes the unit of an axis, or of all axes of a system. The first one counts. */
static void take_unit(struct wkt *w, const struct node *unit)
{
    const struct node *owner = unit - 1, *system = owner->keyword == AXIS ? owner - 1 : owner;
    bool of_axis = owner != system, third = of_axis && system->axes == 3;
    bool angular = (system->keyword == GEOGRAPHIC || system->keyword == GEODETIC) &&
                   !system->cartesian && !third;
    struct pnet_axis_unit u =
        unit->keyword == ANGLE_UNIT || (unit->keyword == UNIT && angular)
            ? pnet_unit_angle(unit->number, unit->name.at, pnet_span_size(unit->name))
            : pnet_unit_length(unit->number, unit->name.at, pnet_span_size(unit->name));
    int first = system->keyword == VERTICAL || unit->keyword == HEIGHT_UNIT || third,
        last = first || (system->cartesian && !of_axis);
    for (int i = first; i <= last; i++)
        if (w->unit[i].kind == PNET_AXIS_UNSTATED) w->unit[i] = u;
}

static void pop(struct wkt *w)
{
    const struct node *n = &w->nodes[--w->depth];
    if (!n->counts) return;
    if (n->keyword == AXES)
        w->nodes[w->depth - 1].cartesian =
            pnet_span_is_nocase(n->word, "Cartesian") && n->number == 3;
    if (n->keyword >= LENGTH_UNIT) take_unit(w, n);
    bool geographic = n->keyword == GEOGRAPHIC || (n->keyword == GEODETIC && !n->cartesian);
    if (geographic && w->unit[0].kind == PNET_AXIS_UNSTATED)
        w->unit[0] = pnet_unit_angle(M_PI / 180, "", 0);
}

/* Takes a text in double quotes, in which two of them stand for one. */
static struct pnet_span take_quoted(struct wkt *w)
{
    struct pnet_span s = {.at = ++w->at};
    while (w->at < w->end && (*w->at != '"' || (w->at + 1 < w->end && w->at[1] == '"')))
        w->at += *w->at == '"' ? 2 : 1;
    s.end = w->at;
    if (w->at < w->end) w->at++;
    return s;
}

static struct pnet_span take_word(struct wkt *w)
{
    struct pnet_span s = {.at = w->at};
    while (w->at < w->end && is_word(*w->at)) w->at++;
    s.end = w->at;
    while (w->at < w->end && strchr(" \t\r\n", *w->at)) w->at++;
    return s;
}

/* Reads one value, bracket or comma. Returns false where the text is no longer understood. */
static bool step(struct wkt *w)
{
    struct node *n = w->depth ? &w->nodes[w->depth - 1] : NULL;
    char c = *w->at;
    double number;
    if (c == '"') {
        struct pnet_span s = take_quoted(w);
        if (n && !n->name.at) n->name = s;
    } else if (is_letter(c)) {
        struct pnet_span s = take_word(w);
        if (w->at < w->end && (*w->at == '[' || *w->at == '(')) {
            w->at++;
            return push(w, s);
        }
        if (n && !n->word.at) n->word = s;
    } else if (c == ']' || c == ')') {
        if (!n) return false;
        pop(w);
        w->at++;
    } else {
        const char *stop = pnet_number_parse(w->at, w->end, &number);
        if (stop && n && n->number == 0) n->number = number;
        w->at = stop ? stop : w->at + 1;
    }
    return true;
}

void pnet_wkt_units(struct pnet_span text, struct pnet_axis_unit unit[2])
{
    struct wkt w = {.at = text.at, .unit = unit};
    const char *zero = memchr(text.at, '\0', pnet_span_size(text));
    w.end = zero ? zero : text.end;
    for (int i = 0; i < 2; i++) unit[i] = (struct pnet_axis_unit){.kind = PNET_AXIS_UNSTATED};
    while (w.at < w.end && step(&w)) continue;
}
