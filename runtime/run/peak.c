#include "runtime/run/peak.h"

#include "runtime/run/runner.h"

struct pnet_peak pnet_peak_of(const struct pnet_bound *b, const struct pnet_counts *c,
    const struct pnet_layout *l, int slots, size_t extra)
{
    const struct pnet_plan *p = b->plan;
    struct pnet_peak k = {.parameters = pnet_round_bytes((size_t)p->param_elements * sizeof(float)),
        .optimizer = pnet_round_bytes(extra),
        .geometry = pnet_slot_estimate(b, c),
        .slots = slots,
        .features = pnet_round_bytes(l->total),
        .runner = b->device == PNET_CPU ? 0 : PNET_LIVE_BYTES};
    if (slots == 1) { /* the arena is the scratch of the geometry */
        k.geometry.shared = k.geometry.passing;
        if (k.geometry.scratch > k.features) k.features = k.geometry.scratch;
    }
    if (p->training) k.gradients = pnet_round_bytes((size_t)p->trained_elements * sizeof(float));
    k.total = k.parameters + k.gradients + k.optimizer + (size_t)slots * k.geometry.kept +
              k.geometry.shared + k.features + k.runner;
    return k;
}

/* A batch with more rows is refused when its geometry is built. */
static enum pnet_status check_rows(
    const struct pnet_plan *p, const struct pnet_counts *c, struct pnet_error *e)
{
    for (int l = 0; l < p->level_count; l++)
        if (c->rows[l] > PNET_MAX_ROWS)
            return pnet_error_set(e, PNET_BAD_DATA, "level '%s' has %lld rows: at most %d",
                p->levels[l].name, (long long)c->rows[l], PNET_MAX_ROWS);
    return PNET_OK;
}

enum pnet_status pnet_peak_plan(const struct pnet_bound *b, const struct pnet_counts *c, int slots,
    size_t extra, size_t limit, struct pnet_layout *l, struct pnet_peak *k, struct pnet_error *e)
{
    enum pnet_status rows = check_rows(b->plan, c, e);
    if (rows) return rows;
    for (int concurrent = b->device != PNET_CPU; concurrent >= 0; concurrent--) {
        enum pnet_status st = pnet_layout_make(b, c, concurrent, l, e);
        if (st) return st;
        *k = pnet_peak_of(b, c, l, slots, extra);
        if (!limit || k->total <= limit || !concurrent) break;
        pnet_layout_free(l);
    }
    return PNET_OK;
}

void pnet_counts_assume(const struct pnet_bound *b, struct pnet_counts *c, int64_t points)
{
    const struct pnet_plan *p = b->plan;
    c->samples = 1;
    c->rows[p->sample_level] = c->rows[p->scalar_level] = 1;
    for (int l = 0; l < p->level_count; l++) {
        const struct pnet_level_info *info = &p->levels[l];
        if (info->kind == PNET_GEO_INPUT) c->rows[l] = p->inputs[info->input].unused ? 0 : points;
    }
    for (int i = 0; i < p->geo_count; i++) {
        const struct pnet_geo_kind *kind = pnet_geo_kind(p->geo[i].request.kind);
        if (kind->assume) kind->assume(p, i, b->forms[i], c);
    }
}
