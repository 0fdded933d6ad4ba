#include "runtime/base/guard.h"
#include "runtime/base/file.h"
#include "runtime/base/folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum role { INPUT = 1, OUTPUT = 2, FOLDER = 4, RELEASED = 8 };

/* What is compared. An output that does not exist yet is a name in a folder; `leaf` is "" for everything that exists. */
struct key {
    dev_t device;
    ino_t inode;
    const char *leaf;
};

struct mark {
    struct key key;
    unsigned role;
    char *path; /* as given; owns the text that key.leaf points into, if there is one */
};

/* A hash table, so that data sets of many files are looked up in constant time. It is one for the program, since every reader
   and writer must see it; file names would otherwise have to pass through each of them. */
static struct {
    bool on;              /* set before other threads begin */
    pthread_mutex_t lock; /* of what follows */
    struct mark *marks;   /* [size], those with role 0 are free; size is a power of two, or 0 */
    size_t size, used;
    bool refused;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

void pnet_guard_begin(void)
{
    guard.on = true;
}

static bool same_key(const struct key *a, const struct key *b)
{
    return a->device == b->device && a->inode == b->inode && strcmp(a->leaf, b->leaf) == 0;
}

static size_t hash_key(const struct key *k)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    h = (h ^ (uint64_t)k->inode) * 0x100000001b3u;
    h = (h ^ (uint64_t)k->device) * 0x100000001b3u;
    for (const char *c = k->leaf; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

/* Returns the mark with that key and one of the roles, or the free place after all marks with that key. The table has room. */
static struct mark *find(const struct key *k, unsigned roles)
{
    size_t at = hash_key(k) & (guard.size - 1);
    while (guard.marks[at].role &&
           !(guard.marks[at].role & roles && same_key(&guard.marks[at].key, k)))
        at = (at + 1) & (guard.size - 1);
    return &guard.marks[at];
}

/* Makes room for one more mark. False: out of memory. */
static bool grow(void)
{
    if (2 * (guard.used + 1) <= guard.size) return true;
    size_t old_size = guard.size, size = old_size ? 2 * old_size : 64;
    struct mark *old = guard.marks, *marks = calloc(size, sizeof *marks);
    if (!marks) return false;
    guard.marks = marks;
    guard.size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].role) *find(&old[i].key, 0) = old[i];
    free(old);
    return true;
}

/* The keys of inputs and of outputs that exist have no leaf. */
static struct key key_of(const struct stat *s)
{
    return (struct key){s->st_dev, s->st_ino, ""};
}

/* Finds the key of an output, which may be missing; `target` gets its path without links at the end. False: it is nothing that a
   file could replace, or opening it will fail. */
static bool key_of_output(const char *path, char target[PNET_PATH_MOST], struct key *k)
{
    struct stat s;
    if (strcmp(path, "-") == 0) {
        if (fstat(STDOUT_FILENO, &s) != 0 || !S_ISREG(s.st_mode)) return false;
        *k = key_of(&s);
        return true;
    }
    if (stat(path, &s) == 0) {
        *k = key_of(&s);
        return S_ISREG(s.st_mode);
    }
    if (pnet_path_follow(path, target)) return false;
    char *slash = strrchr(target, '/');
    *k = (struct key){.leaf = slash ? slash + 1 : target};
    if (!slash || slash == target) {
        if (stat(slash ? "/" : ".", &s) != 0) return false;
        *k = (struct key){s.st_dev, s.st_ino, k->leaf};
        return true;
    }
    *slash = '\0';
    bool there = stat(target, &s) == 0;
    *slash = '/';
    *k = there ? (struct key){s.st_dev, s.st_ino, slash + 1} : (struct key){.leaf = target};
    return true;
}

/* Tells whether the file of a mark is still there: the number of a file that was removed is used again. */
static bool is_current(const struct mark *m)
{
    struct stat s;
    return strcmp(m->path, "-") == 0 || m->key.leaf[0] || m->role == FOLDER ||
           (stat(m->path, &s) == 0 && s.st_dev == m->key.device && s.st_ino == m->key.inode);
}

/* Returns a mark of these roles that has the key, or NULL. */
static struct mark *find_current(const struct key *k, unsigned roles)
{
    struct mark *m = guard.size ? find(k, roles) : NULL;
    return m && m->role && is_current(m) ? m : NULL;
}

/* What a file cannot be together with its new role; the caller frees the path. */
struct clash {
    unsigned role; /* 0: none */
    char *path;
};

/* Finds a clash with a mark of these roles. False: out of memory. */
static bool find_clash(const struct key *k, unsigned roles, struct clash *c)
{
    const struct mark *m = find_current(k, roles);
    *c = (struct clash){0};
    if (!m) return true;
    *c = (struct clash){m->role, strdup(m->path)};
    return c->path;
}

/* Records the mark, which keeps a copy of the path. False: out of memory. */
static bool put(const struct key *k, unsigned role, const char *path)
{
    if (!grow()) return false;
    struct mark *m = find(k, role);
    /* a path that was read again has just been looked up */
    if (m->role && (strcmp(m->path, path) == 0 || is_current(m))) return true;
    size_t length = strlen(path), leaf = strlen(k->leaf);
    char *text = malloc(length + leaf + 2);
    if (!text) return false;
    memcpy(text, path, length + 1);
    memcpy(text + length + 1, k->leaf, leaf + 1);
    guard.used += !m->role;
    free(m->path);
    *m = (struct mark){{k->device, k->inode, text + length + 1}, role, text};
    return true;
}

static const char *shown(const char *path, const char *standard)
{
    return strcmp(path, "-") == 0 ? standard : path;
}

static enum pnet_status refuse(
    const char *output, const struct clash *c, const char *input, struct pnet_error *e)
{
    output = shown(output, "on standard output");
    if (c->role == OUTPUT && !input)
        return pnet_error_set(e, PNET_USAGE,
            "the outputs %.400s and %.400s are one file: choose another name for one of them",
            shown(c->path, "on standard output"), output);
    return pnet_error_set(e, PNET_USAGE,
        "the output %.400s would replace the input %.400s: choose another name for the output",
        output, shown(input ? input : c->path, "on standard input"));
}

static enum pnet_status put_input(const struct stat *s, const char *path, struct pnet_error *e)
{
    struct key k = key_of(s);
    struct clash c;
    pthread_mutex_lock(&guard.lock);
    bool memory = find_clash(&k, OUTPUT, &c) && (c.role || put(&k, INPUT, path));
    guard.refused |= c.role;
    pthread_mutex_unlock(&guard.lock);
    enum pnet_status st = !memory  ? pnet_error_memory(e)
                          : c.role ? refuse(c.path, &c, path, e)
                                   : PNET_OK;
    free(c.path);
    return st;
}

enum pnet_status pnet_guard_input(const char *path, struct pnet_error *e)
{
    struct stat s;
    if (!guard.on) return PNET_OK;
    if (strcmp(path, "-") == 0) return pnet_guard_input_file(STDIN_FILENO, path, e);
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) ? put_input(&s, path, e) : PNET_OK;
}

enum pnet_status pnet_guard_input_file(int fd, const char *path, struct pnet_error *e)
{
    struct stat s;
    if (!guard.on || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) return PNET_OK;
    return put_input(&s, path, e);
}

struct listing {
    const char *folder;
    enum pnet_status status;
    struct pnet_error *error;
};

static int put_entry(int fd, const char *name, void *context)
{
    struct listing *l = context;
    char path[PNET_PATH_MOST];
    (void)fd;
    int length = snprintf(path, sizeof path, "%s/%s", l->folder, name);
    if (!l->status && length > 0 && (size_t)length < sizeof path)
        l->status = pnet_guard_input(path, l->error);
    return 0;
}

enum pnet_status pnet_guard_input_folder(const char *path, struct pnet_error *e)
{
    struct listing l = {.folder = path, .error = e};
    if (!guard.on) return PNET_OK;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return PNET_OK;
    (void)pnet_folder_each(fd, put_entry, &l);
    close(fd);
    return l.status;
}

/* Looks for marks of these roles; if there is none and `announce`, records the output. */
static enum pnet_status put_output(
    const char *path, unsigned clashing, bool announce, struct pnet_error *e)
{
    char target[PNET_PATH_MOST];
    struct key k;
    struct clash c;
    if (!guard.on || !key_of_output(path, target, &k)) return PNET_OK;
    pthread_mutex_lock(&guard.lock);
    bool memory = find_clash(&k, clashing, &c) && (c.role || !announce || put(&k, OUTPUT, path));
    guard.refused |= c.role;
    pthread_mutex_unlock(&guard.lock);
    enum pnet_status st = !memory  ? pnet_error_memory(e)
                          : c.role ? refuse(path, &c, NULL, e)
                                   : PNET_OK;
    free(c.path);
    return st;
}

enum pnet_status pnet_guard_output(const char *path, struct pnet_error *e)
{
    return put_output(path, INPUT | OUTPUT, true, e);
}

enum pnet_status pnet_guard_check(const char *path, struct pnet_error *e)
{
    return put_output(path, INPUT, false, e);
}

bool pnet_guard_has_refused(void)
{
    pthread_mutex_lock(&guard.lock);
    bool refused = guard.refused;
    pthread_mutex_unlock(&guard.lock);
    return refused;
}

void pnet_guard_release(const char *path)
{
    struct stat s;
    if (!guard.on || stat(path, &s) != 0) return;
    struct key k = key_of(&s);
    pthread_mutex_lock(&guard.lock);
    struct mark *m = guard.size ? find(&k, INPUT) : NULL;
    if (m && m->role) m->role = RELEASED;
    pthread_mutex_unlock(&guard.lock);
}

bool pnet_guard_is_new_folder(int fd)
{
    struct stat s;
    if (!guard.on || fstat(fd, &s) != 0) return true;
    struct key k = key_of(&s);
    pthread_mutex_lock(&guard.lock);
    bool known = find_current(&k, FOLDER);
    if (!known) (void)put(&k, FOLDER, ""); /* without memory it is looked through again */
    pthread_mutex_unlock(&guard.lock);
    return !known;
}
