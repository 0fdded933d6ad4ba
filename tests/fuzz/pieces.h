/* What must hold of a file of any bytes: in pieces it is the same as a whole, or has the same error. */
#ifndef PNET_TESTS_FUZZ_PIECES_H
#define PNET_TESTS_FUZZ_PIECES_H

#include "tests/fuzz/cloud.h"
#include "tests/io/pieces.h"

#include <unistd.h>

static char fuzz_piece_path[1024];

static inline void fuzz_remove_piece(void)
{
    remove(fuzz_piece_path);
}

/* Pieces come from files: this one is written anew for each input. `ending`: the same in all calls. */
static inline void fuzz_pieces(const char *ending, const uint8_t *data, size_t size)
{
    static const struct pnet_cloud_hints none = {.columns = NULL};
    static int made;
    bool whole;
    if (!made++) {
        const char *base = getenv("TMPDIR");
        snprintf(fuzz_piece_path, sizeof fuzz_piece_path, "%s/pnet-fuzz-XXXXXX%s",
            base ? base : "/tmp", ending);
        int fd = mkstemps(fuzz_piece_path, (int)strlen(ending));
        if (fd < 0 || close(fd) != 0 || atexit(fuzz_remove_piece) != 0) abort();
    }
    FILE *f = fopen(fuzz_piece_path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
    const char *wrong = pieces_differ(fuzz_piece_path, &none, 5, &whole);
    fuzz_require(!wrong, wrong, fuzz_piece_path);
}

#endif
