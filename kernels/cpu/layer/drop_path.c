#include "kernels/drop_path.h"

/* Below this many elements, waking threads costs more than it saves. */
enum { SMALL = 1 << 14 };

void pnet_cpu_drop_path(struct pnet_segments samples, int32_t c, enum pnet_drop_each each, float p,
    const struct pnet_rand *rand, const float *x, bool add, float *y)
{
    float scale = p < 1 ? 1 / (1 - p) : 0;
#pragma omp parallel for schedule(static) if (samples.rows * c > SMALL)
    for (int64_t row = 0; row < samples.rows; row++) {
        int32_t sample = pnet_segment_of(samples, row);
        int64_t place = row - pnet_segment_split(samples, sample);
        bool kept = pnet_rand_unit(rand, pnet_drop_number(each, sample, place)) >= p;
        const float *from = x + row * c;
        float *to = y + row * c;
        for (int32_t i = 0; i < c; i++) {
            float v = kept ? scale * from[i] : 0;
            to[i] = add ? to[i] + v : v;
        }
    }
}
