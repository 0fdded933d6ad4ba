#include "kernels/swiglu.h"

#include <math.h>

/* Below this many elements, waking threads costs more than it saves. */
enum { SMALL = 1 << 14 };

void pnet_cpu_swiglu(struct pnet_count count, int32_t c, const float *x, float *y)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *gate = x + 2 * row * c, *value = gate + c;
        float *to = y + row * c;
        for (int32_t i = 0; i < c; i++) to[i] = gate[i] / (1 + expf(-gate[i])) * value[i];
    }
}

void pnet_cpu_swiglu_backward(
    struct pnet_count count, int32_t c, const float *x, const float *g, bool add, float *gx)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *gate = x + 2 * row * c, *value = gate + c, *from = g + row * c;
        float *to = gx + 2 * row * c;
        for (int32_t i = 0; i < c; i++) {
            float sigmoid = 1 / (1 + expf(-gate[i])), silu = gate[i] * sigmoid;
            float to_gate = from[i] * value[i] * (sigmoid + silu * (1 - sigmoid)),
                  to_value = from[i] * silu;
            to[i] = add ? to[i] + to_gate : to_gate;
            to[c + i] = add ? to[c + i] + to_value : to_value;
        }
    }
}
