/* Clouds that are read in pieces, in memory that depends on the size of a piece and not on that of the file. */
#ifndef PNET_RUNTIME_IO_PIECES_H
#define PNET_RUNTIME_IO_PIECES_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

/* A file, and a place in it. */
struct pnet_cloud_pieces;

/* What is known of the whole cloud once its file has been opened. */
struct pnet_cloud_outline {
    /* The cloud that pnet_cloud_read_as gives, but without its points: no rows, and no file rows. It has the fields, the offset,
       the strays, the units, the number of faces, and c->las without the raw bytes of points. */
    struct pnet_cloud cloud;
    int64_t rows, file_rows; /* of the whole cloud */
    bool exact;              /* it has c->exact, and so has each piece */
};

/* Opens a file to read it in pieces of at most `most` (> 0) rows of the file. `path`, `hints` and `warning` (or NULL) are those
   of pnet_cloud_read_as; the names in `hints` must stay as long as `p`. Goes through the rows to place the points as those of the
   whole cloud are placed: once, often twice, and a few times more where the cloud is wider than 2 km and strays are possible.
   The caller closes `p`, which is NULL on failure.

   Errors are those of pnet_cloud_read_as, with the same messages, and PNET_USAGE where the file can only be read as a whole; the
   message says what it is: standard input, a pipe, a device or an empty file; a text, OFF, OBJ, NPZ, HDF5, Sydney objects; a PLY
   in ascii, or with lists in its vertices or before them; a PCD that is not binary. pnet_cloud_read_as then reads it, or tells
   what else is wrong.

   It takes addresses for the whole file, and memory for: what stands before and after the points of LAS and LAZ; one chunk of
   LAZ, which is all points in old files without chunks; the bytes of a piece, or of 2048 rows if that is more. */
enum pnet_status pnet_cloud_pieces_open(const char *path, const struct pnet_cloud_hints *hints,
    int64_t most, struct pnet_cloud_pieces **p, char warning[256], struct pnet_error *e);
void pnet_cloud_pieces_close(struct pnet_cloud_pieces *p);

/* Returns the outline, which `p` owns. Its fields may be renamed. */
struct pnet_cloud_outline *pnet_cloud_pieces_outline(struct pnet_cloud_pieces *p);

/* Reads the next piece into `c`, which the caller frees: `most` rows of the file, the last one fewer, as a cloud of its own.
   Behind the last one c->file_rows is 0. Put together, the pieces are the cloud that pnet_cloud_read_as gives, bit by bit, but:
   - `c->file_row` counts from the first row of the piece, and is NULL where none of its points was dropped, so that
     pnet_cloud_restore works on it. `*first` (or NULL) gets the row of the file where the piece begins.
   - c->strays is empty: the outline has them.
   - c->las, of LAS, has the layout, and the raw bytes and the summary of the rows of the piece, but no head and no tail: the
     outline has these. Written as LAS, a piece is a new file.
   On failure `c` is empty, and `p` can only be closed. PNET_NO_MEMORY; PNET_FAILED: the file cannot be read any more, or has
   changed. */
enum pnet_status pnet_cloud_pieces_next(
    struct pnet_cloud_pieces *p, struct pnet_cloud *c, int64_t *first, struct pnet_error *e);
/* Goes back to the first piece. */
void pnet_cloud_pieces_rewind(struct pnet_cloud_pieces *p);

#endif
