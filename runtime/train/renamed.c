#include "runtime/train/renamed.h"
#include "runtime/train/name_index.h"

#include <stdlib.h>
#include <string.h>

void pnet_renamed_free(struct pnet_renamed *r)
{
    for (size_t i = 0; r->names && i < r->file->count; i++) free(r->names[i]);
    free(r->names);
    free(r->left);
    free(r->order);
    *r = (struct pnet_renamed){0};
}

enum pnet_status pnet_renamed_new(const struct pnet_safetensors *file,
    const struct pnet_name_rules *map, struct pnet_renamed *r, struct pnet_error *e)
{
    *r = (struct pnet_renamed){.file = file};
    r->names = calloc(file->count + 1, sizeof *r->names);
    r->left = calloc(file->count + 1, sizeof *r->left);
    r->order = calloc(file->count + 1, sizeof *r->order);
    struct pnet_name_index x = {.next = NULL};
    bool failed = !r->names || !r->left || !r->order || !pnet_name_index_new(map, false, &x);
    for (size_t i = 0; i < file->count && !failed; i++) {
        r->names[i] = pnet_name_map(map, &x, file->tensors[i].name);
        failed = !r->names[i];
    }
    pnet_name_index_free(&x);
    if (!failed) return PNET_OK;
    pnet_renamed_free(r);
    return pnet_error_memory(e);
}

/* Sorts rows by name; rows of one name keep their order. */
struct row {
    const char *name;
    size_t row;
};

static int by_name(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

enum pnet_status pnet_renamed_index(struct pnet_renamed *r, const char *map, struct pnet_error *e)
{
    struct row *rows = calloc(r->file->count + 1, sizeof *rows);
    if (!rows) return pnet_error_memory(e);
    r->count = 0;
    for (size_t i = 0; i < r->file->count; i++)
        if (!r->left[i]) rows[r->count++] = (struct row){r->names[i], i};
    qsort(rows, r->count, sizeof *rows, by_name);
    enum pnet_status st = PNET_OK;
    for (size_t i = 0; i < r->count && !st; i++) {
        r->order[i] = rows[i].row;
        if (i && strcmp(rows[i].name, rows[i - 1].name) == 0)
            st = pnet_error_set(e, PNET_USAGE, "%s: %.200s and %.200s would both be %.200s", map,
                r->file->tensors[rows[i - 1].row].name, r->file->tensors[rows[i].row].name,
                rows[i].name);
    }
    free(rows);
    return st;
}

int64_t pnet_renamed_find(const struct pnet_renamed *r, const char *name)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(r->names[r->order[middle]], name);
        if (!order) return (int64_t)r->order[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
