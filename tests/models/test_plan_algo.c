/* The algorithm of convolutions on its way through the compiler. */
#include "compiler/pnet.h"
#include "tests/check.h"

static bool compiles(enum pnet_conv_algo algo, enum pnet_precision precision)
{
    struct pnet_compile_options o = {
        .purpose = PNET_FOR_TRAINING, .device = PNET_CUDA, .precision = precision, .algo = algo};
    struct pnet_compilation *c = pnet_compile_file("tests/cli/tiny.pnet", &o);
    const struct pnet_plan *p = c ? pnet_compilation_plan(c) : NULL;
    bool whole = p != NULL;
    CHECK(!p || p->algo == algo);
    CHECK(!c || whole == (pnet_compilation_errors(c) == 0));
    pnet_compilation_free(c);
    return whole;
}

int main(void)
{
    for (int a = 0; a < PNET_ALGO_COUNT; a++) {
        enum pnet_conv_algo algo = (enum pnet_conv_algo)a;
        CHECKF(compiles(algo, PNET_FP32), "%s in fp32", pnet_conv_algo_names[a]);
        CHECKF(compiles(algo, PNET_BF16) == pnet_conv_algo_is_usual(algo), "%s in bf16",
            pnet_conv_algo_names[a]);
    }
    return check_end();
}
