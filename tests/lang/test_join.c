/* A model that is split into files at random, and joined again: one text with the tree that the model had. */
#include "tests/lang/parsed.h"

enum { MOST_FILES = 64, MOST_ITEMS = 256 };

/* The files of a model that is split, by number: 7.pnet. */
struct files {
    char *text[MOST_FILES];
    struct pnet_held_text held[MOST_FILES];
    int count;
    int joined[MOST_FILES]; /* those that are complete: to include one again changes nothing */
    int joined_count;
    unsigned seed;
};

/* The items of a model with the lines above and behind them: item i ends at ends[i]. */
struct items {
    const char *text;
    size_t ends[MOST_ITEMS];
    int count;
};

static unsigned draw(struct files *f, unsigned below)
{
    f->seed = f->seed * 1664525 + 1013904223;
    return (f->seed >> 8) % below;
}

static const struct pnet_held_text *find(void *context, const char *path)
{
    struct files *f = context;
    int number;
    char end;
    if (sscanf(path, "%d.pne%c", &number, &end) != 2 || number >= f->count) return NULL;
    return &f->held[number];
}

/* Makes a file of the items from `begin` to `end`, some of them in files that it includes. Returns its number. */
static int make_file(struct files *f, const struct items *m, int begin, int end, int depth)
{
    static const char *const heads[] = {"pnet 1\n", "# a file\npnet 1\n", "pnet\n1 # one\n"};
    int number = f->count++;
    size_t length;
    FILE *out = open_memstream(&f->text[number], &length);
    fputs(heads[draw(f, 3)], out);
    for (int i = begin; i < end;) {
        if (f->joined_count && draw(f, 6) == 0)
            fprintf(out, "include \"%d.pnet\" ", f->joined[draw(f, (unsigned)f->joined_count)]);
        if (depth < PNET_MAX_INCLUDE_DEPTH && f->count < MOST_FILES && draw(f, 2) == 0) {
            int to = i + (int)draw(f, (unsigned)(end - i) + 1);
            fprintf(out, "include \"%d.pnet\"%s", make_file(f, m, i, to, depth + 1),
                draw(f, 2) ? "\n" : " ");
            i = to;
        } else {
            size_t from = i ? m->ends[i - 1] : 0;
            fprintf(out, "%.*s", (int)(m->ends[i] - from), m->text + from);
            i++;
        }
    }
    if (draw(f, 2)) fputs("# the end, without a newline", out);
    fclose(out);
    f->held[number] = (struct pnet_held_text){f->text[number], length};
    f->joined[f->joined_count++] = number;
    return number;
}

/* The tree without the lines of include statements, and without comments: those at the start of a model belong to the file,
   and in another file to what follows. */
static char *without_includes(const char *tree)
{
    char *kept = calloc(strlen(tree) + 2, 1), *at = kept;
    if (!kept) exit(1);
    for (const char *line = tree; *line;) {
        size_t length = strcspn(line, "\n");
        const char *comment = memmem(line, length, "  ## ", 5);
        if (strncmp(line, "include ", 8) != 0)
            at += sprintf(at, "%.*s\n", (int)(comment ? comment - line : (long)length), line);
        line += length + (line[length] == '\n');
    }
    return kept;
}

static void check_join(const struct items *m, const char *tree, unsigned seed)
{
    static struct files f;
    f = (struct files){.seed = seed};
    int main_file = make_file(&f, m, 0, m->count, 0);
    struct parsed *p = parsed_start(0);
    pnet_sources_use(p->sources, &(struct pnet_overlay){find, &f});
    p->file = pnet_parse_text(
        &p->arena, p->sources, p->diags, "main.pnet", f.text[main_file], f.held[main_file].length);
    parsed_end(p);
    CHECKF(!parsed_errors(p), "seed %u: %s", seed, p->messages);
    size_t length;
    char *text = pnet_join(&p->arena, p->sources, p->file, &length);
    CHECKF(text && strlen(text) == length, "seed %u: the length", seed);
    struct parsed *alone = parsed_text(text);
    CHECKF(!parsed_errors(alone), "seed %u: %s", seed, alone->messages);
    char *want = without_includes(tree), *got = without_includes(alone->tree);
    CHECKF(!strcmp(got, want), "seed %u: %s\nexpected\n%s", seed, got, want);
    CHECKF(!strstr(alone->tree, "\ninclude "), "seed %u: an include is left", seed);
    free(got);
    free(want);
    parsed_free(alone);
    parsed_free(p);
    for (int i = 0; i < f.count; i++) free(f.text[i]);
}

static void test_model(const char *path)
{
    struct parsed *p = parsed_file(path);
    CHECKF(!parsed_errors(p), "%s: %s", path, p->messages);
    struct items m = {.text = pnet_sources_get(p->sources, 0)->text + p->file->header.end};
    size_t length = strlen(m.text);
    for (const struct pnet_item *i = p->file->items; i; i = i->next) {
        size_t end = i->span.end - p->file->header.end;
        m.ends[m.count++] =
            end + strcspn(m.text + end, "\n") + (strchr(m.text + end, '\n') != NULL);
    }
    if (m.count) m.ends[m.count - 1] = length;
    for (unsigned seed = 0; seed < 50; seed++) check_join(&m, p->tree, seed);
    /* Without an include the text is the file, byte for byte: checkpoints know a model by its text. */
    const struct pnet_source *s = pnet_sources_get(p->sources, 0);
    char *text = pnet_join(&p->arena, p->sources, p->file, &length);
    CHECKF(length == s->length && !memcmp(text, s->text, length), "%s: the text", path);
    parsed_free(p);
}

int main(void)
{
    static const char *const models[] = {"fcgf", "flash3d", "foldingnet", "minkunet18a", "pcn",
        "ptv3", "resnet18", "rooms", "shapes"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[64];
        snprintf(path, sizeof path, "models/%s.pnet", models[i]);
        test_model(path);
    }
    return check_end();
}
