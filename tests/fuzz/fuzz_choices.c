/* Any text as kernels.yaml and as the cache of --autotune; choices that are read print as ones that read alike. */
#include "runtime/run/tune_cache.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_choices(const struct pnet_choices *c)
{
    struct pnet_choices again;
    struct pnet_error e;
    char *text = pnet_choices_print(c);
    if (!text || pnet_choices_parse("printed", text, strlen(text), &again, &e) != PNET_OK) abort();
    if (again.count != c->count || again.precision != c->precision) abort();
    for (int i = 0; i < c->count; i++)
        if (strcmp(again.items[i].path, c->items[i].path) != 0 ||
            memcmp(&again.items[i].algos, &c->items[i].algos, sizeof c->items[i].algos) != 0)
            abort();
    pnet_choices_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pnet_choices c;
    struct pnet_error e;
    if (pnet_choices_parse("input", (const char *)data, size, &c, &e) == PNET_OK) {
        if (c.count) check_choices(&c);
        pnet_choices_free(&c);
    } else if (c.items || c.count || !e.message[0]) {
        abort();
    }
    struct pnet_tune_cache cache = {.info = {"device", "1.0"}};
    enum pnet_status st = pnet_tune_cache_parse(&cache, "input", (const char *)data, size, &e);
    if (st != PNET_OK && (cache.count || !e.message[0])) abort();
    for (int64_t i = 0; i < cache.count; i++)
        if (pnet_tune_cache_find(&cache, cache.items[i].key) != &cache.items[i]) abort();
    pnet_tune_cache_free(&cache);
    return 0;
}
