/* LAZ: the compressed points of a LAS file, as LASzip writes them (M. Isenburg, "LASzip: lossless compression of LiDAR data",
   PE&RS 79(2), 2013; the LASzip and laz-perf libraries define the format). COPC is LAZ of LAS 1.4, whose chunks are read in the
   order of the file. */
#ifndef PNET_RUNTIME_IO_LAZ_H
#define PNET_RUNTIME_IO_LAZ_H

#include "runtime/base/error.h"
#include "runtime/base/file.h"

#include <stddef.h>
#include <stdint.h>

/* More than the most points that a byte holds, which are 1062. Where models are sure of everything, a point of formats 0 to 3
   still takes 1/133 bit: -log2(1 - 63/2^15) for what changes, and -log2(1 - 32/2^15) - log2(1 - 1/2^13) for each coordinate.
   Formats 6 to 8 take more. */
enum { PNET_LAZ_POINTS_A_BYTE = 2048 };

/* What the header of the LAS file says, and where the record "laszip encoded" 22204 is: its body of `vlr_size` bytes. What stands
   before the points is loaded. */
struct pnet_laz {
    struct pnet_file_parts *file;
    unsigned format;
    size_t record, least; /* bytes a point, and without extra bytes */
    uint64_t points_at, rows, vlr_at, vlr_size;
};

/* Decodes points in order. `z` is copied, its file must stay. It loads the bytes that it needs, and drops those of points that
   have been decoded. On failure *r is NULL. */
struct pnet_laz_reader;
enum pnet_status pnet_laz_open(
    const struct pnet_laz *z, struct pnet_laz_reader **r, struct pnet_error *e);
void pnet_laz_close(struct pnet_laz_reader *r);
/* Writes the next records of plain LAS, at most as many as are left. After an error the reader can only be closed. */
enum pnet_status pnet_laz_next(
    struct pnet_laz_reader *r, uint64_t rows, uint8_t *records, struct pnet_error *e);
/* Goes back to the first point. */
void pnet_laz_rewind(struct pnet_laz_reader *r);

/* Sets `records` to all points, never NULL, which the caller frees. Its room grows with the points that are decoded, not with
   those that the header promises. */
enum pnet_status pnet_laz_unpack(const struct pnet_laz *z, uint8_t **records, struct pnet_error *e);

/* Sets *count to the number of points that the chunks hold at least, of a file whose points can be read. Of old point formats in
   chunks of one size these are the points up to the first one of the last chunk, or one more than the header counts if bytes of
   that chunk are left over behind them, for which its points are decoded. 0: nothing tells it. PNET_NO_MEMORY; PNET_BAD_DATA:
   the table of chunks is damaged behind the points that the header counts. */
enum pnet_status pnet_laz_count(const struct pnet_laz *z, uint64_t *count, struct pnet_error *e);

#endif
