/* Files put together by hand: what each format may look like, and what is wrong with bad ones. */
#include "runtime/io/format.h"
#include "runtime/io/kitti.h"
#include "tests/io/files.h"

#include <math.h>

typedef enum pnet_status reader(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);

/* Reads text that must be good: points as listed, one more field at most. */
static void check_good(reader *read, const char *path, const char *text, size_t size, int64_t rows,
    const double *xyz, const char *field, const double *values)
{
    struct pnet_bytes b = bytes_of(text, size);
    struct pnet_cloud c = {.rows = 0};
    struct pnet_error e = {.message = ""};
    CHECKF(read(&b, path, &c, &e) == PNET_OK, "%s: %s", path, e.message);
    CHECKF(c.rows == rows, "%s: %d rows, not %d", path, (int)c.rows, (int)rows);
    for (int64_t i = 0; i < 3 * rows && c.rows == rows; i++)
        CHECKF(c.offset[i % 3] + (double)c.xyz[i] == xyz[i], "%s: value %d is %g, not %g", path,
            (int)i, c.offset[i % 3] + (double)c.xyz[i], xyz[i]);
    struct pnet_field *f = field ? pnet_cloud_field(&c, field) : NULL;
    CHECKF(!field || f, "%s: no field %s", path, field ? field : "");
    for (int64_t i = 0; f && i < rows && c.rows == rows; i++) {
        double got = pnet_field_get(f, i);
        CHECKF(isnan(values[i]) ? isnan(got) : got == values[i], "%s: %s[%d] is %g", path, field,
            (int)i, got);
    }
    pnet_cloud_free(&c);
}
#define GOOD(read, path, text, rows, xyz, field, values)                                           \
    check_good(read, path, text, sizeof(text) - 1, rows, xyz, field, values)

/* Reads text that must be refused, with these words in the message. */
static void check_bad(reader *read, const char *path, const char *text, size_t size,
    const char *place, const char *words)
{
    struct pnet_bytes b = bytes_of(text, size);
    struct pnet_cloud c = {.rows = 0};
    struct pnet_error e = {.message = ""};
    CHECKF(read(&b, path, &c, &e) == PNET_BAD_DATA && e.status == PNET_BAD_DATA, "%s: \"%.60s\"",
        path, text);
    CHECKF(
        strncmp(e.message, place, strlen(place)) == 0, "\"%s\", expected \"%s\"", e.message, place);
    CHECKF(strstr(e.message, words) != NULL, "\"%s\", expected \"%s\"", e.message, words);
    CHECK(c.rows == 0 && !c.xyz && !c.fields);
}
#define BAD(read, path, text, place, words)                                                        \
    check_bad(read, path, text, sizeof(text) - 1, place, words)

static const double two[] = {1, 2, 3, -4, 5.5, 6};
static const double tag[] = {7, 200};

#define PLY_HEAD(encoding, end)                                                                    \
    "ply" end "format " encoding " 1.0" end "comment made by hand" end "obj_info none" end         \
    "element vertex 2" end "property float x" end "property float y" end "property float z" end    \
    "property uchar tag" end "end_header" end
#define LITTLE_ROWS "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\x07\0\0\x80\xc0\0\0\xb0\x40\0\0\xc0\x40\xc8"
#define BIG_ROWS "\x3f\x80\0\0\x40\0\0\0\x40\x40\0\0\x07\xc0\x80\0\0\x40\xb0\0\0\x40\xc0\0\0\xc8"

static void check_ply(void)
{
    reader *r = pnet_ply_read;
    GOOD(r, "a.ply", PLY_HEAD("ascii", "\n") "1 2 3 7\n-4 5.5 6 200\n", 2, two, "tag", tag);
    GOOD(r, "a.ply", PLY_HEAD("ascii", "\n") "\n 1\t2 3  7 \n\n-4 5.5 6 200", 2, two, "tag", tag);
    GOOD(r, "a.ply", PLY_HEAD("ascii", "\r\n") "1 2 3 7\r\n-4 5.5 6 200\r\n", 2, two, "tag", tag);
    GOOD(r, "a.ply", PLY_HEAD("ascii", "\r") "1 2 3 7\r-4 5.5 6 200\r", 2, two, "tag", tag);
    GOOD(r, "a.ply", PLY_HEAD("binary_little_endian", "\n") LITTLE_ROWS, 2, two, "tag", tag);
    GOOD(r, "a.ply", PLY_HEAD("binary_little_endian", "\r\n") LITTLE_ROWS, 2, two, "tag", tag);
    GOOD(r, "a.ply", PLY_HEAD("binary_little_endian", "\r") LITTLE_ROWS, 2, two, "tag", tag);
    GOOD(r, "a.ply", PLY_HEAD("binary_big_endian", "\n") BIG_ROWS, 2, two, "tag", tag);
    /* What follows the vertices is left alone. */
    GOOD(r, "a.ply", PLY_HEAD("binary_big_endian", "\n") BIG_ROWS "rest", 2, two, "tag", tag);

#define ODD_HEAD(encoding)                                                                         \
    "ply\nformat " encoding " 1.0\nelement nothing 99999999999\nelement face 2\n"                  \
    "property list uchar int16 corner\nproperty uint8 flag\nelement pair 1\nproperty short a\n"    \
    "element vertex 2\nproperty int8 Z\nproperty list uint16 double more\nproperty int X\n"        \
    "property double Y\nend_header\n"
    GOOD(r, "a.ply", ODD_HEAD("ascii") "3 1 2 3 9\n0 9\n77\n3 2 0.5 nan 1 2\n6 0 -4 5.5\n", 2, two,
        NULL, NULL);
    GOOD(r, "a.ply",
        ODD_HEAD("binary_big_endian") "\3\0\1\0\2\0\3\x09\0\x09\0M\3\0\1........"
                                      "\0\0\0\1\x40\0\0\0\0\0\0\0"
                                      "\6\0\0\xff\xff\xff\xfc\x40\x16\0\0\0\0\0\0",
        2, two, NULL, NULL);

    BAD(r, "a.ply", "", "a.ply:1: ", "expected \"ply\"");
    BAD(r, "a.ply", "plyx\n", "a.ply:1: ", "expected \"ply\"");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\n", "a.ply:2: ", "expected end_header");
    BAD(r, "a.ply", "ply\nformat ascii 2.0\n", "a.ply:2: ", "expected version 1.0");
    BAD(r, "a.ply", "ply\nformat binary 1.0\n", "a.ply:2: ", "found \"binary\"");
    BAD(r, "a.ply", "ply\nelement vertex 2\n", "a.ply:2: ", "format");
    BAD(r, "a.ply", "ply\nend_header\n", "a.ply:2: ", "format");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\nelement vertex -1\n", "a.ply:3: ", "NAME COUNT");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\nelement vertex 99999999999999999999\n",
        "a.ply:3: ", "COUNT");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\nproperty int x\n",
        "a.ply:3: ", "before the first element");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty half x\n",
        "a.ply:4: ", "\"half\"");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty list float int x\n",
        "a.ply:4: ", "integer");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty int\n", "a.ply:4: ", "name");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\nelemnt vertex 1\n", "a.ply:3: ", "\"elemnt\"");
    BAD(r, "a.ply", "ply\nformat ascii 1.0\nelement face 1\nend_header\n",
        "a.ply:4: ", "\"vertex\"");
    BAD(r, "a.ply",
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty int x\nproperty int y\nend_header\n1 "
        "2\n",
        "a.ply:6: ", "no z");
    BAD(r, "a.ply",
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty int x\nproperty int y\nproperty int X\n"
        "property int z\nend_header\n1 2 3 4\n",
        "a.ply:8: ", "x is there twice");
    BAD(r, "a.ply", PLY_HEAD("ascii", "\n") "1 2 3\n-4 5.5 6 200\n", "a.ply:11: ", "found 3");
    BAD(r, "a.ply", PLY_HEAD("ascii", "\n") "1 2 3 7 8\n-4 5.5 6 200\n", "a.ply:11: ", "\"8\"");
    BAD(r, "a.ply", PLY_HEAD("ascii", "\n") "1 2 3 7\n-4 5.5 6 256\n", "a.ply:12: ", "uint8");
    BAD(r, "a.ply", PLY_HEAD("ascii", "\n") "1 2 3 7\n-4 5,5 z 1\n", "a.ply:12: ", "\"z\"");
    BAD(r, "a.ply", PLY_HEAD("ascii", "\n") "1 2 3 7         \n", "a.ply: byte ", "row 1 of 2");
    BAD(r, "a.ply", PLY_HEAD("binary_little_endian", "\n") "1234567890123",
        "a.ply: byte 182: ", "row 1 of 2");
    BAD(r, "a.ply",
        "ply\nformat binary_little_endian 1.0\nelement f 1\nproperty list int int i\n"
        "element vertex 0\nproperty int x\nproperty int y\nproperty int "
        "z\nend_header\n\xff\xff\xff\x7f....",
        "a.ply: byte ", "element \"f\", row 0 of 1");
    BAD(r, "a.ply",
        "ply\nformat binary_little_endian 1.0\nelement vertex 9223372036854775807\nproperty int x\n"
        "property int y\nproperty int z\nend_header\n............",
        "a.ply: byte ", "row 1 of");
}

#define PCD_HEAD(counts, data)                                                                     \
    "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z tag\nSIZE 4 4 4 1\nTYPE F F F U\nCOUNT 1 1 1 "         \
    "1\n" counts "VIEWPOINT 0 0 0 1 0 0 0\nDATA " data "\n"

static void check_pcd(void)
{
    reader *r = pnet_pcd_read;
    static const double red[] = {0x12, 0xaa};
    GOOD(r, "a.pcd", PCD_HEAD("WIDTH 2\nHEIGHT 1\nPOINTS 2\n", "ascii") "1 2 3 7\n-4 5.5 6 200\n",
        2, two, "tag", tag);
    GOOD(r, "a.pcd", PCD_HEAD("WIDTH 1\nHEIGHT 2\n", "ascii") "1,2\t3 7\n-4 5.5 6 200\n", 2, two,
        "tag", tag);
    GOOD(r, "a.pcd", PCD_HEAD("WIDTH 0\nHEIGHT 0\nPOINTS 2\n", "binary") LITTLE_ROWS, 2, two, "tag",
        tag);
    /* Planes x, y, z, tag: a literal run of 26 bytes, which LZF always allows. */
#define PLANES "\0\0\x80\x3f\0\0\x80\xc0\0\0\0\x40\0\0\xb0\x40\0\0\x40\x40\0\0\xc0\x40\x07\xc8"
    GOOD(r, "a.pcd", PCD_HEAD("POINTS 2\n", "binary_compressed") "\x1b\0\0\0\x1a\0\0\0\x19" PLANES,
        2, two, "tag", tag);
    GOOD(r, "a.pcd", PCD_HEAD("POINTS 0\n", "binary_compressed"), 0, two, "tag", tag);
    GOOD(r, "a.pcd",
        "VERSION 0.7\nFIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 1\nPOINTS 0\n"
        "DATA binary_compressed\n",
        0, two, "green", tag); /* colours of no points, in a file without a body */
    GOOD(r, "a.pcd",
        "VERSION .5\r\nCOLUMNS y _ z x f\r\nSIZE 8 1 4 2 4\r\nTYPE F U F I F\r\nCOUNT 1 3 1 1 2\r\n"
        "WIDTH 2\r\nHEIGHT 1\r\nDATA ascii\r\n2 9 9 9 3 1 5 7\r\n5.5 9 9 9 6 -4 5 200\r\n",
        2, two, "f_1", tag);
    GOOD(r, "a.pcd",
        "FIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F U\nPOINTS 2\nDATA ascii\n"
        "1 2 3 1193046\n-4 5.5 6 11189196\n",
        2, two, "red", red);

    BAD(r, "a.pcd", "", "a.pcd:1: ", "expected the line DATA");
    BAD(r, "a.pcd", "FIELDS x y z\nPOINTS 1\nDATA binry\n", "a.pcd:3: ", "\"binry\"");
    BAD(r, "a.pcd", "1 2 3\n", "a.pcd:1: ", "header");
    BAD(r, "a.pcd", "FIELDS x y z\nDATA ascii\n", "a.pcd:2: ", "POINTS");
    BAD(r, "a.pcd", "POINTS -3\n", "a.pcd:1: ", "\"-3\"");
    BAD(r, "a.pcd", PCD_HEAD("WIDTH 3\nHEIGHT 1\nPOINTS 2\n", "ascii"),
        "a.pcd:11: ", "POINTS is 2");
    BAD(r, "a.pcd", "WIDTH 4611686018427387904\nHEIGHT 4\nDATA ascii\n", "a.pcd:3: ", "64 bits");
    BAD(r, "a.pcd", "FIELDS x y z\nSIZE 4 4 3\nTYPE F F F\nPOINTS 1\nDATA ascii\n",
        "a.pcd:5: ", "\"z\"");
    BAD(r, "a.pcd", "FIELDS x y z\nSIZE 4 4 4\nTYPE F F\nPOINTS 1\nDATA ascii\n",
        "a.pcd:5: ", "\"z\"");
    BAD(r, "a.pcd", "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1\nPOINTS 1\nDATA ascii\n",
        "a.pcd:6: ", "COUNT");
    BAD(r, "a.pcd",
        "FIELDS x y _\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 2000000000\nPOINTS 1\nDATA ascii\n",
        "a.pcd", "more than");
    BAD(r, "a.pcd", PCD_HEAD("POINTS 2\n", "ascii") "1 2 3 7\n-4 5.5 6\n", "a.pcd:11: ", "found 3");
    BAD(r, "a.pcd", PCD_HEAD("POINTS 2\n", "ascii") "1 2 3 7           \n", "a.pcd: byte ",
        "1 points");
    BAD(r, "a.pcd", PCD_HEAD("POINTS 2\n", "binary") "1234567890123", "a.pcd: byte ",
        "after 1 points");
    BAD(r, "a.pcd", PCD_HEAD("POINTS 2\n", "binary_compressed") "\x1b\0\0", "a.pcd: byte ",
        "two sizes");
    BAD(r, "a.pcd", PCD_HEAD("POINTS 2\n", "binary_compressed") "\x1b\0\0\0\x19\0\0\0\x19" PLANES,
        "a.pcd: byte ", "found 25 bytes");
    BAD(r, "a.pcd", PCD_HEAD("POINTS 2\n", "binary_compressed") "\x1c\0\0\0\x1a\0\0\0\x19" PLANES,
        "a.pcd: byte ", "found 27");
    BAD(r, "a.pcd", PCD_HEAD("POINTS 2\n", "binary_compressed") "\x1b\0\0\0\x1a\0\0\0\x39" PLANES,
        "a.pcd: byte ", "damaged");
    BAD(r, "a.pcd",
        PCD_HEAD("POINTS 40000000\n", "binary_compressed") "\x04\0\0\0\x00\x92\xfe\x1e....",
        "a.pcd: byte ", "cannot hold");
}

/* As many columns as there may be, all of one name: each still gets its own, and soon. */
static void check_equal_names(void)
{
    enum { COLUMNS = 4000 };
    static char text[64 + 30 * COLUMNS];
    size_t n = (size_t)sprintf(text, "ply\nformat ascii 1.0\nelement vertex 0\n");
    for (int i = 0; i < COLUMNS; i++) n += (size_t)sprintf(text + n, "property uchar a\n");
    n += (size_t)sprintf(text + n, "property int x\nproperty int y\nproperty int z\nend_header\n");
    struct pnet_bytes b = bytes_of(text, n);
    struct pnet_cloud c = {.rows = 0};
    CHECK(pnet_ply_read(&b, "a.ply", &c, NULL) == PNET_OK && c.field_count == COLUMNS);
    for (int i = 0; i < c.field_count; i++)
        CHECK(pnet_cloud_field(&c, c.fields[i].name) == &c.fields[i]);
    CHECK(pnet_cloud_field(&c, "a") && pnet_cloud_field(&c, "a_2"));
    pnet_cloud_free(&c);
}

static void check_tables(void)
{
    reader *r = pnet_table_read;
    GOOD(r, "a.xyz", "1 2 3 7\n-4 5.5 6 200\n", 2, two, "c3", tag);
    GOOD(r, "a.csv", "1,2,3,7\r\n-4,5.5,6,200", 2, two, "c3", tag);
    GOOD(r, "a.csv", "\xef\xbb\xbf\"X\";\"Y\";\"Z\";\"a name\"\n1;2; 3;\"7\"\n-4 ;5.5;6;200\n", 2,
        two, "a name", tag);
    GOOD(r, "a.csv", "tag,z,x,y\n7,3,1,2\n# note\n200,6,-4,5.5\n\n", 2, two, "tag", tag);
    GOOD(r, "a.txt", "//X\tY\tZ\ttag\n2\n1\t2\t3\t7\n-4\t5.5\t6\t200\n", 2, two, "tag", tag);
    GOOD(r, "a.txt", "% some words\n# x y z tag\n1 2 3 7\n-4 5.5 6 200\n", 2, two, "tag", tag);
    GOOD(r, "a.pts", "2\n1 2 3 7\n-4 5.5 6 200\n", 2, two, "intensity", tag);
    GOOD(r, "a.pts", "1\n1 2 3 7\n1\n-4 5.5 6 200\n", 2, two, "intensity", tag);
    GOOD(r, "a.pts", "2\n1 2 3 0 7 0 0\n-4 5.5 6 0 200 0 0\nrest", 2, two, "red", tag);
    GOOD(r, "a.csv", "x,y,z,a\n1,2,3,7\n-4,5.5,6,200\n,,,\n", 2, two, "a",
        tag); /* missing: dropped */
    GOOD(r, "a.csv", "x,y,z,a\n1,2,3,7\n-4,5.5,6,200\nnan,0,0,\n", 2, two, "a", tag);
    GOOD(r, "a.txt", "# the x y z of 2 points\n1 2 3\n-4 5.5 6\n", 2, two, NULL, NULL);
    GOOD(r, "a.csv", "x,y,z,red,green\n1,2,3,7,0.5\n-4,5.5,6,200,0\n", 2, two, "red", tag);
    GOOD(r, "a.csv", "x,y,z\n", 0, two, NULL, NULL);
    GOOD(r, "a.pts", "0\n", 0, two, NULL, NULL);

    BAD(r, "a.xyz", "", "a.xyz:1: ", "the file ends");
    BAD(r, "a.xyz", "# nothing\n", "a.xyz:1: ", "the file ends");
    BAD(r, "a.xyz", "1 2\n", "a.xyz:1: ", "found 2");
    BAD(r, "a.xyz", "1 2 3\n4 5\n", "a.xyz:2: ", "found 2");
    BAD(r, "a.xyz", "1 2 3\n4 5 6 7\n", "a.xyz:2: ", "\"7\"");
    BAD(r, "a.xyz", "1 2 3\n4 abc 6\n", "a.xyz:2: column 2: ", "\"abc\"");
    BAD(r, "a.csv", "x,y,w\n1,2,3\n", "a.csv:1: ", "x, y and z");
    BAD(r, "a.csv", "x,y,z,x\n1,2,3,4\n", "a.csv:2: ", "x is there twice");
    BAD(r, "a.csv", "x,y,z,a\n1,2,3\n", "a.csv:2: ", "4 values");
    BAD(r, "a.csv", "1,2,3\nx,y,z\n", "a.csv:2: ", "\"x\"");
    BAD(r, "a.pts", "3\n1 2 3\n4 5 6\n", "a.pts:3: ", "expected 3 points");
    BAD(r, "a.pts", "2.5\n1 2 3\n", "a.pts:1: ", "number of points");
}

/* A tab between values is a separator as a comma is: what is empty is missing, and moves nothing. */
static void check_tabs(void)
{
    static const double late[] = {NAN, 200}, early[] = {7, NAN}, index[] = {0, 1};
    reader *r = pnet_table_read;
    GOOD(r, "a.txt", "x\ty\tz\ta\ttag\n1\t2\t3\t\t7\n-4\t5.5\t6\t1\t200\n", 2, two, "tag", tag);
    GOOD(r, "a.txt", "1\t2\t3\t\t7\n-4\t5.5\t6\t\t200\n", 2, two, "c4", tag);
    GOOD(r, "a.csv", "1,2,3,,7\n-4,5.5,6,,200\n", 2, two, "c4", tag);
    GOOD(r, "a.txt", "x\ty\tz\ttag\n1\t2\t3\t\n-4\t5.5\t6\t200\n", 2, two, "tag", late);
    GOOD(r, "a.txt", "# x\ty\tz\ttag\n1\t2\t3\t\n-4\t5.5\t6\t200\n", 2, two, "tag", late);
    GOOD(r, "a.csv", "# x,y,z,tag\n1,2,3,\n-4,5.5,6,200\n", 2, two, "tag", late);
    GOOD(r, "a.txt", "x\ty\tz\ttag\n1\t2\t3\t7\n-4\t5.5\t6\t\n", 2, two, "tag", early);
    /* missing coordinates: dropped */
    GOOD(r, "a.txt", "1\t2\t3\t7\n9\t\t9\t9\n-4\t5.5\t6\t200\n\t1\t2\t3\n", 2, two, "c3", tag);
    /* a column of row numbers without a name; lines that begin with a tab; blanks around tabs, and instead of them */
    GOOD(r, "a.txt", "\tx\ty\tz\n0\t1\t2\t3\n1\t-4\t5.5\t6\n", 2, two, "c0", index);
    GOOD(r, "a.txt", "\t1\t2\t3\t7\n\t-4\t5.5\t6\t200\n", 2, two, "c3", tag);
    GOOD(r, "a.txt", " 1\t 2 \t3\t7 \n-4\t5.5\t6\t200\n", 2, two, "c3", tag);
    GOOD(r, "a.txt", "1\t2\t3\t7\n-4 5.5\t6  200\n", 2, two, "c3", tag);
    GOOD(r, "a.txt", "1 2\t3\t\t7\n-4 5.5 6 200\n", 2, two, "c3", tag);
    GOOD(r, "a.txt", "X\tY\tZ\tits tag\n1\t2\t3\t7\n-4\t5.5\t6\t200\n", 2, two, "its tag", tag);
    BAD(r, "a.txt", "1\t2\t3\t7\n-4\t5.5\t6\n", "a.txt:2: ", "4 values, found 3");
}

/* Numbers of a program that writes commas for points are refused, never read as twice as many. */
static void check_decimal_commas(void)
{
    static const char words[] = "decimal commas";
    static const double pairs[] = {1, 2, 3, 1, 2, 3};
    reader *r = pnet_table_read;
    BAD(r, "a.csv", "1,5, 2,25, 3,0\n4,5, 5,5, 6,25\n", "a.csv:1: ", words);
    BAD(r, "a.csv", "# note\n-1,5, 2,25, 3,0, 7\n", "a.csv:2: ", words);
    BAD(r, "a.csv", "1,5, 2,25, 3,0\n4,5, 5, 6,25\n", "a.csv:2: ", words);
    BAD(r, "a.csv", "1,5;2,25;3,0\n", "a.csv:1: ", words);
    BAD(r, "a.csv", "x;y;z\n1;2;3\n1;2,25;3\n", "a.csv:3: ", words);
    BAD(r, "a.csv", "\"1,5\",\"2,25\",\"3,0\"\n", "a.csv:1: ", words);
    BAD(r, "a.csv", "x,y,z\n1,5,2,25,3,0\n", "a.csv:2: ", words);
    BAD(r, "a.xyz", "1,5 2,25 3,0e-1\n", "a.xyz:1: ", words);
    BAD(r, "a.xyz", "1 2 3,5\n", "a.xyz:1: ", words);
    BAD(r, "a.txt", "1,5\t2,25\t3,0\n", "a.txt:1: ", words);
    BAD(pnet_ply_read, "a.ply", PLY_HEAD("ascii", "\n") "1,5 2,25 3,0 7\n1 2 3 4\n",
        "a.ply:11: ", words);
    BAD(pnet_pcd_read, "a.pcd", PCD_HEAD("POINTS 1\n", "ascii") "1,5 2 3 7\n", "a.pcd:10: ", words);
    /* lists with commas, and blanks after some or all of them */
    GOOD(r, "a.csv", "1, 2, 3, 7\n-4, 5.5, 6, 200\n", 2, two, "c3", tag);
    GOOD(r, "a.csv", "1,2,3, 7\n-4,5.5,6, 200\n", 2, two, "c3", tag);
    GOOD(r, "a.csv", "1,2, 3, 7\n1,2, 3, 200\n", 2, pairs, "c3", tag);
    GOOD(r, "a.csv", "1,2, 3,7, 5,5\n-4,5.5, 6,200, 5,5\n", 2, two, "c3", tag);
    GOOD(r, "a.csv", "1,2, 3,7, 5,5\n-4,5.5,6,200,5,5\n", 2, two, "c3", tag);
}

/* The coordinates of ParaView and VeloView have names of their own. */
static void check_points_names(void)
{
    static const double swapped[] = {2, 1, 3, 5.5, -4, 6};
    reader *r = pnet_table_read;
    GOOD(r, "a.csv",
        "\"Points_m_XYZ:0\",\"Points_m_XYZ:1\",\"Points_m_XYZ:2\",\"intensity\",\"laser_id\"\n1,2,"
        "3,7,0\n"
        "-4,5.5,6,200,1\n",
        2, two, "intensity", tag);
    GOOD(r, "a.csv",
        "intensity,Points_m_XYZ:0,Points_m_XYZ:1,Points_m_XYZ:2\n7,1,2,3\n200,-4,5.5,6\n", 2, two,
        "intensity", tag);
    GOOD(r, "a.csv", "\"U:0\",\"Points:1\",\"Points:0\",\"Points:2\"\n7,1,2,3\n200,-4,5.5,6\n", 2,
        swapped, "U:0", tag);
    GOOD(r, "a.csv", "Points_0,Points_1,Points_2,tag\n1,2,3,7\n-4,5.5,6,200\n", 2, two, "tag", tag);
    /* x, y and z come first */
    GOOD(r, "a.csv", "Points:0,Points:1,Points:2,X,Y,Z\n7,0,0,1,2,3\n200,0,0,-4,5.5,6\n", 2, two,
        "Points:0", tag);
    BAD(r, "a.csv", "Points:0,Points:1,w\n1,2,3\n", "a.csv:1: ", "x, y and z");
    BAD(r, "a.csv", "Points:0,Points:1,Points:3\n1,2,3\n", "a.csv:1: ", "x, y and z");
}

static void check_meshes(void)
{
    static const double green[] = {0.5, 1}, normal[] = {1, 0};
    GOOD(pnet_off_read, "a.off", "OFF\n2 1 0\n1 2 3\n-4 5.5 6\n3 0 1 1\n", 2, two, NULL, NULL);
    GOOD(pnet_off_read, "a.off", "# c\n\n OFF2 0 0 # c\n# c\n1 2 3 # c\n\n-4 5.5 6\n", 2, two, NULL,
        NULL);
    GOOD(pnet_off_read, "a.off",
        "CNOFF\r\n2 0\r\n1 2 3 0 0 1 .1 .5 1 1\r\n-4 5.5 6 0 0 0 1 1 1 1\r\n", 2, two, "green",
        green);
    GOOD(pnet_off_read, "a.off", "NOFF 2 0 0\n1 2 3 0 0 1\n-4 5.5 6 1 1 0\n", 2, two, "nz", normal);
    GOOD(pnet_off_read, "a.off", "OFF\n0 0 0\n", 0, two, NULL, NULL);
    BAD(pnet_off_read, "a.off", "", "a.off:1: ", "\"OFF\"");
    BAD(pnet_off_read, "a.off", "OFFICE\n", "a.off:1: ", "\"OFF\"");
    BAD(pnet_off_read, "a.off", "OFF BINARY\n", "a.off:1: ", "binary");
    BAD(pnet_off_read, "a.off", "OFF\n", "a.off:1: ", "counts");
    BAD(pnet_off_read, "a.off", "OFF\n3\n", "a.off:2: ", "numbers of vertices");
    BAD(pnet_off_read, "a.off", "OFF\n9999999999 0 0\n1 2 3\n", "a.off:2: ", "cannot be");
    BAD(pnet_off_read, "a.off", "OFF\n2 0 0\n1 2 3           \n", "a.off:3: ", "after 1 vertices");
    BAD(pnet_off_read, "a.off", "OFF\n2 0 0\n1 2\n3 4 5 6 7 8\n", "a.off:3: ", "found 2");
    BAD(pnet_off_read, "a.off", "OFF\n2 0 0\n1 2 q\n3 4 5\n", "a.off:3: ", "\"q\"");

    GOOD(pnet_obj_read, "a.obj", "# c\nv 1 2 3\nvn 0 0 1\nv -4 5.5 6 1.0\nf 1 2 2\n", 2, two, NULL,
        NULL);
    GOOD(pnet_obj_read, "a.obj", "v 1 2 3 .1 .5 1\nv -4 5.5 6 1 1 1\n", 2, two, "green", green);
    BAD(pnet_obj_read, "a.obj", "# c\n", "a.obj:1: ", "vertices");
    BAD(pnet_obj_read, "a.obj", "v 1 2 3\nv 1 2\n", "a.obj:2: ", "found 2");
    BAD(pnet_obj_read, "a.obj", "v 1 2 3\nv 1 x 2\n", "a.obj:2: ", "\"x\"");
}

static void check_records(const char *folder)
{
    static const char kitti[] = "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\xe0\x40"
                                "\0\0\x80\xc0\0\0\xb0\x40\0\0\xc0\x40\0\0\x48\x43";
    GOOD(pnet_kitti_read, "a.bin", kitti, 2, two, "intensity", tag);
    GOOD(pnet_kitti_read, "a.bin", "", 0, two, "intensity", tag);
    BAD(pnet_kitti_read, "a.bin", "1234567890123456789", "a.bin: byte 16: ", "16 bytes");
    BAD(pnet_kitti_read, "a.pcd.bin", "1234567890123456", "a.pcd.bin: byte 0: ", "20 bytes");

    /* t = 2011-11-04 in microseconds, then intensity, id, x y z, azimuth, range, pid */
#define SYDNEY(x, range) "\0\xb0\x88\x3d\xe8\xb0\4\0\x07\1" x "\0\0\0\0" range "\5\0\0\0"
    static const char sydney[] = SYDNEY("\0\0\x80\x3f\0\0\0\x40\0\0\0\x40", "\0\0\x40\x40");
    static const char other[] = SYDNEY("\0\0\x80\x3f\0\0\0\x40\0\0\0\x40", "\0\0\x80\x40");
    static const double place[] = {1, 2, 2};
    struct pnet_bytes b = bytes_of(sydney, sizeof sydney - 1);
    CHECK(sizeof sydney - 1 == 34 && pnet_sydney_probe(&b));
    GOOD(pnet_sydney_read, "a.bin", sydney, 1, place, "intensity", tag);
    b = bytes_of(other, sizeof other - 1); /* the range does not follow from the coordinates */
    CHECK(!pnet_sydney_probe(&b));
    BAD(pnet_sydney_read, "a.bin", "123", "a.bin: byte 0: ", "34 bytes");

    static const uint32_t labels[] = {40, 0x0003000a, 0};
    const char *path = files_path(folder, "a.label");
    uint32_t out[3] = {1, 1, 1};
    struct pnet_error e;
    write_file(path, labels, sizeof labels);
    CHECK(pnet_labels_read(path, 3, out, &e) == PNET_OK && memcmp(out, labels, sizeof labels) == 0);
    CHECK(pnet_labels_read(path, 2, out, &e) == PNET_BAD_DATA);
    CHECK(strstr(e.message, "12 bytes for a cloud of 2 points: expected 4 bytes a point"));
    write_file(path, labels, 11);
    CHECK(pnet_labels_read(path, 3, out, &e) == PNET_BAD_DATA);
    remove(path);
    CHECK(pnet_labels_read(path, 3, out, &e) == PNET_FAILED);
}

/* The content decides, then the name. */
static void check_recognition(const char *folder)
{
    static const struct {
        const char *name, *text;
        int good;
    } files[] = {{"a", PLY_HEAD("ascii", "\n") "1 2 3 7\n-4 5.5 6 200\n", 1},
        {"a.xyz", PCD_HEAD("POINTS 2\n", "ascii") "1 2 3 7\n-4 5.5 6 200\n", 1},
        {"a.txt", "OFF\n2 0 0\n1 2 3\n-4 5.5 6\n", 1}, {"a", "1 2 3\n-4 5.5 6\n", 1},
        {"a.asc", "1;2;3\n-4;5.5;6\n", 1}, {"a.OBJ", "v 1 2 3\nv -4 5.5 6\n", 1},
        {"a.ply", "1 2 3\n-4 5.5 6\n", 0}, {"a", "\1\2\3\4", 0}, {"a", "", 0},
        {"a.npy", "1 2 3\n", 0}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = files_path(folder, files[i].name);
        struct pnet_cloud c;
        struct pnet_error e = {.message = ""};
        write_file(path, files[i].text, strlen(files[i].text));
        enum pnet_status status = pnet_cloud_read(path, &c, NULL, &e);
        CHECKF(status == (files[i].good ? PNET_OK : PNET_BAD_DATA), "file %zu: %s", i, e.message);
        CHECK(files[i].good ? c.rows == 2 : strstr(e.message, path) == e.message);
        pnet_cloud_free(&c);
        remove(path);
    }
}

int main(void)
{
    const char *folder = files_folder();
    check_ply();
    check_equal_names();
    check_pcd();
    check_tables();
    check_tabs();
    check_decimal_commas();
    check_points_names();
    check_meshes();
    check_records(folder);
    check_recognition(folder);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
