#include "runtime/base/file.h"
#include "runtime/base/guard.h"
#include "runtime/base/number.h"
#include "runtime/base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Most bytes read from a device; most bytes allocated without a check of the free memory. */
enum { DEVICE_MOST = 64 << 20, UNASKED = 64 << 20 };

static const uint8_t nothing[1];

/* 0: not known. */
static uint64_t free_memory(void)
{
    return pnet_system_memory();
}

static enum pnet_status too_large(
    const char *path, uint64_t bytes, uint64_t most, struct pnet_error *e)
{
    char need[32], room[32];
    return pnet_error_set(e, PNET_NO_MEMORY, "%.600s: needs %s of memory, %s is free", path,
        pnet_bytes_text(bytes, need), pnet_bytes_text(most, room));
}

enum pnet_status pnet_bytes_fit(const char *path, uint64_t bytes, struct pnet_error *e)
{
    uint64_t most = bytes > UNASKED ? free_memory() : 0;
    return most && bytes > most ? too_large(path, bytes, most, e) : PNET_OK;
}

/* Reads at most `size` bytes, fewer at the end of the file. Returns 0 or an errno. */
static int read_some(int fd, uint8_t *to, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size) {
        ssize_t n = read(fd, to + *got, size - *got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) break;
        *got += (size_t)n;
    }
    return 0;
}

/* Returns the error of a read that ended with an errno `code`, or before all bytes were there, or whose file has changed. */
static enum pnet_status check_read(int fd, const char *path, int code, bool all, off_t size,
    const struct timespec *changed, struct pnet_error *e)
{
    struct stat now;
    if (!code && fstat(fd, &now) != 0) code = errno;
    if (code) return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot read", path);
    if (all && now.st_size == size && now.st_mtim.tv_sec == changed->tv_sec &&
        now.st_mtim.tv_nsec == changed->tv_nsec)
        return PNET_OK;
    return pnet_error_set(e, PNET_FAILED, "%s: changed while it was read", path);
}

/* Reads a file of known size, exactly that many bytes; fails if the file changes meanwhile. It is not mapped, because a mapping
   of a file that shrinks is a bus error; reading costs some 0.5 ms a megabyte more. */
static enum pnet_status read_file(
    int fd, const char *path, const struct stat *s, struct pnet_bytes *b, struct pnet_error *e)
{
    size_t size = (size_t)s->st_size, got;
    enum pnet_status status = pnet_bytes_fit(path, size, e);
    if (status != PNET_OK) return status;
    uint8_t *data = malloc(size);
    if (!data) return pnet_error_memory(e);
    int code = read_some(fd, data, size, &got);
    status = check_read(fd, path, code, got == size, s->st_size, &s->st_mtim, e);
    if (status == PNET_OK)
        *b = (struct pnet_bytes){.data = data, .size = size};
    else
        free(data);
    return status;
}

/* Reads the first bytes of a pipe that was opened without waiting for a process that writes to it, and waits a second for one.
   Later reads wait. Returns 0 or an errno; ENODATA: no process writes to the pipe. */
static int read_first(int fd, uint8_t *to, size_t size, size_t *got)
{
    enum { MOMENTS = 100 };
    const struct timespec moment = {.tv_nsec = 10000000};
    ssize_t n = read(fd, to, size);
    for (int i = 0; n == 0 && i < MOMENTS; i++) {
        nanosleep(&moment, NULL);
        n = read(fd, to, size);
    }
    *got = n > 0 ? (size_t)n : 0;
    if (n == 0) return ENODATA;
    return n > 0 || errno == EAGAIN || errno == EINTR ? 0 : errno;
}

/* Reads a pipe, a device or a system file of unknown size up to its end; fails if that lies beyond the limit. */
static enum pnet_status read_stream(
    int fd, const char *path, mode_t mode, bool opened, struct pnet_bytes *b, struct pnet_error *e)
{
    bool device = S_ISCHR(mode) || S_ISBLK(mode);
    size_t capacity = 1 << 16, used = 0;
    uint8_t *data = malloc(capacity);
    int first = data && opened && S_ISFIFO(mode) ? read_first(fd, data, capacity / 2, &used) : 0;
    if (!first && opened && fcntl(fd, F_SETFL, 0) != 0) first = errno;
    if (first) {
        free(data);
        if (first == ENODATA)
            return pnet_error_set(e, PNET_FAILED, "%s: a pipe, to which no process writes", path);
        return pnet_error_errno(e, PNET_FAILED, first, "%s: cannot read", path);
    }
    while (data) {
        size_t got;
        int code = read_some(fd, data + used, capacity - used, &got);
        used += got;
        if (code) {
            free(data);
            return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot read", path);
        }
        if (used < capacity) {
            *b = (struct pnet_bytes){.data = data, .size = used};
            return PNET_OK;
        }
        if (device && capacity >= DEVICE_MOST) {
            free(data);
            return pnet_error_set(e, PNET_FAILED, "%s: a device with more than 64 MiB", path);
        }
        uint64_t most = capacity >= UNASKED ? free_memory() / 2 : 0;
        if (most && 2 * (uint64_t)capacity > most) {
            free(data);
            return too_large(path, 2 * (uint64_t)capacity, most, e);
        }
        uint8_t *larger = capacity <= SIZE_MAX / 2 ? realloc(data, capacity * 2) : NULL;
        if (!larger) break;
        data = larger;
        capacity *= 2;
    }
    free(data);
    return pnet_error_memory(e);
}

/* `stream`: to be read as a pipe, whatever it is. */
static enum pnet_status read_open(
    int fd, const char *path, bool stream, struct pnet_bytes *b, struct pnet_error *e)
{
    struct stat s;
    if (fstat(fd, &s) != 0) return pnet_error_errno(e, PNET_FAILED, errno, "%s: cannot read", path);
    if (S_ISDIR(s.st_mode))
        return pnet_error_set(e, PNET_FAILED, "%s: is a folder, expected a file", path);
    if (S_ISREG(s.st_mode) && s.st_size > 0 && !stream) return read_file(fd, path, &s, b, e);
    return read_stream(fd, path, s.st_mode, !stream, b, e);
}

/* Opens a file, or takes standard input. On failure *fd is to be closed as well, if it is not -1. */
static enum pnet_status open_path(const char *path, bool input, int *fd, struct pnet_error *e)
{
    bool standard = strcmp(path, "-") == 0;
    *fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return pnet_error_errno(e, PNET_FAILED, errno, "%s: cannot open", path);
    return input ? pnet_guard_input_file(*fd, path, e) : PNET_OK;
}

static enum pnet_status read_path(
    const char *path, bool input, struct pnet_bytes *b, struct pnet_error *e)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    int fd;
    *b = (struct pnet_bytes){.data = nothing};
    enum pnet_status status = open_path(path, input, &fd, e);
    if (!status) status = read_open(fd, name, standard, b, e);
    if (!standard && fd >= 0) close(fd);
    return status;
}

enum pnet_status pnet_bytes_read(const char *path, struct pnet_bytes *b, struct pnet_error *e)
{
    return read_path(path, true, b, e);
}

enum pnet_status pnet_bytes_read_own(const char *path, struct pnet_bytes *b, struct pnet_error *e)
{
    return read_path(path, false, b, e);
}

void pnet_bytes_free(struct pnet_bytes *b)
{
    if (!b->borrowed && b->data != nothing) free((void *)(uintptr_t)b->data);
    *b = (struct pnet_bytes){.data = nothing};
}

static bool is_in_parts(const struct stat *s)
{
    return S_ISREG(s->st_mode) && s->st_size > 0;
}

static enum pnet_status not_in_parts(const char *path, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_USAGE,
        "%s: what is no regular file, or empty, is read as a whole, not in pieces", path);
}

/* Takes addresses for the whole file, which the system fills with zeros, and with memory where a part is loaded. The file is not
   mapped, for the reason that read_file has. */
static enum pnet_status begin_parts(
    int fd, const char *path, struct pnet_file_parts *f, struct pnet_error *e)
{
    struct stat s;
    if (fstat(fd, &s) != 0) return pnet_error_errno(e, PNET_FAILED, errno, "%s: cannot read", path);
    if (!is_in_parts(&s)) return not_in_parts(path, e);
    void *data = mmap(NULL, (size_t)s.st_size, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return pnet_error_memory(e);
    (void)madvise(
        data, (size_t)s.st_size, MADV_NOHUGEPAGE); /* parts take no more than themselves */
    *f = (struct pnet_file_parts){.bytes = {data, (size_t)s.st_size, true},
        .path = strdup(path),
        .fd = fd,
        .changed = s.st_mtim};
    if (f->path) return PNET_OK;
    munmap(data, (size_t)s.st_size);
    return pnet_error_memory(e);
}

enum pnet_status pnet_file_parts_open(
    const char *path, struct pnet_file_parts *f, struct pnet_error *e)
{
    int fd;
    struct stat s;
    *f = (struct pnet_file_parts){.fd = -1};
    if (strcmp(path, "-") == 0)
        return pnet_error_set(
            e, PNET_USAGE, "standard input is read as a whole, not in pieces: name a file");
    /* A named pipe that is opened and closed again would end the program that writes to it. */
    if (stat(path, &s) == 0 && !is_in_parts(&s)) return not_in_parts(path, e);
    enum pnet_status status = open_path(path, true, &fd, e);
    if (!status) status = begin_parts(fd, path, f, e);
    if (status && fd >= 0) close(fd);
    return status;
}

struct pnet_file_parts pnet_file_parts_of(const struct pnet_bytes *b, const char *path)
{
    return (struct pnet_file_parts){.bytes = {b->data, b->size, true},
        .path = (char *)(uintptr_t)path,
        .fd = -1,
        .head = b->size};
}

enum pnet_status pnet_file_parts_load(
    struct pnet_file_parts *f, uint64_t at, uint64_t size, struct pnet_error *e)
{
    uint64_t end = at + size;
    if (at < f->head) at = f->head;
    if (f->fd < 0 || at >= end) return PNET_OK;
    enum pnet_status status = pnet_bytes_fit(f->path, end - at, e);
    if (status != PNET_OK) return status;
    uint8_t *to = (uint8_t *)(uintptr_t)f->bytes.data;
    int code = 0;
    while (at < end && !code) {
        ssize_t n = pread(f->fd, to + at, (size_t)(end - at), (off_t)at);
        if (n < 0 && errno != EINTR) code = errno;
        if (n == 0) break;
        if (n > 0) at += (uint64_t)n;
    }
    return check_read(f->fd, f->path, code, at == end, (off_t)f->bytes.size, &f->changed, e);
}

enum pnet_status pnet_file_parts_load_head(
    struct pnet_file_parts *f, uint64_t size, struct pnet_error *e)
{
    if (size > f->bytes.size) size = f->bytes.size;
    enum pnet_status status = pnet_file_parts_load(f, 0, size, e);
    if (!status && size > f->head) f->head = (size_t)size;
    return status;
}

void pnet_file_parts_drop(struct pnet_file_parts *f, uint64_t at, uint64_t size)
{
    if (f->fd < 0) return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = at / page * page;
    size_t kept = (f->head + page - 1) / page * page, to = (at + size) / page * page;
    if (from < kept) from = kept;
    /* Without this the memory is kept until the file is closed. */
    if (from < to)
        (void)madvise((uint8_t *)(uintptr_t)f->bytes.data + from, to - from, MADV_DONTNEED);
}

void pnet_file_parts_close(struct pnet_file_parts *f)
{
    if (f->fd >= 0) {
        munmap((void *)(uintptr_t)f->bytes.data, f->bytes.size);
        close(f->fd);
        free(f->path);
    }
    *f = (struct pnet_file_parts){.fd = -1};
}

int pnet_path_follow(const char *path, char target[PNET_PATH_MOST])
{
    enum { LINKS_MOST = 40 };
    size_t length = strlen(path);
    if (length >= PNET_PATH_MOST) return ENAMETOOLONG;
    memcpy(target, path, length + 1);
    for (int links = 0; links < LINKS_MOST; links++) {
        char link[PNET_PATH_MOST];
        ssize_t n = readlink(target, link, sizeof link);
        if (n < 0) return 0; /* no link, or the file does not exist: opening it reports that */
        char *slash = strrchr(target, '/');
        size_t folder = link[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - target);
        if (folder + (size_t)n >= PNET_PATH_MOST) return ENAMETOOLONG;
        memcpy(target + folder, link, (size_t)n);
        target[folder + (size_t)n] = '\0';
    }
    return ELOOP;
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

enum pnet_status pnet_make_folder_of(const char *path, struct pnet_error *e)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return PNET_OK;
    char *folder = strndup(path, (size_t)(slash - path));
    if (!folder) return pnet_error_memory(e);
    enum pnet_status st = pnet_make_folder(folder, e);
    free(folder);
    return st;
}
