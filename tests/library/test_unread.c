/* Weights on which no loss, metric, output or result depends: they are not of the model's weights file, and asking for one says
   why. */
#include "tests/library/api.h"

#include <unistd.h>

static const char text[] = "pnet 1\n"
                           "input cloud {\n"
                           "  xyz   : position\n"
                           "  rgb   : feature[3]\n"
                           "  label : class[4] per point\n"
                           "}\n"
                           "net two(p: cloud) {\n"
                           "  a = p.rgb -> linear(8, name=\"body\") -> bn(name=\"norm\") -> relu\n"
                           "  return [a -> linear(4, name=\"used\"), a -> linear(5, "
                           "name=\"spare\") -> bn(name=\"last\")]\n"
                           "}\n"
                           "y = two(cloud)\n"
                           "loss ce = cross_entropy(y[0], cloud.label)\n";

static struct pnet_model *model(enum pnet_purpose purpose, const char *value, const char *output)
{
    const char *outputs[] = {output};
    struct pnet_model_options o = {.size = sizeof o,
        .purpose = purpose,
        .value = value,
        .outputs = outputs,
        .output_count = output != NULL};
    struct pnet_model *m = NULL;
    NEED(pnet_model_compile("two.pnet", text, sizeof text - 1, &o, &m, &e));
    return m;
}

/* Counts weights whose names have `part`; `folded`: those that are folded. */
static int count(const struct pnet_model *m, const char *part, bool folded)
{
    int found = 0;
    for (size_t i = 0; i < pnet_model_weights(m); i++) {
        struct pnet_weight_info w = {.size = sizeof w};
        NEED(pnet_model_weight(m, i, &w, &e));
        found += strstr(w.name, part) && (!folded || w.folded);
    }
    return found;
}

static const char spare[] = "two.spare.weight";
static float x[40];

static void test_trained(enum pnet_purpose purpose)
{
    struct pnet_model *m = model(purpose, NULL, NULL);
    struct pnet_session *s = api_session(m, NULL);
    NEED(pnet_session_init(s, &e));
    CHECK(count(m, "two.", false) == 8 && count(m, "two.", true) == 0);
    CHECK(count(m, "spare", false) == 0 && count(m, "last", false) == 0);
    REFUSED(pnet_session_get_weight(s, spare, x, 40, &e), PNET_USAGE,
        "the model does not use the weight `two.spare.weight`: no loss, metric or output depends "
        "on it");
    REFUSED(pnet_session_set_weight(s, spare, x, 40, &e), PNET_USAGE, "does not use the weight");
    REFUSED(pnet_session_get_weight(s, "two.sparse", x, 40, &e), PNET_USAGE, "has no weight");
    pnet_session_free(s);
    pnet_model_free(m);
}

static void test_inference(void)
{
    struct pnet_model *m = model(PNET_PURPOSE_INFER, "y[0]", NULL);
    struct pnet_session *s = api_session(m, NULL);
    NEED(pnet_session_init(s, &e));
    CHECK(count(m, "two.", false) == 8 && count(m, "spare", false) == 0);
    CHECKF(
        count(m, "body", true) == 2 && count(m, "norm", true) == 4 && count(m, "used", true) == 0,
        "%d", count(m, "two.", true));
    REFUSED(pnet_session_get_weight(s, spare, x, 40, &e), PNET_USAGE,
        "its result and outputs do not depend on it");
    REFUSED(pnet_session_get_weight(s, "two.body.weight", x, 24, &e), PNET_USAGE, "is folded");
    pnet_session_free(s);
    pnet_model_free(m);
}

/* An output makes the weight one of the model. */
static void test_output(void)
{
    struct pnet_model *m = model(PNET_PURPOSE_TRAIN, NULL, "y[1]");
    struct pnet_session *s = api_session(m, NULL);
    NEED(pnet_session_init(s, &e));
    CHECK(count(m, "spare", false) == 2 && count(m, "last", false) == 4);
    NEED(pnet_session_get_weight(s, spare, x, 40, &e));
    pnet_session_free(s);
    pnet_model_free(m);
}

/* A saved file has the weights that the model has, and no others; they fit where the others are not needed. */
static void test_saved(void)
{
    char path[] = "/tmp/pnet-unread-XXXXXX", bytes[8192];
    struct pnet_model *m = model(PNET_PURPOSE_TRAIN, NULL, NULL),
                      *first = model(PNET_PURPOSE_INFER, "y[0]", NULL),
                      *second = model(PNET_PURPOSE_INFER, "y[1]", NULL);
    struct pnet_session *s = api_session(m, NULL), *a = api_session(first, NULL),
                        *b = api_session(second, NULL);
    close(mkstemp(path));
    NEED(pnet_session_init(s, &e));
    NEED(pnet_session_save(s, path, &e));
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    bytes[n] = 0;
    /* the names stand behind the length of the header, eight bytes */
    CHECK(n > 8 && strstr(bytes + 8, "two.used.weight") && !strstr(bytes + 8, "spare"));
    if (f) fclose(f);
    NEED(pnet_session_load(a, path, &e));
    NEED(pnet_session_copy_weights(a, s, &e));
    REFUSED(pnet_session_load(b, path, &e), PNET_BAD_MODEL, "no tensor \"two.spare.");
    REFUSED(pnet_session_copy_weights(b, s, &e), PNET_USAGE, "no loss, metric or output depends");
    pnet_session_free(s);
    pnet_session_free(a);
    pnet_session_free(b);
    pnet_model_free(m);
    pnet_model_free(first);
    pnet_model_free(second);
    unlink(path);
}

int main(void)
{
    test_trained(PNET_PURPOSE_TRAIN);
    test_trained(PNET_PURPOSE_EVAL);
    test_inference();
    test_output();
    test_saved();
    return check_end();
}
