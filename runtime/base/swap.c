#include "runtime/base/swap.h"
#include "runtime/base/file.h"
#include "runtime/base/folder.h"
#include "runtime/base/part.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All of these return 0 or an errno. */

/* Removes as much as possible. Returns the first error in *context. */
static int remove_entry(int fd, const char *name, void *context)
{
    int *code = context;
    if (unlinkat(fd, name, 0) != 0 && !*code) *code = errno;
    return 0;
}

static int remove_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? 0 : errno;
    int code = 0, listed = pnet_folder_each(fd, remove_entry, &code);
    if (!code) code = listed;
    close(fd);
    if (!code && rmdir(path) != 0) code = errno;
    return code;
}

/* `context`: descriptor of the old folder. */
static int keep_file(int fd, const char *name, void *context)
{
    struct stat old;
    int file;
    if (fstatat(*(const int *)context, name, &old, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(old.st_mode) || (file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return 0;
    pnet_keep_permissions(file, &old);
    close(file);
    return 0;
}

/* Gives the new folder the permissions of the old one, if there is one; with `files` the files in it too. */
static void keep_permissions(const struct pnet_swap *s, bool files)
{
    struct stat of;
    int old = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        new = open(s->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (old >= 0 && new >= 0 && fstat(old, &of) == 0) {
        of.st_mode |= 0700; /* to write into it */
        if (files)
            (void)pnet_folder_each(new, keep_file, &old);
        else
            pnet_keep_permissions(new, &of);
    }
    if (old >= 0) close(old);
    if (new >= 0) close(new);
}

/* Returns 0: it is a folder; ENOENT: it does not exist; ENOTDIR: it is something else. */
static int folder_there(const char *path)
{
    struct stat s;
    if (lstat(path, &s) != 0) return errno;
    return S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
}

/* Appends an ending to `path`. A name that would be too long is cut and made unique by its hash. */
static void put_ending(const char *path, const char *ending, char out[PNET_SWAP_PATH])
{
    enum { KEPT = 200 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strlen(name) + strlen(ending) <= NAME_MAX) {
        snprintf(out, PNET_SWAP_PATH, "%s%s", path, ending);
        return;
    }
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    snprintf(out, PNET_SWAP_PATH, "%.*s~%016llx%s", (int)(name - path) + KEPT, path,
        (unsigned long long)hash, ending);
}

static enum pnet_status set_names(const char *path, struct pnet_swap *s, struct pnet_error *e)
{
    char given[sizeof s->path];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    if (length == 0 || length >= sizeof given)
        return pnet_error_set(e, PNET_FAILED, "%.60s...: not a folder's name", path);
    snprintf(given, sizeof given, "%.*s", (int)length, path);
    int code = pnet_path_follow(given, s->path);
    if (code) return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot open the folder", path);
    length = strlen(s->path);
    while (length > 1 && s->path[length - 1] == '/') s->path[--length] = '\0';
    put_ending(s->path, ".tmp", s->temporary);
    put_ending(s->path, ".old", s->old);
    return PNET_OK;
}

enum pnet_status pnet_swap_begin(const char *path, struct pnet_swap *s, struct pnet_error *e)
{
    enum pnet_status status = set_names(path, s, e);
    if (status != PNET_OK) return status;
    int code = folder_there(s->path);
    if (code == ENOENT && folder_there(s->old) == 0) {
        code = rename(s->old, s->path) == 0 ? pnet_folder_sync_parent(s->path) : errno;
    } else if (code == 0) {
        code = remove_folder(s->old);
    } else if (code == ENOENT) {
        code = 0;
    }
    if (code) return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot replace the folder", path);
    code = remove_folder(s->temporary);
    if (code)
        return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot clear the folder", s->temporary);
    status = pnet_make_folder(s->temporary, e);
    if (!status) keep_permissions(s, false);
    return status;
}

/* For file systems that cannot exchange two names at once. */
static int swap_in_two_steps(struct pnet_swap *s)
{
    if (rename(s->path, s->old) != 0) return errno;
    int code = pnet_folder_sync_parent(s->path);
    if (!code && rename(s->temporary, s->path) != 0) code = errno;
    /* If this fails too, NAME.old is still found. */
    if (code) (void)rename(s->old, s->path);
    return code;
}

enum pnet_status pnet_swap_commit(struct pnet_swap *s, struct pnet_error *e)
{
    const char *left_over = NULL;
    keep_permissions(s, true);
    int code = pnet_folder_sync(s->temporary);
    /* This suffices if NAME is missing or empty. */
    if (!code && rename(s->temporary, s->path) != 0) code = errno;
    if (code == ENOTEMPTY || code == EEXIST) {
        left_over = s->temporary;
        code =
            renameat2(AT_FDCWD, s->temporary, AT_FDCWD, s->path, RENAME_EXCHANGE) == 0 ? 0 : errno;
        if (code == EINVAL || code == ENOSYS || code == EOPNOTSUPP) {
            left_over = s->old;
            code = swap_in_two_steps(s);
        }
    }
    if (code) {
        pnet_swap_drop(s);
        return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot replace the folder", s->path);
    }
    code = pnet_folder_sync_parent(s->path);
    if (code) return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot sync the folder", s->path);
    /* A folder that cannot be removed now is removed, or reported, by the next pnet_swap_begin. */
    if (left_over) (void)remove_folder(left_over);
    return PNET_OK;
}

void pnet_swap_drop(struct pnet_swap *s)
{
    (void)remove_folder(s->temporary);
}

void pnet_swap_clear(const char *path)
{
    struct pnet_swap s;
    if (set_names(path, &s, NULL)) return;
    (void)remove_folder(s.temporary);
    if (folder_there(s.path) == 0) (void)remove_folder(s.old);
}

enum pnet_status pnet_swap_find(const char *path, char found[PNET_SWAP_PATH], struct pnet_error *e)
{
    struct pnet_swap s;
    enum pnet_status status = set_names(path, &s, e);
    if (status != PNET_OK) return status;
    int code = folder_there(s.path);
    const char *name = s.path;
    if (code == ENOENT && folder_there(s.old) == 0) {
        name = s.old;
        code = 0;
    }
    if (code) return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot open the folder", path);
    memcpy(found, name, strlen(name) + 1);
    return PNET_OK;
}

enum pnet_status pnet_swap_exists(const char *path, bool *there, struct pnet_error *e)
{
    struct pnet_swap s;
    enum pnet_status status = set_names(path, &s, e);
    if (status != PNET_OK) return status;
    struct stat link;
    int code = lstat(path, &link) == 0 ? 0 : folder_there(s.path);
    if (code == ENOENT) code = folder_there(s.old);
    *there = code != ENOENT;
    if (!code || code == ENOENT || code == ENOTDIR) return PNET_OK;
    return pnet_error_errno(e, PNET_FAILED, code, "%s", path);
}
