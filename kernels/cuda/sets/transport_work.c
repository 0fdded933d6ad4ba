/* Workspaces of emd and sinkhorn. */
#include "kernels/cuda/sets/transport_work.h"

#include "kernels/emd.h"
#include "kernels/sinkhorn.h"

/* `numbers` of so many bytes for each row of a set. */
static size_t of_rows(const struct pnet_point_set *s, size_t numbers, size_t each)
{
    return round_up((size_t)s->rows.most * numbers * each);
}

/* Boxes, and places in units of these; in the forward pass the sums of samples, and potentials before and after a step. */
size_t pnet_cuda_sinkhorn_work(const struct pnet_sinkhorn *s, bool backward)
{
    const struct pnet_point_set *x = &s->sets.x, *y = &s->sets.y;
    size_t samples = (size_t)x->samples;
    size_t bytes = round_up(samples * sizeof(struct set_box)) +
                   of_rows(x, PLACE_FLOATS, sizeof(float)) +
                   of_rows(y, PLACE_FLOATS, sizeof(float));
    if (backward) return bytes;
    return bytes + round_up(samples * sizeof(double)) +
           2 * (of_rows(x, POTENTIAL_FLOATS, sizeof(float)) +
                   of_rows(y, POTENTIAL_FLOATS, sizeof(float)));
}

/* Boxes and counts; of samples phases, how many are left, and free objects; of objects the place, the largest bid, the holder,
   and the place of those that are free; of persons the lists, what they want and what they remember. */
size_t pnet_cuda_emd_assign_work(const struct pnet_emd *e)
{
    const struct pnet_point_set *x = &e->sets.x, *y = &e->sets.y;
    size_t samples = (size_t)x->samples;
    return round_up(samples * sizeof(struct set_box)) + round_up(2 * COUNTS * sizeof(int32_t)) +
           3 * round_up(samples * sizeof(int32_t)) + 2 * of_rows(y, PLACE_FLOATS, sizeof(float)) +
           of_rows(y, 1, sizeof(uint64_t)) + of_rows(y, 1, sizeof(int32_t)) +
           LISTS * of_rows(x, 1, sizeof(int32_t)) + of_rows(x, 1, sizeof(int32_t)) +
           of_rows(x, OBJECTS_KEPT, sizeof(int32_t));
}
