#include "runtime/data/loader.h"
#include "runtime/base/thread.h"
#include "runtime/data/loader_sample.h"

#include "kernels/philox.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A batch prepared ahead, or an error in its place. */
struct slot {
    bool done;
    enum pnet_status status;
    struct pnet_batch *batch;
    struct pnet_error error;
};

/* The work of a thread from the moment it claims a batch until it delivers it. */
struct claim {
    struct pnet_loader *loader;
    uint64_t generation;
    int64_t number;
    uint32_t epoch;
    int32_t count;
    int64_t *entries; /* [batch_size] */
};

/* Batches are numbered from the start, across epochs: `taken` is the number that the caller gets next, `claimed` the number
   that a worker makes next. Number n waits in slots[n % ahead]. */
struct pnet_loader {
    struct pnet_sample_source source;
    int64_t batches; /* an epoch */
    int ahead;       /* number of slots */
    int threads;
    pthread_t *thread;
    struct claim *claims; /* one a thread, or one for the caller where there are no threads */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work;  /* signalled when there may be something to claim, or the loader ends */
    pthread_cond_t ready; /* signalled when a slot is filled */
    bool stop;
    /* counts pnet_loader_start(); results of older generations are dropped */
    uint64_t generation;
    uint32_t epoch; /* of number 0 */
    int64_t first;  /* batch of number 0 in it */
    int64_t taken, claimed;
    int64_t end; /* of the epoch `taken` lies in */
    bool told;   /* the caller has been told the end of the epoch */
    uint32_t order_epoch;
    bool ordered;
    int64_t *order; /* [samples] of order_epoch */
    struct slot *slots;
    enum pnet_status failed; /* sticks until the next start */
    struct pnet_error error;
};

void pnet_loader_order(
    uint64_t seed, uint32_t epoch, bool training, int64_t samples, int64_t *order)
{
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_SHUFFLE, .a = epoch};
    for (int64_t i = 0; i < samples; i++) order[i] = i;
    for (int64_t i = samples - 1; training && i > 0; i--) {
        uint32_t bits[4];
        pnet_philox(&r, (uint64_t)i, bits);
        uint64_t wide = (uint64_t)bits[0] << 32 | bits[1];
        int64_t k = (int64_t)((unsigned __int128)wide * (uint64_t)(i + 1) >> 64), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
}

static bool can_claim(const struct pnet_loader *l)
{
    bool room = l->claimed < l->taken + l->ahead;
    return room && !l->failed && (l->source.o.training || l->claimed < l->end);
}

/* Claims the next number and the entries of its batch. Called with the lock held: numbers are claimed in order, so one order
   of an epoch is enough. */
static void claim(struct pnet_loader *l, struct claim *c)
{
    const struct pnet_loader_options *o = &l->source.o;
    int64_t at = l->first + l->claimed;
    c->generation = l->generation;
    c->number = l->claimed++;
    c->epoch = l->epoch + (uint32_t)(at / l->batches);
    if (!l->ordered || l->order_epoch != c->epoch) {
        pnet_loader_order(o->seed, c->epoch, o->training, l->source.samples, l->order);
        l->order_epoch = c->epoch;
        l->ordered = true;
    }
    int64_t from = at % l->batches * o->batch_size, left = l->source.samples - from;
    c->count = left < o->batch_size ? (int32_t)left : o->batch_size;
    memcpy(c->entries, l->order + from, (size_t)c->count * sizeof *c->entries);
}

/* Prepares the claimed batch without the lock, and stores it in its slot. */
static void fulfil(struct pnet_loader *l, const struct claim *c)
{
    struct slot made = {.done = true};
    pthread_mutex_unlock(&l->lock);
    made.status = pnet_sample_source_batch(
        &l->source, c->epoch, c->entries, c->count, &made.batch, &made.error);
    pthread_mutex_lock(&l->lock);
    if (c->generation == l->generation) {
        l->slots[c->number % l->ahead] = made;
        pthread_cond_broadcast(&l->ready);
    } else {
        pnet_batch_free(made.batch);
    }
}

static void *run_worker(void *context)
{
    struct claim *c = context;
    struct pnet_loader *l = c->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        if (can_claim(l)) {
            claim(l, c);
            fulfil(l, c);
        } else {
            pthread_cond_wait(&l->work, &l->lock);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void drop_slots(struct pnet_loader *l)
{
    for (int i = 0; i < l->ahead; i++) {
        pnet_batch_free(l->slots[i].batch);
        l->slots[i] = (struct slot){.done = false};
    }
}

static void restart(struct pnet_loader *l, uint32_t epoch, int64_t batch)
{
    drop_slots(l);
    l->generation++;
    l->epoch = epoch;
    l->first = batch < l->batches ? batch : l->batches;
    l->taken = l->claimed = 0;
    l->end = l->batches - l->first;
    l->told = false;
    l->failed = PNET_OK;
}

static enum pnet_status prepare(struct pnet_loader *l, struct pnet_error *e)
{
    const struct pnet_loader_options *o = &l->source.o;
    bool drop = o->training && o->drop_last;
    l->batches = (l->source.samples + (drop ? 0 : o->batch_size - 1)) / o->batch_size;
    if (!l->batches)
        return pnet_error_set(e, PNET_USAGE,
            "drop_last: no batch of %d is full, `%s` of %s has %lld clouds", o->batch_size,
            pnet_split_name(o->split), o->data->path, (long long)l->source.samples);
    l->ahead = o->workers + 1;
    l->order = calloc((size_t)l->source.samples, sizeof *l->order);
    l->slots = calloc((size_t)l->ahead, sizeof *l->slots);
    l->thread = calloc((size_t)o->workers + 1, sizeof *l->thread);
    l->claims = calloc((size_t)o->workers + 1, sizeof *l->claims);
    if (!l->order || !l->slots || !l->thread || !l->claims) return pnet_error_memory(e);
    for (int i = 0; i < o->workers || i == 0; i++) {
        l->claims[i].loader = l;
        l->claims[i].entries = calloc((size_t)o->batch_size, sizeof *l->claims[i].entries);
        if (!l->claims[i].entries) return pnet_error_memory(e);
    }
    restart(l, 0, 0);
    return PNET_OK;
}

enum pnet_status pnet_loader_new(
    const struct pnet_loader_options *o, struct pnet_loader **loader, struct pnet_error *e)
{
    struct pnet_loader *l = calloc(1, sizeof *l);
    *loader = NULL;
    if (!l) return pnet_error_memory(e);
    enum pnet_status status = pnet_sample_source_init(o, &l->source, e);
    if (status) {
        free(l);
        return status;
    }
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    status = prepare(l, e);
    while (!status && l->threads < o->workers) {
        status = pnet_thread_start(&l->thread[l->threads], run_worker, &l->claims[l->threads], e);
        if (!status) l->threads++;
    }
    if (status)
        pnet_loader_free(l);
    else
        *loader = l;
    return status;
}

void pnet_loader_free(struct pnet_loader *l)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->threads; i++) pthread_join(l->thread[i], NULL);
    if (l->slots) drop_slots(l);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    pnet_sample_source_free(&l->source);
    for (int i = 0; l->claims && i <= l->source.o.workers; i++) free(l->claims[i].entries);
    free(l->claims);
    free(l->thread);
    free(l->slots);
    free(l->order);
    free(l);
}

int64_t pnet_loader_samples(const struct pnet_loader *l)
{
    return l->source.samples;
}

int64_t pnet_loader_batches(const struct pnet_loader *l)
{
    return l->batches;
}

void pnet_loader_start(struct pnet_loader *l, uint32_t epoch, int64_t batch)
{
    pthread_mutex_lock(&l->lock);
    restart(l, epoch, batch);
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

/* Only the caller of pnet_loader_next() changes what is read here. */
void pnet_loader_position(const struct pnet_loader *l, uint32_t *epoch, int64_t *batch)
{
    int64_t at = l->first + l->taken;
    bool over = l->taken == l->end && !l->told;
    *epoch = l->epoch + (uint32_t)(at / l->batches) - over;
    *batch = over ? l->batches : at % l->batches;
}

/* Returns the result of number `taken`, and prepares it if there are no workers. Called with the lock held. */
static enum pnet_status take(struct pnet_loader *l, struct pnet_batch **b)
{
    struct slot *slot = &l->slots[l->taken % l->ahead];
    if (!l->threads) {
        claim(l, &l->claims[0]);
        fulfil(l, &l->claims[0]);
    }
    while (!slot->done) pthread_cond_wait(&l->ready, &l->lock);
    *b = slot->batch;
    l->failed = slot->status;
    l->error = slot->error;
    *slot = (struct slot){.done = false};
    l->taken++;
    pthread_cond_broadcast(&l->work);
    return l->failed;
}

enum pnet_status pnet_loader_next(
    struct pnet_loader *l, struct pnet_batch **b, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    *b = NULL;
    pthread_mutex_lock(&l->lock);
    status = l->failed;
    if (l->told) {
        l->end += l->batches;
        l->told = false;
        pthread_cond_broadcast(&l->work);
    }
    while (!status && !*b && l->taken < l->end) status = take(l, b);
    if (!status && !*b) l->told = true;
    if (status && e) *e = l->error;
    pthread_mutex_unlock(&l->lock);
    return status;
}
