/* The caller's stream. Between begin and end the calling thread's kernels (kernels/cuda/base/cuda.h) run on it, where it is lent,
   or on the thread's own stream, which continues it: after all that is in the caller's stream, and before all that is put there
   afterwards. Nothing waits on the host. Where the caller's stream is being recorded in a CUDA graph, so is all of this. */
#ifndef PNET_KERNELS_CUDA_STREAM_H
#define PNET_KERNELS_CUDA_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `stream` is a cudaStream_t of GPU `device`, NULL: the default stream; the end takes the same ones. The thread uses that GPU
   until the end. A lent stream costs less time than one that is continued, and knows nothing of what the thread has put on its
   own stream. Both return NULL, or the error: begin also one that the thread has not cleared, and then there is no end to call;
   end one of the launches in between, which it clears. `before`: the GPU that the thread used. */
const char *pnet_cuda_stream_begin(int device, void *stream, bool lent, int *before);
const char *pnet_cuda_stream_end(int device, void *stream, int before);
/* NULL, or the error of the launches since the begin, which stays for the end. */
const char *pnet_cuda_stream_error(void);
/* Does the stream record a CUDA graph? */
bool pnet_cuda_stream_records(void *stream);

/* Can kernels of GPU `device` read and write at this address? */
bool pnet_cuda_reaches(const void *p, int device);

#ifdef __cplusplus
}
#endif

#endif
