#include "runtime/base/part.h"
#include "runtime/base/folder.h"
#include "runtime/base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char beginning[] = ".pnet-", ending[] = ".part";

/* Seconds after which the file of another host counts as left behind, if it has no lock. */
enum { DAY = 24 * 60 * 60 };

static uint32_t host(void)
{
    struct utsname u;
    uint32_t h = 0x811c9dc5u; /* FNV-1a */
    if (uname(&u) != 0) return 0;
    for (const char *c = u.nodename; *c; c++) h = (h ^ (unsigned char)*c) * 0x01000193u;
    return h;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Locks a new file. Returns false if pnet_parts_clear of another program has found the file before it had its lock, and removes
   it. */
static bool take_lock(int fd, const char *name, int *lock)
{
    struct stat opened, named;
    *lock = -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
    if (fstat(fd, &opened) != 0 || stat(name, &named) != 0 || !same_file(&opened, &named))
        return false;
    *lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return true;
}

int pnet_part_make(const char *before, mode_t mode, char *name, size_t size, int *lock)
{
    uint32_t here = host();
    for (int number = 0; number < 1000; number++) {
        int length = snprintf(name, size, "%s%s%08x-%ld-%d%s", before, beginning, here,
            (long)getpid(), number, ending);
        if (length < 0 || (size_t)length >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd >= 0 && take_lock(fd, name, lock)) return fd;
        if (fd >= 0) close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* May the file be one whose program runs on another host, where its lock does not show here? */
static bool may_be_in_use(const char *name, const struct stat *s)
{
    unsigned of = 0;
    struct timespec now;
    if (sscanf(name + strlen(beginning), "%8x-", &of) == 1 && of == host()) return false;
    return clock_gettime(CLOCK_REALTIME, &now) != 0 || now.tv_sec - s->st_mtim.tv_sec < DAY;
}

bool pnet_is_part(const char *name)
{
    size_t length = strlen(name), end = strlen(ending);
    return strncmp(name, beginning, strlen(beginning)) == 0 && length >= strlen(beginning) + end &&
           strcmp(name + length - end, ending) == 0;
}

static int remove_if_left(int folder, const char *name, void *context)
{
    (void)context;
    struct stat opened, named;
    if (!pnet_is_part(name)) return 0;
    /* NFS locks only what is open for writing; a file may have the permissions of the read-only one that it was to replace */
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return 0;
    /* While this program holds the lock no other one renames the file or makes one of that name. */
    if (fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        !may_be_in_use(name, &opened) && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        same_file(&opened, &named))
        (void)unlinkat(folder, name, 0);
    close(fd);
    return 0;
}

void pnet_parts_clear(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    if (pnet_guard_is_new_folder(fd)) (void)pnet_folder_each(fd, remove_if_left, NULL);
    close(fd);
}

void pnet_keep_permissions(int fd, const struct stat *of)
{
    struct stat s;
    mode_t mode = of->st_mode & 0777;
    if (fchown(fd, of->st_uid, of->st_gid) != 0) (void)fchown(fd, (uid_t)-1, of->st_gid);
    if (fstat(fd, &s) != 0 || s.st_gid != of->st_gid) mode &= ~(mode_t)070 | (mode & 07) << 3;
    (void)fchmod(fd, mode);
}
