#include "kernels/feature.h"
#include "kernels/cpu/isa/feature.h"

#include <math.h>
#include <string.h>

#include "kernels/conv.h"

/* Rows of a that share a tile of panels, and panels of a tile: some 128 KiB of 32 channels. */
enum { LANES = PNET_FEATURE_LANES, TILE_ROWS = 64, TILE_PANELS = 64 };

extern pnet_feature_scan pnet_feature_scan_base;
#if defined(__x86_64__)
extern pnet_feature_scan pnet_feature_scan_avx2, pnet_feature_scan_avx512;
#endif

static pnet_feature_scan *choose_scan(void)
{
#if defined(__x86_64__)
    const char *name = pnet_cpu_isa();
    if (strcmp(name, "avx512") == 0) return pnet_feature_scan_avx512;
    if (strcmp(name, "avx2") == 0) return pnet_feature_scan_avx2;
#endif
    return pnet_feature_scan_base;
}

static int64_t panels_of(int64_t others)
{
    return (others + LANES - 1) / LANES;
}

size_t pnet_cpu_feature_nearest_work(int64_t others, int32_t width)
{
    return (size_t)panels_of(others) * LANES * (size_t)width * sizeof(float);
}

/* Lanes behind the last row are infinitely far. */
static void pack(int64_t others, const float *b, int32_t width, float *panel)
{
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < panels_of(others); p++)
        for (int32_t c = 0; c < width; c++)
            for (int l = 0; l < LANES; l++) {
                int64_t row = p * LANES + l;
                panel[(p * width + c) * LANES + l] = row < others ? b[row * width + c] : INFINITY;
            }
}

/* The lowest row among the lanes' nearest. */
static int32_t join_lanes(const float best[LANES], const int32_t at[LANES])
{
    float least = INFINITY;
    int32_t row = -1;
    for (int l = 0; l < LANES; l++) {
        int32_t other = at[l] * LANES + l;
        if (at[l] >= 0 && (best[l] < least || (best[l] == least && other < row))) {
            least = best[l];
            row = other;
        }
    }
    return row;
}

static void search_tile(pnet_feature_scan *scan, int64_t rows, const float *a, int64_t panels,
    const float *panel, int32_t width, int32_t *nearest)
{
    float best[TILE_ROWS][LANES];
    int32_t at[TILE_ROWS][LANES];
    for (int64_t r = 0; r < rows; r++)
        for (int l = 0; l < LANES; l++) {
            best[r][l] = INFINITY;
            at[r][l] = -1;
        }
    for (int64_t first = 0; first < panels; first += TILE_PANELS) {
        int64_t count = panels - first < TILE_PANELS ? panels - first : TILE_PANELS;
        for (int64_t r = 0; r < rows; r += PNET_FEATURE_ROWS)
            scan(rows - r < PNET_FEATURE_ROWS ? (int)(rows - r) : PNET_FEATURE_ROWS, width,
                a + r * width, first, count, panel + first * LANES * width, best + r, at + r);
    }
    for (int64_t r = 0; r < rows; r++) nearest[r] = join_lanes(best[r], at[r]);
}

void pnet_cpu_feature_nearest(int64_t rows, const float *a, int64_t others, const float *b,
    int32_t width, int32_t *nearest, void *work)
{
    pnet_feature_scan *scan = choose_scan();
    pack(others, b, width, work);
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t tile = 0; tile < (rows + TILE_ROWS - 1) / TILE_ROWS; tile++) {
        int64_t row = tile * TILE_ROWS;
        search_tile(scan, rows - row < TILE_ROWS ? rows - row : TILE_ROWS, a + row * width,
            panels_of(others), work, width, nearest + row);
    }
}
