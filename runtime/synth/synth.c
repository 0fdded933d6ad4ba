#include "runtime/synth/synth.h"
#include "runtime/data/dataset.h"
#include "runtime/base/file.h"
#include "runtime/base/folder.h"
#include "runtime/base/number.h"
#include "runtime/synth/synth_cloud.h"
#include "runtime/synth/synth_models.h"
#include "runtime/synth/synth_replace.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Clouds larger than this are made one after another, with all threads on each, to bound the memory. */
static const int64_t LARGE_POINTS = 4000000;

enum { PATH_MOST = 4096 };

struct kind {
    const char *name;
    enum pnet_task task;
    const char *const *classes;
    int class_count;
};

static const struct kind kinds[PNET_SYNTH_KINDS] = {
    [PNET_SYNTH_SHAPES] = {"shapes", PNET_CLASSIFICATION, pnet_object_names, PNET_OBJECTS},
    [PNET_SYNTH_ROOMS] = {"rooms", PNET_SEGMENTATION, pnet_room_names, PNET_ROOM_CLASSES},
    [PNET_SYNTH_LIDAR] = {"lidar", PNET_SEGMENTATION, pnet_street_names, PNET_STREET_CLASSES},
    [PNET_SYNTH_PAIRS] = {"pairs", PNET_REGISTRATION, NULL, 0},
    [PNET_SYNTH_PARTIAL] = {"partial", PNET_COMPLETION, pnet_object_names, PNET_OBJECTS},
};

const char *pnet_synth_kind_name(enum pnet_synth_kind kind)
{
    return (unsigned)kind < PNET_SYNTH_KINDS ? kinds[kind].name : NULL;
}

const char *const *pnet_synth_classes(enum pnet_synth_kind kind, int *count)
{
    *count = (unsigned)kind < PNET_SYNTH_KINDS ? kinds[kind].class_count : 0;
    return *count ? kinds[kind].classes : NULL;
}

static enum pnet_status check_options(
    enum pnet_synth_kind kind, struct pnet_synth_options *o, struct pnet_error *e)
{
    if ((unsigned)kind >= PNET_SYNTH_KINDS)
        return pnet_error_set(e, PNET_USAGE, "no such kind of synthetic data: %d", (int)kind);
    if (o->street && kind != PNET_SYNTH_PAIRS)
        return pnet_error_set(e, PNET_USAGE, "only pairs have a scene");
    bool scans = kind == PNET_SYNTH_LIDAR || o->street;
    if (scans && o->points && o->azimuth_deg != 0)
        return pnet_error_set(e, PNET_USAGE,
            "lidar: points and the azimuth step are two names for one "
            "thing; give one of them");
    bool rooms = kind == PNET_SYNTH_ROOMS || (kind == PNET_SYNTH_PAIRS && !scans);
    if (!o->points && (rooms || kind == PNET_SYNTH_PARTIAL)) o->points = 16384;
    if (o->room_m == 0) o->room_m = 4.5f;
    if (!o->room_points) o->room_points = 1000000;
    if (!o->beams) o->beams = 64;
    if (o->azimuth_deg == 0) o->azimuth_deg = 0.25f;
    if (o->points && (o->points < 64 || o->points > 4000000000))
        return pnet_error_set(
            e, PNET_USAGE, "points a cloud: %lld, expected 64 to 4000000000", (long long)o->points);
    if (!(o->room_m >= 2.5f && o->room_m <= 12))
        return pnet_error_set(
            e, PNET_USAGE, "edge of a room: %g m, expected 2.5 to 12", (double)o->room_m);
    /* With fewer, a large floor would reach beyond 1000 m and lose the precision of float32. */
    if (o->room_points < 10000 || o->room_points < o->points / 3600)
        return pnet_error_set(e, PNET_USAGE,
            "points a room: %lld, expected 10000 or more, and %lld for %lld points",
            (long long)o->room_points, (long long)(o->points / 3600), (long long)o->points);
    if (o->beams < 1 || o->beams > 128)
        return pnet_error_set(e, PNET_USAGE, "beams: %d, expected 1 to 128", o->beams);
    if (!(o->azimuth_deg >= 0.001f && o->azimuth_deg <= 10))
        return pnet_error_set(e, PNET_USAGE, "azimuth step: %g degrees, expected 0.001 to 10",
            (double)o->azimuth_deg);
    if (o->threads < 0) return pnet_error_set(e, PNET_USAGE, "threads: %d", o->threads);
    return PNET_OK;
}

static int threads_of(const struct pnet_synth_options *o)
{
    return o->threads ? o->threads : omp_get_max_threads();
}

enum pnet_status pnet_synth_make(enum pnet_synth_kind kind, uint64_t seed, uint32_t index,
    const struct pnet_synth_options *options, struct pnet_cloud *c, int *label,
    struct pnet_error *e)
{
    struct pnet_synth_job job = {.seed = seed, .index = index, .options = *options};
    *c = (struct pnet_cloud){0};
    if (label) *label = -1;
    enum pnet_status status = check_options(kind, &job.options, e);
    if (status) return status;
    job.threads = threads_of(options);
    switch (kind) {
    case PNET_SYNTH_SHAPES: return pnet_synth_shape(&job, c, label, e);
    case PNET_SYNTH_ROOMS: return pnet_synth_room(&job, c, e);
    case PNET_SYNTH_LIDAR: return pnet_synth_scan(&job, c, e);
    case PNET_SYNTH_PAIRS:
    case PNET_SYNTH_PARTIAL:
    case PNET_SYNTH_KINDS: break;
    }
    return pnet_error_set(e, PNET_USAGE, "pairs are not made cloud by cloud");
}

enum pnet_status pnet_synth_make_pair(uint64_t seed, uint32_t index,
    const struct pnet_synth_options *options, struct pnet_synth_pair *p, struct pnet_error *e)
{
    struct pnet_synth_job job = {.seed = seed, .index = index, .options = *options};
    *p = (struct pnet_synth_pair){.pose = {{0}}};
    enum pnet_status status = check_options(PNET_SYNTH_PAIRS, &job.options, e);
    if (status) return status;
    job.threads = threads_of(options);
    return pnet_synth_views(&job, p, e);
}

enum pnet_status pnet_synth_make_partial(uint64_t seed, uint32_t index,
    const struct pnet_synth_options *options, struct pnet_synth_pair *p, int *label,
    struct pnet_error *e)
{
    struct pnet_synth_job job = {.seed = seed, .index = index, .options = *options};
    *p = (struct pnet_synth_pair){.pose = pnet_pose_identity()};
    enum pnet_status status = check_options(PNET_SYNTH_PARTIAL, &job.options, e);
    return status ? status : pnet_synth_partial(&job, p, label, e);
}

enum split { SPLIT_TRAIN, SPLIT_VAL, SPLIT_TEST, SPLITS };
static const char *const split_names[SPLITS] = {"train", "val", "test"};

static enum split split_of(int64_t index, int64_t count)
{
    if (count < 3) return SPLIT_TRAIN;
    int64_t place = count < 10 ? index + 10 - count : index % 10;
    return place == 8 ? SPLIT_VAL : place == 9 ? SPLIT_TEST : SPLIT_TRAIN;
}

/* Returns how many of the splits have clouds. */
static int splits_of(const struct pnet_synth *s)
{
    return s->count < 3 ? 1 : SPLITS;
}

/* A data set that is being made. Members from `done` on are accessed only in omp critical (synth). */
struct work {
    const struct pnet_synth *s;
    enum pnet_task task;
    uint8_t *labels;         /* [count] classification, completion: the class of each cloud */
    struct pnet_pose *poses; /* [count] registration */
    struct pnet_synth_place place;
    int inner; /* threads within a cloud */
    int64_t done;
    enum pnet_status status;
    struct pnet_error error;
};

static enum pnet_status check_path(const struct pnet_synth *s, int length, struct pnet_error *e)
{
    if (length < 0 || length >= PATH_MOST)
        return pnet_error_set(e, PNET_USAGE, "folder name too long: %.100s...", s->folder);
    return PNET_OK;
}

static enum pnet_status path_of(
    const struct pnet_synth *s, const char *name, char path[PATH_MOST], struct pnet_error *e)
{
    return check_path(s, snprintf(path, PATH_MOST, "%s/%s", s->folder, name), e);
}

/* Returns the number of clouds of an entry. */
static int clouds_of(const struct pnet_synth *s)
{
    return pnet_task_pairs(kinds[s->kind].task) ? 2 : 1;
}

/* Writes the path of cloud `side` of an entry, relative to the folder. */
static void name_cloud(const struct pnet_synth *s, int64_t index, int side, char name[64])
{
    enum pnet_task task = kinds[s->kind].task;
    bool pair = pnet_task_pairs(task);
    snprintf(name, 64, "%s/%06lld%s%s.ply", split_names[split_of(index, s->count)],
        (long long)index, pair ? "_" : "", pair ? pnet_task_sides(task)[side] : "");
}

static enum pnet_status write_as(
    const struct work *w, int64_t index, int side, const struct pnet_cloud *c, struct pnet_error *e)
{
    char name[64], made[80], path[PATH_MOST];
    name_cloud(w->s, index, side, name);
    snprintf(made, sizeof made, "%s%s", w->place.made_in, name);
    enum pnet_status status = path_of(w->s, made, path, e);
    return status ? status : pnet_cloud_write(path, c, e);
}

static enum pnet_status write_pair(
    struct work *w, int64_t index, const struct pnet_synth_options *options, struct pnet_error *e)
{
    struct pnet_synth_pair p;
    uint64_t seed = w->s->seed;
    int label = 0;
    enum pnet_status status =
        w->poses ? pnet_synth_make_pair(seed, (uint32_t)index, options, &p, e)
                 : pnet_synth_make_partial(seed, (uint32_t)index, options, &p, &label, e);
    if (status) return status;
    if (w->poses) w->poses[index] = p.pose;
    if (w->labels) w->labels[index] = (uint8_t)label;
    status = write_as(w, index, 0, &p.source, e);
    if (!status) status = write_as(w, index, 1, &p.target, e);
    pnet_synth_pair_free(&p);
    return status;
}

static enum pnet_status write_cloud(struct work *w, int64_t index, struct pnet_error *e)
{
    struct pnet_synth_options options = w->s->options;
    struct pnet_cloud c;
    int label;
    options.threads = w->inner;
    if (pnet_task_pairs(w->task)) return write_pair(w, index, &options, e);
    enum pnet_status status =
        pnet_synth_make(w->s->kind, w->s->seed, (uint32_t)index, &options, &c, &label, e);
    if (status) return status;
    if (w->labels) w->labels[index] = (uint8_t)label;
    status = write_as(w, index, 0, &c, e);
    pnet_cloud_free(&c);
    return status;
}

static void make_one(struct work *w, int64_t index)
{
    enum pnet_status status;
    struct pnet_error error = {0};
#pragma omp critical(synth)
    status = w->status;
    if (status) return;
    status = write_cloud(w, index, &error);
#pragma omp critical(synth)
    {
        w->done++;
        if (!status && w->s->progress && !w->status &&
            !w->s->progress(w->s->context, w->done, w->s->count))
            status =
                pnet_error_set(&error, PNET_INTERRUPTED, "interrupted after %lld of %lld clouds",
                    (long long)w->done, (long long)w->s->count);
        if (status && !w->status) {
            w->status = status;
            w->error = error;
        }
    }
}

/* Calls `visit` with the path of each cloud of number `index`, until it returns an error. */
static enum pnet_status visit_clouds(const struct pnet_synth *s, int64_t index,
    enum pnet_status (*visit)(const char *path, struct pnet_error *e), struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int side = 0; side < clouds_of(s) && !status; side++) {
        char name[64], path[PATH_MOST];
        name_cloud(s, index, side, name);
        status = path_of(s, name, path, e);
        if (!status) status = visit(path, e);
    }
    return status;
}

static enum pnet_status must_be_free(const char *path, struct pnet_error *e)
{
    if (access(path, F_OK)) return PNET_OK;
    return pnet_error_set(
        e, PNET_USAGE, "%s exists already: --force replaces it, or choose another folder", path);
}

static enum pnet_status make_clouds(struct work *w, struct pnet_error *e)
{
    int threads = threads_of(&w->s->options);
    bool side_by_side = w->s->count >= threads && w->s->options.points <= LARGE_POINTS;
    w->inner = side_by_side ? 1 : threads;
    if (side_by_side) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
        for (int64_t i = 0; i < w->s->count; i++) make_one(w, i);
    } else {
        for (int64_t i = 0; i < w->s->count; i++) make_one(w, i);
    }
    if (w->status && e) *e = w->error;
    return w->status;
}

static void print_classes(FILE *f, const struct kind *kind, bool labelled_clouds)
{
    fprintf(f, "classes: [");
    for (int i = 0; i < kind->class_count; i++) fprintf(f, "%s%s", i ? ", " : "", kind->classes[i]);
    fprintf(f, "]\n");
    if (!labelled_clouds) fprintf(f, "label_field: label\n");
}

/* `folder`: what precedes the names of clouds, or "". */
static void print_entry(FILE *f, const struct work *w, const char *folder, int64_t i)
{
    char name[64];
    for (int side = 0; side < clouds_of(w->s); side++) {
        const char *key = pnet_task_pairs(w->task) ? pnet_task_sides(w->task)[side] : "cloud";
        name_cloud(w->s, i, side, name);
        fprintf(f, "%s%s: %s%s", side ? ", " : "  - {", key, folder, name);
    }
    if (w->labels) fprintf(f, ", label: %s", kinds[w->s->kind].classes[w->labels[i]]);
    if (w->task == PNET_COMPLETION) fprintf(f, ", points: 2048"); /* as PCN reads them */
    if (w->poses) fprintf(f, ",\n     pose: [");
    for (int k = 0; w->poses && k < 12; k++)
        pnet_number_write(f, "%s%.17g", k ? ", " : "", w->poses[i].m[k]);
    fprintf(f, w->poses ? "]}\n" : "}\n");
}

static void print_index(FILE *f, const struct work *w, const char *folder)
{
    fprintf(f, "pnet_dataset: 1\ntask: %s\n", pnet_task_name(w->task));
    if (!w->poses) print_classes(f, &kinds[w->s->kind], w->labels != NULL);
    for (int split = 0; split < SPLITS; split++) {
        bool any = false;
        for (int64_t i = 0; i < w->s->count; i++) {
            if ((int)split_of(i, w->s->count) != split) continue;
            if (!any) fprintf(f, "%s:\n", split_names[split]);
            any = true;
            print_entry(f, w, folder, i);
        }
        if (!any) fprintf(f, "%s: []\n", split_names[split]);
    }
}

static enum pnet_status place_clouds(const struct work *w, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int64_t i = 0; i < w->s->count && !status; i++)
        for (int side = 0; side < clouds_of(w->s) && !status; side++) {
            char name[64];
            name_cloud(w->s, i, side, name);
            status = pnet_synth_place_cloud(&w->place, name, e);
        }
    for (int i = 0; i < splits_of(w->s) && !status; i++) {
        char path[PATH_MOST];
        status = path_of(w->s, split_names[i], path, e);
        if (!status) (void)pnet_folder_sync(path);
    }
    return status;
}

static enum pnet_status make_folders(const struct pnet_synth *s, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < splits_of(s) && !status; i++) {
        char path[PATH_MOST];
        status = path_of(s, split_names[i], path, e);
        if (!status) status = pnet_make_folder(path, e);
    }
    return status;
}

static bool is_new(const void *context, const char *name)
{
    const struct work *w = context;
    const char *slash = strchr(name, '/');
    long long index = slash ? strtoll(slash + 1, NULL, 10) : -1;
    char own[64];
    for (int side = 0; index >= 0 && index < w->s->count && side < clouds_of(w->s); side++) {
        name_cloud(w->s, index, side, own);
        if (strcmp(own, name) == 0) return true;
    }
    return false;
}

/* Puts the clouds in place. index[0] lists them where they were made, index[1] under their names. All that is likely to fail is
   done before the first index replaces that of the older set; where the rest fails, the set stays as the first index lists it. */
static enum pnet_status place(struct work *w, struct pnet_output index[2], struct pnet_error *e)
{
    print_index(index[0].file, w, w->place.made_in);
    print_index(index[1].file, w, "");
    enum pnet_status status = pnet_output_commit(&index[0], e);
    if (status) {
        pnet_output_drop(&index[1]);
        pnet_synth_place_drop(&w->place);
        return status;
    }
    status = place_clouds(w, e);
    if (!status) pnet_synth_place_clear(&w->place, is_new, w);
    if (!status)
        status = pnet_output_commit(&index[1], e);
    else
        pnet_output_drop(&index[1]);
    if (status)
        pnet_synth_place_leave(&w->place);
    else
        pnet_synth_place_end(&w->place);
    return status;
}

static enum pnet_status finish(struct work *w, struct pnet_error *e)
{
    struct pnet_output *index = calloc(2, sizeof *index);
    char path[PATH_MOST];
    enum pnet_status status = index ? make_folders(w->s, e) : pnet_error_memory(e);
    if (!status) status = path_of(w->s, "dataset.yaml", path, e);
    if (!status) status = pnet_output_open(path, &index[0], e);
    if (!status && (status = pnet_output_open(path, &index[1], e))) pnet_output_drop(&index[0]);
    if (status)
        pnet_synth_place_drop(&w->place);
    else
        status = place(w, index, e);
    free(index);
    return status;
}

/* Checks that there is no older data set and no other cloud in the way. */
static enum pnet_status prepare(struct work *w, struct pnet_error *e)
{
    const struct pnet_synth *s = w->s;
    char path[PATH_MOST];
    enum pnet_status status = path_of(s, "dataset.yaml", path, e);
    bool alone = !status && !s->replace && access(path, F_OK) != 0;
    for (int64_t i = 0; i < s->count && !status && alone; i++)
        status = visit_clouds(s, i, must_be_free, e);
    return status ? status
                  : pnet_synth_place_begin(
                        s->folder, s->replace, split_names, splits_of(s), &w->place, e);
}

enum pnet_status pnet_synth_generate(const struct pnet_synth *s, struct pnet_error *e)
{
    struct pnet_synth_options options = s->options;
    enum pnet_status status = check_options(s->kind, &options, e);
    if (!status && (s->count < 1 || s->count > UINT32_MAX))
        status = pnet_error_set(e, PNET_USAGE, "clouds: %lld, expected 1 to %lld",
            (long long)s->count, (long long)UINT32_MAX);
    if (status) return status;

    enum pnet_task task = kinds[s->kind].task;
    bool labels = task == PNET_CLASSIFICATION || task == PNET_COMPLETION;
    bool poses = task == PNET_REGISTRATION;
    struct work w = {.s = s, .task = task};
    if (labels) w.labels = calloc((size_t)s->count, 1);
    if (poses) w.poses = calloc((size_t)s->count, sizeof *w.poses);
    if ((labels && !w.labels) || (poses && !w.poses)) status = pnet_error_memory(e);
    if (!status && !(status = prepare(&w, e))) {
        status = make_clouds(&w, e);
        if (status)
            pnet_synth_place_drop(&w.place);
        else
            status = finish(&w, e);
    }
    free(w.labels);
    free(w.poses);
    return status;
}
