/* Sets in the caller's memory on a GPU: their sums are the bits of the sets that they were made of; blocks go from one device to
   the other; an unpacked set works in a recording. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/library_case.h"

/* Blocks on the GPU, in memory that held something else. */
static struct pnet_packed pack(const struct pnet_set *set)
{
    struct pnet_packed p = {.size = sizeof p};
    NEED(pnet_set_packed_sizes(set, &p, &e));
    p.by_out = gpu_room(p.by_out_bytes);
    p.by_in = gpu_room(p.by_in_bytes);
    p.device = "cuda";
    GPU_NEED(cudaDeviceSynchronize()); /* the memory was filled on another stream */
    NEED(pnet_set_pack(set, &p, &e));
    return p;
}

static void drop(const struct pnet_packed *p)
{
    gpu_free(p->by_out);
    gpu_free(p->by_in);
}

static struct pnet_set *unpack(const struct pnet_packed *p)
{
    struct pnet_set *set = NULL;
    NEED(pnet_set_unpack(p, &set, &e));
    return set;
}

/* Copies of blocks in host memory. */
static struct pnet_packed to_host(const struct pnet_packed *p)
{
    struct pnet_packed h = *p;
    h.by_out = sets_room(p->by_out_bytes + 16, 1);
    h.by_in = sets_room(p->by_in_bytes + 16, 1);
    h.device = NULL;
    gpu_get(h.by_out, p->by_out, p->by_out_bytes);
    gpu_get(h.by_in, p->by_in, p->by_in_bytes);
    return h;
}

/* The three sums of a set on the GPU, in float32 or bf16. */
struct sums {
    struct sets_sums s;
    enum pnet_dtype stored;
    void *features, *weights, *gradient, *result, *to_features, *to_weights, *work;
    size_t work_bytes;
};

static struct sums take(
    const struct sets_case *c, const struct pnet_set *set, enum pnet_dtype stored)
{
    struct sums s = {.s = sets_take(c, set), .stored = stored};
    s.features = gpu_put_floats(s.s.features, s.s.feature_count, stored);
    s.gradient = gpu_put_floats(s.s.gradient, s.s.result_count, stored);
    s.weights = gpu_copy(s.s.weights, (size_t)s.s.weight_count * sizeof(float));
    s.result = gpu_room((size_t)s.s.result_count * sizeof(float));
    s.to_features = gpu_room((size_t)s.s.feature_count * sizeof(float));
    s.to_weights = gpu_room((size_t)s.s.weight_count * sizeof(float));
    for (int kind = 0; kind < 3; kind++) {
        size_t bytes = 0;
        NEED(pnet_conv_workspace(
            set, (enum pnet_conv_sum_kind)kind, c->in, c->out, c->groups, &bytes, &e));
        if (bytes > s.work_bytes) s.work_bytes = bytes;
    }
    s.work = gpu_room(s.work_bytes + 1);
    GPU_NEED(cudaDeviceSynchronize());
    return s;
}

static void give(struct sums *s)
{
    const void *d[] = {
        s->features, s->weights, s->gradient, s->result, s->to_features, s->to_weights, s->work};
    for (int i = 0; i < 7; i++) gpu_free(d[i]);
    sets_drop(&s->s);
}

static void run(
    const struct sets_case *c, const struct pnet_set *set, const struct sums *s, void *stream)
{
    struct pnet_set_info i = sets_info(set);
    int64_t taps = (int64_t)i.taps * (c->in / c->groups);
    struct pnet_conv_options o = {.size = sizeof o,
        .groups = c->groups,
        .workspace = s->work,
        .workspace_bytes = s->work_bytes + 1,
        .stream = stream};
    struct pnet_array f = {s->features, s->stored, i.rows_in, c->in, 0},
                      g = {s->gradient, s->stored, i.rows_out, c->out, 0},
                      w = {s->weights, PNET_DTYPE_F32, taps, c->out, 0};
    struct pnet_array_out y = {s->result, s->stored, i.rows_out, c->out, 0},
                          x = {s->to_features, s->stored, i.rows_in, c->in, 0},
                          dw = {s->to_weights, PNET_DTYPE_F32, taps, c->out, 0};
    NEED(pnet_conv_forward(set, &f, &w, &o, &y, &e));
    NEED(pnet_conv_grad_input(set, &g, &w, &o, &x, &e));
    NEED(pnet_conv_grad_weight(set, &f, &g, &o, &dw, &e));
}

/* Results in host memory, behind one another. */
static char *results(const struct sums *s, size_t *bytes)
{
    size_t each = gpu_element(s->stored), y = (size_t)s->s.result_count * each,
           x = (size_t)s->s.feature_count * each, w = (size_t)s->s.weight_count * sizeof(float);
    char *all = sets_room(y + x + w, 1);
    gpu_get(all, s->result, y);
    gpu_get(all + y, s->to_features, x);
    gpu_get(all + y + x, s->to_weights, w);
    *bytes = y + x + w;
    return all;
}

static void same_bits(const struct sets_case *c, const struct pnet_set *one,
    const struct pnet_set *two, enum pnet_dtype stored, const char *what)
{
    struct sums s = take(c, one, stored);
    size_t bytes;
    run(c, one, &s, NULL);
    char *want = results(&s, &bytes);
    GPU_NEED(cudaMemset(s.result, 0xFF, (size_t)s.s.result_count * gpu_element(stored)));
    GPU_NEED(cudaMemset(s.to_features, 0xFF, (size_t)s.s.feature_count * gpu_element(stored)));
    GPU_NEED(cudaMemset(s.to_weights, 0xFF, (size_t)s.s.weight_count * sizeof(float)));
    GPU_NEED(cudaDeviceSynchronize());
    run(c, two, &s, NULL);
    char *got = results(&s, &bytes);
    CHECKF(!memcmp(got, want, bytes), "%s: kind %d, dtype %d: other bits", what, (int)c->o.kind,
        (int)stored);
    free(got);
    free(want);
    give(&s);
}

static struct sets_case layer(enum pnet_set_kind kind)
{
    struct sets_case c = {.o = {.size = sizeof c.o,
                              .kind = kind,
                              .kernel = {3, 3, 3},
                              .stride = {2, 2, 1},
                              .padding = {1, 1, 1},
                              .extent = {32, 30, 20},
                              .batches = 2},
        .axes = 3,
        .in = 32,
        .out = 48,
        .groups = 1};
    return c;
}

static struct pnet_packed turned(const struct pnet_packed *p)
{
    struct pnet_packed t = *p;
    t.rows_in = p->rows_out;
    t.rows_out = p->rows_in;
    t.by_out = p->by_in;
    t.by_in = p->by_out;
    t.by_out_bytes = p->by_in_bytes;
    t.by_in_bytes = p->by_out_bytes;
    return t;
}

/* But for the heads, and for the tiles, blocks of the GPU are those of the CPU: triplets in one order. */
static void check_blocks(
    const struct pnet_set *cpu, struct pnet_packed *own, const struct pnet_packed *of_gpu)
{
    enum { HEAD = 64, END = 16 };
    own->by_out = sets_room(own->by_out_bytes, 1);
    own->by_in = sets_room(own->by_in_bytes, 1);
    NEED(pnet_set_pack(cpu, own, &e));
    CHECK(!memcmp(
        (char *)own->by_out + HEAD, (char *)of_gpu->by_out + HEAD, own->by_out_bytes - HEAD - END));
    CHECK(!memcmp(
        (char *)own->by_in + HEAD, (char *)of_gpu->by_in + HEAD, own->by_in_bytes - HEAD - END));
    free(own->by_out);
    free(own->by_in);
}

/* Sets that have tiles, and the same turned around. Blocks of the GPU are a set on the CPU too. */
static void test_bits(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct sets_case c = layer((enum pnet_set_kind)kind);
        sets_fill(&c, kind ? 3 : 2, -1);
        struct pnet_set *gpu = gpu_make(&c, NULL, NULL), *cpu = sets_make(&c), *back = NULL;
        struct pnet_packed p = pack(gpu), t = turned(&p), host = to_host(&p);
        struct pnet_set *same = unpack(&p), *other = unpack(&t), *here = unpack(&host);
        NEED(pnet_set_inverse(gpu, &back, &e));
        struct pnet_packed without = {.size = sizeof without};
        NEED(pnet_set_packed_sizes(cpu, &without, &e));
        CHECK(without.triplets == p.triplets && without.by_out_bytes <= p.by_out_bytes);
        check_blocks(cpu, &without, &host);
        for (int stored = 0; stored < 2; stored++) {
            enum pnet_dtype dtype = stored ? PNET_DTYPE_BF16 : PNET_DTYPE_F32;
            same_bits(&c, gpu, same, dtype, "unpacked");
            same_bits(&c, back, other, dtype, "turned");
        }
        struct sets_sums one = sets_take(&c, cpu), two = one;
        sets_run(&c, cpu, &one);
        two.result = sets_floats(one.result_count);
        two.to_features = sets_floats(one.feature_count);
        two.to_weights = sets_floats(one.weight_count);
        sets_run(&c, here, &two);
        CHECK(!memcmp(one.result, two.result, (size_t)one.result_count * sizeof(float)));
        CHECK(!memcmp(one.to_weights, two.to_weights, (size_t)one.weight_count * sizeof(float)));
        free(two.result);
        free(two.to_features);
        free(two.to_weights);
        sets_drop(&one);
        struct pnet_set *sets[] = {gpu, same, other, here, back, cpu};
        for (int i = 0; i < 6; i++) pnet_set_free(sets[i]);
        drop(&p);
        free(host.by_out);
        free(host.by_in);
        free(c.index);
    }
}

/* Blocks of the CPU work on the GPU, without tiles: the same within rounding. */
static void test_from_cpu(void)
{
    struct sets_case c = layer(PNET_SET_STRIDED);
    sets_fill(&c, 3, -1);
    struct pnet_set *cpu = sets_make(&c), *gpu = NULL;
    struct pnet_packed p = {.size = sizeof p}, d;
    NEED(pnet_set_packed_sizes(cpu, &p, &e));
    p.by_out = sets_room(p.by_out_bytes, 1);
    p.by_in = sets_room(p.by_in_bytes, 1);
    NEED(pnet_set_pack(cpu, &p, &e));
    d = p;
    d.device = "cuda";
    d.by_out = gpu_copy(p.by_out, p.by_out_bytes);
    d.by_in = gpu_copy(p.by_in, p.by_in_bytes);
    gpu = unpack(&d);
    struct sums s = take(&c, gpu, PNET_DTYPE_F32);
    run(&c, gpu, &s, NULL);
    sets_run(&c, cpu, &s.s);
    float *got = sets_room((size_t)s.s.result_count, sizeof *got);
    gpu_get(got, s.result, (size_t)s.s.result_count * sizeof *got);
    double sum = 0, norm = 1e-30;
    for (int64_t i = 0; i < s.s.result_count; i++) {
        double a = (double)got[i] - (double)s.s.result[i];
        sum += a * a;
        norm += (double)s.s.result[i] * (double)s.s.result[i];
    }
    CHECKF(sqrt(sum / norm) <= 2e-6, "an error of %g", sqrt(sum / norm));
    free(got);
    give(&s);
    pnet_set_free(gpu);
    pnet_set_free(cpu);
    drop(&d);
    free(p.by_out);
    free(p.by_in);
    free(c.index);
}

/* Packed on a stream that is busy; unpacked while another stream records. */
static void test_streams(void)
{
    cudaStream_t stream;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct sets_case c = layer(PNET_SET_SUBMANIFOLD);
    sets_fill(&c, 3, -1);
    struct pnet_set *gpu = gpu_make(&c, stream, NULL);
    struct pnet_packed p = pack(gpu);
    GPU_NEED(cudaStreamSynchronize(stream));
    struct pnet_set *set = unpack(&p);
    struct sums s = take(&c, set, PNET_DTYPE_BF16);
    size_t bytes;
    run(&c, set, &s, stream);
    char *want = results(&s, &bytes);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    struct pnet_set *again = unpack(&p);
    run(&c, again, &s, stream);
    struct pnet_error why;
    CHECK(pnet_set_pack(gpu, &p, &why) == PNET_USAGE && strstr(why.message, "records"));
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphInstantiate(&exec, graph, 0));
    GPU_NEED(cudaMemset(s.result, 0xFF, (size_t)s.s.result_count * 2));
    GPU_NEED(cudaDeviceSynchronize());
    GPU_NEED(cudaGraphLaunch(exec, stream));
    char *got = results(&s, &bytes);
    CHECK(!memcmp(got, want, bytes));
    GPU_NEED(cudaGraphExecDestroy(exec));
    GPU_NEED(cudaGraphDestroy(graph));
    pnet_set_free(again);
    pnet_set_free(set);
    pnet_set_free(gpu);
    give(&s);
    drop(&p);
    free(got);
    free(want);
    free(c.index);
    GPU_NEED(cudaStreamDestroy(stream));
}

static void test_wrong(void)
{
    struct sets_case c = layer(PNET_SET_STRIDED);
    sets_fill(&c, 20, -1);
    struct pnet_set *gpu = gpu_make(&c, NULL, NULL), *set = NULL;
    struct pnet_packed p = pack(gpu), w = p, host = to_host(&p);
    w.by_out = host.by_out;
    REFUSED(pnet_set_pack(gpu, &w, &e), PNET_USAGE, "by_out");
    w.by_out = (char *)p.by_out + 8;
    REFUSED(pnet_set_unpack(&w, &set, &e), PNET_USAGE, "not aligned to 16 bytes");
    w = p;
    w.by_in_bytes = 64;
    REFUSED(pnet_set_unpack(&w, &set, &e), PNET_BAD_DATA, "too few");
    w = p;
    w.device = "cuda:1000";
    REFUSED(pnet_set_unpack(&w, &set, &e), PNET_NO_DEVICE, "there are GPUs 0 to");
    CHECK(!set);
    pnet_set_free(gpu);
    drop(&p);
    free(host.by_out);
    free(host.by_in);
    free(c.index);
}

int main(void)
{
    if (!gpu_there()) return 77;
    test_bits();
    test_from_cpu();
    test_streams();
    test_wrong();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
