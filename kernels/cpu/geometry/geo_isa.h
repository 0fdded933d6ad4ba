/* The inner loops of the searches, compiled once for each instruction set; all give the same bits. */
#ifndef PNET_KERNELS_CPU_GEO_ISA_H
#define PNET_KERNELS_CPU_GEO_ISA_H

#include "kernels/cpu/geometry/geo_set.h"

enum {
    GATHER = 1024,   /* points gathered before they are tested */
    LONG_ROW = 4096, /* longer rows are sorted in place, more slowly */
};

/* Points near a block of queries. The padding after the last one is near to nothing. */
struct pnet_geo_gathered {
    int count;
    _Alignas(64) float pair_at[3][GATHER + WIDE];
    _Alignas(64) float cell_at[3][GATHER + WIDE]; /* filled where the spaces differ */
    _Alignas(64) int32_t row[GATHER + WIDE];
    _Alignas(64) int32_t parent[GATHER + WIDE]; /* filled where the set has parents */
};

/* A block of rows of `out`. */
struct pnet_geo_queries {
    struct pnet_geo_block block;
    float pair_at[WIDE][3], cell_at[WIDE][3];
    float low[3], high[3];             /* box of the queries in the space of pairs */
    float child_low[3], child_high[3]; /* box of the queries' children; empty: low > high */
    bool whole;                        /* the room had space for all near points */
    int64_t found[WIDE];
};

/* One thread's memory. */
struct pnet_geo_room {
    struct pnet_geo_gathered points;
    struct pnet_geo_queries queries;
    int32_t other[LONG_ROW + WIDE], cell[LONG_ROW + WIDE];
    int32_t spare_other[LONG_ROW], spare_cell[LONG_ROW];
};

struct pnet_geo_isa {
    /* Finds the points near the queries in room->queries and counts their pairs (`to->count`) or
     * writes them. */
    void (*search_block)(const struct pnet_geo_set *s, struct pnet_geo_room *room,
        const struct pnet_geo_results *to);
    /* Computes squared distances from a point to WIDE boxes, by the operations of the distance between points. Returns a bit
       for each distance that is not above `bound`. */
    uint32_t (*near_point)(const float low[3][WIDE], const float high[3][WIDE], const float at[3],
        float bound, float distance2[WIDE]);
};

/* Returns the table for this machine, which pnet_cpu_isa() selects. */
const struct pnet_geo_isa *pnet_geo_isa(void);

#endif
