#include "runtime/data/range_cache.h"

#include "runtime/base/file.h"
#include "runtime/base/yaml.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT = 1 };
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const uint64_t FIRST = 0xcbf29ce484222325u;

/* FNV-1a (Fowler, Noll and Vo). */
static uint64_t hash_byte(unsigned char byte, uint64_t h)
{
    return (h ^ byte) * 0x100000001b3u;
}

/* The zero at the end counts, so that "ab" "c" is not "a" "bc". */
static uint64_t hash_text(const char *text, uint64_t h)
{
    for (; *text; text++) h = hash_byte((unsigned char)*text, h);
    return hash_byte(0, h);
}

static uint64_t hash_number(uint64_t n, uint64_t h)
{
    for (int i = 0; i < 8; i++) h = hash_byte((unsigned char)(n >> 8 * i), h);
    return h;
}

void pnet_range_cache_open(
    struct pnet_range_cache *c, const char *folder, const char *index, const char *key)
{
    char *whole = folder ? realpath(index, NULL) : NULL;
    struct stat s;
    struct pnet_bytes b;
    struct pnet_error ignored;
    *c = (struct pnet_range_cache){.files = FIRST};
    /* a pipe has been read already, and would be waited for */
    if (!whole || stat(whole, &s) != 0 || !S_ISREG(s.st_mode) ||
        pnet_bytes_read(whole, &b, &ignored)) {
        free(whole);
        return;
    }
    uint64_t h = hash_text(key, hash_text(whole, FIRST));
    int n = snprintf(c->path, sizeof c->path, "%s/ranges-%016" PRIx64 ".yaml", folder, h);
    if (n < 0 || n >= (int)sizeof c->path) c->path[0] = '\0';
    for (size_t i = 0; i < b.size; i++) c->files = hash_byte(b.data[i], c->files);
    pnet_bytes_free(&b);
    free(whole);
}

void pnet_range_cache_add(struct pnet_range_cache *c, const char *path)
{
    struct stat s;
    if (!c->path[0]) return;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) {
        c->path[0] = '\0';
        return;
    }
    c->files = hash_number((uint64_t)s.st_size, c->files);
    c->files = hash_number((uint64_t)s.st_mtim.tv_sec, c->files);
    c->files = hash_number((uint64_t)s.st_mtim.tv_nsec, c->files);
    c->files = hash_number((uint64_t)s.st_ino, c->files);
    c->files = hash_number((uint64_t)s.st_dev, c->files);
}

static void parse(const struct pnet_range_cache *c, struct pnet_yaml *y, struct pnet_ranges *r)
{
    static const char *const keys[] = {"format", "files", "ranges"};
    const struct pnet_yaml_node *root = pnet_yaml_root(y), *ranges = pnet_yaml_get(root, "ranges");
    char files[32];
    snprintf(files, sizeof files, "%016" PRIx64, c->files);
    if (!pnet_yaml_map(y, root, "the cache", keys, COUNT(keys))) return;
    pnet_yaml_int(y, pnet_yaml_get(root, "format"), FORMAT, FORMAT, 0);
    if (strcmp(pnet_yaml_string(y, pnet_yaml_get(root, "files"), ""), files) != 0 || !ranges)
        pnet_yaml_fail(y, root, "it is of other files");
    else
        pnet_ranges_parse(y, ranges, r);
}

bool pnet_range_cache_read(const struct pnet_range_cache *c, struct pnet_ranges *r)
{
    struct pnet_yaml *y;
    struct pnet_bytes b;
    struct pnet_error ignored;
    if (!c->path[0] || access(c->path, R_OK) != 0 || pnet_bytes_read_own(c->path, &b, &ignored))
        return false;
    enum pnet_status st = pnet_yaml_parse(c->path, b.data, b.size, PNET_BAD_DATA, &y, &ignored);
    pnet_bytes_free(&b);
    if (st) return false;
    parse(c, y, r);
    bool ok = pnet_yaml_end(y, &ignored) == PNET_OK;
    pnet_yaml_free(y);
    if (!ok) pnet_ranges_free(r);
    return ok;
}

void pnet_range_cache_write(const struct pnet_range_cache *c, const struct pnet_ranges *r)
{
    struct pnet_output out;
    struct pnet_error ignored;
    if (!c->path[0] || pnet_make_folder_of(c->path, &ignored) ||
        pnet_output_open(c->path, &out, &ignored))
        return;
    fprintf(out.file,
        "# The value ranges of a data set, as pnetc found them; may be deleted.\nformat: %d\n"
        "files: \"%016" PRIx64 "\"\nranges:",
        (int)FORMAT, c->files);
    if (!r->count) fputs(" []", out.file);
    pnet_ranges_print(r, true, out.file);
    pnet_output_commit(&out, &ignored);
}
