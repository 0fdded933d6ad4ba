/* Apart from thread.c, because the library limits threads, but starts none. */
#include "runtime/base/thread.h"

#include <omp.h>

int pnet_threads_limit(void)
{
    int threads = omp_get_max_threads(), processors = omp_get_num_procs();
    if (threads <= PNET_THREADS_MOST) return 0;
    omp_set_num_threads(processors < PNET_THREADS_MOST ? processors : PNET_THREADS_MOST);
    return threads;
}
