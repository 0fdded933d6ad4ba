/* Reads the entries of a registration data set, and loads pairs. */
#include "runtime/data/augment_views.h"
#include "runtime/data/dataset_listing.h"
#include "runtime/data/dataset_turn.h"
#include "runtime/base/glob.h"
#include "runtime/data/input_map.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_FRAMES = 100 }; /* FCGF takes its pairs from windows of this length */

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static struct pnet_listing begin_listing(
    struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s)
{
    static const char *const words[] = {"skip"};
    const struct pnet_yaml_node *missing = pnet_yaml_get(n, "missing");
    struct pnet_listing l = pnet_listing_begin(r, n, s);
    l.skip = missing && pnet_yaml_choice(r->y, missing, words, 1, 0) == 0;
    return l;
}

/* Lists one pair with its pose. */
static bool list_pair(
    struct pnet_listing *l, const char *source, const char *target, const struct pnet_pose *pose)
{
    l->common.pose = *pose;
    return pnet_listing_pair(l, source, target);
}

static void end_listing(const struct pnet_listing *l, int64_t before)
{
    if (pnet_yaml_ok(l->r->y) && l->r->d->counts[l->split] == before && l->skip)
        pnet_yaml_fail(
            l->r->y, l->n, "the files of all its %" PRId64 " pairs are missing", l->number);
}

/* Reads the numbers of a list, or of the lists in it. Returns their number, at most `most` + 1. */
static int read_numbers(
    struct pnet_index *r, const struct pnet_yaml_node *n, double *numbers, int count, int most)
{
    for (const struct pnet_yaml_node *c = n->first; c && count <= most; c = c->next) {
        if (c->kind == PNET_YAML_LIST)
            count = read_numbers(r, c, numbers, count, most);
        else if (count++ < most)
            numbers[count - 1] = pnet_yaml_real(r->y, c, -1e9, 1e9, 0);
    }
    return count;
}

/* Reads a pose: numbers, or the name of a file. */
static void read_pose(struct pnet_index *r, const struct pnet_yaml_node *n, struct pnet_pose *pose)
{
    double numbers[16];
    struct pnet_error e;
    *pose = pnet_pose_identity();
    if (n->kind == PNET_YAML_LIST) {
        int count = read_numbers(r, n, numbers, 0, 16);
        const char *fault = pnet_yaml_ok(r->y) ? pnet_pose_set(pose, numbers, count) : NULL;
        if (fault) pnet_yaml_fail(r->y, n, "pose: %s", fault);
        return;
    }
    const char *name = pnet_yaml_string(r->y, n, NULL);
    char *path = name ? pnet_index_find_file(r, n, name) : NULL;
    if (!path) return;
    enum pnet_status status = pnet_pose_read(path, pose, &e);
    if (status) pnet_index_fail(r, n, status, &e);
    free(path);
}

static void read_one_pair(struct pnet_listing *l, const char *source, const char *target,
    const struct pnet_yaml_node *pose_node)
{
    struct pnet_pose pose;
    read_pose(l->r, pose_node, &pose);
    char *from = pnet_yaml_ok(l->r->y) ? pnet_path_join(l->r->folder, source) : NULL;
    char *to = from ? pnet_path_join(l->r->folder, target) : NULL;
    if (from && to)
        list_pair(l, from, to, &pose);
    else if (pnet_yaml_ok(l->r->y))
        pnet_yaml_fail_memory(l->r->y);
    free(from);
    free(to);
}

/* Lists pairs whose sources match a pattern; targets and poses have the same text in the place of *. */
static void read_many_pairs(struct pnet_listing *l, const char *source, const char *target,
    const struct pnet_yaml_node *pose_node)
{
    struct pnet_index *r = l->r;
    struct pnet_paths from = {.count = 0}, to = {.count = 0}, poses = {.count = 0};
    struct pnet_error e;
    const char *names = pnet_yaml_string(r->y, pose_node, NULL);
    if (!names) return;
    enum pnet_status status = pnet_glob(r->folder, source, &from, &e);
    if (!status) status = pnet_glob_pair(r->folder, source, target, &from, &to, &e);
    if (!status) status = pnet_glob_pair(r->folder, source, names, &from, &poses, &e);
    for (int64_t i = 0; !status && i < from.count && pnet_yaml_ok(r->y); i++) {
        struct pnet_pose pose;
        if (!pnet_index_is_file(r, l->n, poses.items[i])) break;
        status = pnet_pose_read(poses.items[i], &pose, &e);
        if (!status) list_pair(l, from.items[i], to.items[i], &pose);
    }
    if (status) pnet_index_fail(r, l->n, status, &e);
    pnet_paths_free(&from);
    pnet_paths_free(&to);
    pnet_paths_free(&poses);
}

/* Returns the path of a fragment: `pattern` with * replaced by its number; NULL: out of memory. */
static char *fragment_path(struct pnet_index *r, const char *pattern, int64_t number)
{
    char *name, *path;
    const char *star = strchr(pattern, '*');
    if (asprintf(&name, "%.*s%" PRId64 "%s", (int)(star - pattern), pattern, number, star + 1) < 0)
        return NULL;
    path = pnet_path_join(r->folder, name);
    free(name);
    return path;
}

/* Sets the information matrix of the pair listed last; NULL: there is none. */
static void add_information(
    struct pnet_listing *l, const struct pnet_log_pair *at, const struct pnet_information *n)
{
    struct pnet_index *r = l->r;
    const struct pnet_log_information *found = pnet_information_find(n, at->target, at->source);
    if (!found) {
        pnet_yaml_fail(r->y, l->n, "info: says nothing of fragments %" PRId64 " and %" PRId64,
            at->target, at->source);
        return;
    }
    struct pnet_pair *pair = r->d->entries[l->split][r->d->counts[l->split] - 1].pair;
    pair->information = malloc(sizeof found->matrix);
    if (pair->information)
        memcpy(pair->information, found->matrix, sizeof found->matrix);
    else
        pnet_yaml_fail_memory(r->y);
}

/* Reads the matrices of the file that `info` names. */
static void read_information(struct pnet_listing *l, struct pnet_information *n)
{
    struct pnet_index *r = l->r;
    struct pnet_error e;
    const struct pnet_yaml_node *node = pnet_yaml_get(l->n, "info");
    const char *name = pnet_yaml_string(r->y, node, NULL);
    char *path = name ? pnet_index_find_file(r, node, name) : NULL;
    if (!path) return;
    enum pnet_status status = pnet_information_read(path, n, &e);
    if (status) pnet_index_fail(r, node, status, &e);
    free(path);
}

static void list_log(struct pnet_listing *l, const struct pnet_pose_log *log, const char *pattern)
{
    struct pnet_index *r = l->r;
    struct pnet_information n = {.count = 0};
    int64_t apart = pnet_yaml_int(r->y, pnet_yaml_get(l->n, "apart"), 0, INT32_MAX, 0);
    read_information(l, &n);
    for (int64_t i = 0; i < log->count && pnet_yaml_ok(r->y); i++) {
        const struct pnet_log_pair *at = &log->pairs[i];
        if (llabs(at->source - at->target) < apart) continue;
        char *source = fragment_path(r, pattern, at->source);
        char *target = fragment_path(r, pattern, at->target);
        if (!source || !target)
            pnet_yaml_fail_memory(r->y);
        else if (list_pair(l, source, target, &at->pose) && n.count)
            add_information(l, at, &n);
        free(source);
        free(target);
    }
    pnet_information_free(&n);
}

static void read_log(struct pnet_listing *l, const char *name, const char *pattern)
{
    struct pnet_index *r = l->r;
    struct pnet_pose_log log;
    struct pnet_error e;
    const char *star = strchr(pattern, '*');
    if (!star || strchr(star + 1, '*') || strpbrk(pattern, "?[")) {
        pnet_yaml_fail(r->y, l->n,
            "clouds: `%.80s` needs one *, which stands for the number of a fragment", pattern);
        return;
    }
    char *path = pnet_index_find_file(r, l->n, name);
    if (!path) return;
    enum pnet_status status = pnet_pose_log_read(path, &log, &e);
    if (status) {
        pnet_index_fail(r, l->n, status, &e);
    } else {
        list_log(l, &log, pattern);
        pnet_pose_log_free(&log);
    }
    free(path);
}

/* A sequence of KITTI. */
struct sequence {
    struct pnet_listing *l;
    const char *velodyne; /* folder, relative to the index */
    struct pnet_poses poses;
    struct pnet_pose tr;
};

static void list_frames(struct sequence *q, int64_t target, int64_t source)
{
    struct pnet_index *r = q->l->r;
    char name[2][32], *path[2] = {NULL, NULL};
    int64_t frame[2] = {source, target};
    char *folder = pnet_path_join(r->folder, q->velodyne);
    for (int i = 0; i < 2 && folder; i++) {
        snprintf(name[i], sizeof name[i], "%06" PRId64 ".bin", frame[i]);
        if (asprintf(&path[i], "%s/%s", folder, name[i]) < 0) path[i] = NULL;
    }
    if (path[0] && path[1]) {
        /* The pose from scanner to world is P Tr, in the frame of the camera's world, which cancels in a relative pose. */
        struct pnet_pose s = pnet_pose_multiply(&q->poses.frames[source], &q->tr);
        struct pnet_pose t = pnet_pose_multiply(&q->poses.frames[target], &q->tr);
        struct pnet_pose back = pnet_pose_inverse(&t), pose = pnet_pose_multiply(&back, &s);
        list_pair(q->l, path[0], path[1], &pose);
    } else {
        pnet_yaml_fail_memory(r->y);
    }
    free(path[0]);
    free(path[1]);
    free(folder);
}

static double distance(const struct pnet_pose *a, const struct pnet_pose *b)
{
    double x = a->m[3] - b->m[3], y = a->m[7] - b->m[7], z = a->m[11] - b->m[11];
    return sqrt(x * x + y * y + z * z);
}

/* Lists the pairs of FCGF's evaluation as its authors do: Choy, Park, Koltun, ICCV 2019. */
static void list_by_distance(struct sequence *q, double far_m)
{
    const struct pnet_poses *p = &q->poses;
    for (int64_t source = 0; source < p->count && pnet_yaml_ok(q->l->r->y);) {
        int64_t beyond = source;
        while (beyond < p->count && beyond < source + WINDOW_FRAMES &&
               distance(&p->frames[source], &p->frames[beyond]) <= far_m)
            beyond++;
        if (beyond == p->count || beyond == source + WINDOW_FRAMES) {
            source++;
        } else {
            list_frames(q, beyond - 1, source);
            source = beyond;
        }
    }
}

static void list_given(struct sequence *q, const struct pnet_yaml_node *pairs)
{
    struct pnet_yaml *y = q->l->r->y;
    int64_t last = q->poses.count - 1;
    for (const struct pnet_yaml_node *n = pairs->first; n && pnet_yaml_ok(y); n = n->next) {
        if (!pnet_yaml_list(y, n, 2, 2)) return;
        int64_t target = pnet_yaml_int(y, n->first, 0, last, 0);
        int64_t source = pnet_yaml_int(y, n->first->next, 0, last, 0);
        if (pnet_yaml_ok(y)) list_frames(q, target, source);
    }
}

static void read_frames(struct sequence *q, const struct pnet_yaml_node *pairs)
{
    static const char *const keys[] = {"step", "distance"};
    struct pnet_yaml *y = q->l->r->y;
    if (pairs->kind == PNET_YAML_LIST) {
        list_given(q, pairs);
        return;
    }
    if (!pnet_yaml_map(y, pairs, "pairs", keys, COUNT(keys))) return;
    if (pairs->count != 1) {
        pnet_yaml_fail(y, pairs, "pairs: expected one of `step` and `distance`, or a list");
        return;
    }
    int64_t step = pnet_yaml_int(y, pnet_yaml_get(pairs, "step"), 1, INT32_MAX, 0);
    double far_m = pnet_yaml_length(y, pnet_yaml_get(pairs, "distance"), 1e-3, 1e6, 0);
    for (int64_t i = 0; step && i + step < q->poses.count && pnet_yaml_ok(y); i++)
        list_frames(q, i + step, i);
    if (far_m > 0) list_by_distance(q, far_m);
}

static void read_sequence(struct pnet_listing *l, const char *velodyne)
{
    struct pnet_index *r = l->r;
    struct sequence q = {.l = l, .velodyne = velodyne};
    struct pnet_error e;
    const struct pnet_yaml_node *pairs = pnet_yaml_get(l->n, "pairs");
    const char *poses = pnet_yaml_string(r->y, pnet_yaml_get(l->n, "poses"), NULL);
    const char *calib = pnet_yaml_string(r->y, pnet_yaml_get(l->n, "calib"), NULL);
    if (!poses || !calib || !pairs) {
        pnet_yaml_fail(
            r->y, l->n, "a sequence of KITTI needs `velodyne`, `poses`, `calib` and `pairs`");
        return;
    }
    char *pose_path = pnet_index_find_file(r, l->n, poses);
    char *calib_path = pose_path ? pnet_index_find_file(r, l->n, calib) : NULL;
    if (calib_path) {
        enum pnet_status status = pnet_calib_read(calib_path, &q.tr, &e);
        if (!status) status = pnet_poses_read(pose_path, &q.poses, &e);
        if (status)
            pnet_index_fail(r, l->n, status, &e);
        else
            read_frames(&q, pairs);
        pnet_poses_free(&q.poses);
    }
    free(pose_path);
    free(calib_path);
}

static void read_views(struct pnet_listing *l, const char *cloud, const struct pnet_yaml_node *node)
{
    struct pnet_index *r = l->r;
    struct pnet_dataset *d = r->d;
    struct pnet_views *grown = realloc(d->views, ((size_t)d->view_count + 1) * sizeof *grown);
    if (!grown) {
        pnet_yaml_fail_memory(r->y);
        return;
    }
    d->views = grown;
    pnet_views_parse(r->y, node, &d->views[d->view_count]);
    int views = d->view_count++;
    if (!pnet_yaml_ok(r->y)) return;
    l->common.views = views;
    pnet_listing_views(l, cloud, d->views[views].count);
}

/* Each kind of entry. */
static const struct pnet_entry_kind kinds[] = {
    {{"source", "target", "pose", "turn", "keep_every", "drop_every"}},
    {{"log", "clouds", "apart", "info", "turn", "missing", "keep_every", "drop_every"}},
    {{"velodyne", "poses", "calib", "pairs", "turn", "missing", "keep_every", "drop_every"}},
    {{"cloud", "views", "keep_every", "drop_every"}},
};

/* Turns the pairs that the entry has listed if it has `turn`. */
static void turn_listed(const struct pnet_listing *l, int64_t before)
{
    struct pnet_augment how = {.rotate = PNET_ROTATE_NONE};
    const struct pnet_yaml_node *turn = pnet_yaml_get(l->n, "turn");
    if (turn) pnet_rotate_parse(l->r->y, turn, &how.rotate, how.angle_deg);
    if (!how.rotate || !pnet_yaml_ok(l->r->y)) return;
    for (int64_t i = before; i < l->r->d->counts[l->split]; i++)
        pnet_pair_turn(&how, l->split, (uint32_t)i, l->r->d->entries[l->split][i].pair);
}

void pnet_index_pairs(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s)
{
    int kind = pnet_entry_find_kind(r, n, kinds, COUNT(kinds),
        "an entry needs `source`, `target` and `pose`, or `log` and `clouds`, or `velodyne`, or "
        "`cloud` and `views`");
    if (kind < 0) return;
    const char *name = pnet_yaml_string(r->y, pnet_yaml_get(n, kinds[kind].keys[0]), NULL);
    struct pnet_listing l = begin_listing(r, n, s);
    int64_t before = r->d->counts[s];
    const struct pnet_yaml_node *pose = pnet_yaml_get(n, "pose"),
                                *views = pnet_yaml_get(n, "views");
    if (!name || !pnet_yaml_ok(r->y)) return;
    if (kind == 0) {
        const char *target = pnet_index_need(r, n, "target", "source");
        if (!pose) pnet_yaml_fail(r->y, n, "`source` needs `pose`");
        if (!target || !pose) return;
        (pnet_is_pattern_in(r->folder, name) ? read_many_pairs : read_one_pair)(
            &l, name, target, pose);
    } else if (kind == 1) {
        const char *clouds = pnet_index_need(r, n, "clouds", "log");
        if (clouds) read_log(&l, name, clouds);
    } else if (kind == 2) {
        read_sequence(&l, name);
    } else if (views) {
        read_views(&l, name, views);
    } else {
        pnet_yaml_fail(r->y, n, "`cloud` needs `views`; a pair of two files has `source`");
    }
    end_listing(&l, before);
    turn_listed(&l, before);
}

void pnet_loaded_pair_free(struct pnet_loaded_pair *p)
{
    pnet_cloud_free(&p->source);
    pnet_cloud_free(&p->target);
    *p = (struct pnet_loaded_pair){.pose = {{0}}};
}

enum pnet_status pnet_dataset_load_pair(const struct pnet_dataset *d, enum pnet_split split,
    int64_t index, struct pnet_loaded_pair *p, char warning[2][256], struct pnet_error *e)
{
    const struct pnet_entry *entry = &d->entries[split][index];
    const struct pnet_pair *pair = entry->pair;
    *p = (struct pnet_loaded_pair){.pose = pnet_pose_identity()};
    if (warning) warning[0][0] = warning[1][0] = 0;
    enum pnet_status status = pnet_dataset_read_row(
        d, entry->cloud, entry->array, entry->row, &p->source, warning ? warning[0] : NULL, e);
    if (!status && pair->target)
        status = pnet_dataset_read_row(
            d, pair->target, pair->array, pair->row, &p->target, warning ? warning[1] : NULL, e);
    if (!status && pair->turned) pnet_pair_turn_source(pair, &p->source);
    if (!status && d->task == PNET_COMPLETION && pair->target)
        status = pnet_cloud_move_offset(&p->source, p->target.offset, e);
    if (status)
        pnet_loaded_pair_free(p);
    else if (pair->target)
        p->pose = pnet_pose_local(&pair->pose, p->source.offset, p->target.offset);
    return status;
}
