/* The benchmark rooms as one batch of three samples: the sizes of four triplet sets. They were
   counted in float64; a pair exactly on the ball may fall either way in float32, which a handful of
   pairs may differ by. */
#include "tests/check.h"
#include "tests/geometry/arrays.h"
#include "tests/geometry/cloud.h"

struct expected {
    const char *what;
    struct pnet_neighbourhood nb;
    int64_t triplets, runs;
    int64_t slack; /* pairs on the boundary */
};

static const struct expected sets[] = {
    {"voxel, K=3", {.kernel = 3, .radius = 0.0375f, .degrade = PNET_VOXEL}, 29598409, 29598409, 0},
    {"ball 0.0375 m, K=3", {.kernel = 3, .radius = 0.0375f}, 22695827, 13959652, 20},
    {"ball 0.05 m, K=3", {.kernel = 3, .radius = 0.05f}, 40766845, 17220200, 20},
    {"ball 0.0625 m, K=5", {.kernel = 5, .radius = 0.0625f}, 64311845, 38187316, 20},
};

static struct cloud *read_rooms(const char *dir)
{
    char folder[4200], name[16];
    int64_t splits[4] = {0};
    float *xyz = NULL;
    snprintf(folder, sizeof folder, "%s/data/bench", dir);
    for (int room = 0; room < 3; room++) {
        snprintf(name, sizeof name, "room%d.npy", room);
        struct array a = array_read(folder, name, "<f4", 4);
        if (!a.data) {
            printf("skipped: no %s/%s\n", folder, name);
            exit(77);
        }
        splits[room + 1] = splits[room] + a.rows;
        float *grown = realloc(xyz, (size_t)splits[room + 1] * 3 * sizeof *xyz);
        if (!grown) exit(1);
        xyz = grown;
        memcpy(xyz + 3 * splits[room], a.data, (size_t)a.rows * 3 * sizeof *xyz);
        free(a.data);
    }
    struct cloud *raw = cloud_of(3, splits, xyz, (struct pnet_grid){0.025f, 40.0f, 1});
    struct cloud *c = cloud_sorted(raw);
    cloud_free(raw);
    free(xyz);
    return c;
}

static int64_t apart(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

int main(void)
{
    struct cloud *rooms = read_rooms(check_data_dir());
    CHECK(rooms->level.rows == 2038611);
    for (size_t n = 0; n < sizeof sets / sizeof *sets; n++) {
        const struct expected *e = &sets[n];
        struct set s = set_make(&rooms->level, &rooms->level, &e->nb, NULL);
        int64_t runs = pnet_cpu_cell_runs(&s.t);
        printf("%-20s T %lld (%+lld)  U %lld (%+lld)\n", e->what, (long long)s.t.count,
            (long long)(s.t.count - e->triplets), (long long)runs, (long long)(runs - e->runs));
        CHECKF(
            apart(s.t.count, e->triplets) <= e->slack, "%s: T %lld", e->what, (long long)s.t.count);
        CHECKF(apart(runs, e->runs) <= e->slack, "%s: U %lld", e->what, (long long)runs);
        set_free(&s);
    }
    cloud_free(rooms);
    return check_end();
}
