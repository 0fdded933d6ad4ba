/* Every model in models/, with random weights: what is exported to a library and imported again has the same bits, and a
   library's tensors are the model's numbers in another order. */
#include "runtime/exchange/exchange.h"
#include "tests/models/batch.h"
#include "tests/store/folder.h"

#include <glob.h>

/* Weights that are all different from their neighbours. */
static void draw(const struct pnet_plan *p, float *numbers, struct pnet_safetensor *t)
{
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        float *x = numbers + q->offset;
        for (int64_t k = 0; k < q->count; k++) x[k] = (float)((k * 7919 + i) % 16777213) - 5000000;
        t[i] = (struct pnet_safetensor){.name = q->name, .dims = q->info.dims, .data = x};
        memcpy(t[i].shape, q->info.shape, sizeof q->info.shape);
    }
}

static double sum_of(const struct pnet_safetensor *t)
{
    double sum = 0;
    int64_t count = pnet_safetensor_count(t);
    for (int64_t k = 0; k < count; k++) sum += (double)((const float *)t->data)[k];
    return sum;
}

/* Returns whether the library has all layers of the model. */
static bool round_trip(
    const char *model, const struct pnet_exchange *x, const struct pnet_safetensors *ours)
{
    const char *path = in_folder("theirs"), *library = pnet_library_names[x->library];
    struct pnet_exchanged out, in;
    struct pnet_safetensors *theirs;
    struct pnet_error e;
    enum pnet_status st = pnet_export_weights(x, "ours", ours, &out, &e);
    if (st == PNET_BAD_MODEL && strstr(e.message, "groups=")) return false;
    need(st, &e, model);
    for (size_t i = 0; i < out.tensor_count; i++) {
        const struct pnet_safetensor *t = pnet_safetensors_find(ours, out.lines[i].ours);
        CHECKF(t && sum_of(t) == sum_of(&out.tensors[i]), "%s, %s: %s", model, library,
            out.tensors[i].name);
    }
    need(pnet_safetensors_write(path, out.tensors, out.tensor_count, NULL, 0, &e), &e, "writing");
    pnet_exchanged_free(&out);
    need(pnet_safetensors_read(path, &theirs, &e), &e, "reading");
    need(pnet_import_weights(x, path, theirs, &in, &e), &e, model);
    CHECKF(in.tensor_count == ours->count && in.count == ours->count, "%s, %s: %zu of %zu", model,
        library, in.tensor_count, ours->count);
    for (size_t i = 0; i < in.tensor_count; i++) {
        const struct pnet_safetensor *a = &in.tensors[i], *b = pnet_safetensors_find(ours, a->name);
        CHECKF(b && pnet_safetensor_count(a) == pnet_safetensor_count(b) &&
                   memcmp(a->data, b->data, (size_t)pnet_safetensor_count(a) * 4) == 0,
            "%s, %s: %s", model, library, a->name);
    }
    pnet_exchanged_free(&in);
    pnet_safetensors_free(theirs);
    return true;
}

static void check_model(const char *model)
{
    static const struct pnet_name_rules none;
    struct pnet_compile_options o = {.purpose = PNET_FOR_EVAL, .no_fusion = true};
    struct pnet_compilation *c = need_plan(pnet_compile_file(model, &o), model);
    struct pnet_exchange x = {.plan = pnet_compilation_plan(c), .map = &none, .map_name = "no map"};
    float *numbers = must(calloc((size_t)x.plan->param_elements + 1, sizeof *numbers));
    struct pnet_safetensor *t = must(calloc((size_t)x.plan->param_count + 1, sizeof *t));
    const char *path = in_folder("ours");
    struct pnet_safetensors *ours;
    struct pnet_error e;
    int had = 0;
    draw(x.plan, numbers, t);
    need(pnet_safetensors_write(path, t, (size_t)x.plan->param_count, NULL, 0, &e), &e, "writing");
    need(pnet_safetensors_read(path, &ours, &e), &e, "reading");
    for (int l = 0; l < PNET_LIBRARIES; l++) {
        /* of large models, which take seconds, one of each kind of name */
        bool one = l == PNET_LIBRARY_MINKOWSKI || l == PNET_LIBRARY_TORCH;
        if (!one && x.plan->parameter_count > 10000000) continue;
        x.library = (enum pnet_library)l;
        x.axes = pnet_axes_usual(x.library);
        had += round_trip(model, &x, ours);
    }
    printf("%s: %d tensors, %d libraries\n", model, x.plan->param_count, had);
    CHECKF(had >= 2, "%s: %d libraries", model, had); /* spconv and PyTorch have groups */
    pnet_safetensors_free(ours);
    free(numbers);
    free(t);
    pnet_compilation_free(c);
}

int main(void)
{
    glob_t models;
    make_folder();
    CHECK(glob("models/*.pnet", 0, NULL, &models) == 0 && models.gl_pathc >= 8);
    for (size_t i = 0; i < models.gl_pathc; i++) check_model(models.gl_pathv[i]);
    globfree(&models);
    remove_tree(test_folder);
    return check_end();
}
