/* Meshes from OFF and OBJ: polygons become fans, and each fault is told with its line. */
#include "runtime/io/mesh.h"
#include "tests/check.h"

static enum pnet_status parse(
    const char *path, const char *text, struct pnet_mesh *m, struct pnet_error *e)
{
    struct pnet_bytes b = {.data = (const uint8_t *)text, .size = strlen(text), .borrowed = true};
    return pnet_mesh_parse(&b, path, m, e);
}

static void check_mesh(const char *path, const char *text, int corners, const double *xyz,
    int triangles, const int32_t *want)
{
    struct pnet_mesh m;
    struct pnet_error e = {.message = ""};
    CHECKF(!parse(path, text, &m, &e), "%s", e.message);
    CHECK(m.corner_count == corners && m.triangle_count == triangles);
    if (m.corner_count == corners && m.triangle_count == triangles) {
        for (int i = 0; xyz && i < 3 * corners; i++) CHECK(m.corners[i] == xyz[i]);
        for (int i = 0; i < 3 * triangles; i++) CHECK(m.triangles[i] == want[i]);
    }
    pnet_mesh_free(&m);
    CHECK(!m.corners && !m.triangles && !m.corner_count && !m.triangle_count);
}

static const double square[] = {0, 0, 0, 1, 0, 0, 1, 1, 0.5, 0, 1, 0, -2.5, 3, 1e-3};

static void test_good(void)
{
    static const int32_t fans[] = {0, 1, 2, 0, 2, 3, 0, 3, 4, 2, 1, 0};
    check_mesh("a.off",
        "OFF\n5 2 0\n0 0 0\n1 0 0\n1 1 .5\n0 1 0\n-2.5 3 1e-3\n5 0 1 2 3 4\n3 2 1 0\n", 5, square,
        4, fans);
    /* comments, blank lines, colours behind a face, edges and points, which have no surface */
    check_mesh("a.off",
        "# a\nOFF # b\n\n5 4 9\n0 0 0 # c\n1 0 0\n1 1 .5\n\n0 1 0\n-2.5 3 1e-3\n"
        "5 0 1 2 3 4 0.5 0.5 0.5\n2 0 1\n1 3\n3 2 1 0 255 0 0\n",
        5, square, 4, fans);
    check_mesh("a.off", "COFF 3 1 0\n0 0 0 1 1 1 1\n1 0 0 1 1 1 1\n1 1 .5 1 1 1 1\n3 2 1 0\n", 3,
        square, 1, fans + 9);
    check_mesh("a.obj",
        "# a\nv 0 0 0\nv 1 0 0 1\nvn 0 0 1\nv 1 1 .5\nv 0 1 0\nvt 0 0\nv -2.5 3 1e-3\ns off\n"
        "f 1 2/1 3//2 4/1/1 -1\nusemtl x\nf -3 -4 -5\n",
        5, square, 4, fans);
    /* with colours; a face may come before later vertices */
    check_mesh("A.OBJ", "v 0 0 0 1 1 1\nv 1 0 0 1 1 1\nv 1 1 .5 0 0 0\nf 3 2 1\nv 0 1 0 1 1 1\n", 4,
        square, 1, fans + 9);
    /* the name of a corner twice: a triangle without an area, which is no fault */
    static const int32_t flat[] = {0, 0, 1, 0, 1, 2};
    check_mesh("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n1 1 .5\n4 0 0 1 2\n", 3, square, 2, flat);
}

static void test_errors(void)
{
#define V3 "OFF\n3 1 0\n0 0 0\n1 0 0\n1 1 0\n"
    static const struct {
        const char *path, *text, *message;
    } cases[] = {
        {"a.off", "OFF\n3 0 0\n0 0 0\n1 0 0\n1 1 0\n", "a.off: has no faces"},
        {"a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n1 1 0\n2 0 1\n", "a.off: has no faces"},
        {"a.off", V3, "a.off:5: the file ends after 0 faces, expected 1"},
        {"a.off", V3 "3 0 1 3\n",
            "a.off:6: a face names the vertex \"3\", but the 3 vertices count from 0"},
        {"a.off", V3 "3 0 1 -1\n", "a.off:6: a face names the vertex \"-1\""},
        {"a.off", V3 "3 0 1 1.5\n", "a.off:6: a face names the vertex \"1.5\""},
        {"a.off", V3 "3 0 1 99999999999\n", "a.off:6: a face names the vertex \"99999999999\""},
        {"a.off", V3 "3 0 1\n", "a.off:6: a face of 3 corners names 2"},
        {"a.off", V3 "x 0 1 2\n",
            "a.off:6: expected a face, the number of its corners first, found \"x\""},
        {"a.off", V3 "-3 0 1 2\n", "a.off:6: expected a face"},
        {"a.off", V3 "2000000000 0 1 2\n", "a.off:6: a face of 2000000000 corners names 3"},
        {"a.off", "OFF\n3 1 0\n0 0 0\n1 nan 0\n1 1 0\n3 0 1 2\n",
            "a.off:4: a vertex of a mesh is finite and below 1e9, found nan"},
        {"a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n1 -inf 0\n3 0 1 2\n", "a.off:5: a vertex of a mesh"},
        {"a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n1 1e9 0\n3 0 1 2\n", "a.off:5: a vertex of a mesh"},
        {"a.off", "OFF\n3 1 0\n0 0 0\n1 0\n1 1 0\n3 0 1 2\n",
            "a.off:4: expected 3 numbers for a vertex"},
        {"a.off", "OFF\n900000000 1 0\n0 0 0\n", "vertices cannot be in the"},
        {"a.off", "OFF\n3 900000000 0\n0 0 0\n1 0 0\n1 1 0\n3 0 1 2\n",
            "the file ends after 1 faces"},
        {"a.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\n", "a.obj: has no faces"},
        {"a.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nf 1 2\n", "a.obj: has no faces"},
        {"a.obj", "v 0 0 0\nv 1 0 0\nf 1 2 3\nv 1 1 0\n",
            "a.obj:3: a face names the vertex \"3\", but the 2 vertices so far count from 1"},
        {"a.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nf 0 1 2\n", "a.obj:4: a face names the vertex \"0\""},
        {"a.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nf -4 1 2\n",
            "a.obj:4: a face names the vertex \"-4\""},
        {"a.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nf 1 2 a/1\n",
            "a.obj:4: a face names the vertex \"a/1\""},
        {"a.obj", "v 0 0 0\nv 1 nan 0\n", "a.obj:2: a vertex of a mesh is finite"},
        {"a.obj", "f 1 2 3\n", "a.obj:1: a face names the vertex \"1\""},
        {"a.obj", "", "a.obj: has no faces"},
        {"a.txt", "1 2 3\n", "a.txt: byte 0: expected a mesh, an OFF or OBJ file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pnet_mesh m;
        struct pnet_error e = {.message = ""};
        CHECKF(parse(cases[i].path, cases[i].text, &m, &e) == PNET_BAD_DATA, "case %zu", i);
        CHECKF(strstr(e.message, cases[i].message) != NULL, "%s", e.message);
        CHECK(!m.corners && !m.triangles && !m.triangle_count);
    }
    struct pnet_mesh m;
    struct pnet_error e = {.message = ""};
    CHECK(pnet_mesh_read("/nowhere/a.off", &m, &e) == PNET_FAILED && !m.corners);
}

int main(void)
{
    test_good();
    test_errors();
    return check_end();
}
