#include "runtime/io/rows.h"

enum pnet_status pnet_rows_whole(const char *path, const char *what, struct pnet_error *e)
{
    return pnet_error_set(
        e, PNET_USAGE, "%.500s: %s is read as a whole, not in pieces", path, what);
}

enum pnet_status pnet_rows_read(pnet_rows_open *open, const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_file_parts f = pnet_file_parts_of(b, path);
    struct pnet_rows r = {.count = 0};
    enum pnet_status status = open(&f, hints, &r, c, e);
    if (status == PNET_OK) status = pnet_columns_cloud(&r.columns, r.axis, r.count, c, e);
    if (status != PNET_OK) pnet_cloud_free(c);
    pnet_rows_close(&r);
    return status;
}

void pnet_rows_close(struct pnet_rows *r)
{
    if (r->kind && r->kind->close) r->kind->close(r);
    pnet_columns_free(&r->columns);
    *r = (struct pnet_rows){.count = 0};
}
