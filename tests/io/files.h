/* What the tests of files share: a folder for them, bytes to read, random numbers. */
#ifndef PNET_TESTS_IO_FILES_H
#define PNET_TESTS_IO_FILES_H

#include "runtime/base/file.h"
#include "tests/check.h"

#include <stdint.h>
#include <unistd.h>

/* A new folder under TMPDIR; the caller removes what it makes in there, then the folder. */
static inline const char *files_folder(void)
{
    static char folder[512];
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/pnet-io-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(1);
    }
    return folder;
}

/* One of four in turn: good until the fourth call after it. */
static inline const char *files_path(const char *folder, const char *name)
{
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    if (snprintf(path, sizeof paths[0], "%s/%s", folder, name) >= (int)sizeof paths[0]) abort();
    return path;
}

static inline struct pnet_bytes bytes_of(const void *data, size_t size)
{
    return (struct pnet_bytes){.data = data, .size = size, .borrowed = true};
}

static inline void write_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
