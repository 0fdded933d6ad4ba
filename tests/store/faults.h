/* System calls that can be made to fail, or to be the last thing a process does. The test program's
   own definitions take the place of the C library's. */
#ifndef PNET_TESTS_STORE_FAULTS_H
#define PNET_TESTS_STORE_FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault { FAULT_NONE, FAULT_KILL_BEFORE, FAULT_KILL_AFTER, FAULT_FAIL };

static struct {
    enum fault kind;
    int at;    /* the call it happens at, from 1 */
    int calls; /* so far */
    bool no_exchange;
} faults;

static void faults_set(enum fault kind, int at)
{
    faults.kind = kind;
    faults.at = at;
    faults.calls = 0;
}

static bool fault_before(void)
{
    if (++faults.calls != faults.at) return false;
    if (faults.kind == FAULT_KILL_BEFORE) kill(getpid(), SIGKILL);
    if (faults.kind != FAULT_FAIL) return false;
    errno = EIO;
    return true;
}

static int fault_after(long result)
{
    if (faults.calls == faults.at && faults.kind == FAULT_KILL_AFTER) kill(getpid(), SIGKILL);
    return (int)result;
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (fault_before()) return -1;
    if (faults.no_exchange && flags) {
        fault_after(0);
        errno = EINVAL;
        return -1;
    }
    return fault_after(syscall(SYS_renameat2, from_dir, from, to_dir, to, flags));
}

int rename(const char *from, const char *to)
{
    if (fault_before()) return -1;
    return fault_after(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int fsync(int fd)
{
    if (fault_before()) return -1;
    return fault_after(syscall(SYS_fsync, fd));
}

int mkdir(const char *path, mode_t mode)
{
    if (fault_before()) return -1;
    return fault_after(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int link(const char *from, const char *to)
{
    if (fault_before()) return -1;
    return fault_after(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int unlinkat(int dir, const char *path, int flags)
{
    if (fault_before()) return -1;
    return fault_after(syscall(SYS_unlinkat, dir, path, flags));
}

int rmdir(const char *path)
{
    if (fault_before()) return -1;
    return fault_after(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

#endif
