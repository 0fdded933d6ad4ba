/* A checked reader of YAML, on the parser of libyaml: a tree of nodes with their line numbers, and typed getters. The first
   error sticks to the document: later getters return their default, and the reader of a file calls pnet_yaml_end() once.
   Messages begin with "file:line: ". Anchors and aliases, tags, several documents, and keys that are not plain words are
   refused. Duplicate keys are errors. */
#ifndef PNET_RUNTIME_YAML_H
#define PNET_RUNTIME_YAML_H

#include "runtime/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    PNET_YAML_MAX_BYTES = 64 << 20,
    PNET_YAML_MAX_NESTING = 32,
};

enum pnet_yaml_kind {
    PNET_YAML_NULL, /* empty, ~ or null */
    PNET_YAML_SCALAR,
    PNET_YAML_LIST,
    PNET_YAML_MAP,
};

struct pnet_yaml_node {
    enum pnet_yaml_kind kind;
    uint32_t line;
    int64_t count;               /* LIST, MAP: children */
    struct pnet_yaml_node *next; /* in its parent, in the order of the file */
    struct pnet_yaml_node *first;
    const char *key;  /* of a child of a MAP */
    const char *text; /* SCALAR: NUL-terminated UTF-8, as written, without quotes */
};

struct pnet_yaml;

/* Parses a document; `bad` is the status of everything that is wrong in it (PNET_USAGE for run
   configs, PNET_BAD_DATA for data sets). `name` stands in messages. On failure *y is NULL. */
enum pnet_status pnet_yaml_parse(const char *name, const void *text, size_t size,
    enum pnet_status bad, struct pnet_yaml **y, struct pnet_error *e);
/* Does the same with a file; PNET_FAILED if it cannot be read. */
enum pnet_status pnet_yaml_read(
    const char *path, enum pnet_status bad, struct pnet_yaml **y, struct pnet_error *e);
void pnet_yaml_free(struct pnet_yaml *y);

/* Returns the root, which lives as long as the document. An empty document is a NULL node. */
const struct pnet_yaml_node *pnet_yaml_root(const struct pnet_yaml *y);

/* Returns PNET_OK, or the status of the first error, which is copied to `e`. */
enum pnet_status pnet_yaml_end(const struct pnet_yaml *y, struct pnet_error *e);
/* Records an error at a node, unless there is an earlier one. */
void pnet_yaml_fail(struct pnet_yaml *y, const struct pnet_yaml_node *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Records that memory is out. */
void pnet_yaml_fail_memory(struct pnet_yaml *y);
/* Tells whether there is no error so far. */
bool pnet_yaml_ok(const struct pnet_yaml *y);

/* Returns the child of that key; NULL if the map is NULL, is not a map, or lacks the key. */
const struct pnet_yaml_node *pnet_yaml_get(const struct pnet_yaml_node *map, const char *key);
/* Checks that `n` is a map and that every key is one of `known`; an error names the nearest one.
   `what` is the map in messages: "augment". */
bool pnet_yaml_map(struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *what,
    const char *const *known, int known_count);
/* Checks that `n` is a list of at least `min` and at most `max` items. */
bool pnet_yaml_list(struct pnet_yaml *y, const struct pnet_yaml_node *n, int64_t min, int64_t max);

/* Getters. If `n` is NULL (the key is missing) they return `standard`. A value of another type or out of [min, max] is an
   error; then they return `standard` too. */
const char *pnet_yaml_string(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *standard);
int64_t pnet_yaml_int(struct pnet_yaml *y, const struct pnet_yaml_node *n, int64_t min, int64_t max,
    int64_t standard);
uint64_t pnet_yaml_seed(struct pnet_yaml *y, const struct pnet_yaml_node *n, uint64_t standard);
/* 0.5, 1e-3, 50% (the fraction) or 1/255. */
double pnet_yaml_real(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double min, double max, double standard);
/* Metres: 0.05, or with a unit, mm cm m km. */
double pnet_yaml_length(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double min, double max, double standard);
/* The same, but a number without a unit, except 0, is an error whose message says what to write. */
double pnet_yaml_unit_length(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double min, double max, double standard);
/* Degrees: 30, 30deg or 0.5rad. */
double pnet_yaml_degrees(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double min, double max, double standard);
/* Bytes: 1000000, 512MiB, 2GiB; KiB MiB GiB TiB count in 1024, kB MB GB TB in 1000. */
uint64_t pnet_yaml_bytes(struct pnet_yaml *y, const struct pnet_yaml_node *n, uint64_t standard);
/* yes, no, true or false. */
bool pnet_yaml_bool(struct pnet_yaml *y, const struct pnet_yaml_node *n, bool standard);
/* Returns the index of the scalar in the list of words. */
int pnet_yaml_choice(struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *const *words,
    int word_count, int standard);

/* Writes a node as YAML on one line, which reads as the same node. The owner of the stream handles its errors. */
void pnet_yaml_put(const struct pnet_yaml_node *n, FILE *out);
/* Writes a word, in quotes if it needs them. */
void pnet_yaml_put_word(const char *text, FILE *out);
/* Writes a word as a key of a map in braces, with its colon. Keys of more than 1024 characters get the mark that YAML
   requires. */
void pnet_yaml_put_key(const char *text, FILE *out);

#endif
