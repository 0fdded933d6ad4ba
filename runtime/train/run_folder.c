#include "runtime/train/run_folder.h"

#include "runtime/base/file.h"
#include "runtime/base/folder.h"
#include "runtime/base/guard.h"
#include "runtime/base/part.h"
#include "runtime/base/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The files that a training writes besides the checkpoints. */
static const char *const files[] = {
    "config.yaml", "model.pnet", "metrics.jsonl", "kernels.yaml", "report.html"};
enum { FILES = sizeof files / sizeof *files };

struct path {
    char text[4200];
};

static struct path join(const struct pnet_run_folder *f, const char *name)
{
    struct path p;
    snprintf(p.text, sizeof p.text, "%.4095s/%s", f->path, name);
    return p;
}

static bool missing(const char *path)
{
    struct stat s;
    return lstat(path, &s) != 0 && errno == ENOENT;
}

/* Records the topmost folder of the path that does not exist. */
static void note_made(struct pnet_run_folder *f)
{
    char at[sizeof f->path];
    snprintf(at, sizeof at, "%s", f->path);
    while (*at && missing(at)) {
        snprintf(f->made, sizeof f->made, "%s", at);
        char *slash = strrchr(at, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

/* Removes the folder and its parents up to the topmost one that was made, as far as they are empty. */
static void remove_made(const struct pnet_run_folder *f)
{
    char at[sizeof f->path];
    size_t top = strlen(f->made);
    snprintf(at, sizeof at, "%s", f->path);
    while (top && strlen(at) >= top && rmdir(at) == 0) {
        char *slash = strrchr(at, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

/* ---- what a run made ---- */

/* Reads the beginning of a file of a folder as text. Returns false if it is no regular file, or cannot be read. */
static bool read_beginning(int folder, const char *name, char text[32])
{
    struct stat s;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = -1;
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) n = read(fd, text, 31);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

/* Tells whether what the program prints goes to that file: a user may send it to a file in the folder of the run. */
static bool gets_messages(int folder, const char *name)
{
    struct stat s, t;
    if (fstatat(folder, name, &s, 0) != 0) return false;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino) return true;
    return false;
}

static bool is_one_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* The entries of a folder in which a training shall begin. */
struct survey {
    bool checkpoint, log; /* of a run; metrics.jsonl is the first file that a training writes */
    char other[256];      /* an entry that no run made; "": none */
    char file[256];       /* one of `files`, which a run made if its log is there; "": none */
};

static int look_at(int folder, const char *name, void *context)
{
    static const char *const checkpoints[] = {"last", "best", "last.old", "best.old"};
    static const char *const left[] = {"last.tmp", "best.tmp"};
    struct survey *s = context;
    char text[32];
    size_t length = strlen(name);
    if (is_one_of(name, checkpoints, 4)) {
        s->checkpoint = true;
    } else if (strcmp(name, "metrics.jsonl") == 0) {
        bool is_log =
            read_beginning(folder, name, text) && (!*text || strncmp(text, "{\"epoch\":", 9) == 0);
        s->log |= is_log;
        if (!is_log) snprintf(s->other, sizeof s->other, "%s", name);
    } else if (is_one_of(name, files, FILES)) {
        snprintf(s->file, sizeof s->file, "%s", name);
    } else if (strcmp(name, "lock") == 0 && read_beginning(folder, name, text) &&
               text[strspn(text, "0123456789\n")] == '\0') {
        /* of a training that was killed, or that works there: taking the lock tells */
    } else if (!is_one_of(name, left, 2) && !pnet_is_part(name) && !gets_messages(folder, name) &&
               strcmp(name, "lost+found") != 0) { /* of a file system whose root the folder is */
        snprintf(s->other, sizeof s->other, "%.*s", (int)(length < 255 ? length : 255), name);
    }
    return 0;
}

enum pnet_status pnet_run_folder_check(const char *path, struct pnet_error *e)
{
    struct survey s = {.checkpoint = false};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return PNET_OK;
    int code = fd >= 0 ? pnet_folder_each(fd, look_at, &s) : errno;
    if (fd >= 0) close(fd);
    if (code) return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot read the folder", path);
    if (s.checkpoint || (!s.other[0] && (s.log || !s.file[0]))) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%.400s holds files that no run made, such as %.200s: choose a new or an empty folder for "
        "the "
        "run",
        path, s.other[0] ? s.other : s.file);
}

enum pnet_status pnet_run_folder_guard(const char *path, struct pnet_error *e)
{
    struct pnet_run_folder f = {.lock = -1};
    enum pnet_status st = PNET_OK;
    snprintf(f.path, sizeof f.path, "%s", path);
    for (int i = 0; i < FILES && !st; i++) st = pnet_guard_input(join(&f, files[i]).text, e);
    return st;
}

/* ---- the lock ---- */

/* Returns the process that holds the lock, from the file of the lock; 0: not recorded. */
static long holder(int fd)
{
    char text[32] = "";
    return pread(fd, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
}

/* Tells whether `fd` is still the file of that name: a process that ended its lock has removed the file. */
static bool still_named(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static enum pnet_status take_lock(struct pnet_run_folder *f, struct pnet_error *e)
{
    struct path path = join(f, "lock");
    for (;;) {
        int fd = open(path.text, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0) return pnet_error_errno(e, PNET_FAILED, errno, "%s", path.text);
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            int code = errno;
            long pid = holder(fd);
            close(fd);
            if (code == EINTR) continue;
            if (code != EWOULDBLOCK)
                return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot lock", path.text);
            return pnet_error_set(e, PNET_FAILED,
                "%s: another training works in this folder, process %ld", f->path, pid);
        }
        if (!still_named(fd, path.text)) {
            close(fd);
            continue;
        }
        f->lock = fd;
        if (ftruncate(fd, 0) != 0 || dprintf(fd, "%ld\n", (long)getpid()) < 0)
            return pnet_error_errno(e, PNET_FAILED, errno, "%s", path.text);
        return PNET_OK;
    }
}

enum pnet_status pnet_run_folder_open(
    const char *path, struct pnet_run_folder *f, struct pnet_error *e)
{
    *f = (struct pnet_run_folder){.lock = -1};
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    if (!length || length >= sizeof f->path)
        return pnet_error_set(e, PNET_USAGE, "%.60s: not a folder's name", path);
    snprintf(f->path, sizeof f->path, "%.*s", (int)length, path);
    note_made(f);
    enum pnet_status st = pnet_run_folder_check(f->path, e);
    if (!st) st = pnet_guard_check(join(f, "lock").text, e);
    if (st) return st;
    st = pnet_make_folder(f->path, e);
    for (int i = 0; i < FILES; i++) f->had |= missing(join(f, files[i]).text) ? 0 : 1u << i;
    if (!st) st = take_lock(f, e);
    if (!st) return PNET_OK;
    pnet_run_folder_close(f);
    remove_made(f);
    return st;
}

void pnet_run_folder_close(struct pnet_run_folder *f)
{
    if (f->lock < 0) return;
    unlink(join(f, "lock").text);
    close(f->lock);
    f->lock = -1;
}

void pnet_run_folder_undo(struct pnet_run_folder *f)
{
    if (f->lock < 0) return;
    for (int i = 0; i < FILES; i++)
        if (!(f->had & 1u << i)) unlink(join(f, files[i]).text);
    pnet_run_folder_close(f);
    remove_made(f);
}

/* Tells whether the file has that text already. */
static bool has_text(const char *path, const char *text)
{
    struct pnet_bytes b;
    if (missing(path) || pnet_bytes_read_own(path, &b, NULL)) return false;
    bool same = b.size == strlen(text) && memcmp(b.data, text, b.size) == 0;
    pnet_bytes_free(&b);
    return same;
}

enum pnet_status pnet_run_folder_begin(
    const struct pnet_run_folder *f, bool resume, const char *model_text, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    if (resume) pnet_guard_release(join(f, "config.yaml").text);
    for (int i = 0; i < FILES && !st; i++) {
        struct path path = join(f, files[i]);
        bool stays = strcmp(files[i], "model.pnet") == 0 && has_text(path.text, model_text);
        if (!stays) st = pnet_guard_check(path.text, e);
    }
    if (st) return st;
    pnet_parts_clear(f->path);
    pnet_swap_clear(join(f, "last").text);
    pnet_swap_clear(join(f, "best").text);
    return PNET_OK;
}

enum pnet_status pnet_run_folder_write(
    const struct pnet_run_folder *f, const char *name, const char *text, struct pnet_error *e)
{
    struct pnet_output out;
    if (has_text(join(f, name).text, text)) return PNET_OK;
    enum pnet_status st = pnet_output_open(join(f, name).text, &out, e);
    if (st) return st;
    fputs(text, out.file);
    return pnet_output_commit(&out, e);
}

enum pnet_status pnet_run_folder_holds(
    const struct pnet_run_folder *f, const char *checkpoint, bool *there, struct pnet_error *e)
{
    return pnet_swap_exists(join(f, checkpoint).text, there, e);
}
