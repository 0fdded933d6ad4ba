/* Numbers computed once in double with PyTorch 2.15 on the CPU: cross_entropy (weight,
   label_smoothing, ignore_index), group_norm, batch_norm, gelu, and a Lovasz-softmax of sort and
   cumsum (classes present); with JAX 0.10 on the CPU, by automatic differentiation of the formulas
   in docs/layers.md: focal, dice, huber and l1. */
#include "tests/ops/opcase.h"

static const double cross_entropy_gradient[] = {-0.22992608, -0.00477418255, 0.234700262,
    0.0825497558, -0.0145293013, -0.0680204545, 0, 0, 0, 0.0605033932, -0.117084924, 0.0565815312,
    0.00962700344, 0.0866879354, -0.0963149388};
static const double lovasz_gradient[] = {-0.005808474, -0.00467686583, 0.0104853398, 0.024476778,
    0.000575638645, -0.0250524167, 0, 0, 0, 0.0174680531, -0.0328835559, 0.0154155028,
    -0.0133918411, 0.0445289247, -0.0311370835};
static const double focal_gradient[] = {-0.262948384, 0.0124705567, 0.250477827, 0.0784429418,
    0.00184480117, -0.080287743, 0, 0, 0, 0.0229912801, -0.0432810135, 0.0202897335, 0.0186898164,
    0.107552467, -0.126242284};
static const double dice_gradient[] = {-0.00692571965, -0.00214425772, 0.00906997737, 0.0442442527,
    0.0010098932, -0.0452541459, 0, 0, 0, 0.01638258, -0.031815999, 0.015433419, -0.0114321034,
    0.0546157495, -0.0431836461};
static const double plain_dice_gradient[] = {-0.00491955885, 0.00249827757, 0.00242128127,
    0.0354765855, 0.00195256804, -0.0374291535, 0, 0, 0, 0.0195234982, -0.0397070026, 0.0201835044,
    -0.00386299195, 0.031843652, -0.02798066};
static const double huber_gradient[] = {-0.05, -0.05, 0.05, 0.05, -0.05, 0.05, 0.0291666667, 0.05,
    -0.00833333333, -0.025, 0.05, -0.05, -0.05, 0.05, 0.05};
static const double l1_gradient[] = {-0.0666666667, -0.0666666667, 0.0666666667, 0.0666666667,
    -0.0666666667, 0.0666666667, 0.0666666667, 0.0666666667, -0.0666666667, -0.0666666667,
    0.0666666667, -0.0666666667, -0.0666666667, 0.0666666667, 0.0666666667};
static const double group_out[] = {-0.888473285, 0.967093582, 1.30801399, -3.53643089, -0.80620724,
    1.62522194, -0.864067713, -2.83575938, 0.839113658, 1.37842381, 1.37808114, 0.527463908,
    0.674581568, 0.226699178, -0.583799106, 0.807732515, -1.29980351, 1.5429559, -1.00420202,
    -1.99495355};
static const double group_gradient[] = {0.622909808, -0.815366836, -0.841850686, -0.0555428963,
    0.742333487, 0.437283673, 0.421967154, 0.735958673, -0.242100768, -0.032460268, -0.789949545,
    -1.21034024, -0.480948127, -0.538144739, 0.629571719, -0.893739609, 0.0257914113, 0.280702359,
    0.318164871, 1.68576056};
static const double batch_out[] = {-0.675050842, 0.823768994, 1.43175627, -3.41421469, -0.58129378,
    1.46460901, -0.603490636, -2.62006512, 1.29384745, 1.22429401, 1.49740939, 1.19185281,
    1.10633332, 0.102823972, -0.340878133, 1.50951264, -1.14383615, 1.38450401, -0.734796888,
    -1.66708564};
static const double batch_gradient[] = {0.291955578, -0.536144133, -0.0696159557, -1.09080855,
    0.464963943, 0.219178131, -0.0394477484, 0.124855643, 0.0810917272, -0.0640677179, 0.0162424299,
    -0.551982722, -0.264925003, 0.256270872, 0.303985794, -0.0657170461, -0.573086246, 0.124762848,
    -0.21116452, 1.58365267};
static const double batch_gradient_weight[] = {-5.63479939, -1.39382704, -2.92977074, -4.17722674};
static const double batch_gradient_bias[] = {2.375, -3.375, -0.375, 1.125};
static const double batch_running_mean[] = {0.4275, 0.0675, -0.875, 1.7525};
static const double batch_running_var[] = {1.1221875, 2.104375, 0.903125, 1.2096875};
static const double gelu_out[] = {0.149676581, 1.3997892, -0.166240956, -0.158655254, 0.242313663,
    -0.084632079, -0.0569931783, -0.132686337};
static const double gelu_gradient[] = {1.1299817, -2.53680568, 0.0456636928, -0.0312433015,
    1.374827, 0.0302608516, 0.0492889527, 0.214384573};

/* The k-th set of inputs: multiples of 1/8 between -2.5 and 2.5. */
static float input(int64_t i, int64_t k)
{
    return (float)((i * i * 7 + i * 3 + k * 11) % 41 - 20) / 8;
}

static void set_input(struct opcase *c, int64_t k)
{
    float *in = c->in_data[0];
    for (size_t i = 0; i < type_count(c->world, c->in[0]); i++) in[i] = input((int64_t)i, k);
}

static void set_affine(struct opcase *c)
{
    const double weight[] = {1, 0.5, -1, 2}, bias[] = {0, 1, 0.25, -1};
    memcpy(c->param_start[0], weight, sizeof weight);
    memcpy(c->param_start[1], bias, sizeof bias);
}

static void compare(const char *what, size_t n, const float *got, const double *want)
{
    double error = distance(n, got, want);
    CHECKF(error < 2e-6, "%s is off by %g", what, error);
}

static void run_loss(struct opcase *c, const char *what, double loss, const double *gradient)
{
    opcase_forward(c);
    opcase_backward(c, false, false);
    CHECKF(fabs((double)c->out[0] - loss) < 1e-6, "%s: %.9g", what, (double)c->out[0]);
    compare(what, 15, c->gin[0], gradient);
    opcase_free(c);
}

enum variant { PLAIN, CROSS_ENTROPY, FOCAL };

static void test_loss(const struct world *w, const char *name, enum variant variant, int64_t square,
    double loss, const double *gradient)
{
    static const double weights[] = {1, 2, 0.5};
    const int32_t label[] = {0, 2, -1, 1, 2};
    const float one = 1;
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, 3, POINTS);
    opcase_label(&c, 3, POINTS);
    if (variant != PLAIN) opcase_list(&c, "weights", weights, 3);
    if (variant == CROSS_ENTROPY) opcase_real(&c, "smoothing", 0.1);
    if (variant == FOCAL) opcase_real(&c, "gamma", 1.5);
    if (square >= 0) opcase_int(&c, "square", square);
    c.seeds = &one;
    opcase_fill(&c);
    set_input(&c, 0);
    memcpy(c.in_data[1], label, sizeof label);
    run_loss(&c, name, loss, gradient);
}

/* Weights of classes and smoothing together, with PyTorch 2.4.1 (label_smoothing, weight, ignore_index) in double. The weight of
   the label for all terms of its point would give 2.482321 and 2.095302 at the last two. */
static void test_smoothing(const struct world *w)
{
    static const double weights[] = {1, 2, 0.5, 3};
    static const double losses[][2] = {{0, 2.6481864906118533}, {0.1, 2.5967151799299644},
        {0.3, 2.4937725585661865}, {1, 2.1334733837929645}};
    static const double gradient[] = {0.0176533415027, -0.0165633513893, 0.0197361631312,
        -0.0208261532446, -0.106548756556, -0.0103949104019, -0.00293949125005, 0.119883158208, 0,
        0, 0, 0, 0.258626808295, -0.236641179192, -0.00082098124669, -0.0211646478556,
        0.0879807692308, 0.0764423076923, 0.09375, -0.258173076923}; /* at 0.3 */
    static const float scores[] = {
        1, -0.5F, 2, 0.25F, 0.5F, 0.5F, -1, 3, -2, 1.5F, 0.75F, -0.25F, 4, -1, 0, 1, 0, 0, 0, 0};
    static const int32_t label[] = {2, 0, -1, 1, 3};
    const float one = 1;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        struct opcase c = opcase_of(w, "cross_entropy");
        opcase_in(&c, 4, POINTS);
        opcase_label(&c, 4, POINTS);
        opcase_list(&c, "weights", weights, 4);
        opcase_real(&c, "smoothing", losses[i][0]);
        c.seeds = &one;
        opcase_fill(&c);
        memcpy(c.in_data[0], scores, sizeof scores);
        memcpy(c.in_data[1], label, sizeof label);
        opcase_forward(&c);
        opcase_backward(&c, false, false);
        CHECKF(fabs((double)c.out[0] - losses[i][1]) < 1e-6, "smoothing %g: %.9g", losses[i][0],
            (double)c.out[0]);
        if (losses[i][0] == 0.3) compare("smoothing and weights", 20, c.gin[0], gradient);
        opcase_free(&c);
    }
}

/* The target is half of the prediction, backwards. */
static void test_difference(
    const struct world *w, const char *name, double loss, const double *gradient)
{
    const float one = 1;
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, 3, POINTS);
    opcase_in(&c, 3, POINTS);
    if (strcmp(name, "huber") == 0) opcase_real(&c, "delta", 0.75);
    c.seeds = &one;
    opcase_fill(&c);
    set_input(&c, 0);
    for (int64_t i = 0; i < 15; i++) ((float *)c.in_data[1])[i] = input(14 - i, 0) / 2;
    run_loss(&c, name, loss, gradient);
}

static void test_group(const struct world *w)
{
    float seeds[20];
    for (int64_t i = 0; i < 20; i++) seeds[i] = input(i, 3);
    struct opcase c = opcase_of(w, "groupnorm");
    opcase_in(&c, 4, POINTS);
    opcase_int(&c, "groups", 2);
    c.seeds = seeds;
    opcase_fill(&c);
    set_input(&c, 1);
    set_affine(&c);
    opcase_forward(&c);
    opcase_backward(&c, false, false);
    compare("groupnorm", 20, c.out, group_out);
    compare("gradient of groupnorm", 20, c.gin[0], group_gradient);
    opcase_free(&c);
}

static void test_batch(const struct world *w)
{
    const double mean[] = {0.5, 0, -1, 2}, variance[] = {1, 2, 0.5, 1};
    float seeds[20];
    for (int64_t i = 0; i < 20; i++) seeds[i] = input(i, 3);
    struct opcase c = opcase_of(w, "bn");
    opcase_in(&c, 4, POINTS);
    c.seeds = seeds;
    opcase_fill(&c);
    set_input(&c, 1);
    set_affine(&c);
    memcpy(c.param_start[2], mean, sizeof mean);
    memcpy(c.param_start[3], variance, sizeof variance);
    opcase_forward(&c);
    opcase_backward(&c, false, false);
    compare("bn", 20, c.out, batch_out);
    compare("gradient of bn", 20, c.gin[0], batch_gradient);
    compare("gradient of bn's weight", 4, c.gparam[0], batch_gradient_weight);
    compare("gradient of bn's bias", 4, c.gparam[1], batch_gradient_bias);
    compare("running mean", 4, c.param[2], batch_running_mean);
    compare("running variance", 4, c.param[3], batch_running_var);
    opcase_free(&c);
}

static void test_gelu(void)
{
    const int64_t sizes[] = {8};
    struct world w = world_make(1, sizes);
    float seeds[8];
    for (int64_t i = 0; i < 8; i++) seeds[i] = input(i, 3);
    struct opcase c = opcase_of(&w, "gelu");
    opcase_in(&c, 1, POINTS);
    c.seeds = seeds;
    opcase_fill(&c);
    set_input(&c, 2);
    opcase_forward(&c);
    opcase_backward(&c, false, false);
    compare("gelu", 8, c.out, gelu_out);
    compare("gradient of gelu", 8, c.gin[0], gelu_gradient);
    opcase_free(&c);
    world_free(&w);
}

int main(void)
{
    const int64_t sizes[] = {5};
    struct world w = world_make(1, sizes);
    test_loss(&w, "cross_entropy", CROSS_ENTROPY, -1, 1.67650479, cross_entropy_gradient);
    test_smoothing(&w);
    test_loss(&w, "lovasz_softmax", PLAIN, -1, 0.768060362, lovasz_gradient);
    test_loss(&w, "focal", FOCAL, -1, 1.34187882, focal_gradient);
    test_loss(&w, "dice", PLAIN, 1, 0.651634934, dice_gradient);
    test_loss(&w, "dice", PLAIN, 0, 0.711058773, plain_dice_gradient);
    test_difference(&w, "huber", 0.830338542, huber_gradient);
    test_difference(&w, "l1", 1.45416667, l1_gradient);
    test_group(&w);
    test_batch(&w);
    test_gelu();
    world_free(&w);
    return check_end();
}
