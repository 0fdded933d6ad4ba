/* The search of APML on a GPU: supports and limits of two sets, and the lists that come out. */
#ifndef PNET_KERNELS_CUDA_APML_SEARCH_H
#define PNET_KERNELS_CUDA_APML_SEARCH_H

#include "kernels/apml.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The supports of one set, cut at its limit: rows of the set in order, each by rows of the other set;
   half of the weights, which add up to 1 over a row before they are halved. */
struct pnet_cuda_apml_list {
    int64_t *start;                /* [rows + 1], written for live rows */
    struct pnet_apml_entry *entry; /* [entries * rows] */
};

/* Finds the supports of both sets, the limits, and whether all is finite (finite[0] = 1 or 0; 0: all
   lists are empty). Nothing is read back by the host. */
size_t pnet_cuda_apml_search_work(const struct pnet_apml *a);
void pnet_cuda_apml_search(const struct pnet_apml *a, const struct pnet_cuda_apml_list list[2],
    int32_t *finite, void *work);

#ifdef __cplusplus
}
#endif

#endif
