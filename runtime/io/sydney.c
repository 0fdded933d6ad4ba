/* Sydney Urban Objects (Quadros, Underwood and Douillard, 2012): objects cut from Velodyne scans,
   in records of 34 bytes without a header, named .bin like others. */
#include "runtime/io/column.h"
#include "runtime/io/format.h"

#include <math.h>
#include <string.h>

enum { RECORD = 34, LOOK_AT = 64 };

static const struct {
    const char *name;
    enum pnet_scalar type;
} layout[] = {{"t", PNET_I64}, {"intensity", PNET_U8}, {"id", PNET_U8}, {"x", PNET_F32},
    {"y", PNET_F32}, {"z", PNET_F32}, {"azimuth", PNET_F32}, {"range", PNET_F32},
    {"pid", PNET_I32}};

/* The format is recognised by two redundancies of its records: a time in microseconds of this century, and a range that
   follows from the coordinates next to it. No other kind of records has both. */
bool pnet_sydney_probe(const struct pnet_bytes *b)
{
    if (!b->size || b->size % RECORD) return false;
    size_t rows = b->size / RECORD;
    for (size_t i = 0; i < rows && i < LOOK_AT; i++) {
        int64_t t;
        float p[5];
        memcpy(&t, b->data + i * RECORD, sizeof t);
        memcpy(p, b->data + i * RECORD + 10, sizeof p);
        if (t < INT64_C(946684800000000) || t > INT64_C(4102444800000000)) return false;
        double range = sqrt((double)p[0] * p[0] + (double)p[1] * p[1] + (double)p[2] * p[2]);
        if (!(fabs(range - p[4]) <= 0.01 + 0.02 * range)) return false;
    }
    return true;
}

enum pnet_status pnet_sydney_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    static const int axis[3] = {3, 4, 5};
    if (b->size % RECORD)
        return pnet_byte_error(path, b->size - b->size % RECORD, e,
            "the file ends within a point: expected records of %d bytes", RECORD);
    struct pnet_columns t = {.count = 0};
    enum pnet_status status = PNET_OK;
    for (size_t i = 0; i < sizeof layout / sizeof *layout && status == PNET_OK; i++)
        status = pnet_columns_add(&t, pnet_span_of(layout[i].name), layout[i].type, NULL, path, e);
    if (status == PNET_OK) {
        pnet_columns_pack(&t, b->data);
        status = pnet_columns_cloud(&t, axis, (int64_t)(b->size / RECORD), c, e);
    }
    pnet_columns_free(&t);
    return status;
}
