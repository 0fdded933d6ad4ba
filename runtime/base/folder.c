#include "runtime/base/folder.h"
#include "runtime/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int pnet_folder_each(int fd, int (*visit)(int fd, const char *name, void *context), void *context)
{
    _Alignas(struct dirent64) char entries[4096];
    int result = 0;
    while (!result) {
        ssize_t size = getdents64(fd, entries, sizeof entries);
        if (size < 0) return errno;
        if (size == 0) return 0;
        for (ssize_t at = 0; at < size && !result;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            at += entry->d_reclen;
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
            result = visit(fd, entry->d_name, context);
        }
    }
    return result;
}

int pnet_folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int code = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return code == EINVAL ? 0 : code;
}

int pnet_folder_sync_parent(const char *path)
{
    char parent[PNET_PATH_MOST];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (!slash) return pnet_folder_sync(".");
    slash[slash == parent] = '\0';
    return pnet_folder_sync(parent);
}
