#include "runtime/base/thread.h"

#include <errno.h>
#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

/* Walks up one stack frame once a process, which loads libgcc_s. */
static bool load_unwinder(void)
{
#ifdef __GLIBC__
    void *frame;
    return backtrace(&frame, 1) == 1;
#else
    return true;
#endif
}

/* What a thread begins with. */
struct start {
    void *(*run)(void *);
    void *context;
    int threads, levels; /* of parallel regions */
};

static void *begin(void *given)
{
    struct start s = *(struct start *)given;
    free(given);
    omp_set_num_threads(s.threads);
    omp_set_max_active_levels(s.levels);
    return s.run(s.context);
}

enum pnet_status pnet_thread_start(
    pthread_t *thread, void *(*run)(void *), void *context, struct pnet_error *e)
{
    if (!load_unwinder())
        return pnet_error_set(e, PNET_NO_MEMORY,
            "cannot load libgcc_s, which the end of a thread needs: out of memory, or it is not "
            "installed");
    struct start *s = malloc(sizeof *s);
    if (!s) return pnet_error_memory(e);
    *s = (struct start){run, context, omp_get_max_threads(), omp_get_max_active_levels()};
    int code = pthread_create(thread, NULL, begin, s);
    if (code) free(s);
    if (code == EAGAIN)
        return pnet_error_set(
            e, PNET_NO_MEMORY, "cannot start a thread: too little memory, or too many threads");
    return code ? pnet_error_errno(e, PNET_FAILED, code, "cannot start a thread") : PNET_OK;
}
