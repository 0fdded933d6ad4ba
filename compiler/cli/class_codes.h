/* Classes of a model as codes of LAS, or as labels of a data set's files: the option --classification. */
#ifndef PNET_COMPILER_CLI_CLASS_CODES_H
#define PNET_COMPILER_CLI_CLASS_CODES_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

enum { PNET_CODE_MOST = 255, PNET_WORDS_MOST = 480 };

struct class_codes {
    int *code; /* [count], 0 to `most`; -1: points of the class keep the code that they have */
    int count;
    int most;
    bool labels; /* of a file of labels (label_file.h): a class without a code is written as 0 */
};

/* Parses the name of a table (class_tables.h), which takes the codes of classes of these names, or CLASS=CODE,CLASS=CODE ...
   CLASS is a name, or a number from 0; CODE is a number up to codes->most or, unless codes->labels, a name of ASPRS. Both of
   `codes` are set by the caller. names[name_count] are those of the first classes, of `count` classes; a table of ordered
   classes gives a model without names its classes by their number. `text` NULL: no class has a code. PNET_USAGE: an unknown
   class or code, a class twice, no class of the table; the message lists those that there are. The caller frees `codes` with
   pnet_cli_free_codes. */
enum pnet_status pnet_cli_parse_codes(const char *text, char *const *names, int name_count,
    int count, struct class_codes *codes, struct pnet_error *e);
void pnet_cli_free_codes(struct class_codes *codes);

/* Tells, in one line, which classes have no code. */
void pnet_cli_say_codes(const struct class_codes *codes, char *const *names, int name_count);

/* Adds a word to a list with commas; what does not fit is "...". */
void pnet_cli_add_word(char list[PNET_WORDS_MOST], const char *word);
/* Returns the name of a class, or its number, written into `number`. */
const char *pnet_cli_class_name(int class_, char *const *names, int name_count, char number[16]);

/* Checks, before the network runs, that the field `classification` holds every code: PNET_BAD_DATA if the type of that of the
   input does not, PNET_USAGE if `output` is LAS or LAZ with the point format of the input, 0 to 5, and a code is beyond 31. */
enum pnet_status pnet_cli_check_codes(const struct class_codes *codes, char *const *names,
    int name_count, const struct pnet_cloud *c, const char *input, const char *output,
    struct pnet_error *e);
/* Writes the codes of the classes into the field `classification` of a cloud with all rows of its file, which
   pnet_cli_check_codes has checked; the field keeps its type. Where there is none it is made, of 1, unclassified. Points
   without a code keep that of the field. result and row_of: as pnet_cli_add_classes has them. PNET_NO_MEMORY. */
enum pnet_status pnet_cli_add_codes(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, const struct class_codes *codes, struct pnet_error *e);

#endif
