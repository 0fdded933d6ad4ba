#include "runtime/plan/reserved.h"

#include <string.h>

const char *const pnet_reserved_names[] = {
    "best",                                                 /* state.json */
    "loss", "time_s",                                       /* metrics.jsonl */
    "epoch", "step", "lr", "gradient_norm", "points_per_s", /* its lines of steps */
    "samples", "points", "seconds", "compute_seconds",      /* what `pnetc eval --json` prints */
};
const int pnet_reserved_count = sizeof pnet_reserved_names / sizeof pnet_reserved_names[0];

bool pnet_name_is_reserved(const char *name)
{
    for (int i = 0; i < pnet_reserved_count; i++)
        if (strcmp(name, pnet_reserved_names[i]) == 0) return true;
    return false;
}
