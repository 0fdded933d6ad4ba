/* Files written atomically. */
#include "runtime/base/file.h"
#include "runtime/base/folder.h"
#include "runtime/base/guard.h"
#include "runtime/base/part.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The writer behind the stream. A stream records that a write failed, but not why; the writer keeps the reason, and does not
   try later writes. */
static ssize_t write_through(void *cookie, const char *text, size_t size)
{
    struct pnet_output *o = cookie;
    size_t done = 0;
    while (done < size && !o->code) {
        ssize_t n = write(o->fd, text + done, size - done);
        if (n < 0 && errno != EINTR) o->code = errno;
        if (n > 0) done += (size_t)n;
    }
    if (done < size) errno = o->code;
    return (ssize_t)done;
}

static int close_through(void *cookie)
{
    struct pnet_output *o = cookie;
    if (close(o->fd) == 0) return 0;
    if (!o->code) o->code = errno;
    return EOF;
}

/* Returns the folder of the target, with its slash; empty: the current folder. */
static int folder_length(const struct pnet_output *o)
{
    const char *slash = strrchr(o->target, '/');
    return slash ? (int)(slash + 1 - o->target) : 0;
}

/* The lock ends after the name, so that no other program finds the file without its lock. */
static void remove_temporary(struct pnet_output *o)
{
    if (!o->temporary[0]) return;
    unlink(o->temporary);
    o->temporary[0] = '\0';
    if (o->lock >= 0) close(o->lock);
    o->lock = -1;
}

/* Makes the temporary file, with the permissions of the file that it will replace, or of any new file. Until it has them, others
   cannot read it. */
static int make_temporary(struct pnet_output *o)
{
    struct stat old;
    bool replaces = stat(o->target, &old) == 0 && S_ISREG(old.st_mode);
    char folder[sizeof o->target];
    int length = folder_length(o);
    snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? o->target : ".");
    pnet_parts_clear(folder);
    int fd = pnet_part_make(
        length ? folder : "", replaces ? 0600 : 0666, o->temporary, sizeof o->temporary, &o->lock);
    if (fd >= 0 && replaces) pnet_keep_permissions(fd, &old);
    return fd;
}

/* Finds the file to write and opens it; -1 with errno. */
static int open_target(struct pnet_output *o)
{
    struct stat s;
    if (strcmp(o->path, "-") == 0) return dup(STDOUT_FILENO);
    /* A device or a pipe is written directly, because it cannot be replaced by renaming. */
    if (stat(o->path, &s) == 0 && S_ISDIR(s.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (stat(o->path, &s) == 0 && !S_ISREG(s.st_mode)) return open(o->path, O_WRONLY | O_CLOEXEC);
    errno = pnet_path_follow(o->path, o->target);
    if (errno) return -1;
    const char *name = o->target + folder_length(o);
    if (strlen(name) > NAME_MAX) { /* otherwise only renaming would report it */
        errno = ENAMETOOLONG;
        return -1;
    }
    return make_temporary(o);
}

enum pnet_status pnet_output_open(const char *path, struct pnet_output *o, struct pnet_error *e)
{
    *o = (struct pnet_output){.lock = -1};
    if (strlen(path) >= sizeof o->path)
        return pnet_error_set(e, PNET_FAILED, "%.60s...: file name too long", path);
    enum pnet_status st = pnet_guard_check(path, e);
    if (st) return st;
    memcpy(o->path, path, strlen(path) + 1);
    o->fd = open_target(o);
    if (o->fd >= 0)
        o->file = fopencookie(
            o, "w", (cookie_io_functions_t){.write = write_through, .close = close_through});
    if (o->file) return PNET_OK;
    int code = errno;
    if (o->fd >= 0) {
        close(o->fd);
        remove_temporary(o);
    }
    if (code == ENOENT && folder_length(o) > 1)
        return pnet_error_set(e, PNET_FAILED, "%s: cannot write: there is no folder %.*s", path,
            folder_length(o) - 1, o->target);
    return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot write", path);
}

enum pnet_status pnet_output_check(const struct pnet_output *o, struct pnet_error *e)
{
    if (!o->code) return PNET_OK;
    if (strcmp(o->path, "-") == 0)
        return pnet_error_errno(e, PNET_FAILED, o->code, "standard output: cannot write");
    return pnet_error_errno(e, PNET_FAILED, o->code, "%s: cannot write", o->path);
}

/* The name of the temporary file that a rename has freed is not removed: another program may have made a file there. */
enum pnet_status pnet_output_commit(struct pnet_output *o, struct pnet_error *e)
{
    if ((fflush(o->file) != 0 || ferror(o->file)) && !o->code) o->code = EIO;
    if (!o->code && o->temporary[0] && fsync(o->fd) != 0) o->code = errno;
    if (fclose(o->file) != 0 && !o->code) o->code = EIO;
    o->file = NULL;
    enum pnet_status st = o->code || !o->temporary[0] ? PNET_OK : pnet_guard_check(o->path, e);
    bool replaced = !st && !o->code && o->temporary[0];
    if (replaced && rename(o->temporary, o->target) != 0) {
        o->code = errno;
        replaced = false;
    }
    if (!replaced)
        remove_temporary(o);
    else if (o->lock >= 0)
        close(o->lock);
    if (st) return st;
    if (o->code) return pnet_output_check(o, e);
    /* The entry of the folder must reach the disk too, otherwise the new name is lost in a power cut. Some network file systems
       cannot sync folders; that is ignored. */
    if (replaced) (void)pnet_folder_sync_parent(o->target);
    return PNET_OK;
}

void pnet_output_drop(struct pnet_output *o)
{
    if (o->file) fclose(o->file);
    o->file = NULL;
    remove_temporary(o);
}
