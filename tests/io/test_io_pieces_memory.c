/* pnetc info of a LAS file takes no more memory for five times as many points. */
#include "runtime/io/las.h"
#include "tests/io/files.h"

#include <sys/resource.h>
#include <sys/wait.h>

enum { RECORD = 20, BLOCK = 1 << 15, LITTLE_KIB = 4096 };

static void put_double(uint8_t *data, size_t at, double v)
{
    memcpy(data + at, &v, sizeof v);
}

/* Writes a LAS file of `rows` points, a multiple of BLOCK, along a line of 1 km. */
static void write_las(const char *path, uint32_t rows)
{
    uint8_t head[LAS_HEADER_LEAST] = "LASF", *block = calloc(BLOCK, RECORD);
    FILE *f = fopen(path, "wb");
    if (!f || !block) abort();
    head[LAS_VERSION] = 1;
    head[LAS_VERSION + 1] = 2;
    pnet_las_store(head, LAS_HEADER_SIZE, LAS_HEADER_LEAST, 2);
    pnet_las_store(head, LAS_POINT_OFFSET, LAS_HEADER_LEAST, 4);
    pnet_las_store(head, LAS_RECORD_LENGTH, RECORD, 2);
    pnet_las_store(head, LAS_COUNT32, rows, 4);
    for (size_t a = 0; a < 3; a++) {
        put_double(head, LAS_SCALES + 8 * a, 0.01);
        put_double(head, LAS_SHIFTS + 8 * a, 400000);
    }
    for (size_t i = 0; i < BLOCK; i++)
        for (size_t a = 0; a < 3; a++) pnet_las_store(block, i * RECORD + 4 * a, 3 * i + a, 4);
    fwrite(head, 1, sizeof head, f);
    for (uint32_t done = 0; done < rows; done += BLOCK) fwrite(block, RECORD, BLOCK, f);
    if (fclose(f) != 0) abort();
    free(block);
}

/* Returns the largest memory of all programs that have been run, KiB. */
static long run_info(const char *path, uint32_t rows)
{
    char command[2048], line[256] = "", want[64];
    struct rusage u;
    const char *pnetc = getenv("PNETC");
    snprintf(command, sizeof command, "%s info %s", pnetc ? pnetc : "build/quick/pnetc", path);
    snprintf(want, sizeof want, ": %u points\n", rows);
    FILE *out = popen(command, "r");
    if (!out || !fgets(line, sizeof line, out)) abort();
    CHECKF(strstr(line, want), "%s", line);
    while (fgets(line, sizeof line, out)) {
    }
    CHECK(pclose(out) == 0);
    if (getrusage(RUSAGE_CHILDREN, &u) != 0) abort();
    return u.ru_maxrss;
}

int main(void)
{
    const char *folder = files_folder(), *path = files_path(folder, "a.las");
    write_las(path, 32 * BLOCK);
    long once = run_info(path, 32 * BLOCK);
    write_las(path, 160 * BLOCK);
    long five = run_info(path, 160 * BLOCK);
    CHECKF(SANITIZED || five - once <= LITTLE_KIB, "%ld KiB, %ld with five times as many points",
        once, five);
    CHECK(once > 0);
    printf("%ld KiB, %ld KiB\n", once, five);
    remove(path);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
