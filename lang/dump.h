/* Writes the syntax tree as text, for tests and for reading. */
#ifndef PNET_LANG_DUMP_H
#define PNET_LANG_DUMP_H

#include "lang/ast.h"

#include <stdio.h>

/* Writes the tree as nested lists, one item or statement a line. Two files have the same tree if the texts are the same. With
   `s`, each line begins with line:column of its place. */
void pnet_ast_dump(FILE *out, const struct pnet_file *file, const struct pnet_sources *s);
/* Writes one expression, without a line end. */
void pnet_expr_dump(FILE *out, const struct pnet_expr *e);

#endif
