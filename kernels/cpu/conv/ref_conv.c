/* The definitions of MVMR and VVOR, read off triplet by triplet. */
#include "kernels/conv.h"

#include <string.h>

void pnet_ref_mvmr(const struct pnet_triplets *t, struct pnet_conv_shape s, const double *in,
    const double *weight, const double *bias, bool transposed, double *out)
{
    int32_t cin = s.cin / s.groups, cout = s.cout / s.groups;
    for (int64_t i = 0; i < t->rows; i++) {
        double *to = out + pnet_triplets_row(t, i) * s.cout;
        for (int32_t b = 0; b < s.cout; b++) to[b] = bias ? bias[b] : 0;
        for (int64_t n = t->start[i]; n < t->start[i + 1]; n++) {
            int64_t k = t->cell[n];
            const double *from = in + (int64_t)t->other[n] * s.cin;
            for (int32_t b = 0; b < s.cout; b++) {
                int32_t group = b / cout;
                double sum = 0;
                for (int32_t a = 0; a < cin; a++) {
                    double w = transposed ? weight[(k * cout + b % cout) * s.cin + group * cin + a]
                                          : weight[(k * cin + a) * s.cout + b];
                    sum += w * from[group * cin + a];
                }
                to[b] += sum;
            }
        }
    }
}

void pnet_ref_vvor(const struct pnet_triplets *t, struct pnet_conv_shape s, const double *in,
    const double *gout, bool swapped, double *gweight)
{
    int32_t cin = s.cin / s.groups, cout = s.cout / s.groups;
    memset(gweight, 0, (size_t)t->cells * (size_t)cin * (size_t)s.cout * sizeof *gweight);
    for (int64_t p = 0; p < t->rows; p++) {
        int64_t r = pnet_triplets_row(t, p);
        for (int64_t n = t->start[p]; n < t->start[p + 1]; n++) {
            int64_t k = t->cell[n], i = swapped ? t->other[n] : r, j = swapped ? r : t->other[n];
            for (int32_t b = 0; b < s.cout; b++) {
                const double *from = in + j * s.cin + b / cout * cin;
                double *to = gweight + k * cin * s.cout + b;
                for (int32_t a = 0; a < cin; a++)
                    to[(int64_t)a * s.cout] += from[a] * gout[i * s.cout + b];
            }
        }
    }
}
