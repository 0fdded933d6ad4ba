#include "compiler/cli/inference.h"
#include "compiler/cli/result_columns.h"
#include "runtime/data/doubt.h"
#include "runtime/io/cloud_check.h"

#include <math.h>

/* Returns the input of which the training recorded the frame: the first cloud that the model declares. */
static int first_cloud(const struct pnet_plan *p)
{
    int i = 0;
    while (i < p->input_count && pnet_input_is_pose(&p->inputs[i])) i++;
    return i;
}

void pnet_cli_doubt_frame(
    struct inference *f, int k, const struct pnet_frame *frame, const char *path)
{
    const struct pnet_frame *trained = &f->weights.map.frame;
    char text[PNET_DOUBT_TEXT] = "";
    if (k == 0 && f->feed.input[0] == first_cloud(f->plan))
        pnet_doubt_box(trained, frame, path, text);
    if (*text) pnet_cli_notice("%s", text);
    pnet_cli_doubt_offset(&f->offsets, trained, frame, path);
}

/* Says, for the first cloud, what is called otherwise. */
static void say_kept(struct inference *f, const char *input, const struct kept_columns *kept)
{
    if (!kept->count || f->renamed) return;
    f->renamed = true;
    pnet_cli_notice("%s: columns of the input that are called as the result's are written as "
                    "input_NAME: %s",
        input, kept->list);
}

enum pnet_status pnet_cli_add_result(struct inference *f, const char *input, struct pnet_cloud *c,
    const float *result, const int64_t *row_of, int width, struct pnet_error *e)
{
    struct kept_columns kept = {.count = 0};
    enum pnet_status st = pnet_cloud_restore(c, e);
    if (st) return st;
    if (!f->plan->result_classes)
        st = pnet_cli_add_features(c, result, row_of, width, &kept, e);
    else if (f->codes.count)
        st = pnet_cli_add_codes(c, result, row_of, &f->codes, e);
    else
        st = pnet_cli_add_classes(c, result, row_of, width, &kept, e);
    if (!st && f->plan->result_classes && f->colour)
        st = pnet_cli_colour_classes(c, result, row_of, width, e);
    if (!st) say_kept(f, input, &kept);
    return st;
}

enum pnet_status pnet_cli_make_like(struct inference *f, const char *input,
    const struct pnet_cloud *from, int width, struct pnet_cloud *like, struct pnet_error *e)
{
    *like = *from;
    like->rows = 0;
    like->file_rows = 0;
    like->fields = NULL;
    like->field_count = 0;
    like->file_row = NULL;
    like->xyz = NULL;
    like->exact = NULL;
    for (int i = 0; i < from->field_count; i++) {
        struct pnet_field *field = pnet_cloud_add(like, from->fields[i].name, from->fields[i].type);
        if (!field) return pnet_error_memory(e);
        field->untyped = from->fields[i].untyped;
        field->part = from->fields[i].part;
    }
    float none = 0;
    return pnet_cli_add_result(f, input, like, &none, NULL, width, e);
}

void pnet_cli_free_like(struct pnet_cloud *like)
{
    like->las = NULL; /* of the cloud that it was made from */
    like->array = NULL;
    pnet_cloud_free(like);
}

enum pnet_status pnet_cli_check_like(struct inference *f, const char *input,
    const struct pnet_cloud *from, int width, const char *output, struct pnet_error *e)
{
    struct pnet_cloud like;
    enum pnet_status st = pnet_cli_make_like(f, input, from, width, &like, e);
    if (!st) st = pnet_cloud_check_like(output, &like, e);
    pnet_cli_free_like(&like);
    return st;
}

int64_t pnet_cli_not_finite(const float *numbers, int64_t count)
{
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++) bad += !isfinite(numbers[i]);
    return bad;
}

void pnet_cli_warn_not_finite(const char *input, int64_t bad, int64_t count)
{
    if (bad)
        pnet_cli_notice("%s: %s%lld of %lld numbers of the result are not finite", input,
            bad == count ? "all, " : "", (long long)bad, (long long)count);
}
