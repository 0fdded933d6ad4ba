/* The entropy decoder of LAZ: an arithmetic decoder with adaptive models (A. Said, "Introduction to Arithmetic Coding", HP
   Laboratories, HPL-2004-76), and integers as corrections of predictions (M. Isenburg, "LASzip: lossless compression of LiDAR
   data", PE&RS 79(2), 2013). Constants are those of LASzip and laz-perf, which define the format. All arithmetic wraps. */
#ifndef PNET_RUNTIME_IO_LAZ_CODER_H
#define PNET_RUNTIME_IO_LAZ_CODER_H

#include <stdbool.h>
#include <stdint.h>

/* What the decoders of a file share. A model begins anew where the epoch is not the one that it has seen: every chunk gets
   another epoch, never 0. The state is damaged where bytes are missing, or cannot have been written by an encoder, or where
   memory is out: values are arbitrary from there on. */
struct pnet_laz_state {
    uint32_t epoch;
    bool damaged, no_memory;
    struct pnet_laz_block *blocks; /* memory of models */
};

struct pnet_laz_decoder {
    struct pnet_laz_state *state;
    const uint8_t *at, *end; /* never read beyond the end: zeros follow, and the state is damaged */
    uint32_t value, length;
};

enum { PNET_LAZ_CONTEXTS_MOST = 22 };

struct pnet_laz_symbol_state {
    uint16_t start; /* sum of the probabilities of the symbols before, in 2^-15 */
    uint16_t count;
};

/* Models are valid as zeros. */
struct pnet_laz_model {
    uint32_t epoch, total, cycle, left;    /* symbols until the next update: left of a cycle */
    struct pnet_laz_symbol_state *symbols; /* of the state; NULL before the first one */
};

struct pnet_laz_bit_model {
    uint32_t epoch, total, zeros, cycle, left;
    uint32_t chance; /* probability of 0, in 2^-13 */
};

struct pnet_laz_integer {
    unsigned k; /* significant bits of the last correction */
    struct pnet_laz_model bits[PNET_LAZ_CONTEXTS_MOST];
    struct pnet_laz_bit_model small;
    struct pnet_laz_model correction[32]; /* of k bits; none at 0 */
};

/* Frees the memory of all models, which are not used again. */
void pnet_laz_state_free(struct pnet_laz_state *state);
/* Begins a stream. */
void pnet_laz_begin(struct pnet_laz_decoder *d, struct pnet_laz_state *state, const uint8_t *at,
    const uint8_t *end);
/* Returns the next symbol, less than `symbols`, which is the same in all calls for a model. */
unsigned pnet_laz_symbol(struct pnet_laz_decoder *d, struct pnet_laz_model *m, unsigned symbols);
/* Returns the next `count` bits, 1 to 32, all equally likely. */
uint32_t pnet_laz_bits(struct pnet_laz_decoder *d, unsigned count);
/* Returns the next integer of `bits` bits (8, 16 or 32), coded as a correction of `prediction`. */
uint32_t pnet_laz_integer(struct pnet_laz_decoder *d, struct pnet_laz_integer *i, unsigned bits,
    unsigned context, uint32_t prediction);
/* The same with a context of the caller: a model for numbers of bits. */
uint32_t pnet_laz_integer_by(struct pnet_laz_decoder *d, struct pnet_laz_integer *i, unsigned bits,
    struct pnet_laz_model *context, uint32_t prediction);

#endif
