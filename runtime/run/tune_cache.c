#include "runtime/run/tune_cache.h"

#include "runtime/base/file.h"
#include "runtime/base/number.h"
#include "runtime/base/yaml.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT = 1, MOST = 100000 };
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static uint64_t hash(const char *text, uint64_t h)
{
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return (h ^ 0xff) * 0x100000001b3u; /* so that "ab" "c" is not "a" "bc" */
}

static void read_entry(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_tune_cache *c)
{
    static const char *const keys[] = {"algo", "ms", "default_ms"};
    struct pnet_tune_entry t = {.algo = PNET_ALGO_DEFAULT};
    if (!pnet_yaml_map(y, n, "a sum", keys, COUNT(keys))) return;
    if (strlen(n->key) >= sizeof t.key) {
        pnet_yaml_fail(y, n, "a key that is too long");
        return;
    }
    strcpy(t.key, n->key);
    t.algo = (enum pnet_conv_algo)pnet_yaml_choice(
        y, pnet_yaml_get(n, "algo"), pnet_conv_algo_names, PNET_ALGO_COUNT, PNET_ALGO_DEFAULT);
    t.seconds = 1e-3 * pnet_yaml_real(y, pnet_yaml_get(n, "ms"), 0, 1e9, 0);
    t.standard = 1e-3 * pnet_yaml_real(y, pnet_yaml_get(n, "default_ms"), 0, 1e9, 0);
    if (pnet_yaml_ok(y) && !pnet_tune_cache_add(c, &t)) pnet_yaml_fail_memory(y);
}

static void read_all(struct pnet_yaml *y, struct pnet_tune_cache *c)
{
    static const char *const keys[] = {"format", "device", "name", "driver", "version", "sums"};
    const struct pnet_yaml_node *root = pnet_yaml_root(y), *sums = pnet_yaml_get(root, "sums");
    struct pnet_device_info info;
    enum pnet_device_kind device;
    const char *version;
    if (!pnet_choices_get_head(y, FORMAT, &device, &info, &version) ||
        !pnet_yaml_map(y, root, "the cache", keys, COUNT(keys)))
        return;
    if (device != c->device || strcmp(info.name, c->info.name) != 0 ||
        strcmp(info.driver, c->info.driver) != 0 || strcmp(version, PNET_VERSION) != 0)
        pnet_yaml_fail(y, root, "it is of another device, driver or version");
    else if (!sums || sums->kind != PNET_YAML_MAP || sums->count > MOST)
        pnet_yaml_fail(y, sums ? sums : root, "no `sums`");
    else
        for (const struct pnet_yaml_node *n = sums->first; n && pnet_yaml_ok(y); n = n->next)
            read_entry(y, n, c);
}

enum pnet_status pnet_tune_cache_parse(struct pnet_tune_cache *c, const char *name,
    const char *text, size_t size, struct pnet_error *e)
{
    int64_t count = c->count, fresh = c->fresh;
    struct pnet_yaml *y;
    enum pnet_status st = pnet_yaml_parse(name, text, size, PNET_BAD_DATA, &y, e);
    if (st) return st;
    read_all(y, c);
    st = pnet_yaml_end(y, e);
    pnet_yaml_free(y);
    if (st) c->count = count;
    c->fresh = fresh;
    return st;
}

void pnet_tune_cache_open(struct pnet_tune_cache *c, const char *folder,
    enum pnet_device_kind device, const struct pnet_device_info *info, char warning[1024])
{
    struct pnet_bytes b;
    struct pnet_error e = {0};
    *c = (struct pnet_tune_cache){.device = device, .info = *info};
    *warning = '\0';
    if (!folder) return;
    uint64_t h = hash(PNET_VERSION, hash(info->driver, hash(info->name, 0xcbf29ce484222325u)));
    int n = snprintf(c->path, sizeof c->path, "%s/autotune-%016" PRIx64 ".yaml", folder, h);
    if (n < 0 || n >= (int)sizeof c->path) c->path[0] = '\0';
    if (!c->path[0] || access(c->path, F_OK) != 0) return;
    enum pnet_status st = pnet_bytes_read_own(c->path, &b, &e);
    if (!st) {
        st = pnet_tune_cache_parse(c, c->path, (const char *)b.data, b.size, &e);
        pnet_bytes_free(&b);
    }
    if (st) snprintf(warning, 1024, "%.1000s: ignored", e.message);
}

const struct pnet_tune_entry *pnet_tune_cache_find(const struct pnet_tune_cache *c, const char *key)
{
    for (int64_t i = 0; i < c->count; i++)
        if (strcmp(c->items[i].key, key) == 0) return &c->items[i];
    return NULL;
}

bool pnet_tune_cache_add(struct pnet_tune_cache *c, const struct pnet_tune_entry *entry)
{
    if (c->count == c->capacity) {
        int64_t capacity = c->capacity ? 2 * c->capacity : 64;
        struct pnet_tune_entry *items = realloc(c->items, (size_t)capacity * sizeof *items);
        if (!items) return false;
        c->items = items;
        c->capacity = capacity;
    }
    c->items[c->count++] = *entry;
    c->fresh++;
    return true;
}

enum pnet_status pnet_tune_cache_save(struct pnet_tune_cache *c, struct pnet_error *e)
{
    struct pnet_output out;
    char folder[4096];
    if (!c->fresh || !c->path[0]) return PNET_OK;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(c->path, '/') - c->path), c->path);
    enum pnet_status st = pnet_make_folder(folder, e);
    if (!st) st = pnet_output_open(c->path, &out, e);
    if (st) return st;
    fputs("# What pnetc train --autotune measured; may be deleted.\n", out.file);
    pnet_choices_put_head(out.file, FORMAT, c->device, &c->info);
    fprintf(out.file, "sums:\n");
    for (int64_t i = 0; i < c->count; i++)
        pnet_number_write(out.file, "  \"%s\": {algo: %s, ms: %.6f, default_ms: %.6f}\n",
            c->items[i].key, pnet_conv_algo_names[c->items[i].algo], 1e3 * c->items[i].seconds,
            1e3 * c->items[i].standard);
    st = pnet_output_commit(&out, e);
    if (!st) c->fresh = 0;
    return st;
}

void pnet_tune_cache_free(struct pnet_tune_cache *c)
{
    free(c->items);
    *c = (struct pnet_tune_cache){0};
}
