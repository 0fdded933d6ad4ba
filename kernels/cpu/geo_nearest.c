/* The k nearest points of each query, by a walk through the tree that visits near boxes first. A candidate is one
   number, (distance^2, not self, row) from the highest bit down: distances are not negative, so their bits compare
   like themselves, and the tie rule costs nothing. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/geo.h"
#include "kernels/cpu/geo_isa.h"

struct nearest {
    int count, limit;
    uint64_t key[PNET_KNN_LIMIT]; /* a heap, the farthest on top */
};

static uint64_t candidate_key(float distance2, bool self, int32_t row)
{
    uint32_t bits;
    memcpy(&bits, &distance2, sizeof bits);
    return (uint64_t)bits << 32 | (self ? 0 : 0x80000000u) | (uint32_t)row;
}

static float key_distance2(uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> 32);
    float distance2;
    memcpy(&distance2, &bits, sizeof bits);
    return distance2;
}

static int32_t key_row(uint64_t key)
{
    return (int32_t)(key & 0x7fffffffu);
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

static void offer(struct nearest *best, uint64_t key)
{
    if (best->count < best->limit) {
        int hole = best->count++;
        for (; hole > 0 && best->key[(hole - 1) / 2] < key; hole = (hole - 1) / 2)
            best->key[hole] = best->key[(hole - 1) / 2];
        best->key[hole] = key;
    } else if (key < best->key[0]) {
        sink(best->key, best->count, key);
    }
}

static void sort_ascending(struct nearest *best)
{
    for (int n = best->count - 1; n > 0; n--) {
        uint64_t farthest = best->key[0];
        sink(best->key, n, best->key[n]);
        best->key[n] = farthest;
    }
}

static void offer_leaf(
    struct nearest *best, const struct geo_leaf *leaf, uint32_t members, const float distance2[WIDE], int32_t self)
{
    for (; members; members &= members - 1) {
        int l = __builtin_ctz(members);
        if (best->count == best->limit && distance2[l] > key_distance2(best->key[0])) continue;
        offer(best, candidate_key(distance2[l], leaf->row[l] == self, leaf->row[l]));
    }
}

/* Takes the nearest member of `left` out of it. */
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

/* Fills `best` (a heap) from the points of a sample. `self`: the row that comes first among equals, or -1. */
static void find_nearest(const struct geo_isa *isa, const struct geo_tree *t, int32_t sample, const float at[3],
    int32_t self, struct nearest *best)
{
    _Alignas(64) float distance2[TREE_DEPTH][WIDE], in_leaf[WIDE];
    struct geo_walk w = geo_walk_begin(t, sample);
    best->count = 0;
    if (w.last < w.first) return;
    w.left[w.level] = geo_walk_members(&w, w.level, 0);
    isa->distances(t->group[w.level][0].low, t->group[w.level][0].high, at, distance2[w.level]);
    while (w.level < t->depth) {
        if (!w.left[w.level]) {
            w.level++;
            continue;
        }
        int m = take_nearest(distance2[w.level], &w.left[w.level]);
        if (best->count == best->limit && distance2[w.level][m] > key_distance2(best->key[0])) {
            w.level++; /* the others are farther still */
            continue;
        }
        int64_t member = w.group[w.level] * WIDE + m;
        if (w.level) {
            const struct geo_boxes *b = &t->group[--w.level][member];
            w.group[w.level] = member;
            w.left[w.level] = geo_walk_members(&w, w.level, member);
            isa->distances(b->low, b->high, at, distance2[w.level]);
        } else {
            const struct geo_leaf *leaf = &t->leaf[member];
            isa->distances(leaf->at, leaf->at, at, in_leaf);
            offer_leaf(best, leaf, geo_walk_points(&w, member), in_leaf, self);
        }
    }
}

/* Cell of point j around p_i. */
static uint16_t cell_of(const struct geo_set *s, const float centre[3], int32_t j)
{
    if (s->fixed >= 0) return (uint16_t)s->fixed;
    const float *p = s->in->xyz + 3 * (int64_t)j;
    int32_t cell = 0;
    for (int a = 0; a < 3; a++)
        cell = cell * s->kernel + geo_clamp((p[a] - centre[a] + s->shift) * s->scale, (float)(s->kernel - 1));
    return (uint16_t)cell;
}

/* Children of row i that are not among its nearest points, written if `to` is given. The farthest of the nearest is
   the top of the heap; what is not nearer by the tie rule is not among them, unless all points are. */
static int64_t other_children(const struct geo_set *s, const struct nearest *best, int64_t row, int32_t *to)
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

static void write_row(const struct geo_set *s, const struct nearest *best, int64_t row, int32_t *other, uint16_t *cell)
{
    struct geo_set at_radius = *s;
    const float *centre = s->out->xyz + 3 * row;
    geo_set_cells(&at_radius, best->count ? sqrtf(key_distance2(best->key[0])) : 0);
    int64_t n = 0;
    for (; n < best->count; n++) other[n] = key_row(best->key[n]);
    if (s->parent) n += other_children(s, best, row, other + n);
    for (int64_t t = 0; t < n; t++) cell[t] = cell_of(&at_radius, centre, other[t]);
    geo_row_sort(n, other, cell);
}

void geo_nearest_search(const struct geo_set *s, const struct geo_results *to)
{
    const struct geo_isa *isa = geo_isa();
    int64_t blocks = s->queries.start[s->out->samples];
#pragma omp parallel
    {
        struct nearest best = {.limit = s->knn};
#pragma omp for schedule(dynamic, 64)
        for (int64_t b = 0; b < blocks; b++) {
            struct geo_block block;
            geo_block_get(&s->queries, b, &block);
            const int64_t *splits = s->in->row_splits + block.sample;
            for (int i = 0; i < block.count; i++) {
                int64_t row = block.row[i], points = splits[1] - splits[0];
                if (to->count && !s->parent) { /* how many there are is known without a search */
                    to->count[row + 1] = points < s->knn ? points : s->knn;
                    continue;
                }
                find_nearest(isa, &s->tree, block.sample, s->out->xyz + 3 * row, s->parent ? -1 : (int32_t)row,
                    &best);
                if (to->count)
                    to->count[row + 1] = best.count + other_children(s, &best, row, NULL);
                else
                    write_row(s, &best, row, to->other + to->start[row], to->cell + to->start[row]);
            }
        }
    }
}

/* The parts of a workspace for searching the rows of `in` around those of `out`. */
struct parts {
    int64_t *in_start, *out_start;
    int32_t *in_order, *out_order;
    void *scratch;
    struct geo_tree tree;
};

static size_t lay_out(const struct pnet_level *out, const struct pnet_level *in, void *work, struct parts *p)
{
    struct geo_purse purse = geo_open(work);
    p->in_start = geo_take(&purse, ((size_t)in->samples + 1) * sizeof *p->in_start);
    p->out_start = geo_take(&purse, ((size_t)out->samples + 1) * sizeof *p->out_start);
    p->in_order = geo_take(&purse, (size_t)in->rows * sizeof *p->in_order);
    p->out_order = geo_take(&purse, (size_t)out->rows * sizeof *p->out_order);
    struct geo_purse shared = purse; /* ordering is over before the tree is built */
    p->scratch = geo_take(&shared, geo_curve_work(in->rows > out->rows ? in->rows : out->rows));
    geo_tree_take(&p->tree, in, &purse);
    return shared.used > purse.used ? shared.used : purse.used;
}

size_t pnet_cpu_nearest_work(const struct pnet_level *out, const struct pnet_level *in, int32_t k)
{
    struct parts p;
    (void)k;
    return lay_out(out, in, NULL, &p);
}

void pnet_cpu_nearest(const struct pnet_level *out, const struct pnet_level *in, int32_t k, int32_t *index,
    float *distance2, void *work)
{
    const struct geo_isa *isa = geo_isa();
    struct parts p;
    struct geo_blocks queries, points;
    lay_out(out, in, work, &p);
    geo_blocks_make(&points, in, p.in_order, p.in_start, p.scratch);
    geo_blocks_make(&queries, out, p.out_order, p.out_start, p.scratch);
    geo_tree_build(&p.tree, &points, false);
    int64_t blocks = queries.start[out->samples];
#pragma omp parallel
    {
        struct nearest best = {.limit = k};
#pragma omp for schedule(dynamic, 64)
        for (int64_t b = 0; b < blocks; b++) {
            struct geo_block block;
            geo_block_get(&queries, b, &block);
            for (int i = 0; i < block.count; i++) {
                int64_t row = block.row[i];
                find_nearest(isa, &p.tree, block.sample, out->xyz + 3 * row, -1, &best);
                sort_ascending(&best);
                for (int n = 0; n < k; n++) {
                    bool there = n < best.count;
                    index[row * k + n] = there ? key_row(best.key[n]) : -1;
                    distance2[row * k + n] = there ? key_distance2(best.key[n]) : INFINITY;
                }
            }
        }
    }
}
