#include "bench/net.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/measure.h"
#include "runtime/base/json.h"

enum stage { CONV, LINEAR, ATTEND, NORM, OTHER, LOSS, STAGES };
static const char *const stage_names[STAGES] = {
    "conv", "linear", "attend", "norm", "other", "loss"};

static enum stage stage_of(const struct net_step *s)
{
    const struct pnet_op *op = pnet_op_find(s->op);
    if (strcmp(s->op, "conv") == 0) return CONV;
    if (strcmp(s->op, "linear") == 0) return LINEAR;
    if (strcmp(s->op, "attend") == 0) return ATTEND;
    if (strlen(s->op) >= 4 && strcmp(s->op + strlen(s->op) - 4, "norm") == 0) return NORM;
    if (strcmp(s->op, "bn") == 0) return NORM;
    return op && op->class_ == PNET_LOSS ? LOSS : OTHER;
}

struct stage_sums {
    int layers[STAGES];
    double forward[STAGES], backward[STAGES], all_forward, all_backward;
};

static struct stage_sums sum_stages(const struct net_result *r)
{
    struct stage_sums s = {.all_forward = 0};
    for (int i = 0; i < r->step_count; i++) {
        enum stage k = stage_of(&r->steps[i]);
        s.layers[k]++;
        s.forward[k] += r->steps[i].forward;
        s.backward[k] += r->steps[i].backward;
        s.all_forward += r->steps[i].forward;
        s.all_backward += r->steps[i].backward;
    }
    return s;
}

/* Returns the share of forward, backward and optimiser that is not convolution; with `linear`, also not products with one
   matrix, which are convolutions of one cell. */
static double other_share(const struct stage_sums *s, const struct net_result *r, bool linear)
{
    double all = s->all_forward + s->all_backward + r->optimizer;
    double conv = s->forward[CONV] + s->backward[CONV];
    if (linear) conv += s->forward[LINEAR] + s->backward[LINEAR];
    return 1 - conv / all;
}

/* Returns the same share for a step in which a GPU runs layers concurrently: the time beyond its convolutions alone, or
   beyond convolutions and linear layers. */
static double other_share_concurrent(const struct net_result *r, bool linear)
{
    const double *alone = linear ? r->product : r->conv;
    return 1 - (alone[0] + alone[1]) / (r->concurrent[0] + r->concurrent[1] + r->optimizer);
}

static void print_parts(const struct net_result *r)
{
    const struct net_parts *t = &r->training;
    double features = t->forward + t->backward + t->optimizer;
    printf("inference    %9.2f ms forward, %9.2f ms with geometry, peak %.1f MiB\n",
        1e3 * r->inference, 1e3 * (r->inference + t->geometry),
        (double)r->inference_peak / 1048576);
    printf("training     %9.2f ms forward, %9.2f ms backward, %9.2f ms optimiser\n",
        1e3 * t->forward, 1e3 * t->backward, 1e3 * t->optimizer);
    printf("             %9.2f ms a step, %9.2f ms with geometry before it, peak %.1f "
           "MiB, geometry and inputs %.1f MiB of it\n",
        1e3 * features, 1e3 * t->step, (double)r->training_peak / 1048576,
        (double)r->geometry_bytes / 1048576);
    printf("geometry     %9.2f ms", 1e3 * t->geometry);
    if (t->upload > 0) printf(", with %.2f ms of upload", 1e3 * t->upload);
    if (t->orders > 0) printf(", %.3f ms of orders", 1e3 * t->orders);
    printf("\nlayout       %9.3f ms where a batch has another capacity class\n", 1e3 * t->layout);
}

static void print_stages(const struct net_result *r)
{
    struct stage_sums s = sum_stages(r);
    double all = s.all_forward + s.all_backward + r->optimizer;
    printf("\n%-10s %6s %12s %12s %8s\n", "stage", "layers", "forward ms", "backward ms", "share");
    for (int k = 0; k < STAGES; k++)
        if (s.layers[k])
            printf("%-10s %6d %12.3f %12.3f %7.1f%%\n", stage_names[k], s.layers[k],
                1e3 * s.forward[k], 1e3 * s.backward[k],
                100 * (s.forward[k] + s.backward[k]) / all);
    printf("%-10s %6s %12s %12.3f %7.1f%%\n", "optimiser", "", "", 1e3 * r->optimizer,
        100 * r->optimizer / all);
    printf("%-10s %6d %12.3f %12.3f   %.1f%% is not convolution, %.1f%% not linear either\n", "all",
        r->step_count, 1e3 * s.all_forward, 1e3 * s.all_backward, 100 * other_share(&s, r, false),
        100 * other_share(&s, r, true));
    if (r->recorded[0] <= 0) return;
    printf("%-10s %6s %12.3f %12.3f   layers in sequence; %.2f and %.2f us a layer are "
           "taken off for the marks between them\n",
        "recorded", "", 1e3 * r->recorded[0], 1e3 * r->recorded[1], 1e6 * r->mark[0],
        1e6 * r->mark[1]);
    printf("%-10s %6s %12.3f %12.3f   as a training runs them, concurrently: %.3f ms with the "
           "optimiser\n",
        "concurrent", "", 1e3 * r->concurrent[0], 1e3 * r->concurrent[1],
        1e3 * (r->concurrent[0] + r->concurrent[1] + r->optimizer));
    printf("%-10s %6s %12.3f %12.3f   its convolutions alone: %.1f%% is not convolution\n", "conv",
        "", 1e3 * r->conv[0], 1e3 * r->conv[1], 100 * other_share_concurrent(r, false));
    printf("%-10s %6s %12.3f %12.3f   convolutions and linear layers: %.1f%% is neither\n",
        "products", "", 1e3 * r->product[0], 1e3 * r->product[1],
        100 * other_share_concurrent(r, true));
}

static void print_layers(const struct net_result *r)
{
    printf("\n%-40s %-14s %10s %6s %12s %12s\n", "layer", "op", "rows", "width", "forward ms",
        "backward ms");
    for (int i = 0; i < r->step_count; i++) {
        const struct net_step *s = &r->steps[i];
        printf("%-40s %-14s %10lld %6d %12.3f %12.3f\n", s->path, s->op, (long long)s->rows,
            s->width, 1e3 * s->forward, 1e3 * s->backward);
    }
}

void pnet_bench_net_print(const struct net_options *o, const struct net_result *r)
{
    printf("%s, %s, %s: %lld points in %d sample%s, %lld parameters\n", o->model,
        o->where.kind == PNET_CPU ? "cpu" : pnet_bench_precision_names[o->precision],
        o->degrade ? "voxel" : "native", (long long)r->points, r->samples,
        r->samples > 1 ? "s" : "", (long long)r->parameters);
    printf("check        loss %.6g", r->loss);
    for (int p = 0; p < 4; p++)
        if (p == PNET_FP32 || p == (int)o->precision)
            printf("; %s off by %.1e, gradients by %.1e", pnet_bench_precision_names[p],
                r->loss_error[p], r->gradient_error[p]);
    puts("");
    print_parts(r);
    print_stages(r);
    if (o->layers) print_layers(r);
}

static void json_parts(struct pnet_json *j, const struct net_result *r)
{
    const struct net_parts *t = &r->training;
    pnet_json_double(j, "inference_ms", 1e3 * r->inference);
    pnet_json_double(j, "geometry_ms", 1e3 * t->geometry);
    pnet_json_double(j, "upload_ms", 1e3 * t->upload);
    pnet_json_double(j, "orders_ms", 1e3 * t->orders);
    pnet_json_double(j, "layout_ms", 1e3 * t->layout);
    pnet_json_double(j, "forward_ms", 1e3 * t->forward);
    pnet_json_double(j, "backward_ms", 1e3 * t->backward);
    pnet_json_double(j, "optimizer_ms", 1e3 * t->optimizer);
    pnet_json_double(j, "step_with_geometry_ms", 1e3 * t->step);
    pnet_json_int(j, "inference_peak_bytes", (int64_t)r->inference_peak);
    pnet_json_int(j, "training_peak_bytes", (int64_t)r->training_peak);
    pnet_json_int(j, "geometry_bytes", (int64_t)r->geometry_bytes);
}

static void json_stages(struct pnet_json *j, const struct net_result *r)
{
    struct stage_sums s = sum_stages(r);
    pnet_json_begin(j, "stages", '{');
    for (int k = 0; k < STAGES; k++) {
        pnet_json_begin(j, stage_names[k], '{');
        pnet_json_int(j, "layers", s.layers[k]);
        pnet_json_double(j, "forward_ms", 1e3 * s.forward[k]);
        pnet_json_double(j, "backward_ms", 1e3 * s.backward[k]);
        pnet_json_end(j, '}');
    }
    pnet_json_end(j, '}');
    pnet_json_double(j, "optimizer_alone_ms", 1e3 * r->optimizer);
    if (r->recorded[0] > 0) {
        pnet_json_double(j, "recorded_forward_ms", 1e3 * r->recorded[0]);
        pnet_json_double(j, "recorded_backward_ms", 1e3 * r->recorded[1]);
        pnet_json_double(j, "mark_forward_ms", 1e3 * r->mark[0]);
        pnet_json_double(j, "mark_backward_ms", 1e3 * r->mark[1]);
        pnet_json_double(j, "concurrent_forward_ms", 1e3 * r->concurrent[0]);
        pnet_json_double(j, "concurrent_backward_ms", 1e3 * r->concurrent[1]);
        pnet_json_double(j, "convolutions_alone_ms", 1e3 * (r->conv[0] + r->conv[1]));
        pnet_json_double(j, "products_alone_ms", 1e3 * (r->product[0] + r->product[1]));
        pnet_json_double(j, "step_not_convolution", other_share_concurrent(r, false));
        pnet_json_double(j, "step_not_convolution_nor_linear", other_share_concurrent(r, true));
    }
    pnet_json_double(j, "not_convolution", other_share(&s, r, false));
    pnet_json_double(j, "not_convolution_nor_linear", other_share(&s, r, true));
    pnet_json_begin(j, "layers", '[');
    for (int i = 0; i < r->step_count; i++) {
        const struct net_step *x = &r->steps[i];
        pnet_json_begin(j, NULL, '{');
        pnet_json_string(j, "layer", x->path);
        pnet_json_string(j, "op", x->op);
        pnet_json_int(j, "rows", x->rows);
        pnet_json_int(j, "width", x->width);
        pnet_json_double(j, "forward_ms", 1e3 * x->forward);
        pnet_json_double(j, "backward_ms", 1e3 * x->backward);
        pnet_json_end(j, '}');
    }
    pnet_json_end(j, ']');
}

enum pnet_status pnet_bench_net_print_json(
    const struct net_options *o, const struct net_result *r, struct pnet_error *e)
{
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_string(&j, "model", o->model);
    pnet_json_string(&j, "device", o->where.kind == PNET_CPU ? "cpu" : "cuda");
    pnet_json_string(&j, "precision", pnet_bench_precision_names[o->precision]);
    pnet_json_string(&j, "mode", o->degrade ? "voxel" : "native");
    pnet_json_int(&j, "points", r->points);
    pnet_json_int(&j, "samples", r->samples);
    pnet_json_int(&j, "parameters", r->parameters);
    pnet_json_double(&j, "loss", r->loss);
    pnet_json_double(&j, "loss_error_fp32", r->loss_error[PNET_FP32]);
    pnet_json_double(&j, "gradient_error_fp32", r->gradient_error[PNET_FP32]);
    pnet_json_double(&j, "loss_error", r->loss_error[o->precision]);
    pnet_json_double(&j, "gradient_error", r->gradient_error[o->precision]);
    json_parts(&j, r);
    json_stages(&j, r);
    pnet_json_end(&j, '}');
    return pnet_json_print(&j, stdout, e);
}
