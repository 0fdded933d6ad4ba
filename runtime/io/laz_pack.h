/* Compresses the points of a LAS file by liblaszip. */
#ifndef PNET_RUNTIME_IO_LAZ_PACK_H
#define PNET_RUNTIME_IO_LAZ_PACK_H

#include "runtime/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct pnet_laz_packer;

/* What stands in a LAZ file. The bytes belong to the packer. */
struct pnet_laz_packed {
    const uint8_t *vlr; /* the record "laszip encoded", with its head */
    size_t vlr_size;
    /* The compressed points. Their first 8 bytes are the place of the table of chunks, which counts from the first of these
       bytes. */
    const uint8_t *points;
    size_t points_size;
};

/* Checks that points of that format can be compressed. PNET_USAGE: they have waveforms. */
enum pnet_status pnet_laz_check_format(const char *path, unsigned format, struct pnet_error *e);

/* Begins to compress records of a point format without waveforms, `record` bytes each. The caller frees *p. PNET_USAGE: there is
   no liblaszip; PNET_FAILED: the library or the system refused; PNET_NO_MEMORY. `path` stands in messages, and must
   outlive the packer. */
enum pnet_status pnet_laz_pack_new(const char *path, unsigned format, size_t record,
    struct pnet_laz_packer **p, struct pnet_error *e);
/* Adds n records. PNET_FAILED. */
enum pnet_status pnet_laz_pack(
    struct pnet_laz_packer *p, const uint8_t *records, int64_t n, struct pnet_error *e);
/* Ends the points. PNET_FAILED. */
enum pnet_status pnet_laz_pack_end(
    struct pnet_laz_packer *p, struct pnet_laz_packed *packed, struct pnet_error *e);
void pnet_laz_pack_free(struct pnet_laz_packer *p);

#endif
