/* Texts in memory: whole, or none, at whatever allocation memory runs out. */
#include "tests/heap.h"
#if HEAP_REPLACED
#include "runtime/base/memory_stream.h"
#include "tests/check.h"

enum { LINES = 3000 };

static char *write_lines(size_t *size)
{
    struct pnet_memory_stream t;
    if (!pnet_memory_stream_open(&t)) return NULL;
    for (int i = 0; i < LINES; i++) fprintf(t.file, "line %d of many\n", i);
    return pnet_memory_stream_close(&t, size);
}

static void test_whole(void)
{
    size_t size = 0;
    char *text = write_lines(&size), line[64], *at = text;
    CHECK(text && strlen(text) == size);
    for (int i = 0; text && i < LINES; i++) {
        int n = snprintf(line, sizeof line, "line %d of many\n", i);
        CHECK(strncmp(at, line, (size_t)n) == 0);
        at += n;
    }
    CHECK(text && at == text + size);
    free(text);
    struct pnet_memory_stream t;
    CHECK(pnet_memory_stream_open(&t));
    char *empty = pnet_memory_stream_close(&t, &size);
    CHECK(empty && !*empty && size == 0);
    free(empty);
}

static void test_memory(void)
{
    int whole = 0, missing = 0;
    for (int behind = 0; behind < 2; behind++)
        for (long n = 1;; n++) {
            heap_begin(n, behind);
            size_t size;
            char *text = write_lines(&size);
            bool met = heap.calls >= n;
            heap.counting = false;
            if (text) {
                whole++;
                CHECKF(strlen(text) == size && strstr(text, "line 2999 of many\n"),
                    "allocation %ld: a text of %zu bytes", n, size);
            } else {
                missing++;
                CHECK(met);
            }
            free(text);
            if (!met) break;
        }
    CHECK(whole >= 2 && missing > 8);
}

int main(void)
{
    test_whole();
    test_memory();
    return check_end();
}
#endif
