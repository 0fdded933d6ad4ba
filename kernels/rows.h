/* Rows picked out of a matrix, and columns moved between matrices. */
#ifndef PNET_KERNELS_ROWS_H
#define PNET_KERNELS_ROWS_H

#include "kernels/both.h"
#include "kernels/count.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* to[i] = from[index[i]] for i < n, rows of `words` 32-bit words; index NULL: from[i]. With words == 1 `to` may be
   `index` itself. */
PNET_BOTH(void, gather, int64_t n, int32_t words, const void *from, const int32_t *index, void *to);

/* The same for float32 features that are stored as `storage` from then on. */
PNET_BOTH(void, gather_features, int64_t n, int32_t width, const float *from, const int32_t *index,
    enum pnet_storage storage, void *to);

/* Where the rows of a tensor lie in another order: row i is there index[i / each] * each + i % each; index NULL: i. */
struct pnet_placing {
    int64_t rows;
    int32_t width;
    const int32_t *index; /* [rows / each] */
    int64_t each;
};
/* to[place of i] = x[from[i]], from a tensor to float32 in the other order; from NULL: x[i]. */
PNET_BOTH(void, rows_out, struct pnet_placing p, const void *x, enum pnet_storage storage,
    const int32_t *from, float *to);
/* y[i] = x[place of i], from float32 in the other order to a tensor. */
PNET_BOTH(void, rows_in, struct pnet_placing p, const float *x, enum pnet_storage storage, void *y);
/* Both also on the CPU in any storage: it exchanges rows for a GPU. */

/* y (+)= x, n elements in another storage: x lies as n.storage says, y as `to`. */
PNET_BOTH(
    void, convert, struct pnet_count n, const float *x, enum pnet_storage to, bool add, float *y);

/* CPU: memcpy by up to four threads: one alone does not reach the rate of the memory. */
void pnet_cpu_copy(void *to, const void *from, size_t bytes);

/* c columns of x [rows, x_width], from x_at on, become columns of y [rows, y_width], from y_at on:
   y[row, y_at + i] (+)= x[row, x_at + i]. */
PNET_BOTH(void, columns_move, struct pnet_count rows, int32_t c, const float *x, int32_t x_width,
    int32_t x_at, bool add, float *y, int32_t y_width, int32_t y_at);
/* The same into all of y, or of all of x. */
/* y[row, at + c] = x[row, c]; x [rows, c], y [rows, width]. */
PNET_BOTH(void, columns_put, struct pnet_count rows, int32_t c, const float *x, int32_t width,
    int32_t at, float *y);
/* y[row, c] (+)= x[row, at + c]; x [rows, width], y [rows, c]. */
PNET_BOTH(void, columns_take, struct pnet_count rows, int32_t c, const float *x, int32_t width,
    int32_t at, bool add, float *y);

#endif
