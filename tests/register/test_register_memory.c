/* Every allocation of registering two clouds fails in turn, alone and with all behind it: an error comes back, and
   nothing leaks. */
#include "runtime/register_clouds.h"
#include "tests/check.h"
#include "tests/register/clouds.h"

#include <errno.h>
#include <omp.h>
#include <stdbool.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define HAS_OWN_MALLOC
#endif

#ifdef HAS_OWN_MALLOC
int main(void)
{
    printf("skipped: a sanitizer has taken malloc\n");
    return 77;
}
#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static struct {
    long calls, fail_at; /* from 1; 0: never */
    bool all_behind;
    long live; /* blocks */
} heap;

static bool fails(void)
{
    heap.calls++;
    if (!heap.fail_at || heap.calls < heap.fail_at) return false;
    if (heap.calls > heap.fail_at && !heap.all_behind) return false;
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    heap.live += block != NULL;
    return block;
}

void *malloc(size_t size)
{
    return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : counted(__libc_memalign(alignment, size));
}

/* OpenMP's own, without which it ends the process: these do not fail. */
int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = counted(__libc_memalign(alignment, size));
    return *block ? 0 : ENOMEM;
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}

void free(void *block)
{
    heap.live -= block != NULL;
    __libc_free(block);
}

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
    enum pnet_status st = pnet_register_refine(&source, &target, scene.truth, &o, &r, e);
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
            long live = heap.live;
            heap.calls = 0;
            heap.fail_at = n;
            heap.all_behind = behind;
            enum pnet_status status = work(&e);
            bool reached = heap.calls >= n;
            heap.fail_at = 0;
            CHECKF(heap.live == live, "%s: %ld blocks lost at %ld", name, heap.live - live, n);
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
