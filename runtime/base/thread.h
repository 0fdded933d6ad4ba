/* Threads. */
#ifndef PNET_RUNTIME_THREAD_H
#define PNET_RUNTIME_THREAD_H

#include "runtime/base/error.h"

#include <pthread.h>

/* The largest number of threads of a parallel region: libgomp keeps some 100 bytes for each on the stack, and crashes where that
   has no room. */
enum { PNET_THREADS_MOST = 4096 };

/* The stack that a thread needs which computes, and each thread of its parallel regions: the largest frames, those of attention
   and of tiles, take half of it. */
enum { PNET_STACK_BYTES = 1 << 20 };

/* Gives the parallel regions of the calling thread one thread a processor where they have more than PNET_THREADS_MOST. Returns
   how many they had then, else 0. */
int pnet_threads_limit(void);

/* Starts a thread, which the caller joins. Its parallel regions have as many threads as those of the caller, where OpenMP alone
   would give it what the environment says. PNET_NO_MEMORY: the system has no room for another thread. The end of the thread
   needs no memory: when a thread that ran an OpenMP region ends, libgomp ends its helper threads with pthread_exit; for that
   the C library loads libgcc_s, and aborts the process if memory is out. So libgcc_s is loaded before the first thread
   starts. */
enum pnet_status pnet_thread_start(
    pthread_t *thread, void *(*run)(void *), void *context, struct pnet_error *e);

#endif
