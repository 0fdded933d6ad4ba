#include "lang/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct pnet_sources {
    struct pnet_arena *arena;
    struct entry {
        struct pnet_source source;
        struct pnet_source_id id;
    } * *entries;
    uint32_t count, capacity;
    struct pnet_overlay overlay; /* find: NULL where there is none */
};

struct pnet_sources *pnet_sources_new(struct pnet_arena *a)
{
    if (!a->limit) a->limit = PNET_MAX_BYTES;
    struct pnet_sources *s = pnet_arena_alloc(a, sizeof *s);
    if (s) s->arena = a;
    return s;
}

const struct pnet_source *pnet_sources_get(const struct pnet_sources *s, uint32_t file)
{
    return file < s->count ? &s->entries[file]->source : NULL;
}

bool pnet_sources_add(struct pnet_sources *s, const char *name, struct pnet_source_text text,
    struct pnet_span included_from, uint32_t *file)
{
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? 2 * s->capacity : 8;
        struct entry **grown = pnet_arena_array(s->arena, capacity, sizeof(struct entry *));
        if (!grown) return false;
        if (s->count) memcpy(grown, s->entries, s->count * sizeof(struct entry *));
        s->entries = grown;
        s->capacity = capacity;
    }
    struct entry *e = pnet_arena_alloc(s->arena, sizeof *e);
    char *copy = pnet_arena_copy(s->arena, name, strlen(name));
    if (!e || !copy) return false;
    e->source = (struct pnet_source){
        .name = copy, .text = text.text, .length = text.length, .included_from = included_from};
    e->id = text.id;
    *file = s->count;
    s->entries[s->count++] = e;
    return true;
}

uint32_t pnet_sources_count(const struct pnet_sources *s)
{
    return s->count;
}

void pnet_sources_use(struct pnet_sources *s, const struct pnet_overlay *overlay)
{
    s->overlay = *overlay;
}

static const struct pnet_held_text *find_held(const struct pnet_sources *s, const char *path)
{
    return s->overlay.find ? s->overlay.find(s->overlay.context, path) : NULL;
}

struct pnet_source_id pnet_source_identify(const struct pnet_sources *s, const char *path)
{
    struct stat st;
    const struct pnet_held_text *held = find_held(s, path);
    if (held) return (struct pnet_source_id){.known = true, .held = held};
    if (stat(path, &st) != 0) return (struct pnet_source_id){0};
    return (struct pnet_source_id){.known = true, .device = st.st_dev, .inode = st.st_ino};
}

bool pnet_sources_find(const struct pnet_sources *s, struct pnet_source_id id, uint32_t *file)
{
    for (uint32_t i = 0; id.known && i < s->count; i++) {
        const struct pnet_source_id *other = &s->entries[i]->id;
        if (other->known && other->held == id.held && other->device == id.device &&
            other->inode == id.inode) {
            *file = i;
            return true;
        }
    }
    return false;
}

/* Sets the reason in *error; running out of memory is recorded in the arena, as always. */
static bool refuse(struct pnet_sources *s, int code, const char **error)
{
    const char *reason = strerror(code);
    if (code == ENOMEM)
        s->arena->failed = true;
    else
        *error = pnet_arena_copy(s->arena, reason, strlen(reason));
    return false;
}

/* Reads to the end, but at most one byte beyond the limit. */
static bool read_all(
    struct pnet_sources *s, FILE *f, struct pnet_source_text *out, const char **error)
{
    size_t capacity = 4 << 10, length = 0;
    char *text = pnet_arena_alloc(s->arena, capacity + 1);
    while (text) {
        length += fread(text + length, 1, capacity - length, f);
        if (length < capacity || length > PNET_MAX_SOURCE_BYTES) break;
        char *grown = pnet_arena_alloc(s->arena, 2 * capacity + 1);
        if (grown) memcpy(grown, text, length);
        text = grown;
        capacity *= 2;
    }
    if (!text) return false;
    if (ferror(f)) return refuse(s, errno, error);
    text[length] = 0;
    out->text = text;
    out->length = length;
    return true;
}

static bool copy_held(
    struct pnet_sources *s, const struct pnet_held_text *held, struct pnet_source_text *out)
{
    /* Of a text that is too large, only enough is read to see that. */
    size_t length = held->length > PNET_MAX_SOURCE_BYTES ? PNET_MAX_SOURCE_BYTES + 1 : held->length;
    out->text = pnet_arena_copy(s->arena, held->text, length);
    out->length = length;
    out->id = (struct pnet_source_id){.known = true, .held = held};
    return out->text != NULL;
}

/* Tells whether the path leads to a regular file; or to a folder or to nothing: reading it says why. */
static bool is_regular(const char *path, const char **error)
{
    struct stat st;
    if (strcmp(path, "-") != 0 &&
        (stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return true;
    *error = "not a regular file";
    return false;
}

/* Opens a file, or a pipe that a shell made for a process, as for <(command). A pipe with a name of its own is refused: reading
   it may wait for ever. Returns NULL with errno, or with *error. */
static FILE *open_main(const char *path, const char **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return NULL;
    struct stat st;
    struct statfs fs;
    FILE *f = NULL;
    if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && fstatfs(fd, &fs) == 0 &&
        fs.f_type != PIPEFS_MAGIC)
        *error = "a named pipe";
    else if (fcntl(fd, F_SETFL, 0) == 0)
        f = fdopen(fd, "rb");
    if (f) return f;
    int code = errno;
    close(fd);
    errno = code;
    return NULL;
}

bool pnet_source_read(
    struct pnet_sources *s, const char *path, struct pnet_source_text *out, const char **error)
{
    *out = (struct pnet_source_text){0};
    *error = NULL;
    const struct pnet_held_text *held = find_held(s, path);
    if (held) return copy_held(s, held, out);
    if ((s->overlay.find || s->count) && !is_regular(path, error)) return false;
    if (strcmp(path, "-") == 0) return read_all(s, stdin, out, error);
    FILE *f = open_main(path, error);
    if (!f) return *error ? false : refuse(s, errno, error);
    struct stat st;
    if (fstat(fileno(f), &st) == 0)
        out->id = (struct pnet_source_id){.known = true, .device = st.st_dev, .inode = st.st_ino};
    bool ok = read_all(s, f, out, error);
    fclose(f);
    return ok;
}

/* If memory is out, the lines are counted anew each time, because a message must still be printed. */
static void build_lines(const struct pnet_sources *s, struct pnet_source *source)
{
    if (source->line_starts) return;
    size_t count = 1;
    for (size_t i = 0; i < source->length; i++) count += source->text[i] == '\n';
    uint32_t *starts = pnet_arena_array(s->arena, count, sizeof *starts);
    if (!starts) return;
    size_t line = 1;
    for (size_t i = 0; i < source->length; i++)
        if (source->text[i] == '\n') starts[line++] = (uint32_t)(i + 1);
    source->line_starts = starts;
    source->line_count = count;
}

/* Returns the line (1-based) of an offset, and the offset at which it starts. */
static uint32_t find_line(const struct pnet_source *source, uint32_t offset, uint32_t *start)
{
    if (!source->line_starts) {
        uint32_t line = 1;
        *start = 0;
        for (uint32_t i = 0; i < offset; i++)
            if (source->text[i] == '\n') {
                line++;
                *start = i + 1;
            }
        return line;
    }
    size_t low = 0, high = source->line_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (source->line_starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    *start = source->line_starts[low];
    return (uint32_t)low + 1;
}

struct pnet_place pnet_source_place(const struct pnet_sources *s, uint32_t file, uint32_t offset)
{
    struct pnet_place place = {1, 1};
    if (file >= s->count) return place;
    struct pnet_source *source = &s->entries[file]->source;
    build_lines(s, source);
    if (offset > source->length) offset = (uint32_t)source->length;
    uint32_t start, at;
    place.line = find_line(source, offset, &start);
    at = start;
    if (source->last_column && source->last_start == start && source->last_offset <= offset) {
        at = source->last_offset;
        place.column = source->last_column;
    }
    while (at < offset) {
        uint32_t code;
        int length = pnet_utf8_decode(source->text + at, source->length - at, &code);
        uint32_t next = at + (uint32_t)(length ? length : 1);
        if (next > offset) break; /* inside of a character: its column */
        at = next;
        place.column++;
    }
    source->last_start = start;
    source->last_offset = at;
    source->last_column = place.column;
    return place;
}

uint32_t pnet_source_line_at(const struct pnet_sources *s, uint32_t file, uint32_t offset)
{
    if (file >= s->count) return 1;
    struct pnet_source *source = &s->entries[file]->source;
    build_lines(s, source);
    uint32_t start;
    return find_line(source, offset > source->length ? (uint32_t)source->length : offset, &start);
}

struct pnet_span pnet_source_line(const struct pnet_sources *s, uint32_t file, uint32_t line)
{
    struct pnet_span span = {.file = file};
    if (file >= s->count) return span;
    struct pnet_source *source = &s->entries[file]->source;
    build_lines(s, source);
    if (source->line_starts) {
        if (line - 1 >= source->line_count) line = (uint32_t)source->line_count;
        span.begin = source->line_starts[line - 1];
    } else {
        for (uint32_t l = 1; l < line && span.begin < source->length;)
            l += source->text[span.begin++] == '\n';
    }
    const char *end = memchr(source->text + span.begin, '\n', source->length - span.begin);
    span.end = end ? (uint32_t)(end - source->text) : (uint32_t)source->length;
    if (span.end > span.begin && source->text[span.end - 1] == '\r') span.end--;
    return span;
}

int pnet_utf8_decode(const char *text, size_t length, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!length) return 0;
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    int count = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || (size_t)count > length) return 0;
    uint32_t c = s[0] & (0x7fu >> count);
    for (int i = 1; i < count; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[count] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    *code = c;
    return count;
}
