/* How a contract is declared once for both devices, and what holds for all that are declared so.

   PNET_BOTH(void, gather, int64_t n, ..) declares pnet_cpu_gather and pnet_cuda_gather, which compute the same. Rows of the
   tables call the one or the other by PNET_KERNEL(x, gather), and ask for its workspace by PNET_WORK(device, ..).

   Either device. Nothing is allocated. The caller hands in the workspace `work`, aligned to 16 bytes; NAME_work gives its bytes,
   enough for OpenMP's current number of threads. NAME_work is in every build, asks no GPU, and reads sizes, no arrays: a plan
   asks before there is a batch. A workspace holds nothing between calls, unless a function says so. The same call gives
   the same bits each time, for any number of threads.

   GPU. All pointers lead to device memory, those inside of structs too; the structs themselves lie on the host. Work is put on
   the calling thread's stream; a function that returns a number, other than NAME_work, waits for it. Errors are kept for
   pnet_cuda_error (kernels/cuda/base/cuda.h). Features are stored as their storage says (kernels/precision.h), on the CPU in
   float32. Rows between the true number and the most (kernels/count.h) are neither read nor written. */
#ifndef PNET_KERNELS_BOTH_H
#define PNET_KERNELS_BOTH_H

#ifdef __cplusplus
#define PNET_BOTH(result, name, ...)                                                               \
    extern "C" result pnet_cpu_##name(__VA_ARGS__);                                                \
    extern "C" result pnet_cuda_##name(__VA_ARGS__)
#else
#define PNET_BOTH(result, name, ...)                                                               \
    result pnet_cpu_##name(__VA_ARGS__);                                                           \
    result pnet_cuda_##name(__VA_ARGS__)
#endif

#endif
