/* Writes the plain network as network.json and arrays as NPY. The head of bench/autocast.py describes their content. */
#include "bench/net_gradients.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/measure.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/io/npy.h"

struct writer {
    const char *folder;
    const struct pnet_plan *plan;
    const struct pnet_runner *runner;
    const struct pnet_slot *slot;
    struct pnet_json json;
    enum pnet_status status; /* the first error stays */
    struct pnet_error *error;
};

static void put_array(struct writer *w, const char *name, enum pnet_scalar type, int dims,
    const int64_t *shape, const void *data)
{
    char path[PNET_PATH_MOST];
    if (w->status) return;
    if (snprintf(path, sizeof path, "%s/%s.npy", w->folder, name) >= (int)sizeof path)
        w->status = pnet_error_set(w->error, PNET_FAILED, "%s: the name is too long", w->folder);
    else
        w->status = pnet_npy_write(path, type, dims, shape, data, w->error);
}

static void put_vector(
    struct writer *w, const char *name, enum pnet_scalar type, int64_t count, const void *data)
{
    put_array(w, name, type, 1, &count, data);
}

static void put_levels(struct writer *w)
{
    const struct pnet_counts *c = &w->slot->counts;
    pnet_json_begin(&w->json, "levels", '[');
    for (int i = 0; i < w->plan->level_count; i++) {
        const struct pnet_level_info *l = &w->plan->levels[i];
        const int64_t *splits = pnet_slot_splits(w->slot, i);
        pnet_json_begin(&w->json, NULL, '{');
        pnet_json_string(&w->json, "name", l->name);
        pnet_json_string(&w->json, "kind", pnet_geo_kind(l->kind)->name);
        pnet_json_int(&w->json, "rows", c->rows[i]);
        pnet_json_double(&w->json, "cell_m", l->cell);
        pnet_json_begin(&w->json, "splits", '[');
        for (int s = 0; splits && s <= c->samples; s++) pnet_json_int(&w->json, NULL, splits[s]);
        pnet_json_end(&w->json, ']');
        pnet_json_end(&w->json, '}');
    }
    pnet_json_end(&w->json, ']');
}

static void put_input(struct writer *w, int tensor)
{
    const struct pnet_type *t = &w->plan->tensors[tensor].type;
    char name[32];
    void *data = NULL;
    int64_t rows = 0;
    if (w->status || !pnet_runner_tensor(w->runner, 0, tensor, &rows)) return;
    w->status = pnet_runner_copy_tensor(w->runner, 0, tensor, &data, &rows, w->error);
    snprintf(name, sizeof name, "input%d", tensor);
    put_array(w, name, t->type, 2, (int64_t[]){rows, t->width}, data);
    free(data);
}

static void put_tensors(struct writer *w)
{
    static const char *const roles[] = {"input", "result", "saved", "gradient"};
    pnet_json_begin(&w->json, "tensors", '[');
    for (int i = 0; i < w->plan->tensor_count; i++) {
        const struct pnet_plan_tensor *t = &w->plan->tensors[i];
        pnet_json_begin(&w->json, NULL, '{');
        pnet_json_string(&w->json, "role", roles[t->role]);
        pnet_json_int(&w->json, "level", t->type.level);
        pnet_json_int(&w->json, "width", t->type.width);
        pnet_json_end(&w->json, '}');
        if (t->role == PNET_ROLE_INPUT) put_input(w, i);
    }
    pnet_json_end(&w->json, ']');
}

static void put_params(struct writer *w)
{
    pnet_json_begin(&w->json, "parameters", '[');
    for (int i = 0; i < w->plan->param_count; i++) {
        const struct pnet_plan_param *p = &w->plan->params[i];
        pnet_json_begin(&w->json, NULL, '{');
        pnet_json_string(&w->json, "name", p->name);
        pnet_json_begin(&w->json, "shape", '[');
        for (int d = 0; d < p->info.dims; d++) pnet_json_int(&w->json, NULL, p->info.shape[d]);
        pnet_json_end(&w->json, ']');
        pnet_json_int(&w->json, "offset", p->offset);
        pnet_json_bool(&w->json, "trained", p->info.trained);
        pnet_json_end(&w->json, '}');
    }
    pnet_json_end(&w->json, ']');
}

/* Writes for each triplet its row on the side by which the set is sorted, its row on the other side, and its cell. */
static void put_triplets(struct writer *w, int item, const struct pnet_geo_view *v)
{
    bool forward = v->forward.other != NULL;
    const struct pnet_triplets *t = forward ? &v->forward : &v->transposed;
    char name[32];
    if (!t->other) {
        w->status = pnet_error_set(w->error, PNET_FAILED, "a triplet set has no listing");
        return;
    }
    int32_t *row = bench_alloc((size_t)t->count * sizeof *row);
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t at = t->start[r]; at < t->start[r + 1]; at++) row[at] = (int32_t)r;
    snprintf(name, sizeof name, "geometry%d_a", item);
    put_vector(w, name, PNET_I32, t->count, forward ? row : t->other);
    snprintf(name, sizeof name, "geometry%d_b", item);
    put_vector(w, name, PNET_I32, t->count, forward ? t->other : row);
    snprintf(name, sizeof name, "geometry%d_cell", item);
    put_vector(w, name, PNET_U16, t->count, t->cell);
    pnet_json_int(&w->json, "cells", t->cells);
    free(row);
}

static void put_parent(struct writer *w, int item, const struct pnet_geo_view *v)
{
    char name[32];
    int32_t *parent = bench_alloc((size_t)v->a_rows * sizeof *parent);
    if (v->parent) memcpy(parent, v->parent, (size_t)v->a_rows * sizeof *parent);
    for (int64_t r = 0; r < v->b_rows && !v->parent; r++)
        for (int64_t at = v->child_start[r]; at < v->child_start[r + 1]; at++)
            parent[v->child ? v->child[at] : at] = (int32_t)r;
    snprintf(name, sizeof name, "geometry%d_parent", item);
    put_vector(w, name, PNET_I32, v->a_rows, parent);
    free(parent);
}

static void put_geometry(struct writer *w)
{
    pnet_json_begin(&w->json, "geometry", '[');
    for (int i = 0; i < w->plan->geo_count && !w->status; i++) {
        const struct pnet_geo_view *v = &w->slot->views[i];
        const struct pnet_geo_kind *kind = pnet_geo_kind(v->kind);
        pnet_json_begin(&w->json, NULL, '{');
        pnet_json_string(&w->json, "kind", kind->name);
        pnet_json_int(&w->json, "a", v->a);
        pnet_json_int(&w->json, "b", v->b);
        if (v->kind == PNET_GEO_TRIPLETS)
            put_triplets(w, i, v);
        else if (v->kind == PNET_GEO_PARENT)
            put_parent(w, i, v);
        else if (!(kind->flags & PNET_GEO_LEVEL))
            w->status =
                pnet_error_set(w->error, PNET_FAILED, "geometry '%s' has no file", kind->name);
        pnet_json_end(&w->json, '}');
    }
    pnet_json_end(&w->json, ']');
}

/* Writes the word at a position of "mean|max|sum". */
static void put_choice(struct writer *w, const struct pnet_arg *arg, int64_t position)
{
    char word[64];
    const char *begin = arg->choices;
    while (position-- > 0) begin = strchr(begin, '|') + 1;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(begin, "|"), begin);
    pnet_json_string(&w->json, arg->name, word);
}

static void put_argument(struct writer *w, const struct pnet_arg *arg, const struct pnet_attr *a)
{
    switch (arg->type) {
    case PNET_ARG_INT:
    case PNET_ARG_LEVEL: pnet_json_int(&w->json, arg->name, a->i); break;
    case PNET_ARG_BOOL: pnet_json_bool(&w->json, arg->name, a->i != 0); break;
    case PNET_ARG_REAL:
    case PNET_ARG_LENGTH:
    case PNET_ARG_ANGLE: pnet_json_double(&w->json, arg->name, a->r); break;
    case PNET_ARG_CHOICE: put_choice(w, arg, a->i); break;
    case PNET_ARG_REALS:
        pnet_json_begin(&w->json, arg->name, '[');
        for (int i = 0; i < a->list.count; i++) pnet_json_double(&w->json, NULL, a->list.items[i]);
        pnet_json_end(&w->json, ']');
        break;
    default: break; /* values are written with the inputs */
    }
}

static void put_indices(struct writer *w, const char *key, const int *items, int count)
{
    pnet_json_begin(&w->json, key, '[');
    for (int i = 0; i < count; i++) pnet_json_int(&w->json, NULL, items[i]);
    pnet_json_end(&w->json, ']');
}

static void put_step(struct writer *w, const struct pnet_node *n)
{
    static const char *const classes[] = {"layer", "loss", "metric"};
    pnet_json_begin(&w->json, NULL, '{');
    pnet_json_string(&w->json, "op", n->op->name);
    pnet_json_string(&w->json, "class", classes[n->op->class_]);
    pnet_json_string(&w->json, "path", n->path);
    put_indices(w, "in", n->in, n->in_count);
    pnet_json_int(&w->json, "out", n->out);
    put_indices(w, "parameters", n->param, n->param_count);
    put_indices(w, "geometry", n->geo, n->geo_count);
    pnet_json_begin(&w->json, "arguments", '{');
    for (int i = 0; i < PNET_MAX_ARGS && n->op->args[i].name; i++)
        if (n->attr[i].set) put_argument(w, &n->op->args[i], &n->attr[i]);
    pnet_json_end(&w->json, '}');
    pnet_json_int(&w->json, "draw", n->draw);
    pnet_json_end(&w->json, '}');
}

static void put_steps(struct writer *w)
{
    const struct pnet_plan *p = w->plan;
    pnet_json_begin(&w->json, "steps", '[');
    for (int i = 0; i < p->forward_steps; i++) put_step(w, &p->nodes[p->steps[i].node]);
    pnet_json_end(&w->json, ']');
    pnet_json_begin(&w->json, "losses", '[');
    for (int i = 0; i < p->objective_count; i++)
        if (!p->objectives[i].metric) pnet_json_int(&w->json, NULL, p->objectives[i].tensor);
    pnet_json_end(&w->json, ']');
}

static void put_gradients(struct writer *w, const struct net_gradients *g)
{
    char name[32];
    put_vector(w, "weights", PNET_F32, w->plan->param_elements, g->weights.data);
    put_vector(w, "gradients_plain", PNET_F32, w->plan->trained_elements, g->want);
    pnet_json_double(&w->json, "loss", g->loss);
    pnet_json_begin(&w->json, "precisions", '{');
    for (int k = 0; k < NET_PRECISIONS; k++) {
        if (!g->has[k]) continue;
        pnet_json_double(&w->json, pnet_bench_precision_names[k], g->losses[k]);
        snprintf(name, sizeof name, "gradients_%s", pnet_bench_precision_names[k]);
        put_vector(w, name, PNET_F32, w->plan->trained_elements, g->x[k]);
    }
    pnet_json_end(&w->json, '}');
}

static enum pnet_status put_json(struct writer *w)
{
    struct pnet_output out;
    char path[PNET_PATH_MOST];
    snprintf(path, sizeof path, "%.4000s/network.json", w->folder);
    enum pnet_status st = pnet_output_open(path, &out, w->error);
    if (st) return st;
    st = pnet_json_print(&w->json, out.file, w->error);
    if (!st) return pnet_output_commit(&out, w->error);
    pnet_output_drop(&out);
    return st;
}

enum pnet_status pnet_bench_net_write(const char *folder, const struct net_options *o,
    const struct net_gradients *g, struct pnet_error *e)
{
    struct writer w = {.folder = folder,
        .plan = g->plain.plan,
        .runner = g->plain.runner,
        .slot = pnet_runner_slot(g->plain.runner, 0),
        .error = e};
    w.status = pnet_make_folder(folder, e);
    pnet_json_begin(&w.json, NULL, '{');
    pnet_json_string(&w.json, "model", o->model);
    pnet_json_string(&w.json, "device", o->where.kind == PNET_CPU ? "cpu" : "cuda");
    pnet_json_string(&w.json, "mode", o->degrade ? "voxel" : "native");
    pnet_json_int(&w.json, "seed", (int64_t)pnet_runner_seed(w.runner));
    put_levels(&w);
    put_tensors(&w);
    put_params(&w);
    put_geometry(&w);
    put_steps(&w);
    put_gradients(&w, g);
    pnet_json_end(&w.json, '}');
    if (!w.status) w.status = put_json(&w);
    pnet_json_free(&w.json);
    return w.status;
}
