#include "runtime/train/checkpoint.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/swap.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* Format 1 had no checksum of state.json. */
enum { FORMAT = 2, UNCHECKED = 1, WEIGHTS = 0, OPTIMIZER = 1, TENSOR_FILES = 2 };

static const char *const tensor_file[TENSOR_FILES] = {
    "weights.safetensors", "optimizer.safetensors"};

struct path {
    char text[4200];
};

static struct path join(const char *folder, const char *file)
{
    struct path p;
    snprintf(p.text, sizeof p.text, "%.4103s/%s", folder, file);
    return p;
}

uint64_t pnet_checkpoint_hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static uint32_t checksum(struct pnet_bytes b)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), b.data, b.size);
}

/* The last member of state.json; the CRC covers the bytes before its comma. */
static const char check_key[] = "state_crc32";

/* ---- writing ---- */

/* Ends the state with the checksum of all bytes so far. */
static void end_state(struct pnet_json *j)
{
    char digits[16];
    struct pnet_bytes b = {.data = (const uint8_t *)j->text, .size = j->size};
    if (!j->failed) {
        snprintf(digits, sizeof digits, "%08" PRIx32, checksum(b));
        pnet_json_string(j, check_key, digits);
    }
    pnet_json_end(j, '}');
    pnet_json_raw(j, "\n", 1);
}

/* Reads weights and optimiser state back, so that the recorded sizes and CRCs are of the bytes on disk. */
static enum pnet_status put_check(
    struct pnet_json *j, const char *folder, int which, struct pnet_error *e)
{
    struct path path = join(folder, tensor_file[which]);
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path.text, &b, e);
    if (status != PNET_OK) return status;
    pnet_json_begin(j, tensor_file[which], '{');
    pnet_json_int(j, "bytes", (int64_t)b.size);
    pnet_json_int(j, "crc32", checksum(b));
    pnet_json_end(j, '}');
    pnet_bytes_free(&b);
    return PNET_OK;
}

/* JSON has neither NaN nor infinities, which the best value so far may be. */
static void put_score(struct pnet_json *j, const struct pnet_score *s)
{
    if (isfinite(s->value))
        pnet_json_double(j, s->name, s->value);
    else
        pnet_json_string(j, s->name, isnan(s->value) ? "nan" : s->value > 0 ? "inf" : "-inf");
}

static void put_text(struct pnet_json *j, const char *key, const char *text)
{
    pnet_json_string(j, key, text ? text : "");
}

static void put_state(struct pnet_json *j, const struct pnet_checkpoint_state *s)
{
    char number[24];
    pnet_json_int(j, "format", FORMAT);
    pnet_json_int(j, "epoch", s->epoch);
    pnet_json_int(j, "step", s->step);
    pnet_json_int(j, "loader_position", s->loader_position);
    pnet_json_double(j, "optimizer_step", s->optimizer_step);
    /* An unsigned number of 64 bits is more than every reader of JSON takes. */
    snprintf(number, sizeof number, "%016" PRIx64, s->seed);
    pnet_json_string(j, "seed", number);
    snprintf(number, sizeof number, "%016" PRIx64, pnet_checkpoint_hash(s->model ? s->model : ""));
    pnet_json_string(j, "model_hash", number);
    pnet_json_begin(j, "counters", '{');
    for (size_t i = 0; i < s->counter_count; i++)
        pnet_json_int(j, s->counters[i].name, s->counters[i].value);
    pnet_json_end(j, '}');
    pnet_json_begin(j, "metrics", '{');
    for (size_t i = 0; i < s->metric_count; i++) put_score(j, &s->metrics[i]);
    pnet_json_end(j, '}');
    put_text(j, "model", s->model);
    put_text(j, "input_map", s->input_map);
    put_text(j, "kernels", s->kernels);
    put_text(j, "params", s->params);
}

/* The first `files` tensor files lie in the same folder. */
static enum pnet_status write_state(
    const char *folder, const struct pnet_checkpoint_state *s, int files, struct pnet_error *e)
{
    struct path path = join(folder, "state.json");
    struct pnet_json j = {.text = NULL};
    struct pnet_checkpoint *again = NULL;
    struct pnet_output o;
    pnet_json_begin(&j, NULL, '{');
    put_state(&j, s);
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < files && status == PNET_OK; i++) status = put_check(&j, folder, i, e);
    end_state(&j);
    if (status == PNET_OK && j.failed) status = pnet_error_memory(e);
    /* A state that cannot be read, because of equal names for example, must not replace a readable one. */
    if (status == PNET_OK)
        status = pnet_checkpoint_parse_state(path.text, j.text, j.size, &again, e);
    if (status == PNET_OK) status = pnet_output_open(path.text, &o, e);
    if (status == PNET_OK) {
        fwrite(j.text, 1, j.size, o.file);
        status = pnet_output_commit(&o, e);
    }
    pnet_checkpoint_free(again);
    pnet_json_free(&j);
    return status;
}

enum pnet_status pnet_checkpoint_write(const char *folder,
    const struct pnet_checkpoint_state *state, const struct pnet_safetensor *weights,
    size_t weight_count, const struct pnet_safetensor *optimizer, size_t optimizer_count,
    struct pnet_error *e)
{
    struct pnet_swap s;
    enum pnet_status status = pnet_swap_begin(folder, &s, e);
    if (status != PNET_OK) return status;
    status = pnet_safetensors_write(join(s.temporary, tensor_file[WEIGHTS]).text, weights,
        weight_count, state->metadata, state->metadata_count, e);
    if (status == PNET_OK && optimizer)
        status = pnet_safetensors_write(
            join(s.temporary, tensor_file[OPTIMIZER]).text, optimizer, optimizer_count, NULL, 0, e);
    if (status == PNET_OK)
        status = write_state(s.temporary, state, optimizer ? TENSOR_FILES : OPTIMIZER, e);
    if (status == PNET_OK) return pnet_swap_commit(&s, e);
    pnet_swap_drop(&s);
    return status;
}

/* ---- reading ---- */

struct pnet_checkpoint_memory {
    json_t *root; /* owns all names and texts of the state */
    struct pnet_counter *counters;
    struct pnet_score *metrics;
    struct pnet_bytes bytes[TENSOR_FILES];
};

static enum pnet_status get_count(
    const char *name, json_t *root, const char *key, int64_t *value, struct pnet_error *e)
{
    enum pnet_status status = pnet_json_get_int(name, root, key, value, e);
    if (status == PNET_OK && *value < 0)
        return pnet_error_set(e, PNET_BAD_DATA, "%s: expected \"%s\" from 0 on", name, key);
    return status;
}

static enum pnet_status get_bits(
    const char *name, json_t *root, const char *key, uint64_t *value, struct pnet_error *e)
{
    const char *text;
    enum pnet_status status = pnet_json_get_string(name, root, key, &text, e);
    if (status != PNET_OK) return status;
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return pnet_error_set(
            e, PNET_BAD_DATA, "%s: expected 16 hexadecimal digits under \"%s\"", name, key);
    *value = strtoull(text, NULL, 16);
    return PNET_OK;
}

static enum pnet_status get_counters(
    const char *name, struct pnet_checkpoint *c, struct pnet_error *e)
{
    json_t *object;
    enum pnet_status status =
        pnet_json_get(name, c->memory->root, "counters", JSON_OBJECT, &object, e);
    if (status != PNET_OK) return status;
    c->memory->counters = calloc(json_object_size(object) + 1, sizeof *c->memory->counters);
    if (!c->memory->counters) return pnet_error_memory(e);
    c->state.counters = c->memory->counters;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!json_is_integer(value))
            return pnet_error_set(
                e, PNET_BAD_DATA, "%s: expected an integer as counter \"%.200s\"", name, key);
        c->memory->counters[c->state.counter_count++] =
            (struct pnet_counter){.name = key, .value = json_integer_value(value)};
    }
    return PNET_OK;
}

static bool score_value(json_t *value, double *number)
{
    const char *text = json_string_value(value);
    *number = json_is_number(value)               ? json_number_value(value)
              : text && strcmp(text, "inf") == 0  ? INFINITY
              : text && strcmp(text, "-inf") == 0 ? -INFINITY
                                                  : NAN;
    return !isnan(*number) || (text && strcmp(text, "nan") == 0);
}

static enum pnet_status get_metrics(
    const char *name, struct pnet_checkpoint *c, struct pnet_error *e)
{
    json_t *object;
    enum pnet_status status =
        pnet_json_get(name, c->memory->root, "metrics", JSON_OBJECT, &object, e);
    if (status != PNET_OK) return status;
    c->memory->metrics = calloc(json_object_size(object) + 1, sizeof *c->memory->metrics);
    if (!c->memory->metrics) return pnet_error_memory(e);
    c->state.metrics = c->memory->metrics;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        struct pnet_score *s = &c->memory->metrics[c->state.metric_count++];
        s->name = key;
        if (!score_value(value, &s->value))
            return pnet_error_set(
                e, PNET_BAD_DATA, "%s: expected a number as metric \"%.200s\"", name, key);
    }
    return PNET_OK;
}

static enum pnet_status get_state(const char *name, struct pnet_checkpoint *c, struct pnet_error *e)
{
    json_t *root = c->memory->root;
    struct pnet_checkpoint_state *s = &c->state;
    int64_t format;
    enum pnet_status status = pnet_json_get_int(name, root, "format", &format, e);
    if (status == PNET_OK && format != FORMAT && format != UNCHECKED)
        return pnet_error_set(e, PNET_BAD_DATA, "%s: expected checkpoint format %d, found %" PRId64,
            name, FORMAT, format);
    if (status == PNET_OK) status = get_count(name, root, "epoch", &s->epoch, e);
    if (status == PNET_OK) status = get_count(name, root, "step", &s->step, e);
    if (status == PNET_OK)
        status = get_count(name, root, "loader_position", &s->loader_position, e);
    if (status == PNET_OK)
        status = pnet_json_get_number(name, root, "optimizer_step", &s->optimizer_step, e);
    if (status == PNET_OK) status = get_bits(name, root, "seed", &s->seed, e);
    if (status == PNET_OK) status = get_bits(name, root, "model_hash", &s->model_hash, e);
    if (status == PNET_OK) status = get_counters(name, c, e);
    if (status == PNET_OK) status = get_metrics(name, c, e);
    if (status == PNET_OK) status = pnet_json_get_string(name, root, "model", &s->model, e);
    if (status == PNET_OK) status = pnet_json_get_string(name, root, "input_map", &s->input_map, e);
    if (status == PNET_OK) status = pnet_json_get_string(name, root, "kernels", &s->kernels, e);
    if (status == PNET_OK) status = pnet_json_get_string(name, root, "params", &s->params, e);
    return status;
}

/* Returns the bytes before the last member, from the text, because parsing does not keep them. */
static enum pnet_status check_text(
    const char *name, json_t *root, const char *text, size_t size, struct pnet_error *e)
{
    char member[32];
    const char *at = NULL, *found;
    json_t *sum = json_object_get(root, check_key), *format = json_object_get(root, "format");
    if (!sum && json_integer_value(format) == UNCHECKED) return PNET_OK;
    size_t length = (size_t)snprintf(member, sizeof member, ",\"%s\":\"", check_key);
    for (const char *from = text;
         (found = memmem(from, size - (size_t)(from - text), member, length)); from = found + 1)
        at = found;
    if (!at || !json_is_string(sum))
        return pnet_error_set(
            e, PNET_BAD_DATA, "%s: expected \"%s\" as its last member", name, check_key);
    struct pnet_bytes b = {.data = (const uint8_t *)text, .size = (size_t)(at - text)};
    char want[16];
    snprintf(want, sizeof want, "%08" PRIx32, checksum(b));
    if (strcmp(json_string_value(sum), want) == 0) return PNET_OK;
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s is damaged: expected CRC-32 %.20s, as the file records, found %s", name,
        json_string_value(sum), want);
}

enum pnet_status pnet_checkpoint_parse_state(const char *name, const char *text, size_t size,
    struct pnet_checkpoint **c, struct pnet_error *e)
{
    *c = NULL;
    struct pnet_checkpoint *new = calloc(1, sizeof *new);
    if (!new) return pnet_error_memory(e);
    new->memory = calloc(1, sizeof *new->memory);
    if (!new->memory) {
        free(new);
        return pnet_error_memory(e);
    }
    enum pnet_status status = pnet_json_parse(name, text, size, &new->memory->root, e);
    if (status == PNET_OK && json_is_object(new->memory->root))
        status = check_text(name, new->memory->root, text, size, e);
    if (status == PNET_OK) status = get_state(name, new, e);
    if (status == PNET_OK)
        *c = new;
    else
        pnet_checkpoint_free(new);
    return status;
}

static enum pnet_status read_tensors(const char *folder, struct pnet_checkpoint *c, int which,
    struct pnet_safetensors **f, struct pnet_error *e)
{
    struct path state = join(folder, "state.json"), path = join(folder, tensor_file[which]);
    json_t *check;
    int64_t bytes = 0, crc = 0;
    enum pnet_status status =
        pnet_json_get(state.text, c->memory->root, tensor_file[which], JSON_OBJECT, &check, e);
    if (status == PNET_OK) status = pnet_json_get_int(state.text, check, "bytes", &bytes, e);
    if (status == PNET_OK) status = pnet_json_get_int(state.text, check, "crc32", &crc, e);
    struct pnet_bytes *b = &c->memory->bytes[which];
    if (status == PNET_OK) status = pnet_bytes_read(path.text, b, e);
    if (status != PNET_OK) return status;
    if ((int64_t)b->size != bytes || checksum(*b) != crc)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: expected %" PRId64 " bytes with CRC-32 %08" PRIx64
            ", as state.json says, found %zu with %08" PRIx32,
            path.text, bytes, (uint64_t)crc, b->size, checksum(*b));
    return pnet_safetensors_parse(path.text, b->data, b->size, f, e);
}

static enum pnet_status read_folder(
    const char *folder, struct pnet_checkpoint **c, struct pnet_error *e)
{
    struct path path = join(folder, "state.json");
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path.text, &b, e);
    if (status != PNET_OK) return status;
    struct pnet_checkpoint *new = NULL;
    status = pnet_checkpoint_parse_state(path.text, (const char *)b.data, b.size, &new, e);
    pnet_bytes_free(&b);
    if (!new) return status;
    status = read_tensors(folder, new, WEIGHTS, &new->weights, e);
    if (status == PNET_OK && json_object_get(new->memory->root, tensor_file[OPTIMIZER]))
        status = read_tensors(folder, new, OPTIMIZER, &new->optimizer, e);
    if (status == PNET_OK)
        *c = new;
    else
        pnet_checkpoint_free(new);
    return status;
}

/* Inode numbers are reused; together with the time of the last change they identify a folder. */
static bool same_folder(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

enum pnet_status pnet_checkpoint_read(
    const char *folder, struct pnet_checkpoint **c, struct pnet_error *e)
{
    enum { TRIES = 100 };
    *c = NULL;
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < TRIES; i++) {
        char found[PNET_SWAP_PATH];
        struct stat before, after;
        status = pnet_swap_find(folder, found, e);
        if (status == PNET_OK && stat(found, &before) != 0)
            status = pnet_error_errno(e, PNET_FAILED, errno, "%s: cannot open the folder", found);
        if (status != PNET_OK) continue;
        status = read_folder(found, c, e);
        if (status == PNET_OK) return PNET_OK;
        /* If the folder changed meanwhile, a writer swapped it, and the files may be of two checkpoints or missing. */
        if (stat(found, &after) == 0 && same_folder(&before, &after)) return status;
    }
    return status;
}

void pnet_checkpoint_free(struct pnet_checkpoint *c)
{
    if (!c) return;
    pnet_safetensors_free(c->weights);
    pnet_safetensors_free(c->optimizer);
    if (c->memory) {
        json_decref(c->memory->root);
        free(c->memory->counters);
        free(c->memory->metrics);
        for (int i = 0; i < TENSOR_FILES; i++)
            if (c->memory->bytes[i].data) pnet_bytes_free(&c->memory->bytes[i]);
    }
    free(c->memory);
    free(c);
}
