/* Raw labels of a data set: their classes, and errors about those that have none. */
#ifndef PNET_RUNTIME_DATASET_LABELS_H
#define PNET_RUNTIME_DATASET_LABELS_H

#include "runtime/data/dataset.h"

/* Raw labels of a cloud or of several, among which a label without a class is judged. */
struct pnet_raw_labels {
    const struct pnet_field *field;
    int64_t begin, count; /* entries of `field` */
    const char *path;     /* for messages */
    bool of_field;        /* they are `label_field` of the cloud */
};

/* Returns the class of a raw label, PNET_LABEL_IGNORED, or PNET_LABEL_NONE. NaN, the mark of points without a label in
   CloudCompare, is a label that is not listed: it follows `map_other`. Infinite and fractional labels have no class. */
int32_t pnet_dataset_class(const struct pnet_dataset *d, double raw);

/* Converts entry `at` (from begin on) to a class. PNET_BAD_DATA: it has none; the message names `row`, and what to write into
   the index. */
enum pnet_status pnet_labels_convert(const struct pnet_dataset *d, const struct pnet_raw_labels *l,
    int64_t at, int64_t row, int32_t *label, struct pnet_error *e);

#endif
