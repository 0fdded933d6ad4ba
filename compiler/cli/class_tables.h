/* Names and numbers of classes, as ASPRS and data sets define them. */
#ifndef PNET_COMPILER_CLI_CLASS_TABLES_H
#define PNET_COMPILER_CLI_CLASS_TABLES_H

#include <stddef.h>

struct class_row {
    const char *name; /* in lower case, with _ between words */
    int code;
};

struct class_table {
    const char *option; /* as --classification calls it */
    const char *title;
    const struct class_row *rows; /* then a row without a name */
    /* The first `ordered` rows are the classes in the order in which networks give them; the first of all stands for points
       without a class, which many networks leave out. 0: there is no order. */
    int ordered;
};

/* "asprs", "semantickitti" ... then NULL, for the option. */
extern const char *const pnet_cli_class_table_names[];
/* Returns the table of that option, or NULL. */
const struct class_table *pnet_cli_class_table(const char *option);
/* Returns the code of the class of that name, in upper or lower case, with _, - or blanks between words; -1: there is none. */
int pnet_cli_table_code(const struct class_table *t, const char *name, size_t length);

#endif
