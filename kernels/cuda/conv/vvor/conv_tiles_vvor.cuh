/* VVOR from tiles: declarations that its files share. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_VVOR_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_VVOR_CUH

#include "kernels/cuda/conv/vvor/conv_vvor_fast.cuh"

enum {
    TILE_PANEL = 16 * 64, /* 16 rows of 32 channels */
    ROUNDS = 32,
    ROUND_BYTES = 32, /* rounds that a warp holds ready, twice */
    AHEAD = 4,        /* rounds whose neighbours are loaded together */
    INFOS = 4,
    TILE_FLUSH = 512, /* steps until sums are written to memory */
    SHARED_BYTES = 227 << 10,
    SHORT_RUN = 8 /* the longest run that is summed in 16 bits */
};

/* A block's share of a slab of a tile. */
struct slab_share {
    uint32_t begin, total; /* first round of the block's cells, and their number */
    uint32_t mask;         /* the block's cells that the slab has, a bit each */
    uint32_t ends;         /* which of the first 32 rounds end a run, a bit each */
};

/* A block's share of a tile: the rounds of the block's own cells in each slab. */
struct alignas(16) tile_info {
    uint8_t row[PNET_TILE_ROWS]; /* row of the tile at each place */
    slab_share slab[PNET_TILE_SLABS];
    int64_t rounds; /* first word of the tile's rounds */
    int64_t list;   /* first word of its neighbours */
    int32_t neighbours, staged, longest;
    /* rounds of each cell; valid where `mask` has the cell */
    uint16_t count[PNET_TILE_SLABS][CELLS];
};

/* T: the type in memory, which is staged unchanged. In 16 bits a warp gathers a slab: 16 rows of 32 channels; in float32
   (WIDE) two warps gather 8 rows each. Some of the producers, the loaders, stage neighbours instead. ALIGNED: rows and
   groups begin at multiples of 16 bytes. COLUMNS: gathered channels, 32 or 40; with 40, half of the lanes of a warp have
   8 more channels of a row each. */
template <conv_form FORM_, int BLOCKS_, typename T_, bool ALIGNED_, int COLUMNS_ = 32>
struct tiles_config {
    using T = T_;
    static constexpr conv_form FORM = FORM_;
    static constexpr int BLOCKS = BLOCKS_, M = BLOCKS * 64;
    static constexpr bool ALIGNED = ALIGNED_;
    static constexpr bool SCALED = FORM == CONV_SCALED, BFLOAT = FORM == CONV_BFLOAT,
                          WIDE = sizeof(T) == 4;
    static constexpr int SHARE = BLOCKS == 2 ? CELLS : (CELLS + 1) / 2; /* cells of a warpgroup */
    static constexpr int COLUMNS = COLUMNS_, SUMS = COLUMNS / 2; /* of a thread, for a cell */
    static constexpr bool MORE = COLUMNS > 32;
    static_assert(COLUMNS == 32 || (COLUMNS == 40 && BLOCKS == 1 && !WIDE), "sums fit");
    static constexpr int UNIT = 16 * 16 + 32; /* 8 channels of 16 rows of a panel that has MORE */
    /* slabs of more than ROUNDS rounds are summed in 16 bits as well */
    static constexpr bool LONG = !ALIGNED && !WIDE;
    static constexpr int PLANES = 1, CELL_BYTES = MORE ? COLUMNS / 8 * UNIT : TILE_PANEL,
                         PANELS = CELLS * CELL_BYTES;
    static constexpr int PITCH = M * (int)sizeof(T) + 16;
    static constexpr int STAGE = (PANELS + 16 * PITCH + 511) / 512 * 512;
    static constexpr int PIECE = WIDE ? 4 : 8;                  /* channels of 16 staged bytes */
    static constexpr int SLOT_BYTES = COLUMNS * (int)sizeof(T), /* bytes of a neighbour */
        LANES = 32 / PIECE, PIECES = COLUMNS / PIECE;
    static constexpr int WARPS = WIDE ? 2 : 1; /* that gather a slab together */
    static constexpr int LOADERS = WIDE || !ALIGNED ? 64 : 32, GATHERERS = PRODUCERS - LOADERS;
    /* registers of a producer; a consumer with one block of channels leaves more of them than one with two */
    static constexpr int REGISTERS = ALIGNED || BLOCKS == 2 ? 72 : 104;
    static constexpr int TEAMS = GATHERERS / 32 / WARPS;
    static constexpr int STAGES = WIDE ? 4 : MORE ? 6 : 10, BUFFERS = 2;
    static constexpr int OFFSET_ROUNDS = STAGES * STAGE;
    static constexpr int OFFSET_LIST = OFFSET_ROUNDS + GATHERERS / 32 * 2 * ROUNDS * ROUND_BYTES;
    /* the neighbours that can be staged; slot 0 holds zeros */
    static constexpr int LEFT = SHARED_BYTES - 4096 - OFFSET_LIST - BUFFERS * SLOT_BYTES;
    static constexpr int STAGED = LEFT / (BUFFERS * SLOT_BYTES + 2 * 4) / 32 * 32;
    static constexpr int OFFSET_TILE = OFFSET_LIST + 2 * 4 * STAGED;
    static constexpr int BUFFER = (STAGED + 1) * SLOT_BYTES;
    static constexpr int BYTES = OFFSET_TILE + BUFFERS * BUFFER;
    static constexpr int SLOT = SHARE * SUMS * CONSUMERS; /* floats */
};

/* Shared memory for everything but staged neighbours. */
template <class C> struct tiles_control {
    tile_info info[INFOS];
    uint32_t mask[C::STAGES];
    uint64_t full[C::STAGES], empty[C::STAGES], tile_full[C::BUFFERS], tile_empty[C::BUFFERS],
        info_full[INFOS];
};

/* Arguments of a launch. A kind of block of threads has `columns` gathered channels, 64 or 128 channels of the rows, and a
   group. Each of the `kinds` has `blocks` blocks, which are assigned to parts of the cells in proportion to the work of each
   part. */
template <typename T> struct tiles_job {
    conv_set set;
    const T *gathered, *rows;
    int gathered_stride, rows_stride, gathered_width, rows_width; /* widths of a group */
    int parts, columns, tiles_n, tiles_m, blocks;
    const vvor_measures *measures;
    const int *first; /* [parts + 1] first block of each part */
    float *slots;     /* [blocks of threads][sums of a block] */
};

/* The work of a block of threads: tiles first, first + step, ... */
struct tiles_share {
    int part, cell0, cells, n0, m0, group;
    int first, step;
};

template <typename J>
static __device__ __forceinline__ tiles_share tiles_share_of(
    const J &j, const int *first, int cells, int block, int m)
{
    tiles_share s;
    int kind = block / j.blocks, at = block % j.blocks, part = 0;
    while (first[part + 1] <= at) part++;
    s.part = part;
    s.first = at - first[part];
    s.step = first[part + 1] - first[part];
    s.n0 = kind % j.tiles_n * j.columns;
    kind /= j.tiles_n;
    s.m0 = kind % j.tiles_m * m;
    s.group = kind / j.tiles_m;
    s.cell0 = vvor_part_cell(cells, j.parts, part);
    s.cells = vvor_part_cell(cells, j.parts, part + 1) - s.cell0;
    return s;
}

#endif
