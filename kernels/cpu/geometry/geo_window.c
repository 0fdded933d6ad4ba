/* Pairs within a radius or a window, WIDE queries at a time: the points near the box around the queries are gathered from
   the tree once, in the order of rows; then every query is tested against all of them. */
#include <math.h>

#include "kernels/cpu/geometry/geo_isa.h"

static void grow(float low[3], float high[3], const float at[3])
{
    for (int a = 0; a < 3; a++) {
        low[a] = at[a] < low[a] ? at[a] : low[a];
        high[a] = at[a] > high[a] ? at[a] : high[a];
    }
}

static void load_queries(const struct pnet_geo_set *s, int64_t block, struct pnet_geo_queries *q)
{
    pnet_geo_block_get(&s->queries, block, &q->block);
    q->whole = true;
    for (int a = 0; a < 3; a++) {
        q->low[a] = q->child_low[a] = INFINITY;
        q->high[a] = q->child_high[a] = -INFINITY;
    }
    for (int i = 0; i < q->block.count; i++) {
        int32_t row = q->block.row[i];
        pnet_geo_set_centre(s, row, s->pair_in_voxels, q->pair_at[i]);
        pnet_geo_set_centre(s, row, s->cell_in_voxels, q->cell_at[i]);
        grow(q->low, q->high, q->pair_at[i]);
        q->found[i] = 0;
        if (!s->parent) continue;
        for (int64_t c = s->child_start[row]; c < s->child_start[row + 1]; c++)
            grow(q->child_low, q->child_high, s->in->xyz + 3 * (int64_t)s->child[c]);
    }
}

/* Sorts a row that could not be written in order. */
static void close_row(const struct pnet_geo_set *s, int64_t n, int32_t *other, uint16_t *cell,
    struct pnet_geo_room *room)
{
    if (!s->tree.ascending || n > LONG_ROW) {
        pnet_geo_row_sort(n, other, cell);
        return;
    }
    for (int64_t t = 0; t < n; t++) {
        room->other[t] = other[t];
        room->cell[t] = cell[t];
    }
    pnet_geo_row_by_cell((int)n, room->other, room->cell, s->kernel * s->kernel * s->kernel, other,
        cell, room->spare_other, room->spare_cell);
}

void pnet_geo_window_search(const struct pnet_geo_set *s, const struct pnet_geo_results *to)
{
    const struct pnet_geo_isa *isa = pnet_geo_isa();
    int64_t blocks = s->queries.start[s->out->samples];
#pragma omp parallel
    {
        struct pnet_geo_room room;
        struct pnet_geo_queries *q = &room.queries;
#pragma omp for schedule(dynamic, 64)
        for (int64_t b = 0; b < blocks; b++) {
            load_queries(s, b, q);
            isa->search_block(s, &room, to);
            for (int i = 0; i < q->block.count; i++) {
                int64_t row = q->block.row[i];
                if (to->count)
                    to->count[row + 1] = q->found[i];
                else if (!q->whole || !s->tree.ascending)
                    close_row(s, q->found[i], to->other + to->start[row], to->cell + to->start[row],
                        &room);
            }
        }
    }
}
