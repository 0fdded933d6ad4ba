#include "kernels/cuda/cuda.h"
extern "C" {
#include "kernels/cpu/gather.h"
}

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

/* cudaPeekAtLastError keeps what a launch reported until it is asked for; a failure that leaves the context unusable
   comes back from every call. */
static const char *text_of(cudaError_t code)
{
    return code == cudaSuccess ? nullptr : cudaGetErrorString(code);
}

extern "C" const char *pnet_cuda_error(void)
{
    return text_of(cudaPeekAtLastError());
}

extern "C" const char *pnet_cuda_sync(void)
{
    const char *launch = pnet_cuda_error();
    const char *run = text_of(cudaStreamSynchronize(cudaStreamPerThread));
    return launch ? launch : run;
}

extern "C" int pnet_cuda_devices(const char **why)
{
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    *why = text_of(code);
    if (code != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    if (!count) *why = "no CUDA-capable device is detected";
    return count;
}

extern "C" const char *pnet_cuda_use(int device)
{
    return text_of(cudaSetDevice(device));
}

extern "C" const char *pnet_cuda_describe(int device, struct pnet_cuda_info *info)
{
    cudaDeviceProp p;
    int driver = 0;
    cudaError_t code = cudaGetDeviceProperties(&p, device);
    if (code == cudaSuccess) code = cudaDriverGetVersion(&driver);
    if (code == cudaSuccess) code = cudaMemGetInfo(&info->free_memory, &info->memory);
    if (code != cudaSuccess) return text_of(code);
    snprintf(info->name, sizeof info->name, "%s", p.name);
    snprintf(info->driver, sizeof info->driver, "%d.%d", driver / 1000, driver % 1000 / 10);
    info->major = p.major;
    info->minor = p.minor;
    info->processors = p.multiProcessorCount;
    return nullptr;
}

extern "C" void *pnet_cuda_alloc(size_t bytes)
{
    void *p = nullptr;
    if (cudaMalloc(&p, bytes) == cudaSuccess) return p;
    cudaGetLastError(); /* told by NULL */
    return nullptr;
}

extern "C" void pnet_cuda_free(void *p)
{
    cudaFree(p);
}

extern "C" void *pnet_cuda_alloc_host(size_t bytes)
{
    void *p = nullptr;
    if (cudaMallocHost(&p, bytes) == cudaSuccess) return p;
    cudaGetLastError();
    return nullptr;
}

extern "C" void pnet_cuda_free_host(void *p)
{
    cudaFreeHost(p);
}

extern "C" void pnet_cuda_copy_in(void *to, const void *from, size_t bytes)
{
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cudaStreamPerThread);
}

extern "C" void pnet_cuda_copy(void *to, const void *from, size_t bytes)
{
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cudaStreamPerThread);
}

extern "C" void pnet_cuda_copy_out(void *to, const void *from, size_t bytes)
{
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);
}

extern "C" void pnet_cuda_fill_bytes(void *to, int byte, size_t bytes)
{
    cudaMemsetAsync(to, byte, bytes, cudaStreamPerThread);
}

static const size_t STAGE_BYTES = 8 << 20;

struct pnet_cuda_stage {
    char *pinned[2];
    cudaEvent_t sent[2]; /* the copy out of that buffer is over */
};

extern "C" struct pnet_cuda_stage *pnet_cuda_stage_new(void)
{
    pnet_cuda_stage *s = (pnet_cuda_stage *)calloc(1, sizeof *s);
    bool ok = s != nullptr;
    for (int i = 0; i < 2 && ok; i++)
        ok = cudaMallocHost(&s->pinned[i], STAGE_BYTES) == cudaSuccess &&
             cudaEventCreateWithFlags(&s->sent[i], cudaEventDisableTiming) == cudaSuccess;
    if (ok) return s;
    cudaGetLastError(); /* told by NULL */
    pnet_cuda_stage_free(s);
    return nullptr;
}

extern "C" void pnet_cuda_stage_free(struct pnet_cuda_stage *s)
{
    if (!s) return;
    for (int i = 0; i < 2; i++) {
        if (s->sent[i]) cudaEventDestroy(s->sent[i]);
        if (s->pinned[i]) cudaFreeHost(s->pinned[i]);
    }
    free(s);
}

extern "C" void pnet_cuda_stage_in(
    struct pnet_cuda_stage *s, void *to, const void *from, size_t bytes)
{
    int which = 0;
    for (size_t at = 0; at < bytes; at += STAGE_BYTES, which ^= 1) {
        size_t n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        cudaEventSynchronize(s->sent[which]);
        pnet_cpu_copy(s->pinned[which], (const char *)from + at, n);
        cudaMemcpyAsync(
            (char *)to + at, s->pinned[which], n, cudaMemcpyHostToDevice, cudaStreamPerThread);
        cudaEventRecord(s->sent[which], cudaStreamPerThread);
    }
}

/* The nodes of a recording that what is launched next waits for. */
struct stream_ends {
    cudaGraphNode_t *node;
    size_t count;
};

/* Of the recording that the thread makes: the points asked for, the two branches of the last fork, and the last launch
   that wants all of the GPU. */
struct recording {
    stream_ends *point;
    int count, room;
    int forked, branch[2], alone;
};

static thread_local recording now;

static void forget_points()
{
    for (int i = 0; i < now.count; i++) free(now.point[i].node);
    free(now.point);
    now = {nullptr, 0, 0, -1, {-1, -1}, -1};
}

/* Returns false where nothing is being recorded. */
static bool ends_now(const cudaGraphNode_t **node, size_t *count)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
    cudaStreamGetCaptureInfo(cudaStreamPerThread, &status, nullptr, nullptr, node, nullptr, count);
#else
    cudaStreamGetCaptureInfo_v2(cudaStreamPerThread, &status, nullptr, nullptr, node, count);
#endif
    return status == cudaStreamCaptureStatusActive;
}

extern "C" void pnet_cuda_record_begin(void)
{
    forget_points();
    cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal);
}

extern "C" void *pnet_cuda_record_end(void)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t record = nullptr;
    forget_points();
    if (cudaStreamEndCapture(cudaStreamPerThread, &graph) != cudaSuccess) return nullptr;
    if (cudaGraphInstantiate(&record, graph, 0) != cudaSuccess) record = nullptr;
    cudaGraphDestroy(graph);
    return record;
}

extern "C" int pnet_cuda_point(void)
{
    const cudaGraphNode_t *node = nullptr;
    size_t count = 0;
    if (!ends_now(&node, &count)) return -1;
    if (now.count == now.room) {
        int room = 2 * now.room + 64;
        stream_ends *point = (stream_ends *)realloc(now.point, (size_t)room * sizeof *point);
        if (!point) return -1;
        now.point = point;
        now.room = room;
    }
    stream_ends e = {(cudaGraphNode_t *)malloc(count * sizeof *e.node + 1), count};
    if (!e.node) return -1;
    if (count) memcpy(e.node, node, count * sizeof *e.node);
    now.point[now.count] = e;
    return now.count++;
}

static void wait_for(int point, unsigned how)
{
    const stream_ends &e = now.point[point];
#if CUDART_VERSION >= 13000
    cudaStreamUpdateCaptureDependencies(cudaStreamPerThread, e.node, nullptr, e.count, how);
#else
    cudaStreamUpdateCaptureDependencies(cudaStreamPerThread, e.node, e.count, how);
#endif
}

extern "C" void pnet_cuda_wait_for(const int *points, int count)
{
    for (int i = 0; i < count; i++)
        wait_for(points[i],
            i == 0 ? cudaStreamSetCaptureDependencies : cudaStreamAddCaptureDependencies);
}

extern "C" void pnet_cuda_fork(void)
{
    now.forked = pnet_cuda_point();
    now.branch[0] = now.branch[1] = -1;
}

/* Where it is not known where the first branch began, the second one waits for it. */
extern "C" void pnet_cuda_branch(void)
{
    if (now.forked < 0) return;
    now.branch[0] = pnet_cuda_point();
    if (now.branch[0] >= 0) pnet_cuda_wait_for(&now.forked, 1);
}

extern "C" void pnet_cuda_join(void)
{
    if (now.branch[0] < 0) return;
    now.branch[1] = pnet_cuda_point();
    wait_for(now.branch[0], cudaStreamAddCaptureDependencies);
}

extern "C" bool pnet_cuda_branches(int branch[2])
{
    bool both = now.branch[0] >= 0 && now.branch[1] >= 0;
    for (int i = 0; i < 2; i++) branch[i] = now.branch[i], now.branch[i] = -1;
    return both;
}

extern "C" void pnet_cuda_alone_begin(void)
{
    const cudaGraphNode_t *node = nullptr;
    size_t count = 0;
    if (now.alone >= 0 && ends_now(&node, &count))
        wait_for(now.alone, cudaStreamAddCaptureDependencies);
}

extern "C" void pnet_cuda_alone_end(void)
{
    now.alone = pnet_cuda_point();
}

extern "C" void pnet_cuda_replay(void *record)
{
    cudaGraphLaunch((cudaGraphExec_t)record, cudaStreamPerThread);
}

extern "C" void pnet_cuda_record_free(void *record)
{
    cudaGraphExecDestroy((cudaGraphExec_t)record);
}
