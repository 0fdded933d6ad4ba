/* Checkpoints survive a kill at any moment, a failing system call, a full disk, and a reader
 * meanwhile. */
#include "runtime/train/checkpoint.h"
#include "tests/check.h"
#include "tests/store/faults.h"
#include "tests/store/folder.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { WIDE = 20000 };

/* Every number of checkpoint `k` follows from k, so that a mixture of two shows. */
static enum pnet_status write_checkpoint(const char *folder, int k, struct pnet_error *e)
{
    static float wide[WIDE], small[6], moment[WIDE];
    for (int i = 0; i < WIDE; i++) {
        wide[i] = (float)(k + i);
        moment[i] = (float)(k - i);
    }
    for (int i = 0; i < 6; i++) small[i] = (float)(10 * k + i);
    struct pnet_safetensor weights[] = {
        {.name = "net.conv.weight", .dims = 2, .shape = {WIDE / 4, 4}, .data = wide},
        {.name = "net.bn.weight", .dims = 1, .shape = {6}, .data = small},
    };
    struct pnet_safetensor optimizer[] = {
        {.name = "m", .dims = 1, .shape = {WIDE}, .data = moment}};
    struct pnet_counter counters[] = {{"skipped", 7 * k}, {"best_epoch", -k}};
    struct pnet_score metrics[] = {{"val.oa", 1.0 / (k + 3)}, {"worst", -INFINITY}, {"none", NAN}};
    char model[64];
    snprintf(model, sizeof model, "pnet 1\n# \"%d\" \\\t\xC3\xA9\n", k);
    struct pnet_checkpoint_state state = {.epoch = k / 10,
        .step = k,
        .loader_position = 3 * k,
        .optimizer_step = k + 0.5,
        .seed = 0xFEDCBA9876543210u + (uint64_t)k,
        .counters = counters,
        .counter_count = 2,
        .metrics = metrics,
        .metric_count = 3,
        .model = model,
        .input_map = "cloud:\n  rgb: [red, green, blue]\n"};
    return pnet_checkpoint_write(folder, &state, weights, 2, optimizer, 1, e);
}

static bool floats_are(
    const struct pnet_safetensors *f, const char *name, int count, double first, double step)
{
    const struct pnet_safetensor *t = pnet_safetensors_find(f, name);
    if (!t || pnet_safetensor_count(t) != count) return false;
    for (int i = 0; i < count; i++)
        if (((const float *)t->data)[i] != (float)(first + step * i)) return false;
    return true;
}

static bool state_is(const struct pnet_checkpoint_state *s, int k)
{
    char model[64];
    snprintf(model, sizeof model, "pnet 1\n# \"%d\" \\\t\xC3\xA9\n", k);
    return s->epoch == k / 10 && s->step == k && s->loader_position == 3 * k &&
           s->optimizer_step == k + 0.5 && s->seed == 0xFEDCBA9876543210u + (uint64_t)k &&
           s->counter_count == 2 && strcmp(s->counters[0].name, "skipped") == 0 &&
           s->counters[0].value == 7 * k && s->counters[1].value == -k && s->metric_count == 3 &&
           strcmp(s->metrics[0].name, "val.oa") == 0 && s->metrics[0].value == 1.0 / (k + 3) &&
           s->metrics[1].value == -INFINITY && isnan(s->metrics[2].value) &&
           strcmp(s->model, model) == 0 && s->model_hash == pnet_checkpoint_hash(model) &&
           strcmp(s->input_map, "cloud:\n  rgb: [red, green, blue]\n") == 0 &&
           strcmp(s->kernels, "") == 0;
}

/* The k of the checkpoint there; -1: none, -2: not one of ours. */
static int read_checkpoint(const char *folder)
{
    struct pnet_checkpoint *c;
    struct pnet_error e;
    enum pnet_status status = pnet_checkpoint_read(folder, &c, &e);
    if (status != PNET_OK) {
        if (status != PNET_FAILED) fprintf(stderr, "%s\n", e.message);
        return status == PNET_FAILED ? -1 : -2;
    }
    int k = (int)c->state.step;
    if (!state_is(&c->state, k) || c->weights->count != 2 || c->optimizer->count != 1 ||
        !floats_are(c->weights, "net.conv.weight", WIDE, k, 1) ||
        !floats_are(c->weights, "net.bn.weight", 6, 10 * k, 1) ||
        !floats_are(c->optimizer, "m", WIDE, k, -1))
        k = -2;
    pnet_checkpoint_free(c);
    return k;
}

static bool there(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

static void check_round_trip(void)
{
    struct pnet_error e;
    const char *folder = in_folder("runs/a/last");
    CHECK(read_checkpoint(folder) == -1);
    CHECKF(write_checkpoint(folder, 3, &e) == PNET_OK, "%s", e.message);
    CHECK(read_checkpoint(folder) == 3);
    CHECKF(write_checkpoint(in_folder("runs/a/last/"), 4, &e) == PNET_OK, "%s", e.message);
    CHECK(read_checkpoint(folder) == 4);
    CHECK(!there(in_folder("runs/a/last.tmp")));
    CHECK(!there(in_folder("runs/a/last.old")));
}

/* The published test vectors of FNV-1a 64. */
static void check_hash(void)
{
    CHECK(pnet_checkpoint_hash("") == 0xcbf29ce484222325u);
    CHECK(pnet_checkpoint_hash("a") == 0xaf63dc4c8601ec8cu);
    CHECK(pnet_checkpoint_hash("foobar") == 0x85944171f73967e8u);
}

/* Writes checkpoint 2 over `before` (0: over nothing) with a fault at call `at`. Returns whether
   the call was reached. */
static bool write_with_fault(const char *folder, int before, enum fault kind, int at)
{
    struct pnet_error e;
    remove_tree(folder);
    if (before) CHECK(write_checkpoint(folder, before, &e) == PNET_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        faults_set(kind, at);
        enum pnet_status status = write_checkpoint(folder, 2, &e);
        faults_set(FAULT_NONE, 0);
        int now = read_checkpoint(folder);
        _exit(status == PNET_OK                        ? (now == 2 ? 0 : 3)
              : now == before || now == 2 || now == -1 ? 1
                                                       : 3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECKF(!WIFEXITED(status) || WEXITSTATUS(status) < 2, "call %d", at);
    if (kind == FAULT_FAIL) {
        /* Told by counting: a failure need not end the write. */
        faults_set(FAULT_NONE, 0);
        remove_tree(folder);
        if (before) write_checkpoint(folder, before, &e);
        faults_set(FAULT_NONE, 0);
        write_checkpoint(folder, 2, &e);
        return at <= faults.calls;
    }
    return WIFSIGNALED(status);
}

/* Every system call in turn is the last one, or fails. */
static void check_every_call(enum fault kind, int before, bool no_exchange)
{
    const char *folder = in_folder("every");
    struct pnet_error e;
    faults.no_exchange = no_exchange;
    int at = 1, old = 0, new = 0;
    for (;; at++) {
        bool reached = write_with_fault(folder, before, kind, at);
        if (!reached) break;
        int now = read_checkpoint(folder);
        CHECKF(now == 2 || now == (before ? before : -1), "call %d leaves %d", at, now);
        if (kind != FAULT_FAIL) *(now == 2 ? &new : &old) += 1;
        CHECKF(write_checkpoint(folder, 3, &e) == PNET_OK, "call %d: %s", at, e.message);
        CHECK(read_checkpoint(folder) == 3);
        CHECK(!there(in_folder("every.tmp")) && !there(in_folder("every.old")));
    }
    CHECKF(at > 10, "only %d calls", at);
    if (kind != FAULT_FAIL)
        CHECKF(old > 5 && new >= 1, "kind %d: %d old, %d new of %d calls", (int)kind, old, new,
            at - 1);
    faults.no_exchange = false;
    remove_tree(folder);
}

/* What a kill between the two renames leaves, and the next write after it. */
static void check_old_is_found(void)
{
    struct pnet_error e;
    const char *folder = in_folder("moved"), *old = in_folder("moved.old");
    CHECK(write_checkpoint(folder, 5, &e) == PNET_OK);
    CHECK(rename(folder, old) == 0);
    CHECK(read_checkpoint(folder) == 5);
    faults_set(FAULT_NONE, 0);
    struct rlimit limit = {.rlim_cur = 100, .rlim_max = RLIM_INFINITY}, none;
    getrlimit(RLIMIT_FSIZE, &none);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(write_checkpoint(folder, 6, &e) == PNET_FAILED);
    setrlimit(RLIMIT_FSIZE, &none);
    CHECK(read_checkpoint(folder) == 5);
    CHECK(write_checkpoint(folder, 6, &e) == PNET_OK);
    CHECK(read_checkpoint(folder) == 6);
    CHECK(!there(old));
}

static void check_full_disk(void)
{
    struct pnet_error e;
    const char *folder = in_folder("full");
    CHECK(write_checkpoint(folder, 1, &e) == PNET_OK);
    static const rlim_t limits[] = {0, 1, 100, 4096, 70000, 80000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit, none;
        getrlimit(RLIMIT_FSIZE, &none);
        limit = (struct rlimit){.rlim_cur = limits[i], .rlim_max = none.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        enum pnet_status status = write_checkpoint(folder, 2, &e);
        setrlimit(RLIMIT_FSIZE, &none);
        CHECK(status == PNET_FAILED);
        CHECKF(strstr(e.message, "File too large"), "%s", e.message);
        CHECK(read_checkpoint(folder) == 1);
        CHECK(!there(in_folder("full.tmp")));
    }
    CHECK(write_checkpoint(folder, 2, &e) == PNET_OK);
    CHECK(read_checkpoint(folder) == 2);
}

static void sleep_us(long us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static long time_write_us(const char *folder, int k)
{
    struct pnet_error e;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    CHECK(write_checkpoint(folder, k, &e) == PNET_OK);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000 + 500;
}

/* Writes k+1, k+2, ... for ever, reporting each one written. */
static pid_t start_writer(const char *folder, int k, int report[2])
{
    if (pipe(report) != 0) exit(1);
    fflush(NULL);
    pid_t child = fork();
    if (child != 0) {
        close(report[1]);
        return child;
    }
    struct pnet_error e;
    for (;;) {
        k++;
        if (write_checkpoint(folder, k, &e) != PNET_OK) _exit(1);
        if (write(report[1], &k, sizeof k) != sizeof k) _exit(1);
    }
}

/* The last number reported before the writer was killed. */
static int stop_writer(pid_t child, int report[2], int k)
{
    int status, got;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    while (read(report[0], &got, sizeof got) == sizeof got) k = got;
    close(report[0]);
    return k;
}

static void check_random_kills(bool no_exchange)
{
    enum { ROUNDS = 60 };
    const char *folder = in_folder("killed");
    struct pnet_error e;
    faults.no_exchange = no_exchange;
    CHECK(write_checkpoint(folder, 1, &e) == PNET_OK);
    int k = 1;
    uint32_t draw = 12345;
    long write_us = time_write_us(folder, k); /* disks differ by a lot in what a sync takes */
    for (int round = 0; round < ROUNDS; round++) {
        int report[2];
        pid_t child = start_writer(folder, k, report);
        draw = draw * 1664525u + 1013904223u;
        sleep_us((long)(draw >> 8) % (3 * write_us));
        k = stop_writer(child, report, k);
        int now = read_checkpoint(folder);
        CHECKF(now == k || now == k + 1, "round %d: reported %d, found %d", round, k, now);
        k = now;
        if (k == 1) write_us += write_us / 4; /* the machine does more now than when it was timed */
    }
    CHECKF(k > 1, "no checkpoint was finished between kills");
    faults.no_exchange = false;
    remove_tree(folder);
}

static void check_reader_meanwhile(bool no_exchange)
{
    const char *folder = in_folder("busy");
    struct pnet_error e;
    faults.no_exchange = no_exchange;
    CHECK(write_checkpoint(folder, 1, &e) == PNET_OK);
    int report[2], last = 1;
    pid_t child = start_writer(folder, 1, report);
    for (int i = 0; i < 150; i++) {
        int now = read_checkpoint(folder);
        CHECKF(now >= last, "found %d after %d", now, last);
        last = now;
    }
    stop_writer(child, report, 1);
    faults.no_exchange = false;
    remove_tree(folder);
}

/* The whole of a file that is small; its size goes back. */
static size_t get_file(const char *path, char *bytes, size_t room)
{
    FILE *f = fopen(path, "rb");
    size_t size = f ? fread(bytes, 1, room, f) : 0;
    if (f) fclose(f);
    return size;
}

static void put_file(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f)) exit(1);
}

/* Any bit of state.json that flips is noticed; a state of format 1, which has no checksum, is read. */
static void check_state_checksum(void)
{
    struct pnet_error e;
    struct pnet_checkpoint *c;
    const char *folder = in_folder("checksum");
    char file[2048];
    static char good[8192], bad[8192];
    CHECK(write_checkpoint(folder, 1, &e) == PNET_OK);
    snprintf(file, sizeof file, "%s/state.json", folder);
    size_t size = get_file(file, good, sizeof good);
    CHECK(size > 200 && size < sizeof good);
    for (size_t i = 0; i + 1 < size; i++) { /* the line's end is nobody's */
        memcpy(bad, good, size);
        bad[i] = (char)(bad[i] ^ 1 << i % 7);
        put_file(file, bad, size);
        CHECKF(pnet_checkpoint_read(folder, &c, &e) == PNET_BAD_DATA && !c, "byte %zu", i);
        pnet_checkpoint_free(c);
    }
    /* numbers are what damage changes without breaking JSON */
    memcpy(bad, good, size);
    char *step = memmem(bad, size, "\"step\":1,", 9);
    CHECK(step != NULL);
    if (step) step[7] = '2';
    put_file(file, bad, size);
    CHECK(pnet_checkpoint_read(folder, &c, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "state.json is damaged"), "%s", e.message);

    char *sum = memmem(good, size, ",\"state_crc32\"", 14);
    char *format = memmem(good, size, "\"format\":2", 10);
    CHECK(sum && format);
    if (sum && format) {
        put_file(file, good, (size_t)(sum - good));
        CHECK(pnet_checkpoint_read(folder, &c, &e) == PNET_BAD_DATA);
        memcpy(sum, "}", 2);
        put_file(file, good, strlen(good));
        CHECKF(pnet_checkpoint_read(folder, &c, &e) == PNET_BAD_DATA, "no checksum in format 2");
        format[9] = '1';
        put_file(file, good, strlen(good));
        CHECK(read_checkpoint(folder) == 1);
    }
    remove_tree(folder);
}

static void check_damage(void)
{
    struct pnet_error e;
    struct pnet_checkpoint *c;
    const char *folder = in_folder("damaged");
    char file[2048];
    CHECK(write_checkpoint(folder, 1, &e) == PNET_OK);

    snprintf(file, sizeof file, "%s/optimizer.safetensors", folder);
    FILE *f = fopen(file, "r+b");
    fseek(f, -5, SEEK_END);
    int byte = fgetc(f);
    fseek(f, -5, SEEK_END);
    fputc(byte ^ 1, f);
    fclose(f);
    CHECK(pnet_checkpoint_read(folder, &c, &e) == PNET_BAD_DATA && !c);
    CHECKF(strstr(e.message, "CRC-32") && strstr(e.message, "optimizer"), "%s", e.message);

    snprintf(file, sizeof file, "%s/state.json", folder);
    CHECK(truncate(file, 60) == 0);
    CHECK(pnet_checkpoint_read(folder, &c, &e) == PNET_BAD_DATA && !c);
    CHECKF(strstr(e.message, "state.json:"), "%s", e.message);
    CHECK(remove(file) == 0);
    CHECK(pnet_checkpoint_read(folder, &c, &e) == PNET_FAILED && !c);

    CHECK(symlink("damaged", in_folder("link")) == 0);
    struct stat info; /* a link is written through */
    CHECKF(write_checkpoint(in_folder("link"), 2, &e) == PNET_OK, "%s", e.message);
    CHECK(lstat(in_folder("link"), &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(lstat(folder, &info) == 0 && S_ISDIR(info.st_mode));
    CHECK(read_checkpoint(folder) == 2 && read_checkpoint(in_folder("link")) == 2);
    CHECK(symlink("not there", in_folder("dangling")) == 0);
    CHECK(write_checkpoint(in_folder("dangling"), 3, &e) == PNET_OK);
    CHECK(read_checkpoint(in_folder("not there")) == 3);
    CHECK(symlink("loop", in_folder("loop")) == 0);
    CHECK(write_checkpoint(in_folder("loop"), 3, &e) == PNET_FAILED);
    f = fopen(in_folder("file"), "wb");
    CHECK(f && fputc('x', f) == 'x' && fclose(f) == 0);
    CHECK(symlink("file", in_folder("link_to_file")) == 0);
    CHECK(write_checkpoint(in_folder("link_to_file"), 3, &e) == PNET_FAILED);
    CHECK(lstat(in_folder("file"), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 1);
    CHECK(write_checkpoint("", 2, &e) == PNET_FAILED);
}

/* A name of 255 bytes leaves no room for .tmp and .old behind it. */
static void check_long_names(void)
{
    char name[3][256];
    struct pnet_error e;
    for (int k = 0; k < 3; k++) {
        memset(name[k], 'n', 255);
        name[k][255] = '\0';
        name[k][254] = (char)('a' + k);
        if (k == 2) name[k][252] = '\0';
        CHECKF(write_checkpoint(in_folder(name[k]), k + 1, &e) == PNET_OK, "%s", e.message);
    }
    for (int k = 0; k < 3; k++) CHECK(read_checkpoint(in_folder(name[k])) == k + 1);
    faults.no_exchange = true; /* with .old, which is found where the name is missing */
    CHECK(write_checkpoint(in_folder(name[0]), 4, &e) == PNET_OK);
    faults.no_exchange = false;
    CHECK(read_checkpoint(in_folder(name[0])) == 4);
    for (int k = 0; k < 3; k++) remove_tree(in_folder(name[k]));
}

/* Names met twice would make a state nobody can read. */
static void check_refused_state(void)
{
    struct pnet_error e;
    const char *folder = in_folder("refused");
    CHECK(write_checkpoint(folder, 1, &e) == PNET_OK);
    struct pnet_score twice[] = {{"oa", 1}, {"oa", 2}};
    struct pnet_checkpoint_state state = {.metrics = twice, .metric_count = 2};
    CHECK(pnet_checkpoint_write(folder, &state, NULL, 0, NULL, 0, &e) != PNET_OK);
    state = (struct pnet_checkpoint_state){.step = -1};
    CHECK(pnet_checkpoint_write(folder, &state, NULL, 0, NULL, 0, &e) != PNET_OK);
    CHECK(read_checkpoint(folder) == 1);
    state = (struct pnet_checkpoint_state){.step = 1};
    CHECKF(pnet_checkpoint_write(folder, &state, NULL, 0, NULL, 0, &e) == PNET_OK, "%s", e.message);
    struct pnet_checkpoint *c;
    CHECK(pnet_checkpoint_read(folder, &c, &e) == PNET_OK);
    CHECK(c && c->weights->count == 0 && c->state.metric_count == 0);
    pnet_checkpoint_free(c);
}

/* Without the optimiser's state: one file less, and nothing of an older checkpoint is found in its place. */
static void check_without_optimizer(void)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/bare", test_folder);
    float numbers[2] = {3, 4};
    struct pnet_safetensor weights[] = {
        {.name = "w", .dtype = PNET_TENSOR_F32, .dims = 1, .shape = {2}, .data = numbers}};
    struct pnet_checkpoint_state state = {.step = 7};
    struct pnet_checkpoint *c;
    struct pnet_error e;
    char file[4200];
    CHECK(!pnet_checkpoint_write(folder, &state, weights, 1, weights, 1, &e));
    CHECK(!pnet_checkpoint_read(folder, &c, &e) && c->optimizer && c->optimizer->count == 1);
    pnet_checkpoint_free(c);
    CHECK(!pnet_checkpoint_write(folder, &state, weights, 1, NULL, 0, &e));
    CHECK(!pnet_checkpoint_read(folder, &c, &e) && !c->optimizer && c->weights->count == 1);
    pnet_checkpoint_free(c);
    snprintf(file, sizeof file, "%s/optimizer.safetensors", folder);
    CHECK(access(file, F_OK) != 0);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    make_folder();
    check_hash();
    check_round_trip();
    check_damage();
    check_long_names();
    check_state_checksum();
    check_refused_state();
    check_full_disk();
    check_old_is_found();
    check_without_optimizer();
    for (int no_exchange = 0; no_exchange < 2; no_exchange++) {
        for (int before = 0; before < 2; before++) {
            if (before) check_every_call(FAULT_KILL_BEFORE, before, no_exchange);
            if (before) check_every_call(FAULT_KILL_AFTER, before, no_exchange);
            check_every_call(FAULT_FAIL, before, no_exchange);
        }
        check_random_kills(no_exchange);
        check_reader_meanwhile(no_exchange);
    }
    remove_tree(test_folder);
    return check_end();
}
