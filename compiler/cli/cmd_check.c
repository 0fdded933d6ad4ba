/* pnetc check, pnetc fmt */
#include "compiler/cli/cli.h"
#include "lang/dump.h"
#include "lang/parse.h"
#include "runtime/io/file.h"

#include <stdlib.h>
#include <string.h>

/* The syntax tree, before any name is looked up. */
static int dump_tree(const char *path)
{
    struct pnet_arena arena = {0};
    struct pnet_sources *sources = pnet_sources_new(&arena);
    struct pnet_diags *diags = sources ? pnet_diags_new(&arena, sources) : NULL;
    struct pnet_file *file = diags ? pnet_parse_file(&arena, sources, diags, path) : NULL;
    int code = !diags || arena.failed ? PNET_NO_MEMORY : PNET_OK;
    if (file) pnet_ast_dump(stdout, file, sources);
    if (diags && pnet_diags_errors(diags)) {
        pnet_diags_print(diags, stderr, use_colour(stderr));
        code = PNET_BAD_MODEL;
    }
    pnet_arena_free(&arena);
    return code;
}

/* The name of a pass, for --dump. */
static bool is_pass(const char *name)
{
    for (int i = 0; pnet_pass_names[i]; i++)
        if (strcmp(pnet_pass_names[i], name) == 0) return true;
    return false;
}

int command_check(int argc, char **argv)
{
    static const struct usage usage = {"pnetc check MODEL.pnet [options]",
        "Reports errors and warnings, with the place and a caret. Exit code 3 where there are "
        "errors. With --dump the graph is\n"
        "printed after a pass: elaborate, prune, fold, fuse, schedule, parameters, geometry, "
        "lifetimes.",
        "  pnetc check models/resnet18.pnet\n  pnetc check models/resnet18.pnet --mode voxel "
        "--dump fuse\n"};
    struct model_options m = {0};
    const char *dump = NULL, *model;
    bool infer = false;
    struct option options[] = {
        {"dump", 0, OPT_TEXT, &dump, "PASS", "print the graph after that pass"},
        {"infer", 0, OPT_FLAG, &infer, NULL, "compile for inference instead of training"},
        MODEL_OPTIONS(&m)};
    int words, code;
    bool done;
    unsigned degrade;
    if ((code = parse_options(argc, argv, options, sizeof options / sizeof options[0], &usage,
             &model, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return usage_error("which model? usage: %s", usage.synopsis);
    if ((code = check_model_options(&m, &degrade))) return code;
    if (dump && strcmp(dump, "ast") == 0) return dump_tree(model);
    if (dump && !is_pass(dump)) {
        const char *near = pnet_nearest(dump, pnet_pass_names, pnet_pass_count);
        return near ? usage_error("no pass '%s': did you mean %s?", dump, near)
                    : usage_error("no pass '%s': see --help", dump);
    }
    struct pnet_compile_options o = {.purpose = infer ? PNET_FOR_INFERENCE : PNET_FOR_EVAL,
        .degrade = degrade,
        .sets = m.sets.items,
        .set_count = m.sets.count,
        .dump = dump,
        .dump_to = stdout};
    struct pnet_compilation *c = pnet_compile_file(model, &o);
    if (!c) return PNET_NO_MEMORY;
    bool bad = pnet_compilation_errors(c) > 0;
    if (m.json)
        pnet_compilation_report(c, stdout, false, true);
    else
        pnet_compilation_report(c, stderr, use_colour(stderr), false);
    pnet_compilation_free(c);
    return bad ? PNET_BAD_MODEL : PNET_OK;
}

static int format_file(const char *path, bool check, bool to_stdout)
{
    struct pnet_arena arena = {0};
    struct pnet_sources *sources = pnet_sources_new(&arena);
    struct pnet_diags *diags = sources ? pnet_diags_new(&arena, sources) : NULL;
    struct pnet_file *file = diags ? pnet_parse_file(&arena, sources, diags, path) : NULL;
    struct pnet_error e = {0};
    char *text = NULL;
    size_t size = 0;
    int code = PNET_OK;
    if (!diags || arena.failed) {
        code = PNET_NO_MEMORY;
    } else if (!file || pnet_diags_errors(diags)) {
        pnet_diags_print(diags, stderr, use_colour(stderr));
        code = PNET_BAD_MODEL;
    } else {
        FILE *f = open_memstream(&text, &size);
        bool ok = f && pnet_format(&arena, sources, file, f);
        if (f) ok &= fclose(f) == 0;
        const struct pnet_source *s = pnet_sources_get(sources, 0);
        bool same = ok && s->length == size && memcmp(s->text, text, size) == 0;
        struct pnet_output out;
        if (!ok) {
            code = PNET_NO_MEMORY;
        } else if (to_stdout || strcmp(path, "-") == 0) {
            fwrite(text, 1, size, stdout);
        } else if (check) {
            if (!same) {
                printf("%s\n", path);
                code = PNET_FAILED;
            }
        } else if (!same && !pnet_output_open(path, &out, &e)) {
            fwrite(text, 1, size, out.file);
            pnet_output_commit(&out, &e);
        }
    }
    free(text);
    pnet_arena_free(&arena);
    return e.status ? complain(&e) : code;
}

int command_fmt(int argc, char **argv)
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
    if ((code = parse_options(argc, argv, options, 2, &usage, files, 256, &words, &done)) || done)
        return code;
    if (!words) return usage_error("which files? usage: %s", usage.synopsis);
    for (int i = 0; i < words; i++) {
        code = format_file(files[i], check, to_stdout);
        if (code > worst) worst = code;
    }
    return worst;
}
