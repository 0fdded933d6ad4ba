#include "kernels/cuda/sets/near_terms.cuh"

struct hyperbolic_term {
    double alpha;
    __device__ struct near_term operator()(const struct near_point &p) const
    {
        const double least = 1e-5, n = (double)p.rows;
        double z = alpha * p.square, slope = z > least ? 2 * alpha / sqrt(z * (z + 2)) : 0;
        z = z > least ? z : least;
        return {log1p(z + sqrt(z * (z + 2))) / n, slope / n};
    }
};

void pnet_cuda_hypercd(const struct pnet_set_pair *p, double alpha, float *loss, float *x_pull,
    float *y_pull, void *work)
{
    near_terms(p, hyperbolic_term{alpha}, loss, x_pull, y_pull, (double *)work);
}
