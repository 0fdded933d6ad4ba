/* The machine that the program runs on. */
#ifndef PNET_RUNTIME_SYSTEM_H
#define PNET_RUNTIME_SYSTEM_H

#include <stddef.h>

/* Returns the bytes of main memory that are available now; 0 if the system does not report it. */
size_t pnet_system_memory(void);

#endif
