/* What the files of APML share: two sets that are searched in both directions, and the lists that come out. */
#ifndef PNET_KERNELS_CPU_SETS_APML_H
#define PNET_KERNELS_CPU_SETS_APML_H

#include "kernels/apml.h"
#include "kernels/cpu/geometry/geo_tree.h"
#include "kernels/geometry.h"

/* A set as others search it, and what its rows find in the other set. */
struct pnet_apml_side {
    struct pnet_level level;
    struct pnet_geo_blocks blocks;
    struct pnet_geo_tree tree;
    int64_t *start; /* of blocks */
    int32_t *order;
    float *near;    /* [rows, 2]: a, b */
    int32_t *count; /* [rows]: points in the support */
    bool *kept;     /* [blocks]: the keys of the block's supports are in its slot */
    int32_t limit;
};

enum { PNET_APML_X, PNET_APML_Y };

struct pnet_apml_search {
    const struct pnet_apml *loss;
    struct pnet_apml_side side[2];
    void *scratch; /* where the trees lie */
};

/* Takes the memory of a search. */
void pnet_apml_search_take(
    struct pnet_apml_search *s, const struct pnet_apml *a, struct pnet_geo_purse *purse);

/* Are all coordinates finite, and all squared distances within a sample? */
bool pnet_apml_finite(const struct pnet_apml *a);

/* Finds the supports of both sets, and the limits. slots[side] [entries * rows], or NULL: keeps the supports of a block, as
   keys of (distance, row), where they fit into its share, so that they need not be searched again. */
void pnet_apml_find(struct pnet_apml_search *s, uint64_t *const slots[2]);

/* Writes the supports of one side, cut at its limit, by rows, then by rows of the other set: half of the weights, which add
   up to 1 over a row. start [rows + 1] gets the places of the rows. `slots` as above; `to` [entries * rows] is other memory. */
void pnet_apml_write(const struct pnet_apml_search *s, int side, const uint64_t *slots,
    int64_t *start, struct pnet_apml_entry *to);

#endif
