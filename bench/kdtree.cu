/* Host code alone: it is C++, and .cu files are where that lives. */
#include "bench/kdtree.h"

#include <nanoflann.hpp>

#include <chrono>

namespace
{

struct cloud {
    const float *xyz;
    size_t rows;

    size_t kdtree_get_point_count() const
    {
        return rows;
    }
    float kdtree_get_pt(size_t row, size_t axis) const
    {
        return xyz[3 * row + axis];
    }
    template <class box> bool kdtree_get_bbox(box &) const
    {
        return false;
    }
};

using metric = nanoflann::L2_Simple_Adaptor<float, cloud, float, uint32_t>;
using tree = nanoflann::KDTreeSingleIndexAdaptor<metric, cloud, 3, uint32_t>;

/* Neighbours are counted and not kept. */
struct counter {
    float square;
    int64_t count = 0;

    bool full() const
    {
        return true;
    }
    bool addPoint(float distance, uint32_t)
    {
        count += distance <= square;
        return true;
    }
    float worstDist() const
    {
        return square;
    }
};

double now()
{
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

} // namespace

extern "C" int64_t pnet_bench_kdtree_neighbours(
    int64_t rows, const float *xyz, float radius, double *build, double *search)
{
    cloud points = {xyz, (size_t)rows};
    double begin = now();
    tree t(3, points);
    t.buildIndex();
    double built = now();
    int64_t count = 0;
#pragma omp parallel for reduction(+ : count) schedule(dynamic, 1024)
    for (int64_t i = 0; i < rows; i++) {
        counter c = {radius * radius};
        t.findNeighbors(c, xyz + 3 * i, nanoflann::SearchParams());
        count += c.count;
    }
    *build = built - begin;
    *search = now() - built;
    return count;
}

extern "C" double pnet_bench_kdtree_two_nearest(int64_t queries, const float *from, int64_t rows,
    const float *xyz, double *build, double *search)
{
    cloud points = {xyz, (size_t)rows};
    double begin = now();
    tree t(3, points);
    t.buildIndex();
    double built = now();
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 1024)
    for (int64_t i = 0; i < queries; i++) {
        uint32_t index[2];
        float square[2] = {0, 0};
        t.knnSearch(from + 3 * i, 2, index, square);
        sum += (double)square[0] + (double)square[1];
    }
    *build = built - begin;
    *search = now() - built;
    return sum;
}
