/* Files that are not read, but are recognised: the message says what they are and how to convert them. */
#include "runtime/io/foreign.h"
#include "runtime/io/format.h"
#include "runtime/io/text.h"

#include <string.h>

static const struct {
    const char *magic;
    size_t size; /* of the magic, in bytes */
    const char *text;
} known[] = {
    {"ASTM-E57", 8,
        "an E57 file, which may hold several scans, each in its own frame; convert it, with pye57 "
        "installed: python -m pnet.convert IN.e57 -o OUT.ply"},
    {"\x1f\x8b\x08", 3, "compressed by gzip; unpack it first: gzip -dc IN.gz > OUT"},
    {"BZh", 3, "compressed by bzip2; unpack it first: bzip2 -dc IN.bz2 > OUT"},
    {"\xfd"
     "7zXZ",
        6, "compressed by xz; unpack it first: xz -dc IN.xz > OUT"},
    {"\x28\xb5\x2f\xfd", 4, "compressed by zstd; unpack it first: zstd -dc IN.zst > OUT"},
    {"MATLAB 7.3 MAT-file", 19,
        "a MAT file of version 7.3, an HDF5 file whose arrays are transposed; save them: python3 "
        "-c \"import h5py, numpy; f = h5py.File('IN.mat'); numpy.savez('OUT.npz', **{k: f[k][()].T "
        "for k in f if isinstance(f[k], h5py.Dataset)})\""},
    {"MATLAB 5.0 MAT-file", 19,
        "a MAT file; save its arrays: python3 -c \"import scipy.io, numpy; numpy.savez('OUT.npz', "
        "**scipy.io.loadmat('IN.mat'))\""},
    {"#ROSBAG V", 9,
        "a ROS bag; save the clouds of a topic: rosrun pcl_ros bag_to_pcd IN.bag TOPIC FOLDER"},
    {"PAR1", 4,
        "a Parquet file; save its columns: python3 -c \"import pandas; "
        "pandas.read_parquet('IN.parquet').to_csv('OUT.csv', index=False)\""},
};

const char pnet_foreign_torch[] =
    "a PyTorch file; save its arrays: python3 -c \"import torch, numpy; d = torch.load('IN.pth', "
    "weights_only=False); numpy.savez('OUT.npz', **d)\" (of a list: *d, of one array: xyz=d); for "
    "the weights of a "
    "network: python -m pnet.convert";

/* The bytes after a short magic that a file of bare numbers could begin with by chance. */
static bool is_confirmed(const struct pnet_bytes *b, const char *magic)
{
    const uint8_t *d = b->data;
    if (strcmp(magic, "\x1f\x8b\x08") == 0) return b->size >= 18 && d[3] < 32; /* no other flags */
    if (strcmp(magic, "BZh") == 0) return b->size >= 10 && memcmp(d + 4, "1AY&SY", 6) == 0;
    if (strcmp(magic, "PAR1") == 0) return b->size >= 12 && memcmp(d + b->size - 4, "PAR1", 4) == 0;
    return true;
}

/* Pickles begin with two bytes alone; torch.save before version 1.6 writes a number of its own after them. */
static bool is_pickle(const struct pnet_bytes *b, const char *path)
{
    static const char *const endings[] = {".pth", ".pt", ".pkl", ".pickle"};
    static const char torch[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    if (b->size >= sizeof torch - 1 && memcmp(b->data, torch, sizeof torch - 1) == 0) return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (pnet_path_ends(path, endings[i]))
            return b->size >= 2 && b->data[0] == 0x80 && b->data[1] <= 5;
    return false;
}

/* In binary, a head of 80 bytes, the number of triangles, and 50 bytes for each. */
static bool is_stl(const struct pnet_bytes *b)
{
    enum { HEAD = 84, TRIANGLE = 50, LOOK_AT = 1024 };
    uint32_t triangles;
    if (b->size < HEAD) return false;
    memcpy(&triangles, b->data + HEAD - 4, sizeof triangles);
    if (triangles && b->size == HEAD + (uint64_t)triangles * TRIANGLE) return true;
    size_t head = b->size < LOOK_AT ? b->size : LOOK_AT;
    return memcmp(b->data, "solid", 5) == 0 && memmem(b->data, head, "facet", 5) != NULL;
}

/* Returns the number of words of a line if all are numbers, else 0. */
static int count_numbers(struct pnet_span line)
{
    struct pnet_span word;
    double number;
    int n = 0;
    while (n < 8 && pnet_span_word(&line, &word)) {
        if (pnet_number_parse(word.at, word.end, &number) != word.end) return 0;
        n++;
    }
    return n;
}

/* Columns, rows, the place and the axes of the scanner, and a matrix [4, 4] stand before the points. */
static bool is_ptx(const struct pnet_bytes *b)
{
    static const int numbers[] = {1, 1, 3, 3, 3, 3, 4, 4, 4, 4};
    struct pnet_text t;
    struct pnet_span line;
    struct pnet_bytes head = {.data = b->data, .size = b->size < 4096 ? b->size : 4096};
    pnet_text_begin(&t, &head, "");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!pnet_text_line(&t, &line) || count_numbers(line) != numbers[i]) return false;
    return true;
}

const char *pnet_foreign(const struct pnet_bytes *b, const char *path)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (b->size >= known[i].size && memcmp(b->data, known[i].magic, known[i].size) == 0 &&
            is_confirmed(b, known[i].magic))
            return known[i].text;
    if (is_pickle(b, path))
        return pnet_path_ends(path, ".pkl") || pnet_path_ends(path, ".pickle")
                   ? "a Python pickle; save its arrays: python3 -c \"import pickle, numpy; d = "
                     "pickle.load(open('IN.pkl', 'rb')); numpy.savez('OUT.npz', **d)\" (of a "
                     "list: *d)"
                   : pnet_foreign_torch;
    if (is_stl(b))
        return "an STL mesh; convert it: python3 -c \"import trimesh; "
               "trimesh.load('IN.stl').export('OUT.off')\"";
    if (is_ptx(b))
        return "a PTX file, which may hold several scans, each in its own frame; convert it: "
               "python -m pnet.convert IN.ptx -o OUT.ply";
    return NULL;
}
