/* How the fields of clouds feed the inputs of a model. The run config says it, the checkpoint keeps
   it.

     inputs:
       cloud:
         rgb: {field: [red, green, blue], scale: 1/255, shift: 0}  # value * scale + shift
         height: z          # one field; x y z are the coordinates, z_above_lowest is the height above
                            # the lowest points of the cloud (lowest.h)
         heat: {field: temperature, missing: 0}  # what is fed where the number is not finite
         bias: {value: 1}   # the same number on every point
         label: label       # classes: a field of integers

   A feature that is not listed takes, in this order: the field of its own name (width 1); for
   `rgb`, `color` and `colour` of width 3 red green blue, else r g b; for `normal` of width 3 nx ny
   nz, else normal_x normal_y normal_z; the fields name_0, name_1 ...; for colours the same of rgb, color, colour, colors and
   colours, for `normal` of normals, as arrays of an NPZ or HDF5 file are called. The colours of `rgb`, `color`
   and `colour` of width 3 are divided as range.h says, listed or not, unless there is a `scale`. x,
   y and z are the coordinates as loaded (file coordinates less the origin of the data set, or the
   cloud's own offset), before augmentation; a field of the cloud called so comes first. Class fields
   that are not listed, or listed as `label`, take the labels of the data set. */
#ifndef PNET_RUNTIME_INPUT_MAP_H
#define PNET_RUNTIME_INPUT_MAP_H

#include "runtime/data/origin.h"
#include "runtime/io/cloud.h"
#include "runtime/base/error.h"
#include "runtime/data/range.h"
#include "runtime/plan/frame.h"
#include "runtime/plan/input.h"
#include "runtime/base/yaml.h"

#include <stdbool.h>
#include <stdio.h>

struct pnet_input_source {
    char *input, *field; /* of the model */
    char **names;        /* [count] fields of the cloud, a channel each */
    int count;           /* 0: the channel is the constant `shift` */
    double scale, shift;
    bool scaled;    /* there is a `scale`; else it is 1, and colours are divided as range.h says */
    bool replaced;  /* there is a `missing` */
    double missing; /* fed in the place of numbers that are not finite */
};

/* A label of a data set's files that became a class. */
struct pnet_class_label {
    int32_t class_;
    int64_t label;
};

/* Zeroed: empty, so the rules above apply to every field. */
struct pnet_input_map {
    struct pnet_input_source *sources;
    int count;
    char **columns; /* names for nameless columns of clouds, as in a data set */
    int column_count;
    char **classes; /* names of the classes, for output */
    int class_count;
    /* [label_count] by class, then by label: what the data set maps to classes. None: its labels are the numbers of the classes,
       or nothing is known of them. */
    struct pnet_class_label *labels;
    int label_count;
    struct pnet_origin origin; /* of the data set */
    struct pnet_frame frame;   /* of the clouds that were trained on (doubt.h) */
    /* What colours are divided by, and what a training has seen. Where the kind of a colour is not among them, each cloud
       decides for itself. */
    struct pnet_ranges ranges;
    struct pnet_unit_choice unit; /* of the clouds' numbers, as in a data set */
    char *
        coordinates; /* the array of .npz and .h5 files that holds the coordinates; NULL: names decide */
};

/* Reads an `inputs:` block into the empty map; errors stick to `y`. */
void pnet_input_map_parse(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_input_map *m);
/* Takes over what a data set says of its files, and its classes, in copies. PNET_NO_MEMORY: `m` stays as it was. */
enum pnet_status pnet_input_map_adopt(struct pnet_input_map *m,
    const struct pnet_cloud_hints *hints, char *const *classes, int class_count,
    struct pnet_error *e);
/* Takes over which labels became classes, in a copy: raw[count], ascending, and the class of each, below 0 for those that are
   ignored. PNET_NO_MEMORY: `m` stays as it was. */
enum pnet_status pnet_input_map_adopt_labels(struct pnet_input_map *m, const int64_t *raw,
    const int32_t *raw_class, int count, struct pnet_error *e);
/* Writes the map as YAML with the keys `inputs`, `columns`, `classes`, `labels`, `origin`, `frame`, `ranges`, `unit` and
   `coordinates`, which pnet_input_map_read reads from memory. The owner of the stream handles its errors. */
void pnet_input_map_print(const struct pnet_input_map *m, FILE *out);
enum pnet_status pnet_input_map_read(const char *name, const void *text, size_t size,
    struct pnet_input_map *m, struct pnet_error *e);
void pnet_input_map_free(struct pnet_input_map *m);

/* Checks that every source names an input and field of the model, with as many names as the field has channels, and that the
   model reads exactly one cloud, whose index is written to *input. PNET_USAGE. */
enum pnet_status pnet_input_map_check(const struct pnet_input_map *m,
    const struct pnet_input *inputs, int input_count, int *input, struct pnet_error *e);

/* The first half of pnet_input_map_check: the sources alone. */
enum pnet_status pnet_input_map_check_sources(const struct pnet_input_map *m,
    const struct pnet_input *inputs, int input_count, struct pnet_error *e);

/* Indices of the inputs of a model that a data set fills. */
struct pnet_input_roles {
    int source, target; /* the clouds; for single clouds the only one, and -1 */
    int pose;           /* -1: there is no pose, or no layer reads it */
};
/* As pnet_input_map_check, for a model of pairs: it must declare two clouds and read both. The first one declared is the
   source. sides[2] is what the two are called (pnet_task_sides): inputs with these names in the other order are an error. */
enum pnet_status pnet_input_map_check_pair(const struct pnet_input_map *m,
    const struct pnet_input *inputs, int input_count, const char *const *sides,
    struct pnet_input_roles *roles, struct pnet_error *e);

/* Tells whether the field is called rgb, color or colour, and has three channels. */
bool pnet_input_is_colour(const struct pnet_input_field *f);

/* Gives the map's column names to the fields c3, c4 ... of a cloud without names. A cloud without fields, or with names of
   its own, is not changed. PNET_BAD_DATA if it has fewer columns than there are names. */
enum pnet_status pnet_cloud_name_columns(char *const *columns, int column_count,
    struct pnet_cloud *c, const char *path, struct pnet_error *e);

/* Fills a feature field: out[rows * width], or out[width] for a field of the cloud. PNET_BAD_DATA if the cloud lacks a
   field; the message lists its fields and how to map them. */
enum pnet_status pnet_input_map_feature(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_input_field *field,
    const struct pnet_cloud *c, const char *path, float *out, struct pnet_error *e);
/* Adds the ranges of the numbers of a cloud that feed a field: of colours as they are in the file, of other features as the
   model reads them. Numbers that are not finite do not count. Adds nothing for coordinates, constants, fields that the model
   does not use, and if the cloud lacks a field. PNET_BAD_DATA: a colour is negative or larger than 65535. */
enum pnet_status pnet_input_map_range(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_input_field *field,
    const struct pnet_cloud *c, const char *path, struct pnet_ranges *r, struct pnet_error *e);
/* The same of one channel of the field and of a cloud that comes in pieces: widens `range`, which pnet_range_begin has made, by
   the piece `c`, whose first row is row `first` of the file. Once all pieces have been seen, a range of which least <= most is
   one that pnet_input_map_range adds; it adds those of all channels in order, up to the first error. */
enum pnet_status pnet_input_map_channel_range(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_input_field *field, int channel,
    const struct pnet_cloud *c, int64_t first, const char *path, struct pnet_range *range,
    struct pnet_error *e);
/* Adds those of all fields of an input. */
enum pnet_status pnet_input_map_ranges(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_cloud *c, const char *path,
    struct pnet_ranges *r, struct pnet_error *e);
enum { PNET_OUTSIDE_TEXT = 600 }; /* of the following two */
/* Writes "PATH: heat reaches from 0 to 255, ...", if a feature of the cloud with the ranges `r` lies clearly outside of the range
   that the training has seen (pnet_range_is_outside), else "". */
void pnet_input_map_outside(const struct pnet_input_map *m, const struct pnet_ranges *r,
    const char *path, char text[PNET_OUTSIDE_TEXT]);
/* Writes "PATH: the colours reach 200 and alone would be divided by 255; ...", if the colours of the cloud are divided by a
   larger number than those of this cloud alone would be, else "". */
void pnet_input_map_alone(const struct pnet_input_map *m, const struct pnet_ranges *r,
    const char *path, char text[PNET_OUTSIDE_TEXT]);
/* Tells whether colours of this field are divided as range.h says where they come from fields of the cloud. */
bool pnet_input_map_divides(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field);
/* Finds the kinds of the three channels of a colour, PNET_RANGE_FED for coordinates. Returns false if the cloud lacks one. */
bool pnet_input_map_kinds(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field, const struct pnet_cloud *c,
    enum pnet_range_kind kinds[3]);
/* Tells whether all channels of a feature come from the coordinates. */
bool pnet_input_map_is_placed(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field, const struct pnet_cloud *c);
/* Finds the cloud's field to which a class field is mapped; *name is NULL if it takes the data set's labels. */
void pnet_input_map_class(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field, const char **name);

#endif
