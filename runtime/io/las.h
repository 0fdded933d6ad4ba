/* LAS files: where a record has what, and what a cloud keeps of the file that it was read from, so that it can be written again.
   The specification is ASPRS LAS 1.4 - R15, and 1.0 to 1.5 as far as they agree. */
#ifndef PNET_RUNTIME_IO_LAS_H
#define PNET_RUNTIME_IO_LAS_H

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Offsets in the header, and sizes. */
enum {
    LAS_ENCODING = 6,
    LAS_VERSION = 24,
    LAS_SYSTEM = 26,
    LAS_SOFTWARE = 58,
    LAS_HEADER_SIZE = 94,
    LAS_POINT_OFFSET = 96,
    LAS_VLR_COUNT = 100,
    LAS_POINT_FORMAT = 104,
    LAS_RECORD_LENGTH = 105,
    LAS_COUNT32 = 107,
    LAS_RETURNS32 = 111,
    LAS_SCALES = 131,
    LAS_SHIFTS = 155,
    LAS_BOX = 179, /* greatest and least x, then y, then z */
    LAS_HEADER_LEAST = 227,
    LAS_WAVES_OFFSET = 227,
    LAS_HEADER_WAVES_LEAST = 235,
    LAS_EVLR_OFFSET = 235,
    LAS_EVLR_COUNT = 243,
    LAS_COUNT64 = 247,
    LAS_RETURNS64 = 255,
    LAS_HEADER64_LEAST = 375,
    LAS_HEADER_MOST = 65535,
    LAS_VLR_SIZE = 54,
    LAS_EVLR_SIZE = 60,
    LAS_EXTRA_SIZE = 192, /* of the description of one extra dimension */
    LAS_EXTRA_NAME = 32,
    LAS_RECORD_MOST = 65535,
    LAS_RETURNS = 15,
};
enum { LAS_FORMATS = 11 };

static const size_t PNET_LAS_NOT_KEPT = SIZE_MAX;

/* Neighbouring bytes of every record, or bits of one byte: a coordinate, the values of a field, or bytes that are no field. */
struct pnet_las_part {
    bool field;    /* it holds the values of a field */
    char name[64]; /* of the field, as it was read */
    int axis;      /* of a coordinate; -1: of none */
    int extra; /* the number of its description, counted over all records of descriptions; -1: it has none */
    int number; /* of several values with one description; -1: of one value */
    enum pnet_scalar type;
    size_t at, size; /* bytes */
    uint8_t low, bits;
    bool scaled; /* the value is scale * number + shift */
    double scale, shift;
    size_t kept; /* where the bytes lie among the kept bytes of a record, or PNET_LAS_NOT_KEPT */
};

/* The parts of a record, in the order of the fields. Owns them. */
struct pnet_las_layout {
    unsigned format;
    size_t record; /* bytes of a record */
    int extras;    /* descriptions */
    struct pnet_las_part *parts;
    int count;
};

/* Returns the bytes of a record of the format without extra dimensions. */
size_t pnet_las_format_size(unsigned format);
/* Tells whether records of the format have red, green and blue. */
bool pnet_las_has_colours(unsigned format);
/* Begins the empty layout with the parts of the point format, l->record bytes; coordinates have the scale 1. Returns false if
   memory is out. */
bool pnet_las_begin(struct pnet_las_layout *l, unsigned format);
/* Adds a part of one number to the end of the records, and returns it until the next one is added. NULL: out of memory. */
struct pnet_las_part *pnet_las_add(struct pnet_las_layout *l, enum pnet_scalar type);
/* Adds bytes that are no field to the end of the records; none are added where `size` is 0. Returns false if memory is out. */
bool pnet_las_add_bytes(struct pnet_las_layout *l, size_t size, int extra);
/* Sets the least and the greatest whole number that a part holds; of 64 bits, of those that a double has. */
void pnet_las_limits(const struct pnet_las_part *p, double *low, double *high);
void pnet_las_layout_free(struct pnet_las_layout *l);
/* Returns the point format of the same kind as `format` (old or new, with waveforms or not) that has what `format` has and, as
   far as there is one, what else is asked for. */
unsigned pnet_las_raise(unsigned format, bool time, bool colours, bool nir);

/* What the header tells of the points, as far as it follows from their records. */
struct pnet_las_summary {
    int64_t rows;
    int32_t low[3], high[3];
    int64_t returns[LAS_RETURNS]; /* points that are the first return, the second one .. */
};
void pnet_las_summary_begin(struct pnet_las_summary *s);
/* Counts n records of l->record bytes. */
void pnet_las_summary_add(
    struct pnet_las_summary *s, const struct pnet_las_layout *l, const uint8_t *records, int64_t n);

/* What a cloud keeps of its LAS or LAZ file, besides its coordinates and fields: all that is needed to write an uncompressed file
   whose bytes are the same as long as the cloud is. Of LAZ it has the header and records of the uncompressed file. */
struct pnet_las_kept {
    struct pnet_las_layout layout; /* pnet_field.part - 1 is the number of a part */
    int64_t rows;                  /* of the file */
    uint8_t *
        head; /* all before the points: header, records, padding; NULL: of some points of a file (pieces.h) */
    size_t head_size;
    uint8_t *tail; /* all after the points */
    size_t tail_size;
    /* [rows, width] raw bytes of the records: those that are no field, and numbers which the rounded value of a field may not
       give back */
    uint8_t *bytes;
    size_t width;
    struct pnet_las_summary summary;
};
void pnet_las_kept_free(struct pnet_las_kept *k);
/* Sets head and tail of `k`, which has its rows and layout, from a file whose header and records before the points have been
   checked. PNET_NO_MEMORY, and PNET_FAILED: what follows the points cannot be read. */
enum pnet_status pnet_las_keep_file(
    struct pnet_las_kept *k, struct pnet_file_parts *f, struct pnet_error *e);

/* What a file has before its points and after them. */
struct pnet_las_frame {
    const struct pnet_las_layout *layout;
    const struct pnet_las_summary *summary;
    const uint8_t *extras; /* [layout->extras, LAS_EXTRA_SIZE] descriptions */
    bool relaid; /* format, records or descriptions differ from those of the file that was read */
};
/* Makes what stands before the points, *head, which the caller frees, for a cloud that was read from LAS. Where the summary is
   that of the file, what the header tells of the points stays. PNET_NO_MEMORY. */
enum pnet_status pnet_las_make_head(const struct pnet_las_kept *k, const struct pnet_las_frame *f,
    uint8_t **head, size_t *size, struct pnet_error *e);
/* The same for any other cloud: LAS 1.4. */
enum pnet_status pnet_las_new_head(
    const struct pnet_las_frame *f, uint8_t **head, size_t *size, struct pnet_error *e);

/* Makes the head of a LAZ file, *packed, which the caller frees, from that of the LAS file with the same points: with the record
   `vlr` of vlr_size bytes behind its others, by which it is longer. points_size: of the compressed points. PNET_NO_MEMORY. */
enum pnet_status pnet_las_pack_head(const uint8_t *head, size_t size, uint64_t points_size,
    const struct pnet_las_frame *f, const uint8_t *vlr, size_t vlr_size, uint8_t **packed,
    struct pnet_error *e);

/* A record between header and points. */
struct pnet_las_vlr {
    uint64_t at, body, length;
};
/* Moves to record i of a file, from the one before it; all of it must lie in `data`. */
void pnet_las_next_vlr(const uint8_t *data, uint64_t i, struct pnet_las_vlr *v);
/* Tell whether a record says how the points are compressed, or describes extra dimensions. */
bool pnet_las_is_laszip(const uint8_t *data, const struct pnet_las_vlr *v);
bool pnet_las_is_extra(const uint8_t *data, const struct pnet_las_vlr *v);

/* Numbers at any address. */
static inline uint64_t pnet_las_load(const uint8_t *data, uint64_t at, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, data + at, bytes);
    return v;
}
static inline double pnet_las_load_double(const uint8_t *data, uint64_t at)
{
    double v;
    memcpy(&v, data + at, sizeof v);
    return v;
}
static inline void pnet_las_store(uint8_t *data, uint64_t at, uint64_t v, size_t bytes)
{
    memcpy(data + at, &v, bytes);
}

#endif
