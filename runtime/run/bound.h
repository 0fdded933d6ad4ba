/* A plan bound to a target: the choices for a run, and all that follows from them for every batch. It is computed once. The
   plan stays as the compiler made it; threads share both. */
#ifndef PNET_RUNTIME_BOUND_H
#define PNET_RUNTIME_BOUND_H

#include "runtime/plan/geo_look.h"

/* Choices for a run. Zeroed: the CPU, and the fixed table of algorithms. */
struct pnet_target {
    struct pnet_device where;
    int architecture; /* CUDA: the GPU to plan for: 80, 86, 89, 90; 0: the present GPU, or 90 without one */
    enum pnet_precision precision; /* of products; the CPU computes float32 */
    /* of all convolutions; algorithms that are not defaults take float32 */
    enum pnet_conv_algo algo;
    const struct pnet_algos *algos; /* [node_count]: of each, copied; NULL: all are `algo` */
    bool choosing; /* algorithms are tried: sets laid out as tiles are kept one by one as well */
};

struct pnet_apart;

/* Threads read it; nothing changes it. */
struct pnet_bound {
    const struct pnet_plan *plan;
    struct pnet_device where;
    enum pnet_device_kind device; /* device of `where`, whose kernels run and size workspaces */
    int architecture;             /* as the target's */
    enum pnet_precision precision;
    struct pnet_algos *algos; /* [node_count] */
    /* [tensor_count]: storage of features; PNET_STORE_F32 on the CPU, and for losses and statistics */
    enum pnet_storage *storage;
    unsigned *forms; /* [geo_count]: bits of enum pnet_geo_forms that the schedule reads */
    /* [geo_count]: where the item's buffers lie */
    enum pnet_geo_owner (*owner)[PNET_GEO_BUFFERS];
    /* [level_count]: the item of each level; -1: none */
    int *level_item;
    struct pnet_exec *exec; /* [step_count]: a step's constants; rows and memory are not set */
    int *seeds;             /* [seed_count]: gradients of the losses, with which backward begins */
    int seed_count;
    int device_steps;         /* forward steps of the device; the host runs the others */
    struct pnet_apart *apart; /* GPU: which steps may be concurrent; else NULL */
};

/* Binds `p`, which must outlive the result; the caller frees it. PNET_USAGE: an algorithm does not compute in that
   precision. PNET_NO_MEMORY. The device need not be present: pnet_runner_new checks it. */
enum pnet_status pnet_bound_new(const struct pnet_plan *p, const struct pnet_target *t,
    struct pnet_bound **b, struct pnet_error *e);
void pnet_bound_free(struct pnet_bound *b);

/* Returns a look at an item with the forms that it has here. The caller completes it with counts and places. */
struct pnet_geo_look pnet_bound_look(
    const struct pnet_bound *b, int item, const struct pnet_counts *c, bool capacity);
/* Sets views [geo_count] of all items from counts alone, without pointers. `capacity`: counts are those of capacity classes. */
void pnet_bound_views(const struct pnet_bound *b, const struct pnet_counts *c, bool capacity,
    struct pnet_geo_view *views);
/* Sets the record of a step without memory; the caller sets pointers. `views` [geo_count] have the same counts. */
void pnet_bound_exec(const struct pnet_bound *b, int step, const struct pnet_counts *c,
    bool capacity, const struct pnet_geo_view *views, struct pnet_exec *x);

/* Returns the bytes of an element of a tensor in the device's storage. */
size_t pnet_bound_element_bytes(const struct pnet_bound *b, int tensor);

#endif
