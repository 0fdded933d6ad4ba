/* Sinkhorn divergence. All pairs of a sample are formed anew in each step, by a launch for all potentials of the batch; how many
   steps there are depends on blur and scaling alone.

   A block has a tile of rows of one set. It streams the other points through shared memory, and its warps share them: each
   thread has EACH rows of the tile, and of each chunk the groups of its warp. A pair takes ten instructions, one of which, the
   power of two, runs at an eighth of the others' rate: so a quarter more than that unit alone would take.

   Sums are relative to a largest exponent, `top`, which is raised only where a sum would leave float32 without that. Within a
   chunk they are in float32, beyond in double. */
#include "kernels/cuda/sets/boxes.cuh"
#include "kernels/sinkhorn.h"

enum {
    PAIR_WARPS = 8,
    PAIR_THREADS = PAIR_WARPS * WARP,
    STEP_EACH = 4, /* rows of a thread in a step */
    PULL_EACH = 2, /* in the backward pass */
    CHUNK = 1024,  /* points in shared memory at a time */
    GROUP = 4,     /* points that a thread takes at once */
    PARTS = 4,     /* of the potentials that are kept */
};
enum { CROSS, SELF, KINDS }; /* sums over the other set, over the set itself */

static const double LOG2_E = 1.4426950408889634;
static const float NOTHING = -1e30f; /* the value of a point that adds nothing */

/* Both sets, in units of the box from its centre. */
struct transport {
    struct pnet_point_set set[SIDES];
    float4 *at[SIDES];   /* [rows]; the last number is not used */
    struct set_box *box; /* [samples] */
};

/* A number of each row of both sets: of row i at number[3 * i], if stride is 3. */
struct potentials {
    const float *of[SIDES];
    int stride;
};

static __device__ __forceinline__ bool is_point(const struct set_box &box)
{
    return !(box.diagonal > 0); /* or there are no points, or coordinates that are not finite */
}

/* Grid: rows, SIDES. */
__global__ static void __launch_bounds__(THREADS)
    place_points(const __grid_constant__ struct transport t, float *x_start, float *y_start)
{
    const struct pnet_point_set &set = t.set[blockIdx.y];
    float *start = blockIdx.y ? y_start : x_start;
    let_next_come();
    wait_for_earlier();
    const int64_t rows = pnet_live(set.rows);
    for (int64_t row = FLAT_BEGIN; row < rows; row += FLAT_STEP) {
        const struct set_box &box = t.box[sample_of(set, row)];
        float to[3];
        for (int c = 0; c < 3; c++)
            to[c] = (float)(((double)set.xyz[3 * row + c] - box.centre[c]) / box.diagonal);
        t.at[blockIdx.y][row] = make_float4(to[0], to[1], to[2], 0);
        for (int k = 0; k < POTENTIAL_FLOATS && start; k++) start[POTENTIAL_FLOATS * row + k] = 0;
    }
}

/* Rows of a set in one sample that a block has. */
struct tile {
    int32_t sample;
    int64_t begin, end;
};

/* Tiles of a sample are consecutive, and there are at most rows / size + samples of them, however rows are split. */
static inline unsigned tiles_for(const struct pnet_point_set &s, int size)
{
    return s.samples > 0 ? blocks_for(s.rows.most / size + s.samples, 1) : 0;
}

static __device__ __forceinline__ struct tile tile_of(
    const struct pnet_point_set &s, int64_t tile, int size)
{
    int32_t low = 0, high = s.samples;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (s.splits[middle] / size + middle <= tile)
            low = middle;
        else
            high = middle;
    }
    const int64_t begin = s.splits[low], end = s.splits[low + 1],
                  first = begin + (tile - begin / size - low) * size;
    return {low, min(first, end), min(first + size, end)};
}

struct chunk {
    float4 point[CHUNK]; /* place and value */
};

/* Brings points [begin, end) of a set, which are at most CHUNK, and fills up the last group. The value is the potential times
   `factor`. */
static __device__ __forceinline__ int stage(struct chunk &to, const struct transport &t, int side,
    const struct potentials &p, float factor, int64_t begin, int64_t end)
{
    const int count = (int)(end - begin), whole = (count + GROUP - 1) / GROUP * GROUP;
    __syncthreads(); /* the last chunk has been read */
    for (int i = (int)threadIdx.x; i < whole; i += PAIR_THREADS) {
        float4 at = make_float4(0, 0, 0, NOTHING);
        if (i < count) {
            at = t.at[side][begin + i];
            at.w = p.of[side][(begin + i) * p.stride] * factor;
        }
        to.point[i] = at;
    }
    __syncthreads();
    return whole;
}

/* The rows of a thread; those behind the tile lie at the centre. */
template <int EACH> struct rows {
    float at[EACH][3];
    __device__ rows(const struct transport &t, int side, const struct tile &tile)
    {
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            int64_t row = tile.begin + r * WARP + threadIdx.x % WARP;
            float4 own = make_float4(0, 0, 0, 0);
            if (row < tile.end) own = t.at[side][row];
            at[r][0] = own.x;
            at[r][1] = own.y;
            at[r][2] = own.z;
        }
    }
};

static __device__ __forceinline__ float power2(float t)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
    return y;
}

/* value - c |x - y|^2, with the differences. */
static __device__ __forceinline__ float exponent_of(
    const float x[3], const float4 &y, float value, float minus_c, float d[3])
{
    d[0] = x[0] - y.x;
    d[1] = x[1] - y.y;
    d[2] = x[2] - y.z;
    return __fmaf_rn(minus_c, __fmaf_rn(d[2], d[2], __fmaf_rn(d[1], d[1], d[0] * d[0])), value);
}

/* The sums of 2^(exponent - top) of a thread's rows; `part` is that of the present chunk. */
struct log_sums {
    float top[STEP_EACH], part[STEP_EACH];
    double sum[STEP_EACH];

    /* Raises the top of a row to the largest exponent of a group, and adds the group. */
    __device__ __forceinline__ static void raise(
        const float x[3], const float4 *y, float minus_c, float &top, float &part, double &sum)
    {
        float exponent[GROUP], d[3], now = top;
        for (int k = 0; k < GROUP; k++) {
            exponent[k] = exponent_of(x, y[k], y[k].w, minus_c, d);
            now = fmaxf(now, exponent[k]);
        }
        const float factor = exp2f(top - now);
        part *= factor;
        sum *= (double)factor;
        top = now;
        for (int k = 0; k < GROUP; k++) part += power2(exponent[k] - now);
    }

    __device__ __forceinline__ void add(
        const struct rows<STEP_EACH> &x, const float4 *y, float minus_c)
    {
        const float MOST = 0x1p100f;
        float next[STEP_EACH], d[3];
        float4 point[GROUP];
        bool fits = true;
#pragma unroll
        for (int k = 0; k < GROUP; k++) point[k] = y[k];
#pragma unroll
        for (int r = 0; r < STEP_EACH; r++) {
            next[r] = part[r];
#pragma unroll
            for (int k = 0; k < GROUP; k++)
                next[r] += power2(exponent_of(x.at[r], point[k], point[k].w - top[r], minus_c, d));
            fits &= next[r] < MOST;
        }
        if (!fits) {
#pragma unroll
            for (int r = 0; r < STEP_EACH; r++) {
                if (next[r] < MOST) continue;
                raise(x.at[r], y, minus_c, top[r], part[r], sum[r]);
                next[r] = part[r];
            }
        }
#pragma unroll
        for (int r = 0; r < STEP_EACH; r++) part[r] = next[r];
    }

    __device__ __forceinline__ void end_chunk()
    {
#pragma unroll
        for (int r = 0; r < STEP_EACH; r++) {
            sum[r] += (double)part[r];
            part[r] = 0;
        }
    }
};

/* What one step needs: `from` before it, `to` after it, both [rows, POTENTIAL_FLOATS]. `kept` [rows, PARTS] gets both; it may be
   NULL. */
struct step {
    const float *from[SIDES];
    float *to[SIDES], *kept[SIDES];
    double eps;
    bool last;
};

struct step_memory {
    struct chunk chunk;
    float top[PAIR_WARPS][STEP_EACH * WARP];
    double sum[PAIR_WARPS][STEP_EACH * WARP];
};

/* log2 of the sum of a row over all warps. */
static __device__ double joined_log(const struct step_memory &m, int row)
{
    float top = m.top[0][row];
    double sum = 0;
    for (int w = 1; w < PAIR_WARPS; w++) top = fmaxf(top, m.top[w][row]);
    for (int w = 0; w < PAIR_WARPS; w++)
        sum += m.sum[w][row] * exp2((double)m.top[w][row] - (double)top);
    return (double)top + log2(sum);
}

static __device__ void write_row(
    const struct step &s, int side, int kind, int64_t row, double soft_least)
{
    const float old = s.from[side][POTENTIAL_FLOATS * row + kind], now = (float)soft_least;
    s.to[side][POTENTIAL_FLOATS * row + kind] = s.last ? now : (old + now) / 2;
    if (!s.kept[side]) return;
    s.kept[side][PARTS * row + 2 * kind] = old;
    s.kept[side][PARTS * row + 2 * kind + 1] = now;
}

/* Updates one potential of the rows of a tile. Grid: tiles, SIDES * KINDS. */
__global__ static void __launch_bounds__(PAIR_THREADS, 2)
    make_step(const __grid_constant__ struct transport t, const __grid_constant__ struct step s)
{
    __shared__ struct step_memory shared;
    const int side = (int)blockIdx.y % SIDES, kind = (int)blockIdx.y / SIDES,
              other = kind == SELF ? side : 1 - side, warp = (int)threadIdx.x / WARP;
    const float factor = (float)(LOG2_E / s.eps), minus_c = (float)(-LOG2_E / (2 * s.eps));
    let_next_come();
    wait_for_earlier();
    const struct tile tile = tile_of(t.set[side], blockIdx.x, STEP_EACH * WARP);
    const int64_t own = tile.begin + threadIdx.x, begin = t.set[other].splits[tile.sample],
                  end = t.set[other].splits[tile.sample + 1];
    if (tile.begin >= tile.end) return;
    if (is_point(t.box[tile.sample])) {
        for (int k = 0; k < 2 && s.kept[side] && own < tile.end; k++)
            s.kept[side][PARTS * own + 2 * kind + k] = 0;
        return;
    }
    const struct potentials values = {{s.from[0] + kind, s.from[1] + kind}, POTENTIAL_FLOATS};
    const struct rows<STEP_EACH> x(t, side, tile);
    struct log_sums sums;
    for (int r = 0; r < STEP_EACH; r++) {
        sums.top[r] = -INFINITY;
        sums.part[r] = 0;
        sums.sum[r] = 0;
    }
    for (int64_t first = begin; first < end; first += CHUNK) {
        int count = stage(shared.chunk, t, other, values, factor, first, min(first + CHUNK, end));
        for (int g = warp * GROUP; g < count; g += PAIR_WARPS * GROUP)
            sums.add(x, shared.chunk.point + g, minus_c);
        sums.end_chunk();
    }
#pragma unroll
    for (int r = 0; r < STEP_EACH; r++) {
        shared.top[warp][r * WARP + threadIdx.x % WARP] = sums.top[r];
        shared.sum[warp][r * WARP + threadIdx.x % WARP] = sums.sum[r];
    }
    __syncthreads();
    if (threadIdx.x < STEP_EACH * WARP && own < tile.end)
        write_row(s, side, kind, own,
            -s.eps / LOG2_E * (joined_log(shared, (int)threadIdx.x) - log2((double)(end - begin))));
}

/* The mean over the rows of a sample of cross - self, in the block's first thread. */
static __device__ double mean_gain(
    const struct pnet_point_set &s, const float *potential, int32_t sample)
{
    double sum = 0;
    const int64_t end = s.splits[sample + 1];
    for (int64_t row = s.splits[sample] + threadIdx.x; row < end; row += THREADS)
        sum += (double)potential[POTENTIAL_FLOATS * row + CROSS] -
               (double)potential[POTENTIAL_FLOATS * row + SELF];
    return block_sum(sum) / (double)rows_in(s, sample);
}

/* sum [samples]: the divergence of each. */
__global__ static void __launch_bounds__(THREADS)
    sum_samples(const __grid_constant__ struct transport t, const float *x_potential,
        const float *y_potential, double *sum)
{
    let_next_come();
    wait_for_earlier();
    for (int32_t i = (int32_t)blockIdx.x; i < t.set[0].samples; i += (int32_t)gridDim.x) {
        double d = t.box[i].diagonal, x = 0, y = 0;
        if (!is_point(t.box[i])) {
            x = mean_gain(t.set[0], x_potential, i);
            y = mean_gain(t.set[1], y_potential, i);
        }
        /* d is 0 for a point, NaN where a coordinate is not finite */
        if (threadIdx.x == 0) sum[i] = is_point(t.box[i]) ? d : d * d * (x + y);
    }
}

__global__ static void __launch_bounds__(THREADS)
    join_samples(int32_t samples, const double *sum, float *loss)
{
    double total = 0;
    let_next_come();
    wait_for_earlier();
    for (int32_t i = (int32_t)threadIdx.x; i < samples; i += THREADS) total += sum[i];
    total = block_sum(total);
    if (threadIdx.x == 0) *loss = samples > 0 ? (float)(total / samples) : 0;
}

/* Boxes and places. */
static struct transport begin(const struct pnet_set_pair *p, struct carver *room)
{
    struct transport t = {{p->x, p->y}, {}, room->take<struct set_box>(p->x.samples)};
    for (int k = 0; k < SIDES; k++) t.at[k] = room->take<float4>(t.set[k].rows.most);
    launch_boxes(p, t.box);
    return t;
}

static void place(const struct pnet_set_pair *p, const struct transport &t, float *x, float *y)
{
    const unsigned blocks = element_blocks(most_rows(p));
    if (blocks) launch_early(place_points, dim3(blocks, SIDES), dim3(THREADS), 0, 1, t, x, y);
}

static void launch_step(const struct transport &t, const struct step &s)
{
    unsigned x = tiles_for(t.set[0], STEP_EACH * WARP), y = tiles_for(t.set[1], STEP_EACH * WARP),
             tiles = x > y ? x : y;
    if (tiles) launch_early(make_step, dim3(tiles, SIDES * KINDS), dim3(PAIR_THREADS), 0, 1, t, s);
}

void pnet_cuda_sinkhorn(
    const struct pnet_sinkhorn *s, float *x_potential, float *y_potential, float *loss, void *work)
{
    struct carver room = {(char *)work};
    const int32_t samples = s->sets.x.samples;
    const double least = s->blur * s->blur;
    struct transport t = begin(&s->sets, &room);
    double *sum = room.take<double>(samples);
    float *potential[2][SIDES];
    for (int turn = 0; turn < 2; turn++)
        for (int k = 0; k < SIDES; k++)
            potential[turn][k] = room.take<float>(POTENTIAL_FLOATS * t.set[k].rows.most);
    place(&s->sets, t, potential[0][0], potential[0][1]);
    int turn = 0;
    const auto go = [&](double eps, bool last) {
        float *const *from = potential[turn], *const *to = potential[1 - turn];
        launch_step(
            t, {{from[0], from[1]}, {to[0], to[1]},
                   {last ? x_potential : nullptr, last ? y_potential : nullptr}, eps, last});
        turn = 1 - turn;
    };
    for (double eps = 1; eps > least; eps *= s->scaling * s->scaling) go(eps, false);
    go(least, false);
    go(least, true);
    if (samples > 0)
        launch_early(sum_samples, dim3(blocks_for(samples, 1)), dim3(THREADS), 0, 1, t,
            (const float *)potential[turn][0], (const float *)potential[turn][1], sum);
    launch_early(join_samples, dim3(1), dim3(THREADS), 0, 1, samples, (const double *)sum, loss);
}

/* The sums of w and w (x - y) of a thread's rows, w = 2^(exponent - top); `part` is that of the present chunk. */
struct pull_sums {
    float top[PULL_EACH], part[PULL_EACH][4];
    double sum[PULL_EACH][4];

    __device__ __forceinline__ void add(
        const struct rows<PULL_EACH> &x, const float4 *y, float minus_c)
    {
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
            const float4 point = y[k];
#pragma unroll
            for (int r = 0; r < PULL_EACH; r++) {
                float d[3], w = power2(exponent_of(x.at[r], point, point.w - top[r], minus_c, d));
                part[r][3] += w;
                for (int c = 0; c < 3; c++) part[r][c] = __fmaf_rn(w, d[c], part[r][c]);
            }
        }
    }
    __device__ __forceinline__ void end_chunk()
    {
#pragma unroll
        for (int r = 0; r < PULL_EACH; r++)
            for (int c = 0; c < 4; c++) {
                sum[r][c] += (double)part[r][c];
                part[r][c] = 0;
            }
    }
};

struct pull_memory {
    struct chunk chunk;
    double sum[PAIR_WARPS][PULL_EACH * WARP][4];
};

/* The means of x - y over the pairs of each row of a tile, by the weights of a plan; those of row i in thread i. `kept` as
   make_step has left it. */
static __device__ void plan_means(struct pull_memory &shared, const struct transport &t, int side,
    int kind, const struct tile &tile, const float *const kept[SIDES], double eps, double mean[3])
{
    const int other = kind == SELF ? side : 1 - side, warp = (int)threadIdx.x / WARP,
              lane = (int)threadIdx.x % WARP;
    const float factor = (float)(LOG2_E / eps), minus_c = (float)(-LOG2_E / (2 * eps));
    const int64_t begin = t.set[other].splits[tile.sample],
                  end = t.set[other].splits[tile.sample + 1];
    const struct potentials values = {{kept[0] + 2 * kind, kept[1] + 2 * kind}, PARTS};
    const struct rows<PULL_EACH> x(t, side, tile);
    struct pull_sums sums = {};
#pragma unroll
    for (int r = 0; r < PULL_EACH; r++) {
        int64_t row = tile.begin + r * WARP + lane;
        double last = row < tile.end ? (double)kept[side][PARTS * row + 2 * kind + 1] : 0;
        sums.top[r] = (float)(log2((double)(end - begin)) - last * LOG2_E / eps);
    }
    for (int64_t first = begin; first < end; first += CHUNK) {
        int count = stage(shared.chunk, t, other, values, factor, first, min(first + CHUNK, end));
        for (int g = warp * GROUP; g < count; g += PAIR_WARPS * GROUP)
            sums.add(x, shared.chunk.point + g, minus_c);
        sums.end_chunk();
    }
#pragma unroll
    for (int r = 0; r < PULL_EACH; r++)
        for (int c = 0; c < 4; c++) shared.sum[warp][r * WARP + lane][c] = sums.sum[r][c];
    __syncthreads();
    if (threadIdx.x >= PULL_EACH * WARP) return;
    double total[4] = {};
    for (int w = 0; w < PAIR_WARPS; w++)
        for (int c = 0; c < 4; c++) total[c] += shared.sum[w][threadIdx.x][c];
    for (int c = 0; c < 3; c++) mean[c] = total[c] / total[3];
}

/* Grid: tiles. */
__global__ static void __launch_bounds__(PAIR_THREADS, 2)
    pull_rows(const __grid_constant__ struct transport t, int side, const float *x_kept,
        const float *y_kept, double eps, const float *gloss, bool add, float *to)
{
    __shared__ struct pull_memory shared;
    const struct pnet_point_set &set = t.set[side];
    const float *const kept[SIDES] = {x_kept, y_kept};
    let_next_come();
    wait_for_earlier();
    const struct tile tile = tile_of(set, blockIdx.x, PULL_EACH * WARP);
    const int64_t own = tile.begin + threadIdx.x;
    if (tile.begin >= tile.end) return;
    const double d = t.box[tile.sample].diagonal;
    double pull[3] = {d, d, d}; /* as in the loss: 0 or NaN */
    if (!is_point(t.box[tile.sample])) {
        double cross[3], self[3],
            factor = (double)*gloss * d / (double)rows_in(set, tile.sample) / set.samples;
        plan_means(shared, t, side, CROSS, tile, kept, eps, cross);
        plan_means(shared, t, side, SELF, tile, kept, eps, self);
        for (int c = 0; c < 3; c++) pull[c] = factor * (cross[c] - self[c]);
    }
    for (int c = 0; c < 3 && threadIdx.x < PULL_EACH * WARP && own < tile.end; c++) {
        float *at = to + 3 * own + c;
        *at = add ? *at + (float)pull[c] : (float)pull[c];
    }
}

void pnet_cuda_sinkhorn_backward(const struct pnet_sinkhorn *s, const float *x_potential,
    const float *y_potential, const float *gloss, const struct pnet_set_gradients *g, void *work)
{
    struct carver room = {(char *)work};
    struct transport t = begin(&s->sets, &room);
    float *const to[SIDES] = {g->x, g->y};
    const bool add[SIDES] = {g->add_x, g->add_y};
    place(&s->sets, t, nullptr, nullptr);
    for (int side = 0; side < SIDES; side++) {
        const unsigned tiles = tiles_for(t.set[side], PULL_EACH * WARP);
        if (to[side] && tiles)
            launch_early(pull_rows, dim3(tiles), dim3(PAIR_THREADS), 0, 1, t, side, x_potential,
                y_potential, s->blur * s->blur, gloss, add[side], to[side]);
    }
}
