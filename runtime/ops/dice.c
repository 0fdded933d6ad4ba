/* Soft Dice loss. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL, SQUARE };
enum { SLOPE };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_labels_rule(r, "dice", true)) return false;
    int32_t classes = r->in[IN].width;
    if (classes > INT32_MAX / 2)
        return pnet_rule_fail(r, LABEL, "dice() cannot take %d classes", (int)classes);
    r->out = (struct pnet_type){PNET_F32, 1, r->scalar_level, 0, false};
    pnet_rule_save(r, (struct pnet_type){PNET_F64, 2 * classes, r->scalar_level, 0, false}, true);
    return true;
}

static struct pnet_dice loss_of(const struct pnet_exec *x)
{
    return (struct pnet_dice){
        .targets = pnet_op_targets(x), .x = x->in[IN].data, .square = x->attr[SQUARE].i};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_dice d = loss_of(x);
    (void)backward;
    return PNET_WORK(x->device, dice_work)(&d);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_dice d = loss_of(x);
    PNET_KERNEL(x, dice)(&d, x->out.data, x->saved[SLOPE].data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_dice d = loss_of(x);
    const double *slope = x->saved[SLOPE].data;
    const float *gloss = x->gout.data;
    if (x->gin[IN].data) PNET_KERNEL(x, dice_backward)
    (&d, slope, gloss, x->gin_add[IN], x->gin[IN].data, x->work);
}

static struct pnet_mean mean(const struct pnet_exec *x, double value)
{
    return pnet_op_labels_mean(x, NULL, value);
}

/* Class by class: 1 - 2 sum of p g / (sum of p^2 or p, and of g), g being 1 at labels of the class. */
static void reference(const struct pnet_exec *x)
{
    const int32_t *label = x->in[LABEL].data;
    double *out = x->out.data, sum = 0;
    int32_t classes = x->in[IN].width, present = 0;
    for (int32_t class = 0; class < classes; class ++) {
        double both = 0, mass = 0, labels = 0;
        for (int64_t point = 0; point < x->in[LABEL].rows; point++) {
            int64_t row = x->geo[0] ? x->geo[0]->parent[point] : point;
            const double *scores = (const double *)x->in[IN].data + row * classes;
            double total = 0, g = label[point] == class;
            if (label[point] < 0 || label[point] >= classes) continue;
            for (int32_t c = 0; c < classes; c++) total += exp(scores[c] - scores[class]);
            both += g / total;
            mass += x->attr[SQUARE].i ? 1 / (total * total) : 1 / total;
            labels += g;
        }
        if (labels == 0) continue;
        sum += 1 - 2 * both / (mass + labels);
        present++;
    }
    *out = present ? sum / present : 0;
}

const struct pnet_op pnet_op_dice = {
    .name = "dice",
    .class_ = PNET_LOSS,
    .summary = "Soft Dice loss: a smooth stand-in for 1 - the mean F1 score",
    .doc = "For each class c, over all labelled points of the batch, with `p = softmax(x)[c]` and "
           "`g` 1 where the label is c, else 0:\n\n"
           "`1 - 2 * sum of p g / (sum of p^2 + sum of g^2)`.\n\n"
           "The loss is the mean over the classes that occur among the labels of the batch. "
           "Classes without labels are left out, so no denominator is 0 and no constant is added "
           "to it; probability given to such a class lowers the score of the labelled classes. The "
           "label -1 is ignored; if all labels are ignored, the loss is 0. Takes scores, without a "
           "softmax before it. Levels are treated as in `cross_entropy`.\n\n"
           "The sum of squares follows Milletari, Navab, Ahmadi, V-Net, 2016; with `square=no` the "
           "denominator is `sum of p + sum of g`, as in Sudre et al., Generalised Dice overlap, "
           "2017, equation 2, class by class.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "scores, one channel a class"},
            [LABEL] = {"label", PNET_ARG_LABEL, NULL, 0, 0, NULL, "labels"},
            [SQUARE] = {"square", PNET_ARG_BOOL, "yes", 0, 0, NULL,
                "square probabilities in the denominator"},
        },
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = mean,
    .cases = "dice(p.f -> linear(5), p.label)\n"
             "dice(x -> linear(5), p.label, square=no)\n"
             "dice(z -> linear(5), p.label)\n"
             "dice(t -> linear(5), p.tag, square=no)\n",
};
