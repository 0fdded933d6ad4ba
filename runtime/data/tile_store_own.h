/* What the files of the store of tiles share. */
#ifndef PNET_RUNTIME_TILE_STORE_OWN_H
#define PNET_RUNTIME_TILE_STORE_OWN_H

#include "runtime/base/file.h"
#include "runtime/data/tile_store.h"

#include <stddef.h>

/* Records of points, the rows of the file that they are, their values, and which tiles have theirs. */
enum pnet_store_file { POINTS, ROWS, VALUES, DONE, FILES };

/* The head of DONE, behind which a byte a tile follows. */
struct head {
    char magic[8];
    uint64_t key, points;
};

struct stored {
    int32_t place[3];
    float low[3], high[3]; /* box of its points */
    int64_t first, count;  /* in the files */
    int64_t filled; /* while points are put; then, while values are read, those that were read */
    int64_t *rows;  /* the next rows of the file, while values are read: [cursor_rows] */
};

struct pnet_tile_store {
    struct pnet_tile_store_options o;
    char folder[PNET_PATH_MOST];
    int fd[FILES];
    struct stored *tiles; /* while points are counted in no order, then by place */
    int64_t count, room;
    int64_t *table; /* [table_size], a power of 2: numbers of tiles by their place; -1: none */
    int64_t table_size, last;
    int64_t points;
    float largest;
    uint64_t hash; /* of all points that were put */
    size_t bytes;  /* of a record: coordinates, then the fields */
    bool *done;    /* [count] */
    int64_t cursor_rows;
};

/* Returns the bytes of a field in a record; 0: it is not kept. */
static inline size_t pnet_stored_bytes(const struct pnet_input_field *f)
{
    if (f->unused || f->per_cloud || f->kind == PNET_INPUT_POSITION) return 0;
    return f->kind == PNET_INPUT_CLASS ? sizeof(int32_t) : (size_t)f->width * sizeof(float);
}

/* Write and read a part of a file, whole. PNET_FAILED names the file. */
enum pnet_status pnet_store_failed(
    const struct pnet_tile_store *s, enum pnet_store_file file, struct pnet_error *e);
enum pnet_status pnet_store_write(const struct pnet_tile_store *s, enum pnet_store_file file,
    const void *data, size_t bytes, uint64_t at, struct pnet_error *e);
enum pnet_status pnet_store_read(const struct pnet_tile_store *s, enum pnet_store_file file,
    void *data, size_t bytes, uint64_t at, struct pnet_error *e);

#endif
