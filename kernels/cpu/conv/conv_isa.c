/* The choice of an instruction set, made anew by every call: it costs a few string comparisons and
 * keeps no state. */
#include "kernels/cpu/isa/conv.h"

#include <stdlib.h>
#include <string.h>
#include "kernels/conv.h"

extern const struct pnet_conv_isa pnet_conv_isa_base;

#if defined(__x86_64__)
extern const struct pnet_conv_isa pnet_conv_isa_avx2, pnet_conv_isa_avx512;

const struct pnet_conv_isa *pnet_conv_isa(void)
{
    const char *limit = getenv("PNET_ISA");
    if (limit && strcmp(limit, "base") == 0) return &pnet_conv_isa_base;
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (avx512 && !(limit && strcmp(limit, "avx2") == 0)) return &pnet_conv_isa_avx512;
    return avx2 ? &pnet_conv_isa_avx2 : &pnet_conv_isa_base;
}
#else
const struct pnet_conv_isa *pnet_conv_isa(void)
{
    return &pnet_conv_isa_base;
}
#endif

const char *pnet_cpu_isa(void)
{
    return pnet_conv_isa()->name;
}
