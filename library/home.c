#include "library/home.h"

#include "library/library.h"

#include <stdint.h>

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/stream.h"
#endif

enum pnet_status pnet_home_read(const char *what, const char *device, void *stream,
    const struct pnet_allocator *allocator, struct pnet_home *p, struct pnet_error *e)
{
    *p = (struct pnet_home){.stream = stream};
    if (pnet_device_parse(device, &p->device, e))
        return pnet_error_set(
            e, PNET_USAGE, "device: expected cpu, cuda or cuda:N, not '%s'", device);
    enum pnet_status st = pnet_home_allocator(allocator, p, e);
    if (st) return st;
    if (p->device.kind == PNET_CPU && (stream || allocator))
        return pnet_error_set(e, PNET_USAGE, "%s: %s on the CPU, and %s are for a GPU",
            stream ? "stream" : "allocator", what, stream ? "streams" : "allocators");
    return pnet_device_check(p->device, e);
}

enum pnet_status pnet_home_storage(
    const char *name, enum pnet_dtype dtype, enum pnet_storage *storage, struct pnet_error *e)
{
    *storage = dtype == PNET_DTYPE_BF16  ? PNET_STORE_BF16
               : dtype == PNET_DTYPE_F16 ? PNET_STORE_FP16
                                         : PNET_STORE_F32;
    if (*storage != PNET_STORE_F32 || dtype == PNET_DTYPE_F32) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%s: dtype %d, expected PNET_DTYPE_F32, PNET_DTYPE_BF16 or PNET_DTYPE_F16", name,
        (int)dtype);
}

enum pnet_status pnet_home_allocator(
    const struct pnet_allocator *allocator, struct pnet_home *p, struct pnet_error *e)
{
    enum pnet_status st =
        pnet_library_take("pnet_allocator", allocator, &p->allocator, sizeof p->allocator, e);
    if (st || !allocator || (p->allocator.take && p->allocator.give)) return st;
    return pnet_error_set(
        e, PNET_USAGE, "allocator: `%s` is NULL", p->allocator.take ? "give" : "take");
}

#ifdef PNET_CUDA_BUILT
static enum pnet_status told(const struct pnet_home *p, const char *what, struct pnet_error *e)
{
    if (!what) return PNET_OK;
    return pnet_error_set(e, PNET_NO_DEVICE, "GPU %d: %s", p->device.index, what);
}

enum pnet_status pnet_home_enter(
    const struct pnet_home *p, void *stream, int *before, struct pnet_error *e)
{
    const char *earlier = pnet_cuda_stream_error();
    if (earlier)
        return pnet_error_set(e, PNET_NO_DEVICE,
            "GPU %d: an earlier call of the program failed: %s", p->device.index, earlier);
    return told(p, pnet_cuda_stream_begin(p->device.index, stream, !p->continues, before), e);
}

enum pnet_status pnet_home_leave(
    const struct pnet_home *p, void *stream, int before, enum pnet_status st, struct pnet_error *e)
{
    const char *what = pnet_cuda_stream_end(p->device.index, stream, before);
    return st ? st : told(p, what, e);
}

enum pnet_status pnet_home_error(const struct pnet_home *p, struct pnet_error *e)
{
    return told(p, pnet_cuda_stream_error(), e);
}

enum pnet_status pnet_home_waits(void *stream, struct pnet_error *e)
{
    if (!pnet_cuda_stream_records(stream)) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "stream: it records a CUDA graph, and the counts of a set must come to the host");
}

static void *take(const struct pnet_home *p, void *stream, size_t bytes)
{
    const struct pnet_allocator *a = &p->allocator;
    return a->take ? a->take(a->context, bytes, stream) : pnet_cuda_alloc(bytes);
}

void *pnet_home_take(const struct pnet_home *p, void *stream, size_t bytes, struct pnet_rooms *r,
    struct pnet_error *e)
{
    if (!bytes) bytes = 1;
    if (!p->allocator.take && pnet_cuda_stream_records(stream)) {
        pnet_error_set(e, PNET_USAGE,
            "stream: it records a CUDA graph, in which memory comes from an allocator alone");
        return NULL;
    }
    void *memory = r->count < PNET_ROOMS ? take(p, stream, bytes) : NULL;
    if (!memory) {
        pnet_error_set(e, PNET_NO_MEMORY, "out of memory on GPU %d: no room for %zu bytes",
            p->device.index, bytes);
        return NULL;
    }
    r->room[r->count].memory = memory;
    r->room[r->count++].bytes = bytes;
    if ((uintptr_t)memory % 256 == 0) return memory;
    pnet_error_set(e, PNET_USAGE, "allocator: its memory is not aligned to 256 bytes");
    return NULL;
}

void pnet_home_give(const struct pnet_home *p, void *stream, struct pnet_rooms *r)
{
    const struct pnet_allocator *a = &p->allocator;
    while (r->count) {
        r->count--;
        if (a->give)
            a->give(a->context, r->room[r->count].memory, r->room[r->count].bytes, stream);
        else
            pnet_cuda_free(r->room[r->count].memory);
    }
}

enum pnet_status pnet_making_begin(struct pnet_making *m)
{
    const struct pnet_home *p = m->home;
    enum pnet_status st = pnet_home_waits(p->stream, m->e);
    return st ? st : pnet_home_enter(p, p->stream, &m->before, m->e);
}

/* What the caller's stream gets next comes behind the work that used the memory: nothing waits for that to give it back. */
enum pnet_status pnet_making_end(struct pnet_making *m, enum pnet_status st)
{
    st = pnet_home_leave(m->home, m->home->stream, m->before, st, m->e);
    pnet_home_give(m->home, m->home->stream, &m->step.rooms);
    pnet_home_give(m->home, m->home->stream, &m->call.rooms);
    return st;
}

void *pnet_making_keep(struct pnet_making *m, int64_t count, size_t each)
{
    return pnet_home_take(m->home, m->home->stream, (size_t)count * each, m->kept, m->e);
}

enum { LEAST_ROOM = 1 << 20, MOST_ROOM = 64 << 20 /* unless a piece needs more */ };

/* Bytes of a new room, for a piece: as many as all rooms before, so that there are few. */
static size_t room_for(const struct pnet_heap *h, size_t piece)
{
    size_t all = 0;
    for (int i = 0; i < h->rooms.count; i++) all += h->rooms.room[i].bytes;
    if (all < LEAST_ROOM) all = LEAST_ROOM;
    if (all > MOST_ROOM) all = MOST_ROOM;
    return piece > all ? piece : all;
}

static void *piece_of(struct pnet_making *m, struct pnet_heap *h, int64_t count, size_t each)
{
    size_t bytes = ((size_t)count * each + 255) / 256 * 256;
    for (; h->at < h->rooms.count; h->at++, h->used = 0)
        if (h->rooms.room[h->at].bytes - h->used >= bytes) break;
    if (h->at == h->rooms.count &&
        !pnet_home_take(m->home, m->home->stream, room_for(h, bytes), &h->rooms, m->e))
        return NULL;
    char *piece = (char *)h->rooms.room[h->at].memory + h->used;
    h->used += bytes;
    return piece;
}

void *pnet_making_take(struct pnet_making *m, int64_t count, size_t each)
{
    return piece_of(m, &m->call, count, each);
}

void *pnet_making_once(struct pnet_making *m, int64_t count, size_t each)
{
    return piece_of(m, &m->step, count, each);
}

enum pnet_status pnet_making_error(const struct pnet_making *m)
{
    return pnet_home_error(m->home, m->e);
}

enum pnet_status pnet_making_step(struct pnet_making *m)
{
    m->step.at = 0;
    m->step.used = 0;
    return pnet_making_error(m);
}

enum pnet_status pnet_making_get(
    struct pnet_making *m, void *to, const void *from, int64_t count, size_t each)
{
    if (count > 0) pnet_cuda_copy_out(to, from, (size_t)count * each);
    return pnet_making_error(m);
}

enum pnet_status pnet_running_begin(
    struct pnet_running *r, void *given, size_t given_bytes, size_t bytes, const char *says)
{
    const struct pnet_home *p = r->home;
    r->work = given;
    if (given && given_bytes < bytes)
        return pnet_error_set(r->e, PNET_USAGE, "workspace_bytes: %zu, expected %zu: %s says so",
            given_bytes, bytes, says);
    if (!given && bytes && !p->allocator.take && pnet_cuda_stream_records(r->stream))
        return pnet_error_set(r->e, PNET_USAGE,
            "workspace: the stream records a CUDA graph, so that there must be one");
    enum pnet_status st = pnet_home_enter(p, r->stream, &r->before, r->e);
    if (st || given || !bytes) return st;
    r->work = pnet_home_take(p, r->stream, bytes, &r->own, r->e);
    return r->work ? PNET_OK : pnet_running_end(r, r->e->status);
}

enum pnet_status pnet_running_end(struct pnet_running *r, enum pnet_status st)
{
    st = pnet_home_leave(r->home, r->stream, r->before, st, r->e);
    pnet_home_give(r->home, r->stream, &r->own);
    return st;
}

enum pnet_status pnet_home_check(const struct pnet_home *p, const char *name, const void *data,
    size_t alignment, struct pnet_error *e)
{
    if (!data) return PNET_OK;
    if ((uintptr_t)data % alignment)
        return pnet_error_set(
            e, PNET_USAGE, "%s: `data` is not aligned to %zu bytes", name, alignment);
    if (!pnet_cuda_reaches(data, p->device.index))
        return pnet_error_set(
            e, PNET_USAGE, "%s: `data` is no memory of GPU %d", name, p->device.index);
    return PNET_OK;
}

enum pnet_status pnet_home_check_rows(
    const struct pnet_home *p, const char *name, const struct pnet_array *a, struct pnet_error *e)
{
    size_t alignment = a->dtype == PNET_DTYPE_I64 ? sizeof(int64_t) : sizeof(int32_t);
    if (a->stride && a->stride != a->width)
        return pnet_error_set(e, PNET_USAGE,
            "%s: the stride %lld is not the width %lld: on a GPU only contiguous rows are there so "
            "far",
            name, (long long)a->stride, (long long)a->width);
    return pnet_home_check(p, name, a->data, alignment, e);
}
#else
/* pnet_home_read refuses a GPU: nothing lies on one. */
enum pnet_status pnet_home_check(const struct pnet_home *p, const char *name, const void *data,
    size_t alignment, struct pnet_error *e)
{
    (void)name;
    (void)data;
    (void)alignment;
    return pnet_device_check(p->device, e);
}

void pnet_home_give(const struct pnet_home *p, void *stream, struct pnet_rooms *r)
{
    (void)p;
    (void)stream;
    (void)r;
}
#endif
