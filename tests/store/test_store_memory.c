/* Every allocation fails in turn, alone and with all behind it: an error comes back, nothing leaks,
   and what was on the disk is still there. */
#include "runtime/train/checkpoint.h"
#include "runtime/base/json.h"
#include "runtime/train/report.h"
#include "tests/check.h"
#include "tests/heap.h"
#include "tests/store/folder.h"

#if HEAP_REPLACED

static const char *folder, *tensor_path, *run_folder;
static float numbers[10];

/* Each does something in full and returns its status. */
static enum pnet_status write_tensors(struct pnet_error *e)
{
    struct pnet_safetensor t[] = {{.name = "a", .dims = 1, .shape = {10}, .data = numbers},
        {.name = "b", .dims = 2, .shape = {2, 3}, .data = numbers}};
    return pnet_safetensors_write(tensor_path, t, 2, &(struct pnet_metadata){"k", "v"}, 1, e);
}

static enum pnet_status read_tensors(struct pnet_error *e)
{
    struct pnet_safetensors *f;
    float x[10];
    enum pnet_status status = pnet_safetensors_read(tensor_path, &f, e);
    if (status != PNET_OK) {
        CHECK(!f);
        return status;
    }
    CHECK(f->count == 2 && pnet_safetensors_find(f, "b"));
    CHECK(pnet_safetensors_load(f, "f", "a", 1, (int64_t[]){10}, x, e) == PNET_OK);
    pnet_safetensors_free(f);
    return PNET_OK;
}

static enum pnet_status write_checkpoint(struct pnet_error *e)
{
    struct pnet_safetensor t = {.name = "a", .dims = 1, .shape = {10}, .data = numbers};
    struct pnet_score score = {"val.oa", 0.5};
    struct pnet_counter counter = {"skipped", 2};
    struct pnet_checkpoint_state s = {.step = 7,
        .counters = &counter,
        .counter_count = 1,
        .metrics = &score,
        .metric_count = 1,
        .model = "pnet 1\n"};
    return pnet_checkpoint_write(folder, &s, &t, 1, &t, 1, e);
}

static enum pnet_status read_checkpoint(struct pnet_error *e)
{
    struct pnet_checkpoint *c;
    enum pnet_status status = pnet_checkpoint_read(folder, &c, e);
    if (status != PNET_OK) {
        CHECK(!c);
        return status;
    }
    CHECK(c->state.step == 7 && c->weights->count == 1 && c->state.metrics[0].value == 0.5);
    pnet_checkpoint_free(c);
    return PNET_OK;
}

static enum pnet_status write_report(struct pnet_error *e)
{
    return pnet_report_write(run_folder, &(struct pnet_report_info){.class_count = 0}, e);
}

static void check_all(const char *name, enum pnet_status (*work)(struct pnet_error *e))
{
    struct pnet_error e;
    for (int behind = 0; behind < 2; behind++) {
        long n = 1, refused = 0;
        for (;; n++) {
            heap_begin(n, behind);
            enum pnet_status status = work(&e);
            bool reached = heap.calls >= n;
            heap.counting = false;
            CHECKF(heap.live == 0, "%s: %ld blocks lost at %ld", name, heap.live, n);
            if (!reached) break;
            /* The C library may do without a buffer, or say ENOMEM for a stream. */
            CHECKF(status == PNET_OK || status == PNET_NO_MEMORY || status == PNET_FAILED,
                "%s: status %d at %ld: %s", name, status, n, e.message);
            refused += status == PNET_NO_MEMORY;
            CHECKF(read_tensors(&e) == PNET_OK && read_checkpoint(&e) == PNET_OK, "%s: %ld: %s",
                name, n, e.message);
        }
        CHECKF(refused >= 2, "%s: only %ld of %ld refused", name, refused, n);
        CHECKF(work(&e) == PNET_OK, "%s: %s", name, e.message);
    }
}

int main(void)
{
    struct pnet_error e;
    make_folder();
    folder = in_folder("last");
    tensor_path = in_folder("w.safetensors");
    run_folder = test_folder;
    FILE *f = fopen(in_folder("metrics.jsonl"), "w");
    if (!f) return 1;
    for (int i = 0; i < 70; i++)
        fprintf(f, "{\"step\":%d,\"loss\":%d,\"val.m\":1,\"val.m.per_class\":[1,2]}\n", i, i);
    fclose(f);
    /* The first use of the C library's and jansson's tables stays allocated. */
    CHECK(write_tensors(&e) == PNET_OK && write_checkpoint(&e) == PNET_OK &&
          write_report(&e) == PNET_OK);
    check_all("write tensors", write_tensors);
    check_all("read tensors", read_tensors);
    check_all("write checkpoint", write_checkpoint);
    check_all("read checkpoint", read_checkpoint);
    check_all("report", write_report);
    remove_tree(test_folder);
    return check_end();
}
#endif
