/* A temporary folder with files, for tests of data sets. */
#ifndef PNET_TESTS_DATA_FOLDER_H
#define PNET_TESTS_DATA_FOLDER_H

#include "tests/check.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[512];
};

static inline struct folder folder_make(void)
{
    struct folder f;
    const char *base = getenv("TMPDIR");
    snprintf(f.path, sizeof f.path, "%s/pnet-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(f.path)) {
        perror(f.path);
        exit(1);
    }
    return f;
}

static inline int folder_remove_one(
    const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static inline void folder_remove(const struct folder *f)
{
    nftw(f->path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of a name in the folder; four of them can be in use at a time. */
static inline const char *folder_path(const struct folder *f, const char *name)
{
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", f->path, name);
    return path;
}

/* Writes bytes; the folders of the name are made. */
static inline void folder_put(
    const struct folder *f, const char *name, const void *data, size_t size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s", folder_path(f, name));
    for (char *c = path + strlen(f->path) + 1; *c; c++) {
        if (*c != '/') continue;
        *c = 0;
        mkdir(path, 0700);
        *c = '/';
    }
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static inline void folder_print(const struct folder *f, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline void folder_print(const struct folder *f, const char *name, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0) exit(1);
    folder_put(f, name, text, (size_t)size);
    free(text);
}

#endif
