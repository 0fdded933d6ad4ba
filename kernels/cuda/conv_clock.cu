#include "kernels/cuda/conv_clock.h"

#include <cuda_runtime.h>

extern "C" void *pnet_cuda_mark(void)
{
    cudaEvent_t event;
    if (cudaEventCreate(&event) != cudaSuccess) return nullptr;
    cudaEventRecord(event, cudaStreamPerThread);
    return event;
}

extern "C" double pnet_cuda_between(void *first, void *second)
{
    float ms = 0;
    cudaEventSynchronize((cudaEvent_t)second);
    cudaEventElapsedTime(&ms, (cudaEvent_t)first, (cudaEvent_t)second);
    cudaEventDestroy((cudaEvent_t)first);
    cudaEventDestroy((cudaEvent_t)second);
    return ms;
}
