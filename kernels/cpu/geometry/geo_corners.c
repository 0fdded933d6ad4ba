/* The source rows around queries (kernels/corners.h). Rows of both levels follow a curve, so the place of a corner is near that
   of the same corner of the query before: searches begin there. Where they begin does not change what they find. */
#include "kernels/corners.h"

#include "kernels/cpu/geometry/geo_grid.h"
#include "kernels/geometry_stage.h"

enum { CHUNK = 1 << 12 /* queries that one thread takes at a time */ };

/* What both calls share. */
struct search {
    const struct pnet_level *queries, *source;
    const uint64_t *key; /* [source rows] */
    int32_t *found;      /* [queries, corners]: source row of each corner; -1: none */
    const int32_t *nearest;
    int corners;
};

static struct search search_of(const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind, const int32_t *nearest, void *work)
{
    struct search s = {queries, source, work, NULL, nearest, 1};
    s.found = (int32_t *)((uint64_t *)work + source->rows);
    if (kind == PNET_CORNERS_TRILINEAR) s.corners = PNET_CORNERS;
    return s;
}

size_t pnet_cpu_corners_work(
    const struct pnet_level *queries, const struct pnet_level *source, enum pnet_corner_kind kind)
{
    size_t corners = kind == PNET_CORNERS_TRILINEAR ? PNET_CORNERS : 1;
    return (size_t)source->rows * sizeof(uint64_t) +
           (size_t)queries->rows * corners * sizeof(int32_t);
}

/* Returns the first place in [begin, end) whose key is at least `wanted`, or `end`. Looks at steps that double from `from` on,
   begin <= from <= end, then halves the last step. */
static int64_t first_at_least(
    const uint64_t *key, int64_t begin, int64_t end, int64_t from, uint64_t wanted)
{
    int64_t low = begin, high = end;
    if (from < end && key[from] < wanted) {
        low = from + 1;
        for (int64_t step = 1; low < high; step *= 2) {
            int64_t next = end - low > step ? low + step : end - 1;
            if (key[next] >= wanted) high = next;
            if (high == next) break;
            low = next + 1;
        }
    } else {
        high = from;
        for (int64_t step = 1; low < high; step *= 2) {
            int64_t next = high - begin > step ? high - step : begin;
            if (key[next] < wanted) low = next + 1;
            if (low > next) break;
            high = next;
        }
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (key[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The source rows of one sample, and where its last searches ended. */
struct sample {
    int64_t begin, end, at[PNET_CORNERS];
};

static int32_t row_of_voxel(
    const struct search *s, struct sample *of, int corner, struct pnet_voxel voxel)
{
    uint64_t wanted = pnet_voxel_key(voxel);
    for (int a = 0; a < 3; a++)
        if (voxel.at[a] < -PNET_KEY_BIAS || voxel.at[a] >= PNET_KEY_BIAS) return -1;
    int64_t place = first_at_least(s->key, of->begin, of->end, of->at[corner], wanted);
    of->at[corner] = place;
    return place < of->end && s->key[place] == wanted ? (int32_t)place : -1;
}

/* Fills found[corners] of a query. Returns how many corners are present. */
static int find_corners(const struct search *s, struct sample *of, int64_t query)
{
    const float *p = s->queries->xyz + 3 * query;
    int32_t *found = s->found + query * s->corners;
    float weight[3][2];
    struct pnet_voxel low;
    int count = 0;
    if (s->corners == 1) {
        bool inside = true;
        low = pnet_voxel_of(p, s->source->grid, &inside);
        *found = inside ? row_of_voxel(s, of, 0, low) : -1;
        return *found >= 0;
    }
    bool inside = pnet_corners_of(p, s->source->grid, low.at, weight);
    for (int e = 0; e < PNET_CORNERS; e++) {
        found[e] = -1;
        if (!inside || !(pnet_corner_weight(weight, e) > 0)) continue;
        struct pnet_voxel v = {
            {low.at[0] + (e >> 2), low.at[1] + (e >> 1 & 1), low.at[2] + (e & 1)}};
        found[e] = row_of_voxel(s, of, e, v);
        count += found[e] >= 0;
    }
    return count;
}

/* Queries first <= i < end. */
static void count_chunk(const struct search *s, int64_t first, int64_t end, int64_t *start)
{
    struct sample of;
    int32_t sample = -1;
    int64_t sample_end = 0;
    for (int64_t i = first; i < end; i++) {
        while (sample < 0 || i >= sample_end) {
            sample_end = s->queries->row_splits[++sample + 1];
            of.begin = s->source->row_splits[sample];
            of.end = s->source->row_splits[sample + 1];
            for (int e = 0; e < PNET_CORNERS; e++) of.at[e] = of.begin;
        }
        int count = find_corners(s, &of, i);
        start[i + 1] = count || !s->nearest ? count : s->nearest[i] >= 0;
    }
}

int64_t pnet_cpu_corners_count(const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind, const int32_t *nearest, int64_t *start, void *work)
{
    struct search s = search_of(queries, source, kind, nearest, work);
    int64_t chunks = (queries->rows + CHUNK - 1) / CHUNK;
    pnet_cpu_keys(source->rows, source->xyz, source->grid, work);
#pragma omp parallel for schedule(dynamic)
    for (int64_t c = 0; c < chunks; c++) {
        int64_t end = (c + 1) * CHUNK;
        count_chunk(&s, c * CHUNK, end < queries->rows ? end : queries->rows, start);
    }
    start[0] = 0;
    for (int64_t i = 0; i < queries->rows; i++) start[i + 1] += start[i];
    return start[queries->rows];
}

/* Sets the weights of the corners that were found, in their order. */
static void weigh_corners(
    const struct search *s, int64_t query, const int32_t found[PNET_CORNERS], float *weight)
{
    float of_axis[3][2], sum = 0;
    int32_t low[3];
    int count = 0;
    if (!pnet_corners_of(s->queries->xyz + 3 * query, s->source->grid, low, of_axis)) return;
    for (int e = 0; e < PNET_CORNERS; e++)
        if (found[e] >= 0) sum += weight[count++] = pnet_corner_weight(of_axis, e);
    for (int k = 0; k < count; k++) weight[k] /= sum > 1e-12f ? sum : 1e-12f;
}

void pnet_cpu_corners_write(const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind, const int32_t *nearest, const int64_t *start, int32_t *other,
    uint16_t *cell, float *weight, void *work)
{
    struct search s = search_of(queries, source, kind, nearest, work);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < queries->rows; i++) {
        const int32_t *found = s.found + i * s.corners;
        int64_t at = start[i];
        for (int e = 0; e < s.corners; e++) {
            if (found[e] < 0) continue;
            other[at] = found[e];
            cell[at++] = (uint16_t)e;
        }
        if (at > start[i]) {
            if (weight && s.corners > 1) weigh_corners(&s, i, found, weight + start[i]);
            if (weight && s.corners == 1) weight[start[i]] = 1;
        } else if (at < start[i + 1]) {
            other[at] = nearest[i];
            cell[at] = 0;
            if (weight) weight[at] = 1;
        }
    }
}

void pnet_cpu_corners_transpose(const struct pnet_triplets *of, const float *weight,
    const struct pnet_triplets *back_of, float *back)
{
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < back_of->count; t++) {
        int64_t at = of->start[back_of->other[t]];
        while (of->cell[at] != back_of->cell[t]) at++;
        back[t] = weight[at];
    }
}
