#include "kernels/cuda/base/code.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifndef PNET_CUDA_ARCHITECTURES
#define PNET_CUDA_ARCHITECTURES ""
#endif

const char *pnet_cuda_code_list(void)
{
    return PNET_CUDA_ARCHITECTURES;
}

enum pnet_cuda_code pnet_cuda_code_of(const char *list, int architecture)
{
    enum pnet_cuda_code best = PNET_CUDA_CODE_NONE;
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
        char *end;
        int of = (int)strtol(p, &end, 10);
        size_t length = strcspn(p, ",");
        bool alone = end > p && *end >= 'a' && *end <= 'z',
             real = length < 8 || strncmp(p + length - 8, "-virtual", 8) != 0,
             ptx = length < 5 || strncmp(p + length - 5, "-real", 5) != 0;
        bool same = alone ? of == architecture
                          : of / 10 == architecture / 10 && of % 10 <= architecture % 10;
        if (real && same) return PNET_CUDA_CODE_MACHINE;
        if (ptx && (alone ? of == architecture : of <= architecture)) best = PNET_CUDA_CODE_PTX;
    }
    return best;
}

enum pnet_cuda_code pnet_cuda_code_for(int architecture)
{
    return pnet_cuda_code_of(PNET_CUDA_ARCHITECTURES, architecture);
}
