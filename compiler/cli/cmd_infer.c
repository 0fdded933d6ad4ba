/* pnetc infer */
#include "compiler/cli/class_tables.h"
#include "compiler/cli/infer_pieces.h"
#include "compiler/cli/label_file.h"
#include "compiler/cli/result_columns.h"
#include "runtime/io/cloud.h"
#include "runtime/io/cloud_check.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/guard.h"
#include "runtime/io/npy.h"
#include "runtime/base/json.h"
#include "runtime/data/doubt.h"
#include "runtime/run/peak.h"
#include "runtime/base/printable.h"
#include "runtime/data/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* row_of[file row]: the row of the cloud as loaded, or -1; NULL: no point was dropped. */
static enum pnet_status file_rows(
    const struct pnet_cloud *c, int64_t **row_of, struct pnet_error *e)
{
    *row_of = NULL;
    if (!c->file_row) return PNET_OK;
    *row_of = calloc((size_t)c->file_rows, sizeof **row_of);
    if (!*row_of) return pnet_error_memory(e);
    for (int64_t i = 0; i < c->file_rows; i++) (*row_of)[i] = -1;
    for (int64_t i = 0; i < c->rows; i++) (*row_of)[c->file_row[i]] = i;
    return PNET_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static enum pnet_status write_matrix(const char *path, const float *result, int64_t rows,
    const int64_t *row_of, int64_t file_count, int width, struct pnet_error *e)
{
    int64_t shape[2] = {row_of ? file_count : rows, width};
    if (!row_of) return pnet_npy_write(path, PNET_F32, 2, shape, result, e);
    float *all = malloc((size_t)shape[0] * (size_t)width * sizeof *all + 1);
    if (!all) return pnet_error_memory(e);
    for (int64_t i = 0; i < shape[0]; i++)
        for (int k = 0; k < width; k++)
            all[i * width + k] = row_of[i] < 0 ? NAN : result[row_of[i] * width + k];
    enum pnet_status st = pnet_npy_write(path, PNET_F32, 2, shape, all, e);
    free(all);
    return st;
}

static const char *class_name(const struct inference *f, int c)
{
    return c < f->weights.map.class_count ? f->weights.map.classes[c] : "";
}

static enum pnet_status print_sample(const struct inference *f, const char *path,
    const float *scores, int width, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    char shown[PNET_PATH_MOST];
    double *p = malloc((size_t)width * sizeof *p);
    if (!p) return pnet_error_memory(e);
    int best = f->plan->result_classes && width > 0 ? pnet_cli_probabilities(scores, width, p) : -1;
    if (f->json) {
        struct pnet_json j = {0};
        pnet_json_begin(&j, NULL, '{');
        pnet_json_string(&j, "input", path);
        if (best >= 0) {
            pnet_json_int(&j, "class", best);
            pnet_json_string(&j, "name", class_name(f, best));
            pnet_json_double(&j, "score", p[best]);
        }
        pnet_json_begin(&j, "values", '[');
        for (int k = 0; k < width; k++) pnet_json_float(&j, NULL, scores[k]);
        pnet_json_end(&j, ']');
        pnet_json_end(&j, '}');
        st = pnet_json_print(&j, stdout, e);
    } else if (best >= 0) {
        char name[256];
        printf("%s: class %d %s, %.1f%%\n", pnet_printable(path, shown, sizeof shown), best,
            pnet_printable(class_name(f, best), name, sizeof name), 100 * p[best]);
    } else {
        printf("%s:", pnet_printable(path, shown, sizeof shown));
        for (int k = 0; k < width; k++) printf(" %g", (double)scores[k]);
        puts("");
    }
    free(p);
    return st;
}

/* What the rows of a result are. */
enum form {
    OF_CLOUDS, /* one row a cloud, printed */
    OF_POINTS, /* the points of the cloud that the net reads */
    OF_OTHERS, /* generated points */
};

static enum form form_of(const struct pnet_plan *p)
{
    const struct pnet_level_info *l = &p->levels[p->tensors[p->result].type.level];
    return l->input >= 0 ? OF_POINTS : l->kind == PNET_GEO_POINTS ? OF_OTHERS : OF_CLOUDS;
}

/* Writes generated points as a cloud. They lie in the coordinates of the cloud `from` as it was loaded, without its offset, and
   are written in the unit of its file. */
static enum pnet_status write_generated(const char *output, const struct pnet_cloud *from,
    const float *xyz, int64_t rows, struct pnet_error *e)
{
    struct pnet_cloud c = {.rows = rows, .file_rows = rows, .xyz_type = PNET_F32};
    enum pnet_status st = PNET_OK;
    memcpy(c.offset, from->offset, sizeof c.offset);
    memcpy(c.metres, from->metres, sizeof c.metres);
    for (int k = 0; k < 3; k++)
        if (c.offset[k] != 0) c.xyz_type = PNET_F64;
    c.xyz = malloc((size_t)rows * 3 * sizeof *c.xyz + 1);
    if (!c.xyz) return pnet_error_memory(e);
    memcpy(c.xyz, xyz, (size_t)rows * 3 * sizeof *c.xyz);
    st = pnet_cloud_write(output, &c, e);
    pnet_cloud_free(&c);
    return st;
}

static enum pnet_status write_result(struct inference *f, const char *input, const char *output,
    struct pnet_cloud *c, const float *result, int64_t rows, struct pnet_error *e)
{
    const struct pnet_type *t = &f->plan->tensors[f->plan->result].type;
    enum form form = form_of(f->plan);
    int64_t *row_of = NULL;
    enum pnet_status st;
    if (form == OF_OTHERS)
        return pnet_plan_is_cloud(f->plan, f->plan->result)
                   ? write_generated(output, c, result, rows, e)
                   : write_matrix(output, result, rows, NULL, 0, t->width, e);
    if (form == OF_CLOUDS) {
        st = f->quiet && output ? PNET_OK : print_sample(f, input, result, t->width, e);
        if (!st && output) st = write_matrix(output, result, rows, NULL, 0, t->width, e);
        return st;
    }
    if ((st = file_rows(c, &row_of, e))) return st;
    if (f->labels) {
        st = pnet_cli_write_labels(output, f->labels, result, row_of, c->file_rows, &f->codes, e);
    } else if (ends_with(output, ".npy")) {
        st = write_matrix(output, result, rows, row_of, c->file_rows, t->width, e);
    } else {
        st = pnet_cli_add_result(f, input, c, result, row_of, t->width, e);
        if (!st) st = pnet_cloud_write(output, c, e);
    }
    free(row_of);
    return st;
}

/* Returns the place in the feed of the cloud whose points the rows of the result are, or that the net takes first; 0 if it is
   not known. */
static int place_of_result(const struct inference *f)
{
    for (int k = 0; k < f->feed.count; k++)
        if (f->feed.input[k] == f->plan->result_input) return k;
    return 0;
}

/* Warns of clouds that do not lie where those of the training, or those before, lay as the model reads them. */
static void doubt_clouds(struct inference *f, char *const *paths, const struct pnet_cloud *clouds)
{
    for (int k = 0; k < f->feed.count; k++) {
        struct pnet_frame frame = {.clouds = 0};
        pnet_frame_add(&frame, clouds[k].xyz, clouds[k].rows, clouds[k].offset);
        pnet_cli_doubt_frame(f, k, &frame, paths[k]);
    }
}

/* Decides what the colours are divided by: for many clouds together, before the first of them. */
static enum pnet_status settle_many(struct inference *f, struct pnet_error *e)
{
    struct pnet_range_scan s = {.map = &f->weights.map,
        .inputs = f->plan->inputs,
        .roles = {f->feed.input[0], -1},
        .note = f->quiet ? NULL : pnet_cli_say};
    struct pnet_ranges source = {.count = 0};
    struct pnet_cloud_hints hints = pnet_cli_hints(&f->hints, &f->weights.map);
    f->settled = true;
    enum pnet_status st =
        pnet_ranges_of_files(&s, f->feed.clouds.items, f->feed.clouds.count, &hints, &source, e);
    if (!st) st = pnet_cli_settle_ranges(&f->weights, &source, e);
    pnet_ranges_free(&source);
    return st;
}

/* Warns of a cloud that differs from the training's, or from others of its source. */
static enum pnet_status warn_unusual(struct inference *f, int input, const struct pnet_cloud *c,
    const char *path, struct pnet_error *e)
{
    struct pnet_ranges r = {.count = 0};
    enum pnet_status st =
        pnet_input_map_ranges(&f->weights.map, &f->plan->inputs[input], c, path, &r, e);
    if (!st) pnet_cli_warn_unusual(&f->weights.map, &r, path, &f->outside);
    pnet_ranges_free(&r);
    return st;
}

/* The same for the clouds of the only batch; then warns of those that differ from the training's in other features. */
static enum pnet_status check_ranges(
    struct inference *f, char *const *paths, const struct pnet_cloud *clouds, struct pnet_error *e)
{
    const struct cloud_feed *feed = &f->feed;
    const struct pnet_input *inputs = f->plan->inputs;
    struct pnet_ranges source = {.count = 0};
    enum pnet_status st = PNET_OK;
    for (int k = 0; k < feed->count && !f->settled && !st; k++)
        st = pnet_cli_add_colours(
            &f->weights.map, &inputs[feed->input[k]], &clouds[k], paths[k], &source, e);
    if (!st && !f->settled) st = pnet_cli_settle_ranges(&f->weights, &source, e);
    pnet_ranges_free(&source);
    f->settled = true;
    for (int k = 0; k < feed->count && !st; k++)
        st = warn_unusual(f, feed->input[k], &clouds[k], paths[k], e);
    return st;
}

/* Reads the clouds `paths`, one for each input of the feed, as a batch of one sample. Where features of one cloud are taken to
   the points of another one, all are brought into the frame of the result's points. */
static enum pnet_status load_batch(struct inference *f, char *const *paths,
    struct pnet_cloud *clouds, struct pnet_batch **b, struct pnet_error *e)
{
    const struct cloud_feed *feed = &f->feed;
    struct pnet_sample *samples[CLOUD_FEED_MOST] = {NULL};
    const struct pnet_sample *const *lists[CLOUD_FEED_MOST];
    enum pnet_status st = PNET_OK;
    for (int k = 0; k < feed->count && !st; k++)
        st = pnet_cli_read_cloud(&f->hints, &f->weights.map, &f->origin, paths[k], &clouds[k], e);
    for (int k = 0; k < feed->count && !st && pnet_plan_one_frame(f->plan); k++)
        st = pnet_cloud_move_offset(&clouds[k], clouds[place_of_result(f)].offset, e);
    if (!st) doubt_clouds(f, paths, clouds);
    if (!st) st = check_ranges(f, paths, clouds, e);
    for (int k = 0; k < feed->count && !st; k++) {
        lists[k] = (const struct pnet_sample *const *)&samples[k];
        st = pnet_sample_make(&f->plan->inputs[feed->input[k]], &f->weights.map, &clouds[k], NULL,
            0, paths[k], &samples[k], e);
    }
    if (!st)
        st = pnet_inputs_batch(
            f->plan->inputs, f->plan->input_count, feed->input, feed->count, lists, 1, b, e);
    for (int k = 0; k < feed->count; k++) pnet_sample_free(samples[k]);
    return st;
}

/* Finds what the output would be refused for, before the network runs. `c`: the cloud whose points the rows of the result are. */
static enum pnet_status check_output(struct inference *f, const char *input, const char *output,
    const struct pnet_cloud *c, struct pnet_error *e)
{
    if (f->labels) return PNET_OK;
    enum pnet_status st = pnet_cli_check_codes(
        &f->codes, f->weights.map.classes, f->weights.map.class_count, c, input, output, e);
    if (st || form_of(f->plan) != OF_POINTS || ends_with(output, ".npy")) return st;
    st = pnet_cli_check_like(f, input, c, f->plan->tensors[f->plan->result].type.width, output, e);
    return st ? st : pnet_cloud_check_points(output, c, e);
}

/* `paths`: a cloud for each input of the feed. */
static enum pnet_status infer_one(
    struct inference *f, char *const *paths, const char *output, struct pnet_error *e)
{
    struct pnet_cloud clouds[CLOUD_FEED_MOST] = {{0}};
    struct pnet_batch *b = NULL;
    float *result = NULL;
    int64_t rows;
    int place = place_of_result(f);
    const char *input = paths[place];
    struct moments m = {.begun = pnet_seconds()};
    bool done = false;
    if (f->computing.tiles.tiling.edge > 0) {
        enum pnet_status st = pnet_cli_infer_pieces(f, input, output, &done, e);
        if (st || done) return st;
    }
    enum pnet_status st = load_batch(f, paths, clouds, &b, e);
    if (!st && output) st = check_output(f, input, output, &clouds[place], e);
    m.loaded = pnet_seconds();
    if (!st) st = pnet_cli_compute(&f->computing, input, b, &result, &rows, &m, e);
    pnet_batch_free(b);
    if (!st) {
        int64_t count = rows * f->plan->tensors[f->plan->result].type.width;
        pnet_cli_warn_not_finite(input, pnet_cli_not_finite(result, count), count);
    }
    if (!st) st = write_result(f, input, output, &clouds[place], result, rows, e);
    if (!st && f->verbose) {
        char shown[PNET_PATH_MOST];
        fprintf(stderr,
            "%s: %lld points, load %.0f ms, geometry %.0f ms, network %.0f ms, write %.0f ms\n",
            pnet_printable(input, shown, sizeof shown), (long long)clouds[place].rows,
            1e3 * (m.loaded - m.begun), 1e3 * (m.prepared - m.loaded),
            1e3 * (m.computed - m.prepared), 1e3 * (pnet_seconds() - m.computed));
    }
    free(result);
    for (int k = 0; k < f->feed.count; k++) pnet_cloud_free(&clouds[k]);
    return st;
}

/* Returns NAME of FOLDER/NAME.ply, without the suffix; *length gets its length. */
static const char *stem(const char *path, int *length)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const char *dot = strrchr(name, '.');
    *length = (int)(dot && dot > name ? dot - name : (long)strlen(name));
    return name;
}

struct named_input {
    const char *stem;
    int length;
    int64_t place;
};

static int by_stem(const void *a, const void *b)
{
    const struct named_input *x = a, *y = b;
    int most = x->length < y->length ? x->length : y->length,
        order = memcmp(x->stem, y->stem, (size_t)most);
    if (!order) order = (x->length > y->length) - (x->length < y->length);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Refuses two inputs of one name, because the second result would overwrite the first. */
static enum pnet_status check_stems(const struct pnet_paths *inputs, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    struct named_input *named = calloc((size_t)inputs->count + 1, sizeof *named);
    if (!named) return pnet_error_memory(e);
    for (int64_t i = 0; i < inputs->count; i++) {
        named[i].stem = stem(inputs->items[i], &named[i].length);
        named[i].place = i;
    }
    qsort(named, (size_t)inputs->count, sizeof *named, by_stem);
    for (int64_t i = 1; i < inputs->count && !st; i++) {
        const struct named_input *x = &named[i - 1], *y = &named[i];
        if (x->length == y->length && memcmp(x->stem, y->stem, (size_t)x->length) == 0)
            st = pnet_error_set(e, PNET_USAGE,
                "%s and %s would both be written as %.*s: give them different output folders",
                inputs->items[x->place], inputs->items[y->place], x->length, x->stem);
    }
    free(named);
    return st;
}

/* Refuses a file for the results of many clouds, and a new folder that is called as one. */
static enum pnet_status check_folder(const char *output, struct pnet_error *e)
{
    struct stat s;
    bool there = stat(output, &s) == 0;
    bool called = pnet_cloud_written_as(output) || ends_with(output, ".label");
    if (there ? S_ISDIR(s.st_mode) : !called) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%s: the results of a folder, a pattern or several clouds go to a folder: -o FOLDER, and "
        "--format ply, npy ... for the files in it",
        output);
}

/* Checks that a file with this suffix can hold the result, before the network runs. */
static enum pnet_status check_ending(
    const char *name, const struct inference *f, struct pnet_error *e)
{
    const struct pnet_plan *p = f->plan;
    enum form form = form_of(p);
    bool matrix = ends_with(name, ".npy");
    if (f->labels) return PNET_OK; /* pnet_cli_label_format has checked the name */
    if (f->codes.count && matrix)
        return pnet_error_set(e, PNET_USAGE,
            "%s: an .npy holds the scores alone, and no codes of --classification: write .las, "
            ".ply, "
            ".pcd or .csv",
            name);
    if (form == OF_POINTS && ends_with(name, ".bin"))
        return pnet_error_set(e, PNET_USAGE,
            "%s: the records of a .bin have no room for results: write .ply, .pcd, .npy or .csv",
            name);
    if (form == OF_CLOUDS && !matrix)
        return pnet_error_set(
            e, PNET_USAGE, "%s: a result of one row a cloud is written as .npy", name);
    if (form == OF_OTHERS && ends_with(name, ".bin"))
        return pnet_error_set(e, PNET_USAGE,
            "%s: the records of a .bin have an intensity, which generated points lack: write .ply, "
            ".pcd, .npy or .csv",
            name);
    if (form == OF_OTHERS && !matrix && !pnet_plan_is_cloud(p, p->result))
        return pnet_error_set(e, PNET_USAGE,
            "%s: the result has %d channels for each generated point; 3 channels are places, and "
            "are written as a cloud, others as .npy",
            name, p->tensors[p->result].type.width);
    return pnet_cloud_check_output(name, e);
}

/* FOLDER/NAME.ply, NAME of the input. */
static void name_result(const char *folder, const char *input, const char *format,
    const struct label_format *labels, char path[PNET_PATH_MOST])
{
    int length;
    const char *name = stem(input, &length);
    if (labels)
        pnet_cli_name_labels(labels, folder, name, length, path);
    else
        snprintf(path, PNET_PATH_MOST, "%s/%.*s.%s", folder, length, name, format);
}

/* Announces the files in the folder, before the first is written. */
static enum pnet_status announce_results(const struct pnet_paths *inputs, const char *folder,
    const char *format, const struct label_format *labels, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    char path[PNET_PATH_MOST];
    for (int64_t i = 0; i < inputs->count && !st; i++) {
        name_result(folder, inputs->items[i], format, labels, path);
        st = pnet_guard_output(path, e);
    }
    return st;
}

/* With many clouds `output` is a folder: FOLDER/NAME.ply, NAME of the input. `format` may be NULL. */
static enum pnet_status infer_all(
    struct inference *f, const char *output, const char *format, struct pnet_error *e)
{
    const struct pnet_paths *inputs = &f->feed.clouds;
    bool many = f->feed.many;
    char path[PNET_PATH_MOST];
    enum form form = form_of(f->plan);
    if (!output && form != OF_CLOUDS)
        return pnet_error_set(e, PNET_USAGE,
            "the result has a row for each %s: give a file for it, -o OUT.ply or OUT.npy",
            form == OF_POINTS ? "point" : "generated point");
    if (!format) format = form == OF_CLOUDS ? "npy" : "ply";
    snprintf(path, sizeof path, ".%s", format);
    enum pnet_status st = output ? check_ending(many ? path : output, f, e) : PNET_OK;
    if (st || !many) return st ? st : infer_one(f, inputs->items, output, e);
    if (output) st = check_folder(output, e);
    if (!st && output) st = check_stems(inputs, e);
    if (!st && output) st = announce_results(inputs, output, format, f->labels, e);
    if (!st && output) st = pnet_make_folder(output, e);
    if (!st && inputs->count > 1) st = settle_many(f, e);
    for (int64_t i = 0; i < inputs->count && !st; i++) {
        if (output) name_result(output, inputs->items[i], format, f->labels, path);
        st = infer_one(f, &inputs->items[i], output ? path : NULL, e);
    }
    return st;
}

static enum pnet_status open_runner(struct inference *f, const struct model_options *m,
    const struct map_options *map, struct pnet_error *e)
{
    struct pnet_runner_options o = {.memory_limit = pnet_cli_memory_budget(m), .slots = 1};
    enum pnet_status st =
        pnet_cli_map_clouds(&f->weights.map, map, f->plan->inputs, f->plan->input_count, e);
    if (!st)
        st =
            pnet_input_map_check_sources(&f->weights.map, f->plan->inputs, f->plan->input_count, e);
    f->offsets.needed = !f->origin.named && pnet_reads_coordinates(f->plan->inputs,
                                                f->plan->input_count, &f->weights.map);
    if (!st) st = pnet_runner_new(f->bound, &o, &f->runner, e);
    f->computing.runner = f->runner;
    f->computing.input = f->feed.input[place_of_result(f)];
    if (!st) st = pnet_weights_load(&f->weights.from, f->runner, e);
    return st;
}

/* Reads the codes of --classification, for a result of classes of points, and those of labels. */
static enum pnet_status take_codes(struct inference *f, const char *text, struct pnet_error *e)
{
    const struct pnet_input_map *map = &f->weights.map;
    const struct pnet_plan *p = f->plan;
    if (!text && !f->labels) return PNET_OK;
    if (form_of(p) != OF_POINTS || !p->result_classes)
        return pnet_error_set(e, PNET_USAGE, "%s%s: the result is no class for each point%s",
            text ? "--classification" : "--format ", text ? "" : f->labels->name,
            text ? ": leave it out" : ", as labels are: write .ply or .npy");
    int width = p->tensors[p->result].type.width;
    if (f->labels) return pnet_cli_label_codes(f->labels, text, map, width, f->quiet, &f->codes, e);
    f->codes.most = PNET_CODE_MOST;
    enum pnet_status st =
        pnet_cli_parse_codes(text, map->classes, map->class_count, width, &f->codes, e);
    if (!st && !f->quiet) pnet_cli_say_codes(&f->codes, map->classes, map->class_count);
    return st;
}

/* The options of `infer`. */
struct infer_request {
    struct model_options m;
    struct map_options map;
    struct text_list inputs;
    const char *model, *weights, *output, *net, *value, *format, *origin, *classification;
    struct tile_options tiles;
    int64_t votes;
    unsigned degrade;
};

/* Runs the net on all clouds; the exit code. */
static int infer_clouds(
    const struct infer_request *r, const struct setting *setting, struct inference *f)
{
    struct pnet_error e = {0};
    int code;
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE,
        .degrade = setting->degrade,
        .sets = setting->sets.items,
        .set_count = setting->sets.count,
        .net = r->net,
        .value = r->value};
    struct pnet_compilation *c =
        pnet_cli_compile_model(r->model, &o, &(struct model_options){.quiet = true}, &code);
    if (!c) return code;
    const char *name = pnet_compilation_result(c);
    if (name && !f->quiet)
        pnet_cli_notice(
            "the net gives a list, and %s, its last value, is the result: --value takes "
            "another",
            name);
    f->plan = pnet_compilation_plan(c);
    enum pnet_status st =
        pnet_cli_feed_clouds(&r->inputs, f->plan->inputs, f->plan->input_count, &f->feed, &e);
    if (!st)
        st = pnet_cli_weights_bind(&f->weights, &r->m, setting->precision, f->plan, &f->bound, &e);
    if (!st) st = pnet_cli_origin(r->origin, &f->weights, &f->origin, &e);
    if (!st) st = pnet_cli_label_format(r->output, r->format, f->feed.many, &f->labels, &e);
    if (!st) st = take_codes(f, r->classification, &e);
    if (!st) st = pnet_cli_computing(&r->tiles, r->votes, f->plan, &r->m, &f->computing, &e);
    if (!st) st = open_runner(f, &r->m, &r->map, &e);
    if (!st) st = infer_all(f, r->output, r->format, &e);
    pnet_cli_few_end(&f->outside);
    code = st ? pnet_cli_complain(&e) : PNET_OK;
    pnet_runner_free(f->runner);
    pnet_bound_free(f->bound);
    pnet_paths_free(&f->feed.clouds);
    pnet_cli_free_codes(&f->codes);
    pnet_compilation_free(c);
    return code;
}

/* Opens the files of the command line and runs the net. Returns the exit code. */
static int infer(const struct infer_request *r, struct inference *f)
{
    struct setting setting;
    struct pnet_error e = {0};
    int code;
    if (pnet_cli_parse_hints(&f->hints, &e)) return pnet_cli_complain(&e);
    if (pnet_cli_weights_open(r->weights, &f->weights, &e) ||
        pnet_cli_weights_setting(&f->weights, &r->m, r->degrade, &setting, &e)) {
        code = pnet_cli_complain(&e);
    } else {
        code = infer_clouds(r, &setting, f);
    }
    pnet_cli_weights_close(&f->weights);
    pnet_cli_free_hints(&f->hints);
    return code;
}

int pnet_command_infer(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc infer MODEL.pnet --weights W --input CLOUD [--input CLOUD ...] -o OUT [options]",
        "Runs a net on clouds. W is a checkpoint, a run folder (its best checkpoint) or a "
        "safetensors file. A result for each point\n"
        "goes to OUT: .ply or .las keeps the properties of the cloud and adds class and score (or "
        "feature_0 ...); a property of the\n"
        "input that is called so becomes input_class. .npy holds the plain matrix; .label, "
        "_lidarseg.bin and --format scannet labels\n"
        "alone. A result for each cloud is printed. Points that the net generates, with three "
        "channels, are written as a cloud.\n"
        "Where --input is a folder or a pattern, or there are several, OUT is a folder. A net that "
        "reads several clouds takes each\n"
        "by the name of the model's input, --input NAME=CLOUD.\n"
        "The clouds' fields feed the model as in training; --map and --config change this.",
        "  pnetc infer models/rooms.pnet --weights out/demo --input room.ply -o labelled.ply "
        "--colour\n"
        "  pnetc infer models/rooms.pnet --weights out/demo --input a.ply --value "
        "rooms.s.0.unit_2.out.relu -o features.npy\n"
        "  pnetc infer models/rooms.pnet --weights out/demo --input scans -o labels --map "
        "rgb=intensity\n"
        "  pnetc infer streets.pnet --weights out/streets --input tile.laz -o tile.las "
        "--classification road=11,building=6\n"};
    struct infer_request r = {0};
    struct inference f = {0};
    bool done;
    struct option options[] = {{"weights", 'w', OPT_TEXT, &r.weights, "W", "trained weights"},
        {"input", 'i', OPT_LIST, &r.inputs, "CLOUD",
            "a cloud, a folder or a pattern, NAME=CLOUD for the input NAME; may be repeated"},
        {"output", 'o', OPT_OUTPUT, &r.output, "OUT", "file, or folder for many clouds"},
        {"format", 0, OPT_TEXT, &r.format, "ENDING",
            "of files in a folder: ply (default), npy (default of one row a cloud), label, "
            "lidarseg ...; "
            "for one too: scannet"},
        CLOUD_HINT_OPTIONS(&f.hints),
        {"net", 0, OPT_TEXT, &r.net, "NAME", "which net (the last one)"},
        {"value", 0, OPT_TEXT, &r.value, "NAME",
            "another value than its result: the path of a layer, or y[1] of a list y"},
        {"colour", 0, OPT_FLAG, &f.colour, NULL,
            "set red, green and blue to the colour of the class"},
        {"classification", 0, OPT_WORD, CHOICE_OF(&r.classification, pnet_cli_class_table_names),
            "CODES",
            "write these codes instead of class and score: asprs, semantickitti ... or "
            "CLASS=CODE,CLASS=CODE ..."},
        TILE_OPTIONS(&r.tiles), VOTES_OPTION(&r.votes), ORIGIN_OPTION(&r.origin),
        CLOUD_MAP_OPTIONS(&r.map), MODEL_OPTIONS(&r.m)};
    int words, code;
    struct pnet_error e = {0};
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &r.model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which model? usage: %s", usage.synopsis);
    if (!r.weights) return pnet_cli_usage_error("which weights? --weights FILE or FOLDER");
    if (!r.inputs.count) return pnet_cli_usage_error("which cloud? --input CLOUD");
    if ((code = pnet_cli_check_model_options(&r.m, &r.degrade))) return code;
    if (pnet_cli_device(&r.m, &e)) return pnet_cli_complain(&e);
    f.json = r.m.json;
    f.quiet = r.m.quiet;
    f.verbose = r.m.verbose;
    return infer(&r, &f);
}
