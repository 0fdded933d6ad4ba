/* liblaszip, opened when the first LAZ file is written: the program runs without it. Its functions and structures are declared
   here as in laszip_api.h of LASzip 3 (rapidlasso, Apache License 2.0), as far as they are the same in all its versions.
   Functions return 0, or another number on failure. */
#ifndef PNET_RUNTIME_IO_LASZIP_LIBRARY_H
#define PNET_RUNTIME_IO_LASZIP_LIBRARY_H

#include "runtime/base/error.h"

#include <stdint.h>

/* laszip_header, up to what writing points needs. */
struct pnet_laszip_header {
    uint16_t source, encoding;
    uint32_t id1;
    uint16_t id2, id3;
    char id4[8];
    uint8_t major, minor;
    char system[32], software[32];
    uint16_t day, year, header_size;
    uint32_t points_at, record_count;
    uint8_t format;
    uint16_t record;
};

/* laszip_point. Its members of some bits are bytes here: the lowest bits come first. */
struct pnet_laszip_point {
    uint8_t point10[20]; /* as a record of point format 0 */
    int16_t scan_angle;  /* from here to `returns` of point formats from 6 on */
    uint8_t flags;       /* 2 bits: 1; 2 bits: scanner channel; 4 bits: flags of the class */
    uint8_t classification;
    uint8_t returns; /* as in the record */
    uint8_t unused[7];
    double gps_time;
    uint16_t colours[4]; /* red, green, blue, near infrared */
    uint8_t wave[29];
    int32_t extra_size;
    uint8_t *extra; /* of the library */
};

#define PNET_LASZIP_FUNCTIONS(F)                                                                   \
    F(laszip_create, (void **writer))                                                              \
    F(laszip_destroy, (void *writer))                                                              \
    F(laszip_get_error, (void *writer, char **text))                                               \
    F(laszip_get_header_pointer, (void *writer, struct pnet_laszip_header **header))               \
    F(laszip_get_point_pointer, (void *writer, struct pnet_laszip_point **point))                  \
    F(laszip_request_native_extension, (void *writer, int yes))                                    \
    F(laszip_open_writer, (void *writer, const char *path, int compress))                          \
    F(laszip_write_point, (void *writer))                                                          \
    F(laszip_close_writer, (void *writer))

struct pnet_laszip_library {
    uint8_t major, minor;
    uint16_t revision;
/* NOLINTNEXTLINE(bugprone-macro-parentheses): parts of a declaration */
#define PNET_FUNCTION(name, parameters) int32_t(*name) parameters;
    PNET_LASZIP_FUNCTIONS(PNET_FUNCTION)
#undef PNET_FUNCTION
};

/* Names the library, for programs, before other threads begin; NULL or "": the usual names. `name` is not copied. */
void pnet_laszip_choose(const char *name);
/* Opens the library the first time; *l lives as long as the process, and may be used by several threads. PNET_USAGE: it is not
   there, or of another version; the message names `path`, the file that is to be written, and what to install. */
enum pnet_status pnet_laszip_open(
    const char *path, const struct pnet_laszip_library **l, struct pnet_error *e);

#endif
