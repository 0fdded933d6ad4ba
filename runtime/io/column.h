/* Tables of fixed-size values, anywhere in a file. Every reader describes its data as such a table, which is then converted
   to a cloud; writers convert a cloud to one. */
#ifndef PNET_RUNTIME_IO_COLUMN_H
#define PNET_RUNTIME_IO_COLUMN_H

#include "runtime/io/cloud.h"
#include "runtime/base/error.h"
#include "runtime/io/place.h"
#include "runtime/io/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

_Static_assert(
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read with little-endian loads");

enum { PNET_COLUMNS_MOST = 4096 }; /* names are compared pairwise: more would take too long */
/* The most columns that clouds without names usually have: a LAS point with colours and nir has 15, descriptors have 16 or
   more. */
enum { PNET_COLUMNS_LIKELY = 15 };

/* The value of a number that a file has scaled: computed in one way, so that it can be recognised. */
static inline double pnet_scaled(double number, double scale, double shift)
{
    return number * scale + shift;
}

/* Value of row i at data + i * stride, any alignment. */
struct pnet_column {
    struct pnet_span name; /* empty: the column is called c<number> */
    int number;            /* >= 0 with a name: <name>_<number> */
    enum pnet_scalar type;
    bool swap; /* the other byte order */
    bool half; /* of a PNET_F32: the file has it as a float16, in two bytes */
    bool skip; /* padding and lists: not read */
    bool list; /* a count of type count_type, then as many values of `type`; takes no room in a
                  record */
    enum pnet_scalar count_type;
    uint8_t low, bits; /* of a PNET_U8: the bits that hold the value; bits 0: all */
    bool untyped;      /* of text: the type was chosen for the values */
    bool scaled;       /* the value is scale * value + shift, a double */
    double scale, shift;
    const uint8_t *data;
    size_t stride;
};

struct pnet_columns {
    struct pnet_column *items;
    int count;
    uint8_t
        *buffer; /* or NULL: values that are not in the file as they are, freed with the table */
};

/* Adds a column, zeroed but for its type and name, number -1; `added` (or NULL) gets it, until the
   next one is added. PNET_NO_MEMORY; PNET_BAD_DATA where the table is full, `place` begins the
   message. */
enum pnet_status pnet_columns_add(struct pnet_columns *t, struct pnet_span name,
    enum pnet_scalar type, struct pnet_column **added, const char *place, struct pnet_error *e);
void pnet_columns_free(struct pnet_columns *t);

/* Returns the size of a record that holds the columns one after the other. */
size_t pnet_columns_stride(const struct pnet_columns *t);
/* Places the columns in packed records at `data`. Returns the size of a record in bytes. */
size_t pnet_columns_pack(struct pnet_columns *t, const uint8_t *data);
/* Parses one line of text into record `row` of a packed table whose data is t->buffer; blanks, tabs
   and commas separate. */
enum pnet_status pnet_columns_parse(struct pnet_columns *t, int64_t row,
    const struct pnet_text *text, struct pnet_span line, struct pnet_error *e);

/* Sets axis[0..2] to the columns named x, y and z, in upper or lower case. PNET_BAD_DATA if one is missing or occurs twice.
   `place` ("path", or "path:line") begins the message. */
enum pnet_status pnet_columns_axes(
    const struct pnet_columns *t, int axis[3], const char *place, struct pnet_error *e);

/* Fills the empty cloud `c`: coordinates from the columns `axis`, and a field from each other column. Fields of the same
   name get the suffix _2, _3 ... On failure `c` is empty. */
enum pnet_status pnet_columns_cloud(const struct pnet_columns *t, const int axis[3], int64_t rows,
    struct pnet_cloud *c, struct pnet_error *e);
/* The same of `rows` rows from row `first` on. `placing` (or NULL): they belong to a cloud that was placed so. */
enum pnet_status pnet_columns_piece(const struct pnet_columns *t, const int axis[3], int64_t first,
    int64_t rows, const struct pnet_placing *placing, struct pnet_cloud *c, struct pnet_error *e);
/* Writes coordinates, in the unit of the file, to xyz[rows, 3]; at most PNET_COLUMNS_BLOCK rows. */
enum { PNET_COLUMNS_BLOCK = 2048 };
void pnet_columns_points(
    const struct pnet_columns *t, const int axis[3], int64_t first, int64_t rows, double *xyz);

/* By how much a coordinate may be off where it is written as float32, metres; beyond it a double is written. */
#define PNET_SINGLE_LOSS_M 1e-4
/* What the type in which coordinates are written depends on, seen of all rows. Zeroed: of none. */
struct pnet_xyz_seen {
    double
        single_loss; /* by how much the file coordinates would be off at most as float32, metres */
    bool unfit;      /* one of them is no number of the integer type of the file */
};
/* Tells whether the type depends on the values of the coordinates. */
bool pnet_xyz_depends(const struct pnet_cloud *c);
/* Looks at the rows of `c`, which may be some of a cloud. */
void pnet_xyz_see(struct pnet_xyz_seen *s, const struct pnet_cloud *c);
/* Returns the type in which coordinates are written: that of the file, unless they no longer fit; F64 for 64-bit integers. */
enum pnet_scalar pnet_xyz_type(const struct pnet_cloud *c, const struct pnet_xyz_seen *s);
/* Writes the rows as records: x y z as `xyz`, then the fields as `types` (NULL: their own), little endian, without padding.
   The owner of the stream handles its errors. PNET_NO_MEMORY. */
enum pnet_status pnet_cloud_records(const struct pnet_cloud *c, enum pnet_scalar xyz,
    const enum pnet_scalar *types, FILE *f, struct pnet_error *e);
/* Converts a name for a format whose words end at blanks: blanks and control bytes become _. An empty name, or _, which
   means padding in PCD, becomes "unnamed". */
void pnet_name_word(const char *name, char *word, size_t size);

#endif
