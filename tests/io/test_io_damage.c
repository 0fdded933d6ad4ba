/* Every seed of the fuzzers, cut at each byte and with bytes changed: a cloud or an error, nothing
 * else. */
#include "tests/fuzz/cloud.h"
#include "tests/fuzz/las.h"
#include "tests/fuzz/mesh.h"
#include "tests/io/files.h"

#include <dirent.h>

static const struct {
    const char *folder;
    struct fuzz_reader readers[4];
    int count;
} sets[] = {
    {"ply", {{"f.ply", pnet_ply_read}}, 1},
    {"pcd", {{"f.pcd", pnet_pcd_read}}, 1},
    {"npy", {{"f.npy", pnet_npy_cloud_read}, {"f.npz", pnet_npz_cloud_read}}, 2},
    {"text",
        {{"f.csv", pnet_table_read}, {"f.pts", pnet_table_read}, {"f.off", pnet_off_read},
            {"f.obj", pnet_obj_read}},
        4},
    {"mesh", {{"f.off", NULL}, {"f.obj", NULL}}, 2},
    {"las", {{"f.las", pnet_las_read}}, 1},
    {"kitti",
        {{"f.bin", pnet_kitti_read}, {"f.pcd.bin", pnet_kitti_read}, {"f.bin", pnet_sydney_read}},
        3},
};

/* Numbers that break sums and products, at a random place. */
static void change(uint8_t *data, size_t size, uint64_t *state)
{
    static const uint64_t hard[] = {0, UINT64_MAX, INT64_MAX, UINT32_MAX, INT32_MAX, 0x80000000, 1};
    uint64_t r = random_bits(state);
    size_t at = (size_t)(r >> 8) % size, n = (size_t)1 << (r >> 60 & 3);
    if (n > size - at) n = size - at;
    if (r & 1)
        memcpy(data + at, &hard[(r >> 1 & 127) % 7], n);
    else
        data[at] ^= (uint8_t)(1 << (r >> 1 & 7));
}

/* Meshes have no reader of clouds; LAS is written too. */
static int read_any(struct fuzz_reader r, const uint8_t *data, size_t size)
{
    if (r.read == pnet_las_read) return fuzz_las(r.path, data, size);
    return r.read ? fuzz_read(r, data, size) : fuzz_mesh(r.path, data, size);
}

static void damage(struct fuzz_reader r, const struct pnet_bytes *b, int *good, int *bad)
{
    uint64_t state = b->size;
    uint8_t *copy = malloc(b->size + 1);
    CHECK(copy != NULL);
    for (size_t size = 0; copy && size <= b->size; size++)
        ++*(read_any(r, b->data, size) ? good : bad);
    for (int i = 0; copy && b->size && i < 2000; i++) {
        memcpy(copy, b->data, b->size);
        for (int k = 0; k <= i % 3; k++) change(copy, b->size, &state);
        ++*(read_any(r, copy, b->size) ? good : bad);
    }
    free(copy);
}

int main(void)
{
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        char folder[256], path[1024];
        int whole[4] = {0}, good[4] = {0}, bad[4] = {0}, files = 0;
        snprintf(folder, sizeof folder, "tests/fuzz/seeds/%s", sets[s].folder);
        DIR *d = opendir(folder);
        CHECKF(d != NULL, "%s (run from the source folder)", folder);
        for (struct dirent *entry; d && (entry = readdir(d));) {
            struct pnet_bytes b;
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            CHECK(pnet_bytes_read(path, &b, NULL) == PNET_OK);
            for (int k = 0; k < sets[s].count; k++) {
                whole[k] += read_any(sets[s].readers[k], b.data, b.size);
                damage(sets[s].readers[k], &b, &good[k], &bad[k]);
            }
            pnet_bytes_free(&b);
            files++;
        }
        if (d) closedir(d);
        CHECKF(files > 0, "%s", folder);
        for (int k = 0; k < sets[s].count; k++) /* each reader saw all three kinds */
            CHECKF(whole[k] && good[k] && bad[k], "%s: %d whole, %d good, %d bad",
                sets[s].readers[k].path, whole[k], good[k], bad[k]);
    }
    return check_end();
}
