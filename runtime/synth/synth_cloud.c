#include "runtime/synth/synth_cloud.h"

#include <stdlib.h>
#include <string.h>

enum pnet_status pnet_synth_cloud(struct pnet_cloud *c, int64_t rows,
    const struct pnet_synth_field *fields, int count, struct pnet_error *e)
{
    *c = (struct pnet_cloud){.rows = rows, .file_rows = rows, .xyz_type = PNET_F32};
    c->xyz = malloc((size_t)(rows ? rows : 1) * 3 * sizeof *c->xyz);
    if (!c->xyz) goto no_memory;
    for (int i = 0; i < count; i++)
        if (!pnet_cloud_add(c, fields[i].name, fields[i].type)) goto no_memory;
    return PNET_OK;
no_memory:
    pnet_cloud_free(c);
    *c = (struct pnet_cloud){0};
    return pnet_error_memory(e);
}

void pnet_synth_pack(struct pnet_cloud *c)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        if (isnan(c->xyz[3 * i])) continue;
        if (kept != i) {
            memcpy(c->xyz + 3 * kept, c->xyz + 3 * i, 3 * sizeof *c->xyz);
            for (int k = 0; k < c->field_count; k++) {
                size_t size = pnet_scalar_size(c->fields[k].type);
                char *data = c->fields[k].data;
                memcpy(data + (size_t)kept * size, data + (size_t)i * size, size);
            }
        }
        kept++;
    }
    c->rows = c->file_rows = kept;
}

enum pnet_status pnet_faces_list(
    struct pnet_faces *f, const struct pnet_scene *s, struct pnet_error *e)
{
    *f = (struct pnet_faces){0};
    size_t most = (size_t)s->count * PNET_FACES_MOST;
    f->face = calloc(most ? most : 1, sizeof *f->face);
    if (s->failed || !f->face) {
        free(f->face);
        f->face = NULL;
        return pnet_error_memory(e);
    }
    for (int i = 0; i < s->count; i++) {
        for (int k = 0; k < pnet_solid_faces(&s->solids[i]); k++) {
            if (!(s->solids[i].faces >> k & 1)) continue;
            struct pnet_face *face = &f->face[f->count++];
            *face = (struct pnet_face){.solid = i, .face = k};
            face->weight = pnet_solid_area(&s->solids[i], k, &face->most);
        }
    }
    pnet_faces_sum(f);
    return PNET_OK;
}

void pnet_faces_sum(struct pnet_faces *f)
{
    f->sum = 0;
    for (int i = 0; i < f->count; i++) {
        f->face[i].before = f->sum;
        f->sum += f->face[i].weight;
    }
}

int pnet_faces_find(const struct pnet_faces *f, double share)
{
    double at = share * f->sum;
    int low = 0, high = f->count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (f->face[middle].before <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void pnet_face_draw(const struct pnet_scene *s, const struct pnet_face *f, struct pnet_draw *d,
    struct pnet_vec *p, struct pnet_vec *normal)
{
    float length;
    do {
        float u = draw_unit(d), v = draw_unit(d);
        pnet_solid_point(&s->solids[f->solid], f->face, u, v, p, normal);
        length = vec_length(*normal);
    } while (draw_unit(d) * f->most > length);
    *normal = vec_scale(*normal, 1 / length);
}

bool pnet_faces_draw(const struct pnet_scene *s, const struct pnet_faces *f, struct pnet_draw *d,
    struct pnet_vec *p, struct pnet_vec *normal)
{
    for (int tries = 0; tries < 64; tries++) {
        int face = pnet_faces_find(f, draw_unit(d));
        pnet_face_draw(s, &f->face[face], d, p, normal);
        bool inside = false;
        for (int i = 0; i < s->count && !inside; i++)
            inside = i != f->face[face].solid && pnet_solid_contains(&s->solids[i], *p, 1e-3f);
        if (!inside) return true;
    }
    return false;
}
