/* Patterns for names of weights: `freeze`, `rates` and `weights_map` of a run config. */
#ifndef PNET_RUNTIME_NAME_RULES_H
#define PNET_RUNTIME_NAME_RULES_H

#include "runtime/base/yaml.h"

struct pnet_name_rule {
    char *pattern;
    char *to;    /* of a map: what the name becomes; else NULL */
    double rate; /* of rates */
};

/* In the order of the file; zeroed: none. Owns its texts. */
struct pnet_name_rules {
    struct pnet_name_rule *items; /* [count] */
    int count;
};

/* [PATTERN, ...], {PATTERN: FACTOR, ...} and {FROM: TO, ...}; errors stick to `y`. */
void pnet_name_rules_list(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r);
void pnet_name_rules_rates(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r);
void pnet_name_rules_map(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r);
void pnet_name_rules_free(struct pnet_name_rules *r);

/* A pattern is a name, the first words of a name ("net.a" matches "net.a.conv.weight"), or contains * for any letters. */
bool pnet_name_matches(const char *pattern, const char *name);
/* The name as the first matching rule of the map changes it: the words of the pattern are replaced; if both sides have a *, the
   letters that the pattern's * matches replace the other's *. Without a matching rule the name is unchanged. The caller frees the
   result; NULL: out of memory. */
char *pnet_name_map(const struct pnet_name_rules *map, const char *name);

#endif
