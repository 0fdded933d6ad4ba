#include "kernels/lattice.h"
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/launch.cuh"

template <class T>
static __global__ void __launch_bounds__(THREADS)
    lattice_kernel(struct pnet_count rows, int32_t side, float extent, float step, T *y)
{
    int64_t live = pnet_live(rows), stride = (int64_t)gridDim.x * THREADS;
    int32_t places = side * side;
    for (int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x; row < live; row += stride) {
        int32_t at = (int32_t)(row % places);
        narrow(-extent + step * (float)(at % side), y + 2 * row);
        narrow(-extent + step * (float)(at / side), y + 2 * row + 1);
    }
}

template <class T> static void lattice(struct pnet_count rows, int32_t side, float extent, float *y)
{
    float step = side > 1 ? 2 * extent / (float)(side - 1) : 0;
    unsigned blocks = blocks_for(divide_up(rows.most, THREADS));
    lattice_kernel<T>
        <<<blocks, THREADS, 0, pnet_cuda_stream()>>>(rows, side, extent, step, as<T>(y));
}

extern "C" void pnet_cuda_lattice(struct pnet_count rows, int32_t side, float extent, float *y)
{
    if (rows.most == 0) return;
    switch (rows.storage) {
    case PNET_STORE_F32: lattice<float>(rows, side, extent, y); break;
    case PNET_STORE_BF16: lattice<__nv_bfloat16>(rows, side, extent, y); break;
    case PNET_STORE_FP16: lattice<__half>(rows, side, extent, y); break;
    }
}
