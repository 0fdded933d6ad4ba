#include "runtime/train/pipeline.h"
#include "runtime/base/thread.h"
#include "runtime/train/loss_terms.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { SLOTS = 2 };

/* Slot k is filled by the thread while full[k] is false, and used by the consumer while it is true.
 */
struct pnet_pipeline {
    struct pnet_runner *runner;
    struct pnet_loader *loader;
    struct pnet_loss_terms terms;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    bool full[SLOTS], stop;
    struct pnet_ready ready[SLOTS];
    enum pnet_status status[SLOTS];
    struct pnet_error error[SLOTS];
    int next;  /* slot the consumer takes next */
    int taken; /* slot the consumer holds; -1 */
};

/* Loads one batch and builds its geometry. */
static void fill(struct pnet_pipeline *p, int slot)
{
    struct pnet_ready *r = &p->ready[slot];
    struct pnet_error *e = &p->error[slot];
    struct pnet_batch *b = NULL;
    *r = (struct pnet_ready){.slot = slot};
    pnet_loader_position(p->loader, &r->epoch, &r->batch);
    p->status[slot] = pnet_loader_next(p->loader, &b, e);
    if (p->status[slot]) return;
    if (!b) {
        r->slot = -1;
        return;
    }
    r->samples = b->samples;
    r->frame = b->frame;
    for (int i = 0; i < b->input_count; i++) r->points += b->inputs[i].rows;
    p->status[slot] = pnet_runner_prepare(p->runner, slot, b, e);
    if (!p->status[slot])
        r->idle = pnet_loss_terms_idle(
            pnet_runner_plan(p->runner), &p->terms, b, &pnet_runner_slot(p->runner, slot)->counts);
    pnet_batch_free(b);
}

static void *work(void *context)
{
    struct pnet_pipeline *p = context;
    for (int slot = 0;; slot = (slot + 1) % SLOTS) {
        pthread_mutex_lock(&p->lock);
        while (p->full[slot] && !p->stop) pthread_cond_wait(&p->changed, &p->lock);
        bool stop = p->stop;
        pthread_mutex_unlock(&p->lock);
        if (stop) return NULL;
        fill(p, slot);
        pthread_mutex_lock(&p->lock);
        p->full[slot] = true;
        pthread_cond_broadcast(&p->changed);
        bool failed = p->status[slot] != PNET_OK;
        pthread_mutex_unlock(&p->lock);
        if (failed) return NULL;
    }
}

static void release(struct pnet_pipeline *p)
{
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    pnet_loss_terms_free(&p->terms);
    free(p);
}

enum pnet_status pnet_pipeline_start(struct pnet_runner *s, struct pnet_loader *l,
    struct pnet_pipeline **pipeline, struct pnet_error *e)
{
    struct pnet_pipeline *p = calloc(1, sizeof *p);
    if (!p) return pnet_error_memory(e);
    enum pnet_status st = pnet_loss_terms_find(pnet_runner_plan(s), &p->terms, e);
    if (st) {
        free(p);
        return st;
    }
    p->runner = s;
    p->loader = l;
    p->taken = -1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    st = pnet_thread_start(&p->thread, work, p, e);
    if (st) {
        release(p);
        return st;
    }
    *pipeline = p;
    return PNET_OK;
}

/* Waits for a change, a tenth of a second at most. */
static void wait_shortly(struct pnet_pipeline *p)
{
    enum { TENTH_NS = 100000000, SECOND_NS = 1000000000 };
    struct timespec until;
    timespec_get(&until, TIME_UTC);
    until.tv_nsec += TENTH_NS;
    if (until.tv_nsec >= SECOND_NS) {
        until.tv_sec++;
        until.tv_nsec -= SECOND_NS;
    }
    pthread_cond_timedwait(&p->changed, &p->lock, &until);
}

enum pnet_status pnet_pipeline_next(
    struct pnet_pipeline *p, bool (*stop)(void), struct pnet_ready *r, struct pnet_error *e)
{
    pthread_mutex_lock(&p->lock);
    if (p->taken >= 0) {
        p->full[p->taken] = false;
        p->taken = -1;
        pthread_cond_broadcast(&p->changed);
    }
    int slot = p->next;
    while (!p->full[slot] && stop && !stop()) wait_shortly(p);
    while (!p->full[slot] && !stop) pthread_cond_wait(&p->changed, &p->lock);
    if (!p->full[slot]) {
        pthread_mutex_unlock(&p->lock);
        return pnet_error_set(e, PNET_INTERRUPTED, "interrupted");
    }
    enum pnet_status st = p->status[slot];
    *r = p->ready[slot];
    if (st) {
        *e = p->error[slot]; /* the slot stays full: the thread has ended, and the error comes again
                              */
    } else {
        p->taken = slot;
        p->next = (slot + 1) % SLOTS;
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

void pnet_pipeline_stop(struct pnet_pipeline *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    release(p);
}
