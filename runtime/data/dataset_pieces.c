#include "runtime/data/dataset_pieces.h"
#include "runtime/data/input_map.h"
#include "runtime/io/pieces.h"

#include <sys/stat.h>

enum { LARGE = 32 << 20, PIECE_ROWS = 1 << 16 };

static enum pnet_status see_all(struct pnet_cloud_pieces *p, const char *path,
    const struct pnet_cloud_hints *hints, pnet_see_piece *see, void *to, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    bool more = true;
    while (more && !status) {
        struct pnet_cloud c;
        int64_t first;
        status = pnet_cloud_pieces_next(p, &c, &first, e);
        more = !status && c.file_rows;
        if (more)
            status = pnet_cloud_name_columns(hints->columns, hints->column_count, &c, path, e);
        if (more && !status) status = see(to, &c, first, e);
        pnet_cloud_free(&c);
    }
    return status;
}

enum pnet_status pnet_see_large_cloud(const char *path, const struct pnet_cloud_hints *hints,
    pnet_see_piece *see, void *to, char warning[256], bool *done, struct pnet_error *e)
{
    struct stat s;
    struct pnet_cloud_pieces *p;
    *done = false;
    if (stat(path, &s) != 0 || s.st_size <= LARGE) return PNET_OK;
    enum pnet_status status = pnet_cloud_pieces_open(path, hints, PIECE_ROWS, &p, warning, e);
    if (!status) status = see_all(p, path, hints, see, to, e);
    pnet_cloud_pieces_close(p);
    *done = !status;
    return status == PNET_NO_MEMORY ? status : PNET_OK;
}
