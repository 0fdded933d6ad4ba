/* pnetc info */
#include "compiler/cli/cloud_options.h"
#include "compiler/cli/ranges.h"
#include "compiler/cli/weights.h"
#include "runtime/io/cloud.h"
#include "runtime/io/pieces.h"
#include "runtime/data/input_map.h"
#include "runtime/base/json.h"
#include "runtime/base/printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct inspection {
    bool json;
    struct hint_options hints;
};

static const char *const scalar_names[] = {
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"};

/* The smallest and the largest value of a field, without NaN. */
struct span {
    double least, most;
};

static void span_add(struct span *s, double x)
{
    s->least = fmin(s->least, x);
    s->most = fmax(s->most, x);
}

/* Rows of the file that are read together. */
enum { PIECE_ROWS = 1 << 16 };

/* What is printed of a cloud that came in pieces, or as one. */
struct description {
    const char *path;
    const struct pnet_cloud
        *c; /* with the fields and what the head says; not all of its points may be there */
    int64_t rows, file_rows;
    char warning[256];
    struct span axes[3];
    struct span *fields; /* [c->field_count] */
    struct cloud_colours colours;
    struct pnet_ranges
        divisors;    /* what the colours would be divided by; empty where there are none */
    char fault[256]; /* what is wrong with them, one line, or "" */
};

static enum pnet_status begin_description(struct description *d, struct pnet_error *e)
{
    static const struct span none = {INFINITY, -INFINITY};
    d->fields = malloc((size_t)d->c->field_count * sizeof *d->fields + 1);
    if (!d->fields) return pnet_error_memory(e);
    for (int k = 0; k < 3; k++) d->axes[k] = none;
    for (int f = 0; f < d->c->field_count; f++) d->fields[f] = none;
    pnet_cli_colours_begin(&d->colours);
    return PNET_OK;
}

/* Adds a piece, whose first row is row `first` of the file. */
static void describe_piece(struct description *d, const struct pnet_cloud *c, int64_t first)
{
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < c->rows; i++) span_add(&d->axes[k], pnet_cloud_at(c, i, k));
    for (int f = 0; f < c->field_count; f++)
        for (int64_t i = 0; i < c->rows; i++)
            span_add(&d->fields[f], pnet_field_get(&c->fields[f], i));
    pnet_cli_colours_add(&d->colours, c, first, d->path);
}

/* Returns the unit of the coordinates as they are printed: metres, once they were converted. */
static const char *unit_of_axis(const struct pnet_cloud *c, int axis)
{
    return c->metres[0] > 0 ? "m" : pnet_unit_symbol(&c->unit[axis == 2]);
}

static bool is_stated(const struct pnet_cloud *c, int axis)
{
    enum pnet_axis_unit_kind kind = c->unit[axis == 2].kind;
    return kind == PNET_AXIS_LENGTH || kind == PNET_AXIS_ANGLE;
}

static enum pnet_status find_colours(struct description *d, struct pnet_error *e)
{
    struct pnet_error fault;
    enum pnet_status st = pnet_cli_colours_end(&d->colours, &d->divisors, &fault);
    if (st == PNET_BAD_DATA) {
        snprintf(
            d->fault, sizeof d->fault, "%.*s", (int)strcspn(fault.message, "\n"), fault.message);
        return PNET_OK;
    }
    if (st) *e = fault;
    return st;
}

static void print_cloud(const struct description *d)
{
    const struct pnet_cloud *c = d->c;
    char text[1024];
    printf("%s: %lld points\n", pnet_printable(d->path, text, sizeof text), (long long)d->rows);
    if (c->array) {
        bool apart = strchr(c->array, ',');
        printf("  coordinates from the array%s %s\n", apart ? "s" : "",
            pnet_printable(c->array, text, sizeof text));
    }
    if (c->faces)
        printf("  %lld faces are left out: a cloud is the vertices\n", (long long)c->faces);
    if (*d->warning) printf("  %s\n", d->warning);
    for (int k = 0; k < 3 && d->rows; k++) {
        const struct span *s = &d->axes[k];
        bool unstated = c->unit[k == 2].kind == PNET_AXIS_UNSTATED && !(c->metres[0] > 0);
        printf("  %c  %-8s from %g to %g %s%s\n", "xyz"[k], scalar_names[c->xyz_type], s -> least,
            s -> most, unit_of_axis(c, k), unstated ? ", not stated" : "");
    }
    if (d->rows) {
        const struct pnet_origin own = {true, {c->offset[0], c->offset[1], c->offset[2]}};
        printf("  origin %s\n", pnet_origin_text(&own, text));
    }
    for (int f = 0; f < c->field_count; f++) {
        const struct span *s = &d->fields[f];
        printf("  %s  %s", pnet_printable(c->fields[f].name, text, sizeof text),
            scalar_names[c->fields[f].type]);
        if (s->least <= s->most)
            printf(" from %g to %g", s->least, s->most);
        else if (d->rows)
            printf(" without a number");
        puts("");
    }
    pnet_cli_print_ranges(&d->divisors, false);
    if (*d->fault) printf("  colours: %s\n", d->fault);
}

/* `c`: the cloud whose axis the column is; NULL: it is a field. */
static void put_column(struct pnet_json *j, const char *name, enum pnet_scalar type, struct span s,
    const struct pnet_cloud *c, int axis)
{
    pnet_json_begin(j, NULL, '{');
    pnet_json_string(j, "name", name);
    pnet_json_string(j, "type", scalar_names[type]);
    if (c) pnet_json_string(j, "unit", unit_of_axis(c, axis));
    pnet_json_double(j, "from", s.least); /* null where there are no points */
    pnet_json_double(j, "to", s.most);
    if (c && c->unit[axis == 2].kind != PNET_AXIS_NONE)
        pnet_json_bool(j, "unit_stated", is_stated(c, axis));
    pnet_json_end(j, '}');
}

static void put_origin(struct pnet_json *j, const double at[3])
{
    pnet_json_begin(j, "origin", '[');
    for (int k = 0; k < 3; k++) pnet_json_double(j, NULL, at[k]);
    pnet_json_end(j, ']');
}

static void put_cloud(struct pnet_json *j, const struct description *d)
{
    static const char *const axes[] = {"x", "y", "z"};
    const struct pnet_cloud *c = d->c;
    pnet_json_string(j, "file", d->path);
    pnet_json_string(j, "kind", "cloud");
    pnet_json_int(j, "points", d->rows);
    pnet_json_int(j, "file_points", d->file_rows);
    if (*d->warning) pnet_json_string(j, "warning", d->warning);
    if (c->array) pnet_json_string(j, "array", c->array);
    if (c->faces) pnet_json_int(j, "faces", c->faces);
    pnet_json_begin(j, "coordinates", '[');
    for (int k = 0; k < 3; k++) put_column(j, axes[k], c->xyz_type, d->axes[k], c, k);
    pnet_json_end(j, ']');
    put_origin(j, c->offset);
    pnet_json_begin(j, "fields", '[');
    for (int f = 0; f < c->field_count; f++)
        put_column(j, c->fields[f].name, c->fields[f].type, d->fields[f], NULL, 0);
    pnet_json_end(j, ']');
    if (d->divisors.count) pnet_cli_put_ranges(j, "colours", &d->divisors);
}

/* Prints the object, which it frees. */
static enum pnet_status print_object(struct pnet_json *j, struct pnet_error *e)
{
    pnet_json_end(j, '}');
    return pnet_json_print(j, stdout, e);
}

static enum pnet_status print_description(
    const struct inspection *n, struct description *d, struct pnet_error *e)
{
    enum pnet_status st = find_colours(d, e);
    if (!st && n->json) {
        struct pnet_json j = {0};
        pnet_json_begin(&j, NULL, '{');
        put_cloud(&j, d);
        st = print_object(&j, e);
    } else if (!st) {
        print_cloud(d);
    }
    return st;
}

/* A cloud of a format that is read as a whole. */
static enum pnet_status describe_whole(const struct inspection *n,
    const struct pnet_cloud_hints *hints, struct description *d, struct pnet_error *e)
{
    struct pnet_cloud c;
    enum pnet_status st = pnet_cloud_read_as(d->path, hints, &c, d->warning, e);
    if (st) return st;
    st = pnet_cloud_name_columns(hints->columns, hints->column_count, &c, d->path, e);
    d->c = &c;
    d->rows = c.rows;
    d->file_rows = c.file_rows;
    if (!st) st = begin_description(d, e);
    if (!st) describe_piece(d, &c, 0);
    if (!st) st = print_description(n, d, e);
    d->c = NULL;
    pnet_cloud_free(&c);
    return st;
}

/* Colours are found by the names of fields, in each piece. */
static enum pnet_status describe_pieces(struct description *d, const struct pnet_cloud_hints *hints,
    struct pnet_cloud_pieces *p, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    bool more = true;
    while (more && !st) {
        struct pnet_cloud c;
        int64_t first;
        st = pnet_cloud_pieces_next(p, &c, &first, e);
        more = !st && c.file_rows;
        if (more) st = pnet_cloud_name_columns(hints->columns, hints->column_count, &c, d->path, e);
        if (more && !st) describe_piece(d, &c, first);
        pnet_cloud_free(&c);
    }
    return st;
}

static enum pnet_status describe_cloud(
    const struct inspection *n, const char *path, struct pnet_error *e)
{
    struct pnet_cloud_hints hints = pnet_cli_hints(&n->hints, NULL);
    struct description d = {.path = path};
    struct pnet_cloud_pieces *p;
    enum pnet_status st = pnet_cloud_pieces_open(path, &hints, PIECE_ROWS, &p, d.warning, e);
    if (st == PNET_USAGE) {
        st = describe_whole(n, &hints, &d, e);
    } else if (!st) {
        struct pnet_cloud_outline *o = pnet_cloud_pieces_outline(p);
        d.c = &o->cloud;
        d.rows = o->rows;
        d.file_rows = o->file_rows;
        st = pnet_cloud_name_columns(hints.columns, hints.column_count, &o->cloud, path, e);
        if (!st) st = begin_description(&d, e);
        if (!st) st = describe_pieces(&d, &hints, p, e);
        if (!st) st = print_description(n, &d, e);
    }
    pnet_ranges_free(&d.divisors);
    free(d.fields);
    pnet_cloud_pieces_close(p);
    return st;
}

static void print_trained(const struct pnet_trained *t)
{
    char mode[PNET_MODE_TEXT], text[1024], lines[1 << 16];
    if (t->known)
        printf("trained in mode %s, in %s, geometry version %d, pnet %s\n",
            pnet_mode_text(t->degrade, mode), pnet_precision_names[t->precision], t->geometry,
            pnet_printable(t->version, text, sizeof text));
    if (*t->params) printf("params:\n%s\n", pnet_printable_lines(t->params, lines, sizeof lines));
}

static void print_weights(const struct weights *w)
{
    int64_t sum = 0;
    char text[1024], unit[32];
    for (size_t i = 0; i < w->from.file->count; i++) {
        const struct pnet_safetensor *t = &w->from.file->tensors[i];
        printf("  %-48s %s [", pnet_printable(t->name, text, sizeof text),
            pnet_tensor_type_name(t->dtype));
        for (int k = 0; k < t->dims; k++) printf("%s%lld", k ? ", " : "", (long long)t->shape[k]);
        puts("]");
        sum += pnet_safetensor_count(t);
    }
    printf("%zu tensors, %lld numbers\n", w->from.file->count, (long long)sum);
    print_trained(&w->from.trained);
    if (!w->from.checkpoint) return;
    if (w->map.ranges.count) puts("read in training:");
    pnet_cli_print_ranges(&w->map.ranges, true);
    const struct pnet_checkpoint_state *s = &w->from.checkpoint->state;
    printf("checkpoint of epoch %lld, step %lld, seed %llu\n", (long long)s->epoch,
        (long long)s->step, (unsigned long long)s->seed);
    for (size_t i = 0; i < s->metric_count; i++)
        printf("  %s %g\n", pnet_printable(s->metrics[i].name, text, sizeof text),
            s->metrics[i].value);
    if (w->map.origin.named) printf("origin %s\n", pnet_origin_text(&w->map.origin, text));
    pnet_unit_print(&w->map.unit, unit);
    if (*unit) printf("unit %s\n", unit);
    if (w->map.coordinates)
        printf("coordinates %s\n", pnet_printable(w->map.coordinates, text, sizeof text));
    char lines[1 << 16];
    if (*s->kernels)
        printf("algorithms:\n%s", pnet_printable_lines(s->kernels, lines, sizeof lines));
}

static void put_trained(struct pnet_json *j, const struct pnet_trained *t)
{
    char mode[PNET_MODE_TEXT];
    pnet_json_begin(j, "trained", '{');
    pnet_json_string(j, "mode", pnet_mode_text(t->degrade, mode));
    pnet_json_string(j, "precision", pnet_precision_names[t->precision]);
    pnet_json_int(j, "geometry_version", t->geometry);
    pnet_json_string(j, "version", t->version);
    pnet_json_string(j, "params", t->params);
    pnet_json_end(j, '}');
}

static void put_checkpoint(struct pnet_json *j, const struct weights *w)
{
    const struct pnet_checkpoint_state *s = &w->from.checkpoint->state;
    char seed[32], unit[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    pnet_json_begin(j, "checkpoint", '{');
    pnet_json_int(j, "epoch", s->epoch);
    pnet_json_int(j, "step", s->step);
    pnet_json_string(j, "seed", seed); /* many readers of JSON cannot hold 64 bits */
    pnet_json_begin(j, "metrics", '{');
    for (size_t i = 0; i < s->metric_count; i++)
        pnet_json_double(j, s->metrics[i].name, s->metrics[i].value);
    pnet_json_end(j, '}');
    pnet_json_string(j, "params", s->params);
    pnet_json_string(j, "algorithms", s->kernels);
    if (w->map.origin.named) put_origin(j, w->map.origin.at);
    pnet_unit_print(&w->map.unit, unit);
    if (*unit) pnet_json_string(j, "unit", unit);
    if (w->map.coordinates) pnet_json_string(j, "coordinates", w->map.coordinates);
    pnet_cli_put_ranges(j, "ranges", &w->map.ranges);
    pnet_json_end(j, '}');
}

static void put_weights(struct pnet_json *j, const char *path, const struct weights *w)
{
    int64_t sum = 0;
    pnet_json_string(j, "file", path);
    pnet_json_string(j, "kind", w->from.checkpoint ? "checkpoint" : "weights");
    pnet_json_begin(j, "tensors", '[');
    for (size_t i = 0; i < w->from.file->count; i++) {
        const struct pnet_safetensor *t = &w->from.file->tensors[i];
        pnet_json_begin(j, NULL, '{');
        pnet_json_string(j, "name", t->name);
        pnet_json_string(j, "type", pnet_tensor_type_name(t->dtype));
        pnet_json_begin(j, "shape", '[');
        for (int k = 0; k < t->dims; k++) pnet_json_int(j, NULL, t->shape[k]);
        pnet_json_end(j, ']');
        pnet_json_end(j, '}');
        sum += pnet_safetensor_count(t);
    }
    pnet_json_end(j, ']');
    pnet_json_int(j, "numbers", sum);
    if (w->from.checkpoint) put_checkpoint(j, w);
    if (w->from.trained.known) put_trained(j, &w->from.trained);
}

static enum pnet_status describe_weights(
    const struct inspection *n, const char *path, struct pnet_error *e)
{
    struct weights w;
    enum pnet_status st = pnet_cli_weights_open(path, &w, e);
    if (st) return st;
    if (n->json) {
        struct pnet_json j = {0};
        pnet_json_begin(&j, NULL, '{');
        put_weights(&j, path, &w);
        st = print_object(&j, e);
    } else {
        print_weights(&w);
    }
    pnet_cli_weights_close(&w);
    return st;
}

static bool holds_weights(const char *path)
{
    struct stat s;
    size_t n = strlen(path);
    return (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) ||
           (n > 12 && strcmp(path + n - 12, ".safetensors") == 0);
}

int pnet_command_info(int argc, char **argv)
{
    static const struct usage usage = {"pnetc info FILE ... [options]",
        "Prints what a cloud, a weights file, a checkpoint or a run folder holds.",
        "  pnetc info room.ply\n  pnetc info out/demo/best --json\n  pnetc info scan.bin --columns "
        "x,y,z,red,green,blue\n"};
    const char *files[256];
    bool done;
    int words, code, worst = 0;
    struct inspection n = {0};
    struct pnet_error e = {0};
    struct option options[] = {CLOUD_HINT_OPTIONS(&n.hints),
        {"json", 0, OPT_FLAG, &n.json, NULL, "an object a line, one for each file"}};
    if ((code = pnet_cli_parse_options(
             argc, argv, options, 4, &usage, files, 256, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which file? usage: %s", usage.synopsis);
    if (pnet_cli_parse_hints(&n.hints, &e)) return pnet_cli_complain(&e);
    for (int i = 0; i < words; i++) {
        if (holds_weights(files[i]) ? describe_weights(&n, files[i], &e)
                                    : describe_cloud(&n, files[i], &e)) {
            pnet_cli_complain(&e);
            if ((int)e.status > worst) worst = (int)e.status;
        }
    }
    pnet_cli_free_hints(&n.hints);
    return worst;
}
