#include "runtime/synth/synth_replace.h"
#include "runtime/base/folder.h"
#include "runtime/base/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_MOST = PNET_PATH_MOST, NAME_MOST = 64, SETS = 2 };

static const char *const sets[SETS] = {".pnet-set-1/", ".pnet-set-2/"};

struct path {
    char text[PATH_MOST + NAME_MOST];
};

/* The folder's name has been checked to be short enough. */
static struct path join(const char *folder, const char *set, const char *name)
{
    struct path p;
    snprintf(p.text, sizeof p.text, "%.4000s/%s%s", folder, set, name);
    return p;
}

/* Returns the length of `word` if the bytes at `text` begin with it, else 0. */
static size_t begins(const char *text, size_t size, const char *word)
{
    size_t n = strlen(word);
    return size >= n && memcmp(text, word, n) == 0 ? n : 0;
}

/* Returns the length of the name of a synthetic cloud at `text`, SPLIT/NUMBER.ply; 0 if there is none. */
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

/* ---- folders in which sets are made ---- */

static int remove_tree(int folder, const char *name, void *context)
{
    (void)context;
    if (unlinkat(folder, name, 0) == 0) return 0;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return 0;
    (void)pnet_folder_each(fd, remove_tree, NULL);
    close(fd);
    (void)unlinkat(folder, name, AT_REMOVEDIR);
    return 0;
}

/* Locks FOLDER/SET, which may be missing. Returns a descriptor; -1: it is missing or cannot be opened, errno says; -2: another
   program holds the lock. */
static int lock_set(const char *folder, const char *set, bool make)
{
    struct path path = join(folder, set, "lock");
    struct stat a, b;
    for (int attempt = 0; attempt < 100; attempt++) {
        if (make && mkdir(join(folder, set, "").text, 0777) != 0 && errno != EEXIST) return -1;
        int fd = open(path.text, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && make && errno == ENOENT) continue; /* another program has just removed it */
        if (fd < 0) return -1;
        bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!taken && fstat(fd, &a) == 0 && stat(path.text, &b) == 0 && a.st_ino == b.st_ino)
            return fd;
        close(fd);
        if (taken) return -2;
    }
    return -1;
}

static void remove_set(const char *folder, const char *set)
{
    char name[NAME_MOST];
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof name, "%.*s", (int)strlen(set) - 1, set);
    if (fd < 0) return;
    (void)remove_tree(fd, name, NULL);
    close(fd);
}

/* Appends a text, and frees it. */
static enum pnet_status append(struct pnet_bytes *to, struct pnet_bytes *text, struct pnet_error *e)
{
    uint8_t *both = malloc(to->size + text->size + 1);
    if (both) {
        memcpy(both, to->data, to->size);
        memcpy(both + to->size, text->data, text->size);
        size_t size = to->size + text->size;
        pnet_bytes_free(to);
        *to = (struct pnet_bytes){.data = both, .size = size};
    }
    pnet_bytes_free(text);
    return both ? PNET_OK : pnet_error_memory(e);
}

/* Adds the index that the set was about to replace when its program was killed. */
static enum pnet_status add_replaced(
    const char *folder, const char *set, struct pnet_bytes *old, struct pnet_error *e)
{
    struct path path = join(folder, set, "replaced");
    struct pnet_bytes text;
    if (access(path.text, F_OK) != 0) return PNET_OK;
    enum pnet_status st = pnet_bytes_read_own(path.text, &text, e);
    return st ? st : append(old, &text, e);
}

/* Removes the sets that killed programs left and the index does not list. *free_set is the first that may be made. */
static enum pnet_status clear_sets(
    const char *folder, struct pnet_bytes *index, const char **free_set, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    size_t size = index->size; /* what is added lists sets, too */
    *free_set = NULL;
    for (int i = 0; i < SETS && !st; i++) {
        int fd = lock_set(folder, sets[i], false);
        if (fd == -2)
            return pnet_error_set(
                e, PNET_FAILED, "%s: another program makes a data set in this folder", folder);
        bool listed = size && memmem(index->data, size, sets[i], strlen(sets[i]));
        if (listed) {
            st = add_replaced(folder, sets[i], index, e);
        } else {
            remove_set(folder, sets[i]);
            if (!*free_set) *free_set = sets[i];
        }
        if (fd >= 0) close(fd);
    }
    if (st || *free_set) return st;
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s/dataset.yaml lists clouds in .pnet-set-1 and .pnet-set-2: choose another folder",
        folder);
}

static enum pnet_status write_text(
    const char *path, const struct pnet_bytes *text, struct pnet_error *e)
{
    struct pnet_output out;
    enum pnet_status st = pnet_output_open(path, &out, e);
    if (st) return st;
    fwrite(text->data, 1, text->size, out.file); /* commit reports a failure */
    return pnet_output_commit(&out, e);
}

static enum pnet_status make_set(
    struct pnet_synth_place *p, const char *const *splits, int split_count, struct pnet_error *e)
{
    p->lock = lock_set(p->folder, p->made_in, true);
    if (p->lock < 0)
        return p->lock == -2 ? pnet_error_set(e, PNET_FAILED,
                                   "%s: another program makes a data set in this folder", p->folder)
                             : pnet_error_errno(e, PNET_FAILED, errno,
                                   "%s/%s: cannot make the folder", p->folder, p->made_in);
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < split_count && !st; i++)
        st = pnet_make_folder(join(p->folder, p->made_in, splits[i]).text, e);
    return st || !p->old.size
               ? st
               : write_text(join(p->folder, p->made_in, "replaced").text, &p->old, e);
}

enum pnet_status pnet_synth_place_begin(const char *folder, bool replace, const char *const *splits,
    int split_count, struct pnet_synth_place *p, struct pnet_error *e)
{
    enum { LONGEST = 4000 };
    *p = (struct pnet_synth_place){.folder = folder, .lock = -1};
    if (strlen(folder) > LONGEST)
        return pnet_error_set(e, PNET_USAGE, "folder name too long: %.100s...", folder);
    struct path index = join(folder, "", "dataset.yaml");
    bool there = access(index.text, F_OK) == 0;
    if (there && !replace)
        return pnet_error_set(e, PNET_USAGE,
            "%s holds a data set already: --force replaces it, or choose another folder", folder);
    enum pnet_status st = there ? pnet_bytes_read_own(index.text, &p->old, e) : PNET_OK;
    if (!st) st = pnet_make_folder(folder, e);
    if (!st) st = clear_sets(folder, &p->old, &p->made_in, e);
    if (!st) st = make_set(p, splits, split_count, e);
    if (st) pnet_synth_place_drop(p);
    return st;
}

/* ---- clouds in place ---- */

static enum pnet_status copy_cloud(const char *from, const char *to, struct pnet_error *e)
{
    struct pnet_bytes b;
    enum pnet_status st = pnet_bytes_read_own(from, &b, e);
    if (st) return st;
    st = write_text(to, &b, e);
    pnet_bytes_free(&b);
    return st;
}

/* Makes `to` a second name of the file `from`, in place of a file that is there. Returns 0 or an errno. */
static int link_cloud(const struct pnet_synth_place *p, const char *from, const char *to)
{
    struct path second = join(p->folder, p->made_in, "second");
    struct stat old;
    if (lstat(to, &old) != 0) return link(from, to) == 0 ? 0 : errno;
    if (!S_ISREG(old.st_mode)) return EEXIST;
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) pnet_keep_permissions(fd, &old);
    if (fd >= 0) close(fd);
    (void)unlink(second.text);
    if (link(from, second.text) != 0 || rename(second.text, to) != 0) return errno;
    return 0;
}

enum pnet_status pnet_synth_place_cloud(
    const struct pnet_synth_place *p, const char *name, struct pnet_error *e)
{
    struct path from = join(p->folder, p->made_in, name), to = join(p->folder, "", name);
    return link_cloud(p, from.text, to.text) == 0 ? PNET_OK : copy_cloud(from.text, to.text, e);
}

/* Tells whether a name of a set ends at `end`; as many bytes precede it. */
static bool is_set(const char *end)
{
    for (int i = 0; i < SETS; i++)
        if (memcmp(end - strlen(sets[i]), sets[i], strlen(sets[i])) == 0) return true;
    return false;
}

void pnet_synth_place_clear(const struct pnet_synth_place *p,
    bool (*is_new)(const void *context, const char *name), const void *context)
{
    const char *text = (const char *)p->old.data;
    for (size_t i = 1; i < p->old.size; i++) {
        /* after a blank, or in a set */
        bool begins_here = text[i - 1] == ' ' || (i >= strlen(sets[0]) && is_set(text + i));
        size_t n = begins_here ? cloud_name(text + i, p->old.size - i) : 0;
        char name[NAME_MOST];
        if (!n || n >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)n, text + i);
        if (!is_new(context, name)) (void)unlink(join(p->folder, "", name).text);
    }
}

void pnet_synth_place_end(struct pnet_synth_place *p)
{
    for (int i = 0; i < SETS; i++) remove_set(p->folder, sets[i]);
    pnet_synth_place_leave(p);
}

void pnet_synth_place_leave(struct pnet_synth_place *p)
{
    close(p->lock);
    p->lock = -1;
    pnet_bytes_free(&p->old);
}

void pnet_synth_place_drop(struct pnet_synth_place *p)
{
    if (p->lock >= 0 && p->made_in) {
        remove_set(p->folder, p->made_in);
        close(p->lock);
        p->lock = -1;
    }
    pnet_bytes_free(&p->old);
}
