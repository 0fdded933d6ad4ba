/* A plan bound to a device: all that is chosen for a run of it, and what follows from that for every batch. Decided once; the
   plan stays as the compiler made it, and threads share both. */
#ifndef PNET_RUNTIME_BOUND_H
#define PNET_RUNTIME_BOUND_H

#include "runtime/plan/geo_look.h"

/* What is chosen. Zeroed: the CPU, and the fixed table of algorithms. */
struct pnet_target {
    struct pnet_device where;
    int architecture; /* CUDA: of the GPU to plan for: 80, 86, 89, 90; 0: the one at hand, or 90 where there is none */
    enum pnet_precision precision; /* of products; the CPU computes float32 */
    enum pnet_conv_algo algo; /* of all convolutions; others than the usual ones take float32 */
    const struct pnet_algos *algos; /* [node_count]: of each, copied; NULL: all are `algo` */
    bool choosing; /* algorithms are tried: triplets are there one by one too where tiles are */
};

struct pnet_apart;

/* Read by everybody, changed by nobody. */
struct pnet_bound {
    const struct pnet_plan *plan;
    struct pnet_device where;
    enum pnet_device_kind device; /* of `where`: whose kernels run, and size workspaces */
    int architecture;             /* as the target's */
    enum pnet_precision precision;
    struct pnet_algos *algos; /* [node_count] */
    /* [tensor_count]: how features lie in memory; PNET_STORE_F32 on the CPU, and for losses and statistics */
    enum pnet_storage *storage;
    unsigned *forms; /* [geo_count]: of enum pnet_geo_forms, that the schedule reads */
    enum pnet_geo_owner (*owner)[PNET_GEO_BUFFERS]; /* [geo_count]: where its buffers lie */
    int *level_item;                                /* [level_count]: the item of each level; -1 */
    struct pnet_exec *exec; /* [step_count]: what a step gets, but numbers of rows and memory */
    int *seeds; /* [seed_count]: the gradients of the losses, with which backward begins */
    int seed_count;
    int device_steps; /* forward steps that the device runs; it leaves the others to the host */
    struct pnet_apart *apart; /* GPU: which steps may be concurrent; else NULL */
};

/* Binds `p`, which must live as long. PNET_USAGE: an algorithm does not compute in that precision. The device need not be
   there: a session asks for it. */
enum pnet_status pnet_bound_new(const struct pnet_plan *p, const struct pnet_target *t,
    struct pnet_bound **b, struct pnet_error *e);
void pnet_bound_free(struct pnet_bound *b);

/* A look at an item, with the forms it has here: to be completed with counts and places. */
struct pnet_geo_look pnet_bound_look(
    const struct pnet_bound *b, int item, const struct pnet_counts *c, bool capacity);
/* Views of all items by counts alone, without pointers: [geo_count]. `capacity`: of the capacity classes. */
void pnet_bound_views(const struct pnet_bound *b, const struct pnet_counts *c, bool capacity,
    struct pnet_geo_view *views);
/* What a step gets, without memory: the caller sets pointers. `views` [geo_count] have the same counts. */
void pnet_bound_exec(const struct pnet_bound *b, int step, const struct pnet_counts *c,
    bool capacity, const struct pnet_geo_view *views, struct pnet_exec *x);

/* Bytes of an element of a tensor as the device stores it. */
size_t pnet_bound_element_bytes(const struct pnet_bound *b, int tensor);

#endif
