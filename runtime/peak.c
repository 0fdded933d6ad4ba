#include "runtime/peak.h"

#include "runtime/session.h"

struct pnet_peak pnet_peak_of(const struct pnet_plan *p, const struct pnet_counts *c,
    const struct pnet_layout *l, int slots, size_t extra)
{
    struct pnet_peak k = {.parameters = pnet_round_bytes((size_t)p->param_elements * sizeof(float)),
        .optimizer = pnet_round_bytes(extra),
        .geometry = pnet_slot_estimate(p, c),
        .slots = slots,
        .features = pnet_round_bytes(l->total),
        .session = p->device == PNET_CPU ? 0 : PNET_LIVE_BYTES};
    if (p->training) k.gradients = pnet_round_bytes((size_t)p->trained_elements * sizeof(float));
    k.total = k.parameters + k.gradients + k.optimizer + (size_t)slots * k.geometry.kept +
              k.geometry.shared + k.features + k.session;
    return k;
}
