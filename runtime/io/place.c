#include "runtime/io/place.h"
#include "kernels/geometry.h"
#include "runtime/io/stray.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void pnet_placer_begin(struct pnet_placer *p, const double metres[2])
{
    *p = (struct pnet_placer){
        .low = {INFINITY, INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY, -INFINITY}};
    for (int a = 0; a < 3; a++) p->metres[a] = metres[a == 2] > 0 ? metres[a == 2] : 1;
}

/* -0 becomes 0, as offset + xyz gives it: a coordinate has the same bits whatever the offset is, or was. A comparison that NaN
   fails. */
bool pnet_placer_convert(const struct pnet_placer *p, const double xyz[3], double v[3])
{
    for (int a = 0; a < 3; a++) v[a] = xyz[a] * p->metres[a] + 0.0;
    return fabs(v[0]) <= PNET_FARTHEST && fabs(v[1]) <= PNET_FARTHEST &&
           fabs(v[2]) <= PNET_FARTHEST;
}

void pnet_placer_measure(struct pnet_placer *p, int64_t n, const double *xyz)
{
    double low[3], high[3];
    memcpy(low, p->low, sizeof low);
    memcpy(high, p->high, sizeof high);
    for (int64_t i = 0; i < n; i++) {
        double v[3];
        if (!pnet_placer_convert(p, xyz + 3 * i, v)) continue;
        p->kept++;
        for (int a = 0; a < 3; a++) {
            low[a] = v[a] < low[a] ? v[a] : low[a];
            high[a] = v[a] > high[a] ? v[a] : high[a];
        }
    }
    memcpy(p->low, low, sizeof low);
    memcpy(p->high, high, sizeof high);
    p->rows += n;
}

void pnet_offset_of_box(const double low[3], const double high[3], double offset[3])
{
    bool near = true;
    for (int a = 0; a < 3; a++) near = near && low[a] > -1000 && high[a] < 1000;
    for (int a = 0; a < 3; a++) offset[a] = near ? 0 : floor(low[a] / 100) * 100;
}

static void drop(struct pnet_placer *p)
{
    free(p->xyz);
    free(p->exact);
    free(p->row);
}

bool pnet_placer_turn(struct pnet_placer *p, const struct pnet_placing *placing)
{
    bool all = p->kept == p->rows, exact = placing && placing->exact;
    size_t room = p->kept ? (size_t)p->kept : 1;
    p->placed = placing;
    if (placing)
        memcpy(p->offset, placing->offset, sizeof p->offset);
    else if (p->kept)
        pnet_offset_of_box(p->low, p->high, p->offset);
    p->xyz = calloc(room, 3 * sizeof *p->xyz);
    p->row = all ? NULL : calloc(room, sizeof *p->row);
    p->exact = exact ? malloc(room * 3 * sizeof *p->exact) : NULL;
    if (p->xyz && (all || p->row) && (!exact || p->exact)) return true;
    drop(p);
    return false;
}

/* Begins to keep file coordinates. Those of the rows before are offset + xyz. Returns false if memory is out. */
static bool begin_exact(struct pnet_placer *p)
{
    p->exact = malloc((size_t)p->kept * 3 * sizeof *p->exact);
    p->failed |= !p->exact;
    for (int64_t i = 0; p->exact && i < 3 * p->put; i++)
        p->exact[i] = p->offset[i % 3] + (double)p->xyz[i];
    return p->exact != NULL;
}

/* Writes a point to row p->put. */
static void put_one(struct pnet_placer *p, const double v[3])
{
    float *to = p->xyz + 3 * p->put;
    bool same = true;
    for (int a = 0; a < 3; a++) {
        to[a] = (float)(v[a] - p->offset[a]);
        same &= p->offset[a] + (double)to[a] == v[a];
    }
    if (p->exact || (!same && !p->failed && begin_exact(p)))
        memcpy(p->exact + 3 * p->put, v, 3 * sizeof *v);
}

void pnet_placer_put(struct pnet_placer *p, int64_t n, const double *xyz)
{
    if (!p->row) {
        double v[3];
        for (int64_t i = 0; i < n; i++, p->put++) {
            pnet_placer_convert(p, xyz + 3 * i, v);
            put_one(p, v);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double v[3];
        if (!pnet_placer_convert(p, xyz + 3 * i, v)) continue;
        put_one(p, v);
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

bool pnet_placer_is_wide(const struct pnet_placer *p)
{
    double size = 0;
    for (int a = 0; a < 3; a++) size = fmax(size, p->high[a] - p->low[a]);
    return size > PNET_STRAY_GAP_M;
}

/* Takes the strays out of the choice of the offset. */
static enum pnet_status settle(struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_box core;
    double offset[3];
    enum pnet_status status =
        pnet_strays_find(pnet_cloud_walk, (void *)(uintptr_t)c, &core, &c->strays, e);
    if (status || !c->strays.count) return status;
    pnet_offset_of_box(core.low, core.high, offset);
    return pnet_cloud_move_offset(c, offset, e);
}

enum pnet_status pnet_placer_end(struct pnet_placer *p, struct pnet_cloud *c, struct pnet_error *e)
{
    bool whole = !p->failed;
    for (int i = 0; whole && p->row && i < c->field_count; i++)
        whole = thin(&c->fields[i], p->row, p->kept, p->rows);
    if (!whole) {
        drop(p);
        return pnet_error_memory(e);
    }
    free(c->xyz);
    free(c->exact);
    free(c->file_row);
    c->xyz = p->xyz;
    c->exact = p->exact;
    c->file_row = p->row;
    c->rows = p->kept;
    c->file_rows = p->rows;
    c->strays = (struct pnet_strays){.count = 0};
    memcpy(c->offset, p->offset, sizeof c->offset);
    return pnet_placer_is_wide(p) && !p->placed ? settle(c, e) : PNET_OK;
}

void pnet_cloud_forget_exact(struct pnet_cloud *c)
{
    free(c->exact);
    c->exact = NULL;
}

/* Tells whether offset + xyz would be the file coordinates exactly. */
static bool is_exact(const struct pnet_cloud *c, const double offset[3])
{
    for (int64_t i = 0; i < c->rows; i++)
        for (int a = 0; a < 3; a++) {
            double v = pnet_cloud_at(c, i, a);
            if (offset[a] + (double)(float)(v - offset[a]) != v) return false;
        }
    return true;
}

/* Makes c->exact if there is none. */
static enum pnet_status keep_exact(struct pnet_cloud *c, struct pnet_error *e)
{
    if (c->exact) return PNET_OK;
    double *all = malloc((size_t)c->rows * 3 * sizeof *all + 1);
    if (!all) return pnet_error_memory(e);
    for (int64_t i = 0; i < c->rows; i++)
        for (int a = 0; a < 3; a++) all[3 * i + a] = pnet_cloud_at(c, i, a);
    c->exact = all;
    return PNET_OK;
}

enum pnet_status pnet_cloud_move_offset(
    struct pnet_cloud *c, const double offset[3], struct pnet_error *e)
{
    if (memcmp(c->offset, offset, sizeof c->offset) == 0) return PNET_OK;
    bool exact = is_exact(c, offset);
    enum pnet_status status = exact ? PNET_OK : keep_exact(c, e);
    if (status) return status;
    for (int64_t i = 0; i < 3 * c->rows; i++)
        c->xyz[i] = (float)(pnet_cloud_at(c, i / 3, (int)(i % 3)) - offset[i % 3]);
    if (exact) pnet_cloud_forget_exact(c);
    memcpy(c->offset, offset, sizeof c->offset);
    return PNET_OK;
}

enum pnet_status pnet_cloud_transform(
    struct pnet_cloud *c, const double pose[16], const double offset[3], struct pnet_error *e)
{
    enum pnet_status status = keep_exact(c, e);
    if (status) return status;
    for (int64_t i = 0; i < c->rows; i++) {
        double *v = c->exact + 3 * i, p[3];
        for (int a = 0; a < 3; a++) p[a] = v[a] - c->offset[a];
        for (int a = 0; a < 3; a++) {
            const double *t = pose + 4 * a;
            double q = t[0] * p[0] + t[1] * p[1] + t[2] * p[2] + t[3];
            v[a] = offset[a] + q;
            c->xyz[3 * i + a] = (float)q;
        }
    }
    memcpy(c->offset, offset, sizeof c->offset);
    return PNET_OK;
}

double pnet_cloud_loss(const struct pnet_cloud *c)
{
    double most = 0;
    for (int64_t i = 0; c->exact && i < 3 * c->rows; i++) {
        double lost = fabs(c->offset[i % 3] + (double)c->xyz[i] - c->exact[i]);
        most = lost > most ? lost : most; /* NaN is not */
    }
    return most;
}
