/* Weighted sums of rows: a few registers of channels go through the list of a row. Compiled with PNET_ISA naming the instruction
   set. */
#include "kernels/cpu/isa/weighted.h"
#include "kernels/cpu/isa/vec.h"

enum {
    REGISTERS = 4,
    STRETCH =
        256, /* entries that are summed before they are added to the sum: long lists lose fewer bits */
};

pnet_weighted_rows ISA_NAME(pnet_weighted_rows);

/* Channels of the row that a list makes: `count` registers of them, the last one with `part` channels if that is not 0. */
ALWAYS_INLINE void sum_channels(const struct pnet_weighted *w, int64_t list, int64_t c,
    const float *x, bool add, float *y, const int count, const int part)
{
    vec sum[REGISTERS];
    UNROLL
    for (int r = 0; r < count; r++) sum[r] = vec_set(0);
    int64_t end = w->start[list + 1], row = w->row ? w->row[list] : list;
    for (int64_t first = w->start[list]; first < end; first += STRETCH) {
        int64_t last = end - first < STRETCH ? end : first + STRETCH;
        vec of[REGISTERS];
        UNROLL
        for (int r = 0; r < count; r++) of[r] = vec_set(0);
        for (int64_t at = first; at < last; at++) {
            const float *from = x + w->other[at] * c;
            vec weight = vec_set(w->weight ? w->weight[at] : 1);
            UNROLL
            for (int r = 0; r < count; r++) {
                vec v = part && r == count - 1 ? vec_load_part(from + r * VECTOR, part)
                                               : vec_load(from + r * VECTOR);
                of[r] = vec_madd(weight, v, of[r]);
            }
        }
        UNROLL
        for (int r = 0; r < count; r++) sum[r] += of[r];
    }
    UNROLL
    for (int r = 0; r < count; r++) {
        float *to = y + row * c + r * VECTOR;
        bool cut = part && r == count - 1;
        if (add) sum[r] += cut ? vec_load_part(to, part) : vec_load(to);
        if (cut)
            vec_store_part(to, sum[r], part);
        else
            vec_store(to, sum[r]);
    }
}

void ISA_NAME(pnet_weighted_rows)(const struct pnet_weighted *w, int64_t first, int64_t end,
    int32_t c, const float *x, bool add, float *y)
{
    for (int64_t list = first; list < end; list++) {
        int32_t i = 0;
        for (; c - i >= REGISTERS * VECTOR; i += REGISTERS * VECTOR)
            sum_channels(w, list, c, x + i, add, y + i, REGISTERS, 0);
        for (; c - i >= VECTOR; i += VECTOR) sum_channels(w, list, c, x + i, add, y + i, 1, 0);
        if (i < c) sum_channels(w, list, c, x + i, add, y + i, 1, c - i);
    }
}
