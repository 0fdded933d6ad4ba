/* grid, points, chunks, level, width, matches and the arithmetic functions. */
#include "compiler/call.h"

#include "runtime/geo/grids.h"

#include <math.h>
#include <string.h>

/* Names of levels that no statement has named, told by their addresses. */
static const char unnamed_grid[] = "grid", unnamed_points[] = "points", unnamed_chunks[] = "chunks";

bool pnet_level_unnamed(const struct pnet_level_info *l)
{
    return l->name == unnamed_grid || l->name == unnamed_points || l->name == unnamed_chunks;
}

/* The level of an input's points. */
static int input_level(const struct pnet_compilation *c, int input)
{
    for (int i = 0; i < c->plan.level_count; i++)
        if (c->plan.levels[i].kind == PNET_GEO_INPUT && c->plan.levels[i].input == input) return i;
    return -1;
}

/* The level of `input` with that grid, sampled from `finer`; made where it is missing. */
static int grid_level(struct pnet_compilation *c, int input, int finer, double base, int32_t factor)
{
    for (int i = 0; i < c->plan.level_count; i++) {
        const struct pnet_level_info *l = &c->plan.levels[i];
        if (l->kind == PNET_GEO_GRID && l->input == input && l->grid.base == (float)base &&
            l->grid.factor == factor && l->finer == finer)
            return i;
    }
    struct pnet_level_info l = {.kind = PNET_GEO_GRID,
        .input = input,
        .finer = finer,
        .cell = base * factor,
        .name = unnamed_grid,
        .grid = {(float)base, (float)(1 / base), factor}};
    return pnet_plan_add_level(c, l);
}

struct value pnet_builtin_grid(
    struct pnet_compilation *c, struct pnet_span span, struct value from, struct value cells)
{
    struct value single[1] = {cells}, *items = cells.kind == V_LIST ? cells.items : single;
    int count = cells.kind == V_LIST ? cells.count : 1, finer = -1, input;
    for (int i = 0; i < count; i++)
        if (items[i].kind == V_UNKNOWN) return unknown;
    double base = 0;
    if (from.kind == V_CLOUD) {
        input = from.index;
        finer = input_level(c, input);
    } else if (from.kind == V_LEVEL && c->plan.levels[from.index].input >= 0) {
        finer = from.index;
        input = c->plan.levels[finer].input;
        if (c->plan.levels[finer].grid.base > 0)
            base = c->plan.levels[finer].cell / c->plan.levels[finer].grid.factor;
    } else {
        ERROR(c, span, "grid() samples a cloud or a level, not %s", pnet_value_text(c, from));
        return unknown;
    }
    struct value r = {.kind = V_LIST, .span = span, .count = count, .capacity = count};
    r.items = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *r.items);
    int32_t last = base > 0 ? c->plan.levels[finer].grid.factor : 1;
    for (int i = 0; r.items && i < count; i++) {
        struct pnet_span at = items[i].span.end > items[i].span.begin ? items[i].span : span;
        int32_t factor = 1;
        if (items[i].kind != V_NUMBER || items[i].unit != PNET_UNIT_LENGTH ||
            items[i].number < 1e-6 || items[i].number > 1e5) {
            bool length = items[i].kind == V_NUMBER && items[i].unit == PNET_UNIT_LENGTH;
            struct pnet_diag *d =
                ERROR(c, at, "a cell size is a length from 1e-6 m to 100 km, not %s",
                    length ? pnet_arena_printf(&c->arena, "%.10gm", items[i].number)
                           : pnet_value_text(c, items[i]));
            if (items[i].kind == V_NUMBER && !items[i].unit)
                pnet_diag_help(d, "write %gcm, or %gm", items[i].number * 100, items[i].number);
            return unknown;
        }
        if (base == 0) base = items[i].number;
        if (!pnet_grid_nests(items[i].number, base, &factor) || factor % last) {
            struct pnet_diag *d =
                ERROR(c, at, "cell sizes do not nest: %gm is no whole multiple of %gm",
                    items[i].number, base * last);
            pnet_diag_help(
                d, "write the finer cells first, each a whole multiple of the one before");
            return unknown;
        }
        if (c->plan.level_count >= MAX_LEVELS) {
            ERROR(c, at, "too many levels: at most %d", MAX_LEVELS);
            return unknown;
        }
        last = factor;
        if (!(c->plan.levels[finer].kind == PNET_GEO_GRID &&
                c->plan.levels[finer].grid.factor == factor &&
                c->plan.levels[finer].grid.base == (float)base))
            finer = grid_level(c, input, finer, base, factor);
        r.items[i] = (struct value){.kind = V_LEVEL, .span = at, .index = finer};
    }
    if (!r.items || c->arena.failed) return unknown;
    return cells.kind == V_LIST ? r : r.items[0];
}

/* points(level, count): so many generated points for each row of a level. */
static struct value builtin_points(struct pnet_compilation *c, struct pnet_span span,
    const struct value v[2], const struct pnet_span at[2])
{
    enum { MOST = 1 << 24 };
    int from = v[0].kind == V_LEVEL   ? v[0].index
               : v[0].kind == V_CLOUD ? input_level(c, v[0].index)
                                      : -1;
    if (from < 0 || from == c->plan.scalar_level) {
        ERROR(c, at[0], "points() takes the level that the points are generated for, not %s",
            pnet_value_text(c, v[0]));
        return unknown;
    }
    double count = v[1].number;
    if (v[1].kind != V_NUMBER || v[1].unit || count != floor(count) || count < 1 || count > MOST) {
        ERROR(c, at[1], "points() takes a whole number of points from 1 to %d", MOST);
        return unknown;
    }
    for (int i = 0; i < c->plan.level_count; i++) {
        const struct pnet_level_info *l = &c->plan.levels[i];
        if (l->kind == PNET_GEO_POINTS && l->from == from && l->count == (int32_t)count)
            return (struct value){.kind = V_LEVEL, .span = span, .index = i};
    }
    int64_t each;
    int root = pnet_level_root(c->plan.levels, from, -1, &each);
    each *= (int64_t)count; /* at most 2^31 times 2^24 */
    if (each > PNET_MAX_ROWS) {
        ERROR(c, at[1], "points() would make %lld points for each row of %s: at most %d",
            (long long)each, c->plan.levels[root].name, PNET_MAX_ROWS);
        return unknown;
    }
    if (c->plan.level_count >= MAX_LEVELS) {
        ERROR(c, span, "too many levels: at most %d", MAX_LEVELS);
        return unknown;
    }
    struct pnet_level_info l = {.kind = PNET_GEO_POINTS,
        .input = -1,
        .finer = -1,
        .from = from,
        .count = (int32_t)count,
        .name = unnamed_points};
    return (struct value){.kind = V_LEVEL, .span = span, .index = pnet_plan_add_level(c, l)};
}

/* The level of chunks of `count` rows of `finer`; made where it is missing. */
static int chunk_level(struct pnet_compilation *c, int finer, int32_t count)
{
    for (int i = 0; i < c->plan.level_count; i++) {
        const struct pnet_level_info *l = &c->plan.levels[i];
        if (l->kind == PNET_GEO_CHUNKS && l->finer == finer && l->count == count) return i;
    }
    struct pnet_level_info l = {.kind = PNET_GEO_CHUNKS,
        .input = c->plan.levels[finer].input,
        .finer = finer,
        .count = count,
        .name = unnamed_chunks};
    return pnet_plan_add_level(c, l);
}

/* The level that chunks(..) cuts; -1: an error was reported. */
static int chunked_level(struct pnet_compilation *c, struct value from, struct pnet_span at)
{
    int level = from.kind == V_LEVEL   ? from.index
                : from.kind == V_CLOUD ? input_level(c, from.index)
                                       : -1;
    if (level >= 0 && c->plan.levels[level].input >= 0) return level;
    struct pnet_diag *d = ERROR(c, at, "chunks() cuts the rows of a level with coordinates, not %s",
        pnet_value_text(c, from));
    if (from.kind == V_TENSOR)
        pnet_diag_help(d, "write level(..) around it");
    else if (level >= 0 && c->plan.levels[level].kind == PNET_GEO_POINTS)
        pnet_diag_help(d, "the points of %s are generated: their places are features",
            c->plan.levels[level].name);
    return -1;
}

/* chunks(level, sizes): stretches of a level's rows; of several sizes, each cut from the one before. */
static struct value builtin_chunks(struct pnet_compilation *c, struct pnet_span span,
    const struct value v[2], const struct pnet_span at[2])
{
    const struct value *items = v[1].kind == V_LIST ? v[1].items : &v[1];
    int count = v[1].kind == V_LIST ? v[1].count : 1, finer = chunked_level(c, v[0], at[0]);
    if (finer < 0) return unknown;
    struct value r = {.kind = V_LIST, .span = span, .count = count, .capacity = count};
    r.items = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *r.items);
    int32_t last = 1;
    for (int i = 0; r.items && i < count; i++) {
        bool written = items[i].span.file == at[1].file && items[i].span.begin >= at[1].begin &&
                       items[i].span.end <= at[1].end;
        struct pnet_span here = written ? items[i].span : at[1];
        double size = items[i].number;
        if (items[i].kind == V_UNKNOWN) return unknown;
        if (items[i].kind != V_NUMBER || items[i].unit || size != floor(size) || size < 2 ||
            size > PNET_MAX_CHUNK) {
            ERROR(c, here, "chunks() takes whole numbers of rows from 2 to %d", PNET_MAX_CHUNK);
            return unknown;
        }
        if ((int32_t)size % last) {
            struct pnet_diag *d =
                ERROR(c, here, "chunks do not nest: %d is no multiple of %d", (int)size, (int)last);
            pnet_diag_help(d, "write the smaller numbers first, each a multiple of the one before");
            return unknown;
        }
        if (c->plan.level_count >= MAX_LEVELS) {
            ERROR(c, here, "too many levels: at most %d", MAX_LEVELS);
            return unknown;
        }
        if ((int32_t)size != last) finer = chunk_level(c, finer, (int32_t)size / last);
        last = (int32_t)size;
        r.items[i] = (struct value){.kind = V_LEVEL, .span = here, .index = finer};
    }
    if (!r.items || c->arena.failed) return unknown;
    return v[1].kind == V_LIST ? r : r.items[0];
}

static struct value call_number_function(
    struct pnet_compilation *c, const struct pnet_expr *e, const struct value *v, int count)
{
    const char *f = e->call.name;
    struct value r = v[0];
    for (int i = 0; i < count; i++)
        if (v[i].kind != V_NUMBER || v[i].unit != v[0].unit) {
            ERROR(
                c, e->span, "%s() takes numbers of one unit, not %s", f, pnet_value_text(c, v[i]));
            return unknown;
        }
    for (int i = 1; i < count; i++)
        r.number =
            strcmp(f, "min") == 0 ? fmin(r.number, v[i].number) : fmax(r.number, v[i].number);
    if (strcmp(f, "floor") == 0) r.number = floor(r.number);
    if (strcmp(f, "ceil") == 0) r.number = ceil(r.number);
    if (strcmp(f, "round") == 0) r.number = round(r.number);
    return r;
}

/* matches(a, b, T, radius): a and b on levels of the first and the second cloud. at: spans of the
   arguments. */
static struct value builtin_matches(struct pnet_compilation *c, struct pnet_span span,
    const struct value v[4], const struct pnet_span at[4])
{
    const struct pnet_level_info *l = c->plan.levels;
    for (int i = 0; i < 2; i++)
        if (v[i].kind != V_LEVEL || l[v[i].index].input < 0) {
            struct pnet_diag *d = ERROR(
                c, at[i], "matches() joins two levels of points, not %s", pnet_value_text(c, v[i]));
            if (v[i].kind == V_TENSOR || v[i].kind == V_CLOUD)
                pnet_diag_help(d, "write level(..) around it");
            return unknown;
        }
    int source = l[v[0].index].input, target = l[v[1].index].input;
    if (source == target) {
        ERROR(c, at[1], "matches() joins levels of two clouds, these are both of %s",
            c->plan.inputs[source].name);
        return unknown;
    }
    if (source > target) {
        ERROR(c, at[0], "the first level is that of the source: %s is declared before %s",
            c->plan.inputs[target].name, c->plan.inputs[source].name);
        return unknown;
    }
    if (v[2].kind != V_POSE) {
        struct pnet_diag *d =
            ERROR(c, at[2], "matches() needs a pose here, not %s", pnet_value_text(c, v[2]));
        pnet_diag_help(d, "declare one: input T : pose");
        return unknown;
    }
    if (v[3].kind != V_NUMBER || v[3].unit != PNET_UNIT_LENGTH || v[3].number <= 0 ||
        v[3].number > 1e5) {
        ERROR(c, at[3], "the radius of matches() is a length up to 100 km, not %s",
            pnet_value_text(c, v[3]));
        return unknown;
    }
    struct pnet_matches *m = pnet_arena_alloc(&c->arena, sizeof *m);
    if (!m) return unknown;
    *m = (struct pnet_matches){v[0].index, v[1].index, v[2].index, (float)v[3].number};
    return (struct value){.kind = V_MATCHES, .span = span, .matches = m};
}

/* error("text"): what a model says of a param that it cannot use. */
static struct value builtin_error(struct pnet_compilation *c, struct pnet_span span, struct value v)
{
    if (v.kind == V_TEXT)
        ERROR(c, span, "%s", v.text);
    else
        ERROR(c, span, "error() takes a text, not %s", pnet_value_text(c, v));
    return unknown;
}

struct value pnet_call_builtin(
    struct pnet_compilation *c, struct scope *s, int which, const struct arguments *a)
{
    const struct pnet_expr *e = a->expr;
    struct value v[17] = {{.kind = V_NONE}};
    struct pnet_span at[17];
    int count = 0;
    at[0] = a->piped.span;
    if (a->is_piped) v[count++] = a->piped;
    bool known = !a->is_piped || a->piped.kind != V_UNKNOWN;
    for (int i = 0; i < a->count && count < 17; i++) {
        const char *name = a->items[i].name, *named = pnet_builtins[which].named;
        if (name &&
            (!named || strcmp(name, named) != 0 || count != pnet_builtins[which].most - 1)) {
            pnet_unknown_argument(
                c, a->items[i].name_span, e->call.name, name, &named, named ? 1 : 0);
            return unknown;
        }
        at[count] = a->items[i].expr->span;
        v[count] = pnet_evaluate_expr(c, s, a->items[i].expr);
        if (v[count++].kind == V_UNKNOWN) known = false;
    }
    if (count < pnet_builtins[which].least || count > pnet_builtins[which].most) {
        ERROR(c, e->call.name_span, "%s() takes %s%d argument%s, not %d", e->call.name,
            pnet_builtins[which].least < pnet_builtins[which].most ? "at least " : "",
            pnet_builtins[which].least, pnet_builtins[which].least == 1 ? "" : "s", count);
        return unknown;
    }
    if (!known) return unknown;
    if (which == GRID) return pnet_builtin_grid(c, e->span, v[0], v[1]);
    if (which == POINTS) return builtin_points(c, e->span, v, at);
    if (which == CHUNKS) return builtin_chunks(c, e->span, v, at);
    if (which == MATCHES) return builtin_matches(c, e->span, v, at);
    if (which == FAIL) return builtin_error(c, e->span, v[0]);
    if (which > MATCHES) return call_number_function(c, e, v, count);
    if (which == LEN ? v[0].kind != V_LIST : v[0].kind != V_TENSOR) {
        if (which == LEVEL && v[0].kind == V_CLOUD)
            return (struct value){
                .kind = V_LEVEL, .span = e->span, .index = input_level(c, v[0].index)};
        ERROR(c, e->span, "%s() asks about %s, not %s", e->call.name,
            which == LEN ? "a list" : "features", pnet_value_text(c, v[0]));
        return unknown;
    }
    const struct pnet_type t =
        which == LEN ? (struct pnet_type){0} : c->plan.tensors[v[0].index].type;
    if (which == LEVEL) return (struct value){.kind = V_LEVEL, .span = e->span, .index = t.level};
    return (struct value){
        .kind = V_NUMBER, .span = e->span, .number = which == WIDTH ? t.width : v[0].count};
}
