/* Losses between points, and their gradients. */
#include "library/loss.h"

#include <stdlib.h>

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t whole(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* The work of kernels, forward, which stands behind what is kept; of the earth mover's distance the means of samples follow. */
static size_t forward_work(const struct pnet_loss_call *c)
{
    const struct pnet_set_pair *s = &c->sets;
    struct pnet_emd emd = pnet_loss_emd(c);
    struct pnet_sinkhorn sinkhorn = pnet_loss_sinkhorn(c);
    struct pnet_apml apml = pnet_loss_apml(c);
    size_t near =
        larger(pnet_cpu_set_near_work(&s->x, &s->y), pnet_cpu_set_near_work(&s->y, &s->x));
    switch (c->o.kind) {
    case PNET_LOSS_CHAMFER: return larger(near, pnet_cpu_chamfer_work(s));
    case PNET_LOSS_DCD: return larger(near, pnet_cpu_dcd_work(s));
    case PNET_LOSS_HYPERCD: return larger(near, pnet_cpu_hypercd_work(s));
    case PNET_LOSS_INFOCD: return larger(near, pnet_cpu_infocd_work(s));
    case PNET_LOSS_EMD:
        return whole(pnet_cpu_emd_assign_work(&emd)) + (size_t)s->x.samples * sizeof(double);
    case PNET_LOSS_SINKHORN: return pnet_cpu_sinkhorn_work(&sinkhorn, false);
    case PNET_LOSS_APML: return pnet_cpu_apml_work(&apml, false);
    }
    return 0;
}

/* The same backward, behind gradients by rows inside. */
static size_t backward_work(const struct pnet_loss_call *c)
{
    struct pnet_set_pull x = pnet_loss_pull(c, false), y = pnet_loss_pull(c, true);
    struct pnet_sinkhorn sinkhorn = pnet_loss_sinkhorn(c);
    struct pnet_apml apml = pnet_loss_apml(c);
    switch (c->o.kind) {
    case PNET_LOSS_CHAMFER:
    case PNET_LOSS_DCD:
    case PNET_LOSS_HYPERCD:
    case PNET_LOSS_INFOCD: return larger(pnet_cpu_set_pull_work(&x), pnet_cpu_set_pull_work(&y));
    case PNET_LOSS_EMD: return 0;
    case PNET_LOSS_SINKHORN: return pnet_cpu_sinkhorn_work(&sinkhorn, true);
    case PNET_LOSS_APML: return pnet_cpu_apml_work(&apml, true);
    }
    return 0;
}

/* Gradients by rows inside, where the caller's are others. */
static size_t inside_bytes(const struct pnet_points *p)
{
    return pnet_points_order(p) ? whole((size_t)p->level.rows * 3 * sizeof(float)) : 0;
}

enum pnet_status pnet_loss_workspace(const struct pnet_points *x, const struct pnet_points *y,
    const struct pnet_loss_options *o, struct pnet_loss_bytes *bytes, struct pnet_error *e)
{
    struct pnet_loss_call c;
    enum pnet_status st = pnet_loss_begin(&c, x, y, o, e);
    if (st) return st;
    struct pnet_loss_bytes b = {.kept = pnet_loss_lay_out(&c, NULL)};
    b.forward = b.kept + forward_work(&c);
    b.backward = inside_bytes(x) + inside_bytes(y) + backward_work(&c);
    return pnet_library_give("pnet_loss_bytes", &b, bytes, sizeof b, e);
}

static void forward(struct pnet_loss_call *c, float *loss, void *work)
{
    const struct pnet_set_pair *s = &c->sets;
    struct pnet_loss_kept *k = &c->kept;
    struct pnet_dcd dcd = pnet_loss_dcd(c);
    struct pnet_infocd infocd = pnet_loss_infocd(c);
    struct pnet_emd emd = pnet_loss_emd(c);
    struct pnet_sinkhorn sinkhorn = pnet_loss_sinkhorn(c);
    struct pnet_apml apml = pnet_loss_apml(c);
    double *mean;
    if (k->x_near) {
        pnet_cpu_set_near(&s->x, &s->y, k->x_near, work);
        pnet_cpu_set_near(&s->y, &s->x, k->y_near, work);
    }
    switch (c->o.kind) {
    case PNET_LOSS_CHAMFER:
        pnet_cpu_chamfer(s, c->o.squares != 0, loss, k->x_pull, k->y_pull, work);
        break;
    case PNET_LOSS_DCD: pnet_cpu_dcd(s, &dcd, loss, k->x_pull, k->y_pull, work); break;
    case PNET_LOSS_HYPERCD:
        pnet_cpu_hypercd(s, c->o.alpha, loss, k->x_pull, k->y_pull, work);
        break;
    case PNET_LOSS_INFOCD: pnet_cpu_infocd(s, &infocd, loss, k->x_pull, k->y_pull, work); break;
    case PNET_LOSS_EMD:
        mean = (double *)(void *)((char *)work + whole(pnet_cpu_emd_assign_work(&emd)));
        pnet_cpu_emd_assign(&emd, k->partner, work);
        pnet_cpu_emd(s, k->partner, mean, loss);
        break;
    case PNET_LOSS_SINKHORN:
        pnet_cpu_sinkhorn(&sinkhorn, k->x_potential, k->y_potential, loss, work);
        break;
    case PNET_LOSS_APML: pnet_cpu_apml(&apml, &k->plan, loss, work); break;
    }
}

static enum pnet_status check_kept(
    const struct pnet_loss_run *r, size_t bytes, struct pnet_error *e)
{
    if (r->kept_bytes >= bytes) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "kept_bytes: %zu, expected %zu: pnet_loss_workspace says so", r->kept_bytes, bytes);
}

enum pnet_status pnet_loss_forward(const struct pnet_points *x, const struct pnet_points *y,
    const struct pnet_loss_options *o, const struct pnet_loss_run *run, float *loss,
    struct pnet_error *e)
{
    PNET_OWN_ERROR(e);
    struct pnet_loss_call c;
    struct pnet_loss_run r;
    enum pnet_status st = pnet_library_take("pnet_loss_run", run, &r, sizeof r, e);
    if (!st) st = pnet_loss_begin(&c, x, y, o, e);
    if (st) return st;
    size_t kept = pnet_loss_lay_out(&c, NULL);
    if (r.kept) st = check_kept(&r, kept, e);
    if (!st && r.accumulate)
        st = pnet_error_set(e, PNET_USAGE, "accumulate: the backward alone has it");
    if (st) return st;
    void *own, *work = pnet_library_workspace(r.workspace, r.workspace_bytes,
                   kept + forward_work(&c), "pnet_loss_workspace", &own, e);
    if (!work) return e->status;
    pnet_loss_lay_out(&c, r.kept ? r.kept : work);
    forward(&c, loss, (char *)work + kept);
    free(own);
    return PNET_OK;
}

static void backward(const struct pnet_loss_call *c, const float *gradient,
    const struct pnet_set_gradients *g, void *work)
{
    const struct pnet_loss_kept *k = &c->kept;
    struct pnet_set_pull x = pnet_loss_pull(c, false), y = pnet_loss_pull(c, true);
    struct pnet_sinkhorn sinkhorn = pnet_loss_sinkhorn(c);
    struct pnet_apml apml = pnet_loss_apml(c);
    struct pnet_apml_gradients of_apml = {g->x, g->y, g->add_x, g->add_y};
    switch (c->o.kind) {
    case PNET_LOSS_CHAMFER:
    case PNET_LOSS_DCD:
    case PNET_LOSS_HYPERCD:
    case PNET_LOSS_INFOCD:
        if (g->x) pnet_cpu_set_pull(&x, gradient, g->add_x, g->x, work);
        if (g->y) pnet_cpu_set_pull(&y, gradient, g->add_y, g->y, work);
        break;
    case PNET_LOSS_EMD: pnet_cpu_emd_backward(&c->sets, k->partner, gradient, g); break;
    case PNET_LOSS_SINKHORN:
        pnet_cpu_sinkhorn_backward(&sinkhorn, k->x_potential, k->y_potential, gradient, g, work);
        break;
    case PNET_LOSS_APML: pnet_cpu_apml_backward(&apml, &k->plan, gradient, &of_apml, work); break;
    }
}

/* Gradients by rows inside become those of the caller's rows. */
static void place(const struct pnet_points *p, const float *inside, bool add, float *to)
{
    const int32_t *order = pnet_points_order(p);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < p->level.rows; i++) {
        float *at = to + 3 * (int64_t)order[i];
        for (int a = 0; a < 3; a++) at[a] = add ? at[a] + inside[3 * i + a] : inside[3 * i + a];
    }
}

static enum pnet_status check_gradient(const char *name, const struct pnet_points *p,
    const struct pnet_array_out *to, struct pnet_error *e)
{
    if (!to) return PNET_OK;
    return pnet_library_check_filled(name, to, PNET_DTYPE_F32, p->level.rows, 3, e);
}

enum pnet_status pnet_loss_backward(const struct pnet_points *x, const struct pnet_points *y,
    const struct pnet_loss_options *o, const struct pnet_loss_run *run, float gradient,
    const struct pnet_array_out *to_x, const struct pnet_array_out *to_y, struct pnet_error *e)
{
    PNET_OWN_ERROR(e);
    struct pnet_loss_call c;
    struct pnet_loss_run r;
    enum pnet_status st = pnet_library_take("pnet_loss_run", run, &r, sizeof r, e);
    if (!st) st = pnet_loss_begin(&c, x, y, o, e);
    if (!st) st = check_gradient("to_x", x, to_x, e);
    if (!st) st = check_gradient("to_y", y, to_y, e);
    if (!st && !r.kept)
        st = pnet_error_set(e, PNET_USAGE, "kept: the gradient needs that of the forward");
    if (!st) st = check_kept(&r, pnet_loss_lay_out(&c, NULL), e);
    if (st) return st;
    size_t of_x = inside_bytes(x), of_y = inside_bytes(y);
    void *own, *work = pnet_library_workspace(r.workspace, r.workspace_bytes,
                   of_x + of_y + backward_work(&c), "pnet_loss_workspace", &own, e);
    if (!work) return e->status;
    float *inside_x = work, *inside_y = (float *)(void *)((char *)work + of_x);
    bool add = r.accumulate != 0;
    struct pnet_set_gradients g = {.x = !to_x  ? NULL
                                        : of_x ? inside_x
                                               : to_x->data,
        .y = !to_y  ? NULL
             : of_y ? inside_y
                    : to_y->data,
        .add_x = add && !of_x,
        .add_y = add && !of_y};
    pnet_loss_lay_out(&c, r.kept);
    backward(&c, &gradient, &g, (char *)work + of_x + of_y);
    if (to_x && of_x) place(x, inside_x, add, to_x->data);
    if (to_y && of_y) place(y, inside_y, add, to_y->data);
    free(own);
    return PNET_OK;
}
