/* The geometry table: one row a kind of geometry. A kind is either where the rows of a level come from (the points of an
   input, one a cell of a grid ..), or something that is built from the coordinates of levels (a triplet set, nearest points
   ..). Everything about a kind stands in its row; sizes, addresses, sharing, copies for the host and listings follow from it.

   To add a kind: one file in runtime/geo/ that ends in its row, its kernels with their contract, one line in
   runtime/plan/geo.def (docs/adding-a-geometry.md). */
#ifndef PNET_RUNTIME_GEO_H
#define PNET_RUNTIME_GEO_H

#include "kernels/geometry.h"
#include "runtime/device/device.h"
#include "runtime/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct pnet_plan;
struct pnet_json;
struct pnet_level_info;

/* PNET_GEO_INPUT, PNET_GEO_TRIPLETS .. */
enum pnet_geo_id {
#define PNET_GEO(ID, row, arguments) PNET_GEO_##ID,
#include "runtime/plan/geo.def"
#undef PNET_GEO
    PNET_GEO_KINDS
};

enum {
    PNET_GEO_BUFFERS = 10, /* of one item */
    PNET_GEO_COUNTS = 3,   /* numbers that are known only when an item was built: of triplets .. */
};

/* Forms of an item: what either direction of a layer reads of it. A kind without forms has none of these bits; a new kind
   may use them as it likes. */
enum pnet_geo_forms {
    PNET_FORM_FORWARD = 1,    /* TRIPLETS: one by one, sorted by the row of level `a` */
    PNET_FORM_TRANSPOSED = 2, /* TRIPLETS, CORNERS: sorted by the row of level `b` */
    PNET_FORM_CHILDREN = 4,   /* PARENT: the children of each coarse row */
    /* TRIPLETS on a GPU: the same laid out as tiles; one by one only where a tile lists nothing */
    PNET_FORM_FORWARD_TILES = 8,
    PNET_FORM_TRANSPOSED_TILES = 16,
    PNET_FORM_PARENT = 32, /* PARENT: the coarse row of each fine row */
};

/* What an op asks of the geometry stage. Equal requests share one item. */
struct pnet_geo_request {
    enum pnet_geo_id kind;
    int a, b; /* levels. TRIPLETS: a holds the centres, b the neighbours, a == b or a the coarser
                 one; PARENT, NEAREST: a the finer, b the coarser; MATCHES: a the source, b the
                 target; CORNERS: a the queries, b the source; kinds of levels: the level, twice */
    union {   /* the arguments, by kind: q.triplets.nb, q.nearest.k, q.matches.pose .. */
#define PNET_GEO(ID, row, arguments)                                                               \
    struct {                                                                                       \
        arguments                                                                                  \
    } row;
#include "runtime/plan/geo.def"
#undef PNET_GEO
    };
    unsigned forward_forms, backward_forms; /* which forms either direction reads */
};

/* One geometry item of one batch, as kernels and layers read it. Which pointers are there depends on its kind and forms. A
   kind whose row has no `view` has `count` and `array` alone. */
struct pnet_geo_view {
    enum pnet_geo_id kind;
    int a, b; /* the levels of the request */
    unsigned
        forms; /* of enum pnet_geo_forms: those that are built, or will be; 0 while they are being chosen */
    int64_t a_rows, b_rows;              /* of these levels; of their capacity classes on a GPU */
    const int64_t *a_live, *b_live;      /* GPU: their true numbers; NULL: the two above */
    int64_t count[PNET_GEO_COUNTS];      /* of the kind, or of its capacity classes */
    const void *array[PNET_GEO_BUFFERS]; /* the buffers of the kind, by its own numbers */
    struct pnet_level level;             /* kinds of levels */
    /* TRIPLETS, PNET_FORM_FORWARD. MATCHES: start and other alone, each row of a with those of b
       at |T p - q| <= radius, ascending. CORNERS: start and other alone, each query with the source rows around it */
    struct pnet_triplets forward;
    /* TRIPLETS, PNET_FORM_TRANSPOSED. Of a form that is read as tiles alone the row starts are there, and the tiles */
    struct pnet_triplets transposed;
    const float *weight, *transposed_weight; /* CORNERS: of the entries; NULL: all are 1 */
    const int32_t *parent;                   /* PARENT [a_rows] */
    const int64_t *child_start;              /* PARENT [b_rows + 1], PNET_FORM_CHILDREN */
    const int32_t
        *child; /* PARENT [a_rows]; NULL: the rows themselves, cells are stretches of them */
    int32_t k;  /* NEAREST */
    const int32_t *nearest; /* NEAREST [a_rows, k], -1: none */
    const float *distance2; /* NEAREST [a_rows, k] */
};

/* What the sizes of everything else are linear in. */
struct pnet_counts {
    int32_t samples;
    int64_t *rows;                  /* [level_count] */
    int64_t (*of)[PNET_GEO_COUNTS]; /* [geo_count]: numbers of each item, as its kind has them */
    unsigned *marks;                /* [geo_count]: further bits of the kind */
};

/* Where the bytes of a buffer count in listings. */
enum pnet_geo_part {
    PNET_PART_LEVELS,   /* points, their order */
    PNET_PART_MAPS,     /* parents, children, nearest points, matches, and what new kinds have */
    PNET_PART_TRIPLETS, /* one by one */
    PNET_PART_TILES,
    PNET_GEO_PARTS
};

/* Where a buffer lies. */
enum pnet_geo_owner {
    PNET_OWNER_SLOT, /* in the slot: it is read once the batch is built */
    PNET_OWNER_SHARED, /* in what the slots of a runner share, taking turns: it is read while a batch is built */
    PNET_OWNER_PASSING, /* likewise, and each item of the kind writes it anew */
};

/* How far apart on an axis the rows lie that an item joins, metres; INFINITY: not bounded. Of levels without cells the cell of a
   row is its place. */
struct pnet_geo_reach {
    double apart; /* the places of two rows, one of each level */
    double beyond
        [2]; /* how far the cell of the row of `b` reaches beyond that of the row of `a`; of that of `a` beyond that of `b` */
};

struct pnet_geo_walk;
struct pnet_geo_look;

enum pnet_geo_flags {
    PNET_GEO_LEVEL = 1,    /* gives a level its rows */
    PNET_GEO_SEARCHES = 2, /* searches its levels, so that they need keys */
};

/* A row. */
struct pnet_geo_kind {
    const char *name; /* in listings: "triplets" */
    unsigned flags;   /* enum pnet_geo_flags */
    int counts;       /* how many of PNET_GEO_COUNTS it has */
    int class_counts; /* the first of them: the layout of the feature stage depends on their capacity classes */
    enum pnet_geo_part part[PNET_GEO_BUFFERS]; /* of its buffers */
    /* Are the arguments equal? NULL: it has none. */
    bool (*same)(const struct pnet_geo_request *q, const struct pnet_geo_request *r);
    /* Of its arguments, equal where they are the same: so that one of many is found at once. NULL: 0. */
    uint32_t (*mix)(const struct pnet_geo_request *q);
    /* Fills another item that it is built from; false: there is none. NULL: never. */
    bool (*needs)(const struct pnet_geo_request *q, struct pnet_geo_request *needed);
    /* The tensor of an input that it is built from besides coordinates. NULL: none. */
    int (*reads)(const struct pnet_geo_request *q);
    /* Where a buffer of an item with these forms lies. NULL: in the slot. */
    enum pnet_geo_owner (*owner)(const struct pnet_plan *p, int item, unsigned forms, int which);
    /* How far apart the rows lie that an item joins. Of a kind of levels: the points of the input that decide whether a row is
       there, and where, from that row, and how far they lie beyond its cell (beyond[0]). NULL: anywhere in the sample. */
    struct pnet_geo_reach (*reach)(const struct pnet_plan *p, const struct pnet_geo_request *q);
    /* Goes through everything that building an item takes, in its order: memory by pnet_geo_buffer and pnet_geo_scratch,
       and the kernels where pnet_geo_builds says so. One walk sizes an item and builds it. NULL: no item (sample, scalar). */
    void (*walk)(struct pnet_geo_walk *w);
    /* Fills the members of a view that are its own. NULL: it has `array`. */
    void (*view)(const struct pnet_geo_look *l, struct pnet_geo_view *v);
    /* Counts without a cloud to go by, of an item with these forms; rows of finer levels are there. NULL: none. */
    void (*assume)(const struct pnet_plan *p, int item, unsigned forms, struct pnet_counts *c);
    /* The arguments, in the listing of a plan: "  K=3 radius=0.1m". NULL: none. */
    void (*print)(const struct pnet_plan *p, const struct pnet_geo_request *q, FILE *out);
    /* Its line of `pnetc plan`, below `heading`, which may be NULL. NULL: none. */
    const char *heading;
    void (*describe)(const struct pnet_plan *p, int item, const struct pnet_counts *c, FILE *out);
    /* Its object in the list `list` of `pnetc plan --json`. NULL: none. */
    const char *list;
    void (*json)(
        const struct pnet_plan *p, int item, const struct pnet_counts *c, struct pnet_json *j);
};

/* The row of a kind. */
const struct pnet_geo_kind *pnet_geo_kind(enum pnet_geo_id id);
/* Do two requests share an item? */
bool pnet_geo_same(const struct pnet_geo_request *q, const struct pnet_geo_request *r);

/* In a plan. */
/* The item that gives a level its rows; -1. The item of equal request; -1. */
int pnet_geo_level_item(const struct pnet_plan *p, int level);
int pnet_geo_find(const struct pnet_plan *p, const struct pnet_geo_request *q);
/* Is a level searched, so that it needs keys? */
bool pnet_geo_searched(const struct pnet_plan *p, int level);
/* The reach of an item of that request, and of the item that gives a level its rows. */
struct pnet_geo_reach pnet_geo_reach(const struct pnet_plan *p, const struct pnet_geo_request *q);
struct pnet_geo_reach pnet_geo_level_reach(const struct pnet_plan *p, int level);
/* The reach of a map from the rows of a level, `a`, to those that stand for them on a coarser one, `b`. */
struct pnet_geo_reach pnet_geo_parent_reach(const struct pnet_plan *p, int fine, int coarse);
/* That of levels of which nothing is known. */
struct pnet_geo_reach pnet_geo_anywhere(void);
/* Rows of POINTS from counts of the level that they are generated for. More than PNET_MAX_ROWS where that level has, so that no
   chain of levels overflows. */
int64_t pnet_generated_rows(const struct pnet_level_info *l, const struct pnet_counts *c);
/* Rounds an assumed count up. At least 0, and at most 1e15, so that bytes and capacities formed from it do not overflow. */
int64_t pnet_geo_assumed(double count);
/* Do rows of the finer level follow those of the coarser one, so that children are stretches of rows? */
bool pnet_geo_stretches(const struct pnet_plan *p, int fine, int coarse);

#endif
