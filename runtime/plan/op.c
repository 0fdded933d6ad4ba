#include "runtime/plan/op.h"
#include "runtime/base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PNET_OP(name) extern const struct pnet_op pnet_op_##name;
#include "runtime/plan/ops.def"
#undef PNET_OP

const struct pnet_op *const pnet_ops[] = {
#define PNET_OP(name) &pnet_op_##name,
#include "runtime/plan/ops.def"
#undef PNET_OP
};

const int pnet_op_count = sizeof pnet_ops / sizeof pnet_ops[0];

const char *const pnet_direction_names[] = {
    [PNET_FORWARD] = "forward", [PNET_DF] = "dF", [PNET_DW] = "dW", [PNET_DIRECTIONS] = NULL};

const struct pnet_op *pnet_op_find(const char *name)
{
    for (int i = 0; i < pnet_op_count; i++)
        if (strcmp(pnet_ops[i]->name, name) == 0) return pnet_ops[i];
    return NULL;
}

bool pnet_rule_fail(struct pnet_rule *r, int arg, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pnet_number_vformat(r->error, sizeof r->error, format, args);
    va_end(args);
    r->error_arg = arg;
    return false;
}

void pnet_rule_help(struct pnet_rule *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pnet_number_vformat(r->help, sizeof r->help, format, args);
    va_end(args);
}

void pnet_rule_warn(struct pnet_rule *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pnet_number_vformat(r->warning, sizeof r->warning, format, args);
    va_end(args);
}

int pnet_rule_param(struct pnet_rule *r, struct pnet_param_info p)
{
    r->params[r->param_count] = p;
    return r->param_count++;
}

int pnet_rule_geo(struct pnet_rule *r, struct pnet_geo_request q)
{
    r->geo[r->geo_count] = q;
    return r->geo_count++;
}

int pnet_rule_matches(struct pnet_rule *r, const struct pnet_matches *m, float radius)
{
    return pnet_rule_geo(
        r, (struct pnet_geo_request){
               .kind = PNET_GEO_MATCHES, .a = m->a, .b = m->b, .matches = {m->pose, radius}});
}

int pnet_rule_save(struct pnet_rule *r, struct pnet_type type, bool training_only)
{
    r->saved[r->saved_count] = (struct pnet_saved_info){type, training_only};
    return r->saved_count++;
}

int pnet_rule_reads(struct pnet_rule *r, const struct pnet_op *op, int a, int b)
{
    r->reads[r->read_count] = (struct pnet_rule_read){op, a, b};
    return r->in_count + r->read_count++;
}

int pnet_level_root(const struct pnet_level_info *levels, int level, int stop, int64_t *each)
{
    for (*each = 1; level != stop && levels[level].kind == PNET_GEO_POINTS;
         level = levels[level].from)
        *each *= levels[level].count;
    return level;
}

bool pnet_level_reaches(const struct pnet_level_info *levels, int fine, int coarse)
{
    int64_t each;
    fine = pnet_level_root(levels, fine, coarse, &each);
    for (int l = coarse; l >= 0; l = levels[l].finer)
        if (l == fine) return true;
    return false;
}

const char *pnet_level_written(const struct pnet_level_info *l, char text[96])
{
    const char *dot = strchr(l->name, '.');
    snprintf(
        text, 96, l->kind == PNET_GEO_INPUT ? "level(%.80s)" : "%.90s", dot ? dot + 1 : l->name);
    return text;
}

const char *pnet_type_text(const struct pnet_level_info *levels, struct pnet_type t, char text[96])
{
    const struct pnet_level_info *l = &levels[t.level];
    char cell[32] = "";
    if (t.pose) {
        strcpy(text, "a pose");
        return text;
    }
    if (l->cell >= 1)
        pnet_number_format(cell, sizeof cell, " (%.6gm)", l->cell);
    else if (l->cell > 0)
        pnet_number_format(cell, sizeof cell, " (%.6gcm)", l->cell * 100);
    snprintf(text, 96, "%d@%.48s%s", (int)t.width, l->name, cell);
    return text;
}
