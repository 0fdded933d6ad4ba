/* The processor that runs a runner: the CPU, or one GPU. Memory of a GPU is accessed only through these functions. */
#ifndef PNET_RUNTIME_DEVICE_H
#define PNET_RUNTIME_DEVICE_H

#include "runtime/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum pnet_device_kind { PNET_CPU, PNET_CUDA, PNET_DEVICES };

/* Zeroed: the CPU. */
struct pnet_device {
    enum pnet_device_kind kind;
    int index; /* CUDA: which GPU */
};

/* "cpu" (also NULL), "cuda", "cuda:1". PNET_USAGE: something else. */
enum pnet_status pnet_device_parse(const char *text, struct pnet_device *d, struct pnet_error *e);
/* Checks that the device exists and that this program was built for it. PNET_NO_DEVICE: the message names what is missing. */
enum pnet_status pnet_device_check(struct pnet_device d, struct pnet_error *e);
/* The GPUs that this program has code for, as in CMake's CMAKE_CUDA_ARCHITECTURES, such as "80,90a-real"; empty:
   none. */
const char *pnet_device_code_list(void);
/* Why the device is slower than it need be, as a sentence in text[size]; false: it is not. Call it for a device that
   pnet_device_check accepted. */
bool pnet_device_slow(struct pnet_device d, char *text, size_t size);
/* Limits the CPU to a lower instruction set, as kernels/conv.h has it: what a program reads from PNET_ISA when it starts. */
void pnet_device_limit_isa(const char *name);
/* The same for a GPU, as kernels/conv_plan.h has it: what a program reads from PNET_CUDA_KERNELS. */
void pnet_device_limit_kernels(const char *name);
/* Free memory of the device in bytes; 0 if the system does not report it. */
size_t pnet_device_available(struct pnet_device d);

/* Gives the calling thread a queue of its own on the device: the thread's work runs there in order. A thread calls this
   before it asks for any work. */
enum pnet_status pnet_device_enter(struct pnet_device d, struct pnet_error *e);
/* Attributes launches of the thread that failed since the last call to the step `where`; pnet_device_wait reports the first
   such failure. Does not wait. */
void pnet_device_note(struct pnet_device d, const char *where);
/* Waits for the thread's queue. PNET_FAILED, or PNET_NO_DEVICE, if any of its work failed; the message names the step. */
enum pnet_status pnet_device_wait(struct pnet_device d, struct pnet_error *e);

/* Device memory, aligned to 64 bytes; the caller frees it by pnet_device_free. NULL: out of memory. */
void *pnet_device_alloc(struct pnet_device d, size_t bytes);
void pnet_device_free(struct pnet_device d, void *p);

/* Copy host to device, copy device to host (waits for the copy), fill with one byte, copy within the device. All run in order
   with the thread's other work. */
void pnet_device_put(struct pnet_device d, void *to, const void *from, size_t bytes);
void pnet_device_get(struct pnet_device d, void *to, const void *from, size_t bytes);
void pnet_device_fill(struct pnet_device d, void *to, int byte, size_t bytes);
void pnet_device_copy(struct pnet_device d, void *to, const void *from, size_t bytes);

/* Pinned buffers through which large pieces of pageable memory are copied to a GPU while it computes. On the CPU there are
   none, and *stage stays NULL. */
enum pnet_status pnet_device_stage_new(struct pnet_device d, void **stage, struct pnet_error *e);
void pnet_device_stage_free(struct pnet_device d, void *stage);
void pnet_device_stage_in(
    struct pnet_device d, void *stage, void *to, const void *from, size_t bytes);

/* Recordings (CUDA graphs). Between begin and end the thread's work does not run: it is recorded, to be replayed. The end
   returns the recording, which the caller frees; NULL: recording failed, and pnet_device_wait reports why. */
void pnet_device_record_begin(struct pnet_device d);
void *pnet_device_record_end(struct pnet_device d);
void pnet_device_replay(struct pnet_device d, void *record);
void pnet_device_record_free(struct pnet_device d, void *record);

/* Within a recording: the work between fork and branch and the work between branch and join do not wait for each other.
   Outside of a recording, and on the CPU, all of it runs in order. */
void pnet_device_fork(enum pnet_device_kind d);
void pnet_device_branch(enum pnet_device_kind d);
void pnet_device_join(enum pnet_device_kind d);

/* Within a recording: a point is the set of work that the next work would wait for. pnet_device_wait_for makes the next work
   wait for these points and nothing else. -1: no recording, or out of memory. */
int pnet_device_point(struct pnet_device d);
void pnet_device_wait_for(struct pnet_device d, const int *points, int count);
/* Within a recording: work between begin and end has a lower priority than the rest. */
void pnet_device_yield_begin(struct pnet_device d);
void pnet_device_yield_end(struct pnet_device d);
/* The points at the ends of the two branches joined since the last call; false: no branches were joined. */
bool pnet_device_branches(struct pnet_device d, int branch[2]);

#endif
