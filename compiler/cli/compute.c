#include "compiler/cli/compute.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"

#include <stdio.h>

static enum pnet_status check_votes(const struct pnet_plan *p, struct pnet_error *e)
{
    int level = p->tensors[p->result].type.level;
    if (!p->result_classes || p->levels[level].input < 0 || pnet_cli_clouds_read(p) > 1)
        return pnet_error_set(e, PNET_USAGE,
            "--votes: the result is no class for each point of one cloud: leave it out");
    return PNET_OK;
}

enum pnet_status pnet_cli_computing(const struct tile_options *tiles, int64_t votes,
    const struct pnet_plan *p, const struct model_options *m, struct computing *c,
    struct pnet_error *e)
{
    enum pnet_status st = votes ? check_votes(p, e) : PNET_OK;
    c->quiet = m->quiet;
    if (votes) c->voting = pnet_voting_new(p, (int)votes);
    return st ? st : pnet_cli_tiling(tiles, p, m, &c->tiles, e);
}

static enum pnet_status run_whole(const struct computing *c, const struct pnet_batch *b,
    float **result, int64_t *rows, struct moments *m, struct pnet_error *e)
{
    enum pnet_status st = pnet_runner_prepare(c->runner, 0, b, e);
    m->prepared = pnet_seconds();
    if (!st) st = pnet_runner_forward(c->runner, 0, false, 0, e);
    return st ? st : pnet_runner_result(c->runner, 0, result, rows, e);
}

static enum pnet_status vote(
    void *context, const struct pnet_batch *fragment, float **scores, struct pnet_error *e)
{
    const struct computing *c = context;
    struct moments m;
    int64_t rows;
    if (c->tiles.tiling.edge > 0)
        return pnet_cli_tiled_result(
            c->runner, fragment, c->input, &c->tiles, NULL, true, scores, e);
    return run_whole(c, fragment, scores, &rows, &m, e);
}

static enum pnet_status run_votes(const struct computing *c, const char *name,
    const struct pnet_batch *b, float **result, struct pnet_error *e)
{
    struct pnet_voting_work work;
    struct computing each = *c;
    char shown[PNET_PATH_MOST];
    enum pnet_status st = pnet_votes(
        pnet_runner_plan(c->runner), b, c->input, &c->voting, vote, &each, result, &work, e);
    if (!st && !c->quiet)
        fprintf(stderr,
            "%s: %lld points labelled in %lld fragments of %d copies, %.1f times each\n",
            pnet_printable(name, shown, sizeof shown), (long long)b->inputs[c->input].rows,
            (long long)work.fragments, c->voting.copies,
            (double)work.computed / (double)(b->inputs[c->input].rows + !b->inputs[c->input].rows));
    return st;
}

enum pnet_status pnet_cli_compute(const struct computing *c, const char *name,
    const struct pnet_batch *b, float **result, int64_t *rows, struct moments *m,
    struct pnet_error *e)
{
    enum pnet_status st;
    m->prepared = pnet_seconds();
    *rows = b->inputs[c->input].rows;
    if (c->voting.copies)
        st = run_votes(c, name, b, result, e);
    else if (c->tiles.tiling.edge > 0)
        st = pnet_cli_tiled_result(c->runner, b, c->input, &c->tiles, name, c->quiet, result, e);
    else
        st = run_whole(c, b, result, rows, m, e);
    m->computed = pnet_seconds();
    if (st && st != PNET_INTERRUPTED) {
        struct pnet_error nameless = *e; /* what runs does not know the names of files */
        pnet_error_set(e, st, "%s: ", name);
        pnet_error_append(e, nameless.message);
    }
    return st;
}
