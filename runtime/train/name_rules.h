/* Patterns for names of weights: `freeze`, `rates` and `weights_map` of a run config. */
#ifndef PNET_RUNTIME_NAME_RULES_H
#define PNET_RUNTIME_NAME_RULES_H

#include "runtime/base/yaml.h"

struct pnet_name_rule {
    char *pattern;
    char *to;    /* of a map: the replacement; else NULL */
    double rate; /* of rates */
};

/* In the order of the file. Zeroed: no rules. Owns its texts. */
struct pnet_name_rules {
    struct pnet_name_rule *items; /* [count] */
    int count;
};

/* The first letter of a TO that was guessed and is not confirmed yet. No name of pnet begins with it. */
enum { PNET_NAME_GUESS = '?' };

/* Read [PATTERN, ...], {PATTERN: FACTOR, ...} and {FROM: TO, ...}; errors stick to `y`. A map with a guess is an error that lists
   the guesses. */
void pnet_name_rules_list(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r);
void pnet_name_rules_rates(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r);
void pnet_name_rules_map(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r);
void pnet_name_rules_free(struct pnet_name_rules *r);

/* A pattern is a name, the first words of a name ("net.a" matches "net.a.conv.weight"), or contains * for any letters. */
bool pnet_name_matches(const char *pattern, const char *name);
/* Applies one rule of a map to a name that its pattern matches: the rule replaces the words of the pattern; if both sides have a
   *, the text that the * of the pattern matches replaces the other *. `backwards`: with its sides exchanged. Returns NULL if the
   pattern does not match the name, and if memory is out; then *failed is set. The caller frees the result. */
char *pnet_name_rule_apply(
    const struct pnet_name_rule *rule, bool backwards, const char *name, bool *failed);

#endif
