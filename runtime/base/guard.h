/* Keeps the outputs of a program from replacing its inputs. A program that calls pnet_guard_begin remembers every file that it
   reads (pnet_bytes_read) and every output that it announces; files are compared by device and inode, so through links and other
   spellings of a path. pnet_output_open and pnet_output_commit refuse to replace an input, whatever command they work for;
   commands announce their outputs before they read, so that they are refused before anything is written.

   Programs around libpnet do not begin, and all of this does nothing there: they may read weights and write others under that
   name. Devices, pipes and folders are neither inputs nor outputs here. */
#ifndef PNET_RUNTIME_GUARD_H
#define PNET_RUNTIME_GUARD_H

#include "runtime/base/error.h"

#include <stdbool.h>

/* Called once by the program, before it opens files and starts threads. */
void pnet_guard_begin(void);

/* Records an input, which may be missing; "-" is standard input. PNET_USAGE: it is an announced output; the message names
   both. PNET_NO_MEMORY. */
enum pnet_status pnet_guard_input(const char *path, struct pnet_error *e);
/* The same for an open file; `path` stands in messages. */
enum pnet_status pnet_guard_input_file(int fd, const char *path, struct pnet_error *e);
/* Records all files of a folder, without those in its folders. A folder that cannot be read is left to its reader. */
enum pnet_status pnet_guard_input_folder(const char *path, struct pnet_error *e);
/* Records an output, which may be missing, with its folder; "-" is standard output. PNET_USAGE: it is an input, or another
   output, of this program. PNET_NO_MEMORY. */
enum pnet_status pnet_guard_output(const char *path, struct pnet_error *e);

/* PNET_USAGE: `path` is an input. */
enum pnet_status pnet_guard_check(const char *path, struct pnet_error *e);
/* Tells whether one of these functions has returned PNET_USAGE. Readers of data sets report an error of a file with a status of
   their own; the program ends with PNET_USAGE all the same. */
bool pnet_guard_has_refused(void);
/* The file is no input any more: the program may replace what it has read there. */
void pnet_guard_release(const char *path);

/* Returns true the first time that it is called for the folder of that descriptor; without pnet_guard_begin always. */
bool pnet_guard_is_new_folder(int fd);

#endif
