/* Reads files, whole or in parts, and writes files atomically. */
#ifndef PNET_RUNTIME_IO_FILE_H
#define PNET_RUNTIME_IO_FILE_H

#include "runtime/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { PNET_PATH_MOST = 4096 };

/* Reads a whole file into memory; "-" is standard input. The caller frees it. PNET_FAILED: the file cannot be read, or changes
   while it is read, or it is a pipe to which no process writes within a second. PNET_NO_MEMORY: memory is out, a device has more
   than 64 MiB, or a pipe more than half of the free memory. The file is an input of the program (guard.h); PNET_USAGE: the
   program has announced it as an output. */
struct pnet_bytes {
    const uint8_t *data;
    size_t size;
    bool borrowed; /* points into other bytes, and is not freed */
};
enum pnet_status pnet_bytes_read(const char *path, struct pnet_bytes *b, struct pnet_error *e);
/* The same for a file that the program keeps for itself and may replace, such as a cache: it is no input. */
enum pnet_status pnet_bytes_read_own(const char *path, struct pnet_bytes *b, struct pnet_error *e);
void pnet_bytes_free(struct pnet_bytes *b);

/* A file of which parts are in memory, each at the place where it would be if all of the file were: for readers that look at a
   file part by part. What has not been loaded, or was dropped, is 0. */
struct pnet_file_parts {
    struct pnet_bytes bytes; /* of the whole file */
    char *path;              /* as in messages */
    int fd;                  /* -1: all of the file is in memory; loading and dropping do nothing */
    size_t head;             /* first bytes that stay in memory */
    struct timespec changed; /* when the file was changed last */
};
/* Opens a regular file. It takes addresses for the whole file, and memory for what is loaded. Errors of pnet_bytes_read, and
   PNET_USAGE: `path` is "-", a pipe, a device, a folder or empty, which pnet_bytes_read reads or refuses. On failure there is
   nothing to close. */
enum pnet_status pnet_file_parts_open(
    const char *path, struct pnet_file_parts *f, struct pnet_error *e);
/* Returns the same of bytes that are in memory, which are borrowed as `path` is; it need not be closed. */
struct pnet_file_parts pnet_file_parts_of(const struct pnet_bytes *b, const char *path);
/* Loads bytes, which must lie in the file. PNET_FAILED: they cannot be read, or the file has changed since it was opened;
   PNET_NO_MEMORY. */
enum pnet_status pnet_file_parts_load(
    struct pnet_file_parts *f, uint64_t at, uint64_t size, struct pnet_error *e);
/* The same of the first bytes, at most those that the file has; they are not dropped. */
enum pnet_status pnet_file_parts_load_head(
    struct pnet_file_parts *f, uint64_t size, struct pnet_error *e);
/* Gives the memory of bytes back, by whole pages: bytes before them that share their first page are dropped with them. */
void pnet_file_parts_drop(struct pnet_file_parts *f, uint64_t at, uint64_t size);
void pnet_file_parts_close(struct pnet_file_parts *f);

/* Returns PNET_NO_MEMORY if fewer than `bytes` bytes of memory are free. Readers call it before they allocate a size that a
   file declares. */
enum pnet_status pnet_bytes_fit(const char *path, uint64_t bytes, struct pnet_error *e);

/* An output writes to a temporary name in the same folder (part.h). Commit flushes, syncs and renames the file and syncs the
   folder; drop removes the file. Exactly one of the two must be called. Commit reports the first error of any write, with its
   reason. The new file has the owner, group and permissions of the one that it replaces, as far as the user may give them. If
   `path` is a link, the file that it names is replaced. "-" is standard output. PNET_USAGE, from both calls: the file is an input
   of the program (guard.h). An open output must not be moved, because its stream points to it. */
struct pnet_output {
    FILE *file;
    int fd, lock;                /* lock: a second descriptor, or -1; part.h */
    int code;                    /* errno of the first write that failed, or 0 */
    char path[PNET_PATH_MOST];   /* as given */
    char target[PNET_PATH_MOST]; /* the file that is replaced: `path` without links at its end */
    char temporary[PNET_PATH_MOST + 64];
};
enum pnet_status pnet_output_open(const char *path, struct pnet_output *o, struct pnet_error *e);
enum pnet_status pnet_output_commit(struct pnet_output *o, struct pnet_error *e);
/* Tells of the first write that failed, as committing will; what the stream still has in its buffer has not been tried. */
enum pnet_status pnet_output_check(const struct pnet_output *o, struct pnet_error *e);
void pnet_output_drop(struct pnet_output *o);

/* Follows the links at the end of `path`, also if the last one names a file that does not exist. Returns 0 or an errno. */
int pnet_path_follow(const char *path, char target[PNET_PATH_MOST]);

/* Creates the folder and its parents, as mkdir -p does. */
enum pnet_status pnet_make_folder(const char *path, struct pnet_error *e);
/* Creates the folder of the file `path`, if the name has one. */
enum pnet_status pnet_make_folder_of(const char *path, struct pnet_error *e);

#endif
