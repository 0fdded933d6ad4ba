/* Inputs and outputs of a program, told apart by what they are and not by their names. */
#include "runtime/base/guard.h"
#include "runtime/base/file.h"
#include "tests/io/files.h"

#include <pthread.h>
#include <sys/stat.h>

static char folder[2048];

static const char *path_of(const char *name)
{
    enum { PATHS = 8 };
    static _Thread_local char paths[PATHS][4200];
    static _Thread_local int next;
    char *path = paths[next++ % PATHS];
    snprintf(path, 4200, "%s/%s", folder, name);
    return path;
}

static void make(const char *name)
{
    write_file(path_of(name), name, strlen(name));
}

/* PNET_USAGE, with both names in the message. */
static void refused(enum pnet_status st, const struct pnet_error *e, const char *a, const char *b)
{
    CHECKF(st == PNET_USAGE && strstr(e->message, a) && strstr(e->message, b), "%s, %s: %s", a, b,
        st ? e->message : "no error");
}

static enum pnet_status write_over(const char *path, struct pnet_error *e)
{
    struct pnet_output o;
    enum pnet_status st = pnet_output_open(path, &o, e);
    if (st) return st;
    fputs("new", o.file);
    return pnet_output_commit(&o, e);
}

static void test_off(void)
{
    struct pnet_error e = {0};
    make("off");
    CHECK(!pnet_guard_input(path_of("off"), &e) && !pnet_guard_output(path_of("off"), &e));
    CHECK(!pnet_guard_output(path_of("off"), &e) && !write_over(path_of("off"), &e));
    CHECK(!pnet_guard_has_refused());
}

static void test_names(void)
{
    struct pnet_error e = {0};
    struct pnet_bytes b;
    make("read");
    CHECK(!link(path_of("read"), path_of("hard")) && !symlink("read", path_of("soft")));
    CHECK(!symlink(".", path_of("here")));
    CHECK(!pnet_bytes_read(path_of("read"), &b, &e));
    pnet_bytes_free(&b);
    static const char *const names[] = {
        "read", "./read", "hard", "soft", "here/read", "here/here/soft"};
    for (int i = 0; i < 6; i++) {
        const char *path = path_of(names[i]);
        refused(pnet_guard_output(path, &e), &e, path, path_of("read"));
        refused(pnet_guard_check(path, &e), &e, path, path_of("read"));
        refused(write_over(path, &e), &e, path, path_of("read"));
    }
    CHECK(pnet_guard_has_refused());
    CHECK(
        !pnet_bytes_read(path_of("hard"), &b, &e) && b.size == 4 && memcmp(b.data, "read", 4) == 0);
    pnet_bytes_free(&b);
    /* A copy is another file, and what the program keeps for itself is no input. */
    make("copy");
    make("own");
    CHECK(!pnet_guard_output(path_of("copy"), &e) && !write_over(path_of("copy"), &e));
    CHECK(!pnet_bytes_read_own(path_of("own"), &b, &e));
    pnet_bytes_free(&b);
    CHECK(!write_over(path_of("own"), &e));
    pnet_guard_release(path_of("soft"));
    CHECK(!write_over(path_of("read"), &e));
}

/* Outputs that were announced are not read; an input that is found while an output is written is not replaced. */
static void test_order(void)
{
    struct pnet_error e = {0};
    struct pnet_bytes b;
    struct pnet_output o;
    make("announced");
    CHECK(!pnet_guard_output(path_of("announced"), &e));
    refused(pnet_bytes_read(path_of("here/announced"), &b, &e), &e, path_of("announced"),
        path_of("here/announced"));
    make("late");
    CHECK(!pnet_output_open(path_of("late"), &o, &e));
    CHECK(!pnet_guard_input(path_of("here/late"), &e));
    fputs("new", o.file);
    refused(pnet_output_commit(&o, &e), &e, path_of("late"), path_of("here/late"));
    CHECK(!pnet_bytes_read(path_of("late"), &b, &e) && memcmp(b.data, "late", 4) == 0);
    pnet_bytes_free(&b);
}

static void test_two_outputs(void)
{
    struct pnet_error e = {0};
    make("out");
    CHECK(!symlink("missing", path_of("to_missing")));
    static const char *const pairs[][2] = {{"out", "here/out"}, {"missing", "here/missing"},
        {"missing", "to_missing"}, {"none/x", "none/x"}};
    CHECK(!pnet_guard_output(path_of("out"), &e) && !pnet_guard_output(path_of("missing"), &e));
    CHECK(!pnet_guard_output(path_of("none/x"), &e) && !pnet_guard_output(path_of("none/y"), &e));
    for (int i = 0; i < 4; i++)
        refused(pnet_guard_output(path_of(pairs[i][1]), &e), &e, path_of(pairs[i][0]),
            path_of(pairs[i][1]));
    CHECK(!pnet_guard_output("/dev/null", &e) && !pnet_guard_output("/dev/null", &e));
    CHECK(!pnet_guard_output(folder, &e) && !pnet_guard_output(folder, &e));
}

/* The number of a removed file is given to a new one, which is no input. */
static void test_removed(void)
{
    struct pnet_error e = {0};
    char name[32];
    int again = 0;
    for (int i = 0; i < 100; i++) {
        struct stat was, is;
        snprintf(name, sizeof name, "removed%d", i);
        make(name);
        CHECK(!stat(path_of(name), &was) && !pnet_guard_input(path_of(name), &e));
        CHECK(!unlink(path_of(name)));
        snprintf(name, sizeof name, "new%d", i);
        make(name);
        CHECK(!stat(path_of(name), &is));
        again += was.st_ino == is.st_ino;
        CHECKF(!pnet_guard_check(path_of(name), &e), "%s", e.message);
        CHECK(!pnet_guard_input(path_of(name), &e));
        refused(pnet_guard_check(path_of(name), &e), &e, path_of(name), name);
    }
    printf("%d numbers were used again\n", again);
}

enum { THREADS = 4, FILES = 500 };

/* Counts from `*number` on, which gets the number of failures. */
static void *read_many(void *number)
{
    int *first = number, failures = 0;
    struct pnet_error e;
    char name[32];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many%d", (i * 7 + 100 * *first) % FILES);
        failures += pnet_guard_input(path_of(name), &e) != PNET_OK;
    }
    *first = failures;
    return NULL;
}

static void test_many(void)
{
    struct pnet_error e;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    char name[32];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many%d", i);
        make(name);
    }
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(!pthread_create(&threads[i], NULL, read_many, &numbers[i]));
    }
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL) && numbers[i] == 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many%d", i);
        refused(pnet_guard_output(path_of(name), &e), &e, path_of(name), name);
    }
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    char command[2200];
    snprintf(folder, sizeof folder, "%s/pnet_guard_XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    test_off();
    pnet_guard_begin();
    test_names();
    test_order();
    test_two_outputs();
    test_removed();
    test_many();
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK(system(command) == 0);
    return check_end();
}
