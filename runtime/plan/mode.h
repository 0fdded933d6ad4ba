/* Modes by their names: what --mode and --degrade, run configs and weights say. */
#ifndef PNET_RUNTIME_MODE_H
#define PNET_RUNTIME_MODE_H

#include <stdbool.h>

enum { PNET_MODE_TEXT = 32 };

/* "native", "voxel", or what is degraded: "centre,kernel". */
const char *pnet_mode_text(unsigned degrade, char text[PNET_MODE_TEXT]);
/* The opposite. Degradations, with commas between, are added to *degrade, "native" and "voxel" set it. False: the text
   is none of these. */
bool pnet_mode_parse(const char *text, unsigned *degrade);
/* Degradations alone. */
bool pnet_degrade_parse(const char *text, unsigned *degrade);

#endif
