/* Allocation: the n-th one fails for every n; none is larger than the file justifies; none is lost.
 */
#include "runtime/io/cloud.h"
#include "runtime/plan/input.h"
#include "runtime/io/npy.h"
#include "runtime/io/pieces.h"
#include "tests/heap.h"
#include "tests/io/files.h"
#include "tests/io/writer.h"

#include <dirent.h>

#if HEAP_REPLACED

/* Reads with the n-th allocation failing until none does; returns how many there were. */
static long check_reading(const char *path)
{
    for (long n = 1; n < 1000; n++) {
        struct pnet_cloud c;
        struct pnet_error e = {.message = ""};
        heap_begin(n, false);
        enum pnet_status status = pnet_cloud_read(path, &c, NULL, &e);
        int failed = heap.calls >= n;
        pnet_cloud_free(&c);
        heap.counting = false;
        CHECKF(heap.live == 0, "%s, allocation %ld: %ld blocks lost", path, n, heap.live);
        CHECKF(status == (failed ? PNET_NO_MEMORY : PNET_OK), "%s, allocation %ld: %s", path, n,
            e.message);
        if (!failed) return n - 1;
    }
    CHECKF(0, "%s: never read", path);
    return 0;
}

/* Goes through the pieces of a file. */
static enum pnet_status go_through(const char *path, struct pnet_error *e)
{
    static const struct pnet_cloud_hints none = {.columns = NULL};
    struct pnet_cloud_pieces *p;
    char warning[256];
    bool more = true;
    enum pnet_status status = pnet_cloud_pieces_open(path, &none, 64, &p, warning, e);
    while (!status && more) {
        struct pnet_cloud c;
        status = pnet_cloud_pieces_next(p, &c, NULL, e);
        more = c.file_rows;
        pnet_cloud_free(&c);
    }
    pnet_cloud_pieces_close(p);
    return status;
}

/* The same as check_reading, in pieces. Returns false if the file is not read in pieces. */
static bool check_pieces(const char *path)
{
    struct pnet_error e = {.message = ""};
    if (go_through(path, &e) != PNET_OK) return false;
    for (long n = 1; n < 5000; n++) {
        heap_begin(n, false);
        enum pnet_status status = go_through(path, &e);
        int failed = heap.calls >= n;
        heap.counting = false;
        CHECKF(heap.live == 0, "%s, allocation %ld: %ld blocks lost", path, n, heap.live);
        CHECKF(status == (failed ? PNET_NO_MEMORY : PNET_OK), "%s, allocation %ld: %s", path, n,
            e.message);
        if (!failed) return true;
    }
    CHECKF(0, "%s: never read", path);
    return true;
}

static void check_writing(const char *folder, const char *name, const struct pnet_cloud *c)
{
    const char *path = files_path(folder, name);
    for (long n = 1; n < 1000; n++) {
        struct pnet_error e = {.message = ""};
        heap_begin(n, false);
        enum pnet_status status = pnet_cloud_write(path, c, &e);
        int failed = heap.calls >= n;
        heap.counting = false;
        CHECKF(heap.live == 0, "%s, allocation %ld: %ld blocks lost", path, n, heap.live);
        /* The stream may do without the buffer that it was refused. */
        CHECKF(failed ? status != PNET_BAD_DATA : status == PNET_OK, "%s: %s", path, e.message);
        CHECK((status == PNET_OK) == (access(path, F_OK) == 0)); /* no half-written file */
        remove(path);
        if (!failed) return;
    }
    CHECKF(0, "%s: never written", path);
}

/* Reads a file in pieces, and writes them. */
static enum pnet_status write_pieces(const char *from, const char *path, struct pnet_error *e)
{
    return writer_in_pieces(
        from, &(struct pnet_cloud_hints){.columns = NULL}, 2, WRITER_AS_READ, path, e);
}

/* The same as check_writing, in pieces: of LAS, with what its records have besides. */
static void check_writing_pieces(const char *folder, const char *name, const struct pnet_cloud *c)
{
    char from[1024];
    const char *path = files_path(folder, name);
    snprintf(from, sizeof from, "%s/from.las", folder);
    CHECK(pnet_cloud_write(from, c, NULL) == PNET_OK);
    int failed = 1;
    for (long n = 1; n < 2000 && failed; n++) {
        struct pnet_error e = {.message = ""};
        heap_begin(n, false);
        enum pnet_status status = write_pieces(from, path, &e);
        failed = heap.calls >= n;
        heap.counting = false;
        CHECKF(heap.live == 0, "%s, allocation %ld: %ld blocks lost", path, n, heap.live);
        CHECKF(failed ? status != PNET_BAD_DATA : status == PNET_OK, "%s: %s", path, e.message);
        CHECK((status == PNET_OK) == (access(path, F_OK) == 0)); /* no half-written file */
        remove(path);
    }
    CHECKF(!failed, "%s: never written", path);
    remove(from);
}

static int ends_with(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcmp(path + n - m, ending) == 0;
}

/* Changed bytes may ask for anything: no request is beyond what a file of the size could need. */
static void check_bound(const char *folder, const char *seed)
{
    struct pnet_bytes b;
    CHECK(pnet_bytes_read(seed, &b, NULL) == PNET_OK);
    uint8_t *copy = malloc(b.size + 1);
    const char *path = files_path(folder, strrchr(seed, '/') + 1);
    uint64_t state = b.size;
    /* A coordinate of a byte each becomes three floats, a value of text two bytes at least becomes
       eight; deflate makes 1032 of one. A row of bookkeeping a column and the members of an archive
       come on top. */
    size_t most = (ends_with(seed, ".npz") ? 1032 : 32) * b.size + (1 << 18);
    for (int i = 0; i < 200 && b.size; i++) {
        struct pnet_cloud c;
        memcpy(copy, b.data, b.size);
        for (int k = 0; k < 3; k++) {
            uint64_t r = random_bits(&state);
            copy[(size_t)(r >> 8) % b.size] = r & 1 ? 0xff : (uint8_t)(r >> 1);
            if (r & 2) copy[(size_t)(r >> 8) % b.size] = '9';
        }
        write_file(path, copy, b.size);
        heap_begin(0, false);
        if (pnet_cloud_read(path, &c, NULL, NULL) == PNET_OK) pnet_cloud_free(&c);
        heap.counting = false;
        CHECKF(heap.largest <= most, "%s: %zu bytes for a file of %zu", seed, heap.largest, b.size);
        CHECK(heap.live == 0);
    }
    remove(path);
    free(copy);
    pnet_bytes_free(&b);
}

static void check_seeds(const char *folder)
{
    static const char *const names[] = {"ply", "pcd", "npy", "text", "las", "kitti"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024];
        long calls = 0, pieces = 0;
        snprintf(path, sizeof path, "tests/fuzz/seeds/%s", names[i]);
        DIR *d = opendir(path);
        CHECKF(d != NULL, "%s (run from the source folder)", path);
        for (struct dirent *entry; d && (entry = readdir(d));) {
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "tests/fuzz/seeds/%s/%s", names[i], entry->d_name);
            calls += check_reading(path);
            pieces += check_pieces(path);
            check_bound(folder, path);
        }
        if (d) closedir(d);
        CHECKF(calls > 0, "%s", names[i]);
        CHECKF(pieces > 0 || strcmp(names[i], "text") == 0, "%s", names[i]);
    }
}

/* Doubles, strays and dropped rows: each allocation of placing and moving fails in turn, and nothing is lost. */
static void check_placing(void)
{
    static const double far[3] = {1, 2, 3},
                        pose[16] = {1, 0, 0, 5, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    static const double points[] = {154000.1, 463000.2, 1, 154001.1, 463000.2, 1, 0, 0, 0, 154002.1,
        463000.2, NAN, 154003.3, 463000.2, 1};
    for (long n = 1;; n++) {
        struct pnet_cloud c = {.rows = 0};
        heap_begin(n, false);
        enum pnet_status status = pnet_cloud_place(&c, 5, points, NULL);
        if (!status) status = pnet_cloud_move_offset(&c, far, NULL);
        if (!status) status = pnet_cloud_transform(&c, pose, far, NULL);
        if (!status) status = pnet_cloud_restore(&c, NULL);
        int failed = heap.calls >= n;
        CHECK(status == (failed ? PNET_NO_MEMORY : PNET_OK));
        if (!failed) CHECK(c.rows == 5 && c.strays.count == 1 && isnan(pnet_cloud_at(&c, 3, 0)));
        pnet_cloud_free(&c);
        heap.counting = false;
        CHECKF(heap.live == 0, "allocation %ld: %ld blocks lost", n, heap.live);
        if (!failed) break;
    }
}

static void check_batch(void)
{
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3}};
    const struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 2};
    const int64_t split[] = {0, 5}, *splits[] = {split};
    for (long n = 1;; n++) {
        struct pnet_batch *batch;
        heap_begin(n, false);
        enum pnet_status status = pnet_batch_new(&input, 1, 1, splits, &batch, NULL);
        int failed = heap.calls >= n;
        CHECK(status == (failed ? PNET_NO_MEMORY : PNET_OK) && (batch == NULL) == failed);
        pnet_batch_free(batch);
        heap.counting = false;
        CHECKF(heap.live == 0, "allocation %ld: %ld blocks lost", n, heap.live);
        if (!failed) break;
    }
}

int main(void)
{
    static const char *const names[] = {"a.ply", "a.pcd", "a.las", "a.npy", "a.bin", "a.csv"};
    const char *folder = files_folder();
    struct pnet_cloud c = {.rows = 5};
    double xyz[15] = {0};
    static const char *const fields[] = {"red", "green", "blue", "t"};
    for (int i = 0; i < 4; i++) CHECK(pnet_cloud_add(&c, fields[i], i < 3 ? PNET_U8 : PNET_I64));
    CHECK(pnet_cloud_place(&c, 5, xyz, NULL) == PNET_OK);
    check_seeds(folder);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_writing(folder, names[i], &c);
        check_writing_pieces(folder, names[i], &c);
    }
    pnet_cloud_free(&c);
    CHECK(pnet_cloud_read("tests/fuzz/seeds/las/extra.las", &c, NULL, NULL) == PNET_OK);
    CHECK(pnet_cloud_add(&c, "new", PNET_F32));
    check_writing(folder, "b.las", &c);
    check_writing_pieces(folder, "b.las", &c);
    pnet_cloud_free(&c);
    check_placing();
    check_batch();
    CHECK(rmdir(folder) == 0);
    return check_end();
}
#endif
