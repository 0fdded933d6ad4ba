/* pnetc info says the same of a file that it reads in several pieces as of standard input, which it reads as a whole. */
#include "tests/io/files.h"

enum { ROWS = 200000, FLOATS = 6, TEXT = 1 << 14 };

struct change {
    int row, column;
    float value;
};

/* Writes a PLY of colours up to 1, but for the changes; every 997th x is NaN. */
static void write_ply(const char *path, const struct change *changes, int count)
{
    float *rows = malloc(ROWS * FLOATS * sizeof *rows);
    FILE *f = fopen(path, "wb");
    if (!rows || !f) abort();
    for (int i = 0; i < ROWS; i++) {
        float *r = rows + (size_t)i * FLOATS;
        for (int k = 0; k < 3; k++) r[k] = (float)(i % (100 + k)) * 0.125F;
        for (int k = 3; k < FLOATS; k++) r[k] = (float)(i % (7 * k)) / 64;
        if (i % 997 == 0) r[0] = NAN;
    }
    for (int i = 0; i < count; i++)
        rows[(size_t)changes[i].row * FLOATS + (size_t)changes[i].column] = changes[i].value;
    fprintf(f,
        "ply\nformat binary_little_endian 1.0\nelement vertex %d\nproperty float x\nproperty float "
        "y\nproperty float z\nproperty float red\nproperty float green\nproperty float blue\n"
        "end_header\n",
        ROWS);
    fwrite(rows, sizeof *rows, (size_t)ROWS * FLOATS, f);
    if (fclose(f) != 0) abort();
    free(rows);
}

/* Runs a command, and replaces the path and the name of standard input in what it says. */
static void run(const char *path, const char *how, char text[TEXT])
{
    static const char standard[] = "standard input";
    char command[4096];
    const char *pnetc = getenv("PNETC");
    snprintf(command, sizeof command, "%s info %s 2>&1", pnetc ? pnetc : "build/quick/pnetc", how);
    FILE *out = popen(command, "r");
    if (!out) abort();
    size_t n = fread(text, 1, TEXT - 1, out);
    text[n] = '\0';
    pclose(out);
    const char *const names[] = {path, standard};
    for (int i = 0; i < 2; i++)
        for (char *at; (at = strstr(text, names[i]));) {
            *at = '-';
            memmove(at + 1, at + strlen(names[i]), strlen(at + strlen(names[i])) + 1);
        }
}

static void check_same(const char *path, const char *options, const char *says)
{
    static char pieces[TEXT], whole[TEXT];
    char how[2048];
    snprintf(how, sizeof how, "%s %s", path, options);
    run(path, how, pieces);
    snprintf(how, sizeof how, "- %s <%s", options, path);
    run(path, how, whole);
    CHECK_STR(pieces, whole);
    CHECKF(strstr(pieces, says), "%s says nothing of \"%s\"", pieces, says);
}

int main(void)
{
    /* The largest real number is doubtful, and stands in two channels: the first one is named, though a later piece has it. */
    static const struct change doubtful[] = {{100, 4, 1.5F}, {190000, 3, 1.5F}};
    /* The first channel is named here too, and the first row of it. */
    static const struct change negative[] = {{10, 5, -1}, {150000, 3, -2}, {199999, 3, -3}};
    static const struct change bright[] = {{130000, 5, 255}};
    const char *folder = files_folder(), *path = files_path(folder, "a.ply");
    write_ply(path, NULL, 0);
    check_same(path, "", "199799 points");
    check_same(path, "--json", "\"file_points\":200000");
    check_same(path, "--unit ft", "from 0 to 3.7719 m");
    write_ply(path, bright, 1);
    check_same(path, "", "real numbers up to 255, divided by 255");
    write_ply(path, doubtful, 2);
    check_same(path, "", "row 190000: the colour red is 1.5");
    write_ply(path, negative, 3);
    check_same(path, "", "row 150000: the colour red is -2");
    remove(path);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
