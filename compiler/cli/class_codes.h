/* Classes of a model as the codes of LAS: the option --classification. */
#ifndef PNET_COMPILER_CLI_CLASS_CODES_H
#define PNET_COMPILER_CLI_CLASS_CODES_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"

#include <stdint.h>

struct class_codes {
    int *code; /* [classes], 0 to 255; -1: points of the class keep the code that they have */
    int count;
};

/* Parses "asprs", which takes the codes that ASPRS gives to classes of these names, or CLASS=CODE,CLASS=CODE ... CLASS is a
   name, or a number from 0; CODE is a number or a name of ASPRS. names[name_count] are those of the first classes, of `count`
   classes. PNET_USAGE: an unknown class or code, a class twice, no class of ASPRS; the message lists those that there are. The
   caller frees `codes` with pnet_cli_free_codes. */
enum pnet_status pnet_cli_parse_codes(const char *text, char *const *names, int name_count,
    int count, struct class_codes *codes, struct pnet_error *e);
void pnet_cli_free_codes(struct class_codes *codes);

/* Tells, in one line, which classes have no code. */
void pnet_cli_say_codes(const struct class_codes *codes, char *const *names, int name_count);

/* Writes the codes of the classes into the field `classification` of a cloud with all rows of its file; the field keeps its
   type. Where there is none it is made, of 1, unclassified. Points without a code keep that of the field. result and row_of: as
   pnet_cli_add_classes has them. PNET_NO_MEMORY; PNET_BAD_DATA: the type of the field does not hold a code. */
enum pnet_status pnet_cli_add_codes(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, const struct class_codes *codes, const char *path, struct pnet_error *e);

#endif
