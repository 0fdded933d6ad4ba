/* How the kernels of attention divide a batch into tiles of rows, and their workspace. Host arithmetic, in every build. */
#ifndef PNET_KERNELS_CUDA_ATTEND_WORK_H
#define PNET_KERNELS_CUDA_ATTEND_WORK_H

#include "kernels/attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of workspace at most, whatever the batch. */
enum { ATTEND_WORK_MOST = 64 << 20 };

/* The backward takes `heads` heads at a time, and `window` tiles: those of the scopes that begin in the window. A tile of a
   head has room for two floats a row, and a window needs `slots` tiles. */
struct attend_parts {
    int32_t heads;
    int64_t tiles; /* at most, of the batch */
    int64_t window, slots;
};

/* Rows of a tile. */
int32_t pnet_cuda_attend_tile(const struct pnet_attend *a);
/* Tiles at most of a batch with at most a->rows.most rows, whatever its samples are. */
int64_t pnet_cuda_attend_tiles(const struct pnet_attend *a);
struct attend_parts pnet_cuda_attend_parts(const struct pnet_attend *a);
/* Bytes of the first part of a workspace: where the tiles of each sample begin, int64 [samples + 1]. */
size_t pnet_cuda_attend_starts(const struct pnet_attend *a);

#ifdef __cplusplus
}
#endif

#endif
