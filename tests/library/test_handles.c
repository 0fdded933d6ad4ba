/* Every argument that is a pointer, of every function: NULL, handles of other classes, and what is no handle, are refused with
   the names of the function and the argument. The sizes of structs. */
#include "tests/library/api.h"

#include <stdalign.h>

/* What an argument must be. MADE: where a handle is put, which a failure sets to NULL; GIVEN: another pointer. */
enum class { MODEL, SESSION, SET, POINTS, MAP, BUCKETS, CLASSES, MADE, GIVEN };
static const char *const names[] = {"a model", "a session", "a set", "points", "a map", "buckets"};

/* Function, its arguments, and what those are that must not be NULL, in the order of a[]. */
#define ROWS(X)                                                                                    \
    X(pnet_model_compile, (a[0], a[1], 0, NULL, a[2], e), {GIVEN, "name"}, {GIVEN, "text"},        \
        {MADE, "model"})                                                                           \
    X(pnet_model_open, (a[0], NULL, a[1], e), {GIVEN, "path"}, {MADE, "model"})                    \
    X(pnet_model_diagnostic, (a[0], 0, a[1], e), {MODEL, "m"}, {GIVEN, "d"})                       \
    X(pnet_model_input, (a[0], 0, a[1], e), {MODEL, "m"}, {GIVEN, "i"})                            \
    X(pnet_model_field, (a[0], 0, 0, a[1], e), {MODEL, "m"}, {GIVEN, "f"})                         \
    X(pnet_model_weight, (a[0], 0, a[1], e), {MODEL, "m"}, {GIVEN, "w"})                           \
    X(pnet_model_objective, (a[0], 0, a[1], e), {MODEL, "m"}, {GIVEN, "o"})                        \
    X(pnet_model_result, (a[0], a[1], e), {MODEL, "m"}, {GIVEN, "r"})                              \
    X(pnet_model_output, (a[0], 0, a[1], e), {MODEL, "m"}, {GIVEN, "o"})                           \
    X(pnet_model_peak, (a[0], NULL, 10, a[1], e), {MODEL, "m"}, {GIVEN, "bytes"})                  \
    X(pnet_optimizer_default, (PNET_OPTIMIZER_SGD, a[0], e), {GIVEN, "o"})                         \
    X(pnet_session_new, (a[0], NULL, a[1], e), {MODEL, "m"}, {MADE, "session"})                    \
    X(pnet_session_init, (a[0], e), {SESSION, "s"})                                                \
    X(pnet_session_load, (a[0], a[1], e), {SESSION, "s"}, {GIVEN, "path"})                         \
    X(pnet_session_copy_weights, (a[0], a[1], e), {SESSION, "s"}, {SESSION, "from"})               \
    X(pnet_session_save, (a[0], a[1], e), {SESSION, "s"}, {GIVEN, "path"})                         \
    X(pnet_session_get_weight, (a[0], a[1], a[2], 1, e), {SESSION, "s"}, {GIVEN, "name"},          \
        {GIVEN, "to"})                                                                             \
    X(pnet_session_set_weight, (a[0], a[1], a[2], 1, e), {SESSION, "s"}, {GIVEN, "name"},          \
        {GIVEN, "from"})                                                                           \
    X(pnet_session_bind, (a[0], a[1], 1, e), {SESSION, "s"}, {GIVEN, "values"})                    \
    X(pnet_session_forward, (a[0], e), {SESSION, "s"})                                             \
    X(pnet_session_result_shape, (a[0], a[1], a[2], e), {SESSION, "s"}, {GIVEN, "rows"},           \
        {GIVEN, "width"})                                                                          \
    X(pnet_session_result, (a[0], a[1], 1, e), {SESSION, "s"}, {GIVEN, "to"})                      \
    X(pnet_session_output_shape, (a[0], a[1], a[2], a[3], e), {SESSION, "s"}, {GIVEN, "name"},     \
        {GIVEN, "rows"}, {GIVEN, "width"})                                                         \
    X(pnet_session_output_splits, (a[0], a[1], a[2], 1, e), {SESSION, "s"}, {GIVEN, "name"},       \
        {GIVEN, "to"})                                                                             \
    X(pnet_session_output, (a[0], a[1], a[2], 1, e), {SESSION, "s"}, {GIVEN, "name"},              \
        {GIVEN, "to"})                                                                             \
    X(pnet_session_objective, (a[0], a[1], a[2], e), {SESSION, "s"}, {GIVEN, "name"},              \
        {GIVEN, "value"})                                                                          \
    X(pnet_session_gradients, (a[0], 1, 0, e), {SESSION, "s"})                                     \
    X(pnet_session_forward_training, (a[0], e), {SESSION, "s"})                                    \
    X(pnet_session_backward, (a[0], a[1], 1, 1, 0, e), {SESSION, "s"}, {GIVEN, "gradients"})       \
    X(pnet_session_input_gradient, (a[0], a[1], a[2], 1, e), {SESSION, "s"}, {GIVEN, "name"},      \
        {GIVEN, "to"})                                                                             \
    X(pnet_session_get_gradient, (a[0], a[1], a[2], 1, e), {SESSION, "s"}, {GIVEN, "name"},        \
        {GIVEN, "to"})                                                                             \
    X(pnet_session_set_gradient, (a[0], a[1], a[2], 1, e), {SESSION, "s"}, {GIVEN, "name"},        \
        {GIVEN, "from"})                                                                           \
    X(pnet_session_step, (a[0], a[1], NULL, e), {SESSION, "s"}, {GIVEN, "o"})                      \
    X(pnet_session_memory, (a[0], a[1], e), {SESSION, "s"}, {GIVEN, "m"})                          \
    X(pnet_set_voxels, (a[0], a[1], a[2], e), {GIVEN, "indices"}, {GIVEN, "o"}, {MADE, "set"})     \
    X(pnet_set_inverse, (a[0], a[1], e), {SET, "of"}, {MADE, "set"})                               \
    X(pnet_set_triplets, (a[0], a[1], a[2], 1, 1, 1, NULL, a[3], e), {GIVEN, "i"}, {GIVEN, "j"},   \
        {GIVEN, "k"}, {MADE, "set"})                                                               \
    X(pnet_set_counts, (a[0], a[1], e), {SET, "set"}, {GIVEN, "info"})                             \
    X(pnet_set_indices, (a[0], a[1], 1, e), {SET, "set"}, {GIVEN, "to"})                           \
    X(pnet_set_get_triplets, (a[0], NULL, NULL, NULL, 0, e), {SET, "set"})                         \
    X(pnet_conv_workspace, (a[0], PNET_CONV_FORWARD, 1, 1, 1, a[1], e), {SET, "set"},              \
        {GIVEN, "bytes"})                                                                          \
    X(pnet_conv_forward, (a[0], a[1], a[2], NULL, a[3], e), {SET, "set"}, {GIVEN, "features"},     \
        {GIVEN, "weights"}, {GIVEN, "result"})                                                     \
    X(pnet_conv_grad_input, (a[0], a[1], a[2], NULL, a[3], e), {SET, "set"}, {GIVEN, "gradient"},  \
        {GIVEN, "weights"}, {GIVEN, "result"})                                                     \
    X(pnet_conv_grad_weight, (a[0], a[1], a[2], NULL, a[3], e), {SET, "set"}, {GIVEN, "features"}, \
        {GIVEN, "gradient"}, {GIVEN, "result"})                                                    \
    X(pnet_pool_forward, (a[0], PNET_POOLING_SUM, a[1], NULL, a[2], NULL, e), {SET, "set"},        \
        {GIVEN, "features"}, {GIVEN, "result"})                                                    \
    X(pnet_pool_backward, (a[0], PNET_POOLING_SUM, a[1], NULL, NULL, a[2], e), {SET, "set"},       \
        {GIVEN, "gradient"}, {GIVEN, "result"})                                                    \
    X(pnet_set_packed_sizes, (a[0], a[1], e), {SET, "set"}, {GIVEN, "packed"})                     \
    X(pnet_set_pack, (a[0], a[1], e), {SET, "set"}, {GIVEN, "packed"})                             \
    X(pnet_set_unpack, (a[0], a[1], e), {GIVEN, "packed"}, {MADE, "set"})                          \
    X(pnet_points_new, (a[0], NULL, a[1], e), {GIVEN, "positions"}, {MADE, "points"})              \
    X(pnet_points_grid, (a[0], 1, a[1], e), {POINTS, "of"}, {MADE, "level"})                       \
    X(pnet_points_counts, (a[0], a[1], e), {POINTS, "points"}, {GIVEN, "info"})                    \
    X(pnet_points_positions, (a[0], a[1], e), {POINTS, "points"}, {GIVEN, "to"})                   \
    X(pnet_points_samples, (a[0], a[1], e), {POINTS, "points"}, {GIVEN, "to"})                     \
    X(pnet_points_sources, (a[0], a[1], e), {POINTS, "points"}, {GIVEN, "to"})                     \
    X(pnet_points_parents, (a[0], a[1], a[2], e), {POINTS, "fine"}, {POINTS, "coarse"},            \
        {GIVEN, "to"})                                                                             \
    X(pnet_set_points, (a[0], a[1], NULL, a[2], e), {POINTS, "out"}, {POINTS, "in"},               \
        {MADE, "set"})                                                                             \
    X(pnet_map_new, (a[0], a[1], NULL, a[2], e), {POINTS, "out"}, {POINTS, "in"}, {MADE, "map"})   \
    X(pnet_map_workspace, (a[0], 0, 1, a[1], e), {MAP, "map"}, {GIVEN, "bytes"})                   \
    X(pnet_map_forward, (a[0], a[1], NULL, a[2], e), {MAP, "map"}, {GIVEN, "features"},            \
        {GIVEN, "result"})                                                                         \
    X(pnet_map_backward, (a[0], a[1], NULL, a[2], e), {MAP, "map"}, {GIVEN, "gradient"},           \
        {GIVEN, "result"})                                                                         \
    X(pnet_buckets_new, (a[0], NULL, a[1], e), {POINTS, "points"}, {MADE, "buckets"})              \
    X(pnet_attend_workspace, (a[0], 0, 1, 8, a[1], e), {BUCKETS, "buckets"}, {GIVEN, "bytes"})     \
    X(pnet_attend_forward, (a[0], a[1], NULL, a[2], e), {BUCKETS, "buckets"}, {GIVEN, "qkv"},      \
        {GIVEN, "result"})                                                                         \
    X(pnet_attend_backward, (a[0], a[1], a[2], a[3], NULL, a[4], e), {BUCKETS, "buckets"},         \
        {GIVEN, "qkv"}, {GIVEN, "out"}, {GIVEN, "gradient"}, {GIVEN, "result"})                    \
    X(pnet_loss_default, (PNET_LOSS_EMD, a[0], e), {GIVEN, "o"})                                   \
    X(pnet_loss_workspace, (a[0], a[1], a[2], a[3], e), {POINTS, "x"}, {POINTS, "y"},              \
        {GIVEN, "o"}, {GIVEN, "bytes"})                                                            \
    X(pnet_loss_forward, (a[0], a[1], a[2], NULL, a[3], e), {POINTS, "x"}, {POINTS, "y"},          \
        {GIVEN, "o"}, {GIVEN, "loss"})                                                             \
    X(pnet_loss_backward, (a[0], a[1], a[2], NULL, 1, NULL, NULL, e), {POINTS, "x"},               \
        {POINTS, "y"}, {GIVEN, "o"})

enum { ARGUMENTS = 5 };
struct row {
    const char *function;
    enum pnet_status (*call)(void *const *a, struct pnet_error *e);
    struct {
        enum class class;
        const char *name;
    } arguments[ARGUMENTS];
};

#define DEFINE(function, arguments, ...)                                                           \
    static enum pnet_status call_##function(void *const *a, struct pnet_error *e)                  \
    {                                                                                              \
        return function arguments;                                                                 \
    }
#define ENTRY(function, arguments, ...) {#function, call_##function, {__VA_ARGS__}},
ROWS(DEFINE)
static const struct row rows[] = {ROWS(ENTRY)};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

/* A handle of each class; and memory that is none. */
static void *handles[CLASSES];
static alignas(max_align_t) char nothing[8192];

static void make_handles(void)
{
    static const float xyz[2][3] = {{0, 0, 0}, {1, 1, 1}};
    struct pnet_array positions = {xyz, PNET_DTYPE_F32, 2, 3, 0};
    struct pnet_points *points;
    struct pnet_map_options any = {.size = sizeof any, .kind = PNET_MAP_INVERSE_DISTANCE};
    struct pnet_near_options near = {.size = sizeof near, .radius = 0.5};
    handles[MODEL] = api_model(PNET_PURPOSE_INFER, NULL);
    handles[SESSION] = api_session(handles[MODEL], NULL);
    NEED(pnet_points_new(&positions, NULL, &points, &e));
    handles[POINTS] = points;
    NEED(pnet_set_points(points, points, &near, (struct pnet_set **)&handles[SET], &e));
    NEED(pnet_map_new(points, points, &any, (struct pnet_map **)&handles[MAP], &e));
    NEED(pnet_buckets_new(points, NULL, (struct pnet_buckets **)&handles[BUCKETS], &e));
}

static void free_handles(void)
{
    pnet_buckets_free(handles[BUCKETS]);
    pnet_map_free(handles[MAP]);
    pnet_set_free(handles[SET]);
    pnet_points_free(handles[POINTS]);
    pnet_session_free(handles[SESSION]);
    pnet_model_free(handles[MODEL]);
}

/* Calls with one wrong argument, which the message says to be `is`. */
static void call_with(const struct row *r, int wrong, void *value, const char *is)
{
    void *a[ARGUMENTS], *made = nothing;
    char part[200];
    struct pnet_error e = {PNET_OK, ""};
    for (int i = 0; i < ARGUMENTS; i++) {
        enum class c = r->arguments[i].class;
        a[i] = c == GIVEN ? nothing : c == MADE ? (void *)&made : handles[c];
    }
    a[wrong] = value;
    snprintf(part, sizeof part, "%s: `%s` is %s", r->function, r->arguments[wrong].name, is);
    enum pnet_status st = r->call(a, &e);
    CHECKF(st == PNET_USAGE && e.status == PNET_USAGE && strstr(e.message, part) == e.message,
        "%d, \"%s\", not \"%s\"", (int)st, e.message, part);
    CHECK(r->call(a, NULL) == PNET_USAGE);
    for (int i = 0; i < ARGUMENTS; i++)
        if (r->arguments[i].name && r->arguments[i].class == MADE && i != wrong)
            CHECKF(!made, "%s: `%s` is wrong", r->function, r->arguments[wrong].name);
}

static void test_arguments(void)
{
    char is[100];
    for (const struct row *r = rows; r < rows + ROW_COUNT; r++)
        for (int i = 0; i < ARGUMENTS && r->arguments[i].name; i++) {
            enum class class = r->arguments[i].class;
            call_with(r, i, NULL, "NULL");
            if (class >= CLASSES) continue;
            for (int other = 0; other < CLASSES; other++) {
                if (other == (int)class) continue;
                snprintf(is, sizeof is, "%s, expected %s", names[other], names[class]);
                call_with(r, i, handles[other], is);
            }
            snprintf(is, sizeof is, "no object of the library, or one that was freed, expected %s",
                names[class]);
            call_with(r, i, nothing, is);
            call_with(r, i, nothing + 1, is);
        }
}

/* Is every function of the library in the table, but for those that cannot fail? */
static void test_all_are_there(void)
{
    static const char *const others[] = {"pnet_abi", "pnet_version", "pnet_model_free",
        "pnet_session_free", "pnet_set_free", "pnet_points_free", "pnet_map_free",
        "pnet_buckets_free", "pnet_model_diagnostics", "pnet_model_inputs", "pnet_model_weights",
        "pnet_model_objectives", "pnet_model_outputs"};
    char line[200];
    int count = 0;
    FILE *f = fopen("library/pnet.map", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *name = strstr(line, "pnet_"), *end = name ? strchr(name, ';') : NULL;
        bool known = false;
        if (!end) continue;
        *end = 0;
        count++;
        for (int i = 0; i < ROW_COUNT; i++) known |= strcmp(rows[i].function, name) == 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            known |= strcmp(others[i], name) == 0;
        CHECKF(known, "%s", name);
    }
    if (f) fclose(f);
    CHECKF(count == ROW_COUNT + (int)(sizeof others / sizeof *others), "%d functions", count);
}

/* Functions without a status: they count nothing and free nothing of other classes. */
static void test_without_status(void)
{
    for (int c = 0; c <= CLASSES + 1; c++) {
        void *h = c < CLASSES ? handles[c] : c == CLASSES ? (void *)nothing : NULL;
        if (c != MODEL) {
            CHECK(!pnet_model_diagnostics(h) && !pnet_model_inputs(h) && !pnet_model_weights(h));
            CHECK(!pnet_model_objectives(h) && !pnet_model_outputs(h));
            pnet_model_free(h);
        }
        if (c != SESSION) pnet_session_free(h);
        if (c != SET) pnet_set_free(h);
        if (c != POINTS) pnet_points_free(h);
        if (c != MAP) pnet_map_free(h);
        if (c != BUCKETS) pnet_buckets_free(h);
    }
    CHECK(pnet_model_inputs(handles[MODEL]) == 1);
    NEED(pnet_session_init(handles[SESSION], &e));
    struct pnet_points_info i = {.size = sizeof i};
    NEED(pnet_points_counts(handles[POINTS], &i, &e));
    CHECK(i.rows == 2);
}

/* A sanitizer ends a program that reads what was freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAY_READ_FREED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define MAY_READ_FREED 0
#endif
#endif
#ifndef MAY_READ_FREED
#define MAY_READ_FREED 1
#endif

/* Mostly, a handle that was freed is no handle any more. */
static void test_freed(void)
{
#if MAY_READ_FREED
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    volatile uintptr_t address = (uintptr_t)m;
    pnet_model_free(m);
    m = (struct pnet_model *)
        address; /* NOLINT(performance-no-int-to-ptr): hides it from warnings */
    REFUSED(pnet_model_peak(m, NULL, 1, &(size_t){0}, &e), PNET_USAGE, "or one that was freed");
    pnet_model_free(m);
#endif
}

/* A struct with a size, and a call that reads or fills it. */
#define SIZED(X)                                                                                   \
    X(pnet_model_options, pnet_model_compile("a", api_text, 1, s, &model, e))                      \
    X(pnet_diagnostic, pnet_model_diagnostic(wrong, 0, s, e))                                      \
    X(pnet_input_info, pnet_model_input(trains, 0, s, e))                                          \
    X(pnet_field_info, pnet_model_field(trains, 0, 0, s, e))                                       \
    X(pnet_weight_info, pnet_model_weight(trains, 0, s, e))                                        \
    X(pnet_objective_info, pnet_model_objective(trains, 0, s, e))                                  \
    X(pnet_result_info, pnet_model_result(handles[MODEL], s, e))                                   \
    X(pnet_output_info, pnet_model_output(trains, 0, s, e))                                        \
    X(pnet_optimizer, pnet_optimizer_default(PNET_OPTIMIZER_SGD, s, e))                            \
    X(pnet_session_options, pnet_session_new(handles[MODEL], s, &session, e))                      \
    X(pnet_allocator, new_session(s, NULL, e))                                                     \
    X(pnet_step_options, pnet_session_step(handles[SESSION], s, NULL, e))                          \
    X(pnet_step_info, pnet_session_step(handles[SESSION], &plain, s, e))                           \
    X(pnet_memory_info, pnet_session_memory(handles[SESSION], s, e))                               \
    X(pnet_voxel_options, pnet_set_voxels(&none, s, &set, e))                                      \
    X(pnet_triplet_options, pnet_set_triplets(&none, &none, &none, 1, 1, 1, s, &set, e))           \
    X(pnet_set_info, pnet_set_counts(handles[SET], s, e))                                          \
    X(pnet_conv_options, pnet_conv_forward(handles[SET], &none, &none, s, &filled, e))             \
    X(pnet_pool_options,                                                                           \
        pnet_pool_forward(handles[SET], PNET_POOLING_SUM, &none, s, &filled, NULL, e))             \
    X(pnet_packed, pnet_set_packed_sizes(handles[SET], s, e))                                      \
    X(pnet_points_options, pnet_points_new(&none, s, &points, e))                                  \
    X(pnet_points_info, pnet_points_counts(handles[POINTS], s, e))                                 \
    X(pnet_near_options, pnet_set_points(handles[POINTS], handles[POINTS], s, &set, e))            \
    X(pnet_map_options, pnet_map_new(handles[POINTS], handles[POINTS], s, &map, e))                \
    X(pnet_map_run, pnet_map_forward(handles[MAP], &none, s, &filled, e))                          \
    X(pnet_buckets_options, pnet_buckets_new(handles[POINTS], s, &buckets, e))                     \
    X(pnet_attend_options, pnet_attend_forward(handles[BUCKETS], &none, s, &filled, e))            \
    X(pnet_loss_options, pnet_loss_workspace(handles[POINTS], handles[POINTS], s, &bytes, e))      \
    X(pnet_loss_bytes, pnet_loss_workspace(handles[POINTS], handles[POINTS], &chamfer, s, e))      \
    X(pnet_loss_run, pnet_loss_forward(handles[POINTS], handles[POINTS], &chamfer, s, &loss, e))

static const struct pnet_array none = {.rows = 0};
static const struct pnet_array_out filled = {.rows = 0};
static const struct pnet_step_options plain = {.size = sizeof plain};
static struct pnet_model *wrong, *trains, *model;
static struct pnet_session *session;
static struct pnet_set *set;
static struct pnet_points *points;
static struct pnet_map *map;
static struct pnet_buckets *buckets;
static struct pnet_loss_options chamfer = {.size = sizeof chamfer};
static struct pnet_loss_bytes bytes = {.size = sizeof bytes};
static float loss;

static enum pnet_status new_session(const struct pnet_allocator *allocator,
    const struct pnet_optimizer *optimizer, struct pnet_error *e)
{
    struct pnet_session_options o = {
        .size = sizeof o, .allocator = allocator, .optimizer = optimizer};
    return pnet_session_new(trains, &o, &session, e);
}

#define DEFINE_SIZED(name, call)                                                                   \
    static enum pnet_status with_##name(void *s, struct pnet_error *e)                             \
    {                                                                                              \
        return call;                                                                               \
    }
#define ENTRY_SIZED(name, call) {#name, sizeof(struct name), with_##name},
SIZED(DEFINE_SIZED)
static const struct sized {
    const char *name;
    size_t size;
    enum pnet_status (*call)(void *s, struct pnet_error *e);
} sized[] = {SIZED(ENTRY_SIZED)};
enum { SIZED_COUNT = sizeof sized / sizeof *sized };

/* Frees what a call made. */
static void drop_made(void)
{
    pnet_buckets_free(buckets);
    pnet_map_free(map);
    pnet_set_free(set);
    pnet_points_free(points);
    pnet_session_free(session);
    pnet_model_free(model);
    buckets = NULL, map = NULL, set = NULL, points = NULL, session = NULL, model = NULL;
}

/* Calls with a struct of zeros that says this of its size. Does the message refuse the size? */
static bool refuses(const struct sized *z, size_t size)
{
    struct pnet_error e = {PNET_OK, ""};
    char part[100];
    memset(nothing, 0, sizeof nothing);
    memcpy(nothing, &size, sizeof size);
    enum pnet_status st = z->call(nothing, &e);
    drop_made();
    snprintf(part, sizeof part, "struct %s: `size` is %zu, expected %zu", z->name, size, z->size);
    return st == PNET_USAGE && strstr(e.message, part) == e.message;
}

/* Sizes below that of this version, and above what a later one may have, are refused before anything is read by them. */
static void test_sizes(void)
{
    size_t mark;
    memcpy(&mark, handles[MODEL], sizeof mark);
    for (const struct sized *z = sized; z < sized + SIZED_COUNT; z++) {
        const size_t wrong_sizes[] = {
            0, 8, z->size - 1, 4097, sizeof nothing, (size_t)1 << 40, SIZE_MAX, mark};
        for (size_t i = 0; i < sizeof wrong_sizes / sizeof *wrong_sizes; i++)
            if (wrong_sizes[i] != z->size)
                CHECKF(refuses(z, wrong_sizes[i]), "struct %s, %zu", z->name, wrong_sizes[i]);
        CHECKF(!refuses(z, z->size) && !refuses(z, 4096), "struct %s", z->name);
    }
    struct pnet_optimizer o = {.size = SIZE_MAX};
    REFUSED(new_session(NULL, &o, &e), PNET_USAGE, "struct pnet_optimizer: `size` is");
}

/* Is every struct of the header that has a size in the table? */
static void test_all_sizes_are_there(void)
{
    static const char *const parts[] = {
        "attend", "base", "losses", "maps", "model", "points", "session", "sets"};
    char path[100], line[500];
    int count = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "include/pnet/%s.h", parts[i]);
        FILE *f = fopen(path, "r");
        CHECKF(f, "%s", path);
        while (f && fgets(line, sizeof line, f)) count += strcmp(line, "    size_t size;\n") == 0;
        if (f) fclose(f);
    }
    CHECKF(count == SIZED_COUNT, "%d structs, %d in the table", count, (int)SIZED_COUNT);
}

int main(void)
{
    static const char text[] = "pnet 1\n?\n";
    const char *const outputs[] = {"y"};
    struct pnet_model_options o = {
        .size = sizeof o, .purpose = PNET_PURPOSE_TRAIN, .outputs = outputs, .output_count = 1};
    make_handles();
    CHECK(pnet_model_compile("a", text, sizeof text - 1, NULL, &wrong, NULL) == PNET_BAD_MODEL);
    NEED(pnet_model_compile("small.pnet", api_text, sizeof api_text - 1, &o, &trains, &e));
    test_arguments();
    test_all_are_there();
    test_without_status();
    test_freed();
    test_sizes();
    test_all_sizes_are_there();
    pnet_model_free(wrong);
    pnet_model_free(trains);
    free_handles();
    return check_end();
}
