#include "runtime/exchange/layout.h"

#include <string.h>

const char *const pnet_library_names[PNET_LIBRARIES + 1] = {
    [PNET_LIBRARY_MINKOWSKI] = "minkowski",
    [PNET_LIBRARY_SPCONV] = "spconv",
    [PNET_LIBRARY_TORCHSPARSE] = "torchsparse",
    [PNET_LIBRARY_TORCH] = "torch",
};

bool pnet_library_parse(const char *text, enum pnet_library *l)
{
    for (int i = 0; i < PNET_LIBRARIES; i++)
        if (strcmp(text, pnet_library_names[i]) == 0) {
            *l = (enum pnet_library)i;
            return true;
        }
    return false;
}

bool pnet_axes_parse(const char *text, struct pnet_axes *a)
{
    unsigned seen = 0;
    if (strlen(text) != 3) return false;
    for (int c = 0; c < 3; c++) {
        if (text[c] < 'x' || text[c] > 'z') return false;
        a->of[c] = text[c] - 'x';
        seen |= 1u << a->of[c];
    }
    return seen == 7;
}

void pnet_axes_text(const struct pnet_axes *a, char text[4])
{
    for (int c = 0; c < 3; c++) text[c] = "xyz"[a->of[c]];
    text[3] = 0;
}

struct pnet_axes pnet_axes_usual(enum pnet_library l)
{
    bool turned = l == PNET_LIBRARY_SPCONV || l == PNET_LIBRARY_TORCH;
    return turned ? (struct pnet_axes){{2, 1, 0}} : (struct pnet_axes){{0, 1, 2}};
}

/* ---- what a parameter is ---- */

static int64_t cube_root(int64_t volume)
{
    int64_t k = 1;
    while (k * k * k < volume) k++;
    return k;
}

struct pnet_weight_role pnet_weight_role_of(const struct pnet_plan *p, int param)
{
    const struct pnet_param_info *info = &p->params[param].info;
    int node = p->params[param].node;
    const struct pnet_node *n = node >= 0 ? &p->nodes[node] : NULL;
    struct pnet_weight_role role = {
        .kind = info->kind, .dims = info->dims, .weight = -1, .kernel = 1, .groups = 1};
    memcpy(role.shape, info->shape, sizeof info->shape);
    for (int i = 0; n && i < n->param_count && role.weight < 0; i++)
        if (p->params[n->param[i]].info.kind != PNET_PARAM_PLAIN) role.weight = n->param[i];
    if (info->kind != PNET_PARAM_CELLS || !n) return role;
    int in = p->tensors[n->in[0]].type.level, out = p->tensors[n->out].type.level;
    role.kernel = cube_root(info->shape[0]);
    role.groups = p->tensors[n->in[0]].type.width / info->shape[1];
    role.finer = in != out && !pnet_level_reaches(p->levels, in, out);
    role.alone = in == out && role.kernel == 1;
    return role;
}

/* ---- the forms of the libraries ---- */

/* A form without the cells' places. */
static struct pnet_form form(
    int dims, const int64_t *shape, int64_t in, int64_t out, int64_t block, int64_t group)
{
    struct pnet_form f = {.dims = dims, .in = in, .out = out, .block = block, .group = group};
    memcpy(f.shape, shape, (size_t)dims * sizeof *shape);
    return f;
}

/* Sets the cells' places: a step of the first or the last column of coordinates is `step` numbers, the others are K times that
   each. */
static void place_cells(
    struct pnet_form *f, const struct pnet_axes *a, int64_t kernel, int64_t step, bool first)
{
    for (int c = 0; c < 3; c++, step *= kernel) f->cell[a->of[first ? c : 2 - c]] = step;
}

/* [out, in], and the same with up to three lengths of 1 behind: linear layers, and convolutions of kernel 1 in one, two and three
   dimensions. */
static int matrix_forms(int64_t in, int64_t out, int most, struct pnet_form *forms)
{
    for (int extra = 0; extra < most; extra++)
        forms[extra] = form(2 + extra, (int64_t[]){out, in, 1, 1, 1}, 1, in, out, 0);
    return most;
}

/* [in, out] and [1, in, out] */
static int turned_forms(int64_t in, int64_t out, bool flat_first, struct pnet_form *forms)
{
    forms[flat_first ? 0 : 1] = form(2, (int64_t[]){in, out}, out, 1, out, 0);
    forms[flat_first ? 1 : 0] = form(3, (int64_t[]){1, in, out}, out, 1, out, 0);
    return 2;
}

/* A kernel of MinkowskiEngine or TorchSparse. */
static int kernel_forms(enum pnet_library l, const struct pnet_axes *a,
    const struct pnet_weight_role *p, struct pnet_form *forms)
{
    int64_t volume = p->shape[0], in = p->shape[1], out = p->shape[2];
    bool minkowski = l == PNET_LIBRARY_MINKOWSKI;
    if (p->groups > 1) {
        if (!minkowski || in != 1 || out != p->groups) return 0;
        forms[0] = form(2, (int64_t[]){volume, out}, 0, 1, out, 0);
        place_cells(&forms[0], a, p->kernel, out, true);
        return 1;
    }
    if (volume == 1) return turned_forms(in, out, p->alone, forms);
    forms[0] = form(3, (int64_t[]){volume, in, out}, out, 1, out, 0);
    place_cells(&forms[0], a, p->kernel, in * out, minkowski || p->kernel % 2 == 1);
    return 1;
}

/* A kernel of one cell on one level in spconv. From 2.1 to 2.3.8 its shape says [out, in], but spconv multiplies features by
   weight.view(in, out), so the memory is [in, out]. Strided kernels of one cell are not read so, nor are groups, which
   pnet.torch.spconv alone has. */
static struct pnet_form spconv_product(int64_t in, int64_t out)
{
    return form(5, (int64_t[]){out, 1, 1, 1, in}, out, 1, out, 0);
}

static int spconv_forms(
    const struct pnet_axes *a, const struct pnet_weight_role *p, struct pnet_form *forms)
{
    int64_t volume = p->shape[0], in = p->shape[1], out = p->shape[2], k = p->kernel;
    if (p->alone && p->groups == 1) {
        forms[0] = spconv_product(in, out);
        return 1 + matrix_forms(in, out, 1, forms + 1);
    }
    forms[0] = form(5, (int64_t[]){out, k, k, k, in}, 1, volume * in, out, 0);
    place_cells(&forms[0], a, k, in, false);
    forms[0].other = k > 1 && out == k
                         ? "kernels [K, K, K, out, in] or [K, K, K, in, out] of an older spconv"
                         : NULL;
    return 1;
}

static int torch_forms(
    const struct pnet_axes *a, const struct pnet_weight_role *p, struct pnet_form *forms)
{
    int64_t volume = p->shape[0], in = p->shape[1], out = p->shape[2], k = p->kernel;
    int64_t block = out / p->groups;
    if (p->finer)
        forms[0] = form(5, (int64_t[]){in * p->groups, block, k, k, k}, block * volume, volume,
            block, in * block * volume);
    else
        forms[0] = form(5, (int64_t[]){out, in, k, k, k}, volume, in * volume, out, 0);
    place_cells(&forms[0], a, k, 1, false);
    return p->alone && p->groups == 1 ? 1 + matrix_forms(in, out, 3, forms + 1) : 1;
}

/* A vector: as it is, or as one row. */
static int vector_forms(int64_t length, bool row_first, struct pnet_form *forms)
{
    forms[row_first ? 1 : 0] = form(1, (int64_t[]){length}, 0, 1, length, 0);
    forms[row_first ? 0 : 1] = form(2, (int64_t[]){1, length}, 0, 1, length, 0);
    return 2;
}

int pnet_forms(enum pnet_library l, const struct pnet_axes *a, const struct pnet_weight_role *p,
    bool kernel_word, struct pnet_form forms[PNET_MOST_FORMS])
{
    bool kernels = (l == PNET_LIBRARY_MINKOWSKI || l == PNET_LIBRARY_TORCHSPARSE) && kernel_word;
    if (p->kind == PNET_PARAM_MATRIX) {
        int64_t out = p->shape[0], in = p->shape[1];
        if (kernels) return turned_forms(in, out, true, forms);
        int count = matrix_forms(in, out, l == PNET_LIBRARY_TORCH ? 4 : 1, forms);
        if (l != PNET_LIBRARY_SPCONV) return count;
        forms[count] = spconv_product(in, out);
        return count + 1;
    }
    if (p->kind == PNET_PARAM_CELLS) {
        if (l == PNET_LIBRARY_SPCONV) return spconv_forms(a, p, forms);
        if (l == PNET_LIBRARY_TORCH) return torch_forms(a, p, forms);
        if (kernels || !p->alone || p->groups > 1) return kernel_forms(l, a, p, forms);
        return matrix_forms(p->shape[1], p->shape[2], 1, forms);
    }
    if (p->dims == 1)
        return vector_forms(p->shape[0], kernels && l == PNET_LIBRARY_MINKOWSKI, forms);
    int64_t count = 1;
    for (int d = 0; d < p->dims; d++) count *= p->shape[d];
    forms[0] = form(p->dims, p->shape, 0, 1, count, 0);
    return 1;
}

const struct pnet_form *pnet_form_find(
    const struct pnet_form *forms, int count, int dims, const int64_t *shape)
{
    for (int i = 0; i < count; i++)
        if (forms[i].dims == dims &&
            memcmp(forms[i].shape, shape, (size_t)dims * sizeof *shape) == 0)
            return &forms[i];
    return NULL;
}

/* ---- the numbers ---- */

/* Returns the channels in and out of each cell; plain numbers count as channels out. */
static void channels(const struct pnet_weight_role *p, int64_t *in, int64_t *out)
{
    *in = *out = 1;
    if (p->kind == PNET_PARAM_CELLS) {
        *in = p->shape[1];
        *out = p->shape[2];
    } else if (p->kind == PNET_PARAM_MATRIX) {
        *in = p->shape[1];
        *out = p->shape[0];
    } else {
        for (int d = 0; d < p->dims; d++) *out *= p->shape[d];
    }
}

/* Copies the numbers of one cell and channel in; one of the two is not changed. `step`: from one channel out to the next in
   pnet. */
static void move_row(
    const struct pnet_form *f, int64_t out, float *theirs, float *ours, int64_t step, bool take)
{
    for (int64_t begin = 0, group = 0; begin < out; begin += f->block, group += f->group)
        for (int64_t b = 0; b < f->block; b++) {
            float *t = &theirs[group + b * f->out], *u = &ours[(begin + b) * step];
            if (take)
                *u = *t;
            else
                *t = *u;
        }
}

static void move(const struct pnet_form *f, const struct pnet_weight_role *role, float *theirs,
    float *ours, bool take)
{
    int64_t in, out, k = role->kernel;
    bool matrix = role->kind == PNET_PARAM_MATRIX;
    channels(role, &in, &out);
    for (int64_t cell = 0; cell < k * k * k; cell++) {
        int64_t at =
            cell / (k * k) * f->cell[0] + cell / k % k * f->cell[1] + cell % k * f->cell[2];
        for (int64_t i = 0; i < in; i++)
            move_row(f, out, theirs + at + i * f->in, ours + (matrix ? i : (cell * in + i) * out),
                matrix ? in : 1, take);
    }
}

void pnet_form_take(
    const struct pnet_form *f, const struct pnet_weight_role *p, const float *theirs, float *ours)
{
    move(f, p, (float *)(uintptr_t)theirs, ours, true);
}

void pnet_form_give(
    const struct pnet_form *f, const struct pnet_weight_role *p, const float *ours, float *theirs)
{
    move(f, p, theirs, (float *)(uintptr_t)ours, false);
}
