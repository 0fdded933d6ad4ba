/* The k nearest points of each query, by a walk through the tree that visits near boxes first. A candidate is one number,
   (distance^2, not self, row) from the highest bit down: distances are not negative, so the order of their bits is their
   order, and the tie rule costs nothing. */
#include <math.h>

#include "kernels/geometry_stage.h"
#include "kernels/cpu/geometry/geo_nearest.h"

static uint64_t candidate_key(float distance2, bool self, int32_t row)
{
    return pnet_geo_key(distance2, (self ? 0 : 0x80000000u) | (uint32_t)row);
}

static void sink(uint64_t *heap, int n, uint64_t key)
{
    int hole = 0;
    for (int child = 1; child < n; child = 2 * hole + 1) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] <= key) break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = key;
}

void pnet_geo_keep(struct pnet_geo_nearest *best, uint64_t key)
{
    if (best->count < best->limit) {
        int hole = best->count++;
        for (; hole > 0 && best->key[(hole - 1) / 2] < key; hole = (hole - 1) / 2)
            best->key[hole] = best->key[(hole - 1) / 2];
        best->key[hole] = key;
    } else {
        sink(best->key, best->count, key);
    }
}

void pnet_geo_sort_nearest(struct pnet_geo_nearest *best)
{
    for (int n = best->count - 1; n > 0; n--) {
        uint64_t farthest = best->key[0];
        sink(best->key, n, best->key[n]);
        best->key[n] = farthest;
    }
}

/* Returns the squared distance beyond which no point can be among the nearest. */
static float bound_of(const struct pnet_geo_nearest *best)
{
    return best->count < best->limit ? best->reach2 : pnet_geo_key_float(best->key[0]);
}

/* Removes the nearest member from `left` and returns it. */
static int take_nearest(const float distance2[WIDE], uint32_t *left)
{
    int nearest = __builtin_ctz(*left);
    for (uint32_t m = *left & (*left - 1); m; m &= m - 1) {
        int l = __builtin_ctz(m);
        if (distance2[l] < distance2[nearest]) nearest = l;
    }
    *left &= ~(1u << nearest);
    return nearest;
}

/* Fills `best`, a heap, from the points of a sample within best->reach2. `self`: the row that precedes others at the same
   distance, or -1. */
static void walk_nearest(const struct pnet_geo_isa *isa, const struct pnet_geo_tree *t,
    int32_t sample, const float at[3], int32_t self, struct pnet_geo_nearest *best)
{
    _Alignas(64) float distance2[TREE_DEPTH][WIDE], in_leaf[WIDE];
    struct pnet_geo_walk w = pnet_geo_walk_begin(t, sample);
    best->count = 0;
    if (w.last < w.first) return;
    const struct pnet_geo_boxes *b = t->group[w.level];
    w.left[w.level] = pnet_geo_walk_members(&w, w.level, 0) &
                      isa->near_point(b->low, b->high, at, best->reach2, distance2[w.level]);
    while (w.level < t->depth) {
        if (!w.left[w.level]) {
            w.level++;
            continue;
        }
        int m = take_nearest(distance2[w.level], &w.left[w.level]);
        if (distance2[w.level][m] > bound_of(best)) {
            w.level++; /* the other members are farther */
            continue;
        }
        int64_t member = w.group[w.level] * WIDE + m;
        if (w.level) {
            b = &t->group[--w.level][member];
            w.group[w.level] = member;
            w.left[w.level] =
                isa->near_point(b->low, b->high, at, bound_of(best), distance2[w.level]) &
                pnet_geo_walk_members(&w, w.level, member);
            continue;
        }
        const struct pnet_geo_leaf *leaf = &t->leaf[member];
        uint32_t near = isa->near_point(leaf->at, leaf->at, at, bound_of(best), in_leaf) &
                        pnet_geo_walk_points(&w, member);
        for (; near; near &= near - 1) {
            int l = __builtin_ctz(near);
            pnet_geo_offer(best, candidate_key(in_leaf[l], leaf->row[l] == self, leaf->row[l]));
        }
    }
}

/* The first bound on the distance comes from the triangle inequality; if the search finds too few points within it, it runs
   again without a bound, so the first bound need not be right. */
void pnet_geo_find_nearest(const struct pnet_geo_isa *isa, const struct pnet_geo_tree *t,
    int32_t sample, const float at[3], int32_t self, struct pnet_geo_earlier *earlier,
    struct pnet_geo_nearest *best)
{
    int64_t points = t->level->row_splits[sample + 1] - t->level->row_splits[sample];
    best->reach2 = INFINITY;
    if (earlier->there) {
        float dx = at[0] - earlier->at[0], dy = at[1] - earlier->at[1], dz = at[2] - earlier->at[2];
        float reach = earlier->farthest + sqrtf((dx * dx + dy * dy) + dz * dz);
        best->reach2 = reach * reach * 1.0001f;
    }
    walk_nearest(isa, t, sample, at, self, best);
    if (best->count < best->limit && best->count < points) {
        best->reach2 = INFINITY;
        walk_nearest(isa, t, sample, at, self, best);
    }
    bool full = best->count == best->limit;
    *earlier = (struct pnet_geo_earlier){
        full, {at[0], at[1], at[2]}, full ? sqrtf(pnet_geo_key_float(best->key[0])) : 0};
}

/* Returns the kernel cell of point j around p_i. */
static uint16_t cell_of(const struct pnet_geo_set *s, const float centre[3], int32_t j)
{
    if (s->fixed >= 0) return (uint16_t)s->fixed;
    const float *p = s->in->xyz + 3 * (int64_t)j;
    int32_t cell = 0;
    for (int a = 0; a < 3; a++)
        cell = cell * s->kernel +
               pnet_geo_clamp((p[a] - centre[a]) * s->scale + s->shift, (float)(s->kernel - 1));
    return (uint16_t)cell;
}

/* Counts the children of row i that are not among its nearest points, and writes them if `to` is given. The top of the heap
   is the farthest of the nearest points: a child that is not nearer than it by the tie rule is not among them, unless all
   points are. */
static int64_t other_children(
    const struct pnet_geo_set *s, const struct pnet_geo_nearest *best, int64_t row, int32_t *to)
{
    int64_t count = 0;
    const float *centre = s->out->xyz + 3 * row;
    if (best->count < best->limit) return 0;
    for (int64_t c = s->child_start[row]; c < s->child_start[row + 1]; c++) {
        int32_t j = s->child[c];
        const float *p = s->in->xyz + 3 * (int64_t)j;
        float dx = p[0] - centre[0], dy = p[1] - centre[1], dz = p[2] - centre[2];
        if (candidate_key((dx * dx + dy * dy) + dz * dz, false, j) <= best->key[0]) continue;
        if (to) to[count] = j;
        count++;
    }
    return count;
}

static void write_row(const struct pnet_geo_set *s, const struct pnet_geo_nearest *best,
    int64_t row, int32_t *other, uint16_t *cell)
{
    struct pnet_geo_set at_radius = *s;
    const float *centre = s->out->xyz + 3 * row;
    pnet_geo_set_cells(&at_radius, best->count ? sqrtf(pnet_geo_key_float(best->key[0])) : 0);
    int64_t n = 0;
    for (; n < best->count; n++) other[n] = pnet_geo_key_row(best->key[n]);
    if (s->parent) n += other_children(s, best, row, other + n);
    for (int64_t t = 0; t < n; t++) cell[t] = cell_of(&at_radius, centre, other[t]);
    pnet_geo_row_sort(n, other, cell);
}

void pnet_geo_nearest_search(const struct pnet_geo_set *s, const struct pnet_geo_results *to)
{
    const struct pnet_geo_isa *isa = pnet_geo_isa();
    int64_t blocks = s->queries.start[s->out->samples];
#pragma omp parallel
    {
        struct pnet_geo_nearest best = {.limit = s->knn};
#pragma omp for schedule(dynamic, 64)
        for (int64_t b = 0; b < blocks; b++) {
            struct pnet_geo_block block;
            struct pnet_geo_earlier earlier = {.there = false};
            pnet_geo_block_get(&s->queries, b, &block);
            const int64_t *splits = s->in->row_splits + block.sample;
            for (int i = 0; i < block.count; i++) {
                int64_t row = block.row[i], points = splits[1] - splits[0];
                /* the number of triplets is known without a search */
                if (to->count && !s->parent) {
                    to->count[row + 1] = points < s->knn ? points : s->knn;
                    continue;
                }
                int32_t self = s->parent ? -1 : (int32_t)row;
                pnet_geo_find_nearest(
                    isa, &s->tree, block.sample, s->out->xyz + 3 * row, self, &earlier, &best);
                if (to->count)
                    to->count[row + 1] = best.count + other_children(s, &best, row, NULL);
                else
                    write_row(s, &best, row, to->other + to->start[row], to->cell + to->start[row]);
            }
        }
    }
}

/* The parts of a workspace for searching rows of `in` around rows of `out`. */
struct parts {
    int64_t *in_start, *out_start;
    int32_t *in_order, *out_order;
    void *scratch;
    struct pnet_geo_tree tree;
};

static size_t lay_out(
    const struct pnet_level *out, const struct pnet_level *in, void *work, struct parts *p)
{
    struct pnet_geo_purse purse = pnet_geo_open(work);
    p->in_start = pnet_geo_take(&purse, ((size_t)in->samples + 1) * sizeof *p->in_start);
    p->out_start = pnet_geo_take(&purse, ((size_t)out->samples + 1) * sizeof *p->out_start);
    p->in_order = pnet_geo_take(&purse, (size_t)in->rows * sizeof *p->in_order);
    p->out_order = pnet_geo_take(&purse, (size_t)out->rows * sizeof *p->out_order);
    /* the order's memory is free before the tree is built */
    struct pnet_geo_purse shared = purse;
    p->scratch =
        pnet_geo_take(&shared, pnet_geo_curve_work(in->rows > out->rows ? in->rows : out->rows));
    pnet_geo_tree_take(&p->tree, in, &purse);
    return shared.used > purse.used ? shared.used : purse.used;
}

size_t pnet_cpu_nearest_work(const struct pnet_level *out, const struct pnet_level *in, int32_t k)
{
    struct parts p;
    (void)k;
    return lay_out(out, in, NULL, &p);
}

void pnet_cpu_nearest(const struct pnet_level *out, const struct pnet_level *in, int32_t k,
    int32_t *index, float *distance2, void *work)
{
    const struct pnet_geo_isa *isa = pnet_geo_isa();
    struct parts p;
    struct pnet_geo_blocks queries, points;
    lay_out(out, in, work, &p);
    pnet_geo_blocks_make(&points, in, p.in_order, p.in_start, p.scratch);
    pnet_geo_blocks_make(&queries, out, p.out_order, p.out_start, p.scratch);
    pnet_geo_tree_build(&p.tree, &points, false);
    int64_t blocks = queries.start[out->samples];
#pragma omp parallel
    {
        struct pnet_geo_nearest best = {.limit = k};
#pragma omp for schedule(dynamic, 64)
        for (int64_t b = 0; b < blocks; b++) {
            struct pnet_geo_block block;
            struct pnet_geo_earlier earlier = {.there = false};
            pnet_geo_block_get(&queries, b, &block);
            for (int i = 0; i < block.count; i++) {
                int64_t row = block.row[i];
                pnet_geo_find_nearest(
                    isa, &p.tree, block.sample, out->xyz + 3 * row, -1, &earlier, &best);
                pnet_geo_sort_nearest(&best);
                for (int n = 0; n < k; n++) {
                    bool there = n < best.count;
                    index[row * k + n] = there ? pnet_geo_key_row(best.key[n]) : -1;
                    distance2[row * k + n] = there ? pnet_geo_key_float(best.key[n]) : INFINITY;
                }
            }
        }
    }
}
