/* The device that a set lies on, the caller's stream, and where memory comes from. */
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
};

/* Memory on a GPU, to be given back together. */
enum { PNET_ROOMS = 16 };
struct pnet_rooms {
    struct {
        void *memory;
        size_t bytes;
    } room[PNET_ROOMS];
    int count;
};

/* Reads and checks what options say. PNET_NO_DEVICE: the device is not there. */
enum pnet_status pnet_home_read(const char *device, void *stream,
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

#endif
