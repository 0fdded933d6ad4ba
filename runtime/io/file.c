#include "runtime/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Below this, reading is quicker than setting up and tearing down a mapping. */
enum { MAP_FROM = 1 << 20 };

static const uint8_t nothing[1];

/* Reads to the end; `size` is what the system expects, 0 where it does not know. */
static enum pnet_status read_all(
    int fd, const char *path, size_t size, struct pnet_bytes *b, struct pnet_error *e)
{
    /* One more than expected, so that the end is seen without growing. */
    size_t capacity = size ? size + 1 : 1 << 16, used = 0;
    uint8_t *data = malloc(capacity);
    while (data) {
        ssize_t got = read(fd, data + used, capacity - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            int code = errno;
            free(data);
            return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot read", path);
        }
        if (got == 0) {
            *b = (struct pnet_bytes){.data = data, .size = used};
            return PNET_OK;
        }
        used += (size_t)got;
        if (used < capacity) continue;
        uint8_t *larger = capacity <= SIZE_MAX / 2 ? realloc(data, capacity * 2) : NULL;
        if (!larger) break;
        data = larger;
        capacity *= 2;
    }
    free(data);
    return pnet_error_memory(e);
}

enum pnet_status pnet_bytes_read(const char *path, struct pnet_bytes *b, struct pnet_error *e)
{
    *b = (struct pnet_bytes){.data = nothing};
    if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, "standard input", 0, b, e);

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return pnet_error_errno(e, PNET_FAILED, errno, "%s: cannot open", path);
    enum pnet_status status = PNET_OK;
    struct stat s;
    if (fstat(fd, &s) != 0) {
        status = pnet_error_errno(e, PNET_FAILED, errno, "%s: cannot read", path);
    } else if (S_ISDIR(s.st_mode)) {
        status = pnet_error_set(e, PNET_FAILED, "%s: is a folder, expected a file", path);
    } else {
        size_t size = S_ISREG(s.st_mode) && s.st_size > 0 ? (size_t)s.st_size : 0;
        void *map = MAP_FAILED;
        if (size >= MAP_FROM) map = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
        if (map != MAP_FAILED)
            *b = (struct pnet_bytes){.data = map, .size = size, .mapped = 1};
        else
            status = read_all(fd, path, size, b, e);
    }
    close(fd);
    return status;
}

void pnet_bytes_free(struct pnet_bytes *b)
{
    if (b->mapped > 0)
        munmap((void *)(uintptr_t)b->data, b->size);
    else if (b->mapped == 0 && b->data != nothing)
        free((void *)(uintptr_t)b->data);
    *b = (struct pnet_bytes){.data = nothing};
}

/* Makes the temporary file: with the permissions any new file gets, and a name nobody uses. */
static int make_temporary(struct pnet_output *o)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(
            o->temporary, sizeof o->temporary, "%s.%ld-%d.part", o->path, (long)getpid(), attempt);
        int fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

enum pnet_status pnet_output_open(const char *path, struct pnet_output *o, struct pnet_error *e)
{
    *o = (struct pnet_output){.file = NULL};
    if (strlen(path) >= sizeof o->path)
        return pnet_error_set(e, PNET_FAILED, "%.60s...: file name too long", path);
    memcpy(o->path, path, strlen(path) + 1);

    struct stat s;
    int fd;
    if (strcmp(path, "-") == 0) {
        fd = dup(STDOUT_FILENO);
    } else if (stat(path, &s) == 0 && !S_ISREG(s.st_mode)) {
        /* A device or a pipe is written in place: there is nothing to rename over it. */
        fd = S_ISDIR(s.st_mode) ? (errno = EISDIR, -1) : open(path, O_WRONLY | O_CLOEXEC);
    } else {
        fd = make_temporary(o);
    }
    if (fd >= 0) o->file = fdopen(fd, "wb");
    if (o->file) return PNET_OK;
    int code = errno;
    if (fd >= 0) {
        close(fd);
        if (o->temporary[0]) unlink(o->temporary);
    }
    return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot write", path);
}

/* The folder's entry must reach the disk too, else the new name is gone after a power cut. Folders
   that cannot be synced (some network file systems) are left to the system. */
static void sync_folder(const char *path)
{
    char folder[sizeof((struct pnet_output *)0)->path];
    memcpy(folder, path, strlen(path) + 1);
    char *slash = strrchr(folder, '/');
    if (!slash)
        memcpy(folder, ".", 2);
    else
        slash[slash == folder] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

enum pnet_status pnet_output_commit(struct pnet_output *o, struct pnet_error *e)
{
    int code = 0;
    errno = 0;
    /* The stream remembers that some write failed, not why. */
    if (fflush(o->file) != 0 || ferror(o->file)) code = errno ? errno : EIO;
    if (!code && o->temporary[0] && fsync(fileno(o->file)) != 0) code = errno;
    if (fclose(o->file) != 0 && !code) code = errno;
    o->file = NULL;
    if (!code && o->temporary[0] && rename(o->temporary, o->path) != 0) code = errno;
    if (code) {
        if (o->temporary[0]) unlink(o->temporary);
        return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot write", o->path);
    }
    if (o->temporary[0]) sync_folder(o->path);
    return PNET_OK;
}

void pnet_output_drop(struct pnet_output *o)
{
    if (o->file) fclose(o->file);
    o->file = NULL;
    if (o->temporary[0]) unlink(o->temporary);
}

enum pnet_status pnet_make_folder(const char *path, struct pnet_error *e)
{
    char *part = strdup(path);
    if (!part) return pnet_error_memory(e);
    size_t length = strlen(part);
    int code = length ? 0 : ENOENT;
    for (size_t i = 1; i <= length && !code; i++) {
        if (part[i] != '/' && part[i] != '\0') continue;
        char kept = part[i];
        part[i] = '\0';
        struct stat s;
        if (mkdir(part, 0777) != 0) {
            code = errno;
            if (stat(part, &s) == 0) code = S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
        }
        part[i] = kept;
    }
    free(part);
    if (code) return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot make the folder", path);
    return PNET_OK;
}
