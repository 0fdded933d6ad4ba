#include "runtime/data/augment.h"
#include "runtime/data/augment_draw.h"

#include <assert.h>

struct pnet_pose pnet_motion_pose(const struct pnet_motion *motion)
{
    struct pnet_pose a = pnet_pose_identity();
    for (int i = 0; i < 3; i++) {
        double turned = 0;
        for (int k = 0; k < 3; k++) {
            a.m[4 * i + k] = motion->m[i][k];
            turned += motion->m[i][k] * motion->centre[k];
        }
        a.m[4 * i + 3] = motion->centre[i] + motion->shift[i] - turned;
    }
    return a;
}

enum pnet_status pnet_augment_pair(const struct pnet_augment *a, uint64_t seed, uint32_t epoch,
    uint32_t sample, struct pnet_sample *source, struct pnet_sample *target, struct pnet_pose *pose,
    struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(seed, epoch, sample);
    struct pnet_motion of_source, of_target;
    assert(!a->elastic_count);
    if (!source->rows || !target->rows) return PNET_OK;
    enum pnet_status status = pnet_augment_side(a, &r, 0, source, &of_source, e);
    if (!status) status = pnet_augment_side(a, &r, DRAW_TARGET, target, &of_target, e);
    if (status) return status;
    /* T' = T_target T T_source^-1: undoes the motion of the source, applies the pose, then the motion of the target. The
       common scale and flips cancel. */
    struct pnet_pose s = pnet_motion_pose(&of_source), t = pnet_motion_pose(&of_target);
    struct pnet_pose back = pnet_pose_inverse(&s), over = pnet_pose_multiply(pose, &back);
    *pose = pnet_pose_multiply(&t, &over);
    return PNET_OK;
}

enum pnet_status pnet_pair_limit(int64_t most, uint64_t seed, uint32_t epoch, uint32_t sample,
    struct pnet_sample *source, struct pnet_sample *target, struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(seed, epoch, sample);
    enum pnet_status status = pnet_limit_side(most, &r, 0, source, e);
    return status ? status : pnet_limit_side(most, &r, DRAW_TARGET, target, e);
}
