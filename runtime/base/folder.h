/* The entries of folders, without allocations, so that files can be removed also when memory is out. */
#ifndef PNET_RUNTIME_FOLDER_H
#define PNET_RUNTIME_FOLDER_H

/* Calls `visit` for each entry of an open folder but . and .., until it returns something else than 0, which it may do with an
   errno. Returns that, or 0, or an errno. `visit` may remove the entry. */
int pnet_folder_each(int fd, int (*visit)(int fd, const char *name, void *context), void *context);

/* Writes the entries of the folder to the disk. Returns 0, also where the file system cannot sync folders, or an errno. */
int pnet_folder_sync(const char *path);
/* The same for the folder of the file or folder `path`, of fewer than PNET_PATH_MOST bytes. */
int pnet_folder_sync_parent(const char *path);

#endif
