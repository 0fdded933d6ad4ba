/* Every allocation of registering two clouds fails in turn, alone and with all behind it: an error comes back, and
   nothing leaks. */
#include "runtime/register/register_clouds.h"
#include "tests/check.h"
#include "tests/heap.h"
#include "tests/register/clouds.h"

#include <omp.h>
#include <unistd.h>

#if HEAP_REPLACED

static struct scene scene;
static struct pnet_register_cloud source, target;

static enum pnet_status by_features(struct pnet_error *e)
{
    struct pnet_register_options o = {.points = 100,
        .mutual = true,
        .ransac = {.distance = 0.05, .iterations = 100, .points = 3, .rand = test_rand(1)}};
    struct pnet_register_found found;
    enum pnet_status st = pnet_register_features(&source, &target, &o, &found, e);
    if (!st) CHECK(found.matches > 0);
    return st;
}

static enum pnet_status by_icp(struct pnet_error *e)
{
    struct pnet_icp o = {.distance = 0.1, .iterations = 3, .planes = true, .neighbours = 8};
    struct pnet_icp_result r;
    double hold[6];
    enum pnet_status st = pnet_register_refine(&source, &target, scene.truth, &o, &r, hold, e);
    if (!st) CHECK(r.inliers == scene.count);
    return st;
}

static char picture_path[4096];

static enum pnet_status picture(struct pnet_error *e)
{
    double one[16];
    pnet_rigid_identity(one);
    return pnet_register_picture(picture_path, &source, &target, one, scene.truth, e);
}

static void check_all(const char *name, long least, enum pnet_status (*work)(struct pnet_error *e))
{
    struct pnet_error e;
    CHECK(work(&e) == PNET_OK); /* what OpenMP and the C library keep is made here */
    for (int behind = 0; behind < 2; behind++) {
        long n = 1, refused = 0;
        for (;; n++) {
            heap_begin(n, behind);
            enum pnet_status status = work(&e);
            bool reached = heap.calls >= n;
            heap.counting = false;
            CHECKF(heap.live == 0, "%s: %ld blocks lost at %ld", name, heap.live, n);
            if (!reached) break;
            /* the C library may do without a buffer, or say ENOMEM for a stream */
            CHECKF(status == PNET_OK || status == PNET_NO_MEMORY || status == PNET_FAILED,
                "%s: status %d at %ld", name, status, n);
            refused += status == PNET_NO_MEMORY;
        }
        CHECKF(refused >= least, "%s: only %ld of %ld refused", name, refused, n);
        CHECK(work(&e) == PNET_OK);
    }
}

int main(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(picture_path, sizeof picture_path, "%s/pnet-picture-%d.svg", folder ? folder : "/tmp",
        (int)getpid());
    omp_set_num_threads(1);
    scene = scene_new(500, 0, 0);
    source = (struct pnet_register_cloud){500, scene.source, scene.target, 3};
    target = (struct pnet_register_cloud){500, scene.target, scene.target, 3};
    check_all("features", 7, by_features);
    check_all("ICP", 1, by_icp);
    check_all("picture", 1, picture);
    remove(picture_path);
    scene_free(&scene);
    return check_end();
}
#endif
