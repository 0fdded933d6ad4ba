/* What the tests of pooling and losses on a GPU share: random data, copies on the device with poison
   behind the live rows, results of two runs that must be the same bits. */
#ifndef PNET_TESTS_CUDA_LEVELS_CASE_H
#define PNET_TESTS_CUDA_LEVELS_CASE_H

#include "kernels/pool.h"
#include "kernels/cuda/base/cuda.h"
#include "tests/check.h"
#include "tests/cuda/storage_case.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SLACK = 37,      /* rows of a buffer beyond the live ones */
    CANARY = 4096,   /* bytes behind each buffer; a kernel must not write them */
    MOST_HELD = 512, /* buffers of one case */
};

static const double BOUND = 1e-6; /* of relative errors, unless said */

static char name[128]; /* of the case at hand */

/* How the features of the case at hand lie on the device. Those on the host have been rounded to it. */
static enum pnet_storage storage;

/* Buffers of the case at hand, on the device and on the host. */
struct held {
    void *device[MOST_HELD], *host[MOST_HELD];
    size_t bytes[MOST_HELD]; /* of device[i], without its canary */
    int devices, hosts;
    uint64_t seed;
};

static struct held held = {.seed = 1};

static inline void *host_bytes(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p || held.hosts == MOST_HELD) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(p, 0xFF, bytes);
    return held.host[held.hosts++] = p;
}

/* `live` bytes from `from` (NULL: none), then `poison` up to `most`. */
static inline void *device_bytes(const void *from, size_t live, size_t most, int poison)
{
    char *p = pnet_cuda_alloc(most + CANARY);
    if (!p || held.devices == MOST_HELD) {
        fprintf(stderr, "out of device memory: %s\n", pnet_cuda_error());
        exit(1);
    }
    pnet_cuda_fill_bytes(p, poison, most);
    pnet_cuda_fill_bytes(p + most, 0xA5, CANARY);
    if (from && live) pnet_cuda_copy_in(p, from, live);
    held.bytes[held.devices] = most;
    return held.device[held.devices++] = p;
}

/* Checks the canaries of a case and frees its memory. */
static inline void release(const char *what)
{
    static unsigned char canary[CANARY];
    const char *error = pnet_cuda_sync();
    CHECKF(!error, "%s: %s", what, error);
    if (error) exit(check_end());
    for (int i = 0; i < held.devices; i++) {
        pnet_cuda_copy_out(canary, (char *)held.device[i] + held.bytes[i], CANARY);
        bool whole = true;
        for (int k = 0; k < CANARY; k++) whole &= canary[k] == 0xA5;
        CHECKF(whole, "%s: written beyond buffer %d of %zu bytes", what, i, held.bytes[i]);
        pnet_cuda_free(held.device[i]);
    }
    for (int i = 0; i < held.hosts; i++) free(held.host[i]);
    held.devices = held.hosts = 0;
}

/* Of the kinds of cases in a loop every one is tested, but under racecheck (PNET_SHORT=races), which takes ten times as long as
   the other tools, only every n-th. */
static inline int every(int n)
{
    const char *form = getenv("PNET_SHORT");
    return form && !strcmp(form, "races") ? n : 1;
}

static inline uint64_t next_random(void)
{
    uint64_t z = (held.seed += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* 0 .. n-1 */
static inline int64_t random_below(int64_t n)
{
    return (int64_t)(next_random() % (uint64_t)n);
}

/* Multiples of 2^-20 in [-2, 2), or of 1/2 for many equal ones. */
static inline float *random_floats(int64_t n, bool coarse)
{
    float *x = host_bytes((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = coarse ? (float)random_below(8) * 0.5f - 2
                      : (float)(random_below(1 << 22) - (1 << 21)) * 0x1p-20f;
    return x;
}

static inline float *random_features(int64_t n, bool coarse)
{
    float *x = random_floats(n, coarse);
    round_to_storage(storage, x, n);
    return x;
}

/* Floats are followed by NaN, whole numbers by one that is no row. */
static inline float *device_floats(const float *from, int64_t live, int64_t most)
{
    return device_bytes(from, (size_t)live * sizeof *from, (size_t)most * sizeof *from, 0xFF);
}
static inline void put_features(float *to, const float *from, int64_t n)
{
    void *bits = malloc(storage_bytes(storage, n) + 1);
    if (!bits) exit(1);
    to_storage(storage, from, n, bits);
    pnet_cuda_copy_in(to, bits, storage_bytes(storage, n));
    pnet_cuda_sync(); /* release() tells of errors */
    free(bits);
}
static inline float *device_features(const float *from, int64_t live, int64_t most)
{
    float *p = device_bytes(NULL, 0, storage_bytes(storage, most), 0xFF);
    put_features(p, from, live);
    return p;
}
static inline int32_t *device_ints(const int32_t *from, int64_t live, int64_t most)
{
    return device_bytes(from, (size_t)live * sizeof *from, (size_t)most * sizeof *from, 0x7F);
}
static inline int64_t *device_offsets(const int64_t *from, int64_t live, int64_t most)
{
    return device_bytes(from, (size_t)live * sizeof *from, (size_t)most * sizeof *from, 0x7F);
}

/* A count that is known on the device alone. */
static inline struct pnet_count device_count(int64_t live, int32_t each)
{
    return (struct pnet_count){(live + SLACK) * each, device_offsets(&live, 1, 1), each, storage};
}

static inline void *device_work(size_t bytes)
{
    return device_bytes(NULL, 0, bytes, 0xFF);
}

/* A result: it starts from the same bytes for each run; the first run's is kept. */
struct result {
    void *device, *start, *first, *second;
    size_t live; /* bytes */
};

static inline struct result make_result(const void *start, int64_t live, int64_t most, size_t size)
{
    struct result r = {.live = (size_t)live * size};
    r.start = host_bytes(r.live);
    if (start) memcpy(r.start, start, r.live);
    r.first = host_bytes(r.live);
    r.second = host_bytes(r.live);
    r.device = device_bytes(r.start, r.live, (size_t)most * size, 0xFF);
    return r;
}

/* A result of features. */
static inline struct result make_features(const float *start, int64_t live, int64_t most)
{
    void *bits = NULL;
    if (start) {
        bits = host_bytes(storage_bytes(storage, live));
        to_storage(storage, start, live, bits);
    }
    return make_result(bits, live, most, (size_t)pnet_storage_bytes(storage));
}

/* for (int turn = 0; turn < 2; turn++) { ... kernel into r.device ...; collect(&r, turn, what); } */
static inline void collect(struct result *r, int turn, const char *what)
{
    pnet_cuda_copy_out(turn ? r->second : r->first, r->device, r->live);
    if (!turn) pnet_cuda_copy_in(r->device, r->start, r->live);
    pnet_cuda_sync(); /* release() tells of errors */
    if (turn) CHECKF(!memcmp(r->first, r->second, r->live), "%s: two runs differ", what);
}

/* |x - want| / |want| in 2-norms, at most `bound` and `more`. */
static inline void check_near(
    const char *what, const float *x, const float *want, int64_t n, double bound, double more)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)want[i];
        if (isnan(x[i]) && isnan(want[i])) continue;
        difference += isnan(d) ? (double)INFINITY : d * d;
        norm += (double)want[i] * (double)want[i];
    }
    double error = sqrt(difference), length = norm > 0 ? sqrt(norm) : 1;
    CHECKF(error <= bound * length + more, "%s: error %g of %g, at most %g of it and %g", what,
        error, length, bound, more);
}

static inline void check_floats(
    const char *what, const struct result *r, const float *want, double bound)
{
    check_near(what, r->first, want, (int64_t)(r->live / sizeof *want), bound, 0);
}

/* What is wanted is rounded once. A bound of 0: the numbers are the same before they are stored. */
static inline void check_features(
    const char *what, const struct result *r, const float *want, double bound)
{
    int64_t n = (int64_t)(r->live / (size_t)pnet_storage_bytes(storage));
    float *x = malloc((size_t)(2 * n) * sizeof *x + 1), *rounded = x + n;
    char text[160];
    if (!x) exit(1);
    snprintf(text, sizeof text, "%s, %s", what, storage_names[storage]);
    from_storage(storage, r->first, n, x);
    if (n) memcpy(rounded, want, (size_t)n * sizeof *x);
    round_to_storage(storage, rounded, n);
    if (bound > 0)
        check_near(text, x, want, n, bound + storage_relative[storage],
            storage_absolute[storage] * sqrt((double)n));
    else
        check_near(text, x, rounded, n, 0, 0);
    free(x);
}

static inline void check_bytes(const char *what, const struct result *r, const void *want)
{
    CHECKF(!memcmp(r->first, want, r->live), "%s: differs", what);
}

/* Cells on both devices. */
struct cells {
    struct pnet_cells cpu, gpu;
    int64_t fine, coarse;
};

/* One cell of two holds nothing, the last one most rows. */
static inline struct cells make_cells(int64_t fine, int64_t coarse)
{
    struct cells c = {.fine = fine, .coarse = coarse};
    int32_t *parent = host_bytes((size_t)fine * sizeof *parent), *child;
    int64_t *start = host_bytes((size_t)(coarse + 1) * sizeof *start), *at;
    memset(start, 0, (size_t)(coarse + 1) * sizeof *start);
    for (int64_t row = 0; row < fine; row++) {
        bool last = random_below(8) < 3;
        parent[row] = (int32_t)(last ? coarse - 1 : random_below(coarse) / 2 * 2);
        start[parent[row] + 1]++;
    }
    for (int64_t cell = 0; cell < coarse; cell++) start[cell + 1] += start[cell];
    child = host_bytes((size_t)fine * sizeof *child);
    at = host_bytes((size_t)(coarse + 1) * sizeof *at);
    memcpy(at, start, (size_t)(coarse + 1) * sizeof *at);
    for (int64_t row = 0; row < fine; row++) child[at[parent[row]]++] = (int32_t)row;
    c.cpu = (struct pnet_cells){.fine_rows = pnet_count(fine),
        .coarse_rows = pnet_count(coarse),
        .parent = parent,
        .start = start,
        .child = child};
    c.gpu = (struct pnet_cells){.fine_rows = device_count(fine, 1),
        .coarse_rows = device_count(coarse, 1),
        .parent = device_ints(parent, fine, fine + SLACK),
        .start = device_offsets(start, coarse + 1, coarse + 1 + SLACK),
        .child = device_ints(child, fine, fine + SLACK)};
    return c;
}

/* Labels of classes 0 .. classes-1, the lower the more frequent; some count in no loss. */
static inline int32_t *random_labels(int64_t n, int32_t classes)
{
    int32_t *label = host_bytes((size_t)n * sizeof *label);
    for (int64_t i = 0; i < n; i++) {
        int64_t low = random_below(classes + 3), other = random_below(classes + 3);
        label[i] = (int32_t)(low < other ? low : other) - 1;
        if (label[i] == classes + 1) label[i] = INT32_MAX; /* counts in no loss */
    }
    return label;
}

#endif
