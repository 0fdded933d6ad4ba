/* Members of ZIP archives (PKWARE's APPNOTE), stored or deflated, with 64-bit sizes: the part of the format that NPZ uses. */
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
    uint64_t next, end; /* the rest of the directory, in bytes */
    uint64_t left;      /* entries not yet read */
    uint64_t room;      /* bytes that members may still unpack to */
    /* The present member: */
    struct pnet_span name;
    unsigned method, flags;
    uint32_t crc;
    uint64_t packed, size, header; /* sizes in bytes, offset of its local header */
};

/* The most bytes that all members of an archive may unpack to: PNET_ZIP_RATIO times its size, or PNET_ZIP_LEAST bytes if
   that is more. Grids of voxels reach a ratio of 130. */
enum { PNET_ZIP_RATIO = 256, PNET_ZIP_LEAST = 64 << 20 };

/* PNET_BAD_DATA if there is no directory. */
enum pnet_status pnet_zip_begin(
    struct pnet_zip *z, const struct pnet_bytes *b, const char *path, struct pnet_error *e);
/* Moves to the next member; *found is false at the end. */
enum pnet_status pnet_zip_next(struct pnet_zip *z, bool *found, struct pnet_error *e);
/* Returns the content of the present member, checked against its CRC and the room left, which it reduces; a stored member is
   not copied. Free with pnet_bytes_free, before the archive's bytes. */
enum pnet_status pnet_zip_member(struct pnet_zip *z, struct pnet_bytes *m, struct pnet_error *e);

#endif
