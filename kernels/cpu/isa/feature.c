/* Distances in feature space from a few rows to panels of others. Compiled with PNET_ISA naming the instruction
   set. */
#include "kernels/cpu/isa/feature.h"
#include "kernels/cpu/isa/vec.h"

enum { LANES = PNET_FEATURE_LANES, VECTORS = LANES / VECTOR };

pnet_feature_scan ISA_NAME(pnet_feature_scan);

/* Differences are squared instead of expanding the square: near rows keep their distance to the last bit. */
ALWAYS_INLINE void panel_distance(
    const int rows, int32_t width, const float *a, const float *b, float (*distance2)[LANES])
{
    vec sum[PNET_FEATURE_ROWS][VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < VECTORS; v++) sum[r][v] = vec_set(0);
    }
    for (int32_t c = 0; c < width; c++) {
        UNROLL
        for (int v = 0; v < VECTORS; v++) {
            vec other = vec_load(b + (int64_t)c * LANES + v * VECTOR);
            UNROLL
            for (int r = 0; r < rows; r++) {
                vec d = vec_set(a[(int64_t)r * width + c]) - other;
                sum[r][v] = vec_madd(d, d, sum[r][v]);
            }
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < VECTORS; v++) vec_store(distance2[r] + v * VECTOR, sum[r][v]);
    }
}

ALWAYS_INLINE void scan(const int rows, int32_t width, const float *a, int64_t first,
    int64_t panels, const float *b, float (*best)[LANES], int32_t (*at)[LANES])
{
    for (int64_t p = 0; p < panels; p++) {
        float distance2[PNET_FEATURE_ROWS][LANES];
        panel_distance(rows, width, a, b + p * LANES * width, distance2);
        for (int r = 0; r < rows; r++) {
            for (int l = 0; l < LANES; l++) {
                int nearer = distance2[r][l] < best[r][l];
                at[r][l] = nearer ? (int32_t)(first + p) : at[r][l];
                best[r][l] = nearer ? distance2[r][l] : best[r][l];
            }
        }
    }
}

void ISA_NAME(pnet_feature_scan)(int rows, int32_t width, const float *a, int64_t first,
    int64_t panels, const float *b, float (*best)[LANES], int32_t (*at)[LANES])
{
    if (rows == PNET_FEATURE_ROWS) {
        scan(PNET_FEATURE_ROWS, width, a, first, panels, b, best, at);
        return;
    }
    for (int r = 0; r < rows; r++)
        scan(1, width, a + (int64_t)r * width, first, panels, b, best + r, at + r);
}
