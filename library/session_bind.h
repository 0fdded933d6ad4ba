/* Binding the caller's arrays: what its files share. */
#ifndef PNET_LIBRARY_SESSION_BIND_H
#define PNET_LIBRARY_SESSION_BIND_H

#include "library/array.h"

/* A batch whose arrays are the caller's, or copies where they must be contiguous or of another type. */
struct pnet_binding {
    struct pnet_session *session;
    const struct pnet_plan *plan;
    const struct pnet_value *values;
    size_t count;
    struct pnet_batch batch;
    void **fields;   /* of all inputs */
    int64_t *splits; /* [input_count][samples + 1] */
    void **copies;   /* [count + 1] on the host */
    size_t copy_count;
    struct pnet_rooms rooms; /* on the GPU: one, for copies of classes */
    char *next;              /* in it */
};

/* Memory on the host that the binding owns; NULL with an error. */
void *pnet_binding_room(struct pnet_binding *b, size_t bytes, struct pnet_error *e);
/* The error of a label. */
enum pnet_status pnet_binding_bad_class(
    const struct pnet_value *v, int64_t row, int64_t label, int32_t classes, struct pnet_error *e);

/* Where the caller's arrays lie on the GPU. */
/* Puts copies on the host in place of the row splits among the values. */
enum pnet_status pnet_binding_bring_splits(struct pnet_binding *b, struct pnet_error *e);
/* PNET_USAGE unless an array is contiguous, and on the GPU. */
enum pnet_status pnet_binding_check(
    const struct pnet_binding *b, const struct pnet_value *v, struct pnet_error *e);
/* Gives int32 [rows] on the GPU, a copy of 64 bits. */
enum pnet_status pnet_binding_take_classes(struct pnet_binding *b, const struct pnet_value *v,
    int32_t classes, void **to, struct pnet_error *e);

#endif
