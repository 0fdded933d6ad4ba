/* Lists of the entries of APML by the rows of a set, and ways through them that do not depend on how long rows are. */
#ifndef PNET_KERNELS_CUDA_APML_LISTS_CUH
#define PNET_KERNELS_CUDA_APML_LISTS_CUH

#include "kernels/cuda/base/levels.cuh"
#include "kernels/cuda/sets/apml_plan.h"

/* Row 0 begins at entry 0, each other row where the one before it ends. */
struct apml_list {
    struct pnet_count rows;
    const int64_t *end; /* of row i: end[i * stride] */
    int32_t stride;
    struct pnet_apml_entry *entry;
};

/* A list whose row i begins at start[i]. */
static inline struct apml_list list_from(
    struct pnet_count rows, const int64_t *start, struct pnet_apml_entry *entry)
{
    return {rows, start + 1, 1, entry};
}

static __device__ __forceinline__ int64_t list_begin(const struct apml_list &l, int64_t row)
{
    return row > 0 ? l.end[(row - 1) * l.stride] : 0;
}

static __device__ __forceinline__ int64_t list_length(const struct apml_list &l, int64_t row)
{
    return l.end[row * l.stride] - list_begin(l, row);
}

/* The number of entries of all rows. */
static __device__ __forceinline__ int64_t list_entries(const struct apml_list &l)
{
    return list_begin(l, pnet_live(l.rows));
}

/* An entry in one access. */
static __device__ __forceinline__ struct pnet_apml_entry entry_at(const struct pnet_apml_entry *at)
{
    int2 words = *reinterpret_cast<const int2 *>(at);
    return {words.x, __int_as_float(words.y)};
}

static __device__ __forceinline__ void put_entry(
    struct pnet_apml_entry *at, struct pnet_apml_entry entry)
{
    *reinterpret_cast<int2 *>(at) = make_int2(entry.other, __float_as_int(entry.p));
}

/* The row of entry `at`, which is one of rows first .. end - 1. */
static __device__ __forceinline__ int64_t row_of_entry(
    const struct apml_list &l, int64_t first, int64_t end, int64_t at)
{
    while (end - first > 1) {
        int64_t middle = first + (end - first) / 2;
        if (list_begin(l, middle) <= at)
            first = middle;
        else
            end = middle;
    }
    return first;
}

/* The rows of the first and the last of some entries, found among all rows by a whole warp. */
struct entry_rows {
    int64_t first, last;
};

static __device__ __forceinline__ struct entry_rows rows_of_entries(
    const struct apml_list &l, int64_t rows, int64_t first_entry, int64_t last_entry)
{
    struct entry_rows found = {0, 0};
    for (int64_t step, left = rows; left > 1; left = step) {
        step = (left + WARP - 1) / WARP;
        int64_t next = (int64_t)(threadIdx.x % WARP + 1) * step, a = found.first + next,
                b = found.last + next;
        bool past_a = next < left && a < rows && list_begin(l, a) <= first_entry,
             past_b = next < left && b < rows && list_begin(l, b) <= last_entry;
        found.first += __popc(__ballot_sync(~0u, past_a)) * step;
        found.last += __popc(__ballot_sync(~0u, past_b)) * step;
    }
    return found;
}

enum { RUN = 128 /* entries that a warp takes at a time */ };

/* Calls f(row, entry) for entries begin .. end - 1. All `warps` warps that share them call this, each with its number. */
template <class F>
static __device__ __forceinline__ void for_entries(
    const struct apml_list &l, int64_t begin, int64_t end, int64_t warp, int64_t warps, const F &f)
{
    const int64_t rows = pnet_live(l.rows);
    for (int64_t from = begin + warp * RUN; from < end; from += warps * RUN) {
        const int64_t to = min(from + RUN, end);
        const struct entry_rows at = rows_of_entries(l, rows, from, to - 1);
        for (int64_t k = from + threadIdx.x % WARP; k < to; k += WARP)
            f(row_of_entry(l, at.first, at.last + 1, k), k);
    }
}

/* Rows with more than PNET_APML_LONG entries in a list, in no particular order: a block works on each. */
struct long_rows {
    int32_t *count, *row;
};

/* Writes the entries of a list by rows of the other set, each row by rows of `from`: row j of the other set from to[start[j]] to
   to[start[j + 1] - 1]. Workspace: start[others.most + 1], longer [others.most], and sums, which a scan of others.most + 1
   numbers needs. */
void pnet_cuda_apml_transpose(const struct apml_list *from, struct pnet_count others,
    int64_t *start, struct pnet_apml_entry *to, int32_t *longer, int64_t *sums);

/* The factors of a set (pnet_apml_factor): part * 2^(EXPONENT_STEP * steps). Most sums read parts alone. A thousand rounds shrink
   a factor by less than 2^(30 * 1000), or a byte would not do. */
struct apml_factors {
    float *part;
    int8_t *steps;
};

enum { EXPONENT_STEP = 240 };

static __device__ __forceinline__ struct pnet_apml_factor factor_at(
    const struct apml_factors &f, int64_t at)
{
    return {f.part[at], EXPONENT_STEP * f.steps[at]};
}

static __device__ __forceinline__ void put_factor(
    const struct apml_factors &f, int64_t at, struct pnet_apml_factor to)
{
    to = pnet_apml_split(to);
    const int steps =
        (to.exponent + (to.exponent < 0 ? -1 : 1) * EXPONENT_STEP / 2) / EXPONENT_STEP;
    f.part[at] = scalbnf(to.part, to.exponent - EXPONENT_STEP * steps);
    f.steps[at] = (int8_t)steps;
}

/* One set in the scaling: what its rows are summed over, and their factors. */
struct apml_side {
    struct pnet_point_set set;
    struct apml_list list[2];
    struct apml_factors factor;
    struct long_rows longest;
};

/* Sets the factors of both sets so that P_ij = u_i P0_ij v_j after `rounds` rounds. Workspace: begin_split [1]. */
void pnet_cuda_apml_scale(
    const struct apml_side *x, const struct apml_side *y, int32_t rounds, int32_t *begin_split);

#endif
