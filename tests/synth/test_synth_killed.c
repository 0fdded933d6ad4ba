/* A data set that replaces another one, and is killed before any of its system calls that change a folder: the index lists
   the one or the other, whole, and the next set leaves nothing of either. */
#include "runtime/base/file.h"
#include "runtime/data/dataset.h"
#include "runtime/synth/synth.h"
#include "tests/check.h"
#include "tests/store/faults.h"

#include <dirent.h>
#include <sys/wait.h>

enum { OLD = 4, NEW = 5, NEXT = 3, MOST_CALLS = 1000 };

static char root[2048];

static void name_folder(char folder[2100], const char *name)
{
    snprintf(folder, 2100, "%s/%s", root, name);
}

/* The set of that many clouds; its seed is their number. */
static enum pnet_status make(const char *folder, int count, bool replace, struct pnet_error *e)
{
    struct pnet_synth s = {.folder = folder,
        .count = count,
        .seed = (uint64_t)count,
        .replace = replace,
        .options = {.points = 64, .threads = 1}};
    return pnet_synth_generate(&s, e);
}

static bool same_bytes(const char *path, const char *other)
{
    struct pnet_bytes a, b;
    struct pnet_error e;
    if (pnet_bytes_read(path, &a, &e)) return false;
    bool same = !pnet_bytes_read(other, &b, &e);
    if (same) {
        same = a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
        pnet_bytes_free(&b);
    }
    pnet_bytes_free(&a);
    return same;
}

/* Returns the number of clouds that the index lists, all of them with the bytes of the set of that number in a folder of its
   own; -1: there is no index, or a cloud is missing or another one. */
static int whole(const char *folder)
{
    struct pnet_dataset *d;
    struct pnet_error e;
    char path[4300];
    int count = 0;
    bool right = true;
    if (pnet_dataset_read(folder, &d, &e)) return -1;
    for (int s = 0; s < PNET_SPLITS; s++) count += (int)d->counts[s];
    for (int s = 0; s < PNET_SPLITS; s++)
        for (int64_t i = 0; i < d->counts[s]; i++) {
            const char *name = strrchr(d->entries[s][i].cloud, '/');
            snprintf(path, sizeof path, "%s/alone%d/%s%s", root, count,
                pnet_split_name((enum pnet_split)s), name);
            right = right && same_bytes(d->entries[s][i].cloud, path);
        }
    pnet_dataset_free(d);
    return right ? count : -1;
}

static int entries_of(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n - 2;
}

static void remove_all(const char *folder)
{
    char command[2300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}

/* Returns false once the child has ended before the call came. */
static bool kill_at(const char *folder, bool replace, int call)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct pnet_error e;
        faults_set(FAULT_KILL_BEFORE, call);
        _exit(make(folder, NEW, replace, &e) ? 1 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECKF(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "call %d: %d",
        call, status);
    return WIFSIGNALED(status);
}

static void check_next(const char *folder, int call)
{
    struct pnet_error e = {0};
    char split[2200];
    int clouds = 0;
    CHECKF(!make(folder, NEXT, true, &e), "call %d: %s", call, e.message);
    CHECKF(whole(folder) == NEXT, "call %d", call);
    CHECKF(entries_of(folder) == 4, "call %d: %d entries", call, entries_of(folder));
    for (int s = 0; s < PNET_SPLITS; s++) {
        snprintf(split, sizeof split, "%s/%s", folder, pnet_split_name((enum pnet_split)s));
        clouds += entries_of(split);
    }
    CHECKF(clouds == NEXT, "call %d: %d clouds", call, clouds);
}

static void test_replaced(void)
{
    char folder[2100];
    int old = 0, new = 0, call = 0;
    name_folder(folder, "replaced");
    for (bool killed = true; killed && ++call < MOST_CALLS;) {
        struct pnet_error e = {0};
        remove_all(folder);
        CHECKF(!make(folder, OLD, false, &e), "%s", e.message);
        killed = kill_at(folder, true, call);
        int now = whole(folder);
        CHECKF(now == OLD || now == NEW, "call %d: %d", call, now);
        old += now == OLD;
        new += now == NEW;
        if (killed && call % 7 == 1) { /* as the next program is killed, too */
            CHECK(kill_at(folder, true, call));
            now = whole(folder);
            CHECKF(now == OLD || now == NEW, "again, call %d: %d", call, now);
        }
        check_next(folder, call);
    }
    CHECKF(old > 10 && new > 10, "%d old, %d new", old, new);
}

/* Without an older set, a kill leaves no set or the whole new one; its temporary files do not stop the next program. */
static void test_first(void)
{
    char folder[2100];
    int none = 0, new = 0, call = 0;
    name_folder(folder, "first");
    for (bool killed = true; killed && ++call < MOST_CALLS;) {
        struct pnet_error e = {0};
        char index[2200];
        remove_all(folder);
        killed = kill_at(folder, false, call);
        snprintf(index, sizeof index, "%s/dataset.yaml", folder);
        bool there = access(index, F_OK) == 0;
        none += !there;
        new += there;
        CHECKF(!there || whole(folder) == NEW, "call %d", call);
        if (there)
            check_next(folder, call);
        else
            CHECKF(!make(folder, NEXT, false, &e) && whole(folder) == NEXT, "call %d: %s", call,
                e.message);
    }
    CHECKF(none > 10 && new > 10, "%d none, %d new", none, new);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    static const int counts[] = {OLD, NEW, NEXT};
    char folder[2100], name[32];
    struct pnet_error e = {0};
    snprintf(root, sizeof root, "%s/pnet_killed_XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(root)) {
        perror(root);
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "alone%d", counts[i]);
        name_folder(folder, name);
        CHECKF(!make(folder, counts[i], false, &e), "%s", e.message);
        CHECK(whole(folder) == counts[i]);
    }
    test_replaced();
    test_first();
    remove_all(root);
    return check_end();
}
