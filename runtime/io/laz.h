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

/* What the header of the LAS file says, and where the record "laszip encoded" 22204 is: its body of `vlr_size` bytes. */
struct pnet_laz {
    const struct pnet_bytes *b;
    const char *path;
    unsigned format;
    size_t record, least; /* bytes a point, and without extra bytes */
    uint64_t points_at, rows, vlr_at, vlr_size;
};

/* Sets `records` to `rows` records of plain LAS, never NULL, which the caller frees. Its room grows with the points that are
   decoded, not with those that the header promises. */
enum pnet_status pnet_laz_unpack(const struct pnet_laz *z, uint8_t **records, struct pnet_error *e);

#endif
