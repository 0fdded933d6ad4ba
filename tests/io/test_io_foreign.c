/* Files that are refused by name, with what to do; and what only looks like one of them. Faces of meshes are counted. */
#include "runtime/io/cloud.h"
#include "runtime/io/mesh.h"
#include "tests/io/archive.h"

#define PTX                                                                                        \
    "2\n1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n1 2 3 0.5\n4 5 6 0.5\n"
#define STL                                                                                        \
    "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\n" \
    "endfacet\nendsolid a\n"

/* The message names the file, the format and the remedy. */
static void expect_refused(
    const char *path, const void *data, size_t size, const char *format, const char *remedy)
{
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    write_file(path, data, size);
    CHECK(pnet_cloud_read(path, &c, NULL, &e) == PNET_BAD_DATA && !c.xyz);
    CHECKF(strncmp(e.message, path, strlen(path)) == 0 && strstr(e.message, format) &&
               strstr(e.message, remedy),
        "\"%s\" without \"%s\", \"%s\"", e.message, format, remedy);
    remove(path);
}

static void check_formats(const char *folder)
{
    static const struct {
        const char *name, *format, *remedy, *data;
        size_t size; /* of the data, which zeros follow up to 64 bytes */
    } files[] = {{"a.e57", "an E57 file", "python -m pnet.convert IN.e57 -o", "ASTM-E57\1", 9},
        {"a.ply.gz", "gzip", "gzip -dc", "\x1f\x8b\x08\x00", 4},
        {"a.bin", "gzip", "gzip -dc", "\x1f\x8b\x08\x08", 4},
        {"a.txt.bz2", "bzip2", "bzip2 -dc", "BZh91AY&SY", 10},
        {"a.xz", "xz", "xz -dc",
            "\xfd"
            "7zXZ",
            6},
        {"a.zst", "zstd", "zstd -dc", "\x28\xb5\x2f\xfd", 4},
        {"a.mat", "a MAT file", "scipy.io.loadmat", "MATLAB 5.0 MAT-file, x", 22},
        {"b.mat", "a MAT file of version 7.3", "h5py.File", "MATLAB 7.3 MAT-file, x", 22},
        {"a.bag", "a ROS bag", "bag_to_pcd", "#ROSBAG V2.0\n", 13},
        {"a.pth", "a PyTorch file", "torch.load", "\x80\x02}", 3},
        {"a.pt", "a PyTorch file", "python -m pnet.convert", "\x80\x04}", 3},
        {"a.data", "a PyTorch file", "torch.load",
            "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14},
        {"a.pkl", "a Python pickle", "pickle.load", "\x80\x03}", 3}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        uint8_t data[64] = {0};
        memcpy(data, files[i].data, files[i].size);
        expect_refused(
            files_path(folder, files[i].name), data, sizeof data, files[i].format, files[i].remedy);
    }
    expect_refused(
        files_path(folder, "a.parquet"), "PAR1........PAR1", 16, "a Parquet file", "read_parquet");
    expect_refused(files_path(folder, "a.ptx"), PTX, sizeof PTX - 1, "a PTX file",
        "python -m pnet.convert IN.ptx -o");
    expect_refused(files_path(folder, "a.txt"), PTX, sizeof PTX - 1, "a PTX file",
        "python -m pnet.convert IN.ptx -o");
    expect_refused(files_path(folder, "a.stl"), STL, sizeof STL - 1, "an STL mesh", "trimesh.load");
    uint8_t stl[84 + 50] = {0};
    stl[80] = 1;
    expect_refused(files_path(folder, "b.stl"), stl, sizeof stl, "an STL mesh", "OUT.off");
}

static void check_archives(const char *folder)
{
    static struct buffer b;
    struct entry torch[] = {{.name = "archive/data.pkl"}, {.name = "archive/data/0"}};
    struct entry words = {.name = "readme.txt"};
    for (int i = 0; i < 2; i++) put(&torch[i].content, "\x80\x02}", 3);
    put(&words.content, "hello", 5);
    put_archive(&b, torch, 2, 0);
    expect_refused(files_path(folder, "a.pth"), b.data, b.size, "a PyTorch file", "torch.load");
    b.size = 0;
    put_archive(&b, &words, 1, 0);
    expect_refused(files_path(folder, "a.zip"), b.data, b.size, "a ZIP archive", "unzip");
}

/* Bare float32 may begin with some of the bytes: these are read. */
static void check_lookalikes(const char *path)
{
    static const char *const heads[] = {"\x1f\x8b\x08\x41", "\x80\x02\x10\x41", "BZhA"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        float v[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        struct pnet_cloud c;
        struct pnet_error e = {.message = ""};
        memcpy(v, heads[i], 4);
        write_file(path, v, sizeof v);
        CHECKF(pnet_cloud_read(path, &c, NULL, &e) == PNET_OK && c.rows == 2, "%s", e.message);
        pnet_cloud_free(&c);
    }
    remove(path);
}

static void expect_no_mesh(
    const char *path, const char *data, size_t size, const char *format, const char *remedy)
{
    struct pnet_bytes b = bytes_of(data, size);
    struct pnet_mesh m;
    struct pnet_error e = {.message = ""};
    CHECK(pnet_mesh_parse(&b, path, &m, &e) == PNET_BAD_DATA && !m.corners);
    CHECKF(strstr(e.message, format) && strstr(e.message, remedy), "%s", e.message);
}

static const char ply[] = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\n"
                          "property float y\nproperty float z\nelement face 2\n"
                          "property list uchar int vertex_indices\nend_header\n"
                          "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n3 0 2 1\n";

/* The vertices of a mesh are a cloud in every format, and the faces are counted. */
static void check_faces(const char *folder)
{
    static const char off[] = "OFF\n3 2 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n3 0 2 1\n",
                      obj[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 1 3 2\n",
                      text[] = "0 0 0\n1 0 0\n0 1 0\n";
    static const struct {
        const char *name, *data;
        int64_t faces;
    } files[] = {{"a.ply", ply, 2}, {"a.off", off, 2}, {"a.obj", obj, 2}, {"a.xyz", text, 0}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = files_path(folder, files[i].name);
        struct pnet_cloud c;
        struct pnet_error e = {.message = ""};
        write_file(path, files[i].data, strlen(files[i].data));
        CHECKF(pnet_cloud_read(path, &c, NULL, &e) == PNET_OK && c.rows == 3, "%s", e.message);
        CHECKF(c.faces == files[i].faces, "%s", path);
        pnet_cloud_free(&c);
        remove(path);
    }
}

int main(void)
{
    const char *folder = files_folder();
    check_formats(folder);
    check_archives(folder);
    check_lookalikes(files_path(folder, "b.bin"));
    check_faces(folder);
    expect_no_mesh("a.ply", ply, sizeof ply - 1, "a PLY file", "OUT.off");
    expect_no_mesh("a.stl", STL, sizeof STL - 1, "an STL mesh", "OUT.off");
    expect_no_mesh("a.txt", "1 2 3\n", 6, "an OFF or OBJ file", "");
    CHECK(rmdir(folder) == 0);
    return check_end();
}
