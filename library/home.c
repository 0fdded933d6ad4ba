#include "library/home.h"

#include "library/library.h"

#include <stdint.h>

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/stream.h"
#endif

enum pnet_status pnet_home_read(const char *device, void *stream,
    const struct pnet_allocator *allocator, struct pnet_home *p, struct pnet_error *e)
{
    *p = (struct pnet_home){.stream = stream};
    if (pnet_device_parse(device, &p->device, e))
        return pnet_error_set(
            e, PNET_USAGE, "device: expected cpu, cuda or cuda:N, not '%s'", device);
    enum pnet_status st =
        pnet_library_take("pnet_allocator", allocator, &p->allocator, sizeof p->allocator, e);
    if (st) return st;
    if (p->device.kind == PNET_CPU && (stream || allocator))
        return pnet_error_set(e, PNET_USAGE, "%s: the set lies on the CPU, and %s are for a GPU",
            stream ? "stream" : "allocator", stream ? "streams" : "allocators");
    if (allocator && (!p->allocator.take || !p->allocator.give))
        return pnet_error_set(
            e, PNET_USAGE, "allocator: `%s` is NULL", p->allocator.take ? "give" : "take");
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
    return told(p, pnet_cuda_stream_begin(p->device.index, stream, before), e);
}

enum pnet_status pnet_home_leave(
    const struct pnet_home *p, void *stream, int before, enum pnet_status st, struct pnet_error *e)
{
    const char *what = pnet_cuda_stream_end(stream, before);
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
