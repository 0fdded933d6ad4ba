/* pnetc check, pnetc fmt */
#include "compiler/cli/cli.h"
#include "lang/dump.h"
#include "lang/parse.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"

#include <string.h>

/* A file that is parsed without compiling. */
struct parsed {
    struct pnet_arena arena;
    struct pnet_sources *sources;
    struct pnet_diags *diags;
    struct pnet_file *file;
};

/* 0, or the exit code with messages on stderr. The caller frees the arena in either case. */
static int parse_file(const char *path, struct parsed *p)
{
    *p = (struct parsed){0};
    p->sources = pnet_sources_new(&p->arena);
    p->diags = p->sources ? pnet_diags_new(&p->arena, p->sources) : NULL;
    if (!p->diags) return PNET_NO_MEMORY;
    p->file = pnet_parse_file(&p->arena, p->sources, p->diags, path);
    if (p->file && !p->arena.failed && !pnet_diags_errors(p->diags)) return PNET_OK;
    return p->arena.failed && !p->arena.full ? PNET_NO_MEMORY : PNET_BAD_MODEL;
}

/* Prints the syntax tree before names are looked up; of a file with errors, the part that could be read. */
static int dump_tree(const char *path)
{
    struct parsed p;
    int code = parse_file(path, &p);
    if (p.file) pnet_ast_dump(stdout, p.file, p.sources);
    if (code && p.diags) pnet_diags_print(p.diags, stderr, pnet_cli_use_colour(stderr));
    pnet_arena_free(&p.arena);
    return code;
}

/* Tells whether --dump names a pass. */
static bool is_pass(const char *name)
{
    for (int i = 0; pnet_pass_names[i]; i++)
        if (strcmp(pnet_pass_names[i], name) == 0) return true;
    return false;
}

int pnet_command_check(int argc, char **argv)
{
    static const struct usage usage = {"pnetc check MODEL.pnet [options]",
        "Reports errors and warnings, with the place and a caret. Exit code 3 where there are "
        "errors. With --dump the graph is\n"
        "printed after a pass: elaborate, prune, fold, fuse, exact, schedule, parameters, "
        "geometry, "
        "lifetimes.",
        "  pnetc check models/resnet18.pnet\n  pnetc check models/resnet18.pnet --mode voxel "
        "--dump fuse\n"};
    struct model_options m = {0};
    const char *dump = NULL, *model;
    bool infer = false, train = false;
    struct option options[] = {{"dump", 0, OPT_WORD, CHOICE_OF(&dump, pnet_pass_names), "PASS",
                                   "print the graph after that pass"},
        {"infer", 0, OPT_FLAG, &infer, NULL, "compile for inference: the result of the net"},
        {"train", 0, OPT_FLAG, &train, NULL, "compile for training: a loss, and its backward"},
        MODEL_OPTIONS(&m)};
    int words, code;
    bool done;
    unsigned degrade;
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which model? usage: %s", usage.synopsis);
    if (infer && train) return pnet_cli_usage_error("--infer or --train, not both");
    if ((code = pnet_cli_check_model_options(&m, &degrade))) return code;
    if (dump && strcmp(dump, "ast") == 0) return dump_tree(model);
    if (dump && !is_pass(dump)) {
        const char *near = pnet_nearest(dump, pnet_pass_names, pnet_pass_count);
        return near ? pnet_cli_usage_error("no pass '%s': did you mean %s?", dump, near)
                    : pnet_cli_usage_error("no pass '%s': see --help", dump);
    }
    struct pnet_compile_options o = {.purpose = infer   ? PNET_FOR_INFERENCE
                                                : train ? PNET_FOR_TRAINING
                                                        : PNET_FOR_EVAL,
        .degrade = degrade,
        .sets = m.sets.items,
        .set_count = m.sets.count,
        .dump = dump,
        .dump_to = stdout};
    struct pnet_compilation *c = pnet_compile_file(model, &o);
    if (!c) return pnet_cli_out_of_memory();
    code = (int)pnet_compilation_code(c);
    if (m.json)
        pnet_compilation_report(c, stdout, false, true);
    else
        pnet_compilation_report(c, stderr, pnet_cli_use_colour(stderr), false);
    pnet_compilation_free(c);
    return code;
}

static enum pnet_status replace_file(
    const char *path, const char *text, size_t size, struct pnet_error *e)
{
    struct pnet_output out;
    enum pnet_status st = pnet_output_open(path, &out, e);
    if (st) return st;
    fwrite(text, 1, size, out.file); /* commit reports a failure */
    return pnet_output_commit(&out, e);
}

/* What `fmt` does with the canonical form: replaces the file, checks it, or prints the form. */
enum fmt_mode { FMT_REPLACE, FMT_CHECK, FMT_PRINT };

static int deliver(const struct pnet_source *s, const char *path, const char *text, size_t size,
    enum fmt_mode mode)
{
    struct pnet_error e;
    bool same = s->length == size && memcmp(s->text, text, size) == 0;
    if (mode == FMT_PRINT) {
        fwrite(text, 1, size, stdout);
    } else if (mode == FMT_CHECK) {
        char shown[PNET_PATH_MOST];
        if (!same) puts(pnet_printable(path, shown, sizeof shown));
        return same ? PNET_OK : PNET_FAILED;
    } else if (!same && replace_file(path, text, size, &e)) {
        return pnet_cli_complain(&e);
    }
    return PNET_OK;
}

static int format_file(const char *path, enum fmt_mode mode)
{
    struct parsed p;
    struct pnet_error e;
    const char *text = NULL;
    size_t size = 0;
    int code = parse_file(path, &p);
    if (!code) {
        text = pnet_format(&p.arena, p.sources, p.file, &size);
        if (!text) code = p.arena.failed ? PNET_NO_MEMORY : PNET_BAD_MODEL;
    }
    if (text) {
        code = deliver(pnet_sources_get(p.sources, 0), path, text, size,
            strcmp(path, "-") == 0 ? FMT_PRINT : mode);
    } else if (code == PNET_NO_MEMORY) {
        pnet_error_set(&e, PNET_NO_MEMORY, "%s: out of memory, the file stays as it is", path);
        pnet_cli_complain(&e);
    } else if (pnet_diags_errors(p.diags) || p.arena.failed) {
        pnet_diags_print(p.diags, stderr, pnet_cli_use_colour(stderr));
    } else {
        pnet_error_set(&e, (enum pnet_status)code,
            "%s: its canonical form would be larger than a model may be, %d bytes", path,
            PNET_MAX_SOURCE_BYTES);
        pnet_cli_complain(&e);
    }
    pnet_arena_free(&p.arena);
    return code;
}

int pnet_command_fmt(int argc, char **argv)
{
    static const struct usage usage = {"pnetc fmt FILE.pnet ... [options]",
        "Writes models in their canonical form, in place. Comments stay.",
        "  pnetc fmt models/resnet18.pnet\n  pnetc fmt --check models/resnet18.pnet\n"};
    bool check = false, to_stdout = false, done;
    const char *files[256];
    struct option options[] = {{"check", 0, OPT_FLAG, &check, NULL,
                                   "change nothing; name the files that would change, exit code 1"},
        {"stdout", 0, OPT_FLAG, &to_stdout, NULL, "print the result instead"}};
    int words, code, worst = 0;
    if ((code = pnet_cli_parse_options(
             argc, argv, options, 2, &usage, files, 256, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which files? usage: %s", usage.synopsis);
    for (int i = 0; i < words; i++) {
        code = format_file(files[i], to_stdout ? FMT_PRINT : check ? FMT_CHECK : FMT_REPLACE);
        if (code > worst) worst = code;
    }
    return worst;
}
