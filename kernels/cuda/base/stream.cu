#include "kernels/cuda/base/stream.h"

#include "kernels/cuda/base/launch.cuh"

#include <cuda_runtime.h>

__thread struct pnet_cuda_lent pnet_cuda_lent;

/* Makes what `then` gets wait for what `first` has. An event that is destroyed lives on until it is reached. */
static cudaError_t order(cudaStream_t first, cudaStream_t then)
{
    cudaEvent_t event;
    cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (code != cudaSuccess) return code;
    code = cudaEventRecord(event, first);
    if (code == cudaSuccess) code = cudaStreamWaitEvent(then, event, 0);
    cudaError_t end = cudaEventDestroy(event);
    return code == cudaSuccess ? end : code;
}

static const char *text_of(cudaError_t code)
{
    return code == cudaSuccess ? nullptr : cudaGetErrorString(code);
}

const char *pnet_cuda_stream_begin(int device, void *stream, bool lent, int *before)
{
    cudaError_t code = cudaPeekAtLastError();
    if (code != cudaSuccess) return text_of(code);
    code = cudaGetDevice(before);
    bool other = code == cudaSuccess && *before != device;
    if (other) code = cudaSetDevice(device);
    if (code == cudaSuccess && !lent) {
        code = order((cudaStream_t)stream, cudaStreamPerThread);
        if (code != cudaSuccess && other) cudaSetDevice(*before);
    }
    if (code == cudaSuccess && lent) pnet_cuda_lent = {(cudaStream_t)stream, true};
    if (code != cudaSuccess) cudaGetLastError(); /* told by the result */
    return text_of(code);
}

const char *pnet_cuda_stream_end(int device, void *stream, int before)
{
    cudaError_t code = cudaGetLastError(), next = cudaSuccess;
    if (!pnet_cuda_lent.there) next = order(cudaStreamPerThread, (cudaStream_t)stream);
    pnet_cuda_lent = {nullptr, false};
    if (code == cudaSuccess) code = next;
    if (before != device) next = cudaSetDevice(before);
    if (code == cudaSuccess) code = next;
    cudaGetLastError(); /* told by the result */
    return text_of(code);
}

const char *pnet_cuda_stream_error(void)
{
    return text_of(cudaPeekAtLastError());
}

bool pnet_cuda_stream_records(void *stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing((cudaStream_t)stream, &status) != cudaSuccess) {
        cudaGetLastError(); /* of the default stream while another one records: using it tells that */
        return false;
    }
    return status != cudaStreamCaptureStatusNone;
}

bool pnet_cuda_reaches(const void *p, int device)
{
    cudaPointerAttributes a;
    if (cudaPointerGetAttributes(&a, p) != cudaSuccess) {
        cudaGetLastError(); /* told by the result */
        return false;
    }
    return (a.type == cudaMemoryTypeDevice && a.device == device) ||
           a.type == cudaMemoryTypeManaged || a.type == cudaMemoryTypeHost;
}
