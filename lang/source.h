/* Source files and places in them. */
#ifndef PNET_LANG_SOURCE_H
#define PNET_LANG_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/* A stretch of bytes, [begin, end), of one file. The line and column are computed when printed.
   Both ends 0: the file as a whole, printed without a line. */
struct pnet_span {
    uint32_t file; /* index into pnet_sources */
    uint32_t begin;
    uint32_t end;
};

struct pnet_source {
    const char *name; /* as the user wrote it, for messages */
    const char *text; /* any bytes; NUL follows the last */
    size_t length;
    struct pnet_span included_from; /* of the include statement; begin == end for the main file */
    uint32_t *line_starts;          /* built when first needed */
    size_t line_count;
    /* The last place asked for: the next one of its line is counted from there. */
    uint32_t last_start, last_offset, last_column;
};

/* Every file one compilation read; owns names and texts through its arena. */
struct pnet_sources;

/* NULL when there is no such file; file 0 is the main one. */
const struct pnet_source *pnet_sources_get(const struct pnet_sources *s, uint32_t file);

/* 1-based line and column (in characters: UTF-8 sequences count once, a tab once) of a byte offset.
 */
struct pnet_place {
    uint32_t line;
    uint32_t column;
};
struct pnet_place pnet_source_place(const struct pnet_sources *s, uint32_t file, uint32_t offset);
/* The line alone, for which no line has to be read. */
uint32_t pnet_source_line_at(const struct pnet_sources *s, uint32_t file, uint32_t offset);

#endif
