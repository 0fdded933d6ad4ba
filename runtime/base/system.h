/* The machine that the program runs on. */
#ifndef PNET_RUNTIME_SYSTEM_H
#define PNET_RUNTIME_SYSTEM_H

#include <stddef.h>

/* Bytes of main memory that could be handed out now; 0 where the system does not tell. */
size_t pnet_system_memory(void);

#endif
