/* One cloud as the model reads it, and several of them as a batch. */
#ifndef PNET_RUNTIME_SAMPLE_H
#define PNET_RUNTIME_SAMPLE_H

#include "runtime/io/cloud.h"
#include "runtime/data/dataset_pose.h"
#include "runtime/base/error.h"
#include "runtime/plan/input.h"
#include "runtime/data/input_map.h"

#include <stdbool.h>
#include <stdint.h>

/* Owns all but `input`. */
struct pnet_sample {
    const struct pnet_input *input; /* of the model: what the fields are */
    int64_t rows;
    double offset[3]; /* metres: file coordinate = offset + xyz, before augmentation */
    float *xyz;       /* [rows, 3] metres */
    void **fields;    /* [input->field_count]: float32 [rows, width] or int32 [rows]; one row for
                         fields of    the cloud; NULL for positions and fields that are not used */
};

/* Makes a sample from a cloud: features by the map, class fields from `labels`. label_count is the
   cloud's rows (labels of points), 1 (of the cloud) or 0: then a class field in use is an error.
   `path` stands in messages. On failure *s is NULL. */
enum pnet_status pnet_sample_make(const struct pnet_input *input, const struct pnet_input_map *map,
    const struct pnet_cloud *cloud, const int32_t *labels, int64_t label_count, const char *path,
    struct pnet_sample **s, struct pnet_error *e);
enum pnet_status pnet_sample_copy(
    const struct pnet_sample *s, struct pnet_sample **copy, struct pnet_error *e);
void pnet_sample_free(struct pnet_sample *s);

/* What it takes in memory. */
uint64_t pnet_sample_bytes(const struct pnet_sample *s);
/* Thins the sample to `count` of its rows, ascending. */
void pnet_sample_keep(struct pnet_sample *s, const int64_t *rows, int64_t count);

/* Puts samples of the input `input` behind each other; the other inputs get no rows. The samples
   stay the caller's. The id is a hash of the coordinates and the row splits where `repeats`, else
   0: batches that come again have the same one. */
enum pnet_status pnet_samples_batch(const struct pnet_input *inputs, int input_count, int input,
    const struct pnet_sample *const *samples, int32_t count, bool repeats,
    struct pnet_batch **batch, struct pnet_error *e);
/* The same for pairs: sources[count] of the input roles->source, targets[count] of roles->target,
   poses[count] from the former to the latter. The id is of the coordinates of both and the poses. */
enum pnet_status pnet_pairs_batch(const struct pnet_input *inputs, int input_count,
    const struct pnet_input_roles *roles, const struct pnet_sample *const *sources,
    const struct pnet_sample *const *targets, const struct pnet_pose *poses, int32_t count,
    bool repeats, struct pnet_batch **batch, struct pnet_error *e);

#endif
