/* LAS from any bytes, and written again. */
#include "tests/fuzz/las.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_las("f.las", data, size);
    return 0;
}
