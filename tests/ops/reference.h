/* A plan run in double, node by node, by the plain references of the op rows. */
#ifndef PNET_TESTS_OPS_REFERENCE_H
#define PNET_TESTS_OPS_REFERENCE_H

#include "runtime/run/layout.h"
#include "runtime/run/runner.h"

#include <stdlib.h>
#include <string.h>

struct reference {
    const struct pnet_plan *plan;
    struct pnet_runner *runner;       /* for geometry, labels and shapes; forward must have run */
    void **values;                    /* [tensor_count]: double, or int32 for labels */
    double *params;                   /* [param_elements] */
    struct pnet_constants *constants; /* [forward_steps] */
};

static inline size_t reference_elements(const struct reference *r, int tensor)
{
    int64_t rows;
    pnet_runner_tensor(r->runner, 0, tensor, &rows);
    return (size_t)rows * (size_t)r->plan->tensors[tensor].type.width;
}

/* Copies inputs and parameters out of the runner. */
static inline void reference_init(struct reference *r, struct pnet_runner *s)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    *r = (struct reference){p, s, calloc((size_t)p->tensor_count + 1, sizeof(void *)),
        calloc((size_t)p->param_elements + 1, sizeof(double)),
        calloc((size_t)p->forward_steps + 1, sizeof(struct pnet_constants))};
    for (int64_t i = 0; i < p->param_elements; i++) r->params[i] = (double)pnet_runner_params(s)[i];
    for (int t = 0; t < p->tensor_count; t++) {
        if (p->tensors[t].first < 0 || p->tensors[t].role == PNET_ROLE_GRAD) continue;
        int64_t rows;
        const void *from = pnet_runner_tensor(s, 0, t, &rows);
        size_t n = reference_elements(r, t);
        r->values[t] = calloc(n + 1, sizeof(double));
        if (p->tensors[t].role != PNET_ROLE_INPUT) continue;
        if (p->tensors[t].type.type == PNET_I32)
            for (size_t i = 0; i < n; i++)
                ((int32_t *)r->values[t])[i] = ((const int32_t *)from)[i];
        else
            for (size_t i = 0; i < n; i++)
                ((double *)r->values[t])[i] = (double)((const float *)from)[i];
    }
}

static inline void reference_free(struct reference *r)
{
    for (int t = 0; t < r->plan->tensor_count; t++) free(r->values[t]);
    for (int s = 0; s < r->plan->forward_steps; s++) free(r->constants[s].value);
    free(r->values);
    free(r->constants);
    free(r->params);
}

static inline void reference_run(struct reference *r, bool training)
{
    const struct pnet_plan *p = r->plan;
    for (int s = 0; s < p->forward_steps; s++) {
        const struct pnet_node *n = &p->nodes[p->steps[s].node];
        struct pnet_exec x;
        pnet_runner_exec(r->runner, 0, s, training, &x);
        for (int i = 0; i < n->in_count; i++) x.in[i].data = r->values[n->in[i]];
        for (int i = 0; i < n->saved_count; i++) x.saved[i].data = NULL;
        for (int i = 0; i < n->param_count; i++)
            x.param[i] = r->params + p->params[n->param[i]].offset;
        x.out.data = r->values[n->out];
        x.work = NULL;
        x.constants = &r->constants[s];
        n->op->reference(&x);
    }
}

static inline double reference_loss(const struct reference *r)
{
    double sum = 0;
    for (int i = 0; i < r->plan->objective_count; i++)
        if (!r->plan->objectives[i].metric)
            sum += *(const double *)r->values[r->plan->objectives[i].tensor];
    return sum;
}

#endif
