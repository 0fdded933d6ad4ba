/* LZF, the compression of binary_compressed PCD files (Marc Lehmann's LibLZF defines the format).
 */
#ifndef PNET_RUNTIME_IO_LZF_H
#define PNET_RUNTIME_IO_LZF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Three bytes expand to at most 264. */
enum { PNET_LZF_RATIO = 88 };

/* Fills `out` with exactly `out_size` bytes from all of `in`. Returns false if the data is damaged. */
bool pnet_lzf_unpack(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
