/* Clouds without points go through all of the geometry stage. There may be no arrays for them at all: under the undefined
   behaviour sanitizer nothing may point into what is not there. */
#include "kernels/chunks.h"
#include "kernels/corners.h"
#include "kernels/geometry_stage.h"
#include "tests/check.h"

#include <stdint.h>

enum { SAMPLES = 2 };

static int64_t splits[SAMPLES + 1], coarse_splits[SAMPLES + 1] = {7, 7, 7};
static const struct pnet_grid fine_grid = {.base = 0.5f, .factor = 1},
                              coarse_grid = {.base = 0.5f, .factor = 2};
static uint64_t work[1 << 17];

static void *room(size_t bytes)
{
    CHECKF(bytes <= sizeof work, "%zu bytes", bytes);
    return work;
}

static void check_triplets(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent)
{
    int64_t start[1] = {7}, back[1] = {7};
    CHECK(pnet_cpu_triplets_count(
              out, in, nb, parent, start, room(pnet_cpu_triplets_work(out, in, nb))) == 0);
    CHECK(start[0] == 0);
    pnet_cpu_triplets_write(
        out, in, nb, parent, start, NULL, NULL, room(pnet_cpu_triplets_work(out, in, nb)));
    struct pnet_triplets t = {.cells = nb->kernel * nb->kernel * nb->kernel, .start = start};
    pnet_cpu_transpose(&t, back, NULL, NULL, room(pnet_cpu_transpose_work(&t)));
    CHECK(back[0] == 0 && pnet_cpu_cell_runs(&t) == 0 && pnet_cpu_tiles_words(&t, NULL) == 0);
}

int main(void)
{
    int64_t start[1] = {7};
    CHECK(pnet_cpu_keys(0, NULL, fine_grid, NULL) == 0);
    pnet_cpu_order(0, SAMPLES, splits, NULL, NULL, room(pnet_cpu_order_work(0)));
    CHECK(pnet_cpu_order_points(0, SAMPLES, splits, NULL, fine_grid, NULL, NULL,
              room(pnet_cpu_order_points_work(0))) == 0);
    struct pnet_level fine = {.grid = fine_grid, .samples = SAMPLES, .row_splits = splits},
                      coarse = {
                          .grid = coarse_grid, .samples = SAMPLES, .row_splits = coarse_splits};
    for (int ordered = 0; ordered < 2; ordered++)
        CHECK(pnet_cpu_sample(&fine, coarse_grid, ordered, NULL, NULL, coarse_splits,
                  room(pnet_cpu_sample_work(0, ordered))) == 0);
    for (int s = 0; s <= SAMPLES; s++) CHECK(coarse_splits[s] == 0);
    int64_t chunk_splits[SAMPLES + 1] = {7, 7, 7};
    CHECK(pnet_cpu_chunk_splits(SAMPLES, splits, 4, chunk_splits) == 0);
    pnet_cpu_chunk_points(&fine, 4, 0, chunk_splits, NULL, NULL);
    for (int s = 0; s <= SAMPLES; s++) CHECK(chunk_splits[s] == 0);
    pnet_cpu_children(0, 0, NULL, start, NULL);
    CHECK(start[0] == 0);
    for (unsigned degrade = 0; degrade < 8; degrade++) {
        struct pnet_neighbourhood ball = {.radius = 1, .kernel = 3, .degrade = degrade};
        check_triplets(&fine, &fine, &ball, NULL);
        check_triplets(&coarse, &fine, &ball, NULL);
    }
    struct pnet_neighbourhood knn = {.radius = 1, .kernel = 3, .knn = 8};
    check_triplets(&fine, &fine, &knn, NULL);
    check_triplets(&coarse, &fine, &knn, NULL);
    pnet_cpu_nearest(&coarse, &fine, 3, NULL, NULL, room(pnet_cpu_nearest_work(&coarse, &fine, 3)));
    for (int kind = PNET_CORNERS_TRILINEAR; kind <= PNET_CORNERS_NEAREST; kind++) {
        enum pnet_corner_kind k = (enum pnet_corner_kind)kind;
        void *corners_work = room(pnet_cpu_corners_work(&fine, &coarse, k));
        start[0] = 7;
        CHECK(pnet_cpu_corners_count(&fine, &coarse, k, NULL, start, corners_work) == 0);
        CHECK(start[0] == 0);
        pnet_cpu_corners_write(&fine, &coarse, k, NULL, start, NULL, NULL, NULL, corners_work);
    }
    struct pnet_weighted nothing = {.rows = pnet_count(0), .start = start};
    pnet_cpu_weighted_rows(&nothing, 4, NULL, false, NULL);
    pnet_cpu_weighted_labels(&nothing, NULL, NULL);
    return check_end();
}
