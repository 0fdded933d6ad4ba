/* Sessions in the caller's memory, on the CPU: every byte is taken from the allocator and given back, the most at a time is what
   the plan says, and results are the same bits. Where the caller's arrays lie, and what is refused. */
#include "tests/library/api.h"

static struct api_cloud cloud;

/* Memory of the caller, in blocks with their sizes. */
enum { BLOCKS = 4096 };
struct heap {
    struct {
        void *memory;
        size_t bytes;
    } block[BLOCKS];
    int count, wrong;
    size_t used, peak;
    long takes, fail_at; /* this take fails, and all behind it; 0: none */
    size_t off;          /* bytes by which addresses are shifted */
};

static void *take(void *context, size_t bytes, void *stream)
{
    struct heap *h = context;
    h->takes++;
    h->wrong += stream != NULL || h->count == BLOCKS;
    if ((h->fail_at && h->takes >= h->fail_at) || h->count == BLOCKS) return NULL;
    char *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!memory) return NULL;
    memset(memory, 0xff, bytes + h->off); /* NaN: nothing may be read before it is written */
    h->block[h->count].memory = memory + h->off;
    h->block[h->count++].bytes = bytes;
    h->used += bytes;
    if (h->used > h->peak) h->peak = h->used;
    return memory + h->off;
}

static void give(void *context, void *memory, size_t bytes, void *stream)
{
    struct heap *h = context;
    int at = 0;
    while (at < h->count && h->block[at].memory != memory) at++;
    if (at == h->count || h->block[at].bytes != bytes || stream) {
        h->wrong++;
        return;
    }
    h->used -= bytes;
    h->block[at] = h->block[--h->count];
    free((char *)memory - h->off);
}

static struct heap heap;
static const struct pnet_allocator allocator = {sizeof allocator, &heap, take, give};

/* The result of a batch of so many rows, of one sample. */
static void run(struct pnet_session *s, int64_t rows, float *result)
{
    const struct pnet_value v[] = {{"cloud.xyz", {cloud.xyz, PNET_DTYPE_F32, rows, 3, 0}},
        {"cloud.rgb", {cloud.rgb, PNET_DTYPE_F32, rows, 3, 0}}};
    NEED(pnet_session_bind(s, v, 2, &e));
    NEED(pnet_session_forward(s, &e));
    NEED(pnet_session_result(s, result, rows * API_CLASSES, &e));
}

static struct pnet_session *open_session(
    const struct pnet_model *m, const struct pnet_session_options *o)
{
    struct pnet_session *s = NULL;
    NEED(pnet_session_new(m, o, &s, &e));
    NEED(pnet_session_init(s, &e));
    return s;
}

static void test_inference(void)
{
    static float own[API_ROWS * API_CLASSES], taken[API_ROWS * API_CLASSES];
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    struct pnet_session_options plain = {.size = sizeof plain}, from = {.size = sizeof from,
                                                                    .allocator = &allocator,
                                                                    .arrays = PNET_ARRAYS_DEVICE};
    struct pnet_session *a = open_session(m, &plain), *b = open_session(m, &from);
    struct pnet_memory_info i = {.size = sizeof i};
    const int64_t rows[] = {300, API_ROWS, 500};
    for (int k = 0; k < 3; k++) {
        run(a, rows[k], own);
        run(b, rows[k], taken);
        CHECK(memcmp(own, taken, (size_t)rows[k] * API_CLASSES * sizeof *own) == 0);
        NEED(pnet_session_memory(b, &i, &e));
        CHECKF(i.used == heap.used && i.peak == heap.peak,
            "%zu and %zu, the caller gave %zu and %zu", i.used, i.peak, heap.used, heap.peak);
        if (k == 0) CHECKF(heap.peak == i.planned, "%zu planned, %zu taken", i.planned, heap.peak);
    }
    CHECK(heap.takes > 10);
    pnet_session_free(b);
    CHECKF(heap.used == 0 && heap.count == 0, "%zu bytes are left", heap.used);
    CHECK(heap.wrong == 0);
    pnet_session_free(a);
    pnet_model_free(m);
}

/* Training with the state of an optimiser: what is taken is planned, and the weights are the same bits. */
static void test_training(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_TRAIN, NULL);
    struct pnet_optimizer adam = {.size = sizeof adam};
    struct pnet_step_options step = {.size = sizeof step, .learning_rate = 0.01};
    struct pnet_memory_info i = {.size = sizeof i};
    struct pnet_value v[API_VALUES];
    struct pnet_session *s[2];
    static float w[2][4096];
    heap = (struct heap){.count = 0};
    NEED(pnet_optimizer_default(PNET_OPTIMIZER_ADAM, &adam, &e));
    api_values(&cloud, v);
    for (int k = 0; k < 2; k++) {
        struct pnet_session_options o = {
            .size = sizeof o, .optimizer = &adam, .allocator = k ? &allocator : NULL};
        s[k] = open_session(m, &o);
        NEED(pnet_session_bind(s[k], v, API_VALUES, &e));
        for (int n = 0; n < 3; n++) {
            NEED(pnet_session_gradients(s[k], 1, n == 1, &e));
            NEED(pnet_session_step(s[k], &step, NULL, &e));
        }
    }
    NEED(pnet_session_memory(s[1], &i, &e));
    CHECKF(heap.peak == i.planned && heap.peak == i.peak, "%zu planned, %zu taken", i.planned,
        heap.peak);
    for (size_t k = 0; k < pnet_model_weights(m); k++) {
        struct pnet_weight_info info = {.size = sizeof info};
        NEED(pnet_model_weight(m, k, &info, &e));
        CHECK(info.count <= 4096);
        for (int n = 0; n < 2; n++)
            NEED(pnet_session_get_weight(s[n], info.name, w[n], info.count, &e));
        CHECK(memcmp(w[0], w[1], (size_t)info.count * sizeof w[0][0]) == 0);
    }
    for (int k = 0; k < 2; k++) pnet_session_free(s[k]);
    CHECK(heap.used == 0 && heap.count == 0 && heap.wrong == 0);
    pnet_model_free(m);
}

/* From any take on memory may be out: the call says so, nothing is lost, and the next one works. */
static void test_failures(void)
{
    static float want[API_ROWS * API_CLASSES], got[API_ROWS * API_CLASSES];
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    struct pnet_session_options o = {.size = sizeof o, .allocator = &allocator};
    const struct pnet_value v[] = {{"cloud.xyz", {cloud.xyz, PNET_DTYPE_F32, API_ROWS, 3, 0}},
        {"cloud.rgb", {cloud.rgb, PNET_DTYPE_F32, API_ROWS, 3, 0}}};
    heap = (struct heap){.count = 0};
    struct pnet_session *s = open_session(m, &o);
    run(s, API_ROWS, want);
    pnet_session_free(s);
    long takes = heap.takes;
    for (long at = 1; at <= takes; at++) {
        struct pnet_error said = {PNET_OK, ""};
        s = NULL;
        heap = (struct heap){.fail_at = at};
        enum pnet_status st = pnet_session_new(m, &o, &s, &said);
        if (!st) st = pnet_session_init(s, &said);
        if (!st) st = pnet_session_bind(s, v, 2, &said);
        if (!st) st = pnet_session_forward(s, &said);
        CHECKF(st == PNET_NO_MEMORY && strstr(said.message, "no room for"), "%ld: %d: %s", at,
            (int)st, said.message);
        heap.fail_at = 0;
        if (s) {
            NEED(pnet_session_init(s, &e));
            run(s, API_ROWS, got);
            CHECK(memcmp(want, got, sizeof want) == 0);
        }
        pnet_session_free(s);
        CHECKF(
            heap.used == 0 && heap.count == 0 && heap.wrong == 0, "%ld: %zu bytes", at, heap.used);
    }
    pnet_model_free(m);
}

static void refuse(const struct pnet_model *m, struct pnet_session_options *o, const char *says)
{
    struct pnet_session *s = NULL;
    REFUSED(pnet_session_new(m, o, &s, &e), PNET_USAGE, says);
    CHECK(!s);
}

static void test_refused(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    struct pnet_allocator a = allocator;
    struct pnet_session_options o = {.size = sizeof o, .arrays = (enum pnet_arrays)2};
    refuse(m, &o, "arrays: no place has the number 2");
    o = (struct pnet_session_options){.size = sizeof o, .stream = &a};
    refuse(m, &o, "stream: the session is on the CPU");
    o = (struct pnet_session_options){.size = sizeof o, .allocator = &a};
    a.give = NULL;
    refuse(m, &o, "allocator: `give` is NULL");
    a.take = NULL;
    refuse(m, &o, "allocator: `take` is NULL");
    a.size = 8;
    refuse(m, &o, "struct pnet_allocator: `size` is 8");
    /* without a GPU it is missing; with one, all of this is there */
    struct pnet_session_options gpu = {
        .size = sizeof gpu, .device = "cuda", .arrays = PNET_ARRAYS_DEVICE};
    struct pnet_session *s = NULL;
    enum pnet_status st = pnet_session_new(m, &gpu, &s, NULL);
    CHECKF(s ? st == PNET_OK : st == PNET_NO_DEVICE, "%d", (int)st);
    pnet_session_free(s);
    heap = (struct heap){.off = 16};
    a = allocator;
    refuse(m, &o, "allocator: its memory is not aligned to 64 bytes");
    CHECK(heap.used == 0 && heap.count == 0 && heap.wrong == 0);
    pnet_model_free(m);
}

/* A limit holds for the memory of the caller, too. */
static void test_limit(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    struct pnet_session_options o = {
        .size = sizeof o, .allocator = &allocator, .memory_limit = 1000};
    struct pnet_session *s = NULL;
    heap = (struct heap){.count = 0};
    REFUSED(pnet_session_new(m, &o, &s, &e), PNET_NO_MEMORY, "over the memory budget");
    CHECK(heap.peak <= 1000 && heap.used == 0);
    pnet_model_free(m);
}

int main(void)
{
    api_fill(&cloud, 3);
    test_inference();
    test_training();
    test_failures();
    test_refused();
    test_limit();
    return check_end();
}
