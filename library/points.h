/* What points and levels hold. */
#ifndef PNET_LIBRARY_POINTS_H
#define PNET_LIBRARY_POINTS_H

#include "library/array.h"
#include "library/home.h"

#include "kernels/geometry.h"

/* Rows inside are those of `level`: by sample, then along a curve. The caller sees rows of a level as they are, and rows of
   points in the order of the caller's arrays. Nothing changes points but the count of their owners: the caller, and each level
   that was sampled from them. */
struct pnet_points {
    struct pnet_handle handle;
    _Atomic int owners;
    struct pnet_points *finer; /* it is one of its owners; NULL: these are a caller's points */
    double cell;               /* 0: these are a caller's points */
    /* With the memory of these. On a GPU all but `splits` belongs to `rooms`, and the level has the splits there. */
    struct pnet_level level;
    int64_t *splits; /* [samples + 1], on the host */
    float *xyz;
    uint64_t *key;
    int32_t *source; /* [rows]: rows of the caller's positions */
    bool
        as_given; /* rows inside are the caller's: of levels, and of points that lay along the curve */
    int32_t *parent; /* [rows of finer]: rows of this level; NULL: there is no finer one */
    struct pnet_home home;
    struct pnet_rooms rooms;
};

static inline bool pnet_points_on_gpu(const struct pnet_points *p)
{
    return pnet_home_on_gpu(&p->home);
}

/* The caller's row of each row inside, [rows]; NULL: they are the same. */
static inline const int32_t *pnet_points_order(const struct pnet_points *p)
{
    return p->as_given ? NULL : p->source;
}

static inline int32_t pnet_points_row(const int32_t *order, int64_t row)
{
    return order ? order[row] : (int32_t)row;
}

/* Is `coarse` a level that was sampled from `fine`, directly or through others? */
bool pnet_points_reach(const struct pnet_points *fine, const struct pnet_points *coarse);
/* Writes parent [rows of fine]: for each row of `fine` the row of `coarse` that it belongs to. Rows count in the library's own
   order, not in the caller's. Needs pnet_points_reach(fine, coarse). */
void pnet_points_lead(
    const struct pnet_points *fine, const struct pnet_points *coarse, int32_t *parent);

/* Replaces rows in the library's order by rows in the caller's: other[n] = order[other[n]]. Without an order (NULL) both are the
   same, and nothing changes. */
void pnet_points_name(int64_t count, const int32_t *order, int32_t *other);

/* PNET_USAGE unless both have the same number of samples and lie on the same device. */
enum pnet_status pnet_points_same_samples(const char *a_name, const struct pnet_points *a,
    const char *b_name, const struct pnet_points *b, struct pnet_error *e);
enum pnet_status pnet_points_same_home(const char *a_name, const struct pnet_points *a,
    const char *b_name, const struct pnet_points *b, struct pnet_error *e);

/* Checks what options say of the samples of so many rows; *samples: how many there are. */
enum pnet_status pnet_points_check_samples(
    const struct pnet_points_options *o, int64_t rows, int32_t *samples, struct pnet_error *e);
/* Errors of a row of positions; of a row's sample; of so many points that a grid does not reach. */
enum pnet_status pnet_points_bad_position(int64_t row, const float p[3], struct pnet_error *e);
enum pnet_status pnet_points_bad_sample(
    int64_t row, int64_t sample, int32_t samples, struct pnet_error *e);
enum pnet_status pnet_points_beyond(int64_t count, struct pnet_grid grid, struct pnet_error *e);

/* GPU. What the functions of the header do with points that lie there. Of new points and levels what is known before is set;
   arrays have the right shapes. */
enum pnet_status pnet_points_new_on_gpu(struct pnet_points *p, const struct pnet_array *positions,
    const struct pnet_points_options *o, struct pnet_error *e);
enum pnet_status pnet_points_grid_on_gpu(
    const struct pnet_points *of, struct pnet_points *level, struct pnet_error *e);
enum pnet_status pnet_points_positions_on_gpu(
    const struct pnet_points *p, void *to, struct pnet_error *e);
enum pnet_status pnet_points_samples_on_gpu(
    const struct pnet_points *p, void *to, struct pnet_error *e);
enum pnet_status pnet_points_sources_on_gpu(
    const struct pnet_points *p, void *to, struct pnet_error *e);
enum pnet_status pnet_points_parents_on_gpu(const struct pnet_points *fine,
    const struct pnet_points *coarse, void *to, struct pnet_error *e);
/* As pnet_points_lead, on the calling thread's stream. */
void pnet_points_lead_on_gpu(
    const struct pnet_points *fine, const struct pnet_points *coarse, int32_t *parent);

#endif
