/* A set of blocks of memory, by their addresses. */
#ifndef PNET_RUNTIME_BLOCKS_H
#define PNET_RUNTIME_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialise it with zeros. */
struct pnet_blocks {
    void **
        held; /* [size] open addressing with linear probing; NULL: empty. At least half of it is empty. */
    size_t count;   /* of blocks */
    size_t size;    /* power of two, or 0 */
    uint64_t steps; /* places that were looked at so far */
};

/* Makes sure that the next pnet_blocks_add needs no memory. False: memory is out, and the set is as it was. */
bool pnet_blocks_reserve(struct pnet_blocks *b);
/* Adds a block that the set does not have. Call pnet_blocks_reserve before. */
void pnet_blocks_add(struct pnet_blocks *b, void *block);
/* Does nothing if the set does not have the block. */
void pnet_blocks_remove(struct pnet_blocks *b, const void *block);
/* Frees the set, not the blocks. */
void pnet_blocks_free(struct pnet_blocks *b);

#endif
