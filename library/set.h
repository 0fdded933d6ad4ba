/* What a set of triplets holds. */
#ifndef PNET_LIBRARY_SET_H
#define PNET_LIBRARY_SET_H

#include "library/array.h"
#include "library/home.h"

#include "kernels/taps.h"

/* Rows of one side of a set, and the order in which the triplets of each lie (struct pnet_triplets). */
struct pnet_set_side {
    int64_t rows;
    int32_t *index; /* [rows, 1 + axes]: sample, indices; NULL: the set was not made from voxels */
    int32_t *row;   /* [rows]: the row at each place; NULL: rows are places */
    int32_t *place; /* [rows]: the place of each row; NULL where `row` is */
    int32_t extent[3];
};

/* One order of the triplets, and on the CPU the memory that it points to, unless that is the caller's. */
struct pnet_set_form {
    struct pnet_triplets triplets;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

/* Nothing changes a set but the count of its owners: the caller, and each inverse set, which points to the memory of `of`. */
struct pnet_set {
    struct pnet_handle handle;
    _Atomic int owners;
    struct pnet_set *of; /* it is one of its owners; NULL: the memory is its own */
    int32_t axes, samples;
    struct pnet_set_side in, out; /* their arrays may be the same memory */
    struct pnet_set_form by_out, by_in;
    bool several; /* a pair (i, j) may be joined by several triplets */
    bool inside;  /* triplets of a row and tap may be in the order inside of points */
    struct pnet_home home;
    struct pnet_rooms rooms; /* GPU: all memory of the set, if it is its own */
};

static inline bool pnet_set_on_gpu(const struct pnet_set *s)
{
    return s->home.device.kind == PNET_CUDA;
}

/* Takes the memory of a form with so many triplets; `start` may be there already. */
enum pnet_status pnet_set_form_take(struct pnet_set_form *f, int64_t rows, int64_t others,
    int64_t count, int32_t cells, struct pnet_error *e);
void pnet_set_form_free(struct pnet_set_form *f);
/* Makes the form `to` from the other one. */
enum pnet_status pnet_set_form_turn(
    const struct pnet_set_form *from, struct pnet_set_form *to, struct pnet_error *e);

/* The triplets were made by place on both sides: names rows instead. */
void pnet_set_name_rows(struct pnet_set *s);
/* CPU. Takes `row` and `place` of a side. */
enum pnet_status pnet_set_side_take(struct pnet_set_side *s, struct pnet_error *e);

/* PNET_USAGE if the set lies on a GPU. `what`: what is there on the CPU alone. */
enum pnet_status pnet_set_check_cpu(
    const struct pnet_set *s, const char *what, struct pnet_error *e);
/* PNET_BAD_DATA if the voxel of a row, its sample and indices, is outside of the set's samples and extent. */
enum pnet_status pnet_set_check_voxel(
    const struct pnet_set *s, int64_t row, const int32_t *at, struct pnet_error *e);
/* The error of two rows that are the same voxel. */
enum pnet_status pnet_set_same_voxel(int64_t first, int64_t second, struct pnet_error *e);
/* The error of a number in a list of triplets. */
enum pnet_status pnet_set_outside(
    const char *name, int64_t row, int32_t number, int64_t end, struct pnet_error *e);

/* GPU. Makes the sides and forms of a set whose home is known: of voxels, whose axes, samples and extents are known, or of
   lists i, j, k that are contiguous. What it takes belongs to the set, also after a failure. */
enum pnet_status pnet_set_voxels_on_gpu(struct pnet_set *s, const struct pnet_array *indices,
    const struct pnet_taps *t, enum pnet_set_kind kind, struct pnet_error *e);
enum pnet_status pnet_set_lists_on_gpu(struct pnet_set *s, const struct pnet_array *const list[3],
    int64_t rows_out, int64_t rows_in, int32_t taps, struct pnet_error *e);
/* GPU. As pnet_set_side_take and pnet_set_name_rows. */
enum pnet_status pnet_set_side_keep(struct pnet_making *m, struct pnet_set_side *s);
void pnet_set_name_rows_on_gpu(struct pnet_set *s);
/* GPU. Lays both forms out as tiles, if the kernels of this GPU read tiles. */
enum pnet_status pnet_set_lay_tiles(struct pnet_making *m, struct pnet_set_form *const form[2]);
/* GPU. What the functions of the header do with a set that lies there. */
enum pnet_status pnet_set_indices_on_gpu(
    const struct pnet_set *s, int32_t *to, int64_t count, struct pnet_error *e);
enum pnet_status pnet_set_get_triplets_on_gpu(
    const struct pnet_set *s, int32_t *i, int32_t *j, int32_t *k, struct pnet_error *e);

/* GPU. Pools on arrays that were checked; `argmax` may be NULL. */
struct pnet_pool_arrays {
    enum pnet_pooling kind;
    void *stream;
    enum pnet_storage storage;
    int32_t channels;
};
enum pnet_status pnet_pool_forward_on_gpu(const struct pnet_set *set,
    const struct pnet_pool_arrays *p, const void *features, void *result, int32_t *argmax,
    struct pnet_error *e);
enum pnet_status pnet_pool_backward_on_gpu(const struct pnet_set *set,
    const struct pnet_pool_arrays *p, const void *gradient, const int32_t *argmax, void *result,
    struct pnet_error *e);

/* PNET_USAGE unless `a` is an int32 matrix that can be read; `width` < 0: of any width. */
enum pnet_status pnet_library_check_integers(
    const char *name, const struct pnet_array *a, int64_t width, struct pnet_error *e);

#endif
