#include "compiler/cli/tiles.h"
#include "compiler/cli/progress.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"

#include <math.h>
#include <stdio.h>

int pnet_cli_clouds_read(const struct pnet_plan *p)
{
    int count = 0;
    for (int i = 0; i < p->input_count; i++)
        count += !p->inputs[i].unused && !pnet_input_is_pose(&p->inputs[i]);
    return count;
}

static enum pnet_status check_plan(const struct pnet_plan *p, struct pnet_error *e)
{
    if (p->result < 0) return pnet_tiled_can_evaluate(p, e);
    int level = p->tensors[p->result].type.level;
    if (p->levels[level].input < 0 || p->levels[level].kind == PNET_GEO_POINTS)
        return pnet_error_set(e, PNET_USAGE,
            "--tile: the result has no row for each point of the cloud: leave --tile out");
    return PNET_OK;
}

/* Chooses the margin: that of the option, else the field. */
static enum pnet_status choose_margin(const struct tile_options *o, const struct pnet_plan *p,
    bool quiet, double *margin, struct pnet_error *e)
{
    const char *behind;
    double field;
    enum pnet_status st = pnet_tiled_margin(p, &field, &behind, e);
    if (st) return st;
    *margin = o->margin > 0 ? o->margin : field;
    if (isinf(*margin))
        return pnet_error_set(e, PNET_USAGE,
            "--tile: the result of a point depends on all points of the cloud%s%s, so tiles have "
            "other results: --margin LENGTH says how much around a tile is read, and --blend "
            "takes means where margins overlap",
            behind ? ", behind " : "", behind ? behind : "");
    if (*margin < field && !quiet) {
        char text[32];
        snprintf(text, sizeof text, "%.4g m away", field);
        pnet_cli_notice("results depend on points %s, beyond the margin of %.4g m: they are not "
                        "those of the whole cloud",
            isinf(field) ? "anywhere in the cloud" : text, *margin);
    }
    return PNET_OK;
}

enum pnet_status pnet_cli_tiling(const struct tile_options *o, const struct pnet_plan *p,
    const struct model_options *m, struct pnet_tiled_options *t, struct pnet_error *e)
{
    double margin;
    *t = (struct pnet_tiled_options){.blend = o->blend};
    if (!(o->edge > 0)) {
        if (!(o->margin > 0) && !o->blend) return PNET_OK;
        return pnet_error_set(e, PNET_USAGE,
            "--%s is for tiles: --tile LENGTH cuts clouds into them",
            o->blend ? "blend" : "margin");
    }
    if (pnet_cli_clouds_read(p) > 1)
        return pnet_error_set(e, PNET_USAGE, "--tile: the model reads %d clouds: leave --tile out",
            pnet_cli_clouds_read(p));
    enum pnet_status st = check_plan(p, e);
    if (!st) st = choose_margin(o, p, m->quiet, &margin, e);
    if (st) return st;
    t->tiling = pnet_tiling_new(p, o->edge);
    t->tiling.margin = margin;
    if (m->where.kind == PNET_CUDA && !m->quiet)
        pnet_cli_notice("on a GPU the kernels of a tile are chosen by its points: last bits may "
                        "differ from those of the whole cloud");
    return PNET_OK;
}

void pnet_cli_say_tiled(
    const char *name, const struct pnet_tiled_work *work, const struct pnet_tiling *t)
{
    char shown[PNET_PATH_MOST];
    double share = work->computed ? 1 - (double)work->points / (double)work->computed : 0;
    if (name) fprintf(stderr, "%s: ", pnet_printable(name, shown, sizeof shown));
    fprintf(stderr,
        "%lld points in %lld tiles of %.4g m, with margins of %.4g m: %.1f%% of the points "
        "computed "
        "are of margins, the largest tile has %lld\n",
        (long long)work->points, (long long)work->tiles, t->edge, t->margin, 100 * share,
        (long long)work->largest);
}

static bool unless_interrupted(void *context, int64_t done, int64_t points)
{
    (void)context;
    (void)done;
    (void)points;
    return !pnet_cli_interrupted();
}

struct watch {
    struct pnet_progress *shown;
    double begin;
};

static bool show(void *context, int64_t done, int64_t points)
{
    const struct watch *w = context;
    double seconds = pnet_seconds() - w->begin;
    char text[64];
    snprintf(text, sizeof text, "%.3gk points/s", seconds > 0 ? (double)done / seconds / 1000 : 0);
    pnet_progress_show(w->shown, done, points, text);
    return true;
}

enum pnet_status pnet_cli_tiled_result(struct pnet_runner *s, const struct pnet_batch *b, int input,
    const struct pnet_tiled_options *t, const char *name, bool quiet, float **result,
    struct pnet_error *e)
{
    struct watch w = {.shown = quiet ? NULL : pnet_progress_new(stderr), .begin = pnet_seconds()};
    struct pnet_tiled_options o = *t;
    struct pnet_tiled_work work;
    o.go_on = show;
    o.context = &w;
    enum pnet_status st = pnet_tiled_result(s, b, input, &o, result, &work, e);
    pnet_progress_free(w.shown);
    if (!st && !quiet) pnet_cli_say_tiled(name, &work, &t->tiling);
    return st;
}

enum pnet_status pnet_cli_tiled_evaluate(struct pnet_runner *s, struct pnet_loader *l,
    const struct pnet_tiled_options *t, bool quiet, struct pnet_evaluation *v, struct pnet_error *e)
{
    struct pnet_tiled_work work;
    const struct pnet_plan *p = pnet_runner_plan(s);
    struct pnet_tiled_options o = *t;
    int input = 0;
    while (p->inputs[input].unused || pnet_input_is_pose(&p->inputs[input])) input++;
    o.go_on = unless_interrupted;
    enum pnet_status st = pnet_tiled_evaluate(s, l, input, &o, v, &work, e);
    if (!st && !quiet) pnet_cli_say_tiled(NULL, &work, &t->tiling);
    return st;
}
