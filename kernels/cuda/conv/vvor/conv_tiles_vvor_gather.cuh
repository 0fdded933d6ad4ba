/* VVOR from tiles: how loaders stage the neighbours of a tile, and producers sum its runs. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_VVOR_GATHER_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_VVOR_GATHER_CUH

#include "kernels/cuda/conv/vvor/conv_tiles_vvor.cuh"
#include "kernels/cuda/conv/vvor/conv_tiles_vvor_uneven.cuh"
#include "kernels/cuda/conv/vvor/conv_vvor_gather.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Arrives at the barrier when all copies that the thread has started are complete; does not wait for them. */
static __device__ __forceinline__ void barrier_arrive_copies(uint64_t *b)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(b))
                 : "memory");
}

/* Starts to copy 16 bytes, of which `left` elements exist; zeros take the place of the others. */
template <typename T>
static __device__ __forceinline__ void copy_part(void *to, const T *from, int left)
{
    int bytes = min(max(left, 0), 16 / (int)sizeof(T)) * (int)sizeof(T);
    copy16_part(shared_address(to), from, bytes);
}

template <bool BFLOAT> static __device__ __forceinline__ uint32_t pack2(float x, float y)
{
    if constexpr (BFLOAT) {
        __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
        return *(uint32_t *)&v;
    } else {
        __half2 v = __floats2half2_rn(x, y);
        return *(uint32_t *)&v;
    }
}

/* Returns x keep + y, where keep is 0 or 1. */
template <bool BFLOAT>
static __device__ __forceinline__ uint32_t add2_if(uint32_t x, uint32_t y, bool keep)
{
    uint32_t k = keep ? BFLOAT ? 0x3F803F80 : 0x3C003C00 : 0;
    if constexpr (BFLOAT) {
        __nv_bfloat162 v =
            __hfma2(*(__nv_bfloat162 *)&x, *(__nv_bfloat162 *)&k, *(__nv_bfloat162 *)&y);
        return *(uint32_t *)&v;
    } else {
        __half2 v = __hfma2(*(__half2 *)&x, *(__half2 *)&k, *(__half2 *)&y);
        return *(uint32_t *)&v;
    }
}

template <bool BFLOAT> static __device__ __forceinline__ float2 split2(uint32_t x)
{
    if constexpr (BFLOAT)
        return {__uint_as_float(x << 16), __uint_as_float(x & 0xFFFF0000)};
    else
        return __half22float2(*(__half2 *)&x);
}

/* Sums of runs in the 16 bits in which neighbours are staged. A new run begins where `keep` is 0. A NaN stays for the rest
   of the row. */
template <class C> struct packed_sum {
    uint4 v = {0, 0, 0, 0};

    __device__ __forceinline__ void add(uint4 x, bool keep)
    {
        v.x = add2_if<C::BFLOAT>(v.x, x.x, keep);
        v.y = add2_if<C::BFLOAT>(v.y, x.y, keep);
        v.z = add2_if<C::BFLOAT>(v.z, x.z, keep);
        v.w = add2_if<C::BFLOAT>(v.w, x.w, keep);
    }
    __device__ __forceinline__ void put(unsigned char *to, float) const
    {
        *(uint4 *)to = v;
    }
};

/* The same sums in float32, for long runs. */
template <class C> struct long_sum {
    float v[8] = {};

    __device__ __forceinline__ void add(uint4 x, bool keep)
    {
        const uint32_t w[4] = {x.x, x.y, x.z, x.w};
        float k = keep ? 1 : 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 f = split2<C::BFLOAT>(w[i]);
            v[2 * i] = v[2 * i] * k + f.x;
            v[2 * i + 1] = v[2 * i + 1] * k + f.y;
        }
    }
    __device__ __forceinline__ void put(unsigned char *to, float) const
    {
        *(uint4 *)to = {pack2<C::BFLOAT>(v[0], v[1]), pack2<C::BFLOAT>(v[2], v[3]),
            pack2<C::BFLOAT>(v[4], v[5]), pack2<C::BFLOAT>(v[6], v[7])};
    }
};

/* Sums of neighbours that are staged in float32. */
template <class C> struct float_sum {
    float4 v = {0, 0, 0, 0};

    __device__ __forceinline__ void add(uint4 x, bool keep)
    {
        float k = keep ? 1 : 0;
        v.x = v.x * k + __uint_as_float(x.x);
        v.y = v.y * k + __uint_as_float(x.y);
        v.z = v.z * k + __uint_as_float(x.z);
        v.w = v.w * k + __uint_as_float(x.w);
    }
    __device__ __forceinline__ void put(unsigned char *to, float scale) const
    {
        put4<C>(to, TILE_PANEL, v, scale);
    }
};

/* A lane's part of gathering: two rows of the slab, 16 staged bytes of each neighbour. */
template <class C> struct lane_place {
    int row0, row1, piece, word, shift; /* word, shift: position of the slots in a round */
    uint32_t to0, to1;                  /* offsets in a panel, bytes */

    static __device__ __forceinline__ uint32_t in_panel(int row, int piece)
    {
        if (C::MORE) return (uint32_t)(piece * C::UNIT + row * 16);
        int unit = C::WIDE ? piece / 2 : piece;
        return (uint32_t)(row * 64 + (unit ^ row / 2 % 4) * 16 + (C::WIDE ? piece % 2 * 8 : 0));
    }
    /* `lane` counts the lanes that share the pieces of a row, from the first one on. */
    __device__ __forceinline__ lane_place(int lane, int lanes, int first)
    {
        int half = threadIdx.x / 32 % C::WARPS;
        piece = first + lane % lanes;
        word = lane / lanes;
        shift = half * 16;
        row0 = lane / lanes + half * 8;
        row1 = row0 + (C::WIDE ? 4 : 8);
        to0 = in_panel(row0, piece);
        to1 = in_panel(row1, piece);
    }
    __device__ __forceinline__ lane_place() : lane_place(threadIdx.x % 32, C::LANES, 0) {}
};

/* A lane's part of gathering the 8 channels after the first 32: one row of the slab for each of 16 lanes; or, in pairs, two
   rows for each of 8 lanes, and the other lanes repeat that. */
template <class C> struct more_place {
    int word, shift;
    uint32_t to;
    bool there;

    __device__ __forceinline__ more_place()
    {
        int lane = threadIdx.x % 32;
        word = lane % 8;
        shift = lane / 8 % 2 * 16;
        to = lane_place<C>::in_panel(lane % 16, C::LANES);
        there = lane < 16;
    }
    static __device__ __forceinline__ lane_place<C> in_pairs()
    {
        return {(int)threadIdx.x % 8, 1, C::LANES};
    }
};

/* Starts to copy rounds to shared memory. Pads them with slot 0 to a multiple of AHEAD. */
static __device__ __forceinline__ void copy_rounds(uint32_t *to, const uint32_t *from, int rounds)
{
    int lane = threadIdx.x % 32, padded = (rounds + AHEAD - 1) / AHEAD * AHEAD;
#pragma unroll
    for (int i = 0; i < ROUNDS * ROUND_BYTES / 512; i++) {
        int at = i * 32 + lane, left = rounds * ROUND_BYTES - at * 16;
        if (at * 16 < padded * ROUND_BYTES)
            copy_part(to + at * 4, left > 0 ? from + at * 4 : from, left / 4);
    }
}

/* Returns the slots of the lane's two rows in a round. */
template <class C>
static __device__ __forceinline__ uint2 slots_of(const uint32_t *round, const lane_place<C> &place)
{
    const uint32_t *w = round + place.word;
    if constexpr (C::WIDE)
        return {w[0] >> place.shift & 0xFFFF, w[4] >> place.shift & 0xFFFF};
    else
        return {w[0] & 0xFFFF, w[0] >> 16};
}

/* Returns which of ROUNDS rounds of a slab, from `first` on, end a run: a bit each. */
static __device__ __forceinline__ uint32_t ends_from(
    const tile_info &info, int slab, uint32_t first)
{
    /* `end`: end of the previous cell; large while it is before `first` */
    uint32_t ends = 0, end = ~first;
    for (uint32_t left = info.slab[slab].mask; left; left &= left - 1) {
        end += info.count[slab][__ffs(left) - 1];
        if (end < ROUNDS) ends |= 1u << end;
    }
    return ends;
}

/* Sums the runs of a slab into the panels of the cells that it has. All neighbours are in shared memory. `tile`: the
   lane's piece of slot 0. `held`: the first ROUNDS of the `rounds`; with LONG the others are copied there later. Lanes
   that are not `own` sum nothing. */
template <class C, class SUM>
static __device__ __forceinline__ void gather_slab(const tile_info &info, int slab,
    const slab_share &share, const unsigned char *tile, uint32_t *held, const uint32_t *rounds,
    const lane_place<C> &place, float scale, bool own, unsigned char *panels)
{
    SUM x, y, z;
    const more_place<C> more;
    const unsigned char *behind = tile + (C::LANES - place.piece) * 16;
    uint32_t cells = share.mask, ends = share.ends, total = share.total, left = total, first = 0;
    bool keep = false;
#pragma unroll 1
    for (;;) {
        if constexpr (C::LONG) total = own ? min(left, (uint32_t)ROUNDS) : 0;
#pragma unroll 1
        for (uint32_t r = 0; r < total; r += AHEAD, ends >>= AHEAD) {
            uint4 v[AHEAD], w[AHEAD], u[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const uint32_t *round = held + (r + i) * 8;
                uint2 slot = slots_of<C>(round, place);
                v[i] = *(const uint4 *)(tile + slot.x * C::SLOT_BYTES);
                w[i] = *(const uint4 *)(tile + slot.y * C::SLOT_BYTES);
                if (C::MORE && more.there) {
                    uint32_t third = round[more.word] >> more.shift & 0xFFFF;
                    u[i] = *(const uint4 *)(behind + third * C::SLOT_BYTES);
                }
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                x.add(v[i], keep);
                y.add(w[i], keep);
                if (C::MORE) z.add(u[i], keep);
                keep = !(ends >> i & 1);
                if (keep) continue;
                unsigned char *to = panels + (__ffs(cells) - 1) * C::CELL_BYTES;
                x.put(to + place.to0, scale);
                y.put(to + place.to1, scale);
                if (C::MORE && more.there) z.put(to + more.to, scale);
                cells &= cells - 1;
            }
        }
        if (!C::LONG || left <= ROUNDS) return;
        left -= ROUNDS;
        first += ROUNDS;
        __syncwarp();
        copy_rounds(held, rounds + (int64_t)first * 8, min((int)left, (int)ROUNDS));
        ends = ends_from(info, slab, first);
        copies_wait();
        __syncwarp();
    }
}

/* Where a producer finds neighbours: staged, or in global memory. */
template <class C> struct tile_source {
    const unsigned char *tile; /* the lane's piece of slot 0 */
    const typename C::T *from; /* the lane's first channel in row 0 */
    int64_t stride;
    int left; /* channels that exist from there on */
    const int32_t *list;
    int staged;
    int units; /* rows before this one may be read in units, whatever their width */
};

/* Loads the lane's 16 bytes of a row, of which `left` channels exist. */
template <class C>
static __device__ __forceinline__ uint4 load_piece(const tile_source<C> &s, int64_t row)
{
    const typename C::T *from = s.from + row * s.stride;
    if constexpr (C::ALIGNED) {
        return s.left > 0 ? *(const uint4 *)from : uint4{0, 0, 0, 0};
    } else {
        constexpr int EACH = sizeof(typename C::T);
        if (row >= s.units) return load_elements(from, s.left);
        two_units u = load_units((const char *)from, min(s.left, (int)C::PIECE) * EACH);
        return join_units<EACH>(u.low, u.high, unit_shift(from));
    }
}

template <class C>
static __device__ __forceinline__ uint4 fetch(const tile_source<C> &s, uint32_t slot)
{
    if (slot > (uint32_t)s.staged) return load_piece(s, s.list[slot - 1]);
    return *(const uint4 *)(s.tile + slot * C::SLOT_BYTES);
}

/* Sums runs where some neighbours are not staged, or runs are long. `held`: room for rounds, with the first of them in it;
   `rounds`: all of them. Lanes that are not `own` store nothing. */
template <class C, class SUM>
static __device__ __forceinline__ void gather_any(const tile_info &info, int slab,
    const tile_source<C> &s, uint32_t *held, const uint32_t *rounds, const lane_place<C> &place,
    float scale, bool own, unsigned char *panels)
{
    const slab_share &share = info.slab[slab];
    uint32_t r = 0;
    for (uint32_t left = share.mask; left; left &= left - 1) {
        int cell = __ffs(left) - 1;
        SUM x, y;
        for (int i = 0; i < info.count[slab][cell]; i++, r++) {
            if (r > 0 && r % ROUNDS == 0) {
                __syncwarp();
                copy_rounds(
                    held, rounds + (int64_t)r * 8, min((int)(share.total - r), (int)ROUNDS));
                copies_wait();
                __syncwarp();
            }
            uint2 slot = slots_of<C>(held + r % ROUNDS * 8, place);
            x.add(fetch<C>(s, slot.x), true);
            y.add(fetch<C>(s, slot.y), true);
        }
        unsigned char *to = panels + cell * C::CELL_BYTES;
        if (!own) continue;
        x.put(to + place.to0, scale);
        y.put(to + place.to1, scale);
    }
}

/* Sums runs from the triplets, for a tile without a list. Rows from `live` on have no triplets. */
template <class C, class SUM>
static __device__ __forceinline__ void gather_plain(const conv_set &set, int64_t tile,
    const uint8_t *rows, int cell0, int cells, const tile_source<C> &s, const lane_place<C> &place,
    float scale, unsigned char *panels)
{
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        unsigned char *to = panels + (half ? place.to1 : place.to0);
        int64_t row = tile * PNET_TILE_ROWS + rows[half ? place.row1 : place.row0], n = 0, end = 0;
        if (row < pnet_live(set.rows)) {
            n = conv_start(set, row);
            end = conv_start(set, row + 1);
        }
        for (int q = 0; q < cells; q++) {
            SUM sum;
            for (; n < end && conv_cell(set, n) <= cell0 + q; n++)
                if (conv_cell(set, n) == cell0 + q)
                    sum.add(load_piece(s, conv_other(set, n)), true);
            sum.put(to + q * C::CELL_BYTES, scale);
        }
    }
}

/* Starts to copy the rows of the other side for the warp's slab. `places`: of the rows, in the tile. Rows that are not there
   become zeros. */
template <class C>
static __device__ __forceinline__ void copy_side(const tiles_job<typename C::T> &j,
    const typename C::T *from, int64_t tile, const uint8_t *places, int first, unsigned char *to)
{
    using T = typename C::T;
    constexpr int EACH = 16 / sizeof(T), LANES = C::M / EACH, ROWS = 16 / C::WARPS,
                  TURNS = ROWS * LANES / 32;
    int lane = threadIdx.x % 32, half = threadIdx.x / 32 % C::WARPS;
    int64_t row0 = tile * PNET_TILE_ROWS, live = pnet_live(j.set.rows) - row0;
    int c = first + lane % LANES * EACH, left = max(j.rows_width - c, 0),
        r = half * ROWS + lane / LANES;
    from += left > 0 ? c : 0;
    to += r * C::PITCH + lane % LANES * 16;
    places += r;
    if (live >= PNET_TILE_ROWS && first + C::M <= j.rows_width) {
#pragma unroll
        for (int i = 0; i < TURNS; i++)
            copy16(to + i * (32 / LANES) * C::PITCH,
                from + conv_row(j.set, row0 + places[i * (32 / LANES)]) * j.rows_stride);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < TURNS; i++, to += 32 / LANES * C::PITCH) {
        int own = places[i * (32 / LANES)], here = own < live ? left : 0;
        copy_part(to, own < live ? from + conv_row(j.set, row0 + own) * j.rows_stride : from, here);
    }
}

/* A lane's place while its warp copies rows of the other side: several rows a turn, 16 bytes a lane. */
template <class C> struct side_place {
    static constexpr int LANES = C::M * (int)sizeof(typename C::T) / 16, ROWS = 16 / C::WARPS,
                         AT_ONCE = 32 / LANES, TURNS = ROWS / AT_ONCE;
    static_assert(TURNS % 2 == 0 && TURNS <= 8, "shifts fit into a word, turns are taken in pairs");
    int first, row, unit; /* first row of the warp; the lane's row and unit in the first turn */

    __device__ __forceinline__ side_place()
    {
        int lane = threadIdx.x % 32;
        first = threadIdx.x / 32 % C::WARPS * ROWS;
        row = first + lane / LANES;
        unit = lane % LANES;
    }
};

/* Copies rows of any alignment: starts to copy the units that hold them. The pitch of a row has room for the one unit more
   that this takes. Returns the offset of each of the lane's rows in its first unit, 4 bits a turn. */
template <class C>
static __device__ __forceinline__ uint32_t copy_side_units(const tiles_job<typename C::T> &j,
    const typename C::T *from, int64_t tile, const uint8_t *places, int first, unsigned char *to)
{
    using T = typename C::T;
    using place = side_place<C>;
    const place at;
    int64_t row0 = tile * PNET_TILE_ROWS, live = pnet_live(j.set.rows) - row0,
            stride = j.rows_stride * (int64_t)sizeof(T);
    int bytes = min(j.rows_width - first, (int)C::M) * (int)sizeof(T);
    const char *side = (const char *)(from + first),
               *last = side + (row0 + live - 1) * stride + bytes;
    uint32_t shifts = 0;
#pragma unroll
    for (int i = 0; i < place::TURNS; i++) {
        int row = at.row + i * place::AT_ONCE, own = places[row];
        const char *p = side + (own < live ? conv_row(j.set, row0 + own) : 0) * stride;
        uint32_t shift = unit_shift(p);
        shifts |= shift << 4 * i;
        copy_unit(to + row * C::PITCH, p - shift, at.unit, (int)shift + bytes, own < live, last);
    }
    if (bytes > (place::LANES - 1) * 16 && threadIdx.x % 32 < place::ROWS) {
        int row = at.first + threadIdx.x % 32, own = places[row];
        const char *p = side + (own < live ? conv_row(j.set, row0 + own) : 0) * stride;
        uint32_t shift = unit_shift(p);
        copy_unit(
            to + row * C::PITCH, p - shift, place::LANES, (int)shift + bytes, own < live, last);
    }
    return shifts;
}

/* Moves rows to the beginning of their pitches. */
template <class C>
static __device__ __forceinline__ void join_side(
    const tiles_job<typename C::T> &j, int first, uint32_t shifts, unsigned char *to)
{
    constexpr int EACH = sizeof(typename C::T);
    using place = side_place<C>;
    const place at;
    bool own = at.unit * C::PIECE < j.rows_width - first;
    to += at.row * C::PITCH + at.unit * 16;
#pragma unroll
    for (int i = 0; i < place::TURNS; i += 2) {
        unsigned char *x = to + i * place::AT_ONCE * C::PITCH, *y = x + place::AT_ONCE * C::PITCH;
        two_units u = {}, v = {};
        if (own) {
            u = {*(const uint4 *)x, *(const uint4 *)(x + 16)};
            v = {*(const uint4 *)y, *(const uint4 *)(y + 16)};
        }
        __syncwarp();
        if (own) {
            *(uint4 *)x = join_units<EACH>(u.low, u.high, shifts >> 4 * i & 15);
            *(uint4 *)y = join_units<EACH>(v.low, v.high, shifts >> 4 * (i + 1) & 15);
        }
    }
}

template <class C> static __device__ __forceinline__ void loaders_meet()
{
    asm volatile("bar.sync 1, %0;" ::"n"(C::LOADERS) : "memory");
}

/* Adds entries of the tile's cells, one a lane, to the block's share of the slabs; each lane holds the share of one slab.
   */
static __device__ __forceinline__ void add_cells(slab_share &share, const pnet_tile_cell *entry,
    bool there, const tiles_share &w, tile_info &info)
{
    uint4 e[3] = {};
    if (there)
#pragma unroll
        for (int i = 0; i < 3; i++) e[i] = ((const uint4 *)entry)[i];
    const uint32_t rounds[8] = {e[0].z, e[0].w, e[1].x, e[1].y, e[1].z, e[1].w, e[2].x, e[2].y};
    int lane = threadIdx.x % 32, q = (int)e[0].x - w.cell0;
    bool own = there && q >= 0 && q < w.cells, before = there && q < 0;
#pragma unroll
    for (int pair = 0; pair < PNET_TILE_SLABS / 2; pair++) {
        uint32_t n[2] = {rounds[pair] & 0xFFFF, rounds[pair] >> 16}; /* rounds in two slabs */
        uint32_t upto = own ? min(n[0], 2u * ROUNDS) | min(n[1], 2u * ROUNDS) << 16 : 0;
#pragma unroll
        for (int i = 1; i < 32; i *= 2) {
            uint32_t other = __shfl_up_sync(~0u, upto, i);
            upto += lane >= i ? other : 0;
        }
#pragma unroll
        for (int s = 0; s < 2; s++) {
            uint32_t had = __shfl_sync(~0u, share.total, pair * 2 + s);
            uint32_t end = had + (upto >> s * 16 & 0xFFFF) - 1;
            bool has = own && n[s] > 0;
            if (own) info.count[pair * 2 + s][q] = (uint16_t)n[s];
            uint32_t skipped = __reduce_add_sync(~0u, before ? n[s] : 0),
                     total = __reduce_add_sync(~0u, own ? n[s] : 0),
                     mask = __reduce_or_sync(~0u, has ? 1u << q : 0),
                     ends = __reduce_or_sync(~0u, has && end < ROUNDS ? 1u << end : 0);
            if (lane != pair * 2 + s) continue;
            share.begin += skipped;
            share.total += total;
            share.mask |= mask;
            share.ends |= ends;
        }
    }
}

static_assert(offsetof(pnet_tile, row) % 16 == 0 && sizeof(pnet_tile) % 16 == 0,
    "rows of tiles are read 16 at a time");

/* Finds the block's share of a tile, and starts to copy the list of its neighbours. */
template <class C>
static __device__ __forceinline__ void prepare_tile(const tiles_job<typename C::T> &j,
    const tiles_share &w, int64_t tile, tile_info &info, int32_t *list)
{
    int lid = threadIdx.x % C::LOADERS;
    const pnet_tile &t = j.set.tiles.tile[tile];
    int64_t at = t.at;
    int neighbours = t.neighbours, cells = t.cells, longest = t.longest,
        staged = min(max(neighbours, 0), (int)C::STAGED);
    uint32_t first = t.first[lid % PNET_TILE_SLABS];
    const uint32_t *words = j.set.tiles.list + at;
    int64_t entries = (max(neighbours, 0) + 3) / 4 * 4;
    const pnet_tile_cell *entry = (const pnet_tile_cell *)(words + entries);
    if (lid < PNET_TILE_ROWS / 16) ((uint4 *)info.row)[lid] = __ldg((const uint4 *)t.row + lid);
    for (int i = lid * 4; i < staged; i += C::LOADERS * 4) copy16(list + i, words + i);
    copies_commit();
    if (lid >= 32) return;
    slab_share share = {};
#pragma unroll 1
    for (int e = lid; e - lid < cells; e += 32) add_cells(share, entry + e, e < cells, w, info);
    share.begin += first;
    if (neighbours < 0) share.mask = (1u << w.cells) - 1;
    if (lid < PNET_TILE_SLABS) info.slab[lid] = share;
    if (lid == 0) {
        info.list = at;
        info.rounds = at + entries + (int64_t)cells * (int64_t)(sizeof *entry / 4);
        info.neighbours = neighbours;
        info.staged = staged;
        info.longest = longest;
    }
}

/* Starts to stage the neighbours of a tile: the lane's piece of every EACH-th neighbour. */
template <class C>
static __device__ __forceinline__ void stage_tile(
    const tile_source<C> &s, const int32_t *list, int staged, unsigned char *tile)
{
    constexpr int EACH = C::LOADERS / C::LANES;
    unsigned char *to = tile + threadIdx.x % C::LANES * 16 + C::SLOT_BYTES;
#pragma unroll 8
    for (int slot = threadIdx.x % C::LOADERS / C::LANES; slot < staged; slot += EACH) {
        const typename C::T *from = s.from + (int64_t)list[slot] * s.stride;
        copy_part(to + slot * C::SLOT_BYTES, from, s.left);
    }
}

/* How loaders share the pieces of float32 neighbours of any alignment. */
template <class C> struct uneven_share {
    int piece, first, each; /* each `each`-th neighbour from `first` on; piece -1: none */

    __device__ __forceinline__ uneven_share(const tiles_job<typename C::T> &j, const tiles_share &w)
    {
        int lid = threadIdx.x % C::LOADERS,
            pieces = min((j.gathered_width - w.n0 + C::PIECE - 1) / C::PIECE, (int)C::PIECES);
        each = C::LOADERS / pieces;
        first = lid / pieces;
        piece = first < each ? lid % pieces : -1;
    }
};

/* Stages the lane's piece of neighbours, four at a time. A neighbour whose units would reach beyond the matrix is staged
   alone. */
template <class C>
static __device__ __forceinline__ void stage_uneven(const tile_source<C> &s, const int32_t *list,
    int staged, const uneven_share<C> &share, unsigned char *tile)
{
    constexpr int EACH = sizeof(typename C::T), AT_ONCE = 4;
    unsigned char *to = tile + share.piece * 16 + C::SLOT_BYTES;
    int bytes = min(s.left, (int)C::PIECE) * EACH;
#pragma unroll 1
    for (int slot = share.first * AT_ONCE; slot < staged; slot += share.each * AT_ONCE) {
        const int4 four = *(const int4 *)(list + slot);
        const int row[AT_ONCE] = {four.x, four.y, four.z, four.w};
        two_units u[AT_ONCE];
        uint32_t shift[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const typename C::T *from = s.from + row[i] * s.stride;
            shift[i] = unit_shift(from);
            u[i] = load_units((const char *)from, row[i] < s.units ? bytes : 0);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (slot + i < staged)
                *(uint4 *)(to + (slot + i) * C::SLOT_BYTES) =
                    join_units<EACH>(u[i].low, u[i].high, shift[i]);
        if (max(max(four.x, four.y), max(four.z, four.w)) < s.units) continue;
#pragma unroll 1
        for (int i = slot; i < min(slot + AT_ONCE, staged); i++)
            if (list[i] >= s.units)
                *(uint4 *)(to + i * C::SLOT_BYTES) =
                    load_elements(s.from + list[i] * s.stride, s.left);
    }
}

/* Stages neighbours in 16 bits of any alignment, AT_ONCE whole rows a lane: each unit is read once, which takes fewer
   instructions than pieces do. In float32 that would take too many registers, and too many rows would begin in one bank. */
template <class C>
static __device__ __forceinline__ void stage_rows(
    const tile_source<C> &s, const int32_t *list, int staged, unsigned char *tile)
{
    constexpr int EACH = sizeof(typename C::T), AT_ONCE = 2;
    int bytes = min(s.left, (int)C::COLUMNS) * EACH;
    tile += C::SLOT_BYTES;
#pragma unroll 1
    for (int first = threadIdx.x % C::LOADERS; first < staged; first += C::LOADERS * AT_ONCE) {
        uint4 unit[AT_ONCE][C::PIECES + 1];
        uint32_t shift[AT_ONCE];
        int row[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int slot = first + i * C::LOADERS;
            row[i] = list[slot < staged ? slot : first];
            const typename C::T *from = s.from + row[i] * s.stride;
            shift[i] = unit_shift(from);
            load_row(unit[i], (const char *)from, row[i] < s.units ? bytes : 0);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int slot = first + i * C::LOADERS;
            if (slot >= staged) break;
            unsigned char *to = tile + slot * C::SLOT_BYTES;
#pragma unroll
            for (int p = 0; p < C::PIECES; p++)
                if (p * 16 < bytes)
                    *(uint4 *)(to + p * 16) =
                        join_units<EACH>(unit[i][p], unit[i][p + 1], shift[i]);
            if (row[i] < s.units) continue;
#pragma unroll 1
            for (int p = 0; p * 16 < bytes; p++)
                *(uint4 *)(to + p * 16) =
                    load_elements(s.from + row[i] * s.stride + p * C::PIECE, s.left - p * C::PIECE);
        }
    }
}

#endif
#endif
