/* Source files and places in them. */
#ifndef PNET_LANG_SOURCE_H
#define PNET_LANG_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/* A range of bytes, [begin, end), of one file. Line and column are computed when printed. Both ends 0: the file as a whole,
   printed without a line. */
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
    /* The last place that was looked up; a later place on its line is counted from there. */
    uint32_t last_start, last_offset, last_column;
};

/* All files that one compilation read. The arena owns names and texts. */
struct pnet_sources;

/* A text that stands in for the file at its path: what an editor holds and has not saved. It need not be the same bytes as the
   file, and there need not be a file. */
struct pnet_held_text {
    const char *text;
    size_t length;
};
struct pnet_overlay {
    /* Returns the text held for `path`, the same one for each path that leads to its file; NULL: none is. */
    const struct pnet_held_text *(*find)(void *context, const char *path);
    void *context;
};
/* From here on `s` asks the overlay before it reads from disk, and reads regular files alone: the others may be the stream that
   the editor speaks through. Texts are copied when they are read. */
void pnet_sources_use(struct pnet_sources *s, const struct pnet_overlay *overlay);

/* Returns NULL if there is no such file; file 0 is the main file. */
const struct pnet_source *pnet_sources_get(const struct pnet_sources *s, uint32_t file);

/* Computes the 1-based line and column (in characters: UTF-8 sequences count once, a tab once) of a byte offset. */
struct pnet_place {
    uint32_t line;
    uint32_t column;
};
struct pnet_place pnet_source_place(const struct pnet_sources *s, uint32_t file, uint32_t offset);
/* Computes only the line, without reading the text of the line. */
uint32_t pnet_source_line_at(const struct pnet_sources *s, uint32_t file, uint32_t offset);

#endif
