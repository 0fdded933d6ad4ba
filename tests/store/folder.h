/* A folder of its own for a test, removed by remove_folder(). */
#ifndef PNET_TESTS_STORE_FOLDER_H
#define PNET_TESTS_STORE_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char test_folder[1024];

static inline const char *make_folder(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(test_folder, sizeof test_folder, "%s/pnet-store-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(test_folder)) {
        perror(test_folder);
        exit(1);
    }
    return test_folder;
}

static inline int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* PATH/NAME, the same pointer for the same name until the program ends. */
static inline const char *in_folder(const char *name)
{
    static char known[64][2048];
    char text[2048];
    snprintf(text, sizeof text, "%s/%s", test_folder, name);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!known[i][0]) memcpy(known[i], text, sizeof text);
        if (strcmp(known[i], text) == 0) return known[i];
    }
    exit(1);
}

#endif
