/* MVMR of few rows, host side: the launch, and the kernel that adds the partial sums. */
#include "kernels/cuda/conv/tiles/conv_few.cuh"

/* add_parts: elements of a block of threads; threads that add one element. */
enum { ELEMENTS = 64, QUARTERS = 4 };

/* Adds the partial sums of each element: each of four threads a quarter of them, in order. */
template <class T>
static __global__ __launch_bounds__(ELEMENTS *QUARTERS) void add_parts(
    conv_end end, struct pnet_count rows, int width, int splits, const float *partial)
{
    __shared__ float sums[QUARTERS][ELEMENTS];
    let_next_come();
    wait_for_earlier();
    int quarter = threadIdx.x / ELEMENTS;
    int64_t element = (int64_t)blockIdx.x * ELEMENTS + threadIdx.x % ELEMENTS,
            size = rows.most * width;
    bool here = element < pnet_live(rows) * width;
    int first = splits * quarter / QUARTERS, last = splits * (quarter + 1) / QUARTERS;
    float sum = 0;
    if (here)
#pragma unroll 8
        for (int i = first; i < last; i++) sum += partial[i * size + element];
    sums[quarter][threadIdx.x % ELEMENTS] = sum;
    __syncthreads();
    if (quarter > 0 || !here) return;
    for (int q = 1; q < QUARTERS; q++) sum += sums[q][threadIdx.x];
    conv_finish<T>(end, element / width, width, (int)(element % width), sum);
}

template <class C> static void launch(const conv_product &p, const few_plan &f, void *work)
{
    const conv_groups &g = p.groups;
    bool single = g.cin == g.cin1 && g.cout == g.cout1;
    int across = p.transposed ? p.cin | g.cin : p.cout | g.cout;
    few_launch l = {p, f.deep, f.wide, f.splits, f.splits > 1 ? (float *)work : nullptr,
        fits<typename C::T, 4>(p.cin | g.cin, p.in), single && fits<float, 4>(across, p.weight)};
    dim3 grid((unsigned)f.splits, (unsigned)(g.count * f.wide), (unsigned)f.blocks);
    cudaFuncSetAttribute(few<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
    launch_early(few<C>, grid, dim3(C::THREADS), C::BYTES, 1, l);
    if (f.splits == 1) return;
    int64_t blocks = (p.set.rows.most * p.cout + ELEMENTS - 1) / ELEMENTS;
    launch_early(add_parts<typename C::T>, dim3((unsigned)blocks), dim3(ELEMENTS * QUARTERS), 0, 1,
        p.end, p.set.rows, p.cout, f.splits, (const float *)l.partial);
}

template <conv_form FORM, class T>
static void launch_form(const conv_product &p, const few_plan &f, void *work)
{
    if (f.rows == 64 && f.columns == 64)
        launch<few_config<FORM, T, 64, 64>>(p, f, work);
    else if (f.rows == 64)
        launch<few_config<FORM, T, 64, 128>>(p, f, work);
    else if (f.columns == 64)
        launch<few_config<FORM, T, 128, 64>>(p, f, work);
    else
        launch<few_config<FORM, T, 128, 128>>(p, f, work);
}

void pnet_cuda_conv_few_mvmr(
    const struct conv_product *sum, enum pnet_precision precision, void *work)
{
    const conv_product &p = *sum;
    few_plan f = pnet_cuda_conv_few_plan(&p.set, &p.groups);
    bool bfloat = precision == PNET_BF16, narrow = p.set.rows.storage != PNET_STORE_F32;
    if (p.set.rows.most == 0) return;
    if (bfloat && narrow)
        launch_form<CONV_BFLOAT, __nv_bfloat16>(p, f, work);
    else if (bfloat)
        launch_form<CONV_BFLOAT, float>(p, f, work);
    else if (narrow)
        launch_form<CONV_HALF, __half>(p, f, work);
    else
        launch_form<CONV_HALF, float>(p, f, work);
}
