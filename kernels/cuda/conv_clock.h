/* Marks in the thread's stream, for timing what runs between two of them. */
#ifndef PNET_KERNELS_CUDA_CONV_CLOCK_H
#define PNET_KERNELS_CUDA_CONV_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

/* A mark at this place of the stream; NULL: the driver has none left. */
void *pnet_cuda_mark(void);
/* Milliseconds from one to the other, waiting for the second; both are gone afterwards. */
double pnet_cuda_between(void *first, void *second);

#ifdef __cplusplus
}
#endif

#endif
