/* What a model reads, and one batch of it. */
#ifndef PNET_RUNTIME_INPUT_H
#define PNET_RUNTIME_INPUT_H

#include "runtime/base/error.h"
#include "runtime/plan/frame.h"

#include <stdbool.h>
#include <stdint.h>

enum pnet_input_kind {
    PNET_INPUT_POSITION, /* xyz: every cloud has one */
    PNET_INPUT_FEATURE,  /* float32 [rows, width] */
    PNET_INPUT_CLASS,    /* int32 [rows] or [samples]; -1 is ignored */
    PNET_INPUT_POSE,     /* float32 [samples, 16]: row-major 4x4, p_target = T p_source */
};

/* A field of `input cloud { ... }`. */
struct pnet_input_field {
    const char *name;
    enum pnet_input_kind kind;
    int32_t width;   /* feature: channels; class: 1; pose: 16 */
    int32_t classes; /* class: labels are 0 .. classes-1, or -1 */
    bool per_cloud;  /* one value a sample instead of one a point */
    bool unused;     /* the plan does not read it: loaders leave it out, its data is NULL */
};

/* An `input` of the model: a cloud with its fields, or a pose: one field "pose" and no position. Of the clouds of
   a model with a pose the first one is the source, the second the target; sample s of both and row s of the pose
   belong together. */
struct pnet_input {
    const char *name;
    struct pnet_input_field *fields; /* [field_count] */
    int field_count;
    bool unused; /* the plan does not read this cloud: loaders give it no rows */
};

static inline bool pnet_input_is_pose(const struct pnet_input *in)
{
    return in->field_count == 1 && in->fields[0].kind == PNET_INPUT_POSE;
}

/* One input of one batch. Rows of one sample are contiguous, in the order of the loaded file. A pose has no rows. */
struct pnet_batch_input {
    int64_t rows;
    int64_t *row_splits; /* [samples + 1] */
    float *xyz;          /* [rows, 3] metres */
    void **fields;       /* [field_count], as the field's kind says; position: NULL */
    /* Metres: rows that no grid orders have the order that they have in a batch with this largest absolute coordinate; 0: that
       of xyz. */
    float largest;
};

/* Owns everything below; made by the loader, consumed by a runner. */
struct pnet_batch {
    int32_t samples;
    int input_count;
    struct pnet_batch_input *inputs;
    int field_counts_sum;    /* for freeing */
    struct pnet_frame frame; /* of the first cloud of each entry of a data set */
    /* the same number only for the same coordinates and poses: geometry is cached by it; 0: never */
    uint64_t id;
    /* xyz and fields lie on the GPU of the runner, for which they are read there; row splits are on the host in any case */
    bool there;
};

/* Everything zero but poses, which leave points where they are. */
enum pnet_status pnet_batch_new(const struct pnet_input *inputs, int input_count, int32_t samples,
    const int64_t *const *row_splits, struct pnet_batch **batch, struct pnet_error *e);
void pnet_batch_free(struct pnet_batch *b);
/* Makes a batch of `count` rows of the input `input` of a batch of one sample, which may repeat. Values of the whole cloud are
   copied; other inputs get no rows; the id is 0. Both lie on the host. The caller frees it. PNET_NO_MEMORY. */
enum pnet_status pnet_batch_take(const struct pnet_input *inputs, const struct pnet_batch *b,
    int input, const int64_t *rows, int64_t count, struct pnet_batch **taken, struct pnet_error *e);

#endif
