/* One point cloud in memory, as a file gave it. */
#ifndef PNET_RUNTIME_CLOUD_H
#define PNET_RUNTIME_CLOUD_H

#include "runtime/base/error.h"
#include "runtime/io/unit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pnet_las_kept;

enum pnet_scalar {
    PNET_I8,
    PNET_U8,
    PNET_I16,
    PNET_U16,
    PNET_I32,
    PNET_U32,
    PNET_I64,
    PNET_U64,
    PNET_F32,
    PNET_F64
};
size_t pnet_scalar_size(enum pnet_scalar s);
/* Stores a value that fits the type, at any address. */
void pnet_scalar_store(double v, enum pnet_scalar type, uint8_t *to);

/* One number a point: a PLY property, a NPY column, a LAS dimension. Coordinates are not among the
   fields. */
struct pnet_field {
    char *name; /* as in the file: red, intensity ...; columns without a name are c3, c4 ... */
    enum pnet_scalar type;
    void *data;    /* [rows] in native byte order */
    void *dropped; /* [file_rows - rows] values of the dropped rows, in their order; NULL: none */
    bool untyped;  /* of text, which says no types: the type is the one that holds its numbers */
    int part; /* of LAS: 1 + the part of the file's records that it was read from (runtime/io/las.h); 0: of none */
};

/* Points so far from the others that an offset for all of them would cost the others precision (runtime/io/stray.h). */
struct pnet_strays {
    int64_t count;
    int64_t row;     /* of the file, the first of them */
    double distance; /* of that one from the box of the other points, metres */
};

/* Owns all it points to. Zeroed: empty. Points with NaN or infinite coordinates are dropped: `rows` counts the points that
   are left, `file_rows` those of the file. */
struct pnet_cloud {
    int64_t rows;
    int64_t file_rows;
    int64_t *file_row; /* [rows], ascending; NULL when rows == file_rows */
    /* metres: file coordinate in metres = offset + xyz, rounded; zero while all |p| stay below 1000 m, else the box
       minimum rounded down to 100 m, both without the strays. Models read xyz: the offset is their origin. */
    double offset[3];
    float *xyz; /* [rows, 3], metres */
    double *
        exact; /* [rows, 3] file coordinates in metres; NULL: offset + xyz is each of them exactly */
    struct pnet_strays strays;
    enum pnet_scalar xyz_type; /* type in the file, with which it is written again */
    /* Integers beyond 2^53 in a text became doubles that are other numbers: their columns have gaps or fractions too. */
    bool rounded;
    struct pnet_axis_unit unit[2]; /* of x and y, and of z, as the file states it */
    /* the unit of the file's x and y, and of its z, in metres: reading multiplies coordinates with it, writing divides
       them; 0: the numbers of the file are taken as metres */
    double metres[2];
    bool unit_of_file;         /* for readers: `metres` follows from what the file states */
    struct pnet_field *fields; /* [field_count], without the values of dropped points */
    int field_count;
    int64_t faces; /* of a mesh; a cloud is its vertices, and leaves the faces out */
    /* Of an NPZ or HDF5 file: which array holds the coordinates, or "x, y, z"; NULL: another format. */
    char *array;
    /* Of LAS and LAZ: what the file has besides, to write it again (runtime/io/las.h); NULL: another format */
    struct pnet_las_kept *las;
};

/* What is known of a file that it does not say itself. Zeroed: nothing. */
struct pnet_cloud_hints {
    /* Names for columns that the file does not name, x, y and z first (pnet_cloud_parse_columns). Their number is the width of
       bare records (.bin), in float32. Files of other formats are read without the names; pnet_cloud_name_columns
       (runtime/data/input_map.h) then names their columns. */
    char *const *columns;
    int column_count;
    /* The array of an NPZ or HDF5 file that holds the coordinates, "x,y,z" for three arrays, or the field of records; NULL: names
       decide. Files of other formats are read without it. */
    const char *coordinates;
    struct pnet_unit_choice unit; /* of the numbers in the file, which are converted to metres */
    /* [3], metres: where the coordinates that models read begin, c->offset; NULL: the offset that the cloud gets by itself */
    const double *origin;
};

/* Reads any format, recognised by its content, then by its name: PLY, PCD, LAS, NPY, NPZ, HDF5, OFF and OBJ (vertices),
   KITTI .bin and nuScenes .pcd.bin (field `intensity`; `ring`), Sydney Urban Objects .bin, XYZ/CSV/TXT/PTS. Columns
   of one name get _2, _3 ...; several values under one name are name_0, name_1 ...; PCD's packed rgb and rgba
   become red, green, blue and alpha. `path` "-" is standard input. On failure `c` is empty, status PNET_BAD_DATA
   (or PNET_NO_MEMORY, PNET_FAILED where the file cannot be opened), and the message names file, offset or line,
   and what was expected. `warning` (or NULL) gets one line, or "", about what was dropped and what is
   doubtful. */
enum pnet_status pnet_cloud_read(
    const char *path, struct pnet_cloud *c, char warning[256], struct pnet_error *e);

/* Finds names and types of fields of a file without reading its points: of PLY all fields, of LAS the colours. `c` gets the
   fields, and no points. Returns false, and `c` is empty, if only the whole file tells: other formats, no regular file, errors
   of any kind. */
bool pnet_cloud_peek(const char *path, struct pnet_cloud *c);

/* As pnet_cloud_read, with what is known of the file. PNET_BAD_DATA too where the unit of the file is asked for, and the file
   states no length. */
enum pnet_status pnet_cloud_read_as(const char *path, const struct pnet_cloud_hints *hints,
    struct pnet_cloud *c, char warning[256], struct pnet_error *e);
/* Writes the warning of the functions above: points that were dropped, strays by their rows, coordinates that models read with
   errors beyond 1 mm, units that are not metres, and `doubt`, which may be "". `hints` are those that `c` was made with. */
void pnet_cloud_doubts(const struct pnet_cloud *c, const struct pnet_cloud_hints *hints,
    const char *path, const char *doubt, char warning[256]);
/* Splits "x,y,z,intensity" into names; the caller frees them with pnet_cloud_free_columns. PNET_USAGE if they do not begin
   with x, y and z, or one is empty. */
enum pnet_status pnet_cloud_parse_columns(
    const char *text, char ***columns, int *column_count, struct pnet_error *e);
void pnet_cloud_free_columns(char **columns, int column_count);

/* Returns the i-th way in which names of clouds end, "ply" .., or NULL behind the last one. */
const char *pnet_cloud_ending(int i);
/* Tells whether a name ends in one of these ways. */
bool pnet_cloud_read_by(const char *path);
/* Tells whether a name ends as one of the formats that pnet_cloud_write writes. */
bool pnet_cloud_written_as(const char *path);
/* The same, with the message of pnet_cloud_write: PNET_USAGE. "-" is written too, and .laz where liblaszip is. */
enum pnet_status pnet_cloud_check_output(const char *path, struct pnet_error *e);

/* Writes by the name's ending: .ply (binary little endian), .pcd (binary), .las (a cloud that was read from LAS or LAZ as its
   file was, but for what changed; others as LAS 1.4; docs/formats.md), .laz (the same, compressed by liblaszip), .npy (a matrix,
   x y z and the fields, of float32 if that holds every value of the fields, else of float64; records if integers need them),
   .bin (KITTI: x y z and `intensity`, or 0; .pcd.bin with `ring` after it), .xyz .txt .csv .pts (text, every number in full);
   "-" is PLY on standard output.
   Coordinates are doubles where float32 would be off by more than 0.1 mm (runtime/io/column.h). Written to a temporary name in
   the same folder, synced, renamed: a failure leaves no half-written file. PNET_USAGE: another ending, or a .bin, which has no
   doubles, where they are needed, or a .las that cannot hold the cloud, or no liblaszip; PNET_FAILED: the system or liblaszip
   refused. */
enum pnet_status pnet_cloud_write(
    const char *path, const struct pnet_cloud *c, struct pnet_error *e);

void pnet_cloud_free(struct pnet_cloud *c);

/* Returns the field of that name, or NULL. */
struct pnet_field *pnet_cloud_field(const struct pnet_cloud *c, const char *name);
/* Adds a zeroed field, [rows], and returns it; replaces a field of the same name. NULL: out of memory. */
struct pnet_field *pnet_cloud_add(struct pnet_cloud *c, const char *name, enum pnet_scalar type);
/* Returns a value as a double (64-bit integers beyond 2^53 are rounded). */
double pnet_field_get(const struct pnet_field *f, int64_t row);

/* Returns a coordinate in the unit and the origin of the file. */
double pnet_cloud_coordinate(const struct pnet_cloud *c, int64_t row, int axis);

/* Restores a row for each point of the file: dropped points have NaN coordinates, and the values of the file. On failure the
   cloud stays as it was. */
enum pnet_status pnet_cloud_restore(struct pnet_cloud *c, struct pnet_error *e);

/* Returns the coordinate of a row as the file has it, in metres, in double. axis: 0 to 2. */
static inline double pnet_cloud_at(const struct pnet_cloud *c, int64_t row, int axis)
{
    int64_t i = 3 * row + axis;
    return c->exact ? c->exact[i] : c->offset[axis] + (double)c->xyz[i];
}
/* Gives the cloud another offset: c->xyz is computed anew from the file coordinates, which stay as they are. PNET_NO_MEMORY:
   the cloud stays as it was. */
enum pnet_status pnet_cloud_move_offset(
    struct pnet_cloud *c, const double offset[3], struct pnet_error *e);
/* Moves the points by the row-major pose [R t; 0 0 0 1], from coordinates less the present offset to coordinates less `offset`,
   which becomes that of the cloud. Computed in double, from the file coordinates. PNET_NO_MEMORY: the cloud stays as it was. */
enum pnet_status pnet_cloud_transform(
    struct pnet_cloud *c, const double pose[16], const double offset[3], struct pnet_error *e);
/* Forgets the file coordinates, for whoever changes c->xyz: offset + xyz is the place of a point then. */
void pnet_cloud_forget_exact(struct pnet_cloud *c);
/* Returns by how much a coordinate that models read, offset + xyz, differs from that of the file at most, metres. */
double pnet_cloud_loss(const struct pnet_cloud *c);

/* Sets c->xyz, offset, exact, strays, rows and file_row from doubles [n,3] in the unit of the file, c->metres, without rows that
   are not finite, and thins the fields (each [n]) of `c` likewise. Every reader ends with it. */
enum pnet_status pnet_cloud_place(
    struct pnet_cloud *c, int64_t n, const double *xyz, struct pnet_error *e);

#endif
