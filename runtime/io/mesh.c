/* Vertices of polygon meshes as points: OFF (Geomview's object file format) and OBJ (Wavefront). */
#include "runtime/io/format.h"
#include "runtime/io/matrix.h"
#include "runtime/io/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The values of an OFF file's vertex after its position, which the letters before OFF name. */
struct off {
    struct pnet_text text;
    bool normals, colours;
    uint64_t vertices;
};

/* Parses [ST][C][N]OFF and what follows it. Returns false for another format. */
static bool parse_keyword(struct off *o, struct pnet_span *line)
{
    struct pnet_span word;
    const char *p, *start;
    if (!pnet_span_word(line, &word)) return false;
    p = start = word.at;
    if (word.end - p >= 2 && p[0] == 'S' && p[1] == 'T') p += 2;
    if (p < word.end && *p == 'C') o->colours = true, p++;
    if (p < word.end && *p == 'N') o->normals = true, p++;
    if (word.end - p < 3 || memcmp(p, "OFF", 3) != 0) return false;
    p += 3;
    /* A count may follow the word without a blank, but no other word may begin like this. */
    if (p < word.end && (*p < '0' || *p > '9')) return false;
    /* they follow texture coordinates and are left out */
    if (start[0] == 'S') o->normals = o->colours = false;
    line->at = p;
    return true;
}

bool pnet_off_probe(const struct pnet_bytes *b)
{
    struct off o = {.normals = false};
    struct pnet_span line;
    struct pnet_bytes head = {.data = b->data, .size = b->size < 4096 ? b->size : 4096};
    pnet_text_begin(&o.text, &head, "");
    return pnet_text_full_line(&o.text, &line) && parse_keyword(&o, &line);
}

static void cut_comment(struct pnet_span *line)
{
    const char *mark = memchr(line->at, '#', pnet_span_size(*line));
    if (mark) line->end = mark;
}

/* Finds the next line that has text before a comment. */
static bool next_line(struct pnet_text *t, struct pnet_span *line)
{
    while (pnet_text_line(t, line)) {
        struct pnet_span rest, word;
        cut_comment(line);
        rest = *line;
        if (pnet_span_word(&rest, &word)) return true;
    }
    return false;
}

static enum pnet_status parse_off_head(struct off *o, struct pnet_error *e)
{
    struct pnet_span line, rest, word;
    if (!next_line(&o->text, &line) || !parse_keyword(o, &line)) {
        return pnet_text_error(&o->text, e, "expected \"OFF\"");
    }
    rest = line;
    if (!pnet_span_word(&rest, &word)) {
        if (!next_line(&o->text, &line))
            return pnet_text_error(&o->text, e, "the file ends, expected counts");
        rest = line;
        pnet_span_word(&rest, &word);
    }
    if (pnet_span_is(word, "BINARY"))
        return pnet_text_error(&o->text, e, "expected OFF in text, found a binary one");
    uint64_t faces;
    if (!pnet_span_count(word, INT64_MAX, &o->vertices) || !pnet_span_word(&rest, &word) ||
        !pnet_span_count(word, INT64_MAX, &faces))
        return pnet_text_error(&o->text, e, "expected the numbers of vertices, faces and edges");
    return PNET_OK;
}

/* Reads the numbers of a line into a row, at least `least` of them; numbers beyond the row are ignored. */
static enum pnet_status parse_numbers(const struct pnet_text *t, struct pnet_matrix *m,
    struct pnet_span line, double *row, struct pnet_error *e)
{
    struct pnet_span word;
    for (int k = 0; k < m->width; k++) {
        if (!pnet_span_word(&line, &word))
            return pnet_text_error(t, e, "expected %d numbers for a vertex, found %d", m->width, k);
        if (!pnet_matrix_set(m, row, k, word))
            return pnet_text_error(
                t, e, "expected a number, found \"%s\"", pnet_span_quote(word).text);
    }
    return PNET_OK;
}

enum pnet_status pnet_off_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    static const int axis[3] = {0, 1, 2};
    static const char *const normal[] = {"nx", "ny", "nz"}, *const colour[] = {
                                                                "red", "green", "blue"};
    struct off o = {.normals = false};
    struct pnet_matrix m = {.width = 0};
    struct pnet_span names[9], line;
    int width = 3;
    pnet_text_begin(&o.text, b, path);
    enum pnet_status status = parse_off_head(&o, e);
    if (status != PNET_OK) return status;
    for (int i = 0; i < 3; i++) names[i] = (struct pnet_span){NULL, NULL};
    for (int i = 0; i < 3 && o.normals; i++) names[width++] = pnet_span_of(normal[i]);
    for (int i = 0; i < 3 && o.colours; i++) names[width++] = pnet_span_of(colour[i]);
    uint64_t there = ((uint64_t)(o.text.end - o.text.at) + 1) / (2 * (uint64_t)width);
    if (o.vertices > there) {
        status = pnet_text_error(&o.text, e,
            "%" PRIu64 " vertices cannot be in the %zu bytes that follow", o.vertices,
            (size_t)(o.text.end - o.text.at));
    } else if (!pnet_matrix_begin(&m, width)) {
        status = pnet_error_memory(e);
    }
    for (uint64_t i = 0; i < o.vertices && status == PNET_OK; i++) {
        double *row = pnet_matrix_row(&m, o.vertices - i);
        if (!row)
            status = pnet_error_memory(e);
        else if (!next_line(&o.text, &line))
            status = pnet_text_error(&o.text, e,
                "the file ends after %" PRIu64 " vertices, expected %" PRIu64, i, o.vertices);
        else
            status = parse_numbers(&o.text, &m, line, row, e);
    }
    if (status == PNET_OK) status = pnet_matrix_cloud(&m, names, axis, path, c, e);
    pnet_matrix_free(&m);
    return status;
}

static int count_words(struct pnet_span line)
{
    struct pnet_span word;
    int n = 0;
    while (n < 8 && pnet_span_word(&line, &word)) n++;
    return n;
}

enum pnet_status pnet_obj_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    static const int axis[3] = {0, 1, 2};
    const struct pnet_span none = {NULL, NULL};
    const struct pnet_span names[6] = {
        none, none, none, pnet_span_of("red"), pnet_span_of("green"), pnet_span_of("blue")};
    struct pnet_text t;
    struct pnet_matrix m = {.width = 0};
    struct pnet_span line, word;
    enum pnet_status status = PNET_OK;
    pnet_text_begin(&t, b, path);
    while (status == PNET_OK && next_line(&t, &line)) {
        pnet_span_word(&line, &word);
        if (!pnet_span_is(word, "v")) continue;
        /* x y z, with a weight that is skipped, or with a colour; the first vertex decides. */
        if (!m.width && !pnet_matrix_begin(&m, count_words(line) >= 6 ? 6 : 3)) {
            status = pnet_error_memory(e);
            break;
        }
        for (int k = 3; k < m.width; k++) m.real[k] = true; /* colours go from 0 to 1 */
        double *row = pnet_matrix_row(&m, (uint64_t)(t.end - t.at) / (pnet_span_size(line) + 1));
        status = row ? parse_numbers(&t, &m, line, row, e) : pnet_error_memory(e);
    }
    if (status == PNET_OK && !m.width)
        status = pnet_text_error(&t, e, "the file ends, expected vertices: v x y z");
    if (status == PNET_OK) status = pnet_matrix_cloud(&m, names, axis, path, c, e);
    pnet_matrix_free(&m);
    return status;
}
