/* Clouds that are written in pieces, in memory that depends on the size of a piece and not on that of the cloud. The file has,
   byte for byte, what pnet_cloud_write writes for the whole cloud.

   Formats choose some things by the values of all rows: the type of coordinates, the scale and the box of LAS. So a writer may
   ask for all rows more than once, before it writes them:

     st = pnet_cloud_writer_open(path, like, rows, &w, e);
     for (bool again = true; !st && again;) {
         for each piece, from the first row on: st = pnet_cloud_writer_put(w, &piece, e);
         if (!st) st = pnet_cloud_writer_pass(w, &again, e);
     }
     if (st) pnet_cloud_writer_drop(w); else st = pnet_cloud_writer_close(w, e); */
#ifndef PNET_RUNTIME_IO_CLOUD_WRITER_H
#define PNET_RUNTIME_IO_CLOUD_WRITER_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

struct pnet_cloud_writer;

/* Begins a file of `rows` rows, in any format that pnet_cloud_write writes. `like` is a cloud that has all that the pieces have
   in common, as the outline of a file in pieces does (pieces.h): the fields by name, type and part in their order, xyz_type, the
   units (metres), and c->las with head and tail. Its rows and the values of its fields are not looked at. `like` and what it
   owns must stay as they are until the writer is closed or dropped; `path` is copied. *w is NULL on failure: PNET_USAGE, another
   ending; PNET_FAILED, PNET_NO_MEMORY.

   Memory is that of 2048 rows, of 256 KiB of records of LAS, and of the head of LAS. */
enum pnet_status pnet_cloud_writer_open(const char *path, const struct pnet_cloud *like,
    int64_t rows, struct pnet_cloud_writer **w, struct pnet_error *e);

/* Puts the next rows, those of a piece, which stays the caller's: a piece that was read (pnet_cloud_pieces_next), and mostly
   restored (pnet_cloud_restore), so that it has a row for each row of the file. Where like->las is kept, piece->las has the raw
   bytes of its rows. It must be the same in each pass. Errors are those of pnet_cloud_write, and PNET_USAGE: other fields than
   those of `like`, more rows than announced, no raw bytes. On failure `w` can only be dropped. */
enum pnet_status pnet_cloud_writer_put(
    struct pnet_cloud_writer *w, const struct pnet_cloud *piece, struct pnet_error *e);

/* Ends a pass over all rows. *again: they are to be put once more, from the first one on. Errors are those of pnet_cloud_write,
   and PNET_USAGE: fewer rows than announced. On failure `w` can only be dropped. */
enum pnet_status pnet_cloud_writer_pass(
    struct pnet_cloud_writer *w, bool *again, struct pnet_error *e);

/* Gives the file its name after the last pass, as pnet_cloud_write does. Frees `w`. PNET_FAILED: the system refused;
   PNET_USAGE: passes are missing. On failure there is no file, or the one that was there. */
enum pnet_status pnet_cloud_writer_close(struct pnet_cloud_writer *w, struct pnet_error *e);
/* Removes what has been written, and frees `w`, which may be NULL. */
void pnet_cloud_writer_drop(struct pnet_cloud_writer *w);

#endif
