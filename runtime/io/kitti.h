/* Labels of a scan in a file of their own, as SemanticKITTI keeps them (Behley et al., 2019): one uint32 a point, little
   endian, the class in the low 16 bits, the instance in the high ones. */
#ifndef PNET_RUNTIME_IO_KITTI_H
#define PNET_RUNTIME_IO_KITTI_H

#include "runtime/base/error.h"

#include <stdint.h>

/* Fills out[expected] with classes and instances as in the file; one label for each point in the scan's file
   (pnet_cloud.file_rows). PNET_BAD_DATA: the file has another number of labels; PNET_FAILED: it cannot be read. */
enum pnet_status pnet_labels_read(
    const char *path, int64_t expected, uint32_t *out, struct pnet_error *e);
/* The same of labels as nuScenes-lidarseg keeps them: one byte a point, the class. */
enum pnet_status pnet_labels_read_bytes(
    const char *path, int64_t expected, uint8_t *out, struct pnet_error *e);

#endif
