/* Meshes from any bytes, with points drawn from those that have a surface. */
#include "tests/fuzz/mesh.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_mesh("f.off", data, size);
    fuzz_mesh("f.obj", data, size);
    return 0;
}
