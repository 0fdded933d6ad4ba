/* pnetc register */
#include "compiler/cli/cloud_options.h"
#include "compiler/cli/origin.h"
#include "compiler/cli/ranges.h"
#include "compiler/cli/weights.h"
#include "runtime/io/cloud.h"
#include "runtime/io/cloud_check.h"
#include "runtime/data/dataset_pose.h"
#include "runtime/data/doubt.h"
#include "runtime/base/json.h"
#include "runtime/register/register_clouds.h"
#include "runtime/register/register_verdict.h"
#include "runtime/data/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The options of `register`. */
struct request {
    const char *paths[2]; /* source, target */
    const char *model, *weights, *net, *from, *output, *picture, *origin;
    double distance_m, icp_m; /* 0: not given */
    bool planes, one_way, strict;
    int64_t points, ransac, sample, seed;
    struct model_options options;
    struct map_options map;
    struct hint_options hints;
    unsigned degrade;
};

struct side {
    struct pnet_cloud cloud;
    float *xyz;     /* of the rows of the net's level */
    void *features; /* float32 features of these rows */
    struct pnet_register_cloud described;
};

struct registration {
    const struct request *request;
    struct side side[2];
    struct offset_doubt offsets;
    int64_t rows;    /* points of the source */
    double cell;     /* of the level of the features, metres; 0: it has none */
    double pose[16]; /* between local coordinates */
    bool estimated, refined;
    double distance; /* of inliers, metres */
    struct pnet_register_found found;
    struct pnet_icp_result icp;
    double hold[6]; /* of the pose that ICP found */
};

/* `map`: that of the weights, whose names of columns are those of the clouds, and `origin`: where the coordinates that the net
   reads begin; NULL: there are no weights. */
static enum pnet_status read_clouds(struct registration *r, const struct pnet_input_map *map,
    const struct pnet_origin *origin, struct pnet_error *e)
{
    for (int i = 0; i < 2; i++) {
        enum pnet_status st = pnet_cli_read_cloud(
            &r->request->hints, map, origin, r->request->paths[i], &r->side[i].cloud, e);
        if (st) return st;
        if (!r->side[i].cloud.rows)
            return pnet_error_set(e, PNET_BAD_DATA, "%s holds no points", r->request->paths[i]);
    }
    const struct pnet_cloud *source = &r->side[0].cloud;
    r->rows = source->rows;
    if (!r->request->output) return PNET_OK;
    enum pnet_status st = pnet_cloud_check_like(r->request->output, source, e);
    return st ? st : pnet_cloud_check_missing(r->request->output, source, 0, e);
}

/* The features that the net computes for one cloud, and the points they belong to. */
static enum pnet_status describe(struct pnet_runner *runner, const struct weights *w, int input,
    const char *path, struct side *s, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(runner);
    const struct pnet_type *t = &p->tensors[p->result].type;
    struct pnet_sample *sample = NULL;
    struct pnet_batch *b = NULL;
    int64_t rows = 0;
    enum pnet_status st =
        pnet_sample_make(&p->inputs[input], &w->map, &s->cloud, NULL, 0, path, &sample, e);
    if (!st)
        st = pnet_samples_batch(p->inputs, p->input_count, input,
            (const struct pnet_sample *const *)&sample, 1, false, &b, e);
    if (sample) pnet_sample_free(sample);
    if (!st) st = pnet_runner_prepare(runner, 0, b, e);
    pnet_batch_free(b);
    if (!st) st = pnet_runner_forward(runner, 0, false, 0, e);
    if (!st) st = pnet_runner_copy_tensor(runner, 0, p->result, &s->features, &rows, e);
    if (!st) {
        s->xyz = malloc((size_t)rows * 3 * sizeof *s->xyz + 1);
        if (!s->xyz) st = pnet_error_memory(e);
    }
    if (!st) {
        const struct pnet_slot *slot = pnet_runner_slot(runner, 0);
        pnet_device_get(pnet_runner_device(runner), s->xyz,
            slot->views[slot->bound->level_item[t->level]].level.xyz,
            (size_t)rows * 3 * sizeof *s->xyz);
        st = pnet_runner_wait(runner, e);
    }
    s->described = (struct pnet_register_cloud){rows, s->xyz, s->features, t->width};
    return st;
}

/* Decides what the colours of both clouds are divided by, and warns where other features lie outside of the training's ranges. */
static enum pnet_status check_clouds(
    struct registration *r, struct weights *w, const struct pnet_input *input, struct pnet_error *e)
{
    struct pnet_ranges source = {.count = 0};
    struct few_warnings outside = {.count = 0};
    const char *const *paths = r->request->paths;
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < 2 && !st; i++)
        st = pnet_cli_add_colours(&w->map, input, &r->side[i].cloud, paths[i], &source, e);
    if (!st) st = pnet_cli_settle_ranges(w, &source, e);
    for (int i = 0; i < 2 && !st; i++) {
        struct pnet_ranges own = {.count = 0};
        st = pnet_input_map_ranges(&w->map, input, &r->side[i].cloud, paths[i], &own, e);
        if (!st) pnet_cli_warn_unusual(&w->map, &own, paths[i], &outside);
        pnet_ranges_free(&own);
    }
    pnet_ranges_free(&source);
    return st;
}

static enum pnet_status run_net(struct registration *r, const struct pnet_bound *b,
    struct weights *w, const struct pnet_origin *origin, struct pnet_error *e)
{
    const struct pnet_plan *p = b->plan;
    const struct model_options *m = &r->request->options;
    const struct pnet_level_info *level = &p->levels[p->tensors[p->result].type.level];
    struct pnet_runner_options o = {.memory_limit = pnet_cli_memory_budget(m), .slots = 1};
    struct pnet_runner *runner = NULL;
    int input;
    if (level->input < 0)
        return pnet_error_set(e, PNET_BAD_MODEL,
            "the net's result has a row for each cloud: features of points are needed");
    r->cell = level->cell;
    enum pnet_status st =
        pnet_cli_map_clouds(&w->map, &r->request->map, p->inputs, p->input_count, e);
    if (!st) st = pnet_input_map_check(&w->map, p->inputs, p->input_count, &input, e);
    r->offsets.needed =
        !origin->named && pnet_reads_coordinates(p->inputs, p->input_count, &w->map);
    for (int i = 0; i < 2 && !st; i++) {
        const struct pnet_cloud *c = &r->side[i].cloud;
        struct pnet_frame frame = {.clouds = 0};
        pnet_frame_add(&frame, c->xyz, c->rows, c->offset);
        pnet_cli_doubt_offset(&r->offsets, &w->map.frame, &frame, r->request->paths[i]);
    }
    if (!st) st = pnet_runner_new(b, &o, &runner, e);
    if (!st) st = pnet_weights_load(&w->from, runner, e);
    if (!st) st = check_clouds(r, w, &p->inputs[input], e);
    for (int i = 0; i < 2 && !st; i++)
        st = describe(runner, w, input, r->request->paths[i], &r->side[i], e);
    pnet_runner_free(runner);
    return st;
}

/* Computes features, correspondences and the pose. *code is set if the model has errors, which have been printed. */
static enum pnet_status estimate(struct registration *r, int *code, struct pnet_error *e)
{
    const struct request *q = r->request;
    struct weights w = {0};
    struct setting setting;
    struct pnet_origin origin = {.named = false};
    enum pnet_status st = pnet_cli_device(&q->options, e);
    if (!st) st = pnet_cli_weights_open(q->weights, &w, e);
    if (!st) st = pnet_cli_weights_setting(&w, &q->options, q->degrade, &setting, e);
    if (!st) st = pnet_cli_origin(q->origin, &w, &origin, e);
    if (!st) st = read_clouds(r, &w.map, &origin, e);
    if (!st) {
        struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE,
            .degrade = setting.degrade,
            .sets = setting.sets.items,
            .set_count = setting.sets.count,
            .net = q->net};
        struct pnet_compilation *c =
            pnet_cli_compile_model(q->model, &o, &(struct model_options){.quiet = true}, code);
        const struct pnet_plan *p = c ? pnet_compilation_plan(c) : NULL;
        struct pnet_bound *b = NULL;
        if (p) st = pnet_cli_weights_bind(&w, &q->options, setting.precision, p, &b, e);
        if (b) st = run_net(r, b, &w, &origin, e);
        pnet_bound_free(b);
        if (c) pnet_compilation_free(c);
    }
    pnet_cli_weights_close(&w);
    if (st || *code) return st;
    r->distance = q->distance_m > 0 ? q->distance_m : 1.5 * r->cell;
    if (r->distance <= 0)
        return pnet_error_set(e, PNET_USAGE,
            "the level of the features has no cell size to derive the distance of inliers from: "
            "give one, --distance 5cm");
    struct pnet_register_options o = {.points = q->points,
        .mutual = !q->one_way,
        .ransac = {.distance = r->distance,
            .iterations = q->ransac,
            .points = (int)q->sample,
            .similarity = 0.9,
            .rand = {.seed = (uint64_t)q->seed, .purpose = PNET_DRAW_METRIC}}};
    st = pnet_register_features(&r->side[0].described, &r->side[1].described, &o, &r->found, e);
    if (st) return st;
    if (!r->found.ransac.found)
        return pnet_error_set(e, PNET_FAILED,
            "no pose found: none of %lld samples of %lld from %lld correspondences fits within %g "
            "m",
            (long long)q->ransac, (long long)q->sample, (long long)r->found.matches, r->distance);
    memcpy(r->pose, r->found.ransac.pose, sizeof r->pose);
    r->estimated = true;
    return PNET_OK;
}

static struct pnet_register_cloud all_points(const struct side *s)
{
    return (struct pnet_register_cloud){.rows = s->cloud.rows, .xyz = s->cloud.xyz};
}

static enum pnet_status refine(struct registration *r, struct pnet_error *e)
{
    struct pnet_icp o = {.distance = r->request->icp_m,
        .iterations = 200,
        .planes = r->request->planes,
        .neighbours = 20};
    struct pnet_register_cloud source = all_points(&r->side[0]), target = all_points(&r->side[1]);
    enum pnet_status st = pnet_register_refine(&source, &target, r->pose, &o, &r->icp, r->hold, e);
    if (st) return st;
    memcpy(r->pose, r->icp.pose, sizeof r->pose);
    r->refined = true;
    return PNET_OK;
}

/* Tells whether correspondences or surfaces determine the pose; if not, `why` gets what they leave free. ICP to points moves the
   pose along surfaces too, where correspondences had determined it. */
static bool is_determined(const struct registration *r, char why[200])
{
    int free = r->refined ? pnet_verdict_free(r->hold) : 0;
    bool held = r->estimated &&
                pnet_verdict_hold(r->found.ransac.inliers, r->found.off_line_m, r->distance);
    if (r->refined && (!free || (held && r->request->planes))) return true;
    if (!r->refined && held) return true;
    if (r->refined)
        snprintf(why, 200,
            "%d of 6 motions are free: the points within %g m of the target slide along its "
            "surfaces",
            free, r->request->icp_m);
    else
        snprintf(why, 200,
            "the correspondences lie along a line or in one place, and leave a rotation free");
    return false;
}

/* Returns the worse of the verdicts by correspondences and by points; `why` gets the numbers that decide. */
static enum pnet_verdict judge_numbers(const struct registration *r, char why[200])
{
    const struct pnet_register_found *f = &r->found;
    enum pnet_verdict by_matches = PNET_POSE_REGISTERED, by_points = PNET_POSE_REGISTERED;
    if (r->estimated) by_matches = pnet_verdict_matches(f->matches, f->ransac.inliers, f->chance);
    if (r->refined) by_points = pnet_verdict_points(r->rows, r->icp.inliers);
    if (r->estimated && by_matches >= by_points) {
        snprintf(why, 200, "%lld of %lld correspondences agree with the pose, %lld would by chance",
            (long long)f->ransac.inliers, (long long)f->matches, (long long)f->chance);
        return by_matches;
    }
    snprintf(why, 200, "%lld of %lld points, %.0f%%, lie within %g m of the target",
        (long long)r->icp.inliers, (long long)r->rows,
        100 * (double)r->icp.inliers / (double)r->rows, r->request->icp_m);
    return by_points;
}

/* Returns the verdict, and sets why. A pose that is not determined is doubtful at best. */
static enum pnet_verdict judge(const struct registration *r, char why[200])
{
    enum pnet_verdict verdict = judge_numbers(r, why);
    return verdict == PNET_POSE_REGISTERED && !is_determined(r, why) ? PNET_POSE_DOUBTFUL : verdict;
}

/* Moves the source into the target's coordinates, in the unit of its file, to write it with all rows of its own file. */
static enum pnet_status write_files(struct registration *r, struct pnet_error *e)
{
    const struct request *q = r->request;
    struct pnet_register_cloud source = all_points(&r->side[0]), target = all_points(&r->side[1]);
    enum pnet_status st = PNET_OK;
    double before[16]; /* the file coordinates as they are */
    pnet_rigid_identity(before);
    for (int k = 0; k < 3; k++)
        before[4 * k + 3] = r->side[0].cloud.offset[k] - r->side[1].cloud.offset[k];
    if (q->picture) st = pnet_register_picture(q->picture, &source, &target, before, r->pose, e);
    if (st || !q->output) return st;
    struct pnet_cloud *c = &r->side[0].cloud;
    st = pnet_cloud_transform(c, r->pose, r->side[1].cloud.offset, e);
    memcpy(c->metres, r->side[1].cloud.metres, sizeof c->metres);
    if (!st) st = pnet_cloud_restore(c, e);
    return st ? st : pnet_cloud_write(q->output, c, e);
}

/* `verdict`: name of the verdict, or NULL if there is none. */
static void print_text(const struct registration *r, const double file[16], const char *verdict)
{
    for (int k = 0; k < 4; k++)
        printf("%14.9f %14.9f %14.9f %16.9f\n", file[4 * k], file[4 * k + 1], file[4 * k + 2],
            file[4 * k + 3]);
    printf("angle %.4f deg, translation %.4f m\n", pnet_rigid_angle(file), pnet_rigid_length(file));
    if (r->estimated)
        printf("%lld correspondences, %lld of them within %g m, root mean square %.4f m\n",
            (long long)r->found.matches, (long long)r->found.ransac.inliers, r->distance,
            r->found.ransac.rmse);
    if (r->refined)
        printf("ICP: %lld of %lld points within %g m, root mean square %.4f m, %d iterations\n",
            (long long)r->icp.inliers, (long long)r->rows, r->request->icp_m, r->icp.rmse,
            r->icp.iterations);
    if (verdict) printf("%s\n", verdict);
}

/* Tells of poses that do not map the numbers of the files. */
static void tell_unit(const struct registration *r)
{
    const double *source = r->side[0].cloud.metres, *target = r->side[1].cloud.metres;
    bool converted = false;
    for (int i = 0; i < 2; i++)
        converted |= (source[i] > 0 && source[i] != 1) || (target[i] > 0 && target[i] != 1);
    if (converted && !r->request->options.quiet)
        pnet_cli_notice("the pose maps coordinates in metres: those of the files, converted "
                        "by --unit");
}

static enum pnet_status print_json(
    const struct registration *r, const double file[16], const char *verdict, struct pnet_error *e)
{
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_string(&j, "source", r->request->paths[0]);
    pnet_json_string(&j, "target", r->request->paths[1]);
    pnet_json_begin(&j, "pose", '[');
    for (int k = 0; k < 16; k++) pnet_json_double(&j, NULL, file[k]);
    pnet_json_end(&j, ']');
    pnet_json_double(&j, "angle_deg", pnet_rigid_angle(file));
    pnet_json_double(&j, "translation_m", pnet_rigid_length(file));
    if (r->estimated) {
        pnet_json_int(&j, "matches", r->found.matches);
        pnet_json_int(&j, "inliers", r->found.ransac.inliers);
        pnet_json_int(&j, "inliers_by_chance", r->found.chance);
        pnet_json_double(&j, "inlier_rmse_m", r->found.ransac.rmse);
    }
    if (r->refined) {
        pnet_json_int(&j, "icp_inliers", r->icp.inliers);
        pnet_json_double(&j, "icp_rmse_m", r->icp.rmse);
        pnet_json_int(&j, "icp_iterations", r->icp.iterations);
    }
    if (verdict) {
        char why[200];
        pnet_json_bool(&j, "determined", is_determined(r, why));
        pnet_json_string(&j, "verdict", verdict);
    }
    pnet_json_end(&j, '}');
    return pnet_json_print(&j, stdout, e);
}

static int run_request(const struct request *q)
{
    struct registration r = {.request = q};
    struct pnet_error e = {0};
    int code = 0;
    enum pnet_status st;
    if (q->from) {
        struct pnet_pose from;
        st = read_clouds(&r, NULL, NULL, &e);
        if (!st) st = pnet_pose_read(q->from, &from, &e);
        if (!st) {
            from = pnet_pose_local(&from, r.side[0].cloud.offset, r.side[1].cloud.offset);
            memcpy(r.pose, from.m, sizeof r.pose);
        }
    } else {
        st = estimate(&r, &code, &e);
    }
    if (!st && !code && q->icp_m > 0) st = refine(&r, &e);
    double file[16];
    pnet_rigid_to_file(r.pose, r.side[0].cloud.offset, r.side[1].cloud.offset, file);
    if (!st && !code) st = write_files(&r, &e);
    if (!st && !code) {
        char why[200];
        bool judged = r.estimated || r.refined;
        enum pnet_verdict verdict = judged ? judge(&r, why) : PNET_POSE_REGISTERED;
        const char *name = judged ? pnet_verdict_name(verdict) : NULL;
        tell_unit(&r);
        if (q->options.json)
            st = print_json(&r, file, name, &e);
        else
            print_text(&r, file, name);
        if (!st && verdict != PNET_POSE_REGISTERED) {
            pnet_cli_notice("%s: the pose %s: %s", q->paths[0],
                verdict == PNET_POSE_FAILED ? "is worth nothing" : "is doubtful", why);
            if (q->strict) code = PNET_FAILED;
        }
    }
    for (int i = 0; i < 2; i++) {
        free(r.side[i].xyz);
        free(r.side[i].features);
        pnet_cloud_free(&r.side[i].cloud);
    }
    return st ? pnet_cli_complain(&e) : code;
}

int pnet_command_register(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc register SOURCE TARGET (--model MODEL.pnet --weights W | --from POSE) [options]",
        "Finds the pose that brings one cloud to another, p_target = T p_source, and prints it in "
        "the files' coordinates, in metres: by the\n"
        "features of a trained net and RANSAC, or from a pose that is given. With --icp it is "
        "refined on all points. It ends with a verdict: registered, doubtful or failed.",
        "  pnetc register source.ply target.ply --model models/fcgf_kitti.pnet --weights out/kitti "
        "-o aligned.ply --picture pair.svg\n"
        "  pnetc register 000009.bin 000000.bin --from pose.txt --icp 20cm --json\n"};
    struct request q = {.points = 5000, .ransac = 50000, .sample = 3, .seed = 0};
    bool done;
    int words, code;
    struct option options[] = {
        {"model", 0, OPT_TEXT, &q.model, "MODEL", "the model whose net makes the features"},
        {"weights", 'w', OPT_TEXT, &q.weights, "W", "its trained weights"},
        {"net", 0, OPT_TEXT, &q.net, "NAME", "which net (the last one)"},
        {"from", 0, OPT_TEXT, &q.from, "POSE", "a file with the pose, instead of a model"},
        {"output", 'o', OPT_OUTPUT, &q.output, "CLOUD", "the source in the target's coordinates"},
        {"picture", 0, OPT_OUTPUT, &q.picture, "OUT.svg", "both clouds, before and after"},
        {"points", 0, OPT_COUNT, COUNT(&q.points, 3, INT32_MAX), "N",
            "rows drawn from each cloud (5000)"},
        {"ransac", 0, OPT_COUNT, COUNT(&q.ransac, 1, 1000000000), "N",
            "samples that RANSAC draws (50000)"},
        {"sample", 0, OPT_COUNT, COUNT(&q.sample, 3, 4), "N",
            "correspondences of a pose, 3 (default) or 4"},
        {"distance", 0, OPT_LENGTH, &q.distance_m, "LENGTH",
            "up to which RANSAC counts an inlier (1.5 cells of the features)"},
        {"one-way", 0, OPT_FLAG, &q.one_way, NULL, "matches need not be mutual"},
        {"icp", 0, OPT_LENGTH, &q.icp_m, "LENGTH", "refine by ICP within this distance"},
        {"planes", 0, OPT_FLAG, &q.planes, NULL, "ICP to the target's planes instead of points"},
        {"strict", 0, OPT_FLAG, &q.strict, NULL,
            "exit code 1 unless the pose counts as registered"},
        {"seed", 0, OPT_COUNT, COUNT(&q.seed, 0, INT64_MAX), "N", "seed of random draws (0)"},
        ORIGIN_OPTION(&q.origin), CLOUD_HINT_OPTIONS(&q.hints), CLOUD_MAP_OPTIONS(&q.map),
        MODEL_OPTIONS(&q.options)};
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, q.paths, 2, &words, &done)) ||
        done)
        return code;
    if (words < 2) return pnet_cli_usage_error("which clouds? usage: %s", usage.synopsis);
    if (!q.from && !q.model)
        return pnet_cli_usage_error("which model? --model MODEL.pnet, or --from POSE");
    if (q.from && q.model) return pnet_cli_usage_error("either --model or --from");
    if (q.from && q.origin)
        return pnet_cli_usage_error("--origin is for the net of --model: leave it out");
    if (q.strict && q.from && !(q.icp_m > 0))
        return pnet_cli_usage_error(
            "--strict judges a pose that is found: --from needs --icp LENGTH");
    if (q.model && !q.weights)
        return pnet_cli_usage_error("which weights? --weights FILE or FOLDER");
    if ((code = pnet_cli_check_model_options(&q.options, &q.degrade))) return code;
    struct pnet_error e = {0};
    if (q.output && pnet_cloud_check_output(q.output, &e)) return pnet_cli_complain(&e);
    code = pnet_cli_parse_hints(&q.hints, &e) ? pnet_cli_complain(&e) : run_request(&q);
    pnet_cli_free_hints(&q.hints);
    return code;
}
