/* Height above the lowest points of a cloud. */
#ifndef PNET_RUNTIME_LOWEST_H
#define PNET_RUNTIME_LOWEST_H

#include "runtime/io/cloud.h"

/* The name under which input maps offer it, unless the cloud has a field of that name: z less pnet_cloud_lowest. */
#define PNET_ABOVE_LOWEST "z_above_lowest"

/* Returns the 1st percentile of z: the value of rank (rows - 1) / 100, rounded down, counted from 0. Some points below the
   ground, such as reflections, do not change it much. In file coordinates; 0 without points. */
double pnet_cloud_lowest(const struct pnet_cloud *c);

#endif
