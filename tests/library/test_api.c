/* The library as programs use it: models, batches, results, and everything that is refused. */
#include "tests/library/api.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static void test_structs(void)
{
    struct {
        struct pnet_model_options now;
        char later[16];
    } o = {.now = {.size = sizeof o}};
    struct pnet_model *m = NULL;
    CHECK(pnet_abi() == PNET_ABI);
    CHECK_STR(pnet_version(), PNET_VERSION);
    NEED(pnet_model_compile("a", api_text, sizeof api_text - 1, &o.now, &m, &e));
    pnet_model_free(m);
    o.later[3] = 1;
    REFUSED(pnet_model_compile("a", api_text, 1, &o.now, &m, &e), PNET_USAGE, "does not know");
    CHECK(!m);
    o.now.size = 0;
    REFUSED(pnet_model_compile("a", api_text, 1, &o.now, &m, &e), PNET_USAGE,
        "set it to sizeof(struct pnet_model_options)");
    pnet_model_free(NULL);
    pnet_session_free(NULL);
}

/* A struct of a later version is filled up with zeros. */
static void test_longer_info(void)
{
    struct {
        struct pnet_input_info now;
        char later[8];
    } i;
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    memset(&i, 0x55, sizeof i);
    i.now.size = sizeof i;
    NEED(pnet_model_input(m, 0, &i.now, &e));
    CHECK(i.now.size == sizeof i && i.later[0] == 0 && i.later[7] == 0);
    CHECK_STR(i.now.name, "cloud");
    pnet_model_free(m);
}

static void test_diagnostics(void)
{
    static const char text[] = "pnet 1\ninput cloud { xyz : position  rgb : feature[3] }\n"
                               "net n(p: cloud) { return p.rgb -> lineer(4) }\ny = n(cloud)\n";
    struct pnet_model *m = NULL;
    struct pnet_session *s = NULL;
    struct pnet_diagnostic d = {.size = sizeof d};
    struct pnet_result_info r = {.size = sizeof r};
    REFUSED(pnet_model_compile("n.pnet", text, sizeof text - 1, NULL, &m, &e), PNET_BAD_MODEL,
        "n.pnet:3:35: ");
    CHECK(m && pnet_model_diagnostics(m) == 1 && pnet_model_inputs(m) == 0);
    NEED(pnet_model_diagnostic(m, 0, &d, &e));
    CHECK(d.kind == PNET_DIAGNOSTIC_ERROR && d.line == 3 && d.column == 35);
    CHECK(d.end_line == 3 && d.end_column == 35 + (int)strlen("lineer"));
    CHECK_STR(d.file, "n.pnet");
    CHECKF(strstr(d.message, "lineer") && d.help && strstr(d.help, "linear"), "%s, %s", d.message,
        d.help);
    REFUSED(pnet_model_diagnostic(m, 1, &d, &e), PNET_USAGE, "no diagnostic 1");
    REFUSED(pnet_session_new(m, NULL, &s, &e), PNET_BAD_MODEL, "has errors");
    REFUSED(pnet_model_result(m, &r, &e), PNET_USAGE, "has errors");
    CHECK(!s && pnet_session_new(m, NULL, &s, NULL) == PNET_BAD_MODEL);
    pnet_model_free(m);
    CHECK(pnet_model_open("/no/such/file.pnet", NULL, &m, NULL) == PNET_BAD_MODEL);
    NEED(pnet_model_diagnostic(m, 0, &d, &e));
    CHECK(d.line == 0 && strstr(d.file, "file.pnet"));
    pnet_model_free(m);
    REFUSED(pnet_model_open("-", NULL, &m, &e), PNET_BAD_MODEL, "-"); /* not standard input */
    pnet_model_free(m);
}

static void test_options(void)
{
    const char *sets[] = {strdup("c=16"), strdup("v=30cm")};
    struct pnet_model_options o = {
        .size = sizeof o, .mode = "voxel", .params = sets, .param_count = 2};
    struct pnet_result_info r = {.size = sizeof r};
    struct pnet_weight_info w = {.size = sizeof w};
    struct pnet_model *m = NULL;
    struct pnet_session *s = NULL;
    NEED(pnet_model_compile("a", api_text, sizeof api_text - 1, &o, &m, &e));
    free((void *)sets[0]); /* texts are read before the function returns */
    free((void *)sets[1]);
    NEED(pnet_model_weight(m, 0, &w, &e));
    CHECKF(w.shape[w.dims - 1] == 16 && w.count == 27 * 3 * 16 && w.trained, "%s", w.name);
    NEED(pnet_model_result(m, &r, &e));
    CHECK(r.width == 4 && r.classes == 4 && r.rows == PNET_ROWS_POINTS);
    CHECK_STR(r.input, "cloud");
    struct pnet_session_options so = {.size = sizeof so, .device = "gpu"};
    REFUSED(pnet_session_new(m, &so, &s, &e), PNET_USAGE, "device: expected cpu");
    so = (struct pnet_session_options){.size = sizeof so, .precision = "bf16"};
    REFUSED(pnet_session_new(m, &so, &s, &e), PNET_USAGE, "the CPU computes in fp32");
    so.precision = "fp8";
    REFUSED(pnet_session_new(m, &so, &s, &e), PNET_USAGE, "expected fp32, tf32");
    so = (struct pnet_session_options){.size = sizeof so,
        .optimizer = &(struct pnet_optimizer){.size = sizeof(struct pnet_optimizer)}};
    REFUSED(pnet_session_new(m, &so, &s, &e), PNET_USAGE, "PNET_PURPOSE_TRAIN");
    pnet_model_free(m);
    o = (struct pnet_model_options){.size = sizeof o, .mode = "voxels"};
    REFUSED(pnet_model_compile("a", api_text, 1, &o, &m, &e), PNET_USAGE, "not 'voxels'");
    o = (struct pnet_model_options){.size = sizeof o, .purpose = (enum pnet_purpose)9};
    REFUSED(pnet_model_compile("a", api_text, 1, &o, &m, &e), PNET_USAGE, "purpose");
    o = (struct pnet_model_options){.size = sizeof o, .class_weight_count = 4};
    REFUSED(pnet_model_compile("a", api_text, 1, &o, &m, &e), PNET_USAGE, "class_weights is NULL");
    o.class_weights = (const double[]){1, 1, 1, 1};
    o.class_weight_count += (size_t)1 << 32;
    REFUSED(pnet_model_compile("a", api_text, 1, &o, &m, &e), PNET_USAGE, "4294967300 are too");
    o = (struct pnet_model_options){.size = sizeof o, .trained = "/no/weights"};
    REFUSED(pnet_model_compile("a", api_text, 1, &o, &m, &e), PNET_FAILED, "/no/weights");
}

/* Weights that record more params than a model has are refused, and in no time that grows with their square. */
static void test_many_params(void)
{
    enum { LINES = 400000 };
    char path[4096], *text = NULL;
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/pnet-api-XXXXXX", folder ? folder : "/tmp");
    size_t size = 0;
    int fd = mkstemp(path);
    FILE *header = open_memstream(&text, &size), *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    CHECK(header && f);
    if (!header || !f) return;
    fputs("{\"__metadata__\":{\"pnet.mode\":\"native\",\"pnet.params\":\"", header);
    for (int i = 0; i < LINES; i++) fprintf(header, "p%d=1\\n", i);
    fputs("\"}}", header);
    fclose(header);
    const uint64_t length = size;
    fwrite(&length, sizeof length, 1, f);
    fwrite(text, 1, size, f);
    fclose(f);
    struct pnet_model_options o = {.size = sizeof o, .trained = path};
    struct pnet_model *m;
    clock_t begin = clock();
    REFUSED(pnet_model_compile("a", api_text, sizeof api_text - 1, &o, &m, &e), PNET_BAD_DATA,
        "more than 4096 params");
    CHECK(clock() - begin < 20 * CLOCKS_PER_SEC);
    unlink(path);
    free(text);
}

/* A model of two clouds and a pose. */
static void test_inputs(void)
{
    struct pnet_model_options o = {.size = sizeof o, .purpose = PNET_PURPOSE_TRAIN};
    struct pnet_model *m = NULL;
    struct pnet_input_info i = {.size = sizeof i};
    struct pnet_field_info f = {.size = sizeof f};
    struct pnet_objective_info of = {.size = sizeof of};
    NEED(pnet_model_open("models/fcgf_3dmatch.pnet", &o, &m, &e));
    CHECK(pnet_model_inputs(m) == 3 && pnet_model_objectives(m) > 1);
    NEED(pnet_model_input(m, 0, &i, &e));
    CHECK(i.fields > 0 && i.read);
    NEED(pnet_model_field(m, 0, 0, &f, &e));
    CHECK(f.kind == PNET_FIELD_POSITION && f.width == 3 && f.read);
    NEED(pnet_model_input(m, 2, &i, &e));
    CHECK(i.fields == 0 && i.read);
    REFUSED(pnet_model_field(m, 2, 0, &f, &e), PNET_USAGE, "no field 0");
    NEED(pnet_model_objective(m, 0, &of, &e));
    CHECK(!of.metric);
    pnet_model_free(m);
    m = api_model(PNET_PURPOSE_INFER, NULL);
    NEED(pnet_model_field(m, 0, 2, &f, &e)); /* labels are no part of a result */
    CHECK(f.kind == PNET_FIELD_CLASS && f.classes == 4 && !f.read && !f.per_cloud);
    pnet_model_free(m);
}

static struct api_cloud cloud;

static void test_too_early(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_value v[API_VALUES];
    float x[1];
    int64_t rows, width;
    api_values(&cloud, v);
    REFUSED(pnet_session_forward(s, &e), PNET_USAGE, "no weights");
    NEED(pnet_session_init(s, &e));
    REFUSED(pnet_session_forward(s, &e), PNET_USAGE, "no batch");
    REFUSED(pnet_session_result_shape(s, &rows, &width, &e), PNET_USAGE, "no batch");
    NEED(pnet_session_bind(s, v, API_VALUES, &e));
    NEED(pnet_session_result_shape(s, &rows, &width, &e));
    CHECK(rows == API_ROWS && width == API_CLASSES);
    REFUSED(pnet_session_result(s, x, 1, &e), PNET_USAGE, "pnet_session_forward is first");
    NEED(pnet_session_forward(s, &e));
    REFUSED(pnet_session_result(s, x, 1, &e), PNET_USAGE, "700 rows of 4 numbers");
    REFUSED(pnet_session_gradients(s, 1, 0, &e), PNET_USAGE, "PNET_PURPOSE_TRAIN");
    REFUSED(pnet_session_save(s, "x", &e), PNET_USAGE, "folded");
    REFUSED(
        pnet_session_objective(s, "ce", &(double){0}, &e), PNET_USAGE, "no loss or metric `ce`");
    REFUSED(pnet_session_load(s, "/no/weights", &e), PNET_FAILED, "/no/weights");
    NEED(pnet_session_forward(s, &e)); /* a failure leaves weights and batch */
    pnet_session_free(s);
    pnet_model_free(m);
}

/* One thing is wrong with a batch. */
static void refuse_batch(struct pnet_session *s, size_t which, struct pnet_array array,
    const char *name, enum pnet_status status, const char *part)
{
    struct pnet_value v[API_VALUES];
    api_values(&cloud, v);
    v[which] = (struct pnet_value){name, array};
    REFUSED(pnet_session_bind(s, v, API_VALUES, &e), status, part);
    REFUSED(pnet_session_forward(s, &e), PNET_USAGE, "no batch");
}

static void test_bad_batches(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_EVAL, NULL);
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_value v[API_VALUES];
    const void *some = cloud.xyz;
    static struct api_cloud bad;
    NEED(pnet_session_init(s, &e));
    api_values(&cloud, v);
    REFUSED(pnet_session_bind(s, v, 3, &e), PNET_USAGE, "cloud.label is missing");
    REFUSED(pnet_session_bind(s, v, 0, &e), PNET_USAGE, "cloud.xyz is missing");
    const struct {
        size_t which;
        struct pnet_array array;
        const char *name, *part;
    } wrong[] = {
        {2, {some, PNET_DTYPE_F32, API_ROWS, 3, 0}, "cloud.colour", "no input `cloud.colour`"},
        {2, {some, PNET_DTYPE_F32, API_ROWS, 3, 0}, "clouds", "no input `clouds`"},
        {2, {some, PNET_DTYPE_F32, API_ROWS, 3, 0}, NULL, "no input `NULL`"},
        {2, {some, PNET_DTYPE_F32, API_ROWS, 3, 0}, "cloud.xyz", "cloud.xyz is there twice"},
        {2, {some, PNET_DTYPE_F32, API_ROWS, 4, 0}, "cloud.rgb", "[700, 4], expected [700, 3]"},
        {2, {some, PNET_DTYPE_F32, 699, 3, 0}, "cloud.rgb", "[699, 3], expected [700, 3]"},
        {2, {some, PNET_DTYPE_F32, API_ROWS, 3, 2}, "cloud.rgb", "stride 2"},
        {2, {some, PNET_DTYPE_I32, API_ROWS, 3, 0}, "cloud.rgb", "expected PNET_DTYPE_F32"},
        {2, {NULL, PNET_DTYPE_F32, API_ROWS, 3, 0}, "cloud.rgb", "NULL"},
        {1, {some, PNET_DTYPE_F32, -1, 3, 0}, "cloud.xyz", "-1 rows"},
        {1, {some, PNET_DTYPE_F32, INT64_C(1) << 40, 3, 0}, "cloud.xyz", "at most 2147483647"},
        {1, {some, PNET_DTYPE_F32, API_ROWS, 2, 0}, "cloud.xyz", "expected [700, 3]"},
        {3, {some, PNET_DTYPE_F32, API_ROWS, 1, 0}, "cloud.label", "PNET_DTYPE_I32 or"},
        {0, {some, PNET_DTYPE_F32, 3, 1, 0}, "cloud", "PNET_DTYPE_I64 or"},
        {0, {cloud.splits, PNET_DTYPE_I64, 1, 1, 0}, "cloud", "two rows, not 1"},
        {0, {cloud.splits, PNET_DTYPE_I64, INT64_MIN, 1, 0}, "cloud", "-9223372036854775808 rows"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuse_batch(s, wrong[i].which, wrong[i].array, wrong[i].name, PNET_USAGE, wrong[i].part);
    bad = cloud;
    bad.splits[1] = 800;
    refuse_batch(s, 0, (struct pnet_array){bad.splits, PNET_DTYPE_I64, 3, 1, 0}, "cloud",
        PNET_BAD_DATA, "row 2: row splits");
    bad.splits[0] = 1;
    refuse_batch(s, 0, (struct pnet_array){bad.splits, PNET_DTYPE_I64, 3, 1, 0}, "cloud",
        PNET_BAD_DATA, "row 0: row splits begin with 0");
    bad.splits[0] = 0;
    refuse_batch(s, 0, (struct pnet_array){bad.splits, PNET_DTYPE_I64, 2, 1, 0}, "cloud",
        PNET_BAD_DATA, "is 800, expected 700");
    bad.label[13] = 4;
    refuse_batch(s, 3, (struct pnet_array){bad.label, PNET_DTYPE_I32, API_ROWS, 1, 0},
        "cloud.label", PNET_BAD_DATA, "row 13: the label 4");
    bad.xyz[5][1] = NAN;
    refuse_batch(s, 1, (struct pnet_array){bad.xyz, PNET_DTYPE_F32, API_ROWS, 3, 0}, "cloud.xyz",
        PNET_BAD_DATA, "1 points of input 'cloud' are not finite, or lie beyond");
    bad.xyz[5][1] = 1e9F;
    refuse_batch(s, 1, (struct pnet_array){bad.xyz, PNET_DTYPE_F32, API_ROWS, 3, 0}, "cloud.xyz",
        PNET_BAD_DATA, "1 points");
    pnet_session_free(s);
    pnet_model_free(m);
}

/* Strides, types and a model freed early change no bit; shuffled rows give shuffled results; samples are apart. */
static void test_arrays(void)
{
    static struct {
        float xyz[3], rgb[3];
        int64_t label[2];
    } records[API_ROWS];
    static struct api_cloud turned;
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_value v[API_VALUES];
    int64_t count, stride = sizeof records[0] / sizeof(float);
    pnet_model_free(m);
    NEED(pnet_session_init(s, &e));
    api_values(&cloud, v);
    NEED(pnet_session_bind(s, v, API_VALUES, &e));
    float *plain = api_result(s, &count);
    for (int i = 0; i < API_ROWS; i++) {
        memcpy(records[i].xyz, cloud.xyz[i], sizeof cloud.xyz[i]);
        memcpy(records[i].rgb, cloud.rgb[i], sizeof cloud.rgb[i]);
    }
    const int32_t splits[3] = {0, 300, API_ROWS};
    const struct pnet_value strided[] = {
        {"cloud.rgb", {records[0].rgb, PNET_DTYPE_F32, API_ROWS, 3, stride}},
        {"cloud", {splits, PNET_DTYPE_I32, 3, 1, 0}},
        {"cloud.xyz", {records[0].xyz, PNET_DTYPE_F32, API_ROWS, 3, stride}}};
    NEED(pnet_session_bind(s, strided, 3, &e));
    float *same = api_result(s, &count);
    CHECK(memcmp(plain, same, (size_t)count * sizeof *plain) == 0);
    free(same);
    turned = cloud; /* within each sample, from its end on */
    for (int i = 0; i < API_ROWS; i++) {
        int from = i < 300 ? 299 - i : API_ROWS - 1 - (i - 300);
        memcpy(turned.xyz[i], cloud.xyz[from], sizeof cloud.xyz[i]);
        memcpy(turned.rgb[i], cloud.rgb[from], sizeof cloud.rgb[i]);
    }
    api_values(&turned, v);
    NEED(pnet_session_bind(s, v, API_VALUES, &e));
    same = api_result(s, &count);
    float worst = 0;
    for (int i = 0; i < API_ROWS; i++) {
        int from = i < 300 ? 299 - i : API_ROWS - 1 - (i - 300);
        for (int k = 0; k < API_CLASSES; k++)
            worst = fmaxf(worst, fabsf(same[i * API_CLASSES + k] - plain[from * API_CLASSES + k]));
    }
    CHECKF(worst < 1e-5F, "%g", (double)worst); /* points of one cell are summed in another order */
    free(same);
    const struct pnet_value one[] = {{"cloud.xyz", {cloud.xyz[300], PNET_DTYPE_F32, 400, 3, 0}},
        {"cloud.rgb", {cloud.rgb[300], PNET_DTYPE_F32, 400, 3, 0}}};
    NEED(pnet_session_bind(s, one, 2, &e)); /* the second sample alone */
    same = api_result(s, &count);
    CHECK(count == 400 * API_CLASSES);
    CHECK(memcmp(plain + (ptrdiff_t)300 * API_CLASSES, same, (size_t)count * sizeof *plain) == 0);
    free(same);
    const struct pnet_value none[] = {{"cloud.xyz", {NULL, PNET_DTYPE_F32, 0, 3, 0}},
        {"cloud.rgb", {NULL, PNET_DTYPE_F32, 0, 3, 0}}};
    NEED(pnet_session_bind(s, none, 2, &e));
    same = api_result(s, &count);
    CHECK(count == 0);
    free(same);
    free(plain);
    pnet_session_free(s);
}

/* What is planned for a batch is what a session takes, to the byte; and a limit holds. */
static void test_memory(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_value v[API_VALUES];
    struct pnet_memory_info i = {.size = sizeof i};
    api_values(&cloud, v);
    NEED(pnet_session_init(s, &e));
    NEED(pnet_session_memory(s, &i, &e));
    CHECK(i.planned == 0 && i.used > 0);
    NEED(pnet_session_bind(s, v, API_VALUES, &e));
    NEED(pnet_session_memory(s, &i, &e));
    size_t planned = i.planned;
    NEED(pnet_session_forward(s, &e));
    NEED(pnet_session_memory(s, &i, &e));
    CHECKF(planned == i.peak && i.planned == planned, "%zu planned, %zu taken", planned, i.peak);
    pnet_session_free(s);
    struct pnet_session_options o = {.size = sizeof o, .memory_limit = planned - 1};
    NEED(pnet_session_new(m, &o, &s, &e));
    NEED(pnet_session_init(s, &e));
    enum pnet_status st = pnet_session_bind(s, v, API_VALUES, NULL);
    if (!st) st = pnet_session_forward(s, NULL);
    CHECKF(st == PNET_NO_MEMORY, "%d", (int)st);
    pnet_session_free(s);
    REFUSED(pnet_model_peak(m, NULL, -1, &(size_t){0}, &e), PNET_USAGE, "points");
    pnet_model_free(m);
}

/* The peak without a cloud is the one that pnetc plan prints. */
static void test_peak(void)
{
    char path[] = "/tmp/pnet-api-XXXXXX", command[600], line[200];
    const char *pnetc = getenv("PNETC");
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    size_t peak, planned = 0;
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, api_text, sizeof api_text - 1) == (ssize_t)sizeof api_text - 1);
    close(fd);
    NEED(pnet_model_peak(m, NULL, 50000, &peak, &e));
    snprintf(command, sizeof command, "%s plan %s --points 50000",
        pnetc ? pnetc : "build/quick/pnetc", path);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "peak: %*s %*[^,], %zu bytes", &planned);
    if (f) pclose(f);
    CHECKF(peak == planned, "%zu, and pnetc plan says %zu", peak, planned);
    unlink(path);
    pnet_model_free(m);
}

/* Threads that share a model, each with a session. */
static void *run_alone(void *model)
{
    struct pnet_session *s = api_session(model, NULL);
    struct pnet_value v[API_VALUES];
    struct pnet_result_info r = {.size = sizeof r};
    int64_t count;
    api_values(&cloud, v);
    NEED(pnet_session_init(s, &e));
    NEED(pnet_model_result(model, &r, &e));
    NEED(pnet_session_bind(s, v, API_VALUES, &e));
    float *x = api_result(s, &count);
    pnet_session_free(s);
    return x;
}

static void test_threads(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    pthread_t threads[3];
    float *first = run_alone(m);
    for (int i = 0; i < 3; i++) CHECK(!pthread_create(&threads[i], NULL, run_alone, m));
    for (int i = 0; i < 3; i++) {
        void *x;
        pthread_join(threads[i], &x);
        CHECK(memcmp(first, x, sizeof(float) * API_ROWS * API_CLASSES) == 0);
        free(x);
    }
    free(first);
    pnet_model_free(m);
}

int main(void)
{
    api_fill(&cloud, 1);
    test_structs();
    test_longer_info();
    test_diagnostics();
    test_options();
    test_many_params();
    test_inputs();
    test_too_early();
    test_bad_batches();
    test_arrays();
    test_memory();
    test_peak();
    test_threads();
    return check_end();
}
