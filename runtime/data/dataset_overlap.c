#include "runtime/data/dataset_overlap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* A point of the target and its cell; the edge of a cell is the radius. Cells are whole numbers in double: no integer holds
   every quotient of a coordinate and a radius. */
struct cell_point {
    double x, y, z; /* cell */
    const float *point;
};

static int by_cell(const void *a, const void *b)
{
    const struct cell_point *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    if (p->y != q->y) return p->y < q->y ? -1 : 1;
    return (p->z > q->z) - (p->z < q->z);
}

static struct cell_point cell_of(double x, double y, double z, double radius_m)
{
    return (struct cell_point){
        .x = floor(x / radius_m), .y = floor(y / radius_m), .z = floor(z / radius_m)};
}

/* Returns the first of the sorted points that does not precede the cell. */
static int64_t first_from(
    const struct cell_point *sorted, int64_t count, const struct cell_point *cell)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (by_cell(&sorted[middle], cell) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The cells of a column are consecutive, so nine searches find the 27 cells around the point. Beyond 2^53 the cells before and
   after the point's may be the same double: then some of the nine find the same points again. */
static bool is_near(
    const struct cell_point *sorted, int64_t count, const double p[3], double radius_m)
{
    struct cell_point home = cell_of(p[0], p[1], p[2], radius_m);
    for (int k = 0; k < 9; k++) {
        int dx = k / 3 - 1, dy = k % 3 - 1;
        struct cell_point column = {.x = home.x + dx, .y = home.y + dy, .z = home.z - 1};
        int64_t i = first_from(sorted, count, &column);
        for (; i < count && sorted[i].x == column.x && sorted[i].y == column.y &&
               sorted[i].z <= home.z + 1;
             i++) {
            double x = p[0] - (double)sorted[i].point[0];
            double y = p[1] - (double)sorted[i].point[1];
            double z = p[2] - (double)sorted[i].point[2];
            if (x * x + y * y + z * z <= radius_m * radius_m) return true;
        }
    }
    return false;
}

enum pnet_status pnet_overlap(const float *source, int64_t sources, const float *target,
    int64_t targets, const struct pnet_pose *pose, double radius_m, int64_t *number,
    struct pnet_error *e)
{
    struct cell_point *sorted = malloc(((size_t)targets + 1) * sizeof *sorted);
    int64_t near = 0;
    *number = 0;
    if (!sorted) return pnet_error_memory(e);
    for (int64_t i = 0; i < targets; i++) {
        const float *p = target + 3 * i;
        sorted[i] = cell_of((double)p[0], (double)p[1], (double)p[2], radius_m);
        sorted[i].point = p;
    }
    qsort(sorted, (size_t)targets, sizeof *sorted, by_cell);
#pragma omp parallel for schedule(static) reduction(+ : near)
    for (int64_t i = 0; i < sources; i++) {
        double p[3] = {(double)source[3 * i], (double)source[3 * i + 1], (double)source[3 * i + 2]};
        pnet_pose_apply(pose, p, p);
        near += is_near(sorted, targets, p, radius_m);
    }
    free(sorted);
    *number = near;
    return PNET_OK;
}
