/* Weights of a library into a model by import, and the model's result on a cloud. */
#ifndef PNET_TESTS_EXCHANGE_IMPORTED_H
#define PNET_TESTS_EXCHANGE_IMPORTED_H

#include "runtime/exchange/exchange.h"
#include "runtime/exchange/names.h"
#include "runtime/train/weights.h"
#include "tests/exchange/voxel_net.h"
#include "tests/store/folder.h"

#include <unistd.h>

/* Imports the store for the plan, which is compiled without fusion; all of it must fit. Writes `path`. */
static inline void import_store(const struct store *s, const struct pnet_plan *p, enum library l,
    const char *axes, const struct pnet_name_rules *map, const char *path)
{
    const char *from = in_folder("theirs.safetensors");
    struct pnet_exchange x = {.plan = p, .map = map, .map_name = "map"};
    struct pnet_safetensors *file;
    struct pnet_exchanged r;
    struct pnet_error e;
    need(pnet_safetensors_write(from, s->tensors, (size_t)s->count, NULL, 0, &e), &e, "writing");
    CHECK(pnet_library_parse(library_names[l], &x.library));
    x.axes = pnet_axes_usual(x.library);
    if (axes) CHECK(pnet_axes_parse(axes, &x.axes));
    need(pnet_safetensors_read(from, &file, &e), &e, "reading");
    need(pnet_import_weights(&x, from, file, &r, &e), &e, "import");
    for (size_t i = 0; i < r.count; i++)
        if (r.lines[i].kind != PNET_EXCHANGE_TAKEN && r.lines[i].kind != PNET_EXCHANGE_IGNORED)
            CHECKF(false, "%s: %s, %s", library_names[l], r.lines[i].theirs, r.lines[i].ours);
    CHECK(r.counts[PNET_EXCHANGE_TAKEN] + r.counts[PNET_EXCHANGE_IGNORED] == (size_t)s->count);
    need(pnet_safetensors_write(path, r.tensors, r.tensor_count, NULL, 0, &e), &e, "writing");
    pnet_exchanged_free(&r);
    pnet_safetensors_free(file);
}

/* Runs the plan with the weights of the file; a row for each point. The caller frees it. */
static inline float *run_file(
    const struct pnet_plan *p, const char *path, const struct cloud *c, int64_t *rows)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 1};
    struct pnet_runner *s;
    struct pnet_weights w;
    struct pnet_error e;
    float *result;
    struct pnet_batch *b = batch_of(p, c, 1);
    need(pnet_runner_new(need_bound(p, (struct pnet_device){0}, PNET_FP32), &o, &s, &e), &e,
        "runner");
    need(pnet_weights_open(path, &w, &e), &e, "weights");
    need(pnet_weights_load(&w, s, &e), &e, "weights");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    need(pnet_runner_forward(s, 0, false, 0, &e), &e, "forward");
    need(pnet_runner_result(s, 0, &result, rows, &e), &e, "result");
    pnet_weights_close(&w);
    runner_end(s);
    pnet_batch_free(b);
    return result;
}

/* The largest difference between the rows of points and the values of their voxels, relative to the largest value. */
static inline double result_difference(
    const float *rows, const struct values *want, const int (*voxels)[3], int64_t n)
{
    double most = 0, scale = 1e-30;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < want->width; k++) {
            double v = want->v[(int64_t)sites_find(want->sites, voxels[i]) * want->width + k];
            most = fmax(most, fabs((double)rows[i * want->width + k] - v));
            scale = fmax(scale, fabs(v));
        }
    return most / scale;
}

#endif
