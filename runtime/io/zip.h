/* Members of ZIP archives (PKWARE's APPNOTE), stored or deflated, with 64-bit sizes: as much as NPZ
 * needs. */
#ifndef PNET_RUNTIME_IO_ZIP_H
#define PNET_RUNTIME_IO_ZIP_H

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/io/text.h"

#include <stdbool.h>
#include <stdint.h>

/* A walk over the archive's directory; `b` must outlive it. */
struct pnet_zip {
    const struct pnet_bytes *b;
    const char *path;
    uint64_t next, end; /* bytes of the directory still to be read */
    uint64_t left;      /* entries still to be read */
    uint64_t room;      /* bytes that members may still unpack to */
    /* The member last found: */
    struct pnet_span name;
    unsigned method, flags;
    uint32_t crc;
    uint64_t packed, size, header; /* sizes in bytes, offset of its local header */
};

/* What all members of an archive unpack to, at most: PNET_ZIP_RATIO times its size, or PNET_ZIP_LEAST
   bytes where that is more. Grids of voxels reach a ratio of 130. */
enum { PNET_ZIP_RATIO = 256, PNET_ZIP_LEAST = 64 << 20 };

/* PNET_BAD_DATA where there is no directory. */
enum pnet_status pnet_zip_begin(
    struct pnet_zip *z, const struct pnet_bytes *b, const char *path, struct pnet_error *e);
/* The next member; *found false at the end. */
enum pnet_status pnet_zip_next(struct pnet_zip *z, bool *found, struct pnet_error *e);
/* The content of the member last found, checked against its CRC and the room left, which it takes; stored ones are not
   copied. Free with pnet_bytes_free, before the archive's bytes. */
enum pnet_status pnet_zip_member(struct pnet_zip *z, struct pnet_bytes *m, struct pnet_error *e);

#endif
