#include "runtime/run/updater.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/optim.h"
#endif

#include <stdlib.h>
#include <string.h>

/* Offsets in the runner's extra memory. */
struct places {
    size_t chunks, record, losses, work, total;
};

static int by_offset(const void *a, const void *b)
{
    const struct pnet_optim_part *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int list_parts(const struct pnet_plan *p, const float *rates, struct pnet_optim_part *parts)
{
    int count = 0;
    for (int i = 0; i < p->param_count; i++)
        if (p->params[i].offset >= 0 && p->params[i].info.trained && !(rates && rates[i] == 0))
            parts[count++] = (struct pnet_optim_part){p->params[i].offset, p->params[i].count,
                p->params[i].info.decay, rates ? rates[i] : 1};
    qsort(parts, (size_t)count, sizeof *parts, by_offset);
    return count;
}

/* Returns the largest number of chunks: each parameter cut separately. */
static int64_t most_chunks(const struct pnet_plan *p)
{
    int64_t chunks = 0;
    for (int i = 0; i < p->param_count; i++)
        if (p->params[i].offset >= 0 && p->params[i].info.trained)
            chunks += (p->params[i].count + PNET_OPTIM_CHUNK - 1) / PNET_OPTIM_CHUNK;
    return chunks;
}

static struct places place(const struct pnet_bound *b, const struct pnet_optim *o)
{
    const struct pnet_plan *p = b->plan;
    size_t states = (size_t)pnet_optim_state_count(o), chunks = (size_t)most_chunks(p);
    struct places at;
    at.chunks = pnet_round_bytes(states * (size_t)p->trained_elements * sizeof(float));
    at.record = at.chunks + pnet_round_bytes(chunks * sizeof(struct pnet_optim_chunk));
    at.losses = at.record + pnet_round_bytes(sizeof(struct pnet_optim_record));
    at.work = at.losses + pnet_round_bytes((size_t)p->objective_count * sizeof(double));
    at.total = at.work + pnet_round_bytes(pnet_optim_work(b->device, (int64_t)chunks));
    return at;
}

size_t pnet_updater_bytes(const struct pnet_bound *b, const struct pnet_optim *o)
{
    return place(b, o).total;
}

enum pnet_status pnet_updater_open(struct pnet_updater *u, struct pnet_runner *s,
    const struct pnet_optim *o, double steps, struct pnet_error *e)
{
    return pnet_updater_open_with(u, s, o, NULL, steps, e);
}

enum pnet_status pnet_updater_open_with(struct pnet_updater *u, struct pnet_runner *s,
    const struct pnet_optim *o, const float *rates, double steps, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    struct pnet_device device = pnet_runner_device(s);
    struct places at = place(pnet_runner_bound(s), o);
    char *memory = pnet_runner_extra(s);
    int64_t most = most_chunks(p), count = 0;
    struct pnet_optim_part *parts = calloc((size_t)p->param_count + 1, sizeof *parts);
    struct pnet_optim_chunk *chunks = calloc((size_t)most + 1, sizeof *chunks);
    struct pnet_optim_record record = {.loss_scale = 1, .step = steps};
    enum pnet_status st = parts && chunks ? PNET_OK : pnet_error_memory(e);
    if (!st) {
        count = pnet_optim_chunks(o, parts, list_parts(p, rates, parts), chunks);
        if (!count) st = pnet_error_set(e, PNET_USAGE, "freeze: nothing is left to be trained");
    }
    if (!st) {
        pnet_device_put(device, memory + at.chunks, chunks, (size_t)count * sizeof *chunks);
        pnet_device_put(device, memory + at.record, &record, sizeof record);
        st = pnet_device_wait(device, e);
    }
    free(parts);
    if (st) {
        free(chunks);
        return st;
    }
    *u = (struct pnet_updater){.runner = s,
        .states = pnet_optim_state_count(o),
        .losses = (double *)(memory + at.losses),
        .work = memory + at.work,
        .chunks = chunks,
        .update = {.rule = pnet_optim_rule(o),
            .chunks = (const struct pnet_optim_chunk *)(memory + at.chunks),
            .chunk_count = count,
            .g = pnet_runner_grads(s),
            .w = pnet_runner_params(s),
            .loss_count = p->objective_count,
            .record = (struct pnet_optim_record *)(memory + at.record)}};
    u->update.losses = u->losses;
    for (int i = 0; i < u->states; i++)
        u->update.state[i] = (float *)memory + (int64_t)i * p->trained_elements;
    return PNET_OK;
}

void pnet_updater_close(struct pnet_updater *u)
{
    free(u->chunks);
    u->chunks = NULL;
}

/* Returns the number of chunks that end at or before an element. */
static int64_t chunks_before(const struct pnet_updater *u, int64_t element)
{
    int64_t n = 0;
    while (n < u->update.chunk_count && u->chunks[n].offset + u->chunks[n].count <= element) n++;
    return n;
}

/* A replay repeats the same work, so `squared` holds for it too. */
static void square_ready(void *updater, int64_t begin, int64_t end)
{
    struct pnet_updater *u = updater;
    int64_t first = chunks_before(u, begin), last = chunks_before(u, end);
    enum pnet_device_kind device = pnet_runner_bound(u->runner)->device;
    pnet_optim_squares(device, &u->update, first, last - first, u->work);
    if (last > u->squared) u->squared = last;
}

void pnet_updater_watch(struct pnet_updater *u, bool last)
{
    u->watches = last;
    if (last) /* it is the only listener, so there is room */
        (void)pnet_runner_listen(u->runner, square_ready, u);
    else
        pnet_runner_unlisten(u->runner, square_ready, u);
}

void pnet_updater_note_losses(struct pnet_updater *u, double weight, bool add)
{
    const struct pnet_bound *b = pnet_runner_bound(u->runner);
    const struct pnet_plan *p = b->plan;
    for (int i = 0; i < p->objective_count; i++) {
        const float *loss = pnet_runner_objective_data(u->runner, i);
        if (p->objectives[i].metric) continue;
        PNET_KERNEL(b, loss_add)(loss, weight, add, &u->losses[i]);
    }
}

void pnet_updater_forget_losses(struct pnet_updater *u)
{
    pnet_device_fill(pnet_runner_device(u->runner), u->losses, 0,
        (size_t)pnet_runner_plan(u->runner)->objective_count * sizeof *u->losses);
}

void pnet_updater_apply(struct pnet_updater *u, bool squared)
{
    u->update.squared = squared ? u->squared : 0;
    pnet_optim_step(pnet_runner_bound(u->runner)->device, &u->update, u->work);
}

void pnet_updater_launch(struct pnet_updater *u, double lr, double clip, double loss_scale)
{
    const double set[3] = {lr, clip, loss_scale};
    _Static_assert(offsetof(struct pnet_optim_record, loss_scale) == 2 * sizeof(double),
        "what the host sets stands first");
    pnet_device_put(pnet_runner_device(u->runner), u->update.record, set, sizeof set);
    pnet_updater_apply(u, u->watches);
}

enum pnet_status pnet_updater_step(struct pnet_updater *u, double lr, double clip,
    double loss_scale, struct pnet_optim_record *record, double *losses, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(u->runner);
    struct pnet_device device = pnet_runner_device(u->runner);
    pnet_updater_launch(u, lr, clip, loss_scale);
    pnet_device_get(device, record, u->update.record, sizeof *record);
    pnet_device_get(device, losses, u->losses, (size_t)p->objective_count * sizeof *losses);
    return pnet_device_wait(device, e);
}
