/* The C of docs/library.md as one program, in the order of the page, with its blocks for a GPU in their places. What such a block
   computes is compared with the CPU. The build makes the two files that are included here by tests/library/blocks.awk. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/library_case.h"

#include <sys/stat.h>
#include <unistd.h>

static struct pnet_error error;

static void check(enum pnet_status status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", error.message);
    exit((int)status);
}

#include "library_page_functions.inc"

/* Whether two arrays differ by at most `limit` of the second one's norm, which must not be 0. */
static bool near_to(const float *got, const float *want, int64_t count, double limit)
{
    double far = 0, whole = 0;
    for (int64_t i = 0; i < count; i++) {
        double x = (double)got[i] - (double)want[i];
        far += x * x;
        whole += (double)want[i] * (double)want[i];
    }
    printf("%.2g of the norm %.2g\n", whole > 0 ? sqrt(far / whole) : 0, sqrt(whole));
    return whole > 0 && far <= limit * limit * whole;
}

/* The gradient of one weight, of the same weights and batch on the CPU. */
static void compare_gradient(const struct pnet_model *m, struct pnet_session *weights,
    const struct pnet_value batch[4], const struct pnet_weight_info *w, const float *got)
{
    struct pnet_session *s = NULL;
    float *want = sets_room((size_t)w->count, sizeof *want);
    NEED(pnet_session_new(m, NULL, &s, &e));
    NEED(pnet_session_copy_weights(s, weights, &e));
    NEED(pnet_session_bind(s, batch, 4, &e));
    NEED(pnet_session_gradients(s, 1, 0, &e));
    NEED(pnet_session_get_gradient(s, w->name, want, w->count, &e));
    CHECK(near_to(got, want, w->count, 1e-3));
    pnet_session_free(s);
    free(want);
}
#define COMPARE_1 compare_gradient(model, session, batch, &w, g_here);

/* A convolution of voxels, in TF32 on the GPU. */
static void compare_convolution(const struct pnet_array *indices,
    const struct pnet_voxel_options *o, const struct pnet_array *x,
    const struct pnet_array *weights, const struct pnet_array_out *result, const float *got)
{
    struct pnet_set *set = NULL;
    NEED(pnet_set_voxels(indices, o, &set, &e));
    struct pnet_array_out y = *result;
    CHECK(sets_info(set).rows_out == y.rows);
    y.data = sets_room((size_t)(y.rows * y.width), sizeof(float));
    NEED(pnet_conv_forward(set, x, weights, NULL, &y, &e));
    CHECK(near_to(got, y.data, y.rows * y.width, 2e-3));
    pnet_set_free(set);
    free(y.data);
}
#define COMPARE_2 compare_convolution(&indices, &halved, &x_in, &w_in, &y_there, y_here);

/* The largest colours of cells, the same bits; and a loss with half of its gradient. */
struct of_points {
    const float *brightest, *to_fine;
    float distance;
};
static void compare_points(const struct pnet_array *xyz, const struct pnet_points_options *o,
    const struct pnet_array *colours, const struct pnet_near_options *near,
    const struct pnet_map_options *largest, const struct pnet_loss_options *how, int64_t triplets,
    int64_t rows, const struct of_points *got)
{
    struct pnet_points *cloud = NULL, *fine = NULL;
    struct pnet_points_info of = {.size = sizeof of};
    struct pnet_set *ball = NULL;
    struct pnet_map *pool = NULL;
    struct pnet_loss_bytes need = {.size = sizeof need};
    float distance = 0;
    NEED(pnet_points_new(xyz, o, &cloud, &e));
    NEED(pnet_points_grid(cloud, 0.1, &fine, &e));
    NEED(pnet_points_counts(fine, &of, &e));
    NEED(pnet_set_points(fine, cloud, near, &ball, &e));
    CHECK(of.rows == rows && sets_info(ball).triplets == triplets);
    NEED(pnet_map_new(fine, cloud, largest, &pool, &e));
    NEED(pnet_loss_workspace(fine, cloud, how, &need, &e));
    struct pnet_loss_run run = {
        .size = sizeof run, .kept = sets_room(1, need.kept), .kept_bytes = need.kept};
    float *x = sets_room((size_t)of.rows * 3, sizeof *x);
    struct pnet_array_out to = {x, PNET_DTYPE_F32, of.rows, 3, 0};
    NEED(pnet_map_forward(pool, colours, NULL, &to, &e));
    CHECK(memcmp(got->brightest, x, (size_t)of.rows * 3 * sizeof *x) == 0);
    NEED(pnet_loss_forward(fine, cloud, how, &run, &distance, &e));
    CHECKF(fabs((double)got->distance - (double)distance) <= 1e-5 * (double)distance,
        "%g, expected %g", (double)got->distance, (double)distance);
    NEED(pnet_loss_backward(fine, cloud, how, &run, 0.5F, &to, NULL, &e));
    CHECK(near_to(got->to_fine, x, of.rows * 3, 1e-5));
    free(run.kept);
    free(x);
    pnet_map_free(pool);
    pnet_set_free(ball);
    pnet_points_free(fine);
    pnet_points_free(cloud);
}
#define COMPARE_3                                                                                  \
    compare_points(&xyz, &two, &rgb_in, &near, &largest, &how, has.triplets, has.rows_out,         \
        &(struct of_points){brightest_here, to_fine_here, distance});

/* The page reads examples/ and writes out/library/: in a folder of its own, which is removed when this is called again. */
static void folder(bool begins)
{
    static char made[4096];
    char here[3072], to[4200];
    const char *parent = getenv("TMPDIR");
    if (begins) {
        snprintf(made, sizeof made, "%s/pnet-page-XXXXXX", parent ? parent : "/tmp");
        if (!getcwd(here, sizeof here) || !mkdtemp(made)) exit(1);
        snprintf(to, sizeof to, "%s/examples", here);
        if (chdir(made) || symlink(to, "examples") || mkdir("out", 0755) ||
            mkdir("out/library", 0755))
            exit(1);
    } else if (remove("out/library/page.safetensors") || rmdir("out/library") || rmdir("out") ||
               remove("examples") || rmdir(made)) {
        exit(1);
    }
}

int main(void)
{
    if (!gpu_there()) return 77;
    folder(true);
#include "library_page.inc"
    (void)accuracy;
    const void *const used[] = {xyz_there, rgb_there, samples_there, labels_there,
        indices_there.data, x_there.data, w_there.data, y_there.data, on_stream.workspace,
        pools.workspace, brightest.data, to_fine.data, goes_back.kept, goes_back.factor,
        distance_there};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) gpu_free(used[i]);
    GPU_NEED(cudaStreamDestroy(stream));
    free(g_here);
    free(y_here);
    free(brightest_here);
    free(to_fine_here);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    folder(false);
    return check_end();
}
#endif
