#include "runtime/loader_sample.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 512 };

/* A sample in a batch: the cache's, or this batch's own. */
struct item {
    const struct pnet_sample *sample;
    struct pnet_sample *own; /* or NULL */
};

enum pnet_status pnet_sample_source_init(
    const struct pnet_loader_options *o, struct pnet_sample_source *s, struct pnet_error *e)
{
    *s = (struct pnet_sample_source){.o = *o, .samples = o->data->counts[o->split]};
    enum pnet_status status = pnet_dataset_check(o->data, o->inputs, o->input_count, e);
    if (!status) status = pnet_input_map_check(o->map, o->inputs, o->input_count, &s->input, e);
    if (status) return status;
    if (!s->samples)
        return pnet_error_set(
            e, PNET_BAD_DATA, "%s: `%s` has no entries", o->data->path, pnet_split_name(o->split));
    if (s->samples > UINT32_MAX)
        return pnet_error_set(e, PNET_BAD_DATA, "%s: more than 2^32 - 1 entries", o->data->path);
    s->kept = calloc((size_t)s->samples, sizeof(struct pnet_sample *));
    s->warned = calloc((size_t)s->samples, sizeof *s->warned);
    if (!s->kept || !s->warned || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s->kept);
        free(s->warned);
        return pnet_error_memory(e);
    }
    return PNET_OK;
}

void pnet_sample_source_free(struct pnet_sample_source *s)
{
    for (int64_t i = 0; i < s->samples; i++) pnet_sample_free(s->kept[i]);
    free(s->kept);
    free(s->warned);
    pthread_mutex_destroy(&s->lock);
}

static bool wants_labels(const struct pnet_sample_source *s)
{
    const struct pnet_input *input = &s->o.inputs[s->input];
    for (int i = 0; i < input->field_count; i++)
        if (input->fields[i].kind == PNET_INPUT_CLASS && !input->fields[i].unused) return true;
    return false;
}

static void warn(struct pnet_sample_source *s, int64_t index, const char *text)
{
    if (!text[0] || !s->o.warn) return;
    pthread_mutex_lock(&s->lock);
    bool first = !s->warned[index];
    s->warned[index] = true;
    if (first) s->o.warn(s->o.context, text);
    pthread_mutex_unlock(&s->lock);
}

/* Puts a sample just made into the cache while there is room; says whether the cache owns it now.
 */
static bool keep(struct pnet_sample_source *s, int64_t index, struct pnet_sample *sample)
{
    uint64_t bytes = pnet_sample_bytes(sample);
    pthread_mutex_lock(&s->lock);
    bool room =
        !s->kept[index] && bytes <= s->o.cache_bytes && s->kept_bytes <= s->o.cache_bytes - bytes;
    if (room) {
        s->kept[index] = sample;
        s->kept_bytes += bytes;
    }
    pthread_mutex_unlock(&s->lock);
    return room;
}

static enum pnet_status load(
    struct pnet_sample_source *s, int64_t index, struct item *item, struct pnet_error *e)
{
    const struct pnet_entry *entry = &s->o.data->entries[s->o.split][index];
    struct pnet_labelled l;
    char name[NAME_MOST], warning[256];
    pthread_mutex_lock(&s->lock);
    item->sample = s->kept[index];
    pthread_mutex_unlock(&s->lock);
    if (item->sample) return PNET_OK;

    enum pnet_status status =
        pnet_dataset_load(s->o.data, s->o.split, index, wants_labels(s), &l, warning, e);
    if (status) return status;
    warn(s, index, warning);
    pnet_entry_name(entry, name, NAME_MOST);
    struct pnet_sample *sample = NULL;
    if (!l.cloud.rows && !s->o.skip_empty)
        status = pnet_error_set(e, PNET_BAD_DATA,
            "%s: has no points with finite coordinates (`skip_empty: yes` leaves such clouds out)",
            name);
    else
        status = pnet_sample_make(
            &s->o.inputs[s->input], s->o.map, &l.cloud, l.labels, l.label_count, name, &sample, e);
    pnet_labelled_free(&l);
    if (status) return status;
    assert(sample);
    item->sample = sample;
    if (!keep(s, index, sample)) item->own = sample;
    return PNET_OK;
}

/* Makes the sample the batch's own, then changes it. */
static enum pnet_status change(struct pnet_sample_source *s, uint32_t epoch, int64_t index,
    struct item *item, struct pnet_error *e)
{
    bool capped = s->o.max_points && item->sample->rows > s->o.max_points;
    bool augmented = s->o.augment && pnet_augment_any(s->o.augment);
    enum pnet_status status = PNET_OK;
    if (!s->o.training || !item->sample->rows || (!capped && !augmented)) return PNET_OK;
    if (!item->own) status = pnet_sample_copy(item->sample, &item->own, e);
    if (status) return status;
    item->sample = item->own;
    if (capped)
        status =
            pnet_sample_limit(s->o.max_points, s->o.seed, epoch, (uint32_t)index, item->own, e);
    if (!status && augmented) {
        status = pnet_augment_apply(s->o.augment, s->o.seed, epoch, (uint32_t)index, item->own, e);
        if (status == PNET_USAGE) {
            char name[NAME_MOST];
            pnet_entry_name(&s->o.data->entries[s->o.split][index], name, NAME_MOST);
            pnet_error_set(e, status, "%s: %s", name, e ? e->message : "");
        }
    }
    return status;
}

static enum pnet_status collect(struct pnet_sample_source *s, uint32_t epoch,
    const int64_t *entries, int32_t count, struct item *items, int32_t *used, struct pnet_error *e)
{
    for (int32_t i = 0; i < count; i++) {
        struct item *item = &items[*used];
        enum pnet_status status = load(s, entries[i], item, e);
        if (!status) status = change(s, epoch, entries[i], item, e);
        if (status) {
            pnet_sample_free(item->own);
            return status;
        }
        if (item->sample->rows) {
            ++*used;
        } else {
            pnet_sample_free(item->own);
            *item = (struct item){.own = NULL};
        }
    }
    return PNET_OK;
}

enum pnet_status pnet_sample_source_batch(struct pnet_sample_source *s, uint32_t epoch,
    const int64_t *entries, int32_t count, struct pnet_batch **b, struct pnet_error *e)
{
    struct item *items = calloc((size_t)count, sizeof *items);
    const struct pnet_sample **samples = calloc((size_t)count, sizeof *samples);
    int32_t used = 0;
    bool repeats = !s->o.training || !s->o.augment || !pnet_augment_any(s->o.augment);
    enum pnet_status status = PNET_OK;
    *b = NULL;
    if (!items || !samples) {
        status = pnet_error_memory(e);
    } else {
        status = collect(s, epoch, entries, count, items, &used, e);
        for (int32_t i = 0; i < used; i++) samples[i] = items[i].sample;
        if (!status && used)
            status = pnet_samples_batch(
                s->o.inputs, s->o.input_count, s->input, samples, used, repeats, b, e);
        for (int32_t i = 0; i < used; i++) pnet_sample_free(items[i].own);
    }
    free(items);
    free(samples);
    return status;
}
