/* Earth mover's distance of two point sets. */
#include "kernels/emd.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_sets.h"

#include <math.h>
#include <stdlib.h>

enum { EPS = PNET_SETS_INPUTS, ROUNDS };
enum { PARTNER };

/* Of both rows below: the loss, and the assignment that metrics read. */
#define EMD_FLAGS (PNET_SAME_SIZES | PNET_READS_EXACT)

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_sets_rule(r, "emd") ||
        !pnet_op_sets_same_sizes(
            r, "emd()", "sinkhorn() and chamfer() take sets of different sizes"))
        return false;
    pnet_rule_save(r, (struct pnet_type){PNET_I32, 1, r->in[PNET_SETS_X].level, 0, false}, true);
    return true;
}

static struct pnet_emd auction_of(const struct pnet_exec *x)
{
    return (struct pnet_emd){.sets = pnet_op_sets(x),
        .eps = x->attr[EPS].r,
        .rounds = (int32_t)x->attr[ROUNDS].i,
        .complete = true};
}

/* The workspace: that of the auction, then means of samples, then partners where none are saved. */
static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_emd e = auction_of(x);
    if (backward) return 0;
    return PNET_WORK(x->device, emd_assign_work)(&e) +
           (size_t)x->in[PNET_SETS_X].samples * sizeof(double) +
           (size_t)x->in[PNET_SETS_X].rows * sizeof(int32_t);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_emd e = auction_of(x);
    double *mean = (void *)((char *)x->work + PNET_WORK(x->device, emd_assign_work)(&e));
    int32_t *partner = x->saved[PARTNER].data;
    if (!partner) partner = (void *)(mean + e.sets.x.samples);
    PNET_KERNEL(x, emd_assign)(&e, partner, x->work);
    PNET_KERNEL(x, emd)(&e.sets, partner, mean, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_set_pair sets = pnet_op_sets(x);
    struct pnet_set_gradients g = pnet_op_sets_gradients(x);
    PNET_KERNEL(x, emd_backward)(&sets, x->saved[PARTNER].data, x->gout.data, &g);
}

/* One sample of the reference: n persons and objects. */
struct market {
    int64_t n;
    const double *x, *y;
    double *price, *person; /* [n]: an object's price and person, -1: none */
};

static double cost(const struct market *m, int64_t i, int64_t j)
{
    double sum = 0;
    for (int k = 0; k < 3; k++)
        sum += (m->x[3 * i + k] - m->y[3 * j + k]) * (m->x[3 * i + k] - m->y[3 * j + k]);
    return sqrt(sum);
}

static bool has_object(const struct market *m, int64_t i)
{
    for (int64_t j = 0; j < m->n; j++)
        if (m->person[j] == (double)i) return true;
    return false;
}

/* What an object costs a person at its price. */
static double value(const struct market *m, int64_t i, int64_t j)
{
    return cost(m, i, j) + m->price[j];
}

/* Of the objects that serve person i of a scaled auction as well as the best one, the one it bids for in a round. */
static int64_t choose(const struct market *m, double eps, int64_t round, int64_t i, double least)
{
    int64_t chosen = -1;
    uint32_t lowest = 0, shift = pnet_emd_hash((uint32_t)i, (uint32_t)round);
    for (int64_t j = 0; j < m->n; j++) {
        uint32_t at = (uint32_t)j * PNET_EMD_STRIDE + shift;
        if (trunc(value(m, i, j) * (2 / eps)) > trunc(least * (2 / eps))) continue;
        if (chosen >= 0 && at > lowest) continue;
        chosen = j;
        lowest = at;
    }
    return chosen;
}

static int64_t count_free(const struct market *m)
{
    int64_t count = 0;
    for (int64_t j = 0; j < m->n; j++) count += m->person[j] < 0;
    return count;
}

/* A round: everybody bids by the prices before it. Returns how many persons were without an object. */
static int64_t hold_round(
    struct market *m, double eps, int64_t round, bool scaled, double *bid, double *bidder)
{
    const int64_t without = count_free(m);
    const bool crowded = scaled && without > m->n / PNET_EMD_PART;
    for (int64_t j = 0; j < m->n; j++) bid[j] = bidder[j] = -1;
    for (int64_t i = 0; i < m->n; i++) {
        if (has_object(m, i)) continue;
        int64_t best = 0;
        double second = INFINITY;
        for (int64_t j = 1; j < m->n; j++)
            if (value(m, i, j) < value(m, i, best)) best = j;
        int64_t to = crowded ? choose(m, eps, round, i, value(m, i, best)) : best;
        for (int64_t j = 0; j < m->n; j++)
            if (j != to) second = fmin(second, value(m, i, j));
        double offer = m->price[to] + (m->n > 1 ? second - value(m, i, to) : 0) + eps;
        if (offer <= bid[to]) continue;
        bid[to] = offer;
        bidder[to] = (double)i;
    }
    for (int64_t j = 0; j < m->n; j++)
        if (bidder[j] >= 0) {
            m->price[j] = bid[j];
            m->person[j] = bidder[j];
        }
    return without;
}

/* Assigns the nearest pair that is left. False: there is none. */
static bool complete(struct market *m)
{
    double least = INFINITY;
    int64_t person = -1, object = -1;
    for (int64_t i = 0; i < m->n; i++)
        for (int64_t j = 0; j < m->n; j++)
            if (m->person[j] < 0 && cost(m, i, j) < least && !has_object(m, i)) {
                least = cost(m, i, j);
                person = i;
                object = j;
            }
    if (person >= 0) m->person[object] = (double)person;
    return person >= 0;
}

/* The diagonal of the box around all points. */
static double diagonal(const struct market *m)
{
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < m->n; i++) {
            low = fmin(low, fmin(m->x[3 * i + k], m->y[3 * i + k]));
            high = fmax(high, fmax(m->x[3 * i + k], m->y[3 * i + k]));
        }
        sum += (high - low) * (high - low);
    }
    return sqrt(sum);
}

/* Persons may be left without an object. */
static void hold_auction(struct market *m, double eps, int64_t rounds, bool scaled)
{
    double *bid = calloc(2 * (size_t)m->n + 1, sizeof *bid), now = eps;
    if (!bid) abort();
    for (int64_t j = 0; j < m->n; j++) {
        m->price[j] = 0;
        m->person[j] = -1;
    }
    while (scaled && now * PNET_EMD_TIMES <= diagonal(m) / 8) now *= PNET_EMD_TIMES;
    for (int64_t k = 0; k < rounds && hold_round(m, now, k, scaled, bid, bid + m->n) > 0; k++) {
        if (now <= eps || count_free(m) > m->n / PNET_EMD_PART) continue;
        for (int64_t j = 0; j < m->n; j++) m->person[j] = -1;
        now /= PNET_EMD_TIMES;
    }
    free(bid);
}

static void reference(const struct pnet_exec *x)
{
    const struct pnet_tensor *a = &x->in[PNET_SETS_X], *b = &x->in[PNET_SETS_Y];
    bool first;
    double *kept = pnet_op_constants(x, 2 * (size_t)a->rows, &first), *out = x->out.data, total = 0;
    for (int32_t s = 0; s < a->samples; s++) {
        int64_t begin = a->row_splits[s], n = a->row_splits[s + 1] - begin;
        int64_t others = b->row_splits[s + 1] - b->row_splits[s];
        struct market m = {n, (const double *)a->data + 3 * begin,
            (const double *)b->data + 3 * b->row_splits[s], kept + begin, kept + a->rows + begin};
        if (n == 0 || others == 0) continue;
        if (n != others) {
            total = NAN;
            continue;
        }
        if (first) hold_auction(&m, x->attr[EPS].r, x->attr[ROUNDS].i, false);
        while (first && complete(&m)) {
        }
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += cost(&m, (int64_t)m.person[j], j);
        total += sum / (double)n;
    }
    *out = a->samples > 0 ? total / a->samples : 0;
}

const struct pnet_op pnet_op_emd = {
    .name = "emd",
    .class_ = PNET_LOSS,
    .summary = "Earth mover's distance of two point sets",
    .doc =
        "The mean of `|x_i - y_phi(i)|` over the points of a sample, then the mean over samples; "
        "phi "
        "assigns each point of `x` one point of `y` of its own. A sample whose sets have different "
        "sizes is an error of the run; one of which a set is empty adds 0. The gradient takes phi "
        "as "
        "constant.\n\n"
        "phi comes from an auction. Prices of the points of `y` begin at 0. In a round each point "
        "of "
        "`x` without a partner bids for the point of least distance + price: so much more than its "
        "price that the second best would serve as well, and `eps` on top. The largest bid wins, "
        "the "
        "first point among equals. After `rounds` rounds the rest is assigned greedily, the "
        "nearest "
        "pair first. Where the rounds suffice, the mean distance is at most `eps` above the least "
        "possible one. Rounds, and the memory, do not depend on the number of threads; each round "
        "takes time in proportion to (points without a partner) x (points), so sets of up to some "
        "16,384 points a sample are practical.\n\n"
        "Bertsekas, A Distributed Algorithm for the Assignment Problem, 1979; Liu et al., Morphing "
        "and Sampling Network for Dense Point Cloud Completion, 2020.",
    .args =
        {
            PNET_SETS_ARGS,
            [EPS] = {"eps", PNET_ARG_REAL, "0.005", 1e-9, 1e9, NULL,
                "least raise of a price, in the units of the coordinates"},
            [ROUNDS] = {"rounds", PNET_ARG_INT, "50", 1, 100000, NULL,
                "rounds of the auction at most"},
        },
    .flags = EMD_FLAGS,
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = pnet_op_sets_mean,
    .cases = "emd(p.f -> linear(3), p.e -> linear(3))\n"
             "emd(x -> linear(3), y -> linear(3), rounds=1)\n"
             "emd(x -> linear(3), y -> linear(3), eps=0.1, rounds=1000)\n"
             "emd(z -> linear(3), z -> linear(3), eps=1)\n"
             "emd(t -> linear(15) -> split(to=points(sample, 5)),"
             " t -> linear(15) -> split(to=points(sample, 5)))\n",
};

static bool partners_rule(struct pnet_rule *r)
{
    r->out = (struct pnet_type){PNET_I32, 1, r->in[PNET_SETS_X].level, 0, false};
    return true;
}

/* That of metrics. */
static struct pnet_emd scaled_auction_of(const struct pnet_exec *x)
{
    struct pnet_emd e = auction_of(x);
    e.scaled = e.tell = true;
    return e;
}

static size_t partners_work(const struct pnet_exec *x, bool backward)
{
    struct pnet_emd e = scaled_auction_of(x);
    return backward ? 0 : PNET_WORK(x->device, emd_assign_work)(&e);
}

static void partners_forward(const struct pnet_exec *x)
{
    struct pnet_emd e = scaled_auction_of(x);
    PNET_KERNEL(x, emd_assign)(&e, x->out.data, x->work);
}

static void partners_reference(const struct pnet_exec *x)
{
    const struct pnet_tensor *a = &x->in[PNET_SETS_X], *b = &x->in[PNET_SETS_Y];
    int32_t *out = x->out.data;
    for (int32_t s = 0; s < a->samples; s++) {
        int64_t begin = a->row_splits[s], n = a->row_splits[s + 1] - begin, of_b = b->row_splits[s];
        for (int64_t i = 0; i < n; i++) out[begin + i] = -1;
        if (n != b->row_splits[s + 1] - of_b) continue;
        double *kept = calloc(2 * (size_t)n + 1, sizeof *kept);
        if (!kept) abort();
        struct market m = {n, (const double *)a->data + 3 * begin,
            (const double *)b->data + 3 * of_b, kept, kept + n};
        if (n > 0) hold_auction(&m, x->attr[EPS].r, x->attr[ROUNDS].i, true);
        for (int64_t j = 0; j < n; j++)
            if (m.person[j] >= 0) out[begin + (int64_t)m.person[j]] = (int32_t)(of_b + j);
        while (complete(&m)) {
        }
        for (int64_t j = 0; j < n; j++) {
            int32_t *to = out + begin + (int64_t)m.person[j];
            if (*to < 0) *to = (int32_t)(PNET_EMD_LEFT - of_b - j);
        }
        free(kept);
    }
}

const struct pnet_op pnet_op_emd_partners = {
    .name = "emd",
    .class_ = PNET_LAYER,
    .args =
        {
            PNET_SETS_ARGS,
            [EPS] = {"eps", PNET_ARG_REAL, "0.002", 0, 0, NULL, "least raise of a price"},
            [ROUNDS] = {"rounds", PNET_ARG_INT, "100000", 0, 0, NULL, "rounds at most"},
        },
    .flags = PNET_NO_GRAD | EMD_FLAGS,
    .rule = partners_rule,
    .work = partners_work,
    .forward = partners_forward,
    .reference = partners_reference,
};
