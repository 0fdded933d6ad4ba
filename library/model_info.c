/* What a model has: diagnostics, inputs, weights, objectives, its result. */
#include "library/library.h"

#include <string.h>

static bool has_plan(const struct pnet_model *m)
{
    return pnet_handle_is(m, PNET_CLASS_MODEL) && m->plan;
}

size_t pnet_model_diagnostics(const struct pnet_model *m)
{
    return pnet_handle_is(m, PNET_CLASS_MODEL) ? m->diagnostic_count : 0;
}

enum pnet_status pnet_model_diagnostic(
    const struct pnet_model *m, size_t index, struct pnet_diagnostic *d, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MODEL, m), PNET_A(ANY, d));
    enum pnet_status st = pnet_library_index("diagnostic", index, m->diagnostic_count, e);
    return st ? st : pnet_library_give("pnet_diagnostic", &m->diagnostics[index], d, sizeof *d, e);
}

size_t pnet_model_inputs(const struct pnet_model *m)
{
    return has_plan(m) ? (size_t)m->plan->input_count : 0;
}

enum pnet_status pnet_model_input(
    const struct pnet_model *m, size_t index, struct pnet_input_info *i, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MODEL, m), PNET_A(ANY, i));
    enum pnet_status st = pnet_library_index("input", index, pnet_model_inputs(m), e);
    if (st) return st;
    const struct pnet_input *in = &m->plan->inputs[index];
    bool pose = pnet_input_is_pose(in);
    struct pnet_input_info info = {.name = in->name,
        .fields = pose ? 0 : (size_t)in->field_count,
        .read = !(pose ? in->fields[0].unused : in->unused)};
    return pnet_library_give("pnet_input_info", &info, i, sizeof info, e);
}

enum pnet_status pnet_model_field(const struct pnet_model *m, size_t input, size_t index,
    struct pnet_field_info *f, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MODEL, m), PNET_A(ANY, f));
    struct pnet_input_info of = {.size = sizeof of};
    enum pnet_status st = pnet_model_input(m, input, &of, e);
    if (!st) st = pnet_library_index("field", index, of.fields, e);
    if (st) return st;
    const struct pnet_input_field *field = &m->plan->inputs[input].fields[index];
    struct pnet_field_info info = {.name = field->name,
        .width = field->kind == PNET_INPUT_POSITION ? 3 : field->width,
        .classes = field->classes,
        .per_cloud = field->per_cloud,
        .read = of.read && !field->unused};
    switch (field->kind) {
    case PNET_INPUT_POSITION:
        info.kind = PNET_FIELD_POSITION;
        info.read = of.read;
        break;
    case PNET_INPUT_CLASS: info.kind = PNET_FIELD_CLASS; break;
    case PNET_INPUT_FEATURE:
    case PNET_INPUT_POSE: info.kind = PNET_FIELD_FEATURE; break;
    }
    return pnet_library_give("pnet_field_info", &info, f, sizeof info, e);
}

size_t pnet_model_weights(const struct pnet_model *m)
{
    return pnet_handle_is(m, PNET_CLASS_MODEL) ? m->weight_count : 0;
}

static bool is_folded(const struct pnet_plan *p, int param)
{
    bool folded = p->params[param].offset < 0;
    for (int i = 0; i < p->fold_count; i++)
        folded |= p->folds[i].weight == param || p->folds[i].bias == param;
    return folded;
}

enum pnet_status pnet_model_weight(
    const struct pnet_model *m, size_t index, struct pnet_weight_info *w, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MODEL, m), PNET_A(ANY, w));
    enum pnet_status st = pnet_library_index("weight", index, m->weight_count, e);
    if (st) return st;
    const struct pnet_plan_param *q = &m->plan->params[m->weights[index]];
    struct pnet_weight_info info = {.name = q->name,
        .dims = q->info.dims,
        .shape = {1, 1, 1, 1},
        .count = q->count,
        .trained = q->info.trained,
        .folded = is_folded(m->plan, m->weights[index])};
    memcpy(info.shape, q->info.shape, (size_t)q->info.dims * sizeof *info.shape);
    return pnet_library_give("pnet_weight_info", &info, w, sizeof info, e);
}

size_t pnet_model_objectives(const struct pnet_model *m)
{
    return has_plan(m) ? (size_t)m->plan->objective_count : 0;
}

enum pnet_status pnet_model_objective(
    const struct pnet_model *m, size_t index, struct pnet_objective_info *o, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MODEL, m), PNET_A(ANY, o));
    enum pnet_status st = pnet_library_index("objective", index, pnet_model_objectives(m), e);
    if (st) return st;
    struct pnet_objective_info info = {
        .name = m->plan->objectives[index].name, .metric = m->plan->objectives[index].metric};
    return pnet_library_give("pnet_objective_info", &info, o, sizeof info, e);
}

/* The rows of a level. Generated points come before the input that they belong to. */
static enum pnet_rows rows_of(const struct pnet_level_info *l)
{
    if (l->kind == PNET_GEO_POINTS) return PNET_ROWS_GENERATED;
    if (l->input < 0) return PNET_ROWS_SAMPLES;
    return l->finer >= 0 ? PNET_ROWS_CELLS : PNET_ROWS_POINTS;
}

enum pnet_status pnet_model_result(
    const struct pnet_model *m, struct pnet_result_info *r, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MODEL, m), PNET_A(ANY, r));
    const struct pnet_plan *p = m->plan;
    if (!p || p->result < 0)
        return pnet_error_set(e, PNET_USAGE, "%s",
            p ? "the model gives no result: it was not compiled for PNET_PURPOSE_INFER"
              : "the model has errors");
    const struct pnet_plan_tensor *t = &p->tensors[p->result];
    const struct pnet_level_info *l = &p->levels[t->type.level];
    const char *name = pnet_compilation_result(m->compilation);
    struct pnet_result_info info = {.name = name ? name : t->name,
        .width = t->type.width,
        .classes = p->result_classes,
        .rows = rows_of(l) == PNET_ROWS_CELLS ? PNET_ROWS_POINTS : rows_of(l)};
    if (info.rows == PNET_ROWS_POINTS) info.input = p->inputs[p->result_input].name;
    return pnet_library_give("pnet_result_info", &info, r, sizeof info, e);
}

size_t pnet_model_outputs(const struct pnet_model *m)
{
    return has_plan(m) ? (size_t)m->plan->output_count : 0;
}

enum pnet_status pnet_model_output(
    const struct pnet_model *m, size_t index, struct pnet_output_info *o, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MODEL, m), PNET_A(ANY, o));
    enum pnet_status st = pnet_library_index("output", index, pnet_model_outputs(m), e);
    if (st) return st;
    const struct pnet_plan *p = m->plan;
    const struct pnet_plan_output *output = &p->outputs[index];
    const struct pnet_plan_tensor *t = &p->tensors[output->tensor];
    const struct pnet_level_info *l = &p->levels[t->type.level];
    struct pnet_output_info info = {.name = output->name,
        .path = t->name,
        .width = t->type.width,
        .rows = rows_of(l),
        .gradient = output->gradient >= 0};
    if (l->input >= 0) info.input = p->inputs[l->input].name;
    if (info.rows == PNET_ROWS_CELLS) info.cell = l->cell;
    return pnet_library_give("pnet_output_info", &info, o, sizeof info, e);
}
