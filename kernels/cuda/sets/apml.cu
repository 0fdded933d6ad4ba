/* The loss APML and its gradients. What depends on two sets' places alone, their supports, comes from apml_search.h. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/apml_lists.cuh"
#include "kernels/cuda/sets/apml_search.h"
#include "kernels/cuda/sets/points.cuh"

/* The lists of a plan, by rows of x. */
static struct apml_list plan_list(
    const struct pnet_apml *a, const struct pnet_apml_plan *plan, int which)
{
    return {a->sets.x.rows, plan->end + which, 2, which ? plan->by_column : plan->by_row};
}

/* Sets the ends of one list of a plan. */
__global__ static void __launch_bounds__(THREADS)
    write_ends(struct pnet_count rows, const int64_t *start, int64_t *end)
{
    const int64_t n = pnet_live(rows);
    for (int64_t row = FLAT_BEGIN; row < n; row += FLAT_STEP) end[2 * row] = start[row + 1];
}

__global__ static void __launch_bounds__(THREADS)
    copy_entries(const __grid_constant__ struct apml_list from, struct pnet_apml_entry *to)
{
    const int64_t entries = list_entries(from);
    for (int64_t at = FLAT_BEGIN; at < entries; at += FLAT_STEP)
        put_entry(to + at, entry_at(from.entry + at));
}

static __device__ __forceinline__ float distance(const float *p, const float *q, float d[3])
{
    for (int a = 0; a < 3; a++) d[a] = p[a] - q[a];
    return sqrtf((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]);
}

struct apml_lists {
    struct apml_list of[2];
};

/* Turns P0 into P, and adds up the distance that each slice of the entries carries. Grid: SLICES, lists. */
__global__ static void __launch_bounds__(THREADS)
    finish_plan(const __grid_constant__ struct apml_lists lists, const float *x, const float *y,
        const struct apml_factors of_x, const struct apml_factors of_y, double *slice)
{
    const struct apml_list &l = lists.of[blockIdx.y];
    let_next_come();
    wait_for_earlier();
    const int64_t entries = list_entries(l);
    double sum = 0;
    for_entries(l, slice_begin(entries, (int32_t)blockIdx.x),
        slice_begin(entries, (int32_t)blockIdx.x + 1), threadIdx.x / WARP, WARPS,
        [&](int64_t row, int64_t at) {
            struct pnet_apml_entry e = entry_at(l.entry + at);
            const struct pnet_apml_factor u = pnet_apml_split(factor_at(of_x, row));
            float d[3];
            e.p = u.part * e.p * pnet_apml_scaled(factor_at(of_y, e.other), u.exponent);
            put_entry(l.entry + at, e);
            sum += (double)(e.p * distance(x + 3 * row, y + 3 * (int64_t)e.other, d));
        });
    sum = block_sum(sum);
    if (threadIdx.x == 0) slice[blockIdx.y * SLICES + blockIdx.x] = sum;
}

__global__ static void __launch_bounds__(SLICES)
    join_slices(int32_t samples, const int32_t *finite, const double *slice, float *loss)
{
    static_assert(SLICES == 1024, "one block joins them");
    let_next_come();
    wait_for_earlier();
    double sum = block_sum(slice[threadIdx.x] + slice[SLICES + threadIdx.x]);
    if (threadIdx.x == 0)
        *loss = !*finite ? nanf("") : samples > 0 ? (float)(sum / (double)samples) : 0;
}

/* Fills the lists of the plan and those by rows of y with P0. */
static void make_lists(const struct pnet_apml *a, const struct pnet_apml_plan *plan,
    const struct pnet_cuda_apml_room *p)
{
    const struct pnet_count x = a->sets.x.rows, y = a->sets.y.rows;
    const struct pnet_cuda_apml_list supports[2] = {
        {p->start, plan->by_row}, {p->start_y, plan->by_column}};
    struct apml_list rows = plan_list(a, plan, 0),
                     columns = list_from(y, p->start_y, plan->by_column);
    cudaStream_t stream = pnet_cuda_stream();
    pnet_cuda_apml_search(a, supports, p->finite, p->search);
    if (x.most > 0)
        write_ends<<<element_blocks(x.most), THREADS, 0, stream>>>(x, p->start, plan->end);
    if (y.most > 0)
        copy_entries<<<blocks_for(2 * y.most, THREADS), THREADS, 0, stream>>>(columns, p->by_y[1]);
    columns.entry = p->by_y[1];
    pnet_cuda_apml_transpose(
        &columns, x, p->start, plan->by_column, (int32_t *)p->part[0], p->sums);
    if (x.most > 0)
        write_ends<<<element_blocks(x.most), THREADS, 0, stream>>>(x, p->start, plan->end + 1);
    pnet_cuda_apml_transpose(&rows, y, p->start, p->by_y[0], (int32_t *)p->part[1], p->sums);
}

void pnet_cuda_apml(
    const struct pnet_apml *a, const struct pnet_apml_plan *plan, float *loss, void *work)
{
    struct pnet_cuda_apml_room p;
    const struct pnet_point_set &sx = a->sets.x, &sy = a->sets.y;
    pnet_cuda_apml_room(a, work, &p);
    make_lists(a, plan, &p);
    const struct apml_lists by_x = {{plan_list(a, plan, 0), plan_list(a, plan, 1)}};
    const struct apml_factors u = {p.part[0], p.steps[0]}, v = {p.part[1], p.steps[1]};
    const struct apml_side x = {sx, {by_x.of[0], by_x.of[1]}, u, {p.long_count[0], p.long_row[0]}},
                           y = {sy,
                               {list_from(sy.rows, p.start, p.by_y[0]),
                                   list_from(sy.rows, p.start_y, p.by_y[1])},
                               v, {p.long_count[1], p.long_row[1]}};
    pnet_cuda_apml_scale(&x, &y, a->rounds, p.begin_split);
    launch_early(
        finish_plan, dim3(SLICES, 2), dim3(THREADS), 0, 1, by_x, sx.xyz, sy.xyz, u, v, p.slice);
    launch_early(join_slices, dim3(1), dim3(SLICES), 0, 1, sx.samples, (const int32_t *)p.finite,
        (const double *)p.slice, loss);
}
