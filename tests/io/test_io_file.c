/* Files whole in and atomically out: what is there after a write that failed is what was there
 * before. */
#include "runtime/io/cloud.h"
#include "runtime/base/file.h"
#include "runtime/io/npy.h"
#include "tests/io/files.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int count_files(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n - 2; /* . and .. */
}

static void check_content(const char *path, const char *text)
{
    struct pnet_bytes b;
    CHECK(pnet_bytes_read(path, &b, NULL) == PNET_OK);
    CHECKF(b.size == strlen(text) && memcmp(b.data, text, b.size) == 0, "%s", path);
    pnet_bytes_free(&b);
}

static void check_reading(const char *folder)
{
    const char *path = files_path(folder, "a");
    struct pnet_bytes b;
    struct pnet_error e;
    for (size_t size = (1 << 20) - 1; size <= (1 << 20) + 1; size++) {
        uint8_t *data = malloc(size);
        for (size_t i = 0; i < size; i++) data[i] = (uint8_t)(i * 7);
        write_file(path, data, size);
        CHECK(pnet_bytes_read(path, &b, &e) == PNET_OK && b.size == size);
        CHECK(memcmp(b.data, data, size) == 0);
        pnet_bytes_free(&b);
        CHECK(b.size == 0);
        free(data);
    }
    write_file(path, "", 0);
    check_content(path, "");
    remove(path);
    CHECK(pnet_bytes_read(path, &b, &e) == PNET_FAILED && strstr(e.message, path) == e.message);
    CHECK(pnet_bytes_read(folder, &b, &e) == PNET_FAILED && strstr(e.message, "folder"));
    CHECK(pnet_bytes_read("/proc/self/status", &b, &e) == PNET_OK && b.size > 100); /* of size 0 */
    pnet_bytes_free(&b);
}

/* A file that shrinks behind the reader's back: what was read stays, and no read ends in a signal. */
static void check_shrinking(const char *folder)
{
    enum { SIZE = 8 << 20, ROUNDS = 2000 };
    const char *path = files_path(folder, "shrinks");
    static uint8_t data[SIZE];
    struct pnet_bytes b;
    struct pnet_error e;
    memset(data, 7, sizeof data);
    write_file(path, data, sizeof data);
    CHECK(pnet_bytes_read(path, &b, &e) == PNET_OK && truncate(path, 0) == 0);
    CHECK(b.size == SIZE && memcmp(b.data, data, SIZE) == 0);
    pnet_bytes_free(&b);

    CHECK(truncate(path, SIZE) == 0);
    pid_t child = fork();
    if (child == 0)
        for (;;) {
            if (truncate(path, SIZE) != 0 || truncate(path, SIZE / 2) != 0) _exit(1);
        }
    int changed = 0;
    for (int i = 0; i < ROUNDS && changed < 3; i++) {
        enum pnet_status status = pnet_bytes_read(path, &b, &e);
        uint64_t sum = 0;
        for (size_t k = 0; k < b.size; k += 512) sum += b.data[k];
        CHECK(sum == 0);
        CHECKF(
            status == PNET_OK || strstr(e.message, "changed while it was read"), "%s", e.message);
        changed += status != PNET_OK;
        pnet_bytes_free(&b);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECKF(changed == 3, "%d of %d reads saw the change", changed, ROUNDS);
    remove(path);
}

/* What never ends is given up early, and what is larger than the memory is not begun. */
static void check_endless(const char *folder)
{
    struct pnet_bytes b;
    struct pnet_error e;
    CHECK(pnet_bytes_read("/dev/zero", &b, &e) == PNET_FAILED && strstr(e.message, "64 MiB"));
    CHECK(pnet_bytes_read("/dev/null", &b, &e) == PNET_OK && b.size == 0);
    pnet_bytes_free(&b);
    const char *path = files_path(folder, "sparse");
    write_file(path, "", 0);
    if (truncate(path, INT64_C(1) << 42) ==
        0) /* 4 TiB of nothing, where the file system has that */
        CHECK(pnet_bytes_read(path, &b, &e) == PNET_NO_MEMORY && strstr(e.message, "4.00 TiB"));
    remove(path);
}

/* Runs in a child: standard input and output are pipes there. */
static void check_pipes(void)
{
    int in[2], out[2];
    static char big[200000], back[200001];
    memset(big, 'x', sizeof big);
    CHECK(pipe(in) == 0 && pipe(out) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct pnet_bytes b;
        struct pnet_output o;
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int i = 0; i < 2; i++) close(in[i]), close(out[i]);
        int good =
            pnet_bytes_read("-", &b, NULL) == PNET_OK && pnet_output_open("-", &o, NULL) == PNET_OK;
        good = good && fwrite(b.data, 1, b.size, o.file) == b.size;
        good = good && pnet_output_commit(&o, NULL) == PNET_OK;
        pnet_bytes_free(&b);
        _exit(!good);
    }
    close(in[0]);
    close(out[1]);
    pid_t writer = fork();
    if (writer == 0) {
        close(out[0]);
        for (size_t i = 0; i < sizeof big; i += 1000)
            if (write(in[1], big + i, 1000) != 1000) _exit(1);
        _exit(0);
    }
    close(in[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(out[0], back + got, sizeof back - got)) > 0;) got += (size_t)n;
    close(out[0]);
    int status = 1, other = 1;
    waitpid(child, &status, 0);
    waitpid(writer, &other, 0);
    CHECK(status == 0 && other == 0 && got == sizeof big && memcmp(big, back, got) == 0);
}

static void check_writing(const char *folder)
{
    const char *path = files_path(folder, "out");
    struct pnet_output o;
    struct pnet_error e;
    CHECK(pnet_output_open(path, &o, &e) == PNET_OK);
    fputs("first", o.file);
    CHECK(access(path, F_OK) != 0); /* nothing under the name before the commit */
    CHECK(pnet_output_commit(&o, &e) == PNET_OK);
    check_content(path, "first");
    CHECK(count_files(folder) == 1);
    struct stat s;
    mode_t mask = umask(0);
    umask(mask);
    CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == (0666 & ~mask));

    CHECK(pnet_output_open(path, &o, &e) == PNET_OK);
    fputs("second", o.file);
    pnet_output_drop(&o);
    check_content(path, "first");
    struct pnet_output p; /* two at once do not meet */
    CHECK(pnet_output_open(path, &o, &e) == PNET_OK && pnet_output_open(path, &p, &e) == PNET_OK);
    fputs("third", o.file);
    fputs("fourth", p.file);
    CHECK(pnet_output_commit(&p, &e) == PNET_OK && pnet_output_commit(&o, &e) == PNET_OK);
    check_content(path, "third");
    CHECK(count_files(folder) == 1);
    remove(path);

    char name[5000];
    memset(name, 'n', sizeof name);
    name[4999] = '\0';
    CHECK(pnet_output_open(name, &o, &e) == PNET_FAILED && strstr(e.message, "too long"));
    CHECK(pnet_output_open(files_path(folder, "none/a"), &o, &e) == PNET_FAILED);
    CHECK(pnet_output_open(folder, &o, &e) == PNET_FAILED);
}

static void check_long_name(const char *folder)
{
    char name[300];
    struct pnet_output o;
    struct pnet_error e;
    memset(name, 'n', sizeof name);
    name[255] = '\0'; /* the longest name there is */
    const char *path = files_path(folder, name);
    CHECKF(pnet_output_open(path, &o, &e) == PNET_OK, "%s", e.message);
    fputs("long", o.file);
    CHECK(pnet_output_commit(&o, &e) == PNET_OK);
    check_content(path, "long");
    remove(path);
    name[255] = 'n';
    name[256] = '\0';
    CHECK(pnet_output_open(files_path(folder, name), &o, &e) == PNET_FAILED);
    CHECK(count_files(folder) == 0);
}

static void check_links(const char *folder)
{
    char inner[1024];
    struct pnet_output o;
    struct pnet_error e;
    struct stat s;
    snprintf(inner, sizeof inner, "%s/inner", folder);
    CHECK(mkdir(inner, 0700) == 0);
    const char *target = files_path(inner, "target"), *link = files_path(folder, "link");
    /* A link to a link, to a file that is not there yet, then to one that is. */
    CHECK(symlink("second", link) == 0);
    CHECK(symlink("inner/target", files_path(folder, "second")) == 0);
    for (int i = 0; i < 2; i++) {
        CHECKF(pnet_output_open(link, &o, &e) == PNET_OK, "%s", e.message);
        fputs(i ? "again" : "once", o.file);
        CHECK(strncmp(o.temporary, inner, strlen(inner)) == 0); /* where a rename is enough */
        CHECK(pnet_output_commit(&o, &e) == PNET_OK);
        check_content(target, i ? "again" : "once");
        CHECK(lstat(link, &s) == 0 && S_ISLNK(s.st_mode));
        CHECK(lstat(target, &s) == 0 && S_ISREG(s.st_mode) && count_files(inner) == 1);
    }
    remove(target);
    remove(files_path(folder, "second"));
    remove(link);
    CHECK(symlink("link", link) == 0); /* to itself */
    CHECK(pnet_output_open(link, &o, &e) == PNET_FAILED && strstr(e.message, "symbolic links"));
    remove(link);
    CHECK(rmdir(inner) == 0 && count_files(folder) == 0);
}

static void make_cloud(struct pnet_cloud *c)
{
    static double xyz[3 * 100000];
    *c = (struct pnet_cloud){.rows = 0};
    CHECK(pnet_cloud_place(c, 100000, xyz, NULL) == PNET_OK);
    c->xyz_type = PNET_F32;
}

static void check_full_device(void)
{
    struct pnet_output o;
    struct pnet_error e = {.message = ""};
    if (access("/dev/full", W_OK) != 0) return;
    CHECK(pnet_output_open("/dev/full", &o, &e) == PNET_OK && !o.temporary[0]);
    for (int i = 0; i < 100000; i++) fputs("0123456789", o.file);
    CHECK(pnet_output_commit(&o, &e) == PNET_FAILED && strstr(e.message, "/dev/full"));
    CHECKF(strstr(e.message, strerror(ENOSPC)), "%s", e.message);
    CHECK(access("/dev/full", F_OK) == 0);
    CHECK(pnet_output_open("/dev/full", &o, &e) == PNET_OK); /* seen on flushing alone */
    fputc('x', o.file);
    CHECK(pnet_output_commit(&o, &e) == PNET_FAILED && strstr(e.message, strerror(ENOSPC)));
    CHECK(pnet_output_open("/dev/full", &o, &e) == PNET_OK); /* the reason is that of the first */
    for (int i = 0; i < 10000; i++) fputs("0123456789", o.file);
    errno = EBADF;
    CHECK(pnet_output_commit(&o, &e) == PNET_FAILED && strstr(e.message, strerror(ENOSPC)));
}

/* A file may not grow beyond the limit: every writer fails, and leaves what was there. */
static void check_limit(const char *folder)
{
    static const char *const names[] = {"a.ply", "a.pcd", "a.npy", "a.bin", "a.csv", "a.pts"};
    struct rlimit limit, small;
    struct pnet_cloud c;
    struct pnet_error e;
    make_cloud(&c);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    small = limit;
    small.rlim_cur = 10000;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = files_path(folder, names[i]);
        write_file(path, "before", 6);
        CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
        CHECK(pnet_cloud_write(path, &c, &e) == PNET_FAILED);
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECKF(strstr(e.message, path) == e.message, "%s", e.message);
        CHECKF(strstr(e.message, strerror(EFBIG)), "%s", e.message);
        check_content(path, "before");
        CHECK(count_files(folder) == 1);
        CHECK(pnet_cloud_write(path, &c, &e) == PNET_OK && count_files(folder) == 1);
        remove(path);
    }
    pnet_cloud_free(&c);
}

/* The folder vanishes between open and commit. */
static void check_lost_folder(const char *folder)
{
    char inner[1024];
    struct pnet_output o;
    struct pnet_error e;
    snprintf(inner, sizeof inner, "%s/inner", folder);
    CHECK(mkdir(inner, 0700) == 0);
    CHECK(pnet_output_open(files_path(inner, "a"), &o, &e) == PNET_OK);
    remove(o.temporary);
    rmdir(inner);
    CHECK(pnet_output_commit(&o, &e) == PNET_FAILED && count_files(folder) == 0);
}

static void check_folders(const char *folder)
{
    const char *deep = files_path(folder, "a/b//c/");
    struct stat s;
    struct pnet_error e;
    CHECK(pnet_make_folder(deep, &e) == PNET_OK && stat(deep, &s) == 0 && S_ISDIR(s.st_mode));
    CHECK(pnet_make_folder(deep, &e) == PNET_OK); /* there already */
    CHECK(pnet_make_folder("/", &e) == PNET_OK && pnet_make_folder("", &e) == PNET_FAILED);
    const char *file = files_path(folder, "a/file");
    write_file(file, "", 0);
    CHECK(pnet_make_folder(files_path(folder, "a/file/d"), &e) == PNET_FAILED);
    CHECK(strstr(e.message, "a/file/d"));
    CHECK(remove(file) == 0 && rmdir(files_path(folder, "a/b/c")) == 0);
    CHECK(rmdir(files_path(folder, "a/b")) == 0 && rmdir(files_path(folder, "a")) == 0);
}

int main(void)
{
    const char *folder = files_folder();
    check_reading(folder);
    check_shrinking(folder);
    check_endless(folder);
    check_pipes();
    check_writing(folder);
    check_long_name(folder);
    check_links(folder);
    check_full_device();
    check_limit(folder);
    check_lost_folder(folder);
    check_folders(folder);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
