#include "kernels/cuda/sets/near_terms.cuh"

struct distance_term {
    __device__ struct near_term operator()(const struct near_point &p) const
    {
        double a = sqrt(p.square), share = 0.5 / (double)p.rows;
        return {share * a, share / fmax(a, 1e-6)};
    }
};

struct square_term {
    __device__ struct near_term operator()(const struct near_point &p) const
    {
        return {p.square / (double)p.rows, 2 / (double)p.rows};
    }
};

void pnet_cuda_chamfer(const struct pnet_set_pair *p, bool squares, float *loss, float *x_pull,
    float *y_pull, void *work)
{
    if (squares)
        near_terms(p, square_term{}, loss, x_pull, y_pull, (double *)work);
    else
        near_terms(p, distance_term{}, loss, x_pull, y_pull, (double *)work);
}
