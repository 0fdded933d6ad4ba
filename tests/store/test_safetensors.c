/* The safetensors format: a file of the reference library, our own, and everything that is wrong.
 */
#include "runtime/train/safetensors.h"
#include "tests/check.h"
#include "tests/store/folder.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

/* As safetensors 0.5 (Python) wrote it: seven tensors of seven types. */
static const char reference[] =
    "\xa8\x01\x00\x00\x00\x00\x00\x00"
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"c\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
    "\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[8,16]},"
    "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
    "\"e\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[24,24]},"
    "\"h\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[24,28]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[28,40]},"
    "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[40,43]}}       "
    "\x07\x00\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x00\x04@"
    "\x00\x00\xc0?\x00\x00\x10\xc0"
    "\xc0?b\xff"
    "\x00\x00\x00<\x00@\x00"
    "B\x00"
    "D\x00"
    "E\x01\x02\x03";

static void check_reference(void)
{
    struct pnet_safetensors *f;
    struct pnet_error e;
    CHECKF(pnet_safetensors_parse("x", reference, sizeof reference - 1, &f, &e) == PNET_OK, "%s",
        e.message);
    if (!f) return;
    CHECK(f->count == 7);
    CHECK_STR(f->tensors[0].name, "c");
    CHECK_STR(f->tensors[6].name, "u");
    CHECK_STR(pnet_safetensors_metadata(f, "format"), "pt");
    CHECK(!pnet_safetensors_metadata(f, "other"));
    CHECK(!pnet_safetensors_find(f, "z"));
    const struct pnet_safetensor *u = pnet_safetensors_find(f, "u");
    CHECK(u && u->dtype == PNET_TENSOR_U8 && memcmp(u->data, "\1\2\3", 3) == 0);

    float x[6];
    CHECK(pnet_safetensors_load(f, "x", "a", 1, (int64_t[]){2}, x, &e) == PNET_OK);
    CHECK(x[0] == 1.5f && x[1] == -2.25f);
    CHECK(pnet_safetensors_load(f, "x", "b", 2, (int64_t[]){2, 3}, x, &e) == PNET_OK);
    for (int i = 0; i < 6; i++) CHECK(x[i] == (float)i);
    CHECK(pnet_safetensors_load(f, "x", "h", 1, (int64_t[]){2}, x, &e) == PNET_OK);
    CHECK(x[0] == 1.5f && fabs(x[1] / -3.0e38 - 1) < 1.0 / 256);
    CHECK(pnet_safetensors_load(f, "x", "s", 0, NULL, x, &e) == PNET_OK && x[0] == 2.5f);
    CHECK(pnet_safetensors_load(f, "x", "e", 2, (int64_t[]){0, 3}, x, &e) == PNET_OK);

    CHECK(pnet_safetensors_load(f, "x", "b", 2, (int64_t[]){3, 2}, x, &e) == PNET_BAD_MODEL);
    CHECKF(strstr(e.message, "\"b\" is [2, 3], expected [3, 2]"), "%s", e.message);
    CHECK(pnet_safetensors_load(f, "x", "b", 1, (int64_t[]){6}, x, &e) == PNET_BAD_MODEL);
    CHECK(pnet_safetensors_load(f, "x", "c", 1, (int64_t[]){1}, x, &e) == PNET_BAD_MODEL);
    CHECKF(strstr(e.message, "I64"), "%s", e.message);
    CHECK(pnet_safetensors_load(f, "x", "w", 1, (int64_t[]){1}, x, &e) == PNET_BAD_MODEL);
    CHECKF(strstr(e.message, "no tensor \"w\""), "%s", e.message);
    pnet_safetensors_free(f);
}

/* Every file of ours is read back the same, byte for byte, in whatever order it was given. */
static void check_round_trip(void)
{
    static const char bytes[5] = {1, 2, 3, 4, 5};
    static const double wide[3] = {1, -0.0, 1e300};
    static const float single[4] = {0.1f, 2, 3, 4};
    struct pnet_safetensor in[] = {
        {.name = "odd bytes \"\\\n\xC3\xA9",
            .dtype = PNET_TENSOR_I8,
            .dims = 1,
            .shape = {5},
            .data = bytes},
        {.name = "net.conv.weight", .dims = 3, .shape = {2, 1, 2}, .data = single},
        {.name = "", .dtype = PNET_TENSOR_F64, .dims = 1, .shape = {3}, .data = wide},
        {.name = "none", .dtype = PNET_TENSOR_I32, .dims = 2, .shape = {0, 1 << 30}},
        {.name = "scalar", .dims = 0, .data = single},
    };
    struct pnet_metadata meta[] = {{"a", "1"}, {"text", "line\nline\t\"q\" \x01"}};
    enum { COUNT = sizeof in / sizeof *in };
    struct pnet_error e;
    struct pnet_safetensors *f;
    const char *path = in_folder("round.safetensors");
    CHECKF(pnet_safetensors_write(path, in, COUNT, meta, 2, &e) == PNET_OK, "%s", e.message);
    CHECKF(pnet_safetensors_read(path, &f, &e) == PNET_OK, "%s", e.message);
    if (!f) return;
    CHECK(f->count == COUNT && f->metadata_count == 2);
    CHECK_STR(pnet_safetensors_metadata(f, "text"), meta[1].value);
    const uint8_t *start = f->tensors[0].data;
    for (int i = 0; i < COUNT; i++) {
        const struct pnet_safetensor *t = pnet_safetensors_find(f, in[i].name);
        CHECK(t && t->dtype == in[i].dtype && t->dims == in[i].dims);
        if (!t) continue;
        CHECK(memcmp(t->shape, in[i].shape, (size_t)in[i].dims * 8) == 0);
        size_t size = pnet_tensor_type_size(t->dtype);
        if (in[i].data)
            CHECK(memcmp(t->data, in[i].data, (size_t)pnet_safetensor_count(t) * size) == 0);
        CHECK((size_t)((const uint8_t *)t->data - start) % size == 0);
    }
    pnet_safetensors_free(f);

    FILE *file = fopen(path, "rb");
    uint64_t length = 0;
    CHECK(file && fread(&length, 8, 1, file) == 1 && length % 8 == 0);
    if (file) fclose(file);
    CHECKF(pnet_safetensors_write(path, NULL, 0, NULL, 0, &e) == PNET_OK, "%s", e.message);
    CHECK(pnet_safetensors_read(path, &f, &e) == PNET_OK && f->count == 0);
    CHECK(!pnet_safetensors_find(f, "x"));
    pnet_safetensors_free(f);
}

static void check_many(void)
{
    enum { COUNT = 3000 };
    static struct pnet_safetensor in[COUNT];
    static char names[COUNT][32];
    static float value[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "net.x.%d.conv.weight", i);
        value[i] = (float)i;
        in[i] =
            (struct pnet_safetensor){.name = names[i], .dims = 1, .shape = {1}, .data = &value[i]};
    }
    struct pnet_error e;
    struct pnet_safetensors *f;
    const char *path = in_folder("many.safetensors");
    CHECK(pnet_safetensors_write(path, in, COUNT, NULL, 0, &e) == PNET_OK);
    CHECK(pnet_safetensors_read(path, &f, &e) == PNET_OK);
    for (int i = 0; f && i < COUNT; i++) {
        const struct pnet_safetensor *t = pnet_safetensors_find(f, names[i]);
        CHECK(t && *(const float *)t->data == value[i]);
    }
    float x;
    CHECK(pnet_safetensors_load(f, "m", "net.x.17.conv.weihgt", 1, (int64_t[]){1}, &x, &e) ==
          PNET_BAD_MODEL);
    CHECKF(strstr(e.message, "nearest name is \"net.x.17.conv.weight\""), "%s", e.message);
    pnet_safetensors_free(f);
}

/* Parses header and `data` zero bytes; the result must be PNET_BAD_DATA with `want` in the message.
 */
static void check_bad(const char *header, size_t data, const char *want)
{
    size_t length = strlen(header);
    uint8_t *bytes = calloc(1, 8 + length + data);
    if (!bytes) exit(1);
    uint64_t size = length;
    memcpy(bytes, &size, 8);
    memcpy(bytes + 8, header, length);
    struct pnet_error e = {.message = ""};
    struct pnet_safetensors *f;
    enum pnet_status status = pnet_safetensors_parse("bad.st", bytes, 8 + length + data, &f, &e);
    CHECKF(status == PNET_BAD_DATA && !f, "%s: %d", header, status);
    CHECKF(strstr(e.message, want) && strstr(e.message, "bad.st"), "%s: %s", header, e.message);
    pnet_safetensors_free(f);
    free(bytes);
}

static void check_malformed(void)
{
    static const struct {
        const char *header;
        size_t data;
        const char *want;
    } rows[] = {
        {"[]", 0, "safetensors"},
        {"{", 0, "safetensors"},
        {"{\"a\":}", 0, ":1:"},
        {"{\"a\":1}", 0, "dtype, shape and data_offsets"},
        {"{\"a\":{}}", 0, "dtype, shape"},
        {"{\"__metadata__\":3}", 0, "__metadata__"},
        {"{\"__metadata__\":{\"k\":3}}", 0, "expected a string"},
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype such as"},
        {"{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype such as"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "from 0 on"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "from 0 on"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4, "a shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
            "8 dimensions"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "two integers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "two integers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,\"4\"]}}", 4, "two integers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "within"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "within"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "within"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "span 8 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}", 4,
            "span -1 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
            "span"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0,
            "bad.st:1"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8,
            "expected 4 bytes of data, found 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "a gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
            4, "overlap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[2,10]}}",
            10, "overlap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
            8, "duplicate"},
        {"{} x", 0, ":1:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_bad(rows[i].header, rows[i].data, rows[i].want);
}

/* Cut anywhere, or with a length that lies, the reference file is refused. */
static void check_cut(void)
{
    struct pnet_error e;
    struct pnet_safetensors *f;
    char *copy = malloc(sizeof reference);
    if (!copy) exit(1);
    for (size_t size = 0; size < sizeof reference - 1; size++) {
        char *exact = malloc(size + 1);
        if (!exact) exit(1);
        memcpy(exact, reference, size);
        CHECK(pnet_safetensors_parse("cut", exact, size, &f, &e) == PNET_BAD_DATA && !f);
        free(exact);
    }
    static const uint64_t lengths[] = {0, 1, 423, 425, 468, 100000001, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(copy, reference, sizeof reference);
        memcpy(copy, &lengths[i], 8);
        CHECK(pnet_safetensors_parse("x", copy, sizeof reference - 1, &f, &e) == PNET_BAD_DATA);
    }
    free(copy);
}

static void check_refused_writes(void)
{
    struct pnet_error e;
    struct pnet_safetensors *f;
    static float x[100000];
    const char *path = in_folder("kept.safetensors");
    struct pnet_safetensor one = {.name = "a", .dims = 1, .shape = {1}, .data = x};
    CHECK(pnet_safetensors_write(path, &one, 1, NULL, 0, &e) == PNET_OK);

    struct pnet_safetensor twice[] = {one, one};
    CHECK(pnet_safetensors_write(path, twice, 2, NULL, 0, &e) == PNET_FAILED);
    CHECKF(strstr(e.message, "\"a\""), "%s", e.message);
    twice[1].name = "__metadata__";
    CHECK(pnet_safetensors_write(path, twice, 2, NULL, 0, &e) == PNET_FAILED);
    CHECK(pnet_safetensors_write(in_folder("no/folder"), &one, 1, NULL, 0, &e) == PNET_FAILED);

    struct pnet_safetensor large = {.name = "a", .dims = 1, .shape = {100000}, .data = x};
    struct rlimit none, limit;
    getrlimit(RLIMIT_FSIZE, &none);
    limit = (struct rlimit){.rlim_cur = 100000, .rlim_max = none.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    enum pnet_status status = pnet_safetensors_write(path, &large, 1, NULL, 0, &e);
    setrlimit(RLIMIT_FSIZE, &none);
    CHECK(status == PNET_FAILED);
    CHECKF(strstr(e.message, "File too large"), "%s", e.message);
    CHECK(pnet_safetensors_read(path, &f, &e) == PNET_OK && f->tensors[0].shape[0] == 1);
    pnet_safetensors_free(f);
    CHECK(pnet_safetensors_read(in_folder("missing"), &f, &e) == PNET_FAILED && !f);
}

/* Every binary16 is the sum of its bits; the compiler's own conversion is not needed to say so. */
static void check_halves(void)
{
    int wrong = 0;
    for (int h = 0; h < 0x7C00; h++) {
        double want = h < 0x400 ? h * 0x1p-24 : (1 + (h & 1023) / 1024.0) * pow(2, (h >> 10) - 15);
        wrong += pnet_float_from_half((uint16_t)h) != (float)want;
        wrong += pnet_float_from_half((uint16_t)(h | 0x8000)) != (float)-want;
    }
    CHECK(wrong == 0);
    CHECK(pnet_float_from_half(0x7C00) == INFINITY && pnet_float_from_half(0xFC00) == -INFINITY);
    CHECK(isnan(pnet_float_from_half(0x7C01)) && isnan(pnet_float_from_half(0xFFFF)));
    CHECK(pnet_float_from_bfloat(0x3F80) == 1 && pnet_float_from_bfloat(0xC040) == -3);
    CHECK(isnan(pnet_float_from_bfloat(0x7FC0)) && pnet_float_from_bfloat(1) == 0x1p-133f);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    make_folder();
    check_reference();
    check_round_trip();
    check_many();
    check_malformed();
    check_cut();
    check_refused_writes();
    check_halves();
    remove_tree(test_folder);
    return check_end();
}
