/* A whole network on one batch: checked against other kernels, then timed part by part and step by step. */
#ifndef PNET_BENCH_NET_H
#define PNET_BENCH_NET_H

#include "bench/scene.h"
#include "compiler/compile.h"
#include "runtime/device/device.h"
#include "runtime/run/optim.h"

enum { NET_SETS_MAX = 16, NET_REPEAT_MAX = 101 };

struct net_options {
    const char *model, *scene[SCENES_MAX], *set[NET_SETS_MAX];
    const char *text;  /* the model; NULL: it lies in the file `model` */
    const char *write; /* folder; NULL: none */
    int scenes, sets, repeat;
    uint64_t seed; /* of weights, features, labels and dropout */
    int64_t most, check_points;
    double thin; /* metres: one point in each cell of a grid is kept; 0: all are */
    unsigned degrade;
    struct pnet_device where;
    enum pnet_precision precision;
    enum pnet_optim_kind optimizer;
    bool gradients; /* their errors instead of times */
    bool all, layers, json;
};

/* Of one step of the schedule; medians, seconds. */
struct net_step {
    char path[96];
    const char *op;
    int64_t rows; /* of the result */
    int32_t width;
    double forward, backward;
};

/* Whole calls of a runner: wall time in seconds, medians. */
struct net_parts {
    double upload;   /* GPU: points and fields from pageable memory, by themselves */
    double geometry; /* with the upload */
    double orders;   /* of the geometry, by themselves */
    double layout;   /* behind a batch of another capacity class; not in `step` */
    double forward, backward, optimizer;
    double step; /* all of them in a row, the geometry of the batch among them */
};

struct net_result {
    int64_t points, parameters;
    int32_t samples;
    double loss; /* of the check, as the plain kernels have it */
    double loss_error[4],
        gradient_error
            [4]; /* by enum pnet_precision, of fp32 and of what is timed: relative, gradients
                                                 as one vector */
    struct net_parts training;
    double inference;                     /* seconds of forward in a plan for inference */
    size_t training_peak, inference_peak; /* bytes, one batch in memory */
    size_t geometry_bytes;
    /* Seconds besides those of the steps; on a GPU of the device alone. A pass is forward or backward. */
    double optimizer;
    double recorded[2];     /* GPU: of a pass recorded with steps in sequence */
    double mark[2];         /* GPU: by which a mark makes a pass longer; not in the steps' times */
    double concurrent[2];   /* GPU: forward and backward with concurrent steps, as in a training */
    double conv[2];         /* GPU: the same of its convolutions alone */
    double product[2];      /* GPU: and of convolutions and linear layers */
    struct net_step *steps; /* in the order of the forward schedule */
    int step_count;
};

/* Checks the network on `piece` and measures it on `s`. The exit code; an error is said on stderr, with carets where the
   model is at fault. */
int pnet_bench_net_run(const struct net_options *o, const struct scene *piece,
    const struct scene *s, struct net_result *r);

void pnet_bench_net_print(const struct net_options *o, const struct net_result *r);
enum pnet_status pnet_bench_net_print_json(
    const struct net_options *o, const struct net_result *r, struct pnet_error *e);

/* Are errors relative to the plain CPU kernels as small as the precision promises? Says so on stderr where not. */
bool pnet_bench_net_near(enum pnet_precision precision, double loss_error, double gradient_error);

#endif
