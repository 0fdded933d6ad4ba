#include "compiler/cli/matrix.h"

#include "runtime/base/printable.h"

#include <stdio.h>

/* Characters of the widest number, and two more. */
static int column_width(const double *matrix, int32_t n)
{
    double most = n;
    for (int64_t i = 0; i < (int64_t)n * n; i++) most = matrix[i] > most ? matrix[i] : most;
    return snprintf(NULL, 0, "%.0f", most) + 2;
}

void pnet_cli_print_matrix(const double *matrix, int32_t n, char *const *classes, int class_count)
{
    int width = column_width(matrix, n);
    printf("  %-20s", "label \\ prediction");
    for (int32_t c = 0; c < n; c++) printf("%*d", width, (int)c);
    putchar('\n');
    for (int32_t label = 0; label < n; label++) {
        char name[256];
        printf("  %3d %-16s", (int)label,
            label < class_count ? pnet_printable(classes[label], name, sizeof name) : "?");
        for (int32_t c = 0; c < n; c++) printf("%*.0f", width, matrix[(int64_t)label * n + c]);
        putchar('\n');
    }
}

void pnet_cli_json_matrix(struct pnet_json *j, const char *key, const double *matrix, int32_t n)
{
    pnet_json_begin(j, key, '[');
    for (int32_t label = 0; label < n; label++) {
        pnet_json_begin(j, NULL, '[');
        for (int32_t c = 0; c < n; c++)
            pnet_json_int(j, NULL, (int64_t)matrix[(int64_t)label * n + c]);
        pnet_json_end(j, ']');
    }
    pnet_json_end(j, ']');
}
