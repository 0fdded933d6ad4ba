/* Steps may run in every order in which each waits for what its memory says it has to wait for: no bit of a training
   differs. And a GPU's layout keeps memory apart that steps touch which may run at once, for no more than that may cost. */
#include "runtime/run/peak.h"
#include "tests/models/batch.h"

struct setup {
    const char *model;
    const char *set; /* or NULL */
    unsigned degrade;
    const char *text; /* of the model; NULL: in the file of that name */
};

static struct pnet_compilation *compile(const struct setup *u)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING,
        .degrade = u->degrade,
        .sets = &u->set,
        .set_count = u->set ? 1 : 0};
    return need_plan(u->text ? pnet_compile_text(u->model, u->text, strlen(u->text), &o)
                             : pnet_compile_file(u->model, &o),
        u->model);
}

/* The plan with memory for each tensor that it shares with no other one at any time: what waits then does so for what it
   reads, not for where it lies. Owns its tensors. */
static struct pnet_plan roomy_plan(const struct pnet_plan *p)
{
    struct pnet_plan roomy = *p;
    size_t bytes = (size_t)p->tensor_count * sizeof *p->tensors;
    roomy.tensors = must(malloc(bytes + 1));
    memcpy(roomy.tensors, p->tensors, bytes);
    for (int t = 0; t < p->tensor_count; t++) {
        struct pnet_plan_tensor *x = &roomy.tensors[t];
        if (x->first < 0 || x->role == PNET_ROLE_INPUT) continue;
        /* a runner knows the gradients of losses by where they begin */
        if (x->first != p->forward_steps) x->first = 0;
        x->last = p->step_count - 1;
        x->shares = t;
    }
    return roomy;
}

/* What a training gives: losses, gradients, parameters with running statistics. Owns its numbers. */
struct outcome {
    float *numbers; /* [losses][trained_elements][param_elements] */
    int64_t losses, count;
};

static struct outcome outcome_of(struct pnet_runner *s)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    struct outcome o = {.count = p->objective_count + p->trained_elements + p->param_elements};
    struct pnet_error e;
    o.numbers = must(calloc((size_t)o.count + 1, sizeof *o.numbers));
    for (int i = 0; i < p->objective_count; i++)
        if (!p->objectives[i].metric)
            o.numbers[o.losses++] = (float)pnet_runner_objective(s, i, NULL);
    float *grads = o.numbers + p->objective_count, *params = grads + p->trained_elements;
    need(pnet_runner_read(s, PNET_BLOCK_GRADS, 0, p->trained_elements, grads, &e), &e, "reading");
    need(pnet_runner_read(s, PNET_BLOCK_PARAMS, 0, p->param_elements, params, &e), &e, "reading");
    return o;
}

static int64_t count_differing(const struct outcome *a, const struct outcome *b)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < a->count; i++)
        differ += memcmp(a->numbers + i, b->numbers + i, sizeof *a->numbers) != 0;
    return differ;
}

static int64_t count_usable(const struct pnet_plan *p, const struct outcome *o)
{
    int64_t usable = 0;
    for (int64_t i = 0; i < p->trained_elements; i++) {
        float g = o->numbers[p->objective_count + i];
        usable += isfinite(g) && g != 0;
    }
    return usable;
}

/* Nothing is left of the run before. `params` [param_elements] */
static void reset(struct pnet_runner *s, const float *params)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    float *none = must(malloc((size_t)p->trained_elements * sizeof *none + 1));
    struct pnet_error e;
    for (int64_t i = 0; i < p->trained_elements; i++) none[i] = NAN;
    need(pnet_runner_write(s, PNET_BLOCK_PARAMS, 0, p->param_elements, params, &e), &e, "writing");
    need(pnet_runner_write(s, PNET_BLOCK_GRADS, 0, p->trained_elements, none, &e), &e, "writing");
    pnet_runner_poison(s);
    free(none);
}

/* What the parts of a step touch but the workspace: here each step has one to itself. */
static void touched_by(
    const struct pnet_runner *s, int step, struct pnet_touched parts[PNET_STEP_PARTS])
{
    struct pnet_exec x;
    pnet_runner_exec(s, 0, step, true, &x);
    pnet_runner_touches(s, step, parts);
    for (int k = 0; k < PNET_STEP_PARTS; k++) {
        int kept = 0;
        for (int i = 0; i < parts[k].count; i++)
            if (!x.work || parts[k].at[i].begin != (uintptr_t)x.work)
                parts[k].at[kept++] = parts[k].at[i];
        parts[k].count = kept;
    }
}

/* Puts the steps first .. last - 1 in an order in which each comes behind those it waits for: drawn by the seed, or, with
   0, the last ones as early as can be. Returns how many pairs are turned around. */
static int64_t order_steps(
    const struct pnet_runner *s, int first, int last, uint64_t seed, int *order)
{
    const struct pnet_rand draws = {.seed = seed, .purpose = PNET_DRAW_TEST};
    const int count = last - first;
    struct pnet_waits *w = must(pnet_waits_new(count));
    int *others = must(calloc((size_t)count * PNET_STEP_PARTS + 1, sizeof *others));
    bool *done = must(calloc((size_t)count + 1, sizeof *done));
    int *ready = must(calloc((size_t)count + 1, sizeof *ready));
    int64_t turned = 0;
    for (int i = 0; i < count; i++) {
        struct pnet_touched parts[PNET_STEP_PARTS];
        touched_by(s, first + i, parts);
        pnet_waits_add(w, parts, others);
    }
    for (int n = 0; n < count; n++) {
        int choices = 0;
        for (int i = 0; i < count; i++) {
            bool waits = done[i];
            for (int k = 0; k < i * PNET_STEP_PARTS && !waits; k++)
                waits = !done[k / PNET_STEP_PARTS] && pnet_waits_ordered(w, k, i * PNET_STEP_PARTS);
            if (!waits) ready[choices++] = i;
        }
        int at =
            seed ? (int)(pnet_rand_bits(&draws, (uint64_t)n) % (uint32_t)choices) : choices - 1;
        for (int i = 0; i < ready[at]; i++) turned += !done[i];
        done[ready[at]] = true;
        order[n] = first + ready[at];
    }
    pnet_waits_free(w);
    free(others);
    free(done);
    free(ready);
    return turned;
}

/* The gradient of each loss with respect to itself. */
static void seed_gradients(const struct pnet_runner *s)
{
    static const float one = 1;
    const struct pnet_plan *p = pnet_runner_plan(s);
    for (int i = p->forward_steps; i < p->step_count; i++)
        for (int k = 0; k < p->objective_count; k++) {
            struct pnet_exec x;
            if (p->objectives[k].metric ||
                p->tensors[p->steps[i].gout].of != p->objectives[k].tensor)
                continue;
            pnet_runner_exec(s, 0, i, true, &x);
            memcpy(x.gout.data, &one, sizeof one);
        }
}

/* One step, with a workspace of its own: what another step left in there, or leaves, is nothing to it. */
static void run_apart(const struct pnet_runner *s, int step)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    const struct pnet_op *op = p->nodes[p->steps[step].node].op;
    struct pnet_exec x;
    if (op->class_ == PNET_METRIC) return;
    pnet_runner_exec(s, 0, step, true, &x);
    void *work = must(aligned_alloc(64, x.work_bytes + 64));
    memset(work, 0xff, x.work_bytes);
    if (x.work) x.work = work;
    (p->steps[step].backward ? op->backward : op->forward)(&x);
    free(work);
}

/* `apart`: tensors and workspaces may lie on each other. */
static void run(const struct pnet_runner *s, const int *order, bool apart)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    for (int i = 0; i < p->step_count; i++) {
        if (i == p->forward_steps) seed_gradients(s);
        if (apart)
            run_apart(s, order[i]);
        else
            pnet_runner_run_step(s, 0, order[i], true, false);
    }
}

static struct outcome run_in_order(struct pnet_runner *s, const float *params)
{
    struct pnet_error e;
    reset(s, params);
    need(pnet_runner_forward(s, 0, true, 1, &e), &e, "forward");
    need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
    need(pnet_runner_wait(s, &e), &e, "waiting");
    return outcome_of(s);
}

/* Tensors of a roomy plan never lie where another step has its workspace. Returns how many pairs of steps were turned
   around. */
static int64_t test_orders(
    const struct pnet_plan *p, const struct setup *u, bool roomy, const struct cloud clouds[2])
{
    enum { ORDERS = 2 };
    struct pnet_runner_options o = {.slots = 1, .seed = 5};
    struct pnet_runner *s;
    struct pnet_error e;
    float *params = must(malloc((size_t)p->param_elements * sizeof *params + 1));
    struct pnet_bound *bound = need_bound(p, (struct pnet_device){0}, PNET_FP32);
    need(pnet_runner_new(bound, &o, &s, &e), &e, "runner");
    need(pnet_runner_init_params(s, &e), &e, "parameters");
    need(pnet_runner_read(s, PNET_BLOCK_PARAMS, 0, p->param_elements, params, &e), &e, "reading");
    struct pnet_batch *b = batch_of(p, clouds, 2);
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    need(pnet_runner_forward(s, 0, true, 1, &e), &e, "forward"); /* makes the layout */
    struct outcome want = run_in_order(s, params);
    int *order = must(calloc((size_t)p->step_count + 1, sizeof *order));
    int64_t turned = 0;
    CHECKF(count_usable(p, &want) * 20 > p->trained_elements, "%s: %lld gradients of %lld",
        u->model, (long long)count_usable(p, &want), (long long)p->trained_elements);
    for (uint64_t seed = 0; seed < ORDERS; seed++) {
        turned += order_steps(s, 0, p->forward_steps, seed, order);
        turned += order_steps(s, p->forward_steps, p->step_count, seed, order + p->forward_steps);
        reset(s, params);
        run(s, order, !roomy);
        struct outcome got = outcome_of(s);
        CHECKF(count_differing(&want, &got) == 0,
            "%s, degraded %u, roomy %d, order %d: %lld differ", u->model, u->degrade, roomy,
            (int)seed, (long long)count_differing(&want, &got));
        free(got.numbers);
    }
    free(order);
    free(params);
    free(want.numbers);
    pnet_batch_free(b);
    runner_end(s);
    return turned;
}

/* Returns how many more pairs are turned around where there is room. */
static int64_t test_touched(const struct setup *u, const struct cloud clouds[2])
{
    struct pnet_compilation *compiled = compile(u);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct pnet_plan roomy = roomy_plan(p);
    int64_t tight = test_orders(p, u, false, clouds), wide = test_orders(&roomy, u, true, clouds);
    printf("%s, degraded %u: %d steps, turned around %lld, with room %lld\n", u->model, u->degrade,
        p->step_count, (long long)tight, (long long)wide);
    CHECKF(tight > 0 && wide >= tight, "%s: %lld pairs with room, %lld without", u->model,
        (long long)wide, (long long)tight);
    free(roomy.tensors);
    pnet_compilation_free(compiled);
    return wide - tight;
}

/* A piece of the arena that a layout places. */
struct block {
    size_t bytes, offset;
    int first, last; /* steps */
    int index;       /* tensor, or tensor_count + step */
};

/* What layouts of a plan are checked with. */
struct blocks {
    struct block *at; /* [count], by index; bytes 0: not there */
    int count, parts;
    struct pnet_touched *touched; /* [parts] */
    bool *before; /* [parts][parts]: the first one is over before the second one begins */
    bool *apart;  /* [count][count]: must not overlap */
};

enum { PLACES = 1 << 20 };

/* Objects of a kind one behind the other, each a byte long. */
static struct pnet_stretch symbol(void *context, enum pnet_object object, int index)
{
    uintptr_t at = (uintptr_t)object * PLACES + (uintptr_t)index;
    (void)context;
    return (struct pnet_stretch){at, at + 1, false};
}

/* The block of what symbol() gave; -1: in no arena. */
static int block_of(const struct pnet_plan *p, const struct pnet_stretch *x)
{
    int object = (int)(x->begin / PLACES), index = (int)(x->begin % PLACES);
    return object == PNET_OBJECT_TENSOR ? index
           : object == PNET_OBJECT_WORK ? p->tensor_count + index
                                        : -1;
}

static bool meets(const struct pnet_touched *a, const struct pnet_touched *b)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++)
            if (a->at[i].begin == b->at[k].begin && (a->at[i].written || b->at[k].written))
                return true;
    return false;
}

static void order_parts(struct blocks *b)
{
    size_t n = (size_t)b->parts;
    for (size_t part = 0; part < n; part++) {
        size_t step = part - part % PNET_STEP_PARTS;
        for (size_t other = 0; other < step; other++) {
            if (!meets(&b->touched[step], &b->touched[other]) &&
                !meets(&b->touched[step + 1], &b->touched[other]))
                continue;
            b->before[other * n + part] = true;
            for (size_t i = 0; i < other; i++) b->before[i * n + part] |= b->before[i * n + other];
        }
    }
}

static struct blocks blocks_of(const struct pnet_plan *p, const struct pnet_layout *l)
{
    struct blocks b = {
        .count = p->tensor_count + p->step_count, .parts = p->step_count * PNET_STEP_PARTS};
    size_t n = (size_t)b.count, parts = (size_t)b.parts;
    b.at = must(calloc(n + 1, sizeof *b.at));
    b.touched = must(calloc(parts + 1, sizeof *b.touched));
    b.before = must(calloc(parts * parts + 1, sizeof *b.before));
    b.apart = must(calloc(n * n + 1, sizeof *b.apart));
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *x = &p->tensors[t];
        bool own = x->first >= 0 && x->role != PNET_ROLE_INPUT && x->shares == t;
        b.at[t] = (struct block){own ? l->bytes[t] : 0, 0, x->first, x->last, t};
    }
    for (int s = 0; s < p->step_count; s++)
        b.at[p->tensor_count + s] = (struct block){l->work_bytes[s], 0, s, s, p->tensor_count + s};
    for (int i = 0; i < b.parts; i++)
        pnet_step_touches(p, i / PNET_STEP_PARTS, i % PNET_STEP_PARTS, symbol, NULL, &b.touched[i]);
    order_parts(&b);
    return b;
}

static void blocks_free(struct blocks *b)
{
    free(b->at);
    free(b->touched);
    free(b->before);
    free(b->apart);
}

/* Blocks that are needed at the same step, and those that unordered parts of steps not farther than `reach` from each other
   touch; reach -1: the first ones alone. */
static void keep_apart(const struct pnet_plan *p, struct blocks *b, int reach)
{
    const size_t n = (size_t)b->count, parts = (size_t)b->parts;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            b->apart[i * n + k] =
                b->at[i].first <= b->at[k].last && b->at[k].first <= b->at[i].last;
    for (size_t i = 0; i < parts; i++)
        for (size_t k = 0; k < parts; k++) {
            if (abs((int)(i / PNET_STEP_PARTS) - (int)(k / PNET_STEP_PARTS)) > reach ||
                b->before[i * parts + k] || b->before[k * parts + i])
                continue;
            const struct pnet_touched *x = &b->touched[i], *y = &b->touched[k];
            for (int f = 0; f < x->count; f++)
                for (int g = 0; g < y->count; g++) {
                    int u = block_of(p, &x->at[f]), v = block_of(p, &y->at[g]);
                    if (u >= 0 && v >= 0)
                        b->apart[(size_t)u * n + (size_t)v] = b->apart[(size_t)v * n + (size_t)u] =
                            true;
                }
        }
}

static bool overlap(const struct blocks *b, const struct block *x, const struct block *y)
{
    return b->apart[(size_t)x->index * (size_t)b->count + (size_t)y->index] &&
           x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* Pairs of blocks of the layout that lie on each other although they are to be kept apart. */
static int count_overlaps(
    const struct pnet_plan *p, const struct pnet_layout *l, const struct blocks *b)
{
    int found = 0;
    for (int i = 0; i < b->count; i++) {
        struct block *x = &b->at[i];
        x->offset = i < p->tensor_count ? l->offset[i] : l->work[i - p->tensor_count];
        CHECK(!x->bytes || x->offset + x->bytes <= l->total);
        for (int k = 0; k < i; k++) found += x->bytes && b->at[k].bytes && overlap(b, x, &b->at[k]);
    }
    return found;
}

static int larger_first(const void *a, const void *b)
{
    const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->index - y->index;
}

/* Where blocks end that are placed one by one, largest first, each as low as it can lie. */
static size_t fit(const struct blocks *b)
{
    struct block **placed = must(calloc((size_t)b->count + 1, sizeof(struct block *)));
    size_t end = 0;
    int count = 0;
    for (int i = 0; i < b->count; i++)
        if (b->at[i].bytes) placed[count++] = &b->at[i];
    qsort(placed, (size_t)count, sizeof(struct block *), larger_first);
    for (int i = 0; i < count; i++) {
        placed[i]->offset = 0;
        for (int k = 0; k < i; k++)
            if (overlap(b, placed[i], placed[k])) {
                placed[i]->offset = placed[k]->offset + placed[k]->bytes;
                k = -1; /* all again */
            }
        if (placed[i]->offset + placed[i]->bytes > end) end = placed[i]->offset + placed[i]->bytes;
    }
    free(placed);
    return end;
}

static void check_live(
    const struct pnet_plan *p, const struct pnet_layout *l, const struct blocks *b)
{
    size_t most = 0;
    for (int s = 0; s < p->step_count; s++) {
        size_t sum = 0;
        for (int i = 0; i < b->count; i++)
            if (b->at[i].first <= s && s <= b->at[i].last) sum += b->at[i].bytes;
        if (sum > most) most = sum;
    }
    CHECKF(l->live == most, "%zu instead of %zu bytes alive", l->live, most);
    CHECK(l->live <= l->total);
    for (int t = 0; t < p->tensor_count; t++)
        CHECK(l->offset[t] == l->offset[p->tensors[t].shares]);
}

static bool same_layout(
    const struct pnet_plan *p, const struct pnet_layout *a, const struct pnet_layout *b)
{
    size_t tensors = (size_t)p->tensor_count * sizeof(size_t),
           steps = (size_t)p->step_count * sizeof(size_t);
    return a->total == b->total && a->live == b->live && a->peak_step == b->peak_step &&
           !memcmp(a->offset, b->offset, tensors) && !memcmp(a->bytes, b->bytes, tensors) &&
           !memcmp(a->work, b->work, steps) && !memcmp(a->work_bytes, b->work_bytes, steps);
}

/* As far as steps may be from each other that are kept apart, and a share of the memory or PNET_WORK_MOST that it may cost
   (runtime/run/apart.c); the last one costs nothing. */
static const struct {
    int reach;
    size_t share;
} choices[] = {{4, 16}, {2, 7}, {-1, 0}};
enum { CHOICES = 3 };

/* The first choice that is not too dear is what the layout has. Returns which. */
static int check_choice(const struct pnet_plan *p, const struct pnet_layout *plain,
    const struct pnet_layout *concurrent, struct blocks *b, const char *what)
{
    for (int i = 0; i < CHOICES; i++) {
        size_t share = choices[i].share ? plain->total / choices[i].share : 0,
               most = share > PNET_WORK_MOST ? share : PNET_WORK_MOST;
        keep_apart(p, b, choices[i].reach);
        size_t end = fit(b);
        if (choices[i].share && end > plain->total + most) continue;
        int overlaps = count_overlaps(p, concurrent, b);
        CHECKF(concurrent->total == end, "%s, reach %d: %zu bytes instead of %zu", what,
            choices[i].reach, concurrent->total, end);
        CHECKF(overlaps == 0, "%s, reach %d: %d overlaps", what, choices[i].reach, overlaps);
        CHECK(choices[i].share || same_layout(p, plain, concurrent));
        return i;
    }
    CHECKF(false, "%s", what);
    return CHOICES - 1;
}

static void check_peak(const struct pnet_bound *b, const struct pnet_counts *c,
    const struct pnet_layout *plain, const struct pnet_layout *concurrent, const char *what)
{
    enum { SLOTS = 2, EXTRA = 1000 };
    const size_t low = pnet_peak_of(b, c, plain, SLOTS, EXTRA).total,
                 high = pnet_peak_of(b, c, concurrent, SLOTS, EXTRA).total;
    const size_t limits[] = {
        0, SIZE_MAX, high + 1, high, high - 1, low + (high - low) / 2, low, low - 1, 1};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const struct pnet_layout *want = !limits[i] || limits[i] >= high ? concurrent : plain;
        struct pnet_layout l;
        struct pnet_peak k;
        struct pnet_error e;
        need(pnet_peak_plan(b, c, SLOTS, EXTRA, limits[i], &l, &k, &e), &e, "peak");
        CHECKF(same_layout(b->plan, &l, want), "%s: limit %zu, totals %zu and %zu: %zu", what,
            limits[i], low, high, k.total);
        CHECK(k.total == (want == concurrent ? high : low));
        pnet_layout_free(&l);
    }
}

/* As many points, triplets and tiles as `factor` such batches have. */
static struct pnet_counts counts_times(
    const struct pnet_plan *p, const struct pnet_counts *c, int64_t factor)
{
    struct pnet_counts more;
    struct pnet_error e;
    need(pnet_counts_new(p, &more, &e), &e, "counts");
    more.samples = c->samples;
    for (int l = 0; l < p->level_count; l++) {
        bool points = p->levels[l].input >= 0;
        more.rows[l] = c->rows[l] * (points ? factor : 1);
    }
    for (int i = 0; i < p->geo_count; i++) {
        for (int k = 0; k < PNET_GEO_COUNTS; k++) more.of[i][k] = c->of[i][k] * factor;
        more.marks[i] = c->marks[i];
    }
    return more;
}

/* Adds to `chosen` what was chosen, and to `dearer` where it costs more than nothing. */
static void test_layout(const struct pnet_bound *bound, const struct pnet_counts *c,
    const char *what, int chosen[CHOICES], int *dearer)
{
    const struct pnet_plan *p = bound->plan;
    struct pnet_layout plain, concurrent;
    struct pnet_error e;
    need(pnet_layout_make(bound, c, false, &plain, &e), &e, "layout");
    need(pnet_layout_make(bound, c, true, &concurrent, &e), &e, "layout");
    struct blocks b = blocks_of(p, &plain);
    CHECK(memcmp(plain.bytes, concurrent.bytes, (size_t)p->tensor_count * sizeof(size_t)) == 0);
    CHECK(memcmp(plain.work_bytes, concurrent.work_bytes, (size_t)p->step_count * sizeof(size_t)) ==
          0);
    check_live(p, &plain, &b);
    check_live(p, &concurrent, &b);
    keep_apart(p, &b, -1);
    size_t end = fit(&b);
    CHECKF(plain.total == end, "%s: %zu bytes instead of %zu", what, plain.total, end);
    CHECK(count_overlaps(p, &plain, &b) == 0);
    int choice = check_choice(p, &plain, &concurrent, &b, what);
    chosen[choice]++;
    *dearer += concurrent.total > plain.total;
    printf("%s: %zu bytes, concurrent %zu, reach %d\n", what, plain.total, concurrent.total,
        choices[choice].reach);
    check_peak(bound, c, &plain, &concurrent, what);
    blocks_free(&b);
    pnet_layout_free(&plain);
    pnet_layout_free(&concurrent);
}

/* A plan for a GPU, sized on the host. */
static void test_layouts(
    const struct setup *u, const struct cloud clouds[2], int chosen[CHOICES], int *dearer)
{
    static const int64_t factors[] = {1, 3000};
    struct pnet_compilation *compiled = compile(u);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct pnet_bound *bound =
        need_bound(p, (struct pnet_device){PNET_CUDA, 0}, u->degrade ? PNET_FP32 : PNET_BF16);
    struct host_slot host;
    host_slot_open(&host, bound, clouds, 2);
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        char what[128];
        struct pnet_counts c = counts_times(p, &host.slot->counts, factors[i]);
        snprintf(what, sizeof what, "%s, degraded %u, times %lld", u->model, u->degrade,
            (long long)factors[i]);
        test_layout(bound, &c, what, chosen, dearer);
        pnet_counts_free(&c);
    }
    host_slot_close(&host);
    pnet_bound_free(bound);
    pnet_compilation_free(compiled);
}

/* So little that to keep anything apart is too dear. */
static const char small[] =
    "pnet 1\n"
    "input cloud { xyz : position  rgb : feature[3]  "
    "label : class[5] per point }\n"
    "net n(p: cloud) {\n"
    "  return p.rgb -> linear(64) -> linear(64) -> linear(64) -> linear(5)\n"
    "}\n"
    "y = n(cloud)\n"
    "loss ce = cross_entropy(y, cloud.label)\n";

int main(void)
{
    /* Models whose orders are drawn, and those of them that in voxel mode too: what waits for what differs little there, and
       in the last two from flash3d_wide and fcgf_kitti. */
    enum { DRAWN = 11, BOTH_WAYS = 3 };
    static const struct setup models[] = {{"models/rooms.pnet", NULL, 0, NULL},
        {"tests/models/chunks.pnet", NULL, 0, NULL}, {"models/shapes.pnet", NULL, 0, NULL},
        {"models/fcgf.pnet", "v=10cm", 0, NULL}, {"models/minkunet18a.pnet", NULL, 0, NULL},
        {"models/resnet18.pnet", "v=5mm", 0, NULL},
        {"models/fcgf_kitti.pnet", "hardest=no", 0, NULL}, {"models/flash3d.pnet", "c=16", 0, NULL},
        {"models/flash3d_wide.pnet", "c=16", 0, NULL}, {"models/pcn.pnet", "coarse=64", 0, NULL},
        {"models/foldingnet.pnet", "count=1024", 0, NULL}, {"models/ptv3.pnet", "c=16", 0, NULL},
        {"models/fcgf_3dmatch.pnet", NULL, 0, NULL}};
    struct cloud clouds[2] = {cloud_corner(300, 2, 1), cloud_corner(200, 2, 2)};
    int chosen[CHOICES] = {0}, dearer = 0;
    int64_t freed = 0;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++)
        for (int voxel = 0; voxel < 2; voxel++) {
            struct setup u = models[m];
            u.degrade = voxel ? PNET_VOXEL : 0;
            if (m < (voxel ? BOTH_WAYS : DRAWN)) freed += test_touched(&u, clouds);
            test_layouts(&u, clouds, chosen, &dearer);
        }
    test_layouts(&(struct setup){.model = "small", .text = small}, clouds, chosen, &dearer);
    CHECKF(freed > 0, "room lets no more steps meet");
    for (int i = 0; i < CHOICES; i++)
        CHECKF(chosen[i] > 0, "no layout with a reach of %d", choices[i].reach);
    CHECKF(dearer > 0, "no layout that costs anything");
    for (int i = 0; i < 2; i++) cloud_free(&clouds[i]);
    return check_end();
}
