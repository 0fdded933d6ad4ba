/* Measures times on a device, and describes the device. */
#ifndef PNET_RUNTIME_DEVICE_TIME_H
#define PNET_RUNTIME_DEVICE_TIME_H

#include "runtime/device/device.h"

/* The hardware and software that a time depends on. */
struct pnet_device_info {
    char name
        [320]; /* CUDA: the GPU; CPU: the processor, its instruction set and the number of threads */
    char driver[32]; /* CUDA: "13.0"; CPU: "none" */
};
enum pnet_status pnet_device_describe(
    struct pnet_device d, struct pnet_device_info *info, struct pnet_error *e);

/* *seconds: the shortest of `runs` times of the work that `work(context)` puts on the thread's queue, after one run to warm up.
   A run longer than `enough` seconds ends the measurement, and its time is the result. On a GPU all runs after the first are
   replays of a recording, as in a runner. Waits for the device. PNET_NO_DEVICE: the device failed. */
enum pnet_status pnet_device_time(struct pnet_device d, void (*work)(void *context), void *context,
    int runs, double enough, double *seconds, struct pnet_error *e);

#endif
