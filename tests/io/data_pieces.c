/* Every cloud among the real files of formats that are read in pieces: the pieces are the whole cloud. */
#include "runtime/io/format.h"
#include "tests/io/files.h"
#include "tests/io/pieces.h"

#include <dirent.h>
#include <sys/stat.h>

static const struct {
    const char *ending;
    int least; /* files that are read in pieces, damaged ones among them */
} formats[] = {{".las", 50}, {".laz", 12}, {".ply", 50}, {".pcd", 5}, {".npy", 10}, {".bin", 20}};
enum { FORMATS = sizeof formats / sizeof *formats };
static int read_files[FORMATS];

static void check_file(const char *path, int format)
{
    static const struct pnet_cloud_hints of_file = {.unit.of_file = true}, none = {.columns = NULL};
    static const double origin[3] = {100.5, -1e5, 3};
    const struct pnet_cloud_hints moved = {.origin = origin};
    static const int64_t sizes[] = {1000, INT64_MAX, 7};
    bool whole = false;
    for (int i = 0; i < 3; i++) {
        const char *wrong = pieces_differ(path, &none, sizes[i], &whole);
        CHECKF(!wrong, "%s in pieces of %lld: %s", path, (long long)sizes[i], wrong);
    }
    const char *wrong = pieces_differ(path, &of_file, 4096, &whole);
    CHECKF(!wrong, "%s in its unit: %s", path, wrong);
    wrong = pieces_differ(path, &moved, 4096, &whole);
    CHECKF(!wrong, "%s with another origin: %s", path, wrong);
    read_files[format] += !whole;
}

static void walk(const char *folder)
{
    DIR *d = opendir(folder);
    CHECKF(d != NULL, "%s", folder);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char path[4096];
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || lstat(path, &s) != 0) continue;
        if (S_ISDIR(s.st_mode)) walk(path);
        for (int i = 0; i < FORMATS && S_ISREG(s.st_mode); i++)
            if (pnet_path_ends(path, formats[i].ending)) check_file(path, i);
    }
    if (d) closedir(d);
}

int main(void)
{
    char path[2048];
    snprintf(path, sizeof path, "%s/data", check_data_dir());
    walk(path);
    for (int i = 0; i < FORMATS; i++) {
        printf("%s: %d\n", formats[i].ending, read_files[i]);
        CHECKF(read_files[i] >= formats[i].least, "%s: %d", formats[i].ending, read_files[i]);
    }
    return check_end();
}
