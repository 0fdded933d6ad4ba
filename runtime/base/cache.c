#include "runtime/base/cache.h"

#include <stdio.h>
#include <stdlib.h>

bool pnet_cache_folder(char folder[PNET_PATH_MOST])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache && *cache == '/') /* the XDG specification says to ignore relative paths */
        n = snprintf(folder, PNET_PATH_MOST, "%s/pnet", cache);
    else if (home && *home == '/')
        n = snprintf(folder, PNET_PATH_MOST, "%s/.cache/pnet", home);
    return n > 0 && n < 4000;
}
