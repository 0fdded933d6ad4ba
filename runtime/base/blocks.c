#include "runtime/base/blocks.h"

#include <stdlib.h>

/* The place where the search for a block begins: bits of its address mixed as SplitMix64 does, because a single multiplication
   leaves addresses at equal distances in long rows of places. */
static size_t home(const void *block, size_t size)
{
    uint64_t h = (uint64_t)(uintptr_t)block;
    h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(h ^ h >> 31) & (size - 1);
}

void pnet_blocks_add(struct pnet_blocks *b, void *block)
{
    size_t at = home(block, b->size);
    b->steps++;
    for (; b->held[at]; b->steps++) at = (at + 1) & (b->size - 1);
    b->held[at] = block;
    b->count++;
}

bool pnet_blocks_reserve(struct pnet_blocks *b)
{
    if (b->count < b->size / 2) return true;
    struct pnet_blocks larger = {.size = b->size ? 2 * b->size : 64, .steps = b->steps + b->size};
    larger.held = calloc(larger.size, sizeof *larger.held);
    if (!larger.held) return false;
    for (size_t i = 0; i < b->size; i++)
        if (b->held[i]) pnet_blocks_add(&larger, b->held[i]);
    free(b->held);
    *b = larger;
    return true;
}

/* Empties a place. Nothing marks what was there: a mark would make every later search longer, and the same addresses are freed
   and taken again all the time. Instead, the blocks after it move up to where their search finds them (Knuth, The Art of
   Computer Programming 3, section 6.4, algorithm R). */
static void empty(struct pnet_blocks *b, size_t hole)
{
    size_t mask = b->size - 1;
    for (size_t at = (hole + 1) & mask; b->held[at]; at = (at + 1) & mask) {
        b->steps++;
        size_t distance = (at - home(b->held[at], b->size)) & mask;
        if (distance < ((at - hole) & mask)) continue; /* its search begins after the hole */
        b->held[hole] = b->held[at];
        hole = at;
    }
    b->held[hole] = NULL;
}

void pnet_blocks_remove(struct pnet_blocks *b, const void *block)
{
    if (!b->size || !block) return;
    size_t at = home(block, b->size);
    b->steps++;
    for (; b->held[at] && b->held[at] != block; b->steps++) at = (at + 1) & (b->size - 1);
    if (!b->held[at]) return;
    empty(b, at);
    b->count--;
}

void pnet_blocks_free(struct pnet_blocks *b)
{
    free(b->held);
    *b = (struct pnet_blocks){.held = NULL};
}
