/* Weights of a runner: fresh ones, and those of a checkpoint. They are computed on the host and copied to the device. */
#include "kernels/philox.h"
#include "runtime/run/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two normal numbers from two uniform ones (Box and Muller, 1958). */
static float normal(const struct pnet_rand *r, uint64_t i)
{
    uint32_t bits[4];
    pnet_philox(r, i >> 1, bits);
    double u = ((double)bits[0] + 1) * 0x1p-32, v = (double)bits[1] * 0x1p-32;
    double radius = sqrt(-2 * log(u)), angle = 6.283185307179586 * v;
    return (float)(radius * (i & 1 ? sin(angle) : cos(angle)));
}

enum pnet_status pnet_runner_init_params(struct pnet_runner *s, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    float *block = calloc((size_t)p->param_elements + 1, sizeof *block);
    if (!block) return pnet_error_memory(e);
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        if (q->offset < 0) continue;
        float *w = block + q->offset;
        uint32_t hash = 2166136261u;
        for (const char *c = q->name; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
        struct pnet_rand r = {.seed = pnet_runner_seed(s), .purpose = PNET_DRAW_INIT, .b = hash};
        float deviation = (float)sqrt(2.0 / (double)(q->info.fan > 0 ? q->info.fan : 1));
        float bound = (float)(1 / sqrt((double)(q->info.fan > 0 ? q->info.fan : 1)));
        for (int64_t k = 0; k < q->count; k++) switch (q->info.init) {
            case PNET_INIT_ZERO: w[k] = 0; break;
            case PNET_INIT_ONE: w[k] = 1; break;
            case PNET_INIT_KAIMING: w[k] = deviation * normal(&r, (uint64_t)k); break;
            case PNET_INIT_UNIFORM: w[k] = bound * (2 * pnet_rand_unit(&r, (uint64_t)k) - 1); break;
            }
    }
    enum pnet_status st = pnet_runner_write(s, PNET_BLOCK_PARAMS, 0, p->param_elements, block, e);
    free(block);
    return st;
}

static const float *fetch(const struct pnet_plan *p, int param, pnet_param_source *source,
    void *context, struct pnet_error *e)
{
    const struct pnet_plan_param *q = &p->params[param];
    const float *w = source(context, q->name, q->count);
    if (!w)
        pnet_error_set(e, PNET_BAD_MODEL,
            "the weights do not fit the model: no tensor '%s' of %lld numbers", q->name,
            (long long)q->count);
    return w;
}

static enum pnet_status fold(const struct pnet_plan *p, float *block,
    const struct pnet_plan_fold *f, pnet_param_source *source, void *context, struct pnet_error *e)
{
    const struct pnet_plan_param *wp = &p->params[f->weight], *bp = &p->params[f->bias];
    int64_t cout = bp->count, inner = wp->count / cout;
    float *w = block + wp->offset, *b = block + bp->offset;
    enum { SCALE, SHIFT, MEAN, VAR };
    const int params[4] = {f->scale, f->shift, f->mean, f->var};
    double *norm = malloc((size_t)(4 * cout) * sizeof *norm);
    if (!norm) return pnet_error_memory(e);
    for (int k = 0; k < 4; k++) { /* a source may reuse its memory: copy one before the next */
        const float *v = fetch(p, params[k], source, context, e);
        if (!v) {
            free(norm);
            return e->status;
        }
        for (int64_t o = 0; o < cout; o++) norm[k * cout + o] = (double)v[o];
    }
    for (int64_t o = 0; o < cout; o++) {
        double scale = norm[SCALE * cout + o] / sqrt(norm[VAR * cout + o] + f->eps);
        double bias = f->bias_was_there ? (double)b[o] : 0;
        b[o] = (float)((bias - norm[MEAN * cout + o]) * scale + norm[SHIFT * cout + o]);
        for (int64_t k = 0; k < inner; k++) {
            float *x = f->out_first ? &w[o * inner + k] : &w[k * cout + o];
            *x = (float)((double)*x * scale);
        }
    }
    free(norm);
    return PNET_OK;
}

static enum pnet_status fill(const struct pnet_plan *p, float *block, pnet_param_source *source,
    void *context, struct pnet_error *e)
{
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        bool made_by_fold = false;
        for (int f = 0; f < p->fold_count; f++)
            made_by_fold |= p->folds[f].bias == i && !p->folds[f].bias_was_there;
        if (q->offset < 0 || made_by_fold) continue;
        const float *w = fetch(p, i, source, context, e);
        if (!w) return e->status;
        memcpy(block + q->offset, w, (size_t)q->count * sizeof(float));
    }
    for (int f = 0; f < p->fold_count; f++) {
        enum pnet_status st = fold(p, block, &p->folds[f], source, context, e);
        if (st) return st;
    }
    return PNET_OK;
}

enum pnet_status pnet_runner_load_params(
    struct pnet_runner *s, pnet_param_source *source, void *context, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    float *block = calloc((size_t)p->param_elements + 1, sizeof *block);
    if (!block) return pnet_error_memory(e);
    enum pnet_status st = fill(p, block, source, context, e);
    if (!st) st = pnet_runner_write(s, PNET_BLOCK_PARAMS, 0, p->param_elements, block, e);
    free(block);
    return st;
}
