#include "runtime/data/dataset_pose.h"
#include "runtime/io/npy.h"
#include "runtime/io/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ROTATION_OFF = 1e-3; /* of R^T R from 1, for poses printed with few digits */
/* farther away a double no longer resolves a millimetre */
static const double FAR_M = 1e9;

struct pnet_pose pnet_pose_identity(void)
{
    return (struct pnet_pose){{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};
}

struct pnet_pose pnet_pose_multiply(const struct pnet_pose *a, const struct pnet_pose *b)
{
    struct pnet_pose c;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            double sum = 0;
            for (int n = 0; n < 4; n++) sum += a->m[4 * i + n] * b->m[4 * n + k];
            c.m[4 * i + k] = sum;
        }
    return c;
}

/* Minor of the rotation without row i and column k, with its sign. */
static double cofactor(const double *m, int i, int k)
{
    int p = (i + 1) % 3, q = (i + 2) % 3, r = (k + 1) % 3, s = (k + 2) % 3;
    return m[4 * p + r] * m[4 * q + s] - m[4 * p + s] * m[4 * q + r];
}

static double determinant(const double *m)
{
    return m[0] * cofactor(m, 0, 0) + m[1] * cofactor(m, 0, 1) + m[2] * cofactor(m, 0, 2);
}

struct pnet_pose pnet_pose_inverse(const struct pnet_pose *a)
{
    struct pnet_pose b = pnet_pose_identity();
    double d = determinant(a->m);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) b.m[4 * i + k] = cofactor(a->m, k, i) / d;
    for (int i = 0; i < 3; i++)
        b.m[4 * i + 3] =
            -(b.m[4 * i] * a->m[3] + b.m[4 * i + 1] * a->m[7] + b.m[4 * i + 2] * a->m[11]);
    return b;
}

void pnet_pose_apply(const struct pnet_pose *a, const double p[3], double q[3])
{
    double out[3];
    for (int i = 0; i < 3; i++)
        out[i] =
            a->m[4 * i] * p[0] + a->m[4 * i + 1] * p[1] + a->m[4 * i + 2] * p[2] + a->m[4 * i + 3];
    memcpy(q, out, sizeof out);
}

struct pnet_pose pnet_pose_local(
    const struct pnet_pose *a, const double source[3], const double target[3])
{
    struct pnet_pose b = *a;
    double shift[3];
    pnet_pose_apply(a, source, shift);
    for (int i = 0; i < 3; i++) b.m[4 * i + 3] = shift[i] - target[i];
    return b;
}

const char *pnet_pose_set(struct pnet_pose *a, const double *numbers, int count)
{
    if (count != 12 && count != 16)
        return "a pose has 12 numbers, three rows [R t], or 16, with 0 0 0 1 as the last row";
    *a = pnet_pose_identity();
    memcpy(a->m, numbers, (size_t)count * sizeof *numbers);
    for (int i = 0; i < 16; i++)
        if (!(fabs(a->m[i]) < FAR_M)) return "a number is not finite, or beyond 1e9";
    for (int i = 12; i < 16; i++)
        if (fabs(a->m[i] - (i == 15)) > 1e-6) return "the last row of a pose is 0 0 0 1";
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            double dot = 0;
            for (int n = 0; n < 3; n++) dot += a->m[4 * n + i] * a->m[4 * n + k];
            if (fabs(dot - (i == k)) > ROTATION_OFF)
                return "the 3x3 part is no rotation: its columns are not orthonormal";
        }
    if (determinant(a->m) < 0) return "the 3x3 part is no rotation: it mirrors";
    for (int i = 12; i < 16; i++) a->m[i] = i == 15;
    return NULL;
}

/* Appends the numbers of a line. Fails if a word is not a number, or there are too many. */
static enum pnet_status take_numbers(const struct pnet_text *t, struct pnet_span line,
    double *numbers, int most, int *count, struct pnet_error *e)
{
    struct pnet_span word;
    while (pnet_span_word(&line, &word)) {
        if (*count == most) return pnet_text_error(t, e, "more than the %d numbers expected", most);
        if (!pnet_value_parse(word, PNET_F64, &numbers[*count]))
            return pnet_text_error(t, e, "expected a number, got `%s`", pnet_span_quote(word).text);
        ++*count;
    }
    return PNET_OK;
}

static struct pnet_text begin(const char *path, const void *text, size_t size)
{
    struct pnet_bytes b = {.data = text, .size = size, .borrowed = true};
    struct pnet_text t;
    pnet_text_begin(&t, &b, path);
    return t;
}

enum pnet_status pnet_pose_parse(
    const char *path, const void *text, size_t size, struct pnet_pose *a, struct pnet_error *e)
{
    struct pnet_text t = begin(path, text, size);
    struct pnet_span line;
    double numbers[16];
    int count = 0;
    enum pnet_status status = PNET_OK;
    while (!status && pnet_text_full_line(&t, &line))
        if (*line.at != '#') status = take_numbers(&t, line, numbers, 16, &count, e);
    if (status) return status;
    const char *fault = pnet_pose_set(a, numbers, count);
    return fault ? pnet_error_set(e, PNET_BAD_DATA, "%s: %s", path, fault) : PNET_OK;
}

/* Reads a line "i j n" with fragments i and j. */
static enum pnet_status read_header(const struct pnet_text *t, struct pnet_span line,
    int64_t *target, int64_t *source, struct pnet_error *e)
{
    struct pnet_span word;
    uint64_t ids[3];
    int count = 0;
    while (
        count < 3 && pnet_span_word(&line, &word) && pnet_span_count(word, INT32_MAX, &ids[count]))
        count++;
    if (count < 3 || pnet_span_word(&line, &word))
        return pnet_text_error(
            t, e, "expected three whole numbers: target, source, number of fragments");
    *target = (int64_t)ids[0];
    *source = (int64_t)ids[1];
    return PNET_OK;
}

/* Reads the rows of a square matrix from the lines that follow. */
static enum pnet_status read_matrix(
    struct pnet_text *t, int rows, double *numbers, struct pnet_error *e)
{
    struct pnet_span line;
    for (int row = 0; row < rows; row++) {
        int count = 0;
        if (!pnet_text_full_line(t, &line))
            return pnet_text_error(t, e, "the file ends inside of a %dx%d matrix", rows, rows);
        enum pnet_status status =
            take_numbers(t, line, numbers + (ptrdiff_t)rows * row, rows, &count, e);
        if (status) return status;
        if (count < rows)
            return pnet_text_error(t, e, "a row of %d numbers, expected %d", count, rows);
    }
    return PNET_OK;
}

/* Makes room for one more than `count` items; the memory grows by doubling. */
static void *grow(void *items, int64_t count, size_t size)
{
    if (count & (count - 1)) return items; /* not a power of two: there is room */
    return realloc(items, (size_t)(count ? 2 * count : 1) * size);
}

/* What a file is a list of. `read` reads the item that begins with a line; the caller frees its result. */
struct item_kind {
    size_t size;
    const char *name; /* name of several items */
    enum pnet_status (*read)(
        struct pnet_text *t, struct pnet_span line, void *item, struct pnet_error *e);
};

/* Reads all items of a text, at least one. The caller frees *items, on failure too. */
static enum pnet_status read_items(const char *path, const void *text, size_t size,
    const struct item_kind *kind, void **items, int64_t *count, struct pnet_error *e)
{
    struct pnet_text t = begin(path, text, size);
    struct pnet_span line;
    *items = NULL;
    *count = 0;
    while (pnet_text_full_line(&t, &line)) {
        char *grown = grow(*items, *count, kind->size);
        if (!grown) return pnet_error_memory(e);
        *items = grown;
        enum pnet_status status = kind->read(&t, line, grown + (size_t)*count * kind->size, e);
        if (status) return status;
        ++*count;
    }
    return *count ? PNET_OK : pnet_error_set(e, PNET_BAD_DATA, "%s: holds no %s", path, kind->name);
}

static enum pnet_status read_pair(
    struct pnet_text *t, struct pnet_span line, void *item, struct pnet_error *e)
{
    struct pnet_log_pair *pair = item;
    double numbers[16];
    enum pnet_status status = read_header(t, line, &pair->target, &pair->source, e);
    if (!status) status = read_matrix(t, 4, numbers, e);
    if (status) return status;
    const char *fault = pnet_pose_set(&pair->pose, numbers, 16);
    return fault ? pnet_text_error(t, e, "%s", fault) : PNET_OK;
}

enum pnet_status pnet_pose_log_parse(const char *path, const void *text, size_t size,
    struct pnet_pose_log *log, struct pnet_error *e)
{
    static const struct item_kind kind = {sizeof *log->pairs, "pairs", read_pair};
    void *items;
    enum pnet_status status = read_items(path, text, size, &kind, &items, &log->count, e);
    log->pairs = items;
    if (status) pnet_pose_log_free(log);
    return status;
}

void pnet_pose_log_free(struct pnet_pose_log *log)
{
    free(log->pairs);
    *log = (struct pnet_pose_log){.count = 0};
}

/* Returns what is wrong with an information matrix, or NULL. Its first entry counts points and divides errors, so it must be
   positive. */
static const char *information_fault(const double *matrix)
{
    for (int i = 0; i < 36; i++) {
        double twin = matrix[6 * (i % 6) + i / 6];
        if (!isfinite(matrix[i])) return "a number is not finite";
        if (fabs(matrix[i] - twin) > 1e-6 * (fabs(matrix[i]) + fabs(twin)))
            return "the 6x6 matrix is not symmetric";
    }
    return matrix[0] > 0 ? NULL
                         : "the first number of the matrix, a count of points, is not positive";
}

static enum pnet_status read_information(
    struct pnet_text *t, struct pnet_span line, void *item, struct pnet_error *e)
{
    struct pnet_log_information *pair = item;
    enum pnet_status status = read_header(t, line, &pair->target, &pair->source, e);
    if (!status) status = read_matrix(t, 6, pair->matrix, e);
    if (status) return status;
    const char *fault = information_fault(pair->matrix);
    return fault ? pnet_text_error(t, e, "%s", fault) : PNET_OK;
}

/* Pairs that are there several times keep the order of the file. */
static int by_pair(const void *a, const void *b)
{
    const struct pnet_log_information *x = a, *y = b;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

enum pnet_status pnet_information_parse(const char *path, const void *text, size_t size,
    struct pnet_information *n, struct pnet_error *e)
{
    static const struct item_kind kind = {sizeof *n->pairs, "matrices", read_information};
    void *items;
    enum pnet_status status = read_items(path, text, size, &kind, &items, &n->count, e);
    n->pairs = items;
    if (status) {
        pnet_information_free(n);
        return status;
    }
    for (int64_t i = 0; i < n->count; i++) n->pairs[i].number = i;
    qsort(n->pairs, (size_t)n->count, sizeof *n->pairs, by_pair);
    return PNET_OK;
}

const struct pnet_log_information *pnet_information_find(
    const struct pnet_information *n, int64_t target, int64_t source)
{
    const struct pnet_log_information wanted = {.target = target, .source = source};
    int64_t low = 0, high = n->count;
    while (low < high) { /* the first that does not precede it */
        int64_t middle = low + (high - low) / 2;
        if (by_pair(&n->pairs[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct pnet_log_information *found = low < n->count ? &n->pairs[low] : NULL;
    return found && found->target == target && found->source == source ? found : NULL;
}

void pnet_information_free(struct pnet_information *n)
{
    free(n->pairs);
    *n = (struct pnet_information){.count = 0};
}

static enum pnet_status read_frame(
    struct pnet_text *t, struct pnet_span line, void *item, struct pnet_error *e)
{
    double numbers[12];
    int count = 0;
    enum pnet_status status = take_numbers(t, line, numbers, 12, &count, e);
    if (status) return status;
    const char *fault = count < 12 ? "a line has 12 numbers, three rows [R t]"
                                   : pnet_pose_set(item, numbers, count);
    return fault ? pnet_text_error(t, e, "%s", fault) : PNET_OK;
}

enum pnet_status pnet_poses_parse(
    const char *path, const void *text, size_t size, struct pnet_poses *p, struct pnet_error *e)
{
    static const struct item_kind kind = {sizeof *p->frames, "poses", read_frame};
    void *items;
    enum pnet_status status = read_items(path, text, size, &kind, &items, &p->count, e);
    p->frames = items;
    if (status) pnet_poses_free(p);
    return status;
}

void pnet_poses_free(struct pnet_poses *p)
{
    free(p->frames);
    *p = (struct pnet_poses){.count = 0};
}

/* Tells whether a line begins with a number, as the file of a matrix alone does. */
static bool begins_with_number(struct pnet_span line)
{
    struct pnet_span word;
    double number;
    return pnet_span_word(&line, &word) && pnet_value_parse(word, PNET_F64, &number);
}

enum pnet_status pnet_calib_parse(
    const char *path, const void *text, size_t size, struct pnet_pose *tr, struct pnet_error *e)
{
    struct pnet_text t = begin(path, text, size);
    struct pnet_span line, word;
    while (pnet_text_full_line(&t, &line)) {
        double numbers[12];
        int count = 0;
        if (t.line == 1 && begins_with_number(line))
            return pnet_pose_parse(path, text, size, tr, e);
        if (!pnet_span_word(&line, &word) || !pnet_span_is(word, "Tr:")) continue;
        enum pnet_status status = take_numbers(&t, line, numbers, 12, &count, e);
        if (status) return status;
        const char *fault =
            count < 12 ? "Tr has 12 numbers, three rows [R t]" : pnet_pose_set(tr, numbers, count);
        return fault ? pnet_text_error(&t, e, "%s", fault) : PNET_OK;
    }
    return pnet_error_set(
        e, PNET_BAD_DATA, "%s: has no line `Tr:`, and is no matrix of its own", path);
}

static bool ends(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static enum pnet_status read_npy(const char *path, struct pnet_pose *a, struct pnet_error *e)
{
    struct pnet_npy n;
    double numbers[16];
    enum pnet_status status = pnet_npy_read(path, &n, e);
    if (status) return status;
    struct pnet_field f = {.type = n.type, .data = n.data};
    int count = n.count > 16 ? 17 : (int)n.count;
    for (int i = 0; i < count && i < 16; i++) numbers[i] = pnet_field_get(&f, i);
    const char *fault = pnet_pose_set(a, numbers, count);
    if (fault) status = pnet_error_set(e, PNET_BAD_DATA, "%s: %s", path, fault);
    pnet_npy_free(&n);
    return status;
}

static enum pnet_status read_one_log(const char *path, struct pnet_pose *a, struct pnet_error *e)
{
    struct pnet_pose_log log;
    enum pnet_status status = pnet_pose_log_read(path, &log, e);
    if (status) return status;
    if (log.count == 1)
        *a = log.pairs[0].pose;
    else
        status = pnet_error_set(e, PNET_BAD_DATA,
            "%s: holds %" PRId64 " poses, expected one; `log:` lists them all", path, log.count);
    pnet_pose_log_free(&log);
    return status;
}

enum pnet_status pnet_pose_read(const char *path, struct pnet_pose *a, struct pnet_error *e)
{
    struct pnet_bytes b;
    if (ends(path, ".npy")) return read_npy(path, a, e);
    if (ends(path, ".log")) return read_one_log(path, a, e);
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status) return status;
    status = pnet_pose_parse(path, b.data, b.size, a, e);
    pnet_bytes_free(&b);
    return status;
}

enum pnet_status pnet_pose_log_read(
    const char *path, struct pnet_pose_log *log, struct pnet_error *e)
{
    struct pnet_bytes b;
    *log = (struct pnet_pose_log){.count = 0};
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status) return status;
    status = pnet_pose_log_parse(path, b.data, b.size, log, e);
    pnet_bytes_free(&b);
    return status;
}

enum pnet_status pnet_information_read(
    const char *path, struct pnet_information *n, struct pnet_error *e)
{
    struct pnet_bytes b;
    *n = (struct pnet_information){.count = 0};
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status) return status;
    status = pnet_information_parse(path, b.data, b.size, n, e);
    pnet_bytes_free(&b);
    return status;
}

enum pnet_status pnet_poses_read(const char *path, struct pnet_poses *p, struct pnet_error *e)
{
    struct pnet_bytes b;
    *p = (struct pnet_poses){.count = 0};
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status) return status;
    status = pnet_poses_parse(path, b.data, b.size, p, e);
    pnet_bytes_free(&b);
    return status;
}

enum pnet_status pnet_calib_read(const char *path, struct pnet_pose *tr, struct pnet_error *e)
{
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status) return status;
    status = pnet_calib_parse(path, b.data, b.size, tr, e);
    pnet_bytes_free(&b);
    return status;
}
