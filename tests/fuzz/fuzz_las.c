/* LAS from any bytes, written again, and in pieces. */
#include "tests/fuzz/las.h"
#include "tests/fuzz/pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_las("f.las", data, size);
    fuzz_pieces(".las", data, size);
    return 0;
}
