#include "runtime/synth/synth_replace.h"
#include "runtime/base/file.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_MOST = 4096 };

/* Returns the length of `word` if the bytes at `text` begin with it, else 0. */
static size_t begins(const char *text, size_t size, const char *word)
{
    size_t n = strlen(word);
    return size >= n && memcmp(text, word, n) == 0 ? n : 0;
}

/* Returns the length of the name of a synthetic cloud at `text`; 0 if there is none. */
static size_t cloud_name(const char *text, size_t size)
{
    static const char *const splits[] = {"train/", "val/", "test/"};
    static const char *const ends[] = {
        ".ply", "_source.ply", "_target.ply", "_partial.ply", "_full.ply"};
    size_t n = 0, digits = 0;
    for (int i = 0; i < 3 && !n; i++) n = begins(text, size, splits[i]);
    if (!n) return 0;
    while (n + digits < size && text[n + digits] >= '0' && text[n + digits] <= '9') digits++;
    if (digits < 6 || digits > 10) return 0;
    n += digits;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = begins(text + n, size - n, ends[i]);
        if (end) return n + end;
    }
    return 0;
}

static enum pnet_status remove_file(const char *path, struct pnet_error *e)
{
    if (!unlink(path) || errno == ENOENT) return PNET_OK;
    return pnet_error_errno(e, PNET_FAILED, errno, "cannot remove %s", path);
}

static enum pnet_status remove_clouds(
    const char *folder, const char *text, size_t size, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    for (size_t i = 0; i < size && !st; i++) {
        size_t n = i && text[i - 1] == ' ' ? cloud_name(text + i, size - i) : 0;
        char path[PATH_MOST];
        if (!n) continue;
        snprintf(path, sizeof path, "%s/%.*s", folder, (int)n, text + i);
        st = remove_file(path, e);
    }
    return st;
}

enum pnet_status pnet_synth_make_room(const char *folder, bool replace, struct pnet_error *e)
{
    char index[PATH_MOST];
    struct pnet_bytes b;
    int length = snprintf(index, sizeof index, "%s/dataset.yaml", folder);
    if (length < 0 || (size_t)length >= sizeof index - 32) /* clouds have longer names */
        return pnet_error_set(e, PNET_USAGE, "folder name too long: %.100s...", folder);
    if (access(index, F_OK)) return PNET_OK;
    if (!replace)
        return pnet_error_set(e, PNET_USAGE,
            "%s holds a data set already: --force replaces it, or choose another folder", folder);
    enum pnet_status st = pnet_bytes_read(index, &b, e);
    if (st) return st;
    st = remove_clouds(folder, (const char *)b.data, b.size, e);
    pnet_bytes_free(&b);
    return st ? st : remove_file(index, e);
}
