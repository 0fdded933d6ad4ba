/* Lists what commands take, for programs: the build makes the pages of the manual and the completions of shells of it
   (cmake/pages.cmake). A line has fields with tabs between, the first of which says what it is:

     command NAME SUMMARY
     usage SYNOPSIS
     word NAME once|many KIND NAMES              a word that is no option
     option NAME LETTER ARGUMENT once|many VALUE KIND NAMES HELP
     text LINE, example LINE                     of the description

   VALUE is none, needed, or equals (--name=VALUE alone). KIND says what completes a value: `none`; `words`, one of NAMES;
   `list`, some of them with commas between; `files`, whose name ends as one of NAMES, or any for no NAMES; `folders`. */
#include "compiler/cli/cloud_options.h"
#include "runtime/plan/op.h"
#include "runtime/synth/synth.h"

#include <string.h>

enum kind { ANY_FILES, NOTHING, FOLDERS, FILES, CLOUDS, OPS, KINDS };

/* What a value is, by its name in help texts; a name with a dot, such as MODEL.pnet, says itself how files end. */
static const struct {
    const char *name;
    enum kind kind;
    const char *const *endings;
} values[] = {
    {"N", NOTHING, NULL},
    {"SIZE", NOTHING, NULL},
    {"LENGTH", NOTHING, NULL},
    {"NAME", NOTHING, NULL},
    {"NAMES", NOTHING, NULL},
    {"ENDING", NOTHING, NULL},
    {"DIR", FOLDERS, NULL},
    {"RUNDIR", FOLDERS, NULL},
    {"MODEL", FILES, (const char *const[]){"pnet", NULL}},
    {"DATASET", FILES, (const char *const[]){"yaml", NULL}},
    {"W", FILES, (const char *const[]){"safetensors", NULL}},
    {"CLOUD", CLOUDS, NULL},
    {"SOURCE", CLOUDS, NULL},
    {"TARGET", CLOUDS, NULL},
    {"OP", OPS, NULL},
    {"KIND", KINDS, NULL},
};
enum { VALUES = sizeof values / sizeof values[0] };

static void print_names(const char *kind, const char *const *names)
{
    printf("\t%s\t", kind);
    for (int i = 0; names && names[i]; i++) printf("%s%s", i ? " " : "", names[i]);
}

static void print_kind(const char *name, size_t length)
{
    const char *dot = memchr(name, '.', length);
    int i = 0;
    if (dot) {
        printf("\tfiles\t%.*s", (int)(name + length - dot - 1), dot + 1);
        return;
    }
    while (i < VALUES &&
           (strlen(values[i].name) != length || memcmp(values[i].name, name, length) != 0))
        i++;
    enum kind kind = i < VALUES ? values[i].kind : ANY_FILES;
    if (memchr(name, '=', length)) kind = NOTHING;
    switch (kind) {
    case NOTHING: fputs("\tnone\t", stdout); break;
    case FOLDERS: fputs("\tfolders\t", stdout); break;
    case ANY_FILES: fputs("\tfiles\t", stdout); break;
    case FILES: print_names("files", values[i].endings); break;
    case CLOUDS:
        for (int k = 0; pnet_cloud_ending(k); k++)
            printf("%s%s", k ? " " : "\tfiles\t", pnet_cloud_ending(k));
        break;
    case OPS:
        for (int k = 0; k < pnet_op_count; k++)
            printf("%s%s", k ? " " : "\twords\t", pnet_ops[k]->name);
        break;
    case KINDS:
        for (int k = 0; k < PNET_SYNTH_KINDS; k++)
            printf("%s%s", k ? " " : "\twords\t", pnet_synth_kind_name((enum pnet_synth_kind)k));
        break;
    }
}

static void print_option(const struct option *o)
{
    const char *value = o->type == OPT_FLAG ? "none" : o->type == OPT_SECONDS ? "equals" : "needed";
    const char *argument = o->argument ? o->argument : "";
    printf("option\t%s\t%c\t%s\t%s\t%s", o->name, o->letter ? o->letter : '-', argument,
        o->type == OPT_LIST ? "many" : "once", value);
    const struct choice *c = o->target;
    switch (o->type) {
    case OPT_TEXT:
    case OPT_OUTPUT:
    case OPT_LIST: print_kind(argument, strlen(argument)); break;
    case OPT_CHOICE:
    case OPT_WORD: print_names("words", c->names); break;
    case OPT_CHOICES: print_names("list", c->names); break;
    default: fputs("\tnone\t", stdout);
    }
    printf("\t%s\n", o->help);
}

static void print_lines(const char *what, const char *text)
{
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        printf("%s\t%.*s\n", what, (int)n, text);
        text += n + (text[n] == '\n');
    }
}

/* The words of a synopsis stand between the name of the command, in small letters, and the first option. */
static void print_words(const char *synopsis)
{
    for (const char *p = synopsis; *p;) {
        size_t n = strcspn(p, " ");
        const char *next = p + n + strspn(p + n, " ");
        bool optional = *p == '[';
        if (*p >= 'A' && *p <= 'Z' ? true : optional && p[1] >= 'A' && p[1] <= 'Z') {
            bool many = strncmp(next, "...", 3) == 0;
            const char *name = p + optional;
            size_t length = n - 2 * (size_t)optional;
            printf("word\t%.*s\t%s", (int)length, name, many ? "many" : "once");
            print_kind(name, length);
            putchar('\n');
            if (many) next += 3 + strspn(next + 3, " ");
        } else if (!(*p >= 'a' && *p <= 'z')) {
            return;
        }
        p = next;
    }
}

void pnet_cli_print_table(const struct usage *usage, const struct option *options, int count)
{
    printf("usage\t%s\n", usage->synopsis);
    print_words(usage->synopsis);
    for (int i = 0; i < count; i++) print_option(&options[i]);
    print_lines("text", usage->text);
    print_lines("example", usage->examples);
}

int pnet_cli_print_commands(const char *group, const struct command *commands, int count)
{
    char word[] = "--help=table", *words[] = {word, NULL};
    int code = 0;
    for (int i = 0; i < count && !code; i++) {
        printf("command\t%s%s\t%s\n", group, commands[i].name, commands[i].summary);
        code = commands[i].run(1, words);
    }
    return code;
}
