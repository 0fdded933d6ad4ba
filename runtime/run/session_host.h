/* Steps that a session on a GPU leaves to the CPU: those of rows with PNET_ON_HOST. */
#ifndef PNET_RUNTIME_SESSION_HOST_H
#define PNET_RUNTIME_SESSION_HOST_H

#include "runtime/run/session.h"

/* Runs a forward step on copies of all it reads, with the true counts, and puts the result where the device has it.
   Waits for the device. */
enum pnet_status pnet_session_run_on_host(
    const struct pnet_session *s, int slot, int step, struct pnet_error *e);

#endif
