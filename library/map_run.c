/* Features through maps, and gradients back. */
#include "library/map.h"

#include <stdlib.h>

enum { CHANNEL_LIMIT = 1 << 16 };

static size_t work_of(const struct pnet_map_call *r)
{
    struct pnet_nearest n = pnet_map_nearest(r->map);
    if (pnet_map_on_gpu(r->map))
        return r->backward && r->map->kind == PNET_MAP_INVERSE_DISTANCE
                   ? pnet_cuda_interpolate_backward_work(&n, r->width)
                   : 0;
    switch (r->map->kind) {
    case PNET_MAP_MEAN:
    case PNET_MAP_SUM: return r->backward ? 0 : pnet_cpu_cells_sum_work(r->width);
    case PNET_MAP_PARENT: return r->backward ? pnet_cpu_cells_sum_work(r->width) : 0;
    case PNET_MAP_INVERSE_DISTANCE:
        return r->backward ? pnet_cpu_interpolate_backward_work(&n, r->width) : 0;
    case PNET_MAP_MAX:
    case PNET_MAP_TRILINEAR:
    case PNET_MAP_NEAREST: break;
    }
    return 0;
}

static enum pnet_status check_width(int64_t width, struct pnet_error *e)
{
    if (width >= 1 && width <= CHANNEL_LIMIT) return PNET_OK;
    return pnet_error_set(
        e, PNET_USAGE, "%lld channels: expected 1 to %d", (long long)width, CHANNEL_LIMIT);
}

enum pnet_status pnet_map_workspace(
    const struct pnet_map *map, int backward, int32_t channels, size_t *bytes, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MAP, map), PNET_A(ANY, bytes));
    struct pnet_map_call r = {.map = map, .backward = backward != 0, .width = channels};
    enum pnet_status st = check_width(channels, e);
    if (!st) *bytes = work_of(&r);
    return st;
}

/* `row`: that each list makes; NULL: as they are. */
static void weigh(const struct pnet_map_call *r, const struct pnet_map_lists *l, int64_t rows,
    const int32_t *row, const float *x, float *y)
{
    struct pnet_weighted w = {.rows = pnet_count(rows),
        .start = l->start,
        .other = l->other,
        .weight = l->weight,
        .row = row};
    pnet_cpu_weighted_rows(&w, r->width, x, r->o.accumulate != 0, y);
}

static void forward(const struct pnet_map_call *r, const float *x, float *y, void *work)
{
    const struct pnet_map *map = r->map;
    struct pnet_nearest n = pnet_map_nearest(map);
    switch (map->kind) {
    case PNET_MAP_MEAN:
    case PNET_MAP_SUM:
        pnet_cpu_cells_sum(&map->cells, r->width, x, map->kind == PNET_MAP_MEAN, false, y, work);
        break;
    case PNET_MAP_MAX: pnet_cpu_cells_max(&map->cells, r->width, x, y, r->o.argmax); break;
    case PNET_MAP_PARENT: pnet_cpu_cells_spread(&map->cells, r->width, x, false, false, y); break;
    case PNET_MAP_INVERSE_DISTANCE: pnet_cpu_interpolate(&n, r->width, x, y); break;
    case PNET_MAP_TRILINEAR:
    case PNET_MAP_NEAREST: weigh(r, &map->by_out, map->rows_out, map->row, x, y); break;
    }
}

static void backward(const struct pnet_map_call *r, const float *g, float *gx, void *work)
{
    const struct pnet_map *map = r->map;
    struct pnet_nearest n = pnet_map_nearest(map);
    bool add = r->o.accumulate != 0;
    switch (map->kind) {
    case PNET_MAP_MEAN:
    case PNET_MAP_SUM:
        pnet_cpu_cells_spread(&map->cells, r->width, g, map->kind == PNET_MAP_MEAN, add, gx);
        break;
    case PNET_MAP_MAX:
        pnet_cpu_cells_max_backward(&map->cells, r->width, r->o.argmax, g, add, gx);
        break;
    case PNET_MAP_PARENT: pnet_cpu_cells_sum(&map->cells, r->width, g, false, add, gx, work); break;
    case PNET_MAP_INVERSE_DISTANCE:
        pnet_cpu_interpolate_backward(&n, r->width, g, add, gx, work);
        break;
    case PNET_MAP_TRILINEAR:
    case PNET_MAP_NEAREST: weigh(r, &map->by_in, map->rows_in, NULL, g, gx); break;
    }
}

static enum pnet_status check_places(const struct pnet_map_call *r, const char *name,
    const void *from, const void *to, struct pnet_error *e)
{
    const struct pnet_home *home = &r->map->home;
    enum pnet_status st = pnet_home_check(home, name, from, PNET_HOME_ALIGNMENT, e);
    if (!st) st = pnet_home_check(home, "result", to, PNET_HOME_ALIGNMENT, e);
    if (!st) st = pnet_home_check(home, "argmax", r->o.argmax, sizeof *r->o.argmax, e);
    return st ? st : pnet_home_check(home, "workspace", r->o.workspace, PNET_HOME_ALIGNMENT, e);
}

static enum pnet_status run(struct pnet_map_call *r, const char *name,
    const struct pnet_array *from, const struct pnet_map_run *o, const struct pnet_array_out *to,
    struct pnet_error *e)
{
    const struct pnet_map *map = r->map;
    enum pnet_status st = pnet_library_take("pnet_map_run", o, &r->o, sizeof r->o, e);
    if (!st) st = check_width(from->width, e);
    if (st) return st;
    r->width = (int32_t)from->width;
    int64_t rows = r->backward ? map->rows_out : map->rows_in,
            to_rows = r->backward ? map->rows_in : map->rows_out;
    enum pnet_dtype dtype = pnet_map_on_gpu(map) ? from->dtype : PNET_DTYPE_F32;
    st = pnet_home_storage(name, dtype, &r->storage, e);
    if (!st) st = pnet_library_check_matrix(name, from, dtype, rows, r->width, e);
    if (!st) st = pnet_library_check_filled("result", to, dtype, to_rows, r->width, e);
    if (!st && r->backward && map->kind == PNET_MAP_MAX && !r->o.argmax)
        st = pnet_error_set(e, PNET_USAGE, "argmax: the gradient of a maximum needs it");
    if (!st && !r->backward && r->o.accumulate)
        st = pnet_error_set(e, PNET_USAGE, "accumulate: the backward alone has it");
    if (!st && pnet_map_on_gpu(map)) st = check_places(r, name, from->data, to->data, e);
    if (st) return st;
    r->bytes = work_of(r);
    if (pnet_map_on_gpu(map))
        return PNET_ON_GPU(&map->home, pnet_map_run_on_gpu(r, from->data, to->data, e), e);
    void *own, *work = pnet_library_workspace(
                   r->o.workspace, r->o.workspace_bytes, r->bytes, "pnet_map_workspace", &own, e);
    if (!work) return e->status;
    (r->backward ? backward : forward)(r, from->data, to->data, work);
    free(own);
    return PNET_OK;
}

enum pnet_status pnet_map_forward(const struct pnet_map *map, const struct pnet_array *features,
    const struct pnet_map_run *o, const struct pnet_array_out *result, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MAP, map), PNET_A(ANY, features), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    struct pnet_map_call r = {.map = map};
    return run(&r, "features", features, o, result, e);
}

enum pnet_status pnet_map_backward(const struct pnet_map *map, const struct pnet_array *gradient,
    const struct pnet_map_run *o, const struct pnet_array_out *result, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MAP, map), PNET_A(ANY, gradient), PNET_A(ANY, result));
    PNET_OWN_ERROR(e);
    struct pnet_map_call r = {.map = map, .backward = true};
    return run(&r, "gradient", gradient, o, result, e);
}
