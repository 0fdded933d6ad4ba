/* What lies where in the records of LAS files, by point format. */
#include "runtime/io/las.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct dimension {
    const char *name;
    enum pnet_scalar type;
    uint8_t at, low, bits;
    double scale; /* 0: as it is */
};

/* Dimensions that formats 0 to 5 share, and those that 6 to 10 share; the last one has no name. */
static const struct dimension legacy[] = {{"intensity", PNET_U16, 12, 0, 0, 0},
    {"return_number", PNET_U8, 14, 0, 3, 0}, {"number_of_returns", PNET_U8, 14, 3, 3, 0},
    {"classification", PNET_U8, 15, 0, 5, 0}, {"scan_angle", PNET_I8, 16, 0, 0, 1},
    {"user_data", PNET_U8, 17, 0, 0, 0}, {"point_source_id", PNET_U16, 18, 0, 0, 0},
    {"synthetic", PNET_U8, 15, 5, 1, 0}, {"key_point", PNET_U8, 15, 6, 1, 0},
    {"withheld", PNET_U8, 15, 7, 1, 0}, {"scan_direction_flag", PNET_U8, 14, 6, 1, 0},
    {"edge_of_flight_line", PNET_U8, 14, 7, 1, 0}, {NULL, PNET_U8, 0, 0, 0, 0}};
static const struct dimension modern[] = {{"intensity", PNET_U16, 12, 0, 0, 0},
    {"return_number", PNET_U8, 14, 0, 4, 0}, {"number_of_returns", PNET_U8, 14, 4, 4, 0},
    {"classification", PNET_U8, 16, 0, 0, 0}, {"user_data", PNET_U8, 17, 0, 0, 0},
    {"scan_angle", PNET_I16, 18, 0, 0, 0.006}, {"point_source_id", PNET_U16, 20, 0, 0, 0},
    {"synthetic", PNET_U8, 15, 0, 1, 0}, {"key_point", PNET_U8, 15, 1, 1, 0},
    {"withheld", PNET_U8, 15, 2, 1, 0}, {"overlap", PNET_U8, 15, 3, 1, 0},
    {"scanner_channel", PNET_U8, 15, 4, 2, 0}, {"scan_direction_flag", PNET_U8, 15, 6, 1, 0},
    {"edge_of_flight_line", PNET_U8, 15, 7, 1, 0}, {NULL, PNET_U8, 0, 0, 0, 0}};

/* Bytes of the records, and offsets of dimensions that only some formats have; 0: not present. The last are the waveforms. */
static const struct {
    uint8_t size, gps_time, red, nir, waves;
} formats[LAS_FORMATS] = {{20, 0, 0, 0, 0}, {28, 20, 0, 0, 0}, {26, 0, 20, 0, 0},
    {34, 20, 28, 0, 0}, {57, 20, 0, 0, 28}, {63, 20, 28, 0, 34}, {30, 22, 0, 0, 0},
    {36, 22, 30, 0, 0}, {38, 22, 30, 36, 0}, {59, 22, 0, 0, 30}, {67, 22, 30, 36, 38}};
enum { WAVE_SIZE = 29 };

size_t pnet_las_format_size(unsigned format)
{
    return formats[format].size;
}

bool pnet_las_has_colours(unsigned format)
{
    return formats[format].red > 0;
}

static struct pnet_las_part *add_part(struct pnet_las_layout *l, size_t at, size_t size)
{
    if ((l->count & (l->count - 1)) == 0) {
        size_t capacity = l->count ? 2 * (size_t)l->count : 1;
        struct pnet_las_part *parts = realloc(l->parts, capacity * sizeof *parts);
        if (!parts) return NULL;
        l->parts = parts;
    }
    struct pnet_las_part *p = &l->parts[l->count++];
    *p = (struct pnet_las_part){.axis = -1,
        .extra = -1,
        .number = -1,
        .type = PNET_U8,
        .at = at,
        .size = size,
        .kept = PNET_LAS_NOT_KEPT};
    return p;
}

struct pnet_las_part *pnet_las_add(struct pnet_las_layout *l, enum pnet_scalar type)
{
    size_t size = pnet_scalar_size(type);
    struct pnet_las_part *p = add_part(l, l->record, size);
    if (!p) return NULL;
    p->type = type;
    l->record += size;
    return p;
}

bool pnet_las_add_bytes(struct pnet_las_layout *l, size_t size, int extra)
{
    struct pnet_las_part *p = size ? add_part(l, l->record, size) : NULL;
    if (!p) return size == 0;
    p->extra = extra;
    l->record += size;
    return true;
}

/* Adds a dimension of the format. */
static bool add_dimension(struct pnet_las_layout *l, const struct dimension *d)
{
    struct pnet_las_part *p = add_part(l, d->at, pnet_scalar_size(d->type));
    if (!p) return false;
    p->field = true;
    strcpy(p->name, d->name);
    p->type = d->type;
    p->low = d->low;
    p->bits = d->bits;
    p->scaled = d->scale > 0;
    p->scale = d->scale;
    return true;
}

bool pnet_las_begin(struct pnet_las_layout *l, unsigned format)
{
    assert(format < LAS_FORMATS);
    static const char *const colours[] = {"red", "green", "blue"};
    uint8_t red = formats[format].red;
    bool ok = true;
    l->format = format;
    for (int a = 0; a < 3 && ok; a++) {
        struct pnet_las_part *p = add_part(l, 4 * (size_t)a, 4);
        if (!p) return false;
        p->axis = a;
        p->type = PNET_I32;
        p->scaled = true;
        p->scale = 1;
    }
    for (const struct dimension *d = format < 6 ? legacy : modern; d->name && ok; d++)
        ok = add_dimension(l, d);
    struct dimension time = {"gps_time", PNET_F64, formats[format].gps_time, 0, 0, 0};
    if (time.at && ok) ok = add_dimension(l, &time);
    for (int k = 0; k < 3 && red && ok; k++)
        ok = add_dimension(
            l, &(struct dimension){colours[k], PNET_U16, (uint8_t)(red + 2 * k), 0, 0, 0});
    struct dimension nir = {"nir", PNET_U16, formats[format].nir, 0, 0, 0};
    if (nir.at && ok) ok = add_dimension(l, &nir);
    if (formats[format].waves && ok) ok = add_part(l, formats[format].waves, WAVE_SIZE) != NULL;
    l->record = formats[format].size;
    return ok;
}

void pnet_las_layout_free(struct pnet_las_layout *l)
{
    free(l->parts);
    *l = (struct pnet_las_layout){.count = 0};
}

void pnet_las_limits(const struct pnet_las_part *p, double *low, double *high)
{
    bool is_signed =
        p->type == PNET_I8 || p->type == PNET_I16 || p->type == PNET_I32 || p->type == PNET_I64;
    int bits = p->bits ? p->bits : 8 * (int)pnet_scalar_size(p->type) - is_signed;
    *low = is_signed ? -ldexp(1, bits) : 0;
    *high =
        ldexp(1, bits) - (bits < 53 ? 1 : 0x1p11); /* the double before 2^63 and 2^64, at most */
}

unsigned pnet_las_raise(unsigned format, bool time, bool colours, bool nir)
{
    bool waves = formats[format].waves;
    unsigned first = format < 6 ? waves ? 4 : 0
                     : waves    ? 9
                                : 6,
             past = first == 0   ? 4
                    : first == 4 ? 6
                    : first == 6 ? 9
                                 : 11;
    unsigned best = format;
    int had = -1;
    time |= formats[format].gps_time > 0;
    colours |= formats[format].red > 0;
    nir |= formats[format].nir > 0;
    for (unsigned f = first; f < past;
         f++) { /* ascending sizes: the first of equals is the smallest */
        int has =
            (time && formats[f].gps_time) + (colours && formats[f].red) + (nir && formats[f].nir);
        if (has > had) best = f;
        had = has > had ? has : had;
    }
    return best;
}

void pnet_las_summary_begin(struct pnet_las_summary *s)
{
    *s = (struct pnet_las_summary){
        .low = {INT32_MAX, INT32_MAX, INT32_MAX}, .high = {INT32_MIN, INT32_MIN, INT32_MIN}};
}

void pnet_las_summary_add(
    struct pnet_las_summary *s, const struct pnet_las_layout *l, const uint8_t *records, int64_t n)
{
    unsigned mask = l->format < 6 ? 7 : 15;
    s->rows += n;
    for (int64_t i = 0; i < n; i++, records += l->record) {
        int32_t xyz[3];
        memcpy(xyz, records, sizeof xyz);
        for (int a = 0; a < 3; a++) {
            if (xyz[a] < s->low[a]) s->low[a] = xyz[a];
            if (xyz[a] > s->high[a]) s->high[a] = xyz[a];
        }
        unsigned number = records[14] & mask;
        if (number) s->returns[number - 1]++;
    }
}

void pnet_las_kept_free(struct pnet_las_kept *k)
{
    if (!k) return;
    pnet_las_layout_free(&k->layout);
    free(k->head);
    free(k->tail);
    free(k->bytes);
    free(k);
}
