/* Any text as the state.json of a checkpoint. */
#include "runtime/train/checkpoint.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct pnet_checkpoint *c;
    struct pnet_error e;
    if (pnet_checkpoint_parse_state("input", (const char *)bytes, size, &c, &e) != PNET_OK) {
        if (c) abort();
        return 0;
    }
    if (strlen(c->state.model) + strlen(c->state.input_map) + strlen(c->state.kernels) > size)
        abort();
    for (size_t i = 0; i < c->state.metric_count; i++)
        if (!c->state.metrics[i].name) abort();
    pnet_checkpoint_free(c);
    return 0;
}
