/* The work of the loader's threads: load, augment and batch. */
#ifndef PNET_RUNTIME_LOADER_SAMPLE_H
#define PNET_RUNTIME_LOADER_SAMPLE_H

#include "runtime/data/loader.h"
#include "runtime/data/sample.h"

#include <pthread.h>

/* Threads share it. Samples in `kept` do not change and are not freed before the end: finding one needs the lock, using it
   does not. */
struct pnet_sample_source {
    struct pnet_loader_options o;
    struct pnet_input_roles roles;
    int sides; /* clouds of an entry: 2 for pairs, the source and the target */
    int64_t samples;
    pthread_mutex_t lock;      /* guards what follows */
    struct pnet_sample **kept; /* [samples, sides] or NULL; of several views of a cloud the first
                                  one keeps it */
    bool *warned;              /* [samples, sides] */
    uint64_t kept_bytes;
};

enum pnet_status pnet_sample_source_init(
    const struct pnet_loader_options *o, struct pnet_sample_source *s, struct pnet_error *e);
void pnet_sample_source_free(struct pnet_sample_source *s);

/* Makes the batch of these entries; *b is NULL if all of them were empty and left out. */
enum pnet_status pnet_sample_source_batch(struct pnet_sample_source *s, uint32_t epoch,
    const int64_t *entries, int32_t count, struct pnet_batch **b, struct pnet_error *e);

#endif
