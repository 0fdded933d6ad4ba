/* Activations and element-wise products on the CPU. n counts elements; results may share memory with inputs. */
#ifndef PNET_KERNELS_CPU_ACT_H
#define PNET_KERNELS_CPU_ACT_H

#include "kernels/cpu/conv.h"

/* The gradient before a fused activation, in place: g *= act'(.), told by the sign of the result y.
   Nothing happens for PNET_ACT_NONE (y may be NULL then). */
void pnet_cpu_act_backward(int64_t n, enum pnet_activation act, float slope, const float *y, float *g);

#endif
