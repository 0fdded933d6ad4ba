/* Data sets: an index file (YAML) that lists labelled clouds.

     pnet_dataset: 1
     task: segmentation             # or classification
     classes: [ceiling, floor, wall]
     label_field: label             # segmentation: the field of the clouds with the class
     train:
       - {cloud: train/000000.ply}                           # labels in the cloud
       - {cloud: a_vert.npy, labels: a_label.npy}            # or in a second file
       - train/extra_*.ply                                   # a glob, sorted
       - {cloud: scans/0*.bin, labels: labels/0*.label}      # paired by what * stands for
       - {cloud: chairs/c*.ply, label: chair}                # classification
       - {array: shapes.npz, points: X, labels: y}           # one cloud a row
       - {array: modelnet40/ply_data_train*.h5, labels: label}
       - {array: grids.npz, points: X, labels: y, kind: voxels, cell: 5cm}
     val:  [{cloud: all/s*.ply, keep_every: 10}]  # number 0, 10, 20 ... of those listed
     test: [{cloud: all/s*.ply, drop_every: 10}]  # the others
     map: {0: ignore, 10: car, 252: car}          # raw label: class, its index, or `ignore`
     map_other: ignore                            # raw labels not listed, NaN too, or a class; else an error
     ignore: [255]                                # raw labels that are ignored
     columns: [x, y, z, red, green, blue]         # names for nameless columns
     origin: [154000, 463000, 0]                  # of the coordinates that models read; origin.h
     coordinates: scan                            # the array of .npz and .h5 files that holds the coordinates
     unit: us-ft                                  # of the clouds' numbers, which are converted to metres; `file`: what
                                                  # each file states; `m,ft`: of x and y, and of z

   Paths are relative to the index. Files of labels are .npy, .label (SemanticKITTI: four bytes a point, the
   low 16 bits are the class), .bin (nuScenes-lidarseg: one byte a point), else text with one number a line.
   The `label` of an entry is a class or a raw label. Without `map` a raw label is the index of its class.

   The arrays of an .npz or .h5 are named by `points` and `labels`; an .npy array has its labels in
   a file of their own. Points are [n, p, 3 or more], labels [n] or, for segmentation, [n, p].
   `kind: voxels` takes [n, a, b, c] and puts a point into the centre of each cell that is not 0,
   the corner of the grid at the origin, the edge of a cell `cell` (1 m). An array is read once and
   stays in memory.

   Registration: entries are pairs, which have a true pose and no labels.

     pnet_dataset: 1
     task: registration
     train:
       - {source: a.ply, target: b.ply, pose: [1, 0, 0, 2.5, 0, 1, 0, 0, 0, 0, 1, 0]}
       - {source: a.ply, target: b.ply, pose: a_b.txt}           # or .npy, or .log of one block
       - {source: s/p*_a.ply, target: s/p*_b.ply, pose: s/p*.txt} # paired by what * stands for
       - {log: kitchen/gt.log, clouds: kitchen/cloud_bin_*.ply}  # 3DMatch
       - {velodyne: 00/velodyne, poses: 00/poses.txt, calib: 00/calib.txt, pairs: [[0, 9]]}  # KITTI
       - {cloud: scans/0*.bin, views: {overlap: [50%, 90%]}}      # two views of each; augment_views.h
     test: [{log: gt.log, clouds: c_*.ply, missing: skip, keep_every: 5}]

   A pose is p_target = T p_source in the coordinates of the files, in metres: 12 numbers (three rows [R t])
   or 16, flat or by rows, or a file. The pairs of KITTI are lists [target, source] of frames, or
   {step: N}, each frame as the source of the one N later, or {distance: 10m}, the pairs of FCGF:
   the first source is the first frame, its target is the last frame within the distance, and the next
   source is the frame after that target. Of a log, `apart: 2` leaves out fragments that follow each other, as
   3DMatch's registration recall does; with `info: gt.info` evaluation computes that recall. With
   `turn: xyz` the source of each pair is turned at random (dataset_turn.h). Files that are not
   there are errors, but pairs of a log or of KITTI without them are left out with `missing: skip`.

   Completion: entries are two clouds in one frame, a partial one and the full one. Classes are optional.

     pnet_dataset: 1
     task: completion
     classes: [chair, table]        # optional; with map, map_other and ignore as above
     train:
       - {partial: a_partial.ply, full: a.ply, label: chair}
       - {partial: p/0*.ply, full: f/0*.ply, points: 2048, full_points: 16384} # paired by what * stands for
       - {mesh: chairs/c*.off, points: 16384, views: {count: 8, kind: depth}}  # both from a mesh; partial.h
       - {full: chairs/c*.npy, views: {count: 8, kind: cut}}                   # the partial one from the full one */
#ifndef PNET_RUNTIME_DATASET_H
#define PNET_RUNTIME_DATASET_H

#include "runtime/io/cloud.h"
#include "runtime/data/dataset_pose.h"
#include "runtime/data/origin.h"
#include "runtime/base/error.h"
#include "runtime/plan/input.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pnet_task { PNET_SEGMENTATION, PNET_CLASSIFICATION, PNET_REGISTRATION, PNET_COMPLETION };
enum pnet_split { PNET_TRAIN, PNET_VAL, PNET_TEST, PNET_SPLITS };

enum {
    PNET_LABEL_IGNORED = -1,
    PNET_LABEL_NONE = -2, /* an entry without a label; a raw label without a class */
    PNET_MAX_CLASSES = 65536,
};

struct pnet_views;
struct pnet_partial;

/* The part of an entry of a data set of pairs besides its first cloud. Registration: source and target; completion: the
   partial and the full cloud. */
struct pnet_pair {
    char *target;          /* path; NULL: the pair is made from one cloud or mesh */
    struct pnet_pose pose; /* source to target, in the coordinates of the files; views and
                              completion: identity */
    int views;             /* registration: index into the data set's views, or -1 */
    int partial;           /* completion: index into the data set's partials; else -1 */
    int array;             /* completion: index into arrays of the target, or -1 */
    int64_t row;           /* of that array */
    int64_t view; /* number among the views of the cloud or mesh, whose entries are consecutive */
    double *information; /* [36] of gt.info, in the coordinates of the files; NULL: not given */
    bool turned;       /* the entry has `turn`: loading turns the source about the origin of its */
    double turn[3][3]; /* file; the pose and the matrix above are of the turned source */
};

struct pnet_entry {
    char *cloud;   /* path of the cloud or array; of pairs: of the source, the partial cloud,
                               the mesh, or the cloud from which both are made */
    char *labels;  /* path of the labels, or NULL */
    int32_t label; /* classification and completion: the class, PNET_LABEL_IGNORED or
                               PNET_LABEL_NONE */
    int array;     /* index into arrays, or -1 */
    int64_t row;   /* of the array */
    struct pnet_pair *pair; /* registration and completion; else NULL */
};

struct pnet_array;

/* Immutable once read: several threads may load from it at the same time. */
struct pnet_dataset {
    char *path; /* path of the index, as in messages */
    enum pnet_task task;
    char **classes;
    int class_count;
    char *label_field;
    struct pnet_entry *entries[PNET_SPLITS];
    int64_t counts[PNET_SPLITS];
    int64_t *raw; /* [map_count] ascending */
    int32_t *raw_class;
    int map_count;
    bool mapped; /* there is a `map`: raw labels are not indices */
    int32_t
        others; /* map_other: the class of raw labels that are not listed, PNET_LABEL_IGNORED or PNET_LABEL_NONE */
    char **columns;
    int column_count;
    struct pnet_origin origin; /* may be replaced before anything is loaded */
    char *
        coordinates; /* the array of .npz and .h5 files that holds the coordinates; NULL: names decide */
    struct pnet_unit_choice unit;
    struct pnet_array *arrays;
    int array_count;
    struct pnet_views *views;
    int view_count;
    struct pnet_partial *partials;
    int partial_count;
};

/* Returns "segmentation", "classification", "registration" or "completion". */
const char *pnet_task_name(enum pnet_task t);
/* Tells whether the entries of the task are two clouds. */
bool pnet_task_pairs(enum pnet_task t);
/* Returns what the two clouds of an entry are called: source and target, or partial and full. */
const char *const *pnet_task_sides(enum pnet_task t);
/* Returns "train", "val" or "test". */
const char *pnet_split_name(enum pnet_split s);

/* Reads an index, or the `dataset.yaml` of a folder. Files that the index names must exist. The caller frees *d. On failure
   *d is NULL: PNET_BAD_DATA, PNET_FAILED (the index cannot be read) or PNET_NO_MEMORY. */
enum pnet_status pnet_dataset_read(const char *path, struct pnet_dataset **d, struct pnet_error *e);
/* As pnet_dataset_read, from memory. `path` stands in messages; paths are relative to its folder. */
enum pnet_status pnet_dataset_parse(
    const char *path, const void *text, size_t size, struct pnet_dataset **d, struct pnet_error *e);
void pnet_dataset_free(struct pnet_dataset *d);

/* Returns the class of a raw label, PNET_LABEL_IGNORED, or PNET_LABEL_NONE if it has no class. */
int32_t pnet_dataset_label(const struct pnet_dataset *d, int64_t raw);

/* Checks a model against the data set. Class fields in use must have as many classes as the data set, per point for
   segmentation and per cloud for classification and completion. A model that reads poses needs a registration data set,
   which has no classes. PNET_USAGE. */
enum pnet_status pnet_dataset_check(const struct pnet_dataset *d, const struct pnet_input *inputs,
    int input_count, struct pnet_error *e);

/* A cloud with its labels, as classes. */
struct pnet_labelled {
    struct pnet_cloud cloud;
    int32_t *labels;     /* [label_count], or NULL */
    int64_t label_count; /* the cloud's rows (segmentation), 1 (classification) or 0 (no labels) */
};

/* What the set says of its files, for pnet_cloud_read_as; it lives as long as the set. */
struct pnet_cloud_hints pnet_dataset_hints(const struct pnet_dataset *d);
/* Reads a file of the data set with its names of columns and its array of coordinates; `warning` (or NULL) as in
   pnet_cloud_read. On failure `c` is empty. */
enum pnet_status pnet_dataset_read_cloud(const struct pnet_dataset *d, const char *path,
    struct pnet_cloud *c, char warning[256], struct pnet_error *e);
/* The same of a row of an array of the set; `array` -1: of the file. */
enum pnet_status pnet_dataset_read_row(const struct pnet_dataset *d, const char *path, int array,
    int64_t row, struct pnet_cloud *c, char warning[256], struct pnet_error *e);
/* Loads an entry; `warning` (or NULL) as in pnet_cloud_read. Without `with_labels` labels are not read. The caller frees the
   content of `l`. On failure `l` is empty, and the message names the file and, if known, the row. */
enum pnet_status pnet_dataset_load(const struct pnet_dataset *d, enum pnet_split split,
    int64_t index, bool with_labels, struct pnet_labelled *l, char warning[256],
    struct pnet_error *e);
void pnet_labelled_free(struct pnet_labelled *l);

/* The clouds of a pair, and the pose between their coordinates as loaded, that is, without the offsets. Completion: both
   have the offset of the full cloud or the origin of the data set, and the pose is the identity. */
struct pnet_loaded_pair {
    struct pnet_cloud source, target; /* views: one cloud, the source; the target is empty */
    struct pnet_pose pose;            /* views: identity */
};
/* Loads an entry of a data set of pairs that is no mesh; warnings as in pnet_cloud_read, for the source and the target. On
   failure `p` is empty. */
enum pnet_status pnet_dataset_load_pair(const struct pnet_dataset *d, enum pnet_split split,
    int64_t index, struct pnet_loaded_pair *p, char warning[2][256], struct pnet_error *e);
void pnet_loaded_pair_free(struct pnet_loaded_pair *p);

/* Makes the error for a cloud of a segmentation that has points and no labels, PNET_BAD_DATA; its message lists the fields. */
enum pnet_status pnet_dataset_no_labels(const struct pnet_dataset *d,
    const struct pnet_entry *entry, const struct pnet_cloud *c, struct pnet_error *e);

/* Writes the name of an entry for messages: its path, followed by [row] for arrays; "A to B" for pairs. */
void pnet_entry_name(const struct pnet_entry *entry, char *name, int size);

/* Counts the labels of a split: counts[class_count], without ignored ones. For segmentation it reads every entry;
   PNET_BAD_DATA if one has points without labels; the message lists its fields. */
enum pnet_status pnet_dataset_count(
    const struct pnet_dataset *d, enum pnet_split split, int64_t *counts, struct pnet_error *e);
/* As pnet_dataset_count; calls `tell` (or NULL) with the warnings of pnet_cloud_read about the clouds. */
enum pnet_status pnet_dataset_survey(const struct pnet_dataset *d, enum pnet_split split,
    int64_t *counts, void (*tell)(void *context, const char *warning), void *context,
    struct pnet_error *e);
/* Computes weights [count] against imbalance: 1 / sqrt(share of the class), scaled so that the mean weight of a label is 1;
   classes that never occur get 1. The square root is the usual compromise: with plain inverse frequencies rare classes
   dominate. */
void pnet_class_weights(const int64_t *counts, int count, double *weights);

#endif
