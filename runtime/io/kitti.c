/* Scans as bare float32 records: KITTI (Geiger et al., 2012) x y z reflectance; nuScenes .pcd.bin
   (Caesar et al., 2020) x y z intensity ring. Nothing in the file says so: only its name does. */
#include "runtime/io/kitti.h"
#include "runtime/io/column.h"
#include "runtime/io/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum pnet_status pnet_kitti_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    static const char *const names[] = {"x", "y", "z", "intensity", "ring"};
    static const int axis[3] = {0, 1, 2};
    int width = pnet_path_ends(path, ".pcd.bin") ? 5 : 4;
    size_t stride = (size_t)width * 4;
    if (b->size % stride)
        return pnet_byte_error(path, b->size - b->size % stride, e,
            "the file ends within a point: expected records of %zu bytes, %d float32 each", stride,
            width);
    struct pnet_columns t = {.count = 0};
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < width && status == PNET_OK; i++)
        status = pnet_columns_add(&t, pnet_span_of(names[i]), PNET_F32, NULL, path, e);
    if (status == PNET_OK) {
        pnet_columns_pack(&t, b->data);
        status = pnet_columns_cloud(&t, axis, (int64_t)(b->size / stride), c, e);
    }
    pnet_columns_free(&t);
    return status;
}

enum pnet_status pnet_kitti_write(
    const struct pnet_cloud *c, const char *path, FILE *f, struct pnet_error *e)
{
    struct pnet_cloud copy = *c;
    const enum pnet_scalar types[] = {PNET_F32, PNET_F32};
    const struct pnet_field *intensity = pnet_cloud_field(c, "intensity");
    struct pnet_field fields[2];
    uint8_t *zeros = calloc(c->rows ? (size_t)c->rows : 1, 1);
    if (!zeros) return pnet_error_memory(e);
    fields[0] = intensity ? *intensity : (struct pnet_field){.type = PNET_U8, .data = zeros};
    copy.fields = fields;
    copy.field_count = 1;
    const struct pnet_field *ring = pnet_cloud_field(c, "ring");
    if (pnet_path_ends(path, ".pcd.bin")) {
        fields[1] = ring ? *ring : (struct pnet_field){.type = PNET_U8, .data = zeros};
        copy.field_count = 2;
    }
    enum pnet_status status = pnet_cloud_records(&copy, PNET_F32, types, f, e);
    free(zeros);
    return status;
}

enum pnet_status pnet_labels_read(
    const char *path, int64_t expected, uint32_t *out, struct pnet_error *e)
{
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    if (b.size % 4 || b.size / 4 != (uint64_t)expected)
        status = pnet_byte_error(
            path, b.size, e, "the file ends, expected %" PRId64 " labels of 4 bytes", expected);
    else if (b.size)
        memcpy(out, b.data, b.size);
    pnet_bytes_free(&b);
    return status;
}
