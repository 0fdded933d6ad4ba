/* Files that are not read, but are recognised, so that a message can say what they are and how to convert them. */
#ifndef PNET_RUNTIME_IO_FOREIGN_H
#define PNET_RUNTIME_IO_FOREIGN_H

#include "runtime/base/file.h"

/* Returns what the file is and how to convert it, "an E57 file; ...", for a message; NULL: it is none of these. `path` gives the
   ending. */
const char *pnet_foreign(const struct pnet_bytes *b, const char *path);
/* The same of a PyTorch file, which may be a ZIP archive. */
extern const char pnet_foreign_torch[];

#endif
