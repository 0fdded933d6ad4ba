#include "runtime/synth/synth_rand.h"
#include "runtime/synth/synth_scene.h"

#include <stdlib.h>

enum { CELLS_MOST = 1 << 22 };

void pnet_tracer_free(struct pnet_tracer *g)
{
    free(g->start);
    free(g->item);
    *g = (struct pnet_tracer){0};
}

static float part(struct pnet_vec v, int axis)
{
    return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

/* Finds the cells that the solid's box covers, as [low, high] on each axis. */
static void covered(
    const struct pnet_tracer *g, const struct pnet_solid *s, int low[3], int high[3])
{
    struct pnet_vec reach = pnet_solid_reach(s);
    for (int k = 0; k < 3; k++) {
        /* The box is enlarged a little, so that rounding in the walk cannot miss a solid. */
        float r = part(reach, k) + 1e-3f * g->cell_m, c = part(s->centre, k) - part(g->low, k);
        low[k] = (int)((c - r) / g->cell_m);
        high[k] = (int)((c + r) / g->cell_m);
        if (low[k] < 0) low[k] = 0;
        if (high[k] > g->size[k] - 1) high[k] = g->size[k] - 1;
    }
}

/* Visits the cells of every solid; with `item` NULL counts into start[cell], else fills. */
static void scatter(struct pnet_tracer *g)
{
    for (int i = 0; i < g->scene->count; i++) {
        int low[3], high[3];
        covered(g, &g->scene->solids[i], low, high);
        for (int x = low[0]; x <= high[0]; x++)
            for (int y = low[1]; y <= high[1]; y++)
                for (int z = low[2]; z <= high[2]; z++) {
                    int cell = (x * g->size[1] + y) * g->size[2] + z;
                    if (g->item)
                        g->item[g->start[cell]++] = i;
                    else
                        g->start[cell]++;
                }
    }
}

static void set_size(struct pnet_tracer *g, float cell_m)
{
    struct pnet_vec low = vec(0, 0, 0), high = low;
    for (int i = 0; i < g->scene->count; i++) {
        const struct pnet_solid *s = &g->scene->solids[i];
        struct pnet_vec r = pnet_solid_reach(s), a = vec_sub(s->centre, r),
                        b = vec_add(s->centre, r);
        if (!i) {
            low = a;
            high = b;
        }
        low = vec(fminf(low.x, a.x), fminf(low.y, a.y), fminf(low.z, a.z));
        high = vec(fmaxf(high.x, b.x), fmaxf(high.y, b.y), fmaxf(high.z, b.z));
    }
    g->low = low;
    g->cell_m = cell_m;
    for (;; g->cell_m *= 1.25f) {
        int64_t cells = 1;
        for (int k = 0; k < 3; k++) {
            g->size[k] = (int)((part(high, k) - part(low, k)) / g->cell_m) + 1;
            cells *= g->size[k];
        }
        if (cells <= CELLS_MOST) return;
    }
}

bool pnet_tracer_build(struct pnet_tracer *g, const struct pnet_scene *scene, float cell_m)
{
    *g = (struct pnet_tracer){.scene = scene};
    set_size(g, cell_m);
    int cells = g->size[0] * g->size[1] * g->size[2];
    g->start = calloc((size_t)cells + 1, sizeof *g->start);
    if (!g->start) return false;
    scatter(g);
    int32_t sum = 0;
    for (int c = 0; c <= cells; c++) {
        int32_t n = g->start[c];
        g->start[c] = sum;
        sum += n;
    }
    g->item = malloc((size_t)(sum ? sum : 1) * sizeof *g->item);
    if (!g->item) {
        pnet_tracer_free(g);
        return false;
    }
    scatter(g);
    /* Filling has moved each start to the start of the next cell. */
    for (int c = cells; c > 0; c--) g->start[c] = g->start[c - 1];
    g->start[0] = 0;
    return true;
}

/* A walk along a ray, cell by cell (Amanatides and Woo, "A fast voxel traversal algorithm for ray
   tracing", Eurographics 1987). */
struct walk {
    int cell[3], step[3];
    float next[3], delta[3]; /* t at the next border, and from border to border */
    float until;
};

static bool walk_begin(struct walk *w, const struct pnet_tracer *g, struct pnet_vec origin,
    struct pnet_vec direction, float reach)
{
    float from = 0;
    w->until = reach;
    for (int k = 0; k < 3; k++) {
        float o = part(origin, k) - part(g->low, k), d = part(direction, k);
        float edge = (float)g->size[k] * g->cell_m;
        if (d == 0) {
            if (o < 0 || o >= edge) return false;
            continue;
        }
        float t0 = -o / d, t1 = (edge - o) / d;
        from = fmaxf(from, fminf(t0, t1));
        w->until = fminf(w->until, fmaxf(t0, t1));
    }
    if (from > w->until) return false;
    for (int k = 0; k < 3; k++) {
        float o = part(origin, k) - part(g->low, k), d = part(direction, k);
        int c = (int)floorf((o + from * d) / g->cell_m);
        w->cell[k] = c < 0 ? 0 : c >= g->size[k] ? g->size[k] - 1 : c;
        w->step[k] = d > 0 ? 1 : -1;
        w->delta[k] = d != 0 ? g->cell_m / fabsf(d) : INFINITY;
        w->next[k] = INFINITY;
        if (d != 0) w->next[k] = ((float)(w->cell[k] + (d > 0)) * g->cell_m - o) / d;
    }
    return true;
}

/* Moves to the next cell. Returns false beyond the grid or the reach. */
static bool walk_on(struct walk *w, const struct pnet_tracer *g)
{
    int k = w->next[0] < w->next[1] ? 0 : 1;
    if (w->next[2] < w->next[k]) k = 2;
    if (w->next[k] > w->until) return false;
    w->next[k] += w->delta[k];
    w->cell[k] += w->step[k];
    return w->cell[k] >= 0 && w->cell[k] < g->size[k];
}

static float walk_leave(const struct walk *w)
{
    return fminf(fminf(w->next[0], w->next[1]), fminf(w->next[2], w->until));
}

static int walk_cell(const struct walk *w, const struct pnet_tracer *g)
{
    return (w->cell[0] * g->size[1] + w->cell[1]) * g->size[2] + w->cell[2];
}

struct pnet_hit pnet_tracer_cast(const struct pnet_tracer *g, struct pnet_vec origin,
    struct pnet_vec direction, float reach, const struct pnet_rand *rand, uint64_t ray)
{
    struct pnet_hit hit = {-1, reach};
    struct walk w;
    if (!walk_begin(&w, g, origin, direction, reach)) return hit;
    float scale = 1 / vec_length(direction);
    do {
        int cell = walk_cell(&w, g);
        for (int32_t i = g->start[cell]; i < g->start[cell + 1]; i++) {
            const struct pnet_solid *s = &g->scene->solids[g->item[i]];
            float enter = 0, leave = hit.t;
            if (!pnet_solid_cut(s, origin, direction, &enter, &leave)) continue;
            if (s->brush.clear_m > 0) {
                /* Drawn for the pair of ray and solid, because several cells may draw it. */
                float u = pnet_rand_unit(rand, (ray << 12) + (uint64_t)(g->item[i] & 0xfff));
                enter -= s->brush.clear_m * scale * logf(1 - u);
                if (enter > leave) continue;
            }
            if (enter < hit.t || hit.solid < 0) hit = (struct pnet_hit){g->item[i], enter};
        }
    } while ((hit.solid < 0 || hit.t > walk_leave(&w)) && walk_on(&w, g));
    return hit;
}

bool pnet_tracer_sees(const struct pnet_tracer *g, struct pnet_vec from, struct pnet_vec to)
{
    struct pnet_vec direction = vec_sub(to, from);
    struct walk w;
    if (!walk_begin(&w, g, from, direction, 1)) return true;
    do {
        int cell = walk_cell(&w, g);
        for (int32_t i = g->start[cell]; i < g->start[cell + 1]; i++) {
            float enter = 0, leave = 1;
            if (pnet_solid_cut(&g->scene->solids[g->item[i]], from, direction, &enter, &leave))
                return false;
        }
    } while (walk_on(&w, g));
    return true;
}
