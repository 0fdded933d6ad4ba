/* The user's folder of caches. Apart from file.h because it reads the environment, which libpnet does not. */
#ifndef PNET_RUNTIME_CACHE_H
#define PNET_RUNTIME_CACHE_H

#include "runtime/base/file.h"

#include <stdbool.h>

/* Sets `folder` to the one for what may be computed again: DIR/pnet, where DIR is $XDG_CACHE_HOME, else $HOME/.cache. Returns
   false if neither is set. */
bool pnet_cache_folder(char folder[PNET_PATH_MOST]);

#endif
