/* Any text as the index of a data set in a folder without files. */
#include "runtime/data/dataset.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pnet_dataset *d;
    struct pnet_error e;
    /* Paths would lead out of the folder, and patterns over the whole disk. */
    if (memchr(data, '/', size)) return 0;
    if (pnet_dataset_parse("/nowhere/dataset.yaml", data, size, &d, &e) != PNET_OK) {
        if (d || !e.message[0]) abort();
        return 0;
    }
    for (int i = 1; i < d->map_count; i++)
        if (d->raw[i] <= d->raw[i - 1]) abort();
    for (int i = 0; i < d->map_count; i++) {
        int32_t label = pnet_dataset_label(d, d->raw[i]);
        if (label != d->raw_class[i] || label >= d->class_count) abort();
    }
    pnet_dataset_free(d);
    return 0;
}
