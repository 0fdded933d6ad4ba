/* LAS files written: the bytes of the file that was read where nothing changed, and else what changed alone. */
#include "runtime/io/las.h"
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/writing.h"
#include "tests/io/las.h"
#include "tests/io/laz_files.h"

#include <inttypes.h>

static enum pnet_status read_bytes(
    const uint8_t *data, size_t size, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_bytes b = bytes_of(data, size);
    *c = (struct pnet_cloud){.rows = 0};
    return pnet_las_read(&b, "a.las", c, e);
}

/* Writes the cloud as out.las, to memory. Returns whether that went well. */
static int write_las(const struct pnet_cloud *c, struct pnet_bytes *b, struct pnet_error *e)
{
    char *data = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&data, &size);
    e->message[0] = '\0';
    enum pnet_status status =
        f ? pnet_writing_all(&pnet_las_writing, c, "out.las", f, e) : PNET_FAILED;
    CHECK(f && fclose(f) == 0);
    if (status == PNET_OK) *b = (struct pnet_bytes){.data = (uint8_t *)data, .size = size};
    if (status != PNET_OK) free(data);
    return status == PNET_OK;
}

static void check_same(
    const struct pnet_cloud *c, const uint8_t *data, size_t size, const char *what, int number)
{
    struct pnet_bytes b = {.data = NULL};
    struct pnet_error e;
    CHECKF(write_las(c, &b, &e), "%s %d: %s", what, number, e.message);
    size_t at = 0;
    while (at < size && at < b.size && data[at] == b.data[at]) at++;
    CHECKF(at == size && at == b.size, "%s %d: byte %zu of %zu and %zu", what, number, at, size,
        b.size);
    pnet_bytes_free(&b);
}

static double random_double(uint64_t *state)
{
    double v;
    uint64_t bits = random_bits(state);
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A scale, and an offset: usual ones, far ones, and any bits. */
static double random_scale(uint64_t *state)
{
    static const double usual[] = {
        0.01, 0.001, 1e-7, 1e-9, 0.25, 1, -0.01, 0, 1e-300, 1e12, INFINITY};
    uint64_t r = random_bits(state) % 14;
    return r < 11 ? usual[r] : random_double(state);
}
static double random_shift(uint64_t *state)
{
    static const double usual[] = {0, 500000, -20.5, 5.3e6, 1e9 / 3, 1e15, -1e17, NAN};
    uint64_t r = random_bits(state) % 11;
    return r < 8 ? usual[r] : random_double(state);
}

/* A record that describes some extra dimensions; *bytes: how many they take, at most 60. */
static size_t random_extras(uint64_t *state, uint8_t *vlr, size_t *bytes)
{
    static const size_t widths[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    size_t count = random_bits(state) % 6;
    uint8_t *d = vlr + 54;
    memset(vlr, 0, 54);
    memcpy(vlr + 2, "LASF_Spec", 9);
    vlr[18] = 4;
    for (size_t i = 0; i < count; i++, d += 192) {
        for (size_t k = 0; k < 192; k++) d[k] = (uint8_t)random_bits(state);
        unsigned type = (unsigned)(random_bits(state) % 31);
        size_t size = type ? widths[(type - 1) % 10] * ((type - 1) / 10 + 1) : d[3] % 16;
        if (*bytes + size > 60) type = 0, size = 0;
        d[2] = (uint8_t)type;
        if (!type) d[3] = (uint8_t)size;
        *bytes += size;
        /* names of two letters, so that some are the same; "" and those of 32 bytes too */
        memset(d + 4, d[4] & 1 ? 'a' + d[5] % 2 : 0, d[4] & 2 ? 32 : 2);
        for (size_t k = 0; k < 3; k++) {
            double scale = random_scale(state), shift = random_shift(state);
            memcpy(d + 112 + 8 * k, &scale, 8);
            memcpy(d + 136 + 8 * k, &shift, 8);
        }
    }
    d[0] = d[1] = 0x77; /* bytes behind the last description belong to the record */
    size_t body = 192 * count + random_bits(state) % 3;
    memcpy(vlr + 20, &body, 2);
    return 54 + body;
}

/* A file of one format whose every byte is random that may be. */
static void make_random(struct las *l, int minor, int format, uint64_t *state)
{
    uint8_t vlrs[54 * 3 + 192 * 12];
    size_t size = 0, bytes = 0, count = 0;
    for (; count < random_bits(state) % 4 && count < 2; count++)
        size += random_extras(state, vlrs + size, &bytes);
    if (random_bits(state) & 1) size += put_record(vlrs + size, 7, "seven", 5), count++;
    size_t rest = random_bits(state) % 5, padding = random_bits(state) % 9;
    make(l, minor, format, vlrs, size, bytes + rest);
    size_t header = l->data[94] | (size_t)l->data[95] << 8, record = sizes[format] + bytes + rest;
    uint8_t kept[400];
    memcpy(kept, l->data, header);
    for (size_t i = 0; i < header; i++) l->data[i] = (uint8_t)random_bits(state);
    set(l, 0, kept, 4);
    set(l, 24, kept + 24, 2);
    set(l, 94, kept + 94, 17); /* sizes, places, format and the old count */
    if (minor >= 4) set(l, 247, kept + 247, 8);
    for (size_t a = 0; a < 3; a++) {
        set_double(l, 131 + 8 * a, random_scale(state));
        set_double(l, 155 + 8 * a, random_shift(state));
    }
    size_t points = header + size + padding, tail = random_bits(state) % 300;
    set_number(l, 96, points, 4);
    set_number(l, 100, count, 4);
    l->size = points + ROWS * record + tail;
    for (size_t i = header + size; i < l->size; i++) l->data[i] = (uint8_t)random_bits(state);
}

static void check_identity(void)
{
    static const double units[][2] = {
        {0, 0}, {1, 1}, {1200.0 / 3937, 1200.0 / 3937}, {1000, 0.3048}};
    static struct las l;
    uint64_t state = 1;
    for (int i = 0; i < 6000; i++) {
        int format = i % 11, minor = format < 2   ? i % 5
                                     : format < 4 ? 2 + i % 3
                                     : format < 6 ? 3 + i % 2
                                                  : 4;
        struct pnet_cloud c = {.metres = {units[i % 4][0], units[i % 4][1]}};
        struct pnet_error e = {.message = ""};
        make_random(&l, minor, format, &state);
        struct pnet_bytes b = bytes_of(l.data, l.size);
        CHECKF(pnet_las_read(&b, "in.las", &c, &e) == PNET_OK, "%d: %s", i, e.message);
        CHECK(pnet_cloud_restore(&c, &e) == PNET_OK && c.rows == ROWS);
        check_same(&c, l.data, l.size, "random file", i);
        pnet_cloud_free(&c);
    }
}

/* Integers of 32 bits come back through coordinates whatever scale and offset are, as many are kept as must be. */
static void check_integers(void)
{
    static const struct {
        double scale, shift;
        bool kept;
    } cases[] = {{0.01, 0, false}, {0.001, 5.3e6, false}, {1e-7, 5.3e6, false}, {1e-9, 5.3e6, true},
        {0.001, 1e15, true}, {1e3, 1e9, false}, {0, 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct las l;
        struct pnet_cloud c;
        struct pnet_error e;
        static const int32_t numbers[] = {INT32_MIN, INT32_MAX, 1};
        make(&l, 4, 6, NULL, 0, 0);
        for (size_t a = 0; a < 3; a++) {
            set_double(&l, 131 + 8 * a, cases[i].scale);
            set_double(&l, 155 + 8 * a, cases[i].shift);
            for (size_t row = 0; row < ROWS; row++)
                set(&l, 375 + 30 * row + 4 * a, &numbers[(row + a) % 3], 4);
        }
        CHECK(read_las(&l, &c, &e) == PNET_OK);
        CHECK((c.las->width == 12) == cases[i].kept && (c.las->width == 0) != cases[i].kept);
        check_same(&c, l.data, l.size, "integers", (int)i);
        pnet_cloud_free(&c);
    }
}

/* FNV-1a of 64 bits, as in laz_files.h. */
static uint64_t hash_of(const uint8_t *data, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) h = (h ^ data[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* LAZ is written as the records that other programs compressed. */
static void check_laz(void)
{
    for (size_t k = 0; k < sizeof laz_files / sizeof *laz_files; k++) {
        const struct laz_file *l = &laz_files[k];
        static uint8_t data[1 << 14];
        size_t size = strlen(l->digits) / 2;
        struct pnet_cloud c, d;
        struct pnet_bytes b = {.data = NULL};
        struct pnet_error e = {.message = ""};
        for (size_t i = 0; i < size; i++) {
            unsigned byte = 0;
            sscanf(l->digits + 2 * i, "%2x", &byte);
            data[i] = (uint8_t)byte;
        }
        if (read_bytes(data, size, &c, &e) != PNET_OK) {
            CHECKF(0, "%s: %s", l->name, e.message);
            continue;
        }
        CHECKF(write_las(&c, &b, &e), "%s: %s", l->name, e.message);
        uint64_t at = pnet_las_load(b.data, LAS_POINT_OFFSET, 4);
        size_t record = pnet_las_load(b.data, LAS_RECORD_LENGTH, 2);
        CHECKF(b.size >= at + record * (size_t)c.rows &&
                   hash_of(b.data + at, record * (size_t)c.rows) == l->hash,
            "%s", l->name);
        CHECK(b.data[LAS_POINT_FORMAT] < LAS_FORMATS);
        CHECK(pnet_las_load(b.data, LAS_VLR_COUNT, 4) == pnet_las_load(data, LAS_VLR_COUNT, 4) - 1);
        CHECK(read_bytes(b.data, b.size, &d, &e) == PNET_OK && d.rows == c.rows);
        check_same(&d, b.data, b.size, l->name, 0);
        pnet_cloud_free(&c);
        pnet_cloud_free(&d);
        pnet_bytes_free(&b);
    }
}

/* Compressed files keep extended records, in their order, but for those about the octree of a COPC. */
static void check_copc(void)
{
    static uint8_t data[1 << 14];
    const struct laz_file *l = laz_files;
    while (strcmp(l->name, "format6") != 0) l++;
    size_t size = strlen(l->digits) / 2, evlr = size;
    for (size_t i = 0; i < size; i++) {
        unsigned byte = 0;
        sscanf(l->digits + 2 * i, "%2x", &byte);
        data[i] = (uint8_t)byte;
    }
    static const char *const users[] = {"first", "copc", "last"};
    for (int i = 0; i < 3; i++) {
        memset(data + size, 0, 60);
        strcpy((char *)data + size + 2, users[i]);
        data[size + 20] = 3;
        memcpy(data + size + 60, "abc", 3);
        size += 63;
    }
    pnet_las_store(data, LAS_EVLR_OFFSET, evlr, 8);
    pnet_las_store(data, LAS_EVLR_COUNT, 3, 4);
    struct pnet_cloud c;
    struct pnet_bytes b = {.data = NULL};
    struct pnet_error e = {.message = ""};
    CHECKF(read_bytes(data, size, &c, &e) == PNET_OK, "%s", e.message);
    CHECK(write_las(&c, &b, &e));
    uint64_t at = pnet_las_load(b.data, LAS_EVLR_OFFSET, 8);
    CHECK(pnet_las_load(b.data, LAS_EVLR_COUNT, 4) == 2 && at + 126 == b.size);
    CHECK(memcmp(b.data + at, data + evlr, 63) == 0);
    CHECK(memcmp(b.data + at + 63, data + evlr + 126, 63) == 0);
    pnet_cloud_free(&c);
    pnet_bytes_free(&b);
}

/* Another class changes its bits alone. */
static void check_classification(void)
{
    for (int format = 0; format <= 10; format++) {
        static struct las l;
        struct pnet_cloud c;
        struct pnet_error e;
        make(&l, 4, format, NULL, 0, 3);
        CHECK(read_las(&l, &c, &e) == PNET_OK);
        uint8_t *class_ = pnet_cloud_field(&c, "classification")->data;
        class_[1] = 17;
        size_t at = 375 + (sizes[format] + 3) + (format < 6 ? 15 : 16);
        l.data[at] = format < 6 ? (uint8_t)((l.data[at] & 0xe0) | 17) : 17;
        check_same(&c, l.data, l.size, "class in format", format);
        class_[2] = 40;
        l.data[at + sizes[format] + 3] = 40;
        struct pnet_bytes b = {.data = NULL};
        if (format >= 6) {
            check_same(&c, l.data, l.size, "class 40 in format", format);
        } else {
            CHECK(!write_las(&c, &b, &e) && e.status == PNET_USAGE);
            CHECKF(strstr(e.message, "out.las: row 2: classification 40") &&
                       strstr(e.message, "classes 0 to 31"),
                "%s", e.message);
        }
        pnet_cloud_free(&c);
    }
}

static void add_values(struct pnet_cloud *c, const char *name, enum pnet_scalar type, double first)
{
    struct pnet_field *f = pnet_cloud_add(c, name, type);
    for (int64_t i = 0; i < c->rows; i++)
        pnet_scalar_store(
            first + (double)i, type, (uint8_t *)f->data + (size_t)i * pnet_scalar_size(type));
}

static void check_values(
    const struct pnet_cloud *c, const char *name, enum pnet_scalar type, double first)
{
    const struct pnet_field *f = pnet_cloud_field(c, name);
    CHECKF(f && f->type == type, "%s", name);
    for (int64_t i = 0; f && i < c->rows; i++)
        CHECKF(pnet_field_get(f, i) == first + (double)i, "%s[%" PRId64 "]: %g", name, i,
            pnet_field_get(f, i));
}

/* New fields become extra dimensions behind those of the file, whose bytes, records and tail stay; what follows the points is
   found where it is then. */
static void check_added(void)
{
    enum { TAIL = 100, REST = 3 };
    for (int format = 0; format <= 10; format++) {
        static struct las l;
        uint8_t vlrs[300];
        size_t size = put_record(vlrs, 7, "seven", 5);
        struct pnet_cloud c, d;
        struct pnet_bytes b = {.data = NULL};
        struct pnet_error e = {.message = ""};
        make(&l, 4, format, vlrs, size, REST);
        size_t record = sizes[format] + REST, end = l.size;
        for (size_t row = 0; row < ROWS; row++)
            set(&l, 375 + size + row * record + record - REST, "xyz", 3);
        memset(l.data + end, 'T', TAIL);
        l.size += TAIL;
        set_number(&l, LAS_EVLR_OFFSET, end + 20, 8);
        set_number(&l, LAS_EVLR_COUNT, 1, 4);
        set_number(&l, LAS_WAVES_OFFSET, end, 8);
        CHECKF(read_las(&l, &c, &e) == PNET_OK, "%s", e.message);
        for (int type = PNET_I8; type <= PNET_F64; type++) {
            char name[16];
            snprintf(name, sizeof name, "new %d", type);
            add_values(&c, name, (enum pnet_scalar)type, type < 2 ? 100 : 300);
        }
        CHECKF(write_las(&c, &b, &e), "%s", e.message);
        CHECKF(read_bytes(b.data, b.size, &d, &e) == PNET_OK, "%s", e.message);
        CHECK(d.field_count == c.field_count && d.las->layout.record == record + 42);
        for (int k = 0; k < c.field_count; k++) {
            CHECK_STR(d.fields[k].name, c.fields[k].name);
            for (int64_t i = 0; i < ROWS; i++)
                CHECK(pnet_field_get(&d.fields[k], i) == pnet_field_get(&c.fields[k], i));
        }
        check_values(&d, "new 7", PNET_U64, 300);
        size_t at = d.las->head_size, past = at + ROWS * (record + 42);
        for (size_t row = 0; row < ROWS; row++)
            CHECK(memcmp(b.data + at + row * (record + 42), l.data + 375 + size + row * record,
                      record) == 0);
        CHECK(b.size == past + TAIL && memcmp(b.data + past, l.data + end, TAIL) == 0);
        CHECK(pnet_las_load(b.data, LAS_EVLR_OFFSET, 8) == past + 20);
        CHECK(pnet_las_load(b.data, LAS_WAVES_OFFSET, 8) == past);
        CHECK(
            memcmp(b.data + 375, vlrs, size) == 0 && pnet_las_load(b.data, LAS_VLR_COUNT, 4) == 2);
        /* what the header says of the points stays: it is as it was before */
        CHECK(memcmp(b.data + LAS_COUNT32, l.data + LAS_COUNT32, 120) == 0);
        check_same(&d, b.data, b.size, "added fields, format", format);
        pnet_cloud_free(&c);
        pnet_cloud_free(&d);
        pnet_bytes_free(&b);
    }
}

/* The name of description i of the first record of descriptions, behind the header. */
static const char *described(const struct pnet_bytes *b, size_t i)
{
    return (const char *)b->data + 375 + 54 + 192 * i + 4;
}

/* A field that was renamed keeps its place, and its description the rest; one that was replaced, or removed, loses it. */
static void check_renamed(void)
{
    enum { SIZE = 54 + 3 * 192 };
    static struct las l;
    static const uint8_t types[] = {6, 9, 3};
    static const char *const names[] = {"class", "score", "other"};
    uint8_t vlr[SIZE] = {0};
    struct pnet_cloud c, d;
    struct pnet_bytes b = {.data = NULL};
    struct pnet_error e = {.message = ""};
    memcpy(vlr + 2, "LASF_Spec", 9);
    vlr[18] = 4;
    pnet_las_store(vlr, 20, SIZE - 54, 2);
    for (int i = 0; i < 3; i++) {
        vlr[54 + 192 * i + 2] = types[i];
        strcpy((char *)vlr + 54 + 192 * i + 4, names[i]);
        strcpy((char *)vlr + 54 + 192 * i + 160, "described");
    }
    make(&l, 4, 7, vlr, SIZE, 4 + 4 + 2);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t k = 0; k < 10; k++) l.data[375 + SIZE + 46 * row + 36 + k] = (uint8_t)(row + k);
    CHECK(read_las(&l, &c, &e) == PNET_OK);
    struct pnet_field *f = pnet_cloud_field(&c, "class");
    free(f->name);
    f->name = strdup("input_class");
    add_values(&c, "class", PNET_I32, -1);
    add_values(&c, "score", PNET_F32, 0.5); /* in the place of the other one */
    CHECKF(write_las(&c, &b, &e), "%s", e.message);
    CHECK(pnet_las_load(b.data, LAS_RECORD_LENGTH, 2) == 36 + 4 + 2 + 4 + 4);
    CHECK_STR(described(&b, 0), "input_class");
    CHECK_STR(described(&b, 0) + 156, "described");
    CHECK_STR(described(&b, 1), "other");
    CHECK_STR(described(&b, 2), "score");
    CHECK_STR(described(&b, 3), "class");
    CHECK(described(&b, 2)[156] == '\0');
    CHECKF(read_bytes(b.data, b.size, &d, &e) == PNET_OK, "%s", e.message);
    check_values(&d, "class", PNET_I32, -1);
    check_values(&d, "score", PNET_F32, 0.5);
    for (int64_t i = 0; i < ROWS; i++)
        CHECK(pnet_field_get(pnet_cloud_field(&d, "input_class"), i) ==
              pnet_field_get(pnet_cloud_field(&c, "input_class"), i));
    pnet_cloud_free(&d);
    pnet_bytes_free(&b);
    c.field_count -= 1; /* the last one is "class" */
    free(c.fields[c.field_count].name);
    free(c.fields[c.field_count].data);
    CHECK(write_las(&c, &b, &e) && pnet_las_load(b.data, LAS_RECORD_LENGTH, 2) == 36 + 4 + 2 + 4);
    pnet_bytes_free(&b);
    pnet_cloud_free(&c);
}

/* Of several values under one description one was renamed: each gets a description of its own. */
static void check_array(void)
{
    static struct las l;
    uint8_t vlr[54 + 192] = {0};
    struct pnet_cloud c, d;
    struct pnet_bytes b = {.data = NULL};
    struct pnet_error e = {.message = ""};
    memcpy(vlr + 2, "LASF_Spec", 9);
    vlr[18] = 4;
    vlr[20] = 192;
    vlr[54 + 2] = 24; /* three int16 */
    strcpy((char *)vlr + 54 + 4, "flow");
    make(&l, 2, 1, vlr, sizeof vlr, 6);
    for (size_t i = 0; i < 6; i++) l.data[227 + sizeof vlr + 28 + i] = (uint8_t)i;
    CHECK(read_las(&l, &c, &e) == PNET_OK);
    struct pnet_field *f = pnet_cloud_field(&c, "flow_1");
    free(f->name);
    f->name = strdup("speed");
    CHECKF(write_las(&c, &b, &e), "%s", e.message);
    CHECK(read_bytes(b.data, b.size, &d, &e) == PNET_OK && d.las->layout.extras == 3);
    static const char *const names[] = {"flow_0", "speed", "flow_2"};
    for (int i = 0; i < 3; i++) {
        CHECK_STR(d.fields[d.field_count - 3 + i].name, names[i]);
        CHECK(pnet_field_get(pnet_cloud_field(&d, names[i]), 0) == 0x100 + 0x202 * i);
    }
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
    pnet_bytes_free(&b);
}

/* Colours raise the point format to one that has them, and byte colours reach as far as those of 16 bits. */
static void check_raised(void)
{
    static const int to[11] = {2, 3, 2, 3, 5, 5, 7, 7, 8, 10, 10};
    static const char *const channels[] = {"red", "green", "blue"};
    for (int format = 0; format <= 10; format++) {
        static struct las l;
        struct pnet_cloud c, d;
        struct pnet_bytes b = {.data = NULL};
        struct pnet_error e = {.message = ""};
        make(&l, format < 2 ? 0 : format < 6 ? 3 : 4, format, NULL, 0, 0);
        CHECK(read_las(&l, &c, &e) == PNET_OK);
        for (int k = 0; k < 3; k++) add_values(&c, channels[k], PNET_U8, 253 - k);
        CHECKF(write_las(&c, &b, &e), "%s", e.message);
        CHECKF(b.data[LAS_POINT_FORMAT] == to[format], "format %d: %d", format,
            b.data[LAS_POINT_FORMAT]);
        CHECK(b.data[LAS_VERSION + 1] == (format < 2 ? 2 : format < 6 ? 3 : 4));
        CHECKF(read_bytes(b.data, b.size, &d, &e) == PNET_OK, "%s", e.message);
        CHECK(d.las->layout.record == sizes[to[format]] && d.las->layout.extras == 0);
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < ROWS; i++)
                CHECK(pnet_field_get(pnet_cloud_field(&d, channels[k]), i) == 257 * (253 - k + i));
        for (int k = 0; k < c.field_count; k++)
            for (int i = 0; i < ROWS && pnet_field_get(&c.fields[k], 0) != 253; i++)
                if (c.fields[k].type != PNET_U8 || c.fields[k].part)
                    CHECK(pnet_field_get(pnet_cloud_field(&d, c.fields[k].name), i) ==
                          pnet_field_get(&c.fields[k], i));
        CHECK(
            memcmp(c.exact ? c.exact : (void *)c.xyz, d.exact ? d.exact : (void *)d.xyz, 36) == 0);
        pnet_cloud_free(&c);
        pnet_cloud_free(&d);
        pnet_bytes_free(&b);
    }
}

/* Points whose coordinates are no numbers keep their record. */
static void check_dropped(void)
{
    static struct las l;
    struct pnet_cloud c;
    struct pnet_bytes b = {.data = NULL};
    struct pnet_error e;
    make(&l, 4, 7, NULL, 0, 0);
    set_double(&l, 131, 1e300);
    set_number(&l, 375, 0, 4); /* of the first point alone x is finite */
    set_double(&l, 155, 5);
    CHECK(read_las(&l, &c, &e) == PNET_OK && c.rows == 1 && c.file_rows == ROWS);
    CHECKF(write_las(&c, &b, &e), "%s", e.message); /* the row that is there */
    CHECK(b.size == l.size - 2 * 36 && memcmp(b.data + 375, l.data + 375, 36) == 0);
    CHECK(pnet_las_load(b.data, LAS_COUNT64, 8) == 1 && pnet_las_load(b.data, LAS_COUNT32, 4) == 0);
    pnet_bytes_free(&b);
    CHECK(pnet_cloud_restore(&c, &e) == PNET_OK && c.rows == ROWS);
    check_same(&c, l.data, l.size, "dropped points", 0);
    uint8_t *class_ = pnet_cloud_field(&c, "classification")->data;
    class_[2] = 9;
    l.data[375 + 2 * 36 + 16] = 9;
    check_same(&c, l.data, l.size, "class of a dropped point", 0);
    c.file_rows++;
    CHECK(!write_las(&c, &b, &e) && e.status == PNET_USAGE);
    c.file_rows--;
    pnet_cloud_free(&c);
}

/* Coordinates that were computed are rounded to the scale of the file, and the box is theirs; those beyond are refused. */
static void check_moved(void)
{
    static const double scale[] = {0.001, 0.01, 0.5};
    static struct las l;
    struct pnet_cloud c, d;
    struct pnet_bytes b = {.data = NULL};
    struct pnet_error e = {.message = ""};
    double pose[16] = {1, 0, 0, 0.1234567, 0, 1, 0, 20.00321, 0, 0, 1, -3.3, 0, 0, 0, 1};
    make(&l, 4, 7, NULL, 0, 0);
    CHECK(read_las(&l, &c, &e) == PNET_OK);
    CHECK(pnet_cloud_transform(&c, pose, c.offset, &e) == PNET_OK);
    CHECKF(write_las(&c, &b, &e), "%s", e.message);
    CHECK(memcmp(b.data, l.data, LAS_COUNT32) == 0);
    CHECK(memcmp(b.data + LAS_SCALES, l.data + LAS_SCALES, LAS_BOX - LAS_SCALES) == 0);
    CHECK(read_bytes(b.data, b.size, &d, &e) == PNET_OK);
    for (int a = 0; a < 3; a++) {
        double low = INFINITY, high = -INFINITY;
        for (int row = 0; row < ROWS; row++) {
            double v = pnet_cloud_at(&d, row, a);
            CHECK(fabs(v - pnet_cloud_at(&c, row, a)) <= 0.5001 * scale[a]);
            low = fmin(low, v);
            high = fmax(high, v);
        }
        CHECK(pnet_las_load_double(b.data, LAS_BOX + 16 * (uint64_t)a) == high);
        CHECK(pnet_las_load_double(b.data, LAS_BOX + 16 * (uint64_t)a + 8) == low);
    }
    /* the first, second and third returns of las.h: 9, 10, 11 */
    for (uint64_t r = 0; r < 15; r++)
        CHECK(pnet_las_load(b.data, LAS_RETURNS64 + 8 * r, 8) == (r >= 8 && r <= 10));
    CHECK(pnet_las_load(b.data, LAS_COUNT32, 4) == 0 &&
          pnet_las_load(b.data, LAS_COUNT64, 8) == ROWS);
    pnet_cloud_free(&d);
    pnet_bytes_free(&b);
    pose[3] = 3e6;
    CHECK(pnet_cloud_transform(&c, pose, c.offset, &e) == PNET_OK);
    CHECK(!write_las(&c, &b, &e) && e.status == PNET_USAGE);
    CHECKF(strstr(e.message, "out.las: row 0: x is 3500001.") &&
               strstr(e.message, "from -1647483.648 to 2647483.647"),
        "%s", e.message);
    pnet_cloud_free(&c);
}

static void make_plain(struct pnet_cloud *c, int64_t rows, const double *xyz)
{
    *c = (struct pnet_cloud){.rows = rows, .xyz_type = PNET_F64};
    CHECK(pnet_cloud_place(c, rows, xyz, NULL) == PNET_OK);
}

/* A cloud of another format is LAS 1.4. Fields with the names of LAS go there if they fit, and are extra dimensions if not. */
static void check_new(void)
{
    static const double xyz[] = {
        154000.1, 463000.25, -1.5, 154010.7, 463000, 2, 154020, 463003, 0.123456789};
    static const char *const channels[] = {"red", "green", "blue"};
    struct pnet_cloud c, d;
    struct pnet_bytes b = {.data = NULL};
    struct pnet_error e = {.message = ""};
    make_plain(&c, 3, xyz);
    for (int k = 0; k < 3; k++) add_values(&c, channels[k], PNET_U8, k);
    add_values(&c, "intensity", PNET_F32, 0.25); /* fractions */
    add_values(&c, "classification", PNET_I32, 253);
    add_values(&c, "scan_angle", PNET_F64, 1.2);
    add_values(&c, "gps_time", PNET_I64, 0x1p53 - 5);
    add_values(&c, "user_data", PNET_I16, 254); /* 256 is too much */
    add_values(&c, "label", PNET_I32, -1);
    CHECKF(write_las(&c, &b, &e), "%s", e.message);
    CHECK(b.data[LAS_VERSION + 1] == 4 && b.data[LAS_POINT_FORMAT] == 7);
    CHECKF(read_bytes(b.data, b.size, &d, &e) == PNET_OK, "%s", e.message);
    for (int i = 0; i < 9; i++) CHECK(fabs(pnet_cloud_at(&d, i / 3, i % 3) - xyz[i]) <= 5.01e-9);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++)
            CHECK(pnet_field_get(pnet_cloud_field(&d, channels[k]), i) == 257 * (k + i));
    check_values(&d, "intensity_2", PNET_F32, 0.25);
    check_values(&d, "classification", PNET_U8, 253);
    check_values(&d, "gps_time", PNET_F64, 0x1p53 - 5);
    check_values(&d, "user_data_2", PNET_I16, 254);
    check_values(&d, "label", PNET_I32, -1);
    for (int i = 0; i < 3; i++) {
        CHECK(pnet_field_get(pnet_cloud_field(&d, "intensity"), i) == 0);
        CHECK(fabs(pnet_field_get(pnet_cloud_field(&d, "scan_angle"), i) - (1.2 + i)) <= 0.0031);
    }
    check_same(&d, b.data, b.size, "new file", 0);
    pnet_cloud_free(&d);
    pnet_bytes_free(&b);
    add_values(&c, "nir", PNET_U16, 65533);
    CHECK(write_las(&c, &b, &e) && b.data[LAS_POINT_FORMAT] == 8);
    pnet_bytes_free(&b);
    pnet_cloud_free(&c);
    make_plain(&c, 0, NULL);
    CHECK(write_las(&c, &b, &e) && b.data[LAS_POINT_FORMAT] == 6 && b.size == 375);
    CHECK(read_bytes(b.data, b.size, &d, &e) == PNET_OK && d.rows == 0);
    pnet_cloud_free(&d);
    pnet_bytes_free(&b);
    pnet_cloud_free(&c);
}

/* What LAS cannot hold is refused with its row. */
static void check_refused(void)
{
    static const double far[] = {0, 0, 0, 5e5, 0, 0}, wide[] = {0, 0, 0, 4e5, 0, 0};
    static const char name[] = "a name of more than thirty-two bytes";
    struct pnet_cloud c, d;
    struct pnet_bytes b = {.data = NULL};
    struct pnet_error e;
    make_plain(&c, 2, far);
    CHECK(!write_las(&c, &b, &e) && e.status == PNET_USAGE);
    CHECKF(strstr(e.message, "x goes from 0 to 500000: LAS would be off by up to 0.0005 m"), "%s",
        e.message);
    pnet_cloud_free(&c);
    make_plain(&c, 2, wide);
    CHECK(write_las(&c, &b, &e));
    CHECK(read_bytes(b.data, b.size, &d, &e) == PNET_OK && pnet_cloud_at(&d, 1, 0) == 4e5);
    pnet_cloud_free(&d);
    pnet_bytes_free(&b);
    c.metres[0] = 1000; /* 400 m in a file of kilometres: as fine as before, in metres */
    CHECK(write_las(&c, &b, &e));
    CHECK(pnet_las_load_double(b.data, LAS_SCALES) == 1e-7);
    pnet_bytes_free(&b);
    c.metres[0] = 0;
    add_values(&c, name, PNET_U8, 1);
    CHECK(!write_las(&c, &b, &e) && e.status == PNET_USAGE && strstr(e.message, name));
    pnet_cloud_free(&c);
    static const double gap[] = {0, 0, 0, 1, NAN, 1, 2, 2, 2};
    make_plain(&c, 3, gap);
    CHECK(pnet_cloud_restore(&c, &e) == PNET_OK && c.rows == 3);
    CHECK(!write_las(&c, &b, &e) && e.status == PNET_USAGE);
    CHECKF(strstr(e.message, "out.las: row 1 has no x"), "%s", e.message);
    pnet_cloud_free(&c);
}

/* What is refused leaves no file, and what is not is the file. */
static void check_files(void)
{
    static struct las l;
    const char *folder = files_folder(), *path = files_path(folder, "a.las");
    struct pnet_cloud c;
    struct pnet_bytes b;
    struct pnet_error e;
    make(&l, 2, 3, NULL, 0, 0);
    CHECK(read_las(&l, &c, &e) == PNET_OK && pnet_cloud_write(path, &c, &e) == PNET_OK);
    CHECK(pnet_bytes_read(path, &b, &e) == PNET_OK);
    CHECK(b.size == l.size && memcmp(b.data, l.data, l.size) == 0);
    pnet_bytes_free(&b);
    remove(path);
    ((uint8_t *)pnet_cloud_field(&c, "classification")->data)[0] = 32;
    CHECK(pnet_cloud_write(path, &c, &e) == PNET_USAGE && strstr(e.message, path));
    CHECK(rmdir(folder) == 0);
    pnet_cloud_free(&c);
}

int main(void)
{
    check_identity();
    check_integers();
    check_laz();
    check_copc();
    check_classification();
    check_added();
    check_renamed();
    check_array();
    check_raised();
    check_dropped();
    check_moved();
    check_new();
    check_refused();
    check_files();
    return check_end();
}
