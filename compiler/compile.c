/* The pipeline. */
#include "compiler/internal.h"
#include "runtime/base/guard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    void (*run)(struct pnet_compilation *);
} passes[] = {
    {"prune", pnet_pass_prune},
    {"fold", pnet_pass_fold},
    {"fuse", pnet_pass_fuse},
    {"exact", pnet_pass_exact},
    {"schedule", pnet_pass_schedule},
    {"parameters", pnet_pass_parameters},
    {"geometry", pnet_pass_geometry},
    {"lifetimes", pnet_pass_lifetimes},
    {"hash", pnet_pass_hash},
};

const char *const pnet_pass_names[] = {"elaborate", "prune", "fold", "fuse", "exact", "schedule",
    "parameters", "geometry", "lifetimes", "hash", NULL};
const int pnet_pass_count = sizeof pnet_pass_names / sizeof pnet_pass_names[0] - 1;

bool pnet_compilation_ok(const struct pnet_compilation *c)
{
    return !c->arena.failed && pnet_diags_errors(c->diags) == 0;
}

static struct pnet_compilation *new_compilation(const struct pnet_compile_options *o)
{
    struct pnet_compilation *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->options = *o;
    c->plan.result = c->plan.result_input = c->plan.prediction = -1;
    c->plan.degrade = o->degrade;
    c->sources = pnet_sources_new(&c->arena);
    c->diags = c->sources ? pnet_diags_new(&c->arena, c->sources) : NULL;
    if (c->sources && o->overlay) pnet_sources_use(c->sources, o->overlay);
    if (c->diags) return c;
    pnet_compilation_free(c);
    return NULL;
}

static void check_objectives(struct pnet_compilation *c)
{
    int losses = 0;
    for (int i = 0; i < c->plan.objective_count; i++) losses += !c->plan.objectives[i].metric;
    if (c->options.purpose == PNET_FOR_TRAINING && !losses && !c->options.output_count)
        pnet_diag_help(ERROR(c, (struct pnet_span){0}, "the model has no loss to train on"),
            "add a line such as loss ce = cross_entropy(y, cloud.label)");
}

static void dump(struct pnet_compilation *c, const char *pass)
{
    if (c->options.dump && strcmp(c->options.dump, pass) == 0)
        if (!pnet_plan_print(&c->plan, c->options.dump_to)) c->arena.failed = true;
}

static void run(struct pnet_compilation *c)
{
    if (!c->file || c->arena.failed) return;
    pnet_seen_begin(c);
    pnet_torn_begin(c);
    if (!c->torn && !pnet_compilation_ok(c)) return;
    pnet_elaborate(c);
    pnet_seen_end(c);
    if (pnet_compilation_ok(c)) {
        if (c->options.purpose == PNET_FOR_INFERENCE)
            pnet_choose_result(c);
        else
            check_objectives(c);
        pnet_choose_outputs(c);
    }
    if (!pnet_compilation_ok(c)) return;
    pnet_warn_unused(c);
    for (int i = 0; i < c->plan.level_count; i++)
        if (pnet_level_unnamed(&c->plan.levels[i]))
            c->plan.levels[i].name =
                pnet_arena_printf(&c->arena, "%s%d", c->plan.levels[i].name, i);
    if (c->arena.failed) return;
    dump(c, "elaborate");
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        passes[i].run(c);
        if (!pnet_compilation_ok(c)) return;
        dump(c, passes[i].name);
    }
    c->done = true;
}

static void keep_text(struct pnet_compilation *c)
{
    size_t length;
    char *text =
        pnet_sources_get(c->sources, 0) ? pnet_join(&c->arena, c->sources, c->file, &length) : NULL;
    c->text = text ? text : "";
}

struct pnet_compilation *pnet_compile_file(const char *path, const struct pnet_compile_options *o)
{
    struct pnet_compilation *c = new_compilation(o);
    if (!c) return NULL;
    c->file = pnet_parse_file(&c->arena, c->sources, c->diags, path);
    keep_text(c);
    run(c);
    return c;
}

enum pnet_status pnet_compilation_guard(const struct pnet_compilation *c, struct pnet_error *e)
{
    const struct pnet_source *s;
    enum pnet_status st = PNET_OK;
    for (uint32_t f = 0; !st && (s = pnet_sources_get(c->sources, f)); f++)
        st = pnet_guard_input(strcmp(s->name, "<stdin>") == 0 ? "-" : s->name, e);
    return st;
}

struct pnet_compilation *pnet_compile_text(
    const char *name, const char *text, size_t length, const struct pnet_compile_options *o)
{
    struct pnet_compilation *c = new_compilation(o);
    if (!c) return NULL;
    c->file = pnet_parse_text(&c->arena, c->sources, c->diags, name, text, length);
    keep_text(c);
    run(c);
    return c;
}

void pnet_compilation_free(struct pnet_compilation *c)
{
    if (!c) return;
    pnet_seen_free(c);
    pnet_arena_free(&c->arena);
    free(c);
}

const struct pnet_plan *pnet_compilation_plan(const struct pnet_compilation *c)
{
    return c->done && pnet_compilation_ok(c) ? &c->plan : NULL;
}

const struct pnet_diags *pnet_compilation_diags(const struct pnet_compilation *c)
{
    return c->diags;
}

void pnet_compilation_report(const struct pnet_compilation *c, FILE *out, bool colour, bool json)
{
    if (json)
        pnet_diags_json(c->diags, out);
    else
        pnet_diags_print(c->diags, out, colour);
}

enum pnet_status pnet_compilation_code(const struct pnet_compilation *c)
{
    if (c->arena.failed && !c->arena.full) return PNET_NO_MEMORY;
    return c->arena.failed || pnet_diags_errors(c->diags) ? PNET_BAD_MODEL : PNET_OK;
}

int pnet_compilation_errors(const struct pnet_compilation *c)
{
    return pnet_diags_errors(c->diags) + (c->arena.failed ? 1 : 0);
}

int pnet_compilation_warnings(const struct pnet_compilation *c)
{
    return pnet_diags_warnings(c->diags);
}

const char *pnet_compilation_result(const struct pnet_compilation *c)
{
    return c->result_name;
}

const char *pnet_compilation_text(const struct pnet_compilation *c)
{
    return c->text;
}
