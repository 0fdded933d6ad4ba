/* Marks in the thread's stream, for timing what runs between two of them. */
#ifndef PNET_KERNELS_CUDA_CONV_CLOCK_H
#define PNET_KERNELS_CUDA_CONV_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

/* A mark that is nowhere yet; NULL: the driver has none left. */
void *pnet_cuda_mark_new(void);
/* Puts it to this place of the stream. Within a recording each replay puts it there anew. */
void pnet_cuda_mark_set(void *mark);
/* Milliseconds from one to the other, waiting for the second. NAN: one of them was never reached. */
double pnet_cuda_mark_ms(void *first, void *second);
void pnet_cuda_mark_free(void *mark);

/* A new mark at this place of the stream, outside of a recording; NULL: the driver has none left. */
void *pnet_cuda_mark(void);
/* pnet_cuda_mark_ms; both are gone afterwards. */
double pnet_cuda_between(void *first, void *second);

#ifdef __cplusplus
}
#endif

#endif
