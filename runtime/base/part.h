/* Temporary files of outputs: FOLDER/.pnet-HOST-PROCESS-NUMBER.part. The program that makes one holds a lock on it (flock)
   until the file has its final name or is removed. The lock ends with the program, so a file without a lock was left by a
   killed one, and the next program that writes into the folder removes it. HOST is a hash of the name of the host.

   On network file systems the server holds the lock for all hosts (NFS since Linux 2.6.12). Where it does not (local_lock,
   nolock), or where locks are not supported, another host's lock cannot be seen; so a file of another host must also be
   unchanged for a day. */
#ifndef PNET_RUNTIME_PART_H
#define PNET_RUNTIME_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Makes a temporary file in a folder. `name` gets its path, which begins with `before`: the folder with a slash, or "".
   *lock gets a second descriptor, which keeps the lock when the first one is closed; -1: the file system has no locks.
   Returns a descriptor, or -1 with errno. The caller closes both, the lock after it has renamed or removed the file. */
int pnet_part_make(const char *before, mode_t mode, char *name, size_t size, int *lock);

/* Tells whether a file of that name, without folder, is a temporary one. */
bool pnet_is_part(const char *name);
/* Removes the temporary files in the folder whose programs have ended; in each folder once. */
void pnet_parts_clear(const char *folder);

/* Gives the file the owner, group and permissions of another one, as far as the user may. Where the group stays another one, it
   gets no more than all others get. */
void pnet_keep_permissions(int fd, const struct stat *of);

#endif
