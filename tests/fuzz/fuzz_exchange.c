/* Any bytes as the weights of another library: taken, or listed as what does not fit, and a map is proposed for them. */
#include "compiler/compile.h"
#include "runtime/exchange/exchange.h"
#include "runtime/exchange/propose.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char model[] =
    "pnet 1\n"
    "input p { xyz : position  f : feature[2] }\n"
    "net n(p: cloud) {\n"
    "  g = grid(p, 1m * [1, 2])\n"
    "  a = p.f -> pool(mean, to=g[0]) -> conv(2, kernel=3, name=\"a\") -> bn(name=\"b\")\n"
    "  c = a -> conv(4, kernel=2, groups=2, to=g[1], name=\"c\") -> conv(2, kernel=1, bias=yes, "
    "name=\"k\")\n"
    "  return c -> conv(2, kernel=2, to=g[0], name=\"d\") -> linear(3, name=\"e\")\n"
    "}\n"
    "y = n(p)\n";

static const struct pnet_plan *plan(void)
{
    static struct pnet_compilation *c;
    struct pnet_compile_options o = {.purpose = PNET_FOR_EVAL, .no_fusion = true};
    if (!c) c = pnet_compile_text("model", model, strlen(model), &o);
    if (!c || !pnet_compilation_plan(c)) abort();
    return pnet_compilation_plan(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct pnet_name_rule rule = {.pattern = "m.*", .to = "n.*"};
    static const struct pnet_name_rules map = {&rule, 1};
    struct pnet_safetensors *f;
    struct pnet_error e;
    if (pnet_safetensors_parse("input", bytes, size, &f, &e) != PNET_OK) return 0;
    for (int l = 0; l < PNET_LIBRARIES; l++) {
        struct pnet_exchange x = {
            plan(), (enum pnet_library)l, pnet_axes_usual((enum pnet_library)l), &map, "map"};
        struct pnet_exchanged r;
        struct pnet_proposal p;
        (void)pnet_export_record_check(x.library, "input", f, &e);
        if (pnet_import_weights(&x, "input", f, &r, &e) == PNET_OK) {
            size_t sum = 0;
            for (int k = 0; k < PNET_EXCHANGE_KINDS; k++) sum += r.counts[k];
            if (sum != r.count || r.tensor_count != r.counts[PNET_EXCHANGE_TAKEN]) abort();
            if (r.count - r.counts[PNET_EXCHANGE_MISSING] != f->count) abort();
            pnet_exchanged_free(&r);
        }
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        if (!out) abort();
        (void)pnet_propose_map(&x, f, out, &p, &e);
        fclose(out);
        free(text);
    }
    pnet_safetensors_free(f);
    return 0;
}
