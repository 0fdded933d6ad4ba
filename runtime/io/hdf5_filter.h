/* What chunks of HDF5 files are packed by: gzip, shuffled bytes, checksums, and h5py's LZF. */
#ifndef PNET_RUNTIME_IO_HDF5_FILTER_H
#define PNET_RUNTIME_IO_HDF5_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PNET_HDF5_DEFLATE = 1,
    PNET_HDF5_SHUFFLE = 2,
    PNET_HDF5_FLETCHER32 = 3,
    PNET_HDF5_LZF = 32000, /* registered by h5py */
    PNET_HDF5_FILTERS_MOST = 8
};

/* The filters that chunks of `size` bytes were packed by, in this order. */
struct pnet_hdf5_pipeline {
    struct {
        int id;
        unsigned value; /* of SHUFFLE: the bytes of an item */
    } filters[PNET_HDF5_FILTERS_MOST];
    int count;
    size_t size, room;
    uint8_t *buffers[2]; /* [room] each */
};

/* Tells whether pnet_hdf5_unpack has the filter. */
bool pnet_hdf5_filter_known(int filter);
/* Allocates for chunks of `size` bytes. Returns false if memory is out. */
bool pnet_hdf5_pipeline_begin(struct pnet_hdf5_pipeline *p, size_t size);
void pnet_hdf5_pipeline_end(struct pnet_hdf5_pipeline *p);
/* Unpacks a chunk. Bit i of `left_out`: filter i was not applied to this one. Returns p->size bytes, in `data` or in a buffer of
   `p` that the next call uses again; NULL: it is damaged, or, with *memory, memory is out. */
const uint8_t *pnet_hdf5_unpack(struct pnet_hdf5_pipeline *p, const uint8_t *data, size_t size,
    unsigned left_out, bool *memory);

#endif
