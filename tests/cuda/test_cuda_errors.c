/* Launches that fail: the first error of a thread stays, with the name of its step, recorded or not. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "kernels/conv.h"
#include "kernels/cuda/base/cuda.h"

#include <pthread.h>
#include <string.h>

static const size_t TOO_MUCH = (size_t)1 << 60;

/* More columns than a grid has room for. */
enum { COLUMNS = 65536 * 32 };

struct memory {
    float *x, *sum;
    void *work;
};

static void launch_too_much(const struct memory *m)
{
    pnet_cuda_column_sum(pnet_count(1), COLUMNS, m->x, false, m->sum, m->work);
}

/* A call whose own failure is told by its result does not clear what was there before. */
static void *fail_at_once(void *context)
{
    pnet_cuda_note("before");
    CHECK(!pnet_cuda_error());
    launch_too_much(context);
    CHECK(!pnet_cuda_alloc(TOO_MUCH));
    pnet_cuda_note("late");
    const char *error = pnet_cuda_sync();
    CHECKF(error && !strstr(error, "late"), "%s", error ? error : "no error");
    return NULL;
}

static void *fail_in_a_step(void *context)
{
    launch_too_much(context);
    pnet_cuda_note("net.first");
    CHECK(!pnet_cuda_alloc(TOO_MUCH));
    launch_too_much(context);
    pnet_cuda_note("net.second");
    const char *error = pnet_cuda_sync();
    CHECKF(error && strstr(error, "net.first"), "%s", error ? error : "no error");
    CHECK(error && pnet_cuda_error() == error);
    return NULL;
}

/* A pass may have no steps. */
static void *record_nothing(void *context)
{
    (void)context;
    pnet_cuda_record_begin();
    void *record = pnet_cuda_record_end();
    CHECKF(record, "%s", pnet_cuda_error());
    pnet_cuda_replay(record);
    const char *error = pnet_cuda_sync();
    CHECKF(!error, "%s", error);
    pnet_cuda_record_free(record);
    return NULL;
}

static void *fail_in_a_recording(void *context)
{
    pnet_cuda_record_begin();
    launch_too_much(context);
    pnet_cuda_note("net.recorded");
    CHECK(!pnet_cuda_record_end());
    const char *error = pnet_cuda_error();
    CHECKF(error && strstr(error, "net.recorded"), "%s", error ? error : "no error");
    return NULL;
}

static void in_a_thread(void *(*run)(void *), struct memory *m)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, m)) exit(1);
    pthread_join(thread, NULL);
}

int main(void)
{
    const char *why;
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    size_t bytes = (size_t)COLUMNS * sizeof(float);
    struct memory m = {pnet_cuda_alloc(bytes), pnet_cuda_alloc(bytes),
        pnet_cuda_alloc(pnet_cuda_column_sum_work(pnet_count(1), COLUMNS))};
    if (!m.x || !m.sum || !m.work) return 1;
    pnet_cuda_fill_bytes(m.x, 0, bytes);
    const char *error = pnet_cuda_sync();
    CHECKF(!error, "%s", error);
    in_a_thread(record_nothing, &m);
    in_a_thread(fail_at_once, &m);
    in_a_thread(fail_in_a_step, &m);
    in_a_thread(fail_in_a_recording, &m);
    /* of its own thread alone; and no memory is no error */
    CHECK(!pnet_cuda_alloc(TOO_MUCH));
    error = pnet_cuda_sync();
    CHECKF(!error, "%s", error);
    pnet_cuda_free(m.x);
    pnet_cuda_free(m.sum);
    pnet_cuda_free(m.work);
    return check_end();
}
#endif
