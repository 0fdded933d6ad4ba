/* Optimisers against the formulas in double, against PyTorch, and for any number of threads. */
#include "kernels/cpu/optim.h"
#include "runtime/optim.h"
#include "tests/check.h"

#include <omp.h>

enum { N = 100003, STEPS = 7 };

/* A cheap number in -1 .. 1 for every i. */
static float draw(uint32_t seed, int64_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + seed * 40503u;
    x = (x ^ x >> 15) * 2246822519u;
    x = (x ^ x >> 13) * 3266489917u;
    return (float)((double)(x ^ x >> 16) / 2147483648.0 - 1);
}

struct run {
    float *w, *g, *state[2];
};

static struct run new_run(void)
{
    struct run r;
    r.w = calloc(N, sizeof *r.w);
    r.g = calloc(N, sizeof *r.g);
    for (int i = 0; i < 2; i++) r.state[i] = calloc(N, sizeof *r.state[i]);
    if (!r.w || !r.g || !r.state[0] || !r.state[1]) exit(1);
    for (int64_t i = 0; i < N; i++) r.w[i] = draw(1, i);
    return r;
}

static void free_run(struct run r)
{
    free(r.w);
    free(r.g);
    free(r.state[0]);
    free(r.state[1]);
}

/* Two parts with a hole between them and one behind; the second does not decay. */
static const struct pnet_optim_part parts[] = {{0, 60000, true}, {60010, N - 60020, false}};

static void do_step(const struct pnet_optim *o, struct run *r, int t)
{
    for (int64_t i = 0; i < N; i++) r->g[i] = draw(100 + (uint32_t)t, i) + 0.5f * r->w[i];
    pnet_optim_step_cpu(o, t, 0.01 * t, 0.7f, parts, 2, r->g, r->w, r->state);
}

/* One element over all steps, in double, textbook formulas: no factors taken out. */
static double follow(const struct pnet_optim *o, int64_t i, bool decays)
{
    double w = draw(1, i), m = 0, v = 0, decay = decays || o->decay_all ? o->weight_decay : 0;
    for (int t = 1; t <= STEPS; t++) {
        double lr = 0.01 * t, g = 0.7 * (draw(100 + (uint32_t)t, i) + 0.5 * w);
        if (o->kind == PNET_ADAMW)
            w -= lr * decay * w;
        else
            g += decay * w;
        if (o->kind == PNET_SGD) {
            m = o->momentum * m + g;
            w -= lr * (o->nesterov ? g + o->momentum * m : m);
        } else {
            m = o->beta1 * m + (1 - o->beta1) * g;
            v = o->beta2 * v + (1 - o->beta2) * g * g;
            double m_hat = m / (1 - pow(o->beta1, t)), v_hat = v / (1 - pow(o->beta2, t));
            w -= lr * m_hat / (sqrt(v_hat) + o->eps);
        }
    }
    return w;
}

static void check_formula(const char *name, const struct pnet_optim *o)
{
    struct pnet_error e;
    CHECK(pnet_optim_check(o, &e) == PNET_OK);
    struct run r = new_run();
    for (int t = 1; t <= STEPS; t++) do_step(o, &r, t);
    double worst = 0, holes = 0, moved = 0;
    for (int64_t i = 0; i < N; i++) {
        bool first = i < 60000, second = i >= 60010 && i < N - 10;
        if (first || second) {
            worst = fmax(worst, fabs(r.w[i] - follow(o, i, first)));
            moved += r.w[i] != draw(1, i);
        } else {
            holes += r.w[i] != draw(1, i) || r.state[0][i] != 0 || r.state[1][i] != 0;
        }
    }
    CHECKF(worst < 3e-6, "%s: %g from the formula", name, worst);
    CHECKF(holes == 0, "%s: wrote between the parts", name);
    CHECKF(moved > 0.99 * N, "%s: moved only %g", name, moved);
    free_run(r);
}

static void check_threads(const char *name, const struct pnet_optim *o)
{
    struct run first = new_run();
    omp_set_num_threads(1);
    for (int t = 1; t <= STEPS; t++) do_step(o, &first, t);
    double sum = pnet_cpu_square_sum(N, first.w);
    for (int threads = 2; threads <= 7; threads += 5) {
        struct run r = new_run();
        omp_set_num_threads(threads);
        for (int t = 1; t <= STEPS; t++) do_step(o, &r, t);
        CHECKF(memcmp(first.w, r.w, N * sizeof *r.w) == 0, "%s, %d threads", name, threads);
        for (int i = 0; i < 2; i++) CHECK(memcmp(first.state[i], r.state[i], N * sizeof *r.w) == 0);
        CHECK(pnet_cpu_square_sum(N, r.w) == sum);
        free_run(r);
    }
    omp_set_num_threads(2);
    free_run(first);
}

/* What PyTorch 2.15 (float64) makes of four weights in ten steps, with the gradient
   (i + 1) w[i] + sin(t + i). */
static void check_pytorch(void)
{
    static const struct {
        const char *name;
        struct pnet_optim o;
        double lr;
        double w[4];
    } rows[] = {
        {"sgd", {.kind = PNET_SGD}, 0.01,
            {1.3433975828387035, -0.19945807024476064, 2.2292288781488296, 0.01319179272274325}},
        {"sgd momentum", {.kind = PNET_SGD, .momentum = 0.9, .weight_decay = 0.1}, 0.01,
            {0.8186993557428115, -0.076610961565098307, 0.12307695965566132, 0.0360837136661325}},
        {"sgd nesterov",
            {.kind = PNET_SGD, .momentum = 0.8, .weight_decay = 0.05, .nesterov = true}, 0.01,
            {0.95316429241595757, -0.10246189490332604, 0.71179532463265538, 0.029062203035215908}},
        {"adam", {.kind = PNET_ADAM, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1},
            0.02,
            {1.3157943061680157, -0.17281417339342867, 2.8005355151991704, 0.045328685113640202}},
        {"adamw",
            {.kind = PNET_ADAMW, .beta1 = 0.85, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.3},
            0.02,
            {1.2388637278846553, -0.16327843255714566, 2.6313793566026695, 0.040296281592846817}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        float w[4] = {1.5f, -0.25f, 3, 0.001f}, g[4], m[4] = {0}, v[4] = {0};
        float *state[2] = {m, v};
        struct pnet_optim_part all = {0, 4, true};
        for (int t = 1; t <= 10; t++) {
            for (int i = 0; i < 4; i++) g[i] = (float)((i + 1) * (double)w[i] + sin(t + i));
            pnet_optim_step_cpu(&rows[r].o, t, rows[r].lr, 1, &all, 1, g, w, state);
        }
        for (int i = 0; i < 4; i++)
            CHECKF(fabs(w[i] - rows[r].w[i]) < 2e-6, "%s: w[%d] = %.9g, PyTorch has %.9g",
                rows[r].name, i, (double)w[i], rows[r].w[i]);
    }
}

static void check_norm_and_clip(void)
{
    struct run r = new_run();
    for (int64_t n = 0; n <= N; n = n * 3 + 1) {
        double plain = 0;
        for (int64_t i = 0; i < n; i++) plain += (double)r.w[i] * r.w[i];
        CHECK(fabs(pnet_cpu_square_sum(n, r.w) - plain) <= 1e-12 * plain);
    }
    static const int64_t places[] = {0, 1, 4097, N - 1};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        float kept = r.w[places[p]];
        r.w[places[p]] = NAN;
        CHECK(!isfinite(pnet_cpu_square_sum(N, r.w)));
        r.w[places[p]] = -INFINITY;
        CHECK(!isfinite(pnet_cpu_square_sum(N, r.w)));
        r.w[places[p]] = 3e38f;
        CHECK(isfinite(pnet_cpu_square_sum(N, r.w)));
        r.w[places[p]] = kept;
    }
    free_run(r);
    float g[3] = {3, 4, 12};
    double norm = sqrt(pnet_cpu_square_sum(3, g));
    CHECK(norm == 13);
    /* PyTorch's clip_grad_norm_ with 2 makes 0.46153843 of 3. */
    CHECK(fabs(3 * (double)pnet_optim_clip(norm, 2) - 0.4615384340286255) < 1e-7);
    CHECK(pnet_optim_clip(norm, 13) == 1 && pnet_optim_clip(norm, 0) == 1);
    CHECK(pnet_optim_clip(0, 1) == 1);
}

/* The step in one piece: the same bits as the parts of it, and no step at all where the gradient or
   a loss cannot be used. The hole between the parts holds NaN. */
static void check_update(const char *name, const struct pnet_optim *o)
{
    struct run whole = new_run(), apart = new_run();
    struct pnet_optim_chunk chunks[64];
    int64_t chunk_count = pnet_optim_chunks(o, parts, 2, chunks);
    double losses[2] = {1, 2};
    struct pnet_optim_record r = {.clip = 20, .loss_scale = 8};
    struct pnet_optim_update u = {.rule = pnet_optim_rule(o),
        .chunks = chunks,
        .chunk_count = chunk_count,
        .g = whole.g,
        .w = whole.w,
        .state = {pnet_optim_state_count(o) > 0 ? whole.state[0] : NULL, whole.state[1]},
        .losses = losses,
        .loss_count = 2,
        .record = &r};
    void *work = malloc(pnet_optim_work(PNET_CPU, chunk_count));
    CHECK(work && chunk_count == pnet_optim_chunks(o, parts, 2, NULL) && chunk_count <= 64);
    for (int t = 1; t <= STEPS; t++) {
        for (int64_t i = 0; i < N; i++)
            whole.g[i] = apart.g[i] = 8 * (draw(100 + (uint32_t)t, i) + 0.5f * apart.w[i]);
        whole.g[60005] = NAN;
        r.lr = 0.01 * t;
        for (int bad = 0; bad < 2; bad++) {
            float kept = whole.g[70000];
            if (bad)
                losses[1] = INFINITY;
            else
                whole.g[70000] = NAN;
            pnet_optim_step(PNET_CPU, &u, work);
            CHECK(r.skipped == 1 && r.skips == 2 * t - 1 + bad && r.step == t - 1);
            losses[1] = 2;
            whole.g[70000] = kept;
        }
        pnet_optim_step(PNET_CPU, &u, work);
        double norm = sqrt(pnet_cpu_square_sum(60000, apart.g) +
                           pnet_cpu_square_sum(N - 60020, apart.g + 60010)) /
                      8;
        CHECK(r.skipped == 0 && r.step == t && fabs(r.norm - norm) <= 1e-12 * norm && norm > 20);
        float scale = (float)(pnet_clip_factor(r.norm, 20) / 8);
        pnet_optim_step_cpu(o, t, r.lr, scale, parts, 2, apart.g, apart.w, apart.state);
        CHECKF(memcmp(whole.w, apart.w, N * sizeof *apart.w) == 0, "%s, step %d", name, t);
    }
    for (int i = 0; i < pnet_optim_state_count(o); i++)
        CHECK(memcmp(whole.state[i], apart.state[i], N * sizeof(float)) == 0);
    free(work);
    free_run(whole);
    free_run(apart);
}

/* Parts that follow each other are one stretch unless they decay differently. */
static void check_chunks(void)
{
    struct pnet_optim o = pnet_optim_default(PNET_SGD);
    static const struct pnet_optim_part p[] = {
        {0, 10, true}, {10, 5000, true}, {5010, 3, false}, {5020, 0, true}, {5020, 4096, false}};
    struct pnet_optim_chunk c[8];
    CHECK(pnet_optim_chunks(&o, p, 5, c) == 4);
    CHECK(c[0].offset == 0 && c[0].count == 4096 && c[0].decays);
    CHECK(c[1].offset == 4096 && c[1].count == 5010 - 4096 && c[1].decays);
    CHECK(c[2].offset == 5010 && c[2].count == 3 && !c[2].decays);
    CHECK(c[3].offset == 5020 && c[3].count == 4096 && !c[3].decays);
    o.decay_all = true;
    CHECK(pnet_optim_chunks(&o, p, 5, c) == 3 && c[1].count == 5013 - 4096 && c[2].decays);
    CHECK(pnet_optim_chunks(&o, p, 0, c) == 0);
}

static void check_refused(void)
{
    struct pnet_error e;
    struct pnet_optim o = pnet_optim_default(PNET_SGD);
    CHECK(pnet_optim_check(&o, &e) == PNET_OK && pnet_optim_state_count(&o) == 1);
    o.momentum = 1;
    CHECK(pnet_optim_check(&o, &e) == PNET_USAGE && strstr(e.message, "momentum"));
    o.momentum = 0;
    CHECK(pnet_optim_state_count(&o) == 0);
    o.nesterov = true;
    CHECK(pnet_optim_check(&o, &e) == PNET_USAGE && strstr(e.message, "nesterov"));
    o = pnet_optim_default(PNET_ADAMW);
    CHECK(pnet_optim_check(&o, &e) == PNET_OK && pnet_optim_state_count(&o) == 2);
    CHECK(o.weight_decay == 0.01);
    o.beta2 = NAN;
    CHECK(pnet_optim_check(&o, &e) == PNET_USAGE && strstr(e.message, "beta2"));
    o = pnet_optim_default(PNET_ADAM);
    o.eps = 0;
    CHECK(pnet_optim_check(&o, &e) == PNET_USAGE && strstr(e.message, "eps"));
    o = pnet_optim_default(PNET_ADAM);
    o.weight_decay = -1;
    CHECK(pnet_optim_check(&o, &e) == PNET_USAGE && strstr(e.message, "weight_decay"));
}

int main(void)
{
    omp_set_dynamic(0);
    static const struct {
        const char *name;
        struct pnet_optim o;
    } kinds[] = {
        {"sgd", {.kind = PNET_SGD, .weight_decay = 0.1}},
        {"momentum", {.kind = PNET_SGD, .momentum = 0.9, .weight_decay = 0.1}},
        {"nesterov", {.kind = PNET_SGD, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}},
        {"decay all", {.kind = PNET_SGD, .momentum = 0.5, .weight_decay = 0.2, .decay_all = true}},
        {"adam",
            {.kind = PNET_ADAM, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1}},
        {"adamw",
            {.kind = PNET_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-3, .weight_decay = 0.1}},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        check_formula(kinds[i].name, &kinds[i].o);
        check_threads(kinds[i].name, &kinds[i].o);
        check_update(kinds[i].name, &kinds[i].o);
    }
    check_pytorch();
    check_norm_and_clip();
    check_chunks();
    check_refused();
    return check_end();
}
