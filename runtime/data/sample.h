/* One cloud in the form that the model reads, and several clouds as a batch. */
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
    const struct pnet_input *input; /* of the model; describes the fields */
    int64_t rows;
    double offset[3]; /* metres: file coordinate = offset + xyz, before augmentation */
    float *xyz;       /* [rows, 3] metres */
    void **fields;    /* [input->field_count]: float32 [rows, width] or int32 [rows]; one row for
                         fields of    the cloud; NULL for positions and fields that are not used */
};

/* Makes a sample from a cloud: features by the map, class fields from `labels`. label_count is the cloud's rows (labels of
   points), 1 (label of the cloud) or 0 (no labels; a class field in use is then an error). `path` stands in messages. The
   caller frees *s. On failure *s is NULL. */
enum pnet_status pnet_sample_make(const struct pnet_input *input, const struct pnet_input_map *map,
    const struct pnet_cloud *cloud, const int32_t *labels, int64_t label_count, const char *path,
    struct pnet_sample **s, struct pnet_error *e);
enum pnet_status pnet_sample_copy(
    const struct pnet_sample *s, struct pnet_sample **copy, struct pnet_error *e);
void pnet_sample_free(struct pnet_sample *s);

/* Returns the bytes of memory of a sample. */
uint64_t pnet_sample_bytes(const struct pnet_sample *s);
/* Keeps `count` rows of the sample; row[count] ascends. */
void pnet_sample_keep(struct pnet_sample *s, const int64_t *rows, int64_t count);
/* Takes `count` rows of the sample, in the order of rows[count], which may repeat. PNET_NO_MEMORY: it stays as it was. */
enum pnet_status pnet_sample_take(
    struct pnet_sample *s, const int64_t *rows, int64_t count, struct pnet_error *e);

/* Makes a batch of samples of the input `input`, one after the other; other inputs get no rows. The caller keeps the
   samples. With `repeats` the id is a hash of the coordinates and row splits, so that a repeated batch has the same id; else
   it is 0. */
enum pnet_status pnet_samples_batch(const struct pnet_input *inputs, int input_count, int input,
    const struct pnet_sample *const *samples, int32_t count, bool repeats,
    struct pnet_batch **batch, struct pnet_error *e);
/* Makes a batch of the samples of several inputs: samples[k], [count], belong to input which[k]; the id is 0. */
enum pnet_status pnet_inputs_batch(const struct pnet_input *inputs, int input_count,
    const int *which, int sides, const struct pnet_sample *const *const *samples, int32_t count,
    struct pnet_batch **batch, struct pnet_error *e);
/* As pnet_samples_batch for pairs: sources[count] of the input roles->source, targets[count] of roles->target, poses[count]
   from source to target. The id is a hash of the coordinates of both and of the poses. */
enum pnet_status pnet_pairs_batch(const struct pnet_input *inputs, int input_count,
    const struct pnet_input_roles *roles, const struct pnet_sample *const *sources,
    const struct pnet_sample *const *targets, const struct pnet_pose *poses, int32_t count,
    bool repeats, struct pnet_batch **batch, struct pnet_error *e);

#endif
