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

/* A pattern is a name, the first words of one ("net.a" is that of "net.a.conv.weight"), or has * for any letters. */
bool pnet_name_matches(const char *pattern, const char *name);
/* The name after the first rule of the map that fits: the words it begins with are replaced, or, where both sides have
   one *, what stands for it is put into the other. As it is where none fits. To be freed; NULL: out of memory. */
char *pnet_name_map(const struct pnet_name_rules *map, const char *name);

#endif
