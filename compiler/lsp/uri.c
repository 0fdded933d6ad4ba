/* URIs of files and their paths (RFC 8089, RFC 3986). */
#include "compiler/lsp/internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

void pnet_lsp_normalise(char *path)
{
    if (path[0] != '/') return;
    char *out = path;
    for (const char *at = path; *at;) {
        while (*at == '/') at++;
        size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.') {
            while (out > path && *--out != '/') continue;
        } else if (length && !(length == 1 && at[0] == '.')) {
            *out++ = '/';
            memmove(out, at, length);
            out += length;
        }
        at += length;
    }
    if (out == path) *out++ = '/';
    *out = 0;
}

char *pnet_lsp_path(const char *uri)
{
    static const char scheme[] = "file://", host[] = "localhost";
    const char *from = uri + sizeof scheme - 1;
    if (strncasecmp(uri, scheme, sizeof scheme - 1) != 0) return strdup(uri);
    if (strncasecmp(from, host, sizeof host - 1) == 0 && from[sizeof host - 1] == '/')
        from += sizeof host - 1;
    if (*from != '/') return strdup(uri);
    char *path = malloc(strlen(from) + 1), *out = path;
    if (!path) return NULL;
    for (; *from; from++) {
        int high = *from == '%' ? hex(from[1]) : -1, low = high >= 0 ? hex(from[2]) : -1;
        if (low >= 0 && (high || low)) { /* a zero byte stays as it is written */
            *out++ = (char)(high << 4 | low);
            from += 2;
        } else {
            *out++ = *from;
        }
    }
    *out = 0;
    pnet_lsp_normalise(path);
    return path;
}

/* The path from the root of the file system; of other URIs, as it is. */
static char *absolute(const char *path)
{
    if (path[0] == '/' || strchr(path, ':')) return strdup(path);
    char *folder = getcwd(NULL, 0);
    size_t size = folder ? strlen(folder) + strlen(path) + 2 : 0;
    char *whole = size ? malloc(size) : NULL;
    if (whole) snprintf(whole, size, "%s/%s", folder, path);
    free(folder);
    return whole;
}

char *pnet_lsp_uri(const char *path)
{
    static const char digits[] = "0123456789ABCDEF", scheme[] = "file://";
    char *whole = absolute(path);
    if (!whole || whole[0] != '/') return whole;
    pnet_lsp_normalise(whole);
    char *uri = malloc(sizeof scheme + 3 * strlen(whole)), *out = uri;
    if (uri) {
        memcpy(uri, scheme, sizeof scheme - 1);
        out += sizeof scheme - 1;
        for (const char *s = whole; *s; s++) {
            unsigned char c = (unsigned char)*s;
            bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || strchr("/-._~", c);
            if (plain) {
                *out++ = (char)c;
            } else {
                *out++ = '%';
                *out++ = digits[c >> 4];
                *out++ = digits[c & 15];
            }
        }
        *out = 0;
    }
    free(whole);
    return uri;
}
