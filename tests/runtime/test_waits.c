/* What waits for what is the closure of the conflicts between steps, and the lists that pnet_waits_add gives are enough
   for it, and no longer than they need be: on sets of stretches drawn at random, against a closure by search. */
#include "runtime/run/waits.h"

#include "kernels/philox.h"
#include "tests/check.h"

enum { MOST_STEPS = 90, MOST = MOST_STEPS * PNET_STEP_PARTS };

/* A schedule by what its parts touch, and relations between parts: [i][k]: i is over before k begins. */
static struct pnet_touched schedule[MOST_STEPS][PNET_STEP_PARTS];
static bool listed[MOST][MOST], wanted[MOST][MOST];

/* What schedules are drawn from. */
struct kind {
    int steps, stretches;    /* of a part, at most */
    uint32_t memory, length; /* bytes there are; of a stretch, at most */
    double writes, empty;    /* shares of stretches, and of second parts */
};

static struct pnet_rand draws;
static uint64_t drawn;

static double draw(void)
{
    return pnet_rand_unit(&draws, drawn++);
}

static uint32_t draw_below(uint32_t n)
{
    return (uint32_t)(draw() * n) % n;
}

static void draw_part(const struct kind *k, struct pnet_touched *t)
{
    t->count = (int)draw_below((uint32_t)k->stretches + 1);
    for (int i = 0; i < t->count; i++) {
        uintptr_t begin = draw_below(k->memory);
        t->at[i] =
            (struct pnet_stretch){begin, begin + 1 + draw_below(k->length), draw() < k->writes};
    }
}

static void draw_schedule(const struct kind *k)
{
    for (int i = 0; i < k->steps; i++) {
        draw_part(k, &schedule[i][0]);
        draw_part(k, &schedule[i][1]);
        if (draw() < k->empty) schedule[i][1].count = 0;
    }
}

/* Byte by byte: does one of them write what the other one touches? */
static bool meets(const struct pnet_touched *a, const struct pnet_touched *b)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++)
            for (uintptr_t at = a->at[i].begin; at < a->at[i].end; at++)
                if (at >= b->at[k].begin && at < b->at[k].end &&
                    (a->at[i].written || b->at[k].written))
                    return true;
    return false;
}

/* Both parts of a step wait for the earlier parts that either of them meets. */
static void relate(int steps)
{
    memset(wanted, 0, sizeof wanted);
    for (int step = 0; step < steps; step++)
        for (int i = 0; i < PNET_STEP_PARTS * step; i++) {
            const struct pnet_touched *other = &schedule[i / PNET_STEP_PARTS][i % PNET_STEP_PARTS];
            bool met = meets(&schedule[step][0], other) || meets(&schedule[step][1], other);
            for (int k = 0; k < PNET_STEP_PARTS; k++) wanted[i][PNET_STEP_PARTS * step + k] = met;
        }
}

static void close_relation(bool relation[MOST][MOST], int parts)
{
    for (int via = 0; via < parts; via++)
        for (int i = 0; i < parts; i++)
            for (int k = 0; relation[i][via] && k < parts; k++) relation[i][k] |= relation[via][k];
}

/* Returns how many pairs are ordered. */
static int test_schedule(int steps, const char *what)
{
    const int parts = PNET_STEP_PARTS * steps;
    struct pnet_waits *w = pnet_waits_new(steps);
    int *others = malloc((size_t)parts * sizeof *others + 1);
    int beyond = 0, needless = 0, differ = 0, enough = 0, ordered = 0;
    CHECK(w && others);
    if (!w || !others) exit(1);
    relate(steps);
    close_relation(wanted, parts);
    memset(listed, 0, sizeof listed);
    for (int step = 0; step < steps; step++) {
        int n = pnet_waits_add(w, schedule[step], others);
        for (int i = 0; i < n; i++) {
            if (others[i] < 0 || others[i] >= PNET_STEP_PARTS * step) {
                beyond++;
                continue;
            }
            for (int k = 0; k < PNET_STEP_PARTS; k++)
                listed[others[i]][PNET_STEP_PARTS * step + k] = true;
            for (int k = 0; k < n; k++)
                needless += i != k && (others[i] == others[k] || wanted[others[i]][others[k]]);
        }
    }
    close_relation(listed, parts);
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < parts; k++) {
            ordered += wanted[i][k];
            differ += pnet_waits_ordered(w, i, k) != wanted[i][k];
            enough += listed[i][k] == wanted[i][k];
        }
    CHECKF(differ == 0, "%s: %d pairs", what, differ);
    CHECKF(beyond == 0, "%s: %d parts that are not there yet", what, beyond);
    CHECKF(enough == parts * parts, "%s: %d pairs differ", what, parts * parts - enough);
    CHECKF(needless == 0, "%s: %d waits of %d steps are had anyway", what, needless, steps);
    for (int i = 0; i < parts; i += PNET_STEP_PARTS) {
        CHECK(!pnet_waits_ordered(w, i, i + 1) && !pnet_waits_ordered(w, i + 1, i));
        for (int k = 0; k < i; k++)
            CHECK(pnet_waits_ordered(w, k, i) == pnet_waits_ordered(w, k, i + 1));
    }
    pnet_waits_free(w);
    free(others);
    return ordered;
}

static void test_drawn(void)
{
    static const struct kind kinds[] = {{2, 1, 4, 3, 0.5, 0.5}, /* few steps on little memory */
        {6, 2, 20, 6, 0.5, 0.5}, {12, 3, 60, 10, 0.4, 0.7}, {33, 4, 400, 12, 0.3, 0.7},
        {MOST_STEPS, 3, 2000, 25, 0.5, 0.7}, {MOST_STEPS, PNET_MOST_STRETCHES, 9000, 8, 0.2, 0.3}};
    static const int rounds[] = {500, 200, 100, 20, 5, 2};
    int chosen = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int round = 0; round < rounds[k]; round++) {
            char what[64];
            int parts = PNET_STEP_PARTS * kinds[k].steps;
            draws = (struct pnet_rand){
                .seed = 7, .purpose = PNET_DRAW_TEST, .a = (uint32_t)k, .b = (uint32_t)round};
            drawn = 0;
            snprintf(what, sizeof what, "kind %zu, round %d", k, round);
            draw_schedule(&kinds[k]);
            int ordered = test_schedule(kinds[k].steps, what);
            chosen += ordered > 0 && ordered < parts * (parts - PNET_STEP_PARTS) / 2;
        }
    /* neither all in a row nor all at once */
    CHECKF(chosen > 300, "only %d schedules that leave a choice", chosen);
}

/* One stretch a step, none where it is empty. Returns how many steps the last one waits for. */
static int last_waits(const struct pnet_stretch *at, int steps)
{
    struct pnet_waits *w = pnet_waits_new(steps);
    int others[MOST], n = 0;
    CHECK(w);
    if (!w) exit(1);
    memset(schedule, 0, sizeof schedule);
    for (int i = 0; i < steps; i++) {
        schedule[i][0].count = at[i].begin < at[i].end;
        schedule[i][0].at[0] = at[i];
        n = pnet_waits_add(w, schedule[i], others);
    }
    pnet_waits_free(w);
    test_schedule(steps, "by hand");
    return n;
}

static void test_by_hand(void)
{
    static const struct pnet_stretch read = {64, 128, false}, write = {64, 128, true},
                                     behind = {128, 192, true}, before = {0, 64, true},
                                     edge = {127, 128, true}, all = {0, 192, true},
                                     nothing = {64, 64, true};
    CHECK(last_waits((struct pnet_stretch[]){write}, 1) == 0);
    CHECK(last_waits((struct pnet_stretch[]){read, read}, 2) == 0);
    CHECK(last_waits((struct pnet_stretch[]){write, read}, 2) == 1);
    CHECK(last_waits((struct pnet_stretch[]){read, write}, 2) == 1);
    CHECK(last_waits((struct pnet_stretch[]){write, write}, 2) == 1);
    /* ends that touch, and one byte more */
    CHECK(last_waits((struct pnet_stretch[]){write, behind}, 2) == 0);
    CHECK(last_waits((struct pnet_stretch[]){write, before}, 2) == 0);
    CHECK(last_waits((struct pnet_stretch[]){read, edge}, 2) == 1);
    CHECK(last_waits((struct pnet_stretch[]){before, read, behind, all}, 4) == 3);
    CHECK(last_waits((struct pnet_stretch[]){write, nothing}, 2) == 0);
    CHECK(last_waits((struct pnet_stretch[]){nothing, write}, 2) == 0);
    /* readers in a row wait for the writer, and the next writer for them alone */
    CHECK(last_waits((struct pnet_stretch[]){write, read, read, write}, 4) == 2);
    CHECK(last_waits((struct pnet_stretch[]){write, read, write, write}, 4) == 1);
    CHECK(last_waits((struct pnet_stretch[]){write, read, read}, 3) == 1);
}

/* Both parts of a step are waited for by whom both concern, and one by whom that one does; its parts wait together. */
static void test_parts(void)
{
    const struct pnet_touched value = {{{0, 8, true}}, 1}, weight = {{{8, 16, true}}, 1},
                              nothing = {.count = 0}, both = {{{0, 8, false}, {8, 16, false}}, 2};
    struct pnet_waits *w = pnet_waits_new(4);
    int others[8];
    CHECK(w);
    if (!w) exit(1);
    CHECK(pnet_waits_add(w, (struct pnet_touched[]){value, weight}, others) == 0);
    CHECK(pnet_waits_add(w, (struct pnet_touched[]){weight, nothing}, others) == 1);
    CHECK(others[0] == 1);
    CHECK(pnet_waits_add(w, (struct pnet_touched[]){nothing, both}, others) == 2);
    CHECK((others[0] == 0 && others[1] == 2) || (others[0] == 2 && others[1] == 0));
    CHECK(pnet_waits_add(w, (struct pnet_touched[]){nothing, nothing}, others) == 0);
    for (int part = 4; part < 6; part++)
        CHECK(pnet_waits_ordered(w, 0, part) && pnet_waits_ordered(w, 1, part) &&
              pnet_waits_ordered(w, 2, part) && !pnet_waits_ordered(w, 3, part));
    pnet_waits_free(w);
    pnet_waits_free(NULL);
}

int main(void)
{
    test_drawn();
    test_by_hand();
    test_parts();
    return check_end();
}
