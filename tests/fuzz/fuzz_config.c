/* Any text as a run config and as an input map; a map that is read prints as one that reads alike.
 */
#include "runtime/train/config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_map(const struct pnet_input_map *m)
{
    struct pnet_input_map again;
    struct pnet_error e;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) abort();
    pnet_input_map_print(m, f);
    fclose(f);
    if (pnet_input_map_read("printed", text, size, &again, &e) != PNET_OK) abort();
    if (again.count != m->count || again.column_count != m->column_count) abort();
    if (again.class_count != m->class_count) abort();
    for (int i = 0; i < m->count; i++)
        if (again.sources[i].count != m->sources[i].count) abort();
    pnet_input_map_free(&again);
    free(text);
}

/* What is in force prints as a text that reads alike. */
static void check_print(const struct pnet_config *c)
{
    struct pnet_config *again;
    struct pnet_error e;
    char *text = pnet_config_print(c, (const char *const *)c->sets, c->set_count);
    if (!text || pnet_config_parse("printed", text, strlen(text), &again, &e) != PNET_OK) abort();
    char *text_again = pnet_config_print(again, (const char *const *)again->sets, again->set_count);
    if (!text_again || strcmp(text, text_again) != 0) abort();
    free(text);
    free(text_again);
    pnet_config_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pnet_config *c;
    struct pnet_input_map m;
    struct pnet_error e;
    if (pnet_config_parse("runs/input.yaml", data, size, &c, &e) == PNET_OK) {
        if (!c->data || !c->epochs == !c->steps || c->batch_size < 1) abort();
        check_map(&c->inputs);
        check_print(c);
        pnet_config_free(c);
    } else if (c || !e.message[0]) {
        abort();
    }
    if (pnet_input_map_read("input", data, size, &m, &e) == PNET_OK) {
        check_map(&m);
        pnet_input_map_free(&m);
    }
    return 0;
}
