/* The processor a session runs on: the CPU, or one GPU. Memory of a GPU is reached through these functions alone. */
#ifndef PNET_RUNTIME_DEVICE_H
#define PNET_RUNTIME_DEVICE_H

#include "runtime/base/error.h"

#include <stddef.h>

enum pnet_device_kind { PNET_CPU, PNET_CUDA, PNET_DEVICES };

/* Zeroed: the CPU. */
struct pnet_device {
    enum pnet_device_kind kind;
    int index; /* CUDA: which GPU */
};

/* "cpu" (also NULL), "cuda", "cuda:1". PNET_USAGE: something else. */
enum pnet_status pnet_device_parse(const char *text, struct pnet_device *d, struct pnet_error *e);
/* Is it there, and was this program built for it? PNET_NO_DEVICE says what is missing. */
enum pnet_status pnet_device_check(struct pnet_device d, struct pnet_error *e);
/* Memory that could be handed out now, in bytes; 0 where nobody tells. */
size_t pnet_device_available(struct pnet_device d);

/* Work that a thread asks for goes to its own queue on the device, in order. A thread enters before it asks. */
enum pnet_status pnet_device_enter(struct pnet_device d, struct pnet_error *e);
/* What the thread has asked for since, if it could not be asked for, failed in `where`: pnet_device_wait says so. Waits for
   nothing. */
void pnet_device_note(struct pnet_device d, const char *where);
/* Waits for the thread's queue. PNET_FAILED, or PNET_NO_DEVICE: what went wrong since. */
enum pnet_status pnet_device_wait(struct pnet_device d, struct pnet_error *e);

/* Aligned to 64; NULL where there is no more. */
void *pnet_device_alloc(struct pnet_device d, size_t bytes);
void pnet_device_free(struct pnet_device d, void *p);

/* Host to device, device to host (waits), one byte all over, within the device. In order with the thread's work. */
void pnet_device_put(struct pnet_device d, void *to, const void *from, size_t bytes);
void pnet_device_get(struct pnet_device d, void *to, const void *from, size_t bytes);
void pnet_device_fill(struct pnet_device d, void *to, int byte, size_t bytes);
void pnet_device_copy(struct pnet_device d, void *to, const void *from, size_t bytes);

/* Large pieces of pageable memory on their way to a GPU go through pinned buffers, beside what the device does. On the
   CPU there is nothing to hold, and *stage stays NULL. */
enum pnet_status pnet_device_stage_new(struct pnet_device d, void **stage, struct pnet_error *e);
void pnet_device_stage_free(struct pnet_device d, void *stage);
void pnet_device_stage_in(
    struct pnet_device d, void *stage, void *to, const void *from, size_t bytes);

/* A piece of schedule that is recorded once and replayed (CUDA graphs). Between begin and end nothing runs: what the
   thread asks for is recorded. NULL: it could not be recorded; pnet_device_wait tells why. */
void pnet_device_record_begin(struct pnet_device d);
void *pnet_device_record_end(struct pnet_device d);
void pnet_device_replay(struct pnet_device d, void *record);
void pnet_device_record_free(struct pnet_device d, void *record);

/* Within a recording: what is asked for between fork and branch, and between branch and join, does not wait for each
   other. Elsewhere, and on the CPU, it happens in order. */
void pnet_device_fork(enum pnet_device_kind d);
void pnet_device_branch(enum pnet_device_kind d);
void pnet_device_join(enum pnet_device_kind d);

/* Within a recording: a point stands for all that what is asked for next would wait for; what is asked for next can be told
   to wait for some points and nothing else. -1: there is no recording, or no memory. */
int pnet_device_point(struct pnet_device d);
void pnet_device_wait_for(struct pnet_device d, const int *points, int count);
/* What is asked for in between gives way to the rest of a recording. */
void pnet_device_yield_begin(struct pnet_device d);
void pnet_device_yield_end(struct pnet_device d);
/* The points behind both branches that were joined since the last call; false: there were none. */
bool pnet_device_branches(struct pnet_device d, int branch[2]);

#endif
