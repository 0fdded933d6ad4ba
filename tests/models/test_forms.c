/* Which forms of triplet sets a plan has made: those that the kernels of its device, precision and algorithms read, and no
   others. */
#include "runtime/geo/triplets.h"
#include "runtime/run/slot.h"
#include "tests/models/batch.h"

/* Sets, in the order in which layers ask for them: first 27 cells and no gradient beyond it, then groups of one, many
   cells, going coarser, and finer by the same set. */
static const char text[] =
    "pnet 1\n"
    "input cloud { xyz : position  rgb : feature[3]  label : class[5] per point }\n"
    "net all(p: cloud) {\n"
    "  g = grid(p, 50cm * [1, 2])\n"
    "  a = p.rgb -> conv(8, kernel=3, radius=1m, to=g[0])\n"
    "  b = a -> conv(8, kernel=3, groups=8)\n"
    "  c = b -> conv(8, kernel=11)\n"
    "  d = c -> conv(16, kernel=2, to=g[1]) -> conv(8, kernel=2, to=g[0])\n"
    "  return d -> linear(5)\n"
    "}\n"
    "y = all(cloud)\n"
    "loss ce = cross_entropy(y, cloud.label)\n";
enum { FIRST, DEPTHWISE, MANY, BETWEEN, SETS };

static struct pnet_compilation *compile(enum pnet_purpose_kind purpose)
{
    struct pnet_compile_options o = {.purpose = purpose};
    return need_plan(pnet_compile_text("all.pnet", text, strlen(text), &o), "the model");
}

static void check_forms(const char *what, const struct pnet_plan *p, const struct pnet_target *t,
    const unsigned want[SETS])
{
    struct pnet_bound *b;
    struct pnet_error e;
    int sets = 0;
    need(pnet_bound_new(p, t, &b, &e), &e, what);
    for (int i = 0; i < p->geo_count; i++) {
        if (p->geo[i].request.kind != PNET_GEO_TRIPLETS) continue;
        unsigned forms = b->forms[i];
        CHECKF(sets < SETS && forms == want[sets], "%s: forms %u of set %d", what, forms, sets);
        for (int form = 0; form < 2; form++)
            CHECK(pnet_set_has_tiles(forms, form) ==
                  ((forms >> form & PNET_FORM_FORWARD_TILES) != 0));
        sets++;
    }
    CHECK(sets == SETS);
    pnet_bound_free(b);
}

enum { F = PNET_FORM_FORWARD, T = PNET_FORM_TRANSPOSED };

static void check(enum pnet_purpose_kind purpose, enum pnet_device_kind device,
    enum pnet_precision precision, enum pnet_conv_algo algo, const unsigned want[SETS])
{
    struct pnet_target t = {.where = {device, 0}, .precision = precision, .algo = algo};
    struct pnet_compilation *c = compile(purpose);
    char what[64];
    snprintf(what, sizeof what, "device %d, precision %d, %s, %s", (int)device, (int)precision,
        pnet_conv_algo_names[algo], purpose == PNET_FOR_TRAINING ? "training" : "inference");
    check_forms(what, pnet_compilation_plan(c), &t, want);
    pnet_compilation_free(c);
}

enum { FT = PNET_FORM_FORWARD_TILES, TT = PNET_FORM_TRANSPOSED_TILES };

static void check_cuda(void)
{
    static const unsigned infer[SETS] = {FT, F, F, FT | TT},
                          train[SETS] = {FT, F | T, F | T, FT | TT},
                          listed_infer[SETS] = {F, F, F, F | T},
                          listed[SETS] = {F, F | T, F | T, F | T};
    check(PNET_FOR_INFERENCE, PNET_CUDA, PNET_FP32, PNET_ALGO_DEFAULT, infer);
    check(PNET_FOR_INFERENCE, PNET_CUDA, PNET_BF16, PNET_ALGO_DEFAULT, infer);
    check(PNET_FOR_TRAINING, PNET_CUDA, PNET_BF16, PNET_ALGO_DEFAULT, train);
    check(PNET_FOR_TRAINING, PNET_CUDA, PNET_BF16, PNET_ALGO_IMPLICIT, listed);
    for (int a = PNET_ALGO_DEFAULT + 1; a < PNET_ALGO_COUNT; a++) {
        check(PNET_FOR_INFERENCE, PNET_CUDA, PNET_FP32, (enum pnet_conv_algo)a, listed_infer);
        check(PNET_FOR_TRAINING, PNET_CUDA, PNET_FP32, (enum pnet_conv_algo)a, listed);
    }
}

/* A table of algorithms: dF of one layer reads triplets, all else tiles; and while algorithms are tried both are there. */
static void check_table(void)
{
    static const unsigned want[SETS] = {FT, F | T, F | T, FT | T | TT},
                          choosing[SETS] = {F | FT, F | T, F | T, F | T | FT | TT};
    struct pnet_compilation *c = compile(PNET_FOR_TRAINING);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_algos *algos = must(calloc((size_t)p->node_count, sizeof *algos));
    struct pnet_target t = {.where = {PNET_CUDA, 0}, .precision = PNET_BF16};
    for (int n = 0; n < p->node_count; n++)
        if (pnet_plan_convolves(p, n) && p->tensors[p->nodes[n].out].type.width == 16)
            algos[n].of[PNET_DF] = PNET_ALGO_IMPLICIT;
    t.algos = algos;
    check_forms("a table", p, &t, want);
    t.algos = NULL;
    t.choosing = true;
    check_forms("choosing", p, &t, choosing);
    free(algos);
    pnet_compilation_free(c);
}

int main(void)
{
    static const unsigned infer[SETS] = {F, F, F, F | T}, train[SETS] = {F, F | T, F | T, F | T};
    check(PNET_FOR_INFERENCE, PNET_CPU, PNET_FP32, PNET_ALGO_DEFAULT, infer);
    check(PNET_FOR_TRAINING, PNET_CPU, PNET_FP32, PNET_ALGO_DEFAULT, train);
    check_cuda();
    check_table();
    return check_end();
}
