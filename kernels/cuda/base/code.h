/* For which GPUs a program has code: machine code runs on GPUs of the same major architecture from its minor one on; PTX is
   compiled by the driver, for every GPU from its architecture on. Host code alone, in every build. */
#ifndef PNET_KERNELS_CUDA_CODE_H
#define PNET_KERNELS_CUDA_CODE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pnet_cuda_code {
    PNET_CUDA_CODE_NONE,
    PNET_CUDA_CODE_PTX, /* the driver compiles the kernels when they are first used, and keeps them in its cache */
    PNET_CUDA_CODE_MACHINE
};

/* `list` is as CMake's CMAKE_CUDA_ARCHITECTURES, with commas: "80-real,90a-real,90-virtual"; without an ending an architecture
   is both. One that ends with a letter, such as 90a, runs on that GPU alone. `architecture`: 10 * major + minor. */
enum pnet_cuda_code pnet_cuda_code_of(const char *list, int architecture);
/* The same for what this program was compiled for. */
enum pnet_cuda_code pnet_cuda_code_for(int architecture);
/* That list. */
const char *pnet_cuda_code_list(void);

#ifdef __cplusplus
}
#endif

#endif
