#include "runtime/device/device.h"

#include "kernels/conv.h"
#include "kernels/conv_plan.h"
#include "kernels/cuda/base/code.h"
#include "runtime/base/system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#define GPU(d) ((d).kind == PNET_CUDA)
#define CUDA(call) call
#define CUDA_DO(call) call
#else
/* pnet_device_check refuses a GPU, so that none of the calls is reached */
#define GPU(d) ((void)(d), 0)
#define CUDA(call) NULL
#define CUDA_DO(call) (void)0
#endif

void pnet_device_limit_isa(const char *name)
{
    pnet_cpu_isa_limit(name);
}

void pnet_device_limit_kernels(const char *name)
{
    pnet_cuda_conv_limit(name);
}

enum pnet_status pnet_device_parse(const char *text, struct pnet_device *d, struct pnet_error *e)
{
    char *end;
    *d = (struct pnet_device){PNET_CPU, 0};
    if (!text || strcmp(text, "cpu") == 0) return PNET_OK;
    if (strcmp(text, "cuda") == 0) {
        d->kind = PNET_CUDA;
        return PNET_OK;
    }
    if (strncmp(text, "cuda:", 5) == 0 && text[5] >= '0' && text[5] <= '9') {
        errno = 0;
        long index = strtol(text + 5, &end, 10);
        if (!errno && !*end && index < 1024) {
            *d = (struct pnet_device){PNET_CUDA, (int)index};
            return PNET_OK;
        }
    }
    return pnet_error_set(e, PNET_USAGE, "--device is cpu, cuda or cuda:N, not '%s'", text);
}

enum pnet_status pnet_device_check(struct pnet_device d, struct pnet_error *e)
{
    if (d.kind == PNET_CPU) return PNET_OK;
#ifdef PNET_CUDA_BUILT
    const char *why;
    int count = pnet_cuda_devices(&why);
    if (!count) return pnet_error_set(e, PNET_NO_DEVICE, "--device cuda: no usable GPU: %s", why);
    if (d.index >= count)
        return pnet_error_set(
            e, PNET_NO_DEVICE, "--device cuda:%d: there are GPUs 0 to %d", d.index, count - 1);
    int architecture = pnet_cuda_architecture(d.index);
    if (architecture && pnet_cuda_code_for(architecture) == PNET_CUDA_CODE_NONE)
        return pnet_error_set(e, PNET_NO_DEVICE,
            "--device cuda:%d: the GPU's architecture is %d, and this program was compiled for %s: "
            "build it with -DPNET_CUDA_ARCHITECTURES=%d-real",
            d.index, architecture, pnet_cuda_code_list(), architecture);
    return PNET_OK;
#else
    return pnet_error_set(e, PNET_NO_DEVICE,
        "--device cuda: this pnetc was built without the CUDA backend: install the CUDA Toolkit "
        "(12 or 13) and "
        "build again");
#endif
}

const char *pnet_device_code_list(void)
{
    return pnet_cuda_code_list();
}

bool pnet_device_slow(struct pnet_device d, char *text, size_t size)
{
#ifdef PNET_CUDA_BUILT
    int architecture = GPU(d) ? pnet_cuda_architecture(d.index) : 0;
    if (architecture && pnet_cuda_code_for(architecture) == PNET_CUDA_CODE_PTX)
        return snprintf(text, size,
                   "this program has no machine code for GPUs of architecture %d: the driver "
                   "compiles its kernels when they are first used, which takes minutes once",
                   architecture) > 0;
    if (architecture && architecture < 80)
        return snprintf(text, size,
                   "there are no fast kernels of convolutions and linear layers for GPUs of "
                   "architecture %d: they multiply in float32",
                   architecture) > 0;
#endif
    (void)d, (void)text, (void)size;
    return false;
}

size_t pnet_device_available(struct pnet_device d)
{
#ifdef PNET_CUDA_BUILT
    struct pnet_cuda_info info;
    if (GPU(d))
        return pnet_cuda_use(d.index) || pnet_cuda_describe(d.index, &info) ? 0 : info.free_memory;
#endif
    (void)d;
    return pnet_system_memory();
}

static enum pnet_status told(struct pnet_device d, const char *what, struct pnet_error *e)
{
    if (!what) return PNET_OK;
    return pnet_error_set(e, PNET_NO_DEVICE, "GPU %d: %s", d.index, what);
}

enum pnet_status pnet_device_enter(struct pnet_device d, struct pnet_error *e)
{
    return GPU(d) ? told(d, CUDA(pnet_cuda_use(d.index)), e) : PNET_OK;
}

void pnet_device_note(struct pnet_device d, const char *where)
{
    (void)where;
    if (GPU(d)) CUDA_DO(pnet_cuda_note(where));
}

enum pnet_status pnet_device_wait(struct pnet_device d, struct pnet_error *e)
{
    return GPU(d) ? told(d, CUDA(pnet_cuda_sync()), e) : PNET_OK;
}

void *pnet_device_alloc(struct pnet_device d, size_t bytes)
{
    if (GPU(d)) return CUDA(pnet_cuda_alloc(bytes));
    /* C asks for whole multiples of the alignment */
    return bytes > SIZE_MAX - 63 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);
}

void pnet_device_free(struct pnet_device d, void *p)
{
    if (GPU(d))
        CUDA_DO(pnet_cuda_free(p));
    else
        free(p);
}

void pnet_device_put(struct pnet_device d, void *to, const void *from, size_t bytes)
{
    if (!bytes) return;
    if (GPU(d))
        CUDA_DO(pnet_cuda_copy_in(to, from, bytes));
    else
        memcpy(to, from, bytes);
}

void pnet_device_get(struct pnet_device d, void *to, const void *from, size_t bytes)
{
    if (!bytes) return;
    if (GPU(d))
        CUDA_DO(pnet_cuda_copy_out(to, from, bytes));
    else
        memcpy(to, from, bytes);
}

void pnet_device_fill(struct pnet_device d, void *to, int byte, size_t bytes)
{
    if (!bytes) return;
    if (GPU(d))
        CUDA_DO(pnet_cuda_fill_bytes(to, byte, bytes));
    else
        memset(to, byte, bytes);
}

void pnet_device_copy(struct pnet_device d, void *to, const void *from, size_t bytes)
{
    if (!bytes) return;
    if (GPU(d))
        CUDA_DO(pnet_cuda_copy(to, from, bytes));
    else
        memcpy(to, from, bytes);
}

enum pnet_status pnet_device_stage_new(struct pnet_device d, void **stage, struct pnet_error *e)
{
    *stage = GPU(d) ? CUDA(pnet_cuda_stage_new()) : NULL;
    if (!GPU(d) || *stage) return PNET_OK;
    return pnet_error_set(e, PNET_NO_MEMORY, "out of pinned memory for copies to the GPU");
}

void pnet_device_stage_free(struct pnet_device d, void *stage)
{
    (void)stage;
    if (GPU(d)) CUDA_DO(pnet_cuda_stage_free(stage));
}

void pnet_device_stage_in(
    struct pnet_device d, void *stage, void *to, const void *from, size_t bytes)
{
    (void)stage;
    if (GPU(d))
        CUDA_DO(pnet_cuda_stage_in(stage, to, from, bytes));
    else if (bytes)
        memcpy(to, from, bytes);
}

void pnet_device_record_begin(struct pnet_device d)
{
    if (GPU(d)) CUDA_DO(pnet_cuda_record_begin());
}

void *pnet_device_record_end(struct pnet_device d)
{
    return GPU(d) ? CUDA(pnet_cuda_record_end()) : NULL;
}

void pnet_device_replay(struct pnet_device d, void *record)
{
    (void)record;
    if (GPU(d)) CUDA_DO(pnet_cuda_replay(record));
}

void pnet_device_record_free(struct pnet_device d, void *record)
{
    (void)record;
    if (GPU(d)) CUDA_DO(pnet_cuda_record_free(record));
}

void pnet_device_fork(enum pnet_device_kind d)
{
    if (d == PNET_CUDA) CUDA_DO(pnet_cuda_fork());
}

void pnet_device_branch(enum pnet_device_kind d)
{
    if (d == PNET_CUDA) CUDA_DO(pnet_cuda_branch());
}

void pnet_device_join(enum pnet_device_kind d)
{
    if (d == PNET_CUDA) CUDA_DO(pnet_cuda_join());
}

int pnet_device_point(struct pnet_device d)
{
#ifdef PNET_CUDA_BUILT
    if (GPU(d)) return pnet_cuda_point();
#endif
    (void)d;
    return -1;
}

void pnet_device_wait_for(struct pnet_device d, const int *points, int count)
{
    (void)points;
    (void)count;
    if (GPU(d)) CUDA_DO(pnet_cuda_wait_for(points, count));
}

void pnet_device_yield_begin(struct pnet_device d)
{
    if (GPU(d)) CUDA_DO(pnet_cuda_yield_begin());
}

void pnet_device_yield_end(struct pnet_device d)
{
    if (GPU(d)) CUDA_DO(pnet_cuda_yield_end());
}

bool pnet_device_branches(struct pnet_device d, int branch[2])
{
#ifdef PNET_CUDA_BUILT
    if (GPU(d)) return pnet_cuda_branches(branch);
#endif
    (void)d;
    branch[0] = branch[1] = -1;
    return false;
}
