/* A clock that only runs forward. */
#ifndef PNET_RUNTIME_CLOCK_H
#define PNET_RUNTIME_CLOCK_H

/* Returns seconds since a fixed moment. */
double pnet_seconds(void);

#endif
