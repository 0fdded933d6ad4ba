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

enum pnet_status pnet_augment_partial(const struct pnet_augment *a, uint64_t seed, uint32_t epoch,
    uint32_t sample, struct pnet_sample *partial, struct pnet_sample *full, struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(seed, epoch, sample);
    struct pnet_augment own = *a;
    struct pnet_motion motion, none;
    assert(!a->elastic_count && !a->crop_points && !(a->crop_radius_m > 0));
    if (!partial->rows || !full->rows) return PNET_OK;
    pnet_motion_draw(a, &r, 0, full, &motion);
    for (int c = 0; c < 3; c++) motion.centre[c] = 0;
    pnet_motion_apply(&motion, partial);
    pnet_motion_apply(&motion, full);
    for (int c = 0; c < 3; c++) own.flip[c] = false;
    own.rotate = PNET_ROTATE_NONE;
    own.scale[0] = own.scale[1] = 0;
    return pnet_augment_side(&own, &r, 0, partial, &none, e);
}

enum pnet_status pnet_pair_limit(int64_t most, uint64_t seed, uint32_t epoch, uint32_t sample,
    struct pnet_sample *source, struct pnet_sample *target, struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(seed, epoch, sample);
    enum pnet_status status = pnet_limit_side(most, &r, DRAW_LIMIT, source, e);
    return status ? status : pnet_limit_side(most, &r, DRAW_LIMIT + DRAW_TARGET, target, e);
}
