/* The set of blocks, compared with a plain list of what it should hold. */
#include "runtime/base/blocks.h"
#include "tests/check.h"

enum { POOL = 3000 };

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* Each block of the set lies at one place, which is found from its home without an empty place before it. The set has no function
   that looks for a block, so removing and adding it again does: neither changes the number. */
static void check_held(struct pnet_blocks *b, char *pool, const bool *in, size_t count)
{
    size_t found[POOL] = {0}, all = 0;
    for (size_t i = 0; i < b->size; i++)
        if (b->held[i]) {
            found[((char *)b->held[i] - pool) / 16]++;
            all++;
        }
    CHECK(all == count && b->count == count && 2 * count <= b->size);
    for (size_t i = 0; i < POOL; i++) CHECK(found[i] == in[i]);
    for (size_t i = 0; i < POOL; i++) {
        pnet_blocks_remove(b, pool + 16 * i);
        CHECKF(b->count == count - in[i], "block %zu is not found, or is there twice", i);
        if (in[i]) pnet_blocks_add(b, pool + 16 * i);
    }
}

/* Blocks come and go at random, first more come, then more go. */
static void check_against_a_list(unsigned seed)
{
    static char pool[16 * POOL];
    bool in[POOL] = {false};
    size_t count = 0;
    struct pnet_blocks b = {.held = NULL};
    pnet_blocks_remove(&b, pool);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 1000; i++) {
            unsigned which = draw(&seed, POOL);
            bool add = draw(&seed, 20) < (unsigned)(round < 10 ? 14 : 6);
            if (add == in[which]) continue;
            CHECK(pnet_blocks_reserve(&b));
            if (add)
                pnet_blocks_add(&b, pool + 16 * which);
            else
                pnet_blocks_remove(&b, pool + 16 * which);
            in[which] = add;
            count += add ? 1 : (size_t)-1;
        }
        check_held(&b, pool, in, count);
    }
    pnet_blocks_free(&b);
    CHECK(!b.held && !b.size && !b.count);
}

/* An allocator gives the address that was freed last: one place is filled and emptied over and over, and costs the same each
   time. */
static void check_taken_again(void)
{
    enum { KEPT = 20, TIMES = 100000 };
    static char pool[16 * (KEPT + 1)];
    struct pnet_blocks b = {.held = NULL};
    CHECK(pnet_blocks_reserve(&b));
    for (int i = 0; i < KEPT; i++) pnet_blocks_add(&b, pool + 16 * i);
    uint64_t before = b.steps;
    for (int i = 0; i < TIMES; i++) {
        CHECK(pnet_blocks_reserve(&b));
        pnet_blocks_add(&b, pool + sizeof pool - 16);
        pnet_blocks_remove(&b, pool + sizeof pool - 16);
    }
    CHECKF(b.steps - before <= (uint64_t)TIMES * 2 * (KEPT + 1) && b.size == 64, "%llu steps",
        (unsigned long long)(b.steps - before));
    pnet_blocks_free(&b);
}

int main(void)
{
    for (unsigned seed = 1; seed <= 5; seed++) check_against_a_list(seed);
    check_taken_again();
    return check_end();
}
