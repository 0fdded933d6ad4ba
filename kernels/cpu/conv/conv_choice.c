/* What `pnetc plan` calls the kernels of the CPU. */
#include "kernels/conv.h"

const char *pnet_cpu_conv_kernel(const struct pnet_conv_sum *s)
{
    if (s->algo == PNET_ALGO_IM2COL) return "im2col";
    if (s->algo == PNET_ALGO_GATHER) return "gather";
    if (!pnet_conv_algo_is_usual(s->algo)) return "listing";
    return pnet_conv_is_depthwise(s->shape) ? "depthwise" : "panels";
}
