#include "runtime/data/augment.h"

#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static void read_crop(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_augment *a)
{
    static const char *const keys[] = {"points", "radius"};
    if (!pnet_yaml_map(y, n, "crop", keys, COUNT(keys))) return;
    if (!n->count) pnet_yaml_fail(y, n, "crop: needs `points` or `radius`");
    a->crop_points = pnet_yaml_int(y, pnet_yaml_get(n, "points"), 1, INT64_C(1) << 40, 0);
    a->crop_radius_m = pnet_yaml_unit_length(y, pnet_yaml_get(n, "radius"), 1e-6, 1e6, 0);
}

static void read_elastic(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_augment *a)
{
    static const char *const keys[] = {"granularity", "magnitude"};
    if (a->elastic_count == PNET_MAX_ELASTIC) {
        pnet_yaml_fail(y, n, "elastic: at most %d of them", PNET_MAX_ELASTIC);
        return;
    }
    if (!pnet_yaml_map(y, n, "elastic", keys, COUNT(keys))) return;
    if (n->count != COUNT(keys))
        pnet_yaml_fail(y, n, "elastic: needs `granularity` and `magnitude`");
    a->elastic[a->elastic_count++] = (struct pnet_elastic){
        .granularity_m = pnet_yaml_unit_length(y, pnet_yaml_get(n, "granularity"), 1e-6, 1e6, 1),
        .magnitude_m = pnet_yaml_unit_length(y, pnet_yaml_get(n, "magnitude"), 0, 1e6, 0)};
}

static void read_flip(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_augment *a)
{
    static const char *const axes[] = {"x", "y", "z"};
    if (n->kind == PNET_YAML_SCALAR) {
        a->flip[pnet_yaml_choice(y, n, axes, 3, 0)] = true;
        return;
    }
    if (!pnet_yaml_list(y, n, 1, 3)) return;
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next) {
        int axis = pnet_yaml_choice(y, c, axes, 3, 0);
        if (a->flip[axis]) pnet_yaml_fail(y, c, "flip: %s is there twice", axes[axis]);
        a->flip[axis] = true;
    }
}

void pnet_rotate_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n,
    enum pnet_rotate *rotate, double angle_deg[3])
{
    static const char *const words[] = {"no", "z", "xyz"};
    if (n->kind == PNET_YAML_SCALAR) {
        *rotate = (enum pnet_rotate)pnet_yaml_choice(y, n, words, 3, PNET_ROTATE_NONE);
        return;
    }
    if (!pnet_yaml_list(y, n, 3, 3)) return;
    *rotate = PNET_ROTATE_ANGLES;
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next)
        *angle_deg++ = pnet_yaml_degrees(y, c, 0, 180, 0);
}

static void read_scale(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_augment *a)
{
    if (!pnet_yaml_list(y, n, 2, 2)) return;
    a->scale[0] = pnet_yaml_real(y, n->first, 1e-3, 1e3, 1);
    a->scale[1] = pnet_yaml_real(y, n->first->next, 1e-3, 1e3, 1);
    if (a->scale[0] > a->scale[1])
        pnet_yaml_fail(y, n, "scale: from %g down to %g", a->scale[0], a->scale[1]);
}

static void read_colour(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_augment *a)
{
    static const char *const keys[] = {"drop", "shift", "jitter"};
    if (!pnet_yaml_map(y, n, "colour", keys, COUNT(keys))) return;
    a->colour_drop = pnet_yaml_real(y, pnet_yaml_get(n, "drop"), 0, 1, 0);
    a->colour_shift = pnet_yaml_real(y, pnet_yaml_get(n, "shift"), 0, 1e6, 0);
    a->colour_jitter = pnet_yaml_real(y, pnet_yaml_get(n, "jitter"), 0, 1e6, 0);
}

void pnet_augment_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_augment *a)
{
    static const char *const keys[] = {
        "crop", "drop_points", "elastic", "flip", "rotate", "scale", "jitter", "colour"};
    const struct pnet_yaml_node *c;
    if (n->kind == PNET_YAML_NULL || !pnet_yaml_map(y, n, "augment", keys, COUNT(keys))) return;
    if ((c = pnet_yaml_get(n, "crop"))) read_crop(y, c, a);
    a->drop_points = pnet_yaml_real(y, pnet_yaml_get(n, "drop_points"), 0, 1, 0);
    c = pnet_yaml_get(n, "elastic");
    if (c && c->kind == PNET_YAML_LIST)
        for (const struct pnet_yaml_node *item = c->first; item; item = item->next)
            read_elastic(y, item, a);
    else if (c)
        read_elastic(y, c, a);
    if ((c = pnet_yaml_get(n, "flip"))) read_flip(y, c, a);
    if ((c = pnet_yaml_get(n, "rotate"))) pnet_rotate_parse(y, c, &a->rotate, a->angle_deg);
    if ((c = pnet_yaml_get(n, "scale"))) read_scale(y, c, a);
    a->jitter_m = pnet_yaml_unit_length(y, pnet_yaml_get(n, "jitter"), 0, 1e6, 0);
    if ((c = pnet_yaml_get(n, "colour"))) read_colour(y, c, a);
}
