/* The GPU behind the kernels of this folder: memory, copies, errors. Everything runs on the stream of the calling
   thread, in order: cudaStreamPerThread, so that two threads have two streams, or one that a caller lends (stream.h).

   Errors. Kernels return at once and report nothing. The runtime keeps the first error of a launch of a thread, recorded or
   not. pnet_cuda_note saves this error, with the step's name, at the end of each step of a schedule; functions that clear the
   runtime's error save it first. A saved error stays: pnet_cuda_error, pnet_cuda_sync and pnet_cuda_record_end report it.
   Only pnet_cuda_sync waits for the device, and thus reports errors of running kernels too.

   Grids. x has room for 2^31 - 1 blocks, y and z for 65,535 each. So rows and samples go along x, or along y and z where their
   number is bounded before the launch. Channels and groups go along y by eight at least: 524,280 of them, eight times what an
   argument of a layer can ask for. A launch beyond that is an error as above. */
#ifndef PNET_KERNELS_CUDA_CUDA_H
#define PNET_KERNELS_CUDA_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The thread's first error, valid as long as the thread lives; NULL: none. */
const char *pnet_cuda_error(void);
/* Saves an error of the launches so far under the name `where`, unless the thread has a saved error already. */
void pnet_cuda_note(const char *where);
/* Waits for the thread's stream; NULL, or the error. */
const char *pnet_cuda_sync(void);

/* The number of GPUs that this program's code runs on; 0: none, and *why says why. */
int pnet_cuda_devices(const char **why);
/* 10 * major + minor of a GPU's compute capability; 0: unknown. */
int pnet_cuda_architecture(int device);
/* Makes the calling thread use GPU `device`; NULL, or the error. */
const char *pnet_cuda_use(int device);

struct pnet_cuda_info {
    char name[256], driver[32]; /* driver: "13.0" */
    int major, minor;           /* compute capability */
    int processors;
    size_t memory, free_memory; /* bytes */
};
const char *pnet_cuda_describe(int device, struct pnet_cuda_info *info);

/* Device memory, aligned to 256 bytes; the caller frees it. NULL: out of memory. */
void *pnet_cuda_alloc(size_t bytes);
void pnet_cuda_free(void *p);
/* Pinned host memory, for copies that run while kernels run; the caller frees it. NULL: out of memory. */
void *pnet_cuda_alloc_host(size_t bytes);
void pnet_cuda_free_host(void *p);

/* Copies on the thread's stream: to the device and within it without waiting (what `from` points to on the host must
   stay until the stream gets there, unless it is pageable memory); back to the host with waiting. */
void pnet_cuda_copy_in(void *to, const void *from, size_t bytes);
void pnet_cuda_copy(void *to, const void *from, size_t bytes);
void pnet_cuda_copy_out(void *to, const void *from, size_t bytes);
void pnet_cuda_fill_bytes(void *to, int byte, size_t bytes);

/* A pair of pinned buffers through which pageable memory of any size goes to the device while the next piece is filled.
   NULL: no memory. `from` may be reused on return. */
struct pnet_cuda_stage;
struct pnet_cuda_stage *pnet_cuda_stage_new(void);
void pnet_cuda_stage_free(struct pnet_cuda_stage *s);
void pnet_cuda_stage_in(struct pnet_cuda_stage *s, void *to, const void *from, size_t bytes);

/* CUDA graphs: what the thread launches between begin and end is recorded instead of run. NULL from the end: it could
   not be recorded, and pnet_cuda_error says why. */
void pnet_cuda_record_begin(void);
void *pnet_cuda_record_end(void);
void pnet_cuda_replay(void *record);
void pnet_cuda_record_free(void *record);

/* Within a recording a launch waits for all launches before it, unless pnet_cuda_wait_for says otherwise. A point is the set of
   launches that the next launch would wait for; it is valid until the recording ends. -1: out of memory, or no recording that
   pnet_cuda_record_begin began: in one of the caller's, launches stay in the order of his stream.
   pnet_cuda_wait_for makes the next launch wait for these `count` points (at least one) and nothing else. */
int pnet_cuda_point(void);
void pnet_cuda_wait_for(const int *points, int count);

/* Two branches of a recording, which may run at once: the launches between fork and branch, and those between branch and join,
   which have a lower priority. Both branches wait for the launches before the fork, and launches after the join wait for both.
   Outside of a recording all launches run in order. */
void pnet_cuda_fork(void);
void pnet_cuda_branch(void);
void pnet_cuda_join(void);
/* The points at the ends of the two branches joined since the last call; false: no branches were joined. */
bool pnet_cuda_branches(int branch[2]);

/* Is a recording being made, and does the next launch wait for nothing but kernels? */
bool pnet_cuda_follows_kernels(void);

/* Within a recording: launches between begin and end have a lower priority than the others. */
void pnet_cuda_yield_begin(void);
void pnet_cuda_yield_end(void);

/* Around a launch whose blocks wait for each other, so that all of them must run at once. Two such launches never run at the
   same time. */
void pnet_cuda_alone_begin(void);
void pnet_cuda_alone_end(void);

#ifdef __cplusplus
}
#endif

#endif
