/* Data sets of pairs: poses as files and numbers, what entries list, and what is refused. */
#include "runtime/data/augment_views.h"
#include "runtime/data/dataset.h"
#include "kernels/philox.h"
#include "runtime/data/dataset_overlap.h"
#include "runtime/io/npy.h"
#include "tests/data/folder.h"

static const char head[] = "pnet_dataset: 1\ntask: registration\n";

static struct pnet_dataset *read_index(const struct folder *f, const char *rest)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    folder_print(f, "dataset.yaml", "%s%s", head, rest);
    enum pnet_status status = pnet_dataset_read(f->path, &d, &e);
    CHECKF(!status, "%s", e.message);
    if (!d) exit(1);
    return d;
}

/* The message follows "FOLDER/dataset.yaml:", and names of files are without "FOLDER/". */
static void expect_bad(const struct folder *f, const char *rest, const char *message)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = "nothing"};
    char got[1024] = "";
    folder_print(f, "dataset.yaml", "%s%s", head, rest);
    CHECK(pnet_dataset_read(f->path, &d, &e) == PNET_BAD_DATA && !d);
    for (const char *c = e.message; *c;) {
        size_t skip = strlen(f->path) + 1, n = strlen(got);
        if (strncmp(c, f->path, skip - 1) == 0 && c[skip - 1] == '/') c += skip;
        got[n] = *c++;
    }
    size_t skip = strlen("dataset.yaml:");
    CHECK_STR(strlen(got) > skip ? got + skip : got, message);
}

static const struct pnet_pose quarter = {{0, -1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 3, 0, 0, 0, 1}};

static bool near_pose(const struct pnet_pose *a, const struct pnet_pose *b, double off)
{
    bool near = true;
    for (int i = 0; i < 16; i++) near &= fabs(a->m[i] - b->m[i]) <= off;
    return near;
}

static void check_ends(const char *path, const char *ending)
{
    size_t n = path ? strlen(path) : 0, m = strlen(ending);
    CHECKF(n >= m && strcmp(path + n - m, ending) == 0, "%s does not end in %s", path, ending);
}

static void expect_pair(
    const struct pnet_dataset *d, int64_t i, const char *source, const char *target)
{
    CHECK(i < d->counts[PNET_TRAIN]);
    if (i >= d->counts[PNET_TRAIN]) return;
    const struct pnet_entry *entry = &d->entries[PNET_TRAIN][i];
    check_ends(entry->cloud, source);
    check_ends(entry->pair->target, target);
    CHECK(entry->pair->views == -1 && entry->pair->view == 0);
}

enum { INFO_ROOM = 4096 };

/* The text of a gt.info: for each pair of fragments a matrix that says which pair it is of. */
static void info_text(char text[INFO_ROOM], const int (*ids)[2], int count)
{
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        n += (size_t)snprintf(text + n, INFO_ROOM - n, "%d\t %d\t 4\n", ids[i][0], ids[i][1]);
        for (int k = 0; k < 36; k++)
            n += (size_t)snprintf(text + n, INFO_ROOM - n, "%d%s",
                k % 7 ? k % 6 + k / 6 : 100 + 10 * ids[i][0] + ids[i][1], k % 6 == 5 ? "\n" : " ");
    }
}

static void put_files(const struct folder *f)
{
    static const char *const clouds[] = {"a.txt", "b.txt", "p/c_0.txt", "p/c_1.txt", "p/c_3.txt",
        "m/x_s.txt", "m/x_t.txt", "m/y_s.txt", "m/y_t.txt"};
    for (size_t i = 0; i < sizeof clouds / sizeof *clouds; i++)
        folder_print(f, clouds[i], "%zu 0 0\n0 1 0\n", i);
    folder_print(f, "far.txt", "%.1f 5000000 10\n%.1f 5000001 10\n", 400001.5, 400002.0);
    folder_print(f, "pose.txt", "# a quarter turn\n0 -1 0 1\n1 0 0 2\n\n0 0 1 3\n0 0 0 1\n");
    folder_print(f, "m/x.txt", "0 -1 0 1 1 0 0 2 0 0 1 3\n");
    folder_print(f, "m/y.txt", "1 0 0 0\r\n0 1 0 0\r\n0 0 1 0\r\n");
    folder_print(f, "one.log", "0\t 1\t 2\n0\t-1 0 1\n1 0 0 2\n0 0 1 3\n0 0 0 1\n");
    folder_print(f, "gt.log",
        "0 1 4\n0 -1 0 1\n1 0 0 2\n0 0 1 3\n0 0 0 1\n"
        "1 3 4\n1 0 0 1\n0 1 0 2\n0 0 1 3\n0 0 0 1\n"
        "0 2 4\n1 0 0 1\n0 1 0 2\n0 0 1 3\n0 0 0 1\n"
        "0 3 4\n1 0 0 4\n0 1 0 2\n0 0 1 3\n0 0 0 1\n");
    static const int ids[4][2] = {{0, 2}, {0, 3}, {1, 3}, {0, 1}}; /* not as in the log */
    char info[INFO_ROOM];
    info_text(info, ids, 4);
    folder_print(f, "gt.info", "%s", info);
    info_text(info, ids, 2);
    folder_print(f, "two.info", "%s", info);
    struct pnet_error e;
    int64_t shape[] = {4, 4};
    CHECK(!pnet_npy_write(folder_path(f, "pose.npy"), PNET_F64, 2, shape, quarter.m, &e));
}

/* Every way to give one pose gives the same. */
static void test_poses(const struct folder *f)
{
    static const char *const poses[] = {"pose.txt", "pose.npy", "one.log", "m/x.txt",
        "[0, -1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 3]",
        "[0, -1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 3, 0, 0, 0, 1]",
        "[[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3]]",
        "[[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]]"};
    for (size_t i = 0; i < sizeof poses / sizeof *poses; i++) {
        char text[256];
        snprintf(
            text, sizeof text, "train: [{source: a.txt, target: b.txt, pose: %s}]\n", poses[i]);
        struct pnet_dataset *d = read_index(f, text);
        CHECK(d->task == PNET_REGISTRATION && d->class_count == 0 && d->counts[PNET_TRAIN] == 1);
        expect_pair(d, 0, "/a.txt", "/b.txt");
        CHECKF(near_pose(&d->entries[PNET_TRAIN][0].pair->pose, &quarter, 0), "%s", poses[i]);
        pnet_dataset_free(d);
    }
    struct pnet_pose back = pnet_pose_inverse(&quarter), one = pnet_pose_identity();
    struct pnet_pose round = pnet_pose_multiply(&back, &quarter);
    double p[3] = {1, 0, 0}, q[3];
    pnet_pose_apply(&quarter, p, q);
    CHECK(q[0] == 1 && q[1] == 3 && q[2] == 3 && near_pose(&round, &one, 1e-15));
}

static void test_lists(const struct folder *f)
{
    struct pnet_dataset *d =
        read_index(f, "train:\n"
                      "  - {source: m/*_s.txt, target: m/*_t.txt, pose: m/*.txt}\n"
                      "  - {log: gt.log, clouds: p/c_*.txt, missing: skip}\n"
                      "  - {log: gt.log, clouds: p/c_*.txt, missing: skip, keep_every: 3}\n"
                      "  - {log: gt.log, clouds: p/c_*.txt, missing: skip, drop_every: 2}\n"
                      "  - {log: gt.log, clouds: p/c_*.txt, missing: skip, apart: 2}\n"
                      "  - {log: gt.log, clouds: p/c_*.txt, missing: skip, info: gt.info}\n");
    CHECK(d->counts[PNET_TRAIN] == 2 + 3 + 2 + 2 + 2 + 3);
    expect_pair(d, 0, "m/x_s.txt", "m/x_t.txt");
    expect_pair(d, 1, "m/y_s.txt", "m/y_t.txt");
    expect_pair(d, 2, "p/c_1.txt", "p/c_0.txt"); /* "0 1": 1 goes into 0 */
    expect_pair(d, 3, "p/c_3.txt", "p/c_1.txt");
    expect_pair(d, 4, "p/c_3.txt", "p/c_0.txt"); /* fragment 2 is not there */
    expect_pair(d, 5, "p/c_1.txt", "p/c_0.txt"); /* numbers 0 and 3 */
    expect_pair(d, 6, "p/c_3.txt", "p/c_0.txt");
    expect_pair(d, 7, "p/c_3.txt", "p/c_1.txt"); /* numbers 1 and 3 */
    expect_pair(d, 8, "p/c_3.txt", "p/c_0.txt");
    expect_pair(d, 9, "p/c_3.txt", "p/c_1.txt");
    expect_pair(d, 10, "p/c_3.txt", "p/c_0.txt");
    CHECK(near_pose(&d->entries[PNET_TRAIN][0].pair->pose, &quarter, 0));
    CHECK(near_pose(&d->entries[PNET_TRAIN][2].pair->pose, &quarter, 0));
    CHECK(d->entries[PNET_TRAIN][4].pair->pose.m[3] == 4);
    CHECK(!d->entries[PNET_TRAIN][10].pair->information);
    for (int i = 0; i < 3; i++) {
        static const int of[3] = {101, 113, 103};
        const double *m = d->entries[PNET_TRAIN][11 + i].pair->information;
        CHECK(m && m[0] == of[i] && m[1] == 1 && m[34] == 9 && m[35] == of[i]);
    }
    char name[256];
    pnet_entry_name(&d->entries[PNET_TRAIN][3], name, sizeof name);
    check_ends(name, "p/c_1.txt");
    CHECK(strstr(name, "p/c_3.txt to "));
    pnet_dataset_free(d);

    d = read_index(f,
        "train: [{cloud: p/*.txt, views: {count: 3, overlap: [50%, 0.75], rotate: [1, 2, 3]}},\n"
        "  {cloud: a.txt, views: {noise: 1cm, seed: 9, disjoint: yes, level: yes, shift: 2m}}]\n");
    const struct pnet_entry *t = d->entries[PNET_TRAIN];
    CHECK(d->counts[PNET_TRAIN] == 10 && d->view_count == 2);
    for (int i = 0; i < 10; i++)
        CHECK(!t[i].pair->target && t[i].pair->view == i % 3 && t[i].pair->views == i / 9);
    check_ends(t[8].cloud, "p/c_3.txt");
    const struct pnet_views *v = d->views;
    CHECK(v[0].count == 3 && v[0].overlap[0] == 0.5 && v[0].overlap[1] == 0.75 && v[0].seed == 1);
    CHECK(v[0].rotate == PNET_ROTATE_ANGLES && v[0].angle_deg[2] == 3 && v[0].points[0] == 1);
    CHECK(v[1].count == 1 && v[1].noise_m == 0.01 && v[1].shift_m == 2 && v[1].seed == 9);
    CHECK(v[1].disjoint && v[1].level && v[1].rotate == PNET_ROTATE_XYZ && v[1].overlap[0] == 1);
    pnet_dataset_free(d);
}

/* A drive of 3 m a frame along the camera's z, which is the scanner's x; the scanner sits 0.27 m
   behind. */
static void test_kitti(const struct folder *f)
{
    char poses[1024] = "";
    for (int i = 0; i < 12; i++) {
        char name[32];
        snprintf(poses + strlen(poses), sizeof poses - strlen(poses), "1 0 0 0 0 1 0 0 0 0 1 %d\n",
            3 * i);
        snprintf(name, sizeof name, "k/velodyne/%06d.bin", i);
        folder_put(f, name, (float[4]){1, 2, 3, 0}, 16);
    }
    folder_print(f, "k/poses.txt", "%s", poses);
    folder_print(
        f, "k/calib.txt", "P0: 1 0 0 0 0 1 0 0 0 0 1 0\nTr: 0 -1 0 0 0 0 -1 -0.08 1 0 0 -0.27\n");
    folder_print(f, "k/p2.txt", "P0: 1 0 0 0 0 1 0 0 0 0 1 0\n");
    folder_print(f, "k/tr.txt", "0 -1 0 0 0 0 -1 -0.08 1 0 0 -0.27\n");
    struct pnet_dataset *d = read_index(f,
        "train:\n"
        "  - {velodyne: k/velodyne, poses: k/poses.txt, calib: k/calib.txt, pairs: [[0, 9], [5, "
        "2]]}\n"
        "  - {velodyne: k/velodyne, poses: k/poses.txt, calib: k/tr.txt, pairs: {step: 10}}\n"
        "  - {velodyne: k/velodyne, poses: k/poses.txt, calib: k/calib.txt, pairs: {distance: "
        "10m}}\n");
    const struct pnet_entry *t = d->entries[PNET_TRAIN];
    CHECK(d->counts[PNET_TRAIN] == 2 + 2 + 2);
    expect_pair(d, 0, "000009.bin", "000000.bin");
    expect_pair(d, 1, "000002.bin", "000005.bin");
    expect_pair(d, 2, "000000.bin", "000010.bin");
    expect_pair(d, 3, "000001.bin", "000011.bin");
    /* 12 m are beyond 10, so 9 m are the last within; then on from the frame behind. */
    expect_pair(d, 4, "000000.bin", "000003.bin");
    expect_pair(d, 5, "000004.bin", "000007.bin");
    static const double x[] = {27, -9, -30, -30, -9, -9};
    for (int i = 0; i < 6; i++) {
        struct pnet_pose want = pnet_pose_identity();
        want.m[3] = x[i];
        CHECKF(near_pose(&t[i].pair->pose, &want, 1e-12), "pair %d: %g %g %g", i,
            t[i].pair->pose.m[3], t[i].pair->pose.m[7], t[i].pair->pose.m[11]);
    }
    pnet_dataset_free(d);
    unlink(folder_path(f, "k/velodyne/000002.bin"));
    expect_bad(f,
        "train: [{velodyne: k/velodyne, poses: k/poses.txt, calib: k/calib.txt, pairs: [[5, "
        "2]]}]\n",
        "3: k/velodyne/000002.bin: No such file or directory");
    expect_bad(f,
        "train: [{velodyne: k/velodyne, poses: k/poses.txt, calib: k/calib.txt, pairs: [[5, "
        "12]]}]\n",
        "3: 12 is out of range, 0 to 11");
    expect_bad(f,
        "train: [{velodyne: k/velodyne, poses: k/poses.txt, calib: k/calib.txt, pairs: {}}]\n",
        "3: pairs: expected one of `step` and `distance`, or a list");
    expect_bad(f,
        "train: [{velodyne: k/velodyne, poses: k/poses.txt, calib: k/p2.txt, pairs: [[0, "
        "1]]}]\n",
        "3: k/p2.txt: has no line `Tr:`, and is no matrix of its own");
    expect_bad(f, "train: [{velodyne: k/velodyne, poses: k/poses.txt}]\n",
        "3: a sequence of KITTI needs `velodyne`, `poses`, `calib` and `pairs`");
}

/* Offsets of clouds far from the origin are part of the pose. */
static void test_offsets(const struct folder *f)
{
    struct pnet_dataset *d = read_index(f,
        "train: [{source: far.txt, target: a.txt, pose: [0, -1, 0, 5000000, 1, 0, 0, -400000, 0, "
        "0, 1, 0]},\n"
        "  {source: a.txt, target: far.txt, pose: [0, 1, 0, 400000, -1, 0, 0, 5000000, 0, 0, 1, "
        "0]}]\n");
    struct pnet_error e;
    for (int i = 0; i < 2; i++) {
        struct pnet_loaded_pair l;
        char warning[2][256];
        CHECK(!pnet_dataset_load_pair(d, PNET_TRAIN, i, &l, warning, &e));
        const struct pnet_pose *file = &d->entries[PNET_TRAIN][i].pair->pose;
        CHECK((i ? l.target : l.source).offset[1] == 5000000 && !warning[0][0] && !warning[1][0]);
        for (int64_t row = 0; row < l.source.rows; row++) {
            double p[3], whole[3], q[3];
            for (int c = 0; c < 3; c++) {
                p[c] = (double)l.source.xyz[3 * row + c];
                whole[c] = p[c] + l.source.offset[c];
            }
            pnet_pose_apply(file, whole, whole);
            pnet_pose_apply(&l.pose, p, q);
            for (int c = 0; c < 3; c++) CHECK(fabs(q[c] + l.target.offset[c] - whole[c]) < 1e-9);
        }
        CHECK(fabs(l.pose.m[3]) < 1000 && fabs(l.pose.m[7]) < 1000);
        pnet_loaded_pair_free(&l);
    }
    pnet_dataset_free(d);
}

/* Angle of a rotation, in degrees. */
static double angle(const double *m, int stride)
{
    double c = (m[0] + m[stride + 1] + m[2 * stride + 2] - 1) / 2;
    return acos(fmax(-1, fmin(1, c))) * 57.295779513082320877;
}

/* The quadratic form that evaluation makes of an information matrix, of a translation and a rotation vector. */
static double weigh(const double *matrix, const double e[6])
{
    double sum = 0;
    for (int i = 0; i < 36; i++) sum += e[i / 6] * matrix[i] * e[i % 6];
    return sum;
}

/* A turned source meets the target where it did before: pose * turn is the pose of the files. */
static void check_turned(const struct pnet_pair *turned, const struct pnet_pair *plain)
{
    struct pnet_pose turn = pnet_pose_identity();
    for (int i = 0; i < 9; i++) turn.m[i / 3 * 4 + i % 3] = turned->turn[i / 3][i % 3];
    struct pnet_pose round = pnet_pose_multiply(&turned->pose, &turn);
    CHECK(turned->turned && !plain->turned && near_pose(&round, &plain->pose, 1e-12));
    for (int i = 3; i < 12; i += 4) CHECK(fabs(turned->pose.m[i] - plain->pose.m[i]) < 1e-12);
    CHECK(!turned->information == !plain->information);
    static const double e[6] = {0.1, -0.2, 0.3, 0.02, 0.05, -0.01};
    double moved[6] = {0};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3; k++) moved[i] += turned->turn[i % 3][k] * e[i / 3 * 3 + k];
    if (plain->information)
        CHECK(fabs(weigh(turned->information, moved) / weigh(plain->information, e) - 1) < 1e-9);
}

static void test_turns(const struct folder *f)
{
    struct pnet_dataset *plain =
        read_index(f, "train:\n  - {log: gt.log, clouds: p/c_*.txt, missing: skip, info: gt.info}\n"
                      "  - {source: m/*_s.txt, target: m/*_t.txt, pose: m/*.txt}\n"
                      "test: [{log: gt.log, clouds: p/c_*.txt, missing: skip}]\n");
    struct pnet_dataset *turned = read_index(f,
        "train:\n  - {log: gt.log, clouds: p/c_*.txt, missing: skip, info: gt.info, turn: xyz}\n"
        "  - {source: m/*_s.txt, target: m/*_t.txt, pose: m/*.txt, turn: [0, 0, 30]}\n"
        "test: [{log: gt.log, clouds: p/c_*.txt, missing: skip, turn: xyz}]\n");
    const struct pnet_entry *a = turned->entries[PNET_TRAIN], *b = turned->entries[PNET_TEST];
    CHECK(turned->counts[PNET_TRAIN] == 5 && turned->counts[PNET_TEST] == 3);
    for (int i = 0; i < 5; i++) check_turned(a[i].pair, plain->entries[PNET_TRAIN][i].pair);
    for (int i = 0; i < 3; i++) {
        CHECK(angle(&a[i].pair->turn[0][0], 3) > 5);
        for (int k = 0; k < 3; k++) /* each pair of each split has a turn of its own */
            CHECK(
                memcmp(a[i].pair->turn, b[k].pair->turn, sizeof a[i].pair->turn) != 0 &&
                (i == k || memcmp(a[i].pair->turn, a[k].pair->turn, sizeof a[i].pair->turn) != 0));
    }
    for (int i = 3; i < 5; i++)
        CHECK(angle(&a[i].pair->turn[0][0], 3) <= 30 && a[i].pair->turn[2][2] == 1);
    pnet_dataset_free(plain);

    /* Another reading, and a pair alone in its entry: the turn hangs on the number of the pair. */
    struct pnet_dataset *again = read_index(f,
        "train:\n  - {log: gt.log, clouds: p/c_*.txt, missing: skip, turn: xyz, keep_every: 4}\n"
        "  - {source: a.txt, target: b.txt, pose: pose.txt, turn: xyz}\n");
    for (int i = 0; i < 2; i++)
        CHECK(memcmp(a[i].pair->turn, again->entries[PNET_TRAIN][i].pair->turn,
                  sizeof a[i].pair->turn) == 0);
    pnet_dataset_free(again);
    pnet_dataset_free(turned);
}

/* What loads is turned, far from the origin too: under the poses of both indices each point comes to one place. */
static void test_turned_clouds(const struct folder *f)
{
    static const char entry[] =
        "train: [{source: far.txt, target: a.txt, pose: [0, -1, 0, 5000000, 1, 0, 0, -400000, 0, "
        "0, 1, 0]%s}]\n";
    struct pnet_loaded_pair l[2];
    double p[3];
    struct pnet_error e;
    for (int i = 0; i < 2; i++) {
        char text[256];
        snprintf(text, sizeof text, entry, i ? ", turn: xyz" : "");
        struct pnet_dataset *d = read_index(f, text);
        CHECK(!pnet_dataset_load_pair(d, PNET_TRAIN, 0, &l[i], NULL, &e));
        if (i)
            for (int c = 0; c < 3; c++) {
                p[c] = 0;
                for (int k = 0; k < 3; k++)
                    p[c] += d->entries[PNET_TRAIN][0].pair->turn[c][k] *
                            (l[0].source.offset[k] + (double)l[0].source.xyz[k]);
            }
        pnet_dataset_free(d);
    }
    for (int c = 0; c < 3; c++)
        CHECKF(fabs(l[1].source.offset[c] + (double)l[1].source.xyz[c] - p[c]) < 1e-3, "%g",
            l[1].source.offset[c] + (double)l[1].source.xyz[c] - p[c]);
    CHECK(l[1].source.rows == 2 && fabs(l[1].source.offset[1] - 5000000) > 1);
    for (int64_t row = 0; row < 2; row++) {
        double q[2][3];
        for (int i = 0; i < 2; i++) {
            for (int c = 0; c < 3; c++) p[c] = (double)l[i].source.xyz[3 * row + c];
            pnet_pose_apply(&l[i].pose, p, q[i]);
        }
        for (int c = 0; c < 3; c++) CHECKF(fabs(q[0][c] - q[1][c]) < 1e-4, "%g", q[0][c] - q[1][c]);
    }
    for (int i = 0; i < 2; i++) pnet_loaded_pair_free(&l[i]);
}

static void test_errors(const struct folder *f)
{
    expect_bad(
        f, "train: [{cloud: a.txt, views: {}, turn: xyz}]\n", "3: turn: not together with `cloud`");
    expect_bad(f, "train: [{source: a.txt, target: b.txt, pose: pose.txt, turn: x}]\n",
        "3: turn: `x` is not one of no, z, xyz");
    expect_bad(f, "classes: [a]\n",
        "3: classes: pairs of clouds have no classes; `task: registration` goes without it");
    expect_bad(f, "train: [a.txt]\n", "3: entry: expected `key: value` pairs, got a word");
    expect_bad(
        f, "train: [{sorce: a.txt}]\n", "3: entry: unknown key `sorce`; did you mean `source`?");
    expect_bad(f, "train: [{pose: pose.txt}]\n",
        "3: an entry needs `source`, `target` and `pose`, or `log` and `clouds`, or `velodyne`, "
        "or `cloud` and `views`");
    expect_bad(f, "train: [{source: a.txt, target: b.txt}]\n", "3: `source` needs `pose`");
    expect_bad(f, "train: [{source: a.txt, pose: pose.txt}]\n", "3: `source` needs `target`");
    expect_bad(f, "train: [{cloud: a.txt}]\n",
        "3: `cloud` needs `views`; a pair of two files has `source`");
    expect_bad(f, "train: [{log: gt.log}]\n", "3: `log` needs `clouds`");
    expect_bad(f, "train: [{log: gt.log, clouds: c.txt}]\n",
        "3: clouds: `c.txt` needs one *, which stands for the number of a fragment");
    expect_bad(f, "train: [{source: a.txt, target: b.txt, pose: pose.txt, views: {}}]\n",
        "3: views: not together with `source`");
    expect_bad(f, "train:\n - {source: a.txt, target: b.txt, pose: [1, 2, 3]}\n",
        "4: pose: a pose has 12 numbers, three rows [R t], or 16, with 0 0 0 1 as the last row");
    expect_bad(f,
        "train: [{source: a.txt, target: b.txt, pose: [2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]}]\n",
        "3: pose: the 3x3 part is no rotation: its columns are not orthonormal");
    expect_bad(f,
        "train: [{source: a.txt, target: b.txt, pose: [-1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]}]\n",
        "3: pose: the 3x3 part is no rotation: it mirrors");
    expect_bad(
        f, "train: [{source: a.txt, target: b.txt, pose: [x]}]\n", "3: expected a number, got `x`");
    expect_bad(f, "train: [{source: a.txt, target: b.txt, pose: none.txt}]\n",
        "3: none.txt: No such file or directory");
    expect_bad(f, "train: [{source: a.txt, target: none.txt, pose: pose.txt}]\n",
        "3: none.txt: No such file or directory");
    expect_bad(f, "train: [{source: a.txt, target: b.txt, pose: gt.log}]\n",
        "3: gt.log: holds 4 poses, expected one; `log:` lists them all");
    expect_bad(f, "train: [{log: gt.log, clouds: p/c_*.txt}]\n",
        "3: p/c_2.txt: No such file or directory");
    expect_bad(f, "train: [{log: gt.log, clouds: q/c_*.txt, missing: skip}]\n",
        "3: the files of all its 4 pairs are missing");
    expect_bad(f, "train: [{cloud: a.txt, views: {overlap: [90%, 50%]}}]\n",
        "3: overlap: from 0.9 down to 0.5");
    expect_bad(f, "train: [{cloud: a.txt, views: {overlaps: 1}}]\n",
        "3: views: unknown key `overlaps`; did you mean `overlap`?");
    folder_print(f, "bad.log", "0 1 2\n1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n1 2\n");
    expect_bad(f, "train: [{log: bad.log, clouds: p/c_*.txt}]\n",
        "3: bad.log:6: expected three whole numbers: target, source, number of fragments");
    folder_print(f, "bad.log", "0 1 2\n1 0 0 0\n0 1 0\n");
    expect_bad(f, "train: [{log: bad.log, clouds: p/c_*.txt}]\n",
        "3: bad.log:3: a row of 3 numbers, expected 4");
    folder_print(f, "bad.log", "0 1 2\n1 0 0 0\n");
    expect_bad(f, "train: [{log: bad.log, clouds: p/c_*.txt}]\n",
        "3: bad.log:2: the file ends inside of a 4x4 matrix");
    expect_bad(f, "train: [{log: gt.log, clouds: p/c_*.txt, missing: skip, info: two.info}]\n",
        "3: info: says nothing of fragments 0 and 1");
    folder_print(f, "bad.info", "0 1 4\n1 2 3 4 5\n");
    expect_bad(f, "train: [{log: gt.log, clouds: p/c_*.txt, missing: skip, info: bad.info}]\n",
        "3: bad.info:2: a row of 5 numbers, expected 6");
    folder_print(f, "bad.info", "0 1 4\n1 2 3 4 5 6\n1 1 1 1 1 1\n%s%s%s%s", "1 1 1 1 1 1\n",
        "1 1 1 1 1 1\n", "1 1 1 1 1 1\n", "1 1 1 1 1 1\n");
    expect_bad(f, "train: [{log: gt.log, clouds: p/c_*.txt, missing: skip, info: bad.info}]\n",
        "3: bad.info:7: the 6x6 matrix is not symmetric");
    expect_bad(f, "train: [{source: a.txt, target: b.txt, pose: pose.txt, info: gt.info}]\n",
        "3: info: not together with `source`");
    folder_print(f, "bad.txt", "1 0 0 0\n0 1 x 0\n");
    expect_bad(f, "train: [{source: a.txt, target: b.txt, pose: bad.txt}]\n",
        "3: bad.txt:2: expected a number, got `x`");
}

/* How many points of one cloud lie near one of the other: every pair is looked at. */
static int64_t count_near(const float *a, const float *b, int64_t rows, double radius_m)
{
    int64_t near = 0;
    for (int64_t i = 0; i < rows; i++) {
        bool found = false;
        for (int64_t j = 0; j < rows; j++) {
            double square = 0;
            for (int k = 0; k < 3; k++)
                square += pow((double)a[3 * i + k] - (double)b[3 * j + k], 2);
            found |= square <= radius_m * radius_m;
        }
        near += found;
    }
    return near;
}

/* Quotients of coordinates and radii that no integer holds, and those around 2^53. */
static void test_overlap(void)
{
    enum { ROWS = 60 };
    static const double radius_m[] = {0.05, 1e-300, 1e-12, 3, 1e6};
    static const float scale[] = {1e-30f, 1, 1e6f, 0x1p52f, 0x1p53f, 1e18f, 1e30f};
    const struct pnet_pose still = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};
    struct pnet_rand rand = {.seed = 8, .purpose = PNET_DRAW_TEST};
    struct pnet_error e;
    for (size_t s = 0; s < sizeof scale / sizeof *scale; s++)
        for (size_t r = 0; r < sizeof radius_m / sizeof *radius_m; r++) {
            float a[3 * ROWS], b[3 * ROWS];
            int64_t near = -1, want;
            for (int i = 0; i < 3 * ROWS; i++) { /* every third point is there twice */
                a[i] = scale[s] * (2 * pnet_rand_unit(&rand, (uint64_t)i) - 1);
                b[i] = i / 3 % 3 ? -a[3 * ROWS - 1 - i] : a[i];
            }
            CHECK(!pnet_overlap(a, ROWS, b, ROWS, &still, radius_m[r], &near, &e));
            want = count_near(a, b, ROWS, radius_m[r]);
            CHECKF(near == want && want >= ROWS / 3, "up to %g m, within %g m: %d, not %d",
                (double)scale[s], radius_m[r], (int)near, (int)want);
        }
}

int main(void)
{
    struct folder f = folder_make();
    test_overlap();
    put_files(&f);
    test_poses(&f);
    test_lists(&f);
    test_kitti(&f);
    test_offsets(&f);
    test_turns(&f);
    test_turned_clouds(&f);
    test_errors(&f);
    folder_remove(&f);
    return check_end();
}
