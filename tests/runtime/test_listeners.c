/* Listeners of gradients: called in the order in which they were added, with the same ranges in every pass, and what one
   writes the next one reads. */
#include "tests/models/batch.h"
#include "runtime/run/runner.h"

enum { MOST = 64 };

/* What a listener saw: who was called when, and the ranges. */
static struct {
    int who[MOST * 2];
    int64_t begin[MOST * 2], end[MOST * 2];
    int count;
} seen;

static int64_t place; /* of the first gradient that is not 0 */

struct listener {
    struct pnet_runner *runner;
    int who;
    float factor; /* gradients are multiplied by it; 0: not */
    double first; /* the gradient at `place`, as this listener reads it */
};

static void ready(void *context, int64_t begin, int64_t end)
{
    struct listener *l = context;
    float *grads = pnet_runner_grads(l->runner);
    if (begin <= place && place < end) l->first = (double)grads[place];
    for (int64_t i = begin; i < end && l->factor != 0; i++) grads[i] *= l->factor;
    if (seen.count < MOST * 2) {
        seen.who[seen.count] = l->who;
        seen.begin[seen.count] = begin;
        seen.end[seen.count] = end;
    }
    seen.count++;
}

static void pass(struct pnet_runner *s)
{
    struct pnet_error e;
    seen.count = 0;
    need(pnet_runner_forward(s, 0, true, 1, &e), &e, "forward");
    need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
    need(pnet_runner_wait(s, &e), &e, "waiting");
}

static float first_gradient(struct pnet_runner *s)
{
    return pnet_runner_grads(s)[place];
}

static void check_order(struct pnet_runner *s)
{
    struct listener a = {s, 1, 3, 0}, b = {s, 2, 0, 0};
    pass(s);
    CHECK(seen.count == 0);
    while (place < pnet_runner_plan(s)->trained_elements && first_gradient(s) == 0) place++;
    double alone = (double)first_gradient(s);
    CHECK(alone != 0);
    CHECK(pnet_runner_listen(s, ready, &a) && pnet_runner_listen(s, ready, &b));
    pass(s);
    int ranges = seen.count / 2;
    CHECKF(seen.count % 2 == 0 && ranges >= 2 && ranges <= MOST, "%d calls", seen.count);
    for (int r = 0; r < ranges; r++) {
        CHECK(seen.who[2 * r] == 1 && seen.who[2 * r + 1] == 2);
        CHECK(seen.begin[2 * r] == seen.begin[2 * r + 1] && seen.end[2 * r] == seen.end[2 * r + 1]);
        CHECK(seen.begin[2 * r] == (r ? seen.end[2 * r - 1] : 0));
        CHECK(seen.end[2 * r] > seen.begin[2 * r]);
    }
    CHECK(a.first == alone && b.first == (double)(float)(3 * alone));
    int64_t end = seen.end[seen.count - 1];
    pass(s);
    CHECK(seen.count == 2 * ranges && seen.end[seen.count - 1] == end);
    /* the same one again goes to the end of the list */
    CHECK(pnet_runner_listen(s, ready, &a));
    pass(s);
    CHECK(seen.count == 2 * ranges && seen.who[0] == 2 && seen.who[1] == 1);
    CHECK(b.first == alone);
    pnet_runner_unlisten(s, ready, &b);
    pass(s);
    CHECK(seen.count == ranges && seen.who[0] == 1);
    pnet_runner_unlisten(s, ready, &a);
    pass(s);
    CHECK(seen.count == 0 && (double)first_gradient(s) == alone);
}

static void check_limit(struct pnet_runner *s)
{
    struct listener many[PNET_LISTENERS + 1];
    for (int i = 0; i <= PNET_LISTENERS; i++) {
        many[i] = (struct listener){s, i, 0, 0};
        CHECK(pnet_runner_listen(s, ready, &many[i]) == (i < PNET_LISTENERS));
    }
    for (int i = 0; i <= PNET_LISTENERS; i++) pnet_runner_unlisten(s, ready, &many[i]);
}

int main(void)
{
    const char *model =
        "models/resnet18.pnet"; /* so many parameters that there are several ranges */
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    struct pnet_compilation *c = need_plan(pnet_compile_file(model, &o), model);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct cloud cloud = cloud_corner(200, 2, 1);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    struct pnet_runner_options so = {.slots = 1, .seed = 5};
    struct pnet_runner *s;
    struct pnet_error e;
    need(pnet_runner_new(need_bound(p, (struct pnet_device){0}, PNET_FP32), &so, &s, &e), &e,
        "runner");
    need(pnet_runner_init_params(s, &e), &e, "parameters");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    check_order(s);
    check_limit(s);
    runner_end(s);
    pnet_batch_free(b);
    cloud_free(&cloud);
    pnet_compilation_free(c);
    return check_end();
}
