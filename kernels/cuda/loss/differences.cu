/* Losses of the differences of two values: kernels/cpu/loss/differences.c on a GPU. */
#include "kernels/loss.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/loss/slices.cuh"

/* What is summed, and its slope: of a difference that is not a number it is not a number. */
struct square {
    __device__ double loss(double d) const
    {
        return d * d;
    }
    __device__ float slope(float d) const
    {
        return 2 * d;
    }
};
struct huber {
    double delta;
    __device__ double loss(double d) const
    {
        double size = fabs(d);
        return size <= delta ? d * d / 2 : delta * (size - delta / 2);
    }
    __device__ float slope(float d) const
    {
        float most = (float)delta;
        return d > most ? most : d < -most ? -most : d;
    }
};
struct absolute {
    __device__ double loss(double d) const
    {
        return fabs(d);
    }
    __device__ float slope(float d) const
    {
        return d > 0 ? 1 : d < 0 ? -1 : d;
    }
};

template <class L, class T>
__global__ static void __launch_bounds__(THREADS)
    sum_losses(struct pnet_count n, L of, const T *x, const T *y, struct two *part)
{
    int64_t most = pnet_live(n), end = slice_begin(most, (int32_t)blockIdx.x + 1);
    double sum = 0;
#pragma unroll 4
    for (int64_t i = slice_begin(most, (int32_t)blockIdx.x) + threadIdx.x; i < end; i += blockDim.x)
        sum += of.loss((double)widen(x[i]) - (double)widen(y[i]));
    keep_slice(sum, 0, part);
}

__global__ static void __launch_bounds__(SLICES)
    join_losses(struct pnet_count n, const struct two *part, float *loss)
{
    struct two total = join_slices(part);
    int64_t most = pnet_live(n);
    if (threadIdx.x == 0) *loss = most > 0 ? (float)(total.a / (double)most) : 0;
}

template <class L>
static void mean_loss(
    struct pnet_count n, L of, const float *x, const float *y, float *loss, void *work)
{
    struct two *part = (struct two *)work;
    by_storage(n.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        sum_losses<<<SLICES, THREADS, 0, pnet_cuda_stream()>>>(n, of, as<T>(x), as<T>(y), part);
    });
    join_losses<<<1, SLICES, 0, pnet_cuda_stream()>>>(n, part, loss);
}

template <class L, class T>
__global__ static void mean_loss_slopes(struct pnet_count n, L of, const T *__restrict__ x,
    const T *__restrict__ y, const float *gloss, bool add, T *__restrict__ gx)
{
    int64_t most = pnet_live(n);
    float factor = most > 0 ? (float)((double)*gloss / (double)most) : 0;
#pragma unroll 4
    for (int64_t i = FLAT_BEGIN; i < most; i += FLAT_STEP) {
        float v = factor * of.slope(widen(x[i]) - widen(y[i]));
        narrow(add ? widen(gx[i]) + v : v, gx + i);
    }
}

template <class L>
static void mean_loss_backward(struct pnet_count n, L of, const float *x, const float *y,
    const float *gloss, bool add, float *gx)
{
    unsigned grid = element_blocks(n.most);
    if (!grid) return;
    by_storage(n.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        mean_loss_slopes<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
            n, of, as<T>(x), as<T>(y), gloss, add, as<T>(gx));
    });
}

void pnet_cuda_mse(struct pnet_count n, const float *x, const float *y, float *loss, void *work)
{
    mean_loss(n, square{}, x, y, loss, work);
}

void pnet_cuda_mse_backward(
    struct pnet_count n, const float *x, const float *y, const float *gloss, bool add, float *gx)
{
    mean_loss_backward(n, square{}, x, y, gloss, add, gx);
}

void pnet_cuda_huber(
    struct pnet_count n, double delta, const float *x, const float *y, float *loss, void *work)
{
    mean_loss(n, huber{delta}, x, y, loss, work);
}

void pnet_cuda_huber_backward(struct pnet_count n, double delta, const float *x, const float *y,
    const float *gloss, bool add, float *gx)
{
    mean_loss_backward(n, huber{delta}, x, y, gloss, add, gx);
}

void pnet_cuda_l1(struct pnet_count n, const float *x, const float *y, float *loss, void *work)
{
    mean_loss(n, absolute{}, x, y, loss, work);
}

void pnet_cuda_l1_backward(
    struct pnet_count n, const float *x, const float *y, const float *gloss, bool add, float *gx)
{
    mean_loss_backward(n, absolute{}, x, y, gloss, add, gx);
}
