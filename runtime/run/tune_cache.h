/* Algorithms of convolutions that were measured before: in memory while a network is measured, and in a file from run to
   run. A file is for one device, driver and version of pnet. */
#ifndef PNET_RUNTIME_TUNE_CACHE_H
#define PNET_RUNTIME_TUNE_CACHE_H

#include "runtime/run/choices.h"

enum { PNET_TUNE_KEY = 128 };

struct pnet_tune_entry {
    char key[PNET_TUNE_KEY]; /* the sum: layer, sizes, direction, which algorithms took part */
    enum pnet_conv_algo algo;
    double seconds, standard; /* of the algorithm, and of the fixed table's */
};

struct pnet_tune_cache {
    enum pnet_device_kind device;
    struct pnet_device_info info;
    char path[4096];               /* "": memory alone, no file */
    struct pnet_tune_entry *items; /* [count]; no two have the same key */
    int64_t count, capacity;
    int64_t fresh; /* entries that are not in the file yet */
};

/* Opens the device's file in `folder` (NULL: memory alone). A file that is damaged, or belongs to another device, driver or
   version, is ignored, and `warning` says so; else `warning` is "". */
void pnet_tune_cache_open(struct pnet_tune_cache *c, const char *folder,
    enum pnet_device_kind device, const struct pnet_device_info *info, char warning[1024]);
/* Adds the entries of a file. PNET_BAD_DATA, and nothing is added: it is damaged, or belongs to another device, driver or
   version. `name` stands in messages. */
enum pnet_status pnet_tune_cache_parse(struct pnet_tune_cache *c, const char *name,
    const char *text, size_t size, struct pnet_error *e);
const struct pnet_tune_entry *pnet_tune_cache_find(
    const struct pnet_tune_cache *c, const char *key);
/* Returns false if memory is out. */
bool pnet_tune_cache_add(struct pnet_tune_cache *c, const struct pnet_tune_entry *entry);
/* Writes the file if there are entries that it does not have. */
enum pnet_status pnet_tune_cache_save(struct pnet_tune_cache *c, struct pnet_error *e);
void pnet_tune_cache_free(struct pnet_tune_cache *c);

#endif
