/* A triplet set: its buffers, numbers and marks. */
#ifndef PNET_RUNTIME_GEO_TRIPLETS_H
#define PNET_RUNTIME_GEO_TRIPLETS_H

#include "runtime/geo/walk.h"

enum { /* buffers */
    SET_START,
    SET_OTHER,
    SET_CELL,
    SET_T_START, /* of the transposed form */
    SET_T_OTHER,
    SET_T_CELL,
    SET_TILE,               /* and the transposed form's behind it */
    SET_LIST = SET_TILE + 2 /* likewise */
};
enum {         /* numbers */
    SET_COUNT, /* T */
    SET_WORDS /* of the forward form's tiles, and the transposed form's behind it; 0 where it is not laid out */
};
/* Marks: bit 0, 1: a tile of the forward, the transposed form lists nothing, so that the triplets themselves are read
   too. */

/* Is the transposed form of a set with these forms built at all? */
bool pnet_set_transposes(unsigned forms);
/* Has it the forward (0) or the transposed (1) form as tiles? */
bool pnet_set_has_tiles(unsigned forms, int form);
/* The bytes of a form's tiles without their lists, for the capacity class of the rows that it is sorted by. */
size_t pnet_set_tile_bytes(int64_t rows);

#endif
