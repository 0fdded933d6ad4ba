/* For which GPUs the workspaces and the kernels of convolution (kernels/conv.h) are chosen. */
#ifndef PNET_KERNELS_CONV_PLAN_H
#define PNET_KERNELS_CONV_PLAN_H

/* From here on the functions *_work of the calling thread give bytes for GPUs of that architecture, as in struct
   pnet_conv_sum. 0, as it is at first: for the one at hand, or 90 where there is none. */
void pnet_cuda_conv_plan_for(int architecture);

/* "80": keeps an H100 or H200 to the kernels that all GPUs from architecture 80 on have, so that one program tests both: what
   a program reads from PNET_CUDA_KERNELS when it starts. "86": also to the shared memory of 86, 89 and 120, 99 KB a block of
   threads and 100 KB a processor. NULL, or another text: does not. */
void pnet_cuda_conv_limit(const char *kernels);

#endif
