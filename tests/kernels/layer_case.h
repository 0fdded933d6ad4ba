/* Layers that the tests of convolution go through, on any device: what is checked of one is the device's own. */
#ifndef PNET_TESTS_KERNELS_LAYER_CASE_H
#define PNET_TESTS_KERNELS_LAYER_CASE_H

#include "tests/kernels/conv_case.h"

struct layer {
    int64_t rows, others;
    int32_t cells;
    int64_t degree; /* of a row, on average */
    struct pnet_conv_shape shape;
};

struct layer_checks {
    void (*mvmr)(const struct layer *l, const struct pnet_triplets *t, bool transposed, bool add,
        bool with_bias, enum pnet_activation act);
    void (*vvor)(const struct layer *l, const struct pnet_triplets *t, bool swapped, bool add);
};

static inline void layer_describe(const struct layer *l, const char *first, char text[160])
{
    snprintf(text, 160, "%s: %lld x %lld rows, %d cells, %d -> %d, %d groups", first,
        (long long)l->rows, (long long)l->others, l->cells, l->shape.cin, l->shape.cout,
        l->shape.groups);
}

static inline size_t layer_weights(const struct layer *l)
{
    return (size_t)l->cells * (size_t)(l->shape.cin / l->shape.groups) * (size_t)l->shape.cout;
}

static inline void layer_activate(double *x, size_t n, enum pnet_activation act, double slope)
{
    for (size_t i = 0; i < n; i++) {
        if (x[i] < 0 && act == PNET_ACT_RELU) x[i] = 0;
        if (x[i] < 0 && act == PNET_ACT_LEAKY) x[i] *= slope;
    }
}

/* Everything a set can be used for. */
static inline void layer_check(const struct layer_checks *c, const struct layer *l, bool thorough)
{
    struct conv_set set = conv_set_random(l->rows, l->others, l->cells, l->degree, 11);
    c->mvmr(l, &set.t, false, false, true, PNET_ACT_NONE);
    c->mvmr(l, &set.t, true, false, false, PNET_ACT_NONE);
    c->vvor(l, &set.t, false, false);
    c->vvor(l, &set.t, true, true);
    if (thorough) {
        c->mvmr(l, &set.t, false, true, true, PNET_ACT_NONE);
        c->mvmr(l, &set.t, true, true, false, PNET_ACT_NONE);
        c->mvmr(l, &set.t, false, false, true, PNET_ACT_RELU);
        c->mvmr(l, &set.t, false, false, false, PNET_ACT_LEAKY);
        c->vvor(l, &set.t, false, true);
        c->vvor(l, &set.t, true, false);
    }
    conv_set_free(&set);
}

/* Widths on a set of the sizes of `plain`, groups on one of those of `grouped`; numbers of rows and cells with a small
   layer. */
static inline void layer_check_shapes(
    const struct layer_checks *c, struct layer plain, struct layer grouped)
{
    static const int32_t widths[] = {1, 3, 16, 20, 32, 33, 64, 96, 128, 256};
    enum { WIDTHS = sizeof widths / sizeof *widths };
    for (int a = 0; a < WIDTHS; a++) {
        for (int b = 0; b < WIDTHS; b++) {
            if ((a - b) % 3 != 0) continue;
            plain.shape = (struct pnet_conv_shape){widths[a], widths[b], 1};
            layer_check(c, &plain, a == b);
        }
    }
    static const struct pnet_conv_shape shapes[] = {{6, 6, 3}, {12, 6, 3}, {32, 32, 8}, {64, 64, 4},
        {64, 32, 32}, {20, 60, 5}, {14, 42, 7}, {288, 64, 2}, {64, 288, 2}, {32, 32, 32},
        {33, 33, 33}, {3, 3, 3}, {200, 200, 200}, {16, 48, 16}, {48, 16, 16}, {300, 300, 1},
        {256, 256, 16}, {160, 80, 10}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        grouped.shape = shapes[i];
        layer_check(c, &grouped, i % 3 == 0);
    }
    static const int32_t cells[] = {1, 8, 27, 125, 343};
    static const int64_t rows[] = {0, 1, 2, 257, 800};
    for (size_t k = 0; k < sizeof cells / sizeof *cells; k++) {
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            struct layer l = {rows[r], rows[r] / 2 + 1, cells[k], 9, {5, 18, 1}};
            layer_check(c, &l, false);
        }
    }
    struct layer empty = {70, 0, 27, 3, {4, 8, 1}}, zero = {70, 20, 27, 0, {4, 8, 2}};
    layer_check(c, &empty, true);
    layer_check(c, &zero, true);
}

#endif
