/* What the records of a LAS file say about the units of its coordinates. */
#ifndef PNET_RUNTIME_IO_LAS_SYSTEM_H
#define PNET_RUNTIME_IO_LAS_SYSTEM_H

#include "runtime/base/file.h"
#include "runtime/io/unit.h"

#include <stdbool.h>
#include <stdint.h>

/* The bodies of the records, by their place in the file; length 0: there is none. Zeroed: none is known. */
struct pnet_las_system {
    struct pnet_las_record {
        uint64_t at, length;
    } keys, doubles, wkt, liblas;
};

/* Notes a record if it is about the coordinate system, and returns whether it did. `head` is the offset of the record; the file
   holds its whole body. */
bool pnet_las_system_note(struct pnet_las_system *s, const struct pnet_bytes *b, uint64_t head,
    uint64_t body, uint64_t length);

/* Writes the units of x and y, and of z, that the records state. */
void pnet_las_system_units(
    const struct pnet_las_system *s, const struct pnet_bytes *b, struct pnet_axis_unit unit[2]);

#endif
