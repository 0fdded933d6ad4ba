#include "runtime/data/doubt.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"

#include <math.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* A coordinate as a field of a cloud. */
static bool is_axis(const char *name)
{
    return name[0] && !name[1] && strchr("xyz", name[0]);
}

static bool maps_axis(
    const struct pnet_input_map *m, const struct pnet_input *in, const struct pnet_input_field *f)
{
    for (int i = 0; i < m->count; i++) {
        const struct pnet_input_source *s = &m->sources[i];
        if (strcmp(s->input, in->name) != 0 || strcmp(s->field, f->name) != 0) continue;
        for (int k = 0; k < s->count; k++)
            if (is_axis(s->names[k])) return true;
        return false;
    }
    return f->width == 1 && is_axis(f->name); /* found by its name */
}

bool pnet_reads_coordinates(
    const struct pnet_input *inputs, int input_count, const struct pnet_input_map *m)
{
    for (int i = 0; i < input_count; i++)
        for (int k = 0; k < inputs[i].field_count && !inputs[i].unused; k++) {
            const struct pnet_input_field *f = &inputs[i].fields[k];
            if (f->unused) continue;
            if (f->kind == PNET_INPUT_POSITION) return true;
            if (f->kind == PNET_INPUT_FEATURE && maps_axis(m, &inputs[i], f)) return true;
        }
    return false;
}

void pnet_doubt_offset(const struct pnet_frame *before, const char *others,
    const struct pnet_frame *cloud, const char *name, char text[PNET_DOUBT_TEXT])
{
    const double *q = before->offset, *p = cloud->offset;
    bool same = memcmp(p, q, sizeof before->offset) == 0;
    char shown[512];
    text[0] = '\0';
    if (!before->offset_known || before->offsets_differ || !cloud->offset_known ||
        (same && !cloud->offsets_differ))
        return;
    if (same) p = cloud->other;
    pnet_number_format(text, PNET_DOUBT_TEXT,
        "%.100s: the model reads coordinates less an offset, here (%.9g, %.9g, %.9g), in %s "
        "(%.9g, %.9g, %.9g): one place has different coordinates; `origin: [x, y, z]` in the "
        "index of the data set, or --origin, names one for all",
        pnet_printable(name, shown, sizeof shown), p[0], p[1], p[2], others, q[0], q[1], q[2]);
}

void pnet_doubt_box(const struct pnet_frame *trained, const struct pnet_frame *cloud,
    const char *name, char text[PNET_DOUBT_TEXT])
{
    double middle[3];
    char shown[512];
    bool inside = true;
    const double *low = trained->low, *high = trained->high;
    text[0] = '\0';
    if (!trained->clouds || !trained->boxed || !cloud->clouds) return;
    for (int a = 0; a < 3; a++) {
        middle[a] = (cloud->low[a] + cloud->high[a]) / 2;
        inside = inside && middle[a] >= low[a] && middle[a] <= high[a];
    }
    pnet_printable(name, shown, sizeof shown);
    if (!inside)
        pnet_number_format(text, PNET_DOUBT_TEXT,
            "%.120s: lies outside of the clouds that the model was trained on: its middle is "
            "(%.4g, "
            "%.4g, %.4g), and they lie between (%.4g, %.4g, %.4g) and (%.4g, %.4g, %.4g)",
            shown, middle[0], middle[1], middle[2], low[0], low[1], low[2], high[0], high[1],
            high[2]);
    else if (cloud->most > 2 * trained->most || 2 * cloud->most < trained->least)
        pnet_number_format(text, PNET_DOUBT_TEXT,
            "%.120s: is %.4g m long, and the clouds that the model was trained on are %.4g m to "
            "%.4g m long",
            shown, cloud->most, trained->least, trained->most);
}

static void print_place(const char *key, const double p[3], FILE *out)
{
    pnet_number_write(out, ", %s: [%.17g, %.17g, %.17g]", key, p[0], p[1], p[2]);
}

void pnet_frame_print(const struct pnet_frame *f, FILE *out)
{
    if (!f->clouds || !(f->boxed || f->offset_known)) return;
    fprintf(out, "frame: {clouds: %lld", (long long)f->clouds);
    if (f->boxed) {
        print_place("low", f->low, out);
        print_place("high", f->high, out);
        pnet_number_write(out, ", sizes: [%.17g, %.17g]", f->least, f->most);
    }
    if (f->offset_known && f->offsets_differ)
        fputs(", offset: differs", out);
    else if (f->offset_known)
        print_place("offset", f->offset, out);
    fputs("}\n", out);
}

/* Reads `count` numbers. Returns whether the list is there. */
static bool read_numbers(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, int count, double *numbers)
{
    if (!n || !pnet_yaml_list(y, n, count, count)) return false;
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next)
        *numbers++ = pnet_yaml_real(y, c, -1e38, 1e38, 0);
    return true;
}

void pnet_frame_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_frame *f)
{
    static const char *const keys[] = {"clouds", "low", "high", "sizes", "offset"};
    *f = (struct pnet_frame){.clouds = 0};
    if (!pnet_yaml_map(y, n, "frame", keys, COUNT(keys))) return;
    const struct pnet_yaml_node *offset = pnet_yaml_get(n, "offset");
    double sizes[2] = {0};
    f->clouds = pnet_yaml_int(y, pnet_yaml_get(n, "clouds"), 1, INT64_MAX, 1);
    f->boxed = read_numbers(y, pnet_yaml_get(n, "low"), 3, f->low) &&
               read_numbers(y, pnet_yaml_get(n, "high"), 3, f->high) &&
               read_numbers(y, pnet_yaml_get(n, "sizes"), 2, sizes);
    f->least = sizes[0];
    f->most = sizes[1];
    f->offsets_differ =
        offset && offset->kind == PNET_YAML_SCALAR && strcmp(offset->text, "differs") == 0;
    f->offset_known = f->offsets_differ || read_numbers(y, offset, 3, f->offset);
}
