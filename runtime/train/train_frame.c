#include "runtime/train/train_frame.h"
#include "runtime/base/memory_stream.h"
#include "runtime/data/doubt.h"

#include <string.h>

void pnet_train_frame_begin(struct pnet_train_frame *f, const struct pnet_train_options *o)
{
    const struct pnet_plan *p = o->plan;
    bool own = !o->data->origin.named; /* each cloud its own offset */
    *f = (struct pnet_train_frame){.o = o,
        .coordinates =
            own && pnet_reads_coordinates(p->inputs, p->input_count, &o->config->inputs)};
}

enum pnet_status pnet_train_frame_resume(
    struct pnet_train_frame *f, const char *input_map, struct pnet_error *e)
{
    struct pnet_input_map m;
    if (!*input_map) return PNET_OK;
    enum pnet_status st =
        pnet_input_map_read("the input map of the checkpoint", input_map, strlen(input_map), &m, e);
    if (st) return st;
    f->seen = m.frame;
    f->told = m.frame.offsets_differ;
    pnet_input_map_free(&m);
    return PNET_OK;
}

static void tell(struct pnet_train_frame *f, const struct pnet_frame *before, const char *others,
    const struct pnet_frame *clouds)
{
    char text[PNET_DOUBT_TEXT];
    if (!f->coordinates || f->told || !f->o->warn) return;
    pnet_doubt_offset(before, others, clouds, f->o->data->path, text);
    if (*text) f->o->warn(f->o->context, text);
    f->told = *text;
}

void pnet_train_frame_add(struct pnet_train_frame *f, const struct pnet_frame *batch)
{
    struct pnet_frame first = *batch;
    first.offsets_differ = false;
    tell(f, f->seen.clouds ? &f->seen : &first, "another cloud", batch);
    pnet_frame_merge(&f->seen, batch);
}

void pnet_train_frame_compare(struct pnet_train_frame *f, const struct pnet_frame *validated)
{
    tell(f, &f->seen, "the training", validated);
}

char *pnet_train_frame_print(const struct pnet_train_frame *f)
{
    struct pnet_memory_stream text;
    struct pnet_input_map m = f->o->config->inputs;
    m.frame = f->seen;
    m.frame.boxed = m.frame.boxed && f->o->data->task == PNET_COMPLETION;
    m.frame.offset_known = m.frame.offset_known && f->coordinates;
    if (!pnet_memory_stream_open(&text)) return NULL;
    pnet_input_map_print(&m, text.file);
    return pnet_memory_stream_close(&text, NULL);
}
