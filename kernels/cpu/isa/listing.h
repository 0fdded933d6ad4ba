/* The listings of one instruction set: meanings in conv_isa.h. */
#ifndef PNET_KERNELS_CPU_ISA_LISTING_H
#define PNET_KERNELS_CPU_ISA_LISTING_H

#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/vec.h"

void ISA_NAME(pnet_listing_mvmr)(const struct pnet_listing *l);
void ISA_NAME(pnet_listing_vvor)(const struct pnet_listing *l);

#endif
