/* Pairs for registration: two views of one scene, each in a frame of its own. */
#include "runtime/data/dataset_overlap.h"
#include "runtime/synth/synth_cloud.h"

enum { ATTEMPTS = 8 };
static const double LEAST_OVERLAP = 0.3;

/* Returns the distance within which points of two views of a room meet: a view sees some 60 square metres, and few points
   are far from the next one. */
static double near_m(const struct pnet_synth_job *job)
{
    return fmax(0.1, 12 / sqrt((double)job->options.points));
}

void pnet_synth_pair_free(struct pnet_synth_pair *p)
{
    pnet_cloud_free(&p->source);
    pnet_cloud_free(&p->target);
    *p = (struct pnet_synth_pair){.pose = {{0}}};
}

/* Returns a rotation about unit axes, one after the other. */
static struct pnet_pose turned(const struct pnet_vec *axes, const float *angles, int count)
{
    struct pnet_pose a = pnet_pose_identity();
    for (int i = 0; i < count; i++) {
        struct pnet_vec rows[3];
        struct pnet_pose b = pnet_pose_identity();
        pnet_turn(rows, axes[i], angles[i]);
        for (int r = 0; r < 3; r++) {
            b.m[4 * r] = (double)rows[r].x;
            b.m[4 * r + 1] = (double)rows[r].y;
            b.m[4 * r + 2] = (double)rows[r].z;
        }
        a = pnet_pose_multiply(&b, &a);
    }
    return a;
}

/* A frame for the cloud: any turn about z, tilts of a few degrees and a shift, or any turn at all.
   Scans keep the one of their scanner unless any turn is asked for. */
static void draw_frame(
    const struct pnet_synth_job *job, struct pnet_synth_view *v, struct pnet_cloud *c)
{
    const struct pnet_vec axes[3] = {{0, 0, 1}, {0, 1, 0}, {1, 0, 0}};
    struct pnet_draw d =
        draw_begin(job->seed, job->index, v->number << SYNTH_PURPOSE_BITS | SYNTH_FRAME, 0);
    float tilt = job->options.any_rotation ? 3.14159265f : 0.1f, angles[3];
    if (job->options.street && !job->options.any_rotation) return;
    for (int i = 0; i < 3; i++) angles[i] = draw_between(&d, -tilt, tilt);
    angles[0] = draw_between(&d, -3.14159265f, 3.14159265f);
    struct pnet_pose away = turned(axes, angles, 3);
    for (int i = 0; i < 3; i++) away.m[4 * i + 3] = (double)draw_between(&d, -2, 2);
    struct pnet_pose back = pnet_pose_inverse(&away);
    for (int64_t i = 0; i < c->rows; i++) {
        float *xyz = c->xyz + 3 * i;
        double p[3] = {(double)xyz[0], (double)xyz[1], (double)xyz[2]};
        pnet_pose_apply(&away, p, p);
        for (int k = 0; k < 3; k++) xyz[k] = (float)p[k];
    }
    v->world = pnet_pose_multiply(&v->world, &back);
}

static enum pnet_status take_view(const struct pnet_synth_job *job, struct pnet_synth_view *v,
    struct pnet_cloud *c, struct pnet_error *e)
{
    enum pnet_status status = job->options.street ? pnet_synth_scan_view(job, v, c, e)
                                                  : pnet_synth_room_view(job, v, c, e);
    if (!status) draw_frame(job, v, c);
    return status;
}

/* Tells whether the target sees enough of the source; scans of a street always overlap. */
static enum pnet_status overlaps(const struct pnet_synth_job *job, const struct pnet_synth_pair *p,
    bool *enough, struct pnet_error *e)
{
    int64_t near;
    *enough = true;
    if (job->options.street) return PNET_OK;
    enum pnet_status status = pnet_overlap(p->source.xyz, p->source.rows, p->target.xyz,
        p->target.rows, &p->pose, near_m(job), &near, e);
    *enough = (double)near >= LEAST_OVERLAP * (double)p->source.rows;
    return status;
}

enum pnet_status pnet_synth_views(
    const struct pnet_synth_job *job, struct pnet_synth_pair *p, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    bool enough = false;
    for (uint32_t attempt = 0; attempt < ATTEMPTS && !enough && !status; attempt++) {
        struct pnet_synth_view source = {.number = 1, .attempt = attempt};
        struct pnet_synth_view target = {.number = 2, .attempt = attempt};
        pnet_synth_pair_free(p);
        status = take_view(job, &source, &p->source, e);
        if (!status) status = take_view(job, &target, &p->target, e);
        struct pnet_pose back = pnet_pose_inverse(&target.world);
        p->pose = pnet_pose_multiply(&back, &source.world);
        if (!status) status = overlaps(job, p, &enough, e);
    }
    if (status) pnet_synth_pair_free(p);
    return status;
}
