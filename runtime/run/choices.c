#include "runtime/run/choices.h"

#include "runtime/base/memory_stream.h"
#include "runtime/base/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1 };
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

const char *const pnet_precision_names[] = {"fp32", "tf32", "bf16", "fp16", NULL};
static const char *const device_names[] = {[PNET_CPU] = "cpu", [PNET_CUDA] = "cuda"};

void pnet_choices_free(struct pnet_choices *c)
{
    for (int i = 0; i < c->count; i++) free(c->items[i].path);
    free(c->items);
    *c = (struct pnet_choices){0};
}

static struct pnet_choice *find(const struct pnet_choices *c, const char *path)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->items[i].path, path) == 0) return &c->items[i];
    return NULL;
}

/* The caller has made room for `most` items. */
static bool add(struct pnet_choices *c, const char *path, struct pnet_algos algos)
{
    char *copy = strdup(path);
    if (copy) c->items[c->count++] = (struct pnet_choice){copy, algos};
    return copy != NULL;
}

enum pnet_status pnet_choices_of(const struct pnet_bound *b, const struct pnet_device_info *info,
    struct pnet_choices *c, struct pnet_error *e)
{
    const struct pnet_plan *p = b->plan;
    *c = (struct pnet_choices){.device = b->device, .precision = b->precision, .info = *info};
    c->items = calloc((size_t)p->node_count + 1, sizeof *c->items);
    bool ok = c->items != NULL;
    for (int n = 0; n < p->node_count && ok; n++)
        if (pnet_plan_convolves(p, n) && !find(c, p->nodes[n].path))
            ok = add(c, p->nodes[n].path, b->algos[n]);
    if (ok) return PNET_OK;
    pnet_choices_free(c);
    return pnet_error_memory(e);
}

/* ---- YAML ---- */

/* Returns the code point at *text and advances *text past it. -1: not UTF-8; one byte is skipped. */
static int32_t next_point(const unsigned char **text)
{
    const unsigned char *t = (*text)++;
    int more = *t >= 0xf0 ? 3 : *t >= 0xe0 ? 2 : 1;
    int32_t point = *t & (0x3f >> more);
    if (*t < 0x80) return *t;
    if (*t < 0xc2 || *t > 0xf4) return -1;
    for (int i = 1; i <= more; i++) {
        if ((t[i] & 0xc0) != 0x80) return -1;
        point = point << 6 | (t[i] & 0x3f);
    }
    if ((point & 0x1ff800) == 0xd800 || point > 0x10ffff) return -1;
    *text = t + more + 1;
    return point;
}

static void put_quoted(FILE *f, const char *text)
{
    fputc('"', f);
    for (const unsigned char *t = (const unsigned char *)text; *t;) {
        int32_t c = next_point(&t);
        if (c < 0)
            fputc('?', f);
        else if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < ' ' || c > '~')
            fprintf(f, "\\U%08x", (unsigned)c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

void pnet_choices_put_head(
    FILE *f, int format, enum pnet_device_kind device, const struct pnet_device_info *info)
{
    const char *lines[][2] = {
        {"name", info->name}, {"driver", info->driver}, {"version", PNET_VERSION}};
    fprintf(f, "format: %d\ndevice: %s\n", format, device_names[device]);
    for (int i = 0; i < COUNT(lines); i++) {
        fprintf(f, "%s: ", lines[i][0]);
        put_quoted(f, lines[i][1]);
        fputc('\n', f);
    }
}

static void put(FILE *f, const struct pnet_choices *c)
{
    fputs("# Which algorithm forms each sum of each convolution; layers that are not here take the "
          "fixed table.\n",
        f);
    pnet_choices_put_head(f, FORMAT, c->device, &c->info);
    fprintf(
        f, "precision: %s\nlayers:%s\n", pnet_precision_names[c->precision], c->count ? "" : " {}");
    for (int i = 0; i < c->count; i++) {
        /* YAML requires long keys to be marked as such */
        bool lengthy = strlen(c->items[i].path) > 80;
        fputs(lengthy ? "  ? " : "  ", f);
        put_quoted(f, c->items[i].path);
        fputs(lengthy ? "\n  : {" : ": {", f);
        for (int d = 0; d < PNET_DIRECTIONS; d++)
            fprintf(f, "%s%s: %s", d ? ", " : "", pnet_direction_names[d],
                pnet_conv_algo_names[c->items[i].algos.of[d]]);
        fputs("}\n", f);
    }
}

char *pnet_choices_print(const struct pnet_choices *c)
{
    struct pnet_memory_stream text;
    if (!pnet_memory_stream_open(&text)) return NULL;
    put(text.file, c);
    return pnet_memory_stream_close(&text, NULL);
}

static struct pnet_algos read_algos(struct pnet_yaml *y, const struct pnet_yaml_node *n)
{
    struct pnet_algos a;
    if (!pnet_yaml_map(y, n, n->key, pnet_direction_names, PNET_DIRECTIONS))
        return (struct pnet_algos){0};
    for (int d = 0; d < PNET_DIRECTIONS; d++)
        a.of[d] =
            (enum pnet_conv_algo)pnet_yaml_choice(y, pnet_yaml_get(n, pnet_direction_names[d]),
                pnet_conv_algo_names, PNET_ALGO_COUNT, PNET_ALGO_DEFAULT);
    return a;
}

static void read_layers(
    struct pnet_yaml *y, const struct pnet_yaml_node *layers, struct pnet_choices *c)
{
    if (!layers || layers->kind != PNET_YAML_MAP) {
        pnet_yaml_fail(y, layers, "no `layers`");
        return;
    }
    c->items = calloc((size_t)layers->count + 1, sizeof *c->items);
    bool ok = c->items != NULL;
    for (const struct pnet_yaml_node *n = layers->first; n && ok && pnet_yaml_ok(y); n = n->next) {
        struct pnet_algos a = read_algos(y, n);
        for (int d = 0; d < PNET_DIRECTIONS; d++)
            if (c->precision != PNET_FP32 && !pnet_conv_algo_is_usual(a.of[d]))
                pnet_yaml_fail(y, n, "%s is for fp32", pnet_conv_algo_names[a.of[d]]);
        ok = add(c, n->key, a);
    }
    if (!ok) pnet_yaml_fail_memory(y);
}

bool pnet_choices_get_head(struct pnet_yaml *y, int format, enum pnet_device_kind *device,
    struct pnet_device_info *info, const char **version)
{
    const struct pnet_yaml_node *root = pnet_yaml_root(y);
    if (root->kind != PNET_YAML_MAP) {
        pnet_yaml_fail(y, root, "expected `key: value` pairs");
        return false;
    }
    const struct pnet_yaml_node *n = pnet_yaml_get(root, "format");
    int64_t found = pnet_yaml_int(y, n, 0, INT32_MAX, 0);
    if (pnet_yaml_ok(y) && found != format) pnet_yaml_fail(y, n, "expected format %d", format);
    *device = (enum pnet_device_kind)pnet_yaml_choice(
        y, pnet_yaml_get(root, "device"), device_names, PNET_DEVICES, PNET_CPU);
    *version = pnet_yaml_string(y, pnet_yaml_get(root, "version"), "");
    snprintf(
        info->name, sizeof info->name, "%s", pnet_yaml_string(y, pnet_yaml_get(root, "name"), ""));
    snprintf(info->driver, sizeof info->driver, "%s",
        pnet_yaml_string(y, pnet_yaml_get(root, "driver"), ""));
    return pnet_yaml_ok(y);
}

enum pnet_status pnet_choices_parse(
    const char *name, const char *text, size_t size, struct pnet_choices *c, struct pnet_error *e)
{
    static const char *const keys[] = {
        "format", "device", "name", "driver", "version", "precision", "layers"};
    struct pnet_yaml *y;
    const char *version;
    *c = (struct pnet_choices){0};
    if (!size) return PNET_OK;
    enum pnet_status st = pnet_yaml_parse(name, text, size, PNET_BAD_DATA, &y, e);
    if (st) return st;
    const struct pnet_yaml_node *root = pnet_yaml_root(y);
    if (pnet_choices_get_head(y, FORMAT, &c->device, &c->info, &version) &&
        pnet_yaml_map(y, root, "the choices", keys, COUNT(keys))) {
        c->precision = (enum pnet_precision)pnet_yaml_choice(
            y, pnet_yaml_get(root, "precision"), pnet_precision_names, PNET_FP16 + 1, PNET_FP32);
        read_layers(y, pnet_yaml_get(root, "layers"), c);
    }
    st = pnet_yaml_end(y, e);
    pnet_yaml_free(y);
    if (st) pnet_choices_free(c);
    return st;
}

/* ---- plans ---- */

enum pnet_status pnet_choices_bind(const struct pnet_choices *c, const struct pnet_plan *p,
    const struct pnet_target *t, struct pnet_bound **b, struct pnet_error *e)
{
    struct pnet_target chosen = *t;
    *b = NULL;
    if (c->device != t->where.kind || c->precision != t->precision) return PNET_OK;
    struct pnet_algos *algos = calloc((size_t)p->node_count + 1, sizeof *algos);
    if (!algos) return pnet_error_memory(e);
    for (int n = 0; n < p->node_count; n++) {
        const struct pnet_choice *choice =
            pnet_plan_convolves(p, n) ? find(c, p->nodes[n].path) : NULL;
        if (choice) algos[n] = choice->algos;
    }
    chosen.algos = algos;
    enum pnet_status st = pnet_bound_new(p, &chosen, b, e);
    free(algos);
    return st;
}
