/* Any bytes as the stream of the language server end in answers and a clean end: the server returns, and what it wrote are frames
   with JSON-RPC in them. An input that begins with `{` is bodies, one a line, which get their headers here: so that texts and
   requests change, and not only lengths. */
#include "compiler/lsp/lsp.h"
#include "runtime/base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The stream of the bodies; the caller frees it. */
static char *frame(const uint8_t *data, size_t size, size_t *length)
{
    char *stream = NULL;
    FILE *to = open_memstream(&stream, length);
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t body = end ? (size_t)(end - data) - at : size - at;
        fprintf(to, "Content-Length: %zu\r\n\r\n", body);
        fwrite(data + at, 1, body, to);
        at += body + 1;
    }
    fclose(to);
    return stream;
}

static void check_output(const char *out, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t size = 0;
        int head = 0;
        json_t *message;
        struct pnet_error e;
        if (sscanf(out + at, "Content-Length: %zu\r\n\r\n%n", &size, &head) != 1 || !head) abort();
        at += (size_t)head;
        if (size > length - at) abort();
        if (pnet_json_parse("answer", out + at, size, &message, &e)) abort();
        const json_t *method = json_object_get(message, "method"),
                     *id = json_object_get(message, "id");
        bool answer = !json_object_get(message, "result") != !json_object_get(message, "error");
        if (!json_is_string(json_object_get(message, "jsonrpc"))) abort();
        if (method ? id != NULL || answer : !id || !answer) abort();
        json_decref(message);
        at += size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length = size, written = 0;
    char *stream = size && *data == '{' ? frame(data, size, &length) : NULL, *out = NULL;
    if (!stream && size) {
        stream = malloc(size);
        if (stream) memcpy(stream, data, size);
    }
    if (!stream || !length) {
        free(stream);
        return 0;
    }
    struct pnet_error e;
    FILE *in = fmemopen(stream, length, "r"), *to = open_memstream(&out, &written);
    enum pnet_status st = pnet_lsp_serve(in, to, &e);
    if (st != PNET_OK && st != PNET_FAILED) abort();
    fclose(in);
    fclose(to);
    check_output(out, written);
    free(out);
    free(stream);
    return 0;
}
