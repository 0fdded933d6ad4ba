/* A level of one row a sample of the batch. It has no points: there is nothing to build. */
#include "runtime/plan/geo.h"

const struct pnet_geo_kind pnet_geo_sample = {.name = "level"};
