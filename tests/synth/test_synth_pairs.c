/* Synthetic pairs: the pose is exact, the views overlap and are drawn by themselves, and the data
   set holds what was made. */
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_overlap.h"
#include "runtime/synth/synth.h"
#include "runtime/synth/synth_models.h"
#include "tests/data/folder.h"

static struct pnet_synth_pair make(
    uint64_t seed, uint32_t index, const struct pnet_synth_options *o)
{
    struct pnet_synth_pair p;
    struct pnet_error e = {.message = ""};
    CHECKF(!pnet_synth_make_pair(seed, index, o, &p, &e), "%s", e.message);
    return p;
}

static bool same(const struct pnet_cloud *a, const struct pnet_cloud *b)
{
    return a->rows == b->rows && memcmp(a->xyz, b->xyz, (size_t)a->rows * 12) == 0;
}

static double share(const struct pnet_synth_pair *p, const struct pnet_pose *pose, double radius_m)
{
    int64_t near;
    struct pnet_error e;
    CHECK(!pnet_overlap(
        p->source.xyz, p->source.rows, p->target.xyz, p->target.rows, pose, radius_m, &near, &e));
    return (double)near / (double)p->source.rows;
}

static void test_bits(void)
{
    for (int street = 0; street < 2; street++) {
        struct pnet_synth_options one = {.points = 4000, .street = street, .threads = 1};
        struct pnet_synth_options many = one;
        many.threads = 3;
        struct pnet_synth_pair a = make(3, 5, &one), b = make(3, 5, &many), c = make(3, 6, &one);
        CHECK(same(&a.source, &b.source) && same(&a.target, &b.target));
        CHECK(memcmp(&a.pose, &b.pose, sizeof a.pose) == 0);
        CHECK(!same(&a.source, &c.source) && memcmp(&a.pose, &c.pose, sizeof a.pose) != 0);
        for (int k = 0; k < a.source.field_count; k++)
            CHECK(!memcmp(a.source.fields[k].data, b.source.fields[k].data,
                (size_t)a.source.rows * pnet_scalar_size(a.source.fields[k].type)));
        CHECK(llabs(a.source.rows - 4000) < 800 && llabs(a.target.rows - 4000) < 800);
        pnet_synth_pair_free(&a);
        pnet_synth_pair_free(&b);
        pnet_synth_pair_free(&c);
    }
}

/* The pose makes more points meet than any pose 3 cm beside it, or turned by half a degree: with
   dense and exact surfaces that leaves no other one. */
static void test_best(void)
{
    for (int kind = 0; kind < 4; kind++) {
        const struct pnet_synth_options o = {
            .points = 60000, .street = kind & 1, .any_rotation = kind & 2, .clean = true};
        double radius_m = o.street ? 0.05 : 0.02;
        for (uint32_t i = 0; i < 3; i++) {
            struct pnet_synth_pair p = make(7, i, &o);
            double best = share(&p, &p.pose, radius_m);
            CHECKF(best > 0.12, "kind %d, pair %u: %.3f", kind, i, best);
            for (int axis = 0; axis < 6; axis++) {
                struct pnet_pose off = p.pose, beside = pnet_pose_identity();
                int a = (axis + 1) % 3, b = (axis + 2) % 3;
                if (axis < 3) {
                    beside.m[4 * axis + 3] = o.street ? 0.1 : 0.03;
                } else {
                    beside.m[5 * a] = beside.m[5 * b] = cos(0.009);
                    beside.m[4 * a + b] = -sin(0.009);
                    beside.m[4 * b + a] = sin(0.009);
                }
                off = pnet_pose_multiply(&beside, &off);
                double other = share(&p, &off, radius_m);
                CHECKF(other < best, "kind %d, pair %u, axis %d: %.3f and %.3f", kind, i, axis,
                    other, best);
            }
            pnet_synth_pair_free(&p);
        }
    }
}

static int by_height(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Exact surfaces: under the pose the floors are one plane, to the rounding of coordinates. */
static void test_exact(void)
{
    const struct pnet_synth_options o = {.points = 20000, .clean = true, .any_rotation = true};
    for (uint32_t i = 0; i < 4; i++) {
        struct pnet_synth_pair p = make(2, i, &o);
        const struct pnet_cloud *clouds[2] = {&p.source, &p.target};
        double(*floor)[3] = malloc(40000 * sizeof *floor);
        int count = 0;
        for (int k = 0; k < 2; k++) {
            const uint8_t *label = pnet_cloud_field(clouds[k], "label")->data;
            for (int64_t row = 0; row < clouds[k]->rows; row++) {
                if (label[row] != PNET_FLOOR) continue;
                for (int c = 0; c < 3; c++) floor[count][c] = (double)clouds[k]->xyz[3 * row + c];
                if (!k) pnet_pose_apply(&p.pose, floor[count], floor[count]);
                count++;
            }
        }
        CHECK(count > 1000);
        if (count <= 1000) exit(1);
        /* The plane through three points of the target that lie far from each other. */
        const double *a = floor[count - 1], *b = floor[count - 1];
        double far = 0, wide = 0, n[3] = {0, 0, 1};
        for (int k = count / 2; k < count; k++) {
            double d = hypot(hypot(floor[k][0] - a[0], floor[k][1] - a[1]), floor[k][2] - a[2]);
            if (d > far) far = d, b = floor[k];
        }
        for (int k = count / 2; k < count; k++) {
            const double *c = floor[k];
            double u[3], v[3], w[3];
            for (int x = 0; x < 3; x++) u[x] = b[x] - a[x], v[x] = c[x] - a[x];
            for (int x = 0; x < 3; x++)
                w[x] = u[(x + 1) % 3] * v[(x + 2) % 3] - u[(x + 2) % 3] * v[(x + 1) % 3];
            double area = hypot(hypot(w[0], w[1]), w[2]);
            if (area > wide) {
                wide = area;
                for (int x = 0; x < 3; x++) n[x] = w[x] / area;
            }
        }
        double *off = malloc((size_t)count * sizeof *off);
        for (int k = 0; k < count; k++)
            off[k] = fabs(n[0] * (floor[k][0] - a[0]) + n[1] * (floor[k][1] - a[1]) +
                          n[2] * (floor[k][2] - a[2]));
        qsort(off, (size_t)count, sizeof *off, by_height);
        CHECKF(off[count - 1] < 1e-4, "pair %u: %g m", i, off[count - 1]);
        free(off);
        free(floor);
        pnet_synth_pair_free(&p);
    }
}

/* What the header promises of overlap, noise and sampling. */
static void test_views(void)
{
    for (int street = 0; street < 2; street++)
        for (uint32_t i = 0; i < 12; i++) {
            const struct pnet_synth_options o = {.points = 8000, .street = street};
            struct pnet_synth_pair p = make(11, i, &o);
            double overlap = share(&p, &p.pose, street ? 0.4 : 12 / sqrt(8000));
            struct pnet_pose one = pnet_pose_identity();
            CHECKF(overlap >= 0.3 && overlap > share(&p, &one, street ? 0.4 : 12 / sqrt(8000)),
                "%d %u: %.3f", street, i, overlap);
            CHECKF(share(&p, &p.pose, 1e-4) < 0.001, "points of both views are the same");
            if (street) {
                double apart = hypot(p.pose.m[3], p.pose.m[7]);
                CHECKF(apart > 0.9 && apart < 12.5, "%g m", apart);
            }
            pnet_synth_pair_free(&p);
        }
}

static void test_set(void)
{
    for (int street = 0; street < 2; street++) {
        struct folder f = folder_make();
        struct pnet_error e = {.message = ""};
        struct pnet_dataset *d = NULL;
        struct pnet_synth s = {.kind = PNET_SYNTH_PAIRS,
            .folder = f.path,
            .count = 11,
            .seed = 4,
            .options = {.points = 1500, .street = street, .threads = 2}};
        enum pnet_status status = pnet_synth_generate(&s, &e);
        if (!status) status = pnet_dataset_read(f.path, &d, &e);
        CHECKF(!status, "%s", e.message);
        if (!d) exit(1);
        CHECK(d->task == PNET_REGISTRATION && d->counts[PNET_TRAIN] == 9);
        CHECK(d->counts[PNET_VAL] == 1 && d->counts[PNET_TEST] == 1);
        for (int64_t i = 0; i < 11; i++) {
            enum pnet_split split = i == 8 ? PNET_VAL : i == 9 ? PNET_TEST : PNET_TRAIN;
            struct pnet_synth_pair made = make(4, (uint32_t)i, &s.options);
            struct pnet_loaded_pair l;
            CHECK(!pnet_dataset_load_pair(d, split,
                i == 8 || i == 9 ? 0
                : i == 10        ? 8
                                 : i,
                &l, NULL, &e));
            CHECK(same(&made.source, &l.source) && same(&made.target, &l.target));
            for (int k = 0; k < 12; k++) CHECK(l.pose.m[k] == made.pose.m[k]);
            CHECK(pnet_cloud_field(&l.source, "label"));
            pnet_loaded_pair_free(&l);
            pnet_synth_pair_free(&made);
        }
        pnet_dataset_free(d);
        folder_remove(&f);
    }
}

static void test_refused(void)
{
    struct pnet_cloud c;
    struct pnet_synth_pair p;
    struct pnet_error e;
    const struct pnet_synth_options none = {.points = 0}, street = {.street = true},
                                    both = {.street = true, .points = 1000, .azimuth_deg = 1};
    CHECK(pnet_synth_make(PNET_SYNTH_PAIRS, 1, 0, &none, &c, NULL, &e) == PNET_USAGE && !c.xyz);
    CHECK(pnet_synth_make(PNET_SYNTH_ROOMS, 1, 0, &street, &c, NULL, &e) == PNET_USAGE && !c.xyz);
    CHECK(pnet_synth_make_pair(1, 0, &both, &p, &e) == PNET_USAGE && !p.source.xyz);
    CHECK_STR(pnet_synth_kind_name(PNET_SYNTH_PAIRS), "pairs");
    int classes;
    CHECK(!pnet_synth_classes(PNET_SYNTH_PAIRS, &classes) && classes == 0);
}

int main(void)
{
    test_bits();
    test_best();
    test_exact();
    test_views();
    test_set();
    test_refused();
    return check_end();
}
