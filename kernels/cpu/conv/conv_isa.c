/* The choice of an instruction set, made anew by every call: it costs a few comparisons. */
#include "kernels/cpu/isa/conv.h"

#include "kernels/conv.h"

#include <stdatomic.h>
#include <string.h>

extern const struct pnet_conv_isa pnet_conv_isa_base;

enum limit { NO_LIMIT, BASE, AVX2 };
static _Atomic int limit; /* of enum limit */

void pnet_cpu_isa_limit(const char *name)
{
    int of_name = NO_LIMIT;
    if (name && strcmp(name, "base") == 0) of_name = BASE;
    if (name && strcmp(name, "avx2") == 0) of_name = AVX2;
    atomic_store(&limit, of_name);
}

#if defined(__x86_64__)
extern const struct pnet_conv_isa pnet_conv_isa_avx2, pnet_conv_isa_avx512;

const struct pnet_conv_isa *pnet_conv_isa(void)
{
    int most = atomic_load_explicit(&limit, memory_order_relaxed);
    if (most == BASE) return &pnet_conv_isa_base;
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (avx512 && most != AVX2) return &pnet_conv_isa_avx512;
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
