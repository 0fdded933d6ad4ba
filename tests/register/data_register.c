/* Registration on real pairs: ICP from the listed poses moves about as far as the list says, features that are right
   give the listed poses, and the information matrices of 3DMatch measure what they should. */
#include "runtime/io/cloud.h"
#include "runtime/data/dataset_pose.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/register/register_clouds.h"
#include "runtime/register/register_verdict.h"
#include "tests/check.h"
#include "tests/register/clouds.h"

/* An entry of pairs.json, and its clouds. */
struct real_pair {
    const char *id;
    double truth[16], distance; /* the latter that of the listed overlap */
    double icp_deg, icp_m;
    struct pnet_cloud source, target;
};

static void must(enum pnet_status st, const struct pnet_error *e)
{
    if (st) {
        fprintf(stderr, "%s\n", e->message);
        exit(1);
    }
}

static json_t *read_list(const char *dir)
{
    char path[4096];
    struct pnet_bytes b;
    struct pnet_error e;
    json_t *root;
    snprintf(path, sizeof path, "%s/data/registration/pairs.json", dir);
    must(pnet_bytes_read(path, &b, &e), &e);
    must(pnet_json_parse(path, b.data, b.size, &root, &e), &e);
    pnet_bytes_free(&b);
    return root;
}

/* "overlap_0p05m": 0.05 */
static double overlap_distance(json_t *entry)
{
    const char *key;
    json_t *value;
    json_object_foreach(entry, key, value)
    {
        int whole, digits = 0;
        unsigned part;
        if (sscanf(key, "overlap_%dp%n%u", &whole, &digits, &part) != 2) continue;
        size_t n = strspn(key + digits, "0123456789");
        return whole + part / pow(10, (double)n);
    }
    return 0;
}

static bool read_pair(const char *dir, json_t *list, const char *id, struct real_pair *p)
{
    size_t i;
    json_t *entry;
    *p = (struct real_pair){.id = id};
    json_array_foreach(list, i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "id")), id) != 0) continue;
        const json_t *icp = json_object_get(entry, "icp_refinement");
        p->icp_deg = json_number_value(json_object_get(icp, "deg"));
        p->icp_m = json_number_value(json_object_get(icp, "m"));
        p->distance = overlap_distance(entry);
        for (size_t k = 0; k < 16; k++)
            p->truth[k] = json_number_value(json_array_get(
                json_array_get(json_object_get(entry, "T_target_source"), k / 4), k % 4));
        CHECK(pnet_rigid_clean(p->truth, 1e-3)); /* some have few digits */
        for (int side = 0; side < 2; side++) {
            char path[4096], warning[256];
            struct pnet_error e;
            snprintf(path, sizeof path, "%s/data/%s", dir,
                json_string_value(json_object_get(entry, side ? "target" : "source")));
            must(pnet_cloud_read(path, side ? &p->target : &p->source, warning, &e), &e);
        }
        return true;
    }
    CHECKF(false, "%s is not in the list", id);
    return false;
}

static void free_pair(struct real_pair *p)
{
    pnet_cloud_free(&p->source);
    pnet_cloud_free(&p->target);
}

static void test_icp(const struct real_pair *p)
{
    struct pnet_register_cloud source = {.rows = p->source.rows, .xyz = p->source.xyz},
                               target = {.rows = p->target.rows, .xyz = p->target.xyz};
    struct pnet_icp o = {
        .distance = p->distance, .iterations = 30, .planes = true, .neighbours = 20};
    struct pnet_icp_result r;
    struct pnet_error e;
    double deg, m, hold[6];
    must(pnet_register_refine(&source, &target, p->truth, &o, &r, hold, &e), &e);
    CHECKF(pnet_verdict_free(hold) == 0, "%s: held by %g only", p->id, hold[5]);
    pnet_register_error(p->truth, r.pose, &deg, &m);
    printf("%s: ICP moves by %.3f deg, %.4f m; listed %.3f deg, %.4f m\n", p->id, deg, m,
        p->icp_deg, p->icp_m);
    CHECK(fabs(deg - p->icp_deg) < 0.15 * p->icp_deg + 0.03);
    CHECK(fabs(m - p->icp_m) < 0.15 * p->icp_m + 0.003);
}

/* Features that say where a point lies in the target: matching them is right as far as the listed pose is. */
static void test_exact_features(const struct real_pair *p, bool same_points)
{
    int64_t rows = same_points ? p->target.rows : p->source.rows;
    float *source = malloc((size_t)rows * 3 * sizeof *source),
          *at = malloc((size_t)rows * 3 * sizeof *at);
    if (!source || !at) exit(1);
    if (same_points) { /* the target's own points, as the source would see them */
        double back[16];
        pnet_rigid_invert(p->truth, back);
        memcpy(at, p->target.xyz, (size_t)rows * 3 * sizeof *at);
        pnet_rigid_apply(back, rows, at, source);
    } else {
        memcpy(source, p->source.xyz, (size_t)rows * 3 * sizeof *source);
        pnet_rigid_apply(p->truth, rows, source, at);
    }
    struct pnet_register_cloud s = {rows, source, at, 3},
                               t = {p->target.rows, p->target.xyz, p->target.xyz, 3};
    struct pnet_register_options o = {.points = same_points ? rows : 5000,
        .mutual = true,
        .ransac = {.distance = 0.05,
            .iterations = 50000,
            .points = 3,
            .similarity = 0.9,
            .rand = test_rand(1)}};
    struct pnet_register_found found;
    struct pnet_error e;
    double rre, rte;
    must(pnet_register_features(&s, &t, &o, &found, &e), &e);
    pnet_register_error(p->truth, found.ransac.pose, &rre, &rte);
    printf("%s: %s: RRE %.4f deg, RTE %.4f m, %lld matches, %lld inliers\n", p->id,
        same_points ? "same points" : "5000 points a side", rre, rte, (long long)found.matches,
        (long long)found.ransac.inliers);
    CHECK(found.ransac.found);
    CHECK(same_points ? rre < 0.002 && rte < 1e-4 && found.ransac.inliers == rows
                      : rre < 2 && rte < 0.08);
    free(source);
    free(at);
}

/* The matrix of one pair in a gt.info file: "i j n", six lines of six numbers. */
static bool find_info(const char *path, int target, int source, double info[36])
{
    FILE *f = fopen(path, "r");
    int i, j, n;
    bool found = false;
    while (f && !found && fscanf(f, "%d %d %d", &i, &j, &n) == 3) {
        for (int k = 0; k < 36; k++)
            if (fscanf(f, "%lf", &info[k]) != 1) info[k] = NAN;
        found = i == target && j == source;
    }
    if (f) fclose(f);
    return found;
}

/* For moves without a turn the matrix and the points say the same. */
static void test_info(const char *dir, const struct real_pair *p, int target, int source)
{
    char path[4096];
    double info[36], off[16], pose[16];
    snprintf(
        path, sizeof path, "%s/data/registration/3dmatch/7-scenes-redkitchen/3DMatch_gt.info", dir);
    if (!find_info(path, target, source, info)) {
        CHECKF(false, "%s: no pair %d %d", path, target, source);
        return;
    }
    pnet_rigid_make((double[3]){0, 0, 1}, 0, (double[3]){0.1, 0.05, -0.15}, off);
    pnet_rigid_multiply(p->truth, off, pose);
    double length = pnet_rigid_length(off), of_info = pnet_register_info_rmse(info, p->truth, pose);
    void *work =
        aligned_alloc(64, pnet_register_rmse_work(p->source.rows, p->target.rows) / 64 * 64 + 64);
    if (!work) exit(1);
    double of_points = pnet_register_rmse(
        p->source.rows, p->source.xyz, p->target.rows, p->target.xyz, p->truth, pose, 0.05, work);
    CHECKF(fabs(of_info - length) < 1e-6 && fabs(of_points - length) < 1e-6, "%g %g %g", of_info,
        of_points, length);
    CHECK(pnet_register_info_rmse(info, p->truth, p->truth) < 1e-9);
    /* with a turn the matrix sees half of it */
    pnet_rigid_make((double[3]){0.3, 1, 0.2}, 4, (double[3]){0, 0, 0}, off);
    pnet_rigid_multiply(p->truth, off, pose);
    of_info = pnet_register_info_rmse(info, p->truth, pose);
    of_points = pnet_register_rmse(
        p->source.rows, p->source.xyz, p->target.rows, p->target.xyz, p->truth, pose, 0.05, work);
    CHECKF(of_points / of_info > 1.5 && of_points / of_info < 2.5, "%g by points, %g by matrix",
        of_points, of_info);
    free(work);
}

int main(void)
{
    const char *dir = check_data_dir();
    static const char *const refined[] = {"kitti_04_000000_000009", "kitti_10_000000_000009",
        "3DMatch_sun3d-hotel_umd-maryland_hotel3_21_28",
        "3DMatch_sun3d-hotel_umd-maryland_hotel3_23_29", "3DMatch_7-scenes-redkitchen_3_14",
        "3DMatch_7-scenes-redkitchen_1_12", "bunny_045_000", "car_401_400"};
    static const struct {
        const char *id;
        int target, source;
    } matched[] = {{"3DMatch_7-scenes-redkitchen_3_14", 3, 14},
        {"3DMatch_7-scenes-redkitchen_1_12", 1, 12}, {"3DMatch_7-scenes-redkitchen_7_15", 7, 15}};
    json_t *list = read_list(dir);
    struct real_pair p;
    for (int i = 0; i < 8; i++) {
        if (read_pair(dir, list, refined[i], &p)) test_icp(&p);
        free_pair(&p);
    }
    for (int i = 0; i < 3; i++) {
        if (read_pair(dir, list, matched[i].id, &p)) {
            test_exact_features(&p, false);
            test_exact_features(&p, true);
            test_info(dir, &p, matched[i].target, matched[i].source);
        }
        free_pair(&p);
    }
    json_decref(list);
    return check_end();
}
