/* What a set of triplets holds. */
#ifndef PNET_LIBRARY_SET_H
#define PNET_LIBRARY_SET_H

#include "library/array.h"

#include "kernels/taps.h"

/* Rows of one side of a set. */
struct pnet_set_side {
    int64_t rows;
    int32_t *index; /* [rows, 1 + axes]: sample, indices; NULL: the set was not made from voxels */
    int32_t extent[3];
};

/* One order of the triplets, and the memory that it points to. */
struct pnet_set_form {
    struct pnet_triplets triplets;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
    int32_t *sequence; /* the order in which rows are worked on; NULL: as they are */
};

/* Nothing changes a set but the count of its owners: the caller, and each inverse set, which points to the memory of `of`. */
struct pnet_set {
    _Atomic int owners;
    struct pnet_set *of; /* it is one of its owners; NULL: the memory is its own */
    int32_t axes, samples;
    struct pnet_set_side in, out; /* `index` may be the same memory */
    struct pnet_set_form by_out, by_in;
};

/* Takes the memory of a form with so many triplets; `start` may be there already. */
enum pnet_status pnet_set_form_take(struct pnet_set_form *f, int64_t rows, int64_t others,
    int64_t count, int32_t cells, struct pnet_error *e);
void pnet_set_form_free(struct pnet_set_form *f);
/* Makes the form `to` from the other one. */
enum pnet_status pnet_set_form_turn(
    const struct pnet_set_form *from, struct pnet_set_form *to, struct pnet_error *e);

/* PNET_USAGE unless `a` is an int32 matrix that can be read; `width` < 0: of any width. */
enum pnet_status pnet_library_check_integers(
    const char *name, const struct pnet_array *a, int64_t width, struct pnet_error *e);

#endif
