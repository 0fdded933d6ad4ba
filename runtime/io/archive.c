#include "runtime/io/archive.h"
#include "runtime/io/format.h"
#include "runtime/io/hdf5.h"
#include "runtime/io/npz.h"

#include <string.h>

bool pnet_is_archive(const char *path)
{
    return pnet_path_ends(path, ".npz") || pnet_path_ends(path, ".h5") ||
           pnet_path_ends(path, ".hdf5");
}

enum pnet_status pnet_archive_read(
    const char *path, const char *name, struct pnet_npy *a, struct pnet_error *e)
{
    struct pnet_bytes b;
    *a = (struct pnet_npy){.count = 0};
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    status = pnet_hdf5_probe(&b) ? pnet_hdf5_array(&b, path, name, a, e)
                                 : pnet_npz_array(&b, path, name, a, e);
    pnet_bytes_free(&b);
    return status;
}

enum pnet_status pnet_archive_find(
    const char *path, int dims, char name[PNET_ARRAY_NAME], struct pnet_error *e)
{
    struct pnet_bytes b;
    struct pnet_array_search s = {.dims = dims};
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    status =
        pnet_hdf5_probe(&b) ? pnet_hdf5_search(&b, path, &s, e) : pnet_npz_search(&b, path, &s, e);
    pnet_bytes_free(&b);
    if (status == PNET_OK) status = pnet_array_search_end(&s, path, e);
    if (status == PNET_OK) memcpy(name, s.name, sizeof s.name);
    return status;
}
