/* Losses between points, and their gradients. */
#include "library/loss.h"

#include "runtime/plan/op.h" /* PNET_KERNEL, PNET_WORK */
#ifdef PNET_CUDA_BUILT
#include "kernels/given.h"
#endif

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
    size_t near = larger(PNET_WORK(c->device, set_near_work)(&s->x, &s->y),
        PNET_WORK(c->device, set_near_work)(&s->y, &s->x));
    switch (c->o.kind) {
    case PNET_LOSS_CHAMFER: return larger(near, PNET_WORK(c->device, chamfer_work)(s));
    case PNET_LOSS_DCD: return larger(near, PNET_WORK(c->device, dcd_work)(s));
    case PNET_LOSS_HYPERCD: return larger(near, PNET_WORK(c->device, hypercd_work)(s));
    case PNET_LOSS_INFOCD: return larger(near, PNET_WORK(c->device, infocd_work)(s));
    case PNET_LOSS_EMD:
        return whole(PNET_WORK(c->device, emd_assign_work)(&emd)) +
               (size_t)s->x.samples * sizeof(double);
    case PNET_LOSS_SINKHORN: return PNET_WORK(c->device, sinkhorn_work)(&sinkhorn, false);
    case PNET_LOSS_APML: return PNET_WORK(c->device, apml_work)(&apml, false);
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
    case PNET_LOSS_INFOCD:
        return larger(
            PNET_WORK(c->device, set_pull_work)(&x), PNET_WORK(c->device, set_pull_work)(&y));
    case PNET_LOSS_EMD: return 0;
    case PNET_LOSS_SINKHORN: return PNET_WORK(c->device, sinkhorn_work)(&sinkhorn, true);
    case PNET_LOSS_APML: return PNET_WORK(c->device, apml_work)(&apml, true);
    }
    return 0;
}

/* Gradients by rows inside, where the caller's are others. */
static size_t inside_bytes(const struct pnet_points *p)
{
    return pnet_points_order(p) ? whole((size_t)p->level.rows * 3 * sizeof(float)) : 0;
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
        PNET_KERNEL(c, set_near)(&s->x, &s->y, k->x_near, work);
        PNET_KERNEL(c, set_near)(&s->y, &s->x, k->y_near, work);
    }
    switch (c->o.kind) {
    case PNET_LOSS_CHAMFER:
        PNET_KERNEL(c, chamfer)(s, c->o.squares != 0, loss, k->x_pull, k->y_pull, work);
        break;
    case PNET_LOSS_DCD: PNET_KERNEL(c, dcd)(s, &dcd, loss, k->x_pull, k->y_pull, work); break;
    case PNET_LOSS_HYPERCD:
        PNET_KERNEL(c, hypercd)(s, c->o.alpha, loss, k->x_pull, k->y_pull, work);
        break;
    case PNET_LOSS_INFOCD:
        PNET_KERNEL(c, infocd)(s, &infocd, loss, k->x_pull, k->y_pull, work);
        break;
    case PNET_LOSS_EMD:
        mean =
            (double *)(void *)((char *)work + whole(PNET_WORK(c->device, emd_assign_work)(&emd)));
        PNET_KERNEL(c, emd_assign)(&emd, k->partner, work);
        PNET_KERNEL(c, emd)(s, k->partner, mean, loss);
        break;
    case PNET_LOSS_SINKHORN:
        PNET_KERNEL(c, sinkhorn)(&sinkhorn, k->x_potential, k->y_potential, loss, work);
        break;
    case PNET_LOSS_APML: PNET_KERNEL(c, apml)(&apml, &k->plan, loss, work); break;
    }
}

static enum pnet_status check_kept(
    const struct pnet_loss_run *r, size_t bytes, struct pnet_error *e)
{
    if (r->kept_bytes >= bytes) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "kept_bytes: %zu, expected %zu: pnet_loss_workspace says so", r->kept_bytes, bytes);
}

/* Is what points on a GPU read and write there? */
static enum pnet_status check_places(
    const struct pnet_loss_call *c, const struct pnet_loss_run *r, struct pnet_error *e)
{
    const struct pnet_home *home = &c->x->home;
    if (c->device != PNET_CUDA) return PNET_OK;
    enum pnet_status st = pnet_home_check(home, "kept", r->kept, PNET_HOME_ALIGNMENT, e);
    if (!st) st = pnet_home_check(home, "factor", r->factor, sizeof *r->factor, e);
    return st ? st : pnet_home_check(home, "workspace", r->workspace, PNET_HOME_ALIGNMENT, e);
}

/* The workspace of a call, with what gives it back. */
struct room {
    struct pnet_running on_gpu;
    void *own, *work;
};

static enum pnet_status begin(const struct pnet_loss_call *c, const struct pnet_loss_run *r,
    size_t bytes, struct room *room, struct pnet_error *e)
{
    const char *says = "pnet_loss_workspace";
    *room = (struct room){.on_gpu = {.home = &c->x->home, .stream = r->stream, .e = e}};
    if (c->device == PNET_CUDA) {
        enum pnet_status st = PNET_ON_GPU(&c->x->home,
            pnet_running_begin(&room->on_gpu, r->workspace, r->workspace_bytes, bytes, says), e);
        room->work = room->on_gpu.work;
        return st;
    }
    room->work =
        pnet_library_workspace(r->workspace, r->workspace_bytes, bytes, says, &room->own, e);
    return room->work ? PNET_OK : e->status;
}

static enum pnet_status end(const struct pnet_loss_call *c, struct room *room, struct pnet_error *e)
{
    free(room->own);
    (void)e; /* of builds without CUDA */
    if (c->device != PNET_CUDA) return PNET_OK;
    return PNET_ON_GPU(&c->x->home, pnet_running_end(&room->on_gpu, PNET_OK), e);
}

enum pnet_status pnet_loss_forward(const struct pnet_points *x, const struct pnet_points *y,
    const struct pnet_loss_options *o, const struct pnet_loss_run *run, float *loss,
    struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(POINTS, x), PNET_A(POINTS, y), PNET_A(ANY, o), PNET_A(ANY, loss));
    PNET_OWN_ERROR(e);
    struct pnet_loss_call c;
    struct pnet_loss_run r;
    struct room room;
    enum pnet_status st = pnet_library_take("pnet_loss_run", run, &r, sizeof r, e);
    if (!st) st = pnet_loss_begin(&c, x, y, o, e);
    if (st) return st;
    size_t kept = pnet_loss_lay_out(&c, NULL);
    if (r.kept) st = check_kept(&r, kept, e);
    if (!st && (r.accumulate || r.factor))
        st = pnet_error_set(
            e, PNET_USAGE, "%s: the backward alone has it", r.accumulate ? "accumulate" : "factor");
    if (!st) st = check_places(&c, &r, e);
    if (!st && c.device == PNET_CUDA) st = pnet_home_check(&x->home, "loss", loss, sizeof *loss, e);
    if (!st) st = begin(&c, &r, kept + forward_work(&c), &room, e);
    if (st) return st;
    pnet_loss_lay_out(&c, r.kept ? r.kept : room.work);
    forward(&c, loss, (char *)room.work + kept);
    return end(&c, &room, e);
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
        if (g->x) PNET_KERNEL(c, set_pull)(&x, gradient, g->add_x, g->x, work);
        if (g->y) PNET_KERNEL(c, set_pull)(&y, gradient, g->add_y, g->y, work);
        break;
    case PNET_LOSS_EMD: PNET_KERNEL(c, emd_backward)(&c->sets, k->partner, gradient, g); break;
    case PNET_LOSS_SINKHORN:
        PNET_KERNEL(c, sinkhorn_backward)
        (&sinkhorn, k->x_potential, k->y_potential, gradient, g, work);
        break;
    case PNET_LOSS_APML:
        PNET_KERNEL(c, apml_backward)(&apml, &k->plan, gradient, &of_apml, work);
        break;
    }
}

/* Gradients by rows inside become those of the caller's rows. */
static void place(const struct pnet_points *p, const float *inside, bool add, float *to)
{
    const int32_t *order = pnet_points_order(p);
#ifdef PNET_CUDA_BUILT
    if (pnet_points_on_gpu(p)) {
        if (add)
            pnet_cuda_scatter_add(p->level.rows, 3, inside, order, to);
        else
            pnet_cuda_scatter(p->level.rows, 3, inside, order, to);
        return;
    }
#endif
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
    enum pnet_status st = pnet_library_check_filled(name, to, PNET_DTYPE_F32, p->level.rows, 3, e);
    if (st || !pnet_points_on_gpu(p)) return st;
    return pnet_home_check(&p->home, name, to->data, PNET_HOME_ALIGNMENT, e);
}

/* Where the kernels read the gradient of the loss: room for it, on the device. */
enum { GRADIENT_BYTES = 16 };

static void set_gradient(
    const struct pnet_loss_call *c, float gradient, const float *factor, float *to)
{
    if (c->device == PNET_CPU) *to = factor ? gradient * *factor : gradient;
#ifdef PNET_CUDA_BUILT
    if (c->device == PNET_CUDA) pnet_cuda_scale_number(gradient, factor, to);
#endif
}

static size_t backward_bytes(const struct pnet_loss_call *c)
{
    return GRADIENT_BYTES + inside_bytes(c->x) + inside_bytes(c->y) + backward_work(c);
}

enum pnet_status pnet_loss_workspace(const struct pnet_points *x, const struct pnet_points *y,
    const struct pnet_loss_options *o, struct pnet_loss_bytes *bytes, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(POINTS, x), PNET_A(POINTS, y), PNET_A(ANY, o), PNET_A(ANY, bytes));
    struct pnet_loss_call c;
    enum pnet_status st = pnet_loss_begin(&c, x, y, o, e);
    if (st) return st;
    struct pnet_loss_bytes b = {.kept = pnet_loss_lay_out(&c, NULL)};
    b.forward = b.kept + forward_work(&c);
    b.backward = backward_bytes(&c);
    return pnet_library_give("pnet_loss_bytes", &b, bytes, sizeof b, e);
}

/* Runs a call that was checked, in its workspace. */
static void run_backward(const struct pnet_loss_call *c, const struct pnet_array_out *to_x,
    const struct pnet_array_out *to_y, bool add, char *work)
{
    size_t of_x = inside_bytes(c->x), of_y = inside_bytes(c->y);
    float *inside_x = (float *)(void *)(work + GRADIENT_BYTES),
          *inside_y = (float *)(void *)(work + GRADIENT_BYTES + of_x);
    struct pnet_set_gradients g = {.x = !to_x  ? NULL
                                        : of_x ? inside_x
                                               : to_x->data,
        .y = !to_y  ? NULL
             : of_y ? inside_y
                    : to_y->data,
        .add_x = add && !of_x,
        .add_y = add && !of_y};
    backward(c, (const float *)(const void *)work, &g, work + GRADIENT_BYTES + of_x + of_y);
    if (to_x && of_x) place(c->x, inside_x, add, to_x->data);
    if (to_y && of_y) place(c->y, inside_y, add, to_y->data);
}

enum pnet_status pnet_loss_backward(const struct pnet_points *x, const struct pnet_points *y,
    const struct pnet_loss_options *o, const struct pnet_loss_run *run, float gradient,
    const struct pnet_array_out *to_x, const struct pnet_array_out *to_y, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(POINTS, x), PNET_A(POINTS, y), PNET_A(ANY, o));
    PNET_OWN_ERROR(e);
    struct pnet_loss_call c;
    struct pnet_loss_run r;
    struct room room;
    enum pnet_status st = pnet_library_take("pnet_loss_run", run, &r, sizeof r, e);
    if (!st) st = pnet_loss_begin(&c, x, y, o, e);
    if (!st) st = check_gradient("to_x", x, to_x, e);
    if (!st) st = check_gradient("to_y", y, to_y, e);
    if (!st && !r.kept)
        st = pnet_error_set(e, PNET_USAGE, "kept: the gradient needs that of the forward");
    if (!st) st = check_kept(&r, pnet_loss_lay_out(&c, NULL), e);
    if (!st) st = check_places(&c, &r, e);
    if (!st) st = begin(&c, &r, backward_bytes(&c), &room, e);
    if (st || !room.work) return st;
    pnet_loss_lay_out(&c, r.kept);
    set_gradient(&c, gradient, r.factor, room.work);
    run_backward(&c, to_x, to_y, r.accumulate != 0, room.work);
    return end(&c, &room, e);
}
