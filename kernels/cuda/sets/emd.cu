/* The auction. All blocks run at the same time and wait for each other twice in a round: behind the bids, and behind the sale.
   The best and the second best object of a person do not depend on who looks at which objects, the largest bid is an integer
   maximum, and the order of lists decides nothing: the assignment is that of kernels/cpu/sets/emd.c. The rest is completed by
   proposals, as there: a person remembers the nearest objects whose holder would lose them, and proposes to one after the
   other; who has none left looks again. The result does not depend on the order of proposals, so persons do not wait for each
   other until all remembered objects are tried. Where a round has fewer persons than there are warps, a block looks at the
   objects of one person, else a warp. A phase of a scaled auction ends where the sale leaves few persons of a
   sample: all blocks meet twice more before the next round. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/boxes.cuh"
#include "kernels/emd.h"

#include <cfloat>
#include <cooperative_groups.h>

enum {
    AUCTION_WARPS = 16,
    AUCTION_THREADS = AUCTION_WARPS * WARP,
    AT_ONCE = 4,     /* objects that a thread looks at */
    BLOCKS_EACH = 2, /* of a multiprocessor at most: the fewer, the sooner all have met */
};
static_assert((int)OBJECTS_KEPT == (int)WARP, "a lane keeps an object");

/* A key orders by a number of at least 0, then by an index. */
typedef unsigned long long key_type;
static const key_type NO_KEY = UINT64_MAX, INFINITE_KEY = 0x7F800000FFFFFFFFu;

static __device__ __forceinline__ key_type key_of(float number, int32_t index)
{
    return (key_type)__float_as_uint(number) << 32 | (uint32_t)index;
}
static __device__ __forceinline__ float number_of(key_type key)
{
    return __uint_as_float((uint32_t)(key >> 32));
}
static __device__ __forceinline__ int32_t index_of(key_type key)
{
    return (int32_t)(uint32_t)key;
}

/* Persons are rows of x, objects rows of y. */
struct auction {
    struct pnet_set_pair sets;
    float eps;
    int32_t rounds;
    bool complete, scaled, tell;
    int32_t *partner; /* [rows of x] */
    const struct set_box *box;
    int32_t *count;       /* [COUNTS]: of the list of round r, at r % COUNTS */
    int32_t *ended;       /* [COUNTS]: of round r, how many samples' phases it ends */
    int32_t *phases;      /* [samples]: behind this one */
    int32_t *left;        /* [samples]: persons without an object */
    int32_t *list[LISTS]; /* persons without an object, in round r: list[r % LISTS], in any order */
    int32_t *want;        /* what each of the list bids for */
    float4 *object;       /* place and price */
    key_type
        *bid; /* an object's largest bid, and ~ the lowest person who makes it; 0: none so far */
    int32_t *holder; /* of an object; -1 */
    /* Once the rounds are over: the objects of a sample without a holder, in order, from the sample's first row on. */
    int32_t *free_count; /* [samples] */
    float4 *free;        /* place, and the bits of the row */
    key_type *held;      /* distance and person; NO_KEY. The bids are not needed any more. */
    int32_t *
        remembered; /* [rows of x][OBJECTS_KEPT]: free objects of the sample by number, the nearest first; -1 */
};

static __device__ __forceinline__ float square_to(const float *x, const float4 &y)
{
    float dx = __fsub_rn(x[0], y.x), dy = __fsub_rn(x[1], y.y), dz = __fsub_rn(x[2], y.z);
    return __fadd_rn(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy)), __fmul_rn(dz, dz));
}

static __device__ __forceinline__ float distance_to(const float *x, const float4 &y)
{
    return __fsqrt_rn(square_to(x, y));
}

static __device__ __forceinline__ float about_inverse_root(float v)
{
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

/* Adds the person of each thread to a list; -1: none. All threads of a warp take part. */
static __device__ __forceinline__ void append(int32_t *list, int32_t *count, int32_t person)
{
    const unsigned some = __ballot_sync(~0u, person >= 0);
    const int lane = (int)threadIdx.x % WARP;
    int at = 0;
    if (!some) return;
    if (lane == 0) at = atomicAdd(count, __popc(some));
    at = __shfl_sync(~0u, at, 0);
    if (person >= 0) list[at + __popc(some & ((1u << lane) - 1))] = person;
}

static __device__ bool can_assign(const struct auction &a, int32_t sample)
{
    const double d = a.box[sample].diagonal;
    const int64_t n = rows_in(a.sets.x, sample);
    return n > 0 && n == rows_in(a.sets.y, sample) && d * d < (double)FLT_MAX / 2;
}

/* How many persons of a sample are few: a phase may leave them. */
static __device__ __forceinline__ int32_t may_leave(const struct auction &a, int32_t sample)
{
    return (int32_t)(rows_in(a.sets.x, sample) / PNET_EMD_PART);
}

/* How many phases come before the last one. */
static __device__ int32_t phases_before(const struct auction &a, int32_t sample)
{
    int32_t k = 0;
    if (!a.scaled || !can_assign(a, sample)) return 0;
    for (double eps = a.eps; eps * PNET_EMD_TIMES <= a.box[sample].diagonal / 8; k++)
        eps *= PNET_EMD_TIMES;
    return k;
}

static __device__ float eps_of(const struct auction &a, int32_t sample)
{
    float eps = a.eps;
    for (int32_t k = 0; k < a.phases[sample]; k++) eps *= PNET_EMD_TIMES;
    return eps;
}

/* All persons of samples that have an assignment are without an object. */
static __device__ void begin(const struct auction &a)
{
    for (int64_t s = FLAT_BEGIN; s < a.sets.x.samples; s += FLAT_STEP) {
        a.phases[s] = phases_before(a, (int32_t)s);
        a.left[s] = (int32_t)rows_in(a.sets.x, (int32_t)s);
    }
    const int64_t persons = pnet_live(a.sets.x.rows), objects = pnet_live(a.sets.y.rows);
    const float *y = a.sets.y.xyz;
    for (int64_t base = FLAT_BEGIN - threadIdx.x; base < persons; base += FLAT_STEP) {
        const int64_t row = base + threadIdx.x;
        const bool there = row < persons;
        if (there) a.partner[row] = -1;
        bool joins = there && can_assign(a, sample_of(a.sets.x, row));
        append(a.list[0], a.count, joins ? (int32_t)row : -1);
    }
    for (int64_t row = FLAT_BEGIN; row < objects; row += FLAT_STEP) {
        a.object[row] = make_float4(y[3 * row], y[3 * row + 1], y[3 * row + 2], 0);
        a.bid[row] = 0;
        a.holder[row] = -1;
    }
}

/* What a person has seen: the object of the least distance + price, the lowest one among equals, and the next larger number; in a
   scaled auction the least (trunc((distance + price) * inverse), place), a place being PNET_EMD_STRIDE * object + shift. */
struct view {
    key_type best;
    float second;
    key_type chosen;
};

/* What chooses among objects that serve a person of a scaled auction as well as the best one. Objects count from 0 in the batch:
   what they count more than in the sample is part of the shift. */
struct taste {
    float inverse;
    uint32_t shift;
    bool crowded; /* else the best one is taken */
};

static __device__ struct taste taste_of(
    const struct auction &a, int32_t person, int32_t sample, int32_t round)
{
    const uint32_t own = (uint32_t)(person - a.sets.x.splits[sample]),
                   first = (uint32_t)a.sets.y.splits[sample];
    return {__fdiv_rn(2, eps_of(a, sample)),
        pnet_emd_hash(own, (uint32_t)round) - first * PNET_EMD_STRIDE,
        a.left[sample] > may_leave(a, sample)};
}

static __device__ __forceinline__ struct view join(const struct view &a, const struct view &b)
{
    const float worse = fmaxf(number_of(a.best), number_of(b.best));
    return {min(a.best, b.best), fminf(worse, fminf(a.second, b.second)), min(a.chosen, b.chosen)};
}

template <bool SCALED> static __device__ __forceinline__ struct view join_lanes(struct view v)
{
    for (int d = WARP / 2; d; d /= 2) {
        struct view other = {__shfl_xor_sync(~0u, v.best, d), __shfl_xor_sync(~0u, v.second, d),
            SCALED ? __shfl_xor_sync(~0u, v.chosen, d) : NO_KEY};
        v = join(v, other);
    }
    return v;
}

/* Square roots, rounded to nearest. The compiler's own has a branch for numbers near the ends of the range, which keeps it from
   taking several at once; this is what it does for the others. */
static __device__ __forceinline__ void roots(const float v[AT_ONCE], float root[AT_ONCE])
{
    float least = INFINITY;
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) {
        const float inverse = about_inverse_root(v[k]), about = __fmul_rn(v[k], inverse);
        root[k] = __fmaf_rn(__fmaf_rn(-about, about, v[k]), __fmul_rn(0.5f, inverse), about);
        least = fminf(least, v[k]);
    }
    if (least >= 0x1p-100f) return;
    for (int k = 0; k < AT_ONCE; k++) root[k] = __fsqrt_rn(v[k]);
}

/* What a thread has seen. Objects come in ascending order. */
template <bool SCALED> struct sight {
    float least = INFINITY, second = INFINITY;
    int32_t best = -1;
    key_type chosen = NO_KEY;
    __device__ __forceinline__ void see(float v, int64_t object, const struct taste &t)
    {
        if (SCALED)
            chosen = min(chosen, (key_type)__float_as_uint(truncf(__fmul_rn(v, t.inverse))) << 32 |
                                     ((uint32_t)object * PNET_EMD_STRIDE + t.shift));
        second = fminf(second, fmaxf(least, v));
        best = v < least ? (int32_t)object : best;
        least = fminf(least, v);
    }
};

/* Looks at each `step`th object in [begin, end). */
template <bool SCALED>
static __device__ __forceinline__ struct view look(const struct auction &a, int32_t person,
    const struct taste &t, int64_t begin, int64_t end, int step)
{
    const float *x = a.sets.x.xyz + 3 * (int64_t)person, at[3] = {x[0], x[1], x[2]};
    struct sight<SCALED> s;
    int64_t j = begin;
    for (; j + (AT_ONCE - 1) * step < end; j += AT_ONCE * step) {
        float square[AT_ONCE], distance[AT_ONCE], price[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const float4 object = a.object[j + k * step];
            square[k] = square_to(at, object);
            price[k] = object.w;
        }
        roots(square, distance);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) s.see(__fadd_rn(distance[k], price[k]), j + k * step, t);
    }
    for (; j < end; j += step) s.see(__fadd_rn(distance_to(at, a.object[j]), a.object[j].w), j, t);
    return {s.best < 0 ? INFINITE_KEY : key_of(s.least, s.best), s.second, s.chosen};
}

template <bool SCALED>
static __device__ void bid_for(const struct auction &a, int32_t at, int32_t person,
    const struct taste &t, float eps, struct view v)
{
    const int32_t best = index_of(v.best),
                  object = SCALED && t.crowded
                               ? (int32_t)(((uint32_t)v.chosen - t.shift) * PNET_EMD_BACK)
                               : best;
    const float least = number_of(v.best), price = a.object[object].w;
    float own = least, other = v.second < INFINITY ? v.second : least; /* the only object */
    if (SCALED && object != best) {
        own = __fadd_rn(distance_to(a.sets.x.xyz + 3 * (int64_t)person, a.object[object]), price);
        other = least;
    }
    float offer = __fadd_rn(__fadd_rn(price, __fsub_rn(other, own)), eps);
    if (!(offer > price)) offer = __uint_as_float(__float_as_uint(price) + 1);
    a.want[at] = object;
    atomicMax(a.bid + object, key_of(offer, ~person));
}

/* A price is the largest bid so far, and a bid is above the price: bids of earlier rounds may stay. */
template <bool SCALED>
static __device__ void hold_round(const struct auction &a, int32_t round, int32_t count)
{
    const int32_t *list = a.list[round % LISTS];
    __shared__ struct view part[AUCTION_WARPS];
    const bool together = count < (int64_t)gridDim.x * AUCTION_WARPS;
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const int first = together ? (int)threadIdx.x : lane, step = together ? AUCTION_THREADS : WARP;
    const int64_t begin = together ? blockIdx.x : (int64_t)blockIdx.x * AUCTION_WARPS + warp,
                  next = together ? gridDim.x : (int64_t)gridDim.x * AUCTION_WARPS;
    for (int64_t k = begin; k < count; k += next) {
        const int32_t person = list[k], sample = sample_of(a.sets.x, person);
        const int64_t *objects = a.sets.y.splits + sample;
        const struct taste t = SCALED ? taste_of(a, person, sample, round) : (struct taste){};
        struct view v =
            join_lanes<SCALED>(look<SCALED>(a, person, t, objects[0] + first, objects[1], step));
        if (together) {
            __syncthreads(); /* the last parts have been read */
            if (lane == 0) part[warp] = v;
            __syncthreads();
            if (warp > 0) continue;
            v = {INFINITE_KEY, INFINITY, NO_KEY};
            if (lane < AUCTION_WARPS) v = part[lane];
            v = join_lanes<SCALED>(v);
        }
        if (lane == 0)
            bid_for<SCALED>(a, (int32_t)k, person, t, SCALED ? eps_of(a, sample) : a.eps, v);
    }
}

/* Counts the sale of an object that no person had. */
static __device__ void count_sale(const struct auction &a, int32_t round, int32_t person)
{
    const int32_t sample = sample_of(a.sets.x, person), left = atomicSub(a.left + sample, 1) - 1;
    if (a.phases[sample] > 0 && left == may_leave(a, sample))
        atomicAdd(a.ended + round % COUNTS, 1);
}

/* Gives objects to their largest bids. Who loses one, or does not get it, is in the next round's list. */
template <bool SCALED>
static __device__ void sell(const struct auction &a, int32_t round, int32_t count)
{
    const int32_t *list = a.list[round % LISTS];
    for (int64_t base = FLAT_BEGIN - threadIdx.x; base < count; base += FLAT_STEP) {
        const int64_t k = base + threadIdx.x;
        int32_t loser = -1;
        if (k < count) {
            const int32_t person = list[k], object = a.want[k];
            const key_type bid = a.bid[object];
            loser = person;
            if (index_of(bid) == ~person) {
                loser = a.holder[object];
                a.holder[object] = person;
                a.object[object].w = number_of(bid);
                if (SCALED && loser < 0) count_sale(a, round, person);
            }
        }
        append(a.list[(round + 1) % LISTS], a.count + (round + 1) % COUNTS, loser);
    }
}

/* How many persons the list of a round has, and makes room for the list behind the next one. */
static __device__ __forceinline__ int32_t count_of(const struct auction &a, int32_t round)
{
    return *(volatile int32_t *)(a.count + round % COUNTS);
}
static __device__ __forceinline__ void clear_later(const struct auction &a, int32_t round)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        a.count[(round + 2) % COUNTS] = a.ended[(round + 2) % COUNTS] = 0;
}

static __device__ __forceinline__ bool phase_ends(const struct auction &a, int32_t sample)
{
    return a.phases[sample] > 0 && a.left[sample] <= may_leave(a, sample);
}

/* Takes the objects back where a phase is over. Who had one is in the next round's list, as those already are who had none. */
static __device__ void take_back(const struct auction &a, int32_t round)
{
    const int64_t objects = pnet_live(a.sets.y.rows);
    for (int64_t base = FLAT_BEGIN - threadIdx.x; base < objects; base += FLAT_STEP) {
        const int64_t row = base + threadIdx.x;
        int32_t person = -1;
        if (row < objects && phase_ends(a, sample_of(a.sets.y, row))) {
            person = a.holder[row];
            a.holder[row] = -1;
        }
        append(a.list[(round + 1) % LISTS], a.count + (round + 1) % COUNTS, person);
    }
}

static __device__ void begin_phases(const struct auction &a)
{
    for (int64_t s = FLAT_BEGIN; s < a.sets.x.samples; s += FLAT_STEP) {
        if (!phase_ends(a, (int32_t)s)) continue;
        a.phases[s]--;
        a.left[s] = (int32_t)rows_in(a.sets.x, (int32_t)s);
    }
}

/* A block lists the free objects of a sample. */
static __device__ void list_free(const struct auction &a)
{
    __shared__ int32_t part[AUCTION_WARPS];
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    for (int32_t s = (int32_t)blockIdx.x; s < a.sets.y.samples; s += (int32_t)gridDim.x) {
        const int64_t begin = a.sets.y.splits[s], end = a.sets.y.splits[s + 1];
        int32_t found = 0;
        for (int64_t base = begin; base < end; base += AUCTION_THREADS) {
            const int64_t row = base + threadIdx.x;
            const bool is_free = row < end && a.holder[row] < 0;
            const unsigned some = __ballot_sync(~0u, is_free);
            int32_t before = __popc(some & ((1u << lane) - 1));
            __syncthreads(); /* the last counts have been read */
            if (lane == 0) part[warp] = __popc(some);
            __syncthreads();
            for (int w = 0; w < AUCTION_WARPS; w++) {
                before += w < warp ? part[w] : 0;
                if (w == AUCTION_WARPS - 1 && is_free) {
                    float4 object = a.object[row];
                    object.w = __int_as_float((int32_t)row);
                    a.free[begin + found + before] = object;
                    a.held[begin + found + before] = NO_KEY;
                }
            }
            for (int w = 0; w < AUCTION_WARPS; w++) found += part[w];
        }
        if (threadIdx.x == 0) a.free_count[s] = found;
    }
}

/* A warp looks for the nearest objects whose holder would lose them to a person. Lanes keep them in ascending order. */
static __device__ void remember(const struct auction &a, const int32_t *list, int32_t count)
{
    const int lane = (int)threadIdx.x % WARP;
    const int64_t step = (int64_t)gridDim.x * AUCTION_WARPS;
    for (int64_t k = (int64_t)blockIdx.x * AUCTION_WARPS + threadIdx.x / WARP; k < count;
         k += step) {
        const int32_t person = list[k], sample = sample_of(a.sets.x, person),
                      objects = a.free_count[sample];
        const int64_t begin = a.sets.y.splits[sample];
        const float *x = a.sets.x.xyz + 3 * (int64_t)person, at[3] = {x[0], x[1], x[2]};
        key_type kept = NO_KEY, last = NO_KEY; /* of this lane, and of the last one */
        for (int32_t base = 0; base < objects; base += WARP) {
            const int32_t j = base + lane;
            key_type key = NO_KEY;
            if (j < objects) {
                const float d = distance_to(at, a.free[begin + j]);
                if (key_of(d, person) < a.held[begin + j]) key = key_of(d, j);
            }
            unsigned found = __ballot_sync(~0u, key < last);
            if (!found) continue;
            for (; found; found &= found - 1) {
                const key_type now = __shfl_sync(~0u, key, __ffs((int)found) - 1),
                               before = __shfl_up_sync(~0u, kept, 1);
                if (now < kept) kept = lane == 0 || before < now ? now : before;
            }
            last = __shfl_sync(~0u, kept, WARP - 1);
        }
        a.remembered[(int64_t)person * OBJECTS_KEPT + lane] = kept == NO_KEY ? -1 : index_of(kept);
    }
}

/* A person proposes to what it remembers; who loses an object to it goes on with what it remembers behind that one. Returns who
   has nothing left to propose to; -1: there is none. */
static __device__ int32_t propose(const struct auction &a, int32_t person)
{
    const int64_t begin = a.sets.y.splits[sample_of(a.sets.x, person)];
    for (int at = 0;; at++) {
        const int32_t *objects = a.remembered + (int64_t)person * OBJECTS_KEPT;
        if (at == OBJECTS_KEPT || objects[at] < 0) return person;
        const int32_t object = objects[at];
        const key_type key =
            key_of(distance_to(a.sets.x.xyz + 3 * (int64_t)person, a.free[begin + object]), person);
        key_type *held = a.held + begin + object;
        if (*(volatile key_type *)held < key) continue;
        const key_type before = atomicMin(held, key);
        if (before < key) continue;
        if (before == NO_KEY) return -1;
        person = index_of(before);
        objects = a.remembered + (int64_t)person * OBJECTS_KEPT;
        for (at = 0; objects[at] != object;) at++;
    }
}

static __device__ void write_partners(const struct auction &a, bool completed)
{
    const int64_t objects = pnet_live(a.sets.y.rows);
    for (int64_t row = FLAT_BEGIN; row < objects; row += FLAT_STEP) {
        const int32_t holder = a.holder[row];
        if (holder >= 0) a.partner[holder] = (int32_t)row;
        if (!completed) continue;
        const int32_t sample = sample_of(a.sets.y, row);
        const bool listed = row - a.sets.y.splits[sample] < a.free_count[sample];
        if (!listed || a.held[row] == NO_KEY) continue;
        const int32_t object = __float_as_int(a.free[row].w);
        a.partner[index_of(a.held[row])] = a.tell ? PNET_EMD_LEFT - object : object;
    }
}

/* count and ended hold 0 before. */
template <bool SCALED>
__global__ static void __launch_bounds__(AUCTION_THREADS, BLOCKS_EACH)
    assign(const __grid_constant__ struct auction a)
{
    const auto all = cooperative_groups::this_grid();
    int32_t round = 0, count;
    begin(a);
    all.sync();
    for (; (count = count_of(a, round)) > 0 && round < a.rounds; round++) {
        hold_round<SCALED>(a, round, count);
        all.sync();
        clear_later(a, round);
        sell<SCALED>(a, round, count);
        all.sync();
        if (!SCALED || !*(volatile int32_t *)(a.ended + round % COUNTS)) continue;
        take_back(a, round);
        all.sync();
        begin_phases(a);
        all.sync();
    }
    const bool completes = a.complete && count > 0;
    if (completes) {
        list_free(a);
        all.sync();
    }
    for (; completes && (count = count_of(a, round)) > 0; round++) {
        const int32_t *list = a.list[round % LISTS];
        remember(a, list, count);
        all.sync();
        clear_later(a, round);
        for (int64_t base = FLAT_BEGIN - threadIdx.x; base < count; base += FLAT_STEP) {
            const int64_t k = base + threadIdx.x;
            append(a.list[(round + 1) % LISTS], a.count + (round + 1) % COUNTS,
                k < count ? propose(a, list[k]) : -1);
        }
        all.sync();
    }
    write_partners(a, completes);
}

static struct auction lay_out(const struct pnet_emd *e, int32_t *partner, void *work)
{
    struct carver room = {(char *)work};
    const int64_t persons = e->sets.x.rows.most, objects = e->sets.y.rows.most;
    struct auction a = {};
    a.sets = e->sets;
    a.eps = (float)e->eps;
    a.rounds = e->rounds;
    a.complete = e->complete;
    a.scaled = e->scaled;
    a.tell = e->tell;
    a.partner = partner;
    a.box = room.take<struct set_box>(e->sets.x.samples);
    a.count = room.take<int32_t>(2 * COUNTS);
    a.ended = a.count + COUNTS;
    a.phases = room.take<int32_t>(e->sets.x.samples);
    a.left = room.take<int32_t>(e->sets.x.samples);
    for (int k = 0; k < LISTS; k++) a.list[k] = room.take<int32_t>(persons);
    a.want = room.take<int32_t>(persons);
    a.object = room.take<float4>(objects);
    a.bid = a.held = room.take<key_type>(objects);
    a.holder = room.take<int32_t>(objects);
    a.free_count = room.take<int32_t>(e->sets.x.samples);
    a.free = room.take<float4>(objects);
    a.remembered = room.take<int32_t>(persons * OBJECTS_KEPT);
    return a;
}

void pnet_cuda_emd_assign(const struct pnet_emd *e, int32_t *partner, void *work)
{
    const struct auction a = lay_out(e, partner, work);
    const int64_t rows = most_rows(&e->sets);
    int device = 0, processors = 1, each = 1;
    void (*const kernel)(struct auction) = e->scaled ? assign<true> : assign<false>;
    if (e->sets.x.rows.most <= 0 || e->sets.x.samples <= 0) return;
    cudaMemsetAsync(a.count, 0, 2 * COUNTS * sizeof *a.count, pnet_cuda_stream());
    launch_boxes(&e->sets, (struct set_box *)a.box);
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, AUCTION_THREADS, 0);
    const int64_t most = (int64_t)processors * (each < BLOCKS_EACH ? each : BLOCKS_EACH),
                  wanted = (rows + AUCTION_WARPS - 1) / AUCTION_WARPS;
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)(wanted < most ? wanted : most));
    launch.blockDim = dim3(AUCTION_THREADS);
    launch.stream = pnet_cuda_stream();
    launch.attrs = &cooperative;
    launch.numAttrs = 1;
    pnet_cuda_alone_begin();
    cudaLaunchKernelEx(&launch, kernel, a);
    pnet_cuda_alone_end();
}
