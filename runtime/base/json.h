/* JSON: a small writer into memory, and reading through jansson with errors that name the place. */
#ifndef PNET_RUNTIME_JSON_H
#define PNET_RUNTIME_JSON_H

#include "runtime/base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A text that grows. Initialise it with zeros. Running out of memory sticks (`failed`), so callers check it once, at the end.
   Inside of an object every value needs a key; inside of an array the key is NULL. */
struct pnet_json {
    char *text; /* ends with a zero byte once something was written; NULL before */
    size_t size, capacity;
    bool failed; /* out of memory */
    bool comma;  /* the next value follows another one */
};

/* `bracket` is '{' or '['; pnet_json_end writes the closing one. */
void pnet_json_begin(struct pnet_json *j, const char *key, char bracket);
void pnet_json_end(struct pnet_json *j, char bracket);

/* Bytes that are not UTF-8 become U+FFFD. */
void pnet_json_string(struct pnet_json *j, const char *key, const char *text);
void pnet_json_int(struct pnet_json *j, const char *key, int64_t value);
/* Writes the fewest digits that read back as the same number (at most 17, or 9 for floats). NaN and infinities, which JSON does
   not have, become null. */
void pnet_json_double(struct pnet_json *j, const char *key, double value);
void pnet_json_float(struct pnet_json *j, const char *key, float value);
void pnet_json_bool(struct pnet_json *j, const char *key, bool value);
void pnet_json_null(struct pnet_json *j, const char *key);

/* Writes bytes unchanged, for line ends and padding. */
void pnet_json_raw(struct pnet_json *j, const char *bytes, size_t size);
void pnet_json_free(struct pnet_json *j);

/* Ends a text: writes it to `f` as a line and frees it. PNET_NO_MEMORY if any part of it is missing; then nothing is written.
   The owner of the stream handles its errors. */
enum pnet_status pnet_json_print(struct pnet_json *j, FILE *f, struct pnet_error *e);

/* Parses one document of `size` bytes; keys given twice are errors, and so are \u0000 and half a surrogate pair: names and values
   of files are C strings, and a name that is cut short would be another one. The caller drops *root with
   json_decref. PNET_BAD_DATA with `name`, line and column; PNET_NO_MEMORY. */
enum pnet_status pnet_json_parse(
    const char *name, const void *text, size_t size, json_t **root, struct pnet_error *e);

struct pnet_json_reading {
    /* Given: strings, but no keys, may have \u0000. The reader looks at json_string_length. */
    bool zeros;
    /* Returned: the places looked at in the set of blocks, linear in the size of the text. */
    uint64_t steps;
};
/* Does the same with another rule, and counts. */
enum pnet_status pnet_json_read(const char *name, const void *text, size_t size,
    struct pnet_json_reading *how, json_t **root, struct pnet_error *e);
/* Writes \uFFFD in the place of each \uD800 to \uDFFF that is half a pair: legal in JSON, but in no UTF-8, and so refused by the
   reader. The character has the size of what it replaces: one unit of UTF-16. True: there were any. */
bool pnet_json_replace_halves(char *text, size_t size);

/* Returns a required member; `name` is the file, for the message. PNET_BAD_DATA: it is missing or of another type. Strings
   belong to `object`. */
enum pnet_status pnet_json_get_int(
    const char *name, json_t *object, const char *key, int64_t *value, struct pnet_error *e);
enum pnet_status pnet_json_get_number(
    const char *name, json_t *object, const char *key, double *value, struct pnet_error *e);
enum pnet_status pnet_json_get_string(
    const char *name, json_t *object, const char *key, const char **value, struct pnet_error *e);
/* `type` is JSON_OBJECT or JSON_ARRAY. */
enum pnet_status pnet_json_get(const char *name, json_t *object, const char *key, json_type type,
    json_t **value, struct pnet_error *e);

#endif
