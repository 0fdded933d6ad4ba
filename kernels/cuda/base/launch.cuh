/* The stream of the calling thread's launches: cudaStreamPerThread, or one that its caller has lent (stream.h). */
#ifndef PNET_KERNELS_CUDA_LAUNCH_CUH
#define PNET_KERNELS_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

struct pnet_cuda_lent {
    cudaStream_t stream;
    bool there;
};
extern __thread struct pnet_cuda_lent pnet_cuda_lent;

static inline cudaStream_t pnet_cuda_stream()
{
    return pnet_cuda_lent.there ? pnet_cuda_lent.stream : cudaStreamPerThread;
}

#endif
