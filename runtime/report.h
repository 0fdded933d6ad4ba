/* report.html of a run: curves, final metrics, config and model in one file that needs no other. */
#ifndef PNET_RUNTIME_REPORT_H
#define PNET_RUNTIME_REPORT_H

#include "runtime/error.h"

/* Reads FOLDER/metrics.jsonl and, where they are, config.yaml and model.pnet, and writes
   FOLDER/report.html atomically.

   Each line of metrics.jsonl is an object. Numbers under `loss`, `loss.NAME`, `val.NAME`, `lr` and
   any other key become curves over `step` (or over the lines, where there is none); null stands for
   what is not a number. `val.NAME.per_class` is an array, one number or null a class; the last one
   is shown. `epoch` and `time_s` (seconds of the line) are summed up at the top. A line whose step
   is not beyond the one before it in a curve replaces that part of the curve: a resumed training
   has written it again. A last line without its end, of a training that goes on or was killed, is
   left out.

   PNET_FAILED: metrics.jsonl cannot be read or the report not be written; PNET_BAD_DATA: a line is
   not what it should be, with its number. */
enum pnet_status pnet_report_write(const char *folder, struct pnet_error *e);

#endif
