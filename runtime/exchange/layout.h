/* How sparse convolution libraries and PyTorch order the numbers of a layer's weight.

   A kernel has K cells an axis. pnet has [K^3, in / groups, out], the cell's x slowest. Coordinates of a library are three
   columns c0 c1 c2, whatever they hold: `pnet_axes` says which of x, y and z each one is.

     MinkowskiEngine  kernel [K^3, in, out], c0 fastest; [in, out] for K = 1 on one level; depthwise [K^3, channels];
                      bias [1, out]
     TorchSparse      kernel [K^3, in, out], c0 fastest for odd K, slowest for even K; [in, out] for K = 1 on one level
     spconv 2.2       weight [out, K0, K1, K2, in / groups]; for K = 1 on one level [out, 1, 1, 1, in], read as [in, out]
     PyTorch          weight [out, in / groups, K0, K1, K2]; to a finer level [in, out / groups, K0, K1, K2], as ConvTranspose3d

   A transposed convolution uses cell t for the pairs that the strided one uses it for, in all of them. */
#ifndef PNET_RUNTIME_EXCHANGE_LAYOUT_H
#define PNET_RUNTIME_EXCHANGE_LAYOUT_H

#include "runtime/plan/plan.h"
#include "runtime/train/safetensors.h"

enum pnet_library {
    PNET_LIBRARY_MINKOWSKI,
    PNET_LIBRARY_SPCONV,
    PNET_LIBRARY_TORCHSPARSE,
    PNET_LIBRARY_TORCH,
    PNET_LIBRARIES
};
extern const char *const pnet_library_names[]; /* by enum pnet_library: "minkowski" ..; then NULL */
/* Returns whether `text` is a name of the list. */
bool pnet_library_parse(const char *text, enum pnet_library *l);

/* The axis of each column of coordinates: 0 x, 1 y, 2 z. */
struct pnet_axes {
    int of[3];
};
/* Reads an order of the letters x, y and z, such as "zyx". */
bool pnet_axes_parse(const char *text, struct pnet_axes *a);
/* Writes the same letters. */
void pnet_axes_text(const struct pnet_axes *a, char text[4]);
/* Returns the columns that the library's own examples have: x y z, but z y x for spconv and PyTorch. */
struct pnet_axes pnet_axes_usual(enum pnet_library l);

/* What a parameter of a plan is to its layer. */
struct pnet_weight_role {
    enum pnet_param_kind kind;
    int dims;
    int64_t shape[4]; /* in pnet */
    int weight;       /* the parameter that holds the layer's matrix or kernel; -1: it has none */
    int64_t kernel;   /* CELLS: cells an axis */
    int64_t groups;   /* CELLS */
    bool finer;       /* CELLS: the layer goes to a finer level */
    bool alone;       /* CELLS: one cell on one level, so each point is multiplied by itself */
};
struct pnet_weight_role pnet_weight_role_of(const struct pnet_plan *p, int param);

/* A shape in which a library may have a parameter, and where a number lies in it. With cell (x, y, z), channel `i` of the group's
   inputs and channel `o` of all outputs the place is

     x cell[0] + y cell[1] + z cell[2] + i in + (o % block) out + (o / block) group */
struct pnet_form {
    int dims;
    int64_t shape[PNET_TENSOR_DIMS];
    int64_t cell[3], in, out, block, group;
    const char
        *other; /* a layout with other places that has this shape, too; NULL: there is none */
};
/* Of what exports write; a file records it. 2: spconv's kernels of one cell on one level are [in, out] in memory; they were
   [out, in] before. */
enum { PNET_EXCHANGE_LAYOUT = 2 };
enum { PNET_MOST_FORMS = 6 };
/* Lists the forms of a parameter, the usual one first. `kernel_word`: the library calls the layer's weight "kernel", not
   "weight", which MinkowskiEngine and TorchSparse do for all but linear layers. Returns their number, 0 where the library
   has no such layer. */
int pnet_forms(enum pnet_library l, const struct pnet_axes *a, const struct pnet_weight_role *p,
    bool kernel_word, struct pnet_form forms[PNET_MOST_FORMS]);
/* Returns the first form of that shape, or NULL. */
const struct pnet_form *pnet_form_find(
    const struct pnet_form *forms, int count, int dims, const int64_t *shape);

/* Reorders all numbers of a parameter. Neither changes a bit. */
void pnet_form_take(
    const struct pnet_form *f, const struct pnet_weight_role *p, const float *theirs, float *ours);
void pnet_form_give(
    const struct pnet_form *f, const struct pnet_weight_role *p, const float *ours, float *theirs);

#endif
