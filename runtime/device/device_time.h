/* How long a device takes for something, and which device that was. */
#ifndef PNET_RUNTIME_DEVICE_TIME_H
#define PNET_RUNTIME_DEVICE_TIME_H

#include "runtime/device/device.h"

/* What times depend on beside the work itself. */
struct pnet_device_info {
    char name
        [320]; /* CUDA: the GPU; CPU: the processor, its instruction set and the number of threads */
    char driver[32]; /* CUDA: "13.0"; CPU: "none" */
};
enum pnet_status pnet_device_describe(
    struct pnet_device d, struct pnet_device_info *info, struct pnet_error *e);

/* The shortest of `runs` times of what `work` asks of the thread's queue, after one run that warms up. A time beyond
   `enough` ends it and is what counts. On a GPU the runs behind the first are replays of a recording, as in a session.
   Waits for the device. PNET_NO_DEVICE: it failed. */
enum pnet_status pnet_device_time(struct pnet_device d, void (*work)(void *context), void *context,
    int runs, double enough, double *seconds, struct pnet_error *e);

#endif
