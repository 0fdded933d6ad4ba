/* Voxels of sparse convolutions: sorted, and those that taps lead to. */
#include "kernels/cpu/geometry/geo_tree.h"
#include "kernels/geometry_stage.h"
#include "kernels/morton.h"
#include "kernels/taps.h"

#include <string.h>

/* Memory of a sort. */
struct sorting {
    uint64_t *key;  /* [rows], by sample */
    int32_t *row;   /* [rows], by sample */
    int32_t *order; /* [rows]: what sorts `key` */
    void *order_work;
};

static struct sorting take(int64_t rows, void *work, size_t *bytes)
{
    struct pnet_geo_purse p = pnet_geo_open(work);
    size_t n = (size_t)rows;
    struct sorting s = {.key = pnet_geo_take(&p, n * sizeof *s.key),
        .row = pnet_geo_take(&p, n * sizeof *s.row),
        .order = pnet_geo_take(&p, n * sizeof *s.order),
        .order_work = pnet_geo_take(&p, pnet_cpu_order_work(rows))};
    *bytes = p.used;
    return s;
}

size_t pnet_cpu_sites_sort_work(int64_t rows)
{
    size_t bytes;
    take(rows, NULL, &bytes);
    return bytes;
}

void pnet_cpu_sites_sort(int64_t rows, int32_t samples, int axes, const int32_t *index,
    int64_t stride, int64_t *splits, uint64_t *key, int32_t *row, void *work)
{
    size_t bytes;
    struct sorting s = take(rows, work, &bytes);
    memset(splits, 0, ((size_t)samples + 1) * sizeof *splits);
    for (int64_t i = 0; i < rows; i++) splits[index[i * stride] + 1]++;
    for (int32_t b = 0; b < samples; b++) splits[b + 1] += splits[b];
    /* splits[b] walks over the places of its sample, then all move up by one. */
    for (int64_t i = 0; i < rows; i++) {
        const int32_t *at = index + i * stride;
        int64_t place = splits[at[0]]++;
        s.key[place] = pnet_site_key(at[1], axes > 1 ? at[2] : 0, axes > 2 ? at[3] : 0);
        s.row[place] = (int32_t)i;
    }
    memmove(splits + 1, splits, (size_t)samples * sizeof *splits);
    splits[0] = 0;
    pnet_cpu_order(rows, samples, splits, s.key, s.order, s.order_work);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        key[i] = s.key[s.order[i]];
        row[i] = s.row[s.order[i]];
    }
}

size_t pnet_cpu_sites_curve_work(int64_t rows)
{
    size_t bytes;
    take(rows, NULL, &bytes);
    return bytes;
}

void pnet_cpu_sites_curve(
    const struct pnet_sites *s, int32_t *along, int32_t *row, int32_t *place, void *work)
{
    size_t bytes;
    struct sorting t = take(s->rows, work, &bytes);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->rows; i++) {
        uint32_t block[3];
        for (int a = 0; a < 3; a++)
            block[a] = (uint32_t)pnet_site_index(s->key[i], a) >> PNET_SITE_BLOCK_BITS;
        t.key[i] = pnet_key_join(block[0], block[1], block[2]);
    }
    pnet_cpu_order(s->rows, s->samples, s->splits, t.key, t.order, t.order_work);
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < s->rows; p++) {
        int32_t site = t.order[p];
        row[p] = s->row ? s->row[site] : site;
        along[site] = place[row[p]] = (int32_t)p;
    }
}

/* One tap's walk over the voxels of a sample: the tap leads them to keys that ascend. */
struct lane {
    const uint64_t *at, *end;
    int64_t shift; /* what is added to an index */
    uint64_t key;  /* where the present voxel is led to; UINT64_MAX: there is none left */
};

/* One axis of the taps. */
struct axis {
    int bit;
    bool up;
    int64_t stride, extent;
};

/* Goes on to the first voxel that is led to the inside. */
static void settle(const struct axis *a, struct lane *l)
{
    for (; l->at < l->end; l->at++) {
        int64_t old = (int64_t)(*l->at >> a->bit & (PNET_SITE_LIMIT - 1)), to;
        if (a->up) {
            to = old + l->shift;
            if (to < 0 || to % a->stride) continue;
            to /= a->stride;
        } else {
            to = old * a->stride + l->shift;
            if (to < 0) continue;
        }
        if (to >= a->extent) continue;
        l->key = *l->at - ((uint64_t)old << a->bit) + ((uint64_t)to << a->bit);
        return;
    }
    l->key = UINT64_MAX;
}

/* Merges the walks of all taps; returns the number of different keys. */
static int64_t merge(const struct axis *a, struct lane *lane, int lanes, uint64_t *to)
{
    int64_t count = 0;
    for (;; count++) {
        uint64_t least = UINT64_MAX;
        for (int t = 0; t < lanes; t++) least = lane[t].key < least ? lane[t].key : least;
        if (least == UINT64_MAX) return count;
        if (to) to[count] = least;
        for (int t = 0; t < lanes; t++) {
            if (lane[t].key != least) continue;
            lane[t].at++;
            settle(a, &lane[t]);
        }
    }
}

void pnet_cpu_sites_reach(const struct pnet_sites *from, const struct pnet_taps *t, int axis,
    bool up, int32_t extent, int64_t *splits, uint64_t *key)
{
    struct axis a = {(2 - axis) * PNET_SITE_BITS, up, t->stride[axis], extent};
    if (!key) splits[0] = 0;
#pragma omp parallel for schedule(dynamic)
    for (int32_t s = 0; s < from->samples; s++) {
        struct lane lane[PNET_KERNEL_LIMIT];
        for (int n = 0; n < t->kernel[axis]; n++) {
            int64_t shift = (int64_t)n * t->dilation[axis] - t->padding[axis];
            lane[n] = (struct lane){.at = from->key + from->splits[s],
                .end = from->key + from->splits[s + 1],
                .shift = up ? -shift : shift};
            settle(&a, &lane[n]);
        }
        int64_t count = merge(&a, lane, t->kernel[axis], key ? key + splits[s] : NULL);
        if (!key) splits[s + 1] = count;
    }
    if (key) return;
    for (int32_t s = 0; s < from->samples; s++) splits[s + 1] += splits[s];
}
