/* Clouds that do not lie where those of the training lay, as a model reads them: its result is wrong there without a sign. The
   training records the frame of its clouds in the input map. */
#ifndef PNET_RUNTIME_DOUBT_H
#define PNET_RUNTIME_DOUBT_H

#include "runtime/base/yaml.h"
#include "runtime/data/input_map.h"
#include "runtime/plan/frame.h"
#include "runtime/plan/input.h"

#include <stdbool.h>
#include <stdio.h>

enum { PNET_DOUBT_TEXT = 400 };

/* Tells whether features or positions that the model computes with are coordinates: then the offset of a cloud matters. */
bool pnet_reads_coordinates(
    const struct pnet_input *inputs, int input_count, const struct pnet_input_map *m);

/* Write one sentence, or "". `name` is the cloud, or the data set that it belongs to; `others` those before, as "the training". A
   cloud of another offset than these: */
void pnet_doubt_offset(const struct pnet_frame *before, const char *others,
    const struct pnet_frame *cloud, const char *name, char text[PNET_DOUBT_TEXT]);
/* A cloud of another place or size: the middle of its box lies outside of the box of the training's clouds, or its longest edge
   is more than twice as long as that of their largest, or less than half as long as that of their smallest. */
void pnet_doubt_box(const struct pnet_frame *trained, const struct pnet_frame *cloud,
    const char *name, char text[PNET_DOUBT_TEXT]);

/* Writes `frame: {...}`, what is known of it, and reads its value; errors stick to `y`. The owner of the stream handles its
   errors. */
void pnet_frame_print(const struct pnet_frame *f, FILE *out);
void pnet_frame_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_frame *f);

#endif
