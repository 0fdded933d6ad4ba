/* Places on a square, for networks that fold it. */
#include "kernels/lattice.h"
#include "runtime/ops/common.h"

#include <math.h>

enum { LEVEL, EXTENT };

static int32_t side_of(int32_t count)
{
    return (int32_t)lround(sqrt((double)count));
}

static bool rule(struct pnet_rule *r)
{
    const struct pnet_level_info *l = &r->levels[r->attr[LEVEL].i];
    if (l->kind != PNET_GEO_POINTS) {
        pnet_rule_help(r, "points(level, count) makes such a level");
        return pnet_rule_fail(
            r, LEVEL, "lattice() takes a level of generated points, not %s", l->name);
    }
    int32_t side = side_of(l->count);
    if (side * side != l->count) {
        pnet_rule_help(r, "the next square is %d", (int)((side + 1) * (side + 1)));
        return pnet_rule_fail(
            r, LEVEL, "lattice() needs a square number of points, not %d", (int)l->count);
    }
    r->out = (struct pnet_type){PNET_F32, 2, (int)r->attr[LEVEL].i, 0, false};
    return true;
}

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, lattice)
    (pnet_op_rows(&x->out), side_of(x->out.generated), (float)x->attr[EXTENT].r, x->out.data);
}

static void reference(const struct pnet_exec *x)
{
    double *out = x->out.data, extent = x->attr[EXTENT].r;
    int32_t side = side_of(x->out.generated);
    for (int64_t row = 0; row < x->out.rows; row++) {
        int64_t place = row % x->out.generated, at[2] = {place % side, place / side};
        for (int a = 0; a < 2; a++)
            out[2 * row + a] =
                side > 1 ? extent * (2 * (double)at[a] / (double)(side - 1) - 1) : -extent;
    }
}

const struct pnet_op pnet_op_lattice = {
    .name = "lattice",
    .class_ = PNET_LAYER,
    .summary = "Places on a square, for networks that fold it into a surface",
    .doc =
        "On a level of `q * q` generated points for each row, point `r` of a row gets the place "
        "`(r % q, r / q)` of a square lattice from `-extent` to `extent` on both axes: channel 0 "
        "runs fastest. With `q = 1` the place is `-extent` on both axes.\n\n"
        "Yang, Feng, Shen, Tian, FoldingNet, 2018; Yuan et al., PCN, 2018.",
    .args =
        {
            [LEVEL] = {"level", PNET_ARG_LEVEL, NULL, 0, 0, NULL,
                "generated points, a square number"},
            [EXTENT] = {"extent", PNET_ARG_REAL, NULL, 0, 1e6, NULL, "half the side of the square"},
        },
    .flags = PNET_NO_GRAD,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .reference = reference,
    .cases = "lattice(points(sample, 9), 0.5)\n"
             "lattice(points(g[0], 4), extent=5%) -> linear(3)\n"
             "lattice(points(points(sample, 3), 1), 1)\n",
};
