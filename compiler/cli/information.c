#include "compiler/cli/information.h"

#include "runtime/register/register.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double success_m = 0.2; /* Choi, Zhou, Koltun 2015 */

struct information_sums {
    bool finds_poses;
    int64_t pairs, successes;
    double rre_deg, rte_m; /* over the successes */
};

bool pnet_cli_information_is_given(const struct pnet_dataset *d, enum pnet_split split)
{
    for (int64_t i = 0; i < d->counts[split]; i++)
        if (d->entries[split][i].pair && d->entries[split][i].pair->information) return true;
    return false;
}

static enum pnet_status append(struct pnet_score_line *l, const struct pnet_named_value *values,
    int count, struct pnet_error *e)
{
    size_t all = (size_t)l->value_count + (size_t)count;
    struct pnet_named_value *grown = realloc(l->values, all * sizeof *grown);
    if (!grown) return pnet_error_memory(e);
    memcpy(grown + l->value_count, values, (size_t)count * sizeof *grown);
    l->values = grown;
    l->value_count = (int)all;
    return PNET_OK;
}

/* T -> shift(by) T shift(-by): turns a pose between coordinates without their offset into a pose between file coordinates. */
static void put_back(double pose[16], const double by[3])
{
    double turned[3];
    for (int i = 0; i < 3; i++)
        turned[i] = pose[4 * i] * by[0] + pose[4 * i + 1] * by[1] + pose[4 * i + 2] * by[2];
    for (int i = 0; i < 3; i++) pose[4 * i + 3] += by[i] - turned[i];
}

/* The error of the found pose relative to the true pose, in the source's file coordinates, as the matrix is. */
static enum pnet_status error_in_file(const struct information *n, int64_t index,
    const double *error_pose, double pose[16], struct pnet_error *e)
{
    struct pnet_loaded_pair p;
    enum pnet_status st = pnet_dataset_load_pair(n->data, n->split, index, &p, NULL, e);
    if (st) return st;
    memcpy(pose, error_pose, 16 * sizeof *pose);
    put_back(pose, p.source.offset);
    pnet_loaded_pair_free(&p);
    return PNET_OK;
}

/* A metric without a pose of this pair may still have a pose of another pair. */
static bool finds_poses(const struct pnet_score_line *l)
{
    for (int i = 0; i < l->value_count; i++)
        if (strcmp(l->values[i].name, "found") == 0) return true;
    return false;
}

static enum pnet_status add_line(const struct information *n, int64_t index,
    struct information_sums *sums, struct pnet_score_line *l, struct pnet_error *e)
{
    static const double none[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const double *matrix = n->data->entries[n->split][index].pair->information;
    double pose[16], rre, rte;
    sums->finds_poses |= finds_poses(l);
    if (!sums->finds_poses || !matrix) return PNET_OK;
    sums->pairs++;
    if (!l->error_pose) return PNET_OK;
    enum pnet_status st = error_in_file(n, index, l->error_pose, pose, e);
    if (st) return st;
    struct pnet_named_value rmse = {"info_rmse_m", pnet_register_info_rmse(matrix, none, pose)};
    pnet_register_error(none, l->error_pose, &rre, &rte);
    if (rmse.value < success_m) {
        sums->successes++;
        sums->rre_deg += rre;
        sums->rte_m += rte;
    }
    return append(l, &rmse, 1, e);
}

enum pnet_status pnet_cli_information_add(
    struct information *n, int64_t index, struct pnet_evaluation *v, struct pnet_error *e)
{
    if (!n->sums) {
        n->sums = calloc((size_t)v->count + 1, sizeof *n->sums);
        if (!n->sums) return pnet_error_memory(e);
        n->lines = v->count;
    }
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < v->count && !st; i++) st = add_line(n, index, &n->sums[i], &v->lines[i], e);
    return st;
}

enum pnet_status pnet_cli_information_finish(
    struct information *n, struct pnet_evaluation *v, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < n->lines && !st; i++) {
        const struct information_sums *s = &n->sums[i];
        double pairs = (double)s->pairs, good = (double)s->successes;
        struct pnet_named_value values[] = {{"info_pairs", pairs}, {"info_recall", good / pairs},
            {"info_rre_success_deg", good > 0 ? s->rre_deg / good : (double)NAN},
            {"info_rte_success_m", good > 0 ? s->rte_m / good : (double)NAN}};
        if (s->finds_poses && s->pairs)
            st = append(&v->lines[i], values, (int)(sizeof values / sizeof *values), e);
    }
    free(n->sums);
    *n = (struct information){.data = n->data, .split = n->split};
    return st;
}
