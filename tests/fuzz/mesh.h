/* What must hold after reading any bytes as a mesh: for the fuzzer, and the test that damages files. */
#ifndef PNET_TESTS_FUZZ_MESH_H
#define PNET_TESTS_FUZZ_MESH_H

#include "runtime/data/surface.h"
#include "tests/fuzz/cloud.h"

/* Points drawn from a surface, or seen of it, are finite and within the unit sphere. */
static inline void fuzz_points(const float *xyz, int64_t count, const char *path)
{
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int c = 0; c < 3; c++) sum += (double)xyz[3 * i + c] * (double)xyz[3 * i + c];
        FUZZ_REQUIRE(sum < 1.0001, path);
    }
}

static inline void fuzz_surface(const struct pnet_surface *s, const char *path)
{
    static float xyz[3 * PNET_VIEW_RAYS];
    struct pnet_rand r = {.seed = 1, .purpose = PNET_DRAW_TEST};
    struct pnet_error e;
    double turn[3][3];
    int64_t count = 0;
    double before = 0;
    for (int64_t i = 0; i < s->mesh.triangle_count; before = s->until[i++])
        FUZZ_REQUIRE(s->until[i] >= before, path);
    FUZZ_REQUIRE(before > 0 && isfinite(before), path);
    pnet_surface_draw(s, &r, 1, 50, xyz);
    fuzz_points(xyz, 50, path);
    pnet_surface_turn(&r, 0, turn);
    FUZZ_REQUIRE(pnet_surface_view(&s->mesh, turn, 2, xyz, &count, &e) == PNET_OK, path);
    FUZZ_REQUIRE(count >= 0 && count <= PNET_VIEW_RAYS, path);
    fuzz_points(xyz, count, path);
}

/* Returns whether the bytes were a mesh with a surface. */
static inline int fuzz_mesh(const char *path, const uint8_t *data, size_t size)
{
    /* A copy of its own, so that a sanitizer sees one byte too far. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    if (size) memcpy(copy, data, size);
    struct pnet_bytes b = {.data = copy, .size = size, .borrowed = true};
    struct pnet_mesh m;
    struct pnet_surface s = {.until = NULL};
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_mesh_parse(&b, path, &m, &e);
    if (status == PNET_OK) {
        FUZZ_REQUIRE(m.corner_count > 0 && m.triangle_count > 0, path);
        for (int64_t i = 0; i < 3 * m.corner_count; i++)
            FUZZ_REQUIRE(fabs(m.corners[i]) < 1e9, path);
        for (int64_t i = 0; i < 3 * m.triangle_count; i++)
            FUZZ_REQUIRE(m.triangles[i] >= 0 && m.triangles[i] < m.corner_count, path);
        status = pnet_surface_make(path, &m, &s, &e);
    }
    FUZZ_REQUIRE(!m.corners && !m.triangles, path);
    if (status == PNET_OK) {
        fuzz_surface(&s, path);
    } else {
        FUZZ_REQUIRE(status == PNET_BAD_DATA && e.status == status, path);
        FUZZ_REQUIRE(strncmp(e.message, path, strlen(path)) == 0, path);
        FUZZ_REQUIRE(!s.until && !s.mesh.corners, path);
    }
    pnet_surface_free(&s);
    free(copy);
    return status == PNET_OK;
}

#endif
