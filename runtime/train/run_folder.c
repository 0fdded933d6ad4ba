#include "runtime/train/run_folder.h"

#include "runtime/base/file.h"
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
        int fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
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
    enum pnet_status st = pnet_make_folder(f->path, e);
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

enum pnet_status pnet_run_folder_write(
    const struct pnet_run_folder *f, const char *name, const char *text, struct pnet_error *e)
{
    struct pnet_output out;
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
