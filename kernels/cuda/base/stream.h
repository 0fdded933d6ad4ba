/* The caller's stream. Kernels run on the calling thread's stream (kernels/cuda/base/cuda.h); between begin and end that stream
   continues the caller's: what the thread launches comes after all that is in the caller's stream, and before all that is put
   there afterwards. Nothing waits on the host. Where the caller's stream is being recorded in a CUDA graph, so is all of this. */
#ifndef PNET_KERNELS_CUDA_STREAM_H
#define PNET_KERNELS_CUDA_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `stream` is a cudaStream_t of GPU `device`, NULL: the default stream. The thread uses that GPU until the end. Both return NULL,
   or the error: begin also one that the thread has not cleared, and then there is no end to call; end one of the launches in
   between, which it clears. `before`: the GPU that the thread used. */
const char *pnet_cuda_stream_begin(int device, void *stream, int *before);
const char *pnet_cuda_stream_end(void *stream, int before);
/* NULL, or the error of the launches since the begin, which stays for the end. */
const char *pnet_cuda_stream_error(void);
/* Waits for what the thread has launched. */
void pnet_cuda_stream_wait(void);
/* Does the stream record a CUDA graph? */
bool pnet_cuda_stream_records(void *stream);

/* Can kernels of GPU `device` read and write at this address? */
bool pnet_cuda_reaches(const void *p, int device);

#ifdef __cplusplus
}
#endif

#endif
