/* Files: whole in, atomically out. */
#ifndef PNET_RUNTIME_IO_FILE_H
#define PNET_RUNTIME_IO_FILE_H

#include "runtime/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A whole file in memory (mapped where it can be); "-" is standard input. */
struct pnet_bytes {
    const uint8_t *data;
    size_t size;
    int mapped; /* 1: a mapping, 0: allocated, -1: a part of other bytes, not to be freed */
};
enum pnet_status pnet_bytes_read(const char *path, struct pnet_bytes *b, struct pnet_error *e);
void pnet_bytes_free(struct pnet_bytes *b);

/* Writes to a temporary name beside `path`; commit flushes, syncs, renames and syncs the folder;
   drop removes it. Exactly one of the two ends it. Errors of any write surface in commit. "-" is
   standard output. */
struct pnet_output {
    FILE *file;
    char path[4096];
    char temporary[4128];
};
enum pnet_status pnet_output_open(const char *path, struct pnet_output *o, struct pnet_error *e);
enum pnet_status pnet_output_commit(struct pnet_output *o, struct pnet_error *e);
void pnet_output_drop(struct pnet_output *o);

/* mkdir -p */
enum pnet_status pnet_make_folder(const char *path, struct pnet_error *e);

#endif
