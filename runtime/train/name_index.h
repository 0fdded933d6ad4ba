/* Which patterns of a weights_map match a name, found without walking them. */
#ifndef PNET_RUNTIME_NAME_INDEX_H
#define PNET_RUNTIME_NAME_INDEX_H

#include "runtime/base/name_table.h"
#include "runtime/train/name_rules.h"

/* Refers to the patterns. Zeroed: no patterns. */
struct pnet_name_index {
    struct pnet_name_table words, stars; /* the first rule of each pattern without and with a * */
    int *next;                           /* [rules] the next rule of the same pattern; -1: none */
    struct pnet_star_shape {
        size_t head, tail; /* letters before and after the * */
    } * shapes;            /* [shape_count] those that patterns with a * have, each once */
    size_t shape_count;
};

/* Finds rules by what they replace, or (`backwards`) by what they replace it with. False: memory is out, and there is nothing to
   free. */
bool pnet_name_index_new(
    const struct pnet_name_rules *r, bool backwards, struct pnet_name_index *x);
void pnet_name_index_free(struct pnet_name_index *x);
/* Sets *rules to the numbers of the rules that match the name, [*count] in ascending order; the caller frees it. False: memory is
   out. */
bool pnet_name_index_find(
    const struct pnet_name_index *x, const char *name, int **rules, int *count);

/* Returns the name after the first rule of the map that matches it, or the name itself. `x` is the index of the map, not
   backwards. The caller frees the result; NULL: memory is out. */
char *pnet_name_map(
    const struct pnet_name_rules *map, const struct pnet_name_index *x, const char *name);

#endif
