/* report.html of a run: curves, final metrics, config and model in one file that needs no other. */
#ifndef PNET_RUNTIME_REPORT_H
#define PNET_RUNTIME_REPORT_H

#include "runtime/base/error.h"
#include "runtime/train/report_clouds.h"

#include <stddef.h>

struct pnet_report_fact {
    const char *name, *value; /* several lines, or "": left out */
};

/* Facts that are in none of the files. Zeroed: none. */
struct pnet_report_info {
    const struct pnet_report_fact *facts; /* [fact_count], in the order of the page */
    size_t fact_count;
    char *const *classes; /* [class_count] names, for values by class of that many classes */
    int class_count;
    const struct pnet_report_sample *samples; /* [sample_count] pictures of completion */
    size_t sample_count;
};

/* Reads FOLDER/metrics.jsonl and, where they are, config.yaml and model.pnet, and writes
   FOLDER/report.html atomically.

   Each line of metrics.jsonl is an object. Numbers under `loss`, `loss.NAME`, `val.NAME`, `lr` and
   any other key become curves over `step` (or over the lines, where there is none); null stands for
   a value that is not a number. `val.NAME.per_class` is an array, one number or null a class; the last array
   is shown. The losses share a plot; the only loss of a model is left out, because its curve equals `loss` or `val.loss`.
   `epoch` and `time_s` (seconds since the start of the training; it falls where another process resumed the training
   and counts from 0 again) are shown at the top. A line whose step is not beyond the line before it in a curve replaces that
   part of the curve: a resumed training wrote it again. An incomplete last line, of a training that is running or
   was killed, is left out.

   PNET_FAILED: metrics.jsonl cannot be read or the report not be written; PNET_BAD_DATA: a line is
   not what it should be, with its number. */
enum pnet_status pnet_report_write(
    const char *folder, const struct pnet_report_info *info, struct pnet_error *e);

#endif
