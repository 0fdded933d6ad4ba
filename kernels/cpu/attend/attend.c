/* Attention among the rows of scopes: tasks are tiles of rows of one head, and every number has one task that writes it. */
#include "kernels/attend.h"
#include "kernels/conv.h"
#include "kernels/cpu/isa/attend.h"

#include <string.h>

extern const struct pnet_attend_isa pnet_attend_isa_base;
#if defined(__x86_64__)
extern const struct pnet_attend_isa pnet_attend_isa_avx2, pnet_attend_isa_avx512;
#endif

static const struct pnet_attend_isa *attend_isa(void)
{
#if defined(__x86_64__)
    const char *name = pnet_cpu_isa();
    if (strcmp(name, "avx512") == 0) return &pnet_attend_isa_avx512;
    if (strcmp(name, "avx2") == 0) return &pnet_attend_isa_avx2;
#endif
    return &pnet_attend_isa_base;
}

size_t pnet_cpu_attend_work(const struct pnet_attend *a, bool backward)
{
    (void)backward;
    return ((size_t)a->samples + 1) * sizeof(int64_t);
}

static int64_t sample_rows(const struct pnet_attend *a, int32_t sample)
{
    return a->splits[sample + 1] - a->splits[sample];
}

/* Tiles of the largest scope of a sample; other scopes have less. */
static int64_t tiles_of(const struct pnet_attend *a, int32_t sample)
{
    int64_t most = (int64_t)a->scopes.bucket * a->scopes.scope, rows = sample_rows(a, sample);
    return ((rows < most ? rows : most) + PNET_ATTEND_LANES - 1) / PNET_ATTEND_LANES;
}

/* Task `task` of those of a sample. Returns whether it has rows. */
static bool tile_of(
    const struct pnet_attend *a, int32_t sample, int64_t task, struct pnet_attend_tile *t)
{
    int64_t tiles = tiles_of(a, sample);
    t->a = a;
    t->begin = a->splits[sample];
    t->first = task % tiles * PNET_ATTEND_LANES;
    t->head = (int32_t)(task / tiles % a->heads);
    t->scope = pnet_scope_of(&a->scopes, sample_rows(a, sample), task / tiles / a->heads);
    return t->first < pnet_scope_rows(&t->scope);
}

/* Runs one function, or two in turn, for all tiles. */
static void run(const struct pnet_attend *a, const struct pnet_attend_arrays *x,
    void (*const of[2])(const struct pnet_attend_tile *t, const struct pnet_attend_arrays *x),
    void *work)
{
    int64_t *start = work; /* of the tasks of samples */
    start[0] = 0;
    for (int32_t s = 0; s < a->samples; s++)
        start[s + 1] =
            start[s] + tiles_of(a, s) * a->heads * pnet_scope_count(&a->scopes, sample_rows(a, s));
    int64_t tasks = start[a->samples];
#pragma omp parallel for schedule(dynamic)
    for (int64_t n = 0; n < tasks; n++) {
        int32_t low = 0, high = a->samples;
        while (high - low > 1) {
            int32_t middle = low + (high - low) / 2;
            if (start[middle] <= n)
                low = middle;
            else
                high = middle;
        }
        struct pnet_attend_tile t;
        if (!tile_of(a, low, n - start[low], &t)) continue;
        of[0](&t, x);
        if (of[1]) of[1](&t, x);
    }
}

void pnet_cpu_attend(
    const struct pnet_attend *a, const float *qkv, float *out, float *log_sum, void *work)
{
    struct pnet_attend_arrays x = {.qkv = qkv, .to_out = out, .to_log_sum = log_sum};
    run(a, &x,
        (void (*const[2])(const struct pnet_attend_tile *, const struct pnet_attend_arrays *)){
            attend_isa()->forward, NULL},
        work);
}

void pnet_cpu_attend_backward(const struct pnet_attend *a, const float *qkv, const float *out,
    const float *log_sum, const float *gout, bool add, float *gqkv, void *work)
{
    const struct pnet_attend_isa *isa = attend_isa();
    struct pnet_attend_arrays x = {
        .qkv = qkv, .out = out, .log_sum = log_sum, .gout = gout, .gqkv = gqkv, .add = add};
    run(a, &x,
        (void (*const[2])(const struct pnet_attend_tile *, const struct pnet_attend_arrays *)){
            isa->queries, isa->keys},
        work);
}
