#include "kernels/cuda/attend/attend_work.h"
#include "kernels/cuda/base/feature_work.h"

int32_t pnet_cuda_attend_tile(const struct pnet_attend *a)
{
    if (a->rows.storage != PNET_STORE_F32) return 128;
    return a->width > 32 ? 32 : 64;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Tiles of the largest scope that there may be. */
static int64_t scope_tiles(const struct pnet_attend *a)
{
    int32_t tile = pnet_cuda_attend_tile(a);
    return ((int64_t)a->scopes.bucket * a->scopes.scope + tile - 1) / tile;
}

/* A sample of at most bucket * scope rows is one scope, of no more than rows / tile + 1 tiles. Each larger one has at most
   buckets / chunk + 2 chunks of `stride` scopes, each of them with room for the tiles of a whole scope; that is at least as
   many tiles a row as in a small sample. */
int64_t pnet_cuda_attend_tiles(const struct pnet_attend *a)
{
    const struct pnet_scopes *s = &a->scopes;
    int64_t rows = a->rows.most, tile = pnet_cuda_attend_tile(a),
            whole = (int64_t)s->bucket * s->scope, chunk = (int64_t)s->scope * s->stride,
            samples = least(a->samples, rows);
    if (rows <= whole) return rows / tile + samples;
    int64_t large = least(samples, rows / whole);
    return ((rows / s->bucket + large) / chunk + 2 * large + 1) * s->stride * scope_tiles(a) +
           samples;
}

size_t pnet_cuda_attend_starts(const struct pnet_attend *a)
{
    return round_up(((size_t)a->samples + 1) * sizeof(int64_t));
}

struct attend_parts pnet_cuda_attend_parts(const struct pnet_attend *a)
{
    int64_t tiles = pnet_cuda_attend_tiles(a),
            slot = pnet_cuda_attend_tile(a) * 2 * (int64_t)sizeof(float),
            room = (ATTEND_WORK_MOST - (int64_t)pnet_cuda_attend_starts(a)) / slot;
    struct attend_parts p = {a->heads, tiles, tiles, tiles};
    if (tiles <= 0 || tiles * a->heads <= room) return p;
    p.heads = (int32_t)(tiles < room ? room / tiles : 1);
    if (tiles <= room) return p;
    p.slots = room;
    p.window = room - scope_tiles(a);
    return p;
}

size_t pnet_cuda_attend_work(const struct pnet_attend *a, bool backward)
{
    size_t starts = pnet_cuda_attend_starts(a);
    if (!backward) return starts;
    struct attend_parts p = pnet_cuda_attend_parts(a);
    if (p.heads < a->heads || p.window < p.tiles)
        return ATTEND_WORK_MOST; /* does not fall where rows grow */
    return starts + (size_t)(p.slots * p.heads * pnet_cuda_attend_tile(a)) * 2 * sizeof(float);
}
