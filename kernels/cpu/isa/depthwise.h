/* The depthwise loops of one instruction set: meanings in conv_isa.h. */
#ifndef PNET_KERNELS_CPU_ISA_DEPTHWISE_H
#define PNET_KERNELS_CPU_ISA_DEPTHWISE_H

#include <stdint.h>
#include "kernels/cpu/isa/vec.h"

void ISA_NAME(pnet_depthwise)(int channels, int64_t count, const uint16_t *cell,
    const int32_t *other, const float *in, const float *weight, float *out);
void ISA_NAME(pnet_depthwise_outer)(int channels, int64_t count, const uint16_t *cell,
    const int32_t *other, const float *in, const float *g, float *sum);

#endif
