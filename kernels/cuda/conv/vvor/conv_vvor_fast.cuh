/* How VVOR of a set is divided among blocks of threads: what conv_vvor_triplets.cu and conv_tiles_vvor*.cu share. */
#ifndef PNET_KERNELS_CUDA_CONV_VVOR_FAST_CUH
#define PNET_KERNELS_CUDA_CONV_VVOR_FAST_CUH

#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/base/hopper.cuh"
#include "kernels/cuda/conv/conv_common.cuh"

enum {
    PRODUCERS = VVOR_PRODUCERS, /* threads that gather */
    CONSUMERS = VVOR_CONSUMERS, /* threads that multiply: two warpgroups */
    THREADS = PRODUCERS + CONSUMERS,
    TEAM = VVOR_TEAM,           /* lanes that gather a row: 4 channels each */
    BAND_ROWS = VVOR_BAND_ROWS, /* gathered at a time */
    BATCH = VVOR_BATCH,         /* bands whose rows are looked up together: one a lane */
    HALF = TEAM / 2,            /* loads of a lane that belong together */
    CELLS = VVOR_CELLS,         /* of a block, at most */
    NO_CELL = CELLS,            /* where sums go that are of none */
    STAGES = 2,                 /* gathered and multiplied at the same time */
    FLUSH = 256, /* steps until sums are written to memory, so that rounding errors do not grow */
    BLOCKS_AT_ONCE = CONV_PROCESSORS /* processors of an H100 or H200 */
};

/* BLOCKS: blocks of 64 channels of the side of rows. With two, each warpgroup multiplies one of them for all cells; with
   one, the warpgroups take turns at the cells. ALIGNED: rows and columns are made of units of 16 bytes. COLUMNS: gathered
   channels, 32 or 40; with 40 each lane has one of the 8 more. */
template <conv_form FORM_, int BLOCKS_, bool ALIGNED_, int COLUMNS_ = 32> struct vvor_config {
    static constexpr conv_form FORM = FORM_;
    static constexpr bool ALIGNED = ALIGNED_;
    static constexpr int BLOCKS = BLOCKS_, M = BLOCKS * 64; /* channels of the side of rows */
    static constexpr int SHARE = BLOCKS == 2 ? CELLS : (CELLS + 1) / 2; /* cells of a warpgroup */
    static constexpr bool SPLIT = FORM == CONV_SPLIT, SCALED = SPLIT || FORM == CONV_SCALED,
                          BFLOAT = FORM == CONV_BFLOAT;
    static constexpr int PLANES = SPLIT ? 2 : 1, BANDS = SPLIT ? 1 : 2;
    static constexpr int ROWS = BANDS * BAND_ROWS;               /* of a step */
    static constexpr int COLUMNS = COLUMNS_, SUMS = COLUMNS / 2; /* of a thread, for a cell */
    static constexpr bool MORE = COLUMNS > 32;
    static_assert(COLUMNS == 32 || (COLUMNS == 40 && BLOCKS == 1), "sums fit into registers");
    /* 8 channels of all rows of a panel with MORE; they begin in different banks */
    static constexpr int UNIT = ROWS * 16 + 32;
    static constexpr int ROW_BYTES = MORE ? 16 : 64; /* between a panel's rows */
    static constexpr int PANEL = MORE ? COLUMNS / 8 * UNIT : ROWS * 64, CELL_BYTES = PANEL * PLANES;
    static constexpr int PANELS = (CELLS + 1) * CELL_BYTES;
    static constexpr int PITCH = M * 2 + 16; /* rows begin in different banks */
    static constexpr int STAGE = (PANELS + PLANES * ROWS * PITCH + 1023) / 1024 * 1024;
    static constexpr int RAW = BAND_ROWS * M * 4;
    static constexpr int SLOT = SHARE * SUMS * CONSUMERS; /* floats */
};

/* Measured on the device: sizes of values and of the set. */
struct vvor_measures {
    uint32_t gathered, rows; /* the largest of each side, as bits of a float */
    uint32_t others;         /* rows of the gathered side, up to the last one that is read */
    uint32_t longest;        /* triplets of a row */
};

struct vvor_scales {
    float gathered, rows;
};

/* A launch. A type of block of threads has a part of the cells, 32 or 40 gathered channels, 64 or 128 channels of the
   rows, and a group. Each type has as many blocks as there are streams of rows. */
template <typename T> struct vvor_job {
    conv_set set;
    const T *gathered, *rows;
    int gathered_stride, rows_stride;
    int gathered_width, rows_width; /* of a group */
    int parts, columns, tiles_n, tiles_m, types, streams, batches;
    int64_t window, first; /* rows of a launch, the first of this one */
    bool fresh;            /* nothing was summed before */
    uint32_t *bound;       /* [parts - 1][window] where parts begin among a row's triplets */
    vvor_measures *measures;
    float *slots; /* [streams][types][sums of a block] */
};

/* The share of a block. */
struct vvor_share {
    int part, cell0, cells, n0, m0, group;
};

/* The cells of a part: [part_cell(p), part_cell(p + 1)). */
static __host__ __device__ __forceinline__ int vvor_part_cell(int cells, int parts, int part)
{
    return (int)((int64_t)cells * part / parts);
}

template <typename J>
static __device__ __forceinline__ vvor_share vvor_share_of(const J &j, int cells, int type, int m)
{
    vvor_share s;
    s.part = type % j.parts;
    type /= j.parts;
    s.n0 = type % j.tiles_n * j.columns;
    type /= j.tiles_n;
    s.m0 = type % j.tiles_m * m;
    s.group = type / j.tiles_m;
    s.cell0 = vvor_part_cell(cells, j.parts, s.part);
    s.cells = vvor_part_cell(cells, j.parts, s.part + 1) - s.cell0;
    return s;
}

/* Sums of `longest` values stay below 2^15. */
template <bool SCALED>
static __device__ __forceinline__ vvor_scales vvor_scales_of(const vvor_measures *m)
{
    if (!SCALED) return {1, 1};
    int top = 15 - (m->longest > 1 ? 32 - __clz(m->longest - 1) : 0);
    return {
        conv_scale(__uint_as_float(m->gathered), top), conv_scale(__uint_as_float(m->rows), 15)};
}

/* Of features in float32; of the set alone. */
void pnet_cuda_vvor_measure(const conv_outer &o, vvor_measures *measures);
void pnet_cuda_vvor_measure_set(const conv_set &s, vvor_measures *measures);
void pnet_cuda_vvor_find_bounds(
    const conv_set &s, int parts, int64_t first, int64_t window, uint32_t *bound);
void pnet_cuda_vvor_reduce(const conv_outer &o, const vvor_plan &p, bool scaled, void *work);

template <typename T>
static inline vvor_job<T> vvor_job_of(const conv_outer &o, const vvor_plan &p, void *work)
{
    vvor_job<T> j = {};
    const conv_groups &g = o.groups;
    j.set = o.set;
    j.gathered = (const T *)(o.swapped ? o.gout : o.in);
    j.rows = (const T *)(o.swapped ? o.in : o.gout);
    j.gathered_stride = o.swapped ? o.cout : o.cin;
    j.rows_stride = o.swapped ? o.cin : o.cout;
    j.gathered_width = o.swapped ? g.cout : g.cin;
    j.rows_width = o.swapped ? g.cin : g.cout;
    j.parts = p.parts;
    j.columns = p.columns;
    j.tiles_n = p.tiles_n;
    j.tiles_m = p.tiles_m;
    j.types = p.types;
    j.streams = p.streams;
    j.batches = p.batches;
    j.window = p.window;
    j.slots = (float *)work;
    j.measures = (vvor_measures *)((char *)work + p.measures);
    j.bound = (uint32_t *)((char *)work + p.bound);
    return j;
}

#endif
