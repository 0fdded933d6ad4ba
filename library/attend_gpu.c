/* Buckets, and attention in them, on a GPU. */
#include "library/attend.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#include "kernels/geometry_stage.h"
#include "kernels/given.h"

/* Counts points that the voxels of the order do not reach. */
static enum pnet_status check_reach(
    struct pnet_making *m, const struct pnet_points *p, struct pnet_grid grid, double cell)
{
    uint64_t *key = pnet_making_once(m, p->level.rows, sizeof *key);
    if (!key) return PNET_NO_MEMORY;
    int64_t outside = pnet_cuda_keys(p->level.rows, p->xyz, grid, key);
    enum pnet_status st = pnet_making_step(m);
    return st || !outside ? st : pnet_buckets_beyond(outside, cell, m->e);
}

/* Sets the order inside. `o->order` has the numbers of enum pnet_order. */
static enum pnet_status find_order(struct pnet_making *m, struct pnet_buckets *b,
    const struct pnet_points *p, const struct pnet_buckets_options *o)
{
    struct pnet_grid grid = p->level.grid;
    enum pnet_status st = PNET_OK;
    if (o->order == PNET_BUCKETS_Z) {
        pnet_cuda_count_up(b->rows, b->order);
        return pnet_making_error(m);
    }
    if (o->cell > 0) {
        grid = (struct pnet_grid){(float)o->cell, (float)(1 / o->cell), 1};
        st = check_reach(m, p, grid, o->cell);
    }
    void *work =
        st ? NULL : pnet_making_once(m, (int64_t)pnet_cuda_bucket_order_work(&p->level), 1);
    if (!work) return st ? st : PNET_NO_MEMORY;
    pnet_cuda_bucket_order(
        &p->level, grid, (enum pnet_order)o->order, b->scopes.bucket, b->order, work);
    return pnet_making_step(m);
}

static enum pnet_status find(struct pnet_making *m, struct pnet_buckets *b,
    const struct pnet_points *p, const struct pnet_buckets_options *o)
{
    const int32_t *rows = pnet_points_order(p);
    int64_t splits = (int64_t)b->samples + 1;
    b->splits = pnet_making_keep(m, splits, sizeof *b->splits);
    if (!b->splits) return PNET_NO_MEMORY;
    pnet_cuda_copy(b->splits, p->level.row_splits, (size_t)splits * sizeof *b->splits);
    if (o->order == PNET_BUCKETS_Z && !rows) return PNET_OK;
    b->order = pnet_making_keep(m, b->rows, sizeof *b->order);
    if (!b->order) return PNET_NO_MEMORY;
    enum pnet_status st = find_order(m, b, p, o);
    if (!st && rows) pnet_cuda_rename(b->rows, rows, b->order);
    return st;
}

enum pnet_status pnet_buckets_find_on_gpu(struct pnet_buckets *b, const struct pnet_points *p,
    const struct pnet_buckets_options *o, struct pnet_error *e)
{
    struct pnet_making m = {.home = &b->home, .kept = &b->rooms, .e = e};
    enum pnet_status st = pnet_making_begin(&m);
    if (st) return st;
    return pnet_making_end(&m, find(&m, b, p, o));
}

enum pnet_status pnet_attend_on_gpu(
    const struct pnet_buckets *b, const struct pnet_attend_call *c, struct pnet_error *e)
{
    struct pnet_running run = {.home = &b->home, .stream = c->o.stream, .e = e};
    enum pnet_status st = pnet_running_begin(
        &run, c->o.workspace, c->o.workspace_bytes, c->bytes, "pnet_attend_workspace");
    if (st) return st;
    if (c->backward)
        pnet_cuda_attend_backward(&c->a, c->qkv, c->out, c->o.log_sum, c->gradient,
            c->o.accumulate != 0, c->result, run.work);
    else
        pnet_cuda_attend(&c->a, c->qkv, c->result, c->o.log_sum, run.work);
    return pnet_running_end(&run, st);
}
#endif
