/* Sessions with arrays on a GPU: the same bits as with arrays on the host, the stream and memory of the caller, refusals. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/library_case.h"

#include <stdatomic.h>
#include <time.h>

static const char net_text[] =
    "pnet 1\n"
    "input cloud {\n"
    "  xyz   : position\n"
    "  rgb   : feature[3]\n"
    "  label : class[4] per point\n"
    "  kind  : class[2] per cloud\n"
    "}\n"
    "net small(p: cloud) {\n"
    "  g = grid(p, 20cm * [1, 2])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(8, kernel=3) -> bn -> relu -> dropout(20%)\n"
    "  b = a -> conv(16, kernel=2, to=g[1]) -> bn -> relu\n"
    "  c = cat(b -> conv(8, kernel=2, to=g[0]), a) -> linear(4)\n"
    "  d = b -> pool(max, to=sample) -> linear(2)\n"
    "  f = c -> upsample(to=level(p)) -> linear(12) -> split(to=points(level(p), 2))\n"
    "  return [c -> upsample(to=level(p)), d, f]\n"
    "}\n"
    "y = small(cloud)\n"
    "loss   ce = cross_entropy(y[0], cloud.label)\n"
    "loss   of = cross_entropy(y[1], cloud.kind)\n"
    "metric oa = accuracy(y[0], cloud.label)\n";
/* No grid: points are ordered along cells of the largest coordinate. */
static const char flat_text[] = "pnet 1\n"
                                "input cloud {\n"
                                "  xyz   : position\n"
                                "  rgb   : feature[3]\n"
                                "}\n"
                                "net flat(p: cloud) {\n"
                                "  h = cat(p.xyz, p.rgb) -> linear(16) -> relu\n"
                                "  return h -> pool(max, to=sample) -> linear(5)\n"
                                "}\n"
                                "y = flat(cloud)\n";

enum { OUTPUTS = 4 };
static const char *const names[OUTPUTS] = {"y[0]", "y[1]", "small.b", "small.f"};

static struct api_cloud cloud;
static int64_t labels[API_ROWS], kinds[] = {1, 0};

/* What a run gives, on the host. */
enum { MOST = 1 << 16 };
struct given {
    float *numbers;
    size_t count;
};

static void keep(struct given *g, const float *from, size_t count)
{
    g->numbers = realloc(g->numbers, (g->count + count) * sizeof *g->numbers);
    if (!g->numbers) exit(1);
    memcpy(g->numbers + g->count, from, count * sizeof *from);
    g->count += count;
}

static void check_same(const struct given *a, const struct given *b, const char *what)
{
    size_t differ = 0;
    for (size_t i = 0; i < a->count && i < b->count; i++)
        differ += memcmp(&a->numbers[i], &b->numbers[i], sizeof(float)) != 0;
    CHECKF(a->count == b->count && a->count > 0 && differ == 0, "%s: %zu of %zu numbers differ",
        what, differ, a->count);
}

/* A session, and where its arrays lie. */
struct side {
    struct pnet_session *s;
    bool there;
    cudaStream_t stream;
    const void *own[8]; /* copies on the GPU, to be freed */
    int copies;
};

static const void *at(struct side *d, const void *data, size_t bytes)
{
    if (!d->there) return data;
    void *p = NULL;
    GPU_NEED(cudaMalloc(&p, bytes ? bytes : 1));
    GPU_NEED(cudaMemcpyAsync(p, data, bytes, cudaMemcpyHostToDevice, d->stream));
    return d->own[d->copies++] = p;
}

static void drop(struct side *d)
{
    GPU_NEED(cudaStreamSynchronize(d->stream));
    while (d->copies) gpu_free(d->own[--d->copies]);
}

/* Two samples, of `first` and of the other rows. The copies are on the stream alone: bind must come behind them. */
static void bind(struct side *d, int64_t first, int64_t rows)
{
    const int64_t splits[] = {0, first, rows};
    size_t n = (size_t)rows;
    const struct pnet_value v[] = {
        {"cloud", {at(d, splits, sizeof splits), PNET_DTYPE_I64, 3, 1, 0}},
        {"cloud.xyz", {at(d, cloud.xyz, n * 12), PNET_DTYPE_F32, rows, 3, 0}},
        {"cloud.rgb", {at(d, cloud.rgb, n * 12), PNET_DTYPE_F32, rows, 3, 0}},
        {"cloud.label", {at(d, labels, n * 8), PNET_DTYPE_I64, rows, 1, 0}},
        {"cloud.kind", {at(d, kinds, sizeof kinds), PNET_DTYPE_I64, 2, 1, 0}}};
    NEED(pnet_session_bind(d->s, v, 5, &e));
    drop(d); /* nothing keeps a pointer to them */
}

/* Room for numbers that a call fills, and what came: only the stream is waited for. */
static float *room(const struct side *d, size_t count)
{
    if (!d->there) return sets_room(count, sizeof(float));
    float *x = gpu_room(count * sizeof(float));
    GPU_NEED(cudaDeviceSynchronize()); /* it is filled on another stream */
    return x;
}

static void take(const struct side *d, float *from, size_t count, struct given *to)
{
    float *x = from;
    if (d->there) {
        x = sets_room(count, sizeof *x);
        GPU_NEED(cudaMemcpyAsync(x, from, count * sizeof *x, cudaMemcpyDeviceToHost, d->stream));
        GPU_NEED(cudaStreamSynchronize(d->stream));
        gpu_free(from);
    }
    keep(to, x, count);
    free(x);
}

static void read_outputs(const struct side *d, struct given *to)
{
    for (int i = 0; i < OUTPUTS; i++) {
        int64_t rows, width;
        NEED(pnet_session_output_shape(d->s, names[i], &rows, &width, &e));
        float *x = room(d, (size_t)(rows * width));
        NEED(pnet_session_output(d->s, names[i], x, rows * width, &e));
        take(d, x, (size_t)(rows * width), to);
    }
}

static void read_weights(const struct side *d, const struct pnet_model *m, struct given *to)
{
    for (size_t i = 0; i < pnet_model_weights(m); i++) {
        struct pnet_weight_info w = {.size = sizeof w};
        NEED(pnet_model_weight(m, i, &w, &e));
        float *x = room(d, (size_t)w.count);
        NEED(pnet_session_get_weight(d->s, w.name, x, w.count, &e));
        take(d, x, (size_t)w.count, to);
        if (!w.trained) continue;
        x = room(d, (size_t)w.count);
        NEED(pnet_session_get_gradient(d->s, w.name, x, w.count, &e));
        take(d, x, (size_t)w.count, to);
    }
}

/* Backward from gradients of the outputs that no loss has: numbers of their places. */
static void go_back(struct side *d, int64_t rows, int round, struct given *to)
{
    struct pnet_value g[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++) {
        int64_t n, width;
        NEED(pnet_session_output_shape(d->s, names[i], &n, &width, &e));
        float *x = sets_room((size_t)(n * width), sizeof *x);
        for (int64_t k = 0; k < n * width; k++) x[k] = (float)((k * 7 + round) % 13 - 6) / 64;
        g[i] = (struct pnet_value){
            names[i], {at(d, x, (size_t)(n * width) * 4), PNET_DTYPE_F32, n, width, 0}};
        if (d->there) {
            GPU_NEED(cudaStreamSynchronize(d->stream));
            free(x);
        }
    }
    NEED(pnet_session_backward(d->s, g, OUTPUTS, round % 4 ? 0.5F : 0, round == 4, &e));
    for (int i = 0; i < OUTPUTS && !d->there; i++) free((void *)(uintptr_t)g[i].array.data);
    drop(d);
    float *x = room(d, (size_t)rows * 3);
    NEED(pnet_session_input_gradient(d->s, "cloud.rgb", x, rows * 3, &e));
    take(d, x, (size_t)rows * 3, to);
}

static struct pnet_model *compile(const char *text, enum pnet_purpose purpose)
{
    bool train = purpose == PNET_PURPOSE_TRAIN;
    struct pnet_model_options o = {.size = sizeof o,
        .purpose = purpose,
        .outputs = names,
        .output_count = train ? OUTPUTS : 0,
        .input_gradients = train};
    struct pnet_model *m = NULL;
    NEED(pnet_model_compile("gpu.pnet", text, strlen(text), &o, &m, &e));
    return m;
}

/* Trains for some batches: sizes come again, so that schedules are recorded and replayed. */
static void train(const struct pnet_model *m, const char *precision, bool there,
    const struct pnet_allocator *allocator, cudaStream_t stream, struct given *to)
{
    struct pnet_optimizer adam = {.size = sizeof adam};
    struct pnet_step_options step = {.size = sizeof step, .learning_rate = 0.01};
    NEED(pnet_optimizer_default(PNET_OPTIMIZER_ADAM, &adam, &e));
    struct pnet_session_options o = {.size = sizeof o,
        .device = "cuda",
        .precision = precision,
        .seed = 7,
        .optimizer = &adam,
        .arrays = there ? PNET_ARRAYS_DEVICE : PNET_ARRAYS_HOST,
        .stream = stream,
        .allocator = allocator};
    struct side d = {.there = there, .stream = stream};
    NEED(pnet_session_new(m, &o, &d.s, &e));
    NEED(pnet_session_init(d.s, &e));
    for (int round = 0; round < 9; round++) {
        double loss;
        int64_t rows = round % 3 == 2 ? 500 : API_ROWS;
        bind(&d, 100 + round, rows);
        if (round % 2) {
            NEED(pnet_session_gradients(d.s, 1, 0, &e));
        } else {
            NEED(pnet_session_forward_training(d.s, &e));
            go_back(&d, rows, round, to);
        }
        read_outputs(&d, to);
        NEED(pnet_session_objective(d.s, "ce", &loss, &e));
        keep(to, &(float){(float)loss}, 1);
        NEED(pnet_session_step(d.s, &step, NULL, &e));
        NEED(pnet_session_forward(d.s, &e));
        NEED(pnet_session_objective(d.s, "oa", &loss, &e));
        keep(to, &(float){(float)loss}, 1);
        read_outputs(&d, to);
    }
    read_weights(&d, m, to);
    pnet_session_free(d.s);
}

/* The same bits, with the caller's stream and memory, and without. */
static void test_training(const char *precision)
{
    struct pnet_model *m = compile(net_text, PNET_PURPOSE_TRAIN);
    struct given host = {0}, there = {0}, plain = {0};
    struct gpu_counts counts = {0};
    struct pnet_allocator pool = {sizeof pool, &counts, gpu_take, gpu_give};
    cudaStream_t stream;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    counts.stream = stream;
    train(m, precision, false, NULL, NULL, &host);
    train(m, precision, true, &pool, stream, &there);
    check_same(&host, &there, precision);
    CHECKF(counts.taken > 10 && counts.taken == counts.given && counts.bytes == 0 && !counts.wrong,
        "%ld taken, %ld given, %zu bytes are left, %ld with another stream", counts.taken,
        counts.given, counts.bytes, counts.wrong);
    train(m, precision, true, NULL, NULL, &plain); /* the default stream, memory of the device */
    check_same(&host, &plain, precision);
    free(plain.numbers);
    plain = (struct given){0};
    train(m, precision, false, &pool, stream, &plain); /* arrays on the host, on the stream */
    check_same(&host, &plain, precision);
    CHECK(counts.taken == counts.given && counts.bytes == 0 && !counts.wrong);
    GPU_NEED(cudaStreamDestroy(stream));
    free(host.numbers);
    free(there.numbers);
    free(plain.numbers);
    pnet_model_free(m);
}

/* Results, with and without grids. What the session counts is what the allocator gave. */
static void test_inference(const char *text)
{
    struct pnet_model *m = compile(text, PNET_PURPOSE_INFER);
    struct given g[2] = {{0}, {0}};
    struct gpu_counts counts = {0};
    struct pnet_allocator pool = {sizeof pool, &counts, gpu_take, gpu_give};
    for (int there = 0; there < 2; there++) {
        struct pnet_session_options o = {.size = sizeof o,
            .device = "cuda",
            .arrays = there ? PNET_ARRAYS_DEVICE : PNET_ARRAYS_HOST,
            .allocator = there ? &pool : NULL};
        struct side d = {.there = there};
        struct pnet_memory_info i = {.size = sizeof i};
        NEED(pnet_session_new(m, &o, &d.s, &e));
        NEED(pnet_session_init(d.s, &e));
        for (int round = 0; round < 5; round++) {
            int64_t rows, width;
            const struct pnet_value v[] = {{"cloud.xyz", {at(&d, cloud.xyz, sizeof cloud.xyz),
                                                             PNET_DTYPE_F32, API_ROWS, 3, 0}},
                {"cloud.rgb",
                    {at(&d, cloud.rgb, sizeof cloud.rgb), PNET_DTYPE_F32, API_ROWS, 3, 0}}};
            NEED(pnet_session_bind(d.s, v, 2, &e));
            drop(&d);
            NEED(pnet_session_forward(d.s, &e));
            NEED(pnet_session_result_shape(d.s, &rows, &width, &e));
            float *x = room(&d, (size_t)(rows * width));
            NEED(pnet_session_result(d.s, x, rows * width, &e));
            take(&d, x, (size_t)(rows * width), &g[there]);
            NEED(pnet_session_memory(d.s, &i, &e));
            if (there)
                CHECKF(i.used == counts.bytes, "%zu, the caller gave %zu", i.used, counts.bytes);
            CHECKF(i.peak <= i.planned, "%zu planned, %zu taken", i.planned, i.peak);
        }
        pnet_session_free(d.s);
    }
    check_same(&g[0], &g[1], "results");
    CHECK(counts.taken == counts.given && counts.bytes == 0 && !counts.wrong);
    free(g[0].numbers);
    free(g[1].numbers);
    pnet_model_free(m);
}

/* Holds a stream up until the flag is set, or for five seconds. */
static _Atomic int go, late;
static void CUDART_CB hold(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5000 && !go; i++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    late = !go;
}

/* Calls return while the stream is held up; what was put there before is seen, what is put there afterwards sees them. */
static void test_order(void)
{
    struct pnet_model *m = compile(net_text, PNET_PURPOSE_TRAIN);
    struct pnet_session_options o = {
        .size = sizeof o, .device = "cuda", .seed = 7, .arrays = PNET_ARRAYS_DEVICE};
    enum { ROWS = API_ROWS, WIDTH = 4, COUNT = ROWS * WIDTH };
    static float real[COUNT], want[2][MOST], got[2][MOST];
    struct pnet_weight_info w = {.size = sizeof w};
    struct side d = {.there = true};
    GPU_NEED(cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking));
    o.stream = d.stream;
    NEED(pnet_model_weight(m, 0, &w, &e));
    _Static_assert((int)COUNT <= (int)MOST, "there is room for an output");
    CHECK(w.count <= MOST);
    float *to_y = gpu_room(sizeof real), *y = gpu_room(sizeof real), *g = gpu_room(sizeof want[0]),
          *staged;
    for (int i = 0; i < COUNT; i++) real[i] = (float)(i % 9 - 4) / 16;
    staged = gpu_copy(real, sizeof real);
    GPU_NEED(cudaDeviceSynchronize());
    for (int held = 0; held < 2; held++) {
        struct pnet_value of_y = {"y[0]", {to_y, PNET_DTYPE_F32, ROWS, WIDTH, 0}};
        size_t bytes = (size_t)w.count * sizeof(float);
        NEED(pnet_session_new(m, &o, &d.s, &e));
        NEED(pnet_session_init(d.s, &e));
        /* the same batch some times: memory does not grow any more, and both passes are recorded */
        for (int round = 0; round < 5; round++) {
            bool last = held && round == 4;
            bind(&d, 300, ROWS);
            go = !last;
            GPU_NEED(cudaMemsetAsync(to_y, 0xff, sizeof real, d.stream)); /* NaN */
            GPU_NEED(cudaLaunchHostFunc(d.stream, hold, NULL));
            NEED(pnet_session_forward_training(d.s, &e));
            NEED(pnet_session_output(d.s, "y[0]", y, COUNT, &e));
            GPU_NEED(
                cudaMemcpyAsync(to_y, staged, sizeof real, cudaMemcpyDeviceToDevice, d.stream));
            NEED(pnet_session_backward(d.s, &of_y, 1, 0, 0, &e));
            NEED(pnet_session_get_gradient(d.s, w.name, g, w.count, &e));
            if (last) CHECK(cudaStreamQuery(d.stream) == cudaErrorNotReady);
            go = 1;
            float(*to)[MOST] = held ? got : want;
            GPU_NEED(cudaMemcpyAsync(to[0], y, sizeof real, cudaMemcpyDeviceToHost, d.stream));
            GPU_NEED(cudaMemcpyAsync(to[1], g, bytes, cudaMemcpyDeviceToHost, d.stream));
            GPU_NEED(cudaStreamSynchronize(d.stream));
            CHECKF(!late, "round %d waits for the stream", round);
        }
        pnet_session_free(d.s);
    }
    CHECK(memcmp(want, got, sizeof want) == 0 && want[1][0] == want[1][0] && want[0][0] != 0);
    const void *all[] = {to_y, y, g, staged};
    for (int i = 0; i < 4; i++) gpu_free(all[i]);
    GPU_NEED(cudaStreamDestroy(d.stream));
    pnet_model_free(m);
}

/* The same messages as for arrays on the host, and those of arrays in the wrong place. */
static void test_refused(void)
{
    struct pnet_model *m = compile(net_text, PNET_PURPOSE_TRAIN);
    struct pnet_session_options o = {
        .size = sizeof o, .device = "cuda", .arrays = PNET_ARRAYS_DEVICE};
    struct side d = {.there = true};
    float x[4];
    NEED(pnet_session_new(m, &o, &d.s, &e));
    NEED(pnet_session_init(d.s, &e));
    const float *xyz = at(&d, cloud.xyz, sizeof cloud.xyz),
                *rgb = at(&d, cloud.rgb, sizeof cloud.rgb);
    int64_t wrong[API_ROWS] = {0}, steps[] = {0, 400, 300, API_ROWS};
    wrong[17] = INT64_C(1) << 40;
    wrong[18] = 4;
    const int64_t *label = at(&d, wrong, sizeof wrong), *kind = at(&d, kinds, sizeof kinds),
                  *splits = at(&d, steps, sizeof steps);
    struct pnet_value v[] = {{"cloud", {splits, PNET_DTYPE_I64, 4, 1, 0}},
        {"cloud.xyz", {xyz, PNET_DTYPE_F32, API_ROWS, 3, 0}},
        {"cloud.rgb", {rgb, PNET_DTYPE_F32, API_ROWS, 3, 0}},
        {"cloud.label", {label, PNET_DTYPE_I64, API_ROWS, 1, 0}},
        {"cloud.kind", {kind, PNET_DTYPE_I64, 1, 1, 0}}};
    REFUSED(
        pnet_session_bind(d.s, v, 5, &e), PNET_BAD_DATA, "cloud: row 2: row splits begin with 0");
    REFUSED(pnet_session_bind(d.s, v + 1, 4, &e), PNET_BAD_DATA,
        "cloud.label: row 17: the label 1099511627776 is none of 0 .. 3, or -1");
    v[1].array = (struct pnet_array){xyz, PNET_DTYPE_F32, API_ROWS / 2, 3, 6};
    REFUSED(pnet_session_bind(d.s, v + 1, 4, &e), PNET_USAGE, "arrays on a GPU are contiguous");
    v[1].array = (struct pnet_array){cloud.xyz, PNET_DTYPE_F32, API_ROWS, 3, 0};
    REFUSED(pnet_session_bind(d.s, v + 1, 4, &e), PNET_USAGE,
        "cloud.xyz: `data` is no memory of GPU 0");
    drop(&d);
    bind(&d, 300, API_ROWS);
    NEED(pnet_session_forward_training(d.s, &e));
    struct pnet_value g = {"y[1]", {x, PNET_DTYPE_F32, 2, 2, 0}};
    REFUSED(pnet_session_backward(d.s, &g, 1, 0, 0, &e), PNET_USAGE, "is no memory of GPU 0");
    REFUSED(pnet_session_output(d.s, "y[1]", x, 4, &e), PNET_USAGE, "is no memory of GPU 0");
    NEED(pnet_session_backward(d.s, NULL, 0, 1, 0, &e));
    pnet_session_free(d.s);
    /* a stream that records */
    cudaGraph_t graph;
    GPU_NEED(cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking));
    o.stream = d.stream;
    NEED(pnet_session_new(m, &o, &d.s, &e));
    GPU_NEED(cudaStreamBeginCapture(d.stream, cudaStreamCaptureModeThreadLocal));
    REFUSED(pnet_session_init(d.s, &e), PNET_USAGE, "it records a CUDA graph");
    GPU_NEED(cudaStreamEndCapture(d.stream, &graph));
    GPU_NEED(cudaGraphDestroy(graph));
    NEED(pnet_session_init(d.s, &e));
    if (!getenv("PNET_SHORT")) { /* tools that watch each call would report this one */
        CHECK(cudaSetDevice(1000) != cudaSuccess); /* an error that the program leaves behind */
        REFUSED(pnet_session_forward(d.s, &e), PNET_USAGE, "no batch");
        REFUSED(
            pnet_session_init(d.s, &e), PNET_NO_DEVICE, "an earlier call of the program failed");
        CHECK(cudaGetLastError() != cudaSuccess);
    }
    pnet_session_free(d.s);
    GPU_NEED(cudaStreamDestroy(d.stream));
    pnet_model_free(m);
}

/* An allocator may run out, or give what is not aligned. */
static void *take_odd(void *context, size_t bytes, void *stream)
{
    char *p = gpu_take(context, bytes + 256, stream);
    return p ? p + 64 : NULL;
}
static void give_odd(void *context, void *memory, size_t bytes, void *stream)
{
    gpu_give(context, (char *)memory - 64, bytes + 256, stream);
}
static void *take_none(void *context, size_t bytes, void *stream)
{
    (void)context;
    (void)bytes;
    (void)stream;
    return NULL;
}

static void test_allocators(void)
{
    struct pnet_model *m = compile(net_text, PNET_PURPOSE_INFER);
    struct gpu_counts counts = {0};
    struct pnet_allocator odd = {sizeof odd, &counts, take_odd, give_odd},
                          none = {sizeof none, &counts, take_none, give_odd};
    struct pnet_session_options o = {
        .size = sizeof o, .device = "cuda", .arrays = PNET_ARRAYS_DEVICE, .allocator = &odd};
    struct pnet_session *s = NULL;
    REFUSED(pnet_session_new(m, &o, &s, &e), PNET_USAGE, "not aligned to 256 bytes");
    CHECK(!s && counts.taken == counts.given && counts.bytes == 0);
    o.allocator = &none;
    REFUSED(pnet_session_new(m, &o, &s, &e), PNET_NO_MEMORY, "no room for");
    pnet_model_free(m);
}

int main(void)
{
    if (!gpu_there()) return 77;
    api_fill(&cloud, 3);
    for (int i = 0; i < API_ROWS; i++) labels[i] = i % 50 ? cloud.label[i] : -1;
    test_inference(net_text);
    test_inference(flat_text);
    test_training("fp32");
    test_training("bf16");
    test_training("fp16");
    test_order();
    test_refused();
    test_allocators();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
