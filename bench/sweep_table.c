#include "bench/sweep.h"

#include <math.h>

/* The extra memory, in bytes, that a layer may take. */
static const size_t workspace_limit = (size_t)64 << 20;

static void print_notes(const struct sweep_case *c)
{
    for (int p = 0; p < PRODUCTS; p++)
        if (sweep_of_trend(c, p) > sweep_cliff())
            printf("  cliff: %s", pnet_bench_product_names[p]);
    if (c->kernel) printf("  kernel=%d", c->kernel);
    if (c->m.work_bytes > workspace_limit) printf("  workspace beyond 64 MiB");
    if (c->rival[0] > 0)
        printf("  FlexGEMM took %.2f and %.2f times as long", c->rival[0] / c->m.time[0],
            c->rival[1] / (c->m.time[1] + c->m.time[2]));
    puts("");
}

/* Returns the precision of products, and that of features if they are stored in 16 bits: "bf16/16". */
static const char *precision_text(const struct measure_options *how, char text[16])
{
    snprintf(
        text, 16, "%s%s", pnet_bench_precision_names[how->precision], how->narrow ? "/16" : "");
    return text;
}

void pnet_bench_sweep_print(const struct sweep_case *c, int count)
{
    bool cuda = c->how.cuda;
    char text[16];
    printf("%9s %11s %13s %6s %7s", "points", "triplets", "channels", "groups", "");
    for (int p = 0; p < PRODUCTS; p++)
        printf(" | %8s ms %8s trend", pnet_bench_product_names[p], cuda ? "TFLOP/s" : "GFLOP/s");
    printf(" | %-26s %8s\n", "errors", "work MiB");
    for (int i = 0; i < count; i++) {
        const struct measured *m = &c[i].m;
        if (i && c[i].x < c[i - 1].x) puts("");
        printf("%9lld %11lld %5d -> %4d %6d %7s", (long long)m->rows, (long long)m->triplets,
            m->shape.cin, m->shape.cout, m->shape.groups, precision_text(&c[i].how, text));
        for (int p = 0; p < PRODUCTS; p++) {
            printf(
                " | %11.3f %8.2f", 1e3 * m->time[p], (cuda ? 1e-12 : 1e-9) * m->work / m->time[p]);
            if (c[i].trend[p] > 0)
                printf(" %5.2f", sweep_of_trend(&c[i], p));
            else
                printf(" %5s", "");
        }
        printf(" | %8.1e %8.1e %8.1e %8.1f", m->error[0], m->error[1], m->error[2],
            (double)m->work_bytes / 1048576);
        print_notes(&c[i]);
    }
}

void pnet_bench_sweep_print_json(FILE *out, const struct sweep_case *c, int count)
{
    fprintf(out, "\"device\": \"%s\", \"cases\": [", c->how.cuda ? "cuda" : "cpu");
    for (int i = 0; i < count; i++) {
        const struct measured *m = &c[i].m;
        fprintf(out,
            "%s{\"rows\": %lld, \"triplets\": %lld, \"cell_runs\": %lld, \"cin\": %d, \"cout\": "
            "%d, \"groups\": %d, \"precision\": \"%s\", \"storage\": %d, \"workspace_bytes\": %zu",
            i ? ", " : "", (long long)m->rows, (long long)m->triplets, (long long)m->runs,
            m->shape.cin, m->shape.cout, m->shape.groups,
            pnet_bench_precision_names[c[i].how.precision], c[i].how.narrow ? 16 : 32,
            m->work_bytes);
        for (int p = 0; p < PRODUCTS; p++)
            fprintf(out,
                ", \"%s\": {\"time_ms\": %.4f, \"useful_gflops\": %.2f, \"of_trend\": %.3f, "
                "\"error\": %.3e}",
                pnet_bench_product_names[p], 1e3 * m->time[p], 1e-9 * m->work / m->time[p],
                sweep_of_trend(&c[i], p), m->error[p]);
        if (c[i].kernel) fprintf(out, ", \"kernel\": %d", c[i].kernel);
        if (c[i].rival[0] > 0)
            fprintf(
                out, ", \"flexgemm_ms\": [%.2f, %.2f]", 1e3 * c[i].rival[0], 1e3 * c[i].rival[1]);
        fputs("}", out);
    }
    fputs("]", out);
}
