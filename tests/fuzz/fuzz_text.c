/* The formats in text without a header of their own, from any bytes. */
#include "tests/fuzz/cloud.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_reader readers[] = {
        {"f.csv", pnet_table_read},
        {"f.pts", pnet_table_read},
        {"f.off", pnet_off_read},
        {"f.obj", pnet_obj_read},
    };
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) fuzz_read(readers[i], data, size);
    return 0;
}
