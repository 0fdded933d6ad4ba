/* The files of poses, from any bytes: what is taken is rigid. */
#include "runtime/data/dataset_pose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds) abort();
}

/* A pose and its inverse cancel. */
static void check_pose(const struct pnet_pose *a)
{
    struct pnet_pose b = pnet_pose_inverse(a), c = pnet_pose_multiply(a, &b);
    for (int i = 0; i < 12; i++) {
        double far =
            i % 4 == 3 ? 1e-6 * (1 + fabs(a->m[3]) + fabs(a->m[7]) + fabs(a->m[11])) : 1e-9;
        require(fabs(c.m[i] - (i % 5 == 0)) < far);
    }
}

static void check_error(enum pnet_status status, const struct pnet_error *e)
{
    require(status == PNET_BAD_DATA && e->status == status && strncmp(e->message, "f", 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pnet_error e = {.message = ""};
    struct pnet_pose a;
    struct pnet_pose_log log;
    struct pnet_information n;
    struct pnet_poses poses;
    /* A copy of its own, so that a sanitizer sees one byte too far. */
    uint8_t *copy = malloc(size ? size : 1);
    require(copy != NULL);
    if (size) memcpy(copy, data, size);
    enum pnet_status status = pnet_pose_parse("f", copy, size, &a, &e);
    if (status)
        check_error(status, &e);
    else
        check_pose(&a);
    if ((status = pnet_calib_parse("f", copy, size, &a, &e)))
        check_error(status, &e);
    else
        check_pose(&a);
    if ((status = pnet_pose_log_parse("f", copy, size, &log, &e))) check_error(status, &e);
    require((status != PNET_OK) == (log.count == 0));
    for (int64_t i = 0; i < log.count; i++) check_pose(&log.pairs[i].pose);
    pnet_pose_log_free(&log);
    if ((status = pnet_information_parse("f", copy, size, &n, &e))) check_error(status, &e);
    require((status != PNET_OK) == (n.count == 0));
    for (int64_t i = 0; i < n.count; i++) require(n.pairs[i].matrix[0] > 0);
    pnet_information_free(&n);
    if ((status = pnet_poses_parse("f", copy, size, &poses, &e))) check_error(status, &e);
    require((status != PNET_OK) == (poses.count == 0));
    for (int64_t i = 0; i < poses.count; i++) check_pose(&poses.frames[i]);
    pnet_poses_free(&poses);
    free(copy);
    return 0;
}
