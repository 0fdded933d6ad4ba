/* The device that a set lies on or a session works on, the caller's stream, and where memory comes from. */
#ifndef PNET_LIBRARY_HOME_H
#define PNET_LIBRARY_HOME_H

#include "include/pnet.h"

#include "kernels/precision.h"
#include "runtime/device/device.h"

/* Zeroed: the CPU. */
struct pnet_home {
    struct pnet_device device;
    void *stream; /* the one that memory is taken for */
    /* as the caller gave it; `take` is NULL: there is none */
    struct pnet_allocator allocator;
    /* Calls run on the thread's own stream, which continues the caller's, instead of on that one itself: a session has work there
       between its calls. */
    bool continues;
};

/* Memory on a GPU, to be given back together. */
enum { PNET_ROOMS = 24 };
struct pnet_rooms {
    struct {
        void *memory;
        size_t bytes;
    } room[PNET_ROOMS];
    int count;
};

/* Reads device, stream and allocator of an object's options into *p. `what` stands in messages: "the set lies" on the
   CPU. PNET_USAGE: they contradict each other. PNET_NO_DEVICE: the device is not there. */
enum pnet_status pnet_home_read(const char *what, const char *device, void *stream,
    const struct pnet_allocator *allocator, struct pnet_home *p, struct pnet_error *e);

/* Reads and checks an allocator; NULL: there is none. */
enum pnet_status pnet_home_allocator(
    const struct pnet_allocator *allocator, struct pnet_home *p, struct pnet_error *e);

/* GPU. Between enter and leave the thread's launches are part of the caller's stream. `st`: how the call went so far, which is
   returned unless a launch failed. A failed enter has no leave. *before: the GPU to go back to. */
enum pnet_status pnet_home_enter(
    const struct pnet_home *p, void *stream, int *before, struct pnet_error *e);
enum pnet_status pnet_home_leave(
    const struct pnet_home *p, void *stream, int before, enum pnet_status st, struct pnet_error *e);
/* The error of the launches since the enter. After a count, which is 0 where the GPU failed. */
enum pnet_status pnet_home_error(const struct pnet_home *p, struct pnet_error *e);
/* PNET_USAGE if the stream records a CUDA graph. */
enum pnet_status pnet_home_waits(void *stream, struct pnet_error *e);

/* GPU. Memory for work on `stream`, at least one byte; NULL with an error. */
void *pnet_home_take(const struct pnet_home *p, void *stream, size_t bytes, struct pnet_rooms *r,
    struct pnet_error *e);
void pnet_home_give(const struct pnet_home *p, void *stream, struct pnet_rooms *r);

static inline bool pnet_home_on_gpu(const struct pnet_home *p)
{
    return p->device.kind == PNET_CUDA;
}

/* Memory in pieces of few large rooms, because a call of an allocator takes longer than most kernels of such calls. */
struct pnet_heap {
    struct pnet_rooms rooms;
    int at;      /* the room of the next piece */
    size_t used; /* of that room */
};

/* GPU. A call that makes something in steps, on the home's stream, and waits for counts: memory of what is made, for the call,
   and for a step. */
struct pnet_making {
    const struct pnet_home *home;
    struct pnet_rooms *kept; /* belongs to what is made, also after a failure */
    struct pnet_error *e;
    struct pnet_heap call, step;
    int before;
};

/* As enter and leave; begin refuses a stream that records, end gives memory of the call back. */
enum pnet_status pnet_making_begin(struct pnet_making *m);
enum pnet_status pnet_making_end(struct pnet_making *m, enum pnet_status st);
/* Memory for `count` elements: NULL with an error. To keep, for the call, for a step. */
void *pnet_making_keep(struct pnet_making *m, int64_t count, size_t each);
void *pnet_making_take(struct pnet_making *m, int64_t count, size_t each);
void *pnet_making_once(struct pnet_making *m, int64_t count, size_t each);
/* Ends a step, whose memory serves the next one. Nothing waits: what the next one launches comes later. */
enum pnet_status pnet_making_step(struct pnet_making *m);
/* The error of the launches so far. */
enum pnet_status pnet_making_error(const struct pnet_making *m);
/* Numbers at a device address. Waits. */
enum pnet_status pnet_making_get(
    struct pnet_making *m, void *to, const void *from, int64_t count, size_t each);

/* GPU. A call that runs on a stream with so many bytes of workspace: the caller's, or taken. Nothing waits. */
struct pnet_running {
    const struct pnet_home *home;
    void *stream;
    struct pnet_error *e;
    struct pnet_rooms own;
    void *work; /* NULL where no bytes are needed */
    int before;
};

/* As enter and leave. `says`: the function that tells how many bytes. */
enum pnet_status pnet_running_begin(
    struct pnet_running *r, void *given, size_t given_bytes, size_t bytes, const char *says);
enum pnet_status pnet_running_end(struct pnet_running *r, enum pnet_status st);

/* A call of a function that builds with CUDA alone have. Others refuse a GPU in pnet_home_read, and say the same here. */
#ifdef PNET_CUDA_BUILT
#define PNET_ON_GPU(home, call, e) (call)
#else
#define PNET_ON_GPU(home, call, e) pnet_device_check((home)->device, (e))
#endif

/* What arrays that kernels read are aligned to, in bytes. */
enum { PNET_HOME_ALIGNMENT = 16 };

/* How features on a GPU are stored: PNET_USAGE unless in float32 or 16 bits. */
enum pnet_status pnet_home_storage(
    const char *name, enum pnet_dtype dtype, enum pnet_storage *storage, struct pnet_error *e);

/* PNET_USAGE unless the pointer leads to memory of the GPU, aligned to so many bytes. NULL passes. */
enum pnet_status pnet_home_check(const struct pnet_home *p, const char *name, const void *data,
    size_t alignment, struct pnet_error *e);
/* The same of an array, which must be contiguous, and is aligned to its elements. */
enum pnet_status pnet_home_check_rows(
    const struct pnet_home *p, const char *name, const struct pnet_array *a, struct pnet_error *e);

#endif
