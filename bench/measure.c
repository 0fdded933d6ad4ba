#include "bench/measure.h"

#include <string.h>

#include "bench/bench.h"
#include "bench/conv_cuda.h"
#include "kernels/geometry_stage.h"

const char *const pnet_bench_product_names[PRODUCTS] = {"forward", "dF", "dW"};
const char *const pnet_bench_precision_names[] = {"fp32", "tf32", "bf16", "fp16"};

/* By enum pnet_precision: what kernels/precision.h promises. */
static const double tolerance[] = {1e-6, 1e-3, 1e-2, 1e-3};

bool pnet_bench_measure_precision(const char *text, enum pnet_precision *precision)
{
    for (int p = 0; p < 4; p++) {
        if (strcmp(text, pnet_bench_precision_names[p]) != 0) continue;
        *precision = (enum pnet_precision)p;
        return true;
    }
    return false;
}

const char *pnet_bench_measure_storage(struct measure_options *o, int bits)
{
    bool can = o->cuda && pnet_storage_of(o->precision) != PNET_STORE_F32;
    if (bits != 0 && bits != 16 && bits != 32) return "--storage is 16 or 32";
    if (bits == 16 && !can) return "--storage 16 is for bf16 and fp16 on a GPU";
    o->narrow = can && bits != 32;
    return NULL;
}

double pnet_bench_measure_median(struct layer *l, void (*product)(struct layer *), int repeat)
{
    double *seconds = bench_alloc((size_t)repeat * sizeof *seconds);
    for (int i = 0; i < repeat; i++) {
        double begin = bench_now();
        product(l);
        seconds[i] = bench_now() - begin;
    }
    double median = bench_median(seconds, repeat);
    free(seconds);
    return median;
}

static void check(const struct layer *l, double error[PRODUCTS])
{
    error[0] = layer_check_rows(l->forward, l->shape, l->in, l->weight, l->weights, false, l->out);
    error[1] = layer_check_rows(l->backward, l->back, l->gout, l->weight, l->weights, true, l->gin);
    error[2] = layer_check_weight_gradient(l);
}

const char *pnet_bench_measure_layer(
    const struct measure_options *o, struct layer *l, struct measured *m)
{
    static void (*const product[PRODUCTS])(struct layer *) = {
        layer_forward, layer_feature_gradient, layer_weight_gradient};
    *m = (struct measured){.rows = l->forward->rows,
        .triplets = l->forward->count,
        .runs = pnet_cpu_cell_runs(l->forward),
        .shape = l->shape,
        .work = 2.0 * (double)l->forward->count * l->shape.cin * l->shape.cout / l->shape.groups};
    const char *why = NULL;
    if (o->cuda)
        why = pnet_bench_conv_cuda_measure(l, o, m);
    else
        for (int i = 0; i < PRODUCTS; i++) product[i](l);
    if (why) return why;
    m->work_bytes = l->work_bytes;
    check(l, m->error);
    for (int i = 0; i < PRODUCTS && !o->cuda; i++)
        m->time[i] = pnet_bench_measure_median(l, product[i], o->repeat);
    return NULL;
}

const char *pnet_bench_measure_wrong(const struct measured *m, enum pnet_precision precision)
{
    for (int i = 0; i < PRODUCTS; i++)
        if (!(m->error[i] <= tolerance[precision])) return pnet_bench_product_names[i];
    return NULL;
}
