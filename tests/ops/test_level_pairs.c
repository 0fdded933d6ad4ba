/* Every layer that goes from one level to another, between all pairs of levels, also those that have the rows of another one:
   points(.., 1), a grid with the cells of its own level, a level itself. Each model that compiles trains a step, and ends. */
#include "tests/ops/case.h"

#include <signal.h>
#include <unistd.h>

enum { SECONDS = 60 }; /* for one model; it takes a few milliseconds */

static const char *const levels[] = {"level(p)", "g[0]", "g[1]", "g[2]", "sample",
    "grid(g[0], 10cm)", "grid(p, 10cm)", "chunks(g[0], 2)", "chunks(p, [2, 4])[1]",
    "grid(chunks(g[0], 2), 20cm)", "points(level(p), 1)", "points(g[0], 1)", "points(g[1], 1)",
    "points(sample, 1)", "points(chunks(g[0], 2), 1)", "points(points(g[0], 1), 1)",
    "points(points(level(p), 1), 3)", "points(points(g[0], 3), 1)", "points(points(sample, 2), 1)",
    "points(points(sample, 1), 1)"};
enum { LEVELS = sizeof levels / sizeof *levels };

static const char *const layers[] = {"pool(mean, to=%s)", "pool(max, to=%s)", "pool(sum, to=%s)",
    "upsample(to=%s)", "upsample(to=%s, kind=inverse_distance)", "expand(to=%s)", "split(to=%s)",
    "interpolate(to=%s)", "interpolate(to=%s, kind=nearest, outside=nearest)",
    "conv(4, kernel=2, to=%s, radius=15cm)", "conv(4, kernel=3, to=%s, radius=15cm)",
    "conv(4, kernel=3, to=%s, knn=3)", "conv(4, kernel=1, to=%s)"};
enum { LAYERS = sizeof layers / sizeof *layers };

static char now[400]; /* the expression that runs, for the alarm */

static void too_long(int number)
{
    (void)number;
    ssize_t written = write(STDERR_FILENO, now, strlen(now));
    written += write(STDERR_FILENO, ": does not end\n", 15);
    _exit(written > 0 ? 1 : 2);
}

static struct pnet_compilation *compile_quietly(const char *expression, const char *tail)
{
    char text[4096];
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    snprintf(text, sizeof text, harness, expression, tail);
    return pnet_compile_text("case.pnet", text, strlen(text), &o);
}

static const int64_t sizes[SAMPLES] = {60, 0, 1, 45};
static const struct pnet_target target = {.where = {PNET_CPU, 0}};

static const char tail[] = "loss l = mse(r, ones(level(r), width(r)) * 0.3)";

/* The bits of what a step makes. */
struct made {
    size_t rows, count; /* of the result: rows, numbers; its numbers */
    float *result;
    size_t grad_count;
    float *grads;
};

/* Trains a step. False: it does not compile. */
static bool train(const char *expression, struct made *m)
{
    snprintf(now, sizeof now, "%s", expression);
    alarm(SECONDS);
    struct pnet_compilation *c = compile_quietly(expression, tail);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    if (!p) {
        pnet_compilation_free(c);
        return false;
    }
    struct pnet_batch *b = make_batch(p, sizes, 42);
    struct pnet_runner *s = open_runner(p, &target, b);
    struct pnet_error e;
    must(pnet_runner_forward(s, 0, true, 5, &e), &e);
    /* the last layer of the net: the loss is the result of the model */
    int result = -1;
    for (int n = 0; n < p->node_count; n++)
        if (!p->nodes[n].dead && strncmp(p->nodes[n].path, "test.out.", 9) == 0)
            result = p->nodes[n].out;
    CHECKF(result >= 0, "%s: no result", expression);
    int64_t rows = 0;
    if (result >= 0) pnet_runner_tensor(s, 0, result, &rows);
    *m = (struct made){.rows = (size_t)rows, .grad_count = (size_t)p->trained_elements};
    if (result >= 0) {
        m->count = (size_t)rows * (size_t)p->tensors[result].type.width;
        m->result = fetch(s, result); /* before backward, which uses its memory again */
    }
    must(pnet_runner_backward(s, 0, 1, false, &e), &e);
    must(pnet_runner_wait(s, &e), &e);
    m->grads = fetch_grads(s);
    for (size_t i = 0; i < m->count; i++)
        if (!isfinite((double)m->result[i])) {
            CHECKF(false, "%s: not finite", expression);
            break;
        }
    close_runner(s);
    pnet_batch_free(b);
    pnet_compilation_free(c);
    alarm(0);
    return true;
}

static void free_made(struct made *m)
{
    free(m->result);
    free(m->grads);
}

/* All layers between all pairs. */
static void test_pairs(void)
{
    int trained = 0, refused = 0;
    for (int a = 0; a < LEVELS; a++)
        for (int b = 0; b < LEVELS; b++)
            for (int l = 0; l < LAYERS; l++) {
                char layer[120], expression[300];
                struct made m;
                snprintf(layer, sizeof layer, layers[l], levels[b]);
                snprintf(expression, sizeof expression,
                    "ones(%s, 4) -> linear(6) -> %s -> linear(3)", levels[a], layer);
                if (!train(expression, &m)) {
                    refused++;
                    continue;
                }
                trained++;
                free_made(&m);
            }
    printf("%d models trained, %d refused\n", trained, refused);
    CHECK(trained > LEVELS * LEVELS);
}

/* A way to points, one for each row, and back changes no bit of the result or of a gradient. */
static void test_one_each(void)
{
    static const char *const from[] = {"level(p)", "g[0]", "g[2]", "sample", "chunks(g[0], 2)"};
    static const char *const ways[] = {"expand(to=points(%s, 1)) -> pool(%s, to=%s)",
        "upsample(to=points(%s, 1)) -> pool(%s, to=%s)",
        "expand(to=points(points(%s, 1), 1)) -> pool(%s, to=%s)",
        "split(to=points(%s, 1)) -> pool(%s, to=%s)"};
    static const char *const kinds[] = {"mean", "max", "sum"};
    for (size_t f = 0; f < sizeof from / sizeof *from; f++) {
        const char *x = strcmp(from[f], "sample") == 0 ? "t" : "p.f -> pool(mean, to=%s)";
        char start[120], plain[240];
        struct made want;
        snprintf(start, sizeof start, x, from[f]);
        snprintf(plain, sizeof plain, "%s -> linear(5)", start);
        CHECKF(train(plain, &want), "%s: does not compile", plain);
        CHECKF(want.count > 0 && want.result[0] != want.result[5], "%s: rows differ", plain);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
            for (size_t k = 0; k < 3; k++) {
                char way[200], there[480];
                struct made got;
                snprintf(way, sizeof way, ways[w], from[f], kinds[k], from[f]);
                snprintf(there, sizeof there, "%s -> linear(5) -> %s", start, way);
                if (!train(there, &got)) {
                    CHECKF(false, "%s: does not compile", there);
                    continue;
                }
                CHECKF(got.rows == want.rows && got.count == want.count &&
                           memcmp(got.result, want.result, want.count * sizeof(float)) == 0,
                    "%s: other values", there);
                CHECKF(got.grad_count == want.grad_count &&
                           memcmp(got.grads, want.grads, want.grad_count * sizeof(float)) == 0,
                    "%s: other gradients", there);
                free_made(&got);
            }
        free_made(&want);
    }
}

/* Row r of so many points for each of `rows` rows belongs to row r / each, whichever levels make the number. */
static void test_products(void)
{
    static const char *const ways[] = {"points(g[0], 6)", "points(points(g[0], 1), 6)",
        "points(points(g[0], 6), 1)", "points(points(points(g[0], 2), 1), 3)"};
    struct made of, want = {0};
    CHECK(train("x -> linear(5)", &of));
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        char expression[200];
        struct made got;
        snprintf(expression, sizeof expression, "x -> linear(5) -> expand(to=%s)", ways[w]);
        if (!train(expression, &got)) {
            CHECKF(false, "%s: does not compile", expression);
            continue;
        }
        CHECKF(got.rows == 6 * of.rows, "%s: %zu rows", expression, got.rows);
        size_t wrong = 0;
        for (size_t i = 0; i < got.count; i++)
            wrong += got.result[i] != of.result[i / 5 / 6 * 5 + i % 5];
        CHECKF(wrong == 0, "%s: %zu values of other rows", expression, wrong);
        if (!want.grads)
            want = got;
        else {
            CHECKF(memcmp(got.grads, want.grads, want.grad_count * sizeof(float)) == 0,
                "%s: other gradients", expression);
            free_made(&got);
        }
    }
    free_made(&of);
    free_made(&want);
}

int main(void)
{
    struct sigaction action = {.sa_handler = too_long};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    test_one_each();
    test_products();
    test_pairs();
    return check_end();
}
