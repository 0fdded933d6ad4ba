/* Units of coordinates in the well-known text of a coordinate system: OGC 01-009 (WKT 1) and ISO 19162 (WKT 2), with the
   names of ESRI. */
#ifndef PNET_RUNTIME_IO_WKT_H
#define PNET_RUNTIME_IO_WKT_H

#include "runtime/io/text.h"
#include "runtime/io/unit.h"

/* Writes the units of x and y, and of z, that the text states for the axes; PNET_AXIS_UNSTATED for those it does not state.
   The text ends at a zero or with the span. */
void pnet_wkt_units(struct pnet_span text, struct pnet_axis_unit unit[2]);

#endif
