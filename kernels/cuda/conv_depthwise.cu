/* Depthwise layers: every channel by itself, bound by memory. */
#include "kernels/cuda/conv_pairs.cuh"

enum { THREADS = 256 };

/* A thread makes one channel of one row. */
template <typename T> static __global__ void mvmr(conv_product p, const T *in)
{
    int64_t live = pnet_live(p.set.rows) * p.cout;
    for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < live;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t row = i / p.cout;
        int c = (int)(i - row * p.cout);
        int64_t end = conv_start(p.set, row + 1);
        float sum = 0;
        for (int64_t n = conv_start(p.set, row); n < end; n++)
            sum += p.weight[(int64_t)conv_cell(p.set, n) * p.cout + c] *
                   widen(in[conv_other(p.set, n) * p.cin + c]);
        conv_finish<T>(p.end, row, p.cout, c, sum);
    }
}

void conv_depthwise_mvmr(const conv_product &p)
{
    int64_t blocks = (p.set.rows.most * p.cout + THREADS - 1) / THREADS, most = 1 << 20;
    if (blocks == 0) return;
    by_storage(p.set.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        mvmr<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, cudaStreamPerThread>>>(
            p, as<T>(p.in));
    });
}

enum { WARPS = THREADS / 32 };

/* A block sums 32 channels of one kernel cell over a chunk of rows; its warps share the pairs. */
template <typename T>
static __global__ __launch_bounds__(THREADS) void vvor(
    conv_outer o, const T *in, const T *gout, int64_t chunk, int tiles, float *partial)
{
    __shared__ conv_pairs pairs;
    __shared__ float sums[WARPS][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, width = o.cin;
    int c = (int)(blockIdx.x % tiles) * 32 + lane, k = (int)(blockIdx.x / tiles);
    const T *rows = o.swapped ? in : gout, *others = o.swapped ? gout : in;
    int64_t live = pnet_live(o.set.rows), row = blockIdx.y * chunk;
    int64_t end = row + chunk < live ? row + chunk : live;
    float sum = 0;
    for (; row < end; row += CONV_PAIR_ROWS) {
        int64_t stop = row + CONV_PAIR_ROWS < end ? row + CONV_PAIR_ROWS : end;
        int count = conv_find_pairs(pairs, o.set, row, stop, k);
        float part = 0;
        for (int n = warp; n < count && c < width; n += WARPS) {
            float run = 0;
            for (int64_t m = pairs.begin[n]; m < pairs.end[n]; m++)
                run += widen(others[conv_other(o.set, m) * width + c]);
            part += run * widen(rows[pairs.row[n] * width + c]);
        }
        sum += part;
        __syncthreads();
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || c >= width) return;
    for (int w = 1; w < WARPS; w++) sum += sums[w][lane];
    partial[((int64_t)blockIdx.y * o.set.cells + k) * width + c] = sum;
}

static conv_splits split(const conv_set &s, int channels)
{
    return conv_split_rows(s.rows.most, (int64_t)s.cells * ((channels + 31) / 32),
        (int64_t)s.cells * channels * (int64_t)sizeof(float));
}

size_t conv_depthwise_vvor_work(const conv_set &s, int channels)
{
    return (size_t)split(s, channels).count * (size_t)s.cells * (size_t)channels * sizeof(float);
}

void conv_depthwise_vvor(const conv_outer &o, void *work)
{
    conv_splits s = split(o.set, o.cin);
    int tiles = (o.cin + 31) / 32;
    dim3 grid((unsigned)(o.set.cells * tiles), (unsigned)s.count);
    by_storage(o.set.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        vvor<<<grid, THREADS, 0, cudaStreamPerThread>>>(
            o, as<T>(o.in), as<T>(o.gout), s.rows, tiles, (float *)work);
    });
    conv_reduce(o, (const float *)work, s.count);
}
