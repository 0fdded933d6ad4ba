/* Algorithms of convolutions that were measured before: in memory while a network is measured, and in a file between
   networks. A file is for one device, driver and version of pnet. */
#ifndef PNET_RUNTIME_TUNE_CACHE_H
#define PNET_RUNTIME_TUNE_CACHE_H

#include "runtime/run/choices.h"

enum { PNET_TUNE_KEY = 128 };

struct pnet_tune_entry {
    char key[PNET_TUNE_KEY]; /* the sum: layer, sizes, direction, which algorithms took part */
    enum pnet_conv_algo algo;
    double seconds, standard; /* of it, and of the fixed table's */
};

struct pnet_tune_cache {
    enum pnet_device_kind device;
    struct pnet_device_info info;
    char path[4096];               /* "": memory alone */
    struct pnet_tune_entry *items; /* [count], keys differ */
    int64_t count, capacity;
    int64_t fresh; /* of them are not in the file yet */
};

/* FOLDER/pnet, where FOLDER is $XDG_CACHE_HOME, else $HOME/.cache; false where there is neither. */
bool pnet_tune_cache_folder(char folder[4096]);
/* Opens the file for the device in `folder` (NULL: memory alone). One that is damaged, or belongs to something else, is
   left out, and `warning` says so; else it is empty. */
void pnet_tune_cache_open(struct pnet_tune_cache *c, const char *folder,
    enum pnet_device_kind device, const struct pnet_device_info *info, char warning[1024]);
/* Adds what a file holds, or nothing. PNET_BAD_DATA: damaged, or of something else; `name` is for messages. */
enum pnet_status pnet_tune_cache_parse(struct pnet_tune_cache *c, const char *name,
    const char *text, size_t size, struct pnet_error *e);
const struct pnet_tune_entry *pnet_tune_cache_find(
    const struct pnet_tune_cache *c, const char *key);
/* False: out of memory. */
bool pnet_tune_cache_add(struct pnet_tune_cache *c, const struct pnet_tune_entry *entry);
/* Writes the file anew where there is something fresh. */
enum pnet_status pnet_tune_cache_save(struct pnet_tune_cache *c, struct pnet_error *e);
void pnet_tune_cache_free(struct pnet_tune_cache *c);

#endif
