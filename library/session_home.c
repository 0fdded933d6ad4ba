/* Where the memory of a session comes from, and the caller's stream. */
#include "library/library.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/stream.h"
#endif

static void *take(void *context, size_t bytes)
{
    struct pnet_session *s = context;
    const struct pnet_allocator *a = &s->home.allocator;
    size_t alignment = s->home.device.kind == PNET_CPU ? 64 : 256;
    void *memory = a->take(a->context, bytes, s->home.stream);
    if ((uintptr_t)memory % alignment == 0) return memory;
    s->misaligned = true;
    a->give(a->context, memory, bytes, s->home.stream);
    return NULL;
}

/* The caller's stream does not know yet of the work that used the memory. */
static void give(void *context, void *memory, size_t bytes)
{
    struct pnet_session *s = context;
    const struct pnet_allocator *a = &s->home.allocator;
    struct pnet_error e; /* of work that failed before: the next call that waits tells it */
    (void)pnet_device_wait(s->home.device, &e);
    a->give(a->context, memory, bytes, s->home.stream);
}

enum pnet_status pnet_library_home(
    const struct pnet_session_options *o, struct pnet_session *s, struct pnet_error *e)
{
    bool cpu = s->bound->where.kind == PNET_CPU;
    s->home = (struct pnet_home){.device = s->bound->where, .stream = o->stream, .continues = true};
    if (o->arrays > PNET_ARRAYS_DEVICE)
        return pnet_error_set(e, PNET_USAGE, "arrays: no place has the number %d", (int)o->arrays);
    if (cpu && o->stream)
        return pnet_error_set(
            e, PNET_USAGE, "stream: the session is on the CPU, and streams are for a GPU");
    s->there = !cpu && o->arrays == PNET_ARRAYS_DEVICE;
    s->ordered = s->there || o->stream;
    enum pnet_status st = pnet_home_allocator(o->allocator, &s->home, e);
    if (!st && o->allocator) s->supply = (struct pnet_supply){s, take, give};
    return st;
}

enum pnet_status pnet_library_begin(struct pnet_session *s, struct pnet_error *e)
{
    s->misaligned = false;
    if (!s->ordered) return pnet_device_enter(s->home.device, e);
#ifdef PNET_CUDA_BUILT
    if (pnet_cuda_stream_records(s->home.stream))
        return pnet_error_set(
            e, PNET_USAGE, "stream: it records a CUDA graph, and a session records its own ones");
    return pnet_home_enter(&s->home, s->home.stream, &s->before, e);
#else
    return pnet_device_check(s->home.device, e);
#endif
}

enum pnet_status pnet_library_end(struct pnet_session *s, enum pnet_status st, struct pnet_error *e)
{
#ifdef PNET_CUDA_BUILT
    if (s->ordered) st = pnet_home_leave(&s->home, s->home.stream, s->before, st, e);
#endif
    if (st != PNET_NO_MEMORY || !s->misaligned) return st;
    return pnet_error_set(e, PNET_USAGE, "allocator: its memory is not aligned to %d bytes",
        s->home.device.kind == PNET_CPU ? 64 : 256);
}

enum pnet_status pnet_library_ready(
    const struct pnet_session *s, enum pnet_session_state state, struct pnet_error *e)
{
    static const char *const missing[] = {
        [PNET_SESSION_BATCH] = "the session has no batch: pnet_session_bind is first",
        [PNET_SESSION_FORWARD] =
            "nothing is computed for this batch: pnet_session_forward is first",
        [PNET_SESSION_GRADIENTS] =
            "there are no gradients: pnet_session_gradients, or _backward, is first"};
    if (!s->has_weights)
        return pnet_error_set(e, PNET_USAGE,
            "the session has no weights: pnet_session_load, _init or _copy_weights is first");
    if (s->state < state) return pnet_error_set(e, PNET_USAGE, "%s", missing[state]);
    return PNET_OK;
}

enum pnet_status pnet_library_wait(struct pnet_session *s, struct pnet_error *e)
{
    return s->there ? PNET_OK : pnet_runner_wait(s->runner, e);
}

enum pnet_status pnet_library_check_array(
    const struct pnet_session *s, const char *name, const void *data, struct pnet_error *e)
{
    return s->there ? pnet_home_check(&s->home, name, data, sizeof(float), e) : PNET_OK;
}
