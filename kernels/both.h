/* A contract that holds on either device is declared once: PNET_BOTH(void, gather, int64_t n, ..) declares pnet_cpu_gather
   and pnet_cuda_gather. On a GPU all pointers lead to device memory, and work is put on the calling thread's stream; a
   function that returns a number waits for it. Rows of the tables call either by PNET_KERNEL(x, gather). */
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
