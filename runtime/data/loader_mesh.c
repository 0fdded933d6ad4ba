/* Entries of completion that are made from meshes. */
#include "runtime/data/loader_sample.h"

#include <stdlib.h>

/* A mesh and its full cloud, while an entry is made. What the cache has taken over is not freed. */
struct made {
    struct pnet_surface *surface;
    struct pnet_sample *full;
    bool kept;
};

static const struct pnet_entry *entry_at(const struct pnet_sample_source *s, int64_t index)
{
    return &s->o.data->entries[s->o.split][index];
}

static void drop(struct made *m)
{
    if (m->surface) pnet_surface_free(m->surface);
    free(m->surface);
    pnet_sample_free(m->full);
    *m = (struct made){.surface = NULL};
}

/* Makes a sample of bare points, with the label of the entry. */
static enum pnet_status make_sample(struct pnet_sample_source *s, int64_t index, int input,
    float *xyz, int64_t rows, struct pnet_sample **sample, struct pnet_error *e)
{
    const struct pnet_entry *entry = entry_at(s, index);
    struct pnet_cloud cloud = {.rows = rows, .file_rows = rows, .xyz = xyz, .xyz_type = PNET_F32};
    return pnet_sample_source_make(
        s, input, &cloud, &entry->label, entry->label != PNET_LABEL_NONE, entry->cloud, sample, e);
}

/* Reads the mesh and draws its full cloud. On failure `m` is empty. */
static enum pnet_status make_full(struct pnet_sample_source *s, int64_t index,
    const struct pnet_partial *p, struct made *m, struct pnet_error *e)
{
    const struct pnet_entry *entry = entry_at(s, index);
    uint32_t first = (uint32_t)(index - entry->pair->view);
    struct pnet_views_draw draw = pnet_partial_full(p, (int)s->o.split, first);
    struct pnet_mesh mesh;
    enum pnet_status status = pnet_mesh_read(entry->cloud, &mesh, e);
    if (status) return status;
    float *xyz = malloc((size_t)p->full_points * 3 * sizeof *xyz);
    m->surface = calloc(1, sizeof *m->surface);
    if (!xyz || !m->surface) {
        pnet_mesh_free(&mesh);
        status = pnet_error_memory(e);
    } else {
        status = pnet_surface_make(entry->cloud, &mesh, m->surface, e);
    }
    if (!status) pnet_partial_draw_full(p, &draw, m->surface, xyz);
    if (!status) status = make_sample(s, index, s->roles.target, xyz, p->full_points, &m->full, e);
    free(xyz);
    if (status) drop(m);
    return status;
}

/* Puts the surface and the full cloud into the cache if there is room. */
static void keep(struct pnet_sample_source *s, int64_t place, struct made *m)
{
    uint64_t bytes = pnet_sample_bytes(m->full) + pnet_surface_bytes(m->surface);
    pthread_mutex_lock(&s->lock);
    m->kept = !s->kept[place + 1] && bytes <= s->o.cache_bytes &&
              s->kept_bytes <= s->o.cache_bytes - bytes;
    if (m->kept) {
        s->kept[place + 1] = m->full;
        s->surfaces[place / s->sides] = m->surface;
        s->kept_bytes += bytes;
    }
    pthread_mutex_unlock(&s->lock);
}

enum pnet_status pnet_sample_source_mesh(struct pnet_sample_source *s, uint32_t epoch,
    int64_t index, struct pnet_sample_item *item, struct pnet_error *e)
{
    const struct pnet_entry *entry = entry_at(s, index);
    const struct pnet_partial *p = &s->o.data->partials[entry->pair->partial];
    struct pnet_views_draw draw = pnet_sample_source_draw(s, epoch, index);
    int64_t place = pnet_sample_source_place(s, index), count = 0;
    enum pnet_status status = PNET_OK;
    float *xyz = NULL;
    pthread_mutex_lock(&s->lock);
    struct made m = {.surface = s->surfaces[place / s->sides], .full = s->kept[place + 1]};
    pthread_mutex_unlock(&s->lock);
    m.kept = m.full != NULL;
    if (!m.full) {
        status = make_full(s, index, p, &m, e);
        if (status) return status;
        keep(s, place, &m);
    }
    status = pnet_partial_view(entry->cloud, p, &draw, s->o.training ? -1 : entry->pair->view,
        m.surface, m.full->xyz, m.full->rows, &xyz, &count, e);
    if (!status) status = make_sample(s, index, s->roles.source, xyz, count, &item->own[0], e);
    free(xyz);
    if (status) {
        if (!m.kept) drop(&m);
        return status;
    }
    item->sample[0] = item->own[0];
    item->sample[1] = m.full;
    item->pose = pnet_pose_identity();
    if (m.kept) return PNET_OK;
    item->own[1] = m.full;
    m.full = NULL;
    drop(&m);
    return PNET_OK;
}
