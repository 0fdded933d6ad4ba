/* LAZ files that another program wrote, and what is wrong with some. */
#include "tests/fuzz/cloud.h"
#include "tests/io/files.h"
#include "tests/io/laz_files.h"

#include "runtime/io/format.h"
#include "runtime/io/laz.h"

#include <inttypes.h>

enum { POINT_OFFSET = 96, VLR_COUNT = 100, POINT_FORMAT = 104, LEGACY_COUNT = 107, COUNT64 = 247 };
static const size_t sizes[] = {20, 28, 26, 34, 57, 63, 30, 36, 38};

struct file {
    uint8_t data[1 << 14];
    size_t size;
};

static uint64_t number(const struct file *f, size_t at, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, f->data + at, bytes);
    return v;
}

static void set_number(struct file *f, size_t at, uint64_t v, size_t bytes)
{
    memcpy(f->data + at, &v, bytes);
}

static const struct laz_file *load(const char *name, struct file *f)
{
    const struct laz_file *l = laz_files;
    while (strcmp(l->name, name) != 0) l++;
    f->size = strlen(l->digits) / 2;
    CHECK(f->size <= sizeof f->data);
    for (size_t i = 0; i < f->size; i++) {
        unsigned byte = 0;
        sscanf(l->digits + 2 * i, "%2x", &byte);
        f->data[i] = (uint8_t)byte;
    }
    return l;
}

/* Where the body of the record "laszip encoded" is: the last one before the points. */
static size_t find_vlr(const struct file *f)
{
    size_t at = number(f, 94, 2), end = number(f, POINT_OFFSET, 4);
    while (at + 54 + number(f, at + 20, 2) < end) at += 54 + number(f, at + 20, 2);
    CHECK(memcmp(f->data + at + 2, "laszip encoded", 15) == 0);
    return at + 54;
}

static enum pnet_status read_laz(const struct file *f, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_bytes b = bytes_of(f->data, f->size);
    *c = (struct pnet_cloud){.rows = 0};
    return pnet_las_read(&b, "a.laz", c, e);
}

static enum pnet_status unpack(
    const struct file *f, const struct laz_file *l, uint8_t **records, struct pnet_error *e)
{
    struct pnet_bytes b = bytes_of(f->data, f->size);
    struct pnet_file_parts parts = pnet_file_parts_of(&b, "a.laz");
    struct pnet_laz z = {.file = &parts, .rows = (uint64_t)l->rows};
    z.format = f->data[POINT_FORMAT] & 0x3f;
    z.record = number(f, 105, 2);
    z.least = sizes[z.format];
    z.points_at = number(f, POINT_OFFSET, 4);
    z.vlr_at = find_vlr(f);
    z.vlr_size = z.points_at - z.vlr_at;
    return pnet_laz_unpack(&z, records, e);
}

/* FNV-1a of 64 bits. */
static uint64_t hash_of(const uint8_t *data, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) h = (h ^ data[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* The cloud of the file is that of the plain file with the same records. */
static void check_cloud(const struct file *f, const uint8_t *records, size_t size)
{
    struct pnet_cloud c, d;
    struct pnet_error e = {.message = ""};
    size_t at = number(f, POINT_OFFSET, 4);
    static uint8_t data[1 << 21];
    CHECK(at + size <= sizeof data);
    memcpy(data, f->data, at);
    memcpy(data + at, records, size);
    data[POINT_FORMAT] &= 0x3f;
    struct pnet_bytes b = bytes_of(data, at + size);
    d = (struct pnet_cloud){.rows = 0};
    CHECKF(pnet_las_read(&b, "a.las", &d, &e) == PNET_OK, "%s", e.message);
    CHECKF(read_laz(f, &c, &e) == PNET_OK, "%s", e.message);
    CHECK(c.rows == d.rows && c.field_count == d.field_count);
    for (int k = 0; k < c.field_count && c.rows == d.rows; k++) {
        CHECK(strcmp(c.fields[k].name, d.fields[k].name) == 0);
        for (int64_t i = 0; i < c.rows; i++) {
            double u = pnet_field_get(&c.fields[k], i), v = pnet_field_get(&d.fields[k], i);
            CHECK(memcmp(&u, &v, sizeof u) == 0);
        }
    }
    if (c.rows) CHECK(memcmp(c.xyz, d.xyz, (size_t)c.rows * 3 * sizeof *c.xyz) == 0);
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
}

static void check_file(const struct laz_file *l)
{
    static struct file f;
    struct pnet_error e = {.message = ""};
    uint8_t *records;
    size_t size = (size_t)l->rows * (size_t)l->record;
    load(l->name, &f);
    CHECKF(unpack(&f, l, &records, &e) == PNET_OK, "%s: %s", l->name, e.message);
    if (!records) return;
    CHECKF(hash_of(records, size) == l->hash, "%s: other records", l->name);
    check_cloud(&f, records, size);
    free(records);
    if (number(&f, find_vlr(&f), 2) == 1) return; /* no chunks */
    /* The place of the table at the end of the file: the writer could not go back. */
    size_t at = number(&f, POINT_OFFSET, 4);
    set_number(&f, f.size, number(&f, at, 8), 8);
    set_number(&f, at, UINT64_MAX, 8);
    f.size += 8;
    CHECKF(unpack(&f, l, &records, &e) == PNET_OK, "%s: %s", l->name, e.message);
    CHECK(records && hash_of(records, size) == l->hash);
    free(records);
}

/* Cut at each byte, and with each byte changed: a cloud or an error, nothing else. */
static void check_damage(const struct laz_file *l)
{
    static struct file f;
    const struct fuzz_reader r = {"a.laz", pnet_las_read};
    int good = 0, bad = 0;
    load(l->name, &f);
    for (size_t size = 0; size < f.size; size++) bad += !fuzz_read(r, f.data, size);
    CHECKF(!l->rows || bad > (int)f.size - 16, "%s: %d of %zu cuts refused", l->name, bad, f.size);
    for (size_t i = 0; i < f.size; i++) {
        uint8_t flip = (uint8_t)(i & 1 ? 0xff : 1 << (i / 2 % 8));
        f.data[i] ^= flip;
        good += fuzz_read(r, f.data, f.size);
        f.data[i] ^= flip;
    }
    CHECKF(good > 0, "%s: every change is refused", l->name);
}

/* Points beyond the number in the header are not read. */
static void check_fewer(const char *name, size_t at, int rows)
{
    static struct file f;
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    load(name, &f);
    set_number(&f, at, (uint64_t)rows, 4);
    CHECKF(read_laz(&f, &c, &e) == PNET_OK && c.rows == rows, "%s: %s", name, e.message);
    pnet_cloud_free(&c);
}

/* A header that counts fewer points than the chunks hold is told: exactly where the last chunk says its number, else that it
   has bytes that no point needs. */
static void check_doubt(const char *name, size_t at, int rows, const char *follow)
{
    static struct file f;
    char text[120], want[120] = "";
    load(name, &f);
    if (rows >= 0) set_number(&f, at, (uint64_t)rows, 4);
    if (*follow)
        snprintf(want, sizeof want,
            "the header counts %d points, %s or more compressed points follow", rows, follow);
    struct pnet_bytes b = bytes_of(f.data, f.size);
    struct pnet_file_parts parts = pnet_file_parts_of(&b, "a.laz");
    CHECK(pnet_las_doubt(&parts, 0, text, NULL) == PNET_OK);
    CHECKF(strcmp(text, want) == 0, "%s with %d: \"%s\"", name, rows, text);
}

static void check_doubts(void)
{
    for (size_t i = 0; i < sizeof laz_files / sizeof *laz_files; i++)
        check_doubt(laz_files[i].name, 0, -1, "");
    /* chunks of 50, 50 and 10 points */
    for (int rows = 101; rows < 110; rows++) check_doubt("format1", LEGACY_COUNT, rows, "1");
    check_doubt("format1", LEGACY_COUNT, 110, "");
    check_doubt("format1", LEGACY_COUNT, 100, "1");
    check_doubt("format1", LEGACY_COUNT, 7, "94");
    check_doubt("format7", COUNT64, 109, "1");
    check_doubt("format7", COUNT64, 3, "107");
    check_doubt("variable1", LEGACY_COUNT, 59, "1");
    check_doubt("variable8", COUNT64, 1, "59");
    check_doubt("old1", LEGACY_COUNT, 1, "");
}

static void check_colours(void)
{
    static struct file f;
    struct pnet_cloud c = {.rows = 0};
    load("format7", &f);
    struct pnet_bytes b = bytes_of(f.data, POINT_FORMAT + 1);
    CHECK(pnet_las_peek(&b, "a.laz", &c) && pnet_cloud_field(&c, "red"));
    pnet_cloud_free(&c);
}

static void check_bad(
    const char *name, size_t at, uint64_t value, size_t bytes, const char *place, const char *words)
{
    static struct file f;
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    load(name, &f);
    set_number(&f, at, value, bytes);
    CHECKF(read_laz(&f, &c, &e) == PNET_BAD_DATA, "%s: byte %zu = %" PRIu64, name, at, value);
    CHECKF(strncmp(e.message, place, strlen(place)) == 0 && strstr(e.message, words),
        "\"%s\", not \"%s%s\"", e.message, place, words);
    CHECK(c.rows == 0 && !c.fields);
}

static void check_refused(void)
{
    static struct file f;
    load("format1", &f);
    size_t vlr = find_vlr(&f), points = number(&f, POINT_OFFSET, 4), table = number(&f, points, 8);
    check_bad("format1", POINT_FORMAT, 0xc1, 1, "a.laz: byte 104: ", "an old way of LASzip");
    check_bad("format1", vlr - 52, 'L', 1, "a.laz: byte 104: ", "no record \"laszip encoded\"");
    check_bad("format1", VLR_COUNT, 0, 4, "a.laz: byte 104: ", "no record \"laszip encoded\"");
    check_bad(
        "format1", vlr, 3, 2, "a.laz: ", "expected compressor 1 or 2 for point format 1, found 3");
    check_bad("format1", vlr, 0, 2, "a.laz: ", "found 0");
    check_bad("format1", vlr + 2, 1, 2, "a.laz: ", "expected coder 0, found 1");
    check_bad("format1", vlr + 12, 0, 4, "a.laz: ", "chunks of 0 points");
    check_bad(
        "format1", vlr + 32, 1, 2, "a.laz: ", "expected 2 compressed items for point format 1");
    check_bad(
        "format1", vlr + 34, 7, 2, "a.laz: ", "item 0: expected type 6 of 20 bytes, found type 7");
    check_bad("format1", vlr + 36, 21, 2, "a.laz: ", "found type 6 of 21");
    check_bad("format1", vlr + 38, 3, 2, "a.laz: ", "item 0: expected version 1 or 2, found 3");
    check_bad("format1", vlr + 38, 1, 2, "a.laz: ", "item 1: expected version 1 or 2, found 2");
    check_bad("format1", LEGACY_COUNT, UINT32_MAX, 4, "a.laz: byte ", "more than a file of");
    check_bad("format1", LEGACY_COUNT, 151, 4, "a.laz: byte ",
        "compressed chunk 2 (50 points) is damaged");
    check_bad("format1", LEGACY_COUNT, 0, 4, "a.laz: byte ", "says 0 points, but ");
    check_bad("format1", points, points, 8, "a.laz: byte ", "their writer was interrupted");
    check_bad(
        "format1", points, f.size - 7, 8, "a.laz: byte ", "a table of compressed points at byte");
    check_bad("format1", points, UINT64_MAX - 1, 8, "a.laz: byte ", "a table of compressed points");
    check_bad("format1", table, 1, 4, "a.laz: byte ", "table of version 0");
    check_bad(
        "format1", table + 4, 2, 4, "a.laz: byte ", "end after 100 points, the header says 110");
    check_bad("format1", table + 4, UINT32_MAX, 4, "a.laz: byte ", "a table of 4294967295 chunks");
    check_bad("format1", table + 8, UINT32_MAX, 4, "a.laz: byte ", "gives chunk ");
    check_bad("format7", COUNT64, 131, 8, "a.laz: byte ", "it has fewer points");
    check_bad("format7", COUNT64, UINT64_MAX, 8, "a.laz: byte ", "more than a file of");
    load("format7", &f);
    points = number(&f, POINT_OFFSET, 4);
    check_bad("format7", points + 8 + 36, 49, 4, "a.laz: byte ", "it has fewer points");
    check_bad("format7", points + 8 + 40, UINT32_MAX, 4, "a.laz: byte ", "sizes do not add up");
    check_bad("format7", find_vlr(&f), 2, 2, "a.laz: ", "expected compressor 3 for point format 7");
    struct pnet_cloud c;
    struct pnet_error e;
    f.data[POINT_FORMAT] = 0x84;
    set_number(&f, 105, 57, 2);
    CHECK(read_laz(&f, &c, &e) == PNET_BAD_DATA && strstr(e.message, "waveforms (format 4)"));
}

int main(void)
{
    for (size_t i = 0; i < sizeof laz_files / sizeof *laz_files; i++) {
        check_file(&laz_files[i]);
        if (laz_files[i].rows < 1000) check_damage(&laz_files[i]);
    }
    for (int rows = 1; rows < 110; rows += 12) {
        check_fewer("format1", LEGACY_COUNT, rows);
        check_fewer("format7", COUNT64, rows);
    }
    check_doubts();
    check_colours();
    check_refused();
    return check_end();
}
