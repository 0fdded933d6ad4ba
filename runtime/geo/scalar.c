/* A level of one row, for losses and metrics. It has no points: there is nothing to build. */
#include "runtime/plan/geo.h"

const struct pnet_geo_kind pnet_geo_scalar = {.name = "level"};
