/* Polygon meshes, OFF (Geomview's object file format) and OBJ (Wavefront): their vertices as a cloud, or the whole mesh as
   triangles. */
#include "runtime/io/mesh.h"
#include "runtime/io/foreign.h"
#include "runtime/io/format.h"
#include "runtime/io/matrix.h"
#include "runtime/io/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The values of an OFF file's vertex after its position, which the letters before OFF name. */
struct off {
    struct pnet_text text;
    bool normals, colours;
    uint64_t vertices, faces;
};

/* farther away a double no longer resolves a millimetre */
static const double FAR = 1e9;

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
    if (!pnet_span_count(word, INT64_MAX, &o->vertices) || !pnet_span_word(&rest, &word) ||
        !pnet_span_count(word, INT64_MAX, &o->faces))
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

/* Checks the position of a vertex of a mesh; clouds drop points that are not finite instead. */
static enum pnet_status check_corner(
    const struct pnet_text *t, const double *row, struct pnet_error *e)
{
    for (int k = 0; k < 3; k++)
        if (!(fabs(row[k]) < FAR))
            return pnet_text_error(
                t, e, "a vertex of a mesh is finite and below 1e9, found %g", row[k]);
    return PNET_OK;
}

/* Reads the vertices behind the head into `m`, which the caller frees; of a mesh each is checked. */
static enum pnet_status read_off_vertices(
    struct off *o, int width, bool mesh, struct pnet_matrix *m, struct pnet_error *e)
{
    struct pnet_span line;
    uint64_t there = ((uint64_t)(o->text.end - o->text.at) + 1) / (2 * (uint64_t)width);
    if (o->vertices > there)
        return pnet_text_error(&o->text, e,
            "%" PRIu64 " vertices cannot be in the %zu bytes that follow", o->vertices,
            (size_t)(o->text.end - o->text.at));
    if (!pnet_matrix_begin(m, width)) return pnet_error_memory(e);
    for (int k = 0; k < 3; k++) pnet_matrix_make_real(m, k);
    for (uint64_t i = 0; i < o->vertices; i++) {
        double *row = pnet_matrix_row(m, o->vertices - i);
        if (!row) return pnet_error_memory(e);
        if (!next_line(&o->text, &line))
            return pnet_text_error(&o->text, e,
                "the file ends after %" PRIu64 " vertices, expected %" PRIu64, i, o->vertices);
        enum pnet_status status = parse_numbers(&o->text, m, line, row, e);
        if (!status && mesh) status = check_corner(&o->text, row, e);
        if (status) return status;
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
    struct pnet_span names[9];
    int width = 3;
    pnet_text_begin(&o.text, b, path);
    enum pnet_status status = parse_off_head(&o, e);
    if (status != PNET_OK) return status;
    for (int i = 0; i < 3; i++) names[i] = (struct pnet_span){NULL, NULL};
    for (int i = 0; i < 3 && o.normals; i++) names[width++] = pnet_span_of(normal[i]);
    for (int i = 0; i < 3 && o.colours; i++) names[width++] = pnet_span_of(colour[i]);
    status = read_off_vertices(&o, width, false, &m, e);
    if (status == PNET_OK) status = pnet_matrix_cloud(&m, names, axis, path, c, e);
    if (status == PNET_OK) c->faces = (int64_t)o.faces;
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

/* Reads a vertex: x y z, with a weight that is skipped, or with a colour; the first vertex decides. */
static enum pnet_status read_obj_vertex(
    const struct pnet_text *t, struct pnet_span line, struct pnet_matrix *m, struct pnet_error *e)
{
    if (!m->width && !pnet_matrix_begin(m, count_words(line) >= 6 ? 6 : 3))
        return pnet_error_memory(e);
    for (int k = 0; k < m->width; k++) pnet_matrix_make_real(m, k); /* colours go from 0 to 1 */
    double *row = pnet_matrix_row(m, (uint64_t)(t->end - t->at) / (pnet_span_size(line) + 1));
    return row ? parse_numbers(t, m, line, row, e) : pnet_error_memory(e);
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
    int64_t faces = 0;
    enum pnet_status status = PNET_OK;
    pnet_text_begin(&t, b, path);
    while (status == PNET_OK && next_line(&t, &line)) {
        pnet_span_word(&line, &word);
        if (pnet_span_is(word, "v")) status = read_obj_vertex(&t, line, &m, e);
        faces += pnet_span_is(word, "f");
    }
    if (status == PNET_OK && !m.width)
        status = pnet_text_error(&t, e, "the file ends, expected vertices: v x y z");
    if (status == PNET_OK) status = pnet_matrix_cloud(&m, names, axis, path, c, e);
    if (status == PNET_OK) c->faces = faces;
    pnet_matrix_free(&m);
    return status;
}

void pnet_mesh_free(struct pnet_mesh *m)
{
    free(m->corners);
    free(m->triangles);
    *m = (struct pnet_mesh){.corner_count = 0};
}

static enum pnet_status add_triangle(
    struct pnet_mesh *m, int32_t a, int32_t b, int32_t c, struct pnet_error *e)
{
    int64_t n = m->triangle_count;
    if (!(n & (n - 1))) { /* a power of two: no room is left */
        int32_t *grown = realloc(m->triangles, (size_t)(n ? 2 * n : 1) * 3 * sizeof *grown);
        if (!grown) return pnet_error_memory(e);
        m->triangles = grown;
    }
    m->triangles[3 * n] = a;
    m->triangles[3 * n + 1] = b;
    m->triangles[3 * n + 2] = c;
    m->triangle_count++;
    return PNET_OK;
}

/* Adds the corners of a polygon one after the other. */
struct fan {
    int32_t first, last;
    int64_t count;
};
static enum pnet_status add_to_fan(
    struct pnet_mesh *m, struct fan *f, int32_t corner, struct pnet_error *e)
{
    enum pnet_status status =
        f->count >= 2 ? add_triangle(m, f->first, f->last, corner, e) : PNET_OK;
    if (!f->count) f->first = corner;
    f->last = corner;
    f->count++;
    return status;
}

/* Reads a face: the number of its corners, their indices, and what is ignored. */
static enum pnet_status read_off_face(
    const struct off *o, struct pnet_span line, struct pnet_mesh *m, struct pnet_error *e)
{
    struct pnet_span word;
    struct fan fan = {.count = 0};
    uint64_t corners, index;
    if (!pnet_span_word(&line, &word) || !pnet_span_count(word, INT32_MAX, &corners))
        return pnet_text_error(&o->text, e,
            "expected a face, the number of its corners first, found \"%s\"",
            pnet_span_quote(word).text);
    for (uint64_t i = 0; i < corners; i++) {
        if (!pnet_span_word(&line, &word))
            return pnet_text_error(
                &o->text, e, "a face of %" PRIu64 " corners names %" PRIu64, corners, i);
        if (!pnet_span_count(word, INT32_MAX, &index) || index >= o->vertices)
            return pnet_text_error(&o->text, e,
                "a face names the vertex \"%s\", but the %" PRIu64 " vertices count from 0",
                pnet_span_quote(word).text, o->vertices);
        enum pnet_status status = add_to_fan(m, &fan, (int32_t)index, e);
        if (status) return status;
    }
    return PNET_OK;
}

static enum pnet_status read_off_mesh(const struct pnet_bytes *b, const char *path,
    struct pnet_matrix *corners, struct pnet_mesh *m, struct pnet_error *e)
{
    struct off o = {.normals = false};
    struct pnet_span line;
    pnet_text_begin(&o.text, b, path);
    enum pnet_status status = parse_off_head(&o, e);
    if (!status) status = read_off_vertices(&o, 3, true, corners, e);
    for (uint64_t i = 0; i < o.faces && !status; i++) {
        if (next_line(&o.text, &line))
            status = read_off_face(&o, line, m, e);
        else
            status = pnet_text_error(
                &o.text, e, "the file ends after %" PRIu64 " faces, expected %" PRIu64, i, o.faces);
    }
    return status;
}

/* Reads a face of an OBJ: words such as 3, 3/1 or 3//2, or -1 for the last vertex so far. */
static enum pnet_status read_obj_face(const struct pnet_text *t, struct pnet_span line,
    int64_t vertices, struct pnet_mesh *m, struct pnet_error *e)
{
    struct pnet_span word;
    struct fan fan = {.count = 0};
    while (pnet_span_word(&line, &word)) {
        struct pnet_span number = word;
        uint64_t value;
        const char *slash = memchr(word.at, '/', pnet_span_size(word));
        bool back = number.at < number.end && *number.at == '-';
        if (slash) number.end = slash;
        number.at += back;
        if (!pnet_span_count(number, INT32_MAX, &value) || !value || (int64_t)value > vertices)
            return pnet_text_error(t, e,
                "a face names the vertex \"%s\", but the %" PRId64
                " vertices so far count from 1, or from -1 back",
                pnet_span_quote(word).text, vertices);
        int64_t corner = back ? vertices - (int64_t)value : (int64_t)value - 1;
        if (corner > INT32_MAX)
            return pnet_text_error(t, e, "a face names a vertex behind the first %d", INT32_MAX);
        enum pnet_status status = add_to_fan(m, &fan, (int32_t)corner, e);
        if (status) return status;
    }
    return PNET_OK;
}

static enum pnet_status read_obj_mesh(const struct pnet_bytes *b, const char *path,
    struct pnet_matrix *corners, struct pnet_mesh *m, struct pnet_error *e)
{
    struct pnet_text t;
    struct pnet_span line, word;
    enum pnet_status status = PNET_OK;
    pnet_text_begin(&t, b, path);
    while (!status && next_line(&t, &line)) {
        pnet_span_word(&line, &word);
        if (pnet_span_is(word, "v")) {
            status = read_obj_vertex(&t, line, corners, e);
            if (!status)
                status =
                    check_corner(&t, corners->values + (corners->rows - 1) * corners->width, e);
        } else if (pnet_span_is(word, "f")) {
            status = read_obj_face(&t, line, corners->rows, m, e);
        }
    }
    return status;
}

/* Takes the first three columns. */
static enum pnet_status take_corners(
    const struct pnet_matrix *from, struct pnet_mesh *m, struct pnet_error *e)
{
    m->corners = malloc((size_t)(from->rows ? from->rows : 1) * 3 * sizeof *m->corners);
    if (!m->corners) return pnet_error_memory(e);
    m->corner_count = from->rows;
    for (int64_t i = 0; i < from->rows; i++)
        memcpy(m->corners + 3 * i, from->values + i * from->width, 3 * sizeof *m->corners);
    return PNET_OK;
}

enum pnet_status pnet_mesh_parse(
    const struct pnet_bytes *b, const char *path, struct pnet_mesh *m, struct pnet_error *e)
{
    struct pnet_matrix corners = {.width = 0};
    enum pnet_status status;
    *m = (struct pnet_mesh){.corner_count = 0};
    const char *other = pnet_ply_probe(b) ? "a PLY file, and meshes are read from OFF and OBJ; "
                                            "convert it: python3 -c \"import trimesh; "
                                            "trimesh.load('IN.ply').export('OUT.off')\""
                                          : pnet_foreign(b, path);
    if (other) return pnet_error_set(e, PNET_BAD_DATA, "%.500s: %s", path, other);
    if (pnet_off_probe(b) || pnet_path_ends(path, ".off"))
        status = read_off_mesh(b, path, &corners, m, e);
    else if (pnet_path_ends(path, ".obj"))
        status = read_obj_mesh(b, path, &corners, m, e);
    else
        status = pnet_error_set(
            e, PNET_BAD_DATA, "%s: byte 0: expected a mesh, an OFF or OBJ file", path);
    if (!status && !m->triangle_count)
        status = pnet_error_set(
            e, PNET_BAD_DATA, "%s: has no faces: a surface needs at least one triangle", path);
    if (!status) status = take_corners(&corners, m, e);
    pnet_matrix_free(&corners);
    if (status) pnet_mesh_free(m);
    return status;
}

enum pnet_status pnet_mesh_read(const char *path, struct pnet_mesh *m, struct pnet_error *e)
{
    struct pnet_bytes b;
    *m = (struct pnet_mesh){.corner_count = 0};
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status) return status;
    status = pnet_mesh_parse(&b, path, m, e);
    pnet_bytes_free(&b);
    return status;
}
