/* Batches: sizes by kind, zeroed, split points copied. */
#include "runtime/plan/input.h"
#include "tests/check.h"

static int all_zero(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    size_t i = 0;
    while (i < bytes && !p[i]) i++;
    return i == bytes;
}

static void check_two_inputs(void)
{
    struct pnet_input_field a[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 5},
        {.name = "kind", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 5, .per_cloud = true},
        {.name = "pose", .kind = PNET_INPUT_FEATURE, .width = 12, .per_cloud = true},
        {.name = "spare", .kind = PNET_INPUT_FEATURE, .width = 9, .unused = true}};
    struct pnet_input_field b[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION}};
    const struct pnet_input inputs[] = {{.name = "src", .fields = a, .field_count = 6},
        {.name = "dst", .fields = b, .field_count = 1}, {.name = "none", .unused = true}};
    int64_t first[] = {0, 10, 10, 17}, second[] = {0, 0, 4, 5}, third[] = {0, 0, 0, 0};
    const int64_t *splits[] = {first, second, third};
    struct pnet_batch *batch;
    struct pnet_error e;
    CHECK(pnet_batch_new(inputs, 3, 3, splits, &batch, &e) == PNET_OK);
    CHECK(batch->samples == 3 && batch->input_count == 3 && batch->field_counts_sum == 7);
    CHECK(batch->id == 0);
    const struct pnet_batch_input *in = batch->inputs;
    CHECK(in[0].rows == 17 && in[1].rows == 5 && in[2].rows == 0);
    CHECK(memcmp(in[0].row_splits, first, sizeof first) == 0 && in[0].row_splits != first);
    CHECK(memcmp(in[1].row_splits, second, sizeof second) == 0);
    CHECK(all_zero(in[0].xyz, 17 * 12) && all_zero(in[1].xyz, 5 * 12));
    CHECK(!in[0].fields[0] && !in[1].fields[0] && !in[0].fields[5]);
    CHECK(all_zero(in[0].fields[1], 17 * 12) && all_zero(in[0].fields[2], 17 * 4));
    CHECK(all_zero(in[0].fields[3], 3 * 4) && all_zero(in[0].fields[4], 3 * 48));
    memset(in[0].fields[1], 1, 17 * 12); /* seen by a sanitizer if they were smaller */
    memset(in[0].fields[2], 1, 17 * 4);
    memset(in[0].fields[3], 1, 3 * 4);
    memset(in[0].fields[4], 1, 3 * 48);
    pnet_batch_free(batch);
}

static void check_empty(void)
{
    struct pnet_input_field f = {.name = "xyz", .kind = PNET_INPUT_POSITION};
    const struct pnet_input input = {.name = "cloud", .fields = &f, .field_count = 1};
    const int64_t split[] = {0}, *splits[] = {split};
    struct pnet_batch *batch;
    CHECK(pnet_batch_new(&input, 1, 0, splits, &batch, NULL) == PNET_OK);
    CHECK(batch->samples == 0 && batch->inputs[0].rows == 0 && batch->inputs[0].row_splits[0] == 0);
    pnet_batch_free(batch);
    CHECK(pnet_batch_new(NULL, 0, 4, NULL, &batch, NULL) == PNET_OK && batch->samples == 4);
    pnet_batch_free(batch);
    pnet_batch_free(NULL);
}

int main(void)
{
    check_two_inputs();
    check_empty();
    return check_end();
}
