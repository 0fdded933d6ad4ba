#include "runtime/data/loader_sample.h"
#include "runtime/data/augment_draw.h"
#include "runtime/data/augment_views.h"
#include "runtime/data/doubt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 512 };

static const struct pnet_entry *entry_at(const struct pnet_sample_source *s, int64_t index)
{
    return &s->o.data->entries[s->o.split][index];
}

/* Returns how the clouds of a completion entry are made; NULL: it is none. */
static const struct pnet_partial *partial_at(const struct pnet_sample_source *s, int64_t index)
{
    const struct pnet_pair *pair = entry_at(s, index)->pair;
    return pair && pair->partial >= 0 ? &s->o.data->partials[pair->partial] : NULL;
}

/* The same of an entry whose partial cloud is cut from a full one that is a file; else NULL. */
static const struct pnet_partial *cut_at(const struct pnet_sample_source *s, int64_t index)
{
    const struct pnet_partial *p = partial_at(s, index);
    return p && p->cloud ? p : NULL;
}

struct pnet_views_draw pnet_sample_source_draw(
    const struct pnet_sample_source *s, uint32_t epoch, int64_t index)
{
    if (s->o.training) return (struct pnet_views_draw){s->o.seed, epoch, (uint32_t)index};
    return pnet_partial_fixed(partial_at(s, index), (int)s->o.split, (uint32_t)index);
}

/* Checks that the model has the inputs that the entries of the data set fill. */
static enum pnet_status find_roles(struct pnet_sample_source *s, struct pnet_error *e)
{
    const struct pnet_loader_options *o = &s->o;
    const struct pnet_augment *a = o->training ? o->augment : NULL;
    s->sides = pnet_task_pairs(o->data->task) ? 2 : 1;
    s->roles = (struct pnet_input_roles){-1, -1, -1};
    if (s->sides == 1)
        return pnet_input_map_check(o->map, o->inputs, o->input_count, &s->roles.source, e);
    if (o->one_frame && o->data->task == PNET_REGISTRATION)
        return pnet_error_set(e, PNET_USAGE,
            "the model takes features of one cloud to the points of the other, and the clouds of a "
            "data set for registration have frames of their own: it needs one for completion");
    if (a && a->elastic_count && o->data->task == PNET_REGISTRATION)
        return pnet_error_set(e, PNET_USAGE,
            "augment: elastic bends clouds, and no pose would map the source onto the target of a "
            "pair; leave it out");
    if (a && o->data->task == PNET_COMPLETION &&
        (a->elastic_count || a->crop_points || a->crop_radius_m > 0))
        return pnet_error_set(e, PNET_USAGE,
            "augment: %s would change the partial and the full cloud of a completion entry in "
            "different ways; leave it out",
            a->elastic_count ? "elastic" : "crop");
    return pnet_input_map_check_pair(
        o->map, o->inputs, o->input_count, pnet_task_sides(o->data->task), &s->roles, e);
}

enum pnet_status pnet_sample_source_init(
    const struct pnet_loader_options *o, struct pnet_sample_source *s, struct pnet_error *e)
{
    *s = (struct pnet_sample_source){.o = *o, .samples = o->data->counts[o->split]};
    enum pnet_status status = pnet_dataset_check(o->data, o->inputs, o->input_count, e);
    if (!status) status = find_roles(s, e);
    if (status) return status;
    if (!s->samples)
        return pnet_error_set(
            e, PNET_BAD_DATA, "%s: `%s` has no entries", o->data->path, pnet_split_name(o->split));
    if (s->samples > UINT32_MAX)
        return pnet_error_set(e, PNET_BAD_DATA, "%s: more than 2^32 - 1 entries", o->data->path);
    size_t clouds = (size_t)s->samples * (size_t)s->sides;
    s->kept = calloc(clouds, sizeof(struct pnet_sample *));
    s->warned = calloc(clouds, sizeof *s->warned);
    if (o->data->partial_count) s->surfaces = calloc((size_t)s->samples, sizeof *s->surfaces);
    if (!s->kept || !s->warned || (o->data->partial_count && !s->surfaces) ||
        pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s->surfaces);
        free(s->kept);
        free(s->warned);
        return pnet_error_memory(e);
    }
    return PNET_OK;
}

void pnet_sample_source_free(struct pnet_sample_source *s)
{
    for (int64_t i = 0; i < s->samples * s->sides; i++) pnet_sample_free(s->kept[i]);
    for (int64_t i = 0; s->surfaces && i < s->samples; i++) {
        if (s->surfaces[i]) pnet_surface_free(s->surfaces[i]);
        free(s->surfaces[i]);
    }
    free(s->surfaces);
    free(s->kept);
    free(s->warned);
    pthread_mutex_destroy(&s->lock);
}

static bool wants_labels(const struct pnet_sample_source *s)
{
    const struct pnet_input *input = &s->o.inputs[s->roles.source];
    for (int i = 0; i < input->field_count; i++)
        if (input->fields[i].kind == PNET_INPUT_CLASS && !input->fields[i].unused) return true;
    return false;
}

/* Does a class field take the labels of points from the data set, where the cloud has none? */
static bool misses_labels(const struct pnet_sample_source *s, const struct pnet_labelled *l)
{
    const struct pnet_input *input = &s->o.inputs[s->roles.source];
    if (s->o.data->task != PNET_SEGMENTATION || l->label_count || !l->cloud.rows) return false;
    for (int i = 0; i < input->field_count; i++) {
        const struct pnet_input_field *f = &input->fields[i];
        const char *name;
        if (f->kind != PNET_INPUT_CLASS || f->unused) continue;
        pnet_input_map_class(s->o.map, input, f, &name);
        if (!name) return true;
    }
    return false;
}

static void warn(struct pnet_sample_source *s, int64_t cloud, const char *text)
{
    if (!text[0] || !s->o.warn) return;
    pthread_mutex_lock(&s->lock);
    bool first = !s->warned[cloud];
    s->warned[cloud] = true;
    if (first) s->o.warn(s->o.context, text);
    pthread_mutex_unlock(&s->lock);
}

int64_t pnet_sample_source_place(const struct pnet_sample_source *s, int64_t index)
{
    const struct pnet_pair *pair = entry_at(s, index)->pair;
    return (index - (pair ? pair->view : 0)) * s->sides;
}

/* Puts the new samples of an entry into the cache if there is room. Returns whether the cache owns them now. */
static bool keep(struct pnet_sample_source *s, int64_t place, struct pnet_sample *const made[2])
{
    uint64_t bytes = 0;
    for (int k = 0; k < 2; k++) bytes += made[k] ? pnet_sample_bytes(made[k]) : 0;
    pthread_mutex_lock(&s->lock);
    bool room =
        !s->kept[place] && bytes <= s->o.cache_bytes && s->kept_bytes <= s->o.cache_bytes - bytes;
    for (int k = 0; k < 2 && room; k++)
        if (made[k]) s->kept[place + k] = made[k];
    if (room) s->kept_bytes += bytes;
    pthread_mutex_unlock(&s->lock);
    return room;
}

/* Warns of the first cloud whose colours alone would be divided by another number and, in evaluation, of the first one with
   features outside of the range that the training has seen. */
static enum pnet_status warn_unusual(struct pnet_sample_source *s, int input,
    const struct pnet_cloud *cloud, const char *name, struct pnet_error *e)
{
    char text[2][PNET_OUTSIDE_TEXT] = {"", ""};
    const struct pnet_input *in = &s->o.inputs[input];
    if (!s->o.warn || !s->o.map->ranges.count) return PNET_OK;
    struct pnet_ranges r = {.count = 0};
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < in->field_count && !status; i++)
        if (!s->o.training || pnet_input_map_divides(s->o.map, in, &in->fields[i]))
            status = pnet_input_map_range(s->o.map, in, &in->fields[i], cloud, name, &r, e);
    pnet_input_map_alone(s->o.map, &r, name, text[0]);
    if (!s->o.training) pnet_input_map_outside(s->o.map, &r, name, text[1]);
    pnet_ranges_free(&r);
    pthread_mutex_lock(&s->lock);
    for (int k = 0; k < 2 && !status; k++) {
        if (!text[k][0] || s->told[k]) continue;
        s->told[k] = true;
        s->o.warn(s->o.context, text[k]);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum pnet_status pnet_sample_source_make(struct pnet_sample_source *s, int input,
    const struct pnet_cloud *cloud, const int32_t *labels, int64_t label_count, const char *name,
    struct pnet_sample **sample, struct pnet_error *e)
{
    if (!cloud->rows && !s->o.skip_empty)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: has no points with finite coordinates (`skip_empty: yes` leaves such clouds out)",
            name);
    enum pnet_status status = warn_unusual(s, input, cloud, name, e);
    if (status) return status;
    return pnet_sample_make(
        &s->o.inputs[input], s->o.map, cloud, labels, label_count, name, sample, e);
}

static enum pnet_status load_single(
    struct pnet_sample_source *s, int64_t index, struct pnet_sample **made, struct pnet_error *e)
{
    struct pnet_labelled l;
    char name[NAME_MOST], warning[256];
    enum pnet_status status =
        pnet_dataset_load(s->o.data, s->o.split, index, wants_labels(s), &l, warning, e);
    if (status) return status;
    warn(s, index, warning);
    pnet_entry_name(entry_at(s, index), name, NAME_MOST);
    if (misses_labels(s, &l))
        status = pnet_dataset_no_labels(s->o.data, entry_at(s, index), &l.cloud, e);
    else
        status = pnet_sample_source_make(
            s, s->roles.source, &l.cloud, l.labels, l.label_count, name, made, e);
    pnet_labelled_free(&l);
    return status;
}

/* Makes both samples of an entry from its clouds. On failure both are NULL. */
static enum pnet_status make_pair(struct pnet_sample_source *s, int64_t index,
    const struct pnet_loaded_pair *p, struct pnet_sample **made, struct pnet_error *e)
{
    const struct pnet_entry *entry = entry_at(s, index);
    const char *target = entry->pair->target;
    int64_t labels = entry->label != PNET_LABEL_NONE;
    enum pnet_status status = pnet_sample_source_make(
        s, s->roles.source, &p->source, &entry->label, labels, entry->cloud, &made[0], e);
    if (status) return status;
    if (entry->pair->turned) pnet_normals_turn(entry->pair->turn, made[0]);
    status = pnet_sample_source_make(s, s->roles.target, target ? &p->target : &p->source,
        &entry->label, labels, target ? target : entry->cloud, &made[1], e);
    if (!status) return PNET_OK;
    pnet_sample_free(made[0]);
    made[0] = NULL;
    return status;
}

/* Draws the points of a full cloud from which the partial one will be cut: those of both samples. On failure both are NULL. */
static enum pnet_status count_full(struct pnet_sample_source *s, int64_t index,
    const struct pnet_partial *p, struct pnet_sample **made, struct pnet_error *e)
{
    uint32_t first = (uint32_t)(index - entry_at(s, index)->pair->view);
    struct pnet_views_draw draw = pnet_partial_full(p, (int)s->o.split, first);
    enum pnet_status status = pnet_partial_count_full(p, &draw, made[0], e);
    if (!status) status = pnet_partial_count_full(p, &draw, made[1], e);
    for (int k = 0; k < 2 && status; k++) {
        pnet_sample_free(made[k]);
        made[k] = NULL;
    }
    return status;
}

static enum pnet_status load_pair(
    struct pnet_sample_source *s, int64_t index, struct pnet_sample **made, struct pnet_error *e)
{
    const struct pnet_partial *p = cut_at(s, index);
    struct pnet_loaded_pair pair;
    char warning[2][256];
    enum pnet_status status =
        pnet_dataset_load_pair(s->o.data, s->o.split, index, &pair, warning, e);
    if (status) return status;
    for (int k = 0; k < 2; k++) warn(s, pnet_sample_source_place(s, index) + k, warning[k]);
    if (p) status = pnet_partial_normalise(entry_at(s, index)->cloud, &pair.source, e);
    if (!status) status = make_pair(s, index, &pair, made, e);
    if (!status && p) status = count_full(s, index, p, made, e);
    pnet_loaded_pair_free(&pair);
    return status;
}

static enum pnet_status load(struct pnet_sample_source *s, uint32_t epoch, int64_t index,
    struct pnet_sample_item *item, struct pnet_error *e)
{
    const struct pnet_partial *p = partial_at(s, index);
    if (p && p->kind != PNET_PARTIAL_FILE && !p->cloud)
        return pnet_sample_source_mesh(s, epoch, index, item, e);
    int64_t place = pnet_sample_source_place(s, index);
    struct pnet_sample *made[2] = {NULL, NULL};
    enum pnet_status status = PNET_OK;
    pthread_mutex_lock(&s->lock);
    for (int k = 0; k < s->sides; k++) item->sample[k] = s->kept[place + k];
    pthread_mutex_unlock(&s->lock);
    if (!item->sample[0]) {
        status = (s->sides == 2 ? load_pair : load_single)(s, index, made, e);
        if (status) return status;
        bool kept = keep(s, place, made);
        for (int k = 0; k < 2; k++) {
            item->sample[k] = made[k];
            if (!kept) item->own[k] = made[k];
        }
    }
    assert(item->sample[0] && (s->sides == 1 || item->sample[1]));
    if (s->sides == 2)
        item->pose = pnet_pose_local(
            &entry_at(s, index)->pair->pose, item->sample[0]->offset, item->sample[1]->offset);
    return PNET_OK;
}

/* Copies samples of the cache, so that the batch owns those of the item. */
static enum pnet_status own(
    const struct pnet_sample_source *s, struct pnet_sample_item *item, struct pnet_error *e)
{
    for (int k = 0; k < s->sides; k++) {
        if (item->own[k]) continue;
        enum pnet_status status = pnet_sample_copy(item->sample[k], &item->own[k], e);
        if (status) return status;
        item->sample[k] = item->own[k];
    }
    return PNET_OK;
}

static enum pnet_status limit(const struct pnet_sample_source *s, uint32_t epoch, uint32_t sample,
    struct pnet_sample_item *item, struct pnet_error *e)
{
    int64_t most = s->o.max_points;
    return s->sides == 2
               ? pnet_pair_limit(most, s->o.seed, epoch, sample, item->own[0], item->own[1], e)
               : pnet_sample_limit(most, s->o.seed, epoch, sample, item->own[0], e);
}

static enum pnet_status augment(const struct pnet_sample_source *s, uint32_t epoch, uint32_t sample,
    struct pnet_sample_item *item, struct pnet_error *e)
{
    const struct pnet_loader_options *o = &s->o;
    if (o->data->task == PNET_COMPLETION)
        return pnet_augment_partial(
            o->augment, o->seed, epoch, sample, item->own[0], item->own[1], e);
    if (s->sides == 2)
        return pnet_augment_pair(
            o->augment, o->seed, epoch, sample, item->own[0], item->own[1], &item->pose, e);
    enum pnet_status status =
        pnet_augment_apply(o->augment, o->seed, epoch, sample, item->own[0], e);
    if (status == PNET_USAGE) {
        char name[NAME_MOST];
        pnet_entry_name(entry_at(s, sample), name, NAME_MOST);
        pnet_error_set(e, status, "%s: %s", name, e ? e->message : "");
    }
    return status;
}

/* Cuts two views from the cloud that both samples hold: other views each epoch in training, else the same ones. */
static enum pnet_status make_views(const struct pnet_sample_source *s, uint32_t epoch,
    uint32_t sample, struct pnet_sample_item *item, struct pnet_error *e)
{
    const struct pnet_views *v = &s->o.data->views[entry_at(s, sample)->pair->views];
    struct pnet_views_draw draw = s->o.training ? (struct pnet_views_draw){s->o.seed, epoch, sample}
                                                : pnet_views_fixed(v, (int)s->o.split, sample);
    return pnet_views_apply(v, &draw, item->own[0], item->own[1], &item->pose, e);
}

/* Cuts the partial cloud from the full one, which both samples hold: another part each epoch in training, else the same. */
static enum pnet_status cut_partial(const struct pnet_sample_source *s, uint32_t epoch,
    int64_t index, struct pnet_sample *partial, struct pnet_error *e)
{
    struct pnet_views_draw draw = pnet_sample_source_draw(s, epoch, index);
    int64_t view = s->o.training ? -1 : entry_at(s, index)->pair->view, *rows, count;
    enum pnet_status status = pnet_partial_cut(
        partial_at(s, index), &draw, view, partial->xyz, partial->rows, &rows, &count, e);
    if (status) return status;
    status = pnet_sample_take(partial, rows, count, e);
    free(rows);
    return status;
}

/* Draws the numbers of points that the entry asks for. */
static enum pnet_status set_counts(const struct pnet_sample_source *s, uint32_t epoch,
    int64_t index, struct pnet_sample_item *item, struct pnet_error *e)
{
    struct pnet_views_draw draw = pnet_sample_source_draw(s, epoch, index);
    return pnet_partial_count(partial_at(s, index), &draw, item->own[0], item->own[1], e);
}

static bool is_augmented(const struct pnet_sample_source *s)
{
    return s->o.training && s->o.augment && pnet_augment_any(s->o.augment);
}

/* Tells whether all clouds of the item have points. */
static bool is_full(const struct pnet_sample_source *s, const struct pnet_sample_item *item)
{
    return item->sample[0]->rows && (s->sides == 1 || item->sample[1]->rows);
}

static enum pnet_status change(struct pnet_sample_source *s, uint32_t epoch, int64_t index,
    struct pnet_sample_item *item, struct pnet_error *e)
{
    const struct pnet_pair *pair = entry_at(s, index)->pair;
    const struct pnet_partial *p = partial_at(s, index);
    bool views = pair && pair->views >= 0, counted = p && (p->points || p->full_points);
    bool capped = false, augmented = is_augmented(s);
    uint32_t sample = (uint32_t)index;
    for (int k = 0; k < s->sides; k++)
        capped |= s->o.training && s->o.max_points && item->sample[k]->rows > s->o.max_points;
    if (!is_full(s, item) || (!views && !counted && !capped && !augmented)) return PNET_OK;
    enum pnet_status status = own(s, item, e);
    if (!status && views) status = make_views(s, epoch, sample, item, e);
    if (!status && cut_at(s, index)) status = cut_partial(s, epoch, index, item->own[0], e);
    if (!status && counted) status = set_counts(s, epoch, index, item, e);
    if (!status && capped) status = limit(s, epoch, sample, item, e);
    if (!status && augmented) status = augment(s, epoch, sample, item, e);
    return status;
}

static void drop(struct pnet_sample_item *item)
{
    for (int k = 0; k < 2; k++) pnet_sample_free(item->own[k]);
    *item = (struct pnet_sample_item){.own = {NULL, NULL}};
}

/* Warns of a cloud that lies elsewhere than those of the training, once for each cloud. */
static void doubt(struct pnet_sample_source *s, int64_t index, const struct pnet_sample_item *item)
{
    const struct pnet_sample *first = item->sample[0];
    struct pnet_frame frame = {.clouds = 0};
    char text[PNET_DOUBT_TEXT];
    if (!s->o.trained || !s->o.warn) return;
    pnet_frame_add(&frame, first->xyz, first->rows, first->offset);
    pnet_doubt_box(s->o.trained, &frame, entry_at(s, index)->cloud, text);
    if (*text) {
        pthread_mutex_lock(&s->lock);
        s->o.warn(s->o.context, text);
        pthread_mutex_unlock(&s->lock);
    }
}

static enum pnet_status collect(struct pnet_sample_source *s, uint32_t epoch,
    const int64_t *entries, int32_t count, struct pnet_sample_item *items, int32_t *used,
    struct pnet_error *e)
{
    for (int32_t i = 0; i < count; i++) {
        struct pnet_sample_item *item = &items[*used];
        enum pnet_status status = load(s, epoch, entries[i], item, e);
        if (!status) status = change(s, epoch, entries[i], item, e);
        if (!status) doubt(s, entries[i], item);
        if (status) {
            drop(item);
            return status;
        }
        if (is_full(s, item))
            ++*used;
        else
            drop(item);
    }
    return PNET_OK;
}

/* The arguments of pnet_*_batch: sources, targets and poses, each [count]. */
struct lists {
    const struct pnet_sample **samples[2];
    struct pnet_pose *poses;
};

static enum pnet_status put_together(const struct pnet_sample_source *s,
    const struct pnet_sample_item *items, int32_t count, const struct lists *lists,
    struct pnet_batch **b, struct pnet_error *e)
{
    const struct pnet_loader_options *o = &s->o;
    bool drawn = is_augmented(s) || o->data->view_count || o->data->partial_count;
    bool repeats = !o->training || !drawn;
    for (int32_t i = 0; i < count; i++) {
        for (int k = 0; k < 2; k++) lists->samples[k][i] = items[i].sample[k];
        lists->poses[i] = items[i].pose;
    }
    enum pnet_status status =
        s->sides == 2 ? pnet_pairs_batch(o->inputs, o->input_count, &s->roles, lists->samples[0],
                            lists->samples[1], lists->poses, count, repeats, b, e)
                      : pnet_samples_batch(o->inputs, o->input_count, s->roles.source,
                            lists->samples[0], count, repeats, b, e);
    for (int32_t i = 0; i < count && !status; i++)
        pnet_frame_add(&(*b)->frame, items[i].sample[0]->xyz, items[i].sample[0]->rows,
            items[i].sample[0]->offset);
    return status;
}

enum pnet_status pnet_sample_source_batch(struct pnet_sample_source *s, uint32_t epoch,
    const int64_t *entries, int32_t count, struct pnet_batch **b, struct pnet_error *e)
{
    struct lists lists = {.poses = calloc((size_t)count, sizeof *lists.poses)};
    struct pnet_sample_item *items = calloc((size_t)count, sizeof *items);
    for (int k = 0; k < 2; k++)
        lists.samples[k] = calloc((size_t)count, sizeof(struct pnet_sample *));
    int32_t used = 0;
    enum pnet_status status = PNET_OK;
    *b = NULL;
    if (!items || !lists.poses || !lists.samples[0] || !lists.samples[1]) {
        status = pnet_error_memory(e);
    } else {
        status = collect(s, epoch, entries, count, items, &used, e);
        if (!status && used) status = put_together(s, items, used, &lists, b, e);
        for (int32_t i = 0; i < used; i++) drop(&items[i]);
    }
    for (int k = 0; k < 2; k++) free(lists.samples[k]);
    free(lists.poses);
    free(items);
    return status;
}
