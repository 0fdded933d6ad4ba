/* Reading the entries of data sets of pairs, for registration and completion: what both need. Private to
   runtime/data/dataset_*.c. */
#ifndef PNET_RUNTIME_DATASET_LISTING_H
#define PNET_RUNTIME_DATASET_LISTING_H

#include "runtime/data/dataset_index.h"

/* An entry while it is read, and the pairs that it has listed so far. */
struct pnet_listing {
    struct pnet_index *r;
    const struct pnet_yaml_node *n;
    enum pnet_split split;
    struct pnet_index_share share;
    struct pnet_pair common; /* what every pair of the entry gets: its pose, views and partial */
    int32_t label;           /* of every pair */
    int64_t number;          /* of the next pair */
    bool skip;               /* leave out pairs whose files are missing */
};

/* Begins with an identity pose, no views, no partial and no label. */
struct pnet_listing pnet_listing_begin(
    struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s);
/* Adds an entry with copies of the names; `target` NULL: the pair is made from one file, as number `view` of its views. */
void pnet_listing_add(struct pnet_listing *l, const char *source, const char *target, int64_t view);
/* Adds an entry of row `row` of the array, in the file `path`, and of the row of the array in l->common. */
void pnet_listing_add_row(struct pnet_listing *l, const char *path, int array, int64_t row);
/* Lists one pair of files. It counts for keep_every and drop_every even if its files are missing and it is left out. Returns
   whether it was added. */
bool pnet_listing_pair(struct pnet_listing *l, const char *source, const char *target);
/* Lists `count` pairs made from each file that `name`, a file or a pattern, stands for. */
void pnet_listing_views(struct pnet_listing *l, const char *name, int64_t count);

/* The keys of one kind of entry; the first key identifies the kind. */
enum { PNET_KIND_KEYS = 8 };
struct pnet_entry_kind {
    const char *keys[PNET_KIND_KEYS];
};
/* Returns the kind of an entry. Returns -1, with an error: it has the first key of no kind (the message is `expected`), or a
   key that its kind does not know. */
int pnet_entry_find_kind(struct pnet_index *r, const struct pnet_yaml_node *n,
    const struct pnet_entry_kind *kinds, int kind_count, const char *expected);

/* Returns the path of a file seen from the index's folder. NULL, with an error: the file does not exist, or memory is out. */
char *pnet_index_find_file(struct pnet_index *r, const struct pnet_yaml_node *n, const char *name);
/* Returns the text of a required key; `with` is the key that requires it. */
const char *pnet_index_need(
    struct pnet_index *r, const struct pnet_yaml_node *n, const char *key, const char *with);

#endif
