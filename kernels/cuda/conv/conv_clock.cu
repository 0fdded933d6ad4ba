#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_clock.h"

#include <cmath>
#include <cuda_runtime.h>

extern "C" void *pnet_cuda_mark_new(void)
{
    cudaEvent_t event;
    return cudaEventCreate(&event) == cudaSuccess ? event : nullptr;
}

/* An event that is not external would only say, within a recording, what waits for what. */
extern "C" void pnet_cuda_mark_set(void *mark)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(pnet_cuda_stream(), &status);
    bool recorded = status == cudaStreamCaptureStatusActive;
    cudaEventRecordWithFlags((cudaEvent_t)mark, pnet_cuda_stream(),
        recorded ? cudaEventRecordExternal : cudaEventRecordDefault);
}

extern "C" double pnet_cuda_mark_ms(void *first, void *second)
{
    float ms = 0;
    cudaEventSynchronize((cudaEvent_t)second);
    return cudaEventElapsedTime(&ms, (cudaEvent_t)first, (cudaEvent_t)second) == cudaSuccess
               ? (double)ms
               : NAN;
}

extern "C" void pnet_cuda_mark_free(void *mark)
{
    if (mark) cudaEventDestroy((cudaEvent_t)mark);
}

extern "C" void *pnet_cuda_mark(void)
{
    void *mark = pnet_cuda_mark_new();
    if (mark) pnet_cuda_mark_set(mark);
    return mark;
}

extern "C" double pnet_cuda_between(void *first, void *second)
{
    double ms = pnet_cuda_mark_ms(first, second);
    pnet_cuda_mark_free(first);
    pnet_cuda_mark_free(second);
    return ms;
}
