/* Threads. */
#ifndef PNET_RUNTIME_THREAD_H
#define PNET_RUNTIME_THREAD_H

#include "runtime/base/error.h"

#include <pthread.h>

/* Starts a thread; the caller joins it. PNET_NO_MEMORY where the system has no room for one more.

   Its end needs no memory: where a thread ends that has run an OpenMP region, libgomp ends the threads that helped it with
   pthread_exit, for which the C library loads libgcc_s, and ends the process where it has no memory for that. Here libgcc_s
   is loaded before the first thread begins. */
enum pnet_status pnet_thread_start(
    pthread_t *thread, void *(*run)(void *), void *context, struct pnet_error *e);

#endif
