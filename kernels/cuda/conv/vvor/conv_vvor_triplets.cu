/* VVOR from triplets. A block of threads keeps the sums of up to 9 kernel cells for 32 or 40 channels of the gathered
   side and 64 or 128 of the side of rows, and goes through its share of the rows. Producers sum the runs of each row in
   these cells into panels in shared memory, one a cell, zero where a row has no run. Consumers multiply the rows by the
   panels, 16 rows at a time, and skip cells that none of the 16 rows has. All blocks go through the rows together, so
   that they share what they read in the cache. Shares are added in order. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/vvor/conv_vvor_gather.cuh"
#include "kernels/cuda/conv/vvor/conv_vvor_product.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* The rows of a block in a launch: `batches` batches of bands, then past those of the other blocks. */
struct walk {
    int batch, band, left;

    __device__ __forceinline__ int row() const
    {
        return batch + band * BAND_ROWS;
    }
};

template <typename T>
static __device__ __forceinline__ void next_batch(const vvor_job<T> &j, walk &w)
{
    w.batch += BATCH * BAND_ROWS;
    if (--w.left == 0) {
        w.batch += (j.streams - 1) * j.batches * BATCH * BAND_ROWS;
        w.left = j.batches;
    }
}

template <typename T> static __device__ __forceinline__ void advance(const vvor_job<T> &j, walk &w)
{
    if (++w.band == BATCH) {
        w.band = 0;
        next_batch(j, w);
    }
}

/* Shared memory besides the stages. Every thread arrives at the barriers for itself: compute-sanitizer reports a race
   where one lane arrives for its warp. */
template <class C> struct control {
    uint32_t masks[STAGES][C::ROWS / 4]; /* cells of 4 rows each */
    uint64_t full[STAGES], empty[STAGES];
};

template <class C, typename T>
static __device__ __forceinline__ void produce(const vvor_job<T> &j, const vvor_share &w, walk next,
    int live, unsigned char *memory, control<C> &c)
{
    constexpr bool CONVERT = sizeof(T) == 4;
    const T *gathered = j.gathered + (int64_t)w.group * j.gathered_width,
            *rows = j.rows + (int64_t)w.group * j.rows_width;
    vvor_scales scale = vvor_scales_of<C::SCALED>(j.measures);
    unsigned char *raw = memory + STAGES * C::STAGE;
    int lane = threadIdx.x % TEAM, slot = threadIdx.x / TEAM;
    int place = lane_slot<C>::four(slot);
    int column = w.n0 + lane * 4, fifth = w.n0 + 32 + lane;
    if (column >= j.gathered_width) column = 0;
    columns from = {(const char *)(gathered + column), j.gathered_stride * (uint32_t)sizeof(T),
        j.gathered_width - 1 - column, fifth < j.gathered_width ? fifth - column : 0};
    uint64_t had =
        0; /* cells whose panels hold a sum of the row, 16 bits for each stage and band */
    walk ahead = next;
    next_batch(j, ahead);
    span spans = load_spans(j, next.batch, live, w.part),
         later = load_spans(j, ahead.batch, live, w.part), s = pick(spans, 0);
    entry e = load_entry<C>(j, s, lane, w.cell0);
    if (CONVERT) copy_rows<C>(j, rows, next.row(), live, w.m0, raw);
    for (int step = 0; next.row() < live; step++) {
        int stage = step % STAGES;
        if (step >= STAGES) barrier_wait(&c.empty[stage], (step / STAGES + 1) % 2);
#pragma unroll 1
        for (int band = 0; band < C::BANDS; band++) {
            unsigned char *panels = memory + stage * C::STAGE + band * BAND_ROWS * C::ROW_BYTES,
                          *side =
                              memory + stage * C::STAGE + C::PANELS + band * BAND_ROWS * C::PITCH;
            if (!CONVERT) copy_rows<C>(j, rows, next.row(), live, w.m0, side);
            advance(j, next);
            if (next.band == 0) {
                spans = later;
                ahead = next;
                next_batch(j, ahead);
                later = load_spans(j, ahead.batch, live, w.part);
            }
            span s1 = pick(spans, next.band);
            entry e1 = load_entry<C>(j, s1, lane, w.cell0);
            uint32_t cells = gather<C>(j, s, e, w.cell0, from, scale.gathered, panels + place);
            int at = (stage * C::BANDS + band) * 16;
            clear<C>(panels + place, (uint32_t)(had >> at) & 0xFFFF & ~cells);
            had = (had & ~((uint64_t)0xFFFF << at)) | (uint64_t)cells << at;
            cells = __reduce_or_sync(~0u, cells);
            if (threadIdx.x % 32 == 0)
                c.masks[stage][band * (BAND_ROWS / 4) + threadIdx.x / 32] = cells;
            copy_wait();
            if (CONVERT) {
                convert_rows<C>(raw, side, scale.rows);
                copy_rows<C>(j, rows, next.row(), live, w.m0, raw);
            }
            s = s1;
            e = e1;
        }
        fence_async();
        barrier_arrive(&c.full[stage]);
    }
}

template <class C, typename T>
static __device__ __forceinline__ void consume(
    const vvor_job<T> &j, walk next, int live, const unsigned char *memory, control<C> &c)
{
    float sum[C::SHARE][C::SUMS] = {};
    float *to = j.slots + (int64_t)blockIdx.x * C::SLOT + (threadIdx.x - PRODUCERS);
    bool fresh = j.fresh;
    for (int step = 0; next.row() < live; step++) {
        int stage = step % STAGES;
        const unsigned char *panels = memory + stage * C::STAGE;
        part_of_step<C> s = {
            panels, panels + C::PANELS, c.masks[stage], (int)(threadIdx.x - PRODUCERS) / 128};
        barrier_wait(&c.full[stage], step / STAGES % 2);
        if constexpr (C::PLANES == 1)
            multiply<C>(sum, s);
        else
            multiply_parts<C>(sum, s);
        barrier_arrive(&c.empty[stage]);
        if (step % FLUSH == FLUSH - 1) {
            flush<C>(sum, to, fresh);
            fresh = false;
        }
#pragma unroll
        for (int band = 0; band < C::BANDS; band++) advance(j, next);
    }
    flush<C>(sum, to, fresh);
}
#endif

template <class C, typename T>
static __global__ __launch_bounds__(THREADS, 1) void vvor(const __grid_constant__ vvor_job<T> j)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(16) control<C> c;
    vvor_share w = vvor_share_of(j, j.set.cells, (int)(blockIdx.x % j.types), C::M);
    int64_t left = pnet_live(j.set.rows) - j.first;
    int live = (int)(left < j.window ? left : j.window);
    walk start = {(int)(blockIdx.x / j.types) * j.batches * BATCH * BAND_ROWS, 0, j.batches};
    for (int i = threadIdx.x * 16; i < STAGES * C::STAGE; i += THREADS * 16)
        *(uint4 *)(memory + i) = uint4{0, 0, 0, 0};
    if (threadIdx.x < STAGES) {
        barrier_init(&c.full[threadIdx.x], PRODUCERS);
        barrier_init(&c.empty[threadIdx.x], CONSUMERS);
    }
    fence_async();
    __syncthreads();
    if (threadIdx.x < PRODUCERS) {
        registers_fewer<C::MORE ? 88 : 80>();
        produce<C>(j, w, start, live, memory, c);
    } else {
        registers_more<C::MORE ? 168 : 176>();
        consume<C>(j, start, live, memory, c);
    }
#endif
}

template <class C, typename T>
static void launch(const conv_outer &o, const vvor_plan &p, void *work)
{
    constexpr int BYTES = STAGES * C::STAGE + (sizeof(T) == 4 ? C::RAW : 0);
    vvor_job<T> j = vvor_job_of<T>(o, p, work);
    cudaFuncSetAttribute(vvor<C, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    if constexpr (C::SCALED) pnet_cuda_vvor_measure(o, j.measures);
    for (j.first = 0; j.first == 0 || j.first < o.set.rows.most; j.first += p.window) {
        j.fresh = j.first == 0;
        pnet_cuda_vvor_find_bounds(j.set, j.parts, j.first, j.window, j.bound);
        vvor<C, T><<<(unsigned)(p.types * p.streams), THREADS, BYTES, pnet_cuda_stream()>>>(j);
    }
    pnet_cuda_vvor_reduce(o, p, C::SCALED, work);
}

/* Gathered channels of a block, at most. Float32 alone has kernels for 40: it always comes here with few channels, other
   precisions only where a set has no tiles. */
static int most_columns(conv_form form)
{
    return form == CONV_SPLIT ? 40 : 32;
}

template <conv_form FORM, typename T>
static void launch_form(const conv_outer &o, const vvor_plan &p, void *work)
{
    constexpr int EACH = 16 / sizeof(T);
    bool aligned = (o.cin | o.cout | o.groups.cin | o.groups.cout) % EACH == 0;
    if constexpr (FORM == CONV_SPLIT) {
        if (p.columns > 32) {
            aligned ? launch<vvor_config<FORM, 1, true, 40>, T>(o, p, work)
                    : launch<vvor_config<FORM, 1, false, 40>, T>(o, p, work);
            return;
        }
    }
    if (aligned)
        p.blocks > 1 ? launch<vvor_config<FORM, 2, true>, T>(o, p, work)
                     : launch<vvor_config<FORM, 1, true>, T>(o, p, work);
    else
        p.blocks > 1 ? launch<vvor_config<FORM, 2, false>, T>(o, p, work)
                     : launch<vvor_config<FORM, 1, false>, T>(o, p, work);
}

void pnet_cuda_conv_triplets_vvor(
    const struct conv_outer *sum, enum pnet_precision precision, void *work)
{
    const conv_outer &o = *sum;
    conv_form form = pnet_cuda_conv_form_of(precision);
    vvor_plan p = pnet_cuda_vvor_make_plan(&o.set, &o.groups, o.swapped, most_columns(form));
    bool same = o.set.rows.storage != PNET_STORE_F32; /* as the form's operands */
    switch (form) {
    case CONV_SPLIT: launch_form<CONV_SPLIT, float>(o, p, work); break;
    case CONV_SCALED: launch_form<CONV_SCALED, float>(o, p, work); break;
    case CONV_BFLOAT:
        same ? launch_form<CONV_BFLOAT, __nv_bfloat16>(o, p, work)
             : launch_form<CONV_BFLOAT, float>(o, p, work);
        break;
    case CONV_HALF:
        same ? launch_form<CONV_HALF, __half>(o, p, work)
             : launch_form<CONV_HALF, float>(o, p, work);
        break;
    case CONV_TILE_SCALED: break; /* of MVMR alone */
    }
}
