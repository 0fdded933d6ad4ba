/* What an editor asks of a compilation with options.inspect. Everything belongs to the compilation. */
#ifndef PNET_COMPILER_INSPECT_H
#define PNET_COMPILER_INSPECT_H

#include "compiler/compile.h"
#include "lang/ast.h"
#include "lang/source.h"

/* The tree; of a text with syntax errors, what could be parsed. NULL where no file could be read. */
const struct pnet_file *pnet_compilation_tree(const struct pnet_compilation *c);
const struct pnet_sources *pnet_compilation_sources(const struct pnet_compilation *c);
/* Are there syntax errors? Then the tree lacks some of the text. */
bool pnet_compilation_torn(const struct pnet_compilation *c);
/* What was the name at `place`, the result of the call whose name stands there, or the value that a name there was given?
   "16@g[0] (5cm)"; several, where a loop or several uses ran it, joined by " | ". NULL: not known. */
const char *pnet_compilation_value(const struct pnet_compilation *c, struct pnet_span place);
/* The name of the input that this value was, NULL: it was none, or several. */
const char *pnet_compilation_cloud(const struct pnet_compilation *c, struct pnet_span place);

/* Functions of the language, beside the layers. */
struct pnet_builtin_info {
    const char *name;
    const char *synopsis; /* "grid(p, cells)" */
    const char *meaning;  /* half a sentence, no full stop */
};
/* NULL: there is none at that index. */
const struct pnet_builtin_info *pnet_builtin_info(int index);

#endif
