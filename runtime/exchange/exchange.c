#include "runtime/exchange/exchange.h"
#include "runtime/exchange/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pnet_exchanged_free(struct pnet_exchanged *r)
{
    for (size_t i = 0; r->names && i < r->name_count; i++) free(r->names[i]);
    free(r->names);
    free(r->lines);
    free(r->tensors);
    free(r->numbers);
    *r = (struct pnet_exchanged){0};
}

/* Makes room for all weights of the plan and `more` lines. The caller frees *r on failure too. */
static enum pnet_status make_room(
    const struct pnet_plan *p, size_t more, struct pnet_exchanged *r, struct pnet_error *e)
{
    size_t params = (size_t)p->param_count;
    *r = (struct pnet_exchanged){0};
    r->lines = calloc(params + more + 1, sizeof *r->lines);
    r->tensors = calloc(params + 1, sizeof *r->tensors);
    r->names = calloc(params + more + 1, sizeof *r->names);
    r->numbers = malloc((size_t)p->param_elements * sizeof *r->numbers + 1);
    bool made = r->lines && r->tensors && r->names && r->numbers;
    return made ? PNET_OK : pnet_error_memory(e);
}

static struct pnet_exchange_line *add_line(struct pnet_exchanged *r, enum pnet_exchange_kind kind)
{
    struct pnet_exchange_line *line = &r->lines[r->count++];
    line->kind = kind;
    r->counts[kind]++;
    return line;
}

static void put_tensor(struct pnet_exchange_line *line, const struct pnet_safetensor *t)
{
    line->theirs = t->name;
    line->type = t->dtype;
    line->dims = t->dims;
    memcpy(line->shape, t->shape, sizeof t->shape);
}

/* ---- import ---- */

/* Reads a tensor that fits, and adds it to those to write. */
static enum pnet_status take(const struct pnet_plan_param *q, const struct pnet_weight_role *role,
    const struct pnet_form *form, const struct pnet_safetensor *t, const char *file,
    struct pnet_exchanged *r, struct pnet_error *e)
{
    float *ours = r->numbers + q->offset, *theirs = malloc((size_t)q->count * sizeof *theirs + 1);
    if (!theirs) return pnet_error_memory(e);
    pnet_safetensor_floats(t, theirs);
    enum pnet_status st = pnet_floats_check_finite(file, t->name, theirs, q->count, e);
    if (!st) {
        struct pnet_safetensor *to = &r->tensors[r->tensor_count++];
        pnet_form_take(form, role, theirs, ours);
        *to = (struct pnet_safetensor){
            .name = q->name, .dtype = PNET_TENSOR_F32, .dims = q->info.dims, .data = ours};
        memcpy(to->shape, q->info.shape, sizeof q->info.shape);
    }
    free(theirs);
    return st;
}

static enum pnet_status import_one(const struct pnet_exchange *x, int param, const char *file,
    const struct pnet_renamed *names, bool *used, struct pnet_exchanged *r, struct pnet_error *e)
{
    const struct pnet_plan_param *q = &x->plan->params[param];
    struct pnet_weight_role role = pnet_weight_role_of(x->plan, param);
    struct pnet_form forms[PNET_MOST_FORMS];
    int64_t row = pnet_renamed_find(names, q->name);
    if (row < 0) {
        struct pnet_exchange_line *line = add_line(r, PNET_EXCHANGE_MISSING);
        line->ours = q->name;
        line->want_dims = q->info.dims;
        memcpy(line->want, q->info.shape, sizeof q->info.shape);
        return PNET_OK;
    }
    const struct pnet_safetensor *t = &names->file->tensors[row];
    int count = pnet_forms(x->library, &x->axes, &role, pnet_name_is_kernel(t->name), forms);
    const struct pnet_form *form = pnet_form_find(forms, count, t->dims, t->shape);
    bool fits = form && pnet_tensor_type_is_real(t->dtype);
    struct pnet_exchange_line *line =
        add_line(r, fits ? PNET_EXCHANGE_TAKEN : PNET_EXCHANGE_MISFIT);
    used[row] = true;
    put_tensor(line, t);
    line->ours = q->name;
    line->want_dims = fits ? q->info.dims : count ? forms[0].dims : -1;
    if (fits)
        memcpy(line->want, q->info.shape, sizeof q->info.shape);
    else if (count)
        memcpy(line->want, forms[0].shape, sizeof line->want);
    line->other = fits ? form->other : NULL;
    return fits ? take(q, &role, form, t, file, r, e) : PNET_OK;
}

/* Lists the tensors that no weight has asked for. Takes the names over from `names`. */
static void list_left(const struct pnet_plan *p, const bool *used, struct pnet_renamed *names,
    struct pnet_exchanged *r)
{
    for (size_t i = 0; i < names->file->count; i++) {
        if (used[i]) continue;
        bool ignored = names->left[i];
        struct pnet_exchange_line *line =
            add_line(r, ignored ? PNET_EXCHANGE_IGNORED : PNET_EXCHANGE_LEFT);
        put_tensor(line, &names->file->tensors[i]);
        if (ignored) continue;
        line->renamed = r->names[r->name_count++] = names->names[i];
        line->unread = pnet_plan_param_find(p, names->names[i]) >= 0;
        names->names[i] = NULL;
    }
}

enum pnet_status pnet_import_weights(const struct pnet_exchange *x, const char *name,
    const struct pnet_safetensors *file, struct pnet_exchanged *r, struct pnet_error *e)
{
    struct pnet_renamed names = {0};
    bool *used = NULL;
    enum pnet_status st = make_room(x->plan, file->count, r, e);
    if (!st) st = pnet_names_theirs(x->library, file, x->map, x->map_name, &names, e);
    if (!st) {
        used = calloc(file->count + 1, sizeof *used);
        if (!used) st = pnet_error_memory(e);
    }
    for (int i = 0; i < x->plan->param_count && !st; i++)
        if (x->plan->params[i].offset >= 0) st = import_one(x, i, name, &names, used, r, e);
    if (!st) list_left(x->plan, used, &names, r);
    if (st) pnet_exchanged_free(r);
    pnet_renamed_free(&names);
    free(used);
    return st;
}

/* ---- export ---- */

/* Does the library call the weight of this parameter's layer "kernel"? The name of the weight says so. */
static enum pnet_status kernel_word(const struct pnet_plan *p, const struct pnet_naming *naming,
    const struct pnet_weight_role *role, bool *is_kernel, struct pnet_error *e)
{
    *is_kernel = false;
    if (role->weight < 0) return PNET_OK;
    const struct pnet_plan_param *q = &p->params[role->weight];
    char *name = pnet_name_theirs(naming, q->name, q->info.kind, e);
    if (!name) return e->status;
    *is_kernel = pnet_name_is_kernel(name);
    free(name);
    return PNET_OK;
}

static enum pnet_status export_one(const struct pnet_exchange *x, const struct pnet_naming *naming,
    int param, const char *file, const struct pnet_safetensors *from, struct pnet_exchanged *r,
    struct pnet_error *e)
{
    const struct pnet_plan_param *q = &x->plan->params[param];
    struct pnet_weight_role role = pnet_weight_role_of(x->plan, param);
    struct pnet_form forms[PNET_MOST_FORMS];
    bool is_kernel;
    char *theirs = pnet_name_theirs(naming, q->name, q->info.kind, e);
    if (!theirs) return e->status;
    r->names[r->name_count++] = theirs;
    enum pnet_status st = kernel_word(x->plan, naming, &role, &is_kernel, e);
    if (st) return st;
    if (!pnet_forms(x->library, &x->axes, &role, is_kernel, forms))
        return pnet_error_set(e, PNET_BAD_MODEL, "%s has no layer for `%s`: groups=%lld",
            pnet_library_names[x->library], q->name, (long long)role.groups);
    float *ours = malloc((size_t)q->count * sizeof *ours + 1), *to = r->numbers + q->offset;
    if (!ours) return pnet_error_memory(e);
    st = pnet_safetensors_load(from, file, q->name, q->info.dims, q->info.shape, ours, e);
    if (!st) st = pnet_floats_check_finite(file, q->name, ours, q->count, e);
    if (!st) {
        struct pnet_safetensor *t = &r->tensors[r->tensor_count++];
        pnet_form_give(&forms[0], &role, ours, to);
        *t = (struct pnet_safetensor){
            .name = theirs, .dtype = PNET_TENSOR_F32, .dims = forms[0].dims, .data = to};
        memcpy(t->shape, forms[0].shape, sizeof t->shape);
        struct pnet_exchange_line *line = add_line(r, PNET_EXCHANGE_TAKEN);
        put_tensor(line, t);
        line->ours = q->name;
        line->want_dims = q->info.dims;
        memcpy(line->want, q->info.shape, sizeof q->info.shape);
    }
    free(ours);
    return st;
}

enum pnet_status pnet_export_weights(const struct pnet_exchange *x, const char *name,
    const struct pnet_safetensors *file, struct pnet_exchanged *r, struct pnet_error *e)
{
    struct pnet_naming naming = {.map = NULL};
    enum pnet_status st = make_room(x->plan, 0, r, e);
    if (!st && !pnet_naming_new(x->library, x->map, x->map_name, &naming))
        st = pnet_error_memory(e);
    for (int i = 0; i < x->plan->param_count && !st; i++)
        if (x->plan->params[i].offset >= 0) st = export_one(x, &naming, i, name, file, r, e);
    if (st) pnet_exchanged_free(r);
    pnet_naming_free(&naming);
    return st;
}

/* ---- what an export says of itself ---- */

static const char library_key[] = "pnet.exported", layout_key[] = "pnet.layout";

void pnet_export_record(enum pnet_library l, struct pnet_export_record *r)
{
    snprintf(r->layout, sizeof r->layout, "%d", (int)PNET_EXCHANGE_LAYOUT);
    const struct pnet_metadata items[PNET_EXPORT_KEYS] = {
        {"format", "pt"}, /* what readers of PyTorch's tensors expect */
        {library_key, pnet_library_names[l]}, {layout_key, r->layout},
        {"pnet.version", PNET_VERSION}};
    memcpy(r->items, items, sizeof items);
}

enum pnet_status pnet_export_record_check(enum pnet_library l, const char *name,
    const struct pnet_safetensors *file, struct pnet_error *e)
{
    const char *library = pnet_safetensors_metadata(file, library_key),
               *layout = pnet_safetensors_metadata(file, layout_key);
    if (!library && !layout) return PNET_OK;
    enum pnet_library of;
    char *end = NULL;
    long number = layout ? strtol(layout, &end, 10) : 0;
    if (!library || !pnet_library_parse(library, &of) || !layout || end == layout || *end ||
        number < 1)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: the metadata \"%s\" and \"%s\" are not those of an export of pnet", name,
            library_key, layout_key);
    if (number > PNET_EXCHANGE_LAYOUT)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: was exported by a later pnet, in layout %ld; this one knows layouts up to %d",
            name, number, (int)PNET_EXCHANGE_LAYOUT);
    if (of != l)
        return pnet_error_set(e, PNET_USAGE, "%s: was exported for %s, not for %s", name, library,
            pnet_library_names[l]);
    return PNET_OK;
}
