/* Voxels of sparse convolutions: sorted, and those that taps lead to (kernels/taps.h). */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"
#include "kernels/cuda/base/sort.h"
#include "kernels/cuda/geometry/geo_sites.h"
#include "kernels/taps.h"

/* The bits of an index on each axis: keys of so many bits in all, without gaps, are sorted in fewer passes. */
struct site_bits {
    int of[3];
};

static struct site_bits bits_of(const int32_t extent[3])
{
    struct site_bits b = {};
    for (int a = 0; a < 3; a++) b.of[a] = bits_below(extent[a]);
    return b;
}

static __host__ __device__ int sum_of(const struct site_bits &b)
{
    return b.of[0] + b.of[1] + b.of[2];
}

enum { ITEM_BITS = 64 };

static __device__ __forceinline__ uint64_t packed(uint64_t key, struct site_bits b)
{
    uint64_t item = 0;
    for (int a = 0; a < 3; a++) item = item << b.of[a] | (uint64_t)pnet_site_index(key, a);
    return item;
}

/* The key that was packed, from the lowest bits of an item. */
static __device__ __forceinline__ uint64_t unpacked(uint64_t item, struct site_bits b)
{
    int64_t index[3];
    for (int a = 2; a >= 0; a--) {
        index[a] = (int64_t)(item & ((1ull << b.of[a]) - 1));
        item >>= b.of[a];
    }
    return pnet_site_key(index[0], index[1], index[2]);
}

/* Voxels as the caller lists them. Those that lie outside are moved inside: they are an error that is told later. */
struct listed_sites {
    const int32_t *index; /* [rows, 1 + axes] */
    int axes;
    int32_t samples, extent[3];

    __device__ int32_t given(int64_t row, int column) const
    {
        return index[row * (1 + axes) + column];
    }

    __device__ int32_t end(int column) const
    {
        return column > 0 ? extent[column - 1] : samples;
    }

    __device__ bool inside(int64_t row) const
    {
        for (int c = 0; c <= axes; c++)
            if (given(row, c) < 0 || given(row, c) >= end(c)) return false;
        return true;
    }

    __device__ int32_t at(int64_t row, int column) const
    {
        return column > axes ? 0 : max(0, min(given(row, column), end(column) - 1));
    }

    __device__ uint64_t key(int64_t row) const
    {
        return pnet_site_key(at(row, 1), at(row, 2), at(row, 3));
    }
};

static __global__ void find_outside(
    int64_t rows, const struct listed_sites l, unsigned long long *first)
{
    for (int64_t i = thread_index(); i < rows; i += thread_count())
        if (!l.inside(i)) atomicMin(first, (unsigned long long)i);
}

void pnet_cuda_geo_least_begin(void *work)
{
    cudaMemsetAsync(work, 0xff, sizeof(int64_t), pnet_cuda_stream());
}

int64_t pnet_cuda_geo_least(const void *work)
{
    return pnet_cuda_geo_read((const int64_t *)work);
}

static struct listed_sites listed(
    int32_t samples, int axes, const int32_t extent[3], const int32_t *index)
{
    return {index, axes, samples, {extent[0], extent[1], extent[2]}};
}

void pnet_cuda_sites_outside(int64_t rows, int32_t samples, int axes, const int32_t extent[3],
    const int32_t *index, int64_t *found)
{
    pnet_cuda_geo_least_begin(found);
    if (rows <= 0) return;
    find_outside<<<geo_blocks(rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        rows, listed(samples, axes, extent, index), (unsigned long long *)found);
}

/* With `bits` the sample stands above so many bits of the key, with 0 only the key does. */
static __global__ void site_items(int64_t rows, const struct listed_sites l, struct site_bits b,
    int bits, uint64_t *item, int32_t *row)
{
    for (int64_t i = thread_index(); i < rows; i += thread_count()) {
        uint64_t sample = bits ? (uint64_t)l.at(i, 0) << bits : 0;
        item[i] = sample | packed(l.key(i), b);
        row[i] = (int32_t)i;
    }
}

static __global__ void sample_items(
    int64_t rows, const struct listed_sites l, const int32_t *row, uint64_t *item)
{
    for (int64_t i = thread_index(); i < rows; i += thread_count())
        item[i] = (uint64_t)l.at(row[i], 0);
}

/* Splits between two places: samples that begin at the second one, which is `place`. */
static __device__ void split(int64_t *splits, int32_t before, int32_t here, int64_t place)
{
    for (int32_t s = before + 1; s <= here; s++) splits[s] = place;
}

static __global__ void place_sites(int64_t rows, int32_t samples, const struct listed_sites l,
    const int32_t *row, int64_t *splits, uint64_t *key)
{
    for (int64_t i = thread_index(); i < rows + 1; i += thread_count()) {
        int32_t before = i > 0 ? l.at(row[i - 1], 0) : -1;
        split(splits, before, i < rows ? l.at(row[i], 0) : samples, i);
        if (i < rows) key[i] = l.key(row[i]);
    }
}

void pnet_cuda_sites_sort(int64_t rows, int32_t samples, int axes, const int32_t extent[3],
    const int32_t *index, int64_t *splits, uint64_t *key, int32_t *row, void *work)
{
    const struct listed_sites l = listed(samples, axes, extent, index);
    struct site_bits b = bits_of(extent);
    geo_purse purse(work);
    uint64_t *item = (uint64_t *)purse.take<char>(CURVE_BYTES * (size_t)rows);
    unsigned blocks = geo_blocks(rows);
    int bits = sum_of(b), all = bits + bits_below(samples);
    bool both = all <= ITEM_BITS;
    if (both) bits = all;
    if (rows > 0) {
        geo_purse once = purse;
        site_items<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(
            rows, l, b, both ? sum_of(b) : 0, item, row);
        if (bits > 0) pnet_cuda_geo_sort_items(rows, bits, row, item, &once);
    }
    if (rows > 0 && !both) {
        sample_items<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(rows, l, row, item);
        pnet_cuda_geo_sort_items(rows, bits_below(samples), row, item, &purse);
    }
    place_sites<<<geo_blocks(rows + 1), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        rows, samples, l, row, splits, key);
}

/* Bits of blocks of voxels on each axis. */
static struct site_bits block_bits(const struct site_bits &b)
{
    struct site_bits blocks = {};
    for (int a = 0; a < 3; a++) blocks.of[a] = max(b.of[a] - PNET_SITE_BLOCK_BITS, 0);
    return blocks;
}

/* The Morton key of a voxel's block: the bits that the blocks have, from the highest on. */
static __device__ __forceinline__ uint64_t block_key(uint64_t key, const struct site_bits &b)
{
    uint32_t at[3];
    uint64_t item = 0;
    for (int a = 0; a < 3; a++) at[a] = (uint32_t)pnet_site_index(key, a) >> PNET_SITE_BLOCK_BITS;
    for (int bit = max(max(b.of[0], b.of[1]), b.of[2]) - 1; bit >= 0; bit--)
        for (int a = 0; a < 3; a++)
            if (bit < b.of[a]) item = item << 1 | (at[a] >> bit & 1);
    return item;
}

/* With `bits` the sample stands above so many bits of the block's key, with 0 only that key does. */
static __global__ void block_items(
    const struct pnet_sites s, struct site_bits b, int bits, uint64_t *item, int32_t *order)
{
    for (int64_t i = thread_index(); i < s.rows; i += thread_count()) {
        uint64_t sample = bits ? (uint64_t)sample_of(s.splits, s.samples, i) << bits : 0;
        item[i] = sample | block_key(s.key[i], b);
        order[i] = (int32_t)i;
    }
}

static __global__ void place_samples(
    const struct pnet_sites s, const int32_t *order, uint64_t *item)
{
    for (int64_t i = thread_index(); i < s.rows; i += thread_count())
        item[i] = (uint64_t)sample_of(s.splits, s.samples, order[i]);
}

static __global__ void place_curve(
    const struct pnet_sites s, const int32_t *order, int32_t *along, int32_t *row, int32_t *place)
{
    for (int64_t p = thread_index(); p < s.rows; p += thread_count()) {
        int32_t site = order[p], own = s.row ? s.row[site] : site;
        row[p] = own;
        along[site] = (int32_t)p;
        place[own] = (int32_t)p;
    }
}

void pnet_cuda_sites_curve(
    const struct pnet_sites *s, int32_t *along, int32_t *row, int32_t *place, void *work)
{
    if (s->rows <= 0) return;
    struct site_bits b = block_bits(bits_of(s->extent));
    geo_purse purse(work);
    int32_t *order = purse.take<int32_t>((size_t)s->rows);
    uint64_t *item = (uint64_t *)purse.take<char>(CURVE_BYTES * (size_t)s->rows);
    unsigned blocks = geo_blocks(s->rows);
    int bits = sum_of(b), all = bits + bits_below(s->samples);
    bool both = all <= ITEM_BITS;
    if (both) bits = all;
    geo_purse once = purse;
    block_items<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(
        *s, b, both ? sum_of(b) : 0, item, order);
    if (bits > 0) pnet_cuda_geo_sort_items(s->rows, bits, order, item, &once);
    if (!both) {
        place_samples<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*s, order, item);
        pnet_cuda_geo_sort_items(s->rows, bits_below(s->samples), order, item, &purse);
    }
    place_curve<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*s, order, along, row, place);
}

static __global__ void find_twice(const struct pnet_sites s, unsigned long long *first)
{
    for (int64_t i = thread_index() + 1; i < s.rows; i += thread_count()) {
        if (s.key[i] != s.key[i - 1]) continue;
        int32_t sample = sample_of(s.splits, s.samples, i);
        if (s.splits[sample] == i) continue; /* the place before is in another sample */
        atomicMin(first, (unsigned long long)s.row[i] << 32 | (unsigned long long)s.row[i - 1]);
    }
}

void pnet_cuda_sites_twice(const struct pnet_sites *s, int64_t *found)
{
    pnet_cuda_geo_least_begin(found);
    if (s->rows > 0)
        find_twice<<<geo_blocks(s->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            *s, (unsigned long long *)found);
}

static __global__ void list_sites(const struct pnet_sites s, int axes, int32_t *index)
{
    for (int64_t i = thread_index(); i < s.rows; i += thread_count()) {
        int32_t *at = index + i * (1 + axes);
        at[0] = sample_of(s.splits, s.samples, i);
        for (int a = 0; a < axes; a++) at[a + 1] = pnet_site_index(s.key[i], a);
    }
}

void pnet_cuda_sites_list(const struct pnet_sites *s, int axes, int32_t *index)
{
    if (s->rows > 0)
        list_sites<<<geo_blocks(s->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(*s, axes, index);
}

/* The taps of one axis. */
struct site_axis {
    int bit, kernel;
    bool up;
    int64_t stride, padding, dilation, extent;
};

static struct site_axis axis_of(const struct pnet_taps *t, int axis, bool up, int32_t extent)
{
    return {(2 - axis) * PNET_SITE_BITS, t->kernel[axis], up, t->stride[axis], t->padding[axis],
        t->dilation[axis], extent};
}

/* Is a voxel led to the inside by a tap? Then *to is where. */
static __device__ bool led(const struct site_axis &a, int tap, uint64_t key, uint64_t *to)
{
    int64_t old = (int64_t)(key >> a.bit & (PNET_SITE_LIMIT - 1)), index;
    int64_t shift = tap * a.dilation - a.padding;
    index = a.up ? old - shift : old * a.stride + shift;
    if (index < 0 || (a.up && index % a.stride)) return false;
    if (a.up) index /= a.stride;
    if (index >= a.extent) return false;
    *to = key - ((uint64_t)old << a.bit) + ((uint64_t)index << a.bit);
    return true;
}

static __global__ void count_led(
    int64_t rows, const uint64_t *key, const struct site_axis a, int64_t *start)
{
    for (int64_t i = thread_index(); i < rows; i += thread_count()) {
        int64_t count = 0;
        uint64_t to;
        for (int t = 0; t < a.kernel; t++) count += led(a, t, key[i], &to);
        start[i + 1] = count;
    }
}

int64_t pnet_cuda_sites_reach(const struct pnet_sites *from, const struct pnet_taps *t, int axis,
    bool up, int32_t extent, int64_t *start, void *work)
{
    cudaMemsetAsync(start, 0, sizeof *start, pnet_cuda_stream());
    if (from->rows <= 0) return 0;
    count_led<<<geo_blocks(from->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        from->rows, from->key, axis_of(t, axis, up, extent), start);
    pnet_cuda_geo_scan(from->rows, start + 1, (int64_t *)work);
    return pnet_cuda_geo_read(start + from->rows);
}

static __global__ void write_led(const struct pnet_sites from, const struct site_axis a,
    const int64_t *start, uint64_t *key, int32_t *sample)
{
    for (int64_t i = thread_index(); i < from.rows; i += thread_count()) {
        int32_t own = sample_of(from.splits, from.samples, i);
        int64_t at = start[i];
        uint64_t to;
        for (int t = 0; t < a.kernel; t++) {
            if (!led(a, t, from.key[i], &to)) continue;
            key[at] = to;
            sample[at++] = own;
        }
    }
}

void pnet_cuda_sites_lead(const struct pnet_sites *from, const struct pnet_taps *t, int axis,
    bool up, int32_t extent, const int64_t *start, uint64_t *key, int32_t *sample)
{
    if (from->rows > 0)
        write_led<<<geo_blocks(from->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            *from, axis_of(t, axis, up, extent), start, key, sample);
}

static __global__ void led_items(
    const struct pnet_led l, struct site_bits b, uint64_t *item, int32_t *order)
{
    for (int64_t i = thread_index(); i < l.count; i += thread_count()) {
        item[i] = packed(l.key[i], b);
        order[i] = (int32_t)i;
    }
}

static __global__ void led_samples(const struct pnet_led l, uint64_t *item)
{
    for (int64_t i = thread_index(); i < l.count; i += thread_count())
        item[i] = (uint64_t)l.sample[l.order[i]];
}

static __device__ bool differs(const struct pnet_led &l, int64_t place)
{
    int32_t here = l.order[place], before = l.order[place - 1];
    return l.key[here] != l.key[before] || l.sample[here] != l.sample[before];
}

static __global__ void mark_first(const struct pnet_led l)
{
    for (int64_t i = thread_index(); i < l.count; i += thread_count())
        l.mark[i] = i == 0 || differs(l, i);
}

int64_t pnet_cuda_sites_merge(const struct pnet_led *l, const int32_t extent[3], void *work)
{
    if (l->count <= 0) return 0;
    struct site_bits b = bits_of(extent);
    geo_purse purse(work);
    uint64_t *item = (uint64_t *)purse.take<char>(CURVE_BYTES * (size_t)l->count);
    int64_t *sums = purse.take<int64_t>(pnet_cuda_geo_scan_sums(l->count));
    unsigned blocks = geo_blocks(l->count);
    int bits = b.of[0] + b.of[1] + b.of[2];
    geo_purse once = purse;
    led_items<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*l, b, item, l->order);
    if (bits > 0) pnet_cuda_geo_sort_items(l->count, bits, l->order, item, &once);
    if (l->samples > 1) {
        led_samples<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*l, item);
        pnet_cuda_geo_sort_items(l->count, bits_below(l->samples), l->order, item, &purse);
    }
    mark_first<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*l);
    pnet_cuda_geo_scan(l->count, l->mark, sums);
    return pnet_cuda_geo_read(l->mark + l->count - 1);
}

/* The sums of marks say at which place each different voxel stands: from 1 on. */
static __global__ void write_merged(const struct pnet_led l, int64_t *splits, uint64_t *to)
{
    for (int64_t i = thread_index(); i < l.count + 1; i += thread_count()) {
        int32_t before = i > 0 ? l.sample[l.order[i - 1]] : -1;
        int64_t place = i > 0 ? l.mark[i - 1] : 0; /* different voxels before */
        split(splits, before, i < l.count ? l.sample[l.order[i]] : l.samples, place);
        if (i < l.count && l.mark[i] > place) to[place] = l.key[l.order[i]];
    }
}

void pnet_cuda_sites_merged(const struct pnet_led *l, int64_t *splits, uint64_t *to)
{
    write_merged<<<geo_blocks(l->count + 1), GEO_THREADS, 0, pnet_cuda_stream()>>>(*l, splits, to);
}

/* What a voxel is led to on all axes: items of a sample and a key, and ones that sort last where there are no more. */
struct site_spread {
    struct site_axis axis[3];
    struct site_bits bits;
    int leads, bit; /* of an item: bits of the key */
    uint64_t none;

    __device__ int32_t sample(uint64_t item, int32_t samples) const
    {
        return item == none ? samples : (int32_t)(item >> bit);
    }
};

static struct site_spread spread_of(
    const struct pnet_taps *t, bool up, const int32_t extent[3], int32_t samples)
{
    struct site_spread s = {};
    s.bits = bits_of(extent);
    s.bit = sum_of(s.bits);
    s.leads = (int)pnet_taps_leads(t, up);
    s.none = 1ull << (s.bit + bits_below(samples));
    for (int a = 0; a < 3; a++) s.axis[a] = axis_of(t, a, up, extent[a]);
    return s;
}

bool pnet_cuda_sites_spreads(
    const struct pnet_taps *t, bool up, int64_t rows, int32_t samples, const int32_t extent[3])
{
    const int most =
        8; /* where neighbours share what they are led to, axis after axis has less to sort */
    int64_t leads = pnet_taps_leads(t, up);
    return leads <= most && rows * leads <= INT32_MAX &&
           sum_of(bits_of(extent)) + bits_below(samples) < ITEM_BITS;
}

static __global__ void write_spread(
    const struct pnet_sites from, const struct site_spread s, uint64_t *item)
{
    for (int64_t i = thread_index(); i < from.rows; i += thread_count()) {
        uint64_t sample = (uint64_t)sample_of(from.splits, from.samples, i) << s.bit;
        uint64_t *at = item + i * s.leads, *end = at + s.leads, one, two, three;
        for (int a = 0; a < s.axis[0].kernel; a++) {
            if (!led(s.axis[0], a, from.key[i], &one)) continue;
            for (int b = 0; b < s.axis[1].kernel; b++) {
                if (!led(s.axis[1], b, one, &two)) continue;
                for (int c = 0; c < s.axis[2].kernel; c++)
                    if (led(s.axis[2], c, two, &three)) *at++ = sample | packed(three, s.bits);
            }
        }
        while (at < end) *at++ = s.none;
    }
}

static __global__ void mark_spread(int64_t n, uint64_t none, const uint64_t *item, int64_t *mark)
{
    for (int64_t i = thread_index(); i < n; i += thread_count())
        mark[i] = item[i] != none && (i == 0 || item[i] != item[i - 1]);
}

static __global__ void write_spread_sites(int64_t n, const struct site_spread s, int32_t samples,
    const uint64_t *item, const int64_t *mark, int64_t *splits, uint64_t *to)
{
    for (int64_t i = thread_index(); i < n + 1; i += thread_count()) {
        int32_t before = i > 0 ? s.sample(item[i - 1], samples) : -1;
        int64_t place = i > 0 ? mark[i - 1] : 0; /* different voxels before */
        split(splits, before, i < n ? s.sample(item[i], samples) : samples, place);
        if (i < n && mark[i] > place) to[place] = unpacked(item[i], s.bits);
    }
}

const int64_t *pnet_cuda_sites_spread(const struct pnet_sites *from, const struct pnet_taps *t,
    bool up, const int32_t extent[3], int64_t *splits, uint64_t *key, void *work)
{
    struct site_spread s = spread_of(t, up, extent, from->samples);
    int64_t n = from->rows * s.leads;
    geo_purse purse(work);
    uint64_t *item = purse.take<uint64_t>((size_t)n), *spare = purse.take<uint64_t>((size_t)n);
    int64_t *mark = purse.take<int64_t>((size_t)n + 1) + 1;
    int64_t *sums = purse.take<int64_t>(pnet_cuda_geo_scan_sums(n));
    char *sort = purse.take<char>(pnet_cuda_sort_work(n));
    unsigned blocks = geo_blocks(n);
    cudaMemsetAsync(mark - 1, 0, sizeof *mark, pnet_cuda_stream()); /* the count of none */
    if (n > 0) {
        write_spread<<<geo_blocks(from->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            *from, s, item);
        item = pnet_cuda_sort_keys(n, item, spare, 0, s.bit + bits_below(from->samples) + 1, sort);
        mark_spread<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(n, s.none, item, mark);
        pnet_cuda_geo_scan(n, mark, sums);
    }
    write_spread_sites<<<geo_blocks(n + 1), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        n, s, from->samples, item, mark, splits, key);
    return mark + n - 1;
}
