/* Threads. */
#ifndef PNET_RUNTIME_THREAD_H
#define PNET_RUNTIME_THREAD_H

#include "runtime/base/error.h"

#include <pthread.h>

/* Starts a thread, which the caller joins. PNET_NO_MEMORY: the system has no room for another thread. The end of the thread
   needs no memory: when a thread that ran an OpenMP region ends, libgomp ends its helper threads with pthread_exit; for that
   the C library loads libgcc_s, and aborts the process if memory is out. So libgcc_s is loaded before the first thread
   starts. */
enum pnet_status pnet_thread_start(
    pthread_t *thread, void *(*run)(void *), void *context, struct pnet_error *e);

#endif
