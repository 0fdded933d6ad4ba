/* Real clouds with the columns of a result: written in pieces they are the files that are written as a whole. */
#include "runtime/io/format.h"
#include "tests/io/writer.h"

#include <dirent.h>
#include <sys/stat.h>

static const struct {
    const char *ending;
    int least; /* files that are written */
} formats[] = {{".las", 30}, {".laz", 8}, {".ply", 20}};
enum { FORMATS = sizeof formats / sizeof *formats };
static int written_files[FORMATS];
static const char *folder;

static void check_way(const char *path, int format, enum writer_change change, int64_t most)
{
    static const struct pnet_cloud_hints none = {.columns = NULL};
    const char *out = files_path(folder, format == 2 ? "out.ply" : "out.las");
    bool whole = false, written;
    struct pnet_cloud_pieces *p = NULL;
    struct pnet_error e = {.message = ""};
    enum pnet_status st = pnet_cloud_pieces_open(path, &none, most, &p, NULL, &e);
    whole = st == PNET_USAGE && strstr(e.message, "read as a whole");
    pnet_cloud_pieces_close(p);
    if (whole) return;
    const char *wrong = writer_differs(path, &none, most, change, out, &written);
    CHECKF(!wrong, "%s, change %d, in pieces of %lld: %s", path, change, (long long)most, wrong);
    written_files[format] += written && change == WRITER_AS_READ;
}

static void walk(const char *in)
{
    DIR *d = opendir(in);
    CHECKF(d != NULL, "%s", in);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char path[4096];
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", in, entry->d_name);
        if (entry->d_name[0] == '.' || lstat(path, &s) != 0) continue;
        if (S_ISDIR(s.st_mode)) walk(path);
        for (int i = 0; i < FORMATS && S_ISREG(s.st_mode); i++) {
            if (!pnet_path_ends(path, formats[i].ending)) continue;
            check_way(path, i, WRITER_AS_READ, 1000);
            check_way(path, i, WRITER_RESULTS, 4096);
            check_way(path, i, WRITER_MOVED, 1000);
        }
    }
    if (d) closedir(d);
}

int main(void)
{
    char path[2048];
    snprintf(path, sizeof path, "%s/data", check_data_dir());
    folder = files_folder();
    walk(path);
    for (int i = 0; i < FORMATS; i++) {
        printf("%s: %d\n", formats[i].ending, written_files[i]);
        CHECKF(written_files[i] >= formats[i].least, "%s: %d", formats[i].ending, written_files[i]);
    }
    CHECK(rmdir(folder) == 0);
    return check_end();
}
