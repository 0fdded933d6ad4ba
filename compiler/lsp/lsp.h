/* A language server for .pnet files: the Language Server Protocol 3.17, https://microsoft.github.io/language-server-protocol. */
#ifndef PNET_COMPILER_LSP_LSP_H
#define PNET_COMPILER_LSP_LSP_H

#include "runtime/base/error.h"

#include <stdio.h>

/* Answers the messages of `in` on `out` until the client ends the session or the stream. PNET_OK: after a shutdown. PNET_FAILED:
   the stream ended without one, or cannot be followed, which was answered. PNET_NO_MEMORY. Only files that documents include
   are read; nothing is written but `out`. */
enum pnet_status pnet_lsp_serve(FILE *in, FILE *out, struct pnet_error *e);

#endif
