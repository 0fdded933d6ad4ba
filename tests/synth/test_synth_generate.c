/* Whole data sets: folders, files and index; refusals; the same clouds however they are made. */
#include "runtime/synth/synth.h"
#include "runtime/base/file.h"
#include "tests/check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[2048];

static char *text_of(const char *folder, const char *name)
{
    char path[4096];
    struct pnet_bytes b;
    struct pnet_error e = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (pnet_bytes_read(path, &b, &e)) return NULL;
    char *text = malloc(b.size + 1);
    if (text) {
        memcpy(text, b.data, b.size);
        text[b.size] = 0;
    }
    pnet_bytes_free(&b);
    return text;
}

static bool exists(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static int occurrences(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) n++;
    return n;
}

static bool same(const struct pnet_cloud *a, const struct pnet_cloud *b)
{
    if (a->rows != b->rows || a->field_count != b->field_count) return false;
    if (memcmp(a->xyz, b->xyz, (size_t)a->rows * 12) != 0) return false;
    for (int k = 0; k < a->field_count; k++) {
        if (strcmp(a->fields[k].name, b->fields[k].name) != 0 ||
            a->fields[k].type != b->fields[k].type)
            return false;
        if (memcmp(a->fields[k].data, b->fields[k].data,
                (size_t)a->rows * pnet_scalar_size(a->fields[k].type)) != 0)
            return false;
    }
    return true;
}

/* Each file holds the bits of the cloud made in memory, and stands once in the index, under its
 * split. */
static void check_files(const struct pnet_synth *s, const char *index)
{
    int classes;
    const char *const *names = pnet_synth_classes(s->kind, &classes);
    for (int64_t i = 0; i < s->count; i++) {
        static const char *const tens[10] = {
            "train", "train", "train", "train", "train", "train", "train", "train", "val", "test"};
        const char *split = s->count < 3    ? "train"
                            : s->count < 10 ? tens[i + 10 - s->count]
                                            : tens[i % 10];
        struct pnet_synth_options one = s->options;
        struct pnet_cloud made, read;
        struct pnet_error e = {0};
        char name[64], path[4096], line[160], warning[256];
        int label;
        snprintf(name, sizeof name, "%s/%06lld.ply", split, (long long)i);
        snprintf(path, sizeof path, "%s/%s", s->folder, name);
        one.threads = 1;
        CHECK(!pnet_synth_make(s->kind, s->seed, (uint32_t)i, &one, &made, &label, &e));
        CHECKF(!pnet_cloud_read(path, &read, warning, &e), "%s", e.message);
        CHECKF(same(&made, &read), "%s", path);
        pnet_cloud_free(&made);
        pnet_cloud_free(&read);
        if (s->kind == PNET_SYNTH_SHAPES)
            snprintf(line, sizeof line, "\n  - {cloud: %s, label: %s}\n", name, names[label]);
        else
            snprintf(line, sizeof line, "\n  - {cloud: %s}\n", name);
        const char *at = strstr(index, line), *section = at;
        CHECKF(at && occurrences(index, name) == 1, "%s", line);
        /* Back to the line that begins the section. */
        while (section && section > index && !(section[0] == '\n' && section[1] != ' ')) section--;
        if (section) CHECK(!strncmp(section + 1, split, strlen(split)));
    }
    CHECK(occurrences(index, "cloud:") == s->count);
}

static void test_sets(void)
{
    static const struct {
        enum pnet_synth_kind kind;
        int64_t count;
        int threads;
    } sets[] = {{PNET_SYNTH_SHAPES, 25, 3}, {PNET_SYNTH_SHAPES, 2, 1}, {PNET_SYNTH_ROOMS, 3, 2},
        {PNET_SYNTH_ROOMS, 11, 4}, {PNET_SYNTH_LIDAR, 4, 8}};
    for (int i = 0; i < 5; i++) {
        char folder[2100];
        struct pnet_error e = {0};
        snprintf(folder, sizeof folder, "%s/set/%d", root, i);
        struct pnet_synth s = {.kind = sets[i].kind,
            .folder = folder,
            .count = sets[i].count,
            .seed = 42,
            .options = {.points = 2000, .threads = sets[i].threads}};
        CHECKF(!pnet_synth_generate(&s, &e), "%s", e.message);
        char *index = text_of(folder, "dataset.yaml");
        CHECK(index);
        if (!index) continue;
        CHECK(!strncmp(index, "pnet_dataset: 1\ntask: ", 22));
        bool shapes = s.kind == PNET_SYNTH_SHAPES;
        CHECK(occurrences(index, shapes ? "task: classification\n" : "task: segmentation\n") == 1);
        CHECK(occurrences(index, "label_field: label\n") == !shapes);
        CHECK(occurrences(index, "\ntrain:\n") == 1);
        CHECK(occurrences(index, s.count < 3 ? "\nval: []\n" : "\nval:\n") == 1);
        CHECK(occurrences(index, s.count < 3 ? "\ntest: []\n" : "\ntest:\n") == 1);
        int classes;
        const char *const *names = pnet_synth_classes(s.kind, &classes);
        const char *at = strstr(index, "classes: [");
        for (int k = 0; k < classes && at; k++) {
            at += k ? 2 : strlen("classes: [");
            CHECK(!strncmp(at, names[k], strlen(names[k])));
            at += strlen(names[k]);
        }
        CHECK(at && at[0] == ']');
        check_files(&s, index);
        free(index);
    }
}

/* What `progress` saw. */
struct watch {
    int64_t calls, stop_at, last;
};

static bool watching(void *context, int64_t done, int64_t count)
{
    struct watch *w = context;
    w->calls++;
    CHECK(done == w->last + 1 && done <= count);
    w->last = done;
    return done < w->stop_at;
}

/* Returns the number of entries of a folder. */
static int entries_of(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n - 2;
}

/* Stopped in the middle: nothing of the new set is there, and the older one is as it was. */
static void test_interrupted(void)
{
    char folder[2100];
    struct pnet_error e = {0};
    struct watch all = {.stop_at = 100}, some = {.stop_at = 3};
    snprintf(folder, sizeof folder, "%s/stopped", root);
    struct pnet_synth s = {.folder = folder,
        .count = 6,
        .options = {.points = 100, .threads = 1},
        .progress = watching,
        .context = &all};
    CHECK(!pnet_synth_generate(&s, &e));
    CHECK(all.calls == 6);
    CHECK(exists(folder, "dataset.yaml"));
    static const char *const names[] = {"dataset.yaml", "train/000000.ply", "train/000001.ply",
        "train/000002.ply", "train/000003.ply", "val/000004.ply", "test/000005.ply"};
    char *before[7];
    for (int i = 0; i < 7; i++) before[i] = text_of(folder, names[i]);
    s.context = &some;
    s.replace = true;
    s.seed = 9;
    CHECK(pnet_synth_generate(&s, &e) == PNET_INTERRUPTED);
    CHECK(some.calls == 3);
    CHECK(strstr(e.message, "3 of 6"));
    for (int i = 0; i < 7; i++) {
        char *after = text_of(folder, names[i]);
        CHECKF(before[i] && after && strcmp(before[i], after) == 0, "%s", names[i]);
        free(before[i]);
        free(after);
    }
    CHECK(entries_of(folder) == 4);
    /* a new one */
    snprintf(folder, sizeof folder, "%s/stopped new", root);
    s.context = &(struct watch){.stop_at = 3};
    s.replace = false;
    CHECK(pnet_synth_generate(&s, &e) == PNET_INTERRUPTED);
    CHECK(entries_of(folder) == 0);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECKF(f, "%s", path);
    if (!f) return;
    fputs(text, f);
    fclose(f);
}

/* A set is replaced where that is asked for alone; its clouds go, files that are not its stay. */
static void test_replace(void)
{
    char folder[2100];
    struct pnet_error e = {0};
    snprintf(folder, sizeof folder, "%s/replaced", root);
    struct pnet_synth s = {.folder = folder, .count = 10, .options = {.points = 100}};
    CHECK(!pnet_synth_generate(&s, &e));
    write_text(folder, "train/mine.ply", "mine");
    write_text(folder, "train/000099.ply", "mine too");
    char *index = text_of(folder, "dataset.yaml");
    s.kind = PNET_SYNTH_PAIRS;
    s.count = 3;
    CHECK(pnet_synth_generate(&s, &e) == PNET_USAGE);
    CHECKF(strstr(e.message, "holds a data set already: --force"), "%s", e.message);
    char *after = text_of(folder, "dataset.yaml");
    CHECK(index && after && strcmp(index, after) == 0);
    CHECK(exists(folder, "train/000005.ply"));
    s.replace = true;
    CHECKF(!pnet_synth_generate(&s, &e), "%s", e.message);
    CHECK(exists(folder, "train/000000_target.ply") && exists(folder, "dataset.yaml"));
    CHECK(!exists(folder, "train/000000.ply") && !exists(folder, "train/000007.ply"));
    CHECK(!exists(folder, "val/000008.ply") && !exists(folder, "test/000009.ply"));
    CHECK(exists(folder, "train/mine.ply") && exists(folder, "train/000099.ply"));
    /* Pairs go too; an index that names other files than such clouds loses none of them. */
    write_text(folder, "mine.ply", "mine");
    s.kind = PNET_SYNTH_SHAPES;
    CHECK(!pnet_synth_generate(&s, &e));
    CHECK(!exists(folder, "train/000000_target.ply") && !exists(folder, "test/000002_source.ply"));
    write_text(folder, "dataset.yaml",
        "train: [mine.ply, ../replaced/train/000000.ply, train/mine.ply]\n");
    s.count = 1;
    s.replace = true;
    CHECK(!pnet_synth_generate(&s, &e));
    CHECK(exists(folder, "mine.ply") && exists(folder, "train/mine.ply"));
    CHECK(exists(folder, "val/000001.ply"));
    free(index);
    free(after);
}

/* Clouds without an index are nobody's set, and may be somebody's work. */
static void test_in_the_way(void)
{
    char folder[2100], inner[2200];
    struct pnet_error e = {0};
    snprintf(folder, sizeof folder, "%s/way", root);
    snprintf(inner, sizeof inner, "%s/train", folder);
    CHECK(!mkdir(folder, 0777) && !mkdir(inner, 0777));
    write_text(folder, "train/000001_target.ply", "mine");
    struct pnet_synth s = {
        .kind = PNET_SYNTH_PAIRS, .folder = folder, .count = 3, .options = {.points = 100}};
    s.count = 1;
    CHECKF(!pnet_synth_generate(&s, &e), "%s", e.message);
    char path[2300];
    snprintf(path, sizeof path, "%s/dataset.yaml", folder);
    CHECK(!unlink(path));
    write_text(folder, "train/000000_target.ply", "mine");
    CHECK(pnet_synth_generate(&s, &e) == PNET_USAGE);
    CHECKF(strstr(e.message, "train/000000_source.ply exists already: --force"), "%s", e.message);
    char *text = text_of(folder, "train/000000_target.ply");
    CHECK(text && strcmp(text, "mine") == 0);
    s.replace = true;
    CHECKF(!pnet_synth_generate(&s, &e), "%s", e.message);
    CHECK(exists(folder, "train/000001_target.ply") && exists(folder, "dataset.yaml"));
    free(text);
}

static void test_refusals(void)
{
    char path[2100];
    struct pnet_error e = {0};
    struct pnet_cloud c;
    const struct pnet_synth_options bad[] = {{.points = 3}, {.points = -1}, {.room_m = 1},
        {.room_m = NAN}, {.beams = 1000}, {.azimuth_deg = -1}, {.room_points = 5}, {.threads = -2}};
    for (int i = 0; i < 8; i++) {
        CHECK(pnet_synth_make(PNET_SYNTH_ROOMS, 1, 0, &bad[i], &c, NULL, &e) == PNET_USAGE);
        CHECK(c.rows == 0 && !c.xyz && e.message[0]);
    }
    const struct pnet_synth_options both = {.points = 1000, .azimuth_deg = 1};
    CHECK(pnet_synth_make(PNET_SYNTH_LIDAR, 1, 0, &both, &c, NULL, &e) == PNET_USAGE);
    CHECK(pnet_synth_make((enum pnet_synth_kind)17, 1, 0, &both, &c, NULL, &e) == PNET_USAGE);
    CHECK(!pnet_synth_kind_name(PNET_SYNTH_KINDS));
    struct pnet_synth s = {.folder = "unused", .count = 0};
    CHECK(pnet_synth_generate(&s, &e) == PNET_USAGE);
    /* A file where the folder should be. */
    snprintf(path, sizeof path, "%s/file", root);
    FILE *f = fopen(path, "w");
    CHECK(f);
    if (f) fclose(f);
    s = (struct pnet_synth){.folder = path, .count = 1};
    CHECK(pnet_synth_generate(&s, &e) != PNET_OK);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/pnet_synth_XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(root)) {
        perror(root);
        return 1;
    }
    test_sets();
    test_interrupted();
    test_replace();
    test_in_the_way();
    test_refusals();
    char command[2200];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK(system(command) == 0);
    return check_end();
}
