/* LAS files put together field by field from the specification's tables. */
#ifndef PNET_TESTS_IO_LAS_H
#define PNET_TESTS_IO_LAS_H

#include "runtime/io/format.h"
#include "tests/io/files.h"

struct las {
    uint8_t data[1 << 14];
    size_t size;
};

static inline void set(struct las *l, size_t at, const void *value, size_t size)
{
    memcpy(l->data + at, value, size);
}

static inline void set_number(struct las *l, size_t at, uint64_t v, size_t bytes)
{
    set(l, at, &v, bytes);
}

static inline void set_double(struct las *l, size_t at, double v)
{
    set(l, at, &v, 8);
}

static const size_t sizes[] = {20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67};
enum { ROWS = 3 };

/* What the points hold: functions of format and row, different in every field. Flags as tables 3.2 and 9.2 of LAS 1.4 have
   them: edge of flight line and scan direction above the returns; withheld, key point and synthetic above the class; edge,
   direction, two bits of the channel, overlap, withheld, key point, synthetic. */
static const uint8_t scan_flags[ROWS] = {0xc0, 0x40, 0x80}, class_flags[ROWS] = {0x20, 0x40, 0x80},
                     modern_flags[ROWS] = {0x19, 0xa2, 0x7c};
static inline int32_t stored(int row, int axis)
{
    return (row + 1) * 1000 * (axis == 1 ? -1 : 1) + axis;
}
static inline double gps_time(int row)
{
    return 1e6 + row + 0.125;
}

static inline void put_point(struct las *l, size_t at, int format, int row)
{
    int modern = format >= 6;
    uint64_t r = (uint64_t)row;
    for (int a = 0; a < 3; a++) set_number(l, at + 4 * (size_t)a, (uint32_t)stored(row, a), 4);
    set_number(l, at + 12, 60000 + r, 2);
    if (modern) {
        set_number(l, at + 14, (r + 9) | (r + 12) << 4, 1);
        set_number(l, at + 15, modern_flags[row], 1);
        set_number(l, at + 16, 200 + r, 1);
        set_number(l, at + 17, 50 + r, 1);
        set_number(l, at + 18, (uint16_t)(int16_t)(-5000 * row), 2);
        set_number(l, at + 20, 700 + r, 2);
    } else {
        set_number(l, at + 14, (r + 1) | (r + 3) << 3 | scan_flags[row], 1);
        set_number(l, at + 15, (20 + r) | class_flags[row], 1);
        set_number(l, at + 16, (uint8_t)(int8_t)(-30 * row), 1);
        set_number(l, at + 17, 50 + r, 1);
        set_number(l, at + 18, 700 + r, 2);
    }
    int timed = format == 1 || format >= 3;
    size_t next = modern ? 22 : 20;
    if (timed) set_double(l, at + next, gps_time(row));
    if (timed) next += 8;
    int coloured =
        format == 2 || format == 3 || format == 5 || format == 7 || format == 8 || format == 10;
    for (size_t k = 0; k < 3 && coloured; k++)
        set_number(l, at + next + 2 * k, 40000 + 10 * k + r, 2);
    next += coloured ? 6 : 0;
    if (format == 8 || format == 10) set_number(l, at + next, 30000 + r, 2);
}

/* A header of the version, `vlr` bytes of records, points of the format with `extra` bytes behind
 * each. */
static inline void make(
    struct las *l, int minor, int format, const void *vlr, size_t vlr_size, size_t extra)
{
    size_t header = minor >= 4 ? 375 : minor == 3 ? 235 : 227, record = sizes[format] + extra;
    memset(l, 0, sizeof *l);
    set(l, 0, "LASF", 4);
    set_number(l, 24, 1 | (uint64_t)minor << 8, 2);
    set_number(l, 94, header, 2);
    set_number(l, 96, header + vlr_size, 4);
    set_number(l, 100, vlr_size > 0, 4);
    set_number(l, 104, (uint64_t)format, 1);
    set_number(l, 105, record, 2);
    set_number(l, minor >= 4 ? 247 : 107, ROWS, 4);
    static const double scale[] = {0.001, 0.01, 0.5}, shift[] = {500000, -20, 0.25};
    for (size_t a = 0; a < 3; a++) {
        set_double(l, 131 + 8 * a, scale[a]);
        set_double(l, 155 + 8 * a, shift[a]);
    }
    if (vlr_size) set(l, header, vlr, vlr_size);
    for (int row = 0; row < ROWS; row++)
        put_point(l, header + vlr_size + (size_t)row * record, format, row);
    l->size = header + vlr_size + ROWS * record;
}

static inline enum pnet_status read_las(
    const struct las *l, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_bytes b = bytes_of(l->data, l->size);
    *c = (struct pnet_cloud){.rows = 0};
    return pnet_las_read(&b, "a.las", c, e);
}

/* A record with its head, `size` bytes of body. */
static inline size_t put_record(uint8_t *to, int id, const void *body, size_t size)
{
    memset(to, 0, 54);
    memcpy(to + 2, "LASF_Projection", 15);
    memcpy(to + 18, &id, 2);
    memcpy(to + 20, &size, 2);
    memcpy(to + 54, body, size);
    return 54 + size;
}

#endif
