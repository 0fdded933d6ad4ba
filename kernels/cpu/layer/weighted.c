#include "kernels/corners.h"

#include <string.h>

#include "kernels/conv.h"
#include "kernels/cpu/isa/weighted.h"

enum {
    CHUNK = 64,   /* rows that one thread takes at a time */
    SMALL = 8192, /* elements below which threads cost more than they save */
};

extern pnet_weighted_rows pnet_weighted_rows_base;
#if defined(__x86_64__)
extern pnet_weighted_rows pnet_weighted_rows_avx2, pnet_weighted_rows_avx512;
#endif

static pnet_weighted_rows *weighted_rows(void)
{
#if defined(__x86_64__)
    const char *name = pnet_cpu_isa();
    if (strcmp(name, "avx512") == 0) return pnet_weighted_rows_avx512;
    if (strcmp(name, "avx2") == 0) return pnet_weighted_rows_avx2;
#endif
    return pnet_weighted_rows_base;
}

void pnet_cpu_weighted_rows(
    const struct pnet_weighted *w, int32_t c, const float *x, bool add, float *y)
{
    pnet_weighted_rows *sum = weighted_rows();
    int64_t rows = w->rows.most;
#pragma omp parallel for schedule(dynamic, 4) if (rows * c > SMALL)
    for (int64_t chunk = 0; chunk < (rows + CHUNK - 1) / CHUNK; chunk++) {
        int64_t end = (chunk + 1) * CHUNK;
        sum(w, chunk * CHUNK, end < rows ? end : rows, c, x, add, y);
    }
}

void pnet_cpu_weighted_labels(const struct pnet_weighted *w, const int32_t *label, int32_t *y)
{
#pragma omp parallel for schedule(static) if (w->rows.most > SMALL)
    for (int64_t list = 0; list < w->rows.most; list++)
        y[w->row ? w->row[list] : list] =
            w->start[list] < w->start[list + 1] ? label[w->other[w->start[list]]] : -1;
}
