/* A liblaszip that fails in the way that PNET_FAKE_LASZIP names; else it writes no file. For tests of what the real one cannot be
   made to do. */
#include "runtime/io/laszip_library.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* NOLINTNEXTLINE(bugprone-macro-parentheses): parts of a declaration */
#define EXPORT(name, parameters)                                                                   \
    int32_t name parameters;                                                                       \
    int32_t name parameters

static struct pnet_laszip_header header;
static struct pnet_laszip_point point;
static char text[] = "the disk is made of cheese";

static int32_t fails(const char *way)
{
    const char *asked = getenv("PNET_FAKE_LASZIP");
    return asked && strcmp(asked, way) == 0;
}

EXPORT(laszip_get_version, (uint8_t * major, uint8_t *minor, uint16_t *revision, uint32_t *build))
{
    *major = fails("old") ? 2 : 3;
    *minor = 9;
    *revision = 1;
    *build = 1;
    return fails("version");
}

EXPORT(laszip_create, (void **writer))
{
    *writer = fails("create") ? NULL : &header;
    return fails("create");
}

EXPORT(laszip_destroy, (void *writer))
{
    return !writer;
}

EXPORT(laszip_get_error, (void *writer, char **said))
{
    *said = text;
    return !writer;
}

EXPORT(laszip_get_header_pointer, (void *writer, struct pnet_laszip_header **h))
{
    *h = writer;
    return fails("header");
}

EXPORT(laszip_get_point_pointer, (void *writer, struct pnet_laszip_point **p))
{
    *p = &point;
    return !writer || fails("point");
}

EXPORT(laszip_request_native_extension, (void *writer, int yes))
{
    return !writer || !yes || fails("native");
}

EXPORT(laszip_open_writer, (void *writer, const char *path, int compress))
{
    return !writer || !path || !compress || fails("open");
}

EXPORT(laszip_write_point, (void *writer))
{
    return !writer || fails("write");
}

EXPORT(laszip_close_writer, (void *writer))
{
    return !writer || fails("close");
}
