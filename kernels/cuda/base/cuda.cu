#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/launch.cuh"
extern "C" {
#include "kernels/rows.h"
}

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

/* The first error of a thread. cudaPeekAtLastError keeps the error of a launch until it is cleared; calls that return their own
   failure clear it. After an error that leaves the context unusable every call fails. */
struct first_error {
    cudaError_t code;
    char text[512];
};

static thread_local first_error first = {cudaSuccess, {}};

static void keep(cudaError_t code, const char *where)
{
    if (code == cudaSuccess || first.code != cudaSuccess) return;
    first.code = code;
    snprintf(first.text, sizeof first.text, "%s%s%s", cudaGetErrorString(code),
        where ? ", in " : "", where ? where : "");
}

/* Call this before a CUDA function whose failure its own result reports: it keeps the error that came before. */
static void keep_earlier()
{
    keep(cudaPeekAtLastError(), nullptr);
}

static const char *text_of(cudaError_t code)
{
    return code == cudaSuccess ? nullptr : cudaGetErrorString(code);
}

extern "C" void pnet_cuda_note(const char *where)
{
    keep(cudaPeekAtLastError(), where);
}

extern "C" const char *pnet_cuda_error(void)
{
    keep_earlier();
    return first.code == cudaSuccess ? nullptr : first.text;
}

extern "C" const char *pnet_cuda_sync(void)
{
    keep_earlier();
    keep(cudaStreamSynchronize(pnet_cuda_stream()), nullptr);
    return pnet_cuda_error();
}

extern "C" int pnet_cuda_devices(const char **why)
{
    int count = 0;
    keep_earlier();
    cudaError_t code = cudaGetDeviceCount(&count);
    *why = text_of(code);
    if (code != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    if (!count) *why = "no CUDA-capable device is detected";
    return count;
}

extern "C" int pnet_cuda_architecture(int device)
{
    int major = 0, minor = 0;
    keep_earlier();
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess)
        return 10 * major + minor;
    cudaGetLastError(); /* told by 0 */
    return 0;
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
    keep_earlier();
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
    keep_earlier();
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
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, pnet_cuda_stream());
}

extern "C" void pnet_cuda_copy(void *to, const void *from, size_t bytes)
{
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, pnet_cuda_stream());
}

extern "C" void pnet_cuda_copy_out(void *to, const void *from, size_t bytes)
{
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, pnet_cuda_stream());
    cudaStreamSynchronize(pnet_cuda_stream());
}

extern "C" void pnet_cuda_fill_bytes(void *to, int byte, size_t bytes)
{
    cudaMemsetAsync(to, byte, bytes, pnet_cuda_stream());
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
    keep_earlier();
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
            (char *)to + at, s->pinned[which], n, cudaMemcpyHostToDevice, pnet_cuda_stream());
        cudaEventRecord(s->sent[which], pnet_cuda_stream());
    }
}

/* The nodes of a recording that the next launch waits for. */
struct stream_ends {
    cudaGraphNode_t *node;
    size_t count;
};

/* Nodes of a recording, by number. */
struct node_range {
    size_t begin, end;
};

/* Of the recording that the thread makes: the points asked for, the two branches of the last fork, the last launch that
   wants all of the GPU, and what gives way to the rest. */
struct recording {
    stream_ends *point;
    int count, room;
    int forked, branch[2], alone;
    node_range *yields;
    int yield_count, yield_room;
    bool made; /* by pnet_cuda_record_begin: else it is the caller's, or there is none */
};

static thread_local recording now;

static void forget_points()
{
    for (int i = 0; i < now.count; i++) free(now.point[i].node);
    free(now.point);
    free(now.yields);
    now = {nullptr, 0, 0, -1, {-1, -1}, -1, nullptr, 0, 0, false};
}

/* Returns false where nothing is being recorded. */
static bool recorded_now(cudaGraph_t *graph, const cudaGraphNode_t **node, size_t *count)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
    cudaStreamGetCaptureInfo(pnet_cuda_stream(), &status, nullptr, graph, node, nullptr, count);
#else
    cudaStreamGetCaptureInfo_v2(pnet_cuda_stream(), &status, nullptr, graph, node, count);
#endif
    return status == cudaStreamCaptureStatusActive;
}

static bool ends_now(const cudaGraphNode_t **node, size_t *count)
{
    cudaGraph_t graph;
    return recorded_now(&graph, node, count);
}

static size_t nodes_now()
{
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t *node = nullptr;
    size_t count = 0, nodes = 0;
    if (!recorded_now(&graph, &node, &count)) return 0;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    return nodes;
}

/* Earlier drivers do not record that a kernel comes early. */
static bool records_early()
{
    static const bool known = [] {
        int version = 0;
        return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12030;
    }();
    return known;
}

extern "C" bool pnet_cuda_follows_kernels(void)
{
    const cudaGraphNode_t *node = nullptr;
    size_t count = 0;
    if (!records_early() || !ends_now(&node, &count)) return false;
    bool kernels = count > 0;
    for (size_t i = 0; i < count && kernels; i++) {
        cudaGraphNodeType type;
        kernels =
            cudaGraphNodeGetType(node[i], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;
    }
    return kernels;
}

/* Without memory for it nothing gives way. */
extern "C" void pnet_cuda_yield_begin(void)
{
    if (now.yield_count == now.yield_room) {
        int room = 2 * now.yield_room + 64;
        node_range *more = (node_range *)realloc(now.yields, (size_t)room * sizeof *more);
        if (!more) return;
        now.yields = more;
        now.yield_room = room;
    }
    size_t nodes = nodes_now();
    now.yields[now.yield_count++] = {nodes, nodes};
}

extern "C" void pnet_cuda_yield_end(void)
{
    if (now.yield_count > 0) now.yields[now.yield_count - 1].end = nodes_now();
}

/* Kernels get the priority above the lowest one, but for those that give way. */
static void set_priorities(cudaGraph_t graph)
{
    int lowest = 0, highest = 0, range = 0;
    size_t nodes = 0;
    cudaDeviceGetStreamPriorityRange(&lowest, &highest);
    cudaGraphGetNodes(graph, nullptr, &nodes);
    if (nodes == 0) return; /* the next call takes room for none as an error */
    cudaGraphNode_t *node = (cudaGraphNode_t *)malloc(nodes * sizeof *node + 1);
    if (!node || lowest == highest || cudaGraphGetNodes(graph, node, &nodes) != cudaSuccess)
        nodes = 0;
    for (size_t i = 0; i < nodes; i++) {
        cudaGraphNodeType type;
        cudaKernelNodeAttrValue value = {};
        while (range < now.yield_count && i >= now.yields[range].end) range++;
        bool yields = range < now.yield_count && i >= now.yields[range].begin;
        cudaGraphNodeGetType(node[i], &type);
        if (yields || type != cudaGraphNodeTypeKernel) continue;
        value.priority = lowest - 1;
        cudaGraphKernelNodeSetAttribute(node[i], cudaKernelNodeAttributePriority, &value);
    }
    free(node);
}

/* The default stream cannot be recorded, and a caller may lend it: recordings are made on the thread's own stream. */
static __thread struct pnet_cuda_lent lent_before;

extern "C" void pnet_cuda_record_begin(void)
{
    forget_points();
    now.made = true;
    lent_before = pnet_cuda_lent;
    pnet_cuda_lent.there = false;
    cudaStreamBeginCapture(pnet_cuda_stream(), cudaStreamCaptureModeThreadLocal);
}

extern "C" void *pnet_cuda_record_end(void)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t record = nullptr;
    bool ended = cudaStreamEndCapture(pnet_cuda_stream(), &graph) == cudaSuccess;
    pnet_cuda_lent = lent_before;
    if (ended) set_priorities(graph);
    forget_points();
    if (!ended) return nullptr;
    if (pnet_cuda_error()) { /* a launch that failed is not in the graph */
        cudaGraphDestroy(graph);
        return nullptr;
    }
    if (cudaGraphInstantiate(&record, graph, cudaGraphInstantiateFlagUseNodePriority) !=
        cudaSuccess)
        record = nullptr;
    cudaGraphDestroy(graph);
    return record;
}

extern "C" int pnet_cuda_point(void)
{
    const cudaGraphNode_t *node = nullptr;
    size_t count = 0;
    if (!now.made || !ends_now(&node, &count)) return -1;
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
    cudaStreamUpdateCaptureDependencies(pnet_cuda_stream(), e.node, nullptr, e.count, how);
#else
    cudaStreamUpdateCaptureDependencies(pnet_cuda_stream(), e.node, e.count, how);
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
    if (now.branch[0] < 0) return;
    pnet_cuda_wait_for(&now.forked, 1);
    pnet_cuda_yield_begin();
}

extern "C" void pnet_cuda_join(void)
{
    if (now.branch[0] < 0) return;
    pnet_cuda_yield_end();
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
    if (now.made && now.alone >= 0 && ends_now(&node, &count))
        wait_for(now.alone, cudaStreamAddCaptureDependencies);
}

extern "C" void pnet_cuda_alone_end(void)
{
    now.alone = pnet_cuda_point();
}

extern "C" void pnet_cuda_replay(void *record)
{
    cudaGraphLaunch((cudaGraphExec_t)record, pnet_cuda_stream());
}

extern "C" void pnet_cuda_record_free(void *record)
{
    cudaGraphExecDestroy((cudaGraphExec_t)record);
}
