/* Optimisers against the formulas in double, against PyTorch, and for any number of threads. */
#include "kernels/optim.h"
#include "runtime/run/optim.h"
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

/* Two parts with a hole between them and one behind; the second does not decay. */
static const struct pnet_optim_part parts[] = {{0, 60000, true, 1}, {60010, N - 60020, false, 1}};
enum { MAX_CHUNKS = 64 };

/* A training of N weights. */
struct run {
    float *w, *g, *state[2];
    double losses[2];
    struct pnet_optim_chunk chunks[MAX_CHUNKS];
    struct pnet_optim_record record;
    struct pnet_optim_update update;
    void *work;
};

static struct run *new_run(const struct pnet_optim *o)
{
    struct run *r = calloc(1, sizeof *r);
    if (!r) exit(1);
    int64_t chunks = pnet_optim_chunks(o, parts, 2, r->chunks);
    CHECK(chunks == pnet_optim_chunks(o, parts, 2, NULL) && chunks <= MAX_CHUNKS);
    r->w = calloc(N, sizeof *r->w);
    r->g = calloc(N, sizeof *r->g);
    for (int i = 0; i < 2; i++) r->state[i] = calloc(N, sizeof *r->state[i]);
    r->work = malloc(pnet_optim_work(PNET_CPU, chunks));
    if (!r->w || !r->g || !r->state[0] || !r->state[1] || !r->work) exit(1);
    for (int64_t i = 0; i < N; i++) r->w[i] = draw(1, i);
    r->record.loss_scale = 1 / 0.7;
    r->update = (struct pnet_optim_update){.rule = pnet_optim_rule(o),
        .chunks = r->chunks,
        .chunk_count = chunks,
        .g = r->g,
        .w = r->w,
        .losses = r->losses,
        .loss_count = 2,
        .record = &r->record};
    for (int i = 0; i < pnet_optim_state_count(o); i++) r->update.state[i] = r->state[i];
    return r;
}

static void free_run(struct run *r)
{
    free(r->w);
    free(r->g);
    free(r->state[0]);
    free(r->state[1]);
    free(r->work);
    free(r);
}

/* The gradient is too large by 1 / 0.7, and cannot be used between the parts. */
static void do_step(struct run *r, int t)
{
    for (int64_t i = 0; i < N; i++) r->g[i] = draw(100 + (uint32_t)t, i) + 0.5f * r->w[i];
    r->g[60005] = NAN;
    r->record.lr = 0.01 * t;
    pnet_optim_step(PNET_CPU, &r->update, r->work);
    CHECK(!r->record.skipped && r->record.step == t);
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
    struct run *r = new_run(o);
    for (int t = 1; t <= STEPS; t++) do_step(r, t);
    double worst = 0, holes = 0, moved = 0;
    for (int64_t i = 0; i < N; i++) {
        bool first = i < 60000, second = i >= 60010 && i < N - 10;
        if (first || second) {
            worst = fmax(worst, fabs(r->w[i] - follow(o, i, first)));
            moved += r->w[i] != draw(1, i);
        } else {
            holes += r->w[i] != draw(1, i) || r->state[0][i] != 0 || r->state[1][i] != 0;
        }
    }
    CHECKF(worst < 3e-6, "%s: %g from the formula", name, worst);
    CHECKF(holes == 0, "%s: wrote between the parts", name);
    CHECKF(moved > 0.99 * N, "%s: moved only %g", name, moved);
    free_run(r);
}

static void check_threads(const char *name, const struct pnet_optim *o)
{
    struct run *first = new_run(o);
    omp_set_num_threads(1);
    for (int t = 1; t <= STEPS; t++) do_step(first, t);
    for (int threads = 2; threads <= 7; threads += 5) {
        struct run *r = new_run(o);
        omp_set_num_threads(threads);
        for (int t = 1; t <= STEPS; t++) do_step(r, t);
        CHECKF(memcmp(first->w, r->w, N * sizeof *r->w) == 0, "%s, %d threads", name, threads);
        for (int i = 0; i < 2; i++)
            CHECK(memcmp(first->state[i], r->state[i], N * sizeof *r->w) == 0);
        CHECK(first->record.norm == r->record.norm);
        free_run(r);
    }
    omp_set_num_threads(2);
    free_run(first);
}

/* A step with a gradient or a loss that is not finite changes nothing but the count of such. */
static void check_skips(const char *name, const struct pnet_optim *o)
{
    static const int64_t places[] = {0, 4097, 59999, N - 11};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct run *r = new_run(o), *still = new_run(o);
    do_step(r, 1);
    do_step(still, 1);
    int64_t skips = 0;
    for (int kind = 0; kind < 3; kind++)
        for (int place = 0; place < 5; place++) {
            float *at = place < 4 ? &r->g[places[place]] : NULL, kept = at ? *at : 0;
            if (at)
                *at = bad[kind];
            else
                r->losses[kind % 2] = (double)bad[kind];
            pnet_optim_step(PNET_CPU, &r->update, r->work);
            CHECKF(r->record.skipped == 1 && r->record.skips == ++skips && r->record.step == 1,
                "%s: took a step of %g", name, (double)bad[kind]);
            if (at) *at = kept;
            r->losses[0] = r->losses[1] = 0;
        }
    CHECK(memcmp(r->w, still->w, N * sizeof *r->w) == 0);
    for (int i = 0; i < 2; i++) CHECK(memcmp(r->state[i], still->state[i], N * sizeof *r->w) == 0);
    do_step(r, 2);
    do_step(still, 2);
    CHECK(memcmp(r->w, still->w, N * sizeof *r->w) == 0);
    free_run(r);
    free_run(still);
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
        double work;
        struct pnet_optim_chunk all = {0, 4, 1, 1};
        struct pnet_optim_record record = {.lr = rows[r].lr, .loss_scale = 1};
        bool momentum = pnet_optim_state_count(&rows[r].o) > 0;
        struct pnet_optim_update u = {.rule = pnet_optim_rule(&rows[r].o),
            .chunks = &all,
            .chunk_count = 1,
            .g = g,
            .w = w,
            .state = {momentum ? m : NULL, v},
            .record = &record};
        for (int t = 1; t <= 10; t++) {
            for (int i = 0; i < 4; i++) g[i] = (float)((i + 1) * (double)w[i] + sin(t + i));
            pnet_optim_step(PNET_CPU, &u, &work);
        }
        for (int i = 0; i < 4; i++)
            CHECKF(fabs(w[i] - rows[r].w[i]) < 2e-6, "%s: w[%d] = %.9g, PyTorch has %.9g",
                rows[r].name, i, (double)w[i], rows[r].w[i]);
    }
}

/* What one step of plain sgd with rate 1 makes of three weights of 0. */
static struct pnet_optim_record clipped(double clip, float first, double loss_scale, float w[3])
{
    struct pnet_optim o = {.kind = PNET_SGD};
    float g[3] = {first, 4 * (float)loss_scale, 12 * (float)loss_scale};
    double work;
    struct pnet_optim_chunk all = {0, 3, 0, 1};
    struct pnet_optim_record record = {.lr = 1, .clip = clip, .loss_scale = loss_scale};
    struct pnet_optim_update u = {
        pnet_optim_rule(&o), &all, 1, g, w, {NULL, NULL}, NULL, 0, &record, 0};
    w[0] = w[1] = w[2] = 0;
    pnet_optim_step(PNET_CPU, &u, &work);
    return record;
}

/* Squares that were added up before the step are those it goes by, bit by bit, and are not made again. */
static void check_squares_in_advance(void)
{
    struct pnet_optim o = {.kind = PNET_SGD};
    struct run *r = new_run(&o);
    int64_t count = r->update.chunk_count;
    double first;
    CHECK(count > 4);
    do_step(r, 1);
    double norm = r->record.norm;
    pnet_optim_squares(PNET_CPU, &r->update, 0, 1, r->work);
    memcpy(&first, r->work, sizeof first);
    for (int64_t squared = 0; squared <= count; squared += count / 4) {
        memset(r->work, 0xff, pnet_optim_work(PNET_CPU, count));
        pnet_optim_squares(PNET_CPU, &r->update, 0, squared / 2, r->work);
        pnet_optim_squares(PNET_CPU, &r->update, squared / 2, squared - squared / 2, r->work);
        r->update.squared = squared;
        float last = r->g[0];
        if (squared > 0) r->g[0] = 1000; /* too late for the norm */
        pnet_optim_step(PNET_CPU, &r->update, r->work);
        CHECKF(r->record.norm == norm, "%lld chunks squared before: norm %.17g, %.17g",
            (long long)squared, r->record.norm, norm);
        r->g[0] = last;
    }
    CHECK(first > 0 && memcmp(&first, r->work, sizeof first) == 0);
    free_run(r);
}

static void check_norm_and_clip(void)
{
    float w[3];
    /* PyTorch's clip_grad_norm_ with 2 makes 0.46153843 of 3. */
    CHECK(clipped(2, 3, 1, w).norm == 13 && fabs((double)w[0] + 0.4615384340286255) < 1e-7);
    CHECK(clipped(2, 24, 8, w).norm == 13 && fabs((double)w[0] + 0.4615384340286255) < 1e-7);
    CHECK(clipped(13, 3, 1, w).norm == 13 && w[0] == -3 && w[2] == -12);
    CHECK(clipped(0, 3, 1, w).norm == 13 && w[0] == -3 && w[1] == -4);
    CHECK(!clipped(1, 3e38f, 1, w).skipped && w[0] < -0.99f);
    struct pnet_optim o = {.kind = PNET_SGD};
    struct run *r = new_run(&o);
    do_step(r, 1);
    double plain = 0;
    for (int64_t i = 0; i < N - 10; i++)
        if (i < 60000 || i >= 60010) plain += (double)r->g[i] * r->g[i];
    double norm = 0.7 * sqrt(plain);
    CHECK(fabs(r->record.norm - norm) <= 1e-12 * norm);
    free_run(r);
}

/* Parts that follow each other are one stretch unless they decay differently. */
static void check_chunks(void)
{
    struct pnet_optim o = pnet_optim_default(PNET_SGD);
    static const struct pnet_optim_part p[] = {{0, 10, true, 1}, {10, 5000, true, 1},
        {5010, 3, false, 1}, {5020, 0, true, 1}, {5020, 4096, false, 1}};
    static const struct pnet_optim_part rates[] = {
        {0, 10, true, 1}, {10, 20, true, 0.5f}, {30, 5, true, 0.5f}, {35, 5, true, 1}};
    struct pnet_optim_chunk c[8];
    CHECK(pnet_optim_chunks(&o, rates, 4, c) == 3 && c[0].rate == 1 && c[2].rate == 1);
    CHECK(c[1].offset == 10 && c[1].count == 25 && c[1].rate == 0.5f);
    CHECK(pnet_optim_chunks(&o, p, 5, c) == 4);
    CHECK(c[0].offset == 0 && c[0].count == 4096 && c[0].decays);
    CHECK(c[1].offset == 4096 && c[1].count == 5010 - 4096 && c[1].decays);
    CHECK(c[2].offset == 5010 && c[2].count == 3 && !c[2].decays);
    CHECK(c[3].offset == 5020 && c[3].count == 4096 && !c[3].decays);
    o.decay_all = true;
    CHECK(pnet_optim_chunks(&o, p, 5, c) == 3 && c[1].count == 5013 - 4096 && c[2].decays);
    CHECK(pnet_optim_chunks(&o, p, 0, c) == 0);
}

/* A factor of a part is a factor of the learning rate there, decay included, and of nothing else: two parts in one update
   are what two updates with rates of their own make. */
static void check_rates(void)
{
    static const struct pnet_optim kinds[] = {{.kind = PNET_SGD, .weight_decay = 0.1},
        {.kind = PNET_SGD, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
        {.kind = PNET_ADAM, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1},
        {.kind = PNET_ADAMW, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1}};
    enum { HALF = 16 };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        float w[2][2 * HALF], m[2][2 * HALF] = {{0}}, v[2][2 * HALF] = {{0}}, g[2 * HALF];
        double work[4];
        for (int i = 0; i < 2 * HALF; i++) w[0][i] = w[1][i] = draw(3, i);
        struct pnet_optim_chunk both[2] = {{0, HALF, 1, 1}, {HALF, HALF, 1, 0.25f}};
        struct pnet_optim_chunk one[2] = {{0, HALF, 1, 1}, {HALF, HALF, 1, 1}};
        struct pnet_optim_record record[3] = {{.lr = 0.2, .loss_scale = 1},
            {.lr = 0.2, .loss_scale = 1}, {.lr = 0.05, .loss_scale = 1}};
        for (int step = 0; step < 5; step++) {
            for (int i = 0; i < 2 * HALF; i++) g[i] = draw((uint32_t)(10 + step), i);
            for (int u = 0; u < 3; u++) {
                bool momentum = pnet_optim_state_count(&kinds[k]) > 0;
                struct pnet_optim_update update = {.rule = pnet_optim_rule(&kinds[k]),
                    .chunks = u ? &one[u - 1] : both,
                    .chunk_count = u ? 1 : 2,
                    .g = g,
                    .w = w[u > 0],
                    .state = {momentum ? m[u > 0] : NULL, v[u > 0]},
                    .record = &record[u]};
                pnet_optim_step(PNET_CPU, &update, work);
            }
        }
        for (int i = 0; i < 2 * HALF; i++)
            CHECKF(fabsf(w[0][i] - w[1][i]) <= (i < HALF ? 0 : 2e-6f),
                "kind %zu, weight %d: %.9g, %.9g", k, i, (double)w[0][i], (double)w[1][i]);
    }
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
        check_skips(kinds[i].name, &kinds[i].o);
    }
    check_pytorch();
    check_squares_in_advance();
    check_norm_and_clip();
    check_chunks();
    check_rates();
    check_refused();
    return check_end();
}
