#include "runtime/peak.h"

#include <stdio.h>

struct pnet_peak pnet_peak_of(const struct pnet_plan *p, const struct pnet_counts *c,
    const struct pnet_layout *l, int slots, size_t extra)
{
    struct pnet_peak k = {.parameters = pnet_round_bytes((size_t)p->param_elements * sizeof(float)),
        .optimizer = pnet_round_bytes(extra),
        .geometry = pnet_slot_estimate(p, c),
        .slots = slots,
        .features = pnet_round_bytes(l->total)};
    if (p->training) k.gradients = pnet_round_bytes((size_t)p->trained_elements * sizeof(float));
    k.total = k.parameters + k.gradients + k.optimizer + (size_t)slots * k.geometry + k.features;
    return k;
}

size_t pnet_memory_available(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
    if (f) fclose(f);
    return (size_t)kib << 10;
}
