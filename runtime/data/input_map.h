/* How the fields of clouds feed the inputs of a model. The run config says it, the checkpoint keeps
   it.

     inputs:
       cloud:
         rgb: {field: [red, green, blue], scale: 1/255, shift: 0}  # value * scale + shift
         height: z          # one field; x y z are the coordinates, z_above_lowest is the height above
                            # the lowest points of the cloud (lowest.h)
         bias: {value: 1}   # the same number on every point
         label: label       # classes: a field of integers

   A feature that is not listed takes, in this order: the field of its own name (width 1); for
   `rgb`, `color` and `colour` of width 3 red green blue, else r g b; for `normal` of width 3 nx ny
   nz, else normal_x normal_y normal_z; the fields name_0, name_1 ... Colours found that way are
   divided by the largest value of their type (u8: 255); colours of a float type are taken as they
   are and must not exceed 1. x, y and z are the coordinates as loaded (file coordinates less the
   origin of the data set, or the cloud's own offset), before augmentation; a field of the cloud
   called so comes first. Class fields that are not listed, or listed as `label`,
   take the labels of the data set. */
#ifndef PNET_RUNTIME_INPUT_MAP_H
#define PNET_RUNTIME_INPUT_MAP_H

#include "runtime/data/origin.h"
#include "runtime/io/cloud.h"
#include "runtime/base/error.h"
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
    bool colour; /* scaled by the type of the field, as colours found by name are */
};

/* Zeroed: empty, so the rules above apply to every field. */
struct pnet_input_map {
    struct pnet_input_source *sources;
    int count;
    char **columns; /* names for nameless columns of clouds, as in a data set */
    int column_count;
    char **classes; /* names of the classes, for output */
    int class_count;
    struct pnet_origin origin; /* of the data set */
    struct pnet_frame frame;   /* of the clouds that were trained on (doubt.h) */
};

/* Reads an `inputs:` block into the empty map; errors stick to `y`. */
void pnet_input_map_parse(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_input_map *m);
/* Replaces the columns and classes by copies of the given ones. PNET_NO_MEMORY. */
enum pnet_status pnet_input_map_adopt(struct pnet_input_map *m, char *const *columns,
    int column_count, char *const *classes, int class_count, struct pnet_error *e);
/* Writes the map as YAML with the keys `inputs`, `columns`, `classes`, `origin` and `frame`, which pnet_input_map_read reads
   from memory. The owner of the stream handles its errors. */
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
/* Finds the cloud's field to which a class field is mapped; *name is NULL if it takes the data set's labels. */
void pnet_input_map_class(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field, const char **name);

#endif
