#include "runtime/device/device_time.h"

#include "kernels/conv.h"
#include "runtime/base/clock.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/conv/conv_clock.h"
#include "kernels/cuda/base/cuda.h"
#endif

/* "AMD EPYC 9654, avx512, 2 threads" */
static void describe_cpu(struct pnet_device_info *info)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256], model[200] = "CPU";
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %199[^\n]", model) == 1) break;
    if (f) fclose(f);
    int threads = omp_get_max_threads();
    snprintf(info->name, sizeof info->name, "%s, %s, %d thread%s", model, pnet_cpu_isa(), threads,
        threads > 1 ? "s" : "");
    snprintf(info->driver, sizeof info->driver, "none");
}

enum pnet_status pnet_device_describe(
    struct pnet_device d, struct pnet_device_info *info, struct pnet_error *e)
{
    memset(info, 0, sizeof *info);
#ifdef PNET_CUDA_BUILT
    if (d.kind == PNET_CUDA) {
        struct pnet_cuda_info gpu;
        const char *what = pnet_cuda_describe(d.index, &gpu);
        if (what) return pnet_error_set(e, PNET_NO_DEVICE, "GPU %d: %s", d.index, what);
        memcpy(info->name, gpu.name, sizeof gpu.name);
        memcpy(info->driver, gpu.driver, sizeof gpu.driver);
        return PNET_OK;
    }
#endif
    (void)d;
    (void)e;
    describe_cpu(info);
    return PNET_OK;
}

#ifdef PNET_CUDA_BUILT
static enum pnet_status time_replay(
    struct pnet_device d, void *record, double *seconds, struct pnet_error *e)
{
    void *begin = pnet_cuda_mark();
    pnet_device_replay(d, record);
    void *end = pnet_cuda_mark();
    if (!begin || !end) return pnet_error_set(e, PNET_NO_DEVICE, "GPU %d: no events", d.index);
    *seconds = 1e-3 * pnet_cuda_between(begin, end);
    return pnet_device_wait(d, e);
}

static enum pnet_status time_replays(struct pnet_device d, void (*work)(void *context),
    void *context, int runs, double enough, double *seconds, struct pnet_error *e)
{
    work(context); /* loads the kernels, which takes time of its own */
    enum pnet_status st = pnet_device_wait(d, e);
    if (st) return st;
    pnet_device_record_begin(d);
    work(context);
    void *record = pnet_device_record_end(d);
    if (!record) {
        st = pnet_device_wait(d, e);
        return st ? st : pnet_error_set(e, PNET_NO_DEVICE, "GPU %d: cannot record", d.index);
    }
    for (int i = 0; i < runs && !st; i++) {
        double now = 0;
        st = time_replay(d, record, &now, e);
        if (!st && (i == 0 || now < *seconds)) *seconds = now;
        if (!st && now > enough) break;
    }
    pnet_device_record_free(d, record);
    return st;
}
#endif

enum pnet_status pnet_device_time(struct pnet_device d, void (*work)(void *context), void *context,
    int runs, double enough, double *seconds, struct pnet_error *e)
{
#ifdef PNET_CUDA_BUILT
    if (d.kind == PNET_CUDA) return time_replays(d, work, context, runs, enough, seconds, e);
#endif
    (void)d;
    (void)e;
    for (int i = 0; i <= runs; i++) { /* the first one warms up */
        double begin = pnet_seconds();
        work(context);
        double now = pnet_seconds() - begin;
        if (i <= 1 || now < *seconds) *seconds = now;
        if (now > enough) break;
    }
    return PNET_OK;
}
