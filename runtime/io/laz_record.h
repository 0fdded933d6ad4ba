/* The record of point formats 0 to 3, for the decoders of both versions of their items. */
#ifndef PNET_RUNTIME_IO_LAZ_RECORD_H
#define PNET_RUNTIME_IO_LAZ_RECORD_H

#include "runtime/io/laz_coder.h"

/* Offsets; the bits are those of returns, scan direction and edge. */
enum {
    X = 0,
    Y = 4,
    Z = 8,
    INTENSITY = 12,
    BITS = 14,
    CLASS,
    ANGLE,
    USER,
    SOURCE,
    POINT_SIZE = 20
};

/* Decodes a byte with the model that belongs to its last value. */
static inline void decode_byte(
    struct pnet_laz_decoder *d, struct pnet_laz_model *models, uint8_t *byte)
{
    *byte = (uint8_t)pnet_laz_symbol(d, &models[*byte], 256);
}

#endif
