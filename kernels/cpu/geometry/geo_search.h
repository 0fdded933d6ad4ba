/* The search of one block for one instruction set: included once for each, after geo_lanes.h. */

/* Returns which of WIDE boxes (or points, which are boxes without extent) can hold a point that pairs with any query, or a
   child of one; a bit each. */
INLINE uint32_t NAME(near_queries)(const struct pnet_geo_set *s, const struct pnet_geo_queries *q,
    const float low[3][WIDE], const float high[3][WIDE], bool ball)
{
    const VF zero = {0}, radius2 = s->radius2 + zero, from = s->low + zero, to = s->high + zero;
    uint32_t mask = 0;
    for (int l = 0; l < WIDE; l += LANES) {
        uint32_t near = (1u << LANES) - 1, child = near;
        VF gap[3];
        for (int a = 0; a < 3; a++) {
            VF least = NAME(load)(low[a] + l), most = NAME(load)(high[a] + l);
            VF above = least - q->high[a];
            if (ball)
                gap[a] = NAME(larger)(NAME(larger)(above, q->low[a] - most), zero);
            else
                near &= NAME(not_above)(from, most - q->low[a]) & NAME(not_above)(above, to);
            if (s->parent)
                child &= NAME(not_above)(least, q->child_high[a] + zero) &
                         NAME(not_above)(q->child_low[a] + zero, most);
        }
        if (ball)
            near = NAME(not_above)((gap[0] * gap[0] + gap[1] * gap[1]) + gap[2] * gap[2], radius2);
        if (s->parent) near |= child;
        mask |= near << l;
    }
    return mask;
}

/* Returns which of LANES gathered points pair with query i, a bit each. */
INLINE uint32_t NAME(pair_mask)(const struct pnet_geo_set *s, const struct pnet_geo_queries *q,
    int i, const struct pnet_geo_gathered *p, int first, bool ball)
{
    const VF zero = {0};
    VF d[3];
    uint32_t mask = 0;
    for (int a = 0; a < 3; a++) d[a] = NAME(load)(p->pair_at[a] + first) - q->pair_at[i][a];
    if (ball) {
        mask = NAME(not_above)((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2], s->radius2 + zero);
    } else {
        mask = (1u << LANES) - 1;
        for (int a = 0; a < 3; a++)
            mask &= NAME(not_above)(s->low + zero, d[a]) & NAME(not_above)(d[a], s->high + zero);
    }
    if (s->parent) mask |= NAME(equal)(p->parent + first, q->block.row[i]);
    return mask;
}

/* Returns the kernel cells of LANES gathered points for query i. */
INLINE VI NAME(cells_of)(const struct pnet_geo_set *s, const struct pnet_geo_queries *q, int i,
    const float (*at)[GATHER + WIDE], int first)
{
    const VF zero = {0}, last = (float)(s->kernel - 1) + zero;
    VI cell = {0};
    if (s->fixed >= 0) return cell + s->fixed;
    for (int a = 0; a < 3; a++) {
        VF x = (NAME(load)(at[a] + first) - q->cell_at[i][a]) * s->scale + s->shift;
        x = NAME(smaller)(NAME(larger)(x, zero), last);
        cell = cell * s->kernel + __builtin_convertvector(x, VI);
    }
    return cell;
}

/* Writes the pairs of query i with gathered points. */
INLINE void NAME(write_pairs)(const struct pnet_geo_set *s, struct pnet_geo_room *room, int i,
    const struct pnet_geo_results *to, bool ball)
{
    const struct pnet_geo_gathered *p = &room->points;
    struct pnet_geo_queries *q = &room->queries;
    const float(*at)[GATHER + WIDE] = s->cell_at ? p->cell_at : p->pair_at;
    int n = 0;
    for (int first = 0; first < p->count; first += LANES) {
        uint32_t mask = NAME(pair_mask)(s, q, i, p, first, ball);
        if (!mask) continue;
        NAME(pack)(room->other + n, *(const VI *)(p->row + first), mask);
        NAME(pack)(room->cell + n, NAME(cells_of)(s, q, i, at, first), mask);
        n += __builtin_popcount(mask);
    }
    int64_t place = to->start[q->block.row[i]] + q->found[i];
    if (q->whole && s->tree.ascending) {
        pnet_geo_row_by_cell(n, room->other, room->cell, s->kernel * s->kernel * s->kernel,
            to->other + place, to->cell + place, room->spare_other, room->spare_cell);
    } else {
        for (int t = 0; t < n; t++) {
            to->other[place + t] = room->other[t];
            to->cell[place + t] = (uint16_t)room->cell[t];
        }
    }
    q->found[i] += n;
}

INLINE void NAME(test_points)(const struct pnet_geo_set *s, struct pnet_geo_room *room,
    const struct pnet_geo_results *to, bool ball)
{
    struct pnet_geo_gathered *p = &room->points;
    struct pnet_geo_queries *q = &room->queries;
    for (int l = 0; l < LANES; l++) {
        for (int a = 0; a < 3; a++) p->pair_at[a][p->count + l] = NAN;
        for (int a = 0; a < 3; a++) p->cell_at[a][p->count + l] = 0;
        p->parent[p->count + l] = -1;
    }
    for (int i = 0; i < q->block.count; i++) {
        if (!to->count) {
            NAME(write_pairs)(s, room, i, to, ball);
            continue;
        }
        int n = 0;
        for (int first = 0; first < p->count; first += LANES)
            n += __builtin_popcount(NAME(pair_mask)(s, q, i, p, first, ball));
        q->found[i] += n;
    }
    p->count = 0;
}

INLINE void NAME(gather_leaf)(
    const struct pnet_geo_set *s, struct pnet_geo_gathered *p, int64_t leaf, uint32_t mask)
{
    const struct pnet_geo_leaf *from = &s->tree.leaf[leaf];
    int n = p->count;
    for (int l = 0; l < WIDE; l += LANES) {
        uint32_t here = mask >> l & ((1u << LANES) - 1);
        for (int a = 0; a < 3; a++)
            NAME(pack)(p->pair_at[a] + n, *(const VI *)(from->at[a] + l), here);
        NAME(pack)(p->row + n, *(const VI *)(from->row + l), here);
        if (s->cell_at)
            for (int a = 0; a < 3; a++)
                NAME(pack)(p->cell_at[a] + n, *(const VI *)(s->cell_at[leaf][a] + l), here);
        n += __builtin_popcount(here);
    }
    if (s->parent)
        for (int c = p->count; c < n; c++) p->parent[c] = s->parent[p->row[c]];
    p->count = n;
}

INLINE uint32_t NAME(members_near)(const struct pnet_geo_set *s, const struct pnet_geo_queries *q,
    const struct pnet_geo_walk *w, bool ball)
{
    int64_t group = w->group[w->level];
    const struct pnet_geo_boxes *b = &s->tree.group[w->level][group];
    return NAME(near_queries)(s, q, b->low, b->high, ball) &
           pnet_geo_walk_members(w, w->level, group);
}

INLINE void NAME(search_as)(const struct pnet_geo_set *s, struct pnet_geo_room *room,
    const struct pnet_geo_results *to, bool ball)
{
    struct pnet_geo_queries *q = &room->queries;
    struct pnet_geo_gathered *p = &room->points;
    struct pnet_geo_walk w = pnet_geo_walk_begin(&s->tree, q->block.sample);
    p->count = 0;
    if (w.last < w.first) return;
    w.left[w.level] = NAME(members_near)(s, q, &w, ball);
    while (w.level < s->tree.depth) {
        if (!w.left[w.level]) {
            w.level++;
            continue;
        }
        int64_t member = w.group[w.level] * WIDE + __builtin_ctz(w.left[w.level]);
        w.left[w.level] &= w.left[w.level] - 1;
        if (w.level) {
            w.group[--w.level] = member;
            w.left[w.level] = NAME(members_near)(s, q, &w, ball);
            continue;
        }
        if (p->count > GATHER - WIDE) {
            q->whole = false;
            NAME(test_points)(s, room, to, ball);
        }
        const struct pnet_geo_leaf *leaf = &s->tree.leaf[member];
        uint32_t mask =
            NAME(near_queries)(s, q, leaf->at, leaf->at, ball) & pnet_geo_walk_points(&w, member);
        NAME(gather_leaf)(s, p, member, mask);
    }
    NAME(test_points)(s, room, to, ball);
}

TARGET static void NAME(search_block)(
    const struct pnet_geo_set *s, struct pnet_geo_room *room, const struct pnet_geo_results *to)
{
    if (s->ball)
        NAME(search_as)(s, room, to, true);
    else
        NAME(search_as)(s, room, to, false);
}

TARGET static uint32_t NAME(near_point)(const float low[3][WIDE], const float high[3][WIDE],
    const float at[3], float bound, float distance2[WIDE])
{
    const VF zero = {0};
    uint32_t mask = 0;
    for (int l = 0; l < WIDE; l += LANES) {
        VF gap[3];
        for (int a = 0; a < 3; a++) {
            VF above = NAME(load)(low[a] + l) - at[a], below = at[a] - NAME(load)(high[a] + l);
            gap[a] = NAME(larger)(NAME(larger)(above, below), zero);
        }
        VF sum = (gap[0] * gap[0] + gap[1] * gap[1]) + gap[2] * gap[2];
        *(VF *)(distance2 + l) = sum;
        mask |= NAME(not_above)(sum, bound + zero) << l;
    }
    return mask;
}

static const struct pnet_geo_isa NAME(isa) = {NAME(search_block), NAME(near_point)};
