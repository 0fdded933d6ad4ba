/* Value ranges of the fields of clouds that feed a model: what colours are divided by, and what values a training saw.

   Colours are the numbers that feed a field `rgb`, `color` or `colour` of three channels without a `scale`. They are divided
   once a source, which is a data set, or the files of one infer or register:

     uint8                                   255, always
     real numbers up to 1                    1: they stay as they are
     other numbers, the largest up to 255    255
     other numbers, the largest up to 65535  65535

   The three channels are decided together, whole numbers of more than 8 bits and real numbers apart. Text does not say how
   its numbers are stored, so all of them are real numbers. Negative numbers and larger ones are errors, which name `scale`. */
#ifndef PNET_RUNTIME_RANGE_H
#define PNET_RUNTIME_RANGE_H

#include "runtime/base/error.h"
#include "runtime/base/yaml.h"
#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What float32 makes of 1 at most, where colours were averaged or converted. */
#define PNET_RANGE_ONE 1.00001

/* Says what to do where a decision is not the wanted one. */
#define PNET_RANGE_REMEDY                                                                          \
    "`scale` in the run config (--config), or --map FIELD=A,B,C*SCALE of infer and register, "     \
    "says "                                                                                        \
    "otherwise"

/* What a range is of. */
enum pnet_range_kind {
    PNET_RANGE_BYTES,    /* colours in uint8 */
    PNET_RANGE_INTEGERS, /* colours in integers of other types */
    PNET_RANGE_REALS,    /* colours in real numbers, or in text */
    PNET_RANGE_FED, /* numbers as the model reads them, of fields that are no colours or have a scale of their own */
    PNET_RANGE_KINDS
};
extern const char *const pnet_range_kind_names[PNET_RANGE_KINDS]; /* uint8, integer, real, fed */

enum { PNET_RANGE_PLACE = 320 };

/* The clouds of a source that alone would be divided by a smaller number than the source is. */
struct pnet_range_alone {
    int64_t count;
    char first[PNET_RANGE_PLACE]; /* path of one of them, possibly cut */
};

struct pnet_range {
    char *field; /* of the model: rgb, intensity; owned */
    enum pnet_range_kind kind;
    double least,
        most; /* of colours the numbers in the files; bytes are not looked at, and have 0 and 255 */
    double divisor; /* of colours; 0 of PNET_RANGE_FED */
    char place
        [PNET_RANGE_PLACE]; /* where `most` stands, "FILE: row N: the colour red"; "": not known */
    struct pnet_range_alone alone[2]; /* would be divided by 1, by 255 */
};

/* Owns its items. Zeroed: empty. No two items have the same field and kind. */
struct pnet_ranges {
    struct pnet_range *items;
    int count;
};

/* Returns the range of no numbers; its name is not owned. */
struct pnet_range pnet_range_begin(const char *field);

void pnet_ranges_free(struct pnet_ranges *r);
/* Copies `r` to the empty `copy`. PNET_NO_MEMORY: that stays empty. */
enum pnet_status pnet_ranges_copy(
    const struct pnet_ranges *r, struct pnet_ranges *copy, struct pnet_error *e);
/* Returns the range of a field of the model, or NULL. */
const struct pnet_range *pnet_ranges_find(
    const struct pnet_ranges *r, const char *field, enum pnet_range_kind kind);
/* Tells whether there are ranges of colours. */
bool pnet_ranges_have_colours(const struct pnet_ranges *r);

/* Returns in which kind the numbers of a colour are counted. */
enum pnet_range_kind pnet_range_kind_of(const struct pnet_field *f);
/* Returns what colours of a kind are divided by if they reach from 0 to `most`, at most 65535. */
double pnet_range_divisor(enum pnet_range_kind kind, double most);

/* Widens the range of a field by `from`, and decides its divisor anew. PNET_NO_MEMORY: `r` stays as it was. */
enum pnet_status pnet_ranges_add(
    struct pnet_ranges *r, const struct pnet_range *from, struct pnet_error *e);
/* Widens `r` by the ranges of one cloud, and counts it where it would be divided by another number than others. */
enum pnet_status pnet_ranges_add_cloud(
    struct pnet_ranges *r, const struct pnet_ranges *cloud, const char *path, struct pnet_error *e);

/* Decides what the colours of a source are divided by, and adds the ranges of the source to `record`, those of a training or
   none. A number of the record counts: a source of the same kind is divided by it, unless its own numbers are larger, or are
   real and reach 1 at most. Calls `tell` with a line for each decision that differs from that of the training, and for the
   clouds that pnet_ranges_add_cloud has counted. `source` is emptied. PNET_BAD_DATA: the largest real number lies between 1
   and 2, which is no scale. */
enum pnet_status pnet_ranges_settle(struct pnet_ranges *record, struct pnet_ranges *source,
    void (*tell)(void *context, const char *text), void *context, struct pnet_error *e);

/* Writes "integers up to 65280, divided by 65535", of PNET_RANGE_FED "from 0 to 1". Returns `text`. */
const char *pnet_range_text(const struct pnet_range *r, char text[200]);
/* Tells whether numbers that the model reads lie clearly outside of a range that its training saw: they go beyond it by more
   than its width, or all of them are more than fifty times smaller than its largest one. */
bool pnet_range_is_outside(const struct pnet_range *trained, double least, double most);

/* Writes a list of YAML, `- {field: "rgb", type: integer, from: 0, to: 65280, divisor: 65535}`, each item after a line end;
   with `alone` also the clouds that differ. The owner of the stream handles its errors. */
void pnet_ranges_print(const struct pnet_ranges *r, bool alone, FILE *out);
/* Reads such a list into the empty `r`; errors stick to `y`. */
void pnet_ranges_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_ranges *r);

#endif
