/* pnetc plan, pnetc graph */
#include "compiler/cli/cloud_options.h"
#include "compiler/cli/cli.h"
#include "compiler/cli/plan_kernels.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/run/peak.h"
#include "runtime/run/updater.h"
#include "runtime/data/sample.h"
#include "runtime/run/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Makes a batch of one cloud: its coordinates, and zeros in all fields. A model with two clouds gets it twice. */
static enum pnet_status coordinates_batch(const struct pnet_plan *p, const struct pnet_cloud *cloud,
    struct pnet_batch **b, struct pnet_error *e)
{
    const int64_t **splits = calloc((size_t)p->input_count + 1, sizeof *splits);
    int64_t full[2] = {0, cloud->rows}, empty[2] = {0, 0};
    if (!splits) return pnet_error_memory(e);
    for (int i = 0; i < p->input_count; i++)
        splits[i] = p->inputs[i].unused || pnet_input_is_pose(&p->inputs[i]) ? empty : full;
    enum pnet_status st = pnet_batch_new(p->inputs, p->input_count, 1, splits, b, e);
    for (int i = 0; !st && i < p->input_count; i++)
        if (splits[i] == full)
            memcpy((*b)->inputs[i].xyz, cloud->xyz, (size_t)cloud->rows * 3 * sizeof(float));
    free(splits);
    return st;
}

static void scale_counts(const struct pnet_plan *p, struct pnet_counts *c, double ratio)
{
    for (int l = 0; l < p->level_count; l++)
        if (p->levels[l].kind == PNET_GEO_CHUNKS)
            c->rows[l] =
                (c->rows[p->levels[l].finer] + p->levels[l].count - 1) / p->levels[l].count;
        else if (p->levels[l].input >= 0)
            c->rows[l] = pnet_geo_assumed((double)c->rows[l] * ratio);
        else if (p->levels[l].kind == PNET_GEO_POINTS)
            c->rows[l] = pnet_generated_rows(&p->levels[l], c);
    for (int i = 0; i < p->geo_count; i++)
        for (int k = 0; k < PNET_GEO_COUNTS; k++)
            c->of[i][k] = pnet_geo_assumed((double)c->of[i][k] * ratio);
}

static bool same_heading(const struct pnet_geo_kind *a, const struct pnet_geo_kind *b)
{
    return a == b || (a->heading && b->heading && strcmp(a->heading, b->heading) == 0);
}

/* Prints kinds with the same heading below it, in the order of the plan. */
static void print_counts(const struct pnet_plan *p, const struct pnet_counts *c)
{
    for (int k = 0; k < PNET_GEO_KINDS; k++) {
        const struct pnet_geo_kind *kind = pnet_geo_kind((enum pnet_geo_id)k);
        bool told = !kind->describe;
        for (int j = 0; j < k; j++) told |= same_heading(pnet_geo_kind((enum pnet_geo_id)j), kind);
        if (told) continue;
        if (kind->heading) puts(kind->heading);
        for (int i = 0; i < p->geo_count; i++) {
            const struct pnet_geo_kind *own = pnet_geo_kind(p->geo[i].request.kind);
            if (own->describe && same_heading(own, kind)) own->describe(p, i, c, stdout);
        }
    }
}

static void print_buffers(const struct pnet_plan *p, const struct pnet_layout *l)
{
    static const char *const roles[] = {"input", "value", "saved", "gradient"};
    char size[32];
    puts("buffers: bytes, offset, first and last step");
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *x = &p->tensors[t];
        if (x->first < 0 || x->role == PNET_ROLE_INPUT || x->shares != t) continue;
        printf("  %11s at %12zu  [%4d, %4d]  %-8s %s\n", pnet_bytes_text(l->bytes[t], size),
            l->offset[t], x->first, x->last, roles[x->role], x->name);
    }
    for (int s = 0; s < p->step_count; s++)
        if (l->work_bytes[s])
            printf("  %11s at %12zu  [%4d, %4d]  workspace %s of %s\n",
                pnet_bytes_text(l->work_bytes[s], size), l->work[s], s, s,
                p->steps[s].backward ? "backward" : "forward", p->nodes[p->steps[s].node].path);
}

/* The receptive field of a result of inference. */
static enum pnet_status print_field(const struct pnet_plan *p, struct pnet_error *e)
{
    struct pnet_receptive_field r;
    if (p->result < 0) return PNET_OK;
    enum pnet_status st = pnet_plan_receptive_field(p, p->result, &r, e);
    if (st) return st;
    if (isfinite(r.metres))
        printf("field:       %.4g m on each axis, from a point to what its result depends on\n",
            r.metres);
    else
        printf("field:       not bounded%s%s: a result depends on all points of the cloud\n",
            r.node < 0 ? "" : " behind ", r.node < 0 ? "" : p->nodes[r.node].path);
    return PNET_OK;
}

static enum pnet_status json_field(
    const struct pnet_plan *p, struct pnet_json *j, struct pnet_error *e)
{
    struct pnet_receptive_field r;
    if (p->result < 0) return PNET_OK;
    enum pnet_status st = pnet_plan_receptive_field(p, p->result, &r, e);
    if (st) return st;
    pnet_json_double(j, "receptive_field_m", r.metres);
    if (r.node >= 0) pnet_json_string(j, "unbounded_behind", p->nodes[r.node].path);
    return PNET_OK;
}

static void print_peak(const struct pnet_plan *p, const struct pnet_peak *k)
{
    char a[32];
    printf("parameters:  %lld numbers\n", (long long)p->parameter_count);
    printf("memory:      %11s parameters\n", pnet_bytes_text(k->parameters, a));
    if (k->gradients) printf("             %11s gradients\n", pnet_bytes_text(k->gradients, a));
    if (k->optimizer)
        printf("             %11s optimiser state\n", pnet_bytes_text(k->optimizer, a));
    const struct pnet_slot_sizes *g = &k->geometry;
    const struct {
        const char *what;
        size_t bytes;
    } parts[] = {{"inputs", g->fields}, {"levels", g->levels}, {"maps between levels", g->maps},
        {"triplets", g->triplets}, {"triplets as tiles", g->tiles}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].bytes)
            printf("             %11s %s%s\n",
                pnet_bytes_text((size_t)k->slots * parts[i].bytes, a), parts[i].what,
                k->slots > 1 ? " of two batches" : "");
    printf("             %11s to build the geometry\n", pnet_bytes_text(g->shared, a));
    printf("             %11s feature stage\n", pnet_bytes_text(k->features, a));
    if (k->runner)
        printf("             %11s counts that kernels read\n", pnet_bytes_text(k->runner, a));
    printf("peak:        %11s, %zu bytes, for %s\n", pnet_bytes_text(k->total, a), k->total,
        p->training ? "training" : "inference");
}

static void print_json_list(const struct pnet_plan *p, const struct pnet_counts *c,
    const struct pnet_geo_kind *kind, struct pnet_json *j)
{
    if (!kind->list) return;
    pnet_json_begin(j, kind->list, '[');
    for (int i = 0; i < p->geo_count; i++) {
        if (pnet_geo_kind(p->geo[i].request.kind) != kind) continue;
        pnet_json_begin(j, NULL, '{');
        kind->json(p, i, c, j);
        pnet_json_end(j, '}');
    }
    pnet_json_end(j, ']');
}

static enum pnet_status print_json(const struct pnet_bound *b, const struct pnet_counts *c,
    const struct pnet_peak *k, struct pnet_error *e)
{
    const struct pnet_plan *p = b->plan;
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_int(&j, "parameters", p->parameter_count);
    pnet_json_begin(&j, "levels", '[');
    for (int l = 0; l < p->level_count; l++) {
        const struct pnet_geo_request level = {.kind = p->levels[l].kind, .a = l, .b = l};
        if (p->levels[l].input < 0 || pnet_geo_find(p, &level) < 0) continue;
        pnet_json_begin(&j, NULL, '{');
        pnet_json_string(&j, "name", p->levels[l].name);
        pnet_json_double(&j, "cell_m", p->levels[l].cell);
        pnet_json_int(&j, "points", c->rows[l]);
        pnet_json_end(&j, '}');
    }
    pnet_json_end(&j, ']');
    for (int id = 0; id < PNET_GEO_KINDS; id++)
        print_json_list(p, c, pnet_geo_kind((enum pnet_geo_id)id), &j);
    enum pnet_status st = pnet_cli_print_json_kernels(b, c, &j, e);
    if (!st) st = json_field(p, &j, e);
    if (st) {
        pnet_json_free(&j);
        return st;
    }
    pnet_json_begin(&j, "bytes", '{');
    pnet_json_int(&j, "parameters", (int64_t)k->parameters);
    pnet_json_int(&j, "gradients", (int64_t)k->gradients);
    pnet_json_int(&j, "optimizer", (int64_t)k->optimizer);
    pnet_json_int(
        &j, "geometry", (int64_t)((size_t)k->slots * k->geometry.kept + k->geometry.shared));
    pnet_json_int(&j, "inputs_of_a_batch", (int64_t)k->geometry.fields);
    pnet_json_int(&j, "levels_of_a_batch", (int64_t)k->geometry.levels);
    pnet_json_int(&j, "maps_of_a_batch", (int64_t)k->geometry.maps);
    pnet_json_int(&j, "triplets_of_a_batch", (int64_t)k->geometry.triplets);
    pnet_json_int(&j, "tiles_of_a_batch", (int64_t)k->geometry.tiles);
    pnet_json_int(&j, "building", (int64_t)k->geometry.shared);
    pnet_json_int(&j, "features", (int64_t)k->features);
    pnet_json_int(&j, "counts", (int64_t)k->runner);
    pnet_json_int(&j, "peak", (int64_t)k->total);
    pnet_json_end(&j, '}');
    pnet_json_end(&j, '}');
    return pnet_json_print(&j, stdout, e);
}

struct plan_request {
    const char *cloud, *like, *optimizer;
    struct hint_options hints;
    enum pnet_optim_kind optim;
    int64_t points, architecture;
    size_t memory;
    bool json, quiet;
};

/* Counts a real cloud by building its geometry. */
static enum pnet_status measure(const struct pnet_plan *p, const struct hint_options *hints,
    const char *path, struct pnet_slot *slot, int64_t *points, struct pnet_error *e)
{
    struct pnet_cloud cloud;
    struct pnet_batch *b = NULL;
    enum pnet_status st = pnet_cli_read_cloud(hints, NULL, NULL, path, &cloud, e);
    if (st) return st;
    *points = cloud.rows;
    st = coordinates_batch(p, &cloud, &b, e);
    pnet_cloud_free(&cloud);
    if (!st) st = pnet_slot_build(slot, b, e);
    pnet_batch_free(b);
    return st;
}

static int show(const struct pnet_bound *b, const struct plan_request *r)
{
    const struct pnet_plan *p = b->plan;
    struct pnet_memory memory;
    struct pnet_geo_work *work = NULL;
    struct pnet_slot *slot = NULL;
    struct pnet_layout layout = {0};
    struct pnet_error e = {0};
    int64_t measured = 0;
    const char *cloud = r->cloud ? r->cloud : r->like;
    pnet_memory_init(&memory, (struct pnet_device){0}, 0); /* counts are the same on every device */
    enum pnet_status st = pnet_geo_work_new(b, &memory, &work, &e);
    if (!st) st = pnet_slot_new(work, &slot, &e);
    if (!st && cloud) st = measure(p, &r->hints, cloud, slot, &measured, &e);
    if (!st && !cloud) {
        pnet_counts_assume(b, &slot->counts, r->points);
        if (!r->json)
            puts("no cloud is given: a level is assumed to hold a third of the points of a level "
                 "with half its cell");
    }
    if (!st && r->like && measured)
        scale_counts(p, &slot->counts, (double)r->points / (double)measured);
    struct pnet_optim optim = pnet_optim_default(r->optim);
    struct pnet_peak k;
    if (!st)
        st = pnet_peak_plan(b, &slot->counts, p->training ? 2 : 1,
            p->training ? pnet_updater_bytes(b, &optim) : 0, r->memory, &layout, &k, &e);
    if (!st) {
        if (r->json) {
            st = print_json(b, &slot->counts, &k, &e);
        } else {
            print_counts(p, &slot->counts);
            if (!r->quiet) st = pnet_cli_print_kernels(b, &slot->counts, &e);
            if (!r->quiet && !st) print_buffers(p, &layout);
            if (!st) st = print_field(p, &e);
            if (!st) print_peak(p, &k);
        }
        if (!st && r->memory && k.total > r->memory) {
            char need[32], have[32];
            st = pnet_error_set(&e, PNET_NO_MEMORY, "the peak of %s is over the budget of %s",
                pnet_bytes_text(k.total, need), pnet_bytes_text(r->memory, have));
            pnet_layout_name_peak(p, &layout, &e);
        }
    }
    pnet_layout_free(&layout);
    pnet_slot_free(slot);
    pnet_geo_work_free(work);
    pnet_memory_end(&memory);
    return st ? pnet_cli_complain(&e) : PNET_OK;
}

int pnet_command_plan(int argc, char **argv)
{
    static const struct usage usage = {
        "pnetc plan MODEL.pnet (--input CLOUD | --points N [--like CLOUD]) [options]",
        "Prints the levels, the triplet sets with the layers that share them, the kernels of "
        "convolutions and linear\n"
        "layers, every buffer with its lifetime and offset, and the memory peak.\n"
        "For training the state of the optimiser and the next batch count too.",
        "  pnetc plan models/minkunet18a.pnet --input room.ply --train\n  pnetc plan "
        "models/resnet18.pnet --points 200000000 --like room.ply\n"};
    struct model_options m = {0};
    struct plan_request r = {.optimizer = "adamw"};
    bool train = false, done;
    const char *model, *architecture = NULL;
    struct pnet_error e = {0};
    struct option options[] = {{"input", 0, OPT_TEXT, &r.cloud, "CLOUD", "the cloud to plan for"},
        {"points", 0, OPT_COUNT, COUNT(&r.points, 1, INT32_MAX), "N",
            "or a number of points, such as 2M"},
        {"like", 0, OPT_TEXT, &r.like, "CLOUD", "with the ratios of this cloud"},
        {"train", 0, OPT_FLAG, &train, NULL, "for training"},
        {"optimizer", 0, OPT_CHOICE, CHOICE_OF(&r.optimizer, pnet_optim_names), "NAME",
            "sgd, adam or adamw (default)"},
        {"architecture", 0, OPT_CHOICE, CHOICE(&architecture, "80", "86", "89", "90", "100", "120"),
            "GPU", "with --device cuda: 80, 86, 89, 90, 100 or 120 (the GPU at hand, else 90)"},
        CLOUD_HINT_OPTIONS(&r.hints), MODEL_OPTIONS(&m)};
    int words, code;
    unsigned degrade;
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which model? usage: %s", usage.synopsis);
    if (!r.cloud && !r.points)
        return pnet_cli_usage_error("for which cloud? --input CLOUD or --points N");
    if ((code = pnet_cli_check_model_options(&m, &degrade))) return code;
    while (strcmp(r.optimizer, pnet_optim_names[r.optim]) != 0) r.optim++;
    if (architecture) r.architecture = strtol(architecture, NULL, 10);
    if (r.architecture && m.where.kind != PNET_CUDA)
        return pnet_cli_usage_error("--architecture is for --device cuda");
    struct pnet_compile_options o = {.purpose = train ? PNET_FOR_TRAINING : PNET_FOR_INFERENCE,
        .degrade = degrade,
        .sets = m.sets.items,
        .set_count = m.sets.count};
    if (pnet_cli_parse_hints(&r.hints, &e)) return pnet_cli_complain(&e);
    struct pnet_compilation *c = pnet_cli_compile_model(model, &o, &m, &code);
    if (!c) {
        pnet_cli_free_hints(&r.hints);
        return code;
    }
    r.memory = m.memory;
    r.json = m.json;
    r.quiet = m.quiet;
    struct pnet_target target = {.where = m.where,
        .architecture = (int)r.architecture,
        .precision = m.products,
        .algo = m.sums};
    struct pnet_bound *b = NULL;
    code = pnet_bound_new(pnet_compilation_plan(c), &target, &b, &e) ? pnet_cli_complain(&e)
                                                                     : show(b, &r);
    pnet_bound_free(b);
    pnet_compilation_free(c);
    pnet_cli_free_hints(&r.hints);
    return code;
}
