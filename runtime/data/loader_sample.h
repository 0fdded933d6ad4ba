/* The work of the loader's threads: load, augment and batch. */
#ifndef PNET_RUNTIME_LOADER_SAMPLE_H
#define PNET_RUNTIME_LOADER_SAMPLE_H

#include "runtime/data/loader.h"
#include "runtime/data/partial.h"
#include "runtime/data/sample.h"

#include <pthread.h>

/* Threads share it. Samples in `kept`, and surfaces, do not change and are not freed before the end: finding one needs the
   lock, using it does not. */
struct pnet_sample_source {
    struct pnet_loader_options o;
    struct pnet_input_roles roles;
    int sides; /* clouds of an entry: 2 for pairs, the source and the target */
    int64_t samples;
    pthread_mutex_t lock;      /* guards what follows */
    struct pnet_sample **kept; /* [samples, sides] or NULL; of several views of a cloud the first
                                  one keeps it */
    struct pnet_surface **surfaces; /* [samples] or NULL, of meshes; kept with the full cloud, by
                                       the first view */
    bool *warned;                   /* [samples, sides] */
    uint64_t kept_bytes;
    bool told[2]; /* of a cloud whose colours alone, of one whose features are unusual */
};

/* An entry in a batch: each of its clouds belongs to the cache or to this batch. */
struct pnet_sample_item {
    const struct pnet_sample *sample[2]; /* source and target, or the one cloud */
    struct pnet_sample *own[2];          /* or NULL */
    struct pnet_pose pose;
};

enum pnet_status pnet_sample_source_init(
    const struct pnet_loader_options *o, struct pnet_sample_source *s, struct pnet_error *e);
void pnet_sample_source_free(struct pnet_sample_source *s);

/* Makes the batch of these entries; *b is NULL if all of them were empty and left out. */
enum pnet_status pnet_sample_source_batch(struct pnet_sample_source *s, uint32_t epoch,
    const int64_t *entries, int32_t count, struct pnet_batch **b, struct pnet_error *e);

/* Functions of the files of the loader alone. */

/* Returns the place of an entry's clouds in the cache: sides x the number of its first view. */
int64_t pnet_sample_source_place(const struct pnet_sample_source *s, int64_t index);
/* Makes a sample of a cloud for one input. */
enum pnet_status pnet_sample_source_make(struct pnet_sample_source *s, int input,
    const struct pnet_cloud *cloud, const int32_t *labels, int64_t label_count, const char *name,
    struct pnet_sample **sample, struct pnet_error *e);
/* Returns the stream from which an entry of completion is drawn: another one each epoch in training, else always the same. */
struct pnet_views_draw pnet_sample_source_draw(
    const struct pnet_sample_source *s, uint32_t epoch, int64_t index);
/* Loads an entry that is made from a mesh: its full cloud, and the partial one of this epoch. In loader_mesh.c. */
enum pnet_status pnet_sample_source_mesh(struct pnet_sample_source *s, uint32_t epoch,
    int64_t index, struct pnet_sample_item *item, struct pnet_error *e);

#endif
