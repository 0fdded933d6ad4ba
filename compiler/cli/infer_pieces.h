/* infer --tile on clouds larger than memory: read and written in pieces, computed tile by tile from files. */
#ifndef PNET_CLI_INFER_PIECES_H
#define PNET_CLI_INFER_PIECES_H

#include "compiler/cli/inference.h"

/* Computes the result of the points of a file tile by tile, and writes it to `output`; *done is false, with nothing done, where
   the file or the options need the whole cloud in memory: a notice says so of a file. Points, results and what is done lie in
   the folder OUTPUT.tiles until the output is written; the same command goes on with the tiles that are done there. The result
   is that of the whole cloud, byte for byte. Errors are those of reading, computing and writing clouds; PNET_INTERRUPTED. */
enum pnet_status pnet_cli_infer_pieces(
    struct inference *f, const char *input, const char *output, bool *done, struct pnet_error *e);

#endif
