#include "runtime/data/dataset_turn.h"
#include "runtime/data/augment_draw.h"

#include <string.h>

/* m -> B m B^T, B = [R 0; 0 R]: the matrix weighs a translation and a rotation vector, which turn along. */
static void turn_information(const double r[3][3], double m[36])
{
    double half[36], out[36];
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) {
            half[6 * i + k] = 0;
            for (int n = 0; n < 3; n++) half[6 * i + k] += r[i % 3][n] * m[6 * (i / 3 * 3 + n) + k];
        }
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) {
            out[6 * i + k] = 0;
            for (int n = 0; n < 3; n++) out[6 * i + k] += half[6 * i + k / 3 * 3 + n] * r[k % 3][n];
        }
    memcpy(m, out, sizeof out);
}

void pnet_pair_turn(
    const struct pnet_augment *how, enum pnet_split split, uint32_t number, struct pnet_pair *pair)
{
    /* Training never reaches this epoch, and evaluation draws no views from it. */
    struct pnet_rand r = augment_stream(1, UINT32_MAX - PNET_SPLITS - (uint32_t)split, number);
    struct pnet_pose turn = pnet_pose_identity();
    pnet_turn_draw(how, &r, DRAW_PAIR_TURN, pair->turn);
    pair->turned = true;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) turn.m[4 * i + k] = pair->turn[i][k];
    struct pnet_pose back = pnet_pose_inverse(&turn);
    pair->pose = pnet_pose_multiply(&pair->pose, &back);
    if (pair->information) turn_information(pair->turn, pair->information);
}

static void turn_point(const double m[3][3], const double p[3], double q[3])
{
    for (int i = 0; i < 3; i++) q[i] = m[i][0] * p[0] + m[i][1] * p[1] + m[i][2] * p[2];
}

void pnet_pair_turn_source(const struct pnet_pair *pair, struct pnet_cloud *source)
{
    double p[3], q[3];
    pnet_cloud_forget_exact(source);
    for (int64_t i = 0; i < source->rows; i++) {
        for (int c = 0; c < 3; c++) p[c] = (double)source->xyz[3 * i + c];
        turn_point(pair->turn, p, q);
        for (int c = 0; c < 3; c++) source->xyz[3 * i + c] = (float)q[c];
    }
    memcpy(p, source->offset, sizeof p);
    turn_point(pair->turn, p, source->offset);
}
