/* Programmatic dependent launch, on GPUs of compute capability 9.0 and later: within a recording, a kernel's blocks become
   resident while the kernels before it still run, and wait there until those end. */
#ifndef PNET_KERNELS_CUDA_EARLY_CUH
#define PNET_KERNELS_CUDA_EARLY_CUH

extern "C" {
#include "kernels/cuda/base/cuda.h"
}
#include "kernels/cuda/base/launch.cuh"

#include <cuda_runtime.h>

/* A kernel that is launched early calls this before it reads memory that another kernel of the recording writes, and before it
   writes any. */
static __device__ __forceinline__ void wait_for_earlier()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Any kernel may call this: from here on the next kernel's blocks may become resident where there is room. That does not
   change the values they read. */
static __device__ __forceinline__ void let_next_come()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* What a thread knows of a kernel on a GPU: the question costs as much as a launch. */
struct early_answer {
    const void *kernel;
    int device;
    bool yes;
};

/* Has the kernel been compiled for such a GPU, and is this one? Clusters come with the same ones. */
template <class K> static bool comes_early(K *kernel)
{
    static thread_local struct early_answer known[256];
    struct early_answer &k = known[((uintptr_t)kernel >> 4) % 256];
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return false;
    if (k.kernel == (const void *)kernel && k.device == device) return k.yes;
    cudaFuncAttributes a;
    if (cudaFuncGetAttributes(&a, kernel) != cudaSuccess) return false;
    k = {(const void *)kernel, device, a.ptxVersion >= 90 && a.binaryVersion >= 90};
    return k.yes;
}

/* Launches a kernel that calls wait_for_earlier; `cluster` blocks along x stand in one. `early`: there is nothing but
   kernels that it waits for. */
template <class K, class... A>
static void launch_waiting(
    bool early, K *kernel, dim3 grid, dim3 block, size_t shared, int cluster, A... arguments)
{
    cudaLaunchAttribute attribute[2] = {};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = grid;
    launch.blockDim = block;
    launch.dynamicSmemBytes = shared;
    launch.stream = pnet_cuda_stream();
    launch.attrs = attribute;
    if (cluster > 1) {
        attribute[launch.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attribute[launch.numAttrs++].val.clusterDim = {(unsigned)cluster, 1, 1};
    }
    if (early && comes_early(kernel)) {
        attribute[launch.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute[launch.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    cudaLaunchKernelEx(&launch, kernel, arguments...);
}

template <class K, class... A>
static void launch_early(
    K *kernel, dim3 grid, dim3 block, size_t shared, int cluster, A... arguments)
{
    launch_waiting(pnet_cuda_follows_kernels(), kernel, grid, block, shared, cluster, arguments...);
}

#endif
