/* PCD from any bytes, and in pieces. */
#include "tests/fuzz/pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_reader readers[] = {
        {"f.pcd", pnet_pcd_read},
    };
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) fuzz_read(readers[i], data, size);
    fuzz_pieces(".pcd", data, size);
    return 0;
}
