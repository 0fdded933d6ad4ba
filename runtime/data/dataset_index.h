/* Reading an index: functions that all kinds of entries share. Private to runtime/data/dataset_*.c. */
#ifndef PNET_RUNTIME_DATASET_INDEX_H
#define PNET_RUNTIME_DATASET_INDEX_H

#include "runtime/data/dataset.h"
#include "runtime/data/dataset_array.h"
#include "runtime/base/name_table.h"
#include "runtime/base/yaml.h"

struct pnet_index {
    struct pnet_dataset *d;
    struct pnet_yaml *y; /* errors stick to it */
    char *folder;        /* folder of the index */
    int64_t room[PNET_SPLITS];
    struct pnet_name_table classes; /* the classes by their names */
    struct pnet_name_table arrays;  /* d->arrays by what their entries say of them */
    char **array_keys;              /* [d->array_count] the names in that table */
    int array_room;                 /* of d->arrays and array_keys */
};

/* Passes an error without a line on to the document. */
void pnet_index_fail(struct pnet_index *r, const struct pnet_yaml_node *at, enum pnet_status status,
    const struct pnet_error *e);
/* Returns a copy of the text; NULL: out of memory, which sticks. */
char *pnet_index_copy(struct pnet_index *r, const char *text);
/* Tells whether a file can be read; reports an error if not. */
bool pnet_index_is_file(struct pnet_index *r, const struct pnet_yaml_node *at, const char *path);
/* Adds an entry and takes over what it owns, also on failure. */
void pnet_index_add(struct pnet_index *r, enum pnet_split s, struct pnet_entry entry);
void pnet_entry_free(struct pnet_entry *entry);

/* The values of keep_every and drop_every, which split the list of an entry. */
struct pnet_index_share {
    int64_t keep, drop;
};
struct pnet_index_share pnet_index_share(struct pnet_index *r, const struct pnet_yaml_node *n);
/* Tells whether number i of the list belongs to the split. */
bool pnet_index_takes(const struct pnet_index_share *s, int64_t i);

/* Reads the label of an entry: the name of a class, or a raw label. */
int32_t pnet_index_label(struct pnet_index *r, const struct pnet_yaml_node *n);

/* What an entry says of an array of many clouds. */
struct pnet_index_array {
    const char *points; /* its name in an archive, or NULL */
    enum pnet_array_kind kind;
    double cell_m;
};
/* Reads the array, unless an entry before did. `labels`: an array of the same archive, or a path; NULL: none. Returns the index
   into d->arrays; -1, with an error: it cannot be read. */
int pnet_index_array(struct pnet_index *r, const struct pnet_yaml_node *n,
    const struct pnet_index_array *a, const char *path, const char *labels);
/* Returns the class of a row of an array with one label a cloud; PNET_LABEL_NONE: it has no labels. */
int32_t pnet_index_row_label(struct pnet_index *r, const struct pnet_yaml_node *n,
    const struct pnet_array *a, const char *path, int64_t row);

/* Reads an entry of a registration data set; in dataset_pairs.c. */
void pnet_index_pairs(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s);
/* Reads an entry of a completion data set; in dataset_completion.c. */
void pnet_index_completion(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s);

#endif
