#include "runtime/io/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Coordinates beyond this count as infinite: differences of two must stay within float32. */
#define FARTHEST 1e37

void pnet_placer_begin(struct pnet_placer *p)
{
    *p = (struct pnet_placer){.low = {INFINITY, INFINITY, INFINITY}};
}

/* Written so that NaN fails it. */
static bool is_near(const double v[3])
{
    return fabs(v[0]) <= FARTHEST && fabs(v[1]) <= FARTHEST && fabs(v[2]) <= FARTHEST;
}

void pnet_placer_measure(struct pnet_placer *p, int64_t n, const double *xyz)
{
    double low[3], most = p->most;
    memcpy(low, p->low, sizeof low);
    for (int64_t i = 0; i < n; i++) {
        const double *v = xyz + 3 * i;
        if (!is_near(v)) continue;
        p->kept++;
        for (int a = 0; a < 3; a++) {
            low[a] = v[a] < low[a] ? v[a] : low[a];
            most = fabs(v[a]) > most ? fabs(v[a]) : most;
        }
    }
    memcpy(p->low, low, sizeof low);
    p->most = most;
    p->rows += n;
}

bool pnet_placer_turn(struct pnet_placer *p)
{
    bool all = p->kept == p->rows;
    for (int a = 0; a < 3; a++) p->offset[a] = p->most < 1000 ? 0 : floor(p->low[a] / 100) * 100;
    p->xyz = calloc(p->kept ? (size_t)p->kept : 1, 3 * sizeof *p->xyz);
    p->row = all ? NULL : calloc(p->kept ? (size_t)p->kept : 1, sizeof *p->row);
    if (p->xyz && (all || p->row)) return true;
    free(p->xyz);
    free(p->row);
    return false;
}

void pnet_placer_put(struct pnet_placer *p, int64_t n, const double *xyz)
{
    float *to = p->xyz + 3 * p->put;
    if (!p->row) {
        for (int64_t i = 0; i < n; i++)
            for (int a = 0; a < 3; a++) to[3 * i + a] = (float)(xyz[3 * i + a] - p->offset[a]);
        p->put += n;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double *v = xyz + 3 * i;
        if (!is_near(v)) continue;
        for (int a = 0; a < 3; a++) *to++ = (float)(v[a] - p->offset[a]);
        p->row[p->put++] = p->read + i;
    }
    p->read += n;
}

/* Moves the rows that stay to the front, and the dropped rows into a block of their own. Rows ascend, so none is overwritten
   before it is moved. */
static bool thin(struct pnet_field *f, const int64_t *row, int64_t kept, int64_t rows)
{
    size_t size = pnet_scalar_size(f->type);
    uint8_t *data = f->data, *out = malloc((size_t)(rows - kept) * size);
    if (!out) return false;
    free(f->dropped);
    f->dropped = out;
    int64_t to = 0;
    for (int64_t i = 0; i < rows; i++) {
        bool stays = to < kept && row[to] == i;
        memmove(stays ? data + (size_t)to * size : out, data + (size_t)i * size, size);
        if (stays)
            to++;
        else
            out += size;
    }
    return true;
}

bool pnet_placer_end(struct pnet_placer *p, struct pnet_cloud *c)
{
    for (int i = 0; p->row && i < c->field_count; i++)
        if (!thin(&c->fields[i], p->row, p->kept, p->rows)) {
            free(p->xyz);
            free(p->row);
            return false;
        }
    free(c->xyz);
    free(c->file_row);
    c->xyz = p->xyz;
    c->file_row = p->row;
    c->rows = p->kept;
    c->file_rows = p->rows;
    memcpy(c->offset, p->offset, sizeof c->offset);
    return true;
}

void pnet_cloud_move_offset(struct pnet_cloud *c, const double offset[3])
{
    if (memcmp(c->offset, offset, sizeof c->offset) == 0) return;
    for (int64_t i = 0; i < 3 * c->rows; i++)
        c->xyz[i] = (float)((double)c->xyz[i] + (c->offset[i % 3] - offset[i % 3]));
    memcpy(c->offset, offset, sizeof c->offset);
}
