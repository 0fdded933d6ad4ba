/* Triplet sets: found, transposed, laid out as tiles. */
#include "runtime/geo/triplets.h"

#include "kernels/geometry_stage.h"
#include "runtime/base/json.h"
#include "runtime/base/number.h"

#include <math.h>
#include <string.h>

/* A build without CUDA computes the sizes of a GPU's buffers, and builds nothing on a GPU. */
#ifdef PNET_CUDA_BUILT
#define ON_GPU(call) call
#else
#define ON_GPU(call) (void)0
#endif

bool pnet_set_transposes(unsigned forms)
{
    return forms & (PNET_FORM_TRANSPOSED | PNET_FORM_TRANSPOSED_TILES);
}

bool pnet_set_has_tiles(unsigned forms, int form)
{
    return forms & (form ? PNET_FORM_TRANSPOSED_TILES : PNET_FORM_FORWARD_TILES);
}

size_t pnet_set_tile_bytes(int64_t rows)
{
    int64_t tiles = (pnet_capacity(rows) + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
    return (size_t)tiles * sizeof(struct pnet_tile);
}

/* Is the transposed form written by a second search over the first one's row starts, instead of sorting it? */
static bool searches_back(enum pnet_device_kind device, const struct pnet_geo_request *q)
{
    return device == PNET_CUDA && q->a == q->b && pnet_cuda_triplets_mutual(&q->triplets.nb);
}

static int32_t cells_of(const struct pnet_geo_request *q)
{
    int32_t kernel = q->triplets.nb.kernel;
    return kernel * kernel * kernel;
}

static bool same(const struct pnet_geo_request *q, const struct pnet_geo_request *r)
{
    const struct pnet_neighbourhood *a = &q->triplets.nb, *b = &r->triplets.nb;
    return a->kernel == b->kernel && a->radius == b->radius && a->knn == b->knn &&
           a->shape == b->shape && a->degrade == b->degrade && a->pointwise == b->pointwise;
}

static uint32_t mix(const struct pnet_geo_request *q)
{
    const struct pnet_neighbourhood *nb = &q->triplets.nb;
    uint32_t bits;
    memcpy(&bits, &nb->radius, sizeof bits);
    return (bits * 31 + (uint32_t)nb->kernel) * 31 + (uint32_t)nb->knn;
}

/* Between levels the set contains the pair of each point and its cell's point, so the map from points to cells is built first. */
static bool needs(const struct pnet_geo_request *q, struct pnet_geo_request *needed)
{
    *needed = (struct pnet_geo_request){.kind = PNET_GEO_PARENT, .a = q->b, .b = q->a};
    return q->a != q->b;
}

/* Triplets that no layer reads one by one lie in memory that the next set overwrites. */
static enum pnet_geo_owner owner(const struct pnet_plan *p, int item, unsigned forms, int which)
{
    (void)p;
    (void)item;
    if (which == SET_OTHER || which == SET_CELL)
        return forms & PNET_FORM_FORWARD ? PNET_OWNER_SLOT : PNET_OWNER_PASSING;
    if (which == SET_T_OTHER || which == SET_T_CELL)
        return forms & PNET_FORM_TRANSPOSED ? PNET_OWNER_SLOT : PNET_OWNER_PASSING;
    return PNET_OWNER_SLOT;
}

/* The levels of a set, and the same with the rows of their classes. */
struct sides {
    struct pnet_level out, in, out_room, in_room;
};

static struct sides sides_of(const struct pnet_geo_walk *w)
{
    int a = w->q->a, b = w->q->b;
    return (struct sides){
        pnet_geo_level(w, a), pnet_geo_level(w, b), pnet_geo_room(w, a), pnet_geo_room(w, b)};
}

static struct pnet_triplets walk_forward(struct pnet_geo_walk *w, const struct sides *z)
{
    const struct pnet_geo_request *q = w->q;
    const struct pnet_neighbourhood *nb = &q->triplets.nb;
    bool same_level = q->a == q->b;
    const struct pnet_level *in = same_level ? &z->out : &z->in;
    size_t bytes = PNET_WORK(w->device, triplets_work)(
        &z->out_room, same_level ? &z->out_room : &z->in_room, nb);
    struct pnet_geo_request map;
    const int32_t *parent = needs(q, &map) && pnet_geo_builds(w)
                                ? pnet_geo_built(w, pnet_geo_find(w->plan, &map))->parent
                                : NULL;
    int64_t *count = &w->counts->of[w->item][SET_COUNT];
    int64_t *start = pnet_geo_buffer(w, SET_START, z->out.rows, 1, 1, sizeof *start);
    void *work = pnet_geo_scratch(w, bytes);
    if (pnet_geo_builds(w))
        *count = PNET_KERNEL(w, triplets_count)(&z->out, in, nb, parent, start, work);
    int32_t *other = pnet_geo_buffer(w, SET_OTHER, *count, 1, 0, sizeof *other);
    uint16_t *cell = pnet_geo_buffer(w, SET_CELL, *count, 1, 0, sizeof *cell);
    if (pnet_geo_builds(w))
        PNET_KERNEL(w, triplets_write)(&z->out, in, nb, parent, start, other, cell, work);
    return (struct pnet_triplets){.rows = z->out.rows,
        .others = z->in.rows,
        .count = *count,
        .cells = cells_of(q),
        .start = start,
        .other = other,
        .cell = cell};
}

static struct pnet_triplets walk_transposed(
    struct pnet_geo_walk *w, const struct sides *z, const struct pnet_triplets *f)
{
    int32_t *other = pnet_geo_buffer(w, SET_T_OTHER, f->count, 1, 0, sizeof *other);
    uint16_t *cell = pnet_geo_buffer(w, SET_T_CELL, f->count, 1, 0, sizeof *cell);
    struct pnet_triplets t = {.rows = f->others,
        .others = f->rows,
        .count = f->count,
        .cells = f->cells,
        .start = f->start,
        .other = other,
        .cell = cell};
    if (searches_back(w->device, w->q)) {
        const struct pnet_neighbourhood *nb = &w->q->triplets.nb;
        void *work = pnet_geo_scratch(w, pnet_cuda_triplets_work(&z->in_room, &z->in_room, nb));
        if (pnet_geo_builds(w))
            ON_GPU(pnet_cuda_triplets_back(&z->in, nb, f->start, other, cell, work));
        (void)work;
        return t;
    }
    struct pnet_triplets room = {.rows = z->out_room.rows,
        .others = z->in_room.rows,
        .count = pnet_capacity(f->count),
        .cells = f->cells};
    int64_t *start = pnet_geo_buffer(w, SET_T_START, t.rows, 1, 1, sizeof *start);
    void *work = pnet_geo_scratch(w, PNET_WORK(w->device, transpose_work)(&room));
    if (pnet_geo_builds(w)) PNET_KERNEL(w, transpose)(f, start, other, cell, work);
    t.start = start;
    return t;
}

/* A form as tiles, on a GPU. Rows behind the true number, up to the capacity class, get tiles in which there is nothing. */
static void walk_tiles(struct pnet_geo_walk *w, int form, const struct pnet_triplets *set)
{
    int64_t *words = &w->counts->of[w->item][SET_WORDS + form];
    unsigned *marks = &w->counts->marks[w->item];
    struct pnet_tile *tile = pnet_geo_block(w, SET_TILE + form, pnet_set_tile_bytes(set->rows));
    struct pnet_triplets room = *set;
    room.rows = pnet_capacity(set->rows);
    room.live = pnet_geo_live(w, form ? w->q->b : w->q->a);
    void *work = pnet_geo_scratch(w, pnet_cuda_tiles_work(room.rows));
    if (pnet_geo_builds(w)) {
        ON_GPU(*words = pnet_cuda_tiles_count(&room, tile, work));
        ON_GPU(*marks |= (unsigned)(pnet_cuda_tiles_unlisted(room.rows, tile) > 0) << form);
    }
    uint32_t *list = pnet_geo_buffer(w, SET_LIST + form, *words, 1, 0, sizeof *list);
    if (pnet_geo_builds(w)) ON_GPU(pnet_cuda_tiles_write(&room, tile, list));
    (void)marks;
    (void)tile;
    (void)work;
    (void)list;
}

/* Where the host measures for a GPU's plan: how much tiles would take. */
static void count_tiles(struct pnet_geo_walk *w, int form, const struct pnet_triplets *set)
{
    bool unlisted = false;
    if (!pnet_geo_builds(w)) return;
    w->counts->of[w->item][SET_WORDS + form] = pnet_cpu_tiles_words(set, &unlisted);
    w->counts->marks[w->item] |= (unsigned)unlisted << form;
}

/* Triplets that pass are kept where a tile lists nothing. */
static void keep_triplets(struct pnet_geo_walk *w, int form, const struct pnet_triplets *set)
{
    int other = form ? SET_T_OTHER : SET_OTHER, cell = form ? SET_T_CELL : SET_CELL;
    bool kept = w->owner[other] == PNET_OWNER_SLOT,
         unlisted = w->counts->marks[w->item] >> form & 1;
    if (kept || !unlisted) return;
    pnet_geo_own(w, other, set->other, set->count, sizeof *set->other);
    pnet_geo_own(w, cell, set->cell, set->count, sizeof *set->cell);
}

static void walk(struct pnet_geo_walk *w)
{
    struct sides z = sides_of(w);
    bool transposes = pnet_set_transposes(w->forms);
    struct pnet_triplets sets[2] = {walk_forward(w, &z)};
    if (transposes) sets[1] = walk_transposed(w, &z, &sets[0]);
    if (pnet_geo_builds(w)) w->counts->marks[w->item] = 0;
    for (int form = 0; form < 2; form++) {
        if (!pnet_set_has_tiles(w->forms, form)) continue;
        if (w->device == PNET_CPU)
            count_tiles(w, form, &sets[form]);
        else
            walk_tiles(w, form, &sets[form]);
    }
    for (int form = 0; form < 1 + transposes; form++) keep_triplets(w, form, &sets[form]);
}

static struct pnet_tiles tiles_of(const struct pnet_geo_look *l, int form)
{
    if (!pnet_set_has_tiles(l->forms, form)) return (struct pnet_tiles){0};
    return (struct pnet_tiles){pnet_look_count(l, SET_WORDS + form),
        pnet_look_data(l, l->item, SET_TILE + form), pnet_look_data(l, l->item, SET_LIST + form)};
}

/* The shape of the transposed form is there whether it is built or not: workspaces are sized by it. */
static void view(const struct pnet_geo_look *l, struct pnet_geo_view *v)
{
    struct pnet_triplets *f = &v->forward, *t = &v->transposed;
    *f = (struct pnet_triplets){.rows = v->a_rows,
        .others = v->b_rows,
        .count = pnet_look_count(l, SET_COUNT),
        .cells = cells_of(l->q),
        .start = pnet_look_data(l, l->item, SET_START),
        .other = pnet_look_data(l, l->item, SET_OTHER),
        .cell = pnet_look_data(l, l->item, SET_CELL),
        .live = v->a_live,
        .tiles = tiles_of(l, 0)};
    *t = (struct pnet_triplets){.rows = f->others,
        .others = f->rows,
        .count = f->count,
        .cells = f->cells,
        .live = v->b_live,
        .tiles = tiles_of(l, 1)};
    if (!pnet_set_transposes(l->forms)) return;
    t->start = searches_back(l->device, l->q) ? f->start : pnet_look_data(l, l->item, SET_T_START);
    t->other = pnet_look_data(l, l->item, SET_T_OTHER);
    t->cell = pnet_look_data(l, l->item, SET_T_CELL);
}

/* A neighbourhood holds seven points for each kernel cell along an edge; tiles take 1.2 words a triplet. */
static void assume(const struct pnet_plan *p, int item, unsigned forms, struct pnet_counts *c)
{
    const struct pnet_geo_request *q = &p->geo[item].request;
    const struct pnet_neighbourhood *nb = &q->triplets.nb;
    double each = nb->pointwise ? 1 : nb->knn ? nb->knn : pow(nb->kernel, 2) * 1.6;
    c->of[item][SET_COUNT] = pnet_geo_assumed((double)c->rows[q->a] * each);
    for (int form = 0; form < 2; form++)
        if (pnet_set_has_tiles(forms, form))
            c->of[item][SET_WORDS + form] = pnet_geo_assumed((double)c->of[item][SET_COUNT] * 1.2);
}

static void print(const struct pnet_plan *p, const struct pnet_geo_request *q, FILE *out)
{
    const struct pnet_neighbourhood *nb = &q->triplets.nb;
    (void)p;
    fprintf(out, "  K=%d", nb->kernel);
    if (nb->knn)
        fprintf(out, " knn=%d", nb->knn);
    else
        pnet_number_write(out, " radius=%gm", (double)nb->radius);
    fputs(nb->shape == PNET_CUBE ? " cube" : "", out);
}

static void describe(const struct pnet_plan *p, int item, const struct pnet_counts *c, FILE *out)
{
    const struct pnet_geo_request *q = &p->geo[item].request;
    const struct pnet_neighbourhood *nb = &q->triplets.nb;
    int64_t count = c->of[item][SET_COUNT], rows = c->rows[q->a];
    fprintf(out, "  %s <- %s, K=%d, ", p->levels[q->a].name, p->levels[q->b].name, nb->kernel);
    if (nb->pointwise)
        fprintf(out, "point by point");
    else if (nb->knn)
        fprintf(out, "knn %d", nb->knn);
    else
        pnet_number_write(out, "radius %g m", (double)nb->radius);
    pnet_number_write(out, ": %lld triplets, %.1f a point; layers:", (long long)count,
        rows ? (double)count / (double)rows : 0);
    for (int n = 0; n < p->node_count; n++)
        for (int g = 0; g < p->nodes[n].geo_count && !p->nodes[n].dead; g++)
            if (p->nodes[n].geo[g] == item) fprintf(out, " %s", p->nodes[n].path);
    fputc('\n', out);
}

static void json(
    const struct pnet_plan *p, int item, const struct pnet_counts *c, struct pnet_json *j)
{
    const struct pnet_geo_request *q = &p->geo[item].request;
    pnet_json_string(j, "centres", p->levels[q->a].name);
    pnet_json_string(j, "neighbours", p->levels[q->b].name);
    pnet_json_int(j, "kernel", q->triplets.nb.kernel);
    pnet_json_double(j, "radius_m", (double)q->triplets.nb.radius);
    pnet_json_int(j, "knn", q->triplets.nb.knn);
    pnet_json_string(j, "shape", q->triplets.nb.shape == PNET_CUBE ? "cube" : "ball");
    pnet_json_int(j, "triplets", c->of[item][SET_COUNT]);
    pnet_json_int(j, "layers", p->geo[item].users);
}

/* By window: a centre lies in the voxels u to u + s - 1 of the neighbours' grid on each axis, its neighbours in u - (K - 1) / 2
   to u + (K - 1) / 2, or, with even K, in u to u + K - 1. */
static struct pnet_geo_reach window_reach(int kernel, double cell, double edge)
{
    if (kernel % 2) {
        int cells = (kernel - 1) / 2;
        double half = cells * cell;
        return (struct pnet_geo_reach){edge + half, {half, half + edge - cell}};
    }
    double all = kernel * cell;
    return (struct pnet_geo_reach){fmax(edge, all), {fmax(all - edge, 0), fmax(all, edge) - cell}};
}

/* By radius: from the centre, or from that of voxel u; and each child. */
static struct pnet_geo_reach reach(const struct pnet_plan *p, const struct pnet_geo_request *q)
{
    const struct pnet_neighbourhood *nb = &q->triplets.nb;
    double cell = p->levels[q->b].cell, edge = p->levels[q->a].cell, far = (double)nb->radius;
    if (nb->knn) return pnet_geo_anywhere();
    if (nb->pointwise) return (struct pnet_geo_reach){0, {0, 0}};
    if (nb->degrade & PNET_NEIGHBOUR) return window_reach(nb->kernel, cell, edge);
    if (nb->degrade & PNET_CENTRE) far += edge;
    if (q->a != q->b) far = fmax(far, pnet_geo_parent_reach(p, q->b, q->a).apart);
    return (struct pnet_geo_reach){far, {far + cell, far + edge}};
}

const struct pnet_geo_kind pnet_geo_triplets = {
    .name = "triplets",
    .flags = PNET_GEO_SEARCHES,
    .counts = 3,
    .class_counts = 1,
    .part = {PNET_PART_TRIPLETS, PNET_PART_TRIPLETS, PNET_PART_TRIPLETS, PNET_PART_TRIPLETS,
        PNET_PART_TRIPLETS, PNET_PART_TRIPLETS, [SET_TILE] = PNET_PART_TILES,
        PNET_PART_TILES, [SET_LIST] = PNET_PART_TILES, PNET_PART_TILES},
    .same = same,
    .mix = mix,
    .needs = needs,
    .owner = owner,
    .reach = reach,
    .walk = walk,
    .view = view,
    .assume = assume,
    .print = print,
    .heading = "triplet sets:",
    .describe = describe,
    .list = "triplet_sets",
    .json = json,
};
